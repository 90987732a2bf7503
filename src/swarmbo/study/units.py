"""A unit of a study's work: some cases, and all that is to be found out about them.

A unit is plain data, and what comes out depends on nothing else: so it can be
done in any thread, process or machine, and again when its worker has died.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from swarmbo.errors import InputError
from swarmbo.maps.behaviour_map import BehaviourMap
from swarmbo.paper.conditions import condition_arena
from swarmbo.recovery.runner import Case, Evaluator, References, Run, adapt, compose, references
from swarmbo.study.definition import (
    CaseKey,
    Definition,
    RunKey,
    definition_from_json,
    learner_seed,
)
from swarmbo.study.journal import FinishedCondition, FinishedEvaluation, FinishedRun, versions
from swarmbo.world.arena import FORAGING
from swarmbo.world.disturbance import from_json

TASKS = {"cpu": 1, "gpu": 64}  # of a unit: a few seconds of work, or enough to fill the device


class Task(NamedTuple):
    """What is to be found out about a case."""

    case: CaseKey
    with_references: bool
    runs: tuple[RunKey, ...]


class Unit(NamedTuple):
    """Tasks that are done together."""

    study: str  # the definition, as JSON
    tasks: tuple[Task, ...]
    device: str  # "cpu" or "gpu"
    versions: Mapping[str, str]  # that the study was begun with


class Done(NamedTuple):
    """What came out of a unit."""

    conditions: list[FinishedCondition]
    runs: list[FinishedRun]


def make_units(
    definition: Definition,
    runs: Iterable[RunKey],
    cases: Iterable[CaseKey],
    *,
    device: str,
    cells: Mapping[str, int],
) -> list[Unit]:
    """The work that these runs, and the references of these cases, are: the longest first.

    `cells` are the sizes of the maps. Centralised runs are with their references,
    after which they take no time; the decentralised runs of a case are together.
    """
    wanted: dict[tuple[CaseKey, str], list[RunKey]] = {(case, "1"): [] for case in cases}
    searched = {case for case, _ in wanted}
    for key in runs:
        wanted.setdefault((key.case, definition.variants[key.variant].table), []).append(key)
    tasks = [
        Task(case, table == "1" and case in searched, tuple(keys))
        for (case, table), keys in wanted.items()
    ]
    tasks.sort(key=lambda task: -task_cost(definition, task, cells))
    study = json.dumps(definition.to_json())
    size = TASKS[device]
    return [
        Unit(study, tuple(tasks[first : first + size]), device, versions())
        for first in range(0, len(tasks), size)
    ]


def task_cost(definition: Definition, task: Task, cells: Mapping[str, int]) -> float:
    """About how many robot-ticks a task takes."""
    kind = task.case.disturbance
    arena = FORAGING if kind in definition.given else condition_arena(kind)
    ticks = arena.ticks if definition.ticks is None else definition.ticks
    evaluations = 1.0 + cells[task.case.map] * task.with_references
    for key in task.runs:
        if definition.variants[key.variant].table != "1":
            evaluations += 2 * definition.evaluations  # teams of their own fill the engine less
        elif not task.with_references:
            evaluations += definition.evaluations
    return evaluations * definition.trials * arena.robots * ticks


def case_of(definition: Definition, key: CaseKey, behaviour_map: BehaviourMap) -> Case:
    """The case that a key names."""
    given = definition.given.get(key.disturbance)
    return Case.of(
        behaviour_map,
        f"{key.disturbance}:{key.condition}" if given is None else from_json(given),
        replicate=key.replicate,
        noise=definition.noise,
        robot=definition.robot_model(),
        trials=definition.trials,
        ticks=definition.ticks,
    )


def run_of(definition: Definition, key: RunKey, case: Case) -> Run:
    """The run that a key names."""
    variant = definition.variants[key.variant]
    return Run(
        case,
        variant.learner,
        evaluations=definition.evaluations,
        seed=learner_seed(key),
        options=variant.options,
    )


def work(
    unit: Unit, maps: Mapping[str, bytes], still_wanted: Callable[[], None] | None = None
) -> Done:
    """Do a unit, in one thread. `maps` are the contents of their files, by name.

    `still_wanted` is called now and then; an exception that it raises ends the work.
    """
    for name, mine in versions().items():
        if mine != unit.versions[name]:
            raise InputError(
                f"a worker has {name} {mine}, not {unit.versions[name]}; "
                "install the same versions everywhere"
            )
    ask = still_wanted or (lambda: None)
    definition = _definition(unit.study)
    cases = [case_of(definition, task.case, _map(maps[task.case.map])) for task in unit.tasks]
    evaluator = Evaluator(
        threads=1, device=unit.device, robots=max(case.scenario.robots for case in cases)
    )
    compared = [
        (task.case, case)
        for task, case in zip(unit.tasks, cases, strict=True)
        if task.with_references
    ]
    found = references([case for _, case in compared], evaluator, progress=lambda _: ask())
    keys, runs = [], []
    for task, case in zip(unit.tasks, cases, strict=True):
        for key in task.runs:
            keys.append(key)
            runs.append(run_of(definition, key, case))
    adapt(runs, evaluator, progress=lambda _: ask())
    composed = compose(runs, evaluator)
    return Done(
        [_condition(key, line) for (key, _), line in zip(compared, found, strict=True)],
        [_finished(*entry) for entry in zip(keys, runs, composed, strict=True)],
    )


@lru_cache(maxsize=4)
def _definition(text: str) -> Definition:
    return definition_from_json(json.loads(text))


@lru_cache(maxsize=64)
def _map(content: bytes) -> BehaviourMap:
    return BehaviourMap.from_bytes(content)


def _condition(key: CaseKey, line: References) -> FinishedCondition:
    return FinishedCondition(key, line.before, line.at_fault, line.exhaustive, line.exhaustive_row)


def _finished(key: RunKey, run: Run, composed: float | None) -> FinishedRun:
    rows: list[FinishedEvaluation] = []
    for number, each in enumerate(run.done, 1):
        robots: Sequence[int] = [-1] if run.centralised else range(len(each.cell))
        columns: Any = zip(robots, each.cell, each.outcome, each.best, strict=True)
        rows += [FinishedEvaluation(number, *column) for column in columns]
    return FinishedRun(
        key=key,
        learner=run.name,
        learner_seed=run.seed,
        robots=run.case.scenario.robots,
        best=run.best,
        composed=composed,
        team=run.final_team(),
        evaluations=tuple(rows),
    )
