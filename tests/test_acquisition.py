"""Upper confidence bound and local penalisation: against naive versions, and at their edges."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swarmbo import BehaviourMap, Worker
from swarmbo.adaptation.acquisition import (
    best_penalised,
    first_best,
    lipschitz,
    log_penalty,
    upper_confidence_bound,
)
from swarmbo.adaptation.cells import cells_of
from swarmbo.adaptation.gaussian_process import Posterior
from tests.naive import adaptation as naive
from tests.test_gaussian_process import (
    SEEDS,
    process_of,
    random_map,
    random_observations,
    scattered_map,
)


def line(performance: list[float]) -> BehaviourMap:
    """Cells 0, 1, 2, ... of one dimension."""
    return BehaviourMap.from_arrays(np.arange(len(performance))[:, None], performance)


def flat(behaviour_map: BehaviourMap, mean: float, variance: float = 1.0) -> Posterior:
    """A posterior that is the same everywhere."""
    cells = len(behaviour_map.cells)
    return Posterior(np.full(cells, mean), np.full(cells, variance))


def posterior_of(behaviour_map: BehaviourMap, seed: int, count: int) -> Posterior:
    observations = random_observations(behaviour_map, seed, count)
    return process_of(behaviour_map).posterior(*observations)


# --- upper confidence bound and ties -------------------------------------------------------------


def test_bound_is_mean_plus_alpha_deviations() -> None:
    behaviour_map = random_map(1)
    posterior = posterior_of(behaviour_map, 1, 9)
    expected = posterior.mean + 0.93 * np.sqrt(posterior.variance)
    np.testing.assert_array_equal(upper_confidence_bound(posterior), expected)
    np.testing.assert_array_equal(upper_confidence_bound(posterior, 0.0), posterior.mean)


def test_of_equal_candidates_the_first_in_dimension_order_wins() -> None:
    cells = [[2, 0], [0, 9], [1, 3], [0, 4]]
    behaviour_map = BehaviourMap.from_arrays(cells, [1, 1, 1, 1])
    place = cells_of(behaviour_map)
    values = np.array([5.0, 5.0, 5.0, 5.0])
    assert first_best(values, np.arange(4), place) == 3
    assert first_best(values, np.array([0, 1, 2]), place) == 1
    assert first_best(values, np.array([0, 2]), place) == 2
    assert first_best(values + np.array([1e-15, 0, 0, 0]), np.arange(4), place) == 3
    assert first_best(values + np.array([1e-9, 0, 0, 0]), np.arange(4), place) == 0
    assert first_best(-values, np.arange(4), place) == 3
    assert best_penalised(values, np.zeros(4), np.arange(4), place) == 3
    assert best_penalised(-values, np.zeros(4), np.arange(4), place) == 3
    assert best_penalised(0 * values, np.zeros(4), np.arange(4), place) == 3


# --- L -------------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(SEEDS, st.integers(1, 4), st.integers(2, 5))
def test_steepest_slope_equals_the_naive_one(seed: int, dimensions: int, width: int) -> None:
    behaviour_map = random_map(seed, 80, dimensions, width)
    mean = np.random.default_rng(seed).normal(size=len(behaviour_map.cells))
    found = lipschitz(mean, cells_of(behaviour_map))
    assert found == pytest.approx(naive.steepest(behaviour_map, mean.tolist()), rel=1e-12)


def test_slope_is_to_the_next_cell_and_only_from_the_last_one_back() -> None:
    # Differences 1, 4; a gap; 9. The cell at 3 has its upper neighbour only at 4.
    cells = np.array([[0], [1], [2], [4], [5]])
    behaviour_map = BehaviourMap.from_arrays(cells, np.zeros(5))
    mean = np.array([0.0, 1.0, 5.0, 5.0, 14.0])
    assert lipschitz(mean, cells_of(behaviour_map)) == 9 * 16


def test_cells_without_a_neighbour_in_some_dimension_are_left_out() -> None:
    cells = np.array([[0, 0], [0, 1], [1, 0], [7, 7], [8, 7]])
    behaviour_map = BehaviourMap.from_arrays(cells, np.zeros(5))
    mean = np.array([0.0, 3.0, 4.0, 0.0, 100.0])
    assert lipschitz(mean, cells_of(behaviour_map)) == 5 * 16


@pytest.mark.parametrize(
    "behaviour_map", [scattered_map(1), random_map(1, 4, 3, 16), line([7.0])], ids=str
)
def test_slope_is_10_where_no_cell_has_all_its_neighbours(behaviour_map: BehaviourMap) -> None:
    mean = np.arange(len(behaviour_map.cells)) * 5.0
    assert lipschitz(mean, cells_of(behaviour_map)) == 10


def test_slope_is_10_on_a_flat_model() -> None:
    behaviour_map = random_map(2)
    assert lipschitz(np.full(len(behaviour_map.cells), 4.2), cells_of(behaviour_map)) == 10


# --- penalties -----------------------------------------------------------------------------------


@settings(max_examples=30)
@given(SEEDS, st.integers(1, 4), st.booleans(), st.floats(-3, 15), st.floats(0.5, 60))
def test_penalised_values_equal_the_naive_ones(
    seed: int, busy_cells: int, as_printed: bool, shift: float, steep: float
) -> None:
    behaviour_map = random_map(seed)
    cells = cells_of(behaviour_map)
    model = posterior_of(behaviour_map, seed, 8)
    posterior = Posterior(model.mean - shift, model.variance)
    busy = np.random.default_rng(seed).choice(len(cells), busy_cells, replace=False).tolist()
    best = float(posterior.mean.max()) - 1
    logarithms = log_penalty(
        posterior, busy, cells, lipschitz=steep, maximum=best, as_in_paper=as_printed
    )
    values = naive.penalised_values(
        behaviour_map,
        posterior.mean.tolist(),
        posterior.variance.tolist(),
        busy,
        steep,
        best,
        as_printed=as_printed,
    )
    bound = upper_confidence_bound(posterior)
    penalties = np.exp(logarithms)
    with np.errstate(divide="ignore", over="ignore"):
        found = np.where(bound < 0, bound / penalties, bound * penalties)
    usual = (penalties > 1e-250) & np.isfinite(values)
    np.testing.assert_allclose(found[usual], np.array(values)[usual], rtol=1e-9, atol=1e-300)
    candidates = np.setdiff1d(np.arange(len(cells)), busy)
    chosen = best_penalised(bound, logarithms, candidates, cells)
    highest = max(values[c] for c in candidates)
    assert values[chosen] == pytest.approx(highest, rel=1e-9, abs=1e-250)


def test_without_busy_cells_there_is_no_penalty() -> None:
    behaviour_map = random_map(3)
    found = log_penalty(
        flat(behaviour_map, 1.0), [], cells_of(behaviour_map), lipschitz=10, maximum=1
    )
    assert not found.any()


def test_penalty_grows_towards_a_busy_cell() -> None:
    behaviour_map = line([0.0] * 16)
    cells = cells_of(behaviour_map)
    found = np.exp(log_penalty(flat(behaviour_map, 2.0), [5], cells, lipschitz=8.0, maximum=3.0))
    assert (np.diff(found[5:]) > 0).all()
    assert (np.diff(found[:6]) < 0).all()
    # At the edge of the ball, |x - b| = r = 1/8, it is one half.
    assert found[[3, 7]] == pytest.approx(0.5, abs=1e-15)


def test_two_workers_on_neighbouring_cells_multiply_their_penalties() -> None:
    behaviour_map = line([0.0] * 8)
    cells = cells_of(behaviour_map)
    posterior = posterior_of(behaviour_map, 1, 3)
    alone = [log_penalty(posterior, [busy], cells, lipschitz=20.0, maximum=9.0) for busy in (3, 4)]
    both = log_penalty(posterior, [3, 4], cells, lipschitz=20.0, maximum=9.0)
    np.testing.assert_allclose(both, alone[0] + alone[1], rtol=1e-14)


def test_radius_and_variance_have_least_values() -> None:
    behaviour_map = line([0.0] * 4)
    cells = cells_of(behaviour_map)
    certain = flat(behaviour_map, 5.0, variance=0.0)
    found = np.exp(log_penalty(certain, [0], cells, lipschitz=0.1, maximum=2.0))
    width = 0.01 / 0.1
    distance = np.arange(4) / 16
    expected = [0.5 * math.erfc(-(d - 1e-4) / (math.sqrt(2) * width)) for d in distance]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_negative_bounds_are_divided_by_the_penalty() -> None:
    behaviour_map = line([0.0] * 5)
    cells = cells_of(behaviour_map)
    bound = np.array([-1.0, -1.0, -1.0, -1.0, -3.0])
    penalties = np.log([0.1, 0.2, 0.5, 0.4, 1.0])
    assert best_penalised(bound, penalties, np.arange(5), cells) == 2
    bound[1] = 0.0
    assert best_penalised(bound, penalties, np.arange(5), cells) == 1
    bound[0] = 1e-9
    assert best_penalised(bound, penalties, np.arange(5), cells) == 0


def test_penalties_too_small_for_a_float_are_still_compared() -> None:
    behaviour_map = line([0.0] * 4)
    cells = cells_of(behaviour_map)
    posterior = flat(behaviour_map, 10.0, variance=1e-4)
    penalties = log_penalty(posterior, [0, 1], cells, lipschitz=1.0, maximum=100.0)
    assert not np.exp(penalties).any()
    bound = upper_confidence_bound(posterior)
    assert best_penalised(bound, penalties, np.array([2, 3]), cells) == 3
    assert best_penalised(-bound, penalties, np.array([2, 3]), cells) == 3


# --- M and L as a worker takes them --------------------------------------------------------------


def with_observations(worker: Worker, values: list[float]) -> Worker:
    """A worker that has made these evaluations of one trial each."""
    for value in values:
        worker.ask()
        worker.tell(value)
    return worker


def test_maximum_is_the_best_observation_but_at_least_0() -> None:
    behaviour_map = random_map(4)
    worker = with_observations(Worker(0, behaviour_map, trials=2), [])
    assert worker._maximum(worker._posterior()) == 0
    assert with_observations(worker, [-5.0])._maximum(worker._posterior()) == 0
    assert with_observations(worker, [9.0, 3.0])._maximum(worker._posterior()) == 3.0
    higher = with_observations(Worker(0, behaviour_map, maximum="posterior-mean"), [4.0])
    assert higher._maximum(higher._posterior()) == higher._posterior().mean.max()


def test_worker_without_data_takes_slope_10_though_the_prior_is_steep() -> None:
    worker = Worker(0, random_map(5, width=4), trials=1)
    assert worker._lipschitz(worker._posterior()) == 10
    with_observations(worker, [4.0])
    found = worker._lipschitz(worker._posterior())
    assert found == lipschitz(worker._posterior().mean, cells_of(worker.behaviour_map)) > 10


def test_zero_variance_observations_are_exact() -> None:
    behaviour_map = random_map(6)
    worker = with_observations(Worker(0, behaviour_map, trials=2), [4.0, 4.0])
    cell = worker.best()
    assert worker.predict(cell) == pytest.approx((4.0, 1e-4), rel=1e-3)
    assert worker.ask() != cell
