"""Scenarios: everything about an evaluation except the controllers."""

import math
from dataclasses import dataclass, replace

import numpy as np

from swarmbo.errors import InputError
from swarmbo.streams import Stream
from swarmbo.world.arena import FORAGING, Arena
from swarmbo.world.disturbance import Disturbance, Effects, Pose
from swarmbo.world.geometry import bodies_intersect, body_at, first_overlap
from swarmbo.world.robot import THYMIO, Robot

MAX_VISITS = 2**31 - 1  # robot-ticks of a trial: visits are counted in 32 bits
TRIALS = 8  # trials of an evaluation in the paper
MAX_TRIALS = 10_000  # that are drawn; more poses can be given
TRIES = 10_000  # poses drawn for a robot before its arena counts as full


@dataclass(frozen=True, kw_only=True, eq=False)
class Scenario:
    """An arena, its robots, what is broken, where trials start, and the noise.

    `poses` has the shape trials x robots x 3: x and y in metres, heading in
    radians, counter-clockwise from +x. The noise is a pure function of
    `noise_key`, trial, robot and tick, so equal keys give equal noise.
    """

    poses: np.ndarray
    arena: Arena = FORAGING
    robot: Robot = THYMIO
    disturbances: tuple[Disturbance, ...] = ()
    noise_key: int = 0  # 64 bits
    ticks: int = 600
    tick: float = 0.2  # s
    substeps: int = 10  # steps of the physics in a tick

    def __post_init__(self) -> None:
        poses = np.array(self.poses, dtype=np.float64)
        if poses.ndim != 3 or poses.shape[2] != 3 or 0 in poses.shape:
            raise InputError(f"poses must have the shape trials x robots x 3, not {poses.shape}")
        if not np.isfinite(poses).all():
            raise InputError("poses must be finite numbers")
        poses.setflags(write=False)
        object.__setattr__(self, "poses", poses)
        object.__setattr__(self, "disturbances", tuple(self.disturbances))
        longest = MAX_VISITS // self.robots
        if not 1 <= self.ticks <= longest:
            raise InputError(
                f"a trial of {self.robots} robots has 1 to {longest} ticks, not {self.ticks}"
            )
        if self.substeps < 3 or not self.tick > 0:
            raise InputError("a tick must be longer than 0 s and have at least 3 sub-steps")
        if not 0 <= self.noise_key < 2**64:
            raise InputError("a noise key is an integer from 0 to 2^64 - 1")
        self.effects()  # raises when a disturbance does not fit the swarm

    @property
    def trials(self) -> int:
        """How many trials an evaluation has."""
        return int(self.poses.shape[0])

    @property
    def robots(self) -> int:
        """How many robots the swarm has."""
        return int(self.poses.shape[1])

    def effects(self) -> Effects:
        """What the disturbances do to this swarm, all together."""
        effects = Effects.none(self.arena, self.robots)
        for disturbance in self.disturbances:
            disturbance.apply(effects)
        return effects

    def without_noise(self) -> "Scenario":
        """The same scenario with noiseless sensors."""
        return replace(self, robot=self.robot.without_noise())

    @classmethod
    def draw(
        cls,
        *,
        seed: int,
        arena: Arena = FORAGING,
        robots: int | None = None,
        trials: int = TRIALS,
        ticks: int | None = None,
        robot: Robot = THYMIO,
        disturbances: tuple[Disturbance, ...] = (),
        noise_key: int | None = None,
    ) -> "Scenario":
        """The scenario of replicate `seed`: poses and noise key are drawn from it.

        `robots` and `ticks` default to the arena's usual ones, `noise_key` to
        the replicate's.
        """
        robots = arena.robots if robots is None else robots
        if robots < 1:
            raise InputError(f"a scenario needs at least 1 robot, not {robots}")
        if not 1 <= trials <= MAX_TRIALS:
            raise InputError(f"a scenario has 1 to {MAX_TRIALS:,} trials, not {trials}")
        return cls(
            poses=np.stack(
                [
                    draw_poses(arena, robot, robots, seed, trial, disturbances)
                    for trial in range(trials)
                ]
            ),
            arena=arena,
            robot=robot,
            disturbances=disturbances,
            noise_key=replicate_noise_key(seed) if noise_key is None else noise_key,
            ticks=arena.ticks if ticks is None else ticks,
        )


def replicate_noise_key(seed: int) -> int:
    """The noise key of replicate `seed`, 64 bits."""
    return Stream("noise", seed).key()


def place_faulty(
    arena: Arena,
    robot: Robot,
    robots: int,
    seed: int,
    trial: int,
    disturbances: tuple[Disturbance, ...],
) -> dict[int, Pose]:
    """Start poses of the robots that disturbances place in one trial, bodies apart."""
    body = np.array(robot.body)
    placed: dict[int, Pose] = {}
    for number, disturbance in enumerate(disturbances):
        disturbance.apply(Effects.none(arena, robots))  # raises when it does not fit the swarm
        stream = Stream("place", disturbance.kind, seed, trial, number)
        for _ in range(TRIES):
            poses = disturbance.place(arena, stream)
            if placed.keys() & poses.keys():
                raise InputError(
                    f"two disturbances place robot {min(placed.keys() & poses.keys())}; "
                    "let each place another robot"
                )
            if first_overlap(body, np.array([*placed.values(), *poses.values()])) is None:
                break
        else:
            raise InputError(
                f"the disturbances put robot {min(poses)} where another one stands; "
                "give each a place of its own"
            )
        placed |= poses
    return placed


def draw_poses(
    arena: Arena,
    robot: Robot,
    robots: int,
    seed: int,
    trial: int,
    disturbances: tuple[Disturbance, ...] = (),
) -> np.ndarray:
    """Start poses (robots x 3) of one trial, bodies apart.

    Robots that a disturbance places come first. Every robot has a stream of
    its own, so the others stand where they would without the disturbance
    unless that place is taken.
    """
    body = np.array(robot.body)
    faulty = place_faulty(arena, robot, robots, seed, trial, disturbances)
    poses = np.zeros((robots, 3))
    bodies: dict[int, np.ndarray] = {}
    for number in [*faulty, *(number for number in range(robots) if number not in faulty)]:
        stream = Stream("poses", seed, trial, number)
        for _ in range(TRIES):
            pose = np.array(faulty.get(number) or _random_pose(arena, stream))
            others = np.array(list(bodies), dtype=int)
            distances = np.hypot(*(poses[others, :2] - pose[:2]).T)
            near = others[distances < 2 * robot.radius]
            candidate = body_at(body, pose)
            if not any(bodies_intersect(bodies[other], candidate) for other in near):
                break
        else:
            raise InputError(
                f"there is no room for {robots} robots in the arena {arena.name}; use fewer"
            )
        poses[number] = pose
        bodies[number] = candidate
    return poses


def _random_pose(arena: Arena, stream: Stream) -> Pose:
    x, y = stream.uniform(*arena.start_x), stream.uniform(*arena.start_y)
    return x, y, stream.uniform(-math.pi, math.pi)
