"""Workers and their messages: any order, twice, late or never; and the channel between them."""

import json
import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swarmbo import BehaviourMap, Channel, InputError, Message, Worker, learner
from swarmbo.adaptation.learners import DECENTRALISED
from swarmbo.adaptation.limits import EVALUATIONS, MEMORY
from tests.naive import adaptation as naive
from tests.test_gaussian_process import SEEDS, random_map, scattered_map
from tests.test_learners import Landscape, landscape, run_synchronously


def swarm(
    behaviour_map: BehaviourMap, robots: int, trials: int, learner: str = "smbo-dec", **options: Any
) -> list[Worker]:
    """Workers of one group, each with its own model."""
    return [
        Worker(robot, behaviour_map, learner=learner, trials=trials, **options)
        for robot in range(robots)
    ]


def conversation(
    behaviour_map: BehaviourMap, seed: int, steps: int, robots: int = 4, trials: int = 3
) -> list[Message]:
    """All messages of a swarm whose robots are asked and told in a random order."""
    generator = np.random.default_rng([seed, 4])
    truth = landscape(behaviour_map, seed)
    workers = swarm(behaviour_map, robots, trials)
    said: list[Message] = []
    for robot in generator.integers(0, robots, steps).tolist():
        worker = workers[robot]
        worker.tell(truth(worker.ask()) + generator.normal())
        messages = worker.outgoing()
        said += messages
        for other in workers:
            other.receive(*messages)
    return said


def model_bits(worker: Worker) -> bytes:
    posterior = worker._posterior()
    return posterior.mean.tobytes() + posterior.variance.tobytes()


# --- the same messages, the same worker ----------------------------------------------------------


@settings(max_examples=30)
@given(SEEDS, st.data())
def test_worker_depends_on_the_set_of_its_messages(seed: int, data: st.DataObject) -> None:
    behaviour_map = random_map(seed % 50, 100, 3, 5)
    said = conversation(behaviour_map, seed, data.draw(st.integers(1, 60)))
    heard = [message for message in said if data.draw(st.floats(0, 1)) > 0.3]
    again = data.draw(st.lists(st.sampled_from(heard), max_size=8)) if heard else []
    shuffled = data.draw(st.permutations([*heard, *again]))
    in_order, mixed, between = (Worker(9, behaviour_map, trials=3) for _ in range(3))
    in_order.receive(*heard)
    mixed.receive(*shuffled)
    for message in shuffled:
        between.receive(message)
        between.predict(0)  # a model that is used on the way
    for worker in (mixed, between):
        assert worker.known == in_order.known
        assert model_bits(worker) == model_bits(in_order)
        assert worker.best() == in_order.best()
    choices = {worker.ask() for worker in (in_order, mixed, between)}
    assert len(choices) == 1


@settings(max_examples=20)
@given(SEEDS, st.integers(1, 80))
def test_late_messages_of_a_robot_that_went_on_are_harmless(seed: int, steps: int) -> None:
    behaviour_map = random_map(seed % 50, 100, 3, 5)
    said = conversation(behaviour_map, seed, steps)
    forwards, backwards = (Worker(9, behaviour_map, trials=3) for _ in range(2))
    forwards.receive(*said)
    backwards.receive(*reversed(said))
    assert forwards.known == backwards.known
    assert forwards.ask() == backwards.ask()


def test_contradicting_messages_count_alike_in_any_order() -> None:
    behaviour_map = random_map(1)
    messages = [
        Message(1, 0, 0, cell, trials, estimate, 0.5)
        for cell, trials, estimate in ((3, 2, 4.0), (3, 2, 5.0), (4, 2, 1.0), (5, 1, 9.0))
    ]
    one, two = (Worker(0, behaviour_map) for _ in range(2))
    one.receive(*messages)
    two.receive(*reversed(messages))
    assert one.known == two.known
    assert len(one.known) == 1
    assert one.known[0].trials == 2


# --- what no sound robot says, and too much of what one may say ----------------------------------

FORGED = [
    Message(1, 0, 2**53, 7, 3, 1e9, 0.0),
    Message(1, 0, 5, 7, 3, -1e9, 0.0),
    Message(2, 0, EVALUATIONS, 7, 0),
    Message(2, 0, 0, 7, 3, 5.0, 1e18),
    Message(77, 0, 0, 7, 3, 5.0, 0.5),
    Message(1, 0, 0, 5000, 0),
    Message(1, 0, 0, 7, 4, 5.0, 0.5),
]


@st.composite
def messages_of_anybody(draw: st.DrawFn, cells: int) -> Message:
    """A message that may be sound, contradict others, or be forged."""
    if draw(st.integers(0, 3)) == 0:
        return draw(st.sampled_from(FORGED))
    numbers = (draw(st.integers(0, most)) for most in (3, 1, 3, cells - 1, 3))
    robot, group, evaluation, cell, trials = numbers
    said = [draw(st.sampled_from([0.0, 1.0, 4.5])) for _ in range(2)] if trials else [None, None]
    return Message(robot, group, evaluation, cell, trials, *said)


def take_one_by_one(worker: Worker, messages: list[Message]) -> int:
    """Let a worker receive messages; how many it refuses."""
    refused = 0
    for message in messages:
        try:
            worker.receive(message)
        except InputError:
            refused += 1
    return refused


def test_a_message_that_changes_its_group_leaves_the_model() -> None:
    behaviour_map = random_map(1)
    messages = [Message(2, 0, 0, 9, 2, 6.0, 0.5)]
    messages += [Message(1, 0, 0, 7, 2, 6.0, 0.5), Message(1, 1, 0, 7, 3, 6.0, 0.5)]
    one, two = (Worker(0, behaviour_map, trials=3) for _ in range(2))
    one.receive(*messages)
    for message in messages:
        two.receive(message)
        two.predict(0)
    assert two._observations().cells.tolist() == one._observations().cells.tolist() == [9]
    assert model_bits(two) == model_bits(one)


@settings(max_examples=200)
@given(SEEDS, st.sampled_from(DECENTRALISED), st.integers(1, 12), st.data())
def test_any_order_of_any_messages_leaves_the_same_worker(
    seed: int, name: str, memory: int, data: st.DataObject
) -> None:
    behaviour_map = random_map(seed % 50, 40, 2, 6)
    messages = messages_of_anybody(len(behaviour_map.cells))
    said = data.draw(st.lists(messages, max_size=40))
    shuffled = data.draw(st.permutations([*said, *said[: len(said) // 2]]))
    tried = data.draw(st.sampled_from(["model", "swarm"]))
    one, two, three = (
        Worker(0, behaviour_map, learner=name, trials=3, robots=6, memory=memory, tried_cells=tried)
        for _ in range(3)
    )
    take_one_by_one(one, said)
    for message in shuffled:
        take_one_by_one(two, [message])
        two.predict(0)
        two.best()
    try:
        three.receive(*shuffled)
    except InputError:
        assert any(message in FORGED for message in said)
    for worker in (two, three):
        assert worker.known == one.known
        assert model_bits(worker) == model_bits(one)
        assert (worker.best(), worker._busy()) == (one.best(), one._busy())
        assert worker._observations().cells.tolist() == one._observations().cells.tolist()
    assert len(one.known) <= memory
    assert len({worker.ask() for worker in (one, two, three)}) == 1


@given(SEEDS, st.integers(0, 30), st.data())
def test_refused_messages_change_nothing(seed: int, steps: int, data: st.DataObject) -> None:
    behaviour_map = random_map(seed % 50, 100, 3, 5)
    said = conversation(behaviour_map, seed, steps)
    sound, attacked = (Worker(9, behaviour_map, trials=3, robots=10) for _ in range(2))
    sound.receive(*said)
    mixed = data.draw(st.permutations([*said, *FORGED]))
    assert take_one_by_one(attacked, mixed) == len(FORGED)
    assert attacked.known == sound.known
    assert model_bits(attacked) == model_bits(sound)
    assert attacked.ask() == sound.ask()


def test_a_forged_message_does_not_set_the_best_cell() -> None:
    worker = Worker(0, random_map(1), trials=8)
    worker.receive(Message(1, 0, 0, 3, 8, 6.0, 0.5))
    for forged in (Message(2, 0, 2**53, 7, 8, 1e9, 0.0), Message(2, 0, 1, 7, 8, 1e9, 0.0)):
        with pytest.raises(InputError, match="robot 2 speaks of "):
            worker.receive(forged)
    assert (worker.best(), worker.best_performance()) == (3, 6.0)


def test_an_evaluation_of_the_far_future_does_not_end_the_present_one() -> None:
    worker = Worker(0, random_map(2), trials=4, evaluations=30)
    worker.receive(Message(1, 0, 3, 7, 2, 1.0, 0.5))
    for number in (30, 2**53):
        with pytest.raises(InputError, match=f"of its evaluation {number}; here are 0 to 29: give"):
            worker.receive(Message(1, 0, number, 9, 0))
    assert worker._busy() == [7]
    worker.receive(Message(1, 0, 29, 9, 0))
    assert worker._busy() == [9]


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (Message(6, 0, 0, 7, 0), "robot 6 speaks; here are robots 0 to 5: give all workers the"),
        (Message(1, 0, 30, 7, 0), "robot 1 speaks of its evaluation 30; here are 0 to 29: give"),
        (Message(1, 0, 0, 7, 2, 100.5, 0.0), "of an estimate of 100.5; here are -100 to 100: give"),
        (Message(1, 0, 0, 7, 2, -101.0, 0.0), "of an estimate of -101; here are -100 to 100"),
        (Message(1, 0, 0, 7, 1, 5.0, 1e4 + 1), "of a noise of 10001 after 1 trials; here it is 10"),
        (Message(1, 0, 0, 7, 6, 5.0, 2e3 + 1), "of a noise of 2001 after 6 trials; here it is 200"),
    ],
)
def test_message_beyond_a_limit_is_refused_in_a_sentence(message: Message, words: str) -> None:
    worker = Worker(
        0, random_map(3), trials=6, robots=6, evaluations=30, largest_estimate=100.0, memory=9
    )
    with pytest.raises(InputError, match=words) as caught:
        worker.receive(message)
    assert len(str(caught.value).splitlines()) == 1
    assert worker.known == ()
    worker.receive(Message(5, 0, 29, 7, 6, 100.0, 2e3), Message(5, 0, 28, 7, 1, -100.0, 1e4))
    assert len(worker.known) == 2


@pytest.mark.parametrize("wrong", [FORGED[0], FORGED[-1], None, "message", {"robot": 1}, 3])
def test_sound_messages_beside_a_refused_one_are_taken(wrong: Any) -> None:
    worker = Worker(0, random_map(4), trials=3)
    sound = [Message(1, 0, 0, 3, 3, 6.0, 0.5), Message(2, 0, 0, 4, 0), Message(1, 0, 1, 5, 0)]
    with pytest.raises(InputError):
        worker.receive(sound[0], wrong, sound[1], wrong, sound[2])
    assert set(worker.known) == set(sound)
    with pytest.raises(InputError, match=r"\(2 such messages\)$"):
        worker.receive(wrong, wrong)


def test_what_is_no_message_is_refused() -> None:
    with pytest.raises(InputError, match="there is None among the messages; give a Message"):
        Worker(0, random_map(5)).receive(None)  # type: ignore[arg-type]


def test_very_many_messages_of_one_sender_are_a_bounded_memory() -> None:
    worker = Worker(0, random_map(6), trials=8)
    many = (Message(1, 0, evaluation, evaluation % 40, 0) for evaluation in range(3 * EVALUATIONS))
    with pytest.raises(InputError, match=rf"\({2 * EVALUATIONS} such messages\)"):
        worker.receive(*many)
    assert len(worker.known) == EVALUATIONS
    assert worker._busy() == [(EVALUATIONS - 1) % 40]


def test_full_memory_keeps_the_first_evaluations_of_every_robot() -> None:
    behaviour_map = random_map(7)
    said = [Message(robot, 0, number, 7, 0) for robot in range(1, 5) for number in range(50)]
    worker = Worker(0, behaviour_map, memory=10)
    worker.receive(*reversed(said))
    identities = [(message.evaluation, message.robot) for message in worker.known]
    assert identities == [*((n, r) for n in (0, 1) for r in range(1, 5)), (2, 1), (2, 2)]
    for number in range(12):  # its own it always keeps
        assert worker.ask() == worker.ask()
        for _ in range(worker.trials):
            worker.tell(float(number))
    assert [m.evaluation for m in worker.known if m.robot == 0] == list(range(12))
    assert len({m.cell for m in worker.known if m.robot == 0}) == 12


def test_workers_of_large_maps_keep_fewer_messages() -> None:
    cells = np.argwhere(np.ones((16, 16, 16, 16)))
    large = BehaviourMap.from_arrays(cells, np.zeros(len(cells)))
    assert Worker(0, large).limits.memory == 1024
    assert Worker(0, random_map(8)).limits.memory == MEMORY


@settings(max_examples=60)
@given(
    SEEDS,
    st.sampled_from([0.0, 1e-3, 1.0, -1.0, 5e5]),
    st.sampled_from(DECENTRALISED),
    st.booleans(),
    st.data(),
)
def test_what_sound_robots_say_is_never_refused(
    seed: int, scale: float, name: str, given_limits: bool, data: st.DataObject
) -> None:
    usual = random_map(seed % 50, 40, 2, 6)
    behaviour_map = BehaviourMap.from_arrays(usual.cells, scale * usual.performance)
    limits: dict[str, Any] = {}
    if given_limits:
        limits = {"robots": 3, "evaluations": 10, "largest_estimate": 360.0}
    if name == "random-no-sharing":
        limits["running_mean"] = data.draw(st.booleans())
    speaker, listener = (
        Worker(robot, behaviour_map, learner=name, trials=4, **limits) for robot in (2, 0)
    )
    largest = speaker.limits.largest_estimate
    # One robot delivers all that the best swarm of a hundred robots does.
    assert largest >= (360 if given_limits else 100 * abs(behaviour_map.performance).max())
    values = st.floats(-largest, largest) | st.sampled_from([0.0, largest, -largest])
    for value in data.draw(st.lists(values, max_size=40)):
        speaker.ask()
        speaker.tell(value)
        listener.receive(*speaker.outgoing())
    assert listener.known == speaker.known


def test_nobody_says_what_others_would_refuse() -> None:
    worker = Worker(2, random_map(9), trials=1, evaluations=2, largest_estimate=50.0)
    worker.ask()
    with pytest.raises(InputError, match=r"performance is 51, .* give a number of -50 to 50, or"):
        worker.tell(51.0)
    worker.tell(-50.0)
    worker.ask()
    worker.tell(50.0)
    before = worker.state()
    with pytest.raises(InputError, match="robot 2 has begun all its 2 evaluations; give all"):
        worker.ask()
    assert worker.state() == before


def test_workers_of_a_learner_believe_each_other() -> None:
    made = learner("smbo-dec", random_map(10), robots=3, trials=2)
    for robot in range(3):
        made.ask(robot)
        for _ in range(2):
            made.tell(robot, 1e9)
    assert {made.best_performance(robot) for robot in range(3)} == {1e9}
    with pytest.raises(InputError, match="robot 3 speaks; here are robots 0 to 2"):
        made.worker(0).receive(Message(3, 0, 0, 7, 0))


def wrong_worker(**arguments: Any) -> Worker:
    """A worker with wrong arguments."""
    right: dict[str, Any] = {"robot": 0, "behaviour_map": random_map(11)}
    return Worker(**(right | arguments))


NO_COUNT: list[Any] = [True, -1, 1.5, math.nan, "3", [], {}, np.array(3), np.int64(3), 10**30]


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        *((name, None) for name in ("robot", "group", "trials", "seed")),
        *(
            (name, wrong)
            for name in ("robot", "group", "trials", "seed", "robots", "evaluations", "memory")
            for wrong in NO_COUNT
        ),
    ],
)
def test_worker_with_a_wrong_number_is_refused(name: str, wrong: Any) -> None:
    with pytest.raises(InputError, match=f"{name} is .*; give an integer, "):
        wrong_worker(**{name: wrong})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"behaviour_map": None}, "the map is None; give a BehaviourMap"),
        ({"behaviour_map": "paper-1"}, "the map is 'paper-1'; give a BehaviourMap"),
        ({"learner": ["smbo-dec"]}, "there is no worker of"),
        ({"learner": np.array([1, 2])}, "there is no worker of"),
        ({"process": 5}, "process is 5; give a GaussianProcess, or leave it out"),
        ({"penalty": np.array(["standard", "x"])}, "penalty is array.*; name one of standard"),
        ({"maximum": ["posterior-mean"]}, "maximum is .*; name one of"),
        ({"largest_estimate": 0}, "largest_estimate is 0; give a number above 0, to 1e"),
        ({"largest_estimate": math.nan}, "largest_estimate is nan"),
        ({"largest_estimate": 1e10}, "largest_estimate is 10000000000.0"),
        ({"largest_estimate": "5"}, "largest_estimate is '5'"),
        ({"robots": 3, "robot": 3}, "robot is 3; give an integer, 0 to 2"),
    ],
)
def test_impossible_worker_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        wrong_worker(**arguments)


@pytest.mark.parametrize("wrong", [None, 3, "state", [], {"known": []}])
def test_worker_that_refuses_a_state_is_unchanged(wrong: Any) -> None:
    behaviour_map = random_map(13)
    worker = Worker(9, behaviour_map, trials=3)
    worker.receive(*conversation(behaviour_map, 13, 20))
    worker.ask()
    worker.tell(3.0)
    before, bits = worker.state(), model_bits(worker)
    other_robot = Message(2, 0, 0, 7, 0).to_json()
    for state in (
        wrong,
        before | {"performances": wrong},
        before | {"known": wrong},
        before | {"known": []},
        before | {"outgoing": [other_robot]},
        before | {"evaluation": 7},
    ):
        with pytest.raises(InputError):
            worker.restore(state)
        assert worker.state() == before
        assert model_bits(worker) == bits


def test_state_of_a_worker_of_before_restores() -> None:
    space = BehaviourMap.from_arrays([[0, 0], [0, 1], [1, 0]], [3.0, 2.0, 1.0])
    known = """[{"robot": 0, "group": 0, "evaluation": 0, "cell": 0, "trials": 1, "estimate": 2.5,
        "noise": 6.25}, {"robot": 7, "group": 0, "evaluation": 0, "cell": 2, "trials": 2,
        "estimate": 4.0, "noise": 0.25}]"""
    state = json.loads(
        f"""{{"known": {known}, "outgoing": [], "evaluation": 0, "cell": 0, "done": 1,
        "performances": [2.5]}}"""
    )
    worker = Worker(0, space, trials=2)
    worker.restore(state)
    assert worker.state() == state
    worker.tell(1.0)
    assert (worker.best(), worker.ask()) == (2, 1)


# --- one shared model ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("smbo-dec", {}),
        ("smbo-dec-naive", {}),
        ("smbo-dec", {"penalty": "paper-text"}),
        ("smbo-dec", {"maximum": "posterior-mean"}),
    ],
)
def test_synchronous_learner_is_one_shared_model(name: str, options: dict[str, Any]) -> None:
    for seed in range(4):
        behaviour_map = random_map(seed, 60, 3, 4) if seed else scattered_map(seed)
        truth = landscape(behaviour_map, seed)
        made = learner(name, behaviour_map, robots=4, trials=3, **options)
        shared = naive.SharedModel(name, behaviour_map, 3, **options)
        generator = np.random.default_rng(seed)
        for _ in range(6):
            cells = [made.ask(robot) for robot in range(4)]
            assert cells == [shared.ask(robot) for robot in range(4)]
            for robot in [*range(4)] * 3:
                performance = truth(cells[robot]) + generator.normal()
                made.tell(robot, performance)
                shared.tell(robot, performance)
        assert {made.best(robot) for robot in range(4)} == {shared.best()}
        mean, variance = naive.posterior(behaviour_map, shared.observations())
        for cell in range(len(mean)):
            expected = mean[cell], math.sqrt(variance[cell])
            assert made.predict(2, cell) == pytest.approx(expected, abs=1e-9)


@settings(max_examples=12)
@given(SEEDS, st.sampled_from(["smbo-dec", "smbo-dec-naive"]))
def test_asynchronous_learner_is_one_shared_model(seed: int, name: str) -> None:
    behaviour_map = random_map(seed % 20, 60, 3, 4)
    truth = landscape(behaviour_map, seed)
    made = learner(name, behaviour_map, robots=4, trials=3)
    shared = naive.SharedModel(name, behaviour_map, 3)
    generator = np.random.default_rng(seed)
    for robot in generator.integers(0, 4, 50).tolist():
        cell = made.ask(robot)
        assert cell == shared.ask(robot)
        performance = truth(cell) + generator.normal()
        made.tell(robot, performance)
        shared.tell(robot, performance)


@pytest.mark.parametrize("name", DECENTRALISED)
def test_learner_is_workers_with_models_of_their_own_and_a_perfect_channel(name: str) -> None:
    behaviour_map = random_map(2, 100, 3, 5)
    truth = landscape(behaviour_map, 2)
    made = learner(name, behaviour_map, robots=4, trials=3, seed=3)
    workers = swarm(behaviour_map, 4, 3, name, seed=3)
    generator = np.random.default_rng(2)
    for robot in generator.integers(0, 4, 150).tolist():
        cell = made.ask(robot)
        assert cell == workers[robot].ask()
        performance = truth(cell) + generator.normal()
        made.tell(robot, performance)
        workers[robot].tell(performance)
        for message in workers[robot].outgoing():
            for other in workers:
                other.receive(Message.from_json(json.loads(json.dumps(message.to_json()))))
    for robot, worker in enumerate(workers):
        assert made.best(robot) == worker.best()
        assert made.predict(robot, 5) == worker.predict(5) or name == "random-no-sharing"
        assert model_bits(made.worker(robot)) == model_bits(worker)


# --- what a worker says and believes -------------------------------------------------------------


def test_worker_says_what_it_is_busy_with_and_then_its_estimates() -> None:
    worker = Worker(2, random_map(3), group=1, trials=3)
    cell = worker.ask()
    assert worker.ask() == cell
    for value in (4.0, 6.0, 11.0):
        worker.tell(value)
    assert worker.outgoing() == [
        Message(2, 1, 0, cell, 0),
        Message(2, 1, 0, cell, 1, 4.0, 16.0),
        Message(2, 1, 0, cell, 2, 5.0, 1.0),
        Message(2, 1, 0, cell, 3, 7.0, 13 / 3),
    ]
    assert worker.outgoing() == []
    assert worker.ask() != cell
    assert [(m.evaluation, m.trials) for m in worker.outgoing()] == [(1, 0)]


def test_cells_are_busy_until_the_last_trial_and_observed_from_the_first() -> None:
    worker = Worker(0, random_map(4), trials=2)
    for trials, busy, observed in ((0, [7], []), (1, [7], [7]), (2, [], [7])):
        estimate = None if trials == 0 else 1.0
        worker.receive(Message(1, 0, 0, 7, trials, estimate, estimate))
        assert worker._busy() == busy
        assert worker._observations().cells.tolist() == observed


def test_robot_that_went_on_is_not_busy_with_the_cell_before() -> None:
    worker = Worker(0, random_map(5), trials=4)
    worker.receive(Message(1, 0, 3, 7, 2, 1.0, 0.5), Message(1, 0, 4, 8, 0))
    assert worker._busy() == [8]
    assert worker._observations().cells.tolist() == [7]
    worker.receive(Message(1, 0, 3, 7, 4, 2.0, 0.25))  # late: now it counts as done
    assert worker.best() == 7
    worker.receive(Message(1, 0, 2, 9, 0))  # later still: a cell of which nothing else came
    assert worker._busy() == [8]
    assert worker._observations().cells.tolist() == [7]


def test_observations_of_one_cell_by_two_robots_are_two() -> None:
    behaviour_map = random_map(6)
    worker = Worker(0, behaviour_map, trials=2)
    worker.receive(Message(1, 0, 0, 7, 2, 3.0, 0.5), Message(2, 0, 0, 7, 2, 5.0, 1.0))
    mean, variance = naive.posterior(behaviour_map, [(7, 3.0, 0.5), (7, 5.0, 1.0)])
    assert worker.predict(7) == pytest.approx((mean[7], math.sqrt(variance[7])), abs=1e-10)


def test_messages_of_other_groups_do_not_enter_the_model() -> None:
    behaviour_map = random_map(7)
    best = int(behaviour_map.performance.argmax())
    other = Message(1, 1, 0, best, 2, 3.0, 0.0)
    alone, usual, considerate = (
        Worker(0, behaviour_map, trials=2, tried_cells=tried)
        for tried in ("model", "model", "swarm")
    )
    usual.receive(other)
    considerate.receive(other)
    assert model_bits(alone) == model_bits(usual) == model_bits(considerate)
    assert alone.ask() == usual.ask() == best != considerate.ask()


def test_own_messages_that_come_back_change_nothing() -> None:
    worker = Worker(0, random_map(8), trials=2)
    worker.ask()
    first = worker.outgoing()
    worker.tell(3.0)
    before = worker.state()
    worker.receive(*first, Message(0, 0, 0, 5, 2, 9.0, 0.0))
    assert worker.state() == before


@settings(max_examples=25)
@given(SEEDS, st.integers(0, 40))
def test_restored_worker_goes_on_identically(seed: int, steps: int) -> None:
    behaviour_map = random_map(seed % 50)
    worker = Worker(9, behaviour_map, trials=3)
    worker.receive(*conversation(behaviour_map, seed, steps))
    for number in range(seed % 7):
        worker.ask()
        worker.tell(float(number))
    restored = Worker(9, behaviour_map, trials=3)
    restored.restore(json.loads(json.dumps(worker.state())))
    for number in range(10):
        assert restored.ask() == worker.ask()
        restored.tell(float(number))
        worker.tell(float(number))
    assert restored.outgoing() == worker.outgoing()
    assert restored.state() == worker.state()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"robot": -1}, "the message's robot is -1; give an integer, 0 to"),
        ({"group": None}, "the message's group is None"),
        ({"evaluation": 0.5}, "the message's evaluation is 0.5"),
        ({"cell": "7"}, "the message's cell is '7'"),
        ({"trials": True}, "the message's trials is True"),
        ({"trials": 0}, "an estimate or a noise after 0 trials; give neither"),
        ({"estimate": None}, "the message's estimate is None; give a number"),
        ({"estimate": math.nan}, "the message's estimate is nan; give a number"),
        ({"noise": -0.5}, "the message's noise is -0.5; give a variance"),
        ({"more": 1}, "the message lacks, or should not have, more"),
    ],
)
def test_impossible_message_is_refused(change: dict[str, Any], message: str) -> None:
    value = Message(1, 0, 2, 7, 3, 4.0, 0.5).to_json()
    assert Message.from_json(value) == Message(1, 0, 2, 7, 3, 4.0, 0.5)
    with pytest.raises(InputError, match=message):
        Message.from_json(value | change)


def test_message_that_does_not_fit_is_refused() -> None:
    worker = Worker(0, random_map(9), trials=2)
    for message in (Message(1, 0, 0, 1000, 0), Message(1, 0, 0, 1, 3, 1.0, 1.0)):
        with pytest.raises(InputError, match="give all workers the same map and trials"):
            worker.receive(message)


def test_worker_of_a_centralised_learner_is_refused() -> None:
    with pytest.raises(InputError, match="there is no worker of 'smbo'; name one of smbo-dec"):
        Worker(0, random_map(10), learner="smbo")
    with pytest.raises(InputError, match="smbo-dec has no option 'noise'"):
        Worker(0, random_map(10), noise=1.0)


# --- the channel ---------------------------------------------------------------------------------


def test_perfect_channel_delivers_to_all_others_at_once_and_in_order() -> None:
    channel = Channel(3)
    messages = [Message(1, 0, 0, 5, 0), Message(1, 0, 0, 5, 1, 2.0, 4.0)]
    for message in messages:
        channel.send(message)
    assert channel.receive(0) == channel.receive(2) == messages
    assert channel.receive(0) == channel.receive(1) == []
    channel.send(messages[0], to=[2, 1])
    assert channel.receive(0) == channel.receive(1) == []
    assert channel.receive(2) == messages[:1]


def test_losses_and_delays_have_their_probabilities() -> None:
    many = 4000
    channel = Channel(2, loss=0.3, delay=0.6, seed=4)
    for evaluation in range(many):
        channel.send(Message(0, 0, evaluation, 1, 0))
    arrived = []
    for _ in range(12):
        arrived.append(len(channel.receive(1)))
        channel.step(1)
    for steps, count in enumerate(arrived):
        expected = many * 0.7 * 0.4 * 0.6**steps
        assert abs(count - expected) < 4 * math.sqrt(expected) + 1
    for earlier, later in pairwise(arrived[:5]):
        assert later < earlier


def test_fate_of_a_message_does_not_depend_on_others() -> None:
    messages = [Message(0, 0, evaluation, 1, 0) for evaluation in range(40)]
    one, two, other = (Channel(2, loss=0.5, seed=seed) for seed in (1, 1, 2))
    for message in messages:
        one.send(message)
        other.send(message)
    for message in reversed(messages):
        two.send(message)
    heard = set(one.receive(1))
    assert heard == set(two.receive(1))
    assert heard != set(other.receive(1))
    assert 8 < len(heard) < 32


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": -0.1}, "loss is -0.1; give a probability, 0 to 1"),
        ({"delay": math.nan}, "delay is nan; give a probability"),
        ({"delay": 1.0}, "no message would ever arrive"),
        ({"seed": 1.5}, "seed is 1.5"),
        ({"robots": 0}, "robots is 0"),
        ({"robots": 1.5}, "robots is 1.5"),
        ({"robots": None}, "robots is None"),
        ({"loss": None}, "loss is None; give a probability"),
        ({"loss": np.array([0, 1])}, "loss is array.*; give a probability"),
        ({"delay": "0.5"}, "delay is '0.5'; give a probability"),
    ],
)
def test_impossible_channel_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Channel(**({"robots": 2} | options))


@pytest.mark.parametrize(
    ("message", "to", "words"),
    [
        (None, None, "the message is None; give a Message"),
        ({"robot": 1}, [0], "the message is {'robot': 1}; give a Message"),
        (FORGED[0], [3], "a receiver is 3; give an integer, 0 to 2"),
        (FORGED[0], [0, -1], "a receiver is -1"),
        (FORGED[0], [2, "a"], "a receiver is 'a'"),
        (FORGED[0], 1, "the receivers are 1; give a list of robots, or leave it out"),
        (FORGED[0], np.array(1), "the receivers are array.*; give a list"),
    ],
)
def test_channel_refuses_what_it_cannot_send(message: Any, to: Any, words: str) -> None:
    channel = Channel(3)
    with pytest.raises(InputError, match=words):
        channel.send(message, to)
    assert [channel.receive(robot) for robot in range(3)] == [[], [], []]
    for robot in (3, -1, None, "a", 1.0):
        with pytest.raises(InputError, match=r"the robot is .*; give an integer, 0 to 2"):
            channel.receive(robot)  # type: ignore[arg-type]
        with pytest.raises(InputError, match=r"the robot is .*; give an integer, 0 to 2"):
            channel.step(robot)  # type: ignore[arg-type]
    channel.send(Message(1, 0, 0, 7, 0), iter([0, 1, 2]))
    channel.send(Message(1, 0, 0, 7, 0), np.arange(0))
    assert [len(channel.receive(robot)) for robot in range(3)] == [1, 0, 1]


def test_learner_that_loses_everything_learns_as_without_sharing() -> None:
    behaviour_map = random_map(11)
    truth = landscape(behaviour_map, 11)
    deaf = learner("smbo-dec", behaviour_map, robots=3, trials=2, loss=1.0)
    alone = learner("smbo-no-sharing", behaviour_map, robots=3, trials=2)
    assert run_synchronously(deaf, truth, 8) == run_synchronously(alone, truth, 8)


def best_found(truth: Landscape, behaviour_map: BehaviourMap, seed: int, loss: float) -> float:
    made = learner("smbo-dec", behaviour_map, robots=6, trials=2, loss=loss, seed=seed)
    run_synchronously(made, truth, 10, noise=0.5, seed=seed)
    return float(np.mean([made.best_performance(robot) for robot in range(6)]))


def test_less_is_found_where_all_messages_are_lost() -> None:
    results = []
    for seed in range(12):
        behaviour_map = random_map(seed, 300, 3, 9)
        truth = landscape(behaviour_map, seed)
        results.append([best_found(truth, behaviour_map, seed, loss) for loss in (0.0, 0.4, 1.0)])
    none, some, all_lost = np.mean(results, axis=0)
    assert none > some > all_lost


def test_delayed_messages_arrive_with_the_trials_of_their_receiver() -> None:
    behaviour_map = random_map(12)
    made = learner("smbo-dec", behaviour_map, robots=2, trials=4, delay=0.9, seed=1)
    made.ask(0)
    for _ in range(4):
        made.tell(0, 3.0)
    made.ask(1)
    assert len(made.worker(1).known) < 2 or made.worker(1).known[0].trials < 4
    for _ in range(60):
        made.ask(1)
        made.tell(1, 1.0)
    first = next(message for message in made.worker(1).known if message.robot == 0)
    assert (first.trials, first.estimate) == (4, 3.0)
