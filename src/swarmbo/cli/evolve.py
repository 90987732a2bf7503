"""`swarmbo evolve`: make behaviour-performance maps."""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from swarmbo.cli.terminal import counted, errors, load_kernels
from swarmbo.errors import InputError, cut, naming, short
from swarmbo.version import __version__
from swarmbo.world.arena import FORAGING

if TYPE_CHECKING:
    from swarmbo.evolution.map_elites import Evolution, EvolutionOptions
    from swarmbo.files import Lock
    from swarmbo.maps.behaviour_map import BehaviourMap


class Preset(NamedTuple):
    """How much is evolved."""

    evaluations: int
    batch: int


PRESETS = {
    "quick": Preset(evaluations=50_000, batch=200),
    "paper": Preset(evaluations=10_001_000, batch=500),
}
MAX_REPLICATES = 100  # all of them are in memory
WIDE = 120  # columns of a terminal that has room for everything
SHOWN = 0.2  # s between two looks at the state of a map
LINES = 60.0  # s between two lines about it where there is no terminal


def evolve(
    out: Annotated[
        Path,
        typer.Option(
            metavar="MAP", help="The map to write, for example mine.map.", show_default=False
        ),
    ],
    descriptor: Annotated[
        str, typer.Option(metavar="hbd|sdbc", help="How behaviour is described: 3 or 10 numbers.")
    ] = "hbd",
    preset: Annotated[
        str,
        typer.Option(
            metavar="|".join(PRESETS),
            help="How much is evolved: a useful map in about two minutes on 2 cores, or 1,000 "
            "random controllers and 20,000 generations of 500 children as in the paper.",
        ),
    ] = "quick",
    evaluations: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Controllers to evaluate, the first 1,000 of them random.",
            show_default="; ".join(f"{name}: {p.evaluations:,}" for name, p in PRESETS.items()),
        ),
    ] = None,
    batch: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Children in a generation.",
            show_default="; ".join(f"{name}: {p.batch}" for name, p in PRESETS.items()),
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(metavar="N", min=0, help="Of poses, noise and mutations.")
    ] = 1,
    replicates: Annotated[
        int,
        typer.Option(
            metavar="K",
            min=1,
            max=MAX_REPLICATES,
            help="Maps to evolve, with the seeds from --seed on; of several, each has its seed "
            "in its name: mine-1.map, mine-2.map, ...",
        ),
    ] = 1,
    device: Annotated[
        str,
        typer.Option(
            metavar="auto|cpu|gpu", help="What simulates; auto is the GPU when there is one."
        ),
    ] = "auto",
    threads: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Controllers that run at the same time on the CPU.",
            show_default="all cores",
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on where the same command was stopped.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the results as one JSON object.")
    ] = False,
    ticks: Annotated[int, typer.Option(hidden=True, min=1)] = FORAGING.ticks,
) -> None:
    """Evolve a map of behaviours: MAP-Elites.

    The map keeps the best controller of every kind of behaviour that is found.
    Equal commands give equal maps, whatever the number of threads. When it is
    stopped, by Ctrl-C or otherwise, the same command with --resume goes on to the
    map that it would have made. A map that is there already is never replaced.
    Where there is no terminal, a line a minute tells how it goes.

    \b
    For example:
    swarmbo evolve --out mine.map
    swarmbo evolve --out mine.map --evaluations 200000 --seed 7
    swarmbo evolve --out paper.map --preset paper --replicates 5 --resume
    """
    if preset not in PRESETS:
        raise InputError(f"--preset: there is no {short(preset)}; name one of {', '.join(PRESETS)}")
    outs = map_paths(out, seed, replicates)

    from swarmbo.evolution.archive import EVOLVED
    from swarmbo.evolution.checkpoint import check_place, reserved
    from swarmbo.evolution.map_elites import EvolutionOptions

    if descriptor not in EVOLVED:
        raise InputError(
            f"--descriptor: there is no {short(descriptor)}; name one of {', '.join(EVOLVED)}"
        )
    for path in outs:
        check_place(path, resume=resume)
    if resume:
        check_names(out, outs)
    chosen = chosen_device(device, outs if resume else [])
    plans = [
        EvolutionOptions(
            evaluations=PRESETS[preset].evaluations if evaluations is None else evaluations,
            descriptor=descriptor,
            batch=PRESETS[preset].batch if batch is None else batch,
            seed=seed + number,
            device=chosen,
            ticks=ticks,
        )
        for number in range(replicates)
    ]
    with ExitStack() as stack:
        locks = [stack.enter_context(reserved(path)) for path in outs]
        for path in outs:
            check_place(path, resume=resume)  # again: another process may just have finished it
        places, maps, done, seconds = run(plans, outs, locks, threads, resume)
    report(plans, places, maps, done, seconds, as_json)


def map_paths(out: Path, seed: int, replicates: int) -> list[Path]:
    """Where the maps go: MAP, or with several of them MAP with the seed before the suffix."""
    if not out.name:
        raise InputError(f"{cut(out)}: is not a file name; name a map, for example mine.map")
    if replicates == 1:
        return [out]
    return [out.with_name(f"{out.stem}-{seed + n}{out.suffix}") for n in range(replicates)]


def check_names(out: Path, outs: Sequence[Path]) -> None:
    """InputError when there is nothing to resume at `outs`, but under other names of such maps."""
    from swarmbo.evolution.checkpoint import checkpoint_path

    if any(place.exists() for path in outs for place in (path, checkpoint_path(path))):
        return
    numbered = re.compile(f"{re.escape(out.stem)}(-[0-9]+)?{re.escape(out.suffix)}.checkpoint")
    for place in sorted(out.parent.iterdir()):
        if numbered.fullmatch(place.name):
            raise InputError(
                f"{cut(place)}: is of an evolution with another --replicates or --seed; resume "
                "it with the same, or start anew without --resume"
            )


def chosen_device(device: str, outs: Sequence[Path]) -> str:
    """The device to use; with "auto" the one on which the map at one of `outs` was begun."""
    from swarmbo.engine.rollout import choose_device
    from swarmbo.evolution.checkpoint import begun_on

    if device == "auto":
        device = next(filter(None, map(begun_on, outs)), device)
    with naming("--device"):
        return choose_device(device, robots=FORAGING.robots)


def run(
    plans: Sequence["EvolutionOptions"],
    outs: Sequence[Path],
    locks: Sequence["Lock"],
    threads: int | None,
    resume: bool,
) -> tuple[list[Path], list["BehaviourMap"], int, float]:
    """Evolve what is not finished yet, and write the maps.

    Returns where they are, the maps, how many evaluations that took, and how many seconds.
    """
    from swarmbo.evolution.checkpoint import SHARE, Keeper, resumed
    from swarmbo.evolution.emitter import initial_genomes
    from swarmbo.evolution.map_elites import Evolution, generations, listening
    from swarmbo.maps.behaviour_map import BehaviourMap

    begun = [resumed(*pair) if resume else None for pair in zip(plans, outs, strict=True)]
    unfinished = sum(not isinstance(entry, BehaviourMap) for entry in begun)
    if plans[0].descriptor == "sdbc" and None in begun and errors.is_terminal:
        errors.print("placing the centroids of the map's cells: a few seconds")
    states = [Evolution(p) if e is None else e for p, e in zip(plans, begun, strict=True)]
    keepers = {
        state: Keeper(state, path, lock=lock, share=SHARE / unfinished)
        for state, path, lock in zip(states, outs, locks, strict=True)
        if isinstance(state, Evolution)
    }
    before = sum(evolution.evaluations for evolution in keepers)
    for evolution in keepers:
        if evolution.options.device == "cpu":
            team = initial_genomes(0, 1).controllers() * evolution.scenario.robots
            load_kernels(evolution.scenario, team)
            break
    start = perf_counter()
    try:
        for keeper in keepers.values():
            keeper.finish_if_done()
        bars = progress_bars({keeper.evolution: keeper.path for keeper in keepers.values()})
        with bars as done, listening() as check_interrupt:
            for evolution in generations(list(keepers), threads=threads, progress=done):
                keepers[evolution].after_generation()
                check_interrupt()
    except KeyboardInterrupt:
        for keeper in keepers.values():
            keeper.save()
        if any(keeper.evolution.generation for keeper in keepers.values()):
            errors.print("the same command with --resume goes on from here")
        else:
            errors.print("nothing is kept: the random controllers were not all evaluated yet")
        raise
    seconds = perf_counter() - start
    maps = [state.map() if isinstance(state, Evolution) else state for state in states]
    places = [
        keepers[state].path if isinstance(state, Evolution) else path
        for state, path in zip(states, outs, strict=True)
    ]
    for path, place in zip(outs, places, strict=True):
        if place != path:
            errors.print(
                f"{escape(str(path))}: a file appeared there while the map was evolved; it stays, "
                f"and the map is in {escape(str(place))}",
                soft_wrap=True,
            )
    return places, maps, sum(evolution.evaluations for evolution in keepers) - before, seconds


@contextmanager
def progress_bars(evolutions: dict["Evolution", Path]) -> Iterator[Any]:
    """Show how the evolutions go while the block runs: bars on a terminal, else a line a minute.

    Yields a function to call with an evolution and the number of its evaluations.
    """
    begun: dict[Evolution, tuple[float, int]] = {}
    shown: dict[Evolution, float] = {}

    def rate_of(evolution: "Evolution", count: int, interval: float) -> float | None:
        """Evaluations per second; None when the evolution was shown less than `interval` s ago."""
        now = perf_counter()
        start, first = begun.setdefault(evolution, (now, count))
        if now == start or now - shown.setdefault(evolution, start) < interval:
            return None
        shown[evolution] = now
        return (count - first) / (now - start)

    if not errors.is_terminal:

        def line(evolution: "Evolution", count: int) -> None:
            rate = rate_of(evolution, count, LINES)
            if rate is None or not evolution.generation:
                return
            total = evolution.options.evaluations
            left = timedelta(seconds=round((total - count) / rate)) if rate else "unknown time"
            words = f"{count:,} of {total:,} evaluations, {rate:,.0f}/s, {left} left"
            where = escape(str(evolutions[evolution]))
            errors.print(f"{where}: {words}, {state_of(evolution)}", soft_wrap=True)

        yield line
        return
    wide = errors.width >= WIDE
    bars = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=20 if wide else 6),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        TextColumn("left"),
        TextColumn("{task.fields[state]}"),
        console=errors,
        transient=True,
    )
    with bars:
        tasks = {
            evolution: bars.add_task(
                escape(path.name),
                total=evolution.options.evaluations,
                completed=evolution.evaluations,
                rate="",
                state="",
            )
            for evolution, path in evolutions.items()
        }

        def bar(evolution: "Evolution", count: int) -> None:
            rate = rate_of(evolution, count, SHOWN)
            if rate is None:
                return
            bars.update(
                tasks[evolution],
                completed=count,
                rate=f"{rate:,.0f}/s" if rate else "",
                state=state_of(evolution, wide) if evolution.generation else "",
            )

        yield bar


def state_of(state: "Evolution | BehaviourMap", unit: bool = True) -> str:
    """How good a map is, in words."""
    cells = counted(state.filled_cells, "cell")
    words = f"{cells}, best {state.best:.2f}, mean {state.mean:.2f}"
    return f"{words} items per robot" if unit else words


def report(
    plans: Sequence["EvolutionOptions"],
    outs: Sequence[Path],
    maps: Sequence["BehaviourMap"],
    done: int,
    seconds: float,
    as_json: bool,
) -> None:
    """Say what there is now; `done` evaluations of it took `seconds`."""
    if as_json:
        plan = plans[0]
        print(
            json.dumps(
                {
                    "version": __version__,
                    "descriptor": plan.descriptor,
                    "evaluations": plan.evaluations,
                    "batch": plan.batch,
                    "device": plan.device,
                    "maps": [
                        {
                            "map": str(path),
                            "seed": behaviour_map.made["seed"],
                            "filled_cells": behaviour_map.filled_cells,
                            "best": behaviour_map.best,
                            "mean": behaviour_map.mean,
                            "refused_mutations": behaviour_map.made["refused_mutations"],
                        }
                        for path, behaviour_map in zip(outs, maps, strict=True)
                    ],
                    "evaluations_now": done,
                    "seconds": seconds,
                },
                allow_nan=False,
            ),
            flush=True,
        )
        return
    screen = Console(highlight=False)
    for path, behaviour_map in zip(outs, maps, strict=True):
        screen.print(f"{escape(str(path))}: {state_of(behaviour_map)}", soft_wrap=True)
    if done:
        screen.print(
            f"{counted(done, 'evaluation')} in {seconds:.0f} s: {done / seconds:,.0f} per second "
            f"on the {plans[0].device.upper()}."
        )
    else:
        screen.print("Finished before; there was nothing to do.")
