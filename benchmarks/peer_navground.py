"""A swarm of two-wheeled robots with lidars on navground, all in C++.

navground moves discs without dynamics, so this is less work than ours: one
kinematic step per tick, no drive limits, no friction. Its cheapest behavior heads
for waypoints and ignores what the lidar sees, since a recurrent network would have
to run in Python. There are no ground sensors, no food and no noise either. All of
this is in navground's favour.
"""

import math
from collections.abc import Callable, Iterator
from itertools import count
from random import Random

from navground import core, sim

from swarmbo.world.arena import Arena
from swarmbo.world.robot import Robot
from swarmbo.world.scenario import Scenario

WAYPOINTS = 100  # more than a robot reaches in a trial


def pieces(scenario: Scenario) -> Iterator[Callable[[], int]]:
    """Pieces of work without end: a whole trial each, from the scenario's poses in turn.

    Calling a piece runs it and returns its robot-ticks; making it, in `next`,
    is set-up.
    """
    for number in count():
        yield Swarm(scenario, number).run


class Swarm:
    """A swarm at the start of a trial; `number` chooses the poses and the waypoints."""

    def __init__(self, scenario: Scenario, number: int) -> None:
        self._scenario = scenario
        self.world = sim.World()
        _add_walls(self.world, scenario.arena)
        random = Random(number)
        for x, y, heading in scenario.poses[number % scenario.trials].tolist():
            agent = _robot(scenario.robot)
            agent.task = _roam(scenario.arena, scenario.robot, random)
            agent.position = (x, y)
            agent.orientation = heading
            self.world.add_agent(agent)

    def run(self) -> int:
        """Run the trial to its end; the robot-ticks that it had."""
        self.world.run(self._scenario.ticks, self._scenario.tick)
        return self._scenario.ticks * self._scenario.robots


def _add_walls(world: sim.World, arena: Arena) -> None:
    corners = [(0, 0), (arena.width, 0), (arena.width, arena.height), (0, arena.height)]
    for start, end in zip(corners, [*corners[1:], corners[0]], strict=True):
        world.add_wall(sim.Wall(start, end))


def _robot(robot: Robot) -> sim.Agent:
    kinematics = core.kinematics.TwoWheelsDifferentialDriveKinematics(
        max_speed=robot.max_speed, wheel_axis=robot.wheel_base
    )
    behavior = core.behaviors.DummyBehavior(kinematics=kinematics, radius=robot.radius)
    behavior.optimal_speed = robot.max_speed
    # Without a state to write to, the lidar would be skipped and cost nothing.
    behavior.environment_state_type = "Sensing"
    rays = len(robot.proximity_sensors)
    lidar = sim.state_estimations.LidarStateEstimation(
        range=robot.proximity_range,
        start_angle=-math.pi * (1 - 1 / rays),
        field_of_view=2 * math.pi * (1 - 1 / rays),
        resolution=rays,
    )
    return sim.Agent(
        radius=robot.radius,
        behavior=behavior,
        kinematics=kinematics,
        state_estimations=[lidar],
    )


def _roam(arena: Arena, robot: Robot, random: Random) -> sim.Task:
    """From one random place to the next, so that no robot ever comes to rest."""
    places = [
        (random.uniform(0, arena.width), random.uniform(0, arena.height)) for _ in range(WAYPOINTS)
    ]
    # A disc's centre cannot come nearer to a wall than its radius.
    return sim.tasks.WaypointsTask(waypoints=places, tolerance=2 * robot.radius)
