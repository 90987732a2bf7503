"""Running a study: what is not in its journal yet is done, and written there."""

import os
from collections.abc import Collection, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from threading import Event
from time import perf_counter

from swarmbo.engine.rollout import choose_device, default_threads
from swarmbo.errors import InputError, naming
from swarmbo.maps.behaviour_map import BehaviourMap
from swarmbo.recovery.recovery import checksum
from swarmbo.recovery.runner import Case
from swarmbo.study.cluster import check_address, connected, is_local, on_cluster
from swarmbo.study.definition import Definition, RunKey, Selection
from swarmbo.study.journal import (
    FinishedRun,
    Journal,
    check_study_folder,
    has_journal,
    reading,
    stored,
)
from swarmbo.study.units import Done, Task, Unit, case_of, make_units, run_of, task_cost, work
from swarmbo.world.arena import FORAGING_2X

Found = Mapping[RunKey, tuple[float, float | None]]  # best and composed, items per robot


@dataclass(frozen=True, eq=False)
class Plan:
    """What is to be done, and what is done already."""

    definition: Definition
    runs: Sequence[RunKey]  # that were selected
    before: Found  # those of them that were done before
    cost: float  # robot-ticks, about, of what is left
    device: str


class Watcher:
    """Is told how a study goes; these methods do nothing."""

    def begin(self, plan: Plan) -> None:
        """The work begins."""

    def finished(self, run: FinishedRun) -> None:
        """One more run is in the journal."""

    def advanced(self, cost: float) -> None:
        """So many robot-ticks, about, are done in all."""

    def workers(self, count: int) -> None:
        """So many workers of a Dask cluster are there, perhaps as many as before."""


def run_study(
    definition: Definition,
    folder: str | os.PathLike[str],
    *,
    selection: Selection | None = None,
    threads: int | None = None,
    dask: str | None = None,
    device: str = "auto",
    watcher: Watcher | None = None,
) -> Plan:
    """Run a study, or what is missing of it, with its journal in a folder.

    `threads` units run at the same time (default: all cores), or as many as the
    workers of a Dask cluster take: `dask` is its address, or local:N. Neither
    changes the result. `device` "auto" is the one on which the study was begun.
    """
    selection = selection or Selection()
    watcher = watcher or Watcher()
    if threads is not None and threads < 1:
        raise InputError(f"the number of threads is {threads}; give at least 1")
    if dask is not None:
        if threads is not None:
            raise InputError("give either threads or dask, not both")
        check_address(dask)
    selection.check(definition)
    check_study_folder(folder)
    runs = definition.selected(selection)
    maps = load_maps(definition, runs)
    check_cases(definition, runs, maps)
    robots = max(
        [FORAGING_2X.robots * _has_2x(definition), *(each.robots for each in maps.values())]
    )
    device = _device(device, folder, robots, on_workers=dask is not None)
    contents = {name: behaviour_map.to_bytes() for name, behaviour_map in maps.items()}
    cells = {name: behaviour_map.filled_cells for name, behaviour_map in maps.items()}
    checksums = {
        (entry.name, entry.replicate): (
            checksum(maps[entry.name]),
            maps[entry.name].filled_cells,
            maps[entry.name].robots,
        )
        for entry in definition.maps
        if entry.name in maps
    }
    with ExitStack() as stack:
        client = None
        if dask is not None and not is_local(dask):
            client = stack.enter_context(connected(dask))  # before anything is written
        journal = stack.enter_context(Journal.open(folder))
        journal.begin(definition, device, checksums)
        done = journal.finished_runs()
        left = [key for key in runs if key not in done]
        known = journal.finished_conditions()
        cases = dict.fromkeys(key.case for key in runs if key.case not in known)
        units = make_units(definition, left, cases, device=device, cells=cells)
        costs = {task: task_cost(definition, task, cells) for unit in units for task in unit.tasks}
        before = {key: done[key] for key in runs if key in done}
        plan = Plan(definition, runs, before, sum(costs.values()), device)
        watcher.begin(plan)
        if not units:
            return plan
        journal.begin_session(
            {"selection": asdict(selection), "threads": threads, "dask": dask, "device": device}
        )
        if dask is not None:
            client = client or stack.enter_context(connected(dask))
            results = on_cluster(units, contents, client, watcher.workers)
        else:
            count = default_threads() if threads is None else threads
            results = in_threads(units, contents, 1 if device == "gpu" else count)
        _write(results, journal, costs, watcher)
        journal.check_written(len(done) + len(left))
    return plan


def _write(
    results: Generator[tuple[Unit, Done], None, None],
    journal: Journal,
    costs: Mapping[Task, float],
    watcher: Watcher,
) -> None:
    """Write what units have found into the journal, as they are finished."""
    start = perf_counter()
    spent = 0.0
    with closing(results):
        for unit, done in results:
            for condition in done.conditions:
                journal.add_condition(condition)
            for run in done.runs:
                journal.add_run(run, perf_counter() - start)
                watcher.finished(run)
            spent += sum(costs[task] for task in unit.tasks)
            watcher.advanced(spent)
    journal.note_seconds(perf_counter() - start)


class _Stopped(Exception):  # noqa: N818 - not an error
    """Nobody waits for the result any more."""


def in_threads(
    units: Sequence[Unit], contents: Mapping[str, bytes], threads: int
) -> Generator[tuple[Unit, Done], None, None]:
    """Units with what came out, as they are finished, by threads of this process.

    A unit runs in one thread: while its learners think, in Python, the others simulate.
    """
    stop = Event()

    def still_wanted() -> None:
        if stop.is_set():
            raise _Stopped

    pool = ThreadPoolExecutor(threads)
    try:
        futures = {
            pool.submit(work, unit, _needed(unit, contents), still_wanted): unit for unit in units
        }
        for future in as_completed(list(futures)):
            yield futures.pop(future), future.result()
    finally:
        stop.set()
        pool.shutdown(wait=False, cancel_futures=True)


def _needed(unit: Unit, contents: Mapping[str, bytes]) -> dict[str, bytes]:
    return {task.case.map: contents[task.case.map] for task in unit.tasks}


def load_maps(definition: Definition, runs: Collection[RunKey]) -> dict[str, BehaviourMap]:
    """The maps that runs need, by name; InputError when one is not there."""
    names = {key.map for key in runs}
    return {entry.name: entry.load() for entry in definition.maps if entry.name in names}


def check_cases(
    definition: Definition, runs: Collection[RunKey], maps: Mapping[str, BehaviourMap]
) -> None:
    """InputError when a map's swarm cannot have a disturbance, or a learner not cope with it."""
    seen: set[tuple[object, ...]] = set()
    for key in runs:
        kind: tuple[object, ...] = (key.disturbance, key.map, key.replicate)
        if _may_run_out(definition, maps[key.map]):  # that depends on groups and learner
            kind = (*key.case, key.variant)
        if kind not in seen:
            seen.add(kind)
            with naming(key.map):
                run_of(definition, key, case_of(definition, key.case, maps[key.map]))


def _may_run_out(definition: Definition, behaviour_map: BehaviourMap) -> bool:
    """Whether the robots of some run may come to have no cell of the map left to try."""
    robots = max(behaviour_map.robots, FORAGING_2X.robots)
    return definition.evaluations * robots > behaviour_map.filled_cells


def first_case(plan: Plan) -> Case:
    """The case of the first run of a plan."""
    key = plan.runs[0]
    return case_of(plan.definition, key.case, load_maps(plan.definition, [key])[key.map])


def _device(device: str, folder: str | os.PathLike[str], robots: int, *, on_workers: bool) -> str:
    """The device to use; on the workers of a cluster the GPU only if it is asked for."""
    if device == "auto" and has_journal(folder):
        with reading(folder) as rows:
            begun_on = stored(rows, "device")
        device = "auto" if begun_on is None else begun_on
    with naming("--device"):
        if on_workers:
            if device not in ("auto", "cpu", "gpu"):
                return choose_device(device)  # says what would be right
            return "gpu" if device == "gpu" else "cpu"
        return choose_device(device, robots=robots)


def _has_2x(definition: Definition) -> bool:
    return any(name.endswith("-2x") for name in definition.disturbances)
