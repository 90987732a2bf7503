"""Items and the three numbers that describe a swarm's behaviour (HBD)."""

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np

from swarmbo.world.arena import Arena


@dataclass(frozen=True)
class Scores:
    """Scores of a swarm, one row per trial."""

    items: np.ndarray  # trials x robots
    uniformity: np.ndarray  # trials
    centre_distance: np.ndarray  # trials, fraction of half the diagonal
    coverage: np.ndarray  # trials, fraction of the squares


def uniformity(visits: Counter[tuple[int, int]]) -> float:
    """(1 - 1/n) - 1/2 sum |p_i - 1/n| over the n visited squares, p_i their shares."""
    n, total = len(visits), visits.total()
    return (1 - 1 / n) - sum(abs(count / total - 1 / n) for count in visits.values()) / 2


def centre_distance(arena: Arena, path: list[complex]) -> float:
    """Mean distance of positions to the arena's centre over half the diagonal."""
    centre = complex(*arena.centre)
    return sum(abs(point - centre) for point in path) / len(path) / arena.half_diagonal


def coverage(arena: Arena, visits: Counter[tuple[int, int]]) -> float:
    """Visited squares over all squares."""
    return len(visits) / math.prod(arena.squares)


def visited_squares(arena: Arena, path: list[complex]) -> Counter[tuple[int, int]]:
    """How often each square of the arena was visited."""
    return Counter((int(p.real // arena.square), int(p.imag // arena.square)) for p in path)
