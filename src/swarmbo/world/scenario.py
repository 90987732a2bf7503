"""Scenarios: everything about an evaluation except the controllers."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from swarmbo.errors import InputError, is_integer, short
from swarmbo.streams import Stream
from swarmbo.world.arena import FORAGING, MAX_ROBOTS, MAX_TICKS, Arena
from swarmbo.world.checks import checked_integer, checked_number
from swarmbo.world.disturbance import Disturbance, Effects, Pose
from swarmbo.world.geometry import bodies_intersect, body_at, first_overlap
from swarmbo.world.memory import check_memory, memory_of
from swarmbo.world.robot import THYMIO, Robot

MAX_VISITS = MAX_TICKS  # robot-ticks of a trial: visits are counted in 32 bits
TRIALS = 8  # trials of an evaluation in the paper
MAX_TRIALS = 10_000  # that are drawn; more poses can be given
MAX_TURN = 2.0  # rad in a tick, for the edges that face each other are chosen once in it
LARGEST = 1e5  # radii of a robot that an arena measures at the most
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
        if not isinstance(self.arena, Arena):
            raise InputError(f"a scenario's arena is {short(self.arena)}; give an Arena")
        if not isinstance(self.robot, Robot):
            raise InputError(f"a scenario's robot is {short(self.robot)}; give a Robot")
        object.__setattr__(self, "poses", _checked_poses(self.poses, self.arena))
        check_size(self.robots, self.trials)
        longest = MAX_VISITS // self.robots
        what = f"the number of ticks of a trial of {self.robots} robots"
        object.__setattr__(self, "ticks", checked_integer(what, self.ticks, 1, longest))
        tick = checked_number("a scenario's tick", self.tick, 1e-6, 10, "s")
        object.__setattr__(self, "tick", tick)
        what = "the number of sub-steps of a tick"
        object.__setattr__(self, "substeps", checked_integer(what, self.substeps, 3, 10_000))
        key = checked_integer("a noise key", self.noise_key, 0, 2**64 - 1)
        object.__setattr__(self, "noise_key", key)
        object.__setattr__(self, "disturbances", _checked_disturbances(self.disturbances))
        self._check_motion()
        self.effects()  # raises when a disturbance does not fit the swarm

    def _check_motion(self) -> None:
        """InputError when a robot moves so fast that contacts in a tick would be missed.

        It may neither drive farther than its radius in a tick nor turn by more than 2 rad, and
        by an eighth of these in a sub-step; and it needs room to turn within the walls.
        """
        robot, radius = self.robot, self.robot.radius
        path = robot.max_speed * self.tick
        turn = 2 * path / robot.wheel_base
        if path > radius:
            raise InputError(
                f"a robot of max_speed {robot.max_speed:g} m/s drives {path:g} m in a tick of "
                f"{self.tick:g} s, more than its radius of {radius:g} m; give at most "
                f"{radius / self.tick:g} m/s, or a shorter tick"
            )
        if turn > MAX_TURN:
            raise InputError(
                f"a robot of max_speed {robot.max_speed:g} m/s and wheel_base "
                f"{robot.wheel_base:g} m turns by {turn:g} rad in a tick of {self.tick:g} s; "
                f"let it be {MAX_TURN:g} rad at most: wheels farther apart, a lower speed or a "
                "shorter tick"
            )
        fewest = math.ceil(8 * max(path / radius, turn / MAX_TURN) - 1e-9)
        if self.substeps < fewest:
            raise InputError(
                f"a tick of {self.substeps} sub-steps is too coarse for a robot that drives "
                f"{path:g} m and turns by {turn:g} rad in it; give at least {fewest} sub-steps"
            )
        step = self.tick / self.substeps
        pushed = robot.max_force / robot.mass * step * step
        if pushed > radius:
            raise InputError(
                f"a robot of mass {robot.mass:g} kg pushed with max_force {robot.max_force:g} N "
                f"moves {pushed:g} m in a sub-step, more than its radius of {radius:g} m; give at "
                f"most {robot.max_force * radius / pushed:g} N"
            )
        room = 2 * (radius + path)
        if min(self.arena.width, self.arena.height) < room:
            raise InputError(
                f"the arena {short(self.arena.name)} is {self.arena.width:g} x "
                f"{self.arena.height:g} m, but a robot with a radius of {radius:g} m needs at "
                f"least {room:g} m in both directions to turn"
            )
        if max(self.arena.width, self.arena.height) > LARGEST * radius:
            raise InputError(
                f"the arena {short(self.arena.name)} is {self.arena.width:g} x "
                f"{self.arena.height:g} m; for robots with a radius of {radius:g} m it may measure "
                f"{LARGEST * radius:g} m at most: positions are float32 where robots touch"
            )

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
        effects.check(self.robots)
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
        tick: float = 0.2,
        substeps: int = 10,
    ) -> "Scenario":
        """The scenario of replicate `seed`: poses and noise key are drawn from it.

        `robots` and `ticks` default to the arena's usual ones, `noise_key` to
        the replicate's.
        """
        if not isinstance(arena, Arena) or not isinstance(robot, Robot):
            raise InputError(
                f"a scenario has an Arena and a Robot, not {short(arena)} and {short(robot)}"
            )
        seed = _checked_seed(seed)
        robots = arena.robots if robots is None else robots
        robots = checked_integer("the number of robots", robots, 1, MAX_ROBOTS)
        trials = checked_integer("the number of trials", trials, 1, MAX_TRIALS)
        check_size(robots, trials)
        check_space(arena, robot, robots)
        check_memory(memory_of(arena, robots, trials), f"{robots:,} robots in {trials:,} trials")
        disturbances = _checked_disturbances(disturbances)
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
            tick=tick,
            substeps=substeps,
        )


def replicate_noise_key(seed: int) -> int:
    """The noise key of replicate `seed`, 64 bits."""
    return Stream("noise", _checked_seed(seed)).key()


def check_size(robots: int, trials: int) -> None:
    """InputError when there are more robots, over all trials, than the engine can number."""
    if robots * trials > MAX_ROBOTS:
        raise InputError(
            f"{robots:,} robots in {trials:,} trials are {robots * trials:,} in all; "
            f"give {MAX_ROBOTS:,} at the most"
        )


def check_space(arena: Arena, robot: Robot, robots: int) -> None:
    """InputError when so many bodies cannot stand apart where an arena's poses are drawn."""
    (left, right), (low, high) = arena.start_x, arena.start_y
    reach = 2 * robot.radius
    room = (right - left + reach) * (high - low + reach)
    if robots * robot.area > room:
        raise _no_room(arena, robots)


def _no_room(arena: Arena, robots: int) -> InputError:
    return InputError(f"there is no room for {robots} robots in the arena {arena.name}; use fewer")


def _checked_seed(seed: object) -> int:
    """A seed as an int; InputError when it is no integer."""
    number = int(seed) if isinstance(seed, np.integer) else seed
    if not is_integer(number) or abs(number) >= 2**1024:
        raise InputError(f"a seed is {short(seed)}; give an integer of at most 300 digits")
    return number


def _checked_poses(poses: object, arena: Arena) -> np.ndarray:
    """Poses as an array that cannot be changed; InputError when they cannot be used."""
    try:
        given = np.asarray(poses)
    except (ValueError, TypeError):  # lists of different lengths
        given = np.empty(0)
    if given.ndim != 3 or given.shape[2] != 3 or 0 in given.shape:
        raise InputError(f"poses must have the shape trials x robots x 3, not {given.shape}")
    if given.dtype.kind not in "fiu" or not np.isfinite(given).all():
        raise InputError("poses must be finite numbers")
    checked = np.array(given, dtype=np.float64)
    x, y = checked[..., 0], checked[..., 1]
    outside = ~((x >= 0) & (x <= arena.width) & (y >= 0) & (y <= arena.height))
    if not np.isfinite(checked).all() or outside.any():
        trial, number = np.argwhere(outside | ~np.isfinite(checked).all(axis=2))[0].tolist()
        x, y, _ = checked[trial, number].tolist()
        raise InputError(
            f"trial {trial}, robot {number}: x = {x:g}, y = {y:g} is not in the arena "
            f"{arena.name}, which goes from 0 to {arena.width:g} m in x and to "
            f"{arena.height:g} m in y"
        )
    checked.setflags(write=False)
    return checked


def _checked_disturbances(disturbances: object) -> tuple[Disturbance, ...]:
    """Disturbances as a tuple; InputError when they are something else."""
    several = disturbances if isinstance(disturbances, Iterable) else (disturbances,)
    several = tuple(several)
    for single in several:
        if not isinstance(single, Disturbance) or not hasattr(single, "kind"):
            raise InputError(
                f"a scenario's disturbances hold {short(single)}; give instances of classes with "
                "the decorator disturbance"
            )
    return several


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
            raise _no_room(arena, robots)
        poses[number] = pose
        bodies[number] = candidate
    return poses


def _random_pose(arena: Arena, stream: Stream) -> Pose:
    x, y = stream.uniform(*arena.start_x), stream.uniform(*arena.start_y)
    return x, y, stream.uniform(-math.pi, math.pi)
