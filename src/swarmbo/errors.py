"""The one exception that swarmbo raises for input it cannot use."""


class InputError(ValueError):
    """A value, file or combination that swarmbo cannot use.

    The message is one sentence that says what is wrong, where, and what would
    be right; the command line prints it and exits with code 2.
    """
