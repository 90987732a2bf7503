"""Cells of any shape: the points nearest to each of many centroids, which k-means places.

All arithmetic rounds alike on every processor, so the same numbers give the
same centroids and the same cells everywhere.
"""

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np

from swarmbo.compilation import exact, kernel
from swarmbo.engine.rollout import default_threads
from swarmbo.streams import Stream

Array = np.ndarray[Any, np.dtype[Any]]

POINTS = 100_000  # uniform in the unit cube, from which k-means finds the centroids
LANES = 128  # centroids that are looked at together
CHUNK = 2_000  # points that a thread takes at a time,
CLUSTERS = 64  # or clusters
BANDS = 32  # of distances, see `_leave`
MARGIN = 1 + 1e-9  # on squares of distances, for rounding


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
    with ThreadPoolExecutor(default_threads()) as pool:
        owner = _nearest_in_threads(pool, points, centroids)
        while True:
            sizes = np.bincount(owner, minlength=count)
            sums = np.stack(
                [np.bincount(owner, column, minlength=count) for column in points.T], axis=1
            )
            centres = np.where(sizes[:, None] > 0, sums / np.maximum(sizes, 1)[:, None], centroids)
            moved = (centres != centroids).any(axis=1)
            if not moved.any():
                return centroids
            centroids = centres
            _let_go(pool, points, centroids, moved, owner)


def _nearest_in_threads(pool: ThreadPoolExecutor, points: Array, centroids: Array) -> Array:
    blocks = _blocks(centroids)
    parts = [points[first : first + CHUNK] for first in range(0, len(points), CHUNK)]
    return np.concatenate(list(pool.map(lambda part: _search(part, blocks)[0], parts)))


def _let_go(
    pool: ThreadPoolExecutor, points: Array, centroids: Array, moved: Array, owner: Array
) -> None:
    """Give each point to the centroid that is nearest now that some have moved."""
    order = np.argsort(owner, kind="stable")
    ends = np.cumsum(np.bincount(owner, minlength=len(centroids)))
    room = len(centroids) + 1

    def some(clusters: Array, numbers: Array, columns: Array) -> None:
        rivals, rows = np.zeros(room, np.int64), np.zeros((points.shape[1], room))
        squares, bands = np.zeros(room), np.zeros(BANDS + 2, np.int64)
        about = (points, centroids, clusters, numbers, columns, order, ends)
        _leave(*about, owner, rivals, rows, squares, bands)

    # If the owner stayed where it was, only a centroid that moved can be nearer than before.
    waiting = []
    for clusters, numbers in (
        (np.flatnonzero(moved), np.arange(len(centroids))),
        (np.flatnonzero(~moved), np.flatnonzero(moved)),
    ):
        columns = np.ascontiguousarray(centroids[numbers].T)
        for first in range(0, len(clusters), CLUSTERS):
            part = clusters[first : first + CLUSTERS]
            waiting.append(pool.submit(some, part, numbers, columns))
    for future in waiting:
        future.result()


def nearest_centroids(points: Array, centroids: Array) -> tuple[Array, Array]:
    """The number of the centroid nearest to each point (the lowest of equals), and the distance."""
    owner, square = _search(np.array(points, np.float64, order="C"), _blocks(centroids))
    return owner, np.sqrt(square)


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


@exact
def _squares(points: Array, number: int, columns: Array, count: int, squares: Array) -> None:
    """Squared distances from a point to the first `count` columns; summed as in _nearest_block."""
    for i in range(count):
        squares[i] = 0.0
    for k in range(points.shape[1]):
        place = points[number, k]
        for i in range(count):
            difference = place - columns[k, i]
            squares[i] += difference * difference


@kernel
def _leave(
    points: Array,
    centroids: Array,
    clusters: Array,
    numbers: Array,
    columns: Array,
    order: Array,
    ends: Array,
    owner: Array,
    rivals: Array,
    rows: Array,
    squares: Array,
    bands: Array,
) -> None:
    """Find the nearest centroids of the points in some clusters; `order` sorts them by owner.

    `columns` are the centroids that may be nearer than the owner, of these
    `numbers`. One that is must be less than twice as far from the owner as the
    point is; so each cluster's rivals are put into bands by their distance.
    """
    count = numbers.size
    for cluster in clusters:
        first = ends[cluster - 1] if cluster > 0 else 0
        rivals[0] = cluster
        for k in range(columns.shape[0]):
            rows[k, 0] = centroids[cluster, k]
        farthest = 0.0
        for n in range(first, ends[cluster]):
            _squares(points, order[n], rows, 1, squares)
            farthest = max(farthest, squares[0])
        if farthest == 0.0:
            continue
        reach = 4.0 * farthest * MARGIN
        per_band = BANDS / reach
        _squares(centroids, cluster, columns, count, squares)
        bands[:] = 0
        for i in range(count):
            if squares[i] <= reach and numbers[i] != cluster:
                bands[int(squares[i] * per_band) + 1] += 1
        for band in range(1, bands.size):
            bands[band] += bands[band - 1]
        for i in range(count):
            if squares[i] <= reach and numbers[i] != cluster:
                band = int(squares[i] * per_band)
                bands[band] += 1
                place = bands[band]
                rivals[place] = numbers[i]
                for k in range(columns.shape[0]):
                    rows[k, place] = columns[k, i]
        for n in range(first, ends[cluster]):
            point = order[n]
            _squares(points, point, rows, 1, squares)
            last = bands[int(4.0 * squares[0] * MARGIN * per_band)] + 1
            _squares(points, point, rows, last, squares)
            best = 0
            for r in range(1, last):
                if squares[r] < squares[best] or (
                    squares[r] == squares[best] and rivals[r] < rivals[best]
                ):
                    best = r
            owner[point] = rivals[best]
