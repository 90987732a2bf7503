"""What the robots sense, on the GPU: a lane per robot, or per sensor that may see another one."""

import numpy as np

from swarmbo.engine.gpu.layout import COS, NEAR, SIN, X, Y, pair_entry, robots_of
from swarmbo.engine.gpu.warp import LANES, I, J, U, add_to, device, lower_to, on
from swarmbo.world.disturbance import SENSOR_MAX, SENSOR_MIN, SENSOR_RANDOM

F = np.float32
MIN, MAX, RANDOM = J(SENSOR_MIN), J(SENSOR_MAX), J(SENSOR_RANDOM)
SENSORS = 7
UNSEEN = J(2**31 - 1)
PER_METRE = F(2.0**30)  # of distances as integers


@device
def near_pairs(world, shared, table, pairs, t):
    """List the pairs within each other's sensing reach."""
    per_trial = world.robots * (world.robots - 1) // 2
    reach2 = world.sense_reach * world.sense_reach
    robots = shared.robots
    q = t
    while q < U(pairs):
        slot = U(q // U(per_trial))
        begin = shared.warp * U(LANES) + slot * U(world.robots)
        code = table[U(q - slot * U(per_trial))]
        a = begin + (code & U(31))
        b = begin + ((code >> U(5)) & U(31))
        dx = robots[X, b] - robots[X, a]
        dy = robots[Y, b] - robots[Y, a]
        if dx * dx + dy * dy < reach2:
            k = U(add_to(shared.counters, (U(NEAR), shared.warp), J(1)))
            shared.near[shared.first_pair + k] = pair_entry(a, b, q)
        q = U(q + shared.lanes)


@device
def _ray(shared, sensors, task):
    """The ray of a task (pair, viewer, sensor) in the frame of the robot that may be seen.

    Returns the viewer, the sensor, and the ray's start and direction.
    """
    robots = shared.robots
    number = U(U(task) // U(14))
    rest = U(U(task) - number * U(14))
    a, b = robots_of(shared.near[shared.first_pair + number])
    swaps = rest >= U(7)
    i = b if swaps else a
    j = a if swaps else b
    k = rest - U(7) if swaps else rest
    dx = robots[X, i] - robots[X, j]
    dy = robots[Y, i] - robots[Y, j]
    ci = robots[COS, i]
    si = robots[SIN, i]
    cj = robots[COS, j]
    sj = robots[SIN, j]
    c = ci * cj + si * sj
    s = si * cj - ci * sj
    sx = sensors[k, U(0)]
    sy = sensors[k, U(1)]
    sc = sensors[k, U(2)]
    ss = sensors[k, U(3)]
    ray = (
        cj * dx + sj * dy + c * sx - s * sy,
        cj * dy - sj * dx + s * sx + c * sy,
        c * sc - s * ss,
        s * sc + c * ss,
    )
    return i, k, ray


@device
def look_at_robots(world, shared, sensors, readings, count, t, first):
    """Distance of proximity sensors to other robots, a lane per pair, viewer and sensor.

    Most rays pass by; a lane goes on to its next one that does not.
    """
    reach = world.proximity[0]
    tasks = U(count * J(14))
    task = t
    while task < tasks:
        i = U(0)
        k = U(0)
        ray = (F(0), F(0), F(1), F(0))
        hits = False
        looks = True
        while looks:
            i, k, ray = _ray(shared, sensors, task)
            task = U(task + shared.lanes)
            hits = on.may_hit(ray[0], ray[1], ray[2], ray[3], world.radius, reach)
            looks = task < tasks and not hits
        distance = on.ray_to_body(world.edges, ray[0], ray[1], ray[2], ray[3])
        if hits and distance <= reach:
            lower_to(readings, first + k * U(LANES) + (i & U(31)), J(distance * PER_METRE))


@device
def proximity_input(world, sensor, k, pose, seen, word):
    """The network's input of one proximity sensor at the robot's pose."""
    sx, sy, sc, ss = sensor
    x, y, c, s = pose
    reach, linear, quadratic, noise = world.proximity
    distance = on.ray_to_walls(
        x + c * sx - s * sy,
        y + s * sx + c * sy,
        c * sc - s * ss,
        s * sc + c * ss,
        world.width,
        world.height,
    )
    if seen != UNSEEN:
        distance = on.least(distance, F(seen) * F(1 / PER_METRE))
    value = on.proximity_value(distance, reach, linear, quadratic)
    value += noise * (F(2) * on.uniform(word, on.PROXIMITY_NOISE + k) - F(1))
    return F(1) - F(2) * on.clamp(value, F(0), F(1))


@device
def broken_input(value, k, word, fault):
    """The network's input of one proximity sensor with a fault, `value` without it."""
    if fault == MIN:
        value = F(1)
    elif fault == MAX:
        value = F(-1)
    elif fault == RANDOM:
        value = F(1) - F(2) * on.uniform(word, on.PROXIMITY_FAULT + k)
    return value


@device
def over_food(world, food, discs, scenario, pose):
    """Whether the first ground sensor, the second one, and the robot's centre are over food.

    `food` = scenarios x discs x (x, y, radius^2, radius^2 of the disc in which the
    centre is if any of the three is over the food), in a row.
    """
    x, y, c, s = pose
    ax, ay = world.ground_points[0]
    bx, by = world.ground_points[1]
    on_a = False
    on_b = False
    on_food = False
    disc = U(scenario * discs)
    end = U(disc + discs)
    while disc < end:
        k = I(disc) * I(4)
        fx = x - food[k]
        fy = y - food[k + I(1)]
        distance2 = fx * fx + fy * fy
        if distance2 < food[k + I(3)]:
            r2 = food[k + I(2)]
            px = fx + c * ax - s * ay
            py = fy + s * ax + c * ay
            on_a |= px * px + py * py < r2
            px = fx + c * bx - s * by
            py = fy + s * bx + c * by
            on_b |= px * px + py * py < r2
            on_food |= distance2 < r2
        disc = U(disc + U(1))
    return on_a, on_b, on_food


@device
def ground_input(world, point, k, pose, is_food, word, fault):
    """The network's input of one ground sensor."""
    nest, food, floor = world.greys
    sx, sy = point
    x, _, c, s = pose
    grey = food if is_food else floor
    grey = nest if x + c * sx - s * sy < F(world.nest_depth) else grey
    grey += world.ground_noise * (F(2) * on.uniform(word, on.GROUND_NOISE + k) - F(1))
    if fault != J(0):
        if fault == MIN:
            grey = F(0)
        elif fault == MAX:
            grey = F(255)
        elif fault == RANDOM:
            grey = F(255) * on.uniform(word, on.GROUND_FAULT + k)
    return on.clamp(grey * F(2 / 255) - F(1), F(-1), F(1))
