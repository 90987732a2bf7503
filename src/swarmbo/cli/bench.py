"""`swarmbo bench`: how fast the simulator is on this machine."""

import json
import platform
import statistics
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import typer
from rich.console import Console

from swarmbo import __version__
from swarmbo.cli.terminal import load_kernels, millions, progress_bar
from swarmbo.controller.bundled import bundled_controllers
from swarmbo.errors import InputError
from swarmbo.world.scenario import Scenario

DEVICES = ("cpu",)


def bench(
    device: Annotated[str, typer.Option(metavar="|".join(DEVICES), help="What runs it.")] = "cpu",
    threads: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Teams that run at the same time.", show_default="all cores"
        ),
    ] = None,
    repeats: Annotated[int, typer.Option(metavar="N", min=5, help="How often it is measured.")] = 5,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the results as one JSON object.")
    ] = False,
) -> None:
    """Measure robot-ticks per second of full evaluations.

    Each of the 78 recorded controllers runs as a swarm of 6 for 8 trials of 600
    ticks, with noise, contacts and descriptors; the median of the repeats counts.

    \b
    For example:
    swarmbo bench
    swarmbo bench --threads 1 --repeats 9
    swarmbo bench --json > bench.json
    """
    if device not in DEVICES:
        raise InputError(f"--device: there is no {device!r}; name one of {', '.join(DEVICES)}")
    scenario = Scenario.draw(seed=1)
    teams = [[controller] * scenario.robots for controller in bundled_controllers("recorded")]
    load_kernels(scenario, teams[0])

    import numba
    import numpy

    from swarmbo.engine.rollout import default_threads, rollout

    threads = default_threads() if threads is None else threads
    robot_ticks = len(teams) * scenario.trials * scenario.ticks * scenario.robots
    rates = []
    with progress_bar("measuring", repeats + 1, robot_ticks) as done:
        for repeat in range(repeats + 1):
            start = perf_counter()
            rollout(teams, scenario, threads=threads)
            rates.append(robot_ticks / (perf_counter() - start))
            done(repeat + 1)
    del rates[0]  # the warm-up
    lower, median, upper = statistics.quantiles(rates, n=4, method="inclusive")
    report: dict[str, Any] = {
        "robot_ticks_per_second": median,
        "min": min(rates),
        "lower_quartile": lower,
        "upper_quartile": upper,
        "max": max(rates),
        "repeats": rates,
        "device": device,
        "threads": threads,
        "cpu": cpu_name(),
        "version": __version__,
        "python": platform.python_version(),
        "numba": numba.__version__,
        "numpy": numpy.__version__,
    }
    if as_json:
        print(json.dumps(report), flush=True)
        return
    screen = Console(highlight=False)
    screen.print(
        f"[bold]{millions(median)} robot-ticks per second[/], the median of {repeats} "
        f"(half between {millions(lower)} and {millions(upper)}, "
        f"all between {millions(min(rates))} and {millions(max(rates))})"
    )
    noun = "thread" if threads == 1 else "threads"
    screen.print(
        f"{threads} {noun} on {report['cpu']}; swarmbo {__version__}, "
        f"Python {report['python']}, Numba {report['numba']}, NumPy {report['numpy']}"
    )


def cpu_name() -> str:
    """What the processor calls itself."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
