"""Generations evaluated ahead of time give the map that one after the other gives."""

import random
from collections.abc import Sequence

import numpy as np
import pytest

from swarmbo.controller.genomes import MAX_CONNECTIONS, MAX_HIDDEN, Genomes
from swarmbo.controller.network import INPUTS
from swarmbo.controller.variation import Variation
from swarmbo.engine.gpu.driver import Job
from swarmbo.engine.rollout import Rollout, rollout
from swarmbo.evolution import speculation as foresight
from swarmbo.evolution.map_elites import Evolution, EvolutionOptions, generations
from swarmbo.evolution.speculation import foreseen

SMALL = EvolutionOptions(evaluations=1000 + 10 * 40 + 7, batch=40, ticks=12)


class Done:
    """Evaluations that are over."""

    def __init__(self, results: list[Rollout]) -> None:
        self._results = results

    def result(self) -> list[Rollout]:
        return self._results


class OnCpu:
    """Launches on the CPU; notes how many teams they had."""

    def __init__(self, *, features: bool = False) -> None:
        self.features = features
        self.teams: list[int] = []

    def __call__(self, jobs: Sequence[Job]) -> Done:
        self.teams.append(sum(len(job.genomes) for job in jobs))
        return Done([rollout(job.genomes, job.scenario, features=self.features) for job in jobs])


def one_after_the_other(options: EvolutionOptions) -> Evolution:
    evolution = Evolution(options)
    for _ in generations([evolution]):
        pass
    return evolution


def traits(genomes: Genomes, levels: int = 1) -> Rollout:
    """Scores that follow from the controller alone: a dozen cells in which much is replaced.

    Or levels^2 dozens, to which new ones come for long.
    """
    sums = genomes.weight.sum(axis=1) + genomes.bias.sum(axis=1)
    items = np.zeros((len(genomes), 8, 6), np.int64)
    items[:, :, 0] = np.maximum(0, 50 + 8 * sums)[:, None]
    each = np.ones((len(genomes), 8))
    first, second = (np.floor(np.abs(sums) * size % 1 * levels) / levels for size in (1e3, 1e6))
    return Rollout(
        items=items,
        uniformity=each * ((genomes.count + genomes.hidden) % 12 / 16)[:, None],
        centre_distance=each * first[:, None],
        coverage=each * second[:, None],
    )


class Restless(foresight._Pace):
    """Looks now far and now less far ahead, so that plans grow old."""

    def __init__(self) -> None:
        super().__init__()
        self._random = random.Random(5)

    def note(self, teams: int, used: int, due: int) -> None:
        self.ahead = self._random.choice([1, 2, 8])


@pytest.mark.parametrize("flights", [2, 5])
@pytest.mark.parametrize("seed", range(5))
def test_every_result_counts_for_the_very_child_it_was_made_for(
    seed: int, flights: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foresight, "_Pace", Restless)
    monkeypatch.setattr(foresight, "FLIGHTS", flights)
    options = [
        EvolutionOptions(evaluations=1001 + 80 * batch, batch=batch, seed=seed) for batch in (20, 6)
    ]

    def launch(jobs: Sequence[Job]) -> Done:
        return Done([traits(job.genomes) for job in jobs])

    for each in options:
        evolution = Evolution(each)
        for _ in foreseen([evolution], launch):
            pass
        plain = Evolution(each)
        while not plain.finished:
            plain.tell(traits(plain.ask()))
        assert evolution.map().to_bytes() == plain.map().to_bytes()


@pytest.mark.parametrize("seed", range(3))
def test_elites_of_a_map_that_goes_on_are_told_apart(seed: int) -> None:
    plain = Evolution(EvolutionOptions(evaluations=1600, batch=20, seed=seed))
    plain.tell(traits(plain.ask(), levels=16))
    again = Evolution.continued(plain.options, plain.map())
    while not plain.finished:
        plain.tell(traits(plain.ask(), levels=16))
    for _ in foreseen([again], lambda jobs: Done([traits(job.genomes, levels=16) for job in jobs])):
        pass
    assert again.map().to_bytes() == plain.map().to_bytes()


def test_a_result_is_of_no_use_once_another_child_was_in_its_place() -> None:
    evolution = Evolution(SMALL)
    first, second = np.array([[1], [2]], np.uint64)
    plan = foresight._Plan(first, dimensions=3)
    plan.state[:] = foresight.UNDER_WAY
    plan.expect(second)
    plan.make(np.array([0]), Variation(Genomes.zeros(1), np.zeros(1, int)))
    plan.expect(first)  # its results are still to come, but the controller is the second's
    plan.keep(evolution, np.array([0]), first, traits(Genomes.zeros(1)))
    assert plan.state == [foresight.UNKNOWN]


@pytest.mark.parametrize("descriptor", ["hbd", "sdbc"])
def test_maps_are_those_of_one_generation_after_the_other(
    descriptor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foresight, "_Pace", Restless)
    monkeypatch.setattr(foresight, "FLIGHTS", 2)
    options = [
        EvolutionOptions(
            evaluations=SMALL.evaluations, descriptor=descriptor, batch=40, ticks=12, seed=seed
        )
        for seed in (1, 2)
    ]
    launch = OnCpu(features=descriptor == "sdbc")
    evolutions = [Evolution(each) for each in options]
    steps = [(evolution, evolution.generation) for evolution in foreseen(evolutions, launch)]
    for evolution, each in zip(evolutions, options, strict=True):
        assert evolution.map().to_bytes() == one_after_the_other(each).map().to_bytes()
        assert [n for e, n in steps if e is evolution] == list(range(1, 13))
    assert {40, 80} <= set(launch.teams)  # of both evolutions


def test_a_map_that_goes_on_comes_to_the_same_end() -> None:
    whole = one_after_the_other(SMALL)
    half = Evolution(SMALL)
    for _ in generations([half]):
        if half.generation == 6:
            break
    again = Evolution.continued(SMALL, half.map())
    for _ in foreseen([again], OnCpu()):
        pass
    assert again.map().to_bytes() == whole.map().to_bytes()


def test_mutations_without_room_are_counted() -> None:
    counts = []
    for ahead in (True, False):
        evolution = Evolution(SMALL)
        evolution.tell(traits(evolution.ask()))
        full = Genomes.zeros(len(evolution.elites))
        full.hidden[:] = MAX_HIDDEN
        full.count[:] = MAX_CONNECTIONS
        full.source[:] = np.arange(MAX_CONNECTIONS) % INPUTS
        full.target[:] = INPUTS + np.arange(MAX_CONNECTIONS) // INPUTS
        evolution.elites.put(np.arange(len(full)), full)
        while not (ahead or evolution.finished):
            evolution.tell(traits(evolution.ask()))
        for _ in foreseen([evolution], lambda jobs: Done([traits(job.genomes) for job in jobs])):
            pass
        counts.append(evolution.refused)
    assert counts[0] == counts[1] > 0


def test_too_few_results_are_refused() -> None:
    evolution = Evolution(SMALL)
    with pytest.raises(ValueError, match="shorter"):
        list(foreseen([evolution], lambda _: Done([])))
    assert evolution.generation == 0


@pytest.mark.parametrize(
    ("evaluations", "batch", "launches"),
    [(1, 40, 1), (900, 40, 3), (1000, 40, 3), (1003, 1, 8), (1500, 2**20, 7)],
)
def test_few_evaluations_take_few_launches(evaluations: int, batch: int, launches: int) -> None:
    options = EvolutionOptions(evaluations=evaluations, batch=batch, ticks=2)
    evolution = Evolution(options)
    launch = OnCpu()
    for _ in foreseen([evolution], launch):
        pass
    assert evolution.map().to_bytes() == one_after_the_other(options).map().to_bytes()
    assert len(launch.teams) <= launches
    assert sum(launch.teams) <= 2 * evaluations


def test_every_map_goes_on_however_small_the_batches() -> None:
    plans = [EvolutionOptions(evaluations=1020, batch=1, ticks=2, seed=n) for n in (1, 2, 3)]
    evolutions = [Evolution(plan) for plan in plans]
    order = [evolutions.index(evolution) for evolution in foreseen(evolutions, OnCpu())]
    assert set(order[:6]) == {0, 1, 2}


@pytest.mark.parametrize("due", [1, 500, 2500, 7999, 8000, 10**6])
def test_as_many_are_under_way_as_the_gpu_takes(due: int) -> None:
    pace = foresight._Pace()
    for _ in range(20 * foresight.PERIOD):
        pace.note(500, 500, due)
    assert foresight.under_way(pace.ahead, due) > 0.9 * foresight.TEAMS
    assert pace.ahead == 1 or pace.ahead * due < 2 * foresight.TEAMS


@pytest.mark.parametrize("flights", [1, 2, 3])
def test_looks_far_ahead_where_nothing_enters(
    flights: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foresight, "FLIGHTS", flights)
    monkeypatch.setattr(foresight, "TEAMS", 1000)
    evolution = Evolution(EvolutionOptions(evaluations=50_000, batch=500))
    teams = []

    def launch(jobs: Sequence[Job]) -> Done:
        teams.append(sum(len(job.genomes) for job in jobs))
        return Done([traits(Genomes.zeros(len(job.genomes))) for job in jobs])

    for _ in foreseen([evolution], launch):
        pass
    assert teams[-2] == -(-1000 // flights)


def test_looks_farther_ahead_as_long_as_that_is_of_use() -> None:
    pace = foresight._Pace()
    for _ in range(20 * foresight.PERIOD):
        pace.note(500, 500, 500)
    assert pace.ahead == foresight.TEAMS // 500
    for _ in range(2 * foresight.PERIOD):
        pace.note(500, 100, 500)
    assert pace.ahead == foresight.TEAMS // 500 // 4
    for _ in range(20 * foresight.PERIOD):
        pace.note(500, 350, 500)
    assert pace.ahead == foresight.TEAMS // 500 // 4
