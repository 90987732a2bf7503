"""The kernel of a robot's life on the GPU: move, sense, think, drive; a lane per robot.

A warp runs some trials. At the end the warps of a block together list the robots
that may touch something in the coming tick; `gpu_touch` takes these through the
sub-steps. All others move as if they were alone.
"""

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numba import float32, float64, int32, uint32

from swarmbo.engine.gpu.features import COUNT, clear_features, feature_bytes, measure
from swarmbo.engine.gpu.layout import (
    AT_X,
    AT_Y,
    BACKWARDS,
    CARRIES,
    COS,
    FLAG_ROWS,
    G_COS,
    G_MOVED_X,
    G_MOVED_Y,
    G_OLD_TURN,
    G_SIN,
    G_TURN,
    G_UX,
    G_UY,
    G_VX,
    G_VY,
    G_WALL,
    KINDS,
    LIFE_COUNTERS,
    LIFE_ROWS,
    MATE,
    NEAR,
    PARTNERS,
    PATH_X,
    PATH_Y,
    PUSH_X,
    SIN,
    TURNED,
    UNTOUCHED,
    WALL,
    X,
    Y,
    trial_of,
)
from swarmbo.engine.gpu.lists import claim, classify, hand_in, may_touch, sort_pairs
from swarmbo.engine.gpu.senses import (
    SENSORS,
    UNSEEN,
    broken_input,
    ground_input,
    look_at_robots,
    near_pairs,
    over_food,
    proximity_input,
)
from swarmbo.engine.gpu.warp import (
    LANES,
    I,
    J,
    U,
    add_to,
    cuda,
    device,
    kernel,
    meet,
    on,
    set_bits,
    sync,
)
from swarmbo.engine.gpu.world import Constants
from swarmbo.engine.lanes import DRIFT, MARGIN, SECTORS
from swarmbo.world.disturbance import HEALTHY, MAD, STUCK

F = np.float32
D = np.float64
INPUTS = 9  # of a network that are not constant
AT_ONCE = 4  # hidden neurons that are fetched together
VALUES = INPUTS + 4 * AT_ONCE  # inputs, and those hidden neurons with a place in shared memory
HIDDEN_ROUND = 2 * AT_ONCE  # to which the room for hidden neurons is rounded up
SOURCE_BITS = 8  # of a word of two sources, for the first one
MAX_REGISTERS = 64  # of a thread: with more, too few warps are there to hide latency


class Shared(NamedTuple):
    """What the warps of a block keep in shared memory; each its own part, until `claim`."""

    robots: Any  # LIFE_ROWS
    flags: Any  # FLAG_ROWS
    counters: Any
    begins: Any  # of the block's entries in the lists
    near: Any  # pairs within each other's sensing reach
    close: Any  # those that may touch in this tick
    windows: Any  # and what of them faces the other: first edge and vertex of A, of B
    links: Any  # how many close pairs the crowd of a trial has
    members: Any  # and its robots, as bits
    facing: Any  # sector -> first edge and first vertex that face that way
    warp: Any  # number of the warp in its block
    first_pair: Any  # where the warp's part of `near` and `close` begins
    lanes: Any  # 32; not told to the compiler, which else makes copies of loops by strides of it


def shared_bytes(robots: int, features: bool) -> int:
    """Shared memory of a warp, with some to spare."""
    pairs = robots * (robots - 1) // 2 * (LANES // robots)
    return 5900 + 12 * pairs + (feature_bytes() if features else 0)


# --- what a neuron reads -----------------------------------------------------------------------


@device
def value_of(values, hidden_of, row, own, old, pitch):
    """The value of an input or, from INPUTS on, of a hidden neuron after the tick before.

    A lane's values begin at `own`, its row INPUTS of `hidden_of` at `old + INPUTS * pitch`.
    """
    if row < U(VALUES):
        return values[U(row * U(LANES) + own)]
    return hidden_of[U(row * pitch + old)]


# --- the kernel --------------------------------------------------------------------------------


@lru_cache(maxsize=16)
def life(world: Constants, warps: int, features: bool = False) -> Any:
    """The kernel for these constants, in blocks of so many warps.

    Warp w of all runs the trials w * packing ... of all teams' trials in a row.
    `teams` = (scenario, genome of each robot), `tables` = (pairs, facing,
    sensors), `scene` = (discs, poses, keys, codes, gains, food) of the scenarios, `brain` =
    (room, neurons, starts, bias, sources, weights) of the genomes, see `gpu_ends.pack`: so
    many biases per genome, in `starts` where the connections of every two neurons begin and
    the last ones end, two sources in a word, two weights in a row. `out` = (visits,
    items, distance, poses) and, with `features`, the sums of `lanes.FEATURES`
    over the ticks and of their squares: trials x 12. `state`: what robots and pairs
    keep from tick to tick, see `gpu._state`; `hidden_of` the values of the hidden
    neurons, a row of all robots after even ticks and one after odd ticks for each.
    """
    robots = world.robots
    slots = LANES // robots
    per_trial = robots * (robots - 1) // 2
    room = max(1, per_trial * slots)
    tick_length = F(world.dt * F(world.substeps))
    places = LANES * warps
    pair_places = room * warps
    reading_places = SENSORS * places
    value_places = VALUES * places
    row_size = U(LANES)

    def run(trials, packing, total, teams, tables, scene, brain, out, state, hidden_of):
        scenario_of, genome_of = teams
        table_of, facing_of, sensors_of = tables
        discs, start_poses, keys, codes_of, gains, food = scene
        neuron_room, neurons_of, starts, bias, sources, weights = brain
        visits, items_out, distance_out, poses = out[:4]
        motion, marks, memory, link_counts, links, windows_of, lists, counts, clock = state
        # Rows of numbers per lane: how far sensors see; inputs and hidden neurons.
        readings = cuda.shared.array(reading_places, int32)
        values = cuda.shared.array(value_places, float32)
        sensors = cuda.shared.array((SENSORS, 4), float32)
        if features:
            parts = cuda.shared.array((COUNT, places), float64)
        p = U(cuda.threadIdx.x)  # the robot's place in the block
        warp = U(p // U(LANES))
        t = U(p % U(LANES))
        shared = Shared(
            cuda.shared.array((LIFE_ROWS, places), float32),
            cuda.shared.array((FLAG_ROWS, places), int32),
            cuda.shared.array((LIFE_COUNTERS, warps), int32),
            cuda.shared.array(KINDS, int32),
            cuda.shared.array(pair_places, uint32),
            cuda.shared.array(pair_places, uint32),
            cuda.shared.array(pair_places, uint32),
            cuda.shared.array(places, int32),
            cuda.shared.array(places, uint32),
            cuda.shared.array(SECTORS, uint32),
            warp,
            warp * U(room),
            U(U(cuda.blockDim.x) // U(warps)),
        )
        rows = shared.robots
        flags = shared.flags
        counters = shared.counters
        seen = U(warp * U(SENSORS) * row_size + t)  # its first place in `readings`
        own = U(warp * U(VALUES) * row_size + t)  # and in `values`
        slot = U(t // U(robots))
        robot = U(t - slot * U(robots))
        first_trial = J((J(cuda.blockIdx.x) * J(warps) + J(warp)) * J(packing))
        index = U(first_trial + J(slot))
        here = J(max(min(J(packing), J(J(total) - first_trial)), J(0)))
        alive = J(slot) < here
        all_pairs = J(here * J(per_trial))
        team = U(index // U(trials)) if alive else U(0)
        trial = U(index - team * U(trials)) if alive else U(0)
        at = U(index * U(robots) + robot) if alive else U(0)
        scenario = U(scenario_of[team])
        tick = clock[0]
        before = U(tick & J(1))
        after = U(U(1) - before)
        everyone = U(U(total) * U(robots))
        pitch = U(U(2) * everyone)
        old = U(before * everyone + at - U(INPUTS) * pitch)
        new = U(after * everyone + at - U(2) * pitch)
        if p == U(0) and cuda.blockIdx.x == 0:
            clock[1] = tick + J(1)
        i = p
        while i < U(SECTORS):
            facing = facing_of[i]
            if i < U(SENSORS * 4):
                sensors[U(i // U(4)), U(i % U(4))] = sensors_of[i]
            shared.facing[i] = facing
            i = U(i + U(cuda.blockDim.x))
        k = U(0)
        while k < U(SENSORS):
            readings[U(k * row_size + seen)] = UNSEEN
            k = U(k + U(1))
        if t < U(LIFE_COUNTERS):
            counters[t, warp] = J(0)
        flags[PARTNERS, p] = J(0)
        flags[MATE, p] = J(0)
        shared.links[p] = J(0)
        shared.members[p] = U(0)

        # Move, or begin.
        genome = U(genome_of[team, robot])
        key0 = keys[scenario, trial, robot, 0]
        key1 = keys[scenario, trial, robot, 1]
        proximity_fault = J(codes_of[scenario, robot, 0])
        ground_fault = J(codes_of[scenario, robot, 1])
        neurons = U(neurons_of[genome]) if alive else U(0)
        x = D(F(0.5) * world.width)
        y = D(F(0.5) * world.height)
        heading = D(0)
        vx = F(0)
        vy = F(0)
        old_turn = F(0)
        moved_x = F(0)
        moved_y = F(0)
        turned = F(0)
        mark = J(0)
        if alive and tick == J(0):
            x = start_poses[scenario, trial, robot, 0]
            y = start_poses[scenario, trial, robot, 1]
            heading = start_poses[scenario, trial, robot, 2]
            items_out[index, robot] = J(0)
            distance_out[index, robot] = D(0)
            n = U(2)
            while n < neurons:
                hidden_of[U(n * pitch + new)] = F(0)
                n = U(n + U(1))
            k = robot
            while k < U(per_trial):
                memory[U(PUSH_X), index * U(per_trial) + k] = UNTOUCHED
                k = U(k + U(robots))
        elif alive:
            row = U(INPUTS)
            end = U(min(U(neurons + U(INPUTS - 2)), U(VALUES)))
            while row < end:
                first = hidden_of[U(row * pitch + old)]
                second = hidden_of[U(U(row + U(1)) * pitch + old)]
                third = hidden_of[U(U(row + U(2)) * pitch + old)]
                fourth = hidden_of[U(U(row + U(3)) * pitch + old)]
                place = U(row * row_size + own)
                values[place] = first
                values[U(place + row_size)] = second
                values[U(place + U(2) * row_size)] = third
                values[U(place + U(3) * row_size)] = fourth
                row = U(row + U(AT_ONCE))
            moved_x = motion[U(G_MOVED_X), at]
            moved_y = motion[U(G_MOVED_Y), at]
            vx = motion[U(G_VX), at]
            vy = motion[U(G_VY), at]
            old_turn = motion[U(G_TURN), at]
            turned = world.dt * motion[U(G_OLD_TURN), at] + (tick_length - world.dt) * old_turn
            mark = marks[at]
            x = poses[U(0), at] + D(moved_x)
            y = poses[U(1), at] + D(moved_y)
            heading = poses[U(2), at] + D(turned)
            heading = heading - 2 * math.pi if heading > math.pi else heading
            heading = heading + 2 * math.pi if heading <= -math.pi else heading
        if alive:
            poses[U(0), at] = x
            poses[U(1), at] = y
            poses[U(2), at] = heading
        here_x = F(x)
        here_y = F(y)
        c, s = on.cos_sin(heading)
        rows[X, p] = here_x
        rows[Y, p] = here_y
        rows[COS, p] = c
        rows[SIN, p] = s
        sync()
        near_pairs(world, shared, table_of, all_pairs, t)
        meet()  # sensors and facing are there

        left = F(0)
        right = F(0)
        if features and tick == J(0):
            clear_features(world, out[4], first_trial, here, t)
        if tick > J(0):
            if features:
                moved = (moved_x, moved_y, turned)
                measure(world, shared, parts, out[4], first_trial, here, (x, y, heading), moved, t)

            # Sense.
            look_at_robots(world, shared, sensors, readings, counters[NEAR, warp], t, seen - t)
            word = on.tick_word(key0, key1, U(tick - J(1)))
            pose = (here_x, here_y, c, s)
            sync()
            k = U(0)
            while k < U(SENSORS):
                distance = readings[U(k * row_size + seen)]
                sensor = (
                    sensors[k, U(0)],
                    sensors[k, U(1)],
                    sensors[k, U(2)],
                    sensors[k, U(3)],
                )
                values[U(k * row_size + own)] = proximity_input(
                    world, sensor, k, pose, distance, word
                )
                k = U(k + U(1))
            if proximity_fault != J(0):
                k = U(0)
                while k < U(world.front_sensors):
                    place = U(k * row_size + own)
                    values[place] = broken_input(values[place], k, word, proximity_fault)
                    k = U(k + U(1))
            on_a, on_b, on_food = over_food(world, food, U(discs), scenario, pose)
            values[U(U(7) * row_size + own)] = ground_input(
                world, world.ground_points[0], 0, pose, on_a, word, ground_fault
            )
            values[U(U(8) * row_size + own)] = ground_input(
                world, world.ground_points[1], 1, pose, on_b, word, ground_fault
            )

            # Think: all neurons read the old values of the others. Two at a time: the numbers of
            # one are on their way while the other is computed. The sources of the next connection
            # are read ahead, those behind the last one for nothing.
            n = U(0)
            start = U(genome * U(neuron_room // 2 + 1))
            place = U(genome * U(neuron_room))
            k = starts[start]
            both = U(sources[k])
            while n < neurons:
                start = U(start + U(1))
                end = starts[start]
                first_input = bias[place]
                second_input = bias[U(place + U(1))]
                while k < end:
                    row = U(both & U(2**SOURCE_BITS - 1))
                    other_row = U(both >> U(SOURCE_BITS))
                    twins = I(k) * I(2)
                    weight = weights[twins]
                    other_weight = weights[twins + I(1)]
                    k = U(k + U(1))
                    both = U(sources[k])
                    value = D(value_of(values, hidden_of, row, own, old, pitch))
                    other = D(value_of(values, hidden_of, other_row, own, old, pitch))
                    first_input += weight * value
                    second_input += other_weight * other
                first_value = F(on.tanh64(first_input))
                second_value = F(on.tanh64(second_input))
                if n == U(0):
                    left = world.max_speed * first_value
                    right = world.max_speed * second_value
                else:
                    hidden_of[U(n * pitch + new)] = first_value
                    if U(n + U(1)) < neurons:
                        hidden_of[U(U(n + U(1)) * pitch + new)] = second_value
                n = U(n + U(2))
                place = U(place + U(2))
            software = J(codes_of[scenario, robot, 2]) if alive else J(STUCK)
            if software != J(HEALTHY):
                speed = F(0)
                if software == J(MAD):
                    if on.uniform(word, on.SIGN_FLIP) < F(0.05):
                        mark ^= J(BACKWARDS)
                    speed = world.max_speed
                    speed = -speed if (mark & J(BACKWARDS)) != J(0) else speed
                left = speed
                right = speed

            # Forage, and count where the robots are.
            if software == J(HEALTHY):
                carries = (mark & J(CARRIES)) != J(0)
                if carries and x < world.nest_depth:
                    items_out[index, robot] += J(1)
                    mark ^= J(CARRIES)
                elif (not carries) and x > world.nest_depth and on_food:
                    mark |= J(CARRIES)
            if alive:
                cx, cy = world.centre
                dx = here_x - cx
                dy = here_y - cy
                add_to(distance_out, (index, robot), D(math.sqrt(dx * dx + dy * dy)))
                column = min(max(J(x * world.per_square), J(0)), J(world.squares_x - 1))
                row_ = min(max(J(y * world.per_square), J(0)), J(world.squares_y - 1))
                add_to(visits, (index, U(column * J(world.squares_y) + row_)), J(1))

        # Drive, as if nothing were in the way.
        left_speed = left * gains[scenario, robot, 0]
        right_speed = right * gains[scenario, robot, 1]
        speed = F(0.5) * (left_speed + right_speed)
        ux = speed * c
        uy = speed * s
        path_x, path_y = on.free_path(vx, vy, ux, uy, world.limit, F(world.substeps), world.dt)
        turn = (right_speed - left_speed) * world.per_wheel_base
        rows[PATH_X, p] = path_x
        rows[PATH_Y, p] = path_y
        rows[TURNED, p] = world.dt * old_turn + (tick_length - world.dt) * turn
        sync()
        may_touch(world, shared, t)
        sync()
        sort_pairs(world, shared, U(first_trial), links, windows_of, t)
        partners = flags[PARTNERS, p]
        end_x = here_x + path_x
        end_y = here_y + path_y
        gap_x = on.least(on.least(here_x, end_x), world.width - on.greatest(here_x, end_x))
        gap_y = on.least(on.least(here_y, end_y), world.height - on.greatest(here_y, end_y))
        near = world.radius + MARGIN + DRIFT * F(partners)
        at_x = alive and gap_x < near
        at_y = alive and gap_y < near
        at_wall = at_x or at_y
        flags[WALL, p] = J(at_wall)
        sync()
        if alive and partners > J(0) and flags[MATE, p] == J(0):
            set_bits(shared.members, trial_of(world, p), U(1) << robot)
        sync()
        leads = alive and robot == U(0)
        entries = classify(world, shared, leads, p, at, at_wall)
        begin = claim(shared, warps, counts[after], p)
        if alive:
            motion[U(G_TURN), at] = turn
            motion[U(G_OLD_TURN), at] = old_turn
            # What walls did in contacts before counts no more.
            if at_x and (mark & J(AT_X)) == J(0):
                motion[U(G_WALL), at] = F(0)
                motion[U(G_WALL) + U(1), at] = F(0)
            if at_y and (mark & J(AT_Y)) == J(0):
                motion[U(G_WALL) + U(2), at] = F(0)
                motion[U(G_WALL) + U(3), at] = F(0)
            mark &= J(CARRIES | BACKWARDS)
            mark |= (J(AT_X) if at_x else J(0)) | (J(AT_Y) if at_y else J(0))
            marks[at] = mark
            if at_wall or partners > J(0):
                motion[U(G_COS), at] = c
                motion[U(G_SIN), at] = s
                motion[U(G_UX), at] = ux
                motion[U(G_UY), at] = uy
                motion[U(G_VX), at] = vx
                motion[U(G_VY), at] = vy
            else:
                motion[U(G_MOVED_X), at] = path_x
                motion[U(G_MOVED_Y), at] = path_y
                motion[U(G_VX), at] = ux
                motion[U(G_VY), at] = uy
            if leads:
                link_counts[index] = shared.links[trial_of(world, p)]
        hand_in(shared, entries, begin, index, at, lists, p)

    return kernel(run, fastmath=True, max_registers=MAX_REGISTERS)
