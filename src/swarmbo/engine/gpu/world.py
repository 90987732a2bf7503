"""What the GPU's kernels are compiled for, and the tables that they read."""

from typing import Any, NamedTuple

import numpy as np

from swarmbo.engine.gpu.layout import AROUND
from swarmbo.engine.lanes import SECTORS, World

F = np.float32


class Constants(NamedTuple):
    """What a kernel is compiled for: numbers of arena and robot, as in `lanes.World`."""

    robots: int
    width: Any
    height: Any
    nest_depth: float
    greys: tuple[Any, Any, Any]
    centre: tuple[Any, Any]
    per_square: float
    squares_x: int
    squares_y: int
    dt: Any
    substeps: int
    limit: Any
    max_speed: Any
    per_wheel_base: Any
    wall_friction: Any
    body_friction: Any
    vertices_x: tuple[Any, ...]
    vertices_y: tuple[Any, ...]
    edges: tuple[tuple[Any, Any, Any], ...]
    radius: Any
    sense_reach: Any
    front_sensors: int
    proximity: tuple[Any, Any, Any, Any]
    ground_points: tuple[tuple[Any, ...], ...]
    ground_noise: Any
    sectors: int


def constants_of(world: World) -> Constants:
    """The constants of a world."""
    named = {name: getattr(world, name) for name in Constants._fields if hasattr(world, name)}
    points = tuple(tuple(F(x) for x in row) for row in world.ground_points)
    return Constants(**named | {"ground_points": points, "sectors": SECTORS})


def body_table(world: World) -> np.ndarray:
    """The rows that `gpu_layout` names: edges and vertices, one and a half times around."""
    rows = np.column_stack([*np.transpose(world.edges), world.vertices_x, world.vertices_y]).T
    return rows[:, np.arange(AROUND) % 9]


def facing_table(world: World) -> np.ndarray:
    """Per sector, the first of the edges and 16 times the first of the vertices facing that way."""
    around = np.arange(9)[:, None] + np.arange(6)
    edges = np.array(world.edges, F)[around % 9].reshape(9, 18)
    vertices = np.array([world.vertices_x, world.vertices_y], F).T[around % 9]
    points = vertices.transpose(0, 2, 1).reshape(9, 12)
    first_edge = (world.facing[:, None, :18] == edges).all(axis=2).argmax(axis=1)
    first_vertex = (world.facing[:, None, 18:] == points).all(axis=2).argmax(axis=1)
    return first_edge | first_vertex << 4


def pair_table(robots: int) -> np.ndarray:
    """The pairs of a trial: A and B << 5."""
    a, b = np.triu_indices(robots, 1)
    return np.append(a | b << 5, 0)
