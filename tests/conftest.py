"""Settings of all tests."""

from hypothesis import settings

# The first example of an engine test compiles kernels.
settings.register_profile("swarmbo", deadline=None)
settings.load_profile("swarmbo")
