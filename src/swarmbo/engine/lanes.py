"""The engine's data: one column per robot of every trial, as plain arrays.

A *lane* is one robot in one trial, number robot * trials + trial, so that the
trials of a robot lie side by side. Several swarms can share the lanes, one
after the other; their robots do not meet. The number of lanes is rounded up to
a multiple of 32, so that every one of them is computed by the same vector
instructions, wherever it lies; the surplus lanes rest in the middle of the
arena and count for nothing.
"""

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np

from swarmbo.compilation import kernel
from swarmbo.controller.genomes import Genomes
from swarmbo.controller.network import INPUTS, OUTPUTS, Controller
from swarmbo.engine.formulas import tick_word, uniform
from swarmbo.streams import Stream
from swarmbo.world.disturbance import MAD, Effects
from swarmbo.world.memory import PAIRS
from swarmbo.world.robot import Robot
from swarmbo.world.scenario import Scenario

F = np.float32
Array = np.ndarray[Any, np.dtype[Any]]

WIDTH = 8  # float32 numbers in a vector register of AVX2
ACTIVE_ROWS = 26  # numbers per active lane, see cpu/blocks.py
LONE_ROWS = 27  # numbers per contact of a lone pair, likewise
PAIR_ROWS = 71  # numbers per pair that may touch, likewise
VIEW_ROWS = 5  # numbers per pair of robots of which one may sense the other, see cpu/senses.py
RAY_ROWS = 5  # numbers per ray that may hit a robot, likewise
SECTORS = 64  # directions that are told apart when looking for what faces another robot
MARGIN = F(0.002)  # m, for the curvature of paths within a tick
DRIFT = F(0.04)  # m, from its own path that a slow robot may be pushed in a tick
PARTNERS = 6  # contacts with other robots that a robot remembers
HUGE_WEIGHT = 1e300
GAIN = 5.0  # of the weighted sum in a neuron
FEATURES = (  # of a trial's robots, in every tick
    "advance",  # m along the heading before the tick, mean over the robots
    "turn",  # rad, mean over the robots
    "wall_distance",  # m, mean over the robots of that to the middles of the four walls
    "pair_distance",  # m, mean over the pairs of robots; 0 when there is one robot, as below
    "nearest_distance",  # m, mean over the robots of that to the nearest other one
    "uneven_pair_distance",  # m, mean over robots i = 0, 1, ... and j = 1, ...: i = j gives zeros
)


class World(NamedTuple):
    """A scenario's constants, as the kernels take them."""

    robots: int  # of all swarms
    swarm: int  # robots that meet each other
    trials: int
    block: Any  # 8, lanes of a block: for loops that LLVM would unroll, not vectorise, if it knew
    width: Any  # m
    height: Any  # m
    nest_depth: float  # m, float64: food logic is exact
    food: Array  # discs x (x, y, radius), float64
    greys: tuple[Any, Any, Any]  # nest, food, floor
    centre: tuple[Any, Any]  # m
    per_half_diagonal: float  # 1/m
    per_square: float  # 1/m
    squares_x: int
    squares_y: int
    dt: Any  # s, a sub-step
    substeps: int
    limit: Any  # m/s that a motor can change in a sub-step
    max_speed: Any  # m/s
    per_wheel_base: Any  # 1/m
    wall_friction: Any
    body_friction: Any
    vertices_x: tuple[Any, ...]  # m, 9 of them
    vertices_y: tuple[Any, ...]
    edges: tuple[tuple[Any, Any, Any], ...]  # 9 outward unit normals (x, y) and offsets (m)
    facing: Array  # sectors x 30: six edges and six vertices that face that way
    radius: Any  # m, radius of a disc around the body
    drift: Any  # m, from its own path that a robot may be pushed in a tick
    slack: Any  # m, by which that is more than DRIFT
    sense_reach: Any  # m, centre distance within which a robot can be sensed, or touched in a tick
    sensors: Array  # 7 x (x, y, cos, sin)
    front_sensors: int
    proximity: tuple[Any, Any, Any, Any]  # reach (m), linear, quadratic, noise
    ground_points: Array  # 2 x (x, y)
    ground_noise: Any


class Lanes(NamedTuple):
    """The state of a swarm, one entry per lane."""

    x: Array  # m, float64, as are y and heading
    y: Array
    heading: Array  # rad
    cos: Array
    sin: Array
    vx: Array  # m/s
    vy: Array
    turn: Array  # rad/s
    left: Array  # m/s, commanded for the next tick, before a wheel's fault
    right: Array
    carrying: Array  # 0 or 1
    items: Array  # delivered
    distance: Array  # sum over ticks of the distance to the centre, m, float64
    inputs: Array  # 10 x lanes, float64
    values: Array  # neurons x lanes, float64: outputs, then hidden ones
    proximity_fault: Array  # index into SENSOR_FAULTS
    ground_fault: Array
    left_gain: Array
    right_gain: Array
    software: Array  # HEALTHY, MAD or STUCK
    sign: Array  # the mad robot's direction, +1 or -1
    key0: Array
    key1: Array
    partners: Array  # lanes x 6: the lanes of higher number that it touches, -1 for none
    pair_push: Array  # lanes x 6 x 2, m/s: the impulse of that contact in the last sub-step
    visits: Array  # trials x squares: robot-ticks spent in each
    features: Array  # 12 x trials, float64: sums of FEATURES and of their squares; or 12 x 0


class Brains(NamedTuple):
    """The controllers of a team: runs of robots with the same one, and their connections."""

    runs: Array  # runs x (first robot, last robot + 1, first neuron, last neuron + 1)
    neurons: Array  # neurons x (first connection, last connection + 1)
    bias: Array  # neurons
    sources: Array  # connections: input 0-9, or 10 + row in Lanes.values
    weights: Array  # connections, times GAIN


class Work(NamedTuple):
    """Scratch memory of the kernels; nothing in it outlives a tick."""

    word: Array  # random words of the tick
    x: Array  # m, positions in float32
    y: Array
    next_values: Array  # neurons x lanes
    path_x: Array  # m, displacement within the tick
    path_y: Array
    turned: Array  # rad, turned within the tick
    old_vx: Array  # m/s, velocity before the tick
    old_vy: Array
    old_turn: Array  # rad/s, likewise
    wall_gap: Array  # m, from the centre to the nearest wall during the tick
    corner_gap: Array  # m, likewise to the second nearest
    reading: Array  # 7 x lanes: distance to the nearest obstacle, m
    viewer: Array  # views: the lane that looks
    sight: Array  # the other robot that it may see, in blocks of 8: see cpu/senses.py
    beam: Array  # rays: the view and the sensor
    ray: Array  # rays that may hit a robot, in blocks of 8: see cpu/senses.py
    floor: Array  # 3 x lanes: is it food under the two ground sensors and the centre?
    square: Array  # the arena's square that each lane is in
    slot: Array  # lane -> place among the active lanes, or -1
    active: Array  # what the active lanes need, in blocks of 8 lanes: see cpu/blocks.py
    near: Array  # pairs x 2: lanes within each other's sensing reach
    pair_place: Array  # pairs x 2: active lanes that may touch in this tick
    pair: Array  # what is known of these pairs, in blocks of 8: see cpu/blocks.py
    pair_touched: Array  # did they touch in the sub-step before?
    pair_impulse: Array  # pairs x 2, m/s, in the arena's frame
    contact_place: Array  # contacts x 2: active lanes
    contact_pair: Array  # contact -> pair
    contact: Array  # contacts x (normal x, y; demand; slide; impulse n, t; -, -), in m/s
    kind: Array  # 3 x contacts: those of lone pairs, of lone pairs at walls, others
    lone: Array  # what is known of lone pairs, then of crowds, in blocks of 8: see cpu/blocks.py
    crowd: Array  # 3 x robots: the active lanes in crowds that touch no wall, one, two
    todo: Array  # the contacts that a sweep looks at
    cell_start: Array  # neighbour grid: robots of cell i are cell_robot[cell_start[i]:...]
    cell_robot: Array
    robot_cell: Array
    feature: Array  # 6 x trials, float64: FEATURES of the tick
    nearest: Array  # m, float64: distance to the nearest robot


def aligned(shape: int | tuple[int, ...], kind: type) -> Array:
    """Zeros that begin at a multiple of 64 bytes, so that no vector straddles cache lines."""
    size = np.dtype(kind).itemsize
    count = int(np.prod(shape))
    room: Array = np.zeros(count + 64 // size, kind)
    start = -room.ctypes.data % 64 // size
    return room[start : start + count].reshape(shape)


def padded(count: int) -> int:
    """`count` rounded up to whole turns of the longest vector loop, four vectors."""
    return -(-count // (4 * WIDTH)) * (4 * WIDTH)


def _outline(robot: Robot) -> tuple[Array, Array]:
    """Nine vertices of a body, and its edges as rows (outward unit normal x, y; offset)."""
    body = np.array(robot.body)
    along = np.roll(body, -1, axis=0) - body
    normals = np.stack([-along[:, 1], along[:, 0]], axis=1)  # the body is clockwise
    normals /= np.hypot(normals[:, 0], normals[:, 1])[:, None]
    edges = np.column_stack([normals, (normals * body).sum(axis=1)])
    repeat = np.arange(9) % len(body)  # repeated vertices and edges change nothing
    return body[repeat], edges[repeat]


@cache
def _facing(robot: Robot) -> Array:
    """The six edges and the six vertices of a body that face each way: sectors x 30.

    Of all that follow each other around the body, those of which the least
    points farthest that way.
    """
    vertices, edges = _outline(robot)
    around = (np.arange(9)[:, None] + np.arange(6)) % 9
    table = np.empty((SECTORS, 30), F)
    for number in range(SECTORS):
        way = _way(number + 0.5)
        by_edge = edges[:, 0] * way.real + edges[:, 1] * way.imag
        by_vertex = vertices[:, 0] * way.real + vertices[:, 1] * way.imag
        first_edge = by_edge[around].min(axis=1).argmax()
        first_vertex = by_vertex[around].min(axis=1).argmax()
        table[number, :18] = edges[around[first_edge]].ravel()
        table[number, 18:] = vertices[around[first_vertex]].T.ravel()
    return table


def _way(number: float) -> complex:
    """The direction of a sector, see formulas.sector; not a unit vector."""
    quarter, slope = divmod(number * 4 / SECTORS, 1)
    return complex(1j**quarter * complex(1 - slope, slope))


def make_world(scenario: Scenario) -> World:
    """The kernels' constants for a swarm in a scenario."""
    arena, robot = scenario.arena, scenario.robot
    vertices, edges = _outline(robot)
    dt = scenario.tick / scenario.substeps
    squares_x, squares_y = arena.squares
    linear, quadratic = robot.proximity_response
    reach = max(
        np.hypot(
            sensor.x + robot.proximity_range * np.cos(sensor.angle),
            sensor.y + robot.proximity_range * np.sin(sensor.angle),
        )
        for sensor in robot.proximity_sensors
    )
    slack = slack_of(scenario)
    touch = 2 * (robot.radius + MARGIN + robot.max_speed * scenario.tick) + slack
    return World(
        robots=scenario.robots,
        swarm=scenario.robots,
        trials=scenario.trials,
        block=np.uint64(WIDTH),
        width=F(arena.width),
        height=F(arena.height),
        nest_depth=arena.nest_depth,
        food=food_table(scenario.effects().food),
        greys=(F(arena.nest_grey), F(arena.food_grey), F(arena.floor_grey)),
        centre=(F(arena.centre[0]), F(arena.centre[1])),
        per_half_diagonal=1 / arena.half_diagonal,
        per_square=1 / arena.square,
        squares_x=squares_x,
        squares_y=squares_y,
        dt=F(dt),
        substeps=scenario.substeps,
        limit=F(robot.max_force * dt / robot.mass),
        max_speed=F(robot.max_speed),
        per_wheel_base=F(1 / robot.wheel_base),
        wall_friction=F(robot.friction * arena.wall_friction),
        body_friction=F(robot.friction * robot.friction),
        vertices_x=tuple(F(x) for x in vertices[:, 0]),
        vertices_y=tuple(F(y) for y in vertices[:, 1]),
        edges=tuple((F(nx), F(ny), F(offset)) for nx, ny, offset in edges),
        facing=_facing(robot),
        radius=F(robot.radius),
        drift=DRIFT + F(slack),
        slack=F(slack),
        sense_reach=F(max(reach + robot.radius, touch)),
        sensors=np.array(
            [(s.x, s.y, np.cos(s.angle), np.sin(s.angle)) for s in robot.proximity_sensors], F
        ),
        front_sensors=robot.front_sensors,
        proximity=(
            F(robot.proximity_range),
            F(linear),
            F(quadratic),
            F(robot.proximity_noise),
        ),
        ground_points=np.array([(s.x, s.y) for s in robot.ground_sensors], F),
        ground_noise=F(robot.ground_noise),
    )


def slack_of(scenario: Scenario) -> float:
    """By how much more than DRIFT a robot may be pushed from its path in a tick, in metres.

    By another one that drives, or whose corners turn: 0 for robots that do so no faster than
    DRIFT allows for.
    """
    robot = scenario.robot
    path = robot.max_speed * scenario.tick  # m in a tick, at the most
    swing = path / robot.wheel_base * robot.radius  # m, half the arc of its farthest corner
    return path + 2 * swing - float(DRIFT) if max(path, swing) > DRIFT else 0.0


def food_table(food: Sequence[tuple[float, float, float]]) -> Array:
    """Food discs as the kernels take them: discs x (x, y, radius), in metres."""
    return np.array(food, dtype=np.float64).reshape(-1, 3)


def lane_key(noise_key: int, trial: int, robot: int) -> tuple[int, int]:
    """The two 32-bit keys of a lane's noise."""
    word = Stream("lane", noise_key, trial, robot).key()
    return word & 0xFFFFFFFF, word >> 32


@kernel
def _uniform(key0, key1, tick, channel):  # type: ignore[no-untyped-def]
    return uniform(tick_word(np.uint32(key0), np.uint32(key1), np.uint32(tick)), channel)


def uniform_at(noise_key: int, trial: int, robot: int, tick: int, channel: int) -> float:
    """The engine's random number at a place, for tests and for looking.

    `tick` is the number of ticks before; channels are listed in `formulas`.
    """
    return float(_uniform(*lane_key(noise_key, trial, robot), tick, channel))


@lru_cache(maxsize=64)  # scenarios that are evaluated together often have the same noise
def noise_keys(noise_key: int, trials: int, robots: int) -> Array:
    """The keys of all lanes: robots x trials x 2, not to be written to."""
    keys = [
        [lane_key(noise_key, trial, robot) for trial in range(trials)] for robot in range(robots)
    ]
    array = np.array(keys, np.uint32)
    array.setflags(write=False)
    return array


def make_lanes(scenario: Scenario, neurons: int, features: bool = False, swarms: int = 1) -> Lanes:
    """Lanes with room for `neurons` neurons beside the inputs; `reset_lanes` fills them.

    FEATURES are measured only if wanted.
    """
    lanes = padded(swarms * scenario.robots * scenario.trials)
    squares_x, squares_y = scenario.arena.squares

    def row(kind: type) -> Array:
        return aligned(lanes, kind)

    return Lanes(
        x=row(np.float64),
        y=row(np.float64),
        heading=row(np.float64),
        cos=row(F),
        sin=row(F),
        vx=row(F),
        vy=row(F),
        turn=row(F),
        left=row(F),
        right=row(F),
        carrying=row(np.int32),
        items=row(np.int32),
        distance=row(np.float64),
        inputs=aligned((INPUTS, lanes), np.float64),
        values=aligned((neurons, lanes), np.float64),
        proximity_fault=row(np.int32),
        ground_fault=row(np.int32),
        left_gain=row(F),
        right_gain=row(F),
        software=row(np.int32),
        sign=row(F),
        key0=row(np.uint32),
        key1=row(np.uint32),
        partners=np.zeros((lanes, PARTNERS), np.int32),
        pair_push=aligned((lanes, PARTNERS, 2), F),
        visits=np.zeros((swarms * scenario.trials, squares_x * squares_y), np.int32),
        features=np.zeros((2 * len(FEATURES), scenario.trials if features else 0)),
    )


def reset_lanes(lanes: Lanes, scenarios: Sequence[Scenario]) -> None:
    """Put the swarms at the start of their trials, each in its own scenario."""
    for array in lanes:
        array.fill(0)
    lanes.x[:], lanes.y[:] = scenarios[0].arena.centre
    lanes.sign.fill(1)
    lanes.partners.fill(-1)
    for swarm, scenario in enumerate(scenarios):
        own = _lanes_of(swarm, scenario.robots, scenario.trials)
        x, y, heading = scenario.poses.transpose(2, 1, 0).reshape(3, -1)
        lanes.x[own], lanes.y[own] = x, y
        # Headings in (-pi, pi], as everywhere in the engine.
        lanes.heading[own] = -((np.pi - heading) % (2 * np.pi) - np.pi)
        keys = noise_keys(scenario.noise_key, scenario.trials, scenario.robots)
        lanes.key0[own], lanes.key1[own] = keys.reshape(-1, 2).T
        apply_effects(lanes, scenario.effects(), scenario.trials, swarm)


def apply_effects(lanes: Lanes, effects: Effects, trials: int, swarm: int = 0) -> None:
    """Let every robot of a swarm have the faults that `effects` names."""
    own = _lanes_of(swarm, effects.robots, trials)
    was_mad = lanes.software[own] == MAD
    lanes.proximity_fault[own] = np.repeat(effects.proximity, trials)
    lanes.ground_fault[own] = np.repeat(effects.ground, trials)
    lanes.left_gain[own] = np.repeat(effects.wheel_gain[:, 0], trials)
    lanes.right_gain[own] = np.repeat(effects.wheel_gain[:, 1], trials)
    lanes.software[own] = np.repeat(effects.software, trials)
    lanes.sign[own][(lanes.software[own] == MAD) & ~was_mad] = 1


def _lanes_of(swarm: int, robots: int, trials: int) -> slice:
    return slice(swarm * robots * trials, (swarm + 1) * robots * trials)


def make_work(lanes: int, neurons: int, world: World) -> Work:
    """Scratch memory for swarms of up to this many lanes and neurons."""
    robots, trials = world.swarm, world.trials
    pairs = min(all_pairs(world), PAIRS * lanes) + WIDTH
    # Of the neighbour grid, see cpu/senses.py; some more than there can be.
    side = max(world.sense_reach, np.sqrt(world.width * world.height / robots))
    cells = (int(world.width / side) + 2) * (int(world.height / side) + 2)
    return Work(
        word=aligned(lanes, np.uint32),
        x=aligned(lanes, F),
        y=aligned(lanes, F),
        next_values=aligned((neurons, lanes), np.float64),
        path_x=aligned(lanes, F),
        path_y=aligned(lanes, F),
        turned=aligned(lanes, F),
        old_vx=aligned(lanes, F),
        old_vy=aligned(lanes, F),
        old_turn=aligned(lanes, F),
        wall_gap=aligned(lanes, F),
        corner_gap=aligned(lanes, F),
        reading=aligned((7, lanes), F),
        floor=aligned((3, lanes), np.int32),
        square=aligned(lanes, np.int32),
        slot=aligned(lanes, np.int32),
        active=aligned(ACTIVE_ROWS * (lanes + 3 * WIDTH), F),
        crowd=np.zeros((3, lanes + 1), np.int32),
        cell_start=np.zeros(cells + 1, np.int32),
        cell_robot=np.zeros(robots, np.int32),
        robot_cell=np.zeros(robots, np.int32),
        feature=np.zeros((len(FEATURES), trials)),
        nearest=aligned(lanes, np.float64),
        **_pair_rows(pairs, lanes),
    )


def all_pairs(world: World) -> int:
    """How many pairs of robots that meet there are, over all swarms and trials."""
    return world.robots * (world.swarm - 1) // 2 * world.trials


def with_room(work: Work, pairs: int) -> Work:
    """The same scratch memory, with room for more pairs of robots near each other."""
    return work._replace(**_pair_rows(pairs, work.x.size))


def _pair_rows(pairs: int, lanes: int) -> dict[str, Array]:
    """The scratch memory whose size depends on the number of pairs near each other."""
    return {
        "viewer": np.zeros(2 * pairs, np.int32),
        "sight": aligned(VIEW_ROWS * (2 * pairs + WIDTH), F),
        "beam": np.zeros((14 * pairs + 1, 2), np.int32),
        "ray": aligned(RAY_ROWS * (14 * pairs + WIDTH), F),
        "near": np.zeros((pairs, 2), np.int32),
        "pair_place": np.zeros((pairs, 2), np.int32),
        "pair": aligned(PAIR_ROWS * (pairs + WIDTH), F),
        "pair_touched": np.zeros(pairs, np.int32),
        "pair_impulse": np.zeros((pairs, 2), F),
        "contact_place": aligned((pairs, 2), np.int32),
        "contact_pair": np.zeros(pairs, np.int32),
        "contact": aligned((pairs, 8), F),
        "kind": np.zeros((3, pairs + 1), np.int32),
        "lone": aligned(LONE_ROWS * (max(pairs, lanes) + 2 * WIDTH), F),
        "todo": np.zeros(pairs + 1, np.int32),
    }


def make_brains(team: Sequence[Controller]) -> Brains:
    """The controllers of a team, one per robot; neighbours with the same one share a run."""
    runs: list[tuple[int, int, int, int]] = []
    neurons: list[tuple[int, int]] = []
    bias: list[float] = []
    sources: list[int] = []
    weights: list[float] = []
    first = 0
    while first < len(team):
        last = first + 1
        while last < len(team) and team[last] is team[first]:
            last += 1
        controller = team[first]
        incoming: list[list[tuple[int, float]]] = [[] for _ in controller.bias]
        for source, target, weight in controller.connections:
            incoming[target - INPUTS].append((source, weight))
        start = len(neurons)
        for connections, offset in zip(incoming, controller.bias, strict=True):
            largest = max((abs(w) for _, w in connections), default=0.0)
            scale = HUGE_WEIGHT / max(largest, abs(offset), HUGE_WEIGHT)  # keeps sums finite
            neurons.append((len(sources), len(sources) + len(connections)))
            bias.append(float(offset) * scale)
            sources.extend(source for source, _ in connections)
            weights.extend(GAIN * (float(weight) * scale) for _, weight in connections)
        runs.append((first, last, start, len(neurons)))
        first = last
    return Brains(
        runs=np.array(runs, np.int32),
        neurons=np.array(neurons, np.int32),
        bias=np.array(bias),
        sources=np.array(sources, np.int32),
        weights=np.array(weights),
    )


def genome_brains(genomes: Genomes, number: int, robots: int) -> Brains:
    """One controller of a batch that passes `check`, for all robots, as `make_brains` would."""
    count, size = int(genomes.count[number]), OUTPUTS + int(genomes.hidden[number])
    target, weight = genomes.target[number, :count], genomes.weight[number, :count]
    bias = genomes.bias[number, :size].copy()
    if max(np.abs(weight).max(initial=0), np.abs(bias).max()) > HUGE_WEIGHT:
        return make_brains([genomes.controller(number)] * robots)
    order = target.argsort(kind="stable")
    ends = np.bincount(target, minlength=INPUTS + size)[INPUTS:].cumsum()
    neurons = np.zeros((size, 2), np.int32)
    neurons[1:, 0] = ends[:-1]
    neurons[:, 1] = ends
    return Brains(
        runs=np.array([(0, robots, 0, size)], np.int32),
        neurons=neurons,
        bias=bias,
        sources=genomes.source[number, :count][order].astype(np.int32),
        weights=GAIN * weight[order],
    )


def join_brains(parts: Sequence[Brains]) -> Brains:
    """The controllers of several groups of robots, one after the other."""
    robots = np.cumsum([0, *(int(part.runs[-1, 1]) for part in parts)])
    neurons = np.cumsum([0, *(len(part.neurons) for part in parts)])
    connections = np.cumsum([0, *(len(part.sources) for part in parts)])
    runs = [
        part.runs + np.array([robots[number]] * 2 + [neurons[number]] * 2, np.int32)
        for number, part in enumerate(parts)
    ]
    spans = [
        part.neurons + np.int32(start) for part, start in zip(parts, connections, strict=False)
    ]
    return Brains(
        runs=np.concatenate(runs),
        neurons=np.concatenate(spans),
        bias=np.concatenate([part.bias for part in parts]),
        sources=np.concatenate([part.sources for part in parts]),
        weights=np.concatenate([part.weights for part in parts]),
    )


def rows_needed(team: Sequence[Controller]) -> int:
    """How many rows of values a team's largest network needs."""
    return OUTPUTS + max(controller.hidden for controller in team)
