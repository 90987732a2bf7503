"""A recovery as something to look at: its trials tick by tick, and what the learner believed.

The engine runs the recorded controllers again, and the learner that chose them
is asked again; nothing here simulates or learns by itself.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from swarmbo.adaptation.options import CENTRALISED
from swarmbo.engine.swarm import Swarm
from swarmbo.errors import InputError, cut, is_finite_number, is_integer, naming, short
from swarmbo.files import check_path, read_json
from swarmbo.maps.behaviour_map import BehaviourMap, load_map
from swarmbo.recovery.continuous import ContinuousRun, recited
from swarmbo.recovery.recovery import REPORT, case_of, complete_report
from swarmbo.recovery.runner import Case, Request, Run
from swarmbo.view.scene import fault_words
from swarmbo.world.scenario import Scenario

MODELLED = ("smbo", "smbo-uniform", "smbo-dec", "smbo-dec-naive", "smbo-no-sharing")
MAX_TRIALS = 100  # of a recovery, of which every tick is kept while it is filmed


@dataclass(frozen=True, eq=False)
class Take:
    """One trial of a team, from the start poses on; arrays are ticks + 1 x robots."""

    x: np.ndarray  # m
    y: np.ndarray  # m
    theta: np.ndarray  # rad
    carrying: np.ndarray  # bool
    items: np.ndarray  # delivered so far in the trial
    team: tuple[int, ...]  # rows of the controllers
    faults: tuple[str, ...]  # per robot, in words
    food: tuple[tuple[float, float, float], ...]  # m

    @property
    def ticks(self) -> int:
        """The length of the trial."""
        return len(self.x) - 1


@dataclass(frozen=True, eq=False)
class Models:
    """What the learner expected of every controller, before and after each evaluation.

    Arrays are (evaluations + 1) x models x rows of the map, in items per robot.
    """

    mean: np.ndarray
    deviation: np.ndarray


@dataclass(frozen=True, eq=False, kw_only=True)
class Footage:
    """All that is shown of a recovery."""

    report: dict[str, Any]  # recovery.json
    case: Case
    trial: int  # which of the trials of each evaluation is shown
    before: Take
    at_fault: Take
    tries: tuple[Take, ...]  # one per evaluation
    after: Take  # with the controllers that were found
    members: tuple[tuple[int, ...], ...]  # the robots that learn together, by model
    models: Models | None  # None: the learner has none, or could not be asked again

    @property
    def behaviour_map(self) -> BehaviourMap:
        """The map that the controllers are from."""
        return self.case.behaviour_map

    @property
    def final(self) -> float:
        """What the recovered swarm delivers, in items per robot, mean over all trials."""
        composed = self.report["composed"]
        return float(self.report["best"] if composed is None else composed)

    def rows(self, evaluation: int) -> list[int | None]:
        """The rows tried in an evaluation (from 0), one per robot."""
        cell = self.report["evaluations"][evaluation]["cell"]
        return list(cell) if isinstance(cell, list) else [cell] * self.case.scenario.robots

    def outcomes(self, evaluation: int) -> list[float]:
        """What came out of an evaluation (from 0): of the swarm, or of each robot that adapts."""
        outcome = self.report["evaluations"][evaluation]["outcome"]
        found = outcome if isinstance(outcome, list) else [outcome]
        return [value for value in found if value is not None]


def load_footage(
    folder: str | os.PathLike[str],
    *,
    behaviour_map: str | os.PathLike[str] | None = None,
    trial: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Footage:
    """The footage of a folder that `swarmbo recover --out` wrote.

    `behaviour_map` is the map's file, if it is not where the recovery says;
    `trial` (from 0) is by default the one nearest to the means of all trials.
    `progress` is called with how many trials are recorded, of how many.
    """
    path = _report_in(folder)
    report = read_json(path)
    with naming(path), complete_report():
        try:
            loaded = load_map(report["map"] if behaviour_map is None else behaviour_map)
        except InputError as error:
            hint = "" if behaviour_map is not None else " or give the map with --map"
            raise InputError(f"the map {error}{hint}") from None
        return film(report, loaded, trial=trial, progress=progress)


def _report_in(folder: str | os.PathLike[str]) -> Path:
    path = Path(folder)
    check_path(path)
    if path.is_dir():
        if not os.path.lexists(path / REPORT):
            raise InputError(
                f"{cut(folder)}: holds no {REPORT}; name a folder that swarmbo recover --out wrote"
            )
        return path / REPORT
    if path.name == REPORT:
        return path  # the file itself will do
    what = "is a file" if os.path.lexists(path) else "there is no such folder"
    raise InputError(f"{cut(folder)}: {what}; name a folder that swarmbo recover --out wrote")


def film(
    report: Mapping[str, Any],
    behaviour_map: BehaviourMap,
    *,
    trial: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Footage:
    """The footage of a recovery.json that was read; `trial` and `progress` as in `load_footage`."""
    with complete_report():
        if is_integer(report["trials"]) and report["trials"] > MAX_TRIALS:
            raise InputError(
                f"has {short(report['trials'])} trials; a replay can show one of at most "
                f"{MAX_TRIALS}"
            )
        case = case_of(report, behaviour_map)
        report = dict(report)
        _check(report, case)
        count = len(report["evaluations"])
        told = progress or (lambda done, of: None)
        takes = _Takes(case, lambda done: told(done, count + 3))
        seed, team = report["seed"], tuple(report["team"])
        alone = report["composed"] is None
        prior = (case.prior_best,) * case.scenario.robots
        before = takes.record(case.healthy, prior)
        at_fault = takes.record(case.scenario, prior)
        after = takes.record(case.scenario if alone else case.with_noise("composed", seed), team)
        trial = _usual_trial([before, at_fault, after]) if trial is None else trial
        if not 0 <= trial < case.scenario.trials:
            raise InputError(
                f"has {case.scenario.trials} trials, 0 to {case.scenario.trials - 1}; "
                f"trial {trial} is none of them"
            )
        members = _members(report, case)
        learn = _learn_continuously if report["continuous"] else _learn
        tries, models = learn(report, case, takes, trial, members)
        return Footage(
            report=report,
            case=case,
            trial=trial,
            before=before.take(trial),
            at_fault=at_fault.take(trial),
            tries=tuple(tries),
            after=after.take(trial),
            members=members,
            models=models,
        )


def _check(report: dict[str, Any], case: Case) -> None:
    """Raise what `complete_report` turns into a sentence when something shown is missing."""
    robots = case.scenario.robots
    if not report["evaluations"] or len(report["team"]) != robots:
        raise ValueError("team or evaluations")
    numbers = ("before", "at_fault", "best", "exhaustive")
    values = [report[name] for name in numbers]
    values += [value for value in [report["composed"]] if value is not None]
    lone = report["learner"] in CENTRALISED
    for entry in report["evaluations"]:
        values.append(entry["swarm_best"])
        for name in ("cell", "outcome", "prediction", "deviation", "best"):
            per_robot = [entry[name]] if lone else entry[name]
            if not isinstance(per_robot, list) or len(per_robot) != (1 if lone else robots):
                raise ValueError(name)
            values += [value for value in per_robot if value is not None]
    for value in values:
        if not is_finite_number(value):
            raise ValueError(short(value))
    for name in ("learner", "disturbance", "map", "version", "device"):
        if not isinstance(report[name], str):
            raise ValueError(name)
    if not is_integer(report["seed"]) or not isinstance(report["options"], dict):
        raise ValueError("seed or options")
    if not isinstance(report["continuous"], bool):
        raise ValueError("continuous")


@dataclass(frozen=True, eq=False)
class _Recording:
    """All trials of a team; arrays are ticks + 1 x trials x robots (x 3)."""

    poses: np.ndarray
    carrying: np.ndarray
    items: np.ndarray
    team: tuple[int, ...]
    faults: tuple[str, ...]
    food: tuple[tuple[float, float, float], ...]

    def take(self, trial: int) -> Take:
        """One of the trials."""
        poses = self.poses[:, trial].copy()
        return Take(
            x=poses[..., 0],
            y=poses[..., 1],
            theta=poses[..., 2],
            carrying=self.carrying[:, trial].copy(),
            items=self.items[:, trial] - self.items[0, trial],
            team=self.team,
            faults=self.faults,
            food=self.food,
        )


class _Recorder:
    """Keeps what a swarm looks like, tick by tick."""

    def __init__(self) -> None:
        self.poses: list[np.ndarray] = []
        self.carrying: list[np.ndarray] = []
        self.items: list[np.ndarray] = []

    def look(self, swarm: Swarm) -> None:
        """Record the present moment."""
        self.poses.append(swarm.poses)
        self.carrying.append(swarm.carrying)
        self.items.append(swarm.items)

    def finish(self, swarm: Swarm, team: Sequence[int]) -> _Recording:
        """What was recorded."""
        return _Recording(
            np.stack(self.poses),
            np.stack(self.carrying),
            np.stack(self.items),
            tuple(team),
            tuple(fault_words(swarm.effects)),
            tuple((disc.x, disc.y, disc.radius) for disc in swarm.food),
        )


class _Takes:
    """Runs teams of a case's map and records them."""

    def __init__(self, case: Case, progress: Callable[[int], None]) -> None:
        self.controllers = case.behaviour_map.controllers()
        self._progress = progress
        self._done = 0

    def record(self, scenario: Scenario, team: Sequence[int]) -> _Recording:
        swarm = Swarm(scenario, [self.controllers[row] for row in team])
        recorder = _Recorder()
        recorder.look(swarm)
        for _ in range(scenario.ticks):
            swarm.advance(1)
            recorder.look(swarm)
        self.count()
        return recorder.finish(swarm, team)

    def count(self) -> None:
        """One more trial is recorded."""
        self._done += 1
        self._progress(self._done)


def _usual_trial(recordings: Sequence[_Recording]) -> int:
    """The trial whose items are nearest to the means over all trials."""
    totals = np.array([recording.items[-1].sum(axis=1) for recording in recordings])
    away = np.abs(totals - totals.mean(axis=1, keepdims=True)).sum(axis=0)
    return int(away.argmin())


def _members(report: dict[str, Any], case: Case) -> tuple[tuple[int, ...], ...]:
    """The robots that learn together: all, those of the same faults, or each by itself."""
    robots = range(case.scenario.robots)
    if report["learner"] in CENTRALISED:
        return (tuple(robots),)
    workers = [robot for robot in robots if case.groups[robot] is not None]
    alone = report["learner"].endswith("no-sharing")
    if alone or any(report["options"].get(name) for name in ("loss", "delay")):
        return tuple((robot,) for robot in workers)
    groups = dict.fromkeys(case.groups[robot] for robot in workers)
    return tuple(
        tuple(robot for robot in workers if case.groups[robot] == group) for group in groups
    )


# --- what was tried ----------------------------------------------------------------------------


class _Beliefs:
    """Keeps what a run's learner expects of all cells."""

    def __init__(self, run: Run, members: Sequence[Sequence[int]]) -> None:
        self._run = run
        self._members = members
        self._kept: list[np.ndarray] = []
        self.look()

    def look(self) -> None:
        """Record what is expected now."""
        run, rows = self._run, range(self._run.case.behaviour_map.filled_cells)
        found = []
        for robots in self._members:
            who = () if run.centralised else (robots[0],)
            found.append([run.learner.predict(*who, row) for row in rows])
        self._kept.append(np.array(found) / run.factor)

    def models(self) -> Models:
        """All that was recorded."""
        kept = np.stack(self._kept)
        return Models(kept[..., 0], kept[..., 1])


def _asked_again(report: dict[str, Any], case: Case, kind: type[Run]) -> Run | None:
    """The run that chose the controllers, at its beginning; None for a learner without a model."""
    if report["learner"] not in MODELLED:
        return None
    return kind(
        case,
        report["learner"],
        evaluations=len(report["evaluations"]),
        seed=report["seed"],
        options=report["options"],
        again=True,
    )


def _learn(
    report: dict[str, Any],
    case: Case,
    takes: _Takes,
    trial: int,
    members: Sequence[Sequence[int]],
) -> tuple[list[Take], Models | None]:
    run = _asked_again(report, case, Run)
    beliefs = _Beliefs(run, members) if run is not None else None
    tries = []
    for number, entry in enumerate(report["evaluations"]):
        request = _recorded(report, case, number)
        if run is not None and run.ask().team != request.team:
            run = beliefs = None  # another kind of device: the learner would choose otherwise
        recording = takes.record(request.scenario, request.team)
        if run is not None and beliefs is not None:
            items = recording.items[-1]
            if run.centralised:  # what was recorded, whatever the device
                items = np.full(items.shape, float(entry["outcome"]))
            run.tell(items)
            beliefs.look()
        tries.append(recording.take(trial))
    return tries, None if beliefs is None else beliefs.models()


def _recorded(report: dict[str, Any], case: Case, number: int) -> Request:
    """What was evaluated, from the record."""
    cell = report["evaluations"][number]["cell"]
    if report["composed"] is None:
        return case.swarm_of(cell)
    scenario = case.with_noise("evaluation", report["seed"], number)
    rows = tuple(case.prior_best if row is None else row for row in cell)
    return Request(case.behaviour_map, scenario, rows)


class _Watched(Swarm):
    """A swarm of which stretches of time are recorded."""

    stretches: tuple[tuple[int, int, _Recorder], ...] = ()  # first and last tick of each

    def advance(self, ticks: int) -> None:
        end = self.tick + ticks
        while self.tick < end:
            later = [first for first, last, _ in self.stretches if last > self.tick]
            ahead = min(later, default=end) - self.tick
            super().advance(min(max(ahead, 1), end - self.tick))
            for first, last, recorder in self.stretches:
                if first <= self.tick <= last:
                    recorder.look(self)


def _learn_continuously(
    report: dict[str, Any],
    case: Case,
    takes: _Takes,
    trial: int,
    members: Sequence[Sequence[int]],
) -> tuple[list[Take], Models | None]:
    """Stretches of one continuous world: of each evaluation, a trial's length in its midst."""
    run = _asked_again(report, case, ContinuousRun)
    if isinstance(run, ContinuousRun):
        beliefs = _Beliefs(run, members)
        tries = _stretches(report, case, run, takes, beliefs.look)
        cells = [list(each.cell) for each in run.done]
        if cells == [entry["cell"] for entry in report["evaluations"]]:
            return tries, beliefs.models()
    cells = [entry["cell"] for entry in report["evaluations"]]
    again = recited(case, cells, report["continued_with"], seed=report["seed"])
    return _stretches(report, case, again, takes, lambda: None), None


def _stretches(
    report: dict[str, Any],
    case: Case,
    run: ContinuousRun,
    takes: _Takes,
    learnt: Callable[[], None],
) -> list[Take]:
    scenario = case.scenario
    length = scenario.ticks
    # All robots are in the midst of an evaluation a trial's length after the first could begin it.
    starts = [(number * scenario.trials + 1) * length for number in range(run.evaluations)]
    swarm = run.swarm = _Watched(run.swarm.scenario, run.swarm.team)
    swarm.stretches = tuple((start, start + length, _Recorder()) for start in starts)
    while not run.finished:
        before = len(run.done)
        run.advance()
        for _ in range(len(run.done) - before):
            learnt()
            takes.count()
    swarm.advance(max(starts[-1] + length - swarm.tick, 0))  # where an evaluation is one trial
    return [
        recorder.finish(
            swarm, [case.prior_best if row is None else row for row in entry["cell"]]
        ).take(0)
        for (_, _, recorder), entry in zip(swarm.stretches, report["evaluations"], strict=True)
    ]
