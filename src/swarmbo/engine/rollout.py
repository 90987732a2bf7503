"""The one door to the engine: teams and a scenario in, scores out."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import islice
from threading import Event, local

import numpy as np

from swarmbo.controller.network import Controller
from swarmbo.engine.swarm import Scores, Swarm
from swarmbo.errors import InputError
from swarmbo.world.scenario import Scenario

Team = Sequence[Controller]


@dataclass(frozen=True, eq=False)
class Rollout:
    """Scores of many teams, each evaluated by itself."""

    items: np.ndarray  # teams x trials x robots: items that each robot delivered
    uniformity: np.ndarray  # teams x trials: how evenly the visited squares were visited
    centre_distance: np.ndarray  # teams x trials: mean distance to the centre / half the diagonal
    coverage: np.ndarray  # teams x trials: share of the arena's squares that were visited

    @property
    def performance(self) -> np.ndarray:
        """Mean over the trials of the items delivered by all robots, per team."""
        return self.items.sum(axis=2).mean(axis=1)


def default_threads() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def rollout(
    teams: Sequence[Team],
    scenario: Scenario,
    *,
    threads: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Rollout:
    """Evaluate every team in the scenario, one team per thread at a time.

    `threads` defaults to all cores; the result does not depend on it.
    `progress` is called with the number of teams done so far.
    """
    threads = default_threads() if threads is None else threads
    if threads < 1:
        raise InputError(f"the number of threads is {threads}; give at least 1")
    if not teams:
        raise InputError("there are no teams to evaluate; give at least one")
    shape = (len(teams), scenario.trials)
    result = Rollout(
        items=np.zeros((*shape, scenario.robots), np.int64),
        uniformity=np.zeros(shape),
        centre_distance=np.zeros(shape),
        coverage=np.zeros(shape),
    )
    stop = Event()
    desk = local()  # a thread keeps its swarm, so memory does not grow with the teams

    def evaluate(number: int) -> None:
        swarm = getattr(desk, "swarm", None)
        if swarm is None:
            swarm = desk.swarm = Swarm(scenario, teams[number])
        else:
            swarm.restart(teams[number])
        remaining = scenario.ticks
        while remaining > 0 and not stop.is_set():
            step = min(remaining, swarm.ticks_per_call)
            swarm.advance(step)
            remaining -= step
        scores: Scores = swarm.scores()
        result.items[number] = scores.items
        result.uniformity[number] = scores.uniformity
        result.centre_distance[number] = scores.centre_distance
        result.coverage[number] = scores.coverage

    numbers = iter(range(len(teams)))
    done = 0
    with ThreadPoolExecutor(threads) as pool:
        try:
            running: set[Future[None]] = {
                pool.submit(evaluate, number) for number in islice(numbers, 2 * threads)
            }
            while running:
                finished, running = wait(running, return_when=FIRST_COMPLETED)
                for future in finished:
                    future.result()
                    done += 1
                running |= {pool.submit(evaluate, n) for n in islice(numbers, len(finished))}
                if progress is not None:
                    progress(done)
        finally:
            stop.set()  # Ctrl-C: let the threads end within one call of the kernel
    return result
