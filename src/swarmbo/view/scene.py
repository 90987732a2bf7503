"""What pages and pictures draw: the world, the map and the faults in the form of the web modules.

The forms are described at the heads of the modules in `view/web`. Lengths are in
metres, angles in radians, performances in items per robot.
"""

import json
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from swarmbo.maps.behaviour_map import GRID, BehaviourMap
from swarmbo.world.disturbance import MAD, SENSOR_FAULTS, STUCK, WHEEL_FAULTS, Effects
from swarmbo.world.scenario import Scenario

HBD_NAMES = ("uniformity", "distance to centre", "coverage")
MAX_LEVELS = 32  # of a grid along its third dimension, that can be drawn side by side
MAX_SIDE = 64  # cells along the other dimensions


def web_text(name: str) -> str:
    """The text of a file that pages are made of."""
    return (files("swarmbo.view") / "web" / name).read_text(encoding="utf-8")


@cache
def palette() -> dict[str, Any]:
    """The colours of all pages and pictures: "light" and "dark" by name, and two ramps."""
    text = web_text("colours.js").partition("PALETTE = ")[2].partition("\n};")[0]
    found: dict[str, Any] = json.loads(text + "}")
    return found


def world_json(scenario: Scenario) -> dict[str, Any]:
    """The arena as it was before any disturbance, and the robot."""
    arena, robot = scenario.arena, scenario.robot
    return {
        "width": arena.width,
        "height": arena.height,
        "nest": {"depth": arena.nest_depth},
        "food": [list(disc) for disc in arena.food],
        "robot": {
            "outline": [list(corner) for corner in robot.body],
            "radius": robot.radius,
            "sensors": [
                {"x": each.x, "y": each.y, "angle": each.angle, "range": robot.proximity_range}
                for each in robot.proximity_sensors
            ],
        },
        "robots": scenario.robots,
    }


def fault_words(effects: Effects) -> list[str]:
    """Per robot what is broken: "none", "proximity min", "wheels left + ground max", "mad"..."""
    sides = {gain: name for name, gain in WHEEL_FAULTS.items()}
    words = []
    for robot in range(effects.robots):
        software = {MAD: "mad", STUCK: "stuck"}.get(int(effects.software[robot]))
        faults = [] if software is None else [software]
        for sensor, codes in (("proximity", effects.proximity), ("ground", effects.ground)):
            if codes[robot]:
                faults.append(f"{sensor} {SENSOR_FAULTS[codes[robot]]}")
        left, right = effects.wheel_gain[robot].tolist()
        if (left, right) != (1, 1):
            faults.append(f"wheels {sides.get((left, right), f'{left:g} {right:g}')}")
        words.append(" + ".join(faults) or "none")
    return words


def map_json(behaviour_map: BehaviourMap, name: str) -> dict[str, Any]:
    """A map: where its cells go, and what their controllers delivered before the fault."""
    found: dict[str, Any] = {
        "kind": behaviour_map.descriptor_name,
        "name": name,
        "robots": behaviour_map.robots,
        "performance": np.round(behaviour_map.performance / behaviour_map.robots, 3).tolist(),
    }
    shape = grid_shape(behaviour_map)
    if shape is None:
        return found | {
            "shape": None,
            "cells": behaviour_map.cells[:, 0].tolist()
            if behaviour_map.cells.shape[1] == 1
            else list(range(behaviour_map.filled_cells)),
            "place": table_places(behaviour_map).tolist(),
        }
    flat = np.ravel_multi_index(tuple(behaviour_map.cells.T), shape)
    names = HBD_NAMES if behaviour_map.descriptor_name == "hbd" else ()
    return found | {"shape": list(shape), "cells": flat.tolist(), "names": list(names)}


def grid_shape(behaviour_map: BehaviourMap) -> tuple[int, ...] | None:
    """The sides of a map that is drawn as a grid; None for one that is drawn as a table."""
    if behaviour_map.descriptor_name == "hbd":
        return (GRID,) * 3
    sides = tuple((behaviour_map.cells.max(axis=0) + 1).tolist())
    most = (MAX_SIDE, MAX_SIDE, MAX_LEVELS)
    is_small = len(sides) <= 3 and all(map(int.__le__, sides, most))
    return sides if behaviour_map.centroids is None and is_small else None


def table_places(behaviour_map: BehaviourMap) -> np.ndarray:
    """Columns and rows of a table in which alike behaviours are near each other.

    The behaviours are ranked along their first principal component, cut into
    columns, and each column is ranked along the second.
    """
    centred = behaviour_map.descriptor - behaviour_map.descriptor.mean(axis=0)
    count = len(centred)
    components = np.zeros((count, 2))
    if count > 2:
        left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
        signs = np.sign(left[np.abs(left).argmax(axis=0), range(len(sizes))])
        kept = min(2, len(sizes))
        components[:, :kept] = (left * sizes * signs)[:, :kept]
    rows = max(1, round((count / 1.6) ** 0.5))
    places = np.zeros((count, 2), int)
    order = np.argsort(components[:, 0], kind="stable")
    for column, first in enumerate(range(0, count, rows)):
        members = order[first : first + rows]
        ranked = members[np.argsort(components[members, 1], kind="stable")]
        places[ranked] = np.column_stack([np.full(len(ranked), column), np.arange(len(ranked))])
    return places
