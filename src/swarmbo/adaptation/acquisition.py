"""What makes a cell worth trying next: upper confidence bound and local penalisation."""

import numpy as np
from scipy.special import log_ndtr

from swarmbo.adaptation.cells import Cells
from swarmbo.adaptation.gaussian_process import Posterior
from swarmbo.maps.behaviour_map import GRID

ALPHA = 0.93  # weight of the deviation in the upper confidence bound
LIPSCHITZ = 10.0  # with no data, or a flat model
FLAT = 1e-7  # largest gradient of a model that counts as flat
LEAST_RADIUS = 1e-4
LEAST_VARIANCE = 1e-4
TIE = 1e-12  # values of which this is the relative difference differ by rounding alone
FAR = 9.0  # log_ndtr(9) = -1e-19: no penalty


def upper_confidence_bound(posterior: Posterior, alpha: float = ALPHA) -> np.ndarray:
    """Mean + alpha deviation of all cells."""
    return posterior.mean + alpha * posterior.deviation


def first_best(values: np.ndarray, candidates: np.ndarray, cells: Cells) -> int:
    """The candidate (row) with the highest value; of equal ones the first in dimension order."""
    of_candidates = values[candidates]
    best = of_candidates.max()
    tied = candidates[of_candidates >= best - TIE * abs(best)]
    return int(tied[cells.rank[tied].argmin()])


def lipschitz(mean: np.ndarray, cells: Cells) -> float:
    """L: the largest gradient norm of the mean over the map, by differences of neighbours.

    10 for a flat mean, and for a map in which no cell has all its neighbours.
    """
    inside, neighbours = cells.neighbours
    if not len(inside):
        return LIPSCHITZ
    gradients = (mean[neighbours] - mean[inside][:, None]) * GRID
    largest = float(np.sqrt((gradients * gradients).sum(axis=1).max()))
    return largest if largest > FLAT else LIPSCHITZ


def log_penalty(
    posterior: Posterior,
    busy: list[int],
    cells: Cells,
    *,
    lipschitz: float,
    maximum: float,
    as_in_paper: bool = False,
) -> np.ndarray:
    """Logarithm of the product of the penalties phi(x, b) over the busy cells b, for all cells x.

    Gonzalez et al. 2016: phi = 1/2 erfc(-(|x - b| - r) / (sqrt(2) s)) with
    r = (M - mean(b)) / L, at least 1e-4, and s = deviation(b) / L, the variance
    at least 1e-4. `as_in_paper` is the formula as printed, without parentheses
    and 1/2, and with mean and deviation at x:
    phi = erfc(-L |x - b| / (sqrt(2) deviation(x)) - M + mean(x)).
    """
    total = np.zeros(len(cells))
    spread = np.sqrt(np.maximum(posterior.variance, LEAST_VARIANCE))
    for cell in busy:
        distance = cells.distance(cell)
        if as_in_paper:
            # erfc(t) = 2 Phi(-sqrt(2) t)
            gap = maximum - posterior.mean
            total += np.log(2) + log_ndtr(lipschitz * distance / spread + np.sqrt(2) * gap)
        else:
            radius = max(LEAST_RADIUS, (maximum - posterior.mean[cell]) / lipschitz)
            argument = (distance - radius) * (lipschitz / spread[cell])
            near = np.flatnonzero(argument < FAR)
            total[near] += log_ndtr(argument[near])
    return total


def best_penalised(
    bound: np.ndarray, log_penalties: np.ndarray, candidates: np.ndarray, cells: Cells
) -> int:
    """The candidate whose bound times penalty is highest; negative bounds are divided by it.

    Compared as logarithms, as products of penalties can be too small for a float.
    """
    of_candidates = bound[candidates]
    above, below = of_candidates > 0, of_candidates < 0
    logarithms = np.zeros(len(bound))
    if above.any():
        candidates = candidates[above]
        logarithms[candidates] = np.log(bound[candidates]) + log_penalties[candidates]
    elif below.all():
        logarithms[candidates] = log_penalties[candidates] - np.log(-bound[candidates])
    else:
        candidates = candidates[~below]
    of_candidates = logarithms[candidates]
    tied = candidates[of_candidates >= of_candidates.max() - TIE]
    return int(tied[cells.rank[tied].argmin()])
