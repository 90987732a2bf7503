"""The statistics of a report, against SciPy and cases computed by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu, ranksums

from swarmbo.report.statistics import a12, holm, improvement, mean_interval, rank_sum

samples = st.lists(st.integers(0, 8).map(float), min_size=2, max_size=12)


@given(samples, samples)
def test_rank_sum_is_that_of_scipy(first: list[float], second: list[float]) -> None:
    found = rank_sum(first, second)
    expected = ranksums(first, second)
    assert found is not None
    assert (found.z, found.p) == (expected.statistic, expected.pvalue)
    assert found.significant == (expected.pvalue < 0.05)


def test_rank_sum_computed_by_hand() -> None:
    found = rank_sum([4, 5, 6], [1, 2, 3])
    assert found is not None
    # ranks 4 + 5 + 6 = 15; expected 3 * 7 / 2 = 10.5; deviation sqrt(3 * 3 * 7 / 12)
    assert found.z == pytest.approx((15 - 10.5) / np.sqrt(5.25))
    assert found.p == pytest.approx(0.0495, abs=1e-4)
    assert (found.significant, found.sign) == (True, "+")
    opposite = rank_sum([1, 2, 3], [4, 5, 6])
    assert opposite is not None
    assert (opposite.z, opposite.sign) == (-found.z, "-")


def test_equal_samples_do_not_differ() -> None:
    found = rank_sum([1.0] * 5, [1.0] * 5)
    assert found is not None
    assert (found.z, found.p, found.sign, found.significant) == (0, 1, "", False)


@pytest.mark.parametrize(("first", "second"), [([], []), ([1.0], [1.0, 2.0]), ([1.0, 2.0], [1.0])])
def test_fewer_than_two_values_are_not_tested(first: list[float], second: list[float]) -> None:
    assert rank_sum(first, second) is None


@given(samples, samples)
def test_a12_is_the_share_of_pairs_that_the_first_wins(
    first: list[float], second: list[float]
) -> None:
    pairs = [(a > b) + (a == b) / 2 for a in first for b in second]
    found = a12(first, second)
    assert found == pytest.approx(np.mean(pairs))
    assert found == pytest.approx(mannwhitneyu(first, second).statistic / len(pairs))


def test_a12_by_hand() -> None:
    assert a12([3, 4], [1, 2]) == 1
    assert a12([1, 2], [3, 4]) == 0
    assert a12([1, 1], [1]) == 0.5
    assert a12([1, 3], [2]) == 0.5
    assert a12([2, 3], [2]) == 0.75
    assert a12([], [1]) is None


def test_holm_by_hand() -> None:
    # sorted: .005 * 4, .01 * 3, .03 * 2, .04 * 1 -> raised to .06 by the one before
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.9]) == pytest.approx([1, 1])
    assert holm([0.04]) == [0.04]
    assert holm([]) == []


def test_holm_counts_only_the_tests_that_were_made() -> None:
    assert holm([None, 0.02, None, 0.01]) == [None, 0.02, None, 0.02]


@given(st.lists(st.floats(0, 1), max_size=10))
def test_holm_raises_p_and_keeps_the_order(p_values: list[float]) -> None:
    adjusted = [p for p in holm(p_values) if p is not None]
    assert len(adjusted) == len(p_values)
    for p, q in zip(p_values, adjusted, strict=True):
        assert p <= q <= min(1, len(p_values) * p)
    order = np.argsort(p_values, kind="stable")
    assert (np.diff(np.array(adjusted)[order]) >= 0).all()


def test_interval_covers_the_mean_as_often_as_it_says() -> None:
    draw = np.random.default_rng(1)
    covered = 0
    for _ in range(200):
        interval = mean_interval(draw.normal(3, 1, 40).tolist())
        assert interval is not None
        covered += interval[0] <= 3 <= interval[1]
    assert 180 <= covered <= 198  # 95 % of 200, less what percentiles lose with 40 values


def test_interval_is_near_that_of_the_normal_distribution() -> None:
    values = np.random.default_rng(2).normal(0, 1, 400)
    interval = mean_interval(values.tolist())
    half = 1.96 * values.std() / 20
    assert interval == pytest.approx((values.mean() - half, values.mean() + half), abs=0.01)


def test_interval_of_groups_draws_whole_groups() -> None:
    swarms = np.random.default_rng(3).normal(2, 1, 30)
    alone = mean_interval(swarms.tolist())
    # six equal robots per swarm say no more than one
    assert mean_interval((6 * swarms).tolist(), [6] * 30) == pytest.approx(alone)
    pooled = mean_interval(np.repeat(swarms, 6).tolist())
    assert alone is not None
    assert pooled is not None
    assert pooled[1] - pooled[0] < 0.6 * (alone[1] - alone[0])


def test_equal_values_give_equal_intervals() -> None:
    values = [1.0, 4.0, 2.0, 8.0]
    assert mean_interval(values) == mean_interval(values)
    assert mean_interval([2.0, 2.0]) == (2, 2)


def test_interval_does_not_depend_on_how_much_memory_it_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    values = np.random.default_rng(4).uniform(0, 5, 37).tolist()
    whole = mean_interval(values)
    monkeypatch.setattr("swarmbo.report.statistics._CHUNK", 1000)
    assert mean_interval(values) == whole


@pytest.mark.parametrize("values", [[], [3.0]])
def test_fewer_than_two_groups_have_no_interval(values: list[float]) -> None:
    assert mean_interval(values) is None


def test_improvement_in_percent() -> None:
    assert improvement(3.6, 2.0) == pytest.approx(80)
    assert improvement(1.0, 2.0) == -50
    assert improvement(1.0, 0.0) is None
    assert improvement(float("nan"), float("nan")) is None
