"""Who may touch whom: the lists that `gpu_life` hands to `gpu_touch`, by kinds of contact."""

import numpy as np

from swarmbo.engine.gpu.layout import (
    CLOSE,
    COS,
    CROWDS,
    CROWDS_OF_3,
    CROWDS_OF_4,
    DETAIL,
    FIRST,
    KINDS,
    LISTED,
    MATE,
    NEAR,
    PAIRS,
    PARTNERS,
    PATH_X,
    PATH_Y,
    SECOND,
    SIN,
    SINGLES,
    TURNED,
    WALL,
    WALL_PAIRS,
    X,
    Y,
    number_of,
    robots_of,
    trial_of,
)
from swarmbo.engine.gpu.warp import J, U, add_to, bits_set, device, inverse_root, meet, on
from swarmbo.engine.lanes import MARGIN

F = np.float32
PARTNERED = J(-1)  # as MATE: the second of a lone pair; the first has the pair's place, from 1 on


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
    the turned angles. Counts in PARTNERS the pairs of each robot; must be 0 before.
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
            add_to(shared.flags, (U(PARTNERS), a), J(1))
            add_to(shared.flags, (U(PARTNERS), b), J(1))
        number = U(number + shared.lanes)


@device
def sort_pairs(world, shared, first_trial, links, windows_of, lane):
    """Mark the warp's lone pairs, and list the pairs of the crowds, by their trials."""
    per_trial = U(world.robots * (world.robots - 1) // 2)
    robots = U(world.robots)
    flags = shared.flags
    count = U(shared.counters[CLOSE, shared.warp])
    number = lane
    while number < count:
        k = shared.first_pair + U(number)
        entry = shared.close[k]
        a, b = robots_of(entry)
        if flags[PARTNERS, a] == J(1) and flags[PARTNERS, b] == J(1):
            flags[MATE, a] = J(k) + J(1)
            flags[MATE, b] = PARTNERED
        else:
            place = trial_of(world, a)
            slot = place & U(31)
            begin = slot * robots
            at = U((first_trial + slot) * per_trial + U(add_to(shared.links, place, J(1))))
            links[at] = (
                ((a & U(31)) - begin)
                | (((b & U(31)) - begin) << U(5))
                | ((number_of(entry) - slot * per_trial) << U(16))
            )
            windows_of[at] = shared.windows[k]
        number = U(number + shared.lanes)


@device
def classify(world, shared, leads, p, at, at_wall):
    """What the lane is responsible for: a lone pair, a single robot; its trial's crowd.

    Returns (kind or -1, the other robot, details, place among the warp's entries of that kind)
    and (kind or -1, members, place) of the crowd. Counts them in LISTED.
    """
    flags = shared.flags
    per_trial = U(world.robots * (world.robots - 1) // 2)
    kind = J(-1)
    second = U(0)
    detail = U(0)
    mate = flags[MATE, p]
    if mate > J(0):
        k = U(mate) - U(1)
        entry = shared.close[k]
        _, b = robots_of(entry)
        second = at + b - p
        number = number_of(entry) - (trial_of(world, p) & U(31)) * per_trial
        detail = shared.windows[k] | (number << U(16))
        kind = J(WALL_PAIRS) if at_wall or flags[WALL, b] != J(0) else J(PAIRS)
    elif at_wall and flags[PARTNERS, p] == J(0):
        kind = J(SINGLES)
    members = shared.members[trial_of(world, p)]
    size = bits_set(members)
    crowds = J(CROWDS_OF_4) if size == U(4) else J(CROWDS)
    crowds = J(CROWDS_OF_3) if size == U(3) else crowds
    crowds = crowds if leads and members != U(0) else J(-1)
    place = J(0)
    crowd = J(0)
    if kind >= J(0):
        place = add_to(shared.counters, (U(LISTED) + U(kind), shared.warp), J(1))
    if crowds >= J(0):
        crowd = add_to(shared.counters, (U(LISTED) + U(crowds), shared.warp), J(1))
    return (kind, U(second), U(detail), place), (crowds, members, crowd)


@device
def claim(shared, warps, counts, p):
    """Make room in lists of these lengths for the block's entries.

    Thread k returns where those of kind k begin, and lets LISTED tell for every warp how
    many of them are before its own. All blocks count in the same few places, which takes
    long; `hand_in` waits for it.
    """
    meet()
    begin = J(0)
    if p < U(KINDS):
        mine = J(0)
        for warp in range(warps):
            here = shared.counters[U(LISTED) + p, warp]
            shared.counters[U(LISTED) + p, warp] = mine
            mine = J(mine + here)
        if mine > J(0):
            begin = add_to(counts, p, mine)
    return begin


@device
def hand_in(shared, entries, begin, trial, at, lists, p):
    """Write the lane's entries of the lists, as `classify` and `claim` returned them."""
    (kind, second, detail, place), (crowds, members, crowd) = entries
    if p < U(KINDS):
        shared.begins[p] = begin
    meet()
    if kind >= J(0):
        place += shared.begins[U(kind)] + shared.counters[U(LISTED) + U(kind), shared.warp]
        lists[U(kind), U(FIRST), U(place)] = at
        if kind != J(SINGLES):
            lists[U(kind), U(SECOND), U(place)] = second
            lists[U(kind), U(DETAIL), U(place)] = detail
    if crowds >= J(0):
        crowd += shared.begins[U(crowds)] + shared.counters[U(LISTED) + U(crowds), shared.warp]
        lists[U(crowds), U(FIRST), U(crowd)] = trial
        lists[U(crowds), U(SECOND), U(crowd)] = members
