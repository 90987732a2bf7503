"""Contact on the GPU: the sub-steps of a tick, a lane per robot.

Few robots of a tick may touch anything. So the warps of a block hand theirs
in, and some of the warps run them, with all lanes at work: first the *crowds*,
robots that may touch others, from as many warps at a time as fit into one;
then the lone robots at walls.

What a lane must know of other robots lies in shared memory, a row per quantity.
Robots at walls are each solved by their lane. Two lanes look for the contact
of each pair that may touch, one from each body. Then the warp sweeps over all
its contacts, a lane per contact: contacts of different trials at the same time,
and contacts of a trial at the same time if they share no robot.

Pairs are coloured once and for all, like the rounds of a tournament: pairs of a
colour share no robot. A contact's *step* is the place of its colour among those
that occur in its trial; the trial's walls come after all of its pairs. So the
order of the sweeps, and every bit of the result, is a matter of the trial alone.
"""

import numpy as np

from swarmbo.engine.cpu_physics import _DRIFT, _MARGIN
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
# Looser than on the CPU, as sweeps cost more here: ARGoS's contacts are met with a wide margin.
SWEEPS = 4  # over the contacts, at the most
SETTLED = F(2e-4)  # m/s, error of a contact's velocity that may remain
DRIFT = _DRIFT
MARGIN = _MARGIN
UNTOUCHED = F(1e30)

# Rows of a robot's state in shared memory.
(
    X,  # m
    Y,
    COS,
    SIN,
    UX,  # m/s, commanded
    UY,
    TURN,  # rad/s, commanded
    OLD_TURN,  # rad/s, of the tick before
    QX,  # m/s, velocity with the contacts' impulses but without the motor's
    QY,
    WALL_X_N,  # m/s, impulse of the wall across x on a crowded robot, and along that wall
    WALL_X_T,
    WALL_Y_N,
    WALL_Y_T,
    ROBOT_ROWS,
) = range(15)
PATH_X, PATH_Y = QX, QY  # m, without contact, before the sub-steps
TURNED = OLD_TURN  # rad, likewise
MOVED_X, MOVED_Y = X, Y  # m, after the sub-steps; and QX, QY the velocity

# Rows of a robot's whole numbers.
CROWDED, AT_WALL, FLAG_ROWS = range(3)

# The numbers of a contact, in the arena's frame.
NORMAL_X, NORMAL_Y, DEMAND, SLIDE, IMPULSE_N, IMPULSE_T, CONTACT_SIZE = range(7)

# What a warp counts: of its own robots the pairs near each other, those that may touch, the
# robots in crowds and the lone ones at walls; of those that it runs the contacts and their steps.
NEAR, CLOSE, CROWD, WALLS, CONTACTS, STEPS, COUNTERS = range(7)

# Rows of the body's table, the edges and vertices one and a half times around.
EDGE_X, EDGE_Y, EDGE_OFFSET, VERTEX_X, VERTEX_Y, BODY_ROWS = range(6)
AROUND = 14

# Rows of what pairs remember from sub-step to sub-step.
PUSH_X, PUSH_Y, MEMORY_ROWS = range(3)


@device
def pair_entry(a, b, colour, number):
    """A pair of robots of a warp, its colour and its number in the warp, as one word."""
    return U(a | ((b & U(31)) << U(9)) | (colour << U(14)) | (number << U(20)))


@device
def robots_of(entry):
    """The robots A and B of a pair or contact, as places in the block."""
    a = entry & U(511)
    return a, (a & U(480)) | ((entry >> U(9)) & U(31))


@device
def place_of(entry):
    """The colour of a pair, or the step of a contact."""
    return (entry >> U(14)) & U(63)


@device
def number_of(entry):
    """The number of a pair in its warp; of a contact with a wall, 0 (across x) or 1."""
    return entry >> U(20)


@device
def memory_of(world, entry):
    """Where a pair's memory is."""
    room = world.robots * (world.robots - 1) // 2 * (LANES // world.robots)
    return ((entry & U(511)) >> U(5)) * U(room) + number_of(entry)


@device
def trial_of(world, a):
    """The number of a robot's trial in the block, of 32 per warp."""
    return (a & U(480)) | U((a & U(31)) // U(world.robots))


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


# --- robots against robots ---------------------------------------------------------------------


@device
def _first_impulse(gap, now, limit):
    """A first guess for a contact's normal impulse: motors that push with full force."""
    return on.greatest(limit + now, F(0)) if gap > F(0) else F(0)


@device
def contact_at(shared, k):
    """Where the numbers of a contact of the warp begin."""
    return shared.first_contact + U(CONTACT_SIZE) * U(k)


@device
def _add_contact(shared, entry, nx, ny, demand, slide, cn, ct):
    """Append a contact to the warp's list."""
    contacts = shared.contacts
    k = U(add_to(shared.counters, (U(CONTACTS), shared.warp), J(1)))
    if k < U(shared.entries.size):
        shared.entries[k] = entry
        at = contact_at(shared, k)
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
    q = memory_of(world, entry)
    push_x = memory[PUSH_X, q]
    push_y = memory[PUSH_Y, q]
    cn = on.greatest(nx * push_x + ny * push_y, F(0))
    ct = nx * push_y - ny * push_x
    if push_x == UNTOUCHED:
        gap = demand - nx * (robots[UX, a] - robots[UX, b]) - ny * (robots[UY, a] - robots[UY, b])
        now = demand - nx * (robots[QX, a] - robots[QX, b]) - ny * (robots[QY, a] - robots[QY, b])
        cn = _first_impulse(gap, F(0.5) * now, world.limit)
        ct = F(0)
    shared.flags[CROWDED, a] = J(1)
    shared.flags[CROWDED, b] = J(1)
    set_bits(shared.colours, trial_of(world, a), U(U(1) << place_of(entry)))
    _add_contact(shared, entry, nx, ny, demand, slide, cn, ct)


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
def _find_contact(world, shared, entry, windows, side, is_pair, scratch, lane):
    """Look for the contact of a pair; return whether there is one.

    By two lanes side by side: one per body, `side` 0 and 1. As
    `formulas.facing_contact`, each lane with its own body's edges and the other
    body's vertices.
    """
    robots = shared.robots
    body = shared.body
    a, b = robots_of(entry)
    is_a = side == U(0)
    own = a if is_a else b
    other = b if is_a else a
    ox = robots[X, other] - robots[X, own]
    oy = robots[Y, other] - robots[Y, own]
    reach = F(2) * world.radius
    is_near = is_pair and ox * ox + oy * oy < reach * reach
    q = memory_of(world, entry)
    touches = False
    if is_pair and not is_near:
        shared.memory[PUSH_X, q] = UNTOUCHED
    if any_lane(is_near, scratch, lane):
        c = robots[COS, own]
        s = robots[SIN, own]
        oc = robots[COS, other]
        os = robots[SIN, other]
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
        wb = robots[TURN, b]
        spin = robots[TURN, a] - wb
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
        if is_near and is_a:
            touches = separation <= F(0)
            if touches:
                demand = need + wb * across
                slide = spin * lever + wb * along
                _keep_contact(world, shared, entry, gx, gy, demand, slide)
            else:
                shared.memory[PUSH_X, q] = UNTOUCHED
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
        k = shared.pairs[U(task >> U(1)) if is_pair else U(0)]
        side = task & U(1)
        found |= _find_contact(
            world, shared, shared.close[k], shared.windows[k], side, is_pair, shared.scratch, lane
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
            cn = _first_impulse(demand_x - side_x * ux, demand_x - side_x * qx, world.limit)
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
            cn = _first_impulse(demand_y - side_y * uy, demand_y - side_y * qy, world.limit)
            ct = F(0)
        entry = pair_entry(t, t, U(32) + second, U(1))
        _add_contact(shared, entry, F(0), side_y, demand_y, -side_y * slide_y, cn, ct)
    else:
        robots[WALL_Y_N, t] = F(0)


@device
def _put_in_order(world, shared, count, lane):
    """Give every contact its step; return the number of steps."""
    entries = shared.entries
    k = lane
    while k < count:
        entry = entries[k]
        a, b = robots_of(entry)
        colour = place_of(entry)
        colours = shared.colours[trial_of(world, a)]
        before = colours if colour >= U(32) else colours & U((U(1) << colour) - U(1))
        step = bits_set(before) + (colour - U(32) if colour >= U(32) else U(0))
        entries[k] = pair_entry(a, b, step, number_of(entry))
        raise_to(shared.counters, (U(STEPS), shared.warp), J(step) + J(1))
        k = U(k + shared.lanes)
    sync()
    return shared.counters[STEPS, shared.warp]


@device
def _answer(world, robots, p, nx, ny):
    """A robot's velocity with its motor, and how it gives way, in a contact's frame."""
    qx = robots[QX, p]
    qy = robots[QY, p]
    ex = robots[UX, p] - qx
    ey = robots[UY, p] - qy
    inverse = inverse_root(on.greatest(ex * ex + ey * ey, F(1e-20)))
    hold = on.least(world.limit * inverse, F(1))
    vx = qx + hold * ex
    vy = qy + hold * ey
    ex *= inverse
    ey *= inverse
    nn, nt, tt = on.give(hold, ex * nx + ey * ny, ey * nx - ex * ny)
    return vx * nx + vy * ny, vy * nx - vx * ny, nn, nt, tt


@device
def _answers(world, shared, at, a, b, nx, ny):
    """The gaps of a contact and how its robots give way; see `formulas.impulse_step`."""
    robots = shared.robots
    v_n, v_t, nn, nt, tt = _answer(world, robots, a, nx, ny)
    if a != b:
        b_n, b_t, b_nn, b_nt, b_tt = _answer(world, robots, b, nx, ny)
        v_n -= b_n
        v_t -= b_t
        nn += b_nn
        nt += b_nt
        tt += b_tt
    contacts = shared.contacts
    return contacts[at + U(DEMAND)] - v_n, -contacts[at + U(SLIDE)] - v_t, nn, nt, tt


@device
def _push(robots, a, b, nx, ny, cn, ct):
    """Add the impulse (cn along the normal, ct along its left) to A and its opposite to B."""
    x = cn * nx - ct * ny
    y = cn * ny + ct * nx
    robots[QX, a] += x
    robots[QY, a] += y
    if a != b:
        robots[QX, b] -= x
        robots[QY, b] -= y


@device
def _correct(world, shared, k, entry):
    """One Newton step for a contact, as if the impulses of the others were right.

    Returns whether it was wrong by more than may remain; else nothing is done.
    """
    contacts = shared.contacts
    a, b = robots_of(entry)
    at = contact_at(shared, k)
    nx = contacts[at + U(NORMAL_X)]
    ny = contacts[at + U(NORMAL_Y)]
    cn = contacts[at + U(IMPULSE_N)]
    ct = contacts[at + U(IMPULSE_T)]
    friction = world.wall_friction if a == b else world.body_friction
    gap_n, gap_t, nn, nt, tt = _answers(world, shared, at, a, b, nx, ny)
    wrong = on.contact_error(gap_n, gap_t, friction, cn, ct) > SETTLED
    if wrong:
        new_n, new_t = on.impulse_step(gap_n, gap_t, nn, nt, tt, friction, cn, ct)
        _push(shared.robots, a, b, nx, ny, new_n - cn, new_t - ct)
        contacts[at + U(IMPULSE_N)] = new_n
        contacts[at + U(IMPULSE_T)] = new_t
    return wrong


@device
def _begin(shared, count, steps, lane):
    """Push the robots by the impulses that the contacts begin with."""
    contacts = shared.contacts
    for step in range(U(steps)):
        k = lane
        while k < count:
            entry = shared.entries[k]
            if place_of(entry) == step:
                a, b = robots_of(entry)
                at = contact_at(shared, k)
                _push(
                    shared.robots,
                    a,
                    b,
                    contacts[at + U(NORMAL_X)],
                    contacts[at + U(NORMAL_Y)],
                    contacts[at + U(IMPULSE_N)],
                    contacts[at + U(IMPULSE_T)],
                )
            k = U(k + shared.lanes)
        sync()


@device
def _remember(world, shared, k):
    """Keep the impulse of a contact for the next sub-step."""
    contacts = shared.contacts
    entry = shared.entries[k]
    a, b = robots_of(entry)
    at = contact_at(shared, k)
    cn = contacts[at + U(IMPULSE_N)]
    ct = contacts[at + U(IMPULSE_T)]
    if a != b:
        nx = contacts[at + U(NORMAL_X)]
        ny = contacts[at + U(NORMAL_Y)]
        q = memory_of(world, entry)
        shared.memory[PUSH_X, q] = nx * cn - ny * ct
        shared.memory[PUSH_Y, q] = ny * cn + nx * ct
    else:
        row = U(WALL_X_N) + U(2) * number_of(entry)
        shared.robots[row, a] = cn
        shared.robots[row + U(1), a] = ct


@device
def solve(world, shared, lane):
    """Sweep over all contacts until they rest, and keep their impulses."""
    entries = shared.entries
    count = min(U(shared.counters[CONTACTS, shared.warp]), U(entries.size))
    steps = _put_in_order(world, shared, count, lane)
    _begin(shared, count, steps, lane)
    passes = J(SWEEPS) * steps
    step = J(0)
    rests = J(0)  # steps in a row in which no contact was wrong
    while passes > J(0) and rests < steps:
        found = False
        k = lane
        while k < count:
            entry = entries[k]
            if J(place_of(entry)) == step:
                found |= _correct(world, shared, k, entry)
            k = U(k + shared.lanes)
        sync()
        rests = J(0) if any_lane(found, shared.scratch, lane) else rests + J(1)
        step = J(0) if step + J(1) == steps else step + J(1)
        passes -= J(1)
    k = lane
    while k < count:
        _remember(world, shared, k)
        k = U(k + shared.lanes)


@device
def substeps(world, shared, group, lane):
    """Move a group of robots through the sub-steps of a tick; see `gather`."""
    members, p, count = group
    robots = shared.robots
    flags = shared.flags
    here = J(lane) < members
    at_wall = here and flags[AT_WALL, p] != J(0)
    in_crowd = here and flags[CROWDED, p] != J(0)
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
        if count > J(0):
            if in_crowd:
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
                crowded = in_crowd and flags[CROWDED, p] != J(0)
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


# --- before the sub-steps ----------------------------------------------------------------------


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
def gather(shared, number, crowd, lane):
    """What a warp runs at a time: a group of robots that their own warps handed in.

    First come the crowds of the warps, then the lone robots at walls; as many
    warps in a row make a group as have `crowd` robots. Returns (robots in group
    `number`, none if it does not exist; this lane's robot; pairs in `shared.pairs`).
    """
    counters = shared.counters
    room = J(shared.pairs.shape[0])
    group = J(-1)
    size = J(crowd)  # of that group, so far
    links = J(0)
    members = J(0)
    pairs = J(0)
    p = shared.warp * U(LANES) + lane
    unit = U(0)
    while unit < U(2) * shared.warps and group <= number:
        sync()  # also keeps the compiler from making copies of the loop
        alone = unit >= shared.warps
        w = unit - shared.warps if alone else unit
        more = counters[WALLS if alone else CROWD, w]
        more_links = J(0) if alone else counters[CLOSE, w]
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
                    p = shared.members[w * U(LANES) + U(J(31) - place if alone else place)]
                k = lane
                while k < U(more_links):
                    shared.pairs[U(pairs) + k] = w * U(room) + k
                    k = U(k + shared.lanes)
                members += more
                pairs += more_links
        unit += U(1)
    sync()
    return members, p, pairs
