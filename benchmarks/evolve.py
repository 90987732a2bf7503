"""How much of an evolution's time is not simulation, and what rate could the host keep up with?

Run it from the repository's root, on a machine that does nothing else:

    python benchmarks/evolve.py
    python benchmarks/evolve.py --device gpu --generations 150
"""

import argparse
import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter

import numpy as np

from swarmbo.engine.gpu.driver import Job
from swarmbo.engine.rollout import Rollout, rollout
from swarmbo.errors import InputError
from swarmbo.evolution.map_elites import Evolution, EvolutionOptions
from swarmbo.evolution.speculation import foreseen

AHEAD = 300  # generations of which the host's work ahead of time is measured


def simulate(evolution: Evolution) -> Rollout:
    """Evaluate what the evolution asks for."""
    features = evolution.options.descriptor == "sdbc"
    if evolution.options.device == "cpu":
        return rollout(evolution.ask(), evolution.scenario, features=features)

    from swarmbo.engine.gpu import driver as gpu

    job = gpu.Job(evolution.scenario, evolution.ask())
    return gpu.launch([job], features=features).result()[0]


class Remembered:
    """Evaluations that are over at once: each controller gets a result that another one had."""

    def __init__(self, results: Rollout, jobs: Sequence[Job]) -> None:
        self.results = results
        self.jobs = jobs

    def result(self) -> list[Rollout]:
        found = []
        for job in self.jobs:
            sums = np.abs(1e6 * job.genomes.weight.sum(axis=1)).astype(np.int64)
            found.append(self.results.take(sums % len(self.results.items)))
        return found


def measure_ahead(options: EvolutionOptions, results: Rollout) -> None:
    """Evolve with generations ahead of time and no simulation, and print the rate.

    After the first half hardly anything enters the archive, as late in a long evolution.
    """
    evaluations = options.initial + AHEAD * options.batch
    evolution = Evolution(replace(options, evaluations=evaluations))
    start = before = 0.0
    for _ in foreseen([evolution], partial(Remembered, results)):
        if evolution.generation == AHEAD // 2:
            start, before = perf_counter(), evolution.evaluations
    rate = (evaluations - before) / (perf_counter() - start)
    print(
        "  ahead of time, when hardly anything enters any more, "
        f"the host keeps up with {rate:,.0f} evaluations per second",
        flush=True,
    )


def measure(options: EvolutionOptions) -> None:
    """Evolve, and print where the time of a generation goes."""
    evolution = Evolution(options)
    evolution.tell(simulate(evolution))  # the random controllers; compiles what is not compiled
    seconds: dict[str, list[float]] = defaultdict(list)
    while not evolution.finished:
        marks = [perf_counter()]
        evolution.ask()
        marks.append(perf_counter())
        result = simulate(evolution)
        marks.append(perf_counter())
        evolution.tell(result)
        marks.append(perf_counter())
        for name, start, end in zip(("ask", "simulate", "tell"), marks, marks[1:], strict=False):
            seconds[name].append(end - start)
    start = perf_counter()
    size = len(evolution.map().to_bytes())
    checkpoint = perf_counter() - start
    middle = {name: statistics.median(times) for name, times in seconds.items()}
    host = middle["ask"] + middle["tell"]
    print(
        f"{options.descriptor} on the {options.device}, generations of {options.batch}: "
        + ", ".join(f"{name} {1e3 * value:.2f} ms" for name, value in middle.items())
        + f"; host {100 * host / (host + middle['simulate']):.2f} % of the time"
    )
    print(
        f"  {evolution.filled_cells} cells; a checkpoint of {size / 1e3:.0f} kB "
        f"takes {1e3 * checkpoint:.0f} ms: {100 * checkpoint / (5 + checkpoint):.2f} % of 5 s"
    )
    measure_ahead(options, result)


def main() -> None:
    """Read the options and measure both descriptors."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--generations", type=int, default=10)
    parser.add_argument("--batch", type=int, default=500)
    chosen = parser.parse_args()
    if chosen.generations < 1:
        parser.error(f"--generations is {chosen.generations}; give at least 1")
    try:
        for descriptor in ("hbd", "sdbc"):
            measure(
                EvolutionOptions(
                    evaluations=1000 + chosen.generations * chosen.batch,
                    descriptor=descriptor,
                    batch=chosen.batch,
                    device=chosen.device,
                )
            )
    except InputError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
