"""`swarmbo bench`: how fast the simulator is on this machine."""

import json
import platform
import statistics
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import typer
from rich.console import Console

from swarmbo.cli.terminal import load_kernels, millions, progress_bar
from swarmbo.controller.bundled import bundled_controllers
from swarmbo.errors import naming
from swarmbo.version import __version__
from swarmbo.world.scenario import Scenario

GPU_TEAMS = 8192  # that fill a GPU


def bench(
    device: Annotated[
        str,
        typer.Option(metavar="auto|cpu|gpu", help="What runs it; auto is the GPU if there is one."),
    ] = "cpu",
    threads: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Teams that run at the same time on the CPU.",
            show_default="all cores",
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
    The GPU gets 8,192 teams of them at once.

    \b
    For example:
    swarmbo bench
    swarmbo bench --device gpu
    swarmbo bench --threads 1 --repeats 9
    swarmbo bench --json > bench.json
    """
    import numba
    import numpy

    from swarmbo.controller.genomes import Genomes
    from swarmbo.engine.gpu import driver as gpu
    from swarmbo.engine.rollout import choose_device, default_threads, rollout

    scenario = Scenario.draw(seed=1)
    with naming("--device"):
        device = choose_device(device, robots=scenario.robots)
    controllers = bundled_controllers("recorded")
    teams = Genomes.from_controllers(controllers)
    if device == "gpu":
        teams = teams.take(numpy.arange(GPU_TEAMS) % len(controllers))
    else:
        load_kernels(scenario, controllers[:1] * scenario.robots)
    threads = default_threads() if threads is None else threads
    robot_ticks = len(teams) * scenario.trials * scenario.ticks * scenario.robots
    rates = []
    with progress_bar("measuring", repeats + 1, robot_ticks) as done:
        for repeat in range(repeats + 1):
            start = perf_counter()
            if device == "gpu":
                gpu.launch([gpu.Job(scenario, teams)]).result()
            else:
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
        "teams": len(teams),
        "threads": threads if device == "cpu" else None,
        "cpu": cpu_name(),
        "gpu": gpu_name() if device == "gpu" else None,
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
    on_cpu = f"{threads} {noun} on {report['cpu']}"
    on_gpu = f"{len(teams):,} teams on {report['gpu']}"
    screen.print(
        f"{on_gpu if device == 'gpu' else on_cpu}; swarmbo {__version__}, "
        f"Python {report['python']}, Numba {report['numba']}, NumPy {report['numpy']}"
    )


def gpu_name() -> str:
    """What the GPU calls itself."""
    from swarmbo.engine.gpu.warp import cuda

    name = getattr(cuda.get_current_device(), "name", b"a simulated GPU")
    return name.decode() if isinstance(name, bytes) else str(name)


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
