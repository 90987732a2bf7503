"""The conditions of the paper's experiments: disturbances as drawn, per replicate."""

import os

from swarmbo.errors import InputError, cut, short
from swarmbo.streams import Stream
from swarmbo.world.arena import FORAGING, FORAGING_2X, Arena, Food
from swarmbo.world.disturbance import (
    SENSOR_FAULTS,
    WHEEL_FAULTS,
    Actuator,
    Disturbance,
    FoodScarcity,
    Ground,
    Proximity,
    SoftwareFood,
    SoftwareNest,
    load_disturbances,
)

DEMONSTRATION = ("paper-1", "proximity:12", "smbo-dec")  # much is lost, and much won back
EVALUATIONS = 30  # of a run in the paper
DRAWS = 20  # fault draws per replicate
NOISE = ("replicate", "fresh")  # that a swarm meets: that of its map's evolution, or other noise
CONDITION_KINDS = (
    "proximity",
    "ground",
    "actuator",
    "software-nest",
    "software-food",
    "food-scarcity",
    "proximity-2x",
    "food-scarcity-2x",
    "software-food-random",  # the food source is drawn, as the paper says; its experiments use 0
)


def check_noise(noise: object) -> str:
    """One of NOISE; InputError when it is none."""
    if noise not in NOISE:
        raise InputError(f'noise is {short(noise)}; give "{NOISE[0]}" or "{NOISE[1]}"')
    return str(noise)


def condition_arena(kind: str) -> Arena:
    """The arena that a kind of condition implies, with its robots and ticks."""
    return FORAGING_2X if kind.endswith("-2x") else FORAGING


def conditions(kind: str, replicate: int) -> list[Disturbance]:
    """The conditions of one kind in one replicate, in order.

    20 draws of faults for proximity, ground and actuator (each robot's fault
    is one of four with equal probability); robots 0 to 5 for software-nest and
    software-food, which stand on food source 0, with software-food-random on a
    drawn one; radii of 4 to 24 cm at one place for food-scarcity. The kinds
    proximity-2x and food-scarcity-2x are meant for 12 robots in the arena
    foraging-2x, trials of 1200 ticks.
    """
    if kind not in CONDITION_KINDS:
        raise InputError(f"unknown kind {short(kind)}; known are {', '.join(CONDITION_KINDS)}")
    arena = condition_arena(kind)
    stream = Stream("conditions", kind, replicate)
    match kind.removesuffix("-2x"):
        case "software-nest":
            return [SoftwareNest(robot) for robot in range(arena.robots)]
        case "software-food":
            return [SoftwareFood(robot, source=0) for robot in range(arena.robots)]
        case "software-food-random":
            sources = len(arena.food)
            return [SoftwareFood(r, source=stream.choice(sources)) for r in range(arena.robots)]
        case "food-scarcity":
            x, y = stream.uniform(1.7, 1.85), stream.uniform(0.3, 1.8)
            return [
                FoodScarcity(Food(*(arena.scale * value for value in (x, y, 0.04 * k))))
                for k in range(1, 7)
            ]
        case "actuator":
            cls: type[Actuator | Ground | Proximity] = Actuator
            faults = tuple(WHEEL_FAULTS)
        case "ground":
            cls, faults = Ground, SENSOR_FAULTS
        case _:
            cls, faults = Proximity, SENSOR_FAULTS
    return [
        cls(tuple(faults[stream.choice(len(faults))] for _ in range(arena.robots)))
        for _ in range(DRAWS)
    ]


def condition(name: str, replicate: int) -> Disturbance:
    """The condition that KIND:INDEX names, for example proximity:3, in one replicate."""
    kind, _, index = name.partition(":")
    drawn = conditions(kind, replicate)
    if not index.isdecimal() or len(index) > 9 or int(index) >= len(drawn):
        raise InputError(
            f"{cut(name)}: there is no such condition; name one of {kind}:0 to "
            f"{kind}:{len(drawn) - 1}"
        )
    return drawn[int(index)]


def read_disturbance(text: str | None, seed: int) -> tuple[tuple[Disturbance, ...], Arena | None]:
    """The disturbances that FILE.json or KIND:INDEX names, and the arena that a 2x kind implies."""
    if text is None:
        return (), None
    kind, colon, _ = text.partition(":")
    if colon and kind in CONDITION_KINDS:
        arena = condition_arena(kind)
        return (condition(text, seed),), None if arena is FORAGING else arena
    if not os.path.lexists(text):
        raise InputError(
            f"the disturbance {short(text)} is neither a file nor a condition; name a JSON file, "
            f"or KIND:INDEX with a kind of {', '.join(CONDITION_KINDS)}"
        )
    return load_disturbances(text), None
