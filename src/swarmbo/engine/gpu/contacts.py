"""Contacts on the GPU: walls, the contact of two bodies, and a pair that nobody else touches.

Robots at walls are each solved by their lane. Two lanes side by side look for
the contact of a pair that may touch, one from each body; if nothing else touches
the pair but walls, they also solve it.
"""

import numpy as np

from swarmbo.engine.gpu.layout import (
    EDGE_OFFSET,
    EDGE_X,
    EDGE_Y,
    UNTOUCHED,
    VERTEX_X,
    VERTEX_Y,
)
from swarmbo.engine.gpu.warp import (
    J,
    U,
    any_lane,
    device,
    inverse_root,
    on,
    swap,
)

F = np.float32
FAR = on.FAR
# Looser than on the CPU, as sweeps cost more here.
SWEEPS = 2  # over the contacts of a pair and its walls, at the most
SETTLED = F(5e-4)  # m/s, error of a contact's velocity that may remain


# --- walls -------------------------------------------------------------------------------------


@device
def wall_at(world, at_x, side, gap, c, s, turn):
    """What the wall across x or y demands of a robot, and its slide along +y or +x."""
    return on.wall_contact(
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


@device
def along_left(at_x, side, slide):
    """A slide along +y or +x as one along the wall's tangent, its normal turned to the left."""
    return side * slide if at_x else -side * slide


@device
def _meet_wall(world, at_x, side, gap, c, s, turn, vx, vy, ux, uy):
    """What a wall demands, and the velocity (normal, tangential) that it alone allows."""
    demand, slide = wall_at(world, at_x, side, gap, c, s, turn)
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
    both components of the velocity are what the walls demand. Returns vx, vy, and
    (demand, slide) of the wall across x, of the one across y; see `solve_pair`.
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
    wall_x = (demand_x, along_left(True, side_x, slide_x))
    wall_y = (demand_y, along_left(False, side_y, slide_y))
    return new_x, new_y, wall_x, wall_y


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
def _edge(body, k):
    return body[EDGE_X, k], body[EDGE_Y, k], body[EDGE_OFFSET, k]


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
    # Written out, so that the loads come first.
    best, out = on.facing_edge(_edge(body, first), points[0], points[1], best, out)
    best, out = on.facing_edge(_edge(body, first + U(1)), points[0], points[1], best, out)
    best, out = on.facing_edge(_edge(body, first + U(2)), points[0], points[1], best, out)
    best, out = on.facing_edge(_edge(body, first + U(3)), points[0], points[1], best, out)
    best, out = on.facing_edge(_edge(body, first + U(4)), points[0], points[1], best, out)
    best, out = on.facing_edge(_edge(body, first + U(5)), points[0], points[1], best, out)
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
def begin_at_wall(limit, demand, gap, now, push):
    """The impulse (normal, tangential) with which a wall begins, `push` the one before.

    `gap` and `now` as in `first_impulse`.
    """
    cn, ct = push
    begins = cn == F(0)
    first = first_impulse(gap, now, limit)
    touches = demand > -FAR
    cn = first if begins else cn
    ct = F(0) if begins else ct
    return (cn if touches else F(0)), (ct if touches else F(0))


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
def _correct_at_wall(world, nx, ny, wall, push, u, q):
    """A Newton step for a robot's wall; its velocity, the wall's impulse, and if it was wrong."""
    demand, slide = wall
    cn, ct = push
    qx, qy = q
    found = False
    if demand > -FAR:
        v_n, v_t, nn, nt, tt = answer(world.limit, qx, qy, u[0], u[1], nx, ny)
        found, new_n, new_t = corrected(
            demand - v_n, -slide - v_t, (nn, nt, tt), world.wall_friction, cn, ct
        )
        dn = new_n - cn
        dt = new_t - ct
        cn = new_n
        ct = new_t
        qx += nx * dn - ny * dt
        qy += ny * dn + nx * dt
    return (qx, qy), (cn, ct), found


@device
def solve_pair(world, shared, is_a, touches, between, push, sides, walls, leans, u, q, lane):
    """Part two robots that touch nobody else; by their two lanes, side by side.

    `between` = (normal x, y, demand, slide) of their contact, `push` the impulse
    on A in the sub-step before. `sides` = (1 or -1, 1 or -1): where the walls across x and y
    are, `walls` = (whether any lane is at one, what they demand: see `meet_walls`),
    `leans` their impulses. `u` and `q`: the robot's velocity, commanded and before contact.
    Returns its velocity with the impulses but without its motor, the impulse on A, and
    those of the walls.
    """
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
    at_walls, wall_x, wall_y = walls
    side_x, side_y = sides
    lean_x, lean_y = leans
    at_walls = at_walls and touches
    if at_walls:
        d, _ = wall_x
        lean_x = begin_at_wall(world.limit, d, d - side_x * ux, d - side_x * qx, lean_x)
        d, _ = wall_y
        lean_y = begin_at_wall(world.limit, d, d - side_y * uy, d - side_y * qy, lean_y)
        # The normals are (side, 0) and (0, side), their lefts (0, side) and (-side, 0).
        qx += side_x * lean_x[0] - side_y * lean_y[1]
        qy += side_x * lean_x[1] + side_y * lean_y[0]
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
            q, lean_x, at_x = _correct_at_wall(world, side_x, F(0), wall_x, lean_x, u, (qx, qy))
            q, lean_y, at_y = _correct_at_wall(world, F(0), side_y, wall_y, lean_y, u, q)
            qx, qy = q
            wrong = wrong or at_x or at_y
        sweeps -= J(1)
        going = sweeps > J(0) and any_lane(wrong, shared.scratch, lane)
    return (qx, qy), (nx * cn - ny * ct, ny * cn + nx * ct), (lean_x, lean_y)
