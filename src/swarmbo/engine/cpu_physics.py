"""Contact on the CPU: the sub-steps of a tick for the robots that may touch something.

These robots, the *active* lanes, are gathered in blocks of 8: `active` is one
flat array in which a block holds 8 numbers of each row below. So the loops
over a block become vector instructions, with nothing to be checked for
overlap. The *place* of an active lane is the index of its first number; its
entry in a row is active[place + ROW].

Lone robots at walls are solved a block at a time; robots that touch each other
are solved by sweeps over their contacts, a Newton step each, from the impulses
of the sub-step before.
"""

import numpy as np

from swarmbo.engine.compilation import formula
from swarmbo.engine.formulas import (
    FAR,
    F,
    I,
    contact_error,
    facing_contact,
    give,
    greatest,
    impulse_step,
    least,
    motor,
    pull,
    sector,
    small_turn,
    wall_contact,
    wall_velocity,
)
from swarmbo.engine.lanes import ACTIVE_ROWS, PAIR_ROWS, PARTNERS, SECTORS

(
    X,  # m, at the start of the tick
    Y,
    DX,  # m, moved since
    DY,
    COS,
    SIN,
    STEP_COS,  # of the turn in a sub-step
    STEP_SIN,
    VX,  # m/s
    VY,
    UX,  # m/s, commanded
    UY,
    TURN,  # rad/s, commanded
    SIDE_X,  # +1 or -1: which of the two walls across x is nearer
    SIDE_Y,
    DEMAND_X,  # m/s, of the wall across x; see formulas.wall_contact
    SLIDE_X,
    DEMAND_Y,
    SLIDE_Y,
    QX,  # m/s, velocity with the contacts' impulses but without the motor's
    QY,
    CROWDED,  # 1 when another robot touches it: solved by sweeps
    HOLD,  # of a crowded robot's motor, see formulas.pull
    PULL_X,
    PULL_Y,
    WALL_X_N,  # m/s, impulse of the wall across x on a crowded robot, and along that wall
    WALL_X_T,
    WALL_Y_N,
    WALL_Y_T,
    LANE,  # its number; -1 for none
) = (I(8 * row) for row in range(ACTIVE_ROWS))

# Likewise for the pairs that may touch: B in A's frame.
(
    P_X,  # m
    P_Y,
    P_COS,
    P_SIN,
    P_TURN_A,  # rad/s
    P_TURN_B,
    P_SEPARATION,  # m
    P_NORMAL_X,  # from B to A
    P_NORMAL_Y,
    P_DEMAND,  # m/s
    P_SLIDE,
    P_FACING_A,  # 30 rows: six edges and six vertices of A that face B, see lanes.World
) = (I(8 * row) for row in range(12))
P_FACING_B = P_FACING_A + I(8 * 30)

_BLOCK = I(8 * ACTIVE_ROWS)
_PAIR_BLOCK = I(8 * PAIR_ROWS)
_EIGHT = I(8)
_ZERO = I(0)
_MARGIN = F(0.002)  # m, for the curvature of paths within a tick
_DRIFT = F(0.04)  # m, from its own path that a robot may be pushed in a tick
_SWEEPS = 8  # over the contacts, at the most
_SETTLED = F(1e-4)  # m/s, error of a contact's velocity that may remain


@formula
def _place(number):
    """The place of the active lane of that number."""
    return I(number // 8) * _BLOCK + I(number % 8)


@formula
def _pair_index(pair):
    """Where a pair's numbers begin."""
    return I(pair // 8) * _PAIR_BLOCK + I(pair % 8)


@formula
def _activate(world, lanes, work, i, count):
    """Give lane i a place among the active ones, if it has none; return the new count."""
    active = work.active
    if work.slot[i] >= 0:
        return count
    p = _place(count)
    work.slot[i] = p
    active[p + LANE] = F(i)
    active[p + X] = F(lanes.x[i])
    active[p + Y] = F(lanes.y[i])
    active[p + DX] = F(0)
    active[p + DY] = F(0)
    active[p + COS] = lanes.cos[i]
    active[p + SIN] = lanes.sin[i]
    active[p + VX] = work.old_vx[i]
    active[p + VY] = work.old_vy[i]
    active[p + UX] = lanes.vx[i]
    active[p + UY] = lanes.vy[i]
    active[p + TURN] = lanes.turn[i]
    c, s = small_turn(world.dt * work.old_turn[i])
    active[p + STEP_COS] = c
    active[p + STEP_SIN] = s
    active[p + SIDE_X] = F(1) if F(lanes.x[i]) < F(0.5) * world.width else F(-1)
    active[p + SIDE_Y] = F(1) if F(lanes.y[i]) < F(0.5) * world.height else F(-1)
    active[p + DEMAND_X] = -FAR
    active[p + DEMAND_Y] = -FAR
    active[p + CROWDED] = F(0)
    active[p + WALL_X_N] = lanes.wall_push[i, 0]
    active[p + WALL_X_T] = lanes.wall_push[i, 1]
    active[p + WALL_Y_N] = lanes.wall_push[i, 2]
    active[p + WALL_Y_T] = lanes.wall_push[i, 3]
    return count + 1


@formula
def _fill_up(world, active, count):
    """Let the places up to a whole block rest in the middle of the arena; return the new count."""
    end = (count + 7) // 8 * 8
    for number in range(count, end):
        p = _place(number)
        for row in range(ACTIVE_ROWS):
            active[p + I(8 * row)] = F(0)
        active[p + X] = F(0.5) * world.width
        active[p + Y] = F(0.5) * world.height
        active[p + COS] = F(1)
        active[p + STEP_COS] = F(1)
        active[p + SIDE_X] = F(1)
        active[p + SIDE_Y] = F(1)
        active[p + LANE] = F(-1)
    return end


@formula
def _recall(lanes, work, pair):
    """Begin with the impulse that the two robots exchanged at the end of the tick before."""
    i = work.pair_place[pair, 0]
    j = work.pair_place[pair, 1]
    work.pair_touched[pair] = 0
    for k in range(PARTNERS):
        if lanes.partners[i, k] == j:
            work.pair_touched[pair] = 1
            work.pair_impulse[pair, 0] = lanes.pair_push[i, k, 0]
            work.pair_impulse[pair, 1] = lanes.pair_push[i, k, 1]


@formula
def _remember(lanes, work, count, pairs):
    """Keep the impulses of the contacts for the next tick."""
    active = work.active
    for number in range(count):
        p = _place(number)
        if active[p + LANE] < F(0):
            continue
        i = I(active[p + LANE])
        lanes.wall_push[i, 0] = active[p + WALL_X_N]
        lanes.wall_push[i, 1] = active[p + WALL_X_T]
        lanes.wall_push[i, 2] = active[p + WALL_Y_N]
        lanes.wall_push[i, 3] = active[p + WALL_Y_T]
        for k in range(PARTNERS):
            lanes.partners[i, k] = -1
    for pair in range(pairs):
        if work.pair_touched[pair] != 0:
            i = I(active[I(work.pair_place[pair, 0]) + LANE])
            for k in range(PARTNERS):
                if lanes.partners[i, k] < 0:
                    lanes.partners[i, k] = np.int32(active[I(work.pair_place[pair, 1]) + LANE])
                    lanes.pair_push[i, k, 0] = work.pair_impulse[pair, 0]
                    lanes.pair_push[i, k, 1] = work.pair_impulse[pair, 1]
                    break


@formula
def gather(world, lanes, work, near):
    """Find the lanes and pairs that may touch something in this tick.

    Returns the numbers of places that are taken by all, by those in corners, and by
    those in corners or at walls, and the number of pairs.
    """
    reach = world.radius + _MARGIN
    width = world.width
    height = world.height
    for i in range(lanes.x.size):
        work.slot[i] = -1
        x = F(lanes.x[i])
        y = F(lanes.y[i])
        end_x = x + work.path_x[i]
        end_y = y + work.path_y[i]
        gap_x = least(least(x, end_x), width - greatest(x, end_x))
        gap_y = least(least(y, end_y), height - greatest(y, end_y))
        work.wall_gap[i] = least(gap_x, gap_y)
        work.corner_gap[i] = greatest(gap_x, gap_y)
    pairs = 0
    for index in range(near):
        i = work.near[index, 0]
        j = work.near[index, 1]
        dx = F(lanes.x[j] - lanes.x[i])
        dy = F(lanes.y[j] - lanes.y[i])
        mx = work.path_x[j] - work.path_x[i]
        my = work.path_y[j] - work.path_y[i]
        # Closer than the discs around the bodies, at some time on straight paths?
        reach2 = F(2) * reach + np.sqrt(mx * mx + my * my)
        if dx * dx + dy * dy < reach2 * reach2:
            # Pushed, they may leave their paths.
            work.wall_gap[i] -= _DRIFT
            work.wall_gap[j] -= _DRIFT
            work.corner_gap[i] -= _DRIFT
            work.corner_gap[j] -= _DRIFT
            work.pair_place[pairs, 0] = i
            work.pair_place[pairs, 1] = j
            pairs += 1
    # Those in corners come first, then those at walls, then those near others alone. Each kind has
    # blocks of its own: so a lane's numbers do not depend on which other lanes there are.
    count = 0
    for i in range(world.robots * world.trials):
        if work.corner_gap[i] < reach:
            count = _activate(world, lanes, work, i, count)
    count = in_corners = _fill_up(world, work.active, count)
    for i in range(world.robots * world.trials):
        if work.wall_gap[i] < reach:
            count = _activate(world, lanes, work, i, count)
    count = at_walls = _fill_up(world, work.active, count)
    for pair in range(pairs):
        count = _activate(world, lanes, work, work.pair_place[pair, 0], count)
        count = _activate(world, lanes, work, work.pair_place[pair, 1], count)
    count = _fill_up(world, work.active, count)
    for pair in range(pairs):
        _recall(lanes, work, pair)
        _face_each_other(
            world, lanes, work, pair, work.pair_place[pair, 0], work.pair_place[pair, 1]
        )
        a = work.slot[work.pair_place[pair, 0]]
        b = work.slot[work.pair_place[pair, 1]]
        work.pair_place[pair, 0] = a
        work.pair_place[pair, 1] = b
        p = _pair_index(pair)
        work.pair[p + P_TURN_A] = work.active[I(a) + TURN]
        work.pair[p + P_TURN_B] = work.active[I(b) + TURN]
    return count, in_corners, at_walls, pairs


@formula
def _move(active, base, dt):
    """A sub-step's motion: positions with the old velocity, headings with the turn rate."""
    for i in range(base, base + _EIGHT):
        active[i + DX] += dt * active[i + VX]
        active[i + DY] += dt * active[i + VY]
        c = active[i + COS]
        s = active[i + SIN]
        active[i + COS] = c * active[i + STEP_COS] - s * active[i + STEP_SIN]
        active[i + SIN] = s * active[i + STEP_COS] + c * active[i + STEP_SIN]
        active[i + QX] = active[i + VX]
        active[i + QY] = active[i + VY]
        active[i + CROWDED] = F(0)


@formula
def _run_freely(world, active, base):
    limit = world.limit
    for i in range(base, base + _EIGHT):
        vx, vy = motor(active[i + VX], active[i + VY], active[i + UX], active[i + UY], limit)
        active[i + VX] = vx
        active[i + VY] = vy


@formula
def _meet_nearest_wall(world, active, base):
    """New velocities of a block by the nearest wall alone."""
    width = world.width
    height = world.height
    vertices_x = world.vertices_x
    vertices_y = world.vertices_y
    limit = world.limit
    friction = world.wall_friction
    for i in range(base, base + _EIGHT):
        side_x = active[i + SIDE_X]
        side_y = active[i + SIDE_Y]
        x = active[i + X] + active[i + DX]
        y = active[i + Y] + active[i + DY]
        gap_x = x if side_x > F(0) else width - x
        gap_y = y if side_y > F(0) else height - y
        at_x = gap_x < gap_y
        side = side_x if at_x else side_y
        c = active[i + COS]
        s = active[i + SIN]
        turn = active[i + TURN]
        demand, slide = wall_contact(
            vertices_x,
            vertices_y,
            (
                side * (c if at_x else s),
                side * (-s if at_x else c),
                s if at_x else c,
                c if at_x else -s,
            ),
            gap_x if at_x else gap_y,
            side * (turn if at_x else -turn),
        )
        vx = active[i + VX]
        vy = active[i + VY]
        ux = active[i + UX]
        uy = active[i + UY]
        new_n, new_t = wall_velocity(
            side * (vx if at_x else vy),
            vy if at_x else vx,
            side * (ux if at_x else uy),
            uy if at_x else ux,
            demand,
            slide,
            friction,
            limit,
        )
        active[i + DEMAND_X] = demand if at_x else -FAR
        active[i + DEMAND_Y] = -FAR if at_x else demand
        active[i + SLIDE_X] = slide
        active[i + SLIDE_Y] = slide
        active[i + VX] = side * new_n if at_x else new_t
        active[i + VY] = new_t if at_x else side * new_n


@formula
def _meet_corners(world, active, base):
    """New velocities of a block by both walls that are near.

    One of the walls may do alone; else the robot is in the corner, and both
    components of its velocity are what the walls demand.
    """
    width = world.width
    height = world.height
    vertices_x = world.vertices_x
    vertices_y = world.vertices_y
    limit = world.limit
    friction = world.wall_friction
    for i in range(base, base + _EIGHT):
        side_x = active[i + SIDE_X]
        side_y = active[i + SIDE_Y]
        x = active[i + X] + active[i + DX]
        y = active[i + Y] + active[i + DY]
        gap_x = x if side_x > F(0) else width - x
        gap_y = y if side_y > F(0) else height - y
        c = active[i + COS]
        s = active[i + SIN]
        turn = active[i + TURN]
        vx = active[i + VX]
        vy = active[i + VY]
        ux = active[i + UX]
        uy = active[i + UY]
        frame = (side_x * c, -side_x * s, s, c)
        demand_x, slide_x = wall_contact(vertices_x, vertices_y, frame, gap_x, side_x * turn)
        frame = (side_y * s, side_y * c, c, -s)
        demand_y, slide_y = wall_contact(vertices_x, vertices_y, frame, gap_y, -side_y * turn)
        ax, ay = wall_velocity(side_x * vx, vy, side_x * ux, uy, demand_x, slide_x, friction, limit)
        by, bx = wall_velocity(side_y * vy, vx, side_y * uy, ux, demand_y, slide_y, friction, limit)
        x_does = side_y * ay >= demand_y
        y_does = (side_x * bx >= demand_x) & (not x_does)
        new_x = bx if y_does else side_x * ax
        new_y = ay if x_does else side_y * demand_y
        new_y = side_y * by if y_does else new_y
        active[i + DEMAND_X] = demand_x
        active[i + DEMAND_Y] = demand_y
        active[i + SLIDE_X] = slide_x
        active[i + SLIDE_Y] = slide_y
        active[i + VX] = new_x
        active[i + VY] = new_y


# --- robots against robots ---------------------------------------------------------------------


@formula
def _relate(work, pairs):
    """Bring the pairs up to date: B in A's frame."""
    active = work.active
    for pair in range(pairs):
        a = I(work.pair_place[pair, 0])
        b = I(work.pair_place[pair, 1])
        dx = active[b + X] - active[a + X] + (active[b + DX] - active[a + DX])
        dy = active[b + Y] - active[a + Y] + (active[b + DY] - active[a + DY])
        ca = active[a + COS]
        sa = active[a + SIN]
        cb = active[b + COS]
        sb = active[b + SIN]
        p = _pair_index(pair)
        work.pair[p + P_X] = ca * dx + sa * dy
        work.pair[p + P_Y] = ca * dy - sa * dx
        work.pair[p + P_COS] = ca * cb + sa * sb
        work.pair[p + P_SIN] = ca * sb - sa * cb


@formula
def _face_each_other(world, lanes, work, pair, i, j):
    """Choose the edges and vertices of two lanes that face each other in this tick."""
    half = F(0.5)
    dx = F(lanes.x[j] - lanes.x[i]) + half * (work.path_x[j] - work.path_x[i])
    dy = F(lanes.y[j] - lanes.y[i]) + half * (work.path_y[j] - work.path_y[i])
    p = _pair_index(pair)
    for side in range(2):
        lane = j if side else i
        turn = half * work.turned[lane]
        c = lanes.cos[lane] - turn * lanes.sin[lane]
        s = lanes.sin[lane] + turn * lanes.cos[lane]
        way = sector(c * dx + s * dy, c * dy - s * dx)
        number = I(way * F(SECTORS / 4)) & I(SECTORS - 1)
        row = p + (P_FACING_B if side else P_FACING_A)
        for k in range(30):
            work.pair[row + I(8 * k)] = world.facing[number, k]
        dx = -dx
        dy = -dy


@formula
def _facing_edge(pair, row):
    return pair[row], pair[row + I(8)], pair[row + I(16)]


@formula
def _facing_edges(pair, row):
    return (
        _facing_edge(pair, row),
        _facing_edge(pair, row + I(24)),
        _facing_edge(pair, row + I(48)),
        _facing_edge(pair, row + I(72)),
        _facing_edge(pair, row + I(96)),
        _facing_edge(pair, row + I(120)),
    )


@formula
def _six(pair, row):
    return (
        pair[row],
        pair[row + I(8)],
        pair[row + I(16)],
        pair[row + I(24)],
        pair[row + I(32)],
        pair[row + I(40)],
    )


@formula
def _facing_points(pair, row):
    return _six(pair, row + I(144)), _six(pair, row + I(192))


@formula
def _hold_against(work, base):
    """Find the contacts of a block of pairs."""
    pair = work.pair
    for i in range(base, base + _EIGHT):
        separation, nx, ny, demand, slide = facing_contact(
            _facing_edges(pair, i + P_FACING_A),
            _facing_points(pair, i + P_FACING_A),
            _facing_edges(pair, i + P_FACING_B),
            _facing_points(pair, i + P_FACING_B),
            pair[i + P_X],
            pair[i + P_Y],
            pair[i + P_COS],
            pair[i + P_SIN],
            pair[i + P_TURN_A],
            pair[i + P_TURN_B],
        )
        pair[i + P_SEPARATION] = separation
        pair[i + P_NORMAL_X] = nx
        pair[i + P_NORMAL_Y] = ny
        pair[i + P_DEMAND] = demand
        pair[i + P_SLIDE] = slide


@formula
def _write_contact(work, k, a, b, nx, ny, demand, slide, friction, cn, ct):
    work.contact_place[k, 0] = a
    work.contact_place[k, 1] = b
    work.contact[k, 0] = nx
    work.contact[k, 1] = ny
    work.contact[k, 2] = demand
    work.contact[k, 3] = slide
    work.contact[k, 4] = friction
    work.contact[k, 5] = cn
    work.contact[k, 6] = ct


@formula
def _first_impulse(active, a, b, nx, ny, demand, limit):
    """A first guess for a contact's normal impulse: motors that push with full force."""
    gap = demand - (nx * active[a + UX] + ny * active[a + UY])
    now = demand - (nx * active[a + QX] + ny * active[a + QY])
    if b != a:
        gap += nx * active[b + UX] + ny * active[b + UY]
        now = F(0.5) * (now + nx * active[b + QX] + ny * active[b + QY])
    return greatest(limit + now, F(0)) if gap > F(0) else F(0)


@formula
def _collect_pairs(world, work, pairs):
    """List the contacts between robots."""
    active = work.active
    for base in range(_ZERO, I((pairs + 7) // 8) * _PAIR_BLOCK, _PAIR_BLOCK):
        _hold_against(work, base)
    contacts = 0
    for pair in range(pairs):
        p = _pair_index(pair)
        a = I(work.pair_place[pair, 0])
        b = I(work.pair_place[pair, 1])
        if work.pair[p + P_SEPARATION] > F(0):
            work.pair_touched[pair] = 0
            continue
        ca = active[a + COS]
        sa = active[a + SIN]
        nx = ca * work.pair[p + P_NORMAL_X] - sa * work.pair[p + P_NORMAL_Y]
        ny = sa * work.pair[p + P_NORMAL_X] + ca * work.pair[p + P_NORMAL_Y]
        demand = work.pair[p + P_DEMAND]
        if work.pair_touched[pair] != 0:
            cn = nx * work.pair_impulse[pair, 0] + ny * work.pair_impulse[pair, 1]
            ct = nx * work.pair_impulse[pair, 1] - ny * work.pair_impulse[pair, 0]
            cn = greatest(cn, F(0))
        else:
            cn = _first_impulse(active, a, b, nx, ny, demand, world.limit)
            ct = F(0)
        slide = work.pair[p + P_SLIDE]
        _write_contact(work, contacts, a, b, nx, ny, demand, slide, world.body_friction, cn, ct)
        work.contact_pair[contacts] = pair
        active[a + CROWDED] = F(1)
        active[b + CROWDED] = F(1)
        contacts += 1
    return contacts


@formula
def _collect_walls(world, work, count, contacts):
    """List the walls that act on robots which touch other robots."""
    active = work.active
    friction = world.wall_friction
    for number in range(count):
        p = _place(number)
        if active[p + CROWDED] == F(0):
            continue
        # A contact's tangent is its normal turned to the left; the slides are along +y and +x.
        if active[p + DEMAND_X] > -FAR:
            side = active[p + SIDE_X]
            demand = active[p + DEMAND_X]
            slide = side * active[p + SLIDE_X]
            cn = active[p + WALL_X_N]
            ct = active[p + WALL_X_T]
            if cn == F(0):
                cn = _first_impulse(active, p, p, side, F(0), demand, world.limit)
                ct = F(0)
            _write_contact(work, contacts, p, -1, side, F(0), demand, slide, friction, cn, ct)
            contacts += 1
        else:
            active[p + WALL_X_N] = F(0)
        if active[p + DEMAND_Y] > -FAR:
            side = active[p + SIDE_Y]
            demand = active[p + DEMAND_Y]
            slide = -side * active[p + SLIDE_Y]
            cn = active[p + WALL_Y_N]
            ct = active[p + WALL_Y_T]
            if cn == F(0):
                cn = _first_impulse(active, p, p, F(0), side, demand, world.limit)
                ct = F(0)
            _write_contact(work, contacts, p, -1, F(0), side, demand, slide, friction, cn, ct)
            contacts += 1
        else:
            active[p + WALL_Y_N] = F(0)
    return contacts


@formula
def _push(active, p, nx, ny, cn, ct):
    """Add the impulse (cn along the normal, ct along its left) to a robot."""
    active[p + QX] += cn * nx - ct * ny
    active[p + QY] += cn * ny + ct * nx


@formula
def _answer(active, p, limit):
    """Let a robot's motor answer to the impulses on it."""
    vx, vy, hold, ex, ey = pull(
        active[p + QX], active[p + QY], active[p + UX], active[p + UY], limit
    )
    active[p + VX] = vx
    active[p + VY] = vy
    active[p + HOLD] = hold
    active[p + PULL_X] = ex
    active[p + PULL_Y] = ey


@formula
def _give(active, p, nx, ny):
    """`formulas.give` for an active lane, in a contact's frame."""
    ex = active[p + PULL_X]
    ey = active[p + PULL_Y]
    return give(active[p + HOLD], ex * nx + ey * ny, ey * nx - ex * ny)


@formula
def _gaps(work, k, a, b, is_pair):
    """Demanded minus present velocity of contact k along its normal and its tangent."""
    active = work.active
    nx = work.contact[k, 0]
    ny = work.contact[k, 1]
    vx = active[a + VX]
    vy = active[a + VY]
    if is_pair:
        vx -= active[b + VX]
        vy -= active[b + VY]
    return work.contact[k, 2] - (vx * nx + vy * ny), -work.contact[k, 3] - (vy * nx - vx * ny)


@formula
def _unsettled(work, first, last, is_pair, count):
    """Add the contacts whose velocities are wrong to the `count` that are listed already."""
    for k in range(I(first), I(last)):
        a = I(work.contact_place[k, 0])
        b = I(work.contact_place[k, 1]) if is_pair else a
        gap_n, gap_t = _gaps(work, k, a, b, is_pair)
        error = contact_error(
            gap_n, gap_t, work.contact[k, 4], work.contact[k, 5], work.contact[k, 6]
        )
        work.todo[count] = k
        count += I(error > _SETTLED)
    return count


@formula
def _solve_one(world, work, k, is_pair):
    """One Newton step for contact k, as if the impulses of the others were right."""
    active = work.active
    limit = world.limit
    a = I(work.contact_place[k, 0])
    b = I(work.contact_place[k, 1]) if is_pair else a
    nx = work.contact[k, 0]
    ny = work.contact[k, 1]
    cn = work.contact[k, 5]
    ct = work.contact[k, 6]
    nn, nt, tt = _give(active, a, nx, ny)
    if is_pair:
        b_nn, b_nt, b_tt = _give(active, b, nx, ny)
        nn += b_nn
        nt += b_nt
        tt += b_tt
    gap_n, gap_t = _gaps(work, k, a, b, is_pair)
    new_n, new_t = impulse_step(gap_n, gap_t, nn, nt, tt, work.contact[k, 4], cn, ct)
    work.contact[k, 5] = new_n
    work.contact[k, 6] = new_t
    _push(active, a, nx, ny, new_n - cn, new_t - ct)
    _answer(active, a, limit)
    if is_pair:
        _push(active, b, nx, ny, cn - new_n, ct - new_t)
        _answer(active, b, limit)


@formula
def _solve_contacts(world, work, contacts, pair_contacts):
    """Sweep until all contacts rest; keep the impulses for the next sub-step."""
    active = work.active
    limit = world.limit
    for k in range(contacts):
        nx = work.contact[k, 0]
        ny = work.contact[k, 1]
        cn = work.contact[k, 5]
        ct = work.contact[k, 6]
        _push(active, I(work.contact_place[k, 0]), nx, ny, cn, ct)
        if k < pair_contacts:
            _push(active, I(work.contact_place[k, 1]), nx, ny, -cn, -ct)
    for k in range(pair_contacts):
        for side in range(2):
            p = I(work.contact_place[k, side])
            _answer(active, p, limit)
    for _ in range(_SWEEPS):
        pair_end = _unsettled(work, 0, pair_contacts, True, _ZERO)
        end = _unsettled(work, pair_contacts, contacts, False, pair_end)
        if end == _ZERO:
            break
        for index in range(pair_end):
            _solve_one(world, work, I(work.todo[index]), True)
        for index in range(pair_end, end):
            _solve_one(world, work, I(work.todo[index]), False)
    for k in range(contacts):
        a = I(work.contact_place[k, 0])
        nx = work.contact[k, 0]
        ny = work.contact[k, 1]
        cn = work.contact[k, 5]
        ct = work.contact[k, 6]
        if k < pair_contacts:
            pair = work.contact_pair[k]
            work.pair_touched[pair] = 1
            work.pair_impulse[pair, 0] = nx * cn - ny * ct
            work.pair_impulse[pair, 1] = ny * cn + nx * ct
        elif nx != F(0):
            active[a + WALL_X_N] = cn
            active[a + WALL_X_T] = ct
        else:
            active[a + WALL_Y_N] = cn
            active[a + WALL_Y_T] = ct


@formula
def _turn_as_commanded(world, active, base):
    """After a tick's first sub-step the robots turn at the commanded rate."""
    dt = world.dt
    for i in range(base, base + _EIGHT):
        c, s = small_turn(dt * active[i + TURN])
        active[i + STEP_COS] = c
        active[i + STEP_SIN] = s


@formula
def substeps(world, lanes, work, count, in_corners, at_walls, pairs):
    """Move the active lanes through the sub-steps of a tick."""
    active = work.active
    end = I(count // 8) * _BLOCK
    wall_end = I(at_walls // 8) * _BLOCK
    corner_end = I(in_corners // 8) * _BLOCK
    for substep in range(world.substeps):
        for base in range(_ZERO, end, _BLOCK):
            _move(active, base, world.dt)
            if substep == 0:
                _turn_as_commanded(world, active, base)
        # Well before they are needed: a vector cannot be loaded until its parts are all stored.
        _relate(work, pairs)
        for base in range(_ZERO, corner_end, _BLOCK):
            _meet_corners(world, active, base)
        for base in range(corner_end, wall_end, _BLOCK):
            _meet_nearest_wall(world, active, base)
        for base in range(wall_end, end, _BLOCK):
            _run_freely(world, active, base)
        pair_contacts = _collect_pairs(world, work, pairs)
        if pair_contacts > 0:
            contacts = _collect_walls(world, work, count, pair_contacts)
            _solve_contacts(world, work, contacts, pair_contacts)
    for number in range(count):
        p = _place(number)
        if active[p + LANE] < F(0):
            continue
        i = I(active[p + LANE])
        work.path_x[i] = active[p + DX]
        work.path_y[i] = active[p + DY]
        lanes.vx[i] = active[p + VX]
        lanes.vy[i] = active[p + VY]
    _remember(lanes, work, count, pairs)
