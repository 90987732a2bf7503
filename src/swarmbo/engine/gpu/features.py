"""The features of SDBC on the GPU: a lane measures its robot, then lanes add up the trials."""

import math

import numpy as np

from swarmbo.engine.gpu.warp import LANES, U, device, on, sync
from swarmbo.engine.lanes import FEATURES

D = np.float64
COUNT = len(FEATURES)
FAR = D(1e9)  # m, farther than any robot


def feature_bytes() -> int:
    """Shared memory of a warp for its part of the features."""
    return 8 * COUNT * LANES


@device
def clear_features(world, sums, first_trial, trials, t):
    """Set the sums of the warp's trials to 0; `sums` = trials x 12."""
    task = t
    while task < U(trials) * U(2 * COUNT):
        slot = U(task // U(2 * COUNT))
        sums[U(first_trial) + slot, task - slot * U(2 * COUNT)] = D(0)
        task = U(task + U(LANES))


@device
def measure(world, shared, parts, sums, first_trial, trials, pose, moved, t):
    """Add this tick's FEATURES and their squares to the sums; see lanes.py.

    `pose` = (x, y, heading) is the new one, `moved` = (x, y, angle) how the robot
    came there. `parts` = 6 x places of the block: what each robot contributes.
    """
    x, y, heading = pose
    moved_x, moved_y, angle = moved
    robots = U(world.robots)
    robot = U(t % robots)
    p = shared.warp * U(LANES) + t
    alive = t < U(trials) * robots
    parts[U(0), p] = x
    parts[U(1), p] = y
    sync()
    later = D(0)  # sum of the distances to the robots after this one
    nearest = FAR if world.robots > 1 else D(0)
    if alive:
        for other in range(robots):
            q = U(p - robot + U(other))
            dx = x - parts[U(0), q]
            dy = y - parts[U(1), q]
            distance = math.sqrt(dx * dx + dy * dy)
            if U(other) > robot:
                later += distance
            if U(other) != robot:
                nearest = min(nearest, distance)
    sync()
    turned = D(angle)
    c, s = on.cos_sin(heading - turned)
    width = D(world.width)
    height = D(world.height)
    cx = D(0.5) * width
    cy = D(0.5) * height
    parts[U(0), p] = D(moved_x * c + moved_y * s)
    parts[U(1), p] = turned
    parts[U(2), p] = D(0.25) * (
        math.sqrt(x * x + (y - cy) * (y - cy))
        + math.sqrt((x - width) * (x - width) + (y - cy) * (y - cy))
        + math.sqrt((x - cx) * (x - cx) + y * y)
        + math.sqrt((x - cx) * (x - cx) + (y - height) * (y - height))
    )
    parts[U(3), p] = D(2) * later
    parts[U(4), p] = nearest
    parts[U(5), p] = later if robot == U(0) else D(2) * later
    sync()
    per_robot = D(1 / world.robots)
    per_pair = per_robot / D(max(1, world.robots - 1))
    task = t
    while task < U(trials) * U(COUNT):
        slot = U(task // U(COUNT))
        first = U(shared.warp * U(LANES) + slot * robots)
        k = U(task - slot * U(COUNT))
        value = D(0)
        for other in range(robots):
            value += parts[k, first + U(other)]
        value *= per_pair if k == U(3) or k == U(5) else per_robot
        index = U(first_trial) + slot
        sums[index, k] += value
        sums[index, k + U(COUNT)] += value * value
        task = U(task + shared.lanes)
