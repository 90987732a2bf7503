"""Adaptation without resets: one continuous world in which each robot has its own clock.

Nobody stops the swarm. A robot's trials begin and end when its own clock says so,
it is where the trial before has left it, and it chooses its next controller with
what it has heard by then. Until its first trial it has the map's best controller,
and after its last evaluation the best one that it knows of.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Event
from typing import Any, NamedTuple

import numpy as np

from swarmbo.adaptation.learners import DECENTRALISED
from swarmbo.engine.rollout import default_threads
from swarmbo.engine.swarm import Swarm
from swarmbo.errors import InputError
from swarmbo.recovery.runner import Case, Evaluation, Run
from swarmbo.streams import Stream
from swarmbo.world.scenario import MAX_VISITS


class _Entry(NamedTuple):
    """One evaluation of one robot, in items."""

    row: int
    predicted: float
    deviation: float | None
    outcome: float
    best: float
    end: int  # tick


class ContinuousRun(Run):
    """A decentralised learner that copes with a case in one continuous world.

    `advance` goes on until the next robot's trial ends. A trial has the ticks of
    the case's scenario, an evaluation as many trials; the first trials begin at
    random times within the length of a trial.
    """

    def __init__(
        self,
        case: Case,
        name: str,
        *,
        evaluations: int | None = None,
        seed: int = 1,
        options: Mapping[str, Any] | None = None,
        again: bool = False,
    ) -> None:
        super().__init__(
            case, name, evaluations=evaluations, seed=seed, options=options, again=again
        )
        if self.centralised:
            raise InputError(
                f"in a continuous world each robot adapts by itself, which {name} does not; "
                f"name one of {', '.join(DECENTRALISED)}"
            )
        scenario = case.with_noise("continuous", seed)
        ticks = scenario.ticks * scenario.trials * (self.evaluations + 1)
        if ticks > MAX_VISITS // scenario.robots:
            raise InputError(
                f"a continuous world of {ticks:,} ticks is too long; use fewer evaluations"
            )
        self._controllers = case.behaviour_map.controllers()
        self._rows = [case.prior_best] * scenario.robots
        self.swarm = Swarm(replace(scenario, poses=scenario.poses[:1]), self._team_now())
        self._next = {
            robot: Stream("clock", case.replicate, seed, robot).choice(scenario.ticks)
            for robot in self.workers
        }
        self._asked_of: dict[
            int, tuple[float, float | None]
        ] = {}  # what robots expect of their trials
        self._outcomes: dict[int, list[int]] = {robot: [] for robot in self.workers}
        self._items_before = np.zeros(scenario.robots, int)
        self._entries: dict[int, list[_Entry]] = {robot: [] for robot in self.workers}

    @property
    def finished(self) -> bool:
        """Whether all robots have done all their evaluations."""
        return not self._next

    def advance(self) -> None:
        """Go on to the next moment at which some robot's trial begins or ends."""
        now = min(self._next.values())
        self.swarm.advance(now - self.swarm.tick)
        due = [robot for robot in self.workers if self._next.get(robot) == now]
        items = self.swarm.items[0]
        for robot in due:
            if robot in self._asked_of:
                self._end_trial(robot, int(items[robot] - self._items_before[robot]))
            self._items_before[robot] = items[robot]
            self._next[robot] = now + self.case.scenario.ticks
        for robot in due:
            if len(self._outcomes[robot]) == self.case.scenario.trials:
                self._end_evaluation(robot)
        for robot in due:
            if robot in self._next and robot not in self._asked_of:
                self._begin_evaluation(robot)
        team = self._team_now()
        if any(one is not other for one, other in zip(team, self.swarm.team, strict=True)):
            self.swarm.team = team
        self._report()

    def _end_trial(self, robot: int, delivered: int) -> None:
        self.learner.tell(robot, delivered * self.factor)
        self._outcomes[robot].append(delivered)

    def _end_evaluation(self, robot: int) -> None:
        self._entries[robot].append(
            _Entry(
                self._rows[robot],
                *self._asked_of.pop(robot),
                float(np.mean(self._outcomes[robot])),
                self._best(robot),
                self.swarm.tick,
            )
        )
        self._outcomes[robot] = []
        if len(self._entries[robot]) == self.evaluations:
            del self._next[robot]
            self._rows[robot] = int(self.learner.best(robot))

    @property
    def continued_with(self) -> tuple[int, ...]:
        """The rows of the controllers that the robots have now."""
        return tuple(self._rows)

    def _begin_evaluation(self, robot: int) -> None:
        row = int(self.learner.ask(robot))
        self._asked_of[robot] = self._prediction(self.learner.predict(robot, row))
        self._rows[robot] = row

    def _team_now(self) -> list[Any]:
        return [self._controllers[row] for row in self._rows]

    def _report(self) -> None:
        """Add the evaluations that all robots have done by now to those done."""
        robots = self.case.scenario.robots
        while len(self.done) < min(map(len, self._entries.values())):
            number = len(self.done)
            row: list[_Entry | None] = [None] * robots
            for robot, entries in self._entries.items():
                row[robot] = entries[number]
            columns = zip(*(entry or (None,) * len(_Entry._fields) for entry in row), strict=True)
            cells, predicted, deviation, outcome, best, end = columns
            self.done.append(Evaluation(cells, predicted, deviation, outcome, best, end))


class _Recital:
    """A learner that has learnt a recovery by heart: the rows that each robot tries."""

    def __init__(self, cells: Sequence[Sequence[int | None]], last: Sequence[int]) -> None:
        self._rows = [iter(rows) for rows in zip(*cells, strict=True)]
        self._last = last

    def ask(self, robot: int) -> int | None:
        return next(self._rows[robot])

    def predict(self, robot: int, row: int) -> tuple[float, float]:
        return 0.0, 0.0

    def tell(self, robot: int, performance: float) -> None:
        pass

    def best(self, robot: int) -> int:
        return self._last[robot]

    def best_performance(self, robot: int) -> float:
        return 0.0


def recited(
    case: Case, cells: Sequence[Sequence[int | None]], continued_with: Sequence[int], *, seed: int
) -> ContinuousRun:
    """A run that repeats another one: the rows that each robot tried, and has after that."""
    count = len(cells)
    run = ContinuousRun(case, "random-no-sharing", evaluations=count, seed=seed, again=True)
    run.learner = _Recital(cells, continued_with)
    return run


def adapt_continuously(
    runs: Sequence[ContinuousRun],
    *,
    threads: int | None = None,
    progress: Callable[[ContinuousRun], None] | None = None,
) -> None:
    """Advance runs to their end, each in its own world, some at the same time.

    `progress` is called with a run when all its robots have done one more evaluation.
    """
    stop = Event()

    def work(run: ContinuousRun) -> None:
        while not run.finished and not stop.is_set():
            before = len(run.done)
            run.advance()
            if progress is not None and len(run.done) > before:
                progress(run)

    with ThreadPoolExecutor(default_threads() if threads is None else threads) as pool:
        try:
            for future in [pool.submit(work, run) for run in runs]:
                future.result()
        finally:
            stop.set()  # Ctrl-C: let the threads end after their next trial
