"""The statistics of the paper's tables, and those that it lacks.

Every function takes plain numbers and says None where there are too few of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata, ranksums

from swarmbo.streams import Stream

ALPHA = 0.05  # a difference with a smaller p is called significant
RESAMPLES = 10_000  # of a bootstrap
CONFIDENCE = 0.95  # of an interval
_CHUNK = 2_000_000  # numbers that a bootstrap holds at once


@dataclass(frozen=True)
class RankSum:
    """Wilcoxon's rank-sum test, by its normal approximation without correction for ties."""

    z: float  # above 0 when the first sample is higher
    p: float  # two-sided

    @property
    def significant(self) -> bool:
        """Whether the samples differ, without correction for other tests."""
        return self.p < ALPHA

    @property
    def sign(self) -> str:
        """Which sample is higher: + the first, - the second; empty when neither is."""
        return "+" if self.z > 0 else "-" if self.z < 0 else ""


def rank_sum(first: Sequence[float], second: Sequence[float]) -> RankSum | None:
    """The test that the paper uses; None when a sample has fewer than two values."""
    if len(first) < 2 or len(second) < 2:
        return None
    found = ranksums(first, second)
    return RankSum(float(found.statistic), float(found.pvalue))


def a12(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Vargha and Delaney's effect size: P(first > second) + P(first = second) / 2.

    0.5 is no effect; 0.56, 0.64 and 0.71 are called small, medium and large. (Vargha and
    Delaney 2000, equation 14, from the ranks of both samples together.)
    """
    m, n = len(first), len(second)
    if not m or not n:
        return None
    ranks = rankdata(np.concatenate([first, second]))
    return float((ranks[:m].sum() / m - (m + 1) / 2) / n)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's adjusted p of every test of one family; tests that were not made stay None."""
    made = [place for place, p in enumerate(p_values) if p is not None]
    made.sort(key=lambda place: p_values[place] or 0.0)
    adjusted: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, place in enumerate(made):
        highest = max(highest, min(1.0, (len(made) - rank) * (p_values[place] or 0.0)))
        adjusted[place] = highest
    return adjusted


def mean_interval(
    sums: Sequence[float], counts: Sequence[float] | None = None
) -> tuple[float, float] | None:
    """A bootstrap interval of the mean, from independent groups; None with fewer than two.

    A group is what is drawn again as a whole, for example the robots of one
    swarm: `sums` are over its values, `counts` how many they are (1 each). The
    interval is that of the percentiles over 10,000 resamples; equal groups give
    equal intervals.
    """
    total = np.asarray(sums, float)
    count = np.ones(len(total)) if counts is None else np.asarray(counts, float)
    groups = len(total)
    if groups < 2:
        return None
    bits = np.random.Philox(key=Stream("bootstrap", groups).key())
    means = np.empty(RESAMPLES)
    step = max(1, _CHUNK // groups)
    for start in range(0, RESAMPLES, step):
        stop = min(start + step, RESAMPLES)
        raw = bits.random_raw((stop - start) * groups) >> np.uint64(11)
        drawn = (raw * (2.0**-53 * groups)).astype(np.int64).reshape(-1, groups)
        means[start:stop] = total[drawn].sum(axis=1) / count[drawn].sum(axis=1)
    tail = 50 * (1 - CONFIDENCE)
    low, high = np.percentile(means, [tail, 100 - tail])
    return float(low), float(high)


def improvement(performance: float, reference: float) -> float | None:
    """By how many percent a performance is above a reference; None unless that is above 0."""
    return 100 * performance / reference - 100 if reference > 0 else None
