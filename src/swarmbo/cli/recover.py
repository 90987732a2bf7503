"""`swarmbo recover`: break a swarm, and watch how it repairs itself."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column, Table

from swarmbo.adaptation.options import LEARNERS
from swarmbo.cli.simulate import open_device
from swarmbo.cli.terminal import counted, errors
from swarmbo.errors import InputError, cut, naming, short
from swarmbo.files import check_name, check_writable
from swarmbo.maps.behaviour_map import load_map
from swarmbo.paper.conditions import CONDITION_KINDS, DEMONSTRATION
from swarmbo.world.scenario import TRIALS

if TYPE_CHECKING:
    from swarmbo.recovery.recovery import Recovery
    from swarmbo.recovery.runner import Case, Evaluation, Run

BAR = 20  # characters of the bar that stands for the performance before the fault
MAP, DISTURBANCE, LEARNER = DEMONSTRATION


def recover(
    behaviour_map: Annotated[
        str,
        typer.Option(
            "--map",
            metavar="MAP",
            help="A map's file, or the name of a map that comes with swarmbo.",
        ),
    ] = MAP,
    disturbance: Annotated[
        str,
        typer.Option(
            metavar="KIND:INDEX|FILE.json",
            help="What breaks: a condition as drawn for the map's seed, or a file. Kinds: "
            + ", ".join(CONDITION_KINDS)
            + ".",
        ),
    ] = DISTURBANCE,
    learner: Annotated[
        str, typer.Option(metavar="NAME", help="Who repairs: " + ", ".join(LEARNERS) + ".")
    ] = LEARNER,
    evaluations: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Controllers to try, of each robot or of all.",
            show_default="30, or all that a small map has",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(metavar="N", min=0, help="Of the learner's choices and of fresh noise.")
    ] = 1,
    option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="An option of the learner, for example alpha=0.5; can be given several times.",
            show_default=False,
        ),
    ] = None,
    continuous: Annotated[
        bool,
        typer.Option(
            "--continuous",
            help="Adapt in one world without resets, each robot by its own clock.",
        ),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="A folder to write: recovery.json and two figures."),
    ] = None,
    replay: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A replay to write, for others to open: .html, .gif, .mp4 or .png.",
        ),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Teams that run at the same time on the CPU.",
            show_default="all cores",
        ),
    ] = None,
    device: Annotated[
        str,
        typer.Option(
            metavar="auto|cpu|gpu", help="What simulates; auto is the GPU if there is one."
        ),
    ] = "auto",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the results as one JSON object.")
    ] = False,
    trials: Annotated[int, typer.Option(hidden=True, min=1)] = TRIALS,
    ticks: Annotated[int | None, typer.Option(hidden=True, min=1)] = None,
) -> None:
    """Break a swarm, and let it repair itself.

    The swarm forages with the best controller of its map; then something breaks,
    and a learner tries other controllers of the map. Without any option it is a
    demonstration. Equal commands give equal results, whatever the number of threads.

    \b
    For example:
    swarmbo recover
    swarmbo recover --disturbance actuator:2 --learner smbo --out recovery
    swarmbo recover --disturbance ground:3 --replay replay.html
    swarmbo recover --map mine.map --disturbance broken.json --json
    swarmbo recover --option loss=0.4 --continuous
    """
    started = perf_counter()
    options = read_options(option or [])
    loaded = load_map(behaviour_map)

    from swarmbo.recovery.continuous import ContinuousRun
    from swarmbo.recovery.recovery import check_folder, finish
    from swarmbo.recovery.runner import Case, Evaluator, Run

    with naming(behaviour_map):
        loaded.controllers()
    case = Case.of(loaded, disturbance, trials=trials, ticks=ticks)
    if continuous:
        device = continuous_device(device)
    kind = ContinuousRun if continuous else Run
    run = kind(case, learner, evaluations=evaluations, seed=seed, options=options)
    if out is not None:
        check_folder(out)
    if replay is not None:
        check_replay(replay, out)
    assert loaded.genomes is not None
    team = [loaded.genomes.controller(case.prior_best)] * case.scenario.robots
    chosen = open_device(device, case.scenario, team)
    screen = errors if as_json else Console(highlight=False)
    with story(screen, case, behaviour_map, disturbance, not as_json) as watcher:
        recovery = finish(
            run,
            map_name=behaviour_map,
            disturbance_name=disturbance,
            options=options,
            evaluator=Evaluator(threads=threads, device=chosen, robots=case.scenario.robots),
            watcher=watcher,
        )
    if out is not None:
        recovery.save(out)
    if as_json:
        print(json.dumps(recovery.to_json(), allow_nan=False), flush=True)
    else:
        print_end(screen, recovery)
    if out is not None and not as_json:
        screen.print(f"{escape(str(out))}: recovery.json, curve.png, map.png", soft_wrap=True)
    if replay is not None:
        write_replay(recovery, replay, screen)
    if as_json:
        return
    screen.print(f"{perf_counter() - started:.1f} s on the {recovery.device.upper()}.")


def check_replay(path: Path, out: Path | None) -> None:
    """InputError when a replay cannot be written there; the folder `out` is made before it."""
    from swarmbo.recovery.recovery import REPLAYS
    from swarmbo.view.replay import replay_kind

    replay_kind(path)
    check_name(path)
    if out is not None and path.resolve() == out.resolve():
        raise InputError(f"{cut(path)}: is the folder of --out too; name a file for --replay")
    if out is not None and path.resolve().parent == out.resolve():
        if path.name not in REPLAYS:
            raise InputError(
                f"{cut(path)}: a folder of a recovery holds only {', '.join(REPLAYS)} beside it; "
                "choose one of these names, or another folder"
            )
        if not out.exists():
            return
    check_writable(path)


def write_replay(recovery: "Recovery", path: Path, screen: Console) -> None:
    """Write the replay of a recovery and say so."""
    from swarmbo.cli.replay import recording, write
    from swarmbo.view.footage import film

    report = json.loads(json.dumps(recovery.to_json()))
    with recording() as progress:
        footage = film(report, recovery.behaviour_map, progress=progress)
        write(footage, path, screen)


def read_options(given: Sequence[str]) -> dict[str, Any]:
    """The learner's options from NAME=VALUE: numbers, true, false, or words."""
    options: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        key = name.strip().replace("-", "_")
        if not equals or not key or not value.strip():
            raise InputError(f"--option: {short(text)} is not NAME=VALUE; give for example alpha=1")
        if key in options:
            raise InputError(f"--option: {cut(name.strip())} is given twice; keep one")
        options[key] = _value(value.strip())
    return options


def _value(text: str) -> bool | int | float | str:
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def continuous_device(device: str) -> str:
    """The device of a continuous world, which is the CPU."""
    if device == "gpu":
        raise InputError("--device: a continuous world runs on the CPU; leave out gpu")
    return "cpu" if device == "auto" else device


# --- the story ---------------------------------------------------------------------------------


@contextmanager
def story(
    screen: Console, case: "Case", map_name: str, disturbance: str, speaks: bool
) -> Iterator[Any]:
    """Tell how the recovery goes while the block runs; yields who is to be told.

    Bars are for terminals only; where it does not speak there is nothing else.
    """
    from swarmbo.recovery.recovery import Watcher

    bars = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=BAR),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=screen,
        transient=True,
        disable=not screen.is_terminal,
    )

    class Story(Watcher):
        """Prints what it is told."""

        def begin(self, run: "Run", before: float, at_fault: float) -> None:
            self.trying = bars.add_task("trying controllers", total=run.evaluations)
            self.comparing: Any = None
            self.before = before
            if speaks:
                print_beginning(screen, run, map_name, disturbance, before, at_fault)

        def evaluation(self, run: "Run") -> None:
            bars.update(self.trying, completed=len(run.done))
            if speaks:
                screen.print(row_of(run, self.before), soft_wrap=True)

        def searching(self, count: int, controllers: int) -> None:
            if self.comparing is None:
                bars.update(self.trying, visible=False)
                self.comparing = bars.add_task("comparing with every controller", total=controllers)
            bars.update(self.comparing, completed=count)

    with bars:
        yield Story()


def print_beginning(
    screen: Console, run: "Run", map_name: str, disturbance: str, before: float, at_fault: float
) -> None:
    """Say what the swarm was, what has broken and who repairs it."""
    case = run.case
    scenario = case.scenario
    screen.print(
        f"{scenario.robots} robots forage in the arena {scenario.arena.name} with the map "
        f"{escape(map_name)} of {case.behaviour_map.filled_cells} controllers.\n"
        f"Before: [bold]{before:.2f}[/] items per robot, with the map's best controller.\n"
        f"Then {escape(disturbance)} strikes: {broken(case)}.\n"
        f"Now: [bold]{at_fault:.2f}[/] items per robot, with the same controller.\n"
        f"{run.name} tries {counted(run.evaluations, 'controller')}"
        f"{' per robot' * (not run.centralised)}, "
        f"{scenario.trials} trials of {scenario.ticks * scenario.tick:g} s each.\n"
    )
    who = "" if run.centralised else "best try of"
    screen.print(f"  no  {who:<11}  {'cell':<12} predicted  observed  best so far", style="dim")


def broken(case: "Case") -> str:
    """What is broken in which robots, in words."""
    effects = case.scenario.effects()
    labels: dict[str, list[int]] = {}
    for robot, group in enumerate(case.groups):
        labels.setdefault(group or "no controller", []).append(robot)
    parts = [
        f"robot{'s' * (len(robots) > 1)} {', '.join(map(str, robots))}: {label}"
        for label, robots in labels.items()
    ]
    if effects.food != effects.arena.food:
        food = "; ".join(f"{d.x:.2f}, {d.y:.2f}, radius {d.radius:.2f} m" for d in effects.food)
        parts = [f"food is left at {food}", *(parts if list(labels) != ["no fault"] else [])]
    return "; ".join(parts) or "nothing"


def row_of(run: "Run", before: float) -> str:
    """The latest evaluation as a line."""
    from swarmbo.recovery.runner import swarm_mean

    done: Evaluation = run.done[-1]
    outcomes = [-1.0 if value is None else value for value in done.outcome]
    place = max(range(len(outcomes)), key=outcomes.__getitem__)
    row = done.cell[place]
    cell = " ".join(map(str, run.case.behaviour_map.cells[row].tolist())) if row is not None else ""
    best = swarm_mean(done.best, run.case.scenario.robots)
    who = "" if run.centralised else f"robot {place}"
    length = round(BAR * best / before) if before > 0 else 0
    bar = "█" * min(max(length, 0), 2 * BAR)
    return (
        f"{len(run.done):4}  {who:<11}  {cell:<12} {done.prediction[place] or 0:9.2f} "
        f"{outcomes[place]:9.2f} {best:12.2f}  {bar}"
    )


def print_end(screen: Console, recovery: "Recovery") -> None:
    """Set what came out beside what was before, and what could have been."""
    table = Table(
        Column("items per robot"),
        Column("", justify="right"),
        Column("of the loss won back", justify="right"),
        box=SIMPLE_HEAD,
    )
    several = recovery.composed is not None
    for label, value, compared in (
        ("before the fault", recovery.before, False),
        ("at the fault", recovery.at_fault, False),
        ("best found" + ", mean over robots" * several, recovery.best, True),
        ("composed swarm, evaluated together", recovery.composed, True),
        ("exhaustive search, all robots alike", recovery.exhaustive, True),
    ):
        if value is not None:
            share = recovery.recovered(value) if compared else None
            table.add_row(label, f"{value:.2f}", "" if share is None else f"{share:.0%}")
    screen.print(table)
    screen.print(verdict(recovery))


def verdict(recovery: "Recovery") -> str:
    """What was lost and won, in a sentence or two."""
    final = recovery.best if recovery.composed is None else recovery.composed
    gain = final - recovery.at_fault
    share = recovery.recovered(final)
    lost = f"The fault cost {recovery.before - recovery.at_fault:.2f} items per robot"
    words = "The fault costs nothing" if share is None else lost
    if gain < 0:
        return (
            f"{words}. The swarm now delivers {final:.2f}, {-gain:.2f} less than at the fault: "
            "the old controller for all robots would have been better."
        )
    if share is None:
        return f"{words}: there was nothing to win back. The swarm now delivers {final:.2f}."
    won = f"the swarm now delivers {final:.2f} and has won back [bold]{share:.0%}[/] of that"
    return f"{words}; {won}."
