"""Contact in the engine is close to that of Chipmunk, the physics engine that ARGoS embeds."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest

from swarmbo.world.arena import FORAGING
from swarmbo.world.robot import THYMIO
from tests.fidelity import drive

pymunk = pytest.importorskip("pymunk")
Swarm = pytest.importorskip("swarmbo.engine.swarm").Swarm

SUBSTEPS = 10
STEP = 0.02  # s, of the physics
TICKS = 60
WALL = 0.5  # m, thick enough that nothing gets through
ITERATIONS = 50  # of Chipmunk's solver, so that it converges


class Meeting(NamedTuple):
    """Robots that meet something, each with a pose and constant wheel speeds."""

    name: str
    poses: Sequence[tuple[float, float, float]]  # m, m, rad
    speeds: Sequence[tuple[float, float]]  # cm/s, left and right


MEETINGS = (
    Meeting("wall head-on", [(1.92, 2.1, 0.0)], [(10, 10)]),
    Meeting("wall at 30 degrees", [(1.92, 2.1, math.radians(30))], [(10, 10)]),
    Meeting("wall at 60 degrees, backwards", [(1.92, 2.1, math.radians(240))], [(-10, -10)]),
    Meeting("wall in a curve", [(1.92, 2.1, 0.4)], [(10, 8)]),
    Meeting("corner", [(0.2, 0.25, math.radians(230))], [(9, 9)]),
    Meeting("two head-on", [(0.85, 2.1, 0.0), (1.15, 2.1, math.pi)], [(10, 10), (10, 10)]),
    Meeting("pushing a stopped one", [(0.9, 2.1, 0.0), (1.1, 2.1, 1.5)], [(10, 10), (0, 0)]),
    Meeting("oblique", [(0.9, 2.0, math.pi / 4), (1.2, 2.1, math.pi)], [(10, 10), (10, 10)]),
    Meeting("spinning beside one", [(0.9, 2.1, 0.0), (1.06, 2.12, 1.0)], [(10, 10), (-6, 6)]),
    Meeting(
        "one against two stopped",
        [(0.6, 2.1, 0.0), (0.8, 2.1, 0.0), (0.95, 2.1, 0.0)],
        [(10, 10), (0, 0), (0, 0)],
    ),
    Meeting(
        "two against one",
        [(0.6, 2.1, 0.0), (0.8, 2.1, 0.0), (1.0, 2.1, math.pi)],
        [(10, 10), (8, 8), (6, 6)],
    ),
)


class ChipmunkRobots:
    """Robots in a Chipmunk space, driven as ARGoS drives them.

    A robot is tied to a control body, which has the wanted velocity, by a
    linear and an angular joint of limited strength that never correct positions.
    """

    def __init__(self, poses: Sequence[tuple[float, float, float]]) -> None:
        self.space = pymunk.Space()
        self.space.iterations = ITERATIONS
        self.space.collision_slop = WALL  # overlap is never pushed out
        self._add_walls()
        self.robots: list[Any] = []
        self.controls: list[Any] = []
        for x, y, heading in poses:
            self._add_robot((x, y), heading)

    def _add_walls(self) -> None:
        width, height = FORAGING.width, FORAGING.height
        for left, bottom, right, top in (
            (-WALL, -WALL, 0, height + WALL),
            (width, -WALL, width + WALL, height + WALL),
            (-WALL, -WALL, width + WALL, 0),
            (-WALL, height, width + WALL, height + WALL),
        ):
            corners = [(left, bottom), (right, bottom), (right, top), (left, top)]
            wall = pymunk.Poly(self.space.static_body, corners)
            wall.friction = FORAGING.wall_friction
            self.space.add(wall)

    def _add_robot(self, position: tuple[float, float], heading: float) -> None:
        moment = pymunk.moment_for_poly(THYMIO.mass, THYMIO.body)
        robot = pymunk.Body(THYMIO.mass, moment)
        robot.position, robot.angle = position, heading
        shape = pymunk.Poly(robot, THYMIO.body)
        shape.friction = THYMIO.friction
        control = pymunk.Body(body_type=pymunk.Body.KINEMATIC)
        joints = (
            pymunk.PivotJoint(robot, control, (0, 0), (0, 0)),
            pymunk.GearJoint(robot, control, 0, 1),
        )
        for joint in joints:
            joint.max_bias = 0
            joint.max_force = THYMIO.max_force
            joint.collide_bodies = False
        self.space.add(robot, shape, control, *joints)
        self.robots.append(robot)
        self.controls.append(control)

    def tick(self, speeds: Sequence[tuple[float, float]]) -> None:
        """One tick with wheel speeds in cm/s."""
        for robot, control, (left, right) in zip(self.robots, self.controls, speeds, strict=True):
            speed = (left + right) / 200
            control.velocity = (speed * math.cos(robot.angle), speed * math.sin(robot.angle))
            control.angular_velocity = (right - left) / 100 / THYMIO.wheel_base
        for _ in range(SUBSTEPS):
            self.space.step(STEP)

    def positions(self) -> list[tuple[float, float]]:
        """Where the robots are, in m."""
        return [tuple(robot.position) for robot in self.robots]


def chipmunk_path(meeting: Meeting) -> np.ndarray:
    """Positions (ticks x robots x 2) of a meeting in Chipmunk."""
    robots = ChipmunkRobots(meeting.poses)
    path = []
    for tick in range(TICKS):
        # The first command is given at the end of the first tick.
        robots.tick(meeting.speeds if tick else [(0, 0)] * len(meeting.poses))
        path.append(robots.positions())
    return np.array(path)


@pytest.mark.parametrize("meeting", MEETINGS, ids=lambda meeting: meeting.name)
def test_contact_is_close_to_chipmunk(meeting: Meeting) -> None:
    commands = np.tile(np.array(meeting.speeds, float), (TICKS, 1, 1))
    path = drive(Swarm, np.array(meeting.poses), commands)[..., :2]
    gap = np.linalg.norm(path - chipmunk_path(meeting), axis=-1)
    assert gap.max() < 3e-3  # m
