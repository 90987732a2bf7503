"""The engine on the CPU: all lanes of a job in lockstep, the loops over lanes innermost.

What all robots do in every tick (drive, sense walls and floor, think, forage)
is written as loops over all lanes, which LLVM turns into vector instructions.
Who touches something goes through `cpu_physics`; what the robots perceive is in
`cpu_senses`.
"""

import numpy as np

from swarmbo.compilation import formula, kernel
from swarmbo.engine.cpu.physics import gather, substeps
from swarmbo.engine.cpu.senses import any_set, near_pairs, sense
from swarmbo.engine.formulas import (
    SIGN_FLIP,
    F,
    U,
    clamp,
    cos_sin,
    free_path,
    greatest,
    tanh64,
    uniform,
)
from swarmbo.world.disturbance import MAD

_MAD = np.int32(MAD)
_FAR = 1e9  # m, farther than any robot


# --- moving ------------------------------------------------------------------------------------


@formula
def _drive(world, lanes, work):
    """Set every lane's displacement and velocity for this tick, as if nothing were in its way."""
    tick = world.dt * F(world.substeps)
    limit = world.limit
    dt = world.dt
    substeps = F(world.substeps)
    per_base = world.per_wheel_base
    for i in range(lanes.x.size):
        left = lanes.left[i] * lanes.left_gain[i]
        right = lanes.right[i] * lanes.right_gain[i]
        speed = F(0.5) * (left + right)
        ux = speed * lanes.cos[i]
        uy = speed * lanes.sin[i]
        px, py = free_path(lanes.vx[i], lanes.vy[i], ux, uy, limit, substeps, dt)
        work.path_x[i] = px
        work.path_y[i] = py
        work.old_vx[i] = lanes.vx[i]
        work.old_vy[i] = lanes.vy[i]
        lanes.vx[i] = ux
        lanes.vy[i] = uy
    for i in range(lanes.x.size):
        turn = (
            lanes.right[i] * lanes.right_gain[i] - lanes.left[i] * lanes.left_gain[i]
        ) * per_base
        work.old_turn[i] = lanes.turn[i]
        work.turned[i] = dt * lanes.turn[i] + (tick - dt) * turn
        lanes.turn[i] = turn


@formula
def _physics(world, lanes, work, near):
    """The tick's displacements of the lanes that may touch something."""
    count, in_corners, at_walls, pairs = gather(world, lanes, work, near)
    if count > 0:
        substeps(world, lanes, work, count, in_corners, at_walls, pairs)


@formula
def _commit_poses(lanes, work):
    for i in range(lanes.x.size):
        lanes.x[i] += np.float64(work.path_x[i])
        lanes.y[i] += np.float64(work.path_y[i])
        heading = lanes.heading[i] + np.float64(work.turned[i])
        heading = heading - 2 * np.pi if heading > np.pi else heading
        lanes.heading[i] = heading + 2 * np.pi if heading <= -np.pi else heading
        work.x[i] = F(lanes.x[i])
        work.y[i] = F(lanes.y[i])
    _face(lanes)


@formula
def _face(lanes):
    """Bring the cosines and sines up to date with the headings."""
    for i in range(lanes.x.size):
        lanes.cos[i], lanes.sin[i] = cos_sin(lanes.heading[i])


# --- thinking ----------------------------------------------------------------------------------


@formula
def _think(world, lanes, work, brains):
    """One synchronous update of all networks; the outputs become wheel speeds."""
    trials = world.trials
    for run in range(brains.runs.shape[0]):
        first = np.uint32(brains.runs[run, 0] * trials)
        last = np.uint32(brains.runs[run, 1] * trials)
        base = brains.runs[run, 2]
        for neuron in range(base, brains.runs[run, 3]):
            row = np.uint32(neuron - base)
            bias = brains.bias[neuron]
            for i in range(first, last):
                work.next_values[row, i] = bias
            for k in range(brains.neurons[neuron, 0], brains.neurons[neuron, 1]):
                weight = brains.weights[k]
                source = brains.sources[k]
                if source < 10:
                    source_row = np.uint32(source)
                    for i in range(first, last):
                        work.next_values[row, i] += weight * lanes.inputs[source_row, i]
                else:
                    source_row = np.uint32(source - 10)
                    for i in range(first, last):
                        work.next_values[row, i] += weight * lanes.values[source_row, i]
        for neuron in range(base, brains.runs[run, 3]):
            row = np.uint32(neuron - base)
            for i in range(first, last):
                lanes.values[row, i] = tanh64(work.next_values[row, i])
    max_speed = world.max_speed
    for i in range(lanes.x.size):
        lanes.left[i] = max_speed * F(lanes.values[0, i])
        lanes.right[i] = max_speed * F(lanes.values[1, i])


@formula
def _override(world, lanes, work):
    """Robots without their software: the mad one drives back and forth, the stuck one stands."""
    for i in range(world.robots * world.trials):
        if lanes.software[i] != 0:
            speed = F(0)
            if lanes.software[i] == _MAD:
                if uniform(work.word[i], SIGN_FLIP) < F(0.05):
                    lanes.sign[i] = -lanes.sign[i]
                speed = world.max_speed * lanes.sign[i]
            lanes.left[i] = speed
            lanes.right[i] = speed


# --- foraging ----------------------------------------------------------------------------------


@formula
def _forage(world, lanes, work):
    """Pick up and drop, by the position of the centre."""
    nest = world.nest_depth
    for i in range(lanes.x.size):
        carrying = lanes.carrying[i]
        able = lanes.software[i] == 0
        drops = able & (carrying != 0) & (lanes.x[i] < nest)
        picks = able & (carrying == 0) & (lanes.x[i] > nest) & (work.floor[2, i] != 0)
        lanes.items[i] += np.int32(drops)
        carrying = np.int32(0) if drops else carrying
        lanes.carrying[i] = np.int32(1) if picks else carrying


@formula
def _count_visits(world, lanes, work):
    """Where the robots are: squares visited, and distance to the arena's centre.

    Returns how far the centre of a robot is beyond a wall, in m; negative when all are inside.
    """
    beyond = F(-_FAR)
    cx, cy = world.centre
    per_square = world.per_square
    last_column = np.int32(world.squares_x - 1)
    last_row = np.int32(world.squares_y - 1)
    rows = np.int32(world.squares_y)
    for i in range(lanes.x.size):
        dx = work.x[i] - cx
        dy = work.y[i] - cy
        lanes.distance[i] += np.float64(np.sqrt(dx * dx + dy * dy))
        beyond = greatest(beyond, greatest(abs(dx) - cx, abs(dy) - cy))
    for i in range(lanes.x.size):
        column = clamp(np.int32(lanes.x[i] * per_square), np.int32(0), last_column)
        row = clamp(np.int32(lanes.y[i] * per_square), np.int32(0), last_row)
        work.square[i] = column * rows + row
    lane = 0
    for robot in range(world.robots):
        first = robot // world.swarm * world.trials
        for trial in range(first, first + world.trials):
            lanes.visits[trial, np.uint32(work.square[lane])] += 1
            lane += 1
    return beyond


@formula
def _measure(world, lanes, work):
    """Add this tick's FEATURES and their squares to the sums; see lanes.py."""
    trials = np.uint32(world.trials)
    robots = np.uint32(world.robots)
    feature, nearest, features = work.feature, work.nearest, lanes.features
    width, height = np.float64(world.width), np.float64(world.height)
    cx, cy = 0.5 * width, 0.5 * height
    for k in range(feature.shape[0]):
        for trial in range(trials):
            feature[k, trial] = 0.0
    for robot in range(robots):
        for trial in range(trials):
            i = np.uint32(robot * trials + trial)
            turned = np.float64(work.turned[i])
            cos, sin = cos_sin(lanes.heading[i] - turned)
            feature[0, trial] += np.float64(work.path_x[i] * cos + work.path_y[i] * sin)
            feature[1, trial] += turned
            x, y = lanes.x[i], lanes.y[i]
            feature[2, trial] += 0.25 * (
                np.sqrt(x * x + (y - cy) * (y - cy))
                + np.sqrt((x - width) * (x - width) + (y - cy) * (y - cy))
                + np.sqrt((x - cx) * (x - cx) + y * y)
                + np.sqrt((x - cx) * (x - cx) + (y - height) * (y - height))
            )
            nearest[i] = _FAR
    for a in range(robots):
        times = 1.0 if a == 0 else 2.0
        for b in range(a + np.uint32(1), robots):
            for trial in range(trials):
                i = np.uint32(a * trials + trial)
                j = np.uint32(b * trials + trial)
                dx = lanes.x[i] - lanes.x[j]
                dy = lanes.y[i] - lanes.y[j]
                distance = np.sqrt(dx * dx + dy * dy)
                feature[3, trial] += 2.0 * distance
                feature[5, trial] += times * distance
                nearest[i] = min(nearest[i], distance)
                nearest[j] = min(nearest[j], distance)
    if robots > 1:
        for robot in range(robots):
            for trial in range(trials):
                feature[4, trial] += nearest[np.uint32(robot * trials + trial)]
    per_robot = 1.0 / world.robots
    per_pair = per_robot / max(1, world.robots - 1)
    for k in range(feature.shape[0]):
        scale = per_pair if k == 3 or k == 5 else per_robot
        for trial in range(trials):
            value = scale * feature[k, trial]
            features[k, trial] += value
            features[k + feature.shape[0], trial] += value * value


# --- a job -------------------------------------------------------------------------------------


@kernel
def advance(world, lanes, brains, work, tick, ticks, moved):
    """Advance a swarm by `ticks` ticks; `tick` is the number of ticks it has had before.

    Ends early when more pairs are near than there is room for. Returns how many ticks are
    done, whether the robots have moved in the next one already, how many pairs are near, and
    how far the centre of a robot was beyond a wall. With more room, call again for what is
    left: `moved` is then what was returned.
    """
    room = work.near.shape[0]
    beyond = F(-_FAR)
    _face(lanes)
    near = near_pairs(world, lanes, work)
    for now in range(tick, tick + ticks):
        if not moved:
            if near > room:
                return now - tick, False, near, beyond
            _drive(world, lanes, work)
            _physics(world, lanes, work, near)
            _commit_poses(lanes, work)
            near = near_pairs(world, lanes, work)
        if near > room:
            return now - tick, True, near, beyond
        moved = False
        sense(world, lanes, work, near, U(now))
        _think(world, lanes, work, brains)
        if any_set(lanes.software):
            _override(world, lanes, work)
        _forage(world, lanes, work)
        beyond = greatest(beyond, _count_visits(world, lanes, work))
        if lanes.features.shape[1] > 0:
            _measure(world, lanes, work)
    return ticks, False, near, beyond
