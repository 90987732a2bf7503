"""Crowds on the GPU: the contacts of robots that touch others which touch more.

All contacts of a warp's crowds are solved by sweeps over them, two lanes per
contact: contacts of different trials at the same time, and contacts of a trial at
the same time if they share no robot.

Pairs are coloured once and for all, like the rounds of a tournament: pairs of a
colour share no robot. A contact's *step* is the first in which no contact of its
robots with a lower colour is left; walls come last. So the order of the sweeps, and
every bit of the result, is a matter of the trial alone.
"""

import numpy as np

from swarmbo.engine.gpu_contacts import (
    SWEEPS,
    answer,
    contact,
    corrected,
    first_impulse,
)
from swarmbo.engine.gpu_layout import (
    CONTACT_SIZE,
    CONTACTS,
    COS,
    DEMAND,
    IMPULSE_N,
    IMPULSE_T,
    NORMAL_X,
    NORMAL_Y,
    PUSH_X,
    PUSH_Y,
    QX,
    QY,
    SIN,
    SLIDE,
    STEPS,
    TURN,
    UNTOUCHED,
    UX,
    UY,
    WALL_X_N,
    WALL_X_T,
    WALL_Y_N,
    WALL_Y_T,
    X,
    Y,
    number_of,
    pair_entry,
    place_of,
    robots_of,
)
from swarmbo.engine.gpu_warp import (
    LANES,
    J,
    U,
    add_to,
    any_lane,
    bits_set,
    device,
    on,
    raise_to,
    set_bits,
    swap,
    sync,
)

F = np.float32
FAR = on.FAR


@device
def contact_at(k):
    """Where the numbers of a contact begin."""
    return U(CONTACT_SIZE) * U(k)


@device
def _add_contact(shared, entry, nx, ny, demand, slide, cn, ct):
    """Append a contact to the warp's list."""
    contacts = shared.contacts
    k = U(add_to(shared.counters, U(CONTACTS), J(1)))
    shared.entries[k] = entry
    at = contact_at(k)
    contacts[at + U(NORMAL_X)] = nx
    contacts[at + U(NORMAL_Y)] = ny
    contacts[at + U(DEMAND)] = demand
    contacts[at + U(SLIDE)] = slide
    contacts[at + U(IMPULSE_N)] = cn
    contacts[at + U(IMPULSE_T)] = ct


@device
def _keep_contact(world, shared, entry, nx, ny, demand, slide):
    """Note that two robots touch, and begin with the impulse of the sub-step before."""
    robots = shared.robots
    memory = shared.memory
    a, b = robots_of(entry)
    q = number_of(entry)
    push_x = memory[PUSH_X, q]
    push_y = memory[PUSH_Y, q]
    cn = on.greatest(nx * push_x + ny * push_y, F(0))
    ct = nx * push_y - ny * push_x
    if push_x == UNTOUCHED:
        gap = demand - nx * (robots[UX, a] - robots[UX, b]) - ny * (robots[UY, a] - robots[UY, b])
        now = demand - nx * (robots[QX, a] - robots[QX, b]) - ny * (robots[QY, a] - robots[QY, b])
        cn = first_impulse(gap, F(0.5) * now, world.limit)
        ct = F(0)
    colour = U(U(1) << place_of(entry))
    shared.crowded[a] = U(1)
    shared.crowded[b] = U(1)
    set_bits(shared.colours, U(0), colour)
    _add_contact(shared, entry, nx, ny, demand, slide, cn, ct)


@device
def _pose(robots, p):
    return robots[X, p], robots[Y, p], robots[COS, p], robots[SIN, p], robots[TURN, p]


@device
def _find_contact(world, shared, entry, windows, side, is_pair, lane):
    """Look for the contact of a pair, by two lanes side by side; return whether there is one."""
    robots = shared.robots
    a, b = robots_of(entry)
    is_a = side == U(0)
    own = a if is_a else b
    other = b if is_a else a
    dx = robots[X, other] - robots[X, own]
    dy = robots[Y, other] - robots[Y, own]
    reach = F(2) * world.radius
    is_near = is_pair and dx * dx + dy * dy < reach * reach
    touches = False
    if any_lane(is_near, shared.scratch, lane):
        separation, gx, gy, demand, slide = contact(
            shared.body,
            windows,
            is_a,
            _pose(robots, own),
            _pose(robots, other),
            shared.scratch,
            lane,
        )
        touches = is_near and is_a and separation <= F(0)
        if touches:
            _keep_contact(world, shared, entry, gx, gy, demand, slide)
    if is_pair and is_a and not touches:
        shared.memory[PUSH_X, number_of(entry)] = UNTOUCHED
    return touches


@device
def find_contacts(world, shared, count, lane):
    """Look for the contacts of `count` pairs that may touch; return whether there are any."""
    tasks = U(count) * U(2)
    base = U(0)
    found = False
    while base < tasks:
        task = U(U(base) + lane)
        is_pair = task < tasks
        k = U(task >> U(1)) if is_pair else U(0)
        side = task & U(1)
        found |= _find_contact(
            world, shared, shared.close[k], shared.windows[k], side, is_pair, lane
        )
        base = U(base + shared.lanes)
    return any_lane(found, shared.scratch, lane)


@device
def lean_on_walls(world, shared, t, wall, ux, uy, qx, qy):
    """Add the walls' contacts of a robot that others touch."""
    robots = shared.robots
    side_x, demand_x, slide_x, side_y, demand_y, slide_y = wall
    # A contact's tangent is its normal turned to the left; the slides are along +y and +x.
    second = U(0)
    if demand_x > -FAR:
        cn = robots[WALL_X_N, t]
        ct = robots[WALL_X_T, t]
        if cn == F(0):
            cn = first_impulse(demand_x - side_x * ux, demand_x - side_x * qx, world.limit)
            ct = F(0)
        entry = pair_entry(t, t, U(32), U(0))
        _add_contact(shared, entry, side_x, F(0), demand_x, side_x * slide_x, cn, ct)
        second = U(1)
    else:
        robots[WALL_X_N, t] = F(0)
    if demand_y > -FAR:
        cn = robots[WALL_Y_N, t]
        ct = robots[WALL_Y_T, t]
        if cn == F(0):
            cn = first_impulse(demand_y - side_y * uy, demand_y - side_y * qy, world.limit)
            ct = F(0)
        entry = pair_entry(t, t, U(32) + second, U(1))
        _add_contact(shared, entry, F(0), side_y, demand_y, -side_y * slide_y, cn, ct)
    else:
        robots[WALL_Y_N, t] = F(0)


@device
def _put_in_order(shared, count, lane):
    """Give every contact its step; return the number of steps.

    A contact waits for those of its robots' contacts that have lower colours; a
    robot's walls wait for all of its pairs.
    """
    entries = shared.entries
    steps = shared.steps
    left = shared.colours[U(0)]
    while left != U(0):
        colour = bits_set((left & (U(0) - left)) - U(1))
        k = lane
        while k < count:
            entry = entries[k]
            if place_of(entry) == colour:
                a, b = robots_of(entry)
                step = max(steps[a], steps[b])
                steps[a] = step + U(1)
                steps[b] = step + U(1)
                # Out of the way of the colours to come.
                entries[k] = pair_entry(a, b, U(32) + step, number_of(entry))
            k = U(k + shared.lanes)
        sync()
        left &= left - U(1)
    k = lane
    while k < count:
        entry = entries[k]
        a, b = robots_of(entry)
        step = place_of(entry) - U(32)
        if a == b:
            step += steps[a]
        entries[k] = pair_entry(a, b, step, number_of(entry))
        raise_to(shared.counters, U(STEPS), J(step) + J(1))
        k = U(k + shared.lanes)
    sync()
    return shared.counters[U(STEPS)]


@device
def _push(robots, own, sign, nx, ny, cn, ct):
    """Add the impulse (cn along the normal, ct along its left) to A, or its opposite to B."""
    robots[QX, own] += sign * (cn * nx - ct * ny)
    robots[QY, own] += sign * (cn * ny + ct * nx)


@device
def _correct(world, shared, side, what, cn, ct, mine, lane):
    """A Newton step for a contact = (normal x, y, demand, slide), by two lanes side by side.

    `side` = (robot, its commanded velocity, 1 for A and -1 for B, friction).
    The lane beside a robot's at a wall has no robot: 0. Returns as `corrected`.
    """
    robots = shared.robots
    scratch = shared.scratch
    own, ux, uy, sign, friction = side
    nx, ny, demand, slide = what
    v_n, v_t, nn, nt, tt = answer(world.limit, robots[QX, own], robots[QY, own], ux, uy, nx, ny)
    used = sign * sign
    v_n *= sign
    v_t *= sign
    nn *= used
    nt *= used
    tt *= used
    v_n += swap(v_n, scratch, lane)
    v_t += swap(v_t, scratch, lane)
    nn += swap(nn, scratch, lane)
    nt += swap(nt, scratch, lane)
    tt += swap(tt, scratch, lane)
    wrong, new_n, new_t = corrected(demand - v_n, -slide - v_t, (nn, nt, tt), friction, cn, ct)
    wrong = wrong and mine
    if wrong and sign != F(0):
        _push(robots, own, sign, nx, ny, new_n - cn, new_t - ct)
    return wrong, (new_n if wrong else cn), (new_t if wrong else ct)


@device
def _load(world, shared, k, lane):
    """A contact for a lane: its step, its side (see `_correct`), its numbers, and its impulse."""
    contacts = shared.contacts
    robots = shared.robots
    entry = shared.entries[k]
    at = contact_at(k)
    a, b = robots_of(entry)
    is_a = (lane & U(1)) == U(0)
    own = a if is_a else b
    sign = F(1) if is_a else F(-1)
    sign = F(0) if a == b and not is_a else sign
    friction = world.wall_friction if a == b else world.body_friction
    what = (
        contacts[at + U(NORMAL_X)],
        contacts[at + U(NORMAL_Y)],
        contacts[at + U(DEMAND)],
        contacts[at + U(SLIDE)],
    )
    side = (own, robots[UX, own], robots[UY, own], sign, friction)
    return J(place_of(entry)), side, what, contacts[at + U(IMPULSE_N)], contacts[at + U(IMPULSE_T)]


@device
def _begin(shared, side, what, cn, ct):
    """Push a robot by the impulse with which its contact begins."""
    own, _, _, sign, _ = side
    if sign != F(0):
        _push(shared.robots, own, sign, what[0], what[1], cn, ct)


@device
def _remember(shared, k):
    """Keep the impulse of a contact for the next sub-step."""
    contacts = shared.contacts
    entry = shared.entries[k]
    at = contact_at(k)
    nx = contacts[at + U(NORMAL_X)]
    ny = contacts[at + U(NORMAL_Y)]
    cn = contacts[at + U(IMPULSE_N)]
    ct = contacts[at + U(IMPULSE_T)]
    a, b = robots_of(entry)
    if a != b:
        q = number_of(entry)
        shared.memory[PUSH_X, q] = nx * cn - ny * ct
        shared.memory[PUSH_Y, q] = ny * cn + nx * ct
    else:
        row = U(WALL_X_N) + U(2) * number_of(entry)
        shared.robots[row, a] = cn
        shared.robots[row + U(1), a] = ct


@device
def solve(world, shared, lane):
    """Sweep over all contacts until they rest, and keep their impulses.

    Two lanes side by side hold one of the first 16 contacts; any more are read
    from shared memory.
    """
    half = U(LANES // 2)
    contacts = shared.contacts
    count = U(shared.counters[U(CONTACTS)])
    steps = _put_in_order(shared, count, lane)
    own_k = U(lane >> U(1))
    here = own_k < count
    turn, side, what, cn, ct = _load(world, shared, own_k if here else U(0), lane)
    turn = turn if here else J(-1)
    step = J(0)
    while step < steps:
        if turn == step:
            _begin(shared, side, what, cn, ct)
        k = own_k + half
        while k < count:
            turn_k, side_k, what_k, cn_k, ct_k = _load(world, shared, k, lane)
            if turn_k == step:
                _begin(shared, side_k, what_k, cn_k, ct_k)
            k = U(k + half)
        sync()
        step += J(1)
    passes = J(SWEEPS) * steps
    step = J(0)
    rests = J(0)  # steps in a row in which no contact was wrong
    while passes > J(0) and rests < steps:
        found, cn, ct = _correct(world, shared, side, what, cn, ct, turn == step, lane)
        base = half
        while base < count:
            k = base + own_k
            turn_k, side_k, what_k, cn_k, ct_k = _load(
                world, shared, k if k < count else U(0), lane
            )
            mine = k < count and turn_k == step
            if any_lane(mine, shared.scratch, lane):
                wrong, cn_k, ct_k = _correct(world, shared, side_k, what_k, cn_k, ct_k, mine, lane)
                if wrong and (lane & U(1)) == U(0):
                    at = contact_at(k)
                    contacts[at + U(IMPULSE_N)] = cn_k
                    contacts[at + U(IMPULSE_T)] = ct_k
                found |= wrong
            base = U(base + half)
        sync()
        rests = J(0) if any_lane(found, shared.scratch, lane) else rests + J(1)
        step = J(0) if step + J(1) == steps else step + J(1)
        passes -= J(1)
    if here and (lane & U(1)) == U(0):
        at = contact_at(own_k)
        contacts[at + U(IMPULSE_N)] = cn
        contacts[at + U(IMPULSE_T)] = ct
    sync()
    k = lane
    while k < count:
        _remember(shared, k)
        k = U(k + shared.lanes)
