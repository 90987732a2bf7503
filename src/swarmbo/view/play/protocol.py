"""What the page may ask for: JSON texts, checked at the door, as plain values.

Every message is an object with a `type` and the fields of the class of that name
below, and nothing else.
"""

import json
from dataclasses import MISSING, dataclass, fields
from typing import Any, get_args

from swarmbo.adaptation.options import LEARNERS
from swarmbo.errors import InputError, is_finite_number, is_integer, short
from swarmbo.paper.conditions import CONDITION_KINDS
from swarmbo.world.disturbance import SENSOR_FAULTS, WHEEL_FAULTS

MAX_MESSAGE = 1024  # bytes of a message to the server
MAX_SEED = 2**31 - 1
MAX_EVALUATIONS = 200
MAX_SPEED = 1_000_000.0  # times real time; the engine is the real limit
SOFTWARE_FAULTS = ("none", "nest", "food")
FAULTS = {
    "proximity": SENSOR_FAULTS,
    "ground": SENSOR_FAULTS,
    "wheels": tuple(WHEEL_FAULTS),
    "software": SOFTWARE_FAULTS,
}


def _check(what: str, good: bool, value: object, wanted: str) -> None:
    if not good:
        raise InputError(f"{what} is {short(value)}; give {wanted}")


def _integer(what: str, value: object, least: int, most: int) -> None:
    good = is_integer(value) and least <= value <= most
    _check(what, good, value, f"an integer of {least} to {most}")


def _name(what: str, value: object, known: tuple[str, ...]) -> None:
    good = isinstance(value, str) and value in known
    _check(what, good, value, f"one of {', '.join(known)}")


def _flag(what: str, value: object) -> None:
    _check(what, isinstance(value, bool), value, "true or false")


@dataclass(frozen=True)
class Speed:
    """Run at a multiple of real time; None is as fast as the engine goes."""

    factor: float | None

    def __post_init__(self) -> None:
        good = self.factor is None or (
            is_finite_number(self.factor) and 1 <= self.factor <= MAX_SPEED
        )
        _check("factor", good, self.factor, f"a number of 1 to {MAX_SPEED:.0f}, or null")


@dataclass(frozen=True)
class Pause:
    """Stand still, or go on."""

    paused: bool

    def __post_init__(self) -> None:
        _flag("paused", self.paused)


@dataclass(frozen=True)
class Step:
    """Advance by some ticks while standing still."""

    ticks: int = 1

    def __post_init__(self) -> None:
        _integer("ticks", self.ticks, 1, 1000)


@dataclass(frozen=True)
class Restart:
    """Begin anew: a healthy swarm at the start poses of a seed."""

    seed: int
    robots: int

    def __post_init__(self) -> None:
        _integer("seed", self.seed, 0, MAX_SEED)
        _check("robots", self.robots in (6, 12) and is_integer(self.robots), self.robots, "6 or 12")


@dataclass(frozen=True)
class Break:
    """Give a robot a fault of one part, or repair that part ("none")."""

    robot: int
    part: str
    fault: str

    def __post_init__(self) -> None:
        _integer("robot", self.robot, 0, 11)
        _name("part", self.part, tuple(FAULTS))
        _name("fault", self.fault, FAULTS[self.part])


@dataclass(frozen=True)
class Repair:
    """Repair a robot, or all of them and put all food back (None)."""

    robot: int | None = None

    def __post_init__(self) -> None:
        if self.robot is not None:
            _integer("robot", self.robot, 0, 11)


@dataclass(frozen=True)
class TakeFood:
    """Take a food source away, or put it back; None is all of them."""

    source: int | None
    taken: bool

    def __post_init__(self) -> None:
        if self.source is not None:
            _integer("source", self.source, 0, 9)
        _flag("taken", self.taken)


@dataclass(frozen=True)
class Condition:
    """Break what a condition of the paper breaks; an index beyond the last begins again."""

    kind: str
    index: int

    def __post_init__(self) -> None:
        _name("kind", self.kind, PLAYED_CONDITIONS)
        _integer("index", self.index, 0, 10_000)


@dataclass(frozen=True)
class Learn:
    """Let a learner repair the swarm."""

    learner: str
    evaluations: int = 30

    def __post_init__(self) -> None:
        _name("learner", self.learner, LEARNERS)
        _integer("evaluations", self.evaluations, 1, MAX_EVALUATIONS)


@dataclass(frozen=True)
class Stop:
    """Stop the learner; every robot keeps the best controller that it knows of."""


@dataclass(frozen=True)
class Run:
    """Run the controller of a row of the map on one robot, or on all (None)."""

    row: int
    robot: int | None = None

    def __post_init__(self) -> None:
        _integer("row", self.row, 0, 2**31)
        if self.robot is not None:
            _integer("robot", self.robot, 0, 11)


@dataclass(frozen=True)
class PutBack:
    """Whether the robots are put back to their start poses when a round ends."""

    wanted: bool

    def __post_init__(self) -> None:
        _flag("wanted", self.wanted)


@dataclass(frozen=True)
class Look:
    """What the page shows: a trial, sensor readings, and the model of a robot."""

    trial: int = 0
    rays: bool = False
    robot: int | None = None

    def __post_init__(self) -> None:
        _integer("trial", self.trial, 0, 7)
        _flag("rays", self.rays)
        if self.robot is not None:
            _integer("robot", self.robot, 0, 11)


PLAYED_CONDITIONS = tuple(kind for kind in CONDITION_KINDS if not kind.endswith("-2x"))
Command = (
    Speed
    | Pause
    | Step
    | Restart
    | Break
    | Repair
    | TakeFood
    | Condition
    | Learn
    | Stop
    | Run
    | PutBack
    | Look
)
COMMANDS: dict[str, type[Any]] = {cls.__name__.lower(): cls for cls in get_args(Command)}


def read(text: str | bytes) -> Command:
    """The command in a message; InputError says in a sentence what is wrong with it."""
    if len(text) > MAX_MESSAGE:
        raise InputError(f"a message of {len(text)} bytes is too long; send {MAX_MESSAGE} at most")
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise InputError("the message is not JSON; send an object with a type") from None
    kind = value.get("type") if isinstance(value, dict) else None
    if not isinstance(kind, str) or kind not in COMMANDS:
        raise InputError(
            f"the message's type is {short(kind)}; send an object with a type of "
            + ", ".join(COMMANDS)
        )
    cls = COMMANDS[kind]
    given = {name: entry for name, entry in value.items() if name != "type"}
    known = [field.name for field in fields(cls)]
    needed = [field.name for field in fields(cls) if field.default is MISSING]
    if not set(needed) <= set(given) <= set(known):
        wanted = ", ".join(known) or "no fields"
        raise InputError(f"{kind} has the fields {short(sorted(given))}; give {wanted}")
    return cls(**given)


def _no_constant(name: str) -> None:
    raise ValueError(name)  # NaN and Infinity are no JSON


def write(message: dict[str, Any]) -> str:
    """A message to the page."""
    return json.dumps(message, allow_nan=False, separators=(",", ":"))
