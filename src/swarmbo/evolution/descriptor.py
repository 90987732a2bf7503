"""Descriptors: a swarm's behaviour as a few numbers in [0, 1]. HBD has 3 of them, SDBC 10."""

import math
from typing import Any

import numpy as np

from swarmbo.compilation import exact, kernel
from swarmbo.engine.lanes import FEATURES
from swarmbo.engine.rollout import Rollout
from swarmbo.errors import InputError, short
from swarmbo.maps.behaviour_map import GRID
from swarmbo.world.arena import Arena
from swarmbo.world.scenario import Scenario

Array = np.ndarray[Any, np.dtype[Any]]

VARIANTS = ("default", "as-published")  # of SDBC
DEVIATION = 0.6  # SDBC divides standard deviations by this

# What the authors' experiments took for the extremes of the mean distance to the walls, in m.
_PUBLISHED_WALL_DISTANCES = (1.5756, 2.4543)

TOLERANCE = 1e-10  # by which a geometric median still moves when it counts as found
STEPS = 1000  # of the search for it, at most


def hbd(result: Rollout) -> Array:
    """Teams x 3: uniformity, centre distance and coverage, means over the trials."""
    columns = (result.uniformity, result.centre_distance, result.coverage)
    return np.stack([column.mean(axis=1) for column in columns], axis=1).clip(0, 1)


def hbd_cells(descriptor: Array) -> Array:
    """Indices in the grid of HBD: 16 d, halves rounded up, at most 15."""
    rounded = np.floor(GRID * np.asarray(descriptor) + 0.5)
    return np.minimum(rounded, GRID - 1).astype(np.int32)


def sdbc(result: Rollout, scenario: Scenario, *, variant: str = "default") -> Array:
    """Teams x 10: means over the ticks of five features, then their deviations / 0.6.

    The features, each the mean over the robots: velocity along the heading
    (0.5 + 0.5 v / the largest v) and turn rate (likewise); distance to the
    middles of the four walls (0 at the least, 1 at the most that is possible in
    the arena); distance to the other robots / the arena's height; distance to the
    nearest of them / half the arena's diagonal. The result needs `features`.
    Trials are combined by the geometric median.

    The variant "as-published" repeats three peculiarities of the authors'
    experiments: a trial's numbers are over all ticks up to its end, those of the
    trials before included; the distances to other robots are averaged with the
    distance 0 of all robots but one to themselves; and the distance to the walls
    goes from 1.5756 to 2.4543 m.
    """
    if variant not in VARIANTS:
        raise InputError(
            f"there is no variant {short(variant)} of SDBC; name one of {', '.join(VARIANTS)}"
        )
    if result.features is None:
        raise InputError("SDBC needs features; evaluate with features=True")
    published = variant == "as-published"
    mean, deviation = np.split(result.features, 2, axis=2)
    if published:
        mean, deviation = _cumulative(mean, deviation)
    pair = "uneven_pair_distance" if published else "pair_distance"
    names = ("advance", "turn", "wall_distance", pair, "nearest_distance")
    columns = [FEATURES.index(name) for name in names]
    arena, robot = scenario.arena, scenario.robot
    farthest = robot.max_speed * scenario.tick  # m in a tick: 0.02
    steepest = 2 * farthest / robot.wheel_base  # rad in a tick: 0.5
    walls = _PUBLISHED_WALL_DISTANCES if published else wall_distances(arena)
    low = np.array([-farthest, -steepest, walls[0], 0, 0])
    high = np.array([farthest, steepest, walls[1], arena.height, arena.half_diagonal])
    trials = np.concatenate(
        [
            (mean[:, :, columns] - low) / (high - low),
            deviation[:, :, columns] / (high - low) / DEVIATION,
        ],
        axis=2,
    )
    return geometric_medians(trials).clip(0, 1)


def wall_distances(arena: Arena) -> tuple[float, float]:
    """The least and the largest mean distance to the middles of the four walls, in metres.

    The mean of distances is convex: least in the centre, largest in the corners.
    """
    width, height = arena.width, arena.height
    least = (width + height) / 4
    largest = width / 2 + height / 2 + math.hypot(width, height / 2) + math.hypot(width / 2, height)
    return least, largest / 4


def _cumulative(mean: Array, deviation: Array) -> tuple[Array, Array]:
    """Means and deviations of the first trial, of the first two together, and so on."""
    number = np.arange(1, mean.shape[1] + 1)[:, None]
    square = np.cumsum(deviation**2 + mean**2, axis=1) / number
    mean = np.cumsum(mean, axis=1) / number
    return mean, np.sqrt(np.maximum(square - mean**2, 0))


def geometric_medians(points: Array) -> Array:
    """Sets x numbers: of each set (sets x points x numbers) the point nearest to all of it.

    That is, with the least sum of distances, by the iteration of Weiszfeld
    (1937). When it is one of the points themselves, this is known beforehand:
    the unit vectors to all others then add up to at most the number of points
    that coincide there (Vardi and Zhang 2000).
    """
    points = np.ascontiguousarray(points, np.float64)
    medians = np.zeros((points.shape[0], points.shape[2]))
    _medians(points, medians, *np.zeros((2, points.shape[2])))
    return medians


@exact
def _distance(points: Array, number: int, row: int, place: Array) -> Any:
    total = 0.0
    for k in range(points.shape[2]):
        difference = points[number, row, k] - place[k]
        total += difference * difference
    return np.sqrt(total)


@exact
def _is_median(points: Array, number: int, row: int, place: Array, pull: Array) -> Any:
    """Whether one of the points, which is copied to `place`, is the median."""
    for k in range(points.shape[2]):
        place[k] = points[number, row, k]
        pull[k] = 0.0
    here = 0
    for other in range(points.shape[1]):
        distance = _distance(points, number, other, place)
        if distance == 0.0:
            here += 1
        else:
            for k in range(points.shape[2]):
                pull[k] += (points[number, other, k] - place[k]) / distance
    total = 0.0
    for k in range(points.shape[2]):
        total += pull[k] * pull[k]
    return np.sqrt(total) <= here


@exact
def _step(points: Array, number: int, place: Array, target: Array) -> Any:
    """Move `place` by one iteration; returns how far. It must not be one of the points."""
    for k in range(points.shape[2]):
        target[k] = 0.0
    total = 0.0
    for row in range(points.shape[1]):
        weight = 1.0 / _distance(points, number, row, place)
        total += weight
        for k in range(points.shape[2]):
            target[k] += weight * points[number, row, k]
    moved = 0.0
    for k in range(points.shape[2]):
        difference = target[k] / total - place[k]
        moved += difference * difference
        place[k] += difference
    return np.sqrt(moved)


@exact
def _median(points: Array, number: int, place: Array, other: Array) -> None:
    for row in range(points.shape[1]):
        if _is_median(points, number, row, place, other):
            return
    for k in range(points.shape[2]):
        place[k] = 0.0
        for row in range(points.shape[1]):
            place[k] += points[number, row, k]
        place[k] /= points.shape[1]
    for _ in range(STEPS):
        for row in range(points.shape[1]):
            if _distance(points, number, row, place) == 0.0:
                for k in range(points.shape[2]):  # on a point that is not the median: leave it
                    place[k] += TOLERANCE
        if _step(points, number, place, other) <= TOLERANCE:
            return


@kernel
def _medians(points: Array, medians: Array, place: Array, other: Array) -> None:
    for number in range(points.shape[0]):
        _median(points, number, place, other)
        for k in range(points.shape[2]):
            medians[number, k] = place[k]
