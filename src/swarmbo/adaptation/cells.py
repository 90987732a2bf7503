"""What all models over one map share: where its cells lie, and how they are related."""

from collections import deque
from collections.abc import Hashable
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np

from swarmbo.maps.behaviour_map import GRID, BehaviourMap

KEPT_BYTES = 2**27  # of distances, and as many of kernels, that are kept per map
_ROOT5 = 5.0**0.5


def matern(distance: np.ndarray, length_scale: float) -> np.ndarray:
    """Matern 5/2 kernel of variance 1: (1 + a + a^2/3) exp(-a), a = sqrt(5) distance / rho."""
    scaled = distance * (_ROOT5 / length_scale)
    return (1.0 + scaled + scaled * scaled / 3.0) * np.exp(-scaled)


def rows_in(size: int, cells: int) -> int:
    """How many rows of float64, a number per cell, have that size in bytes; at least one."""
    return max(1, size // (8 * cells))


class Rows(dict[Hashable, np.ndarray]):
    """Rows of numbers by a key, of too many the latest; for many threads."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most
        self._order: deque[Hashable] = deque()

    def keep(self, key: Hashable, row: np.ndarray) -> np.ndarray:
        """Take a row, in place of the first if there are too many; the row."""
        self[key] = row
        self._order.append(key)
        if len(self._order) > self._most:
            self.pop(self._order.popleft(), None)
        return row


class Cells:
    """The cells of a map as points of a space; a row of numbers per cell is made once and kept.

    All rows of a map of up to 4,096 cells, and of a larger one the latest.
    """

    def __init__(self, behaviour_map: BehaviourMap) -> None:
        self.coordinates = behaviour_map.coordinates  # cells x dimensions
        self.order = np.lexsort(behaviour_map.cells.T[::-1])  # rows, first dimension slowest
        self.rank = np.empty(len(self.order), np.int64)  # place of each row in that order
        self.rank[self.order] = np.arange(len(self.order))
        most = rows_in(KEPT_BYTES, len(self.order))
        self._distances = Rows(most)
        self._kernels = Rows(most)

    def __len__(self) -> int:
        return len(self.coordinates)

    def distance(self, cell: int) -> np.ndarray:
        """Distances from a cell to all cells."""
        row = self._distances.get(cell)
        if row is None:
            row = self._distances.keep(cell, self.distance_from(self.coordinates[cell]))
        return row

    def distance_from(self, point: np.ndarray) -> np.ndarray:
        """Distances from any point to all cells."""
        return np.sqrt(((self.coordinates - point) ** 2).sum(axis=1))

    def kernel(self, cell: int, length_scale: float) -> np.ndarray:
        """Kernel between a cell and all cells."""
        key = length_scale, cell
        row = self._kernels.get(key)
        if row is None:
            row = self._kernels.keep(key, matern(self.distance(cell), length_scale))
        return row

    @cached_property
    def neighbours(self) -> tuple[np.ndarray, np.ndarray]:
        """The cells with a neighbour in every dimension, and their neighbours (cells x dimensions).

        A neighbour is 1/16 away along one dimension: the one above, else the
        one below.
        """
        steps = np.round(self.coordinates * GRID, 9) + 0.0  # -0 becomes 0
        row_of = {row.tobytes(): number for number, row in enumerate(steps)}
        inside = np.arange(len(steps))
        found: list[np.ndarray] = []
        for dimension in range(steps.shape[1]):
            beside = np.full(len(inside), -1)
            for step in (-1.0, 1.0):
                moved = steps[inside]
                moved[:, dimension] += step
                rows = (row_of.get(row.tobytes(), -1) for row in np.round(moved, 9) + 0.0)
                there = np.fromiter(rows, np.int64, len(inside))
                beside = np.where(there >= 0, there, beside)
            kept = beside >= 0
            inside = inside[kept]
            found = [column[kept] for column in found] + [beside[kept]]
        return inside, np.stack(found, axis=1)


_CELLS: WeakKeyDictionary[BehaviourMap, Cells] = WeakKeyDictionary()


def cells_of(behaviour_map: BehaviourMap) -> Cells:
    """The cells of a map; all models in a process share one object per map."""
    cells = _CELLS.get(behaviour_map)
    if cells is None:
        cells = _CELLS.setdefault(behaviour_map, Cells(behaviour_map))
    return cells
