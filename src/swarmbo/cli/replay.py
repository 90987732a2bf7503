"""`swarmbo replay`: a recovery as one file that anyone can open."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from swarmbo.cli.terminal import errors
from swarmbo.files import check_writable

if TYPE_CHECKING:
    from swarmbo.view.footage import Footage


def replay(
    recovery: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", help="A folder that swarmbo recover --out wrote.", show_default=False
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help="The file to write: a page (.html), a film (.gif, .mp4) or a picture (.png).",
        ),
    ] = Path("replay.html"),
    behaviour_map: Annotated[
        str | None,
        typer.Option(
            "--map",
            metavar="MAP",
            help="The map of the recovery, if it is not where it was.",
            show_default=False,
        ),
    ] = None,
    trial: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            help="Which trial to show, from 0.",
            show_default="the one nearest to the mean",
        ),
    ] = None,
    dark: Annotated[
        bool,
        typer.Option(
            "--dark", help="Dark colours in films and pictures; a page follows its reader."
        ),
    ] = False,
) -> None:
    """Show a recovery to others: one file, for which nothing need be installed.

    Trials before the fault, right after it and after recovery side by side, and in
    step with them the performance, the map and what the learner expected. The page
    works from a disk without a network. Pages and GIFs are smaller than 5 MB.

    \b
    For example:
    swarmbo replay recovery
    swarmbo replay recovery --out replay.gif --dark
    swarmbo replay recovery --out replay.mp4 --trial 3
    swarmbo replay recovery --map moved/mine.map --out recovery/replay.html
    """
    from swarmbo.view.replay import replay_kind

    replay_kind(out)
    check_writable(out)

    from swarmbo.view.footage import load_footage

    with recording() as progress:
        footage = load_footage(
            recovery, behaviour_map=behaviour_map, trial=trial, progress=progress
        )
        write(footage, out, Console(highlight=False), dark=dark)


def write(footage: "Footage", out: Path, screen: Console, *, dark: bool = False) -> None:
    """Write a replay and say what was written."""
    from swarmbo.view.replay import write_replay

    facts = write_replay(footage, out, scheme="dark" if dark else "light")
    words = f"{escape(str(out))}: {facts['bytes'] / 1e6:.1f} MB"
    if "size" in facts:
        words += f", {facts['size'][0]} x {facts['size'][1]} pixels"
    if "seconds" in facts:
        words += f", {facts['seconds']:.0f} s"
    screen.print(words, soft_wrap=True)


@contextmanager
def recording() -> Iterator[Callable[[int, int], None]]:
    """Show on a terminal how many trials are recorded; yields a function to call with that."""
    if not errors.is_terminal:
        yield lambda done, of: None
        return
    bars = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        console=errors,
        transient=True,
    )
    with bars:
        task = bars.add_task("recording trials", total=None)

        def told(done: int, of: int) -> None:
            words = "drawing" if done == of else "recording trials"
            bars.update(task, completed=done, total=of, description=words)

        yield told
