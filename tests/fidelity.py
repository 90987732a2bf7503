"""How closely a simulation follows the recordings of ARGoS: `python -m tests.fidelity`.

Every measurement takes the simulation as a parameter (the class of a swarm, or
a function that scores many teams), so the engine and the naive oracle are
measured by the same yardstick.
"""

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer
from rich.console import Console
from rich.table import Table

from swarmbo.controller.genomes import Genomes
from swarmbo.controller.network import Controller, load_controllers
from swarmbo.engine.gpu import driver as gpu
from swarmbo.world.arena import ARENAS
from swarmbo.world.disturbance import from_json
from swarmbo.world.robot import THYMIO
from swarmbo.world.scenario import Scenario, replicate_noise_key

RECORDINGS = Path(__file__).parent / "data" / "argos"
KNIFE_EDGES = ("headon_offset5cm", "two_push_one_reverse")  # a corner slips to either side
NOISE_KEY = replicate_noise_key(1)  # that of `swarmbo simulate`; the recordings' is unknown
HBD = ("uniformity", "centre_distance", "coverage")
PROXIMITY = [f"p{number}" for number in range(7)]
INPUTS = [f"in{number}" for number in range(10)]

MakeSwarm = Callable[[Scenario, Sequence[Controller]], Any]  # the class of a swarm
Rollout = Callable[[Sequence[Sequence[Controller]], Scenario], Any]  # scores of many teams


@dataclass(frozen=True)
class Row:
    """One demand on a recording and how it was met."""

    recording: str
    measure: str
    limit: float
    measured: float
    at_least: bool = False  # the limit is a lower one

    @property
    def ok(self) -> bool:
        """Whether the demand is met; a number that could not be measured does not meet it."""
        if self.at_least:
            return self.measured >= self.limit
        return self.measured <= self.limit


def read(folder: Path, name: str) -> pd.DataFrame:
    """A recording as a table."""
    return pd.read_csv(folder / f"{name}.csv.gz")


# --- Driving a simulation -----------------------------------------------------------------


def constant_controller(left: float, right: float) -> Controller:
    """A network without connections that always commands these wheel speeds (cm/s)."""
    return Controller(0, (_bias(left), _bias(right)), ())


def _bias(speed: float) -> float:
    """The bias of an output neuron that gives a wheel speed in cm/s."""
    output = speed / (100 * THYMIO.max_speed)
    return math.copysign(20, output) if abs(output) >= 1 else math.atanh(output)


def still_inputs(make_swarm: MakeSwarm, poses: np.ndarray) -> np.ndarray:
    """Noiseless network inputs (trials x robots x 10) at poses (trials x robots x 3)."""
    stopped = [constant_controller(0, 0)] * poses.shape[1]
    swarm = make_swarm(Scenario(poses=poses).without_noise(), stopped)
    swarm.advance(1)  # in a trial's first tick the robots stand still
    return np.asarray(swarm.inputs)


def drive(make_swarm: MakeSwarm, start: np.ndarray, commands: np.ndarray) -> np.ndarray:
    """Poses (ticks x robots x 3) from start poses (robots x 3).

    `commands` (ticks x robots x 2, cm/s) hold the wheel speeds that are set at
    the end of each tick.
    """
    teams = [[constant_controller(*speeds) for speeds in command] for command in commands]
    swarm = make_swarm(Scenario(poses=start[np.newaxis]).without_noise(), teams[0])
    poses = []
    for team in teams:
        swarm.team = team
        swarm.advance(1)
        poses.append(swarm.poses[0])
    return np.array(poses)


class GpuSwarm:
    """A swarm on the GPU whose robots keep their controllers; it starts anew for every look."""

    def __init__(self, scenario: Scenario, team: Sequence[Controller]) -> None:
        self.scenario = scenario
        self.team = team
        self.ticks = 0

    def advance(self, ticks: int) -> None:
        """Go on by so many ticks."""
        self.ticks += ticks

    @property
    def poses(self) -> np.ndarray:
        """The poses, trials x robots x 3."""
        scenario = replace(self.scenario, ticks=self.ticks)
        teams = np.arange(len(self.team))[np.newaxis]
        job = gpu.Job(scenario, Genomes.from_controllers(self.team), teams)
        return gpu.launch([job]).poses()[0][0]


# --- Errors against recorded motion -------------------------------------------------------


@dataclass(frozen=True)
class MotionError:
    """Distance to the recorded position (m) and heading (rad), per tick and robot."""

    position: np.ndarray
    heading: np.ndarray

    @classmethod
    def between(cls, poses: np.ndarray, recorded: np.ndarray) -> "MotionError":
        """Errors of poses (... x 3) against recorded ones."""
        gap = poses - recorded
        turn = np.abs((gap[..., 2] + np.pi) % (2 * np.pi) - np.pi)
        return cls(np.hypot(gap[..., 0], gap[..., 1]), turn)

    @classmethod
    def joined(cls, errors: Iterable["MotionError"]) -> "MotionError":
        """The errors of several runs, flattened."""
        errors = list(errors)
        return cls(
            np.concatenate([error.position.ravel() for error in errors]),
            np.concatenate([error.heading.ravel() for error in errors]),
        )


def ticks_before_contact(run: pd.DataFrame, robots: int) -> int:
    """How many rows per robot a run has before any of its robots touches something."""
    touching = run["colliding"].to_numpy().reshape(-1, robots).any(axis=1)
    return int(np.argmax(touching)) if touching.any() else len(touching)


def driven_errors(
    make_swarm: MakeSwarm, recording: pd.DataFrame, until_contact: bool
) -> MotionError:
    """Errors of driving as in a recording, all its cases together.

    With `until_contact` only the ticks before the first contact of a case count.
    """
    if "cmd_left_cm_s" in recording:
        recording = recording.rename(
            columns={"cmd_left_cm_s": "left_cm_s", "cmd_right_cm_s": "right_cm_s"}
        )
    if "robot" not in recording:
        recording = recording.assign(robot=0)
    errors = []
    for _, case in recording.sort_values(["tick", "robot"]).groupby("case"):
        robots = case["robot"].nunique()
        recorded = case[["x_m", "y_m", "theta_rad"]].to_numpy().reshape(-1, robots, 3)
        commands = case[["left_cm_s", "right_cm_s"]].to_numpy().reshape(-1, robots, 2)
        ticks = ticks_before_contact(case, robots) if until_contact else len(recorded)
        if ticks > 1:
            poses = drive(make_swarm, recorded[0], commands[1:ticks])
            errors.append(MotionError.between(poses, recorded[1:ticks]))
    return MotionError.joined(errors)


# --- The measurements ---------------------------------------------------------------------


def free_motion(make_swarm: MakeSwarm, folder: Path = RECORDINGS) -> list[Row]:
    """Driving without contact, at constant and at random speeds."""
    rows = []
    for name in ("free_motion", "free_motion_random_speeds"):
        error = driven_errors(make_swarm, read(folder, name), until_contact=True)
        rows.append(Row(name, "worst position error, m", 1e-5, error.position.max()))
        rows.append(Row(name, "worst heading error, rad", 1e-5, error.heading.max()))
    return rows


def proximity_readings(make_swarm: MakeSwarm, folder: Path = RECORDINGS) -> list[Row]:
    """Proximity sensors near walls and robots, poses without contact."""
    wall = read(folder, "proximity_wall").query("colliding == 0")
    wall_poses = np.stack([wall["x_m"], wall["y_m"], np.radians(wall["theta_deg"])], axis=-1)

    other = read(folder, "proximity_robot").query("colliding == 0")
    sensing = np.stack([other["x0"], other["y0"], np.radians(other["sensing_theta_deg"])], axis=-1)
    sensed = np.stack([other["x1"], other["y1"], np.radians(other["other_theta_deg"])], axis=-1)

    rows = []
    for name, recorded, poses in (
        ("proximity_wall", wall, wall_poses[:, np.newaxis]),
        ("proximity_robot", other, np.stack([sensing, sensed], axis=1)),
    ):
        values = (1 - still_inputs(make_swarm, poses)[:, 0, :7]) / 2
        close = np.abs(values - recorded[PROXIMITY].to_numpy()) <= 1e-3
        rows.append(Row(name, "readings within 1e-3", 0.995, close.mean(), at_least=True))
    return rows


def ground_readings(make_swarm: MakeSwarm, folder: Path = RECORDINGS) -> list[Row]:
    """Ground sensors over the floor."""
    recorded = read(folder, "ground")
    heading = np.radians(recorded["theta_deg"])
    poses = np.stack([recorded["x_m"], recorded["y_m"], heading], axis=-1)
    grey = (still_inputs(make_swarm, poses[:, np.newaxis])[:, 0, 7:9] + 1) / 2 * 255
    equal = np.abs(grey - recorded[["g0", "g1"]].to_numpy()) < 0.5  # three far-apart levels
    return [Row("ground", "readings equal", 0.999, equal.mean(), at_least=True)]


def sensor_noise(make_swarm: MakeSwarm, folder: Path = RECORDINGS) -> list[Row]:
    """Mean and spread of noisy inputs at fixed poses, worst over poses and sensors.

    The limits are about four standard errors of the recorded 1,000 samples.
    """
    mean_gaps, spread_gaps = [], []
    for _, samples in read(folder, "noise_samples").groupby("place"):
        poses = samples[["x_m", "y_m", "theta_rad"]].to_numpy()[:, np.newaxis]
        swarm = make_swarm(Scenario(poses=poses, noise_key=NOISE_KEY), [constant_controller(0, 0)])
        swarm.advance(1)
        inputs = np.asarray(swarm.inputs)[:, 0, :9]
        near, grey = 1 - 2 * samples[PROXIMITY], 2 * samples[["g0", "g1"]] / 255 - 1
        recorded = np.clip(np.concatenate([near, grey], axis=1), -1, 1)
        mean_gaps.append(np.abs(inputs.mean(axis=0) - recorded.mean(axis=0)))
        spread_gaps.append(np.abs(inputs.std(axis=0) - recorded.std(axis=0)))
    means, spreads = np.max(mean_gaps, axis=0), np.max(spread_gaps, axis=0)
    name = "noise_samples"
    return [
        Row(name, "proximity inputs: mean off by", 0.010, means[:7].max()),
        Row(name, "proximity inputs: SD off by", 0.006, spreads[:7].max()),
        Row(name, "ground inputs: mean off by", 0.016, means[7:].max()),
        Row(name, "ground inputs: SD off by", 0.010, spreads[7:].max()),
    ]


def wall_contact(make_swarm: MakeSwarm, folder: Path = RECORDINGS) -> list[Row]:
    """A robot driving into a wall."""
    name = "wall_collision"
    error = driven_errors(make_swarm, read(folder, name), until_contact=False)
    return [
        Row(name, "worst heading error, rad", 1e-4, error.heading.max()),
        Row(name, "median position error, m", 0.5e-3, np.median(error.position)),
        Row(name, "worst position error, m", 3e-3, error.position.max()),
    ]


def robot_contact(make_swarm: MakeSwarm, folder: Path = RECORDINGS) -> list[Row]:
    """Two and three robots meeting each other and walls, without the knife-edge cases."""
    rows = []
    for name in ("robot_collision", "three_robot_contact"):
        recording = read(folder, name)
        recording = recording[~recording["name"].isin(KNIFE_EDGES)]
        error = driven_errors(make_swarm, recording, until_contact=False)
        worst = np.percentile(error.position, 95)
        rows += [
            Row(name, "worst heading error, rad", 1e-4, error.heading.max()),
            Row(name, "median position error, m", 2e-3, np.median(error.position)),
            Row(name, "95th percentile of position error, m", 15e-3, worst),
        ]
    return rows


def trajectories(make_swarm: MakeSwarm, folder: Path = RECORDINGS) -> list[Row]:
    """Controllers without noise: motion until the first contact, and inputs at every pose."""
    name = "foraging_quiet_trajectories"
    recorded = read(folder, name).sort_values(["controller", "trial", "tick", "robot"])
    controllers = load_controllers(folder / "controllers.json")
    starts = start_poses(folder / "foraging_quiet_poses.csv.gz")
    robots = starts.shape[1]
    errors = []
    for (controller, trial), run in recorded.groupby(["controller", "trial"]):
        poses = run[["x", "y", "theta"]].to_numpy().reshape(-1, robots, 3)
        ticks = ticks_before_contact(run, robots)
        start = starts[[trial]]
        swarm = make_swarm(
            Scenario(poses=start).without_noise(), [controllers[controller]] * robots
        )
        for tick in range(ticks):
            swarm.advance(1)
            errors.append(MotionError.between(swarm.poses[0], poses[tick]))
    poses = recorded[["x", "y", "theta"]].to_numpy().reshape(-1, robots, 3)
    inputs = still_inputs(make_swarm, poses).reshape(-1, len(INPUTS))
    close = np.abs(inputs - recorded[INPUTS].to_numpy()) <= 1e-3
    worst = MotionError.joined(errors).position.max()
    return [
        Row(name, "worst position error until contact, m", 5e-4, worst),
        Row(name, "inputs within 1e-3", 0.995, close.mean(), at_least=True),
    ]


def foraging(rollout: Rollout, folder: Path = RECORDINGS) -> list[Row]:
    """Items and behaviour of the controllers with noise, pooled over both seeds."""
    name = "foraging_seed1 and 2"
    pairs = [
        per_controller(
            rollout, folder, f"foraging_{seed}_scores.csv.gz", f"foraging_{seed}_poses.csv.gz"
        )
        for seed in ("seed1", "seed2")
    ]
    simulated, recorded = (sum(tables) / len(pairs) for tables in zip(*pairs, strict=True))
    off = abs(simulated["items"].mean() / recorded["items"].mean() - 1)
    rows = [
        Row(name, "items: correlation", 0.98, correlation(simulated, recorded, "items"), True),
        Row(name, "items: overall mean off by", 0.03, off),
    ]
    for number in HBD:
        gap = (simulated[number] - recorded[number]).abs().mean()
        rows += [
            Row(
                name, f"{number}: correlation", 0.98, correlation(simulated, recorded, number), True
            ),
            Row(name, f"{number}: mean difference", 0.015, gap),
        ]
    return rows


def not_selected(rollout: Rollout, folder: Path = RECORDINGS) -> list[Row]:
    """Items in recordings that the controllers were not selected on; see docs/fidelity.md.

    Mean over the recordings of the relative error, signs included: a test for a
    bias of the simulation that chance in single recordings does not hide.
    """
    named = {entry["name"]: entry for entry in _manifest(folder)}
    settings: dict[str, dict[str, Any]] = {
        "foraging_seed2": {},
        "foraging_quiet": {"robot": THYMIO.without_noise()},
        "faults/nest_robot0": {"disturbances": from_json(named["nest_robot0"]["disturbance"])},
        "faults/food_robot0": {"disturbances": from_json(named["food_robot0"]["disturbance"])},
    }
    errors = []
    for name, setting in settings.items():
        simulated, recorded = per_controller(
            rollout, folder, f"{name}_scores.csv.gz", f"{name}_poses.csv.gz", **setting
        )
        errors.append(simulated["items"].mean() / recorded["items"].mean() - 1)
    name = "recordings on which nobody was selected"
    return [
        Row(name, f"items: mean off by, over {len(errors)} recordings", 0.02, abs(np.mean(errors)))
    ]


def fault_names(folder: Path = RECORDINGS) -> list[str]:
    """The recordings under disturbances and in the other arena."""
    return [entry["name"] for entry in _manifest(folder)]


def under_fault(name: str, rollout: Rollout, folder: Path = RECORDINGS) -> list[Row]:
    """Items of the controllers under one disturbance, or in another arena."""
    (entry,) = (entry for entry in _manifest(folder) if entry["name"] == name)
    simulated, recorded = per_controller(
        rollout,
        folder,
        f"faults/{entry['scores']}",
        f"faults/{entry['poses']}",
        disturbances=from_json(entry["disturbance"]),
        arena=ARENAS[entry.get("arena", "foraging")],
        ticks=entry.get("ticks", 600),
    )
    mean = recorded["items"].mean()
    rows = [
        Row(
            f"faults/{name}",
            f"items: overall mean ({mean:.2f}) off by",
            max(0.05 * mean, 0.1),
            abs(simulated["items"].mean() - mean),
        )
    ]
    if recorded["items"].std() >= 1.5:
        together = correlation(simulated, recorded, "items")
        rows.append(Row(f"faults/{name}", "items: correlation", 0.95, together, at_least=True))
    return rows


def _manifest(folder: Path) -> list[dict[str, Any]]:
    return json.loads((folder / "faults" / "manifest.json").read_text())


def start_poses(path: Path) -> np.ndarray:
    """Recorded start poses, trials x robots x 3."""
    table = pd.read_csv(path).sort_values(["trial", "robot"])
    return table[["x", "y", "theta"]].to_numpy().reshape(table["trial"].nunique(), -1, 3)


def per_controller(
    rollout: Rollout, folder: Path, scores: str, poses: str, **settings: Any
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Means over trials of each controller's scores as a homogeneous swarm.

    Returns the simulated and the recorded ones: items per trial of the whole
    swarm, and the HBD numbers. `settings` go to the scenario.
    """
    columns = ["items", *HBD]
    recorded = pd.read_csv(folder / scores).groupby("controller")[columns].mean()
    controllers = load_controllers(folder / "controllers.json")
    scenario = Scenario(poses=start_poses(folder / poses), noise_key=NOISE_KEY, **settings)
    teams = [[controllers[number]] * scenario.robots for number in recorded.index]
    result = rollout(teams, scenario)
    simulated = pd.DataFrame({number: getattr(result, number).mean(axis=1) for number in HBD})
    simulated["items"] = result.items.sum(axis=2).mean(axis=1)
    return simulated.set_index(recorded.index)[columns], recorded


def correlation(simulated: pd.DataFrame, recorded: pd.DataFrame, column: str) -> float:
    """Pearson's correlation over controllers."""
    return float(np.corrcoef(simulated[column], recorded[column])[0, 1])


# --- The command --------------------------------------------------------------------------

MOTION_AND_SENSORS = (
    free_motion,
    proximity_readings,
    ground_readings,
    sensor_noise,
    wall_contact,
    robot_contact,
    trajectories,
)


def print_table(rows: Iterable[Row]) -> bool:
    """Print the rows; whether all demands are met."""
    table = Table("recording", "measured", "demanded", "result", "ok", title="Fidelity to ARGoS")
    all_ok = True
    for row in rows:
        sign = "≥" if row.at_least else "≤"
        verdict = "[green]yes" if row.ok else "[bold red]NO"
        table.add_row(
            row.recording, row.measure, f"{sign} {row.limit:.4g}", f"{row.measured:.4g}", verdict
        )
        all_ok &= row.ok
    Console().print(table)
    return all_ok


def main(
    naive: Annotated[
        bool, typer.Option("--naive", help="Measure the naive oracle; motion and sensors only.")
    ] = False,
    on_gpu: Annotated[
        bool, typer.Option("--gpu", help="Measure the engine on the GPU; scores and contacts only.")
    ] = False,
    recordings: Annotated[
        Path, typer.Option(help="Folder with recordings of the same kinds.")
    ] = RECORDINGS,
) -> None:
    """Compare the engine with the recordings of ARGoS; exit code 1 if a demand is not met."""
    from swarmbo.engine.rollout import rollout
    from swarmbo.engine.swarm import Swarm
    from tests.naive import NaiveSwarm

    measures = (wall_contact, robot_contact) if on_gpu else MOTION_AND_SENSORS
    swarm: Any = NaiveSwarm if naive else GpuSwarm if on_gpu else Swarm
    rows = [row for measure in measures for row in measure(swarm, recordings)]
    if not naive:
        evaluate: Any = partial(rollout, device="gpu") if on_gpu else rollout
        rows += foraging(evaluate, recordings)
        rows += not_selected(evaluate, recordings)
        for name in fault_names(recordings):
            rows += under_fault(name, evaluate, recordings)
    if not print_table(rows):
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
