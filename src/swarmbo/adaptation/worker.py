"""A worker of decentralised adaptation: one robot with its own model of its group's faults."""

import math
from bisect import insort
from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heappush, heapreplace
from typing import Any

import numpy as np

from swarmbo.adaptation.acquisition import (
    LIPSCHITZ,
    best_penalised,
    first_best,
    lipschitz,
    log_penalty,
    upper_confidence_bound,
)
from swarmbo.adaptation.cells import cells_of
from swarmbo.adaptation.checks import (
    check_count,
    check_map,
    checked_fields,
    checked_index,
    checked_list,
    checked_performance,
)
from swarmbo.adaptation.gaussian_process import GaussianProcess, Posterior
from swarmbo.adaptation.limits import Limits
from swarmbo.adaptation.messages import MAX_EVALUATIONS, MAX_TRIALS, Message
from swarmbo.adaptation.options import DECENTRALISED, Options
from swarmbo.errors import InputError, short
from swarmbo.maps.behaviour_map import MAX_ROBOTS, BehaviourMap
from swarmbo.streams import Stream

TRIALS = 8  # of an evaluation
WORKER_STATE = ("known", "outgoing", "evaluation", "cell", "done", "performances")


@dataclass(frozen=True, eq=False)
class Observations:
    """What a model is conditioned on, a number per evaluation."""

    cells: np.ndarray
    values: np.ndarray  # in the map's unit
    noise: np.ndarray  # variances
    settled: int  # how many at the beginning will hardly change


class Worker:
    """Chooses cells for one robot, from its own trials and the messages of others.

    `ask` gives the row of the cell to run, `tell` takes the robot's performance
    in one trial, in the unit of the map: its own items times the number of
    robots. After `trials` of them the next `ask` gives another cell. `outgoing`
    gives the messages to broadcast, `receive` takes those of others, in any
    order, also twice or late: what a worker does depends on the set of messages
    that it has. Messages of other groups do not enter its model.

    `robots` of the swarm, `evaluations` of each of them and the `largest_estimate`
    of any, in the map's unit and without its sign, are limits to what a worker
    believes; give all workers the same. It keeps one message per evaluation of
    `memory` evaluations of other robots, those with the lowest numbers. Left out,
    they are generous.
    """

    def __init__(
        self,
        robot: int,
        behaviour_map: BehaviourMap,
        *,
        learner: str = "smbo-dec",
        group: int = 0,
        trials: int = TRIALS,
        seed: int = 1,
        process: GaussianProcess | None = None,
        robots: int | None = None,
        evaluations: int | None = None,
        largest_estimate: float | None = None,
        memory: int | None = None,
        **options: Any,
    ) -> None:
        check_map(behaviour_map)
        check_count("group", group, 0, MAX_ROBOTS - 1)
        check_count("trials", trials, 1, MAX_TRIALS)
        check_count("seed", seed, 0, 2**53)
        if not isinstance(learner, str) or learner not in DECENTRALISED:
            raise InputError(
                f"there is no worker of {short(learner)}; name one of {', '.join(DECENTRALISED)}"
            )
        if process is not None and not isinstance(process, GaussianProcess):
            raise InputError(
                f"process is {short(process)}; give a GaussianProcess, or leave it out"
            )
        self.limits = Limits.of(
            behaviour_map,
            trials=trials,
            robots=robots,
            evaluations=evaluations,
            largest_estimate=largest_estimate,
            memory=memory,
        )
        check_count("robot", robot, 0, self.limits.robots - 1)
        self.robot = robot
        self.behaviour_map = behaviour_map
        self.learner = learner
        self.group = robot if learner.endswith("no-sharing") else group
        self.trials = trials
        self.seed = seed
        self.options = Options.of(learner, options)
        self._cells = cells_of(behaviour_map)
        # A process computes and decides nothing: workers that have the same messages may share it.
        self._process = process or new_process(behaviour_map, self.options)
        self._forget_all()
        self._outgoing: list[Message] = []
        self._evaluation = -1  # number of the present one, or of the last
        self._cell: int | None = None  # that the robot is busy with
        self._done = 0  # trials of the present evaluation
        self._performances: list[float] = []  # of the trials that an estimate is made of

    def _forget_all(self) -> None:
        self._known: dict[tuple[int, int], Message] = {}  # by robot and evaluation: the latest
        self._evaluations: dict[int, list[int]] = {}  # numbers of those known, per robot in order
        self._heard: list[tuple[int, int]] = []  # those of others, as a heap with the latest first
        self._observed: Observations | None = None  # made when needed

    # --- asking and telling

    def ask(self) -> int:
        """The row of the cell to run: a new one when the trials of the last one are done."""
        if self._cell is None:
            if self._evaluation + 1 >= self.limits.evaluations:
                raise InputError(
                    f"robot {self.robot} has begun all its {self.limits.evaluations} evaluations; "
                    "give all workers more of them"
                )
            cell = self._choose()
            self._evaluation += 1
            self._cell = cell
            self._done = 0
            if not self.options.running_mean:
                self._performances = []
            self._say(None, None)
        return self._cell

    def tell(self, performance: float) -> None:
        """Take the robot's performance in a trial with the cell that it was given."""
        if self._cell is None:
            raise InputError(f"robot {self.robot} has no cell to tell about; ask first")
        performance = checked_performance(performance)
        largest = self.limits.largest_estimate
        if abs(performance) > largest:
            raise InputError(
                f"the performance is {performance:g}, which others would not believe; "
                f"give a number of {-largest:g} to {largest:g}, or all workers "
                "another largest_estimate"
            )
        self._performances.append(performance)
        self._done += 1
        self._say(*estimate(self._performances))
        if self._done == self.trials:
            self._cell = None

    def _say(self, value: float | None, noise: float | None) -> None:
        assert self._cell is not None
        message = Message(
            self.robot, self.group, self._evaluation, self._cell, self._done, value, noise
        )
        self._remember(message)
        self._outgoing.append(message)

    # --- messages

    def outgoing(self) -> list[Message]:
        """The messages to broadcast since the last call, in order."""
        messages, self._outgoing = self._outgoing, []
        return messages

    def receive(self, *messages: Message) -> None:
        """Take messages of other robots, in any order, and also those beside a refused one.

        InputError, when all others are taken, for one that no sound robot sends:
        that does not fit the map, the trials or the limits.
        """
        refused = []
        allow, own = self.limits.allow, self.robot
        for message in messages:
            if not isinstance(message, Message) or not allow(message):
                refused.append(message)
            elif message.robot != own:
                self._remember(message)
        if refused:
            more = f" ({len(refused)} such messages)" * (len(refused) > 1)
            raise InputError(f"{self.limits.refusal(refused[0])}{more}")

    def _remember(self, message: Message) -> None:
        robot, evaluation = identity = message.robot, message.evaluation
        known = self._known.get(identity)
        if known is None:
            if robot != self.robot and not self._make_room(message):
                return
        elif not message.replaces(known):
            return
        before = self._latest_of(robot)
        self._known[identity] = message
        if known is None:
            insort(self._evaluations.setdefault(robot, []), evaluation)
        group = self.group
        if (
            message.group != group
            and (known or message).group != group  # or the model loses what it had
            and (before or message).group != group
        ):
            return
        if message.trials or (before is not None and 0 < before.trials < self.trials):
            self._observed = None
        if message.trials == 0 and message.group == group and self.learner != "random-no-sharing":
            self._process.prepare(message.cell)

    def _make_room(self, message: Message) -> bool:
        """Whether one more evaluation of another robot is kept; another may be forgotten for it.

        Of too many, those that come first by number, then by robot, are kept,
        whichever was heard of first.
        """
        place = -message.evaluation, -message.robot
        if len(self._heard) < self.limits.memory:
            heappush(self._heard, place)
            return True
        if place < self._heard[0]:
            return False
        evaluation, robot = heapreplace(self._heard, place)
        del self._known[-robot, -evaluation]
        self._evaluations[-robot].pop()  # it is this robot's latest
        if not self._evaluations[-robot]:
            del self._evaluations[-robot]
        self._observed = None
        return True

    def _latest_of(self, robot: int) -> Message | None:
        """The latest message about the latest evaluation of a robot."""
        evaluations = self._evaluations.get(robot)
        return None if evaluations is None else self._known[robot, evaluations[-1]]

    # --- what is known

    @property
    def cell(self) -> int | None:
        """The row of the cell that the robot is busy with, if any."""
        return self._cell

    @property
    def trials_done(self) -> int:
        """How many trials of its present evaluation, or of the last one, the robot has told."""
        return self._done

    @property
    def known(self) -> tuple[Message, ...]:
        """The latest message about every evaluation, by evaluation and robot."""
        return tuple(sorted(self._known.values(), key=_evaluation_and_robot))

    def best(self) -> int:
        """The row of the best cell that the group has done all trials with; first the best prior.

        Of equal ones that of the later evaluation, then of the later robot.
        """
        best = self._best_message()
        if best is not None:
            return best.cell
        return first_best(self.behaviour_map.performance, self._cells.order, self._cells)

    def best_performance(self) -> float:
        """The estimate of the best cell, in the map's unit; nan before the first evaluation."""
        best = self._best_message()
        return math.nan if best is None else _value(best)

    def predict(self, cell: int) -> tuple[float, float]:
        """Mean and deviation that the worker's model expects of a cell, in the map's unit.

        A random worker has no model: the map's performance, and nan.
        """
        cell = checked_index("the cell", cell, len(self._cells))
        if self.learner == "random-no-sharing":
            return float(self.behaviour_map.performance[cell]), math.nan
        posterior = self._posterior()
        return float(posterior.mean[cell]), float(posterior.deviation[cell])

    def _of_group(self) -> Iterable[Message]:
        return (message for message in self._known.values() if message.group == self.group)

    def _is_over(self, message: Message) -> bool:
        """Whether the evaluation has all its trials, or its robot is known to have gone on."""
        if message.trials == self.trials:
            return True
        return message.evaluation < self._evaluations[message.robot][-1]

    def _best_message(self, *, partial: bool = False) -> Message | None:
        """The best evaluation of the group that has all its trials, or one at least."""
        least = 1 if partial else self.trials
        return max(
            (message for message in self._of_group() if message.trials >= least),
            key=lambda message: (_value(message), *_evaluation_and_robot(message)),
            default=None,
        )

    def _observations(self) -> "Observations":
        """The group's evaluations with a trial at least.

        Those that are over come first, by evaluation and robot, so that the
        process has little to do anew when the others improve.
        """
        if self._observed is None:
            messages = sorted(
                (message for message in self._of_group() if message.trials),
                key=lambda message: (not self._is_over(message), *_evaluation_and_robot(message)),
            )
            old = self._settled_evaluations()
            self._observed = Observations(
                cells=np.array([message.cell for message in messages], np.int64),
                values=np.array([message.estimate for message in messages], np.float64),
                noise=np.array([message.noise for message in messages], np.float64),
                settled=sum(
                    message.evaluation < old and self._is_over(message) for message in messages
                ),
            )
        return self._observed

    def _settled_evaluations(self) -> int:
        """Below which number evaluations will hardly change.

        All robots are beyond these, or most are by one more; then the others
        may have fallen silent.
        """
        reached = sorted(
            message.evaluation + (message.trials == self.trials) for message in self._present()
        )
        return max(reached[0], reached[len(reached) // 2] - 1) if reached else 0

    def _posterior(self) -> Posterior:
        observed = self._observations()
        return self._process.posterior(
            observed.cells, observed.values, observed.noise, observed.settled
        )

    def _present(self) -> list[Message]:
        """The latest message about the latest evaluation of each robot of the group."""
        latest = (self._known[robot, told[-1]] for robot, told in sorted(self._evaluations.items()))
        return [message for message in latest if message.group == self.group]

    def _busy(self) -> list[int]:
        """The cells that the group's robots are busy with, in the order of the robots."""
        return [message.cell for message in self._present() if message.trials < self.trials]

    # --- choosing

    def _choose(self) -> int:
        busy = self._busy()
        free = np.ones(len(self._cells), bool)
        free[self._observations().cells] = False
        free[busy] = False
        if self.options.tried_cells == "swarm":
            free[[message.cell for message in self._known.values()]] = False
        candidates = np.flatnonzero(free)
        if not len(candidates):
            best = self._best_message() or self._best_message(partial=True)
            return self.best() if best is None else best.cell
        if self.learner == "random-no-sharing":
            return self._random(candidates)
        posterior = self._posterior()
        bound = upper_confidence_bound(posterior, self.options.alpha)
        if self.learner != "smbo-dec" or not busy:
            return first_best(bound, candidates, self._cells)
        penalties = log_penalty(
            posterior,
            busy,
            self._cells,
            lipschitz=self._lipschitz(posterior),
            maximum=self._maximum(posterior),
            as_in_paper=self.options.penalty == "paper-text",
        )
        return best_penalised(bound, penalties, candidates, self._cells)

    def _random(self, candidates: np.ndarray) -> int:
        ranks = np.sort(self._cells.rank[candidates])
        stream = Stream(self.learner, self.seed, self.robot, self._evaluation + 1)
        return int(self._cells.order[ranks[stream.choice(len(ranks))]])

    def _lipschitz(self, posterior: Posterior) -> float:
        """L: the steepest slope of the mean; 10 with no data."""
        if not len(self._observations().cells):
            return LIPSCHITZ
        return lipschitz(posterior.mean, self._cells)

    def _maximum(self, posterior: Posterior) -> float:
        """M: the best observation, or the highest posterior mean; at least 0."""
        values = self._observations().values
        if self.options.maximum == "posterior-mean":
            values = posterior.mean
        return float(values.max(initial=0.0))

    # --- state

    def state(self) -> dict[str, Any]:
        """What the worker knows, as plain JSON values."""
        return {
            "known": [message.to_json() for message in self.known],
            "outgoing": [message.to_json() for message in self._outgoing],
            "evaluation": self._evaluation,
            "cell": self._cell,
            "done": self._done,
            "performances": list(self._performances),
        }

    def restore(self, state: Any) -> None:
        """Take over a state; InputError, and nothing has changed, when it is impossible."""
        before = vars(self).copy()
        try:
            self._restore(state)
        except InputError:
            vars(self).update(before)
            raise

    def _restore(self, state: Any) -> None:
        state = checked_fields(f"the state of robot {self.robot}", state, WORKER_STATE)
        check_count("evaluation", state["evaluation"], -1, MAX_EVALUATIONS)
        check_count("done", state["done"], 0, self.trials)
        if state["cell"] is not None:
            checked_index("cell", state["cell"], len(self._cells))
        known = [Message.from_json(value) for value in checked_list("known", state["known"])]
        self._forget_all()
        self.receive(*known)
        for message in known:
            if message.robot == self.robot:
                self._remember(message)
        self._outgoing = [
            self._own(Message.from_json(value))
            for value in checked_list("outgoing", state["outgoing"])
        ]
        self._evaluation = state["evaluation"]
        self._cell = state["cell"]
        self._done = state["done"]
        self._performances = [
            checked_performance(value)
            for value in checked_list("performances", state["performances"])
        ]
        self._check_own_messages()

    def _own(self, message: Message) -> Message:
        """The message; InputError when the robot cannot have said it."""
        reason = self.limits.refusal(message)
        if reason is None and message.robot != self.robot:
            reason = f"robot {self.robot} has a message of robot {message.robot} to send; remove it"
        if reason is not None:
            raise InputError(reason)
        return message

    def _check_own_messages(self) -> None:
        """InputError when what the robot does is not what it has said."""
        said = self._known.get((self.robot, self._evaluation))
        expected: tuple[Any, ...] = (-1, None, 0, 0)
        if said is not None:
            before = self._evaluation * self.trials if self.options.running_mean else 0
            busy = said.cell if said.trials < self.trials else None
            expected = (self._evaluations[self.robot][-1], busy, said.trials, before + said.trials)
        present = (self._evaluation, self._cell, self._done, len(self._performances))
        if present != expected:
            raise InputError(
                f"the messages of robot {self.robot} and its evaluation do not fit together; "
                "take the state as it was saved"
            )


def new_process(behaviour_map: BehaviourMap, options: Options) -> GaussianProcess:
    """The Gaussian process of a worker: the map is the prior."""
    return GaussianProcess(cells_of(behaviour_map), behaviour_map.performance, options.length_scale)


def estimate(performances: list[float]) -> tuple[float, float]:
    """Mean over trials and its variance: that of the sample over n; of one trial its square."""
    count = len(performances)
    mean = math.fsum(performances) / count
    if count == 1:
        return mean, mean * mean
    squares = math.fsum((value - mean) ** 2 for value in performances)
    return mean, squares / (count - 1) / count


def _evaluation_and_robot(message: Message) -> tuple[int, int]:
    return message.evaluation, message.robot


def _value(message: Message) -> float:
    assert message.estimate is not None
    return message.estimate
