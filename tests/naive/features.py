"""The ten numbers of SDBC, from the poses of a swarm in every tick."""

import math
from collections.abc import Sequence

import numpy as np

from swarmbo.world.arena import Arena

Pose = Sequence[float]  # x and y in m, heading in rad


def features(before: Sequence[Pose], after: Sequence[Pose], arena: Arena) -> list[float]:
    """What the robots of a trial did in a tick, in m and rad; see `engine.lanes.FEATURES`."""
    places = [complex(x, y) for x, y, _ in after]
    robots = range(len(places))
    walls = [
        complex(0, arena.height / 2),
        complex(arena.width, arena.height / 2),
        complex(arena.width / 2, 0),
        complex(arena.width / 2, arena.height),
    ]
    advance, turn = [], []
    for (x0, y0, heading), (x1, y1, new_heading) in zip(before, after, strict=True):
        advance.append((x1 - x0) * math.cos(heading) + (y1 - y0) * math.sin(heading))
        turn.append(math.remainder(new_heading - heading, math.tau))
    others = [[abs(places[i] - places[j]) for j in robots if j != i] for i in robots]
    alone = len(places) == 1
    return [
        mean(advance),
        mean(turn),
        mean([abs(place - wall) for place in places for wall in walls]),
        0.0 if alone else mean([distance for row in others for distance in row]),
        0.0 if alone else mean([min(row) for row in others]),
        0.0 if alone else mean([abs(places[i] - places[j]) for i in robots for j in robots[1:]]),
    ]


def mean(values: Sequence[float]) -> float:
    """The arithmetic mean."""
    return math.fsum(values) / len(values)


def deviation(values: Sequence[float]) -> float:
    """The standard deviation of the whole population."""
    middle = mean(values)
    return math.sqrt(mean([(value - middle) ** 2 for value in values]))


def sdbc_of_trial(ticks: Sequence[Sequence[float]], arena: Arena) -> list[float]:
    """Five means and five deviations / 0.6 of the normalised features of a trial."""
    corner = (0.0, 0.0, 0.0)
    centre = (*arena.centre, 0.0)
    most = features([corner], [corner], arena)[2]
    least = features([centre], [centre], arena)[2]
    columns = [
        [0.5 + 0.5 * tick[0] / 0.02 for tick in ticks],
        [0.5 + 0.5 * tick[1] / 0.5 for tick in ticks],
        [(tick[2] - least) / (most - least) for tick in ticks],
        [tick[3] / arena.height for tick in ticks],
        [tick[4] / arena.half_diagonal for tick in ticks],
    ]
    return [mean(column) for column in columns] + [deviation(column) / 0.6 for column in columns]


def sum_of_distances(points: np.ndarray, place: np.ndarray) -> float:
    """What the geometric median makes as small as possible."""
    return math.fsum(math.dist(point, place) for point in points.tolist())
