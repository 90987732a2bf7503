"""Cells of any shape: the points nearest to each of many centroids, which k-means places.

All arithmetic rounds alike on every processor, so the same numbers give the
same centroids and the same cells everywhere.
"""

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np

from swarmbo.engine.compilation import exact, kernel
from swarmbo.engine.rollout import default_threads
from swarmbo.streams import Stream

Array = np.ndarray[Any, np.dtype[Any]]

POINTS = 100_000  # uniform in the unit cube, from which k-means finds the centroids
LANES = 128  # centroids that are looked at together
CHUNK = 2_000  # points that a thread takes at a time


@cache
def uniform_centroids(count: int, dimensions: int, points: int = POINTS) -> Array:
    """Centroids (count x dimensions) that k-means finds for points drawn in the unit cube.

    They depend on nothing else, so that maps of different seeds have the same cells.
    """
    bits = np.random.Philox(key=Stream("centroids", count, dimensions, points).key())
    words = bits.random_raw(points * dimensions) >> np.uint64(11)
    centroids = k_means((words * 2.0**-53).reshape(points, dimensions), count)
    centroids.setflags(write=False)
    return centroids


def k_means(points: Array, count: int) -> Array:
    """The centroids to which Lloyd's algorithm comes from the first `count` points.

    It ends when no centroid moves any more. A cluster that loses all its points
    keeps its centroid.
    """
    centroids = points[:count].copy()
    owner = np.zeros(len(points), np.int32)
    distance = np.full(len(points), np.inf)  # square of that to the owner
    moved = np.ones(count, bool)
    with ThreadPoolExecutor(default_threads()) as pool:
        while moved.any():
            grown = _owners_moved_away(points, centroids, owner, distance, moved)
            # Where the owner is no farther than it was, only a centroid that moved can be nearer.
            for rows, rivals in (
                (np.flatnonzero(grown), np.arange(count)),
                (np.flatnonzero(~grown), np.flatnonzero(moved)),
            ):
                nearest, square = _in_threads(pool, points[rows], centroids[rivals])
                nearest = rivals[nearest]
                nearer = (square < distance[rows]) | grown[rows]
                owner[rows[nearer]] = nearest[nearer]
                distance[rows[nearer]] = square[nearer]
            sizes = np.bincount(owner, minlength=count)
            sums = np.stack(
                [np.bincount(owner, column, minlength=count) for column in points.T], axis=1
            )
            centres = np.where(sizes[:, None] > 0, sums / np.maximum(sizes, 1)[:, None], centroids)
            moved = (centres != centroids).any(axis=1)
            centroids = centres
    return centroids


def _owners_moved_away(
    points: Array, centroids: Array, owner: Array, distance: Array, moved: Array
) -> Array:
    """Bring the distances to the owners that moved up to date; which points lost by it?"""
    rows = np.flatnonzero(moved[owner])
    square = np.zeros(len(rows))
    for column, centres in zip(points.T, centroids.T, strict=True):
        square += (column[rows] - centres[owner[rows]]) ** 2
    grown = np.isinf(distance)
    grown[rows] |= square > distance[rows]
    distance[rows] = square
    return grown


def nearest_centroids(points: Array, centroids: Array) -> tuple[Array, Array]:
    """The number of the centroid nearest to each point (the lowest of equals), and the distance."""
    owner, square = _search(np.array(points, np.float64, order="C"), _blocks(centroids))
    return owner, np.sqrt(square)


def _in_threads(pool: ThreadPoolExecutor, points: Array, centroids: Array) -> tuple[Array, Array]:
    if not len(points) or not len(centroids):
        return np.zeros(len(points), np.int32), np.full(len(points), np.inf)
    blocks = _blocks(centroids)
    parts = [points[first : first + CHUNK] for first in range(0, len(points), CHUNK)]
    found = list(pool.map(lambda part: _search(part, blocks), parts))
    return np.concatenate([owner for owner, _ in found]), np.concatenate([d for _, d in found])


def _blocks(centroids: Array) -> Array:
    """Blocks x dimensions x 128: the centroids side by side, the last repeated to fill a block."""
    count, dimensions = centroids.shape
    blocks = -(-count // LANES)
    rows = np.minimum(np.arange(blocks * LANES), count - 1)
    return np.ascontiguousarray(
        centroids[rows].reshape(blocks, LANES, dimensions).transpose(0, 2, 1)
    )


def _search(points: Array, blocks: Array) -> tuple[Array, Array]:
    owner = np.zeros(len(points), np.int32)
    square = np.zeros(len(points))
    _nearest(points, blocks, owner, square, *np.zeros((3, LANES)))
    return owner, square


@exact
def _nearest_block(
    points: Array, number: int, blocks: Array, now: Array, least: Array, at: Array
) -> None:
    """For each of the lanes, the block with the nearest centroid, and its squared distance."""
    for lane in range(LANES):
        least[lane] = np.inf
    for block in range(blocks.shape[0]):
        for lane in range(LANES):
            now[lane] = 0.0
        for k in range(blocks.shape[1]):
            place = points[number, k]
            for lane in range(LANES):
                difference = place - blocks[block, k, lane]
                now[lane] += difference * difference
        for lane in range(LANES):
            nearer = now[lane] < least[lane]
            least[lane] = now[lane] if nearer else least[lane]
            at[lane] = block if nearer else at[lane]


@kernel
def _nearest(
    points: Array,
    blocks: Array,
    owner: Array,
    square: Array,
    now: Array,
    least: Array,
    at: Array,
) -> None:
    for number in range(points.shape[0]):
        _nearest_block(points, number, blocks, now, least, at)
        best = 0
        for lane in range(1, LANES):
            if least[lane] < least[best] or (least[lane] == least[best] and at[lane] < at[best]):
                best = lane
        owner[number] = np.int32(at[best]) * LANES + best
        square[number] = least[best]
