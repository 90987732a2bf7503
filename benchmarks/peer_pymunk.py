"""The same robots, arena and networks on pymunk (Chipmunk), with NumPy around it.

A few swarms run side by side, each in a space of its own, so that NumPy works on
all their robots at once: noise, ground sensors, networks and food cost little,
and what is timed is mostly Chipmunk and the calls into it. Counting visited
squares for the descriptor is left out, which is in pymunk's favour.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import count

import numpy as np
import pymunk

from swarmbo.controller.network import INPUTS, OUTPUTS, Controller
from swarmbo.world.arena import Arena
from swarmbo.world.robot import Robot
from swarmbo.world.scenario import Scenario

SWARMS = 13  # side by side: enough to share the overhead of NumPy, few enough to stay in cache


def pieces(scenario: Scenario, controllers: Sequence[Controller]) -> Iterator[Callable[[], int]]:
    """Pieces of work without end: a whole trial of a few controllers each, in turn.

    Calling a piece runs it and returns its robot-ticks; making it, in `next`,
    is set-up. A piece's controllers lie far apart in the list, so that every
    piece has a mix of them.
    """
    stride = max(1, len(controllers) // SWARMS)
    for number in count():
        chosen = [
            controllers[(number + stride * swarm) % len(controllers)] for swarm in range(SWARMS)
        ]
        yield Swarms(scenario, chosen, number % scenario.trials).run


class Networks:
    """One network per swarm, copied to all robots of that swarm."""

    def __init__(self, controllers: Sequence[Controller], robots: int) -> None:
        neurons = max(controller.neurons for controller in controllers)
        self._weights = np.zeros((len(controllers), neurons, neurons - INPUTS))
        self._bias = np.zeros((len(controllers), 1, neurons - INPUTS))
        for swarm, controller in enumerate(controllers):
            self._bias[swarm, 0, : len(controller.bias)] = controller.bias
            for source, target, weight in controller.connections:
                self._weights[swarm, source, target - INPUTS] = 5 * weight
        self._values = np.zeros((len(controllers), robots, neurons))
        self._values[..., INPUTS - 1] = 1.0  # the bias input

    def step(self, inputs: np.ndarray) -> np.ndarray:
        """Outputs (all robots x 2) for the inputs from the sensors (all robots x 9)."""
        swarms, robots, _ = self._values.shape
        self._values[..., : INPUTS - 1] = inputs.reshape(swarms, robots, -1)
        self._values[..., INPUTS:] = np.tanh(self._values @ self._weights + self._bias)
        return self._values[..., INPUTS : INPUTS + OUTPUTS].reshape(-1, OUTPUTS)


class Swarms:
    """Swarms at the start of the same trial, one per controller."""

    def __init__(self, scenario: Scenario, controllers: Sequence[Controller], trial: int) -> None:
        self._scenario = scenario
        self._networks = Networks(controllers, scenario.robots)
        self._spaces = [pymunk.Space() for _ in controllers]
        self._robots: list[tuple[pymunk.Body, pymunk.Body]] = []  # body and control body
        for space in self._spaces:
            _add_walls(space, scenario.arena)
            for number, pose in enumerate(scenario.poses[trial].tolist()):
                self._robots.append(_add_robot(space, scenario.robot, number, pose))
        self._filters = [_own_group(number) for number in range(scenario.robots)]
        self._points = _sensor_points(scenario.robot)
        self._food = np.array(scenario.arena.food)
        self._wheels = np.zeros((len(self._robots), OUTPUTS))
        self._carrying = np.zeros(len(self._robots), dtype=bool)
        self._random = np.random.default_rng(trial)
        self.items = np.zeros(len(self._robots), dtype=int)

    def run(self) -> int:
        """Run the trial to its end; the robot-ticks that it had."""
        for _ in range(self._scenario.ticks):
            self._drive()
            self._move()
            poses = np.array([(*body.position, body.angle) for body, _ in self._robots])
            outputs = self._networks.step(self._sense(poses))
            self._wheels = self._scenario.robot.max_speed * outputs
            self._forage(poses[:, :2])
        return self._scenario.ticks * len(self._robots)

    def _drive(self) -> None:
        left, right = self._wheels.T
        speeds = ((left + right) / 2).tolist()
        turns = ((right - left) / self._scenario.robot.wheel_base).tolist()
        for (body, control), speed, turn in zip(self._robots, speeds, turns, strict=True):
            angle = body.angle
            control.velocity = speed * math.cos(angle), speed * math.sin(angle)
            body.angular_velocity = turn

    def _move(self) -> None:
        seconds = self._scenario.tick / self._scenario.substeps
        for space in self._spaces:
            for _ in range(self._scenario.substeps):
                space.step(seconds)

    def _sense(self, poses: np.ndarray) -> np.ndarray:
        """The networks' inputs from the sensors, all robots x 9."""
        cos, sin = np.cos(poses[:, 2]), np.sin(poses[:, 2])
        rotations = np.stack([cos, sin, -sin, cos], axis=1).reshape(-1, 2, 2)
        points = poses[:, np.newaxis, :2] + self._points @ rotations
        rays = len(self._scenario.robot.proximity_sensors)
        proximity = self._proximity(points[:, :rays].tolist(), points[:, rays : 2 * rays].tolist())
        return np.concatenate([proximity, self._ground(points[:, 2 * rays :])], axis=1)

    def _proximity(
        self, starts: list[list[list[float]]], ends: list[list[list[float]]]
    ) -> np.ndarray:
        robots = self._scenario.robots
        fractions = []  # of the range, up to the first hit
        for number, (robot_starts, robot_ends) in enumerate(zip(starts, ends, strict=True)):
            query = self._spaces[number // robots].segment_query_first
            own = self._filters[number % robots]
            for start, end in zip(robot_starts, robot_ends, strict=True):
                hit = query(start, end, 0, own)  # type: ignore[arg-type]
                # The response is 0 at the full range, so a miss may pass for a hit there.
                fractions.append(1.0 if hit is None else hit.alpha)
        robot = self._scenario.robot
        centimetres = 100 * robot.proximity_range * np.array(fractions).reshape(len(starts), -1)
        linear, quadratic = robot.proximity_response
        values = 1 + centimetres * (linear + quadratic * centimetres)
        values += self._random.uniform(-robot.proximity_noise, robot.proximity_noise, values.shape)
        return 1 - 2 * values.clip(0, 1)

    def _ground(self, points: np.ndarray) -> np.ndarray:
        arena, noise = self._scenario.arena, self._scenario.robot.ground_noise
        floor = np.where(self._on_food(points), arena.food_grey, arena.floor_grey)
        grey = np.where(points[..., 0] < arena.nest_depth, arena.nest_grey, floor)
        grey += self._random.uniform(-noise, noise, grey.shape)
        return (2 * grey / 255 - 1).clip(-1, 1)

    def _forage(self, places: np.ndarray) -> None:
        in_nest = places[:, 0] < self._scenario.arena.nest_depth
        self.items += self._carrying & in_nest
        self._carrying = ~in_nest & (self._carrying | self._on_food(places))

    def _on_food(self, points: np.ndarray) -> np.ndarray:
        dx = points[..., :1] - self._food[:, 0]
        dy = points[..., 1:] - self._food[:, 1]
        return (dx * dx + dy * dy < self._food[:, 2] ** 2).any(axis=-1)


def _sensor_points(robot: Robot) -> np.ndarray:
    """In the body frame: where the rays start, where they end, the ground sensors (16 x 2)."""
    starts = [(sensor.x, sensor.y) for sensor in robot.proximity_sensors]
    ends = [
        (
            sensor.x + robot.proximity_range * math.cos(sensor.angle),
            sensor.y + robot.proximity_range * math.sin(sensor.angle),
        )
        for sensor in robot.proximity_sensors
    ]
    return np.array(starts + ends + [(sensor.x, sensor.y) for sensor in robot.ground_sensors])


def _own_group(number: int) -> pymunk.ShapeFilter:
    """A group for one robot's shape and rays: Chipmunk skips hits within a group."""
    return pymunk.ShapeFilter(group=number + 1)  # 0 means no group


def _add_walls(space: pymunk.Space, arena: Arena) -> None:
    corners = [(0, 0), (arena.width, 0), (arena.width, arena.height), (0, arena.height)]
    for start, end in zip(corners, [*corners[1:], corners[0]], strict=True):
        wall = pymunk.Segment(space.static_body, start, end, 0)
        wall.friction = arena.wall_friction
        space.add(wall)


def _add_robot(
    space: pymunk.Space, robot: Robot, number: int, pose: list[float]
) -> tuple[pymunk.Body, pymunk.Body]:
    # With an infinite moment contacts never turn a robot: heading follows the wheels alone.
    body = pymunk.Body(robot.mass, math.inf)
    body.position, body.angle = (pose[0], pose[1]), pose[2]
    shape = pymunk.Poly(body, robot.body)
    shape.friction = robot.friction
    shape.filter = _own_group(number)
    # A control body outside the space has a velocity but stays where it is; the joint
    # passes on that velocity, and never pulls towards a place since its bias is 0.
    control = pymunk.Body(body_type=pymunk.Body.KINEMATIC)
    drive = pymunk.PivotJoint(control, body, (0, 0), (0, 0))
    drive.max_bias = 0
    drive.max_force = robot.max_force
    space.add(body, shape, drive)
    return body, control
