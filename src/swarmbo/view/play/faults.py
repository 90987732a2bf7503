"""What is broken in a page's swarm, as it can be changed part by part."""

from copy import deepcopy
from dataclasses import dataclass, field

from swarmbo.view.play import protocol
from swarmbo.view.play.swarm import FoodLeft
from swarmbo.world.arena import Arena, Food
from swarmbo.world.disturbance import (
    Actuator,
    Disturbance,
    FoodScarcity,
    Ground,
    Proximity,
    SoftwareFood,
    SoftwareNest,
)


@dataclass
class Faults:
    """What is broken: per robot the fault of each part, and the food that is taken away."""

    robots: int
    proximity: list[str] = field(default_factory=list)
    ground: list[str] = field(default_factory=list)
    wheels: list[str] = field(default_factory=list)
    software: list[str] = field(default_factory=list)
    stuck_on: dict[int, int] = field(default_factory=dict)  # food source of a robot stuck on it
    scarce: Food | None = None  # the only food, in place of the arena's
    taken: set[int] = field(default_factory=set)  # food sources taken away

    def __post_init__(self) -> None:
        for part in protocol.FAULTS:
            setattr(self, part, ["none"] * self.robots)

    def copy(self) -> "Faults":
        """The same, to be changed without consequences."""
        return deepcopy(self)

    @classmethod
    def of(cls, disturbance: Disturbance, robots: int) -> "Faults":
        """What a condition of the paper breaks."""
        faults = cls(robots)
        match disturbance:
            case Proximity(each):
                faults.proximity = list(each)
            case Ground(each):
                faults.ground = list(each)
            case Actuator(each):
                faults.wheels = list(each)
            case SoftwareNest(robot):
                faults.software[robot] = "nest"
            case SoftwareFood(robot, source):
                faults.software[robot] = "food"
                faults.stuck_on[robot] = source
            case FoodScarcity(food):
                faults.scarce = food
        return faults

    def repair(self, robot: int) -> None:
        """Give a robot all its parts back."""
        for part in protocol.FAULTS:
            getattr(self, part)[robot] = "none"
        self.stuck_on.pop(robot, None)

    def food(self, arena: Arena) -> tuple[Food, ...]:
        """The food sources, whether taken away or not."""
        return arena.food if self.scarce is None else (self.scarce,)

    def software_fault(self, robot: int) -> Disturbance | None:
        """What has become of a robot's software, if anything."""
        if self.software[robot] == "nest":
            return SoftwareNest(robot)
        if self.software[robot] == "food":
            return SoftwareFood(robot, self.stuck_on[robot])
        return None

    def disturbances(self, arena: Arena) -> tuple[Disturbance, ...]:
        """The same as disturbances of a scenario."""
        found: list[Disturbance] = []
        for faults, cls in (
            (self.proximity, Proximity),
            (self.ground, Ground),
            (self.wheels, Actuator),
        ):
            if set(faults) != {"none"}:
                found.append(cls(tuple(faults)))
        software = (self.software_fault(robot) for robot in range(self.robots))
        found += [fault for fault in software if fault is not None]
        if self.taken:
            left = enumerate(self.food(arena))
            found.append(FoodLeft(tuple(disc for i, disc in left if i not in self.taken)))
        elif self.scarce is not None:
            found.append(FoodScarcity(self.scarce))
        return tuple(found)
