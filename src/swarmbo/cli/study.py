"""`swarmbo study`: many conditions and learners, with a journal that survives everything."""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Column, Table

from swarmbo.cli.report import report
from swarmbo.cli.terminal import counted, errors, load_kernels, millions, print_whole
from swarmbo.errors import InputError, short
from swarmbo.files import check_name

if TYPE_CHECKING:
    from swarmbo.study.campaign import Plan
    from swarmbo.study.definition import Definition, RunKey
    from swarmbo.study.journal import FinishedRun

Found = dict["RunKey", tuple[float, float | None]]
SAME_RUNS = "The runs of Table 2b are those of 2a, each robot with the best that it found."

app = typer.Typer(
    help="Run whole studies: many conditions and learners.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@app.command(no_args_is_help=True)
def run(
    study: Annotated[
        str,
        typer.Argument(
            metavar="paper|STUDY.toml", help="A study that comes with swarmbo, or a file."
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            metavar="DIR",
            help="The study's folder; what is there already is not done again.",
            show_default=False,
        ),
    ],
    tables: Annotated[
        str | None,
        typer.Option(
            metavar="1,2a,2b",
            help="Only these tables of the paper: 1 is centralised learners, 2a and 2b "
            "decentralised ones.",
            show_default="all",
        ),
    ] = None,
    disturbances: Annotated[
        str | None,
        typer.Option(metavar="NAME,...", help="Only these disturbances.", show_default="all"),
    ] = None,
    learners: Annotated[
        str | None,
        typer.Option(metavar="NAME,...", help="Only these learners.", show_default="all"),
    ] = None,
    replicates: Annotated[
        str | None,
        typer.Option(
            metavar="1-5", help="Only these replicates, for example 1-3,5.", show_default="all"
        ),
    ] = None,
    conditions: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Only the first N conditions of a disturbance and replicate.",
            show_default="all",
        ),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Conditions that run at the same time on the CPU.",
            show_default="all cores",
        ),
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS|local:N",
            help="Work on a Dask cluster: the address of its scheduler, or N processes here.",
            show_default=False,
        ),
    ] = None,
    device: Annotated[
        str,
        typer.Option(
            metavar="auto|cpu|gpu", help="What simulates; auto is the GPU if there is one."
        ),
    ] = "auto",
) -> None:
    """Run a study, or what is missing of it.

    Every finished run is kept at once: however it is stopped, the same command
    goes on. A study can be added to (learners, replicates, conditions), but not
    changed. Equal studies give equal results, whatever threads or workers do them.

    \b
    For example:
    swarmbo study run paper --out paper
    swarmbo study run paper --out paper --replicates 1 --conditions 2
    swarmbo study run mine.toml --out mine --dask local:8
    """
    if threads is not None and dask is not None:
        raise InputError("--threads and --dask exclude each other; give one of them")
    wanted = numbers(replicates) if replicates is not None else None

    from swarmbo.study.campaign import run_study
    from swarmbo.study.definition import Selection, load_definition

    definition = load_definition(study)
    check_name(out)
    selection = Selection(
        tables=words("tables", tables),
        disturbances=words("disturbances", disturbances),
        learners=words("learners", learners),
        replicates=wanted,
        conditions=conditions,
    )
    with watching(out, dask) as watcher:
        plan = run_study(
            definition,
            out,
            selection=selection,
            threads=threads,
            dask=dask,
            device=device,
            watcher=watcher,
        )
    report_end(plan, watcher.found, out, perf_counter() - watcher.start)


@app.command(no_args_is_help=True)
def status(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a study.")],
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the state as one JSON object.")
    ] = False,
) -> None:
    """Say what is done of a study, also while it runs.

    Counts the runs that its commands have asked for so far, beside the whole study.
    """
    from swarmbo.study.journal import at_work, finished_runs, reading, stored_definition

    with reading(folder) as rows:
        definition = stored_definition(rows)
        found = finished_runs(rows, definition)
        sessions = list(rows.read("sessions"))
        compared = sum(1 for _ in rows.read("conditions"))
    seconds = sum(row[2] for row in sessions)
    options = [row[4] for row in sessions]
    working = at_work(folder)
    asked = asked_for(definition, options)
    cells = Cells(definition, asked).add(found)
    if as_json:
        state = {
            "study": definition.name,
            "at_work": working,
            "runs": len(definition.runs),
            "asked": len(asked),
            "done": len(found),
            "references": compared,
            "seconds": seconds,
            "cells": Cells(definition, list(definition.runs)).add(found).to_json(cells),
        }
        print(json.dumps(state, allow_nan=False), flush=True)
        return
    screen = Console(highlight=False)
    cells.show(screen)
    whole = len(asked) == len(definition.runs)
    share = "" if whole else f" that were asked for (the whole study has {len(definition.runs):,})"
    screen.print(
        f"{escape(definition.name)}: {len(found):,} of {counted(len(asked), 'run')}{share} "
        f"{'is' if len(asked) == 1 else 'are'} done, and fault injection and exhaustive search on "
        f"{counted(compared, 'condition')}, "
        f"after {spoken(seconds)} of work; "
        + ("a process is at work on it." if working else "nobody is at work on it."),
        soft_wrap=True,
    )


@app.command(no_args_is_help=True)
def repair(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a study.")],
    as_json: Annotated[
        bool, typer.Option("--json", help="Print what was kept as one JSON object.")
    ] = False,
) -> None:
    """Keep what is sound of a study whose journal is damaged.

    The sound rows go into a new journal; the damaged one stays beside it. What was
    lost is done again by swarmbo study run.

    \b
    For example:
    swarmbo study repair paper
    """
    from swarmbo.study.repair import repair_study

    kept = repair_study(folder)
    if as_json:
        state = kept._asdict() | {"damaged": None if kept.damaged is None else str(kept.damaged)}
        print(json.dumps(state), flush=True)
        return
    words = (
        f"{counted(kept.runs, 'run')} and the references of {counted(kept.conditions, 'condition')}"
    )
    if kept.damaged is None:
        words = f"{words} are sound; there is nothing to repair"
    else:
        words = (
            f"kept {words}; swarmbo study run does the rest again; the damaged journal is "
            f"{kept.damaged.name}"
        )
    Console(highlight=False).print(f"{escape(str(folder))}: {escape(words)}.", soft_wrap=True)


app.command(no_args_is_help=True)(report)


def words(option: str, text: str | None) -> tuple[str, ...] | None:
    """The words of a list like a,b,c."""
    if text is None:
        return None
    found = tuple(word.strip() for word in text.split(","))
    if not all(found):
        raise InputError(f"--{option}: {short(text)} is not a list; give names like a,b,c")
    return found


def numbers(text: str) -> tuple[int, ...]:
    """The numbers of a list like 1-3,5."""
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = (piece.strip() for piece in part.partition("-"))
        last = last if dash else first
        if not (first.isdecimal() and last.isdecimal() and len(first + last) <= 12):
            raise InputError(f"--replicates: {short(text)} is not a list like 1-3,5")
        if not int(first) <= int(last) <= int(first) + 10_000:
            raise InputError(f"--replicates: {short(part)} is not a range; give one like 1-5")
        found += range(int(first), int(last) + 1)
    return tuple(dict.fromkeys(found))


def asked_for(definition: "Definition", options: Iterable[str]) -> "list[RunKey]":
    """The runs that a study's sessions were to do, by their options; all, where these are unknown.

    `options` is what the journal has of each session, as JSON.
    """
    from swarmbo.study.definition import Selection

    asked: set[RunKey] = set()
    try:
        for text in dict.fromkeys(options):
            selection = Selection(**json.loads(text)["selection"])
            asked.update(definition.selected(selection))
    except (ValueError, KeyError, TypeError, AttributeError):
        return list(definition.runs)
    return [key for key in definition.runs if key in asked] or list(definition.runs)


# --- the picture -------------------------------------------------------------------------------


class Cells:
    """The cells of the tables: how many runs are done, and their mean so far."""

    def __init__(self, definition: "Definition", runs: "list[RunKey]") -> None:
        self._tables = {label: each.table for label, each in definition.variants.items()}
        self._wanted: dict[tuple[str, str, str], int] = {}
        self._values: dict[tuple[str, str, str], list[float]] = {}
        for key in runs:
            for table in self._tables_of(key.variant):
                cell = (table, key.disturbance, key.variant)
                self._wanted[cell] = self._wanted.get(cell, 0) + 1
        self._wanted = dict(sorted(self._wanted.items(), key=lambda item: item[0][0]))

    def _tables_of(self, variant: str) -> tuple[str, ...]:
        return ("1",) if self._tables[variant] == "1" else ("2a", "2b")

    def add(self, found: "Found") -> "Cells":
        """Take in runs that are done."""
        for key, (best, composed) in found.items():
            for table in self._tables_of(key.variant):
                value = composed if table == "2b" else best
                if value is not None:
                    cell = (table, key.disturbance, key.variant)
                    self._values.setdefault(cell, []).append(value)
        return self

    def show(self, screen: Console) -> None:
        """Print the table, and whose runs are in two rows of it."""
        print_whole(screen, self.table())
        if any(table == "2b" for table, _, _ in self._wanted):
            screen.print(SAME_RUNS)

    def to_json(self, asked: "Cells") -> list[dict[str, Any]]:
        """An object per cell; `asked` are those of the runs that were asked for."""
        return [
            {
                "table": table,
                "disturbance": disturbance,
                "learner": variant,
                "runs": count,
                "asked": asked._wanted.get((table, disturbance, variant), 0),
                "done": len(self._values.get((table, disturbance, variant), ())),
                "mean": self._mean((table, disturbance, variant)),
            }
            for (table, disturbance, variant), count in self._wanted.items()
        ]

    def _mean(self, cell: tuple[str, str, str]) -> float | None:
        values = self._values.get(cell)
        return sum(values) / len(values) if values else None

    def table(self) -> Table:
        """A line per table and disturbance, with the mean of each learner so far."""
        table = Table(
            Column("table", no_wrap=True),
            Column("disturbance", overflow="fold"),
            Column("runs done", justify="right", no_wrap=True),
            Column("items per robot so far", overflow="fold"),
            box=SIMPLE_HEAD,
        )
        lines: dict[tuple[str, str], list[str]] = {}
        for which, disturbance, variant in self._wanted:
            lines.setdefault((which, disturbance), []).append(variant)
        for (which, disturbance), variants in lines.items():
            cells = [(which, disturbance, variant) for variant in variants]
            done = sum(len(self._values.get(cell, ())) for cell in cells)
            means = [self._mean(cell) for cell in cells]
            text = "  ".join(
                f"{escape(variant)} [bold]{'-' if mean is None else format(mean, '.2f')}[/]"
                for variant, mean in zip(variants, means, strict=True)
            )
            wanted = sum(self._wanted[cell] for cell in cells)
            count = f"{done:,}/{wanted:,}"
            table.add_row(
                which, escape(disturbance), f"({count})" if which == "2b" else count, text
            )
        return table


@contextmanager
def watching(out: Path, dask: str | None) -> Iterator[Any]:
    """Show how a study goes while the block runs, on a terminal only; yields who is to be told."""
    from swarmbo.study.campaign import Watcher, first_case

    class Picture(Watcher):
        """Draws what it is told."""

        def __init__(self) -> None:
            self.found: Found = {}
            self.done = 0.0  # robot-ticks, about
            self.there: int | None = None  # workers of a Dask cluster

        def begin(self, plan: "Plan") -> None:
            self.plan = plan
            self.found = dict(plan.before)
            self.cells = Cells(plan.definition, list(plan.runs)).add(self.found)
            if plan.cost and plan.device == "cpu" and (dask is None or dask.startswith("local:")):
                case = first_case(plan)
                team = [case.behaviour_map.controllers()[0]] * case.scenario.robots
                load_kernels(case.scenario, team)
            self.start = perf_counter()
            if plan.cost and errors.is_terminal:
                live.start(refresh=True)

        def finished(self, run: "FinishedRun") -> None:
            one = {run.key: (run.best, run.composed)}
            self.found |= one
            self.cells.add(one)

        def advanced(self, cost: float) -> None:
            self.done = cost
            self.at = perf_counter()

        def workers(self, count: int) -> None:
            if count == 0 and self.there != 0:
                errors.print("the scheduler has no workers; waiting until there are some")
            elif self.there == 0 and count:
                errors.print(f"the scheduler has {counted(count, 'worker')} now")
            self.there = count

        def __rich__(self) -> Group:
            """The tables so far; a bar with rate and time left."""
            seconds = perf_counter() - self.start
            words = [f"{len(self.found):,}/{len(self.plan.runs):,} runs", spoken(seconds)]
            if self.there is not None:
                words.insert(1, counted(self.there, "worker"))
            if self.done:
                rate = self.done / (self.at - self.start)
                left = max((self.plan.cost - self.done) / rate - (perf_counter() - self.at), 0)
                words += [f"{millions(rate)} robot-ticks/s", f"{spoken(left)} left"]
            line = Table.grid(padding=(0, 1))
            bar = ProgressBar(total=max(self.plan.cost, 1), completed=self.done, width=30)
            line.add_row(escape(str(out)), bar, ", ".join(words))
            return Group(self.cells.table(), line)

    picture = Picture()
    live = Live(picture, console=errors, transient=True, refresh_per_second=4)
    try:
        yield picture
    finally:
        live.stop()


def report_end(plan: "Plan", found: "Found", out: Path, seconds: float) -> None:
    """Say what there is now."""
    screen = Console(highlight=False)
    cells = Cells(plan.definition, list(plan.runs)).add(found)
    cells.show(screen)
    new = len(found) - len(plan.before)
    if new:
        before = f", {len(plan.before):,} were there before" if plan.before else ""
        screen.print(
            f"{escape(str(out))}: {counted(new, 'run')} in {spoken(seconds)} on the "
            f"{plan.device.upper()}{before}.",
            soft_wrap=True,
        )
    else:
        screen.print(
            f"{escape(str(out))}: all {len(found):,} runs were there before; "
            "there was nothing to do.",
            soft_wrap=True,
        )


def spoken(seconds: float) -> str:
    """A duration for people: 12 s, 3 min 20 s, 2 h 5 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
