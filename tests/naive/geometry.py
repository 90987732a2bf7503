"""Plane geometry of convex bodies and straight walls.

Points and vectors are complex numbers: x + iy, in metres. Multiplying by
exp(i heading) turns the body frame into the arena frame, multiplying by i
turns a vector by 90 degrees counter-clockwise.
"""

import cmath
import math
from dataclasses import dataclass
from functools import cached_property

from swarmbo.world.arena import Arena


def dot(a: complex, b: complex) -> float:
    """Scalar product of two vectors."""
    return a.real * b.real + a.imag * b.imag


@dataclass(frozen=True)
class Line:
    """A straight border: everything on the side of `normal` (unit vector) is free."""

    point: complex
    normal: complex

    def distance(self, point: complex) -> float:
        """Distance of a point in m, negative beyond the border."""
        return dot(point - self.point, self.normal)


def walls_of(arena: Arena) -> list[Line]:
    """The four inner walls of an arena, their normals pointing inwards."""
    far = complex(arena.width, arena.height)
    return [Line(0j, 1 + 0j), Line(far, -1 + 0j), Line(0j, 1j), Line(far, -1j)]


@dataclass(frozen=True)
class Body:
    """A convex body in the arena, its vertices clockwise."""

    centre: complex  # the robot's origin
    vertices: list[complex]

    @classmethod
    def at(cls, outline: list[complex], centre: complex, heading: float) -> "Body":
        """The body whose `outline` (body frame, clockwise) stands at a pose."""
        turn = cmath.exp(1j * heading)
        return cls(centre, [centre + turn * vertex for vertex in outline])

    @cached_property
    def edges(self) -> list[Line]:
        """The edges, their normals pointing out of the body."""
        following = self.vertices[1:] + self.vertices[:1]
        return [
            Line(start, 1j * (end - start) / abs(end - start))
            for start, end in zip(self.vertices, following, strict=True)
        ]

    def contains(self, point: complex) -> bool:
        """Whether a point lies in the body or on its outline."""
        return all(edge.distance(point) <= 0 for edge in self.edges)


def least_penetration(first: Body, second: Body) -> tuple[float, complex]:
    """How deep two bodies overlap (m, negative: apart) and along which axis.

    By the separating-axis theorem the axis is the normal of an edge of one of
    them; it is returned as a unit vector from the second to the first body.
    """
    depths = [
        (max(-edge.distance(vertex) for vertex in first.vertices), edge.normal)
        for edge in second.edges
    ] + [
        (max(-edge.distance(vertex) for vertex in second.vertices), -edge.normal)
        for edge in first.edges
    ]
    return min(depths, key=lambda depth_and_axis: depth_and_axis[0])


def ray_to_wall(start: complex, direction: complex, wall: Line) -> float:
    """Distance in m along a ray to a wall; infinite for a miss or a start in the wall."""
    gap, approach = wall.distance(start), -dot(direction, wall.normal)
    return gap / approach if gap >= 0 and approach > 0 else math.inf


def ray_to_body(start: complex, direction: complex, body: Body) -> float:
    """Distance in m along a ray to where it enters a body; infinite for a miss.

    A ray that starts inside the body never enters it.
    """
    enter, leave = -math.inf, math.inf
    for edge in body.edges:
        gap, approach = edge.distance(start), -dot(direction, edge.normal)
        if approach > 0:
            enter = max(enter, gap / approach)
        elif approach < 0:
            leave = min(leave, gap / approach)
        elif gap > 0:
            return math.inf
    return enter if 0 <= enter <= leave else math.inf
