"""HBD and SDBC: against plain computations, and against recordings of ARGoS."""

import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from swarmbo import (
    FORAGING,
    FORAGING_2X,
    Arena,
    Genomes,
    InputError,
    Rollout,
    Scenario,
    Swarm,
    bundled_controllers,
    hbd,
    load_controllers,
    rollout,
    sdbc,
)
from swarmbo.evolution.descriptor import geometric_medians, hbd_cells, wall_distances
from tests.fidelity import HBD, NOISE_KEY, per_controller, start_poses
from tests.naive.features import features, sdbc_of_trial, sum_of_distances

RECORDINGS = Path(__file__).parent / "data" / "argos"
EXAMPLE = bundled_controllers("example")


def recorded_features(swarm: Swarm, ticks: int) -> np.ndarray:
    """Trials x ticks x 6: the features, computed from the poses before and after every tick."""
    rows: list[list[list[float]]] = [[] for _ in range(swarm.scenario.trials)]
    before = swarm.poses
    for _ in range(ticks):
        swarm.advance(1)
        after = swarm.poses
        for trial, row in enumerate(rows):
            row.append(
                features(before[trial].tolist(), after[trial].tolist(), swarm.scenario.arena)
            )
        before = after
    return np.array(rows)


# --- HBD ---------------------------------------------------------------------------------------


def test_hbd_is_the_mean_over_the_trials_of_its_three_numbers() -> None:
    teams = [[controller] * 6 for controller in EXAMPLE]
    result = rollout(teams, Scenario.draw(seed=2, trials=3, ticks=60))
    descriptor = hbd(result)
    assert descriptor.shape == (len(teams), 3)
    for column, name in enumerate(("uniformity", "centre_distance", "coverage")):
        assert np.array_equal(descriptor[:, column], getattr(result, name).mean(axis=1))


def test_hbd_stays_between_0_and_1() -> None:
    numbers = np.array([[-0.1, 0.05], [1.5, 0.9]])
    result = Rollout(np.zeros((2, 2, 1), np.int64), numbers, 2 * numbers, numbers)
    assert hbd(result).tolist() == [[0, 0, 0], [1, 1, 1]]


def test_hbd_matches_argos() -> None:
    simulated, recorded = per_controller(
        rollout, RECORDINGS, "foraging_seed1_scores.csv.gz", "foraging_seed1_poses.csv.gz"
    )
    scenario = Scenario(
        poses=start_poses(RECORDINGS / "foraging_seed1_poses.csv.gz"), noise_key=NOISE_KEY
    )
    genomes = Genomes.from_controllers(load_controllers(RECORDINGS / "controllers.json"))
    descriptor = hbd(rollout(genomes, scenario))
    assert np.array_equal(descriptor, simulated[list(HBD)].to_numpy())
    assert np.abs(descriptor - recorded[list(HBD)].to_numpy()).mean(axis=0).max() < 0.02


@pytest.mark.parametrize(
    ("number", "index"),
    [(0, 0), (1 / 64, 0), (1 / 32, 1), (0.5, 8), (15.49 / 16, 15), (15.5 / 16, 15), (1.0, 15)],
)
def test_cell_of_hbd_rounds_halves_up_and_ends_at_15(number: float, index: int) -> None:
    assert hbd_cells(np.array([[number] * 3])).tolist() == [[index] * 3]


@given(st.lists(st.integers(0, 2**20), min_size=1, max_size=20))
def test_cell_of_hbd_is_the_nearest_of_16(steps: list[int]) -> None:
    numbers = [Fraction(step, 2**20) for step in steps]
    expected = [min(math.floor(16 * number + Fraction(1, 2)), 15) for number in numbers]
    assert hbd_cells(np.array([float(number) for number in numbers])).tolist() == expected


# --- SDBC --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "scenario",
    [
        Scenario.draw(seed=3, trials=2),
        Scenario.draw(seed=4, trials=1, robots=2),
        Scenario.draw(seed=5, trials=3, robots=1),
        Scenario.draw(seed=6, trials=1, arena=FORAGING_2X),
    ],
    ids=["six robots", "two robots", "one robot", "large arena"],
)
def test_features_are_those_of_the_trajectories(scenario: Scenario) -> None:
    ticks = 300
    swarm = Swarm(scenario, (EXAMPLE * 2)[: scenario.robots], features=True)
    naive = recorded_features(swarm, ticks)
    measured = swarm.scores().features
    assert measured is not None
    assert measured.shape == (scenario.trials, 12)
    expected = np.concatenate([naive.mean(axis=1), naive.std(axis=1)], axis=1)
    # Advance, turn and the size of the arena are float32.
    assert measured == pytest.approx(expected, abs=1e-6)


def test_features_change_nothing_else() -> None:
    scenario = Scenario.draw(seed=1, ticks=200)
    genomes = Genomes.from_controllers(EXAMPLE)
    without, with_features = (
        rollout(genomes, scenario, features=wanted) for wanted in (False, True)
    )
    assert without.features is None
    assert with_features.features is not None
    for name in ("items", "uniformity", "centre_distance", "coverage"):
        assert getattr(without, name).tobytes() == getattr(with_features, name).tobytes()


def test_features_do_not_depend_on_threads_or_on_how_teams_are_given() -> None:
    scenario = Scenario.draw(seed=1, trials=2, ticks=50)
    teams = [[controller] * 6 for controller in EXAMPLE]
    results = [
        rollout(teams, scenario, features=True, threads=1).features,
        rollout(teams, scenario, features=True, threads=3).features,
        rollout(Genomes.from_controllers(EXAMPLE), scenario, features=True, threads=2).features,
    ]
    assert len({np.asarray(result).tobytes() for result in results}) == 1


@pytest.mark.parametrize("arena", [FORAGING, FORAGING_2X], ids=lambda arena: arena.name)
def test_sdbc_is_that_of_the_trajectories(arena: Arena) -> None:
    scenario = Scenario.draw(seed=7, trials=1, ticks=200, arena=arena)
    team = (EXAMPLE * 2)[: scenario.robots]
    naive = recorded_features(Swarm(scenario, team), scenario.ticks)
    descriptor = sdbc(rollout([team], scenario, features=True), scenario)
    assert descriptor[0] == pytest.approx(sdbc_of_trial(naive[0], scenario.arena), abs=1e-5)


def test_trials_of_sdbc_are_combined_by_the_geometric_median() -> None:
    scenario = Scenario.draw(seed=8, trials=5, ticks=80)
    result = rollout([EXAMPLE], scenario, features=True)
    assert result.features is not None
    trials = np.concatenate(
        [
            sdbc(replace(result, features=result.features[:, [trial]]), scenario)
            for trial in range(5)
        ]
    )
    assert sdbc(result, scenario)[0] == pytest.approx(geometric_medians(trials[None])[0], abs=1e-9)


def test_sdbc_as_published_matches_argos() -> None:
    recorded = pd.read_csv(RECORDINGS / "sdbc_seed1.csv.gz")
    # The recording has mean and deviation of each feature side by side.
    columns = [f"s{2 * feature + part}" for part in range(2) for feature in range(5)]
    scenario = Scenario(
        poses=start_poses(RECORDINGS / "foraging_seed1_poses.csv.gz"), noise_key=NOISE_KEY
    )
    controllers = load_controllers(RECORDINGS / "controllers.json")
    genomes = Genomes.from_controllers([controllers[number] for number in recorded["controller"]])
    result = rollout(genomes, scenario, features=True)
    published = sdbc(result, scenario, variant="as-published")
    off = np.abs(published - recorded[columns].to_numpy())
    # As far as two runs with different noise are from each other: 0.006 to 0.019.
    assert off.mean(axis=0).max() < 0.025
    bias = (published - recorded[columns].to_numpy()).mean(axis=0)
    assert np.abs(bias).max() < 0.006
    default = np.abs(sdbc(result, scenario) - recorded[columns].to_numpy())
    assert default.mean() > 1.5 * off.mean()


@pytest.mark.parametrize("arena", [FORAGING, FORAGING_2X], ids=lambda arena: arena.name)
def test_extremes_of_the_distance_to_the_walls(arena: Arena) -> None:
    least, most = wall_distances(arena)
    x, y = np.meshgrid(np.linspace(0, arena.width, 51), np.linspace(0, arena.height, 51))
    poses = np.stack([x.ravel(), y.ravel(), np.zeros(x.size)], axis=1).tolist()
    distances = [features([pose], [pose], arena)[2] for pose in poses]
    assert min(distances) == pytest.approx(least)
    assert max(distances) == pytest.approx(most)


def test_wrong_calls_of_sdbc_are_refused() -> None:
    scenario = Scenario.draw(seed=1, trials=1, ticks=2)
    with pytest.raises(InputError, match="features=True"):
        sdbc(rollout([EXAMPLE], scenario), scenario)
    with pytest.raises(InputError, match=r"'paper'.*default, as-published"):
        sdbc(rollout([EXAMPLE], scenario, features=True), scenario, variant="paper")


# --- the geometric median ----------------------------------------------------------------------


@settings(max_examples=100)
@given(
    arrays.arrays(
        np.float64,
        st.tuples(st.integers(1, 9), st.integers(1, 10)),
        elements=st.floats(0, 1, width=16),
    ),
    st.integers(0, 2**32),
)
def test_geometric_median_has_the_least_sum_of_distances(points: np.ndarray, seed: int) -> None:
    (median,) = geometric_medians(points[None])
    found = sum_of_distances(points, median)
    random = np.random.default_rng(seed)
    for place in [*points, *(median + random.normal(scale=0.01, size=(20, points.shape[1])))]:
        assert found <= sum_of_distances(points, place) + 1e-6


def test_geometric_median_of_points_that_coincide_is_one_of_them() -> None:
    points = np.array([[0.2, 0.3]] * 3 + [[0.9, 0.1], [0.4, 0.8]])
    assert geometric_medians(points[None]).tolist() == [[0.2, 0.3]]
    assert geometric_medians(np.full((1, 8, 10), 0.7)).tolist() == [[0.7] * 10]


def test_geometric_median_of_a_symmetric_set_is_its_centre() -> None:
    square = np.array([[[0.0, 0], [1, 0], [0, 1], [1, 1]]])
    assert geometric_medians(square)[0] == pytest.approx([0.5, 0.5])
