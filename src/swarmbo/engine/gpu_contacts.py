"""Contacts on the GPU: walls, the contact of two bodies, and the impulses that part them.

Robots at walls are each solved by their lane. Two lanes side by side look for
the contact of a pair that may touch, one from each body. A pair that nothing
else touches but walls is solved by these two lanes; all other contacts are
solved by sweeps over them, two lanes per contact: contacts of different trials at
the same time, and contacts of a trial at the same time if they share no robot.

Pairs are coloured once and for all, like the rounds of a tournament: pairs of a
colour share no robot. A contact's *step* is the first in which no contact of its
robots with a lower colour is left; walls come last. So the order of the sweeps, and
every bit of the result, is a matter of the trial alone.
"""

import numpy as np

from swarmbo.engine.gpu_layout import (
    CONTACT_SIZE,
    CONTACTS,
    COS,
    DEMAND,
    EDGE_OFFSET,
    EDGE_X,
    EDGE_Y,
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
    VERTEX_X,
    VERTEX_Y,
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
    inverse_root,
    on,
    raise_to,
    set_bits,
    swap,
    sync,
)

F = np.float32
FAR = on.FAR
# Looser than on the CPU, as sweeps cost more here. With these numbers the CPU holds every row of
# `python -m tests.fidelity` too, contacts of robots with medians of 0.13 mm or less.
SWEEPS = 2  # over the contacts of crowds and pairs, at the most
SETTLED = F(5e-4)  # m/s, error of a contact's velocity that may remain


# --- walls -------------------------------------------------------------------------------------


@device
def _meet_wall(world, at_x, side, gap, c, s, turn, vx, vy, ux, uy):
    """What a wall demands, and the velocity (normal, tangential) that it alone allows."""
    demand, slide = on.wall_contact(
        world.vertices_x,
        world.vertices_y,
        (
            side * (c if at_x else s),
            side * (-s if at_x else c),
            s if at_x else c,
            c if at_x else -s,
        ),
        gap,
        side * (turn if at_x else -turn),
    )
    new_n, new_t = on.wall_velocity(
        side * (vx if at_x else vy),
        vy if at_x else vx,
        side * (ux if at_x else uy),
        uy if at_x else ux,
        demand,
        slide,
        world.wall_friction,
        world.limit,
    )
    return demand, slide, new_n, new_t


@device
def meet_walls(world, x, y, side_x, side_y, c, s, turn, vx, vy, ux, uy):
    """New velocity of a robot at the walls, and what they demand.

    By the nearest wall alone; in a corner one of the walls may do alone, else
    both components of the velocity are what the walls demand. Returns (vx, vy,
    demand and slide of the wall across x, and of the one across y).
    """
    gap_x = x if side_x > F(0) else world.width - x
    gap_y = y if side_y > F(0) else world.height - y
    at_x = gap_x < gap_y
    demand_x = -FAR
    demand_y = -FAR
    slide_x = F(0)
    slide_y = F(0)
    xn = F(0)
    xt = F(0)
    yn = F(0)
    yt = F(0)
    corner = max(gap_x, gap_y) < world.radius
    walls = J(2) if corner else J(1)
    is_x = at_x
    while walls > J(0):
        demand, slide, new_n, new_t = _meet_wall(
            world,
            is_x,
            side_x if is_x else side_y,
            gap_x if is_x else gap_y,
            c,
            s,
            turn,
            vx,
            vy,
            ux,
            uy,
        )
        demand_x = demand if is_x else demand_x
        slide_x = slide if is_x else slide_x
        xn = new_n if is_x else xn
        xt = new_t if is_x else xt
        demand_y = demand_y if is_x else demand
        slide_y = slide_y if is_x else slide
        yn = yn if is_x else new_n
        yt = yt if is_x else new_t
        is_x = not is_x
        walls -= J(1)
    x_does = side_y * xt >= demand_y if corner else at_x
    y_does = (side_x * yt >= demand_x if corner else True) and not x_does
    new_x = yt if y_does else side_x * xn
    new_y = xt if x_does else side_y * demand_y
    new_y = side_y * yn if y_does else new_y
    return new_x, new_y, demand_x, slide_x, demand_y, slide_y


# --- two bodies --------------------------------------------------------------------------------


@device
def _six(row, first):
    return (
        row[first],
        row[first + U(1)],
        row[first + U(2)],
        row[first + U(3)],
        row[first + U(4)],
        row[first + U(5)],
    )


@device
def contact(body, windows, is_a, pose, other, scratch, lane):
    """The contact of two bodies, by two lanes side by side: A's, then B's.

    As `formulas.facing_contact`, each lane with its own body's edges and the
    other body's vertices. `pose` = (x, y, cos, sin, turn rate), `other` that of
    the other body. Returns the same to both: the separation, the normal from B to
    A in the arena's frame, the demand and the slide.
    """
    x, y, c, s, turn = pose
    other_x, other_y, oc, os, other_turn = other
    ox = other_x - x
    oy = other_y - y
    px = c * ox + s * oy
    py = c * oy - s * ox
    mine = windows if is_a else windows >> U(8)
    theirs = windows >> U(8) if is_a else windows
    first = (theirs >> U(4)) & U(15)
    points = on.turned(
        (_six(body[VERTEX_X], first), _six(body[VERTEX_Y], first)),
        px,
        py,
        c * oc + s * os,
        c * os - s * oc,
    )
    best = (-FAR, F(0), F(0))
    out = (-FAR, -FAR, -FAR, -FAR, -FAR, -FAR)
    first = mine & U(15)
    end = first + U(6)
    k = first
    while k < end:
        edge = (body[EDGE_X, k], body[EDGE_Y, k], body[EDGE_OFFSET, k])
        best, out = on.facing_edge(edge, points[0], points[1], best, out)
        k = U(k + U(1))
    separation, bx, by = best
    # The normal from B to A, in the arena's frame.
    sign = F(-1) if is_a else F(1)
    gx = sign * (c * bx - s * by)
    gy = sign * (s * bx + c * by)
    rival = swap(separation, scratch, lane)
    rival_x = swap(gx, scratch, lane)
    rival_y = swap(gy, scratch, lane)
    decides = separation > rival or (separation == rival and is_a)
    separation = on.greatest(separation, rival)
    gx = gx if decides else rival_x
    gy = gy if decides else rival_y
    # Contact points, from A's centre; here in the lane's own frame.
    nx = c * gx + s * gy
    ny = c * gy - s * gx
    wb = other_turn if is_a else turn
    spin = turn - wb if is_a else other_turn - wb
    across = -sign * (py * nx - px * ny)
    along = -sign * (px * nx + py * ny)
    need, lever = on.contact_points(out, points, nx, ny, spin, (-FAR, F(0)))
    none = need == -FAR
    need = need if is_a or none else need + spin * across
    lever = lever if is_a else lever + along
    rival = swap(need, scratch, lane)
    rival_x = swap(lever, scratch, lane)
    lever = lever if need > rival else rival_x
    need = on.greatest(need, rival)
    none = need == -FAR
    need = spin * F(0.5) * across if none else need
    lever = F(0.5) * along if none else lever
    demand = need + wb * across
    slide = spin * lever + wb * along
    rival = swap(demand, scratch, lane)
    rival_x = swap(slide, scratch, lane)
    return separation, gx, gy, (demand if is_a else rival), (slide if is_a else rival_x)


@device
def first_impulse(gap, now, limit):
    """A first guess for a contact's normal impulse: motors that push with full force.

    `gap` and `now`: what the demand is more than the commanded and the present velocity.
    """
    return on.greatest(limit + now, F(0)) if gap > F(0) else F(0)


@device
def answer(limit, qx, qy, ux, uy, nx, ny):
    """A robot's velocity with its motor, and how it gives way, in a contact's frame."""
    ex = ux - qx
    ey = uy - qy
    inverse = inverse_root(on.greatest(ex * ex + ey * ey, F(1e-20)))
    hold = on.least(limit * inverse, F(1))
    vx = qx + hold * ex
    vy = qy + hold * ey
    ex *= inverse
    ey *= inverse
    nn, nt, tt = on.give(hold, ex * nx + ey * ny, ey * nx - ex * ny)
    return vx * nx + vy * ny, vy * nx - vx * ny, nn, nt, tt


@device
def corrected(gap_n, gap_t, give, friction, cn, ct):
    """One Newton step for a contact, as if the impulses of the others were right.

    Returns whether it was wrong by more than may remain, and its impulse, as it
    was if it was not wrong. See `formulas.impulse_step`.
    """
    nn, nt, tt = give
    wrong = on.contact_error(gap_n, gap_t, friction, cn, ct) > SETTLED
    new_n, new_t = on.impulse_step(gap_n, gap_t, nn, nt, tt, friction, cn, ct)
    return wrong, (new_n if wrong else cn), (new_t if wrong else ct)


# --- a pair that nothing else touches but walls ------------------------------------------------


@device
def _begin_at_walls(world, robots, p, wall, u, q):
    """Push a robot by the impulses with which its walls begin; return its velocity."""
    side_x, demand_x, _, side_y, demand_y, _ = wall
    ux, uy = u
    qx, qy = q
    new_x = qx
    new_y = qy
    number = J(0)
    while number < J(2):
        is_x = number == J(0)
        demand = demand_x if is_x else demand_y
        side = side_x if is_x else side_y
        row = U(WALL_X_N) if is_x else U(WALL_Y_N)
        cn = F(0)
        if demand > -FAR:
            cn = robots[row, p]
            ct = robots[row + U(1), p]
            if cn == F(0):
                gap = demand - side * (ux if is_x else uy)
                cn = first_impulse(gap, demand - side * (qx if is_x else qy), world.limit)
                ct = F(0)
            robots[row + U(1), p] = ct
            # The normal is (side, 0) or (0, side), its left (0, side) or (-side, 0).
            new_x += side * (cn if is_x else -ct)
            new_y += side * (ct if is_x else cn)
        robots[row, p] = cn
        number += J(1)
    return new_x, new_y


@device
def _correct_at_walls(world, robots, p, wall, u, q):
    """A Newton step for each of a robot's walls; return its velocity, and if one was wrong."""
    side_x, demand_x, slide_x, side_y, demand_y, slide_y = wall
    ux, uy = u
    qx, qy = q
    found = False
    number = J(0)
    while number < J(2):
        is_x = number == J(0)
        demand = demand_x if is_x else demand_y
        if demand > -FAR:
            nx = side_x if is_x else F(0)
            ny = F(0) if is_x else side_y
            # A contact's tangent is its normal turned to the left; the slides are along +y and +x.
            slide = side_x * slide_x if is_x else -side_y * slide_y
            row = U(WALL_X_N) if is_x else U(WALL_Y_N)
            cn = robots[row, p]
            ct = robots[row + U(1), p]
            v_n, v_t, nn, nt, tt = answer(world.limit, qx, qy, ux, uy, nx, ny)
            wrong, new_n, new_t = corrected(
                demand - v_n, -slide - v_t, (nn, nt, tt), world.wall_friction, cn, ct
            )
            found |= wrong
            robots[row, p] = new_n
            robots[row + U(1), p] = new_t
            dn = new_n - cn
            dt = new_t - ct
            qx += nx * dn - ny * dt
            qy += ny * dn + nx * dt
        number += J(1)
    return qx, qy, found


@device
def solve_pair(world, shared, p, is_a, touches, between, push, walls, wall, u, q, lane):
    """Part two robots that touch nobody else; by their two lanes, side by side.

    `between` = (normal x, y, demand, slide) of their contact, `push` the impulse
    on A in the sub-step before, `walls` whether any lane's wall counts, `wall`
    what this robot's walls demand, `u` and `q` its velocity, commanded and before
    contact. Returns its velocity with the impulses but without its motor, and the
    impulse on A.
    """
    robots = shared.robots
    nx, ny, demand, slide = between
    push_x, push_y = push
    ux, uy = u
    qx, qy = q
    sign = F(1) if is_a else F(-1)
    cn = on.greatest(nx * push_x + ny * push_y, F(0))
    ct = nx * push_y - ny * push_x
    u_n = sign * (nx * ux + ny * uy)
    q_n = sign * (nx * qx + ny * qy)
    u_n += swap(u_n, shared.scratch, lane)
    q_n += swap(q_n, shared.scratch, lane)
    if push_x == UNTOUCHED:
        cn = first_impulse(demand - u_n, F(0.5) * (demand - q_n), world.limit)
        ct = F(0)
    at_walls = walls and touches
    if at_walls:
        qx, qy = _begin_at_walls(world, robots, p, wall, u, q)
    qx += sign * (nx * cn - ny * ct)
    qy += sign * (ny * cn + nx * ct)
    sweeps = J(SWEEPS)
    going = True
    while going:
        v_n, v_t, nn, nt, tt = answer(world.limit, qx, qy, ux, uy, nx, ny)
        v_n *= sign
        v_t *= sign
        v_n += swap(v_n, shared.scratch, lane)
        v_t += swap(v_t, shared.scratch, lane)
        nn += swap(nn, shared.scratch, lane)
        nt += swap(nt, shared.scratch, lane)
        tt += swap(tt, shared.scratch, lane)
        wrong, new_n, new_t = corrected(
            demand - v_n, -slide - v_t, (nn, nt, tt), world.body_friction, cn, ct
        )
        wrong = wrong and touches
        dn = sign * (new_n - cn) if wrong else F(0)
        dt = sign * (new_t - ct) if wrong else F(0)
        cn = new_n
        ct = new_t
        qx += nx * dn - ny * dt
        qy += ny * dn + nx * dt
        if at_walls:
            qx, qy, at_wall = _correct_at_walls(world, robots, p, wall, u, (qx, qy))
            wrong |= at_wall
        sweeps -= J(1)
        going = sweeps > J(0) and any_lane(wrong, shared.scratch, lane)
    return qx, qy, nx * cn - ny * ct, ny * cn + nx * ct


# --- crowds ------------------------------------------------------------------------------------


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
