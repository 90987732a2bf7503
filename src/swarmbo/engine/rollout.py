"""The one door to the engine: teams and a scenario in, scores out."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, fields
from inspect import signature
from threading import Event, Lock
from typing import Any

import numpy as np

from swarmbo.controller.genomes import Genomes
from swarmbo.controller.network import Controller
from swarmbo.engine.lanes import Brains, genome_brains, make_brains
from swarmbo.engine.swarm import Swarms
from swarmbo.errors import InputError, short
from swarmbo.world.scenario import Scenario

DEVICES = ("auto", "cpu", "gpu")
LANES = 192  # robots, over all trials, that a thread runs at once
LAUNCH = 8192  # teams that the GPU takes at once

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


def default_threads() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def choose_device(device: str, *, robots: int = 1, features: bool = False) -> str:
    """What "auto", "cpu" or "gpu" means here: "cpu" or "gpu".

    "auto" is the GPU if there is one that runs swarms of so many robots and, if
    wanted, measures features. InputError when a GPU is asked for and there is none.
    """
    if device not in DEVICES:
        raise InputError(f"there is no device {short(device)}; name one of {', '.join(DEVICES)}")
    if device == "cpu":
        return "cpu"

    from swarmbo.engine import gpu

    reason = gpu.why_not()
    if not reason and robots > gpu.MAX_ROBOTS:
        reason = f"the GPU runs swarms of up to {gpu.MAX_ROBOTS} robots, not {robots}; use the CPU"
    if not reason and features and "features" not in signature(gpu.launch).parameters:
        reason = "the GPU does not measure the features of SDBC; use the CPU"
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
    threads = default_threads() if threads is None else threads
    if threads < 1:
        raise InputError(f"the number of threads is {threads}; give at least 1")
    if not len(teams):
        raise InputError("there are no teams to evaluate; give at least one")
    if isinstance(teams, Genomes):
        teams.check()
    if choose_device(device, robots=scenario.robots, features=features) == "gpu":
        return _on_gpu(teams, scenario, features, progress)
    return _on_cpu(teams, scenario, threads, features, progress)


def _on_cpu(
    teams: Sequence[Team] | Genomes,
    scenario: Scenario,
    threads: int,
    features: bool,
    progress: Callable[[int], None] | None,
) -> Rollout:
    shape = (len(teams), scenario.trials)
    result = Rollout(
        items=np.zeros((*shape, scenario.robots), np.int64),
        uniformity=np.zeros(shape),
        centre_distance=np.zeros(shape),
        coverage=np.zeros(shape),
        features=np.zeros((*shape, 12)) if features else None,
    )
    threads = min(threads, len(teams))
    together = _together(len(teams) // threads, scenario, features)
    stop = Event()
    jobs = _Jobs(len(teams), together)

    def work() -> None:
        """Evaluate the teams that no other thread has taken."""
        swarms = None
        for numbers in jobs:
            if swarms is None or len(numbers) < together:
                swarms = Swarms(scenario, len(numbers), features=features)
            swarms.begin([_brains(teams, number, scenario.robots) for number in numbers])
            remaining = scenario.ticks
            while remaining > 0 and not stop.is_set():
                step = min(remaining, swarms.ticks_per_call)
                swarms.advance(step)
                remaining -= step
            if stop.is_set():
                return
            for number, scores in zip(numbers, swarms.all_scores(), strict=True):
                result.items[number] = scores.items
                result.uniformity[number] = scores.uniformity
                result.centre_distance[number] = scores.centre_distance
                result.coverage[number] = scores.coverage
                if result.features is not None:
                    result.features[number] = scores.features
            jobs.finish(len(numbers))

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
    return result


class _Jobs:
    """The numbers 0, 1, ..., count - 1, some at a time, each given to one thread only."""

    def __init__(self, count: int, together: int) -> None:
        self.done = 0  # how many numbers are finished
        self._jobs = iter([range(n, min(n + together, count)) for n in range(0, count, together)])
        self._lock = Lock()

    def finish(self, count: int) -> None:
        """Count so many as finished."""
        with self._lock:
            self.done += count

    def __iter__(self) -> Iterator[range]:
        while True:
            with self._lock:
                job = next(self._jobs, None)
            if job is None:
                return
            yield job


def _together(teams: int, scenario: Scenario, features: bool) -> int:
    """How many of a thread's teams run side by side: about 200 robots fill the vectors well."""
    if features:
        return 1
    return max(1, min(teams, LANES // (scenario.robots * scenario.trials)))


def _brains(teams: Sequence[Team] | Genomes, number: int, robots: int) -> Brains:
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
    from swarmbo.engine import gpu

    if isinstance(teams, Genomes):
        genomes, table = teams, None
    else:
        genomes, table = _shared_genomes(teams, scenario.robots)
    wanted: dict[str, Any] = {"features": True} if features else {}
    parts: list[Rollout] = []
    for first in range(0, len(teams), LAUNCH):
        rows = slice(first, first + LAUNCH)
        if table is None:
            part = (
                genomes if len(genomes) <= LAUNCH else genomes.take(np.arange(len(genomes))[rows])
            )
            job = gpu.Job(scenario, part)
        else:
            job = gpu.Job(scenario, genomes, table[rows])
        parts += gpu.launch([job], **wanted).result()
        if progress is not None:
            progress(min(first + LAUNCH, len(teams)))
    return _joined(parts)


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
