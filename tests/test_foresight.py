"""Generations evaluated ahead of time give the map that one after the other gives."""

from collections.abc import Sequence

import pytest

from swarmbo.engine.gpu import Job
from swarmbo.engine.rollout import Rollout, rollout
from swarmbo.evolution import foresight
from swarmbo.evolution.foresight import foreseen
from swarmbo.evolution.map_elites import Evolution, EvolutionOptions, generations

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


@pytest.mark.parametrize("descriptor", ["hbd", "sdbc"])
def test_maps_are_those_of_one_generation_after_the_other(
    descriptor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foresight, "PERIOD", 2)
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


@pytest.mark.parametrize(("evaluations", "batch"), [(1, 40), (900, 40), (1000, 40), (1003, 1)])
def test_few_evaluations(evaluations: int, batch: int) -> None:
    options = EvolutionOptions(evaluations=evaluations, batch=batch, ticks=2)
    evolution = Evolution(options)
    for _ in foreseen([evolution], OnCpu()):
        pass
    assert evolution.map().to_bytes() == one_after_the_other(options).map().to_bytes()


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
