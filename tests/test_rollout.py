"""The door to the engine: how teams are given, and what evaluates them, changes no score."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swarmbo import (
    Controller,
    Genomes,
    InputError,
    Rollout,
    Scenario,
    bundled_controllers,
    conditions,
    random_genomes,
    rollout,
)
from swarmbo.compilation import cache_folder, is_cached
from swarmbo.engine import rollout as door
from swarmbo.engine.gpu import driver as gpu
from swarmbo.engine.lanes import genome_brains, make_brains
from swarmbo.engine.rollout import Batch, choose_device, rollouts
from swarmbo.engine.swarm import Swarm, Swarms
from swarmbo.world.disturbance import DISTURBANCES

SCENARIO = Scenario.draw(seed=1, trials=2, ticks=40)
RECORDED = bundled_controllers("recorded")


def assert_equal(one: Rollout, two: Rollout) -> None:
    """Fail unless two rollouts have the same bits."""
    for name in ("items", "uniformity", "centre_distance", "coverage"):
        assert getattr(one, name).tobytes() == getattr(two, name).tobytes(), name


def test_genomes_are_evaluated_like_teams_of_their_controllers() -> None:
    teams = [[controller] * SCENARIO.robots for controller in RECORDED]
    genomes = Genomes.from_controllers(RECORDED)
    assert_equal(rollout(teams, SCENARIO), rollout(genomes, SCENARIO, threads=3))
    assert_equal(rollout(teams, SCENARIO), rollout(genomes, SCENARIO, threads=1))


@settings(max_examples=50)
@given(st.integers(0, 2**64 - 1))
def test_brains_of_a_genome_are_those_of_its_controller(key: int) -> None:
    genomes = random_genomes(5, key)
    for number, controller in enumerate(genomes.controllers()):
        for one, two in zip(
            genome_brains(genomes, number, 6), make_brains([controller] * 6), strict=True
        ):
            assert (one.dtype, one.shape, one.tobytes()) == (two.dtype, two.shape, two.tobytes())


def test_huge_weights_of_a_genome_are_tamed_like_those_of_a_controller() -> None:
    controller = Controller(1, (1e308, 0.5, -1e307), ((12, 10, 1e308), (0, 12, -1e308)))
    genomes = Genomes.from_controllers([controller])
    for one, two in zip(genome_brains(genomes, 0, 6), make_brains([controller] * 6), strict=True):
        assert one.tobytes() == two.tobytes()
    assert_equal(rollout(genomes, SCENARIO), rollout([[controller] * 6], SCENARIO))


def test_genomes_that_are_no_controllers_are_refused() -> None:
    genomes = random_genomes(3, 1)
    genomes.hidden[1] = 1000
    with pytest.raises(InputError, match="controller 1: has 1000 hidden neurons"):
        rollout(genomes, SCENARIO)
    with pytest.raises(InputError, match="no teams"):
        rollout(Genomes.zeros(0), SCENARIO)


def test_failure_in_a_thread_is_the_callers() -> None:
    team = [RECORDED[0]] * SCENARIO.robots
    with pytest.raises(InputError, match="names 2 controllers; give 6"):
        rollout([team, team[:2], team], SCENARIO, threads=2)


def many() -> tuple[list[Batch], list[Rollout]]:
    """Teams in several scenarios, alike and mixed, and what each gets by itself."""
    genomes = Genomes.from_controllers(RECORDED[:10])
    tables = [[[0] * 6, [1, 1, 2, 2, 2, 1], [5] * 6], [[9, 8, 7, 6, 5, 4]], [[3] * 12, [2] * 12]]
    scenarios = [
        SCENARIO,
        Scenario.draw(seed=2, trials=3, ticks=50),
        Scenario.draw(seed=3, trials=1, ticks=30, robots=12),
    ]
    batches = [
        Batch(scenario, genomes, np.array(table))
        for scenario, table in zip(scenarios, tables, strict=True)
    ]
    alone = [
        rollout([[RECORDED[number] for number in team] for team in table], scenario, threads=1)
        for scenario, table in zip(scenarios, tables, strict=True)
    ]
    return batches, alone


@pytest.mark.parametrize("threads", [1, 2, 9])
def test_teams_of_many_scenarios_get_what_they_get_alone(threads: int) -> None:
    batches, alone = many()
    done: list[int] = []
    for one, two in zip(
        rollouts(batches, threads=threads, progress=done.append), alone, strict=True
    ):
        assert_equal(one, two)
    assert done[-1] == 6
    assert rollouts([]) == []


def test_swarms_with_other_faults_run_side_by_side_as_if_alone() -> None:
    genomes = Genomes.from_controllers(RECORDED[:4])
    scenarios = [
        Scenario.draw(
            seed=seed, trials=2, ticks=40, disturbances=(conditions(kind, seed)[0],), noise_key=seed
        )
        for seed, kind in enumerate(DISTURBANCES, start=1)
    ]
    batches = [Batch(scenario, genomes, np.repeat([[0], [3]], 6, 1)) for scenario in scenarios]
    pieces = list(door._pieces(scenarios, [2] * len(scenarios), 1, False))
    assert [len(teams) for _, teams in pieces] == [10, 2], "only where food is scarce it differs"
    teams = [[RECORDED[number]] * 6 for number in (0, 3)]
    for scenario, found in zip(scenarios, rollouts(batches, threads=1), strict=True):
        assert_equal(found, rollout(teams, scenario, threads=1))


@pytest.mark.parametrize(
    ("teams", "threads", "largest"),
    [(78, 1, 13), (78, 2, 13), (500, 16, 13), (20, 4, 5), (3, 2, 2), (1, 1, 1)],
)
def test_threads_share_the_teams_and_end_together(teams: int, threads: int, largest: int) -> None:
    scenario = Scenario.draw(seed=1, ticks=1)
    pieces = [piece for _, piece in door._pieces([scenario], [teams], threads, False)]
    assert [team for piece in pieces for team in piece] == [(0, n) for n in range(teams)]
    sizes = [len(piece) for piece in pieces]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] == largest
    assert threads == 1 or sizes[-1] == 1


def test_batches_are_checked() -> None:
    batch = many()[0][0]
    for teams in (batch.teams[:, :5], batch.teams[:0], batch.teams[0]):
        with pytest.raises(InputError, match="shape teams x 6 robots"):
            rollouts([batch._replace(teams=teams)])
    with pytest.raises(InputError, match="threads is 0"):
        rollouts([batch], threads=0)


# --- devices -----------------------------------------------------------------------------------


class _Pending:
    def __init__(self, jobs: Sequence[gpu.Job]) -> None:
        self.jobs = jobs

    def result(self) -> list[Rollout]:
        results = []
        for job in self.jobs:
            assert job.teams is not None
            controllers = job.genomes.controllers()
            teams = [[controllers[number] for number in team] for team in job.teams]
            results.append(rollout(teams, job.scenario))
        return results


@pytest.fixture
def pretended_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let there be a GPU, which is the CPU."""
    monkeypatch.setattr(gpu, "why_not", lambda: "")
    monkeypatch.setattr(gpu, "launch", lambda jobs, features=False: _Pending(jobs))
    monkeypatch.setattr(door, "LAUNCH", 4)


@pytest.mark.usefixtures("pretended_gpu")
def test_gpu_gets_the_same_teams_in_pieces() -> None:
    few = RECORDED[:10]
    mixed = [few[:6], few[4:10], few[:6][::-1], *[[controller] * 6 for controller in few]]
    done: list[int] = []
    assert_equal(
        rollout(mixed, SCENARIO), rollout(mixed, SCENARIO, device="gpu", progress=done.append)
    )
    assert done == [4, 8, 12, 13]
    genomes = Genomes.from_controllers(few)
    assert_equal(rollout(genomes, SCENARIO), rollout(genomes, SCENARIO, device="auto"))
    with pytest.raises(InputError, match="team 1 names 5 controllers; give 6"):
        rollout([few[:6], few[:5]], SCENARIO, device="gpu")


@pytest.mark.usefixtures("pretended_gpu")
def test_teams_of_many_robots_and_trials_reach_the_gpu_in_smaller_pieces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    robots = SCENARIO.robots * SCENARIO.trials
    monkeypatch.setattr(gpu, "MOST", 3 * robots - 1)
    genomes = Genomes.from_controllers(RECORDED[:5])
    done: list[int] = []
    found = rollout(genomes, SCENARIO, device="gpu", progress=done.append)
    assert done == [2, 4, 5]
    assert_equal(found, rollout(genomes, SCENARIO))
    batches, alone = many()
    for most, expected in ((robots, [1, 2, 3, 4, 5, 6]), (3 * robots, [3, 4, 6])):
        monkeypatch.setattr(gpu, "MOST", most)
        done.clear()
        for one, two in zip(
            rollouts(batches, device="gpu", progress=done.append), alone, strict=True
        ):
            assert_equal(one, two)
        assert done == expected, most


@pytest.mark.usefixtures("pretended_gpu")
def test_gpu_gets_many_scenarios_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    batches, alone = many()
    for launch, expected in ((4, [4, 6]), (2, [2, 4, 6]), (100, [6])):
        monkeypatch.setattr(door, "LAUNCH", launch)
        done: list[int] = []
        found = rollouts(batches, device="gpu", progress=done.append)
        assert done == expected
        for one, two in zip(found, alone, strict=True):
            assert_equal(one, two)


@pytest.mark.usefixtures("pretended_gpu")
def test_auto_is_the_gpu_where_it_can_do_the_work() -> None:
    assert choose_device("auto") == "gpu"
    assert choose_device("cpu") == "cpu"
    assert choose_device("auto", robots=1000) == "cpu"
    with pytest.raises(InputError, match="robots, not 1000; use the CPU"):
        choose_device("gpu", robots=1000)


@pytest.mark.usefixtures("pretended_gpu")
def test_robots_too_fast_for_the_gpu_run_on_the_cpu() -> None:
    scenario = replace(SCENARIO, robot=replace(SCENARIO.robot, max_speed=0.3))
    teams = [RECORDED[:6]]
    assert_equal(rollout(teams, scenario, device="auto"), rollout(teams, scenario))
    with pytest.raises(InputError, match=r"the GPU runs robots that .* use the CPU"):
        rollout(teams, scenario, device="gpu")


@pytest.mark.parametrize("distance", [np.nan, np.inf, 1.2])
def test_what_left_the_arena_on_the_gpu_has_no_scores(distance: float) -> None:
    gpu._check_distances(np.array([0.0, 1.0]), SCENARIO)
    with pytest.raises(InputError, match="robots left the arena foraging by tick 40"):
        gpu._check_distances(np.array([0.5, distance]), SCENARIO)


def test_missing_gpu_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "why_not", lambda: "there is no GPU; buy one")
    assert choose_device("auto") == "cpu"
    with pytest.raises(InputError, match="there is no GPU; buy one"):
        rollout([RECORDED[:6]], SCENARIO, device="gpu")
    with pytest.raises(InputError, match="no device 'tpu'; name one of auto, cpu, gpu"):
        rollout([RECORDED[:6]], SCENARIO, device="tpu")


# --- compilation -------------------------------------------------------------------------------


def test_only_the_simulators_own_machine_code_counts_as_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert not is_cached()
    folder = cache_folder() / "engine"
    folder.mkdir(parents=True)
    (folder / "variation._mutate-1.py311.nbi").touch()
    assert not is_cached()
    (folder / "driver.advance-1.py311.nbi").touch()
    assert is_cached()


def test_swarms_of_one_scenario_do_not_disturb_each_other() -> None:
    from swarmbo import Food, Swarm

    one, two = (Swarm(SCENARIO, RECORDED[:6]) for _ in range(2))
    one.food = [Food(1.0, 1.0, 3.0)]
    one.reset(noise_key=5)
    assert two.food == tuple(SCENARIO.arena.food)
    two.advance(10)
    three = Swarm(replace(SCENARIO), RECORDED[:6])
    three.advance(10)
    assert np.array_equal(two.poses, three.poses)


@pytest.mark.parametrize(("robots", "trials"), [(6, 8), (5, 3), (1, 1), (30, 2)])
def test_swarms_side_by_side_move_as_if_alone(robots: int, trials: int) -> None:
    """To the last bit, long after the first contacts, at every place among the lanes."""
    scenario = Scenario.draw(seed=2, robots=robots, trials=trials)
    teams = [[controller] * robots for controller in RECORDED[8:12]]
    together = Swarms(scenario, len(teams))
    together.begin([make_brains(team) for team in teams])
    together.advance(150)
    size = robots * trials
    for number, team in enumerate(teams):
        alone = Swarm(scenario, team)
        alone.advance(150)
        for name in ("x", "y", "heading", "inputs", "distance"):
            lanes = getattr(together._lanes, name)[..., number * size : (number + 1) * size]
            np.testing.assert_array_equal(lanes, getattr(alone._lanes, name)[..., :size])
