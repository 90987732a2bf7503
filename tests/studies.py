"""Small studies: few controllers, short trials."""

import os
import sqlite3
from contextlib import closing
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import swarmbo
from swarmbo import BehaviourMap, Genomes, bundled_controllers
from swarmbo.study.definition import Definition, load_definition
from swarmbo.study.journal import JOURNAL, load_results

ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(swarmbo.__file__).resolve().parent.parent)}
CELLS = 12
EVALUATIONS = 3
STUDY = f"""
name = "small"
maps = ["one.map", {{ map = "two.map", replicate = 2 }}]
evaluations = {EVALUATIONS}
trials = 2
ticks = 100

[[experiments]]
disturbances = ["proximity", "software-nest"]
learners = ["smbo", "smooth", "random"]
conditions = 2

[[experiments]]
disturbances = ["proximity", "food-scarcity-2x"]
learners = ["smbo-dec", "lossy"]
conditions = 2

[variants]
smooth = {{ learner = "smbo", length_scale = 0.3 }}
lossy = {{ learner = "smbo-dec", loss = 0.4 }}
"""
RUNS = 2 * (2 * 2 * 3 + 2 * 2 * 2)  # maps x (disturbances x conditions x learners)
CONDITIONS = 2 * 3 * 2


@cache
def small_map(seed: int) -> BehaviourMap:
    """A map of recorded controllers, with invented performances."""
    controllers = bundled_controllers("recorded")[seed : seed + CELLS]
    places = np.stack(np.unravel_index(np.arange(CELLS), (3, 4)), axis=1)
    performance = (np.arange(CELLS) * 5 + seed) % 13
    made = BehaviourMap.from_arrays(
        places, performance, genomes=Genomes.from_controllers(controllers)
    )
    return replace(made, made={"seed": seed})


def write_study(folder: Path, text: str = STUDY, name: str = "study.toml") -> Path:
    """A study's file with its maps beside it; map one.map is of replicate 1."""
    small_map(1).save(folder / "one.map")
    small_map(7).save(folder / "two.map")
    (folder / name).write_text(text)
    return folder / name


def read_study(folder: Path, text: str = STUDY) -> Definition:
    """The definition of a study that is written into a folder."""
    return load_definition(write_study(folder, text))


def contents(folder: Path | str) -> dict[str, Any]:
    """The tables of a journal, without times and places, rows in a fixed order."""
    columns = "disturbance, replicate, map, condition, variant, seed"
    queries = {
        "study": "SELECT * FROM study ORDER BY name",
        "maps": "SELECT * FROM maps ORDER BY map, replicate",
        "conditions": "SELECT * FROM conditions ORDER BY disturbance, replicate, map, condition",
        "runs": f"SELECT {columns}, learner, learner_seed, robots, evaluations, best, composed, "
        f"team FROM runs ORDER BY {columns}",
        "evaluations": f"SELECT {columns}, number, robot, cell, outcome, evaluations.best FROM "
        f"evaluations JOIN runs USING (run) ORDER BY {columns}, number, robot",
    }
    with closing(sqlite3.connect(Path(folder) / JOURNAL)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return {name: connection.execute(query).fetchall() for name, query in queries.items()}


def assert_equal_studies(one: Path | str, other: Path | str) -> None:
    """Two folders hold the same study, to the last bit."""
    assert contents(one) == contents(other)
    first, second = load_results(one), load_results(other)
    for name in ("runs", "evaluations", "references"):
        pd.testing.assert_frame_equal(getattr(first, name), getattr(second, name), check_exact=True)
