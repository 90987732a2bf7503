"""Checks of the numbers that robots, arenas and scenarios are made of."""

import math
import operator
from typing import Any

import numpy as np

from swarmbo.errors import InputError, short


def real(value: Any) -> float:
    """A number as a float, NumPy's too; NaN when it is none, or too large for a float."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.number):
        return math.nan
    try:
        return math.nan if isinstance(value, np.complexfloating) else float(value)
    except OverflowError:
        return math.nan


def checked_number(
    what: str, value: Any, low: float, high: float, unit: str = "", reason: str = ""
) -> float:
    """A number of `low` to `high` as a float; InputError when it is none."""
    number = real(value)
    if not low <= number <= high:
        why = f": {reason}" if reason else ""
        unit = f" {unit}" if unit else ""
        raise InputError(
            f"{what} must be finite and lie between {low:g} and {high:g}{unit}, "
            f"not {short(value)}{why}"
        )
    return number


def checked_integer(what: str, value: Any, low: int, high: int, reason: str = "") -> int:
    """An integer of `low` to `high`, NumPy's too, as an int; InputError when it is none."""
    try:
        number = operator.index(value)
    except TypeError:
        number = low - 1
    if isinstance(value, bool | np.bool_) or not low <= number <= high:
        why = f": {reason}" if reason else ""
        raise InputError(
            f"{what} must be an integer from {low:,} to {high:,}, not {short(value)}{why}"
        )
    return number


def checked_entries(what: str, value: Any, least: int, most: int) -> tuple[Any, ...]:
    """A list, tuple or array of so many entries as a tuple; InputError when it is none."""
    entries = tuple(value) if isinstance(value, list | tuple) else ()
    if isinstance(value, np.ndarray) and value.ndim > 0:
        entries = tuple(value)
    if not least <= len(entries) <= most:
        count = f"{least}" if least == most else f"{least} to {most}"
        raise InputError(f"{what} must be a list of {count} entries, not {short(value)}")
    return entries
