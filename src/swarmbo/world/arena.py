"""Arenas: a walled rectangle with a nest strip and food discs.

A new arena is one more `Arena` value; give it to a `Scenario`, or add it to
`ARENAS` to name it on the command line.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from swarmbo.errors import InputError, short
from swarmbo.world.checks import checked_entries, checked_integer, checked_number, real

MAX_SIZE = 1e5  # m, of an arena: rays of sensors that hit nothing end farther away
MAX_SQUARES = 100_000_000  # in which visits are counted
MAX_ROBOTS = 2**24  # over all trials: the engine numbers them in float32
MAX_TICKS = 2**31 - 1  # of a trial of one robot: visits are counted in 32 bits
# Of the fields that are numbers: least, largest, unit, and why not more.
RANGES = {
    "width": (1e-3, MAX_SIZE, "m", ""),
    "height": (1e-3, MAX_SIZE, "m", ""),
    "nest_depth": (0.0, MAX_SIZE, "m", ""),
    "wall_friction": (0.0, 1.0, "", "above 1 walls may let robots through that others push"),
    "nest_grey": (0.0, 255.0, "", ""),
    "food_grey": (0.0, 255.0, "", ""),
    "floor_grey": (0.0, 255.0, "", ""),
    "square": (1e-4, MAX_SIZE, "m", ""),
    "scale": (1e-6, 1e6, "", ""),
}


class Food(NamedTuple):
    """A disc of food on the floor: centre and radius in metres."""

    x: float
    y: float
    radius: float


@dataclass(frozen=True, kw_only=True)
class Arena:
    """A rectangle with inner walls at x = 0, x = width, y = 0 and y = height.

    The nest is the strip along the wall x = 0. Where nest and food overlap the
    floor is nest. Food never runs out.
    """

    name: str
    width: float  # m, along x
    height: float  # m, along y
    food: tuple[Food, ...]
    start_x: tuple[float, float]  # m, where a trial's poses are drawn
    start_y: tuple[float, float]  # m
    robots: int  # the usual number of robots
    ticks: int  # the usual length of a trial, in ticks of 0.2 s
    nest_depth: float = 0.32  # m
    wall_friction: float = 0.1  # multiplied by the robot's to give a contact's coefficient
    nest_grey: float = 255.0  # white
    food_grey: float = 0.0  # black
    floor_grey: float = 127.0
    square: float = 0.11  # m, side of the squares in which visits are counted
    scale: float = 1.0  # how much larger than `foraging`; conditions drawn for that scale with it

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise InputError(f"an arena's name must be a text, not {short(self.name)}")
        for name, (low, high, unit, reason) in RANGES.items():
            value = checked_number(
                f"an arena's {name}", getattr(self, name), low, high, unit, reason
            )
            object.__setattr__(self, name, value)
        for name, most in (("robots", MAX_ROBOTS), ("ticks", MAX_TICKS)):
            count = checked_integer(f"an arena's {name}", getattr(self, name), 1, most)
            object.__setattr__(self, name, count)
        if self.nest_depth > self.width:
            raise InputError(
                f"an arena's nest_depth must lie between 0 and its width, {self.width:g} m, "
                f"not {self.nest_depth:g}"
            )
        for name, size in (("start_x", self.width), ("start_y", self.height)):
            object.__setattr__(self, name, _span(name, getattr(self, name), size))
        food = self.food if isinstance(self.food, list | tuple | np.ndarray) else (self.food,)
        discs = tuple(checked_food(f"food {number}", disc) for number, disc in enumerate(food))
        object.__setattr__(self, "food", discs)
        if self.width / self.square * (self.height / self.square) > MAX_SQUARES:
            raise InputError(
                f"an arena of {self.width:g} x {self.height:g} m has more than {MAX_SQUARES:,} "
                f"squares of {self.square:g} m in which visits are counted; make square larger"
            )

    @property
    def centre(self) -> tuple[float, float]:
        """The middle of the rectangle, in metres."""
        return self.width / 2, self.height / 2

    @property
    def half_diagonal(self) -> float:
        """From the centre to a corner, in metres."""
        return math.hypot(self.width, self.height) / 2

    @property
    def squares(self) -> tuple[int, int]:
        """Number of counting squares along x and y, the last ones cut by the wall."""
        return math.ceil(self.width / self.square), math.ceil(self.height / self.square)


def checked_food(what: str, disc: Any) -> Food:
    """A food disc; InputError when its numbers are not finite, or its radius is negative."""
    numbers = tuple(map(real, disc)) if isinstance(disc, list | tuple | np.ndarray) else ()
    if len(numbers) != 3 or not all(abs(x) <= MAX_SIZE for x in numbers) or numbers[2] < 0:
        raise InputError(
            f"{what} is {short(disc)}; give finite x, y and radius >= 0, of {MAX_SIZE:g} m at most"
        )
    return Food(*numbers)


def _span(name: str, value: Any, size: float) -> tuple[float, float]:
    """Where poses are drawn along an axis of an arena; InputError when that is outside."""
    low, high = map(real, checked_entries(f"an arena's {name}", value, 2, 2))
    if not 0 <= low <= high <= size:
        raise InputError(
            f"an arena's {name} is {short(value)}; give two numbers of 0 to {size:g} m, "
            "the smaller one first"
        )
    return low, high


_LOWER_FOOD = (
    Food(0.8, 1.2, 0.1),
    Food(0.8, 0.5, 0.1),
    Food(1.3, 1.0, 0.2),
    Food(1.5, 0.5, 0.2),
    Food(1.6, 1.7, 0.3),
)

FORAGING = Arena(
    name="foraging",
    width=2.1,
    height=4.2,
    food=_LOWER_FOOD + tuple(Food(x, y + 2.1, radius) for x, y, radius in _LOWER_FOOD),
    start_x=(0.5, 1.6),
    start_y=(0.5, 3.7),
    robots=6,
    ticks=600,
)

FORAGING_2X = Arena(
    name="foraging-2x",
    width=4.2,
    height=8.4,
    food=tuple(Food(2 * x, 2 * y, 2 * radius) for x, y, radius in FORAGING.food),
    start_x=(0.5, 3.7),
    start_y=(0.5, 7.9),
    robots=12,
    ticks=1200,
    scale=2.0,
)

ARENAS = {arena.name: arena for arena in (FORAGING, FORAGING_2X)}
