"""The simulator: `NaiveSwarm` has the interface of the engine's swarm."""

import cmath
import math
from collections.abc import Callable, Sequence

import numpy as np

from swarmbo.controller.network import OUTPUTS, Controller
from swarmbo.world.disturbance import MAD, SENSOR_FAULTS, STUCK
from swarmbo.world.scenario import Scenario
from tests.naive import scores
from tests.naive.contact import find_contacts, solve
from tests.naive.geometry import Body, walls_of
from tests.naive.network import network_step
from tests.naive.sensors import floor_grey, on_food, proximity, sensor_at

Uniform = Callable[[int, int, int, int], float]
"""uniform(trial, robot, tick, channel): a random number in [0, 1); a trial's first tick is 0."""

# Channels of the random numbers: one per sensor, in the order of the inputs.
PROXIMITY_NOISE = 0
GROUND_NOISE = 7
PROXIMITY_FAULT = 9
GROUND_FAULT = 16
MAD_FLIP = 18

MAD_FLIP_PROBABILITY = 0.05  # per tick
WHITE = 255.0  # largest grey level


def numpy_uniform(seed: int) -> Uniform:
    """Random numbers of NumPy, drawn in the order in which they are asked for."""
    generator = np.random.default_rng(seed)
    return lambda trial, robot, tick, channel: generator.random()


class NaiveSwarm:
    """A swarm in all trials of a scenario, one controller per robot.

    `uniform` gives the random numbers; left out, NumPy draws them, seeded with
    the scenario's noise key.
    """

    def __init__(
        self, scenario: Scenario, team: Sequence[Controller], uniform: Uniform | None = None
    ) -> None:
        uniform = numpy_uniform(scenario.noise_key) if uniform is None else uniform
        self.tick = 0
        self._arena = scenario.arena
        self._trials = [
            _Trial(scenario, number, team, uniform) for number in range(scenario.trials)
        ]

    @property
    def team(self) -> list[Controller]:
        """The controllers; a robot that is given another one restarts its network at zero."""
        return list(self._trials[0].team)

    @team.setter
    def team(self, team: Sequence[Controller]) -> None:
        for trial in self._trials:
            trial.change_team(team)

    def advance(self, ticks: int) -> None:
        """Simulate `ticks` more ticks."""
        for _ in range(ticks):
            for trial in self._trials:
                trial.advance(self.tick)
            self.tick += 1

    @property
    def poses(self) -> np.ndarray:
        """Trials x robots x 3: x and y in m, heading in rad in (-pi, pi]."""
        return np.array(
            [
                [(p.real, p.imag, h) for p, h in zip(trial.positions, trial.headings, strict=True)]
                for trial in self._trials
            ]
        )

    @property
    def inputs(self) -> np.ndarray:
        """Trials x robots x 10: what the networks saw in the last tick."""
        return np.array([trial.inputs for trial in self._trials])

    @property
    def wheels(self) -> np.ndarray:
        """Trials x robots x 2: left and right speed commanded for the next tick, cm/s."""
        return 100 * np.array([trial.wheels for trial in self._trials])

    @property
    def carrying(self) -> np.ndarray:
        """Trials x robots: whether the robot holds an item."""
        return np.array([trial.carrying for trial in self._trials])

    @property
    def items(self) -> np.ndarray:
        """Trials x robots: items delivered so far."""
        return np.array([trial.items for trial in self._trials])

    @property
    def colliding(self) -> np.ndarray:
        """Trials x robots: whether the robot touches something at the end of the last tick."""
        return np.array([trial.colliding for trial in self._trials])

    def scores(self) -> scores.Scores:
        """Items and behaviour over all ticks so far."""
        paths = [trial.path for trial in self._trials]
        visits = [scores.visited_squares(self._arena, path) for path in paths]
        return scores.Scores(
            items=self.items,
            uniformity=np.array([scores.uniformity(count) for count in visits]),
            centre_distance=np.array([scores.centre_distance(self._arena, p) for p in paths]),
            coverage=np.array([scores.coverage(self._arena, count) for count in visits]),
        )


class _Trial:
    """One trial: lists with one entry per robot, in SI units."""

    def __init__(
        self, scenario: Scenario, number: int, team: Sequence[Controller], uniform: Uniform
    ) -> None:
        self.number = number
        self.uniform = uniform
        self.robot, self.arena = scenario.robot, scenario.arena
        self.effects = scenario.effects()
        self.walls = walls_of(scenario.arena)
        self.outline = [complex(x, y) for x, y in scenario.robot.body]
        self.substeps, self.step = scenario.substeps, scenario.tick / scenario.substeps

        poses = scenario.poses[number]
        robots = scenario.robots
        self.positions = [complex(x, y) for x, y, _ in poses]
        self.headings = [_wrapped(heading) for _, _, heading in poses]
        self.velocities = [0j] * robots
        self.spins = [0.0] * robots
        self.wheels = [(0.0, 0.0)] * robots
        self.mad_direction = [1] * robots
        self.inputs = [[0.0] * 10 for _ in range(robots)]
        self.carrying = [False] * robots
        self.items = [0] * robots
        self.colliding = [False] * robots
        self.path: list[complex] = []  # positions of all robots after every tick
        self.team = list(team)
        self.neurons = [_asleep(controller) for controller in team]

    def change_team(self, team: Sequence[Controller]) -> None:
        """Give robots other controllers."""
        for number, (old, new) in enumerate(zip(self.team, team, strict=True)):
            if new != old:
                self.neurons[number] = _asleep(new)
        self.team = list(team)

    def advance(self, tick: int) -> None:
        """The tick after `tick` others: physics, then sensing, networks, and food."""
        self._move()
        bodies = self._bodies()
        for robot in range(len(self.team)):
            self._sense(robot, bodies, tick)
            self._control(robot, tick)
            self._forage(robot)
        self.path += self.positions

    def _bodies(self) -> list[Body]:
        poses = zip(self.positions, self.headings, strict=True)
        return [Body.at(self.outline, *pose) for pose in poses]

    def _move(self) -> None:
        """Physics of a tick with the speeds that the networks chose in the tick before."""
        targets, target_spins = [], []
        for (left, right), gain, heading in zip(
            self.wheels, self.effects.wheel_gain, self.headings, strict=True
        ):
            left, right = left * float(gain[0]), right * float(gain[1])
            targets.append((left + right) / 2 * cmath.exp(1j * heading))
            target_spins.append((right - left) / self.robot.wheel_base)

        for _ in range(self.substeps):
            for number, (velocity, spin) in enumerate(
                zip(self.velocities, self.spins, strict=True)
            ):
                self.positions[number] += velocity * self.step
                self.headings[number] = _wrapped(self.headings[number] + spin * self.step)
            contacts = find_contacts(
                self._bodies(), self.walls, self.robot, self.arena.wall_friction
            )
            self.spins = list(target_spins)
            solve(self.velocities, self.spins, targets, contacts, self.robot, self.step)
        touching = {contact.robot for contact in contacts} | {contact.other for contact in contacts}
        self.colliding = [number in touching for number in range(len(self.team))]

    def _sense(self, robot: int, bodies: list[Body], tick: int) -> None:
        """The network's inputs: +1 nothing near, -1 touching; +1 white, -1 black; bias."""
        others = bodies[:robot] + bodies[robot + 1 :]
        near = [self._proximity(robot, number, others, tick) for number in range(7)]
        grey = [self._ground(robot, number, tick) for number in range(2)]
        self.inputs[robot] = [
            *(1 - 2 * value for value in near),
            *(min(1.0, max(-1.0, 2 * value / WHITE - 1)) for value in grey),
            1.0,
        ]

    def _random(self, robot: int, tick: int, channel: int) -> float:
        return self.uniform(self.number, robot, tick, channel)

    def _proximity(self, robot: int, number: int, others: list[Body], tick: int) -> float:
        """Reading in [0, 1] of a proximity sensor, with noise and fault."""
        fault = SENSOR_FAULTS[self.effects.proximity[robot]]
        if fault != "none" and number < self.robot.front_sensors:
            if fault == "random":
                return self._random(robot, tick, PROXIMITY_FAULT + number)
            return {"min": 0.0, "max": 1.0}[fault]
        sensor = self.robot.proximity_sensors[number]
        pose = self.positions[robot], self.headings[robot]
        value = proximity(self.robot, sensor, *pose, self.walls, others)
        noise = 2 * self._random(robot, tick, PROXIMITY_NOISE + number) - 1
        return min(1.0, max(0.0, value + self.robot.proximity_noise * noise))

    def _ground(self, robot: int, number: int, tick: int) -> float:
        """Grey level that a ground sensor reads, with noise (then not clamped) and fault."""
        fault = SENSOR_FAULTS[self.effects.ground[robot]]
        if fault == "random":
            return WHITE * self._random(robot, tick, GROUND_FAULT + number)
        if fault != "none":
            return {"min": 0.0, "max": WHITE}[fault]
        sensor = self.robot.ground_sensors[number]
        point = sensor_at(sensor, self.positions[robot], self.headings[robot])
        noise = 2 * self._random(robot, tick, GROUND_NOISE + number) - 1
        return floor_grey(self.arena, self.effects.food, point) + self.robot.ground_noise * noise

    def _control(self, robot: int, tick: int) -> None:
        """Choose the wheel speeds of the next tick; a software fault replaces the network."""
        software = self.effects.software[robot]
        if software == STUCK:
            self.wheels[robot] = (0.0, 0.0)
        elif software == MAD:
            if self._random(robot, tick, MAD_FLIP) < MAD_FLIP_PROBABILITY:
                self.mad_direction[robot] *= -1
            speed = self.robot.max_speed * self.mad_direction[robot]
            self.wheels[robot] = (speed, speed)
        else:
            controller = self.team[robot]
            self.neurons[robot] = network_step(controller, self.inputs[robot], self.neurons[robot])
            left, right = self.neurons[robot][:OUTPUTS]
            self.wheels[robot] = (self.robot.max_speed * left, self.robot.max_speed * right)

    def _forage(self, robot: int) -> None:
        """Deliver in the nest or pick up from food, by the true position of the centre."""
        if self.effects.software[robot] in (MAD, STUCK):
            return
        x = self.positions[robot].real
        if self.carrying[robot]:
            if x < self.arena.nest_depth:
                self.carrying[robot] = False
                self.items[robot] += 1
        elif x > self.arena.nest_depth and on_food(self.effects.food, self.positions[robot]):
            self.carrying[robot] = True


def _asleep(controller: Controller) -> list[float]:
    return [0.0] * (OUTPUTS + controller.hidden)


def _wrapped(angle: float) -> float:
    """The same angle in (-pi, pi]."""
    return math.pi - (math.pi - angle) % math.tau
