"""Adaptation without resets: every robot has its own clock in one world that goes on."""

from dataclasses import replace

import numpy as np
import pytest

from swarmbo import InputError, Swarm
from swarmbo.adaptation.options import DECENTRALISED
from swarmbo.recovery.continuous import ContinuousRun, adapt_continuously
from swarmbo.recovery.runner import Case
from tests.test_runner import TICKS, TRIALS, small_case, small_map


def finished(case: Case, name: str = "smbo-dec", evaluations: int = 3) -> ContinuousRun:
    """A run that has come to its end."""
    run = ContinuousRun(case, name, evaluations=evaluations)
    adapt_continuously([run], threads=1)
    return run


@pytest.mark.parametrize("disturbance", ["proximity:1", "software-nest:2"])
def test_world_is_that_of_a_swarm_advanced_tick_by_tick(disturbance: str) -> None:
    """Cells and times of the report give its outcomes in a swarm that is never put back."""
    case = small_case(disturbance)
    run = finished(case)
    controllers = small_map().controllers()
    scenario = case.with_noise("continuous", 1)
    team = [controllers[case.prior_best]] * 6
    swarm = Swarm(replace(scenario, poses=scenario.poses[:1]), team)
    changes: dict[int, dict[int, int]] = {}
    for robot in run.workers:
        for each in run.done:
            row, end = each.cell[robot], each.end[robot]
            assert row is not None
            assert end is not None
            changes.setdefault(end, {})[robot] = run.continued_with[robot]
            changes.setdefault(end - TRIALS * TICKS, {})[robot] = row
    items = {}
    for tick in range(max(changes) + 1):
        items[tick] = swarm.items[0]
        if tick in changes:
            for robot, row in changes[tick].items():
                team[robot] = controllers[row]
            swarm.team = team
        swarm.advance(1)
    for each in run.done:
        for robot in run.workers:
            end = each.end[robot]
            assert end is not None
            delivered = items[end][robot] - items[end - TRIALS * TICKS][robot]
            assert each.outcome[robot] == delivered / TRIALS


def test_every_robot_has_its_own_clock() -> None:
    run = finished(small_case())
    ends = np.array([each.end for each in run.done])
    assert (np.diff(ends, axis=0) == TRIALS * TICKS).all()
    offsets = ends[0] - TRIALS * TICKS
    assert len(set(offsets.tolist())) > 3
    assert ((offsets >= 0) & (offsets < TICKS)).all()


def test_robots_hear_of_trials_before_an_evaluation_ends() -> None:
    case = small_case("food-scarcity:5")
    run = ContinuousRun(case, "smbo-dec", evaluations=2)
    while not any(run._outcomes.values()):
        run.advance()
    (teller,) = (robot for robot, trials in run._outcomes.items() if trials)
    row = run.continued_with[teller]
    others = [robot for robot in range(6) if robot != teller]
    prior = small_map().performance[row]
    for robot in others:
        mean, deviation = run.learner.predict(robot, row)
        assert mean != prior or deviation < 1
    assert not run.done


@pytest.mark.parametrize("name", DECENTRALISED)
def test_best_so_far_never_falls(name: str) -> None:
    run = finished(small_case(), name)
    assert len(run.done) == 3
    for best in zip(*(each.best for each in run.done), strict=True):
        assert list(best) == sorted(best)
    assert len(run.final_team()) == 6


def test_worlds_do_not_depend_on_threads() -> None:
    results = []
    for threads in (1, 3):
        cases = [small_case(), small_case("food-scarcity:5")]
        runs = [ContinuousRun(case, "smbo-dec", evaluations=2) for case in cases]
        seen: list[ContinuousRun] = []
        adapt_continuously(runs, threads=threads, progress=seen.append)
        assert sorted(map(id, seen)) == sorted(map(id, runs * 2))
        results.append(repr([run.done for run in runs]))
    assert results[0] == results[1]


def test_impossible_worlds_are_refused() -> None:
    with pytest.raises(InputError, match="which smbo does not; name one of smbo-dec, "):
        ContinuousRun(small_case(), "smbo")
    with pytest.raises(InputError, match="is too long; use fewer evaluations"):
        ContinuousRun(small_case(), "smbo-dec", evaluations=10**6, again=True)
