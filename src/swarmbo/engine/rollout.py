"""The one door to the engine: teams and a scenario in, scores out."""

import os
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, fields
from itertools import groupby, islice
from threading import Event, Lock
from typing import Any, NamedTuple

import numpy as np

from swarmbo.controller.genomes import Genomes
from swarmbo.controller.network import Controller
from swarmbo.engine.lanes import (
    DRIFT,
    Brains,
    genome_brains,
    join_brains,
    make_brains,
    slack_of,
)
from swarmbo.engine.swarm import Swarms
from swarmbo.errors import InputError, is_integer, short
from swarmbo.world.memory import check_memory, memory_of
from swarmbo.world.scenario import Scenario

DEVICES = ("auto", "cpu", "gpu")
LANES = 640  # robots, over all trials, that a thread runs at once; they fill its vectors well
LAUNCH = 8192  # teams that the GPU takes at once, if they are not too large

Team = Sequence[Controller]


@dataclass(frozen=True, eq=False)
class Rollout:
    """Scores of many teams, each evaluated by itself."""

    items: np.ndarray  # teams x trials x robots: items that each robot delivered
    uniformity: np.ndarray  # teams x trials: how evenly the visited squares were visited
    centre_distance: np.ndarray  # teams x trials: mean distance to the centre / half the diagonal
    coverage: np.ndarray  # teams x trials: share of the arena's squares that were visited
    # teams x trials x 12: over the ticks, means of `lanes.FEATURES`, then their standard deviations
    features: np.ndarray | None = None

    @property
    def performance(self) -> np.ndarray:
        """Mean over the trials of the items delivered by all robots, per team."""
        return self.items.sum(axis=2).mean(axis=1)

    def take(self, teams: slice | np.ndarray) -> "Rollout":
        """The scores of some of the teams."""
        columns = {column.name: getattr(self, column.name) for column in fields(self)}
        here = {name: values[teams] for name, values in columns.items() if values is not None}
        return Rollout(**here)


class Batch(NamedTuple):
    """Teams to evaluate in one scenario, given as numbers of genomes."""

    scenario: Scenario
    genomes: Genomes
    teams: np.ndarray  # teams x robots


def default_threads() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def choose_device(device: str, *, robots: int = 1) -> str:
    """What "auto", "cpu" or "gpu" means here: "cpu" or "gpu".

    "auto" is the GPU if there is one that runs swarms of so many robots.
    InputError when a GPU is asked for and there is none.
    """
    if device not in DEVICES:
        raise InputError(f"there is no device {short(device)}; name one of {', '.join(DEVICES)}")
    if device == "cpu":
        return "cpu"

    from swarmbo.engine.gpu import driver as gpu

    reason = gpu.why_not()
    if not reason and robots > gpu.MAX_ROBOTS:
        reason = f"the GPU runs swarms of up to {gpu.MAX_ROBOTS} robots, not {robots}; use the CPU"
    if device == "gpu" and reason:
        raise InputError(reason)
    return "cpu" if reason else "gpu"


def rollout(
    teams: Sequence[Team] | Genomes,
    scenario: Scenario,
    *,
    threads: int | None = None,
    device: str = "cpu",
    features: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Rollout:
    """Evaluate every team in the scenario.

    A team names a controller per robot. Genomes are teams too: each controller
    runs as a swarm of its own. `device` is "cpu", "gpu", or "auto" for the GPU
    if there is one. The CPU runs some teams per thread; `threads` defaults to all
    cores, and the result does not depend on it. With `features` the result has
    those on which the descriptor SDBC is built. `progress` is called with the
    number of teams done so far.
    """
    threads = _check_threads(threads)
    if not len(teams):
        raise InputError("there are no teams to evaluate; give at least one")
    if isinstance(teams, Genomes):
        teams.check()
    if _device_for(device, [scenario]) == "gpu":
        return _on_gpu(teams, scenario, features, progress)
    return _on_cpu([(teams, scenario)], threads, features, progress)[0]


def rollouts(
    batches: Sequence[Batch],
    *,
    threads: int | None = None,
    device: str = "cpu",
    progress: Callable[[int], None] | None = None,
) -> list[Rollout]:
    """Evaluate the teams of many scenarios at the same time; a result per batch.

    Each team gets the numbers that `rollout` would give it; `threads`, `device`
    and `progress` are as there. The genomes must pass their `check`.
    """
    threads = _check_threads(threads)
    for batch in batches:
        robots = batch.scenario.robots
        if batch.teams.ndim != 2 or batch.teams.shape[1] != robots or not len(batch.teams):
            raise InputError(
                f"teams must have the shape teams x {robots} robots, not {batch.teams.shape}"
            )
    if not batches:
        return []
    if _device_for(device, [batch.scenario for batch in batches]) == "gpu":
        return _many_on_gpu(batches, progress)
    return _on_cpu([(batch, batch.scenario) for batch in batches], threads, False, progress)


def _device_for(device: str, scenarios: Sequence[Scenario]) -> str:
    """What `device` means for these scenarios, see `choose_device`."""
    chosen = choose_device(device, robots=max(scenario.robots for scenario in scenarios))
    if chosen == "gpu" and any(slack_of(scenario) > 0 for scenario in scenarios):
        if device == "gpu":
            raise InputError(
                f"the GPU runs robots that drive and turn their corners by {DRIFT:g} m in a tick "
                "at the most, not faster ones; use the CPU"
            )
        return "cpu"
    return chosen


def _check_threads(threads: int | None) -> int:
    """How many threads there are, by default as many as cores."""
    number = default_threads() if threads is None else threads
    if not is_integer(number) or number < 1:
        raise InputError(f"the number of threads is {short(number)}; give at least 1")
    return number


def _on_cpu(
    work_list: Sequence[tuple[Sequence[Team] | Genomes | Batch, Scenario]],
    threads: int,
    features: bool,
    progress: Callable[[int], None] | None,
) -> list[Rollout]:
    counts = [_count(teams) for teams, _ in work_list]
    threads = min(threads, sum(counts))
    _check_memory([scenario for _, scenario in work_list], counts, threads, features)
    results = []
    for (_, scenario), count in zip(work_list, counts, strict=True):
        shape = (count, scenario.trials)
        results.append(
            Rollout(
                items=np.zeros((*shape, scenario.robots), np.int64),
                uniformity=np.zeros(shape),
                centre_distance=np.zeros(shape),
                coverage=np.zeros(shape),
                features=np.zeros((*shape, 12)) if features else None,
            )
        )
    stop = Event()
    jobs = _Jobs(_pieces([scenario for _, scenario in work_list], counts, threads, features))

    def work() -> None:
        """Evaluate the teams that no other thread has taken."""
        swarms, ready = None, None
        for kind, piece in jobs:
            scenarios = [work_list[job][1] for job, _ in piece]
            if swarms is None or ready != (kind, len(piece)):
                swarms = Swarms(scenarios[0], len(piece), features=features)
                ready = (kind, len(piece))
            robots = scenarios[0].robots
            brains = [_brains(work_list[job][0], number, robots) for job, number in piece]
            swarms.begin(brains, scenarios)
            remaining = scenarios[0].ticks
            while remaining > 0 and not stop.is_set():
                step = min(remaining, swarms.ticks_per_call)
                swarms.advance(step)
                remaining -= step
            if stop.is_set():
                return
            for (job, number), scores in zip(piece, swarms.all_scores(), strict=True):
                result = results[job]
                result.items[number] = scores.items
                result.uniformity[number] = scores.uniformity
                result.centre_distance[number] = scores.centre_distance
                result.coverage[number] = scores.coverage
                if result.features is not None:
                    result.features[number] = scores.features
            jobs.finish(len(piece))

    with ThreadPoolExecutor(threads) as pool:
        try:
            running = {pool.submit(work) for _ in range(threads)}
            while running:
                ended, running = wait(running, timeout=0.1, return_when=FIRST_EXCEPTION)
                for future in ended:
                    future.result()
                if progress is not None:
                    progress(jobs.done)
        finally:
            stop.set()  # Ctrl-C: let the threads end within one call of the kernel
    return results


def _check_memory(
    scenarios: Sequence[Scenario], counts: Sequence[int], threads: int, features: bool
) -> None:
    """InputError when the scores, and the swarms of all threads, do not fit into memory."""
    scores = sum(
        count * scenario.trials * 8 * (scenario.robots + 15)
        for scenario, count in zip(scenarios, counts, strict=True)
    )
    largest = max(
        memory_of(scenario.arena, scenario.robots, scenario.trials, _together(scenario, features))
        for scenario in scenarios
    )
    check_memory(
        scores + threads * largest, f"{sum(counts):,} teams, {threads:,} at a time or more,"
    )


Piece = tuple[Hashable, list[tuple[int, int]]]  # a kind of scenario; jobs and numbers of teams


class _Jobs:
    """Teams that run side by side, some at a time, each for one thread."""

    def __init__(self, pieces: Iterator[Piece]) -> None:
        self.done = 0  # how many teams are finished
        self._pieces = pieces
        self._lock = Lock()

    def finish(self, count: int) -> None:
        """Count so many as finished."""
        with self._lock:
            self.done += count

    def __iter__(self) -> Iterator[Piece]:
        while True:
            with self._lock:
                piece = next(self._pieces, None)
            if piece is None:
                return
            yield piece


def _pieces(
    scenarios: Sequence[Scenario], counts: Sequence[int], threads: int, features: bool
) -> Iterator[Piece]:
    """The teams that run side by side: many at first, then fewer, so that all threads end at once.

    Teams of several jobs do if their scenarios differ in poses, faults and noise alone.
    """
    alike: dict[Hashable, list[int]] = {}
    for job, scenario in enumerate(scenarios):
        alike.setdefault(_kind(scenario), []).append(job)
    left = sum(counts)
    for kind, jobs in alike.items():
        most = _together(scenarios[jobs[0]], features)
        teams = ((job, number) for job in jobs for number in range(counts[job]))
        while piece := list(islice(teams, min(most, -(-left // threads)))):
            left -= len(piece)
            yield kind, piece


def _together(scenario: Scenario, features: bool) -> int:
    """How many teams a thread runs side by side, at the most."""
    return 1 if features else max(1, LANES // scenario.poses[..., 0].size)


def _kind(scenario: Scenario) -> Hashable:
    """What scenarios must have in common for their swarms to run side by side."""
    return (
        scenario.arena,
        scenario.robot,
        scenario.poses.shape,
        scenario.ticks,
        scenario.tick,
        scenario.substeps,
        tuple(map(tuple, scenario.effects().food)),
    )


def _count(teams: Sequence[Team] | Genomes | Batch) -> int:
    return len(teams.teams) if isinstance(teams, Batch) else len(teams)


def _brains(teams: Sequence[Team] | Genomes | Batch, number: int, robots: int) -> Brains:
    if isinstance(teams, Batch):
        alike = [(row, len(list(same))) for row, same in groupby(teams.teams[number].tolist())]
        parts = [genome_brains(teams.genomes, row, count) for row, count in alike]
        return parts[0] if len(parts) == 1 else join_brains(parts)
    if isinstance(teams, Genomes):
        return genome_brains(teams, number, robots)
    if len(teams[number]) != robots:
        raise InputError(
            f"the team names {len(teams[number])} controllers; give {robots}, one per robot"
        )
    return make_brains(teams[number])


def _on_gpu(
    teams: Sequence[Team] | Genomes,
    scenario: Scenario,
    features: bool,
    progress: Callable[[int], None] | None,
) -> Rollout:
    from swarmbo.engine.gpu import driver as gpu

    if isinstance(teams, Genomes):
        genomes, table = teams, None
    else:
        genomes, table = _shared_genomes(teams, scenario.robots)
    parts: list[Rollout] = []
    most = _at_once(scenario)
    for first in range(0, len(teams), most):
        rows = slice(first, first + most)
        if table is None:
            part = genomes if len(genomes) <= most else genomes.take(np.arange(len(genomes))[rows])
            job = gpu.Job(scenario, part)
        else:
            job = gpu.Job(scenario, genomes, table[rows])
        parts += gpu.launch([job], features=features).result()
        if progress is not None:
            progress(min(first + most, len(teams)))
    return _joined(parts)


def _at_once(scenario: Scenario) -> int:
    """How many teams of a scenario the GPU takes at once."""
    from swarmbo.engine.gpu import driver as gpu

    return max(1, min(LAUNCH, gpu.MOST // (scenario.robots * scenario.trials)))


def _many_on_gpu(batches: Sequence[Batch], progress: Callable[[int], None] | None) -> list[Rollout]:
    from swarmbo.engine.gpu import driver as gpu

    parts: list[list[Rollout]] = [[] for _ in batches]
    done = 0
    for launched in _launches(batches):
        jobs = [gpu.Job(*batches[number][:2], teams) for number, teams in launched]
        for (number, teams), result in zip(launched, gpu.launch(jobs).result(), strict=True):
            parts[number].append(result)
            done += len(teams)
        if progress is not None:
            progress(done)
    return [_joined(part) for part in parts]


def _launches(batches: Sequence[Batch]) -> Iterator[list[tuple[int, np.ndarray]]]:
    """What the GPU takes at once: numbers of batches, and some or all of their teams."""
    launched: list[tuple[int, np.ndarray]] = []
    full = 0.0
    for number, batch in enumerate(batches):
        most = _at_once(batch.scenario)
        for first in range(0, len(batch.teams), most):
            teams = batch.teams[first : first + most]
            if launched and full + len(teams) / most > 1:
                yield launched
                launched, full = [], 0.0
            launched.append((number, teams))
            full += len(teams) / most
    if launched:
        yield launched


def _shared_genomes(teams: Sequence[Team], robots: int) -> tuple[Genomes, np.ndarray]:
    """The controllers of all teams, each once, and the teams as numbers of them."""
    for number, team in enumerate(teams):
        if len(team) != robots:
            raise InputError(
                f"team {number} names {len(team)} controllers; give {robots}, one per robot"
            )
    number_of: dict[int, int] = {}
    controllers: list[Controller] = []
    for team in teams:
        for controller in team:
            if id(controller) not in number_of:
                number_of[id(controller)] = len(controllers)
                controllers.append(controller)
    table = [[number_of[id(controller)] for controller in team] for team in teams]
    return Genomes.from_controllers(controllers), np.array(table, np.int32)


def _joined(parts: Sequence[Rollout]) -> Rollout:
    """Rollouts one after the other."""

    def column(name: str) -> Any:
        columns = [getattr(part, name) for part in parts]
        return None if columns[0] is None else np.concatenate(columns)

    return Rollout(**{field.name: column(field.name) for field in fields(Rollout)})
