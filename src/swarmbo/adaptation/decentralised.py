"""Decentralised learners: workers, one per robot, and the channel between them."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from swarmbo.adaptation.channel import Channel
from swarmbo.adaptation.checks import checked_fields, checked_index, checked_list, header
from swarmbo.adaptation.limits import UNLIMITED
from swarmbo.adaptation.messages import Message
from swarmbo.adaptation.options import Options
from swarmbo.adaptation.worker import WORKER_STATE, Worker, new_process
from swarmbo.errors import InputError, short
from swarmbo.maps.behaviour_map import BehaviourMap


class DecentralisedLearner:
    """Says which cell each robot is to try next, and which one is best for it.

    `ask` gives the row of a robot's cell and `tell` takes the performance of that
    robot in one trial, in the unit of the map: its own items times
    `observation_factor`. After `trials` of them the next `ask` gives another
    cell. Robots may be asked and told in any order. Those whose group is None
    are no workers, and cannot be asked.
    """

    def __init__(
        self,
        name: str,
        behaviour_map: BehaviourMap,
        *,
        groups: Sequence[int | None],
        trials: int,
        seed: int,
        options: Options,
    ) -> None:
        self.name = name
        self.behaviour_map = behaviour_map
        self.robots = len(groups)
        self.groups = tuple(groups)
        self.trials = trials
        self.seed = seed
        self.options = options
        loss, delay = options.loss, options.delay
        self._channel = Channel(self.robots, loss=loss, delay=delay, seed=seed)
        self._workers = self._make_workers(loss == 0 and delay == 0)
        self._listeners = [self._listeners_of(robot) for robot in range(self.robots)]

    def _make_workers(self, is_perfect: bool) -> list[Worker | None]:
        """A worker per robot; those who always know the same share the process that computes.

        As they hear nobody else, what the learner can be told is all that limits them.
        """
        given = self.options.to_json(self.name)
        process = {group: new_process(self.behaviour_map, self.options) for group in self.groups}
        shares = is_perfect and not self.name.endswith("no-sharing")
        return [
            None
            if group is None
            else Worker(
                robot,
                self.behaviour_map,
                learner=self.name,
                group=group,
                trials=self.trials,
                seed=self.seed,
                process=process[group] if shares else None,
                robots=self.robots,
                **UNLIMITED,
                **given,
            )
            for robot, group in enumerate(self.groups)
        ]

    def _listeners_of(self, robot: int) -> list[int]:
        """The robots to whom a robot's messages say something."""
        sender = self._workers[robot]
        return [
            worker.robot
            for worker in self._workers
            if worker is not None
            and sender is not None
            and worker is not sender
            and (worker.group == sender.group or self.options.tried_cells == "swarm")
        ]

    @property
    def observation_factor(self) -> float:
        """What the items of one robot are multiplied by to give a performance."""
        factor = self.options.observation_factor
        return float(self.robots) if factor is None else factor

    @property
    def workers(self) -> tuple[int, ...]:
        """The numbers of the robots that are workers."""
        return tuple(robot for robot, group in enumerate(self.groups) if group is not None)

    def worker(self, robot: int) -> Worker:
        """A robot's worker, with all messages that have reached it."""
        worker = self._workers[checked_index("the robot", robot, self.robots)]
        if worker is None:
            raise InputError(f"robot {robot} is no worker, as it has no group; leave it out")
        worker.receive(*self._channel.receive(robot))
        return worker

    def ask(self, robot: int) -> int:
        """The row of the cell that a robot is to run, the same until its trials are done."""
        worker = self.worker(robot)
        cell = worker.ask()
        self._broadcast(worker)
        return cell

    def tell(self, robot: int, performance: float) -> None:
        """Take a robot's performance in one trial, in the map's unit."""
        worker = self.worker(robot)
        worker.tell(performance)
        self._channel.step(worker.robot)
        self._broadcast(worker)

    def _broadcast(self, worker: Worker) -> None:
        for message in worker.outgoing():
            self._channel.send(message, self._listeners[worker.robot])

    def best(self, robot: int) -> int:
        """The row of the best cell that the robot knows of; before any evaluation the best prior.

        Only evaluations with all their trials count, its group's or, without
        sharing, its own; of equal ones the latest.
        """
        return self.worker(robot).best()

    def best_performance(self, robot: int) -> float:
        """The estimate of that cell, in the map's unit; nan before any evaluation."""
        return self.worker(robot).best_performance()

    def predict(self, robot: int, cell: int) -> tuple[float, float]:
        """Mean and deviation that a robot expects of a cell, in the map's unit.

        Without a model: the map's performance, and nan.
        """
        return self.worker(robot).predict(cell)

    def to_json(self) -> dict[str, Any]:
        """The learner's state as plain JSON values, for `learner_from_json`.

        Each message stands there once; a worker names those that it knows.
        """
        numbers: dict[Message, int] = {}
        workers: list[dict[str, Any] | None] = []
        for worker in self._workers:
            if worker is None:
                workers.append(None)
                continue
            known = [numbers.setdefault(message, len(numbers)) for message in worker.known]
            workers.append(worker.state() | {"known": known})
        return header(self.name, self.behaviour_map, self.seed, self.options) | {
            "groups": list(self.groups),
            "trials": self.trials,
            "messages": [message.to_json() for message in numbers],
            "workers": workers,
            "channel": self._channel.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over the workers and the channel of a state; InputError when impossible."""
        messages = checked_list("messages", state["messages"])
        values = checked_list("workers", state["workers"])
        if [value is None for value in values] != [worker is None for worker in self._workers]:
            raise InputError(
                "the workers are not those of the groups; give one per robot, null without group"
            )
        for worker, value in zip(self._workers, values, strict=True):
            if worker is not None:
                what = f"the state of robot {worker.robot}"
                value = checked_fields(what, value, WORKER_STATE)
                known = [
                    messages[checked_index("the number of a message", number, len(messages))]
                    for number in checked_list("known", value["known"])
                ]
                worker.restore(value | {"known": known})
        self._channel.restore(state["channel"])
        for worker in self._workers:
            if worker is not None:
                for message in self._channel.under_way(worker.robot):
                    reason = worker.limits.refusal(message)
                    if reason is not None:
                        raise InputError(f"the channel: {reason}")


def numbered_groups(groups: Sequence[Hashable] | None, robots: int) -> tuple[int | None, ...]:
    """Groups as numbers in the order of their first robots; None stays, and means no worker."""
    if groups is None:
        return (0,) * robots
    is_array = isinstance(groups, np.ndarray) and groups.ndim > 0
    if not (is_array or isinstance(groups, list | tuple)) or len(groups) != robots:
        raise InputError(
            f"groups is {short(groups)}; give a list of {robots} labels, one per robot"
        )
    for robot, label in enumerate(groups):
        try:
            hash(label)
        except TypeError:
            raise InputError(
                f"the group of robot {robot} is {short(label)}; give a text, a number or a tuple"
            ) from None
    numbers: dict[Hashable, int] = {}
    return tuple(
        None if label is None else numbers.setdefault(label, len(numbers)) for label in groups
    )
