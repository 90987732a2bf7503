"""The kernel of contact on the GPU: the sub-steps of a tick, a lane per robot.

Few robots of a tick may touch anything. `gpu_life` lists them over all trials
of a launch, each kind in a list of its own (see `gpu_layout.CROWDS`), so that the
lanes of a warp do the same work. A warp takes some crowds of a size, or sixteen lone
pairs, or thirty-two single robots. What the lanes of a crowd must know of each other lies
in shared memory; the lanes of a lone pair are side by side and swap what they know.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numba import float32, int32, uint32

from swarmbo.engine.gpu.contacts import contact, meet_walls, solve_pair
from swarmbo.engine.gpu.crowds import clear_table, keep_links, load_links, run_crowds
from swarmbo.engine.gpu.layout import (
    AROUND,
    AT_X,
    AT_Y,
    BODY_ROWS,
    CONTACT_ROWS,
    CONTACTS,
    CROWDS_OF_3,
    CROWDS_OF_4,
    DETAIL,
    FIRST,
    G_WALL,
    KINDS,
    LINKS,
    PAIRS,
    PUSH_X,
    PUSH_Y,
    SECOND,
    SINGLES,
    TOUCH_COUNTERS,
    TOUCH_ROWS,
    UNTOUCHED,
    WALL_PAIRS,
    arrive,
    drive,
)
from swarmbo.engine.gpu.warp import (
    LANES,
    SIMULATED,
    J,
    U,
    any_lane,
    bits_set,
    cuda,
    device,
    kernel,
    on,
    swap,
    sync,
)
from swarmbo.engine.gpu.world import Constants

F = np.float32
FAR = on.FAR
MAX_REGISTERS = 128  # of a thread


class Shared(NamedTuple):
    """What a warp keeps in shared memory, of its robots and contacts."""

    robots: Any  # TOUCH_ROWS
    numbers: Any  # per robot of a crowd, how many contacts it has
    pushes: Any  # m/s, x and y of the impulses on it: see gpu_crowds
    contacts: Any  # CONTACT_ROWS, of the crowds' pairs, then of their walls
    entries: Any  # and whose they are
    counters: Any
    windows: Any  # what of the pairs faces the other: first edge and vertex of A, of B
    links: Any  # and their numbers among all pairs of all trials
    body: Any
    scratch: Any
    lanes: Any  # 32; not told to the compiler, which else makes copies of loops by strides of it


@device
def _groups(count, size):
    """How many warps take `count` entries of a list, `size` each."""
    return (count + size - J(1)) // size


@device
def _width(world, kind):
    """How many lanes an entry of a list takes."""
    width = J(world.robots)
    width = J(4) if kind == J(CROWDS_OF_4) else width
    width = J(3) if kind == J(CROWDS_OF_3) else width
    width = J(2) if kind == J(WALL_PAIRS) or kind == J(PAIRS) else width
    return J(1) if kind == J(SINGLES) else width


@device
def _robot_of(members, place):
    """The number of the robot that is at a place among the members, which are bits."""
    robot = U(0)
    step = U(16)
    while step > U(0):
        below = bits_set(members & ((U(1) << (robot + step)) - U(1)))
        robot = robot + step if below <= place else robot
        step >>= U(1)
    return robot


@device
def _run_apart(world, shared, motion, at, mark, pose, here, paired, windows, push, lane):
    """Move the lane's robot, of a lone pair or alone at a wall, through the sub-steps of a tick.

    `at` is its number and `pose` = (x, y) where it begins; `paired` says whether the lane
    beside is its partner, `windows` what faces it, and `push` their last impulse, which is
    returned.
    """
    at_wall = here and (mark & J(AT_X | AT_Y)) != J(0)
    x, y = pose
    c, s, u, v, turn, step = drive(world, motion, at)
    lean_x = (F(0), F(0))
    lean_y = (F(0), F(0))
    if paired and (mark & J(AT_X)) != J(0):
        lean_x = (motion[U(G_WALL), at], motion[U(G_WALL) + U(1), at])
    if paired and (mark & J(AT_Y)) != J(0):
        lean_y = (motion[U(G_WALL) + U(2), at], motion[U(G_WALL) + U(3), at])
    side_x = F(1) if x < F(0.5) * world.width else F(-1)
    side_y = F(1) if y < F(0.5) * world.height else F(-1)
    dx = F(0)
    dy = F(0)
    pairs = any_lane(paired, shared.scratch, lane)
    walls = any_lane(paired and at_wall, shared.scratch, lane)
    is_a = (lane & U(1)) == U(0)
    reach2 = F(4) * world.radius * world.radius
    other_turn = F(0)
    if pairs:
        other_turn = swap(turn, shared.scratch, lane)
    number = J(0)
    while number < J(world.substeps):
        q = v
        wall_x = (-FAR, F(0))
        wall_y = (-FAR, F(0))
        dx += world.dt * q[0]
        dy += world.dt * q[1]
        c, s = c * step[0] - s * step[1], s * step[0] + c * step[1]
        here_x = x + dx
        here_y = y + dy
        if at_wall:
            vx, vy, wall_x, wall_y = meet_walls(
                world, here_x, here_y, side_x, side_y, c, s, turn, q[0], q[1], u[0], u[1]
            )
            v = (vx, vy)
        else:
            v = on.motor(q[0], q[1], u[0], u[1], world.limit)
        if number == J(0):
            step = on.small_turn(world.dt * turn)
        if pairs:
            other_x = swap(here_x, shared.scratch, lane)
            other_y = swap(here_y, shared.scratch, lane)
            other_c = swap(c, shared.scratch, lane)
            other_s = swap(s, shared.scratch, lane)
            ox = other_x - here_x
            oy = other_y - here_y
            touches = paired and ox * ox + oy * oy < reach2
            if any_lane(touches, shared.scratch, lane):
                separation, nx, ny, demand, slide = contact(
                    shared.body,
                    windows,
                    is_a,
                    (here_x, here_y, c, s, turn),
                    (other_x, other_y, other_c, other_s, other_turn),
                    shared.scratch,
                    lane,
                )
                touches = touches and separation <= F(0)
                if any_lane(touches, shared.scratch, lane):
                    pushed, push, leans = solve_pair(
                        world,
                        shared,
                        is_a,
                        touches,
                        (nx, ny, demand, slide),
                        push,
                        (side_x, side_y),
                        (walls, wall_x, wall_y),
                        (lean_x, lean_y),
                        u,
                        q,
                        lane,
                    )
                    lean_x, lean_y = leans
                    if touches:
                        v = on.motor(pushed[0], pushed[1], u[0], u[1], world.limit)
            push = (push[0] if touches else UNTOUCHED, push[1])
        number += J(1)
    if here:
        arrive(motion, at, (dx, dy), v)
    if paired and at_wall:
        motion[U(G_WALL), at] = lean_x[0]
        motion[U(G_WALL) + U(1), at] = lean_x[1]
        motion[U(G_WALL) + U(2), at] = lean_y[0]
        motion[U(G_WALL) + U(3), at] = lean_y[1]
    return push


@lru_cache(maxsize=16)
def touch(world: Constants) -> Any:
    """The kernel for these constants, in blocks of one warp.

    Takes crowds of a size by ones as long as there are at most `spread` of them,
    then by twos and so on; `body` as in `gpu_world`, the other arrays as in `gpu_life`.
    """
    robots = world.robots
    per_trial = robots * (robots - 1) // 2
    # No more pairs fit into a warp's lanes, and every robot may touch two walls.
    room = max(1, per_trial * (LANES // robots), 6 * (LANES // 4), 3 * (LANES // 3))
    contact_room = room + 2 * LANES + 1
    push_rows = 2 * (robots + 2)  # the last two for nothing: see gpu_crowds
    scratch_room = LANES if SIMULATED else 1

    def run(spread, body, poses, state):
        motion, marks, memory, link_counts, links, windows_of, lists, counts, clock = state
        lengths = cuda.shared.array(KINDS, int32)
        sizes = cuda.shared.array(KINDS, int32)  # entries that a warp takes
        groups = cuda.shared.array(KINDS, int32)  # of so many entries
        lane = U(cuda.threadIdx.x)
        shared = Shared(
            cuda.shared.array((TOUCH_ROWS, LANES), float32),
            cuda.shared.array(LANES, int32),
            cuda.shared.array((push_rows, LANES), float32),
            cuda.shared.array((CONTACT_ROWS, contact_room), float32),
            cuda.shared.array(contact_room, uint32),
            cuda.shared.array(TOUCH_COUNTERS, int32),
            cuda.shared.array(room, uint32),
            cuda.shared.array(room, uint32),
            cuda.shared.array((BODY_ROWS, AROUND), float32),
            cuda.shared.array(scratch_room, float32),
            U(cuda.blockDim.x),
        )
        tick = clock[1]
        now = U(tick & J(1))
        if lane < U(KINDS):
            kind = J(lane)
            length = counts[now, lane]
            size = J(LANES) // _width(world, kind)
            if kind <= J(CROWDS_OF_3):
                size = min(max(_groups(length, J(spread)), J(1)), size)
            lengths[lane] = length
            sizes[lane] = size
            groups[lane] = _groups(length, size)
            if cuda.blockIdx.x == 0:  # the next tick's lists begin empty
                counts[U(1) - now, lane] = J(0)
        if lane == U(0) and cuda.blockIdx.x == 0:
            clock[0] = tick
        sync()
        number = J(cuda.blockIdx.x)
        kind = J(0)
        first = J(0)  # group of the present kind
        fresh = True
        while kind < J(KINDS):
            end = first + groups[U(kind)]
            if number >= end:
                first = end
                kind += J(1)
            else:
                if fresh:
                    for i in range(lane, U(BODY_ROWS * AROUND), U(LANES)):
                        shared.body[U(i // U(AROUND)), U(i % U(AROUND))] = body[i]
                    sync()
                    fresh = False
                size = sizes[U(kind)]
                width = _width(world, kind)
                slot = J(lane) // width
                place = U(J(lane) - slot * width)
                entry = (number - first) * size + slot
                here = slot < size and entry < lengths[U(kind)]
                crowd = kind <= J(CROWDS_OF_3)
                at = U(0)
                if crowd:
                    clear_table(world, shared, lane)
                    sync()
                    # All lanes help a single crowd to load its pairs.
                    single = size == J(1)
                    entry = number - first if single else entry
                    if here or single:
                        at = lists[U(kind), U(FIRST), U(entry)]
                        members = lists[U(kind), U(SECOND), U(entry)]
                        load_links(
                            world,
                            shared,
                            at,
                            members,
                            U(0) if single else lane - place,
                            lane if single else place,
                            U(LANES) if single else U(width),
                            (link_counts, links, windows_of),
                            memory,
                        )
                        here = here and place < bits_set(members)
                        at = at * U(robots) + _robot_of(members, place) if here else U(0)
                    sync()
                    if lane == U(0):
                        shared.counters[U(CONTACTS)] = shared.counters[U(LINKS)]
                    sync()
                    pose = (F(poses[U(0), at]), F(poses[U(1), at]))
                    run_crowds(world, shared, motion, at, marks[at], pose, here, lane)
                    keep_links(world, shared, memory, lane)
                else:
                    paired = here and kind != J(SINGLES)
                    pair = U(0)
                    windows = U(0)
                    push = (F(0), F(0))
                    if here:
                        at = lists[U(kind), U(FIRST), U(entry)]
                    if paired:
                        detail = lists[U(kind), U(DETAIL), U(entry)]
                        windows = detail & U(65535)
                        pair = U(at // U(robots)) * U(per_trial) + (detail >> U(16))
                        push = (memory[U(PUSH_X), pair], memory[U(PUSH_Y), pair])
                        if place == U(1):
                            at = lists[U(kind), U(SECOND), U(entry)]
                    pose = (F(poses[U(0), at]), F(poses[U(1), at]))
                    push = _run_apart(
                        world,
                        shared,
                        motion,
                        at,
                        marks[at],
                        pose,
                        here,
                        paired,
                        windows,
                        push,
                        lane,
                    )
                    if paired and place == U(0):
                        memory[U(PUSH_X), pair] = push[0]
                        memory[U(PUSH_Y), pair] = push[1]
                sync()
                number += J(cuda.gridDim.x)

    return kernel(run, fastmath=True, max_registers=MAX_REGISTERS)
