"""The Gaussian process: against a linear system, scikit-learn and BoTorch, and against itself."""

import tracemalloc
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swarmbo import BehaviourMap
from swarmbo.adaptation.cells import Cells, Rows, cells_of
from swarmbo.adaptation.gaussian_process import BLOCK, GaussianProcess, Posterior
from tests.naive import adaptation as naive

SEEDS = st.integers(0, 2**32 - 1)


def random_map(seed: int, cells: int = 60, dimensions: int = 3, width: int = 6) -> BehaviourMap:
    """A map of so many cells at most, in any order, from a corner of the grid."""
    generator = np.random.default_rng(seed)
    grid = np.unique(generator.integers(0, width, (cells, dimensions)), axis=0)
    generator.shuffle(grid)
    return BehaviourMap.from_arrays(grid, 12 * generator.random(len(grid)))


def scattered_map(seed: int, cells: int = 40, dimensions: int = 10) -> BehaviourMap:
    """A map whose cells are centroids."""
    generator = np.random.default_rng(seed)
    numbers = np.sort(generator.choice(2 * cells, cells, replace=False))[:, None]
    centroids = generator.random((2 * cells, dimensions))
    return BehaviourMap(
        descriptor_name="custom",
        cells=numbers,
        performance=12 * generator.random(cells),
        descriptor=centroids[numbers[:, 0]],
        centroids=centroids,
    )


def random_observations(
    behaviour_map: BehaviourMap, seed: int, count: int, least_noise: float = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cells, values and noise variances; half the noise is as small as it may be."""
    generator = np.random.default_rng([seed, 1])
    at = generator.choice(len(behaviour_map.cells), count, replace=False)
    noise = least_noise + generator.random(count) * (generator.random(count) < 0.5)
    return at, 12 * generator.random(count), noise


def process_of(behaviour_map: BehaviourMap, length_scale: float = 0.12) -> GaussianProcess:
    return GaussianProcess(cells_of(behaviour_map), behaviour_map.performance, length_scale)


def bits(posterior: Posterior) -> bytes:
    return posterior.mean.tobytes() + posterior.variance.tobytes()


# --- oracles -------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(SEEDS, st.integers(1, 4), st.floats(0.05, 1.0))
def test_posterior_equals_that_of_a_linear_system(
    seed: int, dimensions: int, length_scale: float
) -> None:
    behaviour_map = random_map(seed, 40, dimensions, width=12)
    count = seed % (len(behaviour_map.cells) + 1)
    at, values, noise = random_observations(behaviour_map, seed, count, 1e-3)
    found = process_of(behaviour_map, length_scale).posterior(at, values, noise)
    observations = list(zip(at.tolist(), values.tolist(), noise.tolist(), strict=True))
    mean, variance = naive.posterior(behaviour_map, observations, length_scale=length_scale)
    np.testing.assert_allclose(found.mean, mean, rtol=0, atol=1e-8)
    np.testing.assert_allclose(found.variance, variance, rtol=0, atol=1e-8)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("make", [random_map, scattered_map])
def test_posterior_equals_that_of_scikit_learn(make: Any, seed: int) -> None:
    reason = "scikit-learn is not installed"
    process = pytest.importorskip("sklearn.gaussian_process", reason=reason)
    kernels = pytest.importorskip("sklearn.gaussian_process.kernels", reason=reason)
    behaviour_map = make(seed)
    at, values, noise = random_observations(behaviour_map, seed, 5 + 4 * seed)
    found = process_of(behaviour_map).posterior(at, values, noise)
    prior, points = behaviour_map.performance, behaviour_map.coordinates
    peer = process.GaussianProcessRegressor(
        kernel=kernels.Matern(length_scale=0.12, length_scale_bounds="fixed", nu=2.5),
        alpha=noise + 1e-8,
        optimizer=None,
    ).fit(points[at], values - prior[at])
    mean, deviation = peer.predict(points, return_std=True)
    np.testing.assert_allclose(found.mean, prior + mean, rtol=0, atol=1e-8)
    np.testing.assert_allclose(found.variance, deviation**2, rtol=0, atol=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_posterior_equals_that_of_botorch(seed: int) -> None:
    reason = "BoTorch is not installed; the extra botorch has it"
    torch = pytest.importorskip("torch", reason=reason)
    models = pytest.importorskip("botorch.models", reason=reason)
    gpytorch = pytest.importorskip("gpytorch", reason=reason)
    behaviour_map = random_map(seed)
    at, values, noise = random_observations(behaviour_map, seed, 10 + 5 * seed, 1e-6)
    found = process_of(behaviour_map).posterior(at, values, noise)
    prior, points = behaviour_map.performance, torch.tensor(behaviour_map.coordinates)
    kernel = gpytorch.kernels.MaternKernel(nu=2.5).double()
    kernel.lengthscale = torch.tensor(0.12, dtype=torch.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the residuals are not standardised
        with gpytorch.settings.min_fixed_noise(double_value=1e-9):
            peer = models.SingleTaskGP(
                points[at],
                torch.tensor(values - prior[at])[:, None],
                torch.tensor(noise + 1e-8)[:, None],
                covar_module=kernel,
                mean_module=gpytorch.means.ZeroMean(),
                outcome_transform=None,
            ).double()
            answer = peer.posterior(points)
    mean, variance = answer.mean.detach().numpy()[:, 0], answer.variance.detach().numpy()[:, 0]
    np.testing.assert_allclose(found.mean, prior + mean, rtol=0, atol=1e-8)
    np.testing.assert_allclose(found.variance, variance, rtol=0, atol=1e-8)


# --- the same bits by any path -------------------------------------------------------------------


@settings(max_examples=30)
@given(SEEDS, st.data())
def test_posterior_depends_on_the_last_list_alone(seed: int, data: st.DataObject) -> None:
    behaviour_map = random_map(seed, cells=200, width=8)
    cells = len(behaviour_map.cells)
    busy = process_of(behaviour_map)
    at, values, noise = random_observations(behaviour_map, seed, min(cells, 3 * BLOCK + 5), 1e-3)
    for _ in range(data.draw(st.integers(1, 6))):
        count = data.draw(st.integers(0, len(at)))
        settled = data.draw(st.integers(0, count))
        changed = data.draw(st.integers(0, len(at) - 1))
        values, noise = values.copy(), noise.copy()
        values[changed] += 1
        noise[changed] += 0.125
        if data.draw(st.booleans()):
            at, values, noise = at[::-1], values[::-1], noise[::-1]
        for cell in data.draw(st.lists(st.integers(0, cells - 1), max_size=3)):
            busy.prepare(cell)
        observations = at[:count], values[:count], noise[:count]
        found = busy.posterior(*observations, settled)
        assert bits(found) == bits(process_of(behaviour_map).posterior(*observations))


@settings(max_examples=20)
@given(SEEDS, st.integers(1, 3), st.integers(1, 3), st.data())
def test_what_is_not_kept_is_computed_again_to_the_same_bits(
    seed: int, most: int, prepared: int, data: st.DataObject
) -> None:
    behaviour_map = random_map(seed, cells=150, width=8)
    at, values, noise = random_observations(behaviour_map, seed, 2 * BLOCK + 5, 1e-3)
    cells = Cells(behaviour_map)
    cells._distances, cells._kernels = Rows(most), Rows(most)
    forgetful = GaussianProcess(cells, behaviour_map.performance)
    forgetful._most_projections = prepared
    for count in data.draw(st.lists(st.integers(0, len(at)), min_size=1, max_size=4)):
        for cell in at[count : count + 5].tolist():
            forgetful.prepare(cell)
        observations = at[:count], values[:count], noise[:count]
        found = forgetful.posterior(*observations, data.draw(st.integers(0, count)))
        assert bits(found) == bits(process_of(behaviour_map).posterior(*observations))
        assert len(forgetful._projections) <= prepared
    assert len(cells._distances) <= most


def test_very_many_prepared_cells_of_a_large_map_are_a_bounded_memory() -> None:
    grid = np.argwhere(np.ones((16, 16, 16, 16)))
    process = process_of(BehaviourMap.from_arrays(grid, np.zeros(len(grid))))
    tracemalloc.start()
    try:
        for cell in range(600):
            process.prepare(cell)
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used < 400e6  # each cell of them would take 1.5 MB


def test_posteriors_that_were_given_stay_as_they_are() -> None:
    behaviour_map = random_map(1)
    process = process_of(behaviour_map)
    at, values, noise = random_observations(behaviour_map, 1, 40)
    given_before = [process.posterior(at[:n], values[:n], noise[:n]) for n in range(41)]
    before = [bits(posterior) for posterior in given_before]
    process.posterior(at[::-1], values[::-1], noise[::-1])
    assert [bits(posterior) for posterior in given_before] == before
    with pytest.raises(ValueError, match="read-only"):
        given_before[0].mean[0] = 1


# --- edges ---------------------------------------------------------------------------------------


def test_without_observations_the_posterior_is_the_prior() -> None:
    behaviour_map = random_map(2)
    nothing = np.zeros(0)
    process = process_of(behaviour_map)
    for _ in range(2):
        found = process.posterior(nothing.astype(int), nothing, nothing)
        np.testing.assert_array_equal(found.mean, behaviour_map.performance)
        np.testing.assert_array_equal(found.deviation, np.ones(len(behaviour_map.cells)))
        process.posterior(np.array([3]), np.array([1.0]), np.array([0.0]))


def test_exact_observations_are_met_and_certain() -> None:
    behaviour_map = random_map(3)
    at, values, _ = random_observations(behaviour_map, 3, 30)
    found = process_of(behaviour_map).posterior(at, values, np.zeros(30))
    np.testing.assert_allclose(found.mean[at], values, atol=1e-4)
    assert (found.variance[at] < 2e-8).all()


def test_exact_observations_of_one_cell_that_differ_count_with_their_mean() -> None:
    behaviour_map = random_map(4)
    found = process_of(behaviour_map).posterior(np.full(40, 7), np.arange(40.0), np.zeros(40))
    assert found.mean[7] == pytest.approx(19.5, abs=1e-5)
    assert np.isfinite(found.mean).all()
    assert (found.variance >= 0).all()


@settings(max_examples=20)
@given(SEEDS)
def test_an_observation_never_adds_uncertainty(seed: int) -> None:
    behaviour_map = random_map(seed)
    at, values, noise = random_observations(behaviour_map, seed, 20)
    process = process_of(behaviour_map)
    before = np.ones(len(behaviour_map.cells))
    for count in range(1, 21):
        found = process.posterior(at[:count], values[:count], noise[:count])
        assert (found.variance <= before + 1e-15).all()
        assert (found.variance >= 0).all()
        before = found.variance


def test_processes_over_one_map_share_its_kernel() -> None:
    behaviour_map = random_map(5)
    cells = cells_of(behaviour_map)
    assert cells_of(behaviour_map) is cells
    row = cells.kernel(3, 0.12)
    assert cells.kernel(3, 0.12) is row
    assert cells.kernel(3, 0.2) is not row
    assert cells_of(random_map(5)) is not cells
