"""Contact on the CPU: the sub-steps of a tick for the robots that may touch something.

Lone robots at walls are solved here, a block at a time and in closed form;
contacts between robots are found in `cpu_contacts` and solved in `cpu_solver`.
"""

import numpy as np

from swarmbo.compilation import formula
from swarmbo.engine.cpu.blocks import (
    BLOCK,
    COS,
    CROWDED,
    DEMAND_X,
    DEMAND_Y,
    DX,
    DY,
    EIGHT,
    LANE,
    P_TURN_A,
    P_TURN_B,
    QX,
    QY,
    SIDE_X,
    SIDE_Y,
    SIN,
    SLIDE_X,
    SLIDE_Y,
    STEP_COS,
    STEP_SIN,
    TURN,
    UX,
    UY,
    VX,
    VY,
    ZERO,
    X,
    Y,
    pair_index,
    place,
)
from swarmbo.engine.cpu.contacts import (
    collect_pairs,
    face_each_other,
    recall,
    relate,
    remember,
)
from swarmbo.engine.cpu.solver import solve_contacts
from swarmbo.engine.formulas import (
    FAR,
    F,
    I,
    clamp,
    greatest,
    least,
    motor,
    small_turn,
    wall_contact,
    wall_velocity,
)
from swarmbo.engine.lanes import ACTIVE_ROWS, MARGIN


@formula
def _activate(world, lanes, work, i, count):
    """Give lane i a place among the active ones, if it has none; return the new count."""
    active = work.active
    if work.slot[i] >= 0:
        return count
    p = place(count)
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
    return count + 1


@formula
def _fill_up(world, active, count):
    """Let the places up to a whole block rest in the middle of the arena; return the new count."""
    end = (count + 7) // 8 * 8
    for number in range(count, end):
        p = place(number)
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
def gather(world, lanes, work, near):
    """Find the lanes and pairs that may touch something in this tick.

    Returns the numbers of places that are taken by all, by those in corners, and by
    those in corners or at walls, and the number of pairs.
    """
    reach = world.radius + MARGIN
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
        reach2 = F(2) * reach + np.sqrt(mx * mx + my * my) + world.slack
        if dx * dx + dy * dy < reach2 * reach2:
            # Pushed, they may leave their paths.
            work.wall_gap[i] -= world.drift
            work.wall_gap[j] -= world.drift
            work.corner_gap[i] -= world.drift
            work.corner_gap[j] -= world.drift
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
        recall(lanes, work, pair)
        face_each_other(
            world, lanes, work, pair, work.pair_place[pair, 0], work.pair_place[pair, 1]
        )
        a = work.slot[work.pair_place[pair, 0]]
        b = work.slot[work.pair_place[pair, 1]]
        work.pair_place[pair, 0] = a
        work.pair_place[pair, 1] = b
        p = pair_index(pair)
        work.pair[p + P_TURN_A] = work.active[I(a) + TURN]
        work.pair[p + P_TURN_B] = work.active[I(b) + TURN]
    return count, in_corners, at_walls, pairs


@formula
def _move(active, i, dt):
    """A sub-step's motion: positions with the old velocity, headings with the turn rate."""
    vx = active[i + VX]
    vy = active[i + VY]
    c = active[i + COS]
    s = active[i + SIN]
    active[i + DX] += dt * vx
    active[i + DY] += dt * vy
    active[i + COS] = c * active[i + STEP_COS] - s * active[i + STEP_SIN]
    active[i + SIN] = s * active[i + STEP_COS] + c * active[i + STEP_SIN]
    active[i + QX] = vx
    active[i + QY] = vy
    active[i + CROWDED] = F(0)
    # After a tick's first sub-step the robots turn at the commanded rate.
    c, s = small_turn(dt * active[i + TURN])
    active[i + STEP_COS] = c
    active[i + STEP_SIN] = s


@formula
def _run_freely(world, active, base):
    limit = world.limit
    dt = world.dt
    for i in range(base, base + world.block):
        _move(active, i, dt)
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
    dt = world.dt
    for i in range(base, base + EIGHT):
        _move(active, i, dt)
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
    dt = world.dt
    for i in range(base, base + EIGHT):
        _move(active, i, dt)
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


@formula
def _stay_inside(world, active, p):
    """Put a robot back to the wall, at rest, through which a crowd has thrown its centre.

    What is nowhere stays there, so that the run ends with an error.
    """
    x = active[p + X] + active[p + DX]
    y = active[p + Y] + active[p + DY]
    thrown = (x < F(0)) | (x > world.width) | (y < F(0)) | (y > world.height)
    if thrown & (abs(x) < FAR) & (abs(y) < FAR):
        active[p + DX] = clamp(x, F(0), world.width) - active[p + X]
        active[p + DY] = clamp(y, F(0), world.height) - active[p + Y]
        active[p + VX] = F(0)
        active[p + VY] = F(0)


@formula
def substeps(world, lanes, work, count, in_corners, at_walls, pairs):
    """Move the active lanes through the sub-steps of a tick."""
    active = work.active
    end = I(count // 8) * BLOCK
    wall_end = I(at_walls // 8) * BLOCK
    corner_end = I(in_corners // 8) * BLOCK
    for _ in range(world.substeps):
        for base in range(ZERO, corner_end, BLOCK):
            _meet_corners(world, active, base)
        for base in range(corner_end, wall_end, BLOCK):
            _meet_nearest_wall(world, active, base)
        for base in range(wall_end, end, BLOCK):
            _run_freely(world, active, base)
        relate(work, pairs)
        contacts = collect_pairs(world, work, pairs)
        if contacts > 0:
            solve_contacts(world, work, contacts)
    for number in range(count):
        p = place(number)
        if active[p + LANE] < F(0):
            continue
        i = I(active[p + LANE])
        _stay_inside(world, active, p)
        work.path_x[i] = active[p + DX]
        work.path_y[i] = active[p + DY]
        lanes.vx[i] = active[p + VX]
        lanes.vy[i] = active[p + VY]
    remember(lanes, work, count, pairs)
