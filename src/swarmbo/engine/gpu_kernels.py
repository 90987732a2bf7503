"""The engine's kernels on the GPU: a warp runs some trials from the first tick to the last.

A lane is a robot. `gpu_physics` holds what happens at contact, where the warps
of a block help each other.
"""

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numba import float32, float64, int32, uint32

from swarmbo.engine.cpu_senses import _MAX, _MIN, _RANDOM
from swarmbo.engine.gpu_features import COUNT, clear_features, feature_bytes, measure
from swarmbo.engine.gpu_layout import (
    AROUND,
    AT_WALL,
    BODY_ROWS,
    CLOSE,
    CONTACT_SIZE,
    COS,
    COUNTERS,
    CROWDED,
    CROWDS,
    FLAG_ROWS,
    LINKS,
    MEMORY_ROWS,
    MOVED_X,
    MOVED_Y,
    NEAR,
    OLD_TURN,
    PAIRS,
    PATH_X,
    PATH_Y,
    PUSH_X,
    QX,
    QY,
    ROBOT_ROWS,
    SIN,
    SINGLES,
    TEAM,
    TRIAL,
    TURN,
    TURNED,
    TURNS,
    UNTOUCHED,
    UX,
    UY,
    WALL_X_N,
    X,
    Y,
    pair_entry,
    robots_of,
)
from swarmbo.engine.gpu_physics import (
    DRIFT,
    MARGIN,
    count_few,
    gather_crowd,
    hand_in,
    may_touch,
    run_crowd,
    run_few,
    sort_pairs,
)
from swarmbo.engine.gpu_warp import (
    LANES,
    SIMULATED,
    J,
    U,
    add_to,
    cuda,
    device,
    kernel,
    lower_to,
    meet,
    on,
    sync,
)
from swarmbo.engine.lanes import GAIN, HUGE_WEIGHT, SECTORS, World
from swarmbo.world.disturbance import HEALTHY, MAD, STUCK

F = np.float32
D = np.float64
MIN, MAX, RANDOM = J(_MIN), J(_MAX), J(_RANDOM)
MAX_NEURONS = 66  # outputs and hidden ones
INPUTS = 10
ROWS = 9  # inputs that are not constant
SENSORS = 7
MAX_REGISTERS = 128  # of a thread: none is spilled
UNSEEN = J(2**31 - 1)
PER_METRE = F(2.0**30)  # of distances as integers


class Constants(NamedTuple):
    """What a kernel is compiled for: numbers of arena and robot, as in `lanes.World`."""

    robots: int
    width: Any
    height: Any
    nest_depth: float
    greys: tuple[Any, Any, Any]
    centre: tuple[Any, Any]
    per_square: float
    squares_x: int
    squares_y: int
    dt: Any
    substeps: int
    limit: Any
    max_speed: Any
    per_wheel_base: Any
    wall_friction: Any
    body_friction: Any
    vertices_x: tuple[Any, ...]
    vertices_y: tuple[Any, ...]
    edges: tuple[tuple[Any, Any, Any], ...]
    radius: Any
    sense_reach: Any
    front_sensors: int
    proximity: tuple[Any, Any, Any, Any]
    ground_points: tuple[tuple[Any, ...], ...]
    ground_noise: Any
    sectors: int


class Shared(NamedTuple):
    """What the warps of a block share, and each warp's own part of it."""

    robots: Any  # see gpu_layout, as are all up to `body`
    flags: Any
    contacts: Any
    entries: Any  # of the contacts
    colours: Any  # per trial, that occur among its contacts
    counters: Any
    memory: Any
    near: Any  # pairs within each other's sensing reach
    close: Any  # those that may touch in this tick
    windows: Any  # and what of them faces the other: first edge and vertex of A, of B
    body: Any
    facing: Any  # sector -> first edge and first vertex that face that way
    scratch: Any
    crowds: Any  # robots that a warp hands in: those in crowds
    few: Any  # lone pairs from the front, single robots from the back
    links: Any  # pairs of the crowds, as places in `close`
    pairs: Any  # of the group that the warp runs, as places in `close`; where `near` was
    warp: Any  # number of the warp in its block
    warps: Any
    first_pair: Any  # where the warp's part of `near` and `close` begins
    first_contact: Any  # and where that of `contacts` begins
    lanes: Any  # 32; not told to the compiler, which else makes copies of loops by strides of it


def constants_of(world: World) -> Constants:
    """The constants of a world."""
    named = {name: getattr(world, name) for name in Constants._fields if hasattr(world, name)}
    points = tuple(tuple(F(x) for x in row) for row in world.ground_points)
    return Constants(**named | {"ground_points": points, "sectors": SECTORS})


def body_table(world: World) -> np.ndarray:
    """The rows that `gpu_layout` names: edges and vertices, one and a half times around."""
    rows = np.column_stack([*np.transpose(world.edges), world.vertices_x, world.vertices_y]).T
    return rows[:, np.arange(AROUND) % 9]


def facing_table(world: World) -> np.ndarray:
    """Per sector, the first of the edges and 16 times the first of the vertices facing that way."""
    around = np.arange(9)[:, None] + np.arange(6)
    edges = np.array(world.edges, F)[around % 9].reshape(9, 18)
    vertices = np.array([world.vertices_x, world.vertices_y], F).T[around % 9]
    points = vertices.transpose(0, 2, 1).reshape(9, 12)
    first_edge = (world.facing[:, None, :18] == edges).all(axis=2).argmax(axis=1)
    first_vertex = (world.facing[:, None, 18:] == points).all(axis=2).argmax(axis=1)
    return first_edge | first_vertex << 4


def pair_table(robots: int) -> np.ndarray:
    """The pairs of a trial: A, B << 5 and colour << 10. Pairs of a colour share no robot."""
    a, b = np.triu_indices(robots, 1)
    if robots % 2:
        colour = (a + b) % robots
    else:  # as in a tournament: the last one meets the others in turn
        rounds = max(1, robots - 1)
        colour = np.where(b == robots - 1, 2 * a, a + b) % rounds
    return np.append(a | b << 5 | colour << 10, 0)


def contacts_at_once(robots: int) -> int:
    """Contacts for which a warp has room."""
    return max(48, 4 * robots)


def input_numbers(robots: int) -> int:
    """The room of a warp for what its sensors tell, and at other times for its contacts."""
    return max(ROWS * LANES, CONTACT_SIZE * contacts_at_once(robots))


def dynamic_bytes(robots: int, hidden: int) -> int:
    """Shared memory of a warp for inputs, contacts and hidden neurons."""
    return 4 * (input_numbers(robots) + LANES * hidden)


def shared_bytes(robots: int, hidden: int, features: bool) -> int:
    """Shared memory of a warp, with some to spare."""
    pairs = robots * (robots - 1) // 2 * (LANES // robots)
    static = 3700 + 24 * pairs + 4 * contacts_at_once(robots)
    return static + dynamic_bytes(robots, hidden) + (feature_bytes() if features else 0)


# --- senses ------------------------------------------------------------------------------------


@device
def near_pairs(world, shared, table, pairs, t):
    """List the pairs within each other's sensing reach."""
    per_trial = world.robots * (world.robots - 1) // 2
    reach2 = world.sense_reach * world.sense_reach
    robots = shared.robots
    q = t
    while q < U(pairs):
        slot = U(q // U(per_trial))
        begin = shared.warp * U(LANES) + slot * U(world.robots)
        code = table[q - slot * U(per_trial)]
        a = begin + (code & U(31))
        b = begin + ((code >> U(5)) & U(31))
        dx = robots[X, b] - robots[X, a]
        dy = robots[Y, b] - robots[Y, a]
        if dx * dx + dy * dy < reach2:
            k = U(add_to(shared.counters, (U(NEAR), shared.warp), J(1)))
            shared.near[shared.first_pair + k] = pair_entry(a, b, code >> U(10), q)
        q = U(q + shared.lanes)


@device
def look_at_robots(world, shared, sensors, readings, count, t, first):
    """Distance of proximity sensors to other robots, a lane per pair, viewer and sensor."""
    robots = shared.robots
    task = t
    while task < U(count * J(14)):
        number = U(U(task) // U(14))
        rest = U(U(task) - number * U(14))
        a, b = robots_of(shared.near[shared.first_pair + number])
        swaps = rest >= U(7)
        i = b if swaps else a
        j = a if swaps else b
        k = rest - U(7) if swaps else rest
        dx = robots[X, i] - robots[X, j]
        dy = robots[Y, i] - robots[Y, j]
        ci = robots[COS, i]
        si = robots[SIN, i]
        cj = robots[COS, j]
        sj = robots[SIN, j]
        c = ci * cj + si * sj
        s = si * cj - ci * sj
        sx = sensors[k, U(0)]
        sy = sensors[k, U(1)]
        sc = sensors[k, U(2)]
        ss = sensors[k, U(3)]
        distance = on.ray_to_body(
            world.edges,
            cj * dx + sj * dy + c * sx - s * sy,
            cj * dy - sj * dx + s * sx + c * sy,
            c * sc - s * ss,
            s * sc + c * ss,
        )
        if distance <= world.proximity[0]:
            lower_to(readings, first + k * U(LANES) + (i & U(31)), J(distance * PER_METRE))
        task = U(task + shared.lanes)


@device
def proximity_input(world, sensor, k, pose, seen, word, fault):
    """The network's input of one proximity sensor at the robot's pose."""
    sx, sy, sc, ss = sensor
    x, y, c, s = pose
    reach, linear, quadratic, noise = world.proximity
    distance = on.ray_to_walls(
        x + c * sx - s * sy,
        y + s * sx + c * sy,
        c * sc - s * ss,
        s * sc + c * ss,
        world.width,
        world.height,
    )
    if seen != UNSEEN:
        distance = on.least(distance, F(seen) * F(1 / PER_METRE))
    value = on.proximity_value(distance, reach, linear, quadratic)
    value += noise * (F(2) * on.uniform(word, on.PROXIMITY_NOISE + k) - F(1))
    result = F(1) - F(2) * on.clamp(value, F(0), F(1))
    if k < world.front_sensors and fault != J(0):
        if fault == MIN:
            result = F(1)
        elif fault == MAX:
            result = F(-1)
        elif fault == RANDOM:
            result = F(1) - F(2) * on.uniform(word, on.PROXIMITY_FAULT + k)
    return result


@device
def ground_input(world, point, k, pose, is_food, word, fault):
    """The network's input of one ground sensor."""
    nest, food, floor = world.greys
    sx, sy = point
    x, _, c, s = pose
    grey = food if is_food else floor
    grey = nest if x + c * sx - s * sy < F(world.nest_depth) else grey
    grey += world.ground_noise * (F(2) * on.uniform(word, on.GROUND_NOISE + k) - F(1))
    if fault != J(0):
        if fault == MIN:
            grey = F(0)
        elif fault == MAX:
            grey = F(255)
        elif fault == RANDOM:
            grey = F(255) * on.uniform(word, on.GROUND_FAULT + k)
    return on.clamp(grey * F(2 / 255) - F(1), F(-1), F(1))


# --- a launch ----------------------------------------------------------------------------------


@lru_cache(maxsize=16)
def simulation(world: Constants, warps: int, features: bool = False) -> Any:
    """The kernel that runs trials, for these constants, in blocks of so many warps.

    Warp w of all runs the trials w * packing ... of all teams' trials in a row;
    it takes up to `crowd` robots at a time from its own and other warps of its block,
    and has room for so many hidden neurons.
    `teams` = (scenario, genome of each robot), `tables` = (pairs, body, facing,
    sensors), `scene` = (poses, keys, codes, gains, food) of the scenarios, `brain` =
    (neurons, starts, bias, sources, weights) of the genomes, `out` = (visits,
    items, distance, final poses) and, with `features`, the sums of `lanes.FEATURES`
    over the ticks and of their squares: trials x 12.
    """
    robots = world.robots
    slots = LANES // robots
    per_trial = robots * (robots - 1) // 2
    room = max(1, per_trial * slots)
    contact_room = contacts_at_once(robots)
    # What the sensors tell is needed before the sub-steps, the contacts in them: at one place.
    input_room = input_numbers(robots)
    scratch_room = LANES if SIMULATED else 1
    tick_length = F(world.dt * F(world.substeps))
    table_room = per_trial + 1
    places = LANES * warps
    pair_places = room * warps
    threads = U(places)
    row_size = U(LANES)

    def run(ticks, trials, packing, crowd, total, hidden, teams, tables, scene, brain, out):
        scenario_of, genome_of = teams
        table_of, body_of, facing_of, sensors_of = tables
        poses, keys, codes_of, gains, food = scene
        neurons_of, starts, bias, sources, weights = brain
        visits, items_out, distance_out, poses_out = out[:4]
        # Rows of numbers per lane: what sensors see, inputs, then hidden neurons.
        readings = cuda.shared.array(0, int32)
        values = cuda.shared.array(0, float32)
        table = cuda.shared.array(table_room, uint32)
        sensors = cuda.shared.array((SENSORS, 4), float32)
        sums = cuda.local.array(MAX_NEURONS, float32)
        warp = U(cuda.threadIdx.x // U(LANES))
        t = U(cuda.threadIdx.x % U(LANES))
        near = cuda.shared.array(pair_places, uint32)
        if features:
            parts = cuda.shared.array((COUNT, places), float64)
        shared = Shared(
            cuda.shared.array((ROBOT_ROWS, places), float32),
            cuda.shared.array((FLAG_ROWS, places), int32),
            values,
            cuda.shared.array((warps, contact_room), uint32)[warp],
            cuda.shared.array(places, uint32),
            cuda.shared.array((COUNTERS, warps), int32),
            cuda.shared.array((MEMORY_ROWS, pair_places), float32),
            near,
            cuda.shared.array(pair_places, uint32),
            cuda.shared.array(pair_places, uint32),
            cuda.shared.array((BODY_ROWS, AROUND), float32),
            cuda.shared.array(SECTORS, uint32),
            cuda.shared.array((warps, scratch_room), float32)[warp],
            cuda.shared.array(places, uint32),
            cuda.shared.array(places, uint32),
            cuda.shared.array(pair_places, uint32),
            near[warp * U(room) : (warp + U(1)) * U(room)],
            warp,
            U(U(cuda.blockDim.x) // U(LANES)),
            warp * U(room),
            warp * U(input_room),
            U(U(cuda.blockDim.x) // U(warps)),
        )
        state = shared.robots
        flags = shared.flags
        counters = shared.counters
        p = U(cuda.threadIdx.x)  # the robot's place in the block

        own = U(warp * U(input_room) + t)  # place of the lane's first input in `values`
        # ... and of its first hidden neuron, less what the inputs before it take.
        own_hidden = U(U(input_room * warps - ROWS * LANES) + warp * U(hidden) * row_size + t)
        slot = U(t // U(robots))
        robot = U(t - slot * U(robots))
        begin = (J(cuda.blockIdx.x) * J(warps) + J(warp)) * J(packing)
        index = U(begin + J(slot))
        here = max(min(J(packing), J(total) - begin), J(0))
        alive = J(slot) < here
        flags[TRIAL, p] = J(index) if alive else J(-1)
        all_pairs = J(here * J(per_trial))
        team = U(index // U(trials)) if alive else U(0)
        trial = U(index - team * U(trials)) if alive else U(0)

        for i in range(p, U(BODY_ROWS * AROUND), threads):
            shared.body[U(i // U(AROUND)), U(i % U(AROUND))] = body_of[i]
        for i in range(p, U(SECTORS), threads):
            shared.facing[i] = facing_of[i]
        for i in range(p, U(SENSORS * 4), threads):
            sensors[U(i // U(4)), U(i % U(4))] = sensors_of[i]
        for i in range(p, U(per_trial), threads):
            table[i] = table_of[i]
        for i in range(p, U(pair_places), threads):
            shared.memory[PUSH_X, U(i)] = UNTOUCHED
        for row in range(U(4)):
            state[U(WALL_X_N) + row, p] = F(0)

        flags[TEAM, p] = J(team)
        # What a lane keeps from tick to tick lies in the results, and what it needs once in a tick
        # is read then: the registers are for the sub-steps. For the same reason the addresses are
        # made anew in every tick, from numbers in shared memory.
        x = D(F(0.5) * world.width)
        y = D(F(0.5) * world.height)
        heading = D(0)
        neurons = U(0)
        if alive:
            scenario = U(scenario_of[team])
            neurons = U(neurons_of[genome_of[team, robot]])
            x = poses[scenario, trial, robot, 0]
            y = poses[scenario, trial, robot, 1]
            heading = poses[scenario, trial, robot, 2]
            poses_out[index, robot, 0] = x
            poses_out[index, robot, 1] = y
            poses_out[index, robot, 2] = heading
            items_out[index, robot] = J(0)
            distance_out[index, robot] = D(0)
        discs = U(food.shape[1])
        for n in range(U(2), neurons):
            values[U((U(n) + U(ROWS - 2)) * row_size + own_hidden)] = F(0)
        c, s = on.cos_sin(heading)
        left = F(0)
        right = F(0)
        sign = F(1)
        carries = False
        state[X, p] = F(x)
        state[Y, p] = F(y)
        state[COS, p] = c
        state[SIN, p] = s
        state[QX, p] = F(0)
        state[QY, p] = F(0)
        state[TURN, p] = F(0)
        if t == U(0):
            counters[NEAR, warp] = J(0)
        meet()
        if features:
            clear_features(world, shared, out[4], t)
        near_pairs(world, shared, table, all_pairs, t)

        for tick in range(U(ticks)):
            # Drive, as if nothing were in the way.
            alive = flags[TRIAL, p] >= J(0)
            team = U(flags[TEAM, p])
            left_speed = F(0)
            right_speed = F(0)
            if alive:
                scenario = U(scenario_of[team])
                left_speed = left * gains[scenario, robot, 0]
                right_speed = right * gains[scenario, robot, 1]
            speed = F(0.5) * (left_speed + right_speed)
            ux = speed * state[COS, p]
            uy = speed * state[SIN, p]
            vx = state[QX, p]
            vy = state[QY, p]
            path_x, path_y = on.free_path(vx, vy, ux, uy, world.limit, F(world.substeps), world.dt)
            old_turn = state[TURN, p]
            turn = (right_speed - left_speed) * world.per_wheel_base
            turned = world.dt * old_turn + (tick_length - world.dt) * turn
            here_x = state[X, p]
            here_y = state[Y, p]
            # Who may touch something?
            state[PATH_X, p] = path_x
            state[PATH_Y, p] = path_y
            state[TURNED, p] = turned
            flags[CROWDED, p] = J(0)
            if t == U(0):
                counters[CLOSE, warp] = J(0)
                counters[CROWDS, warp] = J(0)
                counters[PAIRS, warp] = J(0)
                counters[SINGLES, warp] = J(0)
                counters[LINKS, warp] = J(0)
            sync()
            may_touch(world, shared, t)
            sync()
            sort_pairs(shared, t)
            sync()
            partners = flags[CROWDED, p]
            end_x = here_x + path_x
            end_y = here_y + path_y
            gap_x = on.least(on.least(here_x, end_x), world.width - on.greatest(here_x, end_x))
            gap_y = on.least(on.least(here_y, end_y), world.height - on.greatest(here_y, end_y))
            gap = on.least(gap_x, gap_y) - DRIFT * F(abs(partners))
            at_wall = alive and gap < world.radius + MARGIN
            free = not at_wall and partners == J(0)
            state[TURNS, p] = turned
            state[TURN, p] = turn
            if free:
                state[MOVED_X, p] = path_x
                state[MOVED_Y, p] = path_y
                state[QX, p] = ux
                state[QY, p] = uy
            else:
                state[UX, p] = ux
                state[UY, p] = uy
                state[OLD_TURN, p] = old_turn
                state[QX, p] = vx
                state[QY, p] = vy
                flags[AT_WALL, p] = J(at_wall)
                hand_in(shared, p, partners)
            meet()
            number = J(warp)
            going = True
            while going:
                members, q, pairs, groups = gather_crowd(shared, number, J(crowd), t)
                if members > J(0):
                    run_crowd(world, shared, members, q, pairs, t)
                else:
                    first = (number - groups) * J(LANES)
                    few = count_few(shared)
                    going = first < few
                    if going:
                        run_few(world, shared, first, few, t)
                number += J(shared.warps)
            meet()
            alive = flags[TRIAL, p] >= J(0)
            index = U(flags[TRIAL, p])
            team = U(flags[TEAM, p])
            trial = U(index - team * U(trials)) if alive else U(0)
            heading = D(0)
            if alive:
                x = poses_out[index, robot, 0] + D(state[MOVED_X, p])
                y = poses_out[index, robot, 1] + D(state[MOVED_Y, p])
                heading = poses_out[index, robot, 2] + D(state[TURNS, p])
                heading = heading - 2 * math.pi if heading > math.pi else heading
                heading = heading + 2 * math.pi if heading <= -math.pi else heading
                poses_out[index, robot, 0] = x
                poses_out[index, robot, 1] = y
                poses_out[index, robot, 2] = heading
            if features:
                measure(world, shared, parts, out[4], x, y, heading, p, t)
            here_x = F(x)
            here_y = F(y)
            c, s = on.cos_sin(heading)

            # Sense.
            state[X, p] = here_x
            state[Y, p] = here_y
            state[COS, p] = c
            state[SIN, p] = s
            for k in range(U(SENSORS)):
                readings[U(U(k) * row_size + own)] = UNSEEN
            if t == U(0):
                counters[NEAR, warp] = J(0)
            sync()
            near_pairs(world, shared, table, all_pairs, t)
            sync()
            look_at_robots(world, shared, sensors, readings, counters[NEAR, warp], t, own - t)
            sync()
            scenario = U(scenario_of[team])
            key0 = keys[scenario, trial, robot, 0]
            key1 = keys[scenario, trial, robot, 1]
            word = on.tick_word(key0, key1, U(tick))
            fault = J(codes_of[scenario, robot, 0])
            pose = (here_x, here_y, c, s)
            for number in range(U(SENSORS)):
                k = U(number)
                place_k = U(k * row_size + own)
                sensor = (
                    sensors[k, U(0)],
                    sensors[k, U(1)],
                    sensors[k, U(2)],
                    sensors[k, U(3)],
                )
                values[place_k] = proximity_input(
                    world, sensor, k, pose, readings[place_k], word, fault
                )
            on_a = False
            on_b = False
            on_food = False
            ax, ay = world.ground_points[0]
            bx, by = world.ground_points[1]
            for k in range(discs):
                fx = here_x - food[scenario, k, 0]
                fy = here_y - food[scenario, k, 1]
                r2 = food[scenario, k, 2]
                px = fx + c * ax - s * ay
                py = fy + s * ax + c * ay
                on_a |= px * px + py * py < r2
                px = fx + c * bx - s * by
                py = fy + s * bx + c * by
                on_b |= px * px + py * py < r2
                on_food |= fx * fx + fy * fy < r2
            fault = J(codes_of[scenario, robot, 1])
            values[U(U(7) * row_size + own)] = ground_input(
                world, world.ground_points[0], 0, pose, on_a, word, fault
            )
            values[U(U(8) * row_size + own)] = ground_input(
                world, world.ground_points[1], 1, pose, on_b, word, fault
            )

            # Think: all neurons read the old values of the others.
            genome = U(genome_of[team, robot])
            neurons = U(neurons_of[genome]) if alive else U(0)
            k = U(0)
            for n in range(neurons):
                total_input = bias[genome, n]
                end = U(starts[genome, n + U(1)])
                while k < end:
                    row = U(sources[genome, k])
                    begin_row = own if row < U(ROWS) else own_hidden
                    total_input += weights[genome, k] * D(values[U(row * row_size + begin_row)])
                    k += U(1)
                sums[n] = F(on.tanh64(total_input))
            if alive:
                left = world.max_speed * sums[0]
                right = world.max_speed * sums[1]
            for n in range(U(2), neurons):
                values[U((U(n) + U(ROWS - 2)) * row_size + own_hidden)] = sums[n]
            software = J(codes_of[scenario, robot, 2]) if alive else J(STUCK)
            if software != J(HEALTHY):
                speed = F(0)
                if software == J(MAD):
                    if on.uniform(word, on.SIGN_FLIP) < F(0.05):
                        sign = -sign
                    speed = world.max_speed * sign
                left = speed
                right = speed

            # Forage, and count where the robots are.
            if software == J(HEALTHY):
                if carries and x < world.nest_depth:
                    items_out[index, robot] += J(1)
                    carries = False
                elif (not carries) and x > world.nest_depth and on_food:
                    carries = True
            if alive:
                cx, cy = world.centre
                dx = here_x - cx
                dy = here_y - cy
                distance_out[index, robot] += D(math.sqrt(dx * dx + dy * dy))
                column = min(max(J(x * world.per_square), J(0)), J(world.squares_x - 1))
                row_ = min(max(J(y * world.per_square), J(0)), J(world.squares_y - 1))
                add_to(visits, (index, U(column * J(world.squares_y) + row_)), J(1))

    return kernel(run, MAX_REGISTERS)


@cuda.jit
def pack(genomes, brain):
    """Sort the connections of genomes by target, and scale them as `lanes.make_brains` does.

    `genomes` = (hidden, count, bias, source, target, weight), `brain` as in
    `simulation`. A thread per genome.
    """
    hidden, count, bias_in, source, target, weight = genomes
    neurons_of, starts, bias, sources, weights = brain
    g = U(cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x)
    if g >= U(hidden.size):
        return
    places = cuda.local.array(MAX_NEURONS, int32)
    scales = cuda.local.array(MAX_NEURONS, float64)
    neurons = J(hidden[g]) + J(2)
    neurons_of[g] = neurons
    for n in range(U(neurons)):
        places[n] = J(0)
        scales[n] = max(abs(bias_in[g, n]), HUGE_WEIGHT)
    for k in range(U(count[g])):
        n = U(U(target[g, k]) - U(INPUTS))
        places[n] += J(1)
        scales[n] = max(scales[n], abs(weight[g, k]))
    before = J(0)
    for n in range(U(neurons)):
        here = places[n]
        places[n] = before
        starts[g, n] = before
        before += here
        scales[n] = HUGE_WEIGHT / scales[n]
        bias[g, n] = bias_in[g, n] * scales[n]
    starts[g, U(neurons)] = before
    for k in range(U(count[g])):
        n = U(U(target[g, k]) - U(INPUTS))
        place = U(places[n])
        places[n] += J(1)
        row = U(source[g, k])
        scaled = GAIN * (weight[g, k] * scales[n])
        if row == U(ROWS):  # the input that is always 1
            bias[g, n] += scaled
            scaled = D(0)
            row = U(0)
        # There are no outputs among the sources.
        sources[g, place] = row if row < U(INPUTS) else row - U(INPUTS + 2 - ROWS)
        weights[g, place] = scaled


@cuda.jit
def clear(visits):
    """Set all visits to 0, a row per block."""
    row = U(cuda.blockIdx.x)
    for i in range(U(cuda.threadIdx.x), U(visits.shape[1]), U(LANES)):
        visits[row, U(i)] = J(0)


@cuda.jit
def score(visits, distance, robot_ticks, uniformity, visited, mean_distance):
    """HBD numbers of one trial per block; sets its visits to 0 for the next launch.

    See `Swarm.scores`. `distance` holds the sums per robot.
    """
    counts = cuda.shared.array(LANES, int32)
    spreads = cuda.shared.array(LANES, float64)
    row = U(cuda.blockIdx.x)
    lane = U(cuda.threadIdx.x)
    squares = U(visits.shape[1])
    count = J(0)
    for i in range(lane, squares, U(LANES)):
        if visits[row, U(i)] > J(0):
            count += J(1)
    counts[lane] = count
    sync()
    count = J(0)
    for i in range(LANES):
        count += counts[i]
    even = D(1) / D(max(count, J(1)))
    spread = D(0)
    for i in range(lane, squares, U(LANES)):
        here = visits[row, U(i)]
        if here > J(0):
            spread += abs(D(here) / robot_ticks - even)
            visits[row, U(i)] = J(0)
    spreads[lane] = spread
    sync()
    if lane == U(0):
        spread = D(0)
        for i in range(LANES):
            spread += spreads[i]
        total = D(0)
        for robot in range(U(distance.shape[1])):
            total += distance[row, robot]
        uniformity[row] = (D(1) - even) - spread / D(2)
        visited[row] = count
        mean_distance[row] = total / robot_ticks
