"""`swarmbo simulate`: controllers in, scores and traces out."""

import json
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Column, Table

from swarmbo.cli.terminal import counted, load_kernels, millions, print_whole, progress_bar
from swarmbo.controller.bundled import BUNDLED, bundled_controllers
from swarmbo.controller.network import (
    Controller,
    homogeneous_teams,
    load_controllers,
    load_teams,
)
from swarmbo.errors import InputError, cut, naming, short
from swarmbo.files import check_writable, whole_file
from swarmbo.paper.conditions import CONDITION_KINDS, read_disturbance
from swarmbo.version import __version__
from swarmbo.world.arena import ARENAS, FORAGING
from swarmbo.world.poses import load_poses
from swarmbo.world.scenario import TRIALS, Scenario, replicate_noise_key

if TYPE_CHECKING:
    from swarmbo.engine.rollout import Rollout

ROWS = 20  # teams in the printed table; of more than that, the best and the worst


def simulate(
    controllers: Annotated[
        str,
        typer.Argument(
            metavar="CONTROLLERS.json",
            help="A list of controllers, or the name of a set that comes with swarmbo: "
            + "; ".join(f"{name} ({what})" for name, what in BUNDLED.items())
            + ". A file of such a name is ./NAME.",
            show_default=False,
        ),
    ],
    poses: Annotated[
        Path | None,
        typer.Option(
            metavar="POSES.csv",
            help="Start poses: trial, robot, x, y (m), theta (rad). Sets trials and robots. "
            "Without it they are drawn from the seed.",
        ),
    ] = None,
    teams: Annotated[
        Path | None,
        typer.Option(
            metavar="TEAMS.json",
            help="A list of teams, each a list of controller numbers, one per robot. "
            "Without it every controller is a team by itself.",
        ),
    ] = None,
    arena: Annotated[
        str | None,
        typer.Option(metavar="|".join(ARENAS), help="The arena.", show_default=FORAGING.name),
    ] = None,
    robots: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Robots in a team.", show_default="6; 2x arena: 12"),
    ] = None,
    trials: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Trials of each team.", show_default=str(TRIALS)),
    ] = None,
    ticks: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Length of a trial in ticks of 0.2 s.",
            show_default="600; conditions of a 2x kind: 1200",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(metavar="N", min=0, help="Of poses, noise and conditions.")
    ] = 1,
    noise: Annotated[bool, typer.Option(help="Sensors with or without noise.")] = True,
    disturbance: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.json|KIND:INDEX",
            help="What is broken: a file, or a drawn condition, for example proximity:3. Kinds: "
            + ", ".join(CONDITION_KINDS)
            + ".",
        ),
    ] = None,
    scores: Annotated[
        Path | None,
        typer.Option(metavar="SCORES.csv", help="Write the scores, a row per team and trial."),
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            metavar="TRACE.parquet",
            help="Write what every robot does, a row per team, trial, tick and robot.",
        ),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Teams that run at the same time.", show_default="all cores"
        ),
    ] = None,
    device: Annotated[
        str,
        typer.Option(
            metavar="auto|cpu|gpu",
            help="What simulates; auto is the GPU if there is one. Traces come from the CPU.",
        ),
    ] = "cpu",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the results as one JSON object.")
    ] = False,
) -> None:
    """Let controllers forage, and score them.

    Every controller (or team) runs for some trials from the same start poses with
    the same noise; equal commands give equal results, whatever the number of threads.

    \b
    For example:
    swarmbo simulate example
    swarmbo simulate recorded --scores scores.csv
    swarmbo simulate example --disturbance proximity:3
    swarmbo simulate mine.json --poses poses.csv --trace trace.parquet
    swarmbo simulate mine.json --arena foraging-2x --json > results.json
    """
    loaded = (
        bundled_controllers(controllers)
        if controllers in BUNDLED
        else load_controllers(controllers)
    )
    scenario = make_scenario(
        poses=poses,
        arena=arena,
        robots=robots,
        trials=trials,
        ticks=ticks,
        seed=seed,
        noise=noise,
        disturbance=disturbance,
    )
    numbers = (
        homogeneous_teams(loaded, scenario.robots)
        if teams is None
        else load_teams(teams, loaded, scenario.robots)
    )
    check_outputs(scores, trace, [Path(controllers), poses, teams])
    members = [[loaded[number] for number in team] for team in numbers]
    device = open_device(device, scenario, members[0])
    result, seconds = run(members, scenario, threads, device, scores, trace)
    if as_json:
        report: dict[str, Any] = {
            "version": __version__,
            "controllers": controllers,
            "poses": None if poses is None else str(poses),
            "arena": scenario.arena.name,
            "robots": scenario.robots,
            "trials": scenario.trials,
            "ticks": scenario.ticks,
            "seed": seed,
            "noise": noise,
            "device": device,
            "disturbance": [entry.to_json() for entry in scenario.disturbances],
            "teams": team_results(result, numbers),
        }
        print(json.dumps(report, allow_nan=False), flush=True)
    else:
        print_table(result, scenario, None if teams is None else numbers, seconds)


def make_scenario(
    *,
    poses: Path | None,
    arena: str | None,
    robots: int | None,
    trials: int | None,
    ticks: int | None,
    seed: int,
    noise: bool,
    disturbance: str | None,
) -> Scenario:
    """The scenario that the options describe; InputError when they contradict each other."""
    disturbances, implied = read_disturbance(disturbance, seed)
    if arena is not None and arena not in ARENAS:
        raise InputError(
            f"--arena: there is no arena {short(arena)}; name one of {', '.join(ARENAS)}"
        )
    if implied is not None and arena not in (None, implied.name):
        raise InputError(
            f"{cut(disturbance)} is for the arena {implied.name}; leave out --arena {arena}"
        )
    place = implied or ARENAS[arena or FORAGING.name]
    if poses is not None:
        placed = load_poses(poses, place)
        for name, given, found in (
            ("trials", trials, placed.shape[0]),
            ("robots", robots, placed.shape[1]),
        ):
            if given not in (None, found):
                raise InputError(
                    f"{cut(poses)}: places {found} {name}, but --{name} is {given}; "
                    f"leave out --{name}"
                )
        robots = placed.shape[1]
    robots = place.robots if robots is None else robots
    if implied is not None and robots != implied.robots:
        raise InputError(
            f"{cut(disturbance)} is for {implied.robots} robots, not for {robots}; "
            f"use {implied.robots} robots"
        )
    ticks = (implied or FORAGING).ticks if ticks is None else ticks
    with naming(disturbance) if disturbances else nullcontext():
        if poses is None:
            scenario = Scenario.draw(
                seed=seed,
                arena=place,
                robots=robots,
                trials=TRIALS if trials is None else trials,
                ticks=ticks,
                disturbances=disturbances,
            )
        else:
            scenario = Scenario(
                poses=placed,
                arena=place,
                disturbances=disturbances,
                noise_key=replicate_noise_key(seed),
                ticks=ticks,
            )
    return scenario if noise else scenario.without_noise()


def check_outputs(scores: Path | None, trace: Path | None, inputs: Iterable[Path | None]) -> None:
    """InputError when an output cannot be written, or would take another file's place."""
    taken = {path.resolve() for path in inputs if path is not None}
    for path in (scores, trace):
        if path is not None:
            check_writable(path)
            if path.resolve() in taken:
                raise InputError(f"{cut(path)}: is named for two purposes; give each its own file")
            taken.add(path.resolve())


def open_device(device: str, scenario: Scenario, team: Sequence[Controller]) -> str:
    """What --device asks for, "cpu" or "gpu"; the simulator's machine code is then there."""
    from swarmbo.engine.rollout import choose_device

    with naming("--device"):
        device = choose_device(device, robots=scenario.robots)
    if device == "cpu":
        load_kernels(scenario, team)
    return device


def run(
    teams: list[list[Controller]],
    scenario: Scenario,
    threads: int | None,
    device: str,
    scores: Path | None,
    trace: Path | None,
) -> tuple["Rollout", float]:
    """Evaluate the teams and write the files that are wanted: all of them or, on failure, none.

    Returns the scores, and the seconds that the evaluation took.
    """
    from swarmbo.engine.rollout import rollout

    robot_ticks = scenario.trials * scenario.ticks * scenario.robots
    with whole_file(scores) if scores else nullcontext() as scores_file:
        start = perf_counter()
        with progress_bar("simulating", len(teams), robot_ticks) as done:
            result = rollout(teams, scenario, threads=threads, device=device, progress=done)
        seconds = perf_counter() - start
        if scores_file:
            from swarmbo.engine.results import scores_table

            scores_table(result).to_csv(scores_file, index=False)
        if trace:
            from swarmbo.engine.results import write_trace

            with progress_bar("tracing", len(teams), robot_ticks) as done:
                write_trace(trace, teams, scenario, progress=done)
    return result, seconds


def team_results(result: "Rollout", teams: Sequence[Sequence[int]]) -> list[dict[str, Any]]:
    """The scores of every team as JSON values; means are over the trials."""
    return [
        {
            "team": team,
            "controllers": list(teams[team]),
            "items": float(result.performance[team]),
            "items_per_trial": result.items[team].sum(axis=1).tolist(),
            "items_per_trial_and_robot": result.items[team].tolist(),
            "uniformity": float(result.uniformity[team].mean()),
            "centre_distance": float(result.centre_distance[team].mean()),
            "coverage": float(result.coverage[team].mean()),
        }
        for team in range(len(teams))
    ]


def print_table(
    result: "Rollout",
    scenario: Scenario,
    teams: Sequence[Sequence[int]] | None,
    seconds: float,
) -> None:
    """Print the scores for people; `teams` when they are worth showing."""
    count, trials, robots = result.items.shape
    items = result.items.sum(axis=2)
    spread = items.std(axis=1, ddof=1) if trials > 1 else None
    table = Table(
        Column("team", justify="right", no_wrap=True),
        *([] if teams is None else [Column("controllers", overflow="fold")]),
        Column("items", justify="right", no_wrap=True),
        Column("per robot", justify="right", no_wrap=True),
        Column("uniformity", justify="right", no_wrap=True),
        Column("centre distance", justify="right", no_wrap=True),
        Column("coverage", justify="right", no_wrap=True),
        box=SIMPLE_HEAD,
    )

    def add(team: int) -> None:
        mean = f"{result.performance[team]:.2f}"
        table.add_row(
            str(team),
            *([] if teams is None else [" ".join(map(str, teams[team]))]),
            mean if spread is None else f"{mean} ± {spread[team]:4.2f}",
            f"{result.performance[team] / robots:.2f}",
            f"{result.uniformity[team].mean():.3f}",
            f"{result.centre_distance[team].mean():.3f}",
            f"{result.coverage[team].mean():.3f}",
        )

    if count <= ROWS:
        for team in range(count):
            add(team)
    else:
        ranking = np.argsort(-result.performance, kind="stable").tolist()
        for team in ranking[: ROWS // 2]:
            add(team)
        table.add_row("...")
        for team in ranking[-ROWS // 2 :]:
            add(team)

    screen = Console(highlight=False)
    broken = ", ".join(entry.kind for entry in scenario.disturbances) or "nothing"
    screen.print(
        f"{counted(robots, 'robot')} in the arena {scenario.arena.name}, "
        f"{counted(trials, 'trial')} of {counted(scenario.ticks, 'tick')} "
        f"({scenario.ticks * scenario.tick:g} s); broken: {broken}"
    )
    print_whole(screen, table)
    if count > ROWS:
        screen.print(f"The best and the worst of {count} teams; --scores writes all.")
    mean = result.performance.mean()
    robot_ticks = count * trials * robots * scenario.ticks
    screen.print(
        f"Items: mean ± standard deviation over trials; all teams {mean:.2f}, "
        f"{mean / robots:.2f} per robot.\n"
        f"{robot_ticks:,} robot-ticks in {seconds:.2f} s: "
        f"{millions(robot_ticks / seconds)} per second."
    )
