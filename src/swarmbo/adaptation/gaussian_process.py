"""The exact Gaussian process over the cells of a map, kept up to date row by row."""

from functools import cached_property

import numpy as np

from swarmbo.adaptation.cells import Cells, rows_in

JITTER = 1e-8  # on the diagonal of the kernel matrix, beside the observations' noise
LENGTH_SCALE = 0.12  # rho of the paper, in units of coordinates
PREPARED_BYTES = 2**26  # of rows that are prepared for observations to come
GROWTH_BYTES = 2**26  # of room that is made for V at once, at most
BLOCK = 32  # observations whose influence on a row is subtracted in one go


class Posterior:
    """Mean and variance of all cells, in units of the map and their square."""

    def __init__(self, mean: np.ndarray, variance: np.ndarray) -> None:
        self.mean = mean
        self.variance = variance
        mean.setflags(write=False)
        variance.setflags(write=False)

    @cached_property
    def deviation(self) -> np.ndarray:
        """Standard deviation of all cells."""
        return np.sqrt(self.variance)


class GaussianProcess:
    """A Gaussian process with a given prior mean and the Matern 5/2 kernel of variance 1.

    With observations y (noise variances n) at cells X,

        mean(x) = prior(x) + k' K^-1 (y - prior(X)),  variance(x) = 1 - k' K^-1 k,

    K = k(X, X) + diag(n) + 1e-8. With the Cholesky factor L of K, the rows of
    V = L^-1 k(X, all cells) give both: the i-th observation changes mean and
    variance by z_i V_i and -V_i^2, where z = L^-1 (y - prior(X)). L itself is
    not needed, as its row i is column x_i of V.

    `posterior` is a function of the list of observations, to the last bit; the
    sums run in the same order whatever was asked before. What was computed for
    the last list is used again as far as it holds for the next.
    """

    def __init__(self, cells: Cells, prior: np.ndarray, length_scale: float = LENGTH_SCALE) -> None:
        self._cells = cells
        self._length_scale = length_scale
        self._at = np.zeros(0, np.int64)  # cells observed
        self._observed = np.zeros((2, 0))  # values and noise variances
        self._v = np.zeros((0, len(cells)))  # V, with room for more rows
        self._z = np.zeros(0)  # z, likewise
        start = np.array(prior, np.float64), np.ones(len(cells))
        self._starts = [start]  # mean and variance before each block
        self._last = Posterior(start[0].copy(), start[1].copy())
        self._settled_blocks = 0
        self._projections: dict[int, tuple[int, np.ndarray]] = {}  # the latest so many
        self._most_projections = rows_in(PREPARED_BYTES, len(cells))

    def posterior(
        self, at: np.ndarray, values: np.ndarray, noise: np.ndarray, settled: int | None = None
    ) -> Posterior:
        """The posterior given observations: cell, value and noise variance of each, in order.

        Only the first `settled` of them, or all, are likely to be in the next
        list too. This changes how long the next question takes, not the answer.
        """
        at, observed = np.asarray(at, np.int64), np.array([values, noise], np.float64)
        known = self._unchanged(at, observed)
        if known < max(len(at), len(self._at)):
            self._reserve(len(at), known)
            self._at, self._observed = at, observed
            self._settled_blocks = (len(at) if settled is None else settled) // BLOCK
            self._condition(known)
        return self._last

    def prepare(self, cell: int) -> None:
        """Do the work for an observation of a cell that can be done before it is made.

        Without it the next question takes longer; the answer is the same. Of many
        cells only the latest stay prepared.
        """
        self._projection(cell, self._settled_blocks)

    def _unchanged(self, at: np.ndarray, observed: np.ndarray) -> int:
        """How many observations at the beginning are those of the last list."""
        both = min(len(at), len(self._at))
        differs = at[:both] != self._at[:both]
        differs |= (observed[:, :both] != self._observed[:, :both]).any(axis=0)
        return int(differs.argmax()) if differs.any() else both

    def _reserve(self, rows: int, known: int) -> None:
        if rows > len(self._v):
            growth = min(len(self._v), rows_in(GROWTH_BYTES, len(self._cells)))
            larger = np.empty((max(rows, len(self._v) + growth, BLOCK), len(self._cells)))
            larger[:known] = self._v[:known]
            self._v = larger
            self._z = np.append(self._z[:known], np.empty(len(larger) - known))

    def _condition(self, known: int) -> None:
        """Make the rows of V from `known` on, and the posterior that follows from all of them."""
        first = known // BLOCK
        del self._starts[first + 1 :]
        for cell in [cell for cell, (done, _) in self._projections.items() if done > first]:
            del self._projections[cell]
        mean, variance = (before.copy() for before in self._starts[first])
        for row in range(first * BLOCK, len(self._at)):
            if row >= known:
                self._make_row(row, mean)
            v = self._v[row]
            mean += self._z[row] * v
            variance -= v * v
            if row % BLOCK == BLOCK - 1:
                self._starts.append((mean.copy(), variance.copy()))
        for cell in self._at[first * BLOCK : self._settled_blocks * BLOCK].tolist():
            self._projections.pop(cell, None)
        self._last = Posterior(mean, np.maximum(variance, 0.0))

    def _make_row(self, row: int, mean: np.ndarray) -> None:
        """Make a row of V and z; `mean` is the one before this observation."""
        cell, v = int(self._at[row]), self._v[row]
        blocks = row // BLOCK
        settled = min(blocks, self._settled_blocks)
        v[:] = self._projection(cell, settled)
        for start in range(settled * BLOCK, row, BLOCK):
            self._subtract(v, cell, start, min(start + BLOCK, row))
        value, noise = self._observed[:, row]
        pivot = np.sqrt(max(v[cell], 0.0) + noise + JITTER)  # of L
        v /= pivot
        self._z[row] = (value - mean[cell]) / pivot

    def _projection(self, cell: int, blocks: int) -> np.ndarray:
        """Covariances of a cell with all cells given the first blocks of observations."""
        done, row = self._projections.get(cell, (0, None))
        if row is None or done > blocks:
            done, row = 0, self._cells.kernel(cell, self._length_scale).copy()
        for block in range(done, blocks):
            self._subtract(row, cell, block * BLOCK, (block + 1) * BLOCK)
        if cell not in self._projections and len(self._projections) >= self._most_projections:
            del self._projections[next(iter(self._projections))]
        self._projections[cell] = blocks, row
        return row

    def _subtract(self, row: np.ndarray, cell: int, start: int, stop: int) -> None:
        """Subtract from a cell's row what observations start .. stop - 1 explain of it."""
        # Not a product of BLAS, whose bits depend on shapes, and whose threads on a busy machine
        # cost more than they save.
        v = self._v[start:stop]
        row -= np.einsum("i,ij->j", v[:, cell], v)
