"""A swarm that runs: advance it by any number of ticks, look at it, break it, go on."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from swarmbo.controller.network import INPUTS, OUTPUTS, Controller
from swarmbo.engine import lanes as layout
from swarmbo.errors import InputError
from swarmbo.world.arena import Food
from swarmbo.world.disturbance import Disturbance, Effects
from swarmbo.world.scenario import Scenario

CALL = 200_000  # robot-ticks in one call of the kernel, so that Ctrl-C is heard


@dataclass(frozen=True, eq=False)
class Scores:
    """What an evaluation measures, per trial."""

    items: np.ndarray  # trials x robots: items that each robot delivered
    uniformity: np.ndarray  # trials: how evenly the visited squares were visited
    centre_distance: np.ndarray  # trials: mean distance to the centre / half the diagonal
    coverage: np.ndarray  # trials: share of the arena's squares that were visited


class Swarm:
    """A swarm in the middle of its trials.

    `team` names a controller per robot; all trials have the same team. Ten
    calls of `advance(60)` give the same bits as one of `advance(600)`.
    """

    def __init__(self, scenario: Scenario, team: Sequence[Controller]) -> None:
        self.scenario = scenario
        self.tick = 0  # ticks so far
        self._keys = layout.noise_keys(scenario.noise_key, scenario.trials, scenario.robots)
        self._world = layout.make_world(scenario)
        self._lanes = layout.make_lanes(scenario, OUTPUTS)
        self._team: tuple[Controller, ...] = ()
        layout.reset_lanes(self._lanes, scenario, self._keys)
        self.team = tuple(team)

    @property
    def team(self) -> tuple[Controller, ...]:
        """The controllers, one per robot. A robot that gets another one forgets its state."""
        return self._team

    @team.setter
    def team(self, team: Sequence[Controller]) -> None:
        team = tuple(team)
        robots, trials = self.scenario.robots, self.scenario.trials
        if len(team) != robots:
            raise InputError(
                f"the team names {len(team)} controllers; give {robots}, one per robot"
            )
        rows = layout.rows_needed(team)
        old = self._lanes.values
        if rows > len(old) or not self._team:
            values = np.zeros((rows, old.shape[1]))
            values[: len(old)] = old
            self._lanes = self._lanes._replace(values=values)
            self._work = layout.make_work(old.shape[1], rows, robots, trials)
        for robot, (before, after) in enumerate(zip(self._team, team, strict=False)):
            if before is not after:
                self._lanes.values[:, robot * trials : (robot + 1) * trials] = 0
        self._brains = layout.make_brains(team)
        self._team = team

    @property
    def disturbances(self) -> tuple[Disturbance, ...]:
        """What is broken now. Setting it changes faults and food, but moves no robot."""
        return self.scenario.disturbances

    @disturbances.setter
    def disturbances(self, disturbances: Iterable[Disturbance]) -> None:
        self.scenario = replace(self.scenario, disturbances=tuple(disturbances))
        effects = self.scenario.effects()
        layout.apply_effects(self._lanes, effects, self.scenario.trials)
        self.food = effects.food

    @property
    def food(self) -> tuple[Food, ...]:
        """The food discs that are there now; can be set. x, y and radius in metres."""
        return tuple(Food(*disc) for disc in self._world.food.tolist())

    @food.setter
    def food(self, food: Iterable[Food]) -> None:
        self._world = self._world._replace(food=layout.food_table(tuple(food)))

    @property
    def effects(self) -> Effects:
        """What the disturbances add up to."""
        return self.scenario.effects()

    def advance(self, ticks: int) -> None:
        """Let the swarm run for `ticks` ticks (0.2 s each by default)."""
        from swarmbo.engine.cpu import advance

        if ticks < 0:
            raise InputError(f"a swarm cannot be advanced by {ticks} ticks")
        while ticks > 0:
            now = min(ticks, self.ticks_per_call)
            advance(self._world, self._lanes, self._brains, self._work, self.tick, now)
            self.tick += now
            ticks -= now

    @property
    def ticks_per_call(self) -> int:
        """How many ticks one call of the kernel takes: few enough that Ctrl-C is soon heard."""
        return max(1, CALL // self._lanes.x.size)

    def restart(self, team: Sequence[Controller]) -> None:
        """Start the trials again with another team."""
        self.team = team
        self.reset()

    def reset(self, poses: np.ndarray | None = None, noise_key: int | None = None) -> None:
        """Start the trials again; with other poses (trials x robots x 3) or noise if given."""
        if poses is not None:
            self.scenario = replace(self.scenario, poses=poses)
        if noise_key is not None:
            self.scenario = replace(self.scenario, noise_key=noise_key)
            self._keys = layout.noise_keys(noise_key, self.scenario.trials, self.scenario.robots)
        layout.reset_lanes(self._lanes, self.scenario, self._keys)
        self.tick = 0

    def _by_trial(self, row: np.ndarray) -> np.ndarray:
        robots, trials = self.scenario.robots, self.scenario.trials
        return row[: robots * trials].reshape(robots, trials).T

    @property
    def poses(self) -> np.ndarray:
        """Trials x robots x 3: x and y in metres, heading in (-pi, pi] radians."""
        lanes = self._lanes
        return np.stack([self._by_trial(row) for row in (lanes.x, lanes.y, lanes.heading)], axis=-1)

    @property
    def inputs(self) -> np.ndarray:
        """Trials x robots x 10: the networks' inputs in the last tick."""
        return np.stack([self._by_trial(self._lanes.inputs[k]) for k in range(INPUTS)], axis=-1)

    @property
    def wheels(self) -> np.ndarray:
        """Trials x robots x 2: left and right wheel speed last commanded, in cm/s.

        What the controller commanded, before a fault of the actuators.
        """
        lanes = self._lanes
        sides = [self._by_trial(row).astype(np.float64) for row in (lanes.left, lanes.right)]
        return 100 * np.stack(sides, axis=-1)

    @property
    def carrying(self) -> np.ndarray:
        """Trials x robots: who carries an item."""
        return self._by_trial(self._lanes.carrying).astype(bool)

    @property
    def items(self) -> np.ndarray:
        """Trials x robots: items delivered so far."""
        return self._by_trial(self._lanes.items).copy()

    def scores(self) -> Scores:
        """Items and HBD numbers since the start of the trials."""
        ticks = max(self.tick, 1)
        visits = self._lanes.visits
        shares = visits / (ticks * self.scenario.robots)
        visited = np.count_nonzero(visits, axis=1)
        even = 1 / np.maximum(visited, 1)
        spread = np.where(visits > 0, np.abs(shares - even[:, None]), 0).sum(axis=1)
        distance = self._by_trial(self._lanes.distance).mean(axis=1) / ticks
        return Scores(
            items=self.items,
            uniformity=(1 - even) - spread / 2,
            centre_distance=distance * self._world.per_half_diagonal,
            coverage=visited / visits.shape[1],
        )
