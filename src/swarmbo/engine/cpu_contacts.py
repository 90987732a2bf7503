"""Contacts between robots on the CPU: found in blocks of pairs, solved by sweeps.

A sweep makes a Newton step for every contact whose velocities are wrong,
starting from the impulses of the sub-step before; walls that act on robots
which touch others are contacts too.
"""

import numpy as np

from swarmbo.engine.compilation import formula
from swarmbo.engine.cpu_blocks import (
    COS,
    CROWDED,
    DEMAND_X,
    DEMAND_Y,
    DX,
    DY,
    EIGHT,
    HOLD,
    LANE,
    P_COS,
    P_DEMAND,
    P_FACING_A,
    P_FACING_B,
    P_NORMAL_X,
    P_NORMAL_Y,
    P_SEPARATION,
    P_SIN,
    P_SLIDE,
    P_TURN_A,
    P_TURN_B,
    P_X,
    P_Y,
    PAIR_BLOCK,
    PULL_X,
    PULL_Y,
    QX,
    QY,
    SIDE_X,
    SIDE_Y,
    SIN,
    SLIDE_X,
    SLIDE_Y,
    UX,
    UY,
    VX,
    VY,
    WALL_X_N,
    WALL_X_T,
    WALL_Y_N,
    WALL_Y_T,
    ZERO,
    X,
    Y,
    pair_index,
    place,
)
from swarmbo.engine.formulas import (
    FAR,
    F,
    I,
    contact_error,
    facing_contact,
    give,
    greatest,
    impulse_step,
    pull,
    sector,
)
from swarmbo.engine.lanes import (
    PARTNERS,
    SECTORS,
)

_SWEEPS = 8  # over the contacts, at the most
_SETTLED = F(1e-4)  # m/s, error of a contact's velocity that may remain


@formula
def recall(lanes, work, pair):
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
def remember(lanes, work, count, pairs):
    """Keep the impulses of the contacts for the next tick."""
    active = work.active
    for number in range(count):
        p = place(number)
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
def relate(work, pairs):
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
        p = pair_index(pair)
        work.pair[p + P_X] = ca * dx + sa * dy
        work.pair[p + P_Y] = ca * dy - sa * dx
        work.pair[p + P_COS] = ca * cb + sa * sb
        work.pair[p + P_SIN] = ca * sb - sa * cb


@formula
def face_each_other(world, lanes, work, pair, i, j):
    """Choose the edges and vertices of two lanes that face each other in this tick."""
    half = F(0.5)
    dx = F(lanes.x[j] - lanes.x[i]) + half * (work.path_x[j] - work.path_x[i])
    dy = F(lanes.y[j] - lanes.y[i]) + half * (work.path_y[j] - work.path_y[i])
    p = pair_index(pair)
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
    for i in range(base, base + EIGHT):
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
def collect_pairs(world, work, pairs):
    """List the contacts between robots."""
    active = work.active
    for base in range(ZERO, I((pairs + 7) // 8) * PAIR_BLOCK, PAIR_BLOCK):
        _hold_against(work, base)
    contacts = 0
    for pair in range(pairs):
        p = pair_index(pair)
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
def collect_walls(world, work, count, contacts):
    """List the walls that act on robots which touch other robots."""
    active = work.active
    friction = world.wall_friction
    for number in range(count):
        p = place(number)
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
def solve_contacts(world, work, contacts, pair_contacts):
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
        pair_end = _unsettled(work, 0, pair_contacts, True, ZERO)
        end = _unsettled(work, pair_contacts, contacts, False, pair_end)
        if end == ZERO:
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
