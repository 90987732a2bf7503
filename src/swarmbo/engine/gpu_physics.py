"""Contact on the GPU: the sub-steps of a tick, a lane per robot.

Few robots of a tick may touch anything. So the warps of a block hand theirs
in, and all of them run what was handed in, with as many lanes at work as
possible: first the *crowds*, robots that may touch others which may touch more,
from as many warps at a time as fit into one; then lone pairs, and robots that
may touch a wall only. What a lane must know of other robots lies in shared
memory, or comes from the lane beside it.
"""

import numpy as np

from swarmbo.engine.cpu_physics import _DRIFT, _MARGIN
from swarmbo.engine.gpu_contacts import (
    contact,
    find_contacts,
    lean_on_walls,
    meet_walls,
    solve,
    solve_pair,
)
from swarmbo.engine.gpu_layout import (
    AT_WALL,
    CLOSE,
    CONTACTS,
    COS,
    CROWDED,
    CROWDS,
    LINKS,
    MOVED_X,
    MOVED_Y,
    NEAR,
    OLD_TURN,
    PAIRS,
    PATH_X,
    PATH_Y,
    PUSH_X,
    PUSH_Y,
    QX,
    QY,
    SIN,
    SINGLES,
    STEPS,
    TURN,
    TURNED,
    UNTOUCHED,
    UX,
    UY,
    X,
    Y,
    memory_of,
    robots_of,
    trial_of,
)
from swarmbo.engine.gpu_warp import (
    LANES,
    J,
    U,
    add_to,
    any_lane,
    device,
    inverse_root,
    on,
    swap,
    sync,
)

F = np.float32
FAR = on.FAR
DRIFT = _DRIFT
MARGIN = _MARGIN
ALONE = J(-1)  # instead of the number of partners: one partner, which has no other one


# --- who may touch whom ------------------------------------------------------------------------


@device
def _window(world, shared, own, dx, dy, turned):
    """Which edges and vertices of a robot face the way (dx, dy), half-way through its turn."""
    turn = F(0.5) * turned
    c = shared.robots[COS, own] - turn * shared.robots[SIN, own]
    s = shared.robots[SIN, own] + turn * shared.robots[COS, own]
    way = on.sector(c * dx + s * dy, c * dy - s * dx)
    return shared.facing[U(way * F(world.sectors / 4)) & U(world.sectors - 1)]


@device
def may_touch(world, shared, lane):
    """List those of the warp's near pairs that may touch in this tick.

    Rows PATH_X and PATH_Y hold the displacements without contact, row TURNED
    the turned angles. Counts in CROWDED the pairs of each robot; must be 0 before.
    """
    robots = shared.robots
    reach = world.radius + MARGIN
    count = U(shared.counters[NEAR, shared.warp])
    number = lane
    while number < count:
        entry = shared.near[shared.first_pair + U(number)]
        a, b = robots_of(entry)
        dx = robots[X, b] - robots[X, a]
        dy = robots[Y, b] - robots[Y, a]
        mx = robots[PATH_X, b] - robots[PATH_X, a]
        my = robots[PATH_Y, b] - robots[PATH_Y, a]
        # Closer than the discs around the bodies, at some time on straight paths?
        moved = mx * mx + my * my
        limit = F(2) * reach + moved * inverse_root(on.greatest(moved, F(1e-20)))
        if dx * dx + dy * dy < limit * limit:
            k = shared.first_pair + U(add_to(shared.counters, (U(CLOSE), shared.warp), J(1)))
            shared.close[k] = entry
            dx += F(0.5) * mx
            dy += F(0.5) * my
            by_a = _window(world, shared, a, dx, dy, robots[TURNED, a])
            by_b = _window(world, shared, b, -dx, -dy, robots[TURNED, b])
            shared.windows[k] = by_a | (by_b << U(8))
            add_to(shared.flags, (U(CROWDED), a), J(1))
            add_to(shared.flags, (U(CROWDED), b), J(1))
        number = U(number + shared.lanes)


@device
def sort_pairs(shared, lane):
    """Hand in the warp's lone pairs, and list the pairs of its crowds."""
    flags = shared.flags
    count = U(shared.counters[CLOSE, shared.warp])
    number = lane
    while number < count:
        k = shared.first_pair + U(number)
        a, b = robots_of(shared.close[k])
        if flags[CROWDED, a] == J(1) and flags[CROWDED, b] == J(1):
            place = U(add_to(shared.counters, (U(PAIRS), shared.warp), J(2)))
            place += shared.warp * U(LANES)
            shared.few[place] = a | ((k + U(1)) << U(9))
            shared.few[place + U(1)] = b | ((k + U(1)) << U(9))
            flags[CROWDED, a] = ALONE
            flags[CROWDED, b] = ALONE
        else:
            place = U(add_to(shared.counters, (U(LINKS), shared.warp), J(1)))
            shared.links[shared.first_pair + place] = k
        number = U(number + shared.lanes)


@device
def hand_in(shared, p, partners):
    """Hand in a robot of a crowd, or one that may touch a wall only."""
    first = shared.warp * U(LANES)
    if partners > J(0):
        place = U(add_to(shared.counters, (U(CROWDS), shared.warp), J(1)))
        shared.crowds[first + place] = p
    elif partners != ALONE:
        place = U(add_to(shared.counters, (U(SINGLES), shared.warp), J(1)))
        shared.few[first + U(LANES - 1) - place] = p


# --- crowds ------------------------------------------------------------------------------------


@device
def gather_crowd(shared, number, crowd, lane):
    """A group of robots in crowds that a warp runs at a time.

    As many warps in a row make a group as have `crowd` such robots. Returns
    (robots in group `number`, none if it does not exist; this lane's robot; pairs in
    `shared.pairs`; number of groups).
    """
    counters = shared.counters
    room = J(shared.pairs.shape[0])
    group = J(-1)
    size = J(crowd)  # of that group, so far
    links = J(0)
    members = J(0)
    pairs = J(0)
    p = shared.warp * U(LANES) + lane
    w = U(0)
    while w < shared.warps:
        sync()  # also keeps the compiler from making copies of the loop
        more = counters[CROWDS, w]
        more_links = counters[LINKS, w]
        if more > J(0):
            if size + more > crowd or links + more_links > room:
                group += J(1)
                size = J(0)
                links = J(0)
            size += more
            links += more_links
            if group == number:
                place = J(lane) - members
                if place >= J(0) and place < more:
                    p = shared.crowds[w * U(LANES) + U(place)]
                k = lane
                while k < U(more_links):
                    shared.pairs[U(pairs) + k] = shared.links[w * U(room) + k]
                    k = U(k + shared.lanes)
                members += more
                pairs += more_links
        w += U(1)
    sync()
    return members, p, pairs, group + J(1)


@device
def run_crowd(world, shared, members, p, count, lane):
    """Move a group of robots with `count` pairs through the sub-steps of a tick."""
    robots = shared.robots
    flags = shared.flags
    here = J(lane) < members
    at_wall = here and flags[AT_WALL, p] != J(0)
    x = robots[X, p]
    y = robots[Y, p]
    c = robots[COS, p]
    s = robots[SIN, p]
    ux = robots[UX, p]
    uy = robots[UY, p]
    vx = robots[QX, p]
    vy = robots[QY, p]
    turn = robots[TURN, p]
    dt = world.dt
    side_x = F(1) if x < F(0.5) * world.width else F(-1)
    side_y = F(1) if y < F(0.5) * world.height else F(-1)
    dx = F(0)
    dy = F(0)
    step_c, step_s = on.small_turn(dt * robots[OLD_TURN, p])
    sync()
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
        if at_wall:
            vx, vy, demand_x, slide_x, demand_y, slide_y = meet_walls(
                world, x + dx, y + dy, side_x, side_y, c, s, turn, vx, vy, ux, uy
            )
        else:
            vx, vy = on.motor(vx, vy, ux, uy, world.limit)
        if number == J(0):
            step_c, step_s = on.small_turn(dt * turn)
        if here:
            robots[X, p] = x + dx
            robots[Y, p] = y + dy
            robots[COS, p] = c
            robots[SIN, p] = s
            robots[QX, p] = qx
            robots[QY, p] = qy
            flags[CROWDED, p] = J(0)
            shared.colours[trial_of(world, p)] = U(0)
        if lane == U(0):
            shared.counters[CONTACTS, shared.warp] = J(0)
            shared.counters[STEPS, shared.warp] = J(0)
        sync()
        found = find_contacts(world, shared, count, lane)
        sync()
        if found:
            crowded = here and flags[CROWDED, p] != J(0)
            if crowded:
                wall = (side_x, demand_x, slide_x, side_y, demand_y, slide_y)
                lean_on_walls(world, shared, p, wall, ux, uy, qx, qy)
            sync()
            solve(world, shared, lane)
            sync()
            if crowded:
                vx, vy = on.motor(robots[QX, p], robots[QY, p], ux, uy, world.limit)
        number += J(1)
    if here:
        robots[MOVED_X, p] = dx
        robots[MOVED_Y, p] = dy
        robots[QX, p] = vx
        robots[QY, p] = vy


# --- lone pairs and single robots --------------------------------------------------------------


@device
def count_few(shared):
    """How many robots were handed in that are in no crowd."""
    count = J(0)
    w = U(0)
    while w < shared.warps:
        count += shared.counters[PAIRS, w] + shared.counters[SINGLES, w]
        w += U(1)
    return count


@device
def _member(shared, place):
    """The word of the robot at a place among the lone pairs and then the single ones of all."""
    word = U(0)
    unit = U(0)
    while unit < U(2) * shared.warps:
        single = unit >= shared.warps
        w = unit - shared.warps if single else unit
        more = shared.counters[SINGLES if single else PAIRS, w]
        if place >= J(0) and place < more:
            at = U(J(LANES - 1) - place) if single else U(place)
            word = shared.few[w * U(LANES) + at]
        place -= more
        unit += U(1)
    return word


@device
def run_few(world, shared, first, total, lane):
    """Move lone pairs and single robots, from number `first` on, through the sub-steps."""
    robots = shared.robots
    flags = shared.flags
    memory = shared.memory
    place = first + J(lane)
    here = place < total
    word = _member(shared, place)
    p = (word & U(511)) if here else shared.warp * U(LANES) + lane
    paired = here and (word >> U(9)) > U(0)
    k = (word >> U(9)) - U(1) if paired else U(0)
    windows = shared.windows[k]
    q = memory_of(world, shared.close[k]) if paired else U(0)
    push_x = memory[PUSH_X, q]
    push_y = memory[PUSH_Y, q]
    at_wall = here and flags[AT_WALL, p] != J(0)
    pairs = any_lane(paired, shared.scratch, lane)
    walls = any_lane(paired and at_wall, shared.scratch, lane)
    is_a = (lane & U(1)) == U(0)
    reach2 = F(4) * world.radius * world.radius
    x = robots[X, p]
    y = robots[Y, p]
    c = robots[COS, p]
    s = robots[SIN, p]
    ux = robots[UX, p]
    uy = robots[UY, p]
    vx = robots[QX, p]
    vy = robots[QY, p]
    turn = robots[TURN, p]
    dt = world.dt
    side_x = F(1) if x < F(0.5) * world.width else F(-1)
    side_y = F(1) if y < F(0.5) * world.height else F(-1)
    dx = F(0)
    dy = F(0)
    step_c, step_s = on.small_turn(dt * robots[OLD_TURN, p])
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
        if at_wall:
            vx, vy, demand_x, slide_x, demand_y, slide_y = meet_walls(
                world, x + dx, y + dy, side_x, side_y, c, s, turn, vx, vy, ux, uy
            )
        else:
            vx, vy = on.motor(vx, vy, ux, uy, world.limit)
        if number == J(0):
            step_c, step_s = on.small_turn(dt * turn)
        if pairs:
            here_x = x + dx
            here_y = y + dy
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
                        p,
                        is_a,
                        touches,
                        (nx, ny, demand, slide),
                        (push_x, push_y),
                        walls,
                        (side_x, demand_x, slide_x, side_y, demand_y, slide_y),
                        (ux, uy),
                        (qx, qy),
                        lane,
                    )
                    if touches:
                        vx, vy = on.motor(qx, qy, ux, uy, world.limit)
            push_x = push_x if touches else UNTOUCHED
        number += J(1)
    sync()
    if paired and is_a:
        memory[PUSH_X, q] = push_x
        memory[PUSH_Y, q] = push_y
    if here:
        robots[MOVED_X, p] = dx
        robots[MOVED_Y, p] = dy
        robots[QX, p] = vx
        robots[QY, p] = vy
