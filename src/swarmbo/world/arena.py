"""Arenas: a walled rectangle with a nest strip and food discs.

A new arena is one more `Arena` value; give it to a `Scenario`, or add it to
`ARENAS` to name it on the command line.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

from swarmbo.errors import InputError


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
        object.__setattr__(self, "food", tuple(Food(*map(float, disc)) for disc in self.food))
        object.__setattr__(self, "start_x", tuple(self.start_x))
        object.__setattr__(self, "start_y", tuple(self.start_y))
        sizes = (self.width, self.height, self.square)
        if not all(math.isfinite(size) and size > 0 for size in sizes):
            raise InputError("an arena's width, height and square must be finite and positive")
        if not 0 <= self.nest_depth <= self.width:
            raise InputError("an arena's nest_depth must lie between 0 and its width")
        for number, disc in enumerate(self.food):
            if not all(map(math.isfinite, disc)) or disc.radius < 0:
                raise InputError(
                    f"food {number} is {tuple(disc)}; give finite x, y and radius >= 0"
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
