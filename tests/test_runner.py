"""Adaptation in the simulator: what is evaluated, with which noise, and what learners are told."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from swarmbo import (
    LEARNERS,
    Actuator,
    BehaviourMap,
    Disturbance,
    Food,
    FoodScarcity,
    Genomes,
    Ground,
    InputError,
    Proximity,
    Scenario,
    SoftwareFood,
    SoftwareNest,
    bundled_controllers,
    conditions,
    learner,
    rollout,
)
from swarmbo.adaptation.options import CENTRALISED, DECENTRALISED
from swarmbo.engine.rollout import rollouts
from swarmbo.recovery import runner
from swarmbo.recovery.runner import Case, Evaluator, Run, adapt, compose, references, swarm_mean
from swarmbo.study.campaign import run_study
from swarmbo.study.definition import load_definition
from swarmbo.world.scenario import replicate_noise_key

TRIALS, TICKS = 2, 600
SEED = 3


@cache
def small_map(cells: int = 60) -> BehaviourMap:
    """A map of recorded controllers with their true performance in short trials."""
    controllers = bundled_controllers("recorded")[:cells]
    scenario = Scenario.draw(seed=SEED, trials=TRIALS, ticks=TICKS)
    performance = rollout([[each] * 6 for each in controllers], scenario).performance
    places = np.stack(np.unravel_index(np.arange(len(controllers)), (4, 4, 5)), axis=1)
    made = BehaviourMap.from_arrays(
        places, performance, genomes=Genomes.from_controllers(controllers)
    )
    return replace(made, made={"seed": SEED})


def small_case(disturbance: str | Sequence[Disturbance] = "proximity:1") -> Case:
    """That map's swarm under a disturbance."""
    return Case.of(small_map(), disturbance, trials=TRIALS, ticks=TICKS)


def finished(case: Case, name: str, evaluations: int = 4, **options: Any) -> Run:
    """A run that has come to its end."""
    run = Run(case, name, evaluations=evaluations, seed=2, options=options)
    adapt([run], Evaluator())
    return run


# --- cases -------------------------------------------------------------------------------------


def test_without_a_disturbance_every_controller_delivers_what_the_map_says() -> None:
    (found,) = references([small_case([])], Evaluator())
    assert np.array_equal(found.by_row, small_map().performance / 6)
    assert found.before == found.at_fault == found.exhaustive == small_map().best


def test_replicate_is_the_maps_seed_or_the_first() -> None:
    scenario = small_case().scenario
    assert scenario.noise_key == replicate_noise_key(SEED)
    assert scenario.disturbances == (conditions("proximity", SEED)[1],)
    assert np.array_equal(scenario.poses, Scenario.draw(seed=SEED, trials=TRIALS).poses)
    case = Case.of(replace(small_map(), made={}), [])
    assert (case.replicate, case.scenario.noise_key) == (1, replicate_noise_key(1))


def test_fresh_noise_is_other_noise_in_the_same_world() -> None:
    case = Case.of(small_map(), "proximity:1", trials=TRIALS, ticks=TICKS, noise="fresh")
    for scenario, usual in (
        (case.scenario, small_case().scenario),
        (case.healthy, small_case().healthy),
    ):
        assert scenario.noise_key == case.scenario.noise_key != usual.noise_key
        assert np.array_equal(scenario.poses, usual.poses)
        assert scenario.disturbances == usual.disturbances
    with pytest.raises(InputError, match='noise is \'loud\'; give "replicate" or "fresh"'):
        Case.of(small_map(), [], noise="loud")


def test_robots_of_one_fault_are_one_group() -> None:
    faults = Proximity(("none", "min", "none", "min", "random", "none"))
    assert small_case([faults]).groups == (
        *("no fault", "proximity min", "no fault", "proximity min", "proximity random"),
        "no fault",
    )


def test_group_of_several_faults_is_their_tuple() -> None:
    case = small_case(
        [
            Ground(("max", "max", "none", "none", "none", "none")),
            Actuator(("none", "left", "left", "both", "none", "none")),
            SoftwareNest(5),
        ]
    )
    assert case.groups == (
        *("ground max", "ground max + wheels 0.5 1", "wheels 0.5 1", "wheels 0.5 0.5"),
        *("no fault", None),
    )


def test_robots_are_one_group_when_food_is_scarce() -> None:
    assert small_case("food-scarcity:2").groups == ("no fault",) * 6


def test_condition_of_a_2x_kind_has_its_own_arena_robots_and_ticks() -> None:
    case = Case.of(small_map(), "proximity-2x:0")
    scenario = case.scenario
    assert (scenario.arena.name, scenario.robots, scenario.ticks) == ("foraging-2x", 12, 1200)
    assert (case.healthy.arena.name, case.healthy.robots) == ("foraging-2x", 12)
    assert case.healthy.disturbances == ()
    assert Run(case, "smbo-dec").factor == 12
    assert Run(case, "smbo-dec", options={"observation_factor": 6}).factor == 6


@pytest.mark.parametrize("name", ["smbo-dec", "random-no-sharing"])
def test_observation_factor_changes_what_learners_see_but_not_what_is_reported(name: str) -> None:
    case = small_case()
    runs = [finished(case, name, 1, observation_factor=factor) for factor in (6, 3)]
    one, two = (run.done[0] for run in runs)
    if one.cell == two.cell:
        assert one.outcome == two.outcome
    for run, factor in zip(runs, (6, 3), strict=True):
        assert run.learner.best_performance(0) == factor * (run.done[0].best[0] or 0)
        assert run.done[0].best[0] in run.done[0].outcome


def test_prior_best_of_equal_ones_is_that_of_the_first_cell() -> None:
    behaviour_map = BehaviourMap.from_arrays(
        [[3, 0], [1, 5], [1, 2], [0, 9]],
        [7, 7, 7, 1],
        genomes=Genomes.from_controllers(bundled_controllers("example")[:4]),
    )
    assert Case.of(behaviour_map, []).prior_best == 2


def test_impossible_cases_are_refused() -> None:
    with pytest.raises(InputError, match="holds no controllers"):
        Case.of(BehaviourMap.from_arrays([[0]], [1.0]), [])
    with pytest.raises(InputError, match=r"proximity:77: .*proximity:0 to proximity:19"):
        small_case("proximity:77")
    with pytest.raises(InputError, match="lists 2 robots"):
        small_case([Proximity(("none", "min"))])
    with pytest.raises(InputError, match="all robots have lost"):
        Run(small_case([SoftwareFood(r, r) for r in range(6)]), "smbo")
    with pytest.raises(InputError, match="no learner 'best'; name one of smbo, "):
        Run(small_case(), "best")
    with pytest.raises(InputError, match="evaluations is 0"):
        Run(small_case(), "smbo", evaluations=0)


# --- as many evaluations as make sense ---------------------------------------------------------


def rehearse(run: Run) -> list[tuple[int | None, ...]]:
    """The cells that a run tries when what it is told is invented."""
    generator = np.random.default_rng(7)
    while not run.finished:
        run.ask()
        run.tell(generator.integers(0, 20, (TRIALS, run.case.scenario.robots)))
    return [each.cell for each in run.done]


def large_case(cells: int, disturbance: str | Sequence[Disturbance] = ()) -> Case:
    """The swarm of a map with so many cells, whose controllers are few."""
    usual = small_map()
    rows = np.arange(cells) % len(usual.cells)
    assert usual.genomes is not None
    controllers = usual.controllers()
    behaviour_map = BehaviourMap.from_arrays(
        np.stack(np.unravel_index(np.arange(cells), (8, 8, 8)), axis=1),
        usual.performance[rows],
        genomes=Genomes.from_controllers([controllers[row] for row in rows]),
    )
    return Case.of(behaviour_map, disturbance, trials=TRIALS, ticks=TICKS)


def find_nothing_new(tried: list[tuple[int | None, ...]], alike: Sequence[Any]) -> bool:
    """Whether no robot's last cell is new to those who are alike."""
    before = {(who, row) for cells in tried[:-1] for who, row in zip(alike, cells, strict=True)}
    return {*zip(alike, tried[-1], strict=True)} <= before


@pytest.mark.parametrize("name", CENTRALISED)
def test_centralised_learner_gets_as_many_evaluations_as_there_are_cells(name: str) -> None:
    case = small_case()
    with pytest.raises(
        InputError,
        match=f"evaluations is 61, but after 60 {name} has tried all 60 cells of the map; "
        "give 60 at most",
    ):
        Run(case, name, evaluations=61)
    assert not find_nothing_new(rehearse(Run(case, name, evaluations=60)), [0])
    assert find_nothing_new(rehearse(Run(case, name, evaluations=61, again=True)), [0])


TWO_GROUPS = Proximity(("min", "min", "none", "none", "min", "min"))


@pytest.mark.parametrize(
    ("name", "options", "most", "alike"),
    [
        ("smbo-dec", {}, 100, "001100"),  # the smaller group has two robots
        ("smbo-dec-naive", {"tried_cells": "swarm"}, 34, "000000"),
        ("smbo-no-sharing", {}, 200, "012345"),
        ("random-no-sharing", {"tried_cells": "swarm"}, 34, "000000"),
        ("smbo-dec", {"loss": 1.0}, 200, "012345"),
    ],
)
def test_robots_get_as_many_evaluations_as_find_a_cell_for_one_of_them(
    name: str, options: dict[str, Any], most: int, alike: str
) -> None:
    case = large_case(200, [TWO_GROUPS])
    with pytest.raises(InputError, match=f"after {most} {name} has .* give {most} at most"):
        Run(case, name, evaluations=most + 1, options=options)
    longest = rehearse(Run(case, name, evaluations=most, options=options))
    assert not find_nothing_new(longest, alike)
    longer = Run(case, name, evaluations=most + 1, options=options, again=True)
    assert find_nothing_new(rehearse(longer), alike)


def test_robots_of_one_group_share_the_cells() -> None:
    case = large_case(200)
    with pytest.raises(InputError, match="after 34 smbo-dec has tried all 200 cells"):
        Run(case, "smbo-dec", evaluations=10**30)
    Run(case, "smbo-dec", evaluations=34)
    Run(case, "smbo-dec", evaluations=200, options={"delay": 0.1})


def test_robots_that_meet_fresh_noise_may_always_have_the_papers_evaluations() -> None:
    case = small_case([])
    assert Run(case, "smbo-dec", evaluations=30).evaluations == 30
    with pytest.raises(InputError, match="evaluations is 31, but after 30 smbo-dec has tried all"):
        Run(case, "smbo-dec", evaluations=31)


def test_evaluations_are_thirty_unless_the_map_has_fewer_cells() -> None:
    assert [Run(small_case(), name).evaluations for name in ("smbo", "smbo-dec")] == [30, 30]
    few = large_case(7)
    assert [Run(few, name).evaluations for name in ("smbo", "smbo-dec")] == [7, 30]


def test_study_with_more_evaluations_than_cells_is_refused_before_it_begins(
    tmp_path: Path,
) -> None:
    small_map().save(tmp_path / "small.map")
    for learners, evaluations, words in (
        (["random", "smbo"], 61, "small.map: evaluations is 61, but after 60 random has"),
        (["smbo-no-sharing", "smbo-dec"], 50, "small.map: evaluations is 50, but after 30 smbo-d"),
    ):
        (tmp_path / "study.toml").write_text(
            f"""
            maps = ["small.map"]
            evaluations = {evaluations}
            [[experiments]]
            disturbances = ["food-scarcity"]
            learners = {learners}
            """
        )
        with pytest.raises(InputError, match=words):
            run_study(load_definition(tmp_path / "study.toml"), tmp_path / "out")
        assert not (tmp_path / "out").exists()


# --- evaluations -------------------------------------------------------------------------------


def test_first_evaluation_of_smbo_is_the_performance_at_the_fault() -> None:
    case = small_case()
    (found,) = references([case], Evaluator())
    run = finished(case, "smbo", 1)
    assert run.done[0].cell == (case.prior_best,)
    assert run.done[0].outcome == (found.at_fault,) == run.done[0].best
    assert run.done[0].prediction == (small_map().best,)


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("disturbance", ["proximity:1", "software-food:2"])
def test_best_so_far_never_falls_and_is_one_of_the_outcomes(name: str, disturbance: str) -> None:
    run = finished(small_case(disturbance), name)
    columns = zip(*(each.best for each in run.done), strict=True)
    outcomes = [value for each in run.done for value in each.outcome]
    for best in columns:
        if best[0] is not None:
            assert list(best) == sorted(best)
            assert min(abs(best[-1] - o) for o in outcomes if o is not None) < 1e-12
        else:
            assert set(best) == {None}
    curve = [swarm_mean(each.best, 6) for each in run.done]
    assert curve == sorted(curve)
    assert run.best == curve[-1]


@pytest.mark.parametrize("name", LEARNERS)
def test_no_model_tries_a_cell_twice(name: str) -> None:
    case = small_case()
    run = finished(case, name)
    if name in CENTRALISED:
        models: list[Any] = [0]
    else:
        models = list(range(6)) if name.endswith("no-sharing") else list(case.groups)
    tried: dict[Any, list[int | None]] = {}
    for each in run.done:
        for model, row in zip(models, each.cell, strict=True):
            tried.setdefault(model, []).append(row)
    for rows in tried.values():
        assert len(set(rows)) == len(rows)


def test_robot_without_a_controller_learns_nothing_and_counts_as_nothing() -> None:
    run = finished(small_case("software-nest:2"), "smbo-dec")
    for each in run.done:
        for column in (each.cell, each.prediction, each.outcome, each.best):
            assert [robot for robot, value in enumerate(column) if value is None] == [2]
    best = run.done[-1].best
    assert run.best == sum(value for value in best if value is not None) / 6
    assert run.final_team()[2] == run.case.prior_best


def test_decentralised_run_equals_the_obvious_loop() -> None:
    """A learner, six robots, and one evaluation after the other in the simulator."""
    case = small_case()
    run = finished(case, "smbo-dec", 3)
    controllers = small_map().controllers()
    worker = learner("smbo-dec", small_map(), robots=6, groups=case.groups, trials=TRIALS, seed=2)
    for number, each in enumerate(run.done):
        cells = [worker.ask(robot) for robot in range(6)]
        assert each.cell == tuple(cells)
        assert each.prediction[4] == worker.predict(4, cells[4])[0] / 6
        scenario = case.with_noise("evaluation", 2, number)
        items = rollout([[controllers[cell] for cell in cells]], scenario).items[0]
        for trial in range(TRIALS):
            for robot in range(6):
                worker.tell(robot, 6 * int(items[trial, robot]))
        assert each.outcome == tuple(items.mean(axis=0))
        assert each.best == tuple(worker.best_performance(robot) / 6 for robot in range(6))
    team = [controllers[worker.best(robot)] for robot in range(6)]
    together = rollout([team], case.with_noise("composed", 2)).items[0]
    assert compose([run], Evaluator()) == [together.sum(axis=1).mean() / 6]


def test_noise_is_the_replicates_if_centralised_and_fresh_if_not() -> None:
    case = small_case()
    central, apart = (Run(case, name, evaluations=3) for name in ("random", "random-no-sharing"))
    keys: dict[str, list[int]] = {"random": [], "random-no-sharing": []}
    for run in (central, apart):
        while not run.finished:
            request = run.ask()
            assert np.array_equal(request.scenario.poses, case.scenario.poses)
            keys[run.name].append(request.scenario.noise_key)
            run.tell(Evaluator().items([request])[0])
    last = apart.composed()
    assert central.composed() is None
    assert last is not None
    assert np.array_equal(last.scenario.poses, case.scenario.poses)
    assert set(keys["random"]) == {replicate_noise_key(SEED)}
    fresh = {*keys["random-no-sharing"], last.scenario.noise_key, replicate_noise_key(SEED)}
    assert len(fresh) == 5


# --- many at once ------------------------------------------------------------------------------


def test_runs_together_are_the_runs_alone() -> None:
    cases = [small_case(), small_case("food-scarcity:5")]
    runs = [Run(case, name, evaluations=3) for case in cases for name in LEARNERS]
    seen: list[int] = []
    adapt(runs, Evaluator(threads=3), progress=lambda waiting: seen.append(len(waiting)))
    assert seen == [16, 16, 16]
    for run in runs[::3]:
        alone = Run(run.case, run.name, evaluations=3)
        adapt([alone], Evaluator(threads=1))
        assert repr(alone.done) == repr(run.done)


def test_nothing_is_simulated_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    simulated: list[int] = []

    def counting(batches: Any, **options: Any) -> Any:
        simulated.append(sum(len(batch.teams) for batch in batches))
        return rollouts(batches, **options)

    monkeypatch.setattr(runner, "rollouts", counting)
    case, evaluator = small_case(), Evaluator()
    references([case], evaluator)
    assert simulated == [61]
    adapt([Run(case, name, evaluations=5) for name in CENTRALISED], evaluator)
    assert sum(simulated) == 61
    adapt([Run(case, name, evaluations=1) for name in DECENTRALISED], evaluator)
    assert 61 < sum(simulated) <= 65


def test_exhaustive_search_finds_the_best_under_the_disturbance() -> None:
    case = small_case([FoodScarcity(Food(0.8, 1.2, 0.4))])
    (found,) = references([case], Evaluator())
    teams = [[each] * 6 for each in small_map().controllers()]
    performance = rollout(teams, case.scenario).performance
    assert found.exhaustive == performance.max() / 6
    assert found.exhaustive_row == performance.argmax()
    assert found.at_fault == performance[case.prior_best] / 6
