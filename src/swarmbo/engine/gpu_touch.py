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

from swarmbo.engine.gpu_contacts import contact, meet_walls, solve_pair
from swarmbo.engine.gpu_crowds import find_contacts, lean_on_walls, solve
from swarmbo.engine.gpu_layout import (
    AROUND,
    AT_WALL,
    BODY_ROWS,
    CONTACT_SIZE,
    CONTACTS,
    COS,
    CROWDS_OF_3,
    CROWDS_OF_4,
    DETAIL,
    FIRST,
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
    LINKS,
    MEMORY_ROWS,
    PAIRS,
    PUSH_X,
    PUSH_Y,
    QX,
    QY,
    SECOND,
    SIN,
    SINGLES,
    STEPS,
    TOUCH_COUNTERS,
    TOUCH_ROWS,
    TURN,
    UNTOUCHED,
    UX,
    UY,
    WALL_PAIRS,
    WALL_X_N,
    X,
    Y,
    pair_entry,
)
from swarmbo.engine.gpu_warp import (
    LANES,
    SIMULATED,
    J,
    U,
    add_to,
    any_lane,
    bits_set,
    cuda,
    device,
    kernel,
    on,
    swap,
    sync,
)
from swarmbo.engine.gpu_world import Constants

F = np.float32
FAR = on.FAR
MAX_REGISTERS = 128  # of a thread: none is spilled


class Shared(NamedTuple):
    """What a warp keeps in shared memory, of its robots, pairs and contacts."""

    robots: Any  # TOUCH_ROWS
    crowded: Any  # per robot, whether another one touches it
    steps: Any  # per robot, how many of its contacts have theirs
    contacts: Any
    entries: Any  # of the contacts
    colours: Any  # that occur among the contacts: one word
    counters: Any
    memory: Any  # MEMORY_ROWS
    close: Any  # pairs that may touch in this tick
    windows: Any  # and what of them faces the other: first edge and vertex of A, of B
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
    k = U(0)
    while k < place:
        members &= members - U(1)
        k += U(1)
    return bits_set((members & (U(0) - members)) - U(1))


@device
def _load_links(world, shared, trial, members, begin, place, width, links, memory):
    """Put pairs of a trial's crowd into shared memory: every width-th from number `place` on.

    Lane `begin` is that of the crowd's first robot. `links` = (how many per
    trial, words, windows).
    """
    counts, words, windows = links
    first = trial * U(world.robots * (world.robots - 1) // 2)
    k = place
    while k < U(counts[trial]):
        word = words[first + k]
        a = U(1) << (word & U(31))
        b = U(1) << ((word >> U(5)) & U(31))
        number = U(add_to(shared.counters, U(LINKS), J(1)))
        link = first + ((word >> U(16)) & U(511))
        shared.close[number] = pair_entry(
            begin + bits_set(members & (a - U(1))),
            begin + bits_set(members & (b - U(1))),
            (word >> U(10)) & U(63),
            number,
        )
        shared.windows[number] = windows[first + k]
        shared.links[number] = link
        shared.memory[PUSH_X, number] = memory[U(PUSH_X), link]
        shared.memory[PUSH_Y, number] = memory[U(PUSH_Y), link]
        k += width


@device
def _keep_links(shared, memory, lane):
    """Write what the pairs of the crowds remember to global memory."""
    k = lane
    while k < U(shared.counters[U(LINKS)]):
        link = shared.links[k]
        memory[U(PUSH_X), link] = shared.memory[PUSH_X, k]
        memory[U(PUSH_Y), link] = shared.memory[PUSH_Y, k]
        k = U(k + shared.lanes)


@device
def _part_crowd(world, shared, count, here, wall, u, q, v, lane):
    """Part the robots of the crowds that touch each other; returns the lane's velocity."""
    robots = shared.robots
    ux, uy = u
    qx, qy = q
    vx, vy = v
    if lane == U(0):
        shared.counters[U(CONTACTS)] = J(0)
        shared.counters[U(STEPS)] = J(0)
        shared.colours[U(0)] = U(0)
    if here:
        robots[QX, lane] = qx
        robots[QY, lane] = qy
        shared.crowded[lane] = U(0)
        shared.steps[lane] = U(0)
    sync()
    found = find_contacts(world, shared, count, lane)
    sync()
    if found:
        crowded = here and shared.crowded[lane] != U(0)
        if crowded:
            lean_on_walls(world, shared, lane, wall, ux, uy, qx, qy)
        sync()
        solve(world, shared, lane)
        sync()
        if crowded:
            vx, vy = on.motor(robots[QX, lane], robots[QY, lane], ux, uy, world.limit)
    return vx, vy


@device
def _run(world, shared, motion, at, mark, pose, here, crowd, paired, windows, push, lane):
    """Move the lane's robot through the sub-steps of a tick.

    `at` is its number and `pose` = (x, y) where it begins. All lanes run a
    `crowd`, or none; `paired` says whether the lane beside is its only partner,
    `windows` what faces it, and `push` their last impulse, which is returned.
    """
    robots = shared.robots
    at_wall = here and (mark & J(AT_WALL)) != J(0)
    x, y = pose
    push_x, push_y = push
    c = motion[U(G_COS), at]
    s = motion[U(G_SIN), at]
    ux = motion[U(G_UX), at]
    uy = motion[U(G_UY), at]
    vx = motion[U(G_VX), at]
    vy = motion[U(G_VY), at]
    turn = motion[U(G_TURN), at]
    dt = world.dt
    step_c, step_s = on.small_turn(dt * motion[U(G_OLD_TURN), at])
    robots[UX, lane] = ux
    robots[UY, lane] = uy
    robots[TURN, lane] = turn
    k = U(0)
    while k < U(4):
        robots[U(WALL_X_N) + k, lane] = motion[U(G_WALL) + k, at]
        k += U(1)
    side_x = F(1) if x < F(0.5) * world.width else F(-1)
    side_y = F(1) if y < F(0.5) * world.height else F(-1)
    dx = F(0)
    dy = F(0)
    pairs = any_lane(paired, shared.scratch, lane)
    walls = any_lane(paired and at_wall, shared.scratch, lane)
    is_a = (lane & U(1)) == U(0)
    reach2 = F(4) * world.radius * world.radius
    count = shared.counters[U(LINKS)]
    other_turn = F(0)
    if pairs:
        other_turn = swap(turn, shared.scratch, lane)
    number = J(0)
    while number < J(world.substeps):
        qx = vx
        qy = vy
        demand_x = -FAR
        demand_y = -FAR
        slide_x = F(0)
        slide_y = F(0)
        dx += dt * vx
        dy += dt * vy
        c, s = c * step_c - s * step_s, s * step_c + c * step_s
        here_x = x + dx
        here_y = y + dy
        if at_wall:
            vx, vy, demand_x, slide_x, demand_y, slide_y = meet_walls(
                world, here_x, here_y, side_x, side_y, c, s, turn, vx, vy, ux, uy
            )
        else:
            vx, vy = on.motor(vx, vy, ux, uy, world.limit)
        wall = (side_x, demand_x, slide_x, side_y, demand_y, slide_y)
        if number == J(0):
            step_c, step_s = on.small_turn(dt * turn)
        if crowd:
            robots[X, lane] = here_x
            robots[Y, lane] = here_y
            robots[COS, lane] = c
            robots[SIN, lane] = s
            vx, vy = _part_crowd(
                world, shared, count, here, wall, (ux, uy), (qx, qy), (vx, vy), lane
            )
        elif pairs:
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
                    qx, qy, push_x, push_y = solve_pair(
                        world,
                        shared,
                        lane,
                        is_a,
                        touches,
                        (nx, ny, demand, slide),
                        (push_x, push_y),
                        walls,
                        wall,
                        (ux, uy),
                        (qx, qy),
                        lane,
                    )
                    if touches:
                        vx, vy = on.motor(qx, qy, ux, uy, world.limit)
            push_x = push_x if touches else UNTOUCHED
        number += J(1)
    sync()
    if here:
        motion[U(G_MOVED_X), at] = dx
        motion[U(G_MOVED_Y), at] = dy
        motion[U(G_VX), at] = vx
        motion[U(G_VY), at] = vy
        k = U(0)
        while k < U(4):
            motion[U(G_WALL) + k, at] = robots[U(WALL_X_N) + k, lane]
            k += U(1)
    return push_x, push_y


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
    contact_room = room + 2 * LANES
    contact_numbers = CONTACT_SIZE * contact_room
    scratch_room = LANES if SIMULATED else 1

    def run(spread, body, poses, state):
        motion, marks, memory, link_counts, links, windows_of, lists, counts, clock = state
        lengths = cuda.shared.array(KINDS, int32)
        lane = U(cuda.threadIdx.x)
        shared = Shared(
            cuda.shared.array((TOUCH_ROWS, LANES), float32),
            cuda.shared.array(LANES, uint32),
            cuda.shared.array(LANES, uint32),
            cuda.shared.array(contact_numbers, float32),
            cuda.shared.array(contact_room, uint32),
            cuda.shared.array(1, uint32),
            cuda.shared.array(TOUCH_COUNTERS, int32),
            cuda.shared.array((MEMORY_ROWS, room), float32),
            cuda.shared.array(room, uint32),
            cuda.shared.array(room, uint32),
            cuda.shared.array(room, uint32),
            cuda.shared.array((BODY_ROWS, AROUND), float32),
            cuda.shared.array(scratch_room, float32),
            U(cuda.blockDim.x),
        )
        tick = clock[1]
        now = U(tick & J(1))
        if lane < U(KINDS):
            lengths[lane] = counts[now, lane]
            if cuda.blockIdx.x == 0:  # the next tick's lists begin empty
                counts[U(1) - now, lane] = J(0)
        if lane == U(0) and cuda.blockIdx.x == 0:
            clock[0] = tick
        for i in range(lane, U(BODY_ROWS * AROUND), U(LANES)):
            shared.body[U(i // U(AROUND)), U(i % U(AROUND))] = body[i]
        sync()
        number = J(cuda.blockIdx.x)
        kind = J(0)
        first = J(0)  # group of the present kind
        while kind < J(KINDS):
            length = lengths[U(kind)]
            width = _width(world, kind)
            size = J(LANES) // width
            if kind <= J(CROWDS_OF_3):
                size = min(max(_groups(length, J(spread)), J(1)), size)
            end = first + _groups(length, size)
            if number >= end:
                first = end
                kind += J(1)
            else:
                slot = J(lane) // width
                place = U(J(lane) - slot * width)
                entry = (number - first) * size + slot
                here = slot < size and entry < length
                crowd = kind <= J(CROWDS_OF_3)
                paired = False
                at = U(0)
                pair = U(0)
                windows = U(0)
                push = (F(0), F(0))
                if lane == U(0):
                    shared.counters[U(LINKS)] = J(0)
                sync()
                if here:
                    at = lists[U(kind), U(FIRST), U(entry)]
                    if crowd:
                        members = lists[U(kind), U(SECOND), U(entry)]
                        begin = lane - place
                        of = (link_counts, links, windows_of)
                        _load_links(world, shared, at, members, begin, place, U(width), of, memory)
                        here = place < bits_set(members)
                        at = at * U(robots) + (_robot_of(members, place) if here else U(0))
                    elif kind != J(SINGLES):
                        detail = lists[U(kind), U(DETAIL), U(entry)]
                        windows = detail & U(65535)
                        pair = U(at // U(robots)) * U(per_trial) + (detail >> U(16))
                        push = (memory[U(PUSH_X), pair], memory[U(PUSH_Y), pair])
                        paired = True
                        if place == U(1):
                            at = lists[U(kind), U(SECOND), U(entry)]
                sync()
                push_x, push_y = _run(
                    world,
                    shared,
                    motion,
                    at,
                    marks[at],
                    (F(poses[at, U(0)]), F(poses[at, U(1)])),
                    here,
                    crowd,
                    paired,
                    windows,
                    push,
                    lane,
                )
                if paired and place == U(0):
                    memory[U(PUSH_X), pair] = push_x
                    memory[U(PUSH_Y), pair] = push_y
                if crowd:
                    _keep_links(shared, memory, lane)
                    sync()
                number += J(cuda.gridDim.x)

    return kernel(run, MAX_REGISTERS)
