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
    ],
)
def test_impossible_channel_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Channel(**({"robots": 2} | options))


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
