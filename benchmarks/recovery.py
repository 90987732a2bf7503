"""How well do the learners repair swarms? Tables beside those of the paper, as Markdown.

Run it from the repository's root:

    PYTHONPATH=src python benchmarks/recovery.py                    # everything, some minutes
    PYTHONPATH=src python benchmarks/recovery.py --part learners    # or continuous, or loss
    PYTHONPATH=src python benchmarks/recovery.py --map mine.map --conditions 2 --evaluations 5

The conditions are those of the map's replicate: 20 of proximity, 6 of food-scarcity.
"""

import argparse
from collections.abc import Sequence
from time import perf_counter
from typing import NamedTuple

import numpy as np

from swarmbo import load_map
from swarmbo.adaptation.options import CENTRALISED, DECENTRALISED
from swarmbo.paper.conditions import conditions
from swarmbo.recovery.continuous import ContinuousRun, adapt_continuously
from swarmbo.recovery.runner import Case, Evaluator, Run, adapt, compose, references

PARTS = ("learners", "continuous", "loss")
LOSSES = (0.0, 0.2, 0.4, 0.6, 0.8)

# D. M. Bossens and D. Tarapore (ICRA 2021), items per robot after 30 evaluations, means over five
# replicates: tables 1 (centralised), 2a (best so far, per robot) and 2b (composed swarm).
PUBLISHED = {
    ("proximity", "smbo"): (3.01,),
    ("proximity", "smbo-uniform"): (1.95,),
    ("proximity", "random"): (2.48,),
    ("proximity", "gradient-ascent"): (2.32,),
    ("proximity", "smbo-dec"): (3.30, 2.33),
    ("proximity", "smbo-dec-naive"): (3.31, 2.30),
    ("proximity", "smbo-no-sharing"): (2.91, 2.14),
    ("proximity", "random-no-sharing"): (1.20, 1.76),
    ("food-scarcity", "smbo"): (0.44,),
    ("food-scarcity", "smbo-uniform"): (0.35,),
    ("food-scarcity", "random"): (0.36,),
    ("food-scarcity", "gradient-ascent"): (0.27,),
    ("food-scarcity", "smbo-dec"): (0.86, 0.24),
    ("food-scarcity", "smbo-dec-naive"): (0.88, 0.26),
    ("food-scarcity", "smbo-no-sharing"): (0.62, 0.22),
    ("food-scarcity", "random-no-sharing"): (0.19, 0.21),
}


class Result(NamedTuple):
    """What came out of some runs, in items per robot."""

    best: list[float]  # of each robot, or of each centralised run
    composed: list[float]  # of each decentralised run
    during: list[float]  # of each run, mean over all its evaluations


def results(runs: Sequence[Run], evaluator: Evaluator) -> Result:
    """What came out of runs that are finished."""
    last = [[0.0 if value is None else value for value in run.done[-1].best] for run in runs]
    outcomes = [[value or 0.0 for each in run.done for value in each.outcome] for run in runs]
    composed = [value for value in compose(runs, evaluator) if value is not None]
    return Result(
        [value for values in last for value in values],
        composed,
        [float(np.mean(values)) for values in outcomes],
    )


def spread(values: Sequence[float]) -> str:
    """Mean ± population standard deviation."""
    return f"{np.mean(values):.2f} ± {np.std(values):.2f}" if values else ""


def table(header: str, rows: Sequence[Sequence[str]]) -> None:
    """Print a table in Markdown; the header's cells are separated by bars."""
    names = [name.strip() for name in header.split("|")]
    print("\n| " + " | ".join(names) + " |\n|" + " --- |" * len(names))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print(flush=True)


def measure_learners(cases: dict[str, list[Case]], evaluator: Evaluator, evaluations: int) -> None:
    """All learners beside the published means, and the lines of reference."""
    every = [case for group in cases.values() for case in group]
    start = perf_counter()
    found = dict(zip(every, references(every, evaluator), strict=True))
    names = CENTRALISED + DECENTRALISED
    runs = {
        (kind, name): [Run(case, name, evaluations=evaluations) for case in group]
        for kind, group in cases.items()
        for name in names
    }
    adapt([run for group in runs.values() for run in group], evaluator)
    done = {key: results(group, evaluator) for key, group in runs.items()}
    seconds = perf_counter() - start
    for kind, group in cases.items():
        lines = {
            "before the disturbance": [found[case].before for case in group],
            "fault-injection performance": [found[case].at_fault for case in group],
            "exhaustive search": [found[case].exhaustive for case in group],
        }
        print(f"**{kind}**, {len(group)} conditions, {evaluations} evaluations, items per robot:")
        rows = [[label, spread(values), "", "", ""] for label, values in lines.items()]
        for name in names:
            result, published = done[kind, name], PUBLISHED[kind, name]
            rows.append(
                [
                    name,
                    spread(result.best),
                    f"{published[0]:.2f}",
                    spread(result.composed),
                    f"{published[1]:.2f}" if len(published) > 1 else "",
                ]
            )
        table("learner | best so far | published | composed swarm | published", rows)
    print(f"{sum(map(len, runs.values()))} runs and their references: {seconds:.0f} s.\n")


def measure_continuous(
    cases: dict[str, list[Case]], evaluator: Evaluator, evaluations: int
) -> None:
    """One continuous world against trials that begin anew."""
    start = perf_counter()
    for kind, group in cases.items():
        rows = []
        for name in DECENTRALISED:
            apart = [Run(case, name, evaluations=evaluations) for case in group]
            adapt(apart, evaluator)
            going = [ContinuousRun(case, name, evaluations=evaluations) for case in group]
            adapt_continuously(going, threads=evaluator.threads)
            pairs = zip(results(apart, evaluator), results(going, evaluator), strict=True)
            rows.append([name, *(spread(values) for pair in pairs for values in pair)])
        print(f"**{kind}**, {len(group)} conditions, {evaluations} evaluations, items per robot:")
        table(
            "learner | best so far: with resets | continuous | composed swarm: with resets "
            "| continuous | while adapting: with resets | continuous",
            rows,
        )
    print(f"{perf_counter() - start:.0f} s.\n")


def measure_loss(cases: dict[str, list[Case]], evaluator: Evaluator, evaluations: int) -> None:
    """SMBO-Dec when messages between robots are lost, and with no sharing at all."""
    start = perf_counter()
    for kind, group in cases.items():
        plans = [(f"{loss:.0%}", "smbo-dec", {"loss": loss}) for loss in LOSSES]
        plans.append(("no sharing", "smbo-no-sharing", {}))
        rows = []
        for label, name, options in plans:
            kept = [Run(case, name, evaluations=evaluations, options=options) for case in group]
            adapt(kept, evaluator)
            going = [
                ContinuousRun(case, name, evaluations=evaluations, options=options)
                for case in group
            ]
            adapt_continuously(going, threads=evaluator.threads)
            reset, free = results(kept, evaluator), results(going, evaluator)
            rows.append(
                [
                    label,
                    *(spread(r) for r in (reset.best, reset.composed, free.best, free.composed)),
                ]
            )
        print(f"**{kind}**, {len(group)} conditions, {evaluations} evaluations, items per robot:")
        table(
            "messages lost | best so far | composed swarm | continuous: best so far "
            "| continuous: composed swarm",
            rows,
        )
    print(f"{perf_counter() - start:.0f} s.\n")


def main() -> None:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--map", default="paper-1", help="a map's file or name")
    parser.add_argument("--part", choices=PARTS, action="append", help="what to measure")
    parser.add_argument("--conditions", type=int, help="of each kind; default: all")
    parser.add_argument("--evaluations", type=int, default=30)
    parser.add_argument("--device", choices=("auto", "cpu", "gpu"), default="cpu")
    parser.add_argument("--threads", type=int)
    chosen = parser.parse_args()
    behaviour_map = load_map(chosen.map)
    evaluator = Evaluator(threads=chosen.threads, device=chosen.device, robots=12)
    cases = {
        kind: [
            Case.of(behaviour_map, f"{kind}:{number}")
            for number in range(len(conditions(kind, 1)))[: chosen.conditions]
        ]
        for kind in ("proximity", "food-scarcity")
    }
    print(
        f"Map {chosen.map}: {behaviour_map.filled_cells} controllers, "
        f"best {behaviour_map.best:.2f} items per robot.\n"
    )
    measures = {
        "learners": measure_learners,
        "continuous": measure_continuous,
        "loss": measure_loss,
    }
    for part in chosen.part or PARTS:
        print(f"### {part}\n")
        measures[part](cases, evaluator, chosen.evaluations)


if __name__ == "__main__":
    main()
