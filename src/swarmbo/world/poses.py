"""Start poses from a CSV file, checked: every robot once per trial, inside the walls, apart."""

import csv
import io
import math
import os
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from swarmbo.errors import InputError, naming, short
from swarmbo.files import read_text
from swarmbo.world.arena import FORAGING, Arena
from swarmbo.world.geometry import body_at, first_overlap
from swarmbo.world.robot import THYMIO, Robot

COLUMNS = ("trial", "robot", "x", "y", "theta")
TOLERANCE = 1e-6  # m that a body may stick into a wall: poses are often written with few digits


class _Row(NamedTuple):
    line: int  # in the file, from 1
    trial: int
    robot: int
    pose: tuple[float, float, float]  # x and y in m, heading in rad


def load_poses(
    path: str | os.PathLike[str], arena: Arena = FORAGING, robot: Robot = THYMIO
) -> np.ndarray:
    """The start poses in a CSV file, trials x robots x 3, fit for a `Scenario`.

    Columns trial, robot, x, y (metres) and theta (radians), in any order; others
    are ignored. A name that ends in .gz is unpacked.
    """
    text = read_text(path)
    with naming(path):
        poses = _arrange(list(_rows(text)))
        for trial, placed in enumerate(poses):
            _check_walls(placed, trial, arena, robot)
            _check_apart(placed, trial, robot)
    return poses


def _rows(text: str) -> Iterator[_Row]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        for name in COLUMNS:
            if header.count(name) != 1:
                fault = "twice" if name in header else "missing"
                raise InputError(
                    f"the column {name} is {fault}; the first line names trial, robot, x, y, theta"
                )
        places = [header.index(name) for name in COLUMNS]
        for cells in reader:
            if not cells:
                continue
            line = reader.line_num
            if len(cells) != len(header):
                raise InputError(
                    f"line {line} has {len(cells)} cells; give {len(header)}, as in the first line"
                )
            trial, robot, x, y, theta = (cells[place] for place in places)
            yield _Row(
                line,
                _count(trial, "trial", line),
                _count(robot, "robot", line),
                (_number(x, "x", line), _number(y, "y", line), _number(theta, "theta", line)),
            )
    except csv.Error as error:
        raise InputError(f"line {reader.line_num} is not CSV ({error}); correct it") from None


def _count(text: str, name: str, line: int) -> int:
    value = text.strip()
    if not (value.isascii() and value.isdigit() and len(value) < 10):
        raise InputError(f"line {line}: {name} is {short(text)}; give an integer from 0")
    return int(value)


def _number(text: str, name: str, line: int) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"line {line}: {name} is {short(text)}; give a finite number")
    return value


def _arrange(rows: list[_Row]) -> np.ndarray:
    """The rows as one array, trials x robots x 3; every (trial, robot) must be there once."""
    if not rows:
        raise InputError("holds no poses; give one line per trial and robot")
    lines: dict[tuple[int, int], int] = {}
    for row in rows:
        before = lines.setdefault((row.trial, row.robot), row.line)
        if before != row.line:
            raise InputError(
                f"lines {before} and {row.line} both place robot {row.robot} in trial {row.trial}; "
                "keep one"
            )
    trials = sorted({row.trial for row in rows})
    robots = sorted({row.robot for row in rows})
    for name, numbers in (("trial", trials), ("robot", robots)):
        for expected, number in enumerate(numbers):
            if number != expected:
                raise InputError(
                    f"{name} {expected} is missing; number the {name}s from 0 without gaps"
                )
    for trial in trials:
        for robot in robots:
            if (trial, robot) not in lines:
                raise InputError(
                    f"robot {robot} is missing in trial {trial}; place robots "
                    f"0 to {robots[-1]} in every trial"
                )
    poses = np.zeros((len(trials), len(robots), 3))
    for row in rows:
        poses[row.trial, row.robot] = row.pose
    return poses


def _check_walls(poses: np.ndarray, trial: int, arena: Arena, robot: Robot) -> None:
    body = np.array(robot.body)
    size = np.array([arena.width, arena.height])
    for number, pose in enumerate(poses):
        vertices = body_at(body, pose)
        if (vertices < -TOLERANCE).any() or (vertices > size + TOLERANCE).any():
            raise InputError(
                f"trial {trial}, robot {number}: the body at x = {pose[0]:g}, y = {pose[1]:g} is "
                f"not inside the walls; the arena {arena.name} goes from 0 to {arena.width:g} m "
                f"in x and to {arena.height:g} m in y"
            )


def _check_apart(poses: np.ndarray, trial: int, robot: Robot) -> None:
    overlap = first_overlap(np.array(robot.body), poses)
    if overlap is not None:
        a, b = overlap
        raise InputError(
            f"trial {trial}: the bodies of robots {a} and {b} intersect; move them apart"
        )
