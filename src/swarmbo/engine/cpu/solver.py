"""The impulses between robots that touch on the CPU, by Newton steps.

The steps start from the impulses of the sub-step before. Lone pairs, two thirds
of all, take two steps, eight pairs at a time. Robots that touch several others
are solved by sweeps: a step for every contact whose velocities are wrong. Walls
are no contacts of their own: a robot answers to an impulse with its motor and
with the walls that it touches, in closed form.
"""

from swarmbo.compilation import formula
from swarmbo.engine.cpu.blocks import (
    CROWDED,
    DEMAND_X,
    DEMAND_Y,
    EIGHT,
    GIVE_XX,
    GIVE_XY,
    GIVE_YY,
    L_A,
    L_AT_X,
    L_B,
    L_DEMAND,
    L_ERROR,
    L_GAP,
    L_N,
    L_NX,
    L_NY,
    L_QX,
    L_QY,
    L_SIDE,
    L_SLIDE,
    L_SLIP,
    L_T,
    L_UX,
    L_UY,
    L_VAX,
    L_VAY,
    L_VBX,
    L_VBY,
    L_XX,
    L_XY,
    L_YY,
    LONE_BLOCK,
    QX,
    QY,
    SIDE_X,
    SIDE_Y,
    SLIDE_X,
    SLIDE_Y,
    UX,
    UY,
    VX,
    VY,
    ZERO,
)
from swarmbo.engine.formulas import (
    FAR,
    F,
    I,
    contact_error,
    give,
    impulse_step,
    in_frame,
    pull,
    wall_answer,
)

_SWEEPS = 4  # over the contacts, at the most
_SETTLED = F(2e-4)  # m/s, error of a contact's velocity that may remain
_EXACT = F(1e-6)  # m/s, likewise that of a lone pair before its steps, which cost nothing more


@formula
def _sort(work, contacts):
    """Sort the contacts into those of lone pairs, of lone pairs at walls, and others.

    A lone pair touches no third robot, and neither of the two touches two walls.
    Their numbers are listed in the rows of `work.kind`; returns how many there are.
    """
    active = work.active
    free = ZERO
    walled = ZERO
    others = ZERO
    for k in range(I(contacts)):
        a = I(work.contact_place[k, 0])
        b = I(work.contact_place[k, 1])
        lone = active[a + CROWDED] + active[b + CROWDED] < F(3)
        a_x = active[a + DEMAND_X] > -FAR
        a_y = active[a + DEMAND_Y] > -FAR
        b_x = active[b + DEMAND_X] > -FAR
        b_y = active[b + DEMAND_Y] > -FAR
        lone = lone & (not (a_x & a_y)) & (not (b_x & b_y))
        at_wall = a_x | a_y | b_x | b_y
        work.kind[0, free] = k
        work.kind[1, walled] = k
        work.kind[2, others] = k
        free += I(lone & (not at_wall))
        walled += I(lone & at_wall)
        others += I(not lone)
    return free, walled, others


# --- lone pairs --------------------------------------------------------------------------------


@formula
def _load_robot(active, lone, p, row, at_walls):
    lone[row + L_QX] = active[p + QX]
    lone[row + L_QY] = active[p + QY]
    lone[row + L_UX] = active[p + UX]
    lone[row + L_UY] = active[p + UY]
    if at_walls:
        at_x = active[p + DEMAND_X] > -FAR
        lone[row + L_AT_X] = F(1) if at_x else F(0)
        lone[row + L_SIDE] = active[p + SIDE_X] if at_x else active[p + SIDE_Y]
        lone[row + L_DEMAND] = active[p + DEMAND_X] if at_x else active[p + DEMAND_Y]
        lone[row + L_SLIDE] = active[p + SLIDE_X] if at_x else active[p + SLIDE_Y]


@formula
def _load_lone(work, count, first, kind, at_walls):
    """Copy what is known of lone pairs into blocks of 8."""
    active = work.active
    lone = work.lone
    contact = work.contact
    for number in range(count):
        k = I(work.kind[kind, number])
        p = first + (number // EIGHT) * LONE_BLOCK + number % EIGHT
        lone[p + L_NX] = contact[k, 0]
        lone[p + L_NY] = contact[k, 1]
        lone[p + L_GAP] = contact[k, 2]
        lone[p + L_SLIP] = contact[k, 3]
        lone[p + L_N] = contact[k, 4]
        lone[p + L_T] = contact[k, 5]
        _load_robot(active, lone, I(work.contact_place[k, 0]), p + L_A, at_walls)
        _load_robot(active, lone, I(work.contact_place[k, 1]), p + L_B, at_walls)


@formula
def _respond(qx, qy, ux, uy, limit):
    """The velocity of a robot, and (xx, xy, yy) how that gives way to an impulse."""
    vx, vy, hold, ex, ey = pull(qx, qy, ux, uy, limit)
    xx, xy, yy = give(hold, ex, ey)
    return vx, vy, xx, xy, yy


@formula
def _respond_at_wall(qx, qy, ux, uy, wall, friction, limit):
    """The same for a robot at a wall (is it across x, +1 or -1, demand, slide)."""
    at_x, side, demand, slide = wall
    qn = side * (qx if at_x else qy)
    qt = qy if at_x else qx
    un = side * (ux if at_x else uy)
    ut = uy if at_x else ux
    vn, vt, nn, nt, tt = wall_answer(qn, qt, un, ut, demand, slide, friction, limit)
    nt = side * nt
    vn = side * vn
    return (
        vn if at_x else vt,
        vt if at_x else vn,
        nn if at_x else tt,
        nt,
        tt if at_x else nn,
    )


@formula
def _pushed(lone, row, nx, ny, cn, ct, at_walls, friction, limit):
    """`_respond` of one robot, as in `work.lone`, to the impulse (cn, ct)."""
    qx = lone[row + L_QX] + (cn * nx - ct * ny)
    qy = lone[row + L_QY] + (cn * ny + ct * nx)
    ux = lone[row + L_UX]
    uy = lone[row + L_UY]
    if at_walls:
        wall = (
            lone[row + L_AT_X] > F(0),
            lone[row + L_SIDE],
            lone[row + L_DEMAND],
            lone[row + L_SLIDE],
        )
        return _respond_at_wall(qx, qy, ux, uy, wall, friction, limit)
    return _respond(qx, qy, ux, uy, limit)


@formula
def _lone_step(world, lone, i, cn, ct, at_walls):
    """A Newton step for a lone pair, unless its velocities are exact.

    Returns the new impulse, and the velocities and the error before the step.
    """
    nx = lone[i + L_NX]
    ny = lone[i + L_NY]
    friction = world.body_friction
    ax, ay, a_xx, a_xy, a_yy = _pushed(
        lone, i + L_A, nx, ny, cn, ct, at_walls, world.wall_friction, world.limit
    )
    bx, by, b_xx, b_xy, b_yy = _pushed(
        lone, i + L_B, nx, ny, -cn, -ct, at_walls, world.wall_friction, world.limit
    )
    gap_n = lone[i + L_GAP] - ((ax - bx) * nx + (ay - by) * ny)
    gap_t = -lone[i + L_SLIP] - ((ay - by) * nx - (ax - bx) * ny)
    error = contact_error(gap_n, gap_t, friction, cn, ct)
    nn, nt, tt = in_frame(a_xx + b_xx, a_xy + b_xy, a_yy + b_yy, nx, ny)
    new_n, new_t = impulse_step(gap_n, gap_t, nn, nt, tt, friction, cn, ct)
    share = F(1) if error > _EXACT else F(0)
    return cn + share * (new_n - cn), ct + share * (new_t - ct), ax, ay, bx, by, error


@formula
def _solve_lone_block(world, work, base, at_walls):
    lone = work.lone
    for i in range(base, base + EIGHT):
        cn = lone[i + L_N]
        ct = lone[i + L_T]
        cn, ct, ax, ay, bx, by, error = _lone_step(world, lone, i, cn, ct, at_walls)
        cn, ct, ax, ay, bx, by, error = _lone_step(world, lone, i, cn, ct, at_walls)
        _, _, ax, ay, bx, by, error = _lone_step(world, lone, i, cn, ct, at_walls)
        lone[i + L_N] = cn
        lone[i + L_T] = ct
        lone[i + L_VAX] = ax
        lone[i + L_VAY] = ay
        lone[i + L_VBX] = bx
        lone[i + L_VBY] = by
        lone[i + L_ERROR] = error


@formula
def _store_lone(work, count, first, kind, others):
    """Copy the solutions back; those that are not at rest yet join the `others`."""
    active = work.active
    lone = work.lone
    contact = work.contact
    for number in range(count):
        k = I(work.kind[kind, number])
        p = first + (number // EIGHT) * LONE_BLOCK + number % EIGHT
        a = I(work.contact_place[k, 0])
        b = I(work.contact_place[k, 1])
        contact[k, 4] = lone[p + L_N]
        contact[k, 5] = lone[p + L_T]
        active[a + VX] = lone[p + L_VAX]
        active[a + VY] = lone[p + L_VAY]
        active[b + VX] = lone[p + L_VBX]
        active[b + VY] = lone[p + L_VBY]
        work.kind[2, others] = k
        others += I(lone[p + L_ERROR] > _SETTLED)
    return others


@formula
def _solve_lone(world, work, free, walled, others):
    walls_first = ((free + I(7)) // EIGHT) * LONE_BLOCK
    end = walls_first + ((walled + I(7)) // EIGHT) * LONE_BLOCK
    _load_lone(work, free, ZERO, 0, False)
    _load_lone(work, walled, walls_first, 1, True)
    for base in range(ZERO, walls_first, LONE_BLOCK):
        _solve_lone_block(world, work, base, False)
    for base in range(walls_first, end, LONE_BLOCK):
        _solve_lone_block(world, work, base, True)
    others = _store_lone(work, free, ZERO, 0, others)
    return _store_lone(work, walled, walls_first, 1, others)


# --- others ------------------------------------------------------------------------------------


@formula
def _push(active, p, nx, ny, cn, ct):
    """Add the impulse (cn along the normal, ct along its left) to a robot."""
    active[p + QX] += cn * nx - ct * ny
    active[p + QY] += cn * ny + ct * nx


@formula
def _respond_in_corner(active, p, friction, limit):
    """`_respond` of a robot at two walls: one of them may do alone, or both hold it."""
    qx = active[p + QX]
    qy = active[p + QY]
    ux = active[p + UX]
    uy = active[p + UY]
    side_x = active[p + SIDE_X]
    side_y = active[p + SIDE_Y]
    wall = (True, side_x, active[p + DEMAND_X], active[p + SLIDE_X])
    vx, vy, xx, xy, yy = _respond_at_wall(qx, qy, ux, uy, wall, friction, limit)
    if side_y * vy < active[p + DEMAND_Y]:
        wall = (False, side_y, active[p + DEMAND_Y], active[p + SLIDE_Y])
        vx, vy, xx, xy, yy = _respond_at_wall(qx, qy, ux, uy, wall, friction, limit)
        if side_x * vx < active[p + DEMAND_X]:
            vx = side_x * active[p + DEMAND_X]
            vy = side_y * active[p + DEMAND_Y]
            xx = xy = yy = F(0)
    return vx, vy, xx, xy, yy


@formula
def _answer(active, p, friction, limit):
    """Let a robot's motor, and walls that it touches, answer to the impulses on it."""
    at_x = active[p + DEMAND_X] > -FAR
    at_y = active[p + DEMAND_Y] > -FAR
    qx = active[p + QX]
    qy = active[p + QY]
    ux = active[p + UX]
    uy = active[p + UY]
    if not (at_x | at_y):
        vx, vy, xx, xy, yy = _respond(qx, qy, ux, uy, limit)
    elif not (at_x & at_y):
        wall = (
            at_x,
            active[p + SIDE_X] if at_x else active[p + SIDE_Y],
            active[p + DEMAND_X] if at_x else active[p + DEMAND_Y],
            active[p + SLIDE_X] if at_x else active[p + SLIDE_Y],
        )
        vx, vy, xx, xy, yy = _respond_at_wall(qx, qy, ux, uy, wall, friction, limit)
    else:
        vx, vy, xx, xy, yy = _respond_in_corner(active, p, friction, limit)
    active[p + VX] = vx
    active[p + VY] = vy
    active[p + GIVE_XX] = xx
    active[p + GIVE_XY] = xy
    active[p + GIVE_YY] = yy


@formula
def _sort_crowds(work, count):
    """List the robots of the `count` others by the walls that they touch: none, one or two.

    They are listed once, in the rows of `work.crowd`; returns how many there are.
    """
    active = work.active
    free = ZERO
    walled = ZERO
    cornered = ZERO
    for index in range(count):
        k = I(work.kind[2, index])
        for side in range(2):
            p = I(work.contact_place[k, side])
            new = active[p + CROWDED] > F(0)
            at_x = active[p + DEMAND_X] > -FAR
            at_y = active[p + DEMAND_Y] > -FAR
            active[p + CROWDED] = F(0)
            work.crowd[0, free] = p
            work.crowd[1, walled] = p
            work.crowd[2, cornered] = p
            free += I(new & (not (at_x | at_y)))
            walled += I(new & (at_x ^ at_y))
            cornered += I(new & at_x & at_y)
    return free, walled, cornered


@formula
def _answer_block(world, lone, base, at_walls):
    for i in range(base, base + world.block):
        vx, vy, xx, xy, yy = _pushed(
            lone, i + L_A, F(1), F(0), F(0), F(0), at_walls, world.wall_friction, world.limit
        )
        lone[i + L_VAX] = vx
        lone[i + L_VAY] = vy
        lone[i + L_XX] = xx
        lone[i + L_XY] = xy
        lone[i + L_YY] = yy


@formula
def _answer_alike(world, work, row, count, at_walls):
    """`_answer` of the robots in a row of `work.crowd`, eight at a time."""
    active = work.active
    lone = work.lone
    for number in range(count):
        i = (number // EIGHT) * LONE_BLOCK + number % EIGHT
        _load_robot(active, lone, I(work.crowd[row, number]), i + L_A, at_walls)
    for base in range(ZERO, ((count + I(7)) // EIGHT) * LONE_BLOCK, LONE_BLOCK):
        _answer_block(world, lone, base, at_walls)
    for number in range(count):
        i = (number // EIGHT) * LONE_BLOCK + number % EIGHT
        p = I(work.crowd[row, number])
        active[p + VX] = lone[i + L_VAX]
        active[p + VY] = lone[i + L_VAY]
        active[p + GIVE_XX] = lone[i + L_XX]
        active[p + GIVE_XY] = lone[i + L_XY]
        active[p + GIVE_YY] = lone[i + L_YY]


@formula
def _gaps(work, k, a, b):
    """Demanded minus present velocity of contact k along its normal and its tangent."""
    active = work.active
    nx = work.contact[k, 0]
    ny = work.contact[k, 1]
    vx = active[a + VX] - active[b + VX]
    vy = active[a + VY] - active[b + VY]
    return work.contact[k, 2] - (vx * nx + vy * ny), -work.contact[k, 3] - (vy * nx - vx * ny)


@formula
def _unsettled(work, count, friction):
    """List the `count` others whose velocities are wrong; return their number."""
    wrong = ZERO
    for index in range(count):
        k = I(work.kind[2, index])
        a = I(work.contact_place[k, 0])
        b = I(work.contact_place[k, 1])
        gap_n, gap_t = _gaps(work, k, a, b)
        error = contact_error(gap_n, gap_t, friction, work.contact[k, 4], work.contact[k, 5])
        work.todo[wrong] = k
        wrong += I(error > _SETTLED)
    return wrong


@formula
def _solve_one(world, work, k):
    """One Newton step for contact k, as if the impulses of the others were right."""
    active = work.active
    limit = world.limit
    friction = world.wall_friction
    a = I(work.contact_place[k, 0])
    b = I(work.contact_place[k, 1])
    nx = work.contact[k, 0]
    ny = work.contact[k, 1]
    cn = work.contact[k, 4]
    ct = work.contact[k, 5]
    xx = active[a + GIVE_XX] + active[b + GIVE_XX]
    xy = active[a + GIVE_XY] + active[b + GIVE_XY]
    yy = active[a + GIVE_YY] + active[b + GIVE_YY]
    nn, nt, tt = in_frame(xx, xy, yy, nx, ny)
    gap_n, gap_t = _gaps(work, k, a, b)
    new_n, new_t = impulse_step(gap_n, gap_t, nn, nt, tt, world.body_friction, cn, ct)
    work.contact[k, 4] = new_n
    work.contact[k, 5] = new_t
    _push(active, a, nx, ny, new_n - cn, new_t - ct)
    _answer(active, a, friction, limit)
    _push(active, b, nx, ny, cn - new_n, ct - new_t)
    _answer(active, b, friction, limit)


@formula
def _solve_others(world, work, count):
    """Sweep until all of the others rest."""
    active = work.active
    for index in range(count):
        k = I(work.kind[2, index])
        nx = work.contact[k, 0]
        ny = work.contact[k, 1]
        cn = work.contact[k, 4]
        ct = work.contact[k, 5]
        _push(active, I(work.contact_place[k, 0]), nx, ny, cn, ct)
        _push(active, I(work.contact_place[k, 1]), nx, ny, -cn, -ct)
    free, walled, cornered = _sort_crowds(work, count)
    _answer_alike(world, work, 0, free, False)
    _answer_alike(world, work, 1, walled, True)
    for number in range(cornered):
        _answer(active, I(work.crowd[2, number]), world.wall_friction, world.limit)
    for _ in range(_SWEEPS):
        end = _unsettled(work, count, world.body_friction)
        if end == ZERO:
            break
        for index in range(end):
            _solve_one(world, work, I(work.todo[index]))


@formula
def solve_contacts(world, work, contacts):
    """Find the robots' velocities; keep the impulses for the next sub-step."""
    free, walled, others = _sort(work, contacts)
    others = _solve_lone(world, work, free, walled, others)
    _solve_others(world, work, others)
    for k in range(contacts):
        nx = work.contact[k, 0]
        ny = work.contact[k, 1]
        cn = work.contact[k, 4]
        ct = work.contact[k, 5]
        pair = work.contact_pair[k]
        work.pair_touched[pair] = 1
        work.pair_impulse[pair, 0] = nx * cn - ny * ct
        work.pair_impulse[pair, 1] = ny * cn + nx * ct
