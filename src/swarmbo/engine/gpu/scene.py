"""Scenarios as the kernels read them; those of the last launches stay on the device."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from swarmbo.engine.lanes import make_world, noise_keys
from swarmbo.world.scenario import Scenario

TABLES = 8  # sets of scenarios that stay on the device


@dataclass(frozen=True, eq=False)
class Scene:
    """What the kernel needs of one scenario, on the host."""

    constants: Any
    poses: np.ndarray  # trials x robots x 3
    keys: np.ndarray  # trials x robots x 2
    codes: np.ndarray  # robots x (proximity fault, ground fault, software)
    gains: np.ndarray  # robots x 2
    food: np.ndarray  # discs x 4, see `gpu_senses.over_food`
    body: np.ndarray
    facing: np.ndarray
    sensors: np.ndarray
    per_half_diagonal: float


_scenes: "WeakKeyDictionary[Scenario, Scene]" = WeakKeyDictionary()


def scene_of(scenario: Scenario) -> Scene:
    """What the kernels need of a scenario; made once."""
    scene = _scenes.get(scenario)
    if scene is None:
        scene = _scenes[scenario] = _make_scene(scenario)
    return scene


def _make_scene(scenario: Scenario) -> Scene:
    from swarmbo.engine.gpu.world import body_table, constants_of, facing_table

    world = make_world(scenario)
    effects = scenario.effects()
    poses = scenario.poses.copy()
    # Headings in (-pi, pi], as everywhere in the engine.
    poses[..., 2] = -((np.pi - poses[..., 2]) % (2 * np.pi) - np.pi)
    keys = noise_keys(scenario.noise_key, scenario.trials, scenario.robots)
    x, y, radius = world.food.T
    points = np.hypot(*np.transpose(world.ground_points)).max()  # m, of a sensor from the centre
    food = np.column_stack([x, y, radius**2, (radius + points + 1e-3) ** 2])
    return Scene(
        constants=constants_of(world),
        poses=poses,
        keys=keys.transpose(1, 0, 2),
        codes=np.column_stack([effects.proximity, effects.ground, effects.software]),
        gains=effects.wheel_gain,
        food=food,
        body=body_table(world),
        facing=facing_table(world),
        sensors=world.sensors,
        per_half_diagonal=world.per_half_diagonal,
    )


@dataclass(frozen=True, eq=False)
class Table:
    """The scenarios of a launch, on the device."""

    scenarios: tuple[Scenario, ...]  # kept, so that their addresses stay theirs
    tables: tuple[Any, ...]  # pairs, facing, sensors
    body: Any
    scene: tuple[Any, ...]


_tables: "OrderedDict[tuple[int, ...], Table]" = OrderedDict()


def table_of(scenarios: tuple[Scenario, ...]) -> Table:
    """The scenarios of a launch on the device; uploaded unless they are there."""
    key = tuple(map(id, scenarios))
    table = _tables.get(key)
    if table is None:
        table = _tables[key] = _make_table(scenarios)
        while len(_tables) > TABLES:
            _tables.popitem(last=False)
    _tables.move_to_end(key)
    return table


def _make_table(scenarios: tuple[Scenario, ...]) -> Table:
    from swarmbo.engine.gpu.warp import cuda
    from swarmbo.engine.gpu.world import pair_table

    scenes = [scene_of(scenario) for scenario in scenarios]
    robots = scenarios[0].robots
    discs = max(1, *(len(scene.food) for scene in scenes))
    food = np.full((len(scenes), discs, 4), -1.0)  # no point is within a negative radius^2
    for row, scene in zip(food, scenes, strict=True):
        row[: len(scene.food)] = scene.food

    def upload(array: Any, kind: type) -> Any:
        return cuda.to_device(np.ascontiguousarray(array, dtype=kind))

    return Table(
        scenarios=scenarios,
        tables=(
            upload(pair_table(robots), np.uint32),
            upload(scenes[0].facing, np.uint32),
            upload(scenes[0].sensors.ravel(), np.float32),
        ),
        body=upload(scenes[0].body.ravel(), np.float32),
        scene=(
            discs,
            upload(np.stack([scene.poses for scene in scenes]), np.float64),
            upload(np.stack([scene.keys for scene in scenes]), np.uint32),
            upload(np.stack([scene.codes for scene in scenes]), np.int32),
            upload(np.stack([scene.gains for scene in scenes]), np.float32),
            upload(food.ravel(), np.float32),
        ),
    )
