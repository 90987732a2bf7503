"""`swarmbo map`: look at behaviour-performance maps, and use what is in them."""

import json
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from swarmbo.cli.simulate import check_outputs, open_device
from swarmbo.cli.terminal import counted, millions, progress_bar
from swarmbo.errors import InputError, cut, is_integer, naming
from swarmbo.files import whole_file
from swarmbo.maps.behaviour_map import BehaviourMap, bundled_maps, load_map
from swarmbo.paper.conditions import CONDITION_KINDS, read_disturbance
from swarmbo.version import __version__
from swarmbo.world.arena import FORAGING
from swarmbo.world.scenario import TRIALS, Scenario

if TYPE_CHECKING:
    import pandas as pd

    from swarmbo.engine.rollout import Rollout

TABLES = (".csv", ".parquet")  # that `evaluate` writes, by the end of a file's name

app = typer.Typer(
    help="Look at maps of behaviours, and use the controllers in them.", no_args_is_help=True
)

MAP = Annotated[
    str,
    typer.Argument(
        metavar="MAP",
        help="A map's file, or the name of a map that comes with swarmbo"
        + "".join(f"{': ' if not n else ', '}{name}" for n, name in enumerate(bundled_maps()))
        + ".",
        show_default=False,
    ),
]
AS_JSON = Annotated[bool, typer.Option("--json", help="Print the results as one JSON object.")]


@app.command(no_args_is_help=True)
def show(name: MAP, as_json: AS_JSON = False) -> None:
    """Tell what is in a map and how it was made.

    Best and mean over the filled cells are in items per robot.

    \b
    For example:
    swarmbo map show mine.map
    swarmbo map show mine.map --json
    """
    behaviour_map = load_map(name)
    made = behaviour_map.made
    report: dict[str, Any] = {
        "map": name,
        "descriptor": behaviour_map.descriptor_name,
        "filled_cells": behaviour_map.filled_cells,
        "best": behaviour_map.best,
        "mean": behaviour_map.mean,
        "robots": behaviour_map.robots,
        "controllers": behaviour_map.genomes is not None,
        "evaluations": made.get("evaluations"),
        "finished": _finished(behaviour_map),
        "seed": made.get("seed"),
        "device": made.get("device"),
        "options": made.get("options", {}),
        "versions": made.get("versions", {}),
    }
    if as_json:
        print(json.dumps(report, allow_nan=False), flush=True)
        return
    table = Table(Column(style="dim"), Column(), box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_row("filled cells", str(behaviour_map.filled_cells))
    table.add_row("best", f"{behaviour_map.best:.2f} items per robot")
    table.add_row("mean", f"{behaviour_map.mean:.2f} items per robot")
    table.add_row("descriptor", behaviour_map.descriptor_name)
    table.add_row("robots", str(behaviour_map.robots))
    table.add_row("controllers", _sizes(behaviour_map))
    if report["evaluations"] is not None:
        evaluations = f"{report['evaluations']:,}"
        if report["finished"] is False:
            evaluations += f" of {report['options']['evaluations']:,}: not finished"
        table.add_row("evaluations", evaluations)
    if report["seed"] is not None:
        table.add_row("seed", str(report["seed"]))
    if report["device"] in ("cpu", "gpu"):
        table.add_row("made on the", report["device"].upper())
    for label in ("options", "versions"):
        if report[label]:
            table.add_row(label, escape(_words(report[label])))
    Console(highlight=False).print(table)


@app.command(no_args_is_help=True)
def plot(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="MAP",
            help="One or several maps: files, or names of maps that come with swarmbo.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(metavar="FILE.png|svg|pdf", help="The picture to write.", show_default=False),
    ],
) -> None:
    """Draw maps, and the course of their evolution.

    Heat maps show the items per robot of every cell; curves show best, mean and
    filled cells against generations: of several maps, mean and standard deviation;
    maps that differ in length each by themselves, against evaluations.

    \b
    For example:
    swarmbo map plot mine.map --out mine.png
    swarmbo map plot run-1.map run-2.map run-3.map --out runs.pdf
    """
    maps = [load_map(name) for name in names]
    check_outputs(out, None, map(Path, names))

    from swarmbo.maps.plots import picture_kind, plot_maps, save_figure

    picture_kind(out)
    labels = [Path(name).name.removesuffix(".map") for name in names]
    save_figure(plot_maps(maps, labels), out)
    _say(f"{out}: picture of {counted(len(maps), 'map')}")


@app.command(no_args_is_help=True)
def export(
    name: MAP,
    out: Annotated[
        Path,
        typer.Option(metavar="CONTROLLERS.json", help="The file to write.", show_default=False),
    ],
) -> None:
    """Write the controllers of a map in the form that people exchange.

    A list in the order of the map's cells, which `swarmbo simulate` reads.

    \b
    For example:
    swarmbo map export mine.map --out controllers.json
    swarmbo simulate controllers.json --scores scores.csv
    """
    behaviour_map = load_map(name)
    with naming(name):
        controllers = behaviour_map.controllers()
    check_outputs(out, None, [Path(name)])
    if out.suffix.lower() != ".json":
        raise InputError(f"{cut(out)}: is not the name of a JSON file; let it end in .json")
    lines = [json.dumps(controller.to_json(), allow_nan=False) for controller in controllers]
    with whole_file(out) as temporary:
        temporary.write_text("[" + ",\n".join(lines) + "]\n", encoding="utf-8")
    _say(f"{out}: {counted(len(lines), 'controller')}")


@app.command(no_args_is_help=True)
def evaluate(
    name: MAP,
    disturbance: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.json|KIND:INDEX",
            help="What is broken: a file, or a condition as drawn for the map's seed, for example "
            "proximity:3. Kinds: " + ", ".join(CONDITION_KINDS) + ".",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="Of poses and noise.", show_default="the map's"),
    ] = None,
    trials: Annotated[
        int, typer.Option(metavar="N", min=1, help="Trials of each controller.")
    ] = TRIALS,
    ticks: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Length of a trial in ticks of 0.2 s.",
            show_default="600; conditions of a 2x kind: 1200",
        ),
    ] = None,
    noise: Annotated[bool, typer.Option(help="Sensors with or without noise.")] = True,
    threads: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Controllers that run at the same time.",
            show_default="all cores",
        ),
    ] = None,
    device: Annotated[
        str,
        typer.Option(
            metavar="auto|cpu|gpu", help="What simulates; auto is the GPU if there is one."
        ),
    ] = "cpu",
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE.csv|parquet", help="Write the scores, a row per controller."),
    ] = None,
    as_json: AS_JSON = False,
) -> None:
    """Evaluate every controller of a map again.

    Each runs as a swarm of its own, whole or with something broken; what it
    delivers is set beside the performance in the map. Poses and noise are those
    of the map's seed unless --seed names others.

    \b
    For example:
    swarmbo map evaluate mine.map --seed 7
    swarmbo map evaluate mine.map --disturbance proximity:3 --out scores.csv
    swarmbo map evaluate mine.map --disturbance fault.json --json
    """
    behaviour_map = load_map(name)
    with naming(name):
        controllers = behaviour_map.controllers()
    map_seed = behaviour_map.made.get("seed")
    seed = (1 if map_seed is None else map_seed) if seed is None else seed
    scenario = make_scenario(
        robots=behaviour_map.robots,
        disturbance=disturbance,
        condition_seed=seed if map_seed is None else map_seed,
        seed=seed,
        trials=trials,
        ticks=ticks,
        noise=noise,
    )
    if out is not None and out.suffix.lower() not in TABLES:
        raise InputError(
            f"{cut(out)}: is not the name of a table; let it end in {' or '.join(TABLES)}"
        )
    check_outputs(out, None, [Path(name), *([Path(disturbance)] if disturbance else [])])
    teams = [[controller] * scenario.robots for controller in controllers]
    device = open_device(device, scenario, teams[0])

    from swarmbo.engine.rollout import rollout

    robot_ticks = scenario.trials * scenario.ticks * scenario.robots
    with whole_file(out) if out else nullcontext() as file:
        start = perf_counter()
        with progress_bar("evaluating", len(teams), robot_ticks) as done:
            result = rollout(teams, scenario, threads=threads, device=device, progress=done)
        seconds = perf_counter() - start
        if file is not None and out is not None:
            table = evaluation_table(behaviour_map, result)
            if out.suffix.lower() == ".csv":
                table.to_csv(file, index=False)
            else:
                table.to_parquet(file, index=False)
    if as_json:
        print(
            json.dumps(
                {
                    "version": __version__,
                    "map": name,
                    "arena": scenario.arena.name,
                    "robots": scenario.robots,
                    "trials": scenario.trials,
                    "ticks": scenario.ticks,
                    "seed": seed,
                    "noise": noise,
                    "device": device,
                    "disturbance": [entry.to_json() for entry in scenario.disturbances],
                    **comparison(behaviour_map, result),
                    "prior_items": behaviour_map.performance.tolist(),
                    "items": result.performance.tolist(),
                },
                allow_nan=False,
            ),
            flush=True,
        )
    else:
        print_comparison(behaviour_map, result, scenario, disturbance)
        Console(highlight=False).print(
            f"{len(teams) * robot_ticks:,} robot-ticks in {seconds:.2f} s: "
            f"{millions(len(teams) * robot_ticks / seconds)} per second."
        )


def make_scenario(
    *,
    robots: int,
    disturbance: str | None,
    condition_seed: int,
    seed: int,
    trials: int,
    ticks: int | None,
    noise: bool,
) -> Scenario:
    """The scenario in which a map of `robots` robots is evaluated; a 2x condition has its own."""
    disturbances, implied = read_disturbance(disturbance, condition_seed)
    arena = implied or FORAGING
    with naming(disturbance) if disturbances else nullcontext():
        scenario = Scenario.draw(
            seed=seed,
            arena=arena,
            robots=robots if implied is None else arena.robots,
            trials=trials,
            ticks=arena.ticks if ticks is None else ticks,
            disturbances=disturbances,
        )
    return scenario if noise else scenario.without_noise()


def comparison(behaviour_map: BehaviourMap, result: "Rollout") -> dict[str, Any]:
    """What the map promises and what its controllers did, in items per robot.

    `correlation` is Pearson's between the two, None where one of them does not vary.
    """
    prior = behaviour_map.performance / behaviour_map.robots
    found = result.performance / result.items.shape[2]
    best = int(found.argmax())
    varied = prior.std() > 0 and found.std() > 0
    return {
        "controllers": len(prior),
        "prior_best": float(prior.max()),
        "prior_mean": float(prior.mean()),
        "best": float(found.max()),
        "mean": float(found.mean()),
        "best_controller": best,
        "best_cell": behaviour_map.cells[best].tolist(),
        "prior_best_now": float(found[prior.argmax()]),
        "correlation": float(np.corrcoef(prior, found)[0, 1]) if varied else None,
    }


def evaluation_table(behaviour_map: BehaviourMap, result: "Rollout") -> "pd.DataFrame":
    """A row per controller: its cell, what the map promises, what it did.

    Items are those of all robots; all numbers are means over the trials.
    """
    import pandas as pd

    columns: dict[str, Sequence[Any] | np.ndarray] = {"controller": range(len(result.items))}
    columns |= {f"cell_{number}": column for number, column in enumerate(behaviour_map.cells.T)}
    columns |= {
        "prior": behaviour_map.performance,
        "items": result.performance,
        "uniformity": result.uniformity.mean(axis=1),
        "centre_distance": result.centre_distance.mean(axis=1),
        "coverage": result.coverage.mean(axis=1),
    }
    return pd.DataFrame(columns)


def print_comparison(
    behaviour_map: BehaviourMap, result: "Rollout", scenario: Scenario, disturbance: str | None
) -> None:
    """Print for people what the map promises beside what its controllers did.

    `disturbance` is what was named as broken.
    """
    found = comparison(behaviour_map, result)
    table = Table(
        Column("items per robot"),
        Column("in the map", justify="right"),
        Column("now", justify="right"),
        box=SIMPLE_HEAD,
    )
    table.add_row("mean", f"{found['prior_mean']:.2f}", f"{found['mean']:.2f}")
    table.add_row("best in the map", f"{found['prior_best']:.2f}", f"{found['prior_best_now']:.2f}")
    best = behaviour_map.performance[found["best_controller"]] / behaviour_map.robots
    table.add_row("best now", f"{best:.2f}", f"{found['best']:.2f}")
    broken = ", ".join(entry.kind for entry in scenario.disturbances) or "nothing"
    if disturbance is not None:
        broken = f"{disturbance} ({broken})"
    screen = Console(highlight=False)
    screen.print(
        f"{counted(found['controllers'], 'controller')}, {counted(scenario.robots, 'robot')} in "
        f"the arena {scenario.arena.name}, {counted(scenario.trials, 'trial')} of "
        f"{counted(scenario.ticks, 'tick')}; broken: {escape(broken)}"
    )
    screen.print(table)
    cell = ", ".join(map(str, found["best_cell"]))
    screen.print(f"The best now is controller {found['best_controller']}, of the cell {cell}.")
    if found["correlation"] is not None:
        screen.print(f"Correlation between map and now: {found['correlation']:.2f}.")


def _finished(behaviour_map: BehaviourMap) -> bool | None:
    """Whether a map had all the evaluations that its options ask for; None where they do not."""
    made = behaviour_map.made
    total = made.get("options", {}).get("evaluations")
    if made.get("evaluations") is None or not is_integer(total):
        return None
    return bool(made["evaluations"] >= total)


def _say(line: str) -> None:
    """Print a line for people, as it is."""
    Console(highlight=False, markup=False, emoji=False).print(line, soft_wrap=True)


def _words(values: dict[str, Any]) -> str:
    """Names and values from a map for people, without characters that a terminal obeys."""
    return ", ".join(f"{json.dumps(name)[1:-1]} {json.dumps(values[name])}" for name in values)


def _sizes(behaviour_map: BehaviourMap) -> str:
    """How large the controllers are, in words."""
    if behaviour_map.genomes is None:
        return "none"
    genomes = behaviour_map.genomes
    return f"{_range(genomes.hidden, 'hidden neuron')}, {_range(genomes.count, 'connection')}"


def _range(sizes: np.ndarray, what: str) -> str:
    """The least, largest and mean of some counts, in words."""
    if sizes.min() == sizes.max():
        return counted(int(sizes.min()), what)
    return f"{sizes.min()} to {sizes.max()} {what}s (mean {sizes.mean():.1f})"
