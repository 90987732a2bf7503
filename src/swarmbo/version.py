"""The version of swarmbo."""

__version__ = "0.1.0"
