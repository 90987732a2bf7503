"""Archives of pyribs as MAP-Elites needs them here.

In a cell, better performance wins; on equal performance the behaviour nearer to
the cell's centre. pyribs compares objectives, so `objective` makes one number of
both, and the performance itself is a field of its own.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from ribs.archives import CVTArchive, GridArchive

from swarmbo.errors import InputError, short
from swarmbo.evolution.tessellation import nearest_centroids, uniform_centroids
from swarmbo.maps.behaviour_map import GRID, HBD_DIMENSIONS, SDBC_DIMENSIONS

Array = np.ndarray[Any, np.dtype[Any]]
EVOLVED = ("hbd", "sdbc")  # descriptors for which there are archives
CENTROIDS = 4096
TIE_BREAK = 1 / 16  # closeness counts less than half of the least step of performance, 1/8

_FIELDS = {"performance": ((), np.float64)}


class _Tessellation(CVTArchive):
    """A CVTArchive whose search for the nearest centroid suits ten dimensions."""

    def index_of(self, measures: ArrayLike) -> Array:
        return nearest_centroids(np.asarray(measures, np.float64), self.centroids)[0]


Archive = GridArchive | _Tessellation


def make_archive(
    descriptor: str,
    *,
    solution_dim: int | tuple[int, ...],
    solution_dtype: type = np.float64,
    centroids: ArrayLike | None = None,
) -> Archive:
    """An empty archive with the field `performance` beside those of pyribs.

    For "hbd" a grid of 16 x 16 x 16 cells, index = 16 d with halves rounded up;
    for "sdbc" the cells around 4,096 centroids, or around those given.
    """
    if descriptor not in EVOLVED:
        raise InputError(
            f"there is no descriptor {short(descriptor)}; name one of {', '.join(EVOLVED)}"
        )
    settings: dict[str, Any] = {
        "solution_dim": solution_dim,
        "solution_dtype": solution_dtype,
        "objective_dtype": np.float64,
        "measures_dtype": np.float64,
        "extra_fields": _FIELDS,
    }
    if descriptor == "hbd":
        half = 0.5 / GRID
        ranges = [(-half, 1 - half)] * HBD_DIMENSIONS
        return GridArchive(dims=[GRID] * HBD_DIMENSIONS, ranges=ranges, epsilon=0.0, **settings)
    if centroids is None:
        centroids = uniform_centroids(CENTROIDS, SDBC_DIMENSIONS)
    return _Tessellation(centroids=centroids, ranges=[(0, 1)] * SDBC_DIMENSIONS, **settings)


class Places(NamedTuple):
    """Where evaluated controllers belong in an archive, and how good they are there."""

    performance: Array
    measures: Array  # controllers x dimensions
    cell: Array
    objective: Array  # what the archive compares


def objective(archive: Archive, performance: Array, measures: Array) -> Array:
    """Performance + closeness / 16, where 1 - closeness is the distance to the cell's centre.

    The distance is measured in diagonals of the unit cube, so closeness is in
    [0, 1]. Performances differ by at least 1/8: means over 8 trials.
    """
    return places(archive, performance, measures).objective


def places(archive: Archive, performance: Array, measures: Array) -> Places:
    """The cells of evaluated controllers, and their objectives; see `objective`."""
    if not (np.isfinite(performance).all() and np.isfinite(measures).all()):
        raise InputError("performances and descriptors are to be finite numbers; one is not")
    if isinstance(archive, GridArchive):
        cell = archive.index_of(measures)
        centres = archive.int_to_grid_index(cell) / GRID
        distance = np.sqrt(((measures - centres) ** 2).sum(axis=1))
    else:
        cell, distance = nearest_centroids(measures, archive.centroids)
    closeness = 1 - distance / np.sqrt(measures.shape[1])
    return Places(performance, measures, cell, performance + TIE_BREAK * closeness)
