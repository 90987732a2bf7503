"""How long does a learner think? swarmbo next to scikit-learn, BoTorch and plain NumPy.

All in one run, one core each, taking turns; CPU time, so that other work on the
machine matters little. A question is asked after new observations have come in,
and its time includes taking them over. The peers
compute posterior and upper confidence bound of all cells, fixed
hyper-parameters, from all observations each time; swarmbo's decentralised
learner also penalises the cells around busy ones.

    python benchmarks/learners.py --repeats 20 --json learners.json
"""

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

from swarmbo import BehaviourMap, learner
from swarmbo.adaptation.acquisition import ALPHA
from swarmbo.adaptation.cells import matern
from swarmbo.adaptation.gaussian_process import JITTER, LENGTH_SCALE

TRIALS = 8


@dataclass(frozen=True)
class Case:
    """A size of question: the last round of a swarm that has made so many observations."""

    name: str
    cells: int
    robots: int  # 1: a centralised learner
    observations: int
    goal_ms: float  # what swarmbo aims at, per question


CASES = (
    Case("SMBO", 600, 1, 30, 0.3),
    Case("SMBO-Dec, 12 robots", 600, 12, 360, 5.0),
    Case("SMBO-Dec, 100 robots", 4096, 100, 2000, 100.0),
)


@dataclass(frozen=True)
class Data:
    """A map and observations of it."""

    behaviour_map: BehaviourMap
    at: np.ndarray
    values: np.ndarray
    noise: np.ndarray


def make_data(case: Case) -> Data:
    """A random map whose performances changed, and noisy observations of some cells."""
    generator = np.random.default_rng(case.cells)
    places = np.sort(generator.choice(16**3, case.cells, replace=False))
    cells = np.stack(np.unravel_index(places, (16, 16, 16)), axis=1)
    behaviour_map = BehaviourMap.from_arrays(cells, 12 * generator.random(case.cells))
    at = generator.choice(case.cells, case.observations, replace=False)
    return Data(
        behaviour_map,
        at,
        behaviour_map.performance[at] + generator.normal(-2, 2, case.observations),
        0.1 * generator.random(case.observations),
    )


# --- swarmbo


def swarmbo_times(case: Case, data: Data) -> dict[str, list[float]]:
    """Times of the questions at the end of a run, in ms, by their kind."""
    if case.robots == 1:
        return {"after an observation": centralised_times(case, data)}
    first, *others = synchronous_times(case, data)
    return {
        "first of a round": [first],
        "others of a round": others,
        "asynchronous": asynchronous_times(case, data),
    }


def centralised_times(case: Case, data: Data) -> list[float]:
    """Telling the last observation and asking for the next cell."""
    made = learner("smbo", data.behaviour_map)
    for cell, value in zip(data.at[:-1].tolist(), data.values, strict=False):
        made.tell(cell, value)
    made.ask()
    start = time.process_time()
    made.tell(int(data.at[-1]), float(data.values[-1]))
    made.ask()
    return [1e3 * (time.process_time() - start)]


def outcome(data: Data, cell: int, trial: int, robot: int) -> float:
    """A performance in a trial that is a little different each time."""
    return float(data.behaviour_map.performance[cell]) - 2 + np.sin(cell + 3.0 * trial + robot)


def synchronous_times(case: Case, data: Data) -> list[float]:
    """Asking all robots, in order, after all have finished a round together."""
    made = learner("smbo-dec", data.behaviour_map, robots=case.robots, trials=TRIALS)
    for _ in range(case.observations // case.robots):
        cells = [made.ask(robot) for robot in range(case.robots)]
        for trial in range(TRIALS):
            for robot, cell in enumerate(cells):
                made.tell(robot, outcome(data, cell, trial, robot))
    times = []
    for robot in range(case.robots):
        start = time.process_time()
        made.ask(robot)
        times.append(1e3 * (time.process_time() - start))
    return times


def asynchronous_times(case: Case, data: Data) -> list[float]:
    """Asking robots that finish at different times, each while the others are busy."""
    made = learner("smbo-dec", data.behaviour_map, robots=case.robots, trials=TRIALS)
    asked = 0
    steps = 0
    times: list[float] = []
    while asked < case.observations:
        steps += 1
        for robot in range(case.robots):
            if steps <= robot % TRIALS:
                continue  # they start one after the other
            is_free = made.worker(robot).cell is None
            start = time.process_time()
            cell = made.ask(robot)
            if is_free:
                asked += 1
                if asked > case.observations - 2 * case.robots:
                    times.append(1e3 * (time.process_time() - start))
            made.tell(robot, outcome(data, cell, steps, robot))
    return times


# --- peers: a function of the observations that returns the best cell


def numpy_question(data: Data) -> Callable[[], int]:
    """The kernel between all cells at hand; a Cholesky factor per question."""
    points, prior = data.behaviour_map.coordinates, data.behaviour_map.performance
    squares = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    kernel = matern(np.sqrt(squares), LENGTH_SCALE)

    def ask() -> int:
        from scipy.linalg import solve_triangular

        rows = kernel[data.at]
        factor = np.linalg.cholesky(rows[:, data.at] + np.diag(data.noise + JITTER))
        v = solve_triangular(factor, rows, lower=True, check_finite=False)
        z = solve_triangular(factor, data.values - prior[data.at], lower=True, check_finite=False)
        deviation = np.sqrt(np.maximum(1 - np.einsum("ij,ij->j", v, v), 0))
        return untried_best(data, prior + z @ v + ALPHA * deviation)

    return ask


def sklearn_question(data: Data) -> Callable[[], int]:
    """scikit-learn's regressor, fitted without an optimiser."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import Matern

    points, prior = data.behaviour_map.coordinates, data.behaviour_map.performance

    def ask() -> int:
        kernel = Matern(length_scale=LENGTH_SCALE, length_scale_bounds="fixed", nu=2.5)
        process = GaussianProcessRegressor(
            kernel=kernel, alpha=data.noise + JITTER, optimizer=None
        ).fit(points[data.at], data.values - prior[data.at])
        mean, deviation = process.predict(points, return_std=True)
        return untried_best(data, prior + mean + ALPHA * deviation)

    return ask


def botorch_question(data: Data) -> Callable[[], int]:
    """BoTorch's SingleTaskGP with given noise."""
    import gpytorch
    import torch
    from botorch.models import SingleTaskGP

    torch.set_num_threads(1)
    points, prior = torch.tensor(data.behaviour_map.coordinates), data.behaviour_map.performance
    kernel = gpytorch.kernels.MaternKernel(nu=2.5).double()
    kernel.lengthscale = torch.tensor(LENGTH_SCALE, dtype=torch.float64)
    residuals = torch.tensor(data.values - prior[data.at])[:, None]
    noise = torch.tensor(data.noise + JITTER)[:, None]

    def ask() -> int:
        with torch.no_grad(), gpytorch.settings.fast_computations(False, False, False):
            process = SingleTaskGP(
                points[data.at],
                residuals,
                noise,
                covar_module=kernel,
                mean_module=gpytorch.means.ZeroMean(),
                outcome_transform=None,
            )
            answer = process.posterior(points)
            mean, variance = answer.mean.numpy()[:, 0], answer.variance.numpy()[:, 0]
        return untried_best(data, prior + mean + ALPHA * np.sqrt(variance))

    return ask


def untried_best(data: Data, bound: np.ndarray) -> int:
    """The cell with the highest bound among those that were not observed."""
    bound[data.at] = -np.inf
    return int(bound.argmax())


PEERS = (
    ("NumPy", "numpy", numpy_question),
    ("scikit-learn", "sklearn", sklearn_question),
    ("BoTorch", "botorch", botorch_question),
)


# --- the comparison


def measure(case: Case, repeats: int) -> dict[str, list[float]]:
    """Times in ms of everybody in turns."""
    data = make_data(case)
    peers = [(name, make(data)) for name, module, make in PEERS if find_spec(module) is not None]
    answers = {name: ask() for name, ask in peers}  # also loads and warms up
    if len(set(answers.values())) != 1:
        raise SystemExit(f"the peers do not agree: {answers}")
    times: dict[str, list[float]] = {}
    for _ in range(repeats):
        for kind, found in swarmbo_times(case, data).items():
            times.setdefault(f"swarmbo, {kind}", []).extend(found)
        for name, ask in peers:
            start = time.process_time()
            ask()
            times.setdefault(name, []).append(1e3 * (time.process_time() - start))
    return times


def installed_version(package: str) -> str:
    """A package's version, or nothing when it is not there."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def report(results: dict[str, dict[str, list[float]]]) -> Table:
    """All times in one table."""
    table = Table(title="CPU time per question in ms")
    for heading in ("case", "who", "median", "min .. max", "goal"):
        table.add_column(heading, justify="left" if heading in ("case", "who") else "right")
    for case in CASES:
        for who, times in results.get(case.name, {}).items():
            table.add_row(
                f"{case.name}: {case.cells} cells, {case.observations} observations",
                who,
                f"{statistics.median(times):.3f}",
                f"{min(times):.3f} .. {max(times):.3f}",
                f"{case.goal_ms:g}" if who.startswith("swarmbo") else "",
            )
        table.add_section()
    return table


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=20, help="a tenth of it for large cases")
    parser.add_argument("--json", type=Path, help="write all times to this file")
    given = parser.parse_args()
    results = {}
    with threadpool_limits(1):
        for case in CASES:
            repeats = given.repeats if case.cells < 1000 else max(1, given.repeats // 10)
            results[case.name] = measure(case, repeats)
    Console().print(report(results))
    if given.json:
        packages = ("swarmbo", "numpy", "scipy", "scikit-learn", "botorch", "torch")
        content: dict[str, Any] = {
            "machine": platform.machine(),
            "python": platform.python_version(),
            "versions": {name: installed_version(name) for name in packages},
            "unit": "ms of CPU time per question",
            "times": results,
        }
        given.json.write_text(json.dumps(content, indent=1))


if __name__ == "__main__":
    main()
