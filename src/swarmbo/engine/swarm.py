"""A swarm that runs: advance it by any number of ticks, look at it, break it, go on."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from operator import is_not
from weakref import WeakKeyDictionary

import numpy as np

from swarmbo.controller.network import INPUTS, OUTPUTS, Controller
from swarmbo.engine import lanes as layout
from swarmbo.errors import InputError, short
from swarmbo.world.arena import Food, checked_food
from swarmbo.world.checks import checked_integer
from swarmbo.world.disturbance import Disturbance, Effects
from swarmbo.world.memory import PAIR, check_memory, memory_of
from swarmbo.world.scenario import MAX_VISITS, Scenario, check_size

CALL = 200_000  # robot-ticks in one call of the kernel, so that Ctrl-C is heard
OUTSIDE = 1  # radius beyond a wall: a robot whose centre is farther away has left the arena


@dataclass(frozen=True, eq=False)
class Scores:
    """What an evaluation measures, per trial."""

    items: np.ndarray  # trials x robots: items that each robot delivered
    uniformity: np.ndarray  # trials: how evenly the visited squares were visited
    centre_distance: np.ndarray  # trials: mean distance to the centre / half the diagonal
    coverage: np.ndarray  # trials: share of the arena's squares that were visited
    features: np.ndarray | None = None  # trials x 12: means of `lanes.FEATURES`, then deviations


_known: "WeakKeyDictionary[Scenario, layout.World]" = WeakKeyDictionary()


def _world(scenario: Scenario) -> layout.World:
    """The constants of a scenario; many swarms run in the same one."""
    if scenario not in _known:
        _known[scenario] = layout.make_world(scenario)
    return _known[scenario]


def left_arena(scenario: Scenario, tick: int) -> InputError:
    """What to say of a run that has robots outside the walls, or nowhere."""
    return InputError(
        f"robots left the arena {scenario.arena.name} by tick {tick}, pushed harder than the "
        "simulation can follow, so there are no scores; use fewer or slower robots, less friction, "
        "or more sub-steps in a tick"
    )


class Swarm:
    """A swarm in the middle of its trials.

    `team` names a controller per robot; all trials have the same team. Ten
    calls of `advance(60)` give the same bits as one of `advance(600)`. With
    `features` the scores have those on which the descriptor SDBC is built.
    """

    _swarms = 1  # that share the lanes, see `Swarms`

    def __init__(
        self, scenario: Scenario, team: Sequence[Controller], *, features: bool = False
    ) -> None:
        if not isinstance(scenario, Scenario):
            raise InputError(f"a swarm needs a Scenario, not {short(scenario)}")
        robots, trials = scenario.robots, scenario.trials
        check_size(robots * self._swarms, trials)
        needed = memory_of(scenario.arena, robots, trials, self._swarms)
        check_memory(needed, f"{robots:,} robots in {trials:,} trials")
        self.scenario = scenario
        self.tick = 0  # ticks so far
        self._world = _world(scenario)._replace(robots=self._swarms * scenario.robots)
        self._lanes = layout.make_lanes(scenario, OUTPUTS, features, self._swarms)
        self._work = self._make_work(OUTPUTS)
        self._team: tuple[Controller, ...] = ()
        self._start: list[tuple[np.ndarray, np.ndarray]] = []  # an array, and how it is at first
        self.reset()
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
        self._make_room(layout.rows_needed(team))
        for robot, (before, after) in enumerate(zip(self._team, team, strict=False)):
            if before is not after:
                self._lanes.values[:, robot * trials : (robot + 1) * trials] = 0
        self._brains = layout.make_brains(team)
        self._team = team

    def _make_room(self, rows: int) -> None:
        """See to it that networks of so many neurons beside the inputs fit."""
        old = self._lanes.values
        if rows > len(old):
            values = layout.aligned((rows, old.shape[1]), np.float64)
            values[: len(old)] = old
            self._lanes = self._lanes._replace(values=values)
            self._work = self._make_work(rows)

    def _make_work(self, rows: int) -> layout.Work:
        return layout.make_work(self._lanes.x.size, rows, self._world)

    @property
    def disturbances(self) -> tuple[Disturbance, ...]:
        """What is broken now. Setting it changes faults and food, but moves no robot."""
        return self.scenario.disturbances

    @disturbances.setter
    def disturbances(self, disturbances: Iterable[Disturbance]) -> None:
        self.scenario = replace(self.scenario, disturbances=tuple(disturbances))
        self._start.clear()
        effects = self.scenario.effects()
        layout.apply_effects(self._lanes, effects, self.scenario.trials)
        self.food = effects.food

    @property
    def food(self) -> tuple[Food, ...]:
        """The food discs that are there now; can be set. x, y and radius in metres."""
        return tuple(Food(*disc) for disc in self._world.food.tolist())

    @food.setter
    def food(self, food: Iterable[Food]) -> None:
        discs = [checked_food(f"food {number}", disc) for number, disc in enumerate(food)]
        self._world = self._world._replace(food=layout.food_table(discs))

    @property
    def effects(self) -> Effects:
        """What the disturbances add up to."""
        return self.scenario.effects()

    def advance(self, ticks: int) -> None:
        """Let the swarm run for `ticks` ticks (0.2 s each by default)."""
        from swarmbo.engine.cpu.driver import advance

        left = MAX_VISITS // self.scenario.robots - self.tick
        ticks = checked_integer("the number of ticks to advance", ticks, 0, left)
        moved = False
        while ticks > 0:
            now = min(ticks, self.ticks_per_call)
            done, moved, near, beyond = advance(
                self._world, self._lanes, self._brains, self._work, self.tick, now, moved
            )
            self.tick += done
            ticks -= done
            self._check_state(beyond)
            if done < now:  # there are more pairs near each other than there is room for
                pairs = min(near + near // 4, layout.all_pairs(self._world) + layout.WIDTH)
                check_memory(PAIR * pairs, f"{near:,} pairs of robots that are near each other")
                self._work = layout.with_room(self._work, pairs)

    def _check_state(self, beyond: float) -> None:
        """InputError when a robot is nowhere, or has been `beyond` metres outside the arena."""
        lanes = self._lanes
        known = all(np.isfinite(row).all() for row in (lanes.x, lanes.y, lanes.heading))
        if not known or not beyond <= OUTSIDE * self.scenario.robot.radius:
            raise left_arena(self.scenario, self.tick)

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
            self._start.clear()
        if noise_key is not None:
            self.scenario = replace(self.scenario, noise_key=noise_key)
            self._start.clear()
        if not self._start:
            layout.reset_lanes(self._lanes, self._scenarios())
            arrays = self._lanes._replace(values=self._lanes.x)
            self._start = [(array, array.copy()) for array in arrays]
        for array, start in self._start:
            array[...] = start
        self._lanes.values.fill(0)
        self.tick = 0

    def _scenarios(self) -> Sequence[Scenario]:
        """The scenario of each swarm."""
        return [self.scenario]

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

        What the controller commanded, before a fault of the actuators; it drives the robot in
        the next tick. A copy, and read-only: a controller alone sets the speeds.
        """
        lanes = self._lanes
        sides = [self._by_trial(row).astype(np.float64) for row in (lanes.left, lanes.right)]
        speeds: np.ndarray = 100 * np.stack(sides, axis=-1)
        speeds.setflags(write=False)
        return speeds

    @wheels.setter
    def wheels(self, _: object) -> None:
        raise InputError(
            "Swarm.wheels is read-only: the controllers of Swarm.team set the speeds of the wheels"
        )

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
        return self._scores()[0]

    def _scores(self) -> list[Scores]:
        """Those of each swarm."""
        ticks = max(self.tick, 1)
        robots, trials = self.scenario.robots, self.scenario.trials
        shape = (self._swarms, robots, trials)
        size = self._swarms * robots * trials
        items = self._lanes.items[:size].reshape(shape).transpose(0, 2, 1).copy()
        distance = self._lanes.distance[:size].reshape(shape).mean(axis=1) / ticks
        visits = self._lanes.visits
        shares = visits / (ticks * robots)
        visited = np.count_nonzero(visits, axis=1)
        even = 1 / np.maximum(visited, 1)
        spread = np.where(visits > 0, np.abs(shares - even[:, None]), 0).sum(axis=1)
        uniformity = ((1 - even) - spread / 2).reshape(self._swarms, trials)
        coverage = (visited / visits.shape[1]).reshape(self._swarms, trials)
        centre_distance = distance * self._world.per_half_diagonal
        features = self._features(ticks)
        columns = zip(items, uniformity, centre_distance, coverage, strict=True)
        return [Scores(*column, features=features) for column in columns]

    def _features(self, ticks: int) -> np.ndarray | None:
        sums = self._lanes.features
        if sums.shape[1] == 0:
            return None
        mean, square = np.split(sums / ticks, 2)
        return np.concatenate([mean, np.sqrt(np.maximum(square - mean * mean, 0))]).T


class Swarms(Swarm):
    """Several swarms side by side, which do not meet: they fill vectors better than one does.

    Each gets the very numbers that it would get alone. They can be begun, advanced and
    scored; what else `Swarm` tells is about the first of them, and not to be set.
    """

    def __init__(self, scenario: Scenario, swarms: int, *, features: bool = False) -> None:
        self._swarms = swarms
        self._each = [scenario] * swarms
        still = Controller(0, (0.0, 0.0), ())
        super().__init__(scenario, [still] * scenario.robots, features=features)

    def _scenarios(self) -> Sequence[Scenario]:
        return self._each

    def begin(
        self, brains: Sequence[layout.Brains], scenarios: Sequence[Scenario] | None = None
    ) -> None:
        """Start the trials again, each swarm with its brains.

        And, if given, in its own scenario; they may differ in poses, faults and noise alone.
        """
        if scenarios is not None and any(map(is_not, scenarios, self._each)):
            self._each = list(scenarios)
            self.scenario = self._each[0]
            self._start.clear()
        self._make_room(max(int((part.runs[:, 3] - part.runs[:, 2]).max()) for part in brains))
        self._brains = layout.join_brains(brains)
        self.reset()

    def all_scores(self) -> list[Scores]:
        """The scores of each swarm."""
        return self._scores()
