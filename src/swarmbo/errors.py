"""The one exception that swarmbo raises for input it cannot use, and what its checks share."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeGuard

QUOTED = 80  # characters of a value that a message quotes, at most


class InputError(ValueError):
    """A value, file or combination that swarmbo cannot use.

    The message is one sentence that says what is wrong, where, and what would
    be right; the command line prints it and exits with code 2.
    """


class LostFileError(RuntimeError):
    """A file that work needs was deleted or changed by others meanwhile.

    The message is one sentence that says which, and where what was done is; the
    command line prints it and exits with code 1.
    """


@contextmanager
def naming(place: object) -> Iterator[None]:
    """Put `place`, for example a file's path, before the message of any InputError."""
    try:
        yield
    except InputError as error:
        raise type(error)(f"{cut(place)}: {error}") from None


def short(value: object) -> str:
    """How a value is quoted in a message: its repr, cut when it is long."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer of too many digits, or too many brackets
        return f"a huge {type(value).__name__}"
    return text if len(text) <= 40 else text[:37] + "..."


def cut(place: object, most: int = QUOTED) -> str:
    """How a path or name is put into a message: as it is, but its begin and end when it is long."""
    text = str(place)
    if not text.isprintable():
        text = repr(text)[1:-1]
    half = most // 2 - 2
    return text if len(text) <= most else f"{text[:half]}...{text[-half:]}"


def is_integer(value: object) -> TypeGuard[int]:
    """Whether a JSON value is an integer; true and false are not."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_finite_number(value: object) -> TypeGuard[int | float]:
    """Whether a JSON value is a number that fits a finite float64; true and false are not."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond the floating-point range
        return False
