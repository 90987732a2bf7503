"""Checks of what learners and workers are told."""

import hashlib
import operator
from typing import Any

import numpy as np

from swarmbo.adaptation.options import Options
from swarmbo.errors import InputError, is_finite_number, is_integer, short
from swarmbo.maps.behaviour_map import MAX_NUMBER, BehaviourMap


def checked_index(what: str, value: Any, count: int) -> int:
    """An integer of 0 to count - 1; InputError when it is none."""
    try:
        index = operator.index(value)
    except TypeError:
        index = -1
    if isinstance(value, bool) or not 0 <= index < count:
        raise InputError(f"{what} is {short(value)}; give an integer, 0 to {count - 1}")
    return index


def checked_performance(value: Any) -> float:
    """A performance in the unit of the map; InputError when it is not a finite number."""
    plain = (
        value.item() if isinstance(value, np.generic | np.ndarray) and value.size == 1 else value
    )
    if not is_finite_number(plain) or abs(plain) > MAX_NUMBER:
        raise InputError(
            f"the performance is {short(value)}; give a number of -{MAX_NUMBER:g} to {MAX_NUMBER:g}"
        )
    return float(plain)


def check_map(value: object) -> None:
    """InputError when a value is not a map."""
    if not isinstance(value, BehaviourMap):
        raise InputError(f"the map is {short(value)}; give a BehaviourMap")


def check_count(what: str, value: Any, least: int, most: int) -> None:
    """InputError when a value is not an integer between the two."""
    if not is_integer(value) or not least <= value <= most:
        raise InputError(f"{what} is {short(value)}; give an integer, {least} to {most}")


def checked_fields(what: str, state: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """A JSON object that has these names and no others; InputError when it is not."""
    if not isinstance(state, dict):
        raise InputError(f"{what} is {short(state)}; give an object")
    if set(state) != set(names):
        wrong = sorted(set(names) ^ set(map(str, state)))
        raise InputError(f"{what} lacks, or should not have, {', '.join(wrong)}; correct it")
    return state


def checked_list(what: str, value: Any) -> list[Any]:
    """A JSON list; InputError when it is none."""
    if not isinstance(value, list):
        raise InputError(f"{what} is {short(value)}; give a list")
    return value


FORMAT = "swarmbo learner 1"


def header(name: str, behaviour_map: BehaviourMap, seed: int, options: Options) -> dict[str, Any]:
    """How the JSON state of every learner begins."""
    return {
        "format": FORMAT,
        "name": name,
        "map": fingerprint(behaviour_map),
        "seed": seed,
        "options": options.to_json(name),
    }


def fingerprint(behaviour_map: BehaviourMap) -> str:
    """A short text by which a state knows the map that it belongs to."""
    digest = hashlib.blake2b(digest_size=8)
    for array in (behaviour_map.cells, behaviour_map.coordinates, behaviour_map.performance):
        digest.update(repr(array.shape).encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
