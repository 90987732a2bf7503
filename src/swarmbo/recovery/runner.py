"""Adaptation in the simulator: learners ask, the engine evaluates, learners are told.

A `Case` is a map's swarm in a disturbed world, a `Run` a learner that copes with
it. `adapt` advances any number of runs together, so that the engine is full.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy as np

from swarmbo.adaptation.learners import CENTRALISED, DECENTRALISED, LEARNERS, learner
from swarmbo.adaptation.options import Options
from swarmbo.controller.genomes import Genomes
from swarmbo.engine.rollout import Batch, choose_device, rollouts
from swarmbo.errors import InputError, is_integer, naming, short
from swarmbo.maps.behaviour_map import BehaviourMap
from swarmbo.paper.conditions import EVALUATIONS, NOISE, check_noise, read_disturbance
from swarmbo.streams import Stream
from swarmbo.world.arena import FORAGING, Arena
from swarmbo.world.disturbance import HEALTHY, SENSOR_FAULTS, Disturbance, Effects
from swarmbo.world.robot import THYMIO, Robot
from swarmbo.world.scenario import TRIALS, Scenario

# --- what there is to cope with ----------------------------------------------------------------


@dataclass(frozen=True, eq=False, kw_only=True)
class Case:
    """A map's swarm in a disturbed world.

    Poses and, unless noise is fresh, noise key of the scenario are the replicate's,
    so that without a disturbance every controller delivers what the map says.
    """

    behaviour_map: BehaviourMap
    scenario: Scenario
    replicate: int

    @classmethod
    def of(
        cls,
        behaviour_map: BehaviourMap,
        disturbance: str | Sequence[Disturbance],
        *,
        trials: int = TRIALS,
        ticks: int | None = None,
        replicate: int | None = None,
        noise: str = NOISE[0],
        robot: Robot = THYMIO,
    ) -> "Case":
        """The swarm of a map under KIND:INDEX, FILE.json or given disturbances.

        The replicate is by default the map's seed, or 1. `ticks` defaults to those of
        the arena; a condition of a 2x kind has its own arena and number of robots.
        `noise` is "replicate" or "fresh": the replicate's, which the map was evolved
        with, or noise that it never met.
        """
        if behaviour_map.genomes is None:
            raise InputError("the map holds no controllers; use one that was saved with them")
        check_noise(noise)
        replicate = replicate_of(behaviour_map) if replicate is None else replicate
        disturbances: tuple[Disturbance, ...]
        arena: Arena | None = None
        if isinstance(disturbance, str):
            disturbances, arena = read_disturbance(disturbance, replicate)
        else:
            disturbances = tuple(disturbance)
        with naming(disturbance if isinstance(disturbance, str) else "the disturbance"):
            scenario = Scenario.draw(
                seed=replicate,
                arena=arena or FORAGING,
                robots=behaviour_map.robots if arena is None else arena.robots,
                trials=trials,
                ticks=ticks,
                robot=robot,
                disturbances=disturbances,
                noise_key=None if noise == NOISE[0] else Stream("fresh", replicate).key(),
            )
        return cls(behaviour_map=behaviour_map, scenario=scenario, replicate=replicate)

    @cached_property
    def healthy(self) -> Scenario:
        """The same world before anything broke."""
        scenario = self.scenario
        return Scenario.draw(
            seed=self.replicate,
            arena=scenario.arena,
            robots=scenario.robots,
            trials=scenario.trials,
            ticks=scenario.ticks,
            robot=scenario.robot,
            noise_key=scenario.noise_key,
        )

    @cached_property
    def groups(self) -> tuple[str | None, ...]:
        """Per robot, its faults in words; None for one that has lost its controller."""
        return groups_of(self.scenario.effects())

    @cached_property
    def prior_best(self) -> int:
        """The row of the map's best controller: of equal ones, that of the first cell."""
        performance, cells = self.behaviour_map.performance, self.behaviour_map.cells
        ties = np.flatnonzero(performance == performance.max())
        return int(ties[np.lexsort(cells[ties].T[::-1])[0]])

    def with_noise(self, *name: str | int) -> Scenario:
        """The same world with other noise, named by words and integers.

        The same object for the same name while it is in use: its constants are made once.
        """
        key = Stream(*name, self.replicate).key()
        scenario = self._in_use.get(key)
        if scenario is None:
            scenario = self._in_use[key] = replace(self.scenario, noise_key=key)
        return scenario

    @cached_property
    def _in_use(self) -> WeakValueDictionary[int, Scenario]:
        return WeakValueDictionary()

    def swarm_of(self, row: int, scenario: Scenario | None = None) -> "Request":
        """The question how the controller of a row does when all robots have it."""
        where = self.scenario if scenario is None else scenario
        return Request(self.behaviour_map, where, (row,) * where.robots)


def replicate_of(behaviour_map: BehaviourMap) -> int:
    """The replicate that a map belongs to: its seed, or 1."""
    seed = behaviour_map.made.get("seed")
    return 1 if seed is None else int(seed)


def groups_of(effects: Effects) -> tuple[str | None, ...]:
    """Per robot, its faults in words: robots of equal words can learn from each other.

    None for a robot that has lost its controller.
    """
    labels: list[str | None] = []
    for robot in range(effects.robots):
        faults = []
        for sensor, codes in (("proximity", effects.proximity), ("ground", effects.ground)):
            if codes[robot]:
                faults.append(f"{sensor} {SENSOR_FAULTS[codes[robot]]}")
        left, right = effects.wheel_gain[robot].tolist()
        if (left, right) != (1, 1):
            faults.append(f"wheels {left:g} {right:g}")
        healthy = effects.software[robot] == HEALTHY
        labels.append((" + ".join(faults) or "no fault") if healthy else None)
    return tuple(labels)


# --- evaluating --------------------------------------------------------------------------------


class Request(NamedTuple):
    """A team to evaluate: rows of a map, one per robot."""

    behaviour_map: BehaviourMap
    scenario: Scenario
    team: tuple[int, ...]


class Evaluator:
    """Evaluates teams in many scenarios at once, each team in a scenario only once.

    What it has found is remembered for as long as the scenario is in use.
    """

    def __init__(self, *, threads: int | None = None, device: str = "cpu", robots: int = 1) -> None:
        self.device = choose_device(device, robots=robots)
        self.threads = threads
        self._known: WeakKeyDictionary[Scenario, dict[tuple[Any, ...], np.ndarray]] = (
            WeakKeyDictionary()
        )

    def items(
        self, requests: Sequence[Request], progress: Callable[[int], None] | None = None
    ) -> list[np.ndarray]:
        """Per request trials x robots: the items that each robot delivered.

        `progress` is called with the number of teams simulated so far.
        """
        wanted: dict[tuple[Scenario, BehaviourMap], dict[tuple[int, ...], None]] = {}
        for behaviour_map, scenario, team in requests:
            if (behaviour_map, team) not in self._known.setdefault(scenario, {}):
                wanted.setdefault((scenario, behaviour_map), {})[team] = None
        batches = [
            Batch(scenario, _genomes(behaviour_map), np.array(list(teams), np.int32))
            for (scenario, behaviour_map), teams in wanted.items()
        ]
        results = rollouts(batches, threads=self.threads, device=self.device, progress=progress)
        for ((scenario, behaviour_map), teams), result in zip(wanted.items(), results, strict=True):
            found = result.items.astype(np.int32)
            for team, items in zip(teams, found, strict=True):
                self._known[scenario][behaviour_map, team] = items
        return [self._known[scenario][behaviour, team] for behaviour, scenario, team in requests]


def _genomes(behaviour_map: BehaviourMap) -> Genomes:
    assert behaviour_map.genomes is not None  # Case.of has checked
    return behaviour_map.genomes


# --- learning ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Evaluation:
    """What was tried, what the learner expected and what came out, in items per robot.

    A value per robot, None for one that has lost its controller; of a
    centralised learner one value, of the whole swarm.
    """

    cell: tuple[int | None, ...]  # rows of the map
    prediction: tuple[float | None, ...]  # before the evaluation
    deviation: tuple[float | None, ...]  # standard deviation of the prediction
    outcome: tuple[float | None, ...]  # mean over the trials
    best: tuple[float | None, ...]  # the best outcome so far that it knows of
    end: tuple[int | None, ...] = ()  # tick when it ended, of one continuous world


class Run:
    """A learner that copes with a case: `ask` for what to evaluate, `tell` the items.

    `best` is in items per robot, over all robots. InputError for more evaluations
    than `most_evaluations`, except of a run that is repeated: `again`. Left out,
    they are 30, or as many as these.
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
        if evaluations is not None and (not is_integer(evaluations) or evaluations < 1):
            raise InputError(f"evaluations is {short(evaluations)}; give an integer, at least 1")
        self.case = case
        self.name = name
        self.seed = seed
        self.done: list[Evaluation] = []
        self.learner = make_learner(case, name, seed=seed, options=options or {})
        most = most_evaluations(case, name, options or {})
        self.evaluations = min(EVALUATIONS, most) if evaluations is None else evaluations
        if self.evaluations > most and not again:
            raise InputError(
                f"evaluations is {short(evaluations)}, but after {most} {name} has tried all "
                f"{case.behaviour_map.filled_cells} cells of the map; give {most} at most"
            )
        self.factor = float(case.scenario.robots)  # makes a robot's items a swarm's
        if not self.centralised:
            self.factor = self.learner.observation_factor
        self._asked: tuple[Any, ...] = ()

    @property
    def centralised(self) -> bool:
        """Whether all robots have the same controller."""
        return self.name in CENTRALISED

    @property
    def finished(self) -> bool:
        """Whether all evaluations are done."""
        return len(self.done) == self.evaluations

    @property
    def workers(self) -> list[int]:
        """The robots that have a controller."""
        return [robot for robot, group in enumerate(self.case.groups) if group is not None]

    @property
    def best(self) -> float:
        """Mean over all robots of the best outcome that each knows of, in items."""
        if not self.done:
            return 0.0
        return swarm_mean(self.done[-1].best, self.case.scenario.robots)

    def ask(self) -> Request:
        """What to evaluate next."""
        if self.centralised:
            row = int(self.learner.ask())
            self._asked = (row, *self._predictions([self.learner.predict(row)]))
            return self.case.swarm_of(row)
        rows: list[int | None] = [None] * self.case.scenario.robots
        expected: list[Any] = [None] * len(rows)
        for robot in self.workers:
            rows[robot] = int(self.learner.ask(robot))
            expected[robot] = self.learner.predict(robot, rows[robot])
        self._asked = (tuple(rows), *self._predictions(expected))
        scenario = self.case.with_noise("evaluation", self.seed, len(self.done))
        return Request(self.case.behaviour_map, scenario, self._team(rows))

    def tell(self, items: np.ndarray) -> None:
        """Take in what each robot delivered, trials x robots."""
        rows, predicted, deviation = self._asked
        robots = items.shape[1]
        if self.centralised:
            total = float(items.sum(axis=1).mean())
            self.learner.tell(rows, total)
            outcome = (total / robots,)
            self.done.append(Evaluation((rows,), predicted, deviation, outcome, (self._best(),)))
            return
        for trial in items.tolist():
            for robot in self.workers:
                self.learner.tell(robot, trial[robot] * self.factor)
        means = items.mean(axis=0).tolist()
        alive = set(self.workers)
        own = tuple(means[robot] if robot in alive else None for robot in range(robots))
        best = tuple(self._best(robot) if robot in alive else None for robot in range(robots))
        self.done.append(Evaluation(rows, predicted, deviation, own, best))

    def final_team(self) -> tuple[int, ...]:
        """The rows of the controllers that the learner would use from now on, one per robot."""
        robots = self.case.scenario.robots
        if self.centralised:
            return (int(self.learner.best()),) * robots
        rows: list[int | None] = [None] * robots
        for robot in self.workers:
            rows[robot] = int(self.learner.best(robot))
        return self._team(rows)

    def composed(self) -> Request | None:
        """The question how the final team does together; None for a centralised learner."""
        if self.centralised:
            return None
        scenario = self.case.with_noise("composed", self.seed)
        return Request(self.case.behaviour_map, scenario, self.final_team())

    def _team(self, rows: Sequence[int | None]) -> tuple[int, ...]:
        return tuple(self.case.prior_best if row is None else row for row in rows)

    def _best(self, *robot: int) -> float:
        return float(self.learner.best_performance(*robot)) / self.factor

    def _predictions(self, expected: Sequence[Any]) -> tuple[tuple[float | None, ...], ...]:
        """Means and deviations in items per robot, None where the learner expects nothing."""
        pairs = [(None, None) if pair is None else self._prediction(pair) for pair in expected]
        return tuple(zip(*pairs, strict=True))

    def _prediction(self, pair: tuple[float, float]) -> tuple[float, float | None]:
        mean, deviation = pair
        known = None if math.isnan(deviation) else float(deviation) / self.factor
        return float(mean) / self.factor, known


def per_robot(items: np.ndarray) -> float:
    """Mean over the trials of the items of all robots (trials x robots), per robot."""
    return float(items.sum(axis=1).mean()) / items.shape[1]


def swarm_mean(values: Sequence[float | None], robots: int) -> float:
    """One value for the swarm: a lone one as it is, else the mean; who has none counts 0."""
    if len(values) == 1:
        return float(values[0] or 0)
    return sum(value or 0 for value in values) / robots


def make_learner(case: Case, name: str, *, seed: int, options: Mapping[str, Any]) -> Any:
    """The learner of that name for a case; InputError for options that it does not have."""
    if name not in LEARNERS:
        raise InputError(f"there is no learner {short(name)}; name one of {', '.join(LEARNERS)}")
    if not any(group is not None for group in case.groups):
        raise InputError("all robots have lost their controller; leave at least one to adapt")
    Options.of(name, dict(options))  # before they could be taken for other arguments of `learner`
    groups = case.groups if name in DECENTRALISED else None
    return learner(
        name,
        case.behaviour_map,
        robots=case.scenario.robots,
        groups=groups,
        trials=case.scenario.trials,
        seed=seed,
        **options,
    )


def most_evaluations(case: Case, name: str, options: Mapping[str, Any]) -> int:
    """How many evaluations a learner can make sense of.

    Of a centralised one as many as there are cells: another of the same cell has
    the same outcome. Robots with a controller each meet fresh noise, so 30 are
    right in any case, and more as long as a group has a cell left to try.
    """
    if name in CENTRALISED:
        return case.behaviour_map.filled_cells
    return max(EVALUATIONS, _exhausted_after(case, name, Options.of(name, dict(options))))


def _exhausted_after(case: Case, name: str, options: Options) -> int:
    """After how many evaluations the robots have no cell left to try, in any group.

    Robots that know of each other's cells try all of them together. Where messages
    are lost or late a robot may try what another has tried, but nothing twice.
    """
    groups = Counter(group for group in case.groups if group is not None)
    if options.loss or options.delay or not groups:
        together = 1
    elif options.tried_cells == "swarm":
        together = groups.total()
    else:
        together = 1 if name.endswith("no-sharing") else min(groups.values())
    return -(-case.behaviour_map.filled_cells // together)


# --- many at once ------------------------------------------------------------------------------


def adapt(
    runs: Sequence[Run],
    evaluator: Evaluator,
    *,
    progress: Callable[[Sequence[Run]], None] | None = None,
) -> None:
    """Advance runs to their end, all together: an evaluation of each at a time.

    `progress` is called with the runs that have just finished an evaluation.
    """
    while waiting := [run for run in runs if not run.finished]:
        found = evaluator.items([run.ask() for run in waiting])
        for run, items in zip(waiting, found, strict=True):
            run.tell(items)
        if progress is not None:
            progress(waiting)


def compose(runs: Sequence[Run], evaluator: Evaluator) -> list[float | None]:
    """What the swarms deliver together after adaptation, items per robot.

    Each robot has the best controller that it knows of; the replicate's poses,
    other noise. None for a centralised learner.
    """
    requests = [run.composed() for run in runs]
    found = iter(evaluator.items([request for request in requests if request is not None]))
    return [None if request is None else per_robot(next(found)) for request in requests]


@dataclass(frozen=True, eq=False)
class References:
    """What a run is compared with, in items per robot."""

    before: float  # the map's best controller in the healthy swarm
    at_fault: float  # the same under the disturbance
    by_row: np.ndarray = field(repr=False)  # every controller of the map under the disturbance

    @property
    def exhaustive(self) -> float:
        """The best controller under the disturbance, for a swarm in which all have it."""
        return float(self.by_row.max())

    @property
    def exhaustive_row(self) -> int:
        """The row of that controller, the first of equals."""
        return int(self.by_row.argmax())


def references(
    cases: Sequence[Case],
    evaluator: Evaluator,
    *,
    progress: Callable[[int], None] | None = None,
) -> list[References]:
    """Evaluate every controller of the maps under the disturbances, all cases at once.

    The evaluator remembers them: centralised runs with it take no time after that.
    """
    requests: list[Request] = []
    for case in cases:
        requests.append(case.swarm_of(case.prior_best, case.healthy))
        requests += [case.swarm_of(row) for row in range(case.behaviour_map.filled_cells)]
    found = iter(evaluator.items(requests, progress))
    results = []
    for case in cases:
        before = per_robot(next(found))
        by_row = np.array([per_robot(next(found)) for _ in range(case.behaviour_map.filled_cells)])
        results.append(References(before, float(by_row[case.prior_best]), by_row))
    return results
