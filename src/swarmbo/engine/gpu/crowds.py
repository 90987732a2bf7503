"""Crowds on the GPU: the contacts of robots that touch others which touch more.

Every pair of a crowd that may touch in a tick, and every wall near a robot, has a place
in the warp's table of contacts for that tick. All of them are corrected at the same time,
a lane per contact, in a few rounds: a Newton step for each, then the new velocity of every
robot. As several contacts of a robot would each undo what is wrong for all of them, each
of n takes it that the robot answers n times as much as it does (mass splitting). Every
impulse on a robot has a row of its own, and they are added in the order of the rows: so
every bit of the result is a matter of the trial alone.

A warp with a single crowd is what the others wait for. So there are few branches: what is
independent stands side by side, and the compiler interleaves it.
"""

import numpy as np

from swarmbo.engine.gpu.contacts import (
    along_left,
    begin_at_wall,
    contact,
    corrected,
    first_impulse,
    wall_at,
)
from swarmbo.engine.gpu.layout import (
    AT_X,
    AT_Y,
    CONTACTS,
    COS,
    DEMAND,
    G_WALL,
    GIVE_XX,
    GIVE_XY,
    GIVE_YY,
    IMPULSE_N,
    IMPULSE_T,
    LINKS,
    NORMAL_X,
    NORMAL_Y,
    PUSH_X,
    PUSH_Y,
    QX,
    QY,
    SIN,
    SLIDE,
    TURN,
    UNTOUCHED,
    UX,
    UY,
    VX,
    VY,
    X,
    Y,
    arrive,
    drive,
    number_of,
    pair_entry,
    robots_of,
)
from swarmbo.engine.gpu.warp import (
    J,
    U,
    add_to,
    any_lane,
    bits_set,
    device,
    inverse_root,
    on,
    sync,
)

F = np.float32
FAR = on.FAR
ROUNDS = 4  # over the contacts of a crowd, at the most; as many as there are robots if more than 6


# --- the table of contacts ---------------------------------------------------------------------


@device
def clear_table(world, shared, p):
    """Begin without pairs, and without impulses on a robot.

    The last place of the table is that of a wall that nobody touches.
    """
    nothing = U(shared.entries.shape[0] - 1)
    if p == U(0):
        shared.counters[U(LINKS)] = J(0)
        shared.entries[nothing] = pair_entry(U(0), U(0), U(0))
        shared.contacts[DEMAND, nothing] = -FAR
    row = U(0)
    while row < U(2 * (world.robots + 1)):
        shared.pushes[row, p] = F(0)
        row += U(1)


@device
def _push(shared, place, p, px, py):
    """Let (px, py) be the impulse of one of a robot's contacts."""
    shared.pushes[U(2) * place, p] = px
    shared.pushes[U(2) * place + U(1), p] = py


@device
def _place(world, own, other):
    """Where a robot keeps the impulse of another one: from 1 on, by their distance in lanes."""
    return other - own if other > own else other + U(world.robots) - own


@device
def _load_pair(world, shared, a, b, windows, link, memory):
    """Enter a pair into the table. `link`: its number among all pairs of all trials."""
    k = U(add_to(shared.counters, U(LINKS), J(1)))
    px = memory[U(PUSH_X), link]
    py = memory[U(PUSH_Y), link]
    touched = px != UNTOUCHED
    px = px if touched else F(0)
    py = py if touched else F(0)
    shared.entries[k] = pair_entry(a, b, U(0))
    shared.windows[k] = windows
    shared.links[k] = link
    shared.contacts[DEMAND, k] = F(0) if touched else -FAR
    _push(shared, _place(world, a, b), a, px, py)
    _push(shared, _place(world, b, a), b, -px, -py)


@device
def load_links(world, shared, trial, members, begin, first, stride, links, memory):
    """Enter pairs of a trial's crowd into the table: every stride-th from number `first` on.

    Lane `begin` is that of the crowd's first robot. `links` = (how many per
    trial, words, windows).
    """
    counts, words, windows = links
    pairs = trial * U(world.robots * (world.robots - 1) // 2)
    k = first
    while k < U(counts[trial]):
        word = words[pairs + k]
        a = begin + bits_set(members & ((U(1) << (word & U(31))) - U(1)))
        b = begin + bits_set(members & ((U(1) << ((word >> U(5)) & U(31))) - U(1)))
        link = pairs + ((word >> U(16)) & U(511))
        _load_pair(world, shared, a, b, windows[pairs + k], link, memory)
        k += stride


@device
def keep_links(world, shared, memory, lane):
    """Write the impulses of the crowds' pairs to global memory."""
    k = lane
    while k < U(shared.counters[U(LINKS)]):
        a, b = robots_of(shared.entries[k])
        row = U(2) * _place(world, a, b)
        touches = shared.contacts[DEMAND, k] > -FAR
        link = shared.links[k]
        memory[U(PUSH_X), link] = shared.pushes[row, a] if touches else UNTOUCHED
        memory[U(PUSH_Y), link] = shared.pushes[row + U(1), a]
        k = U(k + shared.lanes)


@device
def _load_wall(shared, p, number, motion, at):
    """Enter the wall across x (number 0) or y (1) of a robot into the table; return its place."""
    k = U(add_to(shared.counters, U(CONTACTS), J(1)))
    row = U(G_WALL) + U(2) * number
    shared.entries[k] = pair_entry(p, p, number)
    shared.contacts[IMPULSE_N, k] = motion[row, at]
    shared.contacts[IMPULSE_T, k] = motion[row + U(1), at]
    return k


@device
def _keep_wall(shared, k, number, motion, at):
    """Write the impulse of a robot's wall to global memory."""
    row = U(G_WALL) + U(2) * number
    motion[row, at] = shared.contacts[IMPULSE_N, k]
    motion[row + U(1), at] = shared.contacts[IMPULSE_T, k]


@device
def _enter(shared, k, nx, ny, demand, slide, cn, ct):
    contacts = shared.contacts
    contacts[NORMAL_X, k] = nx
    contacts[NORMAL_Y, k] = ny
    contacts[DEMAND, k] = demand
    contacts[SLIDE, k] = slide
    contacts[IMPULSE_N, k] = cn
    contacts[IMPULSE_T, k] = ct


# --- finding -----------------------------------------------------------------------------------


@device
def _pose(robots, p):
    return robots[X, p], robots[Y, p], robots[COS, p], robots[SIN, p], robots[TURN, p]


@device
def _find_wall(world, shared, k):
    """The contact of a robot with a wall, and the impulse with which it begins."""
    robots = shared.robots
    entry = shared.entries[k]
    p, _ = robots_of(entry)
    at_x = number_of(entry) == U(0)
    x, y, c, s, turn = _pose(robots, p)
    along = x if at_x else y
    size = world.width if at_x else world.height
    side = F(1) if along < F(0.5) * size else F(-1)
    gap = along if side > F(0) else size - along
    demand, slide = wall_at(world, at_x, side, gap, c, s, turn)
    u = robots[UX, p] if at_x else robots[UY, p]
    q = robots[QX, p] if at_x else robots[QY, p]
    push = (shared.contacts[IMPULSE_N, k], shared.contacts[IMPULSE_T, k])
    cn, ct = begin_at_wall(world.limit, demand, demand - side * u, demand - side * q, push)
    slide = along_left(at_x, side, slide)
    return p, at_x, side, demand, slide, cn, ct


@device
def _find(world, shared, pair, is_a, is_pair, wall, is_wall, lane):
    """Look for the contacts of a pair, by two lanes side by side, and of a robot with a wall."""
    robots = shared.robots
    entry = shared.entries[pair]
    a, b = robots_of(entry)
    own = a if is_a else b
    other = b if is_a else a
    pose = _pose(robots, own)
    rival = _pose(robots, other)
    separation, nx, ny, demand, slide = contact(
        shared.body,
        shared.windows[pair if is_pair else U(0)],
        is_a,
        pose,
        rival,
        shared.scratch,
        lane,
    )
    place = U(2) * (_place(world, own, other) if is_pair else U(world.robots + 1))
    px = shared.pushes[place, own]
    py = shared.pushes[place + U(1), own]
    sign = F(1) if is_a else F(-1)
    cn = on.greatest(sign * (nx * px + ny * py), F(0))
    ct = sign * (nx * py - ny * px)
    ux = robots[UX, a] - robots[UX, b]
    uy = robots[UY, a] - robots[UY, b]
    qx = robots[QX, a] - robots[QX, b]
    qy = robots[QY, a] - robots[QY, b]
    begins = shared.contacts[DEMAND, pair] == -FAR
    first = first_impulse(
        demand - nx * ux - ny * uy, F(0.5) * (demand - nx * qx - ny * qy), world.limit
    )
    cn = first if begins else cn
    ct = F(0) if begins else ct
    dx = rival[0] - pose[0]
    dy = rival[1] - pose[1]
    reach = F(2) * world.radius
    touches = is_pair and separation <= F(0) and dx * dx + dy * dy < reach * reach
    cn = cn if touches else F(0)
    ct = ct if touches else F(0)
    demand = demand if touches else -FAR
    p, at_x, side, wall_demand, wall_slide, wn, wt = _find_wall(world, shared, wall)
    wx = side if at_x else F(0)
    wy = F(0) if at_x else side
    wall_place = U(0) if at_x else U(world.robots)
    wall_place = wall_place if is_wall else U(world.robots + 1)
    sync()
    # Both lanes of a pair write the same; lanes without a pair or a wall write behind the table.
    _enter(shared, pair, nx, ny, demand, slide, cn, ct)
    shared.pushes[place, own] = sign * (cn * nx - ct * ny)
    shared.pushes[place + U(1), own] = sign * (cn * ny + ct * nx)
    add_to(shared.numbers, own, J(1) if touches else J(0))
    wall_demand = wall_demand if is_wall else -FAR
    _enter(shared, wall, wx, wy, wall_demand, wall_slide, wn, wt)
    _push(shared, wall_place, p, wn * wx - wt * wy, wn * wy + wt * wx)
    add_to(shared.numbers, p, J(1) if wall_demand > -FAR else J(0))


@device
def _find_contacts(world, shared, lane):
    """Look for the contacts in the table, and begin with the impulses of the sub-step before."""
    links = U(shared.counters[U(LINKS)])
    count = U(shared.counters[U(CONTACTS)])
    nothing = U(shared.entries.shape[0] - 1)  # a place that no contact has
    task = lane
    begin = U(0)
    while begin < links * U(2) or links + begin < count:
        pair = U(task >> U(1))
        is_pair = pair < links
        wall = U(links + task)
        is_wall = wall < count
        pair = pair if is_pair else nothing
        wall = wall if is_wall else nothing
        _find(world, shared, pair, (task & U(1)) == U(0), is_pair, wall, is_wall, lane)
        task = U(task + shared.lanes)
        begin = U(begin + shared.lanes)


# --- solving -----------------------------------------------------------------------------------


@device
def _answer(world, shared, u, q, p):
    """Let a robot's motor answer to the impulses on it; return its velocity."""
    robots = shared.robots
    pushes = shared.pushes
    ux, uy = u
    qx, qy = q
    row = U(0)
    while row < U(2 * (world.robots + 1)):
        qx += pushes[row, p]
        qy += pushes[row + U(1), p]
        row += U(2)
    ex = ux - qx
    ey = uy - qy
    inverse = inverse_root(on.greatest(ex * ex + ey * ey, F(1e-20)))
    hold = on.least(world.limit * inverse, F(1))
    xx, xy, yy = on.give(hold, ex * inverse, ey * inverse)
    number = F(shared.numbers[p])
    vx = qx + hold * ex
    vy = qy + hold * ey
    robots[VX, p] = vx
    robots[VY, p] = vy
    robots[GIVE_XX, p] = number * xx
    robots[GIVE_XY, p] = number * xy
    robots[GIVE_YY, p] = number * yy
    return vx, vy


@device
def _contact_at(world, shared, k):
    """A contact of the table.

    Returns (A, B, whether it is a wall's, the row of A's impulse), (normal x, y, demand, slide),
    and its impulse (normal, tangential).
    """
    contacts = shared.contacts
    entry = shared.entries[k]
    a, b = robots_of(entry)
    is_wall = a == b
    place = number_of(entry) * U(world.robots) if is_wall else _place(world, a, b)
    shape = (contacts[NORMAL_X, k], contacts[NORMAL_Y, k], contacts[DEMAND, k], contacts[SLIDE, k])
    impulse = (contacts[IMPULSE_N, k], contacts[IMPULSE_T, k])
    return (a, b, is_wall, place), shape, impulse


@device
def _correct(world, shared, whose, shape, impulse):
    """A Newton step for a contact, if it is wrong; return its impulse, and whether it was."""
    robots = shared.robots
    a, b, is_wall, place = whose
    nx, ny, demand, slide = shape
    other = F(0) if is_wall else F(1)  # a wall rests, and gives nothing
    friction = world.wall_friction if is_wall else world.body_friction
    vx = robots[VX, a] - other * robots[VX, b]
    vy = robots[VY, a] - other * robots[VY, b]
    give = on.in_frame(
        robots[GIVE_XX, a] + other * robots[GIVE_XX, b],
        robots[GIVE_XY, a] + other * robots[GIVE_XY, b],
        robots[GIVE_YY, a] + other * robots[GIVE_YY, b],
        nx,
        ny,
    )
    wrong, cn, ct = corrected(
        demand - (vx * nx + vy * ny),
        -slide - (vy * nx - vx * ny),
        give,
        friction,
        impulse[0],
        impulse[1],
    )
    wrong = wrong and demand > -FAR
    px = cn * nx - ct * ny
    py = cn * ny + ct * nx
    back = U(world.robots + 1) if is_wall else U(world.robots) - place
    if wrong:
        _push(shared, place, a, px, py)
        _push(shared, back, b, -px, -py)
    return ((cn if wrong else impulse[0]), (ct if wrong else impulse[1])), wrong


@device
def _keep(shared, k, impulse):
    shared.contacts[IMPULSE_N, k] = impulse[0]
    shared.contacts[IMPULSE_T, k] = impulse[1]


@device
def _solve(world, shared, u, q, lane):
    """Correct all contacts until they rest; return the velocity of the lane's robot.

    `u` is its commanded velocity, `q` the one before contacts and motor.
    """
    count = U(shared.counters[U(CONTACTS)])
    velocity = _answer(world, shared, u, q, lane)
    sync()
    # Both ways below are the same arithmetic, so a crowd's bits do not depend on its company.
    # That compilers keep it so is tested.
    few = count <= shared.lanes
    nothing = U(shared.entries.shape[0] - 1)
    mine = lane if lane < count else nothing
    whose, shape, impulse = _contact_at(world, shared, mine)
    rounds = J(max(ROUNDS, world.robots) if world.robots > 6 else ROUNDS)
    while rounds > J(0):
        found = False
        if few:  # the lane keeps its only contact in registers
            impulse, found = _correct(world, shared, whose, shape, impulse)
        else:
            k = lane
            while k < count:
                whose, shape, impulse = _contact_at(world, shared, k)
                impulse, wrong = _correct(world, shared, whose, shape, impulse)
                _keep(shared, k, impulse)
                found |= wrong
                k = U(k + shared.lanes)
        rounds = rounds - J(1) if any_lane(found, shared.scratch, lane) else J(-1)
        sync()
        if rounds >= J(0):
            velocity = _answer(world, shared, u, q, lane)
            sync()
    if few:
        _keep(shared, mine, impulse)
    return velocity


# --- through the sub-steps ---------------------------------------------------------------------


@device
def run_crowds(world, shared, motion, at, mark, pose, here, lane):
    """Move the lane's robot of a crowd through the sub-steps of a tick.

    `at` is its number and `pose` = (x, y) where it begins.
    """
    robots = shared.robots
    x, y = pose
    c, s, u, v, turn, step = drive(world, motion, at)
    robots[UX, lane] = u[0]
    robots[UY, lane] = u[1]
    robots[TURN, lane] = turn
    leans_x = here and (mark & J(AT_X)) != J(0)
    leans_y = here and (mark & J(AT_Y)) != J(0)
    wall_x = U(0)
    wall_y = U(0)
    if leans_x:
        wall_x = _load_wall(shared, lane, U(0), motion, at)
    if leans_y:
        wall_y = _load_wall(shared, lane, U(1), motion, at)
    dx = F(0)
    dy = F(0)
    number = J(0)
    while number < J(world.substeps):
        dx += world.dt * v[0]
        dy += world.dt * v[1]
        c, s = c * step[0] - s * step[1], s * step[0] + c * step[1]
        if number == J(0):
            step = on.small_turn(world.dt * turn)
        robots[X, lane] = x + dx
        robots[Y, lane] = y + dy
        robots[COS, lane] = c
        robots[SIN, lane] = s
        robots[QX, lane] = v[0]
        robots[QY, lane] = v[1]
        shared.numbers[lane] = J(0)
        sync()
        _find_contacts(world, shared, lane)
        sync()
        v = _solve(world, shared, u, v, lane)
        number += J(1)
    sync()
    if leans_x:
        _keep_wall(shared, wall_x, U(0), motion, at)
    if leans_y:
        _keep_wall(shared, wall_y, U(1), motion, at)
    if here:
        arrive(motion, at, (dx, dy), v)
