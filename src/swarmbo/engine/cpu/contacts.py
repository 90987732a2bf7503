"""Contacts between robots on the CPU: where they touch, and what a pair remembers of it."""

import numpy as np

from swarmbo.compilation import formula
from swarmbo.engine.cpu.blocks import (
    COS,
    CROWDED,
    DX,
    DY,
    EIGHT,
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
    QX,
    QY,
    SIN,
    UX,
    UY,
    ZERO,
    X,
    Y,
    pair_index,
    place,
)
from swarmbo.engine.formulas import (
    F,
    I,
    facing_contact,
    greatest,
    sector,
)
from swarmbo.engine.lanes import (
    PARTNERS,
    SECTORS,
)


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
def _first_impulse(active, a, b, nx, ny, demand, limit):
    """A first guess for a contact's normal impulse: motors that push with full force."""
    along_u = nx * (active[a + UX] - active[b + UX]) + ny * (active[a + UY] - active[b + UY])
    along_q = nx * (active[a + QX] - active[b + QX]) + ny * (active[a + QY] - active[b + QY])
    return greatest(limit + F(0.5) * (demand - along_q), F(0)) if demand > along_u else F(0)


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
        work.contact_place[contacts, 0] = a
        work.contact_place[contacts, 1] = b
        work.contact_pair[contacts] = pair
        work.contact[contacts, 0] = nx
        work.contact[contacts, 1] = ny
        work.contact[contacts, 2] = demand
        work.contact[contacts, 3] = work.pair[p + P_SLIDE]
        work.contact[contacts, 4] = cn
        work.contact[contacts, 5] = ct
        active[a + CROWDED] += F(1)
        active[b + CROWDED] += F(1)
        contacts += 1
    return contacts
