"""What a simulation leaves behind: a table of scores, and traces of every robot and tick."""

import os
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from swarmbo.controller.network import INPUTS
from swarmbo.engine.rollout import Rollout, Team
from swarmbo.engine.swarm import Swarm
from swarmbo.files import whole_file
from swarmbo.world.scenario import Scenario

_NUMBERS = ("x", "y", "theta", *(f"in{number}" for number in range(INPUTS)), "left", "right")

TRACE_SCHEMA = pa.schema(
    [(name, pa.int32()) for name in ("team", "trial", "tick", "robot")]
    + [(name, pa.float64()) for name in _NUMBERS]
    + [("carrying", pa.int8())]
)


def scores_table(result: Rollout) -> pd.DataFrame:
    """The scores as a table, one row per team and trial.

    Columns team, trial, items (of all robots), items_0, items_1, ... (of each),
    uniformity, centre_distance, coverage.
    """
    teams, trials, robots = result.items.shape
    team, trial = np.indices((teams, trials))
    columns = {"team": team, "trial": trial, "items": result.items.sum(axis=2)}
    columns |= {f"items_{robot}": result.items[:, :, robot] for robot in range(robots)}
    columns |= {
        "uniformity": result.uniformity,
        "centre_distance": result.centre_distance,
        "coverage": result.coverage,
    }
    return pd.DataFrame({name: column.ravel() for name, column in columns.items()})


def write_trace(
    path: str | os.PathLike[str],
    teams: Sequence[Team],
    scenario: Scenario,
    *,
    progress: Callable[[int], None] | None = None,
) -> None:
    """Run every team in the scenario and write what each robot does in each tick, as Parquet.

    Columns team, trial, tick (from 1), robot, x and y (m), theta (rad), in0 to
    in9 (the network's inputs), left and right (cm/s, as commanded at the end of
    the tick) and carrying (0 or 1), in the order of team, trial, tick and robot.
    Teams run one after the other, each a row group, so memory does not grow with
    their number. `progress` is called with the number of teams done so far.
    """
    with (
        whole_file(path) as temporary,
        pq.ParquetWriter(temporary, TRACE_SCHEMA, compression="zstd") as writer,
    ):
        for number, team in enumerate(teams):
            writer.write_table(_trace(number, Swarm(scenario, team)))
            if progress is not None:
                progress(number + 1)


def _trace(team: int, swarm: Swarm) -> pa.Table:
    """Run a fresh swarm through its trials; a row per trial, tick and robot."""
    scenario = swarm.scenario
    shape = (scenario.trials, scenario.ticks, scenario.robots)
    numbers = np.empty((len(_NUMBERS), *shape))
    carrying = np.empty(shape, np.int8)
    for tick in range(scenario.ticks):
        swarm.advance(1)
        values = np.concatenate([swarm.poses, swarm.inputs, swarm.wheels], axis=-1)
        numbers[:, :, tick] = np.moveaxis(values, -1, 0)
        carrying[:, tick] = swarm.carrying
    trial, tick, robot = np.indices(shape, dtype=np.int32)
    columns = [np.full(shape, team, np.int32), trial, tick + 1, robot, *numbers, carrying]
    arrays = [pa.array(column.ravel()) for column in columns]
    return pa.Table.from_arrays(arrays, schema=TRACE_SCHEMA)
