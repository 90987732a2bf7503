"""Do bodies overlap? Exact tests on convex polygons, for start poses."""

import math

import numpy as np


def body_at(body: np.ndarray, pose: np.ndarray) -> np.ndarray:
    """Vertices (n x 2) of a body at a pose (x, y, heading), in arena coordinates."""
    cos, sin = math.cos(pose[2]), math.sin(pose[2])
    return body @ np.array([[cos, sin], [-sin, cos]]) + pose[:2]


def _separated_by_edges_of(a: np.ndarray, b: np.ndarray) -> bool:
    edges = np.roll(a, -1, axis=0) - a
    normals = np.stack([-edges[:, 1], edges[:, 0]], axis=1)  # outward: vertices are clockwise
    gaps = (normals @ b.T).min(axis=1) - (normals @ a.T).max(axis=1)
    return bool((gaps >= 0).any())


def bodies_intersect(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two convex polygons (clockwise vertices, n x 2) share an interior point.

    By the separating-axis theorem: they do not if and only if the normal of
    some edge separates them.
    """
    return not (_separated_by_edges_of(a, b) or _separated_by_edges_of(b, a))


def first_overlap(body: np.ndarray, poses: np.ndarray) -> tuple[int, int] | None:
    """The first pair of robots whose bodies intersect at `poses` (robots x 3), if any."""
    reach = 2 * np.hypot(body[:, 0], body[:, 1]).max()
    bodies = [body_at(body, pose) for pose in poses]
    for robot in range(1, len(poses)):
        offsets = poses[:robot, :2] - poses[robot, :2]
        for other in np.flatnonzero(np.hypot(offsets[:, 0], offsets[:, 1]) < reach):
            if bodies_intersect(bodies[other], bodies[robot]):
                return int(other), robot
    return None
