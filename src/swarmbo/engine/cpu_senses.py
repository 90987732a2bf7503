"""What the robots perceive: neighbours, obstacles and floor, as inputs of their networks."""

import numpy as np

from swarmbo.engine.compilation import formula
from swarmbo.engine.formulas import (
    GROUND_FAULT,
    GROUND_NOISE,
    PROXIMITY_FAULT,
    PROXIMITY_NOISE,
    F,
    I,
    clamp,
    greatest,
    proximity_value,
    ray_to_body,
    ray_to_walls,
    tick_word,
    uniform,
)
from swarmbo.engine.lanes import VIEW_ROWS
from swarmbo.world.disturbance import SENSOR_FAULTS

# One robot in another's frame, and what its sensors see of it, in blocks of 8 as in cpu_blocks.
X, Y, COS, SIN, DISTANCE = (I(8 * row) for row in range(5))
_BLOCK = I(8 * VIEW_ROWS)
_ALL_PAIRS = 24  # robots up to which comparing all pairs beats a grid
_MIN = np.int32(SENSOR_FAULTS.index("min"))
_MAX = np.int32(SENSOR_FAULTS.index("max"))
_RANDOM = np.int32(SENSOR_FAULTS.index("random"))


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
    reach2 = np.float64(world.sense_reach * world.sense_reach)
    side = greatest(
        world.sense_reach, np.sqrt(world.width * world.height / np.float32(world.robots))
    )
    per_side = np.float64(1 / side)
    columns = np.int64(world.width / side) + 1
    rows = np.int64(world.height / side) + 1
    capacity = work.near.shape[0]
    count = 0
    for trial in range(world.trials):
        for cell in range(columns * rows + 1):
            work.cell_start[cell] = 0
        for robot in range(world.robots):
            lane = robot * world.trials + trial
            column = min(max(np.int64(lanes.x[lane] * per_side), 0), columns - 1)
            row = min(max(np.int64(lanes.y[lane] * per_side), 0), rows - 1)
            cell = row * columns + column
            work.robot_cell[robot] = cell
            work.cell_start[cell + 1] += 1
        for cell in range(columns * rows):
            work.cell_start[cell + 1] += work.cell_start[cell]
        # Filling from the back moves each start down to its final place.
        for robot in range(world.robots - 1, -1, -1):
            cell = work.robot_cell[robot]
            work.cell_start[cell + 1] -= 1
            work.cell_robot[work.cell_start[cell + 1]] = robot
        for robot in range(world.robots):
            lane = robot * world.trials + trial
            cell = np.int64(work.robot_cell[robot])
            column = cell % columns
            row = cell // columns
            for other_row in range(max(row - 1, 0), min(row + 2, rows)):
                first = other_row * columns + max(column - 1, 0)
                last = other_row * columns + min(column + 1, columns - 1)
                end = world.robots if last + 2 > columns * rows else work.cell_start[last + 2]
                for index in range(work.cell_start[first + 1], end):
                    other = work.cell_robot[index]
                    if other > robot:
                        other_lane = other * world.trials + trial
                        dx = lanes.x[other_lane] - lanes.x[lane]
                        dy = lanes.y[other_lane] - lanes.y[lane]
                        if dx * dx + dy * dy < reach2 and count < capacity:
                            work.near[count, 0] = lane
                            work.near[count, 1] = other_lane
                            count += 1
    return count


@formula
def near_pairs(world, lanes, work):
    """List the lanes within each other's sensing reach in `work.near`; return their number."""
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
    p = I(number // 8) * _BLOCK + I(number % 8)
    work.viewer[number] = i
    work.sight[p + X] = cj * dx + sj * dy
    work.sight[p + Y] = cj * dy - sj * dx
    work.sight[p + COS] = ci * cj + si * sj
    work.sight[p + SIN] = si * cj - ci * sj


@formula
def _look_at_robots(world, lanes, work, near):
    """Distance of the proximity sensors to other robots, eight views at a time."""
    sight = work.sight
    edges = world.edges
    for index in range(near):
        i = work.near[index, 0]
        j = work.near[index, 1]
        _view(lanes, work, i, j, 2 * index)
        _view(lanes, work, j, i, 2 * index + 1)
    for base in range(I(0), I((2 * near + 7) // 8) * _BLOCK, _BLOCK):
        for k in range(7):
            sx = world.sensors[k, 0]
            sy = world.sensors[k, 1]
            sc = world.sensors[k, 2]
            ss = world.sensors[k, 3]
            row = DISTANCE + I(8 * k)
            for p in range(base, base + I(8)):
                c = sight[p + COS]
                s = sight[p + SIN]
                sight[p + row] = ray_to_body(
                    edges,
                    sight[p + X] + c * sx - s * sy,
                    sight[p + Y] + s * sx + c * sy,
                    c * sc - s * ss,
                    s * sc + c * ss,
                )
    for number in range(2 * near):
        i = work.viewer[number]
        p = I(number // 8) * _BLOCK + I(number % 8)
        for k in range(7):
            distance = sight[p + DISTANCE + I(8 * k)]
            if distance < work.reading[k, i]:
                work.reading[k, i] = distance


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
