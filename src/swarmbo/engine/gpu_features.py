"""The features of SDBC on the GPU: a lane measures its robot, then lanes add up the trials."""

import math

import numpy as np

from swarmbo.engine.gpu_layout import MOVED_X, MOVED_Y, TRIAL, TURNS
from swarmbo.engine.gpu_warp import LANES, J, U, device, on, sync
from swarmbo.engine.lanes import FEATURES

D = np.float64
COUNT = len(FEATURES)
FAR = D(1e9)  # m, farther than any robot


def feature_bytes() -> int:
    """Shared memory of a warp for its part of the features."""
    return 8 * COUNT * LANES


@device
def clear_features(world, shared, sums, t):
    """Set the sums of the warp's trials to 0; `sums` = trials x 12."""
    task = t
    while task < U(LANES // world.robots * COUNT):
        slot = U(task // U(COUNT))
        index = shared.flags[TRIAL, shared.warp * U(LANES) + slot * U(world.robots)]
        if index >= J(0):
            k = U(task - slot * U(COUNT))
            sums[U(index), k] = D(0)
            sums[U(index), k + U(COUNT)] = D(0)
        task = U(task + shared.lanes)


@device
def measure(world, shared, parts, sums, x, y, heading, p, t):
    """Add this tick's FEATURES and their squares to the sums; see lanes.py.

    The poses are new, the state still holds how the robots moved. `parts` = 6 x
    places of the block: what each robot contributes.
    """
    robots = U(world.robots)
    robot = U(t % robots)
    alive = shared.flags[TRIAL, p] >= J(0)
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
    turned = D(shared.robots[TURNS, p])
    c, s = on.cos_sin(heading - turned)
    width = D(world.width)
    height = D(world.height)
    cx = D(0.5) * width
    cy = D(0.5) * height
    parts[U(0), p] = D(shared.robots[MOVED_X, p] * c + shared.robots[MOVED_Y, p] * s)
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
    while task < U(LANES // world.robots * COUNT):
        slot = U(task // U(COUNT))
        first = U(shared.warp * U(LANES) + slot * robots)
        index = shared.flags[TRIAL, first]
        if index >= J(0):
            k = U(task - slot * U(COUNT))
            value = D(0)
            for other in range(robots):
                value += parts[k, first + U(other)]
            value *= per_pair if k == U(3) or k == U(5) else per_robot
            sums[U(index), k] += value
            sums[U(index), k + U(COUNT)] += value * value
        task = U(task + shared.lanes)
