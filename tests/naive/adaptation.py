"""Learners the slow way: a linear system per question, loops over cells, one model per group."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from swarmbo.maps.behaviour_map import BehaviourMap

Observation = tuple[int, float, float]  # cell, value, noise variance


def kernel(a: Sequence[float], b: Sequence[float], length_scale: float = 0.12) -> float:
    """Matern 5/2, variance 1."""
    r = math.dist(a, b)
    polynomial = 1 + math.sqrt(5) * r / length_scale + 5 * r**2 / (3 * length_scale**2)
    return polynomial * math.exp(-math.sqrt(5) * r / length_scale)


def posterior(
    behaviour_map: BehaviourMap,
    observations: Sequence[Observation],
    prior: Sequence[float] | None = None,
    length_scale: float = 0.12,
) -> tuple[list[float], list[float]]:
    """Mean and variance of all cells."""
    points = behaviour_map.coordinates.tolist()
    mean = list(behaviour_map.performance.tolist() if prior is None else prior)
    variance = [1.0] * len(points)
    if not observations:
        return mean, variance
    at = [cell for cell, _, _ in observations]
    matrix = np.array([[kernel(points[i], points[j], length_scale) for j in at] for i in at])
    matrix += np.diag([noise + 1e-8 for _, _, noise in observations])
    weights = np.linalg.solve(matrix, [value - mean[cell] for cell, value, _ in observations])
    for number, point in enumerate(points):
        k = np.array([kernel(points[i], point, length_scale) for i in at])
        mean[number] += float(k @ weights)
        variance[number] -= float(k @ np.linalg.solve(matrix, k))
    return mean, [max(value, 0.0) for value in variance]


def steepest(behaviour_map: BehaviourMap, mean: Sequence[float]) -> float:
    """L: the largest gradient norm over the cells that have a neighbour in every dimension."""
    if behaviour_map.centroids is not None:
        return 10.0
    row = {tuple(cell): number for number, cell in enumerate(behaviour_map.cells.tolist())}
    norms = [0.0]
    for cell, number in row.items():
        gradient = []
        for dimension in range(len(cell)):
            for step in (1, -1):
                moved = list(cell)
                moved[dimension] += step
                if tuple(moved) in row:
                    gradient.append((mean[row[tuple(moved)]] - mean[number]) * 16 * step)
                    break
        if len(gradient) == len(cell):
            norms.append(math.hypot(*gradient))
    return max(norms) if max(norms) > 1e-7 else 10.0


def penalty(distance: float, mean: float, variance: float, steep: float, best: float) -> float:
    """phi of Gonzalez et al., with mean and variance at the busy cell."""
    radius = max(1e-4, (best - mean) / steep)
    width = math.sqrt(max(variance, 1e-4)) / steep
    return 0.5 * math.erfc(-(distance - radius) / (math.sqrt(2) * width))


def printed_penalty(
    distance: float, mean: float, variance: float, steep: float, best: float
) -> float:
    """phi as the paper prints it, with mean and variance at the cell in question."""
    width = math.sqrt(max(variance, 1e-4))
    return math.erfc(-steep * distance / (math.sqrt(2) * width) - best + mean)


def penalised_values(
    behaviour_map: BehaviourMap,
    mean: Sequence[float],
    variance: Sequence[float],
    busy: Sequence[int],
    steep: float,
    best: float,
    alpha: float = 0.93,
    as_printed: bool = False,
) -> list[float]:
    """The value of every cell: its upper bound times, or below 0 over, all penalties."""
    points = behaviour_map.coordinates.tolist()
    values = []
    for x, point in enumerate(points):
        value = mean[x] + alpha * math.sqrt(variance[x])
        product = 1.0
        for b in busy:
            distance = math.dist(point, points[b])
            if as_printed:
                product *= printed_penalty(distance, mean[x], variance[x], steep, best)
            else:
                product *= penalty(distance, mean[b], variance[b], steep, best)
        if value < 0:
            values.append(value / product if product else -math.inf)
        else:
            values.append(value * product)
    return values


def first_highest(
    behaviour_map: BehaviourMap, values: Sequence[float], candidates: Sequence[int]
) -> int:
    """The candidate of the highest value; of equal ones the first in dimension order."""
    highest = max(values[c] for c in candidates)
    cells = behaviour_map.cells.tolist()
    return min((c for c in candidates if values[c] == highest), key=lambda c: cells[c])


@dataclass
class Evaluation:
    """One robot's trials with one cell."""

    robot: int
    cell: int
    trials: list[float] = field(default_factory=list)

    def observation(self) -> Observation:
        """Cell, mean and its variance."""
        mean = sum(self.trials) / len(self.trials)
        if len(self.trials) == 1:
            return self.cell, mean, mean**2
        return self.cell, mean, float(np.var(self.trials, ddof=1)) / len(self.trials)


class SharedModel:
    """One model of one group, which all its robots ask and tell; no messages.

    `name` is "smbo-dec" or "smbo-dec-naive".
    """

    def __init__(self, name: str, behaviour_map: BehaviourMap, trials: int, **options: str) -> None:
        self.name = name
        self.map = behaviour_map
        self.trials = trials
        self.options = options
        self.evaluations: list[Evaluation] = []

    def present(self, robot: int) -> Evaluation | None:
        """The evaluation that a robot is busy with."""
        for evaluation in self.evaluations:
            if evaluation.robot == robot and len(evaluation.trials) < self.trials:
                return evaluation
        return None

    def observations(self) -> list[Observation]:
        """What the model has observed."""
        return [evaluation.observation() for evaluation in self.evaluations if evaluation.trials]

    def ask(self, robot: int) -> int:
        """The cell of a robot."""
        present = self.present(robot)
        if present is None:
            present = Evaluation(robot, self.choose())
            self.evaluations.append(present)
        return present.cell

    def tell(self, robot: int, performance: float) -> None:
        """A trial of a robot."""
        present = self.present(robot)
        assert present is not None
        present.trials.append(performance)

    def choose(self) -> int:
        """The next cell."""
        busy = [e.cell for e in self.evaluations if len(e.trials) < self.trials]
        observed = self.observations()
        taken = {*busy, *(cell for cell, _, _ in observed)}
        candidates = [c for c in range(len(self.map.cells)) if c not in taken]
        if not candidates:
            return self.best()
        mean, variance = posterior(self.map, observed)
        if self.name == "smbo-dec-naive":
            busy = []
        best = max([0.0, *(value for _, value, _ in observed)])
        if self.options.get("maximum") == "posterior-mean":
            best = max(0.0, *mean)
        steep = steepest(self.map, mean) if observed else 10.0
        as_printed = self.options.get("penalty") == "paper-text"
        values = penalised_values(
            self.map, mean, variance, busy, steep, best, as_printed=as_printed
        )
        return first_highest(self.map, values, candidates)

    def best(self) -> int:
        """The cell of the best evaluation with all its trials, the latest of equal ones."""
        done = [e for e in self.evaluations if len(e.trials) == self.trials]
        highest = max(e.observation()[1] for e in done)
        return [e.cell for e in done if e.observation()[1] == highest][-1]


def smbo(
    behaviour_map: BehaviourMap,
    told: Sequence[tuple[int, float]],
    uniform: bool = False,
    noise: float = 0.0,
    alpha: float = 0.93,
) -> int:
    """The cell that SMBO tries next."""
    prior = behaviour_map.performance.tolist()
    if uniform:
        prior = [float(behaviour_map.performance.mean())] * len(prior)
    mean, variance = posterior(behaviour_map, [(c, value, noise) for c, value in told], prior)
    values = [m + alpha * math.sqrt(v) for m, v in zip(mean, variance, strict=True)]
    tried = {cell for cell, _ in told}
    untried = [c for c in range(len(prior)) if c not in tried]
    return first_highest(behaviour_map, values, untried)


def gradient_ascent(behaviour_map: BehaviourMap, told: Sequence[tuple[int, float]]) -> int:
    """The cell that gradient ascent tries next, after two at least."""
    points = behaviour_map.coordinates.tolist()
    cells = behaviour_map.cells.tolist()
    latest, performance = told[-1]
    x = points[latest]
    other, other_performance = min(
        told[:-1], key=lambda pair: (math.dist(points[pair[0]], x), cells[pair[0]])
    )
    z = points[other]
    rise = (performance - other_performance) / float(behaviour_map.performance.max())
    slope = [0 if a == b else rise / (a - b) for a, b in zip(x, z, strict=True)]
    target = [a + 0.05 * g for a, g in zip(x, slope, strict=True)]
    tried = {cell for cell, _ in told}
    untried = [c for c in range(len(points)) if c not in tried]
    return min(untried, key=lambda c: (math.dist(points[c], target), cells[c]))
