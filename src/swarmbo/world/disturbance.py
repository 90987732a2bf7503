"""What can break: the six disturbances of the paper, as values with a JSON form.

A disturbance says what it does to a swarm in `apply`, and where it puts robots
in `place`. A new one is one more frozen dataclass with the decorator
`@disturbance("its-name")`: its fields are its JSON form.
"""

import math
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from typing import Any, ClassVar

import numpy as np

from swarmbo.errors import InputError
from swarmbo.files import read_json
from swarmbo.streams import Stream
from swarmbo.world.arena import Arena, Food

SENSOR_FAULTS = ("none", "min", "max", "random")
WHEEL_FAULTS = {"none": (1.0, 1.0), "left": (0.5, 1.0), "right": (1.0, 0.5), "both": (0.5, 0.5)}
HEALTHY, MAD, STUCK = range(3)  # codes of a robot's software


@dataclass
class Effects:
    """What the disturbances add up to: one entry per robot, and the food that is left."""

    food: tuple[Food, ...]
    proximity: np.ndarray  # index into SENSOR_FAULTS
    ground: np.ndarray  # index into SENSOR_FAULTS
    wheel_gain: np.ndarray  # robots x 2, left and right
    software: np.ndarray  # HEALTHY, MAD or STUCK

    @property
    def robots(self) -> int:
        """How many robots the swarm has."""
        return len(self.proximity)

    @classmethod
    def none(cls, arena: Arena, robots: int) -> "Effects":
        """A healthy swarm of `robots` robots in `arena`."""
        codes = (np.zeros(robots, np.uint8) for _ in range(3))
        proximity, ground, software = codes
        return cls(arena.food, proximity, ground, np.ones((robots, 2)), software)

    def check_robot(self, robot: int) -> None:
        """InputError when there is no robot of that number."""
        if robot >= self.robots:
            raise InputError(
                f"the disturbance names robot {robot}, but the swarm has robots "
                f"0 to {self.robots - 1}; name one of these"
            )

    def check_count(self, faults: tuple[str, ...]) -> None:
        """InputError when a list of faults does not name one per robot."""
        if len(faults) != self.robots:
            raise InputError(
                f"the disturbance lists {len(faults)} robots, but the swarm has {self.robots}; "
                "give one fault per robot"
            )


class Disturbance:
    """Base of all disturbances; `kind` is the name, set by the decorator `disturbance`."""

    kind: ClassVar[str]

    def apply(self, effects: Effects) -> None:
        """Change `effects` to what this disturbance makes of it."""
        raise NotImplementedError

    def place(self, arena: Arena, seed: int, trial: int) -> dict[int, tuple[float, float, float]]:
        """Poses (x, y, heading) that this disturbance dictates, by robot."""
        return {}

    def to_json(self) -> dict[str, Any]:
        """The JSON form: the kind and the fields."""
        return {"kind": self.kind} | asdict(self)  # type: ignore[call-overload]


DISTURBANCES: dict[str, type[Disturbance]] = {}


def disturbance(kind: str):  # type: ignore[no-untyped-def]
    """Class decorator: make a frozen dataclass of it, and register it under `kind`."""

    def register(cls: type[Disturbance]) -> type[Disturbance]:
        cls.kind = kind
        DISTURBANCES[kind] = cls
        return cls

    return register


def _fault_list(kind: str, robots: Iterable[str], known: Iterable[str]) -> tuple[str, ...]:
    if isinstance(robots, str) or not isinstance(robots, Iterable):
        raise InputError(f"{kind}: robots must be a list with one fault per robot")
    faults = tuple(robots)
    known = tuple(known)
    for number, fault in enumerate(faults):
        if fault not in known:
            raise InputError(
                f"{kind}: robot {number} has the unknown fault {fault!r}; "
                f"known are {', '.join(known)}"
            )
    return faults


def _number(kind: str, name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InputError(f"{kind}: {name} is {value!r}; give a number from 0")
    return value


@disturbance("proximity")
@dataclass(frozen=True)
class Proximity(Disturbance):
    """Each robot's front proximity sensors work, or read 0, 1 or anything."""

    robots: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "robots", _fault_list(self.kind, self.robots, SENSOR_FAULTS))

    def apply(self, effects: Effects) -> None:
        effects.check_count(self.robots)
        for robot, fault in enumerate(self.robots):
            if fault != "none":
                effects.proximity[robot] = SENSOR_FAULTS.index(fault)


@disturbance("ground")
@dataclass(frozen=True)
class Ground(Disturbance):
    """Each robot's ground sensors work, or read black, white or anything."""

    robots: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "robots", _fault_list(self.kind, self.robots, SENSOR_FAULTS))

    def apply(self, effects: Effects) -> None:
        effects.check_count(self.robots)
        for robot, fault in enumerate(self.robots):
            if fault != "none":
                effects.ground[robot] = SENSOR_FAULTS.index(fault)


@disturbance("actuator")
@dataclass(frozen=True)
class Actuator(Disturbance):
    """Each robot's wheels work, or the left, the right or both turn at half speed."""

    robots: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "robots", _fault_list(self.kind, self.robots, WHEEL_FAULTS))

    def apply(self, effects: Effects) -> None:
        effects.check_count(self.robots)
        for robot, fault in enumerate(self.robots):
            effects.wheel_gain[robot] *= WHEEL_FAULTS[fault]


@disturbance("software-nest")
@dataclass(frozen=True)
class SoftwareNest(Disturbance):
    """One robot goes mad at the nest's border, driving back and forth along it."""

    robot: int

    def __post_init__(self) -> None:
        _number(self.kind, "robot", self.robot)

    def apply(self, effects: Effects) -> None:
        effects.check_robot(self.robot)
        effects.software[self.robot] = MAD

    def place(self, arena: Arena, seed: int, trial: int) -> dict[int, tuple[float, float, float]]:
        y = Stream("software-nest", seed, trial).uniform(0.3, 1.8) * arena.scale
        return {self.robot: (arena.nest_depth, y, math.pi / 2)}


@disturbance("software-food")
@dataclass(frozen=True)
class SoftwareFood(Disturbance):
    """One robot stands still on a food source and cannot pick up."""

    robot: int
    source: int = 0

    def __post_init__(self) -> None:
        _number(self.kind, "robot", self.robot)
        _number(self.kind, "source", self.source)

    def apply(self, effects: Effects) -> None:
        effects.check_robot(self.robot)
        effects.software[self.robot] = STUCK

    def place(self, arena: Arena, seed: int, trial: int) -> dict[int, tuple[float, float, float]]:
        if self.source >= len(arena.food):
            raise InputError(
                f"software-food: source is {self.source}, but the arena has food sources "
                f"0 to {len(arena.food) - 1}; name one of these"
            )
        food = arena.food[self.source]
        heading = Stream("software-food", seed, trial).uniform(-math.pi, math.pi)
        return {self.robot: (food.x, food.y, heading)}


@disturbance("food-scarcity")
@dataclass(frozen=True)
class FoodScarcity(Disturbance):
    """All food is replaced by one disc (x, y, radius in metres)."""

    food: Food = field()

    def __post_init__(self) -> None:
        try:
            food = Food(*map(float, self.food))
        except (TypeError, ValueError):
            food = None
        if food is None or not all(map(math.isfinite, food)) or food.radius <= 0:
            raise InputError(
                f"{self.kind}: food is {self.food!r}; give [x, y, radius] in metres, radius > 0"
            )
        object.__setattr__(self, "food", food)

    def apply(self, effects: Effects) -> None:
        effects.food = (self.food,)


def from_json(value: Any) -> tuple[Disturbance, ...]:
    """The disturbances in a JSON value: one object, a list of them, or null for none."""
    if value is None:
        return ()
    if isinstance(value, list):
        return tuple(single for entry in value for single in from_json(entry))
    if not isinstance(value, dict):
        raise InputError(f"a disturbance is an object with a kind, not {value!r}")
    kind = value.get("kind")
    if not isinstance(kind, str) or kind not in DISTURBANCES:
        raise InputError(f"unknown disturbance {kind!r}; known are {', '.join(DISTURBANCES)}")
    cls = DISTURBANCES[kind]
    given = {name: entry for name, entry in value.items() if name != "kind"}
    known = [f.name for f in fields(cls)]  # type: ignore[arg-type]
    for name in given:
        if name not in known:
            raise InputError(f"{kind}: has no field {name!r}; its fields are {', '.join(known)}")
    try:
        return (cls(**given),)
    except TypeError:
        raise InputError(f"{kind}: needs the fields {', '.join(known)}") from None


def load_disturbances(path: str | os.PathLike[str]) -> tuple[Disturbance, ...]:
    """The disturbances in a JSON file."""
    try:
        return from_json(read_json(path))
    except InputError as error:
        if str(error).startswith(str(path)):
            raise
        raise InputError(f"{path}: {error}") from None
