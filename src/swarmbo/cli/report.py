"""`swarmbo study report`: tables, figures and a page of what came out of a study."""

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from swarmbo.cli.terminal import errors
from swarmbo.files import check_path

DEFAULT = "report"  # the folder in that of the study


def report(
    study: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="The folder of a study.", show_default=False),
    ],
    out: Annotated[
        Path | None,
        typer.Option(metavar="REPORT", help="The folder to write.", show_default=f"DIR/{DEFAULT}"),
    ] = None,
) -> None:
    """Report on a study: tables, curves, and the published numbers beside them.

    Writes a folder with report.html, one page that needs nothing else, and the same
    as Markdown, CSV, LaTeX tables, SVG and PNG figures. A study need not be finished:
    the report says what is missing.

    \b
    For example:
    swarmbo study report paper
    swarmbo study report paper --out report-1
    """
    from swarmbo.report.folder import PAGE, check_folder, write_report
    from swarmbo.report.text import count
    from swarmbo.study.journal import load_results

    check_path(study)
    results = load_results(study)
    folder = study / DEFAULT if out is None else out
    check_folder(folder)
    with errors.status("writing tables and figures") if errors.is_terminal else nullcontext():
        summary = write_report(results, folder, study=study)
    screen = Console(highlight=False)
    screen.print(f"{escape(str(folder / PAGE))}", soft_wrap=True)
    score = summary.scores["all"]
    for what, found in (("means", score.means), ("comparisons", score.comparisons)):
        if found.compared:
            screen.print(f"Published {what} that come out: {count(found)}.")
    for sentence in summary.missing:
        screen.print(escape(sentence), style="dim", soft_wrap=True)
