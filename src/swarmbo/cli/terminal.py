"""What the commands share: messages and progress on stderr, numbers for people."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from time import perf_counter

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Column, Table
from rich.text import Text

from swarmbo.controller.network import Controller
from swarmbo.world.scenario import Scenario

errors = Console(stderr=True, highlight=False)
COMPILING = "compiling the simulator for this machine, once: about half a minute"


def load_kernels(scenario: Scenario, team: Sequence[Controller]) -> None:
    """Load the simulator's machine code, or compile it and say so.

    In a thread of its own, because Ctrl-C is not heard in the one that waits
    for the compiler.
    """
    from swarmbo.compilation import is_cached
    from swarmbo.engine.swarm import Swarm

    if not is_cached():
        errors.print(COMPILING)
    pool = ThreadPoolExecutor(1)
    try:
        pool.submit(Swarm(scenario, team).advance, 1).result()
    finally:
        pool.shutdown(wait=False)


@contextmanager
def progress_bar(what: str, total: int, robot_ticks: int) -> Iterator[Callable[[int], None]]:
    """Show a bar with rate and time left while the block runs, on a terminal only.

    Yields a function to call with how many of `total` are done; each of them
    takes `robot_ticks` robot-ticks.
    """
    if not errors.is_terminal:
        yield lambda _: None
        return
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=errors,
        transient=True,
    )
    start = perf_counter()
    with bar:
        task = bar.add_task(what, total=total, rate="")

        def done(count: int) -> None:
            rate = count * robot_ticks / (perf_counter() - start)
            bar.update(task, completed=count, rate=f"{millions(rate)} robot-ticks/s")

        yield done


def print_whole(screen: Console, table: Table) -> None:
    """Print a table so that columns that do not wrap, those of numbers, are never cut.

    On a narrow terminal it is set closer, and where even that does not help the
    terminal breaks the lines.
    """
    width, wrapped = screen.width, 12
    if _needed(table, wrapped) > width:
        for column in filter(lambda column: column.no_wrap, table.columns):
            column.header = str(column.header).replace(" ", "\n")
    if _needed(table, wrapped) > width:
        table.padding, wrapped = 0, 5
    screen.width = max(width, _needed(table, wrapped))
    screen.print(table)
    screen.width = width


def _needed(table: Table, wrapped: int) -> int:
    """The width of a table whose columns that wrap have `wrapped` characters, or all if fewer."""

    def natural(column: Column) -> int:
        texts = (Text.from_markup(str(cell)) for cell in (column.header, *column.cells))
        return max(line.cell_len for text in texts for line in text.split("\n"))

    _, right, _, left = table.padding
    widths = [natural(c) if c.no_wrap else min(natural(c), wrapped) for c in table.columns]
    return sum(widths) + len(widths) * (left + right + 1) + 1  # a space between columns, and edges


def counted(number: int, what: str) -> str:
    """A number of things: 1 cell, 4,096 cells."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def millions(number: float) -> str:
    """A number in millions, with three digits: 4.27 M."""
    return f"{number / 1e6:.3g} M"
