"""The mathematics of the engine: scalar functions, written once for every driver.

Everything here is float32 unless a name says otherwise. Conditions are written
as selections (`a if test else b`), so that a loop over lanes that calls these
functions vectorises. Velocities and impulses share the unit m/s: an impulse is
given as the change of velocity that it makes in one robot.

Names: (x, y) a position, (c, s) the cosine and sine of a heading, u the
velocity that the wheels command, v a velocity, w an angular velocity.
"""

import numpy as np

from swarmbo.compilation import formula

F = np.float32
U = np.uint32
I = np.uint64  # noqa: E741 - an index: unsigned, so that it needs no check for being negative

FAR = F(1e6)  # m, the distance to what a ray does not hit

# Channels of the random numbers of a robot's tick.
PROXIMITY_NOISE = 0  # .. 6
GROUND_NOISE = 7  # .. 8
PROXIMITY_FAULT = 9  # .. 15
GROUND_FAULT = 16  # .. 17
SIGN_FLIP = 18

_SIN = (F(-0.16666650573), F(0.00833197325), F(-0.000194949483))
_COS = (F(0.04166664675), F(-0.00138873614), F(0.0000244377281))
_TANH_TOP = (
    0.9999999967526093,
    0.13699875372295436,
    0.0038934599611119987,
    2.852252985883756e-05,
    3.1860241827366976e-08,
    -1.3188691875620085e-11,
)
_TANH_BOTTOM = (
    1.0,
    0.4703320724609469,
    0.027337503193656423,
    0.000398321606414178,
    1.3238211568430055e-06,
)


# --- random numbers ----------------------------------------------------------------------------


@formula
def scramble(word):
    """A bijection of 32-bit words in which every output bit depends on every input bit."""
    word = U(word ^ (word >> U(16)))
    word = U(word * U(0x21F0AAAD))
    word = U(word ^ (word >> U(15)))
    word = U(word * U(0x735A2D97))
    return U(word ^ (word >> U(15)))


@formula
def tick_word(key0, key1, tick):
    """The word from which all random numbers of one robot's tick derive."""
    return U(scramble(U(key0 + U(tick * U(0x9E3779B9)))) ^ key1)


@formula
def uniform(word, channel):
    """The random number in [0, 1) of one channel of a robot's tick; 24 bits."""
    return F(scramble(U(word + U(U(channel) * U(0x85EBCA6B)))) >> U(8)) * F(2.0**-24)


# --- elementary functions ----------------------------------------------------------------------


@formula
def least(a, b):
    """The smaller of two numbers (the built-in `min` does not vectorise)."""
    return a if a < b else b


@formula
def greatest(a, b):
    """The larger of two numbers."""
    return a if a > b else b


@formula
def clamp(value, low, high):
    """The number in [low, high] that is nearest to `value`."""
    return least(greatest(value, low), high)


@formula
def cos_sin(angle64):
    """Cosine and sine of an angle (float64, |angle| < 100) to 1e-7."""
    quarter = np.floor(angle64 * (2 / np.pi) + 0.5)
    r = F(angle64 - quarter * (np.pi / 2))
    q = np.int32(quarter)
    y = r * r
    sine = r + r * y * (_SIN[0] + y * (_SIN[1] + y * _SIN[2]))
    cosine = F(1) - F(0.5) * y + y * y * (_COS[0] + y * (_COS[1] + y * _COS[2]))
    odd = (q & np.int32(1)) != np.int32(0)
    c = sine if odd else cosine
    s = cosine if odd else sine
    c = -c if ((q + np.int32(1)) & np.int32(2)) != np.int32(0) else c
    s = -s if (q & np.int32(2)) != np.int32(0) else s
    return c, s


@formula
def small_turn(angle):
    """Cosine and sine of an angle of at most 0.05 rad, to 3e-7."""
    y = angle * angle
    return F(1) - F(0.5) * y, angle - angle * y * F(1 / 6)


@formula
def tanh64(z):
    """tanh in float64 to 1e-9: a rational function of our own fit on [-8.5, 8.5]."""
    x = clamp(z, -8.5, 8.5)
    y = x * x
    top = _TANH_TOP[4] + y * _TANH_TOP[5]
    top = _TANH_TOP[0] + y * (_TANH_TOP[1] + y * (_TANH_TOP[2] + y * (_TANH_TOP[3] + y * top)))
    bottom = _TANH_BOTTOM[3] + y * _TANH_BOTTOM[4]
    bottom = _TANH_BOTTOM[0] + y * (_TANH_BOTTOM[1] + y * (_TANH_BOTTOM[2] + y * bottom))
    value = x * top / bottom
    value = 1.0 if z > 8.5 else value
    return -1.0 if z < -8.5 else value


# --- motion ------------------------------------------------------------------------------------


@formula
def motor(qx, qy, ux, uy, limit):
    """The velocity after a sub-step: from (qx, qy) towards (ux, uy), by at most `limit`."""
    ex = ux - qx
    ey = uy - qy
    squared = ex * ex + ey * ey
    scale = limit / np.sqrt(greatest(squared, F(1e-20)))
    scale = least(scale, F(1))
    return qx + scale * ex, qy + scale * ey


@formula
def free_path(vx, vy, ux, uy, limit, substeps, dt):
    """Displacement in a tick without contact: sub-step 1 with the old velocity, then its approach.

    After k sub-steps the velocity is u + max(0, 1 - k limit / r) (v - u) with
    r = |v - u|; three sub-steps always suffice.
    """
    ex = vx - ux
    ey = vy - uy
    ratio = limit / np.sqrt(greatest(ex * ex + ey * ey, F(1e-20)))
    lag = F(1) + greatest(F(1) - ratio, F(0)) + greatest(F(1) - F(2) * ratio, F(0))
    return dt * (substeps * ux + lag * ex), dt * (substeps * uy + lag * ey)


# --- contact -----------------------------------------------------------------------------------


@formula
def wall_vertex(x, y, frame, gap, found):
    """Add one vertex of a body to what is known of its contact with a wall; see `wall_contact`.

    `frame` has its tangent times the turn rate, `found` the demand and how far across the wall.
    """
    demand, depth = found
    across = frame[0] * x + frame[1] * y
    need = frame[2] * x + frame[3] * y
    hit = (across < -gap) & (need > demand)
    return (need if hit else demand), (across if hit else depth)


@formula
def wall_contact(vertices_x, vertices_y, frame, gap, spin):
    """What a wall demands of a body whose centre is `gap` metres away from it.

    `frame` turns the body's frame into the wall's: (normal x, y, tangent x, y).
    A vertex beyond the wall demands that the centre's velocity along the
    normal be at least what turns that vertex into the wall: `spin`, the turn
    rate with the frame's sign, times its place along the wall. Returns the
    largest demand (-FAR: no contact) and the velocity by rotation of that
    vertex along the wall, in m/s.
    """
    x, y = vertices_x, vertices_y
    frame = (frame[0], frame[1], spin * frame[2], spin * frame[3])
    found = (-FAR, F(0))
    found = wall_vertex(x[0], y[0], frame, gap, found)
    found = wall_vertex(x[1], y[1], frame, gap, found)
    found = wall_vertex(x[2], y[2], frame, gap, found)
    found = wall_vertex(x[3], y[3], frame, gap, found)
    found = wall_vertex(x[4], y[4], frame, gap, found)
    found = wall_vertex(x[5], y[5], frame, gap, found)
    found = wall_vertex(x[6], y[6], frame, gap, found)
    found = wall_vertex(x[7], y[7], frame, gap, found)
    demand, depth = wall_vertex(x[8], y[8], frame, gap, found)
    return demand, spin * depth


@formula
def pull(qx, qy, ux, uy, limit):
    """How a motor pulls at q: its velocity, and what tells how it gives way to an impulse.

    That is (hold, ex, ey): the share of the way to u that it manages, and the
    unit vector towards u. A motor that manages all (hold = 1) does not give way;
    else it does, freely along e and by 1 - hold across.
    """
    ex = ux - qx
    ey = uy - qy
    inverse = F(1) / np.sqrt(greatest(ex * ex + ey * ey, F(1e-20)))
    hold = least(limit * inverse, F(1))
    return qx + hold * ex, qy + hold * ey, hold, ex * inverse, ey * inverse


@formula
def give(hold, en, et):
    """The Jacobian (nn, nt, tt) of a motor's velocity by the impulse on it; see `pull`."""
    across = F(1) - hold
    along = hold if hold < F(1) else F(0)
    return across + along * en * en, along * en * et, across + along * et * et


@formula
def in_frame(xx, xy, yy, nx, ny):
    """A symmetric matrix (xx, xy, yy) in the frame of the unit vector (nx, ny) and its left."""
    px = xx * nx + xy * ny
    py = xy * nx + yy * ny
    tx = yy * nx - xy * ny
    ty = xy * nx - xx * ny
    return px * nx + py * ny, py * nx - px * ny, tx * nx - ty * ny


@formula
def impulse_step(gap_n, gap_t, nn, nt, tt, friction, cn, ct):
    """One Newton step for the impulse (cn, ct) of a contact, with Coulomb's friction.

    gap_n = demanded minus present normal velocity, gap_t = minus the sliding
    velocity; (nn, nt, tt) how the velocities answer to the impulse. First as if
    the contact stuck; if that takes more friction than there is, it slides with
    ct = +- friction * cn.
    """
    nn += F(0.02)  # so that two motors within their limits, which do not give way, get a step too
    tt += F(0.02)
    # Numerators first: with one division instead of three in a row the step is much quicker.
    stick = nn * tt - nt * nt
    stick_n = cn * stick + (tt * gap_n - nt * gap_t)
    stick_t = ct * stick + (nn * gap_t - nt * gap_n)
    slope = friction if stick_t > F(0) else -friction
    slides = abs(stick_t) > friction * stick_n
    slide = greatest(nn + slope * nt, F(0.02))
    slide_n = cn * slide + (gap_n - nt * (slope * cn - ct))
    share = F(1) if slides else F(0)  # a weight: LLVM makes a branch of several selections
    inverse = F(1) / (stick + share * (slide - stick))
    new_n = greatest(stick_n + share * (slide_n - stick_n), F(0)) * inverse
    stick_t *= inverse
    new_t = stick_t + share * (slope * new_n - stick_t)
    return new_n, new_t


@formula
def contact_error(gap_n, gap_t, friction, cn, ct):
    """By how much a contact's velocities are wrong, in m/s; arguments as for `impulse_step`.

    An idle contact may separate, a sliding one may slide against its friction.
    """
    # Weights of 0 and 1: LLVM would make branches of selections that share a condition.
    pushes = F(1) if cn > F(0) else F(0)
    sticks = F(1) if abs(ct) < F(0.9999) * friction * cn else F(0)
    against = -gap_t if ct > F(0) else gap_t
    wrong_t = pushes * greatest(against, sticks * abs(gap_t))
    return greatest(greatest(gap_n, -pushes * gap_n), wrong_t)


@formula
def wall_velocity(vn, vt, un, ut, demand, slide, friction, limit):
    """The velocity (normal, tangential) of a robot at one wall.

    In contact the normal velocity is what the wall demands, and the motor is at
    its limit, pulling along e = u - velocity = (g, e). If it sticks, the
    tangential velocity is -slide. Else friction is sign * friction * the wall's
    impulse, so that e + limit (e - sign friction g) / |(g, e)| = k with
    k = ut - vt - sign friction (demand - vn). Its solution is e = sign friction g
    for a robot that keeps sliding; two Newton steps from there.
    """
    tiny = F(1e-12)
    g = un - demand
    e = ut + slide
    share = limit / np.sqrt(greatest(g * g + e * e, tiny))
    stick_t = -slide - vt - share * e
    stick_n = demand - vn - share * g
    sign = F(1) if stick_t > F(0) else F(-1)
    sticks = abs(stick_t) <= friction * stick_n
    f = sign * friction * g
    k = ut - vt - sign * friction * (demand - vn)
    length = abs(g) * np.sqrt(F(1) + friction * friction)  # of (g, f)
    slip = f + (k - f) * length / (length + limit)
    inverse = F(1) / np.sqrt(greatest(g * g + slip * slip, tiny))
    share = limit * inverse
    slope = F(1) + share - share * inverse * inverse * (slip - f) * slip
    slip = slip - (slip + share * (slip - f) - k) / greatest(slope, F(1))
    free_n, free_t = motor(vn, vt, un, ut, limit)
    held_t = -slide if sticks else ut - slip
    touching = free_n < demand
    return (demand if touching else free_n), (held_t if touching else free_t)


@formula
def wall_answer(vn, vt, un, ut, demand, slide, friction, limit):
    """The velocity of a robot at one wall, as by `wall_velocity`, and how that gives way.

    For a robot that others push, which need not keep sliding as it did: slip + limit
    (slip - f) / |(g, slip)| = k is solved from a guess that fits large and small k, to
    6e-5 m/s in 99 % of cases. Returns (normal, tangential) velocity and the Jacobian
    (nn, nt, tt) by an impulse, see `give`: of a robot that touches the wall, nothing
    but tt, along the wall, and that only if it slides.
    """
    tiny = F(1e-12)
    g = un - demand
    e = ut + slide
    share = limit / np.sqrt(greatest(g * g + e * e, tiny))
    stick_t = -slide - vt - share * e
    stick_n = demand - vn - share * g
    sign = F(1) if stick_t > F(0) else F(-1)
    slides = F(1) if abs(stick_t) > friction * stick_n else F(0)
    f = sign * friction * g
    k = ut - vt - sign * friction * (demand - vn)
    beyond = abs(k) - limit
    guess = F(0.5) * (beyond + np.sqrt(beyond * beyond + limit * abs(g)))  # of |slip|
    length = np.sqrt(greatest(g * g + guess * guess, tiny))
    slip = (k * length + limit * f) / (length + limit)
    inverse = F(1) / np.sqrt(greatest(g * g + slip * slip, tiny))
    share = limit * inverse
    slope = F(1) + share - share * inverse * inverse * (slip - f) * slip
    slip = slip - (slip + share * (slip - f) - k) / greatest(slope, F(1))
    squared = greatest(g * g + slip * slip, tiny)
    along = squared / (squared + limit * g * g / np.sqrt(squared))
    held_t = slides * (ut - slip + slide) - slide
    free_n, free_t, hold, en, et = pull(vn, vt, un, ut, limit)
    nn, nt, tt = give(hold, en, et)
    touching = free_n < demand
    free = F(0) if touching else F(1)
    held_tt = slides * along
    return (
        greatest(free_n, demand),
        held_t if touching else free_t,
        free * nn,
        free * nt,
        held_tt + free * (tt - held_tt),
    )


@formula
def contact_point(is_one, rx, ry, nx, ny, turn, found):
    """Add a contact point at (rx, ry) in A's frame.

    `turn` is the normal (nx, ny) times the difference of the turn rates, A's
    less B's. `found` holds the largest demand so far, up to a constant of the
    pair (-FAR: none), and that point's place along the normal.
    """
    demand, place = found
    need = ry * turn[0] - rx * turn[1]
    counts = is_one & (need > demand)
    return (need if counts else demand), (rx * nx + ry * ny if counts else place)


@formula
def sector(x, y):
    """The direction of (x, y) as a number in [0, 4) that grows with its angle."""
    slope = y / (abs(x) + abs(y) + F(1e-9))
    right = slope if y >= F(0) else slope + F(4)
    return right if x >= F(0) else F(2) - slope


@formula
def facing_edge(edge, x, y, best, out):
    """Hold an edge of a body against the six points (x, y), vertices of another body.

    `best` holds the largest separation of any edge so far and its normal, `out`
    how far outside each point is, by the edges so far.
    """
    nx, ny, offset = edge
    d0 = nx * x[0] + ny * y[0] - offset
    d1 = nx * x[1] + ny * y[1] - offset
    d2 = nx * x[2] + ny * y[2] - offset
    d3 = nx * x[3] + ny * y[3] - offset
    d4 = nx * x[4] + ny * y[4] - offset
    d5 = nx * x[5] + ny * y[5] - offset
    low = least(least(least(d0, d1), least(d2, d3)), least(d4, d5))
    better = low > best[0]
    return (
        (low if better else best[0], nx if better else best[1], ny if better else best[2]),
        (
            greatest(out[0], d0),
            greatest(out[1], d1),
            greatest(out[2], d2),
            greatest(out[3], d3),
            greatest(out[4], d4),
            greatest(out[5], d5),
        ),
    )


@formula
def facing_edges(edges, x, y):
    """Six edges of a body against six points; see `facing_edge`."""
    best = (-FAR, F(0), F(0))
    out = (-FAR, -FAR, -FAR, -FAR, -FAR, -FAR)
    best, out = facing_edge(edges[0], x, y, best, out)
    best, out = facing_edge(edges[1], x, y, best, out)
    best, out = facing_edge(edges[2], x, y, best, out)
    best, out = facing_edge(edges[3], x, y, best, out)
    best, out = facing_edge(edges[4], x, y, best, out)
    return facing_edge(edges[5], x, y, best, out)


@formula
def turned(points, px, py, c, s):
    """Six points (x, y) of a body at (px, py), turned by (c, s)."""
    x, y = points
    return (
        (
            px + c * x[0] - s * y[0],
            px + c * x[1] - s * y[1],
            px + c * x[2] - s * y[2],
            px + c * x[3] - s * y[3],
            px + c * x[4] - s * y[4],
            px + c * x[5] - s * y[5],
        ),
        (
            py + s * x[0] + c * y[0],
            py + s * x[1] + c * y[1],
            py + s * x[2] + c * y[2],
            py + s * x[3] + c * y[3],
            py + s * x[4] + c * y[4],
            py + s * x[5] + c * y[5],
        ),
    )


@formula
def contact_points(out, points, nx, ny, spin, found):
    """Add those of six points that are not outside; see `contact_point`."""
    x, y = points
    turn = (spin * nx, spin * ny)
    found = contact_point(out[0] <= F(0), x[0], y[0], nx, ny, turn, found)
    found = contact_point(out[1] <= F(0), x[1], y[1], nx, ny, turn, found)
    found = contact_point(out[2] <= F(0), x[2], y[2], nx, ny, turn, found)
    found = contact_point(out[3] <= F(0), x[3], y[3], nx, ny, turn, found)
    found = contact_point(out[4] <= F(0), x[4], y[4], nx, ny, turn, found)
    return contact_point(out[5] <= F(0), x[5], y[5], nx, ny, turn, found)


@formula
def facing_contact(edges_a, points_a, edges_b, points_b, px, py, c, s, wa, wb):
    """Contact of body A with body B at (px, py), turned by (c, s), in A's frame.

    Edges and points are the six edges and vertices of each body that face the
    other. Returns the separation (negative: they overlap), the normal from B to
    A, and the largest demand on the relative normal velocity with the sliding
    velocity of that point. The normal is the axis of least penetration; contact
    points are the vertices of each body inside the other or, if there is none,
    the point midway between the centres.
    """
    b_in_a = turned(points_b, px, py, c, s)
    a_in_b = turned(points_a, -(c * px + s * py), s * px - c * py, c, -s)
    by_a, out_b = facing_edges(edges_a, b_in_a[0], b_in_a[1])
    by_b, out_a = facing_edges(edges_b, a_in_b[0], a_in_b[1])
    a_decides = by_a[0] >= by_b[0]
    nx = -by_a[1] if a_decides else c * by_b[1] - s * by_b[2]
    ny = -by_a[2] if a_decides else s * by_b[1] + c * by_b[2]
    spin = wa - wb
    found = contact_points(out_a, points_a, nx, ny, spin, (-FAR, F(0)))
    found = contact_points(out_b, b_in_a, nx, ny, spin, found)
    turn = (spin * nx, spin * ny)
    found = contact_point(found[0] == -FAR, F(0.5) * px, F(0.5) * py, nx, ny, turn, found)
    # B turns about its own centre, at (px, py).
    demand = found[0] + wb * (py * nx - px * ny)
    slide = spin * found[1] + wb * (px * nx + py * ny)
    return greatest(by_a[0], by_b[0]), nx, ny, demand, slide


# --- sensing -----------------------------------------------------------------------------------


@formula
def ray_to_walls(x, y, dx, dy, width, height):
    """Distance along the unit vector (dx, dy) to the walls; a ray from beyond one misses it."""
    tiny = F(1e-9)
    safe_x = dx if abs(dx) > tiny else tiny
    safe_y = dy if abs(dy) > tiny else tiny
    tx = ((width if dx > F(0) else F(0)) - x) / safe_x
    ty = ((height if dy > F(0) else F(0)) - y) / safe_y
    tx = FAR if tx < F(0) else tx
    ty = FAR if ty < F(0) else ty
    return least(tx, ty)


@formula
def ray_to_edge(edge, x, y, dx, dy, span):
    """Cut the stretch (enter, leave) of a ray to what lies on the inner side of an edge."""
    nx, ny, offset = edge
    enter, leave = span
    speed = nx * dx + ny * dy
    speed = speed if abs(speed) > F(1e-9) else F(1e-9)
    distance = (offset - nx * x - ny * y) / speed
    return (
        greatest(enter, distance if speed < F(0) else F(-1)),
        least(leave, FAR if speed < F(0) else distance),
    )


@formula
def ray_to_body(edges, x, y, dx, dy):
    """Distance along the unit vector (dx, dy) to a body, all in the body's frame.

    A ray that starts inside misses.
    """
    span = (F(-1), FAR)
    span = ray_to_edge(edges[0], x, y, dx, dy, span)
    span = ray_to_edge(edges[1], x, y, dx, dy, span)
    span = ray_to_edge(edges[2], x, y, dx, dy, span)
    span = ray_to_edge(edges[3], x, y, dx, dy, span)
    span = ray_to_edge(edges[4], x, y, dx, dy, span)
    span = ray_to_edge(edges[5], x, y, dx, dy, span)
    span = ray_to_edge(edges[6], x, y, dx, dy, span)
    span = ray_to_edge(edges[7], x, y, dx, dy, span)
    span = ray_to_edge(edges[8], x, y, dx, dy, span)
    enter, leave = span
    return enter if (enter >= F(0)) & (enter <= leave) else FAR


@formula
def may_hit(x, y, dx, dy, radius, reach):
    """Whether a ray along the unit vector (dx, dy) may hit a disc at the origin within reach."""
    across = x * dy - y * dx
    along = -(x * dx + y * dy)
    return (across * across < radius * radius) & (along > -radius) & (along < reach + radius)


@formula
def proximity_value(distance, reach, linear, quadratic):
    """The noiseless reading for an obstacle at `distance` (m), before clamping to [0, 1]."""
    x = F(100) * distance
    return F(1) + x * (linear + x * quadratic) if distance <= reach else F(0)
