"""Centralised learners: every robot runs the same controller, one is tried at a time."""

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from swarmbo.adaptation.acquisition import TIE, first_best, upper_confidence_bound
from swarmbo.adaptation.cells import cells_of
from swarmbo.adaptation.checks import checked_index, checked_list, checked_performance, header
from swarmbo.adaptation.gaussian_process import GaussianProcess, Posterior
from swarmbo.adaptation.options import Options
from swarmbo.errors import InputError, short
from swarmbo.maps.behaviour_map import BehaviourMap
from swarmbo.streams import Stream


class CentralisedLearner(ABC):
    """Says which cell of a map to try next, and which one was best.

    `ask` gives the row of a cell and `tell` takes the performance of the swarm
    there, in the unit of the map; what was not asked for may be told too. A
    question asked again before anything is told gets the same answer.
    """

    def __init__(
        self, name: str, behaviour_map: BehaviourMap, *, robots: int, seed: int, options: Options
    ) -> None:
        self.name = name
        self.behaviour_map = behaviour_map
        self.robots = robots
        self.seed = seed
        self.options = options
        self._cells = cells_of(behaviour_map)
        self._told: list[tuple[int, float]] = []  # row and performance, in order
        self._untried = np.ones(len(self._cells), bool)

    @property
    def evaluations(self) -> tuple[tuple[int, float], ...]:
        """Cell and performance of all evaluations, in order."""
        return tuple(self._told)

    def ask(self) -> int:
        """The row of the cell to try next; when all are tried, the best one again."""
        candidates = np.flatnonzero(self._untried)
        return self._choose(candidates) if len(candidates) else self.best()

    def tell(self, cell: int, performance: float) -> None:
        """Take the performance of the swarm with a cell's controller, in the map's unit."""
        cell = checked_index("the cell", cell, len(self._cells))
        self._told.append((cell, checked_performance(performance)))
        self._untried[cell] = False

    def best(self) -> int:
        """The row of the best cell so far, of equal ones the latest; at first the best prior."""
        if self._told:
            return self._told[self._best_evaluation()][0]
        return first_best(self.behaviour_map.performance, self._cells.order, self._cells)

    def best_performance(self) -> float:
        """The performance of the best cell, in the map's unit; nan before the first `tell`."""
        return self._told[self._best_evaluation()][1] if self._told else math.nan

    def _best_evaluation(self) -> int:
        return max(range(len(self._told)), key=lambda number: (self._told[number][1], number))

    @abstractmethod
    def _choose(self, candidates: np.ndarray) -> int:
        """One of the untried cells."""

    def predict(self, cell: int) -> tuple[float, float]:
        """Mean and deviation expected of a cell, in the map's unit.

        A learner without a model gives the map's performance, and nan.
        """
        cell = checked_index("the cell", cell, len(self._cells))
        return float(self.behaviour_map.performance[cell]), math.nan

    def _random(self, candidates: np.ndarray) -> int:
        """A candidate drawn uniformly; the number of evaluations done names the draw."""
        candidates = np.sort(self._cells.rank[candidates])
        stream = Stream(self.name, self.seed, len(self._told))
        return int(self._cells.order[candidates[stream.choice(len(candidates))]])

    def to_json(self) -> dict[str, Any]:
        """The learner's state as plain JSON values, for `learner_from_json`."""
        return header(self.name, self.behaviour_map, self.seed, self.options) | {
            "robots": self.robots,
            "evaluations": [[cell, performance] for cell, performance in self._told],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over the evaluations of a state; InputError when they are impossible."""
        for number, pair in enumerate(checked_list("evaluations", state["evaluations"])):
            if not isinstance(pair, list) or len(pair) != 2:
                raise InputError(
                    f"evaluation {number} is {short(pair)}; give a pair of cell and performance"
                )
            self.tell(pair[0], pair[1])


class Smbo(CentralisedLearner):
    """SMBO: the untried cell with the highest upper confidence bound.

    The prior of a cell is its performance in the map; that of "smbo-uniform" is
    the map's mean everywhere.
    """

    def __init__(
        self, name: str, behaviour_map: BehaviourMap, *, robots: int, seed: int, options: Options
    ) -> None:
        super().__init__(name, behaviour_map, robots=robots, seed=seed, options=options)
        prior = behaviour_map.performance
        if name == "smbo-uniform":
            prior = np.full(len(prior), prior.mean())
        self._process = GaussianProcess(self._cells, prior, options.length_scale)

    def _posterior(self) -> Posterior:
        at, values = zip(*self._told, strict=True) if self._told else ((), ())
        return self._process.posterior(
            np.array(at, np.int64), np.array(values), np.full(len(at), self.options.noise)
        )

    def tell(self, cell: int, performance: float) -> None:
        super().tell(cell, performance)
        self._posterior()

    def _choose(self, candidates: np.ndarray) -> int:
        bound = upper_confidence_bound(self._posterior(), self.options.alpha)
        return first_best(bound, candidates, self._cells)

    def predict(self, cell: int) -> tuple[float, float]:
        cell = checked_index("the cell", cell, len(self._cells))
        posterior = self._posterior()
        return float(posterior.mean[cell]), float(posterior.deviation[cell])


class RandomSearch(CentralisedLearner):
    """Random: uniform over the untried cells."""

    def _choose(self, candidates: np.ndarray) -> int:
        return self._random(candidates)


class GradientAscent(CentralisedLearner):
    """Two random cells; then from the latest one up the slope to the nearest tried one.

    From cell x with performance F and its nearest other tried cell z, the slope
    along dimension i is g_i = ((F - F_z) / F_max) / (x_i - z_i), 0 where the two
    are equal. The next cell is the untried one nearest to x + step g.
    """

    def _choose(self, candidates: np.ndarray) -> int:
        if len({cell for cell, _ in self._told}) < 2:
            return self._random(candidates)
        return self._nearest(self._cells.distance_from(self._climbed()), candidates)

    def _climbed(self) -> np.ndarray:
        """The point x + step g."""
        latest, performance = self._told[-1]
        tried = dict(self._told)  # of a cell told twice the latest performance
        others = np.array([cell for cell in tried if cell != latest])
        other = self._nearest(self._cells.distance(latest), others)
        rise = (performance - tried[other]) / self._scale()
        x = self._cells.coordinates[latest]
        apart = x - self._cells.coordinates[other]
        slope = np.divide(rise, apart, out=np.zeros(len(x)), where=apart != 0)
        return x + self.options.step * slope

    def _scale(self) -> float:
        """F_max, the map's best performance, without its sign; 1 for 0."""
        return abs(float(self.behaviour_map.performance.max())) or 1.0

    def _nearest(self, distance: np.ndarray, among: np.ndarray) -> int:
        """The nearest cell; of equally near ones the first in dimension order."""
        near = among[distance[among] <= distance[among].min() * (1 + TIE)]
        return int(near[self._cells.rank[near].argmin()])
