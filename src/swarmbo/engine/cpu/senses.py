"""What the robots perceive: neighbours, obstacles and floor, as inputs of their networks."""

import numpy as np

from swarmbo.compilation import formula
from swarmbo.engine.formulas import (
    GROUND_FAULT,
    GROUND_NOISE,
    PROXIMITY_FAULT,
    PROXIMITY_NOISE,
    F,
    I,
    clamp,
    greatest,
    least,
    may_hit,
    proximity_value,
    ray_to_body,
    ray_to_walls,
    tick_word,
    uniform,
)
from swarmbo.engine.lanes import RAY_ROWS, VIEW_ROWS
from swarmbo.world.disturbance import SENSOR_MAX, SENSOR_MIN, SENSOR_RANDOM

# One robot in another's frame, and which of its sensors may see it: bits of a number. In blocks
# of 8 as in cpu_blocks.
X, Y, COS, SIN, SENSORS = (I(8 * row) for row in range(VIEW_ROWS))
# Likewise a sensor's ray in the other's frame: m, unit vector, and the distance (m) to its body.
RAY_X, RAY_Y, RAY_COS, RAY_SIN, DISTANCE = (I(8 * row) for row in range(RAY_ROWS))
_VIEW = I(8 * VIEW_ROWS)
_RAY = I(8 * RAY_ROWS)
_ALL_PAIRS = 24  # robots up to which comparing all pairs beats a grid
_MIN = np.int32(SENSOR_MIN)
_MAX = np.int32(SENSOR_MAX)
_RANDOM = np.int32(SENSOR_RANDOM)


# --- who is near whom --------------------------------------------------------------------------


@formula
def _all_pairs(world, lanes, work):
    """List the lanes within each other's sensing reach, comparing all robots of a swarm."""
    trials = world.trials
    reach2 = np.float64(world.sense_reach * world.sense_reach)
    count = 0
    for a in range(world.robots):
        for b in range(a + 1, (a // world.swarm + 1) * world.swarm):
            for trial in range(trials):
                i = np.uint32(a * trials + trial)
                j = np.uint32(b * trials + trial)
                dx = lanes.x[j] - lanes.x[i]
                dy = lanes.y[j] - lanes.y[i]
                if dx * dx + dy * dy < reach2:
                    work.near[count, 0] = i
                    work.near[count, 1] = j
                    count += 1
    return count


@formula
def _grid_pairs(world, lanes, work):
    """The same with a grid whose cells are at least as wide as the sensing reach."""
    robots = world.swarm
    trials = world.trials
    reach2 = np.float64(world.sense_reach * world.sense_reach)
    side = greatest(world.sense_reach, np.sqrt(world.width * world.height / np.float32(robots)))
    per_side = np.float64(1 / side)
    columns = np.int64(world.width / side) + 1
    rows = np.int64(world.height / side) + 1
    capacity = work.near.shape[0]
    count = 0
    for group in range(world.robots // robots * trials):  # the robots of a swarm in one trial
        first_lane = group // trials * robots * trials + group % trials
        for cell in range(columns * rows + 1):
            work.cell_start[cell] = 0
        for robot in range(robots):
            lane = first_lane + robot * trials
            column = min(max(np.int64(lanes.x[lane] * per_side), 0), columns - 1)
            row = min(max(np.int64(lanes.y[lane] * per_side), 0), rows - 1)
            cell = row * columns + column
            work.robot_cell[robot] = cell
            work.cell_start[cell + 1] += 1
        for cell in range(columns * rows):
            work.cell_start[cell + 1] += work.cell_start[cell]
        # Filling from the back moves each start down to its final place.
        for robot in range(robots - 1, -1, -1):
            cell = work.robot_cell[robot]
            work.cell_start[cell + 1] -= 1
            work.cell_robot[work.cell_start[cell + 1]] = robot
        for robot in range(robots):
            lane = first_lane + robot * trials
            cell = np.int64(work.robot_cell[robot])
            column = cell % columns
            row = cell // columns
            for other_row in range(max(row - 1, 0), min(row + 2, rows)):
                first = other_row * columns + max(column - 1, 0)
                last = other_row * columns + min(column + 1, columns - 1)
                end = robots if last + 2 > columns * rows else work.cell_start[last + 2]
                for index in range(work.cell_start[first + 1], end):
                    other = work.cell_robot[index]
                    if other > robot:
                        other_lane = first_lane + other * trials
                        dx = lanes.x[other_lane] - lanes.x[lane]
                        dy = lanes.y[other_lane] - lanes.y[lane]
                        if dx * dx + dy * dy < reach2:
                            if count < capacity:
                                work.near[count, 0] = lane
                                work.near[count, 1] = other_lane
                            count += 1
    return count


@formula
def near_pairs(world, lanes, work):
    """List the lanes within each other's sensing reach in `work.near`; return their number.

    Where that is more than there is room for, the list is not complete.
    """
    if world.swarm <= _ALL_PAIRS:
        return _all_pairs(world, lanes, work)
    return _grid_pairs(world, lanes, work)


# --- sensing -----------------------------------------------------------------------------------


@formula
def _look_at_walls(world, lanes, work):
    """Distance of every proximity sensor to the walls."""
    width = world.width
    height = world.height
    for k in range(7):
        sx = world.sensors[k, 0]
        sy = world.sensors[k, 1]
        sc = world.sensors[k, 2]
        ss = world.sensors[k, 3]
        for i in range(lanes.x.size):
            c = lanes.cos[i]
            s = lanes.sin[i]
            work.reading[k, i] = ray_to_walls(
                work.x[i] + c * sx - s * sy,
                work.y[i] + s * sx + c * sy,
                c * sc - s * ss,
                s * sc + c * ss,
                width,
                height,
            )


@formula
def _view(lanes, work, i, j, number):
    """Write robot i's pose in robot j's frame as the view of that number."""
    dx = F(lanes.x[i] - lanes.x[j])
    dy = F(lanes.y[i] - lanes.y[j])
    ci = lanes.cos[i]
    si = lanes.sin[i]
    cj = lanes.cos[j]
    sj = lanes.sin[j]
    p = I(number // 8) * _VIEW + I(number % 8)
    work.viewer[number] = i
    work.sight[p + X] = cj * dx + sj * dy
    work.sight[p + Y] = cj * dy - sj * dx
    work.sight[p + COS] = ci * cj + si * sj
    work.sight[p + SIN] = si * cj - ci * sj


@formula
def _sensor(world, k):
    """Place and direction of a proximity sensor."""
    sensors = world.sensors
    return sensors[k, 0], sensors[k, 1], sensors[k, 2], sensors[k, 3]


@formula
def _ray(sensor, x, y, c, s):
    """The ray of a sensor of a robot at (x, y), turned by (c, s): place and direction."""
    sx, sy, sc, ss = sensor
    return x + c * sx - s * sy, y + s * sx + c * sy, c * sc - s * ss, s * sc + c * ss


@formula
def _may_see(sensor, x, y, c, s, radius, reach):
    rx, ry, dx, dy = _ray(sensor, x, y, c, s)
    return F(1) if may_hit(rx, ry, dx, dy, radius, reach) else F(0)


@formula
def _aim(world, sight, base):
    """Find the sensors that may see the other robot, for a block of views."""
    radius = world.radius + F(1e-4)
    reach = world.proximity[0]
    s0 = _sensor(world, 0)
    s1 = _sensor(world, 1)
    s2 = _sensor(world, 2)
    s3 = _sensor(world, 3)
    s4 = _sensor(world, 4)
    s5 = _sensor(world, 5)
    s6 = _sensor(world, 6)
    for p in range(base, base + I(8)):
        x = sight[p + X]
        y = sight[p + Y]
        c = sight[p + COS]
        s = sight[p + SIN]
        bits = _may_see(s0, x, y, c, s, radius, reach)
        bits += F(2) * _may_see(s1, x, y, c, s, radius, reach)
        bits += F(4) * _may_see(s2, x, y, c, s, radius, reach)
        bits += F(8) * _may_see(s3, x, y, c, s, radius, reach)
        bits += F(16) * _may_see(s4, x, y, c, s, radius, reach)
        bits += F(32) * _may_see(s5, x, y, c, s, radius, reach)
        bits += F(64) * _may_see(s6, x, y, c, s, radius, reach)
        sight[p + SENSORS] = bits


@formula
def _look_at_robots(world, lanes, work, near):
    """Distance of the proximity sensors to other robots.

    First the views of one robot on another, then those of the seven rays of each
    that may hit the other: one in six or so.
    """
    sight = work.sight
    ray = work.ray
    beam = work.beam
    edges = world.edges
    for index in range(near):
        i = work.near[index, 0]
        j = work.near[index, 1]
        _view(lanes, work, i, j, 2 * index)
        _view(lanes, work, j, i, 2 * index + 1)
    for base in range(I(0), I((2 * near + 7) // 8) * _VIEW, _VIEW):
        _aim(world, sight, base)
    rays = I(0)
    for number in range(2 * near):
        bits = np.int32(sight[I(number // 8) * _VIEW + I(number % 8) + SENSORS])
        for k in range(7):
            beam[rays, 0] = number
            beam[rays, 1] = k
            rays += I((bits >> k) & 1)
    for number in range(rays):
        view = beam[number, 0]
        p = I(view // 8) * _VIEW + I(view % 8)
        r = (number // I(8)) * _RAY + number % I(8)
        sensor = _sensor(world, I(beam[number, 1]))
        x, y, c, s = _ray(sensor, sight[p + X], sight[p + Y], sight[p + COS], sight[p + SIN])
        ray[r + RAY_X] = x
        ray[r + RAY_Y] = y
        ray[r + RAY_COS] = c
        ray[r + RAY_SIN] = s
    for base in range(I(0), ((rays + I(7)) // I(8)) * _RAY, _RAY):
        for r in range(base, base + I(8)):
            ray[r + DISTANCE] = ray_to_body(
                edges, ray[r + RAY_X], ray[r + RAY_Y], ray[r + RAY_COS], ray[r + RAY_SIN]
            )
    for number in range(rays):
        i = I(work.viewer[beam[number, 0]])
        k = I(beam[number, 1])
        distance = ray[(number // I(8)) * _RAY + number % I(8) + DISTANCE]
        work.reading[k, i] = least(work.reading[k, i], distance)


@formula
def _read_proximity(world, lanes, work):
    """Proximity values with noise, as network inputs."""
    reach, linear, quadratic, noise = world.proximity
    for k in range(7):
        for i in range(lanes.x.size):
            value = proximity_value(work.reading[k, i], reach, linear, quadratic)
            value += noise * (F(2) * uniform(work.word[i], PROXIMITY_NOISE + k) - F(1))
            lanes.inputs[k, i] = np.float64(F(1) - F(2) * clamp(value, F(0), F(1)))


@formula
def _break_proximity(world, lanes, work):
    """Replace what faulty proximity sensors read."""
    for k in range(world.front_sensors):
        for i in range(world.robots * world.trials):
            fault = lanes.proximity_fault[i]
            if fault == _MIN:
                lanes.inputs[k, i] = 1.0
            elif fault == _MAX:
                lanes.inputs[k, i] = -1.0
            elif fault == _RANDOM:
                value = uniform(work.word[i], PROXIMITY_FAULT + k)
                lanes.inputs[k, i] = np.float64(F(1) - F(2) * value)


@formula
def _look_at_floor(world, lanes, work):
    """Which of the two ground sensors and the centre are over food?"""
    ax = world.ground_points[0, 0]
    ay = world.ground_points[0, 1]
    bx = world.ground_points[1, 0]
    by = world.ground_points[1, 1]
    for i in range(lanes.x.size):
        work.floor[0, i] = 0
        work.floor[1, i] = 0
        work.floor[2, i] = 0
    for k in range(world.food.shape[0]):
        fx = F(world.food[k, 0])
        fy = F(world.food[k, 1])
        r2 = F(world.food[k, 2] * world.food[k, 2])
        for i in range(lanes.x.size):
            c = lanes.cos[i]
            s = lanes.sin[i]
            x = work.x[i] - fx
            y = work.y[i] - fy
            px = x + c * ax - s * ay
            py = y + s * ax + c * ay
            qx = x + c * bx - s * by
            qy = y + s * bx + c * by
            work.floor[0, i] |= np.int32(px * px + py * py < r2)
            work.floor[1, i] |= np.int32(qx * qx + qy * qy < r2)
            work.floor[2, i] |= np.int32(x * x + y * y < r2)


@formula
def _ground_input(grey):
    return np.float64(clamp(grey * F(2 / 255) - F(1), F(-1), F(1)))


@formula
def _read_ground(world, lanes, work):
    """Ground sensors with noise, as network inputs."""
    nest, food, floor = world.greys
    depth = F(world.nest_depth)
    noise = world.ground_noise
    for k in range(2):
        sx = world.ground_points[k, 0]
        sy = world.ground_points[k, 1]
        for i in range(lanes.x.size):
            x = work.x[i] + lanes.cos[i] * sx - lanes.sin[i] * sy
            grey = food if work.floor[k, i] != 0 else floor
            grey = nest if x < depth else grey
            grey += noise * (F(2) * uniform(work.word[i], GROUND_NOISE + k) - F(1))
            lanes.inputs[7 + k, i] = _ground_input(grey)


@formula
def _break_ground(world, lanes, work):
    """Replace what faulty ground sensors read."""
    for k in range(2):
        for i in range(world.robots * world.trials):
            fault = lanes.ground_fault[i]
            if fault == _MIN:
                lanes.inputs[7 + k, i] = -1.0
            elif fault == _MAX:
                lanes.inputs[7 + k, i] = 1.0
            elif fault == _RANDOM:
                grey = F(255) * uniform(work.word[i], GROUND_FAULT + k)
                lanes.inputs[7 + k, i] = _ground_input(grey)


@formula
def any_set(codes):
    """Whether any lane has a code other than 0."""
    total = np.int32(0)
    for i in range(codes.size):
        total |= codes[i]
    return total != 0


@formula
def sense(world, lanes, work, near, tick):
    """Set the networks' inputs at the robots' present poses."""
    for i in range(lanes.x.size):
        work.word[i] = tick_word(lanes.key0[i], lanes.key1[i], tick)
    _look_at_walls(world, lanes, work)
    _look_at_robots(world, lanes, work, near)
    _read_proximity(world, lanes, work)
    if any_set(lanes.proximity_fault):
        _break_proximity(world, lanes, work)
    _look_at_floor(world, lanes, work)
    _read_ground(world, lanes, work)
    if any_set(lanes.ground_fault):
        _break_ground(world, lanes, work)
    for i in range(lanes.x.size):
        lanes.inputs[9, i] = 1.0
