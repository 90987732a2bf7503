"""The eight learners: against naive ones, at the corner cases, and saved and restored anywhere."""

import json
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from swarmbo import LEARNERS, BehaviourMap, InputError, Message, learner, learner_from_json
from swarmbo.adaptation.learners import CENTRALISED, DECENTRALISED, OPTIONS
from swarmbo.adaptation.options import Options
from tests.naive import adaptation as naive
from tests.test_gaussian_process import SEEDS, random_map, scattered_map

Landscape = Callable[[int], float]


def landscape(behaviour_map: BehaviourMap, seed: int) -> Landscape:
    """A performance for every cell that is related to the map's."""
    change = np.random.default_rng([seed, 2]).normal(-3, 2, len(behaviour_map.cells))
    return lambda cell: float(behaviour_map.performance[cell] + change[cell])


def run_centralised(made: Any, truth: Landscape, evaluations: int) -> list[int]:
    """The cells that a learner tries."""
    tried = []
    for _ in range(evaluations):
        cell = made.ask()
        made.tell(cell, truth(cell))
        tried.append(cell)
    return tried


def run_synchronously(
    made: Any, truth: Landscape, evaluations: int, noise: float = 1.0, seed: int = 1
) -> list[list[int]]:
    """The cells that the workers of a learner try, a row per evaluation."""
    generator = np.random.default_rng([seed, 3])
    tried = []
    for _ in range(evaluations):
        cells = [made.ask(robot) for robot in made.workers]
        for _ in range(made.trials):
            for robot, cell in zip(made.workers, cells, strict=True):
                made.tell(robot, truth(cell) + noise * generator.normal())
        tried.append(cells)
    return tried


# --- centralised ---------------------------------------------------------------------------------


@pytest.mark.parametrize("uniform", [False, True])
@pytest.mark.parametrize("make", [random_map, scattered_map])
def test_smbo_tries_what_the_naive_one_tries(make: Any, uniform: bool) -> None:
    for seed in range(3):
        behaviour_map = make(seed, 40)
        truth = landscape(behaviour_map, seed)
        made = learner("smbo-uniform" if uniform else "smbo", behaviour_map)
        for _ in range(25):
            cell = made.ask()
            assert cell == naive.smbo(behaviour_map, made.evaluations, uniform)
            made.tell(cell, truth(cell))


def test_options_of_smbo_reach_the_model() -> None:
    behaviour_map = random_map(1)
    truth = landscape(behaviour_map, 1)
    made = learner("smbo", behaviour_map, noise=0.5, alpha=2.5)
    for _ in range(15):
        cell = made.ask()
        assert cell == naive.smbo(behaviour_map, made.evaluations, noise=0.5, alpha=2.5)
        made.tell(cell, truth(cell))
    longer = learner("smbo", behaviour_map, length_scale=0.3)
    longer.tell(3, 1.0)
    mean, variance = naive.posterior(behaviour_map, [(3, 1.0, 0.0)], length_scale=0.3)
    assert longer.predict(9) == pytest.approx((mean[9], math.sqrt(variance[9])), abs=1e-9)


def test_smbo_starts_with_the_best_prior() -> None:
    behaviour_map = random_map(2)
    made = learner("smbo", behaviour_map)
    assert made.ask() == made.best() == behaviour_map.performance.argmax()
    assert math.isnan(made.best_performance())


def test_smbo_uniform_starts_with_the_first_cell_in_dimension_order() -> None:
    behaviour_map = random_map(3)
    cells = behaviour_map.cells.tolist()
    made = learner("smbo-uniform", behaviour_map)
    assert cells[made.ask()] == min(cells)
    assert made.predict(7) == pytest.approx((behaviour_map.performance.mean(), 1.0), rel=1e-15)


def test_gradient_ascent_tries_what_the_naive_one_tries() -> None:
    for seed in range(5):
        behaviour_map = random_map(seed, 80)
        truth = landscape(behaviour_map, seed)
        made = learner("gradient-ascent", behaviour_map, seed=seed)
        run_centralised(made, truth, 2)
        for _ in range(25):
            cell = made.ask()
            assert cell == naive.gradient_ascent(behaviour_map, made.evaluations)
            made.tell(cell, truth(cell))


def test_gradient_ascent_follows_the_slope_by_its_step() -> None:
    behaviour_map = BehaviourMap.from_arrays(np.arange(16)[:, None], np.full(16, 10.0))
    for step, expected in ((0.0, 7), (0.05, 11), (0.1, 15)):
        made = learner("gradient-ascent", behaviour_map, step=step)
        made.tell(6, 4.0)
        made.tell(7, 7.0)  # x' = 7/16 + step (3/10) 16, that is step 76.8 cells
        taken = made.ask()
        assert taken == (8 if step == 0 else expected)
    nothing = BehaviourMap.from_arrays(np.arange(16)[:, None], np.zeros(16))
    made = learner("gradient-ascent", nothing)
    made.tell(6, 0.0)
    made.tell(7, 1.0)
    assert made.ask() == 15


def test_random_cells_are_uniform_over_the_untried_ones() -> None:
    behaviour_map = random_map(4, 12, 2, 4)
    count = len(behaviour_map.cells)
    for name in ("random", "gradient-ascent"):
        first, second = Counter[int](), Counter[int]()
        for seed in range(2000):
            made = learner(name, behaviour_map, seed=seed)
            one = made.ask()
            made.tell(one, 1.0)
            two = made.ask()
            assert one != two
            first[one] += 1
            second[two] += 1
        for counts in (first, second):
            assert stats.chisquare([counts[c] for c in range(count)]).pvalue > 1e-3


def test_draws_do_not_depend_on_the_order_of_rows() -> None:
    behaviour_map = random_map(5)
    order = np.random.default_rng(5).permutation(len(behaviour_map.cells))
    other = BehaviourMap.from_arrays(behaviour_map.cells[order], behaviour_map.performance[order])
    truth = landscape(behaviour_map, 5)

    def truth_of_other(cell: int) -> float:
        return truth(int(order[cell]))

    for name in CENTRALISED:
        tried = run_centralised(learner(name, behaviour_map, seed=7), truth, 20)
        reordered = run_centralised(learner(name, other, seed=7), truth_of_other, 20)
        assert order[reordered].tolist() == tried


@pytest.mark.parametrize("name", CENTRALISED)
def test_best_is_the_latest_of_equal_evaluations(name: str) -> None:
    made = learner(name, random_map(6))
    for cell, performance in ((3, 2.0), (5, 4.0), (1, 4.0), (2, 1.0)):
        made.tell(cell, performance)
    assert (made.best(), made.best_performance()) == (1, 4.0)


@pytest.mark.parametrize("name", CENTRALISED)
def test_centralised_tries_nothing_twice_and_then_the_best_again(name: str) -> None:
    behaviour_map = random_map(7, 20, 2, 5)
    truth = landscape(behaviour_map, 7)
    made = learner(name, behaviour_map)
    count = len(behaviour_map.cells)
    assert sorted(run_centralised(made, truth, count)) == list(range(count))
    best = max(range(count), key=truth)
    assert run_centralised(made, truth, 3) == [best] * 3
    assert np.isfinite(made.predict(best)[0])


def test_learners_without_a_model_predict_the_prior() -> None:
    behaviour_map = random_map(8)
    for name in ("random", "gradient-ascent"):
        mean, deviation = learner(name, behaviour_map).predict(4)
        assert mean == behaviour_map.performance[4]
        assert math.isnan(deviation)
    mean, deviation = learner("random-no-sharing", behaviour_map).predict(0, 4)
    assert mean == behaviour_map.performance[4]
    assert math.isnan(deviation)


# --- decentralised -------------------------------------------------------------------------------


def test_robots_without_sharing_do_what_they_do_alone() -> None:
    behaviour_map = random_map(9)
    truth = landscape(behaviour_map, 9)
    for name in ("smbo-no-sharing", "random-no-sharing"):
        made = learner(name, behaviour_map, robots=4, trials=2, seed=3)
        tried = np.array(run_synchronously(made, truth, 12, noise=0))
        for robot in range(4):
            alone = learner(
                name, behaviour_map, 4, [robot if r == robot else None for r in range(4)], 2, 3
            )
            assert np.array(run_synchronously(alone, truth, 12, noise=0))[:, 0].tolist() == (
                tried[:, robot].tolist()
            )


def test_smbo_without_sharing_is_plain_smbo_with_the_noise_of_trials() -> None:
    behaviour_map = random_map(10)
    truth = landscape(behaviour_map, 10)
    alone = learner("smbo-no-sharing", behaviour_map, robots=1, trials=3)
    central = learner("smbo", behaviour_map)
    for _ in range(20):
        cell = alone.ask(0)
        assert cell == central.ask()
        for _ in range(3):
            alone.tell(0, truth(cell))  # equal trials: noise 0
        central.tell(cell, truth(cell))


def test_first_robot_takes_the_best_prior_and_the_others_keep_away_from_it() -> None:
    behaviour_map = random_map(11, width=5)
    order = np.argsort(-behaviour_map.performance)
    naive_swarm = learner("smbo-dec-naive", behaviour_map, robots=4)
    assert [naive_swarm.ask(robot) for robot in range(4)] == order[:4].tolist()
    swarm = learner("smbo-dec", behaviour_map, robots=4)
    assert swarm.ask(0) == order[0]
    for _ in range(2):
        assert [swarm.ask(robot) for robot in range(4)] == [swarm.ask(r) for r in range(4)]


def test_groups_do_not_learn_from_each_other() -> None:
    behaviour_map = random_map(12)
    truth = landscape(behaviour_map, 12)
    both = learner("smbo-dec", behaviour_map, 5, ["max", ("min", 3), "max", ("min", 3), "max"], 2)
    assert both.groups == (0, 1, 0, 1, 0)
    alone = learner("smbo-dec", behaviour_map, 5, ["max", None, "max", None, "max"], 2)
    for _ in range(8):
        for robot in (0, 2, 4):
            assert both.ask(robot) == alone.ask(robot)
        for robot in (1, 3):
            both.ask(robot)
        for _ in range(2):
            for robot in range(5):
                cell = both.ask(robot)
                both.tell(robot, truth(cell) + robot)
                if robot in alone.workers:
                    alone.tell(robot, truth(cell) + robot)
    assert [both.best(r) for r in (0, 2, 4)] == [alone.best(r) for r in (0, 2, 4)]


def test_robot_without_group_is_no_worker() -> None:
    made = learner("smbo-dec", random_map(13), 3, [0, None, 0])
    assert made.workers == (0, 2)
    assert made.robots == 3
    for question in (made.ask, made.best, made.best_performance):
        with pytest.raises(InputError, match="robot 1 is no worker"):
            question(1)
    with pytest.raises(InputError, match="robot 1 is no worker"):
        made.tell(1, 3.0)
    made.ask(0)
    assert json.loads(json.dumps(made.to_json()))["workers"][1] is None


def test_only_evaluations_with_all_trials_count_for_the_best() -> None:
    behaviour_map = random_map(14)
    made = learner("smbo-dec", behaviour_map, robots=2, trials=3)
    one, two = made.ask(0), made.ask(1)
    for _ in range(2):
        made.tell(0, 9.0)
        made.tell(1, 5.0)
    assert made.best(0) == behaviour_map.performance.argmax()
    assert math.isnan(made.best_performance(1))
    made.tell(1, 8.0)
    assert [made.best(r) for r in (0, 1)] == [two, two]
    assert made.best_performance(0) == 6.0
    made.tell(0, 0.0)  # 6 as well, and a robot later in order keeps it
    assert made.best(0) == two
    made.ask(0)
    for _ in range(3):
        made.tell(0, 6.0)
    assert made.best(1) not in (one, two)


def test_robots_of_a_full_map_try_the_best_cell_again() -> None:
    behaviour_map = BehaviourMap.from_arrays([[0], [1], [2]], [3.0, 2.0, 1.0])
    for name in ("smbo-dec", "smbo-dec-naive"):
        made = learner(name, behaviour_map, robots=4, trials=2)
        assert sorted(made.ask(robot) for robot in range(3)) == [0, 1, 2]
        assert made.ask(3) == 0  # nothing observed yet: the best prior
        made.tell(1, 1.5)
        for robot in range(4):
            for _ in range(made.trials - made.worker(robot).trials_done):
                made.tell(robot, 4.0 if made.ask(robot) == 2 else 1.0)
        assert [made.ask(robot) for robot in range(4)] == [2] * 4
    for name in ("smbo-no-sharing", "random-no-sharing"):
        made = learner(name, behaviour_map, robots=2, trials=1)
        for _ in range(3):
            for robot in range(2):
                made.tell(robot, 5.0 - made.ask(robot) * (robot + 1))
        assert [made.ask(0), made.ask(1)] == [0, 0]


def test_with_a_full_map_and_no_finished_evaluation_the_best_estimate_decides() -> None:
    behaviour_map = BehaviourMap.from_arrays([[0], [1]], [3.0, 2.0])
    made = learner("smbo-dec", behaviour_map, robots=3, trials=8)
    assert [made.ask(0), made.ask(1)] == [0, 1]
    made.tell(0, 1.0)
    made.tell(1, 2.0)
    assert made.ask(2) == 1


def test_tried_cells_of_the_swarm_are_excluded_for_everybody() -> None:
    behaviour_map = random_map(15, 200, 3, 8)
    truth = landscape(behaviour_map, 15)
    for name in DECENTRALISED:
        groups = [0, 0, 1, 1, 2, None]
        made = learner(name, behaviour_map, 6, groups, 2, tried_cells="swarm")
        tried = np.ravel(run_synchronously(made, truth, 8)).tolist()
        assert len(set(tried)) == len(tried) == 40
        usual = learner(name, behaviour_map, 6, groups, 2)
        if name != "random-no-sharing":
            tried = np.ravel(run_synchronously(usual, truth, 8)).tolist()
            assert len(set(tried)) < 40


def test_running_mean_is_over_all_controllers_tried() -> None:
    behaviour_map = random_map(16)
    made = learner("random-no-sharing", behaviour_map, robots=1, trials=2, running_mean=True)
    right = learner("random-no-sharing", behaviour_map, robots=1, trials=2)
    told = [1.0, 3.0, 9.0, 11.0, 0.0, 0.0]
    for number, value in enumerate(told):
        assert made.ask(0) == right.ask(0)
        made.tell(0, value)
        right.tell(0, value)
        if number % 2:
            means = [sum(told[:n]) / n for n in range(2, number + 2, 2)]
            assert made.best_performance(0) == max(means)
    assert made.best_performance(0) == 6.0
    assert right.best_performance(0) == 10.0


def test_observation_factor_is_the_robots_unless_given() -> None:
    behaviour_map = random_map(17)
    for name in DECENTRALISED:
        assert learner(name, behaviour_map, robots=12).observation_factor == 12
        assert learner(name, behaviour_map, robots=12, observation_factor=6).observation_factor == 6


@settings(max_examples=15)
@given(SEEDS, st.sampled_from(DECENTRALISED), st.data())
def test_asynchronous_robots_try_nothing_twice_and_never_lose_their_best(
    seed: int, name: str, data: st.DataObject
) -> None:
    behaviour_map = random_map(seed % 100, 120, 3, 6)
    truth = landscape(behaviour_map, seed)
    made = learner(name, behaviour_map, 4, [0, 1, 0, 0], 3, seed % 7)
    tried: dict[int, list[tuple[int, int]]] = {}
    best = [-math.inf] * 4
    for robot in data.draw(st.lists(st.integers(0, 3), min_size=20, max_size=60)):
        before = made.worker(robot).cell
        cell = made.ask(robot)
        if before is None:
            model = robot if name.endswith("no-sharing") else int(robot == 1)
            evaluations = tried.setdefault(model, [])
            assert cell not in [c for c, _ in evaluations]
            evaluations.append((cell, robot))
        made.tell(robot, truth(cell) + data.draw(st.floats(-1, 1)))
        for other in range(4):
            found = made.best_performance(other)
            if best[other] > -math.inf or not math.isnan(found):
                assert found >= best[other]
                best[other] = found


# --- all: seeds, state, input --------------------------------------------------------------------


def drive(made: Any, steps: int, start: int, truth: Landscape) -> list[tuple[int, int]]:
    """Let a learner go on for some steps, of robots in a mixed order; what it answered."""
    answers = []
    for step in range(start, start + steps):
        noise = math.sin(7.0 * step)
        if made.name in CENTRALISED:
            cell = made.ask()
            made.tell(cell, truth(cell) + noise)
            answers.append((cell, made.best()))
        else:
            robot = made.workers[step * step % 7 % len(made.workers)]
            cell = made.ask(robot)
            made.tell(robot, truth(cell) + noise)
            answers.append((cell, made.best(robot)))
    return answers


CONFIGURATIONS: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in LEARNERS),
    ("smbo", {"noise": 0.1, "alpha": 2}),
    ("smbo-dec", {"penalty": "paper-text", "maximum": "posterior-mean"}),
    ("smbo-dec", {"loss": 0.4, "delay": 0.5, "tried_cells": "swarm"}),
    ("random-no-sharing", {"running_mean": True, "tried_cells": "swarm"}),
]


@settings(max_examples=40)
@given(st.sampled_from(CONFIGURATIONS), st.integers(0, 60), st.booleans(), SEEDS)
def test_restored_learner_goes_on_identically(
    configuration: tuple[str, dict[str, Any]], steps: int, in_question: bool, seed: int
) -> None:
    name, options = configuration
    behaviour_map = random_map(seed % 50)
    truth = landscape(behaviour_map, seed)
    made = learner(name, behaviour_map, 4, ["a", "b", None, "a"], 3, seed % 5, **options)
    drive(made, steps, 0, truth)
    if in_question:
        made.ask(*([3] if name in DECENTRALISED else []))
    state = json.loads(json.dumps(made.to_json(), allow_nan=False))
    restored = learner_from_json(state, behaviour_map)
    assert restored.to_json() == state
    assert drive(restored, 30, steps, truth) == drive(made, 30, steps, truth)
    assert restored.to_json() == made.to_json()


@pytest.mark.parametrize("name", LEARNERS)
def test_same_seed_same_answers(name: str) -> None:
    behaviour_map = random_map(18)
    truth = landscape(behaviour_map, 18)
    once, twice = (learner(name, behaviour_map, 4, trials=3, seed=5) for _ in range(2))
    assert drive(once, 60, 0, truth) == drive(twice, 60, 0, truth)
    assert once.to_json() == twice.to_json()
    fresh, other = (learner(name, behaviour_map, 4, trials=3, seed=seed) for seed in (5, 6))
    is_random = name in ("random", "random-no-sharing", "gradient-ascent")
    assert (drive(fresh, 60, 0, truth) != drive(other, 60, 0, truth)) == is_random


def test_learners_are_listed_in_their_order() -> None:
    assert LEARNERS == (
        "smbo",
        "smbo-uniform",
        "random",
        "gradient-ascent",
        "smbo-dec",
        "smbo-dec-naive",
        "smbo-no-sharing",
        "random-no-sharing",
    )
    assert CENTRALISED + DECENTRALISED == LEARNERS == tuple(OPTIONS)


def test_every_option_belongs_to_a_learner() -> None:
    assert {name for names in OPTIONS.values() for name in names} == {
        field.name for field in fields(Options)
    }


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("smbo-decentralised",), {}, "there is no learner 'smbo-decentralised'; name one of smbo"),
        (("random",), {"alpha": 1.0}, "random has no option 'alpha'; it has none"),
        (("smbo",), {"penalty": "standard"}, "smbo has no option 'penalty'; name one of alpha"),
        (("smbo-dec",), {"penalty": "none"}, "penalty is 'none'; name one of standard, paper-text"),
        (("smbo-dec",), {"maximum": 3}, "maximum is 3; name one of best-observation"),
        (("smbo-dec",), {"tried_cells": "all"}, "tried_cells is 'all'; name one of model, swarm"),
        (("smbo-dec",), {"loss": 1.5}, "loss is 1.5; give a number, 0 to 1"),
        (("smbo-dec",), {"delay": 1}, "delay is 1: no message would ever arrive"),
        (("smbo-dec",), {"observation_factor": 0}, "observation_factor is 0; give a number"),
        (("smbo",), {"alpha": "high"}, "alpha is 'high'; give a number"),
        (("smbo",), {"noise": -1}, "noise is -1; give a number, 0"),
        (("smbo",), {"noise": math.nan}, "noise is nan; give a number"),
        (("smbo",), {"length_scale": 0}, "length_scale is 0; give a number"),
        (("random-no-sharing",), {"running_mean": 1}, "running_mean is 1; give true or false"),
        (("smbo-dec", 0), {}, "robots is 0; give an integer, 1 to"),
        (("smbo-dec", 3, [0, 1]), {}, r"groups is \[0, 1\]; give a list of 3 labels"),
        (("smbo-dec", 3, "abc"), {}, "give a list of 3 labels"),
        (("smbo-dec", 3, [0, [1], 0]), {}, r"the group of robot 1 is \[1\]"),
        (("smbo-dec", 3, [0, (1, [2]), 0]), {}, r"the group of robot 1 is \(1, \[2\]\); give a"),
        (("smbo-dec", 3, np.array(3)), {}, r"groups is array\(3\); give a list of 3 labels"),
        (("smbo-dec", 3, np.zeros((3, 1))), {}, "the group of robot 0 is array"),
        ((["smbo"],), {}, r"there is no learner \['smbo'\]"),
        ((None,), {}, "there is no learner None"),
        (("smbo-dec", 1.5), {}, "robots is 1.5; give an integer, 1 to"),
        (("smbo-dec", None), {}, "robots is None; give an integer, 1 to"),
        (("smbo-dec",), {"penalty": np.array(["x", "y"])}, "penalty is array"),
        (("smbo-dec",), {"alpha": np.array([1, 2])}, "alpha is array"),
        (("smbo-dec", 3, None, 0), {}, "trials is 0; give an integer, 1 to"),
        (("smbo-dec", 3, None, 8, -1), {}, "seed is -1; give an integer, 0 to"),
    ],
)
def test_impossible_learner_is_refused(
    arguments: tuple[Any, ...], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        learner(arguments[0], random_map(19), *arguments[1:], **options)


def test_what_is_no_map_is_refused() -> None:
    with pytest.raises(InputError, match="the map is 'paper-1'; give a BehaviourMap"):
        learner("smbo", "paper-1")  # type: ignore[call-overload]


@pytest.mark.parametrize("performance", [math.nan, math.inf, "3", None, 1e12, True])
def test_performance_that_is_no_number_is_refused(performance: Any) -> None:
    names: list[str] = ["smbo", "smbo-dec"]
    central, swarm = (learner(name, random_map(20)) for name in names)
    swarm.ask(1)
    with pytest.raises(InputError, match=r"the performance is .*; give a number"):
        central.tell(1, performance)
    with pytest.raises(InputError, match=r"the performance is .*; give a number"):
        swarm.tell(1, performance)
    assert central.evaluations == ()
    swarm.tell(1, np.float32(3))
    central.tell(np.int64(1), np.int32(3))
    assert central.evaluations == ((1, 3.0),)


def test_cell_or_robot_that_is_not_there_is_refused() -> None:
    behaviour_map = random_map(21)
    count = len(behaviour_map.cells)
    names: list[str] = ["smbo", "smbo-dec"]
    central, swarm = (learner(name, behaviour_map) for name in names)
    for cell in (-1, count, 1.0, "a", True):
        with pytest.raises(InputError, match=f"the cell is .*; give an integer, 0 to {count - 1}"):
            central.tell(cell, 1.0)
        with pytest.raises(InputError, match="the cell is "):
            central.predict(cell)
        with pytest.raises(InputError, match="the cell is "):
            swarm.predict(0, cell)
    for robot in (-1, 6, None):
        with pytest.raises(InputError, match=r"the robot is .*; give an integer, 0 to 5"):
            swarm.ask(robot)
    with pytest.raises(InputError, match="robot 2 has no cell to tell about; ask first"):
        swarm.tell(2, 1.0)


def message(robot: int, cell: int) -> dict[str, Any]:
    """A message as JSON."""
    return Message(robot, 0, 0, cell, 0).to_json()


def damaged_states() -> list[tuple[str, Callable[[dict[str, Any]], Any], str]]:
    """A learner, what to do to its state, and the message."""

    def put(*path: Any) -> Callable[[dict[str, Any]], Any]:
        *places, value = path

        def change(state: dict[str, Any]) -> Any:
            inner: Any = state
            for place in places[:-1]:
                inner = inner[place]
            inner[places[-1]] = value
            return state

        return change

    return [
        ("smbo", lambda state: [state], "the state is not one of a learner"),
        ("smbo", put("format", 3), "the state is not one of a learner"),
        ("smbo", put("name", "x"), "there is no learner 'x'"),
        ("smbo", put("name", "smbo-dec"), "the state lacks, or should not have"),
        ("smbo", put("more", 1), "the state lacks, or should not have, more"),
        ("smbo", put("map", "00"), "the state belongs to another map"),
        ("smbo", put("options", [1]), "options is"),
        ("smbo", put("options", "alpha", None), "alpha is None"),
        ("smbo", put("options", {"alpha": 1, "groups": 1}), "smbo has no option 'groups'"),
        ("smbo", put("seed", 0.5), "seed is 0.5"),
        ("smbo", put("evaluations", 0), "evaluations is 0; give a list"),
        ("smbo", put("evaluations", 0, [1]), r"evaluation 0 is \[1\]; give a pair"),
        ("smbo", put("evaluations", 0, [1, "a"]), "the performance is 'a'"),
        ("smbo", put("evaluations", 0, [10**6, 1]), "the cell is 1000000"),
        ("smbo-dec", put("groups", [1, 0, 0, 0, 0, 0]), "groups are not numbered"),
        ("smbo-dec", put("groups", [0, 0]), "the workers are not those of the groups"),
        ("smbo-dec", put("trials", None), "trials is None"),
        ("smbo-dec", put("workers", 0, None), "the workers are not those of the groups"),
        ("smbo-dec", put("workers", 0, 5), "the state of robot 0 is 5; give an object"),
        ("smbo-dec", put("workers", 0, "known", [99]), "the number of a message is 99"),
        ("smbo-dec", put("workers", 0, "cell", 10**6), "cell is 1000000"),
        ("smbo-dec", put("workers", 0, "cell", None), "robot 0 .* do not fit together"),
        ("smbo-dec", put("workers", 0, "evaluation", 7), "robot 0 .* do not fit together"),
        ("smbo-dec", put("workers", 0, "done", 3), "robot 0 .* do not fit together"),
        ("smbo-dec", put("workers", 0, "performances", []), "robot 0 .* do not fit together"),
        ("smbo-dec", put("messages", 0, "cell", -1), "the message's cell is -1"),
        ("smbo-dec", put("messages", 0, "noise", -1.0), "the message's noise is -1.0"),
        ("smbo-dec", put("channel", []), "the channel has 0 receivers; give 6"),
        ("smbo-dec", put("channel", 0, "clock", -1), "the channel's clock is -1"),
        ("smbo-dec", put("channel", 0, {}), "receiver 0 of the channel"),
        ("smbo-dec", put("channel", 0, "arriving", [[1]]), "a message under way"),
        ("smbo-dec", put("channel", 0, "arriving", [[0, message(3, 10**4)]]), "the channel: robot"),
        ("smbo-dec", put("channel", 0, "arriving", [[0, message(9, 0)]]), "here are robots 0 to 5"),
        ("smbo-dec", put("workers", 0, "outgoing", [message(3, 0)]), "a message of robot 3 to"),
        ("smbo-dec", put("messages", 0, "robot", 9), "robot 9 speaks; here are robots 0 to 5"),
    ]


@pytest.mark.parametrize(("name", "damage", "message"), damaged_states())
def test_damaged_state_is_refused(name: str, damage: Any, message: str) -> None:
    behaviour_map = random_map(22)
    made = learner(name, behaviour_map)
    drive(made, 20, 0, landscape(behaviour_map, 22))
    if name == "smbo-dec":
        for robot in range(6):
            made.ask(robot)
            made.tell(robot, 1.0)
    state = json.loads(json.dumps(made.to_json()))
    with pytest.raises(InputError, match=message):
        learner_from_json(damage(state), behaviour_map)


def test_state_of_another_map_is_refused() -> None:
    state = learner("smbo", random_map(23)).to_json()
    with pytest.raises(InputError, match="the state belongs to another map"):
        learner_from_json(state, random_map(24))
    with pytest.raises(InputError, match="the map is None; give a BehaviourMap"):
        learner_from_json(state, None)  # type: ignore[arg-type]


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 2**54)
    | st.sampled_from([10**30, 2**53, 1.5, -1e9, 1e308, math.nan, math.inf, "x", ""]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=4,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths to everything in a JSON value, without the value itself."""
    found = []
    for key in value if isinstance(value, dict) else range(len(value)):
        found.append((*path, key))
        if isinstance(value[key], dict | list):
            found += places(value[key], (*path, key))
    return found


def at(value: Any, path: tuple[Any, ...]) -> Any:
    """What is at a path of a JSON value."""
    for key in path:
        value = value[key]
    return value


@settings(max_examples=150)
@given(st.sampled_from(CONFIGURATIONS), st.integers(0, 40), st.data())
def test_state_with_anything_in_it_is_refused_or_goes_on(
    configuration: tuple[str, dict[str, Any]], steps: int, data: st.DataObject
) -> None:
    name, options = configuration
    behaviour_map = random_map(25, 30)
    truth = landscape(behaviour_map, 25)
    made = learner(name, behaviour_map, 4, ["a", "b", None, "a"], 3, **options)
    drive(made, steps, 0, truth)
    state: dict[str, Any] = json.loads(json.dumps(made.to_json()))
    for _ in range(data.draw(st.integers(1, 3))):
        *path, key = data.draw(st.sampled_from(places(state)))
        where = at(state, tuple(path))
        change = data.draw(st.sampled_from(["put", "take from elsewhere", "remove", "repeat"]))
        if change == "put":
            where[key] = data.draw(JSON)
        elif change == "take from elsewhere":
            other = at(state, data.draw(st.sampled_from(places(state))))
            where[key] = json.loads(json.dumps(other))
        elif change == "repeat" and isinstance(where, list):
            where.append(json.loads(json.dumps(where[key])))
        else:
            del where[key]
        if not state:
            break
    try:
        restored = learner_from_json(state, behaviour_map)
    except InputError:
        return
    drive(restored, 30, steps, truth)
    json.dumps(restored.to_json(), allow_nan=False)


def test_state_of_before_restores() -> None:
    space = BehaviourMap.from_arrays([[0, 0], [0, 1], [1, 0]], [3.0, 2.0, 1.0])
    state = json.loads(STATE)
    made = learner_from_json(state, space)
    assert made.to_json() == state
    assert [made.ask(0), made.ask(1)] == [2, 1]


STATE = """{"format": "swarmbo learner 1", "name": "smbo-dec", "map": "346e0f44105e3d95", "seed": 2,
"options": {"alpha": 0.93, "length_scale": 0.12, "penalty": "standard",
"maximum": "best-observation", "tried_cells": "model", "observation_factor": null, "loss": 0.25,
"delay": 0.0}, "groups": [0, 0], "trials": 2, "messages": [
{"robot": 0, "group": 0, "evaluation": 0, "cell": 0, "trials": 2, "estimate": 2.5, "noise": 0.0},
{"robot": 1, "group": 0, "evaluation": 0, "cell": 1, "trials": 1, "estimate": 1.5, "noise": 2.25},
{"robot": 0, "group": 0, "evaluation": 1, "cell": 2, "trials": 1, "estimate": 2.5, "noise": 6.25},
{"robot": 0, "group": 0, "evaluation": 0, "cell": 0, "trials": 1, "estimate": 2.5, "noise": 6.25}],
"workers": [
{"known": [0, 1, 2], "outgoing": [], "evaluation": 1, "cell": 2, "done": 1, "performances": [2.5]},
{"known": [3, 1], "outgoing": [], "evaluation": 0, "cell": 1, "done": 1, "performances": [1.5]}],
"channel": [{"clock": 3, "arriving": []}, {"clock": 1, "arriving": [
[1, {"robot": 0, "group": 0, "evaluation": 1, "cell": 2, "trials": 0, "estimate": null,
"noise": null}],
[1, {"robot": 0, "group": 0, "evaluation": 1, "cell": 2, "trials": 1, "estimate": 2.5,
"noise": 6.25}]]}]}"""
