"""What can break: the six disturbances of the paper, as values with a JSON form.

A disturbance says what it does to a swarm in `apply`, and where it puts robots
in `place`. A new one is one more frozen dataclass with the decorator
`@disturbance("its-name")`: its fields are its JSON form.
"""

import math
import os
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, TypeVar

import numpy as np

from swarmbo.errors import InputError, is_integer, naming, short
from swarmbo.files import read_json
from swarmbo.streams import Stream
from swarmbo.world.arena import MAX_SIZE, Arena, Food, checked_food
from swarmbo.world.checks import real

SENSOR_FAULTS = ("none", "min", "max", "random")
SENSOR_MIN, SENSOR_MAX, SENSOR_RANDOM = 1, 2, 3  # their codes
WHEEL_FAULTS = {"none": (1.0, 1.0), "left": (0.5, 1.0), "right": (1.0, 0.5), "both": (0.5, 0.5)}
HEALTHY, MAD, STUCK = range(3)  # codes of a robot's software

Pose = tuple[float, float, float]  # x and y in m, heading in rad


@dataclass
class Effects:
    """What the disturbances add up to: one entry per robot, and the food that is left."""

    arena: Arena  # as it was
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
        return cls(arena, arena.food, proximity, ground, np.ones((robots, 2)), software)

    def check(self, robots: int) -> None:
        """InputError when disturbances left something that no robot or arena can have."""
        for name, most in (
            ("proximity", len(SENSOR_FAULTS) - 1),
            ("ground", len(SENSOR_FAULTS) - 1),
            ("software", STUCK),
        ):
            codes = np.asarray(getattr(self, name))
            good = codes.shape == (robots,) and codes.dtype.kind in "iu"
            if not good or not ((codes >= 0) & (codes <= most)).all():
                raise InputError(
                    f"the disturbances set {name} to {short(codes.tolist())}; "
                    f"give every robot a code of 0 to {most}"
                )
        gain = np.asarray(self.wheel_gain)
        good = gain.shape == (robots, 2) and gain.dtype.kind in "fiu"
        if not good or not (np.abs(gain) <= 1).all():
            raise InputError(
                f"the disturbances set wheel_gain to {short(gain.tolist())}; give every robot two "
                "numbers of -1 to 1: no wheel turns faster than max_speed"
            )
        food = enumerate(self.food)
        self.food = tuple(checked_food(f"food {n} of a disturbance", disc) for n, disc in food)

    def check_robot(self, robot: int) -> None:
        """InputError when there is no robot of that number."""
        if robot >= self.robots:
            raise InputError(
                f"the disturbance names robot {short(robot)}, but the swarm has robots "
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

    def place(self, arena: Arena, stream: Stream) -> dict[int, Pose]:
        """Where a trial starts for the robots that this disturbance places, by robot.

        Called again, with the stream where it is then, while bodies overlap.
        """
        return {}

    def to_json(self) -> dict[str, Any]:
        """The JSON form: the kind and the fields."""
        return {"kind": self.kind} | asdict(self)  # type: ignore[call-overload]


DISTURBANCES: dict[str, type[Disturbance]] = {}
D = TypeVar("D", bound=Disturbance)


def disturbance(kind: str) -> Callable[[type[D]], type[D]]:
    """Class decorator: register a frozen dataclass under the name `kind`."""

    def register(cls: type[D]) -> type[D]:
        cls.kind = kind
        DISTURBANCES[kind] = cls
        return cls

    return register


def _fault_list(kind: str, robots: Any, known: Iterable[str]) -> tuple[str, ...]:
    if not isinstance(robots, list | tuple):
        raise InputError(f"{kind}: robots must be a list with one fault per robot")
    faults = tuple(robots)
    known = tuple(known)
    for number, fault in enumerate(faults):
        if not isinstance(fault, str) or fault not in known:
            raise InputError(
                f"{kind}: robot {number} has the unknown fault {short(fault)}; "
                f"known are {', '.join(known)}"
            )
    return faults


def _number(kind: str, name: str, value: object) -> int:
    number = int(value) if isinstance(value, np.integer) else value
    if not is_integer(number) or number < 0:
        raise InputError(f"{kind}: {name} is {short(value)}; give a number from 0")
    return number


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
        object.__setattr__(self, "robot", _number(self.kind, "robot", self.robot))

    def apply(self, effects: Effects) -> None:
        effects.check_robot(self.robot)
        effects.software[self.robot] = MAD

    def place(self, arena: Arena, stream: Stream) -> dict[int, Pose]:
        y = stream.uniform(0.3, 1.8) * arena.scale
        return {self.robot: (arena.nest_depth, y, math.pi / 2)}


@disturbance("software-food")
@dataclass(frozen=True)
class SoftwareFood(Disturbance):
    """One robot stands still on a food source and cannot pick up."""

    robot: int
    source: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "robot", _number(self.kind, "robot", self.robot))
        object.__setattr__(self, "source", _number(self.kind, "source", self.source))

    def apply(self, effects: Effects) -> None:
        effects.check_robot(self.robot)
        self._food(effects.arena)
        effects.software[self.robot] = STUCK

    def _food(self, arena: Arena) -> Food:
        if self.source >= len(arena.food):
            raise InputError(
                f"{self.kind}: source is {short(self.source)}, but the arena has food sources "
                f"0 to {len(arena.food) - 1}; name one of these"
            )
        return arena.food[self.source]

    def place(self, arena: Arena, stream: Stream) -> dict[int, Pose]:
        food = self._food(arena)
        return {self.robot: (food.x, food.y, stream.uniform(-math.pi, math.pi))}


@disturbance("food-scarcity")
@dataclass(frozen=True)
class FoodScarcity(Disturbance):
    """All food is replaced by one disc (x, y, radius in metres)."""

    food: Food

    def __post_init__(self) -> None:
        numbers = tuple(map(real, self.food)) if isinstance(self.food, list | tuple) else ()
        if len(numbers) != 3 or not all(abs(x) <= MAX_SIZE for x in numbers) or numbers[2] <= 0:
            raise InputError(
                f"{self.kind}: food is {short(self.food)}; "
                f"give [x, y, radius] in metres, radius > 0, none beyond {MAX_SIZE:g} m"
            )
        object.__setattr__(self, "food", Food(*numbers))

    def apply(self, effects: Effects) -> None:
        effects.food = (self.food,)


def from_json(value: Any) -> tuple[Disturbance, ...]:
    """The disturbances in a JSON value: one object, a list of them, or null for none."""
    if value is None:
        return ()
    if isinstance(value, list):
        return tuple(map(_single, value))
    return (_single(value),)


def _single(value: Any) -> Disturbance:
    if not isinstance(value, dict):
        raise InputError(f"a disturbance is an object with a kind, not {short(value)}")
    kind = value.get("kind")
    if not isinstance(kind, str) or kind not in DISTURBANCES:
        raise InputError(f"unknown disturbance {short(kind)}; known are {', '.join(DISTURBANCES)}")
    cls = DISTURBANCES[kind]
    given = {name: entry for name, entry in value.items() if name != "kind"}
    known = [f.name for f in fields(cls)]  # type: ignore[arg-type]
    for name in given:
        if name not in known:
            raise InputError(
                f"{kind}: has no field {short(name)}; its fields are {', '.join(known)}"
            )
    try:
        return cls(**given)
    except TypeError:
        raise InputError(f"{kind}: needs the fields {', '.join(known)}") from None


def load_disturbances(path: str | os.PathLike[str]) -> tuple[Disturbance, ...]:
    """The disturbances in a JSON file."""
    value = read_json(path)
    with naming(path):
        return from_json(value)
