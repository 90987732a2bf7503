"""The report of a study: a page, and the same as Markdown, CSV, LaTeX and figures, in one folder.

The CSV files at the top of the folder hold results only, no times or machine:
equal studies give equal files.
"""

import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from swarmbo import files
from swarmbo.errors import InputError
from swarmbo.maps.behaviour_map import BehaviourMap, load_map
from swarmbo.recovery.recovery import checksum
from swarmbo.report import text
from swarmbo.report.summary import Summary, disturbance_name, summarise

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from swarmbo.study.journal import Results

PAGE = "report.html"
MARKDOWN = "report.md"
FIGURES = "figures"
LATEX = "latex"
_TABLES = ("1", "2a", "2a-conditions", "2b")
_CSV = (*(f"table-{name}" for name in _TABLES), "score", "references", "curves", "conditions")
_ENTRIES = (PAGE, MARKDOWN, FIGURES, LATEX, *(f"{name}.csv" for name in _CSV))
_KINDS = {"1": "centralised", "2a": "decentralised"}


@dataclass(frozen=True, eq=False)
class Drawing:
    """A figure that is not written yet."""

    name: str  # of its files, without their ends
    caption: str
    wide: bool
    figure: "Figure"


def write_report(
    results: "Results",
    folder: str | os.PathLike[str],
    *,
    study: str | os.PathLike[str] = ".",
) -> Summary:
    """Write the report of a study into a folder, and return what it says.

    The folder is made, or replaced if it holds an earlier report. `study` is the
    study's folder, in which maps are looked for that are not found otherwise.
    """
    from swarmbo.maps.plots import save_figure
    from swarmbo.report.page import Picture, page

    check_folder(folder)
    summary = summarise(results)
    maps, absent = _maps(results, Path(study))
    summary = replace(summary, missing=(*summary.missing, *absent))
    drawings = draw(summary, list(maps.values()))
    rows = [
        [name, each.descriptor_name, str(each.filled_cells), f"{each.best:.2f}", f"{each.mean:.2f}"]
        for name, each in maps.items()
    ]
    with files.whole_folder(folder, _ENTRIES) as temporary:
        for name, table in text.csv_tables(summary).items():
            table.to_csv(
                temporary / f"{name}.csv", index=False, float_format="%.6g", lineterminator="\n"
            )
        (temporary / LATEX).mkdir()
        for found in summary.tables:
            _write(temporary / LATEX / f"table-{found.name}.tex", text.latex_table(found))
            _write(temporary / LATEX / f"table-{found.name}-details.tex", text.latex_details(found))
        (temporary / FIGURES).mkdir()
        pictures = []
        for drawing in drawings:
            path = temporary / FIGURES / f"{drawing.name}.svg"
            save_figure(drawing.figure, path)
            save_figure(drawing.figure, path.with_suffix(".png"))
            svg = path.read_text(encoding="utf-8")
            pictures.append(Picture(drawing.name, drawing.caption, drawing.wide, svg))
        captions = [(drawing.name, drawing.caption) for drawing in drawings]
        _write(temporary / MARKDOWN, text.markdown(summary, results.about, captions, rows))
        _write(temporary / PAGE, page(summary, results.about, pictures, rows))
    return summary


def draw(summary: Summary, maps: list[BehaviourMap]) -> list[Drawing]:
    """The development of every disturbance, and the evolution of the maps."""
    from swarmbo.report.plots import plot_development, plot_evolution

    drawings: dict[str, Drawing] = {}
    for each in summary.developments:
        kind = _KINDS[each.table]
        name = base = f"development-{kind}-{_slug(each.disturbance)}"
        number = 1
        while name in drawings:  # disturbances whose names differ in odd characters only
            number += 1
            name = f"{base}-{number}"
        caption = (
            f"Best so far against time under {disturbance_name(each.disturbance)}, "
            f"{kind} learners, {each.conditions} conditions"
        )
        drawings[name] = Drawing(name, caption, False, plot_development(each))
    evolution = plot_evolution(maps)
    if evolution is not None:
        caption = f"Best, mean and filled cells against generations, {len(maps)} maps"
        drawings["evolution"] = Drawing("evolution", caption, True, evolution)
    return list(drawings.values())


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60] or "other"


def _maps(results: "Results", study: Path) -> tuple[dict[str, BehaviourMap], list[str]]:
    """The maps of a study by name, and a sentence for each that is no longer there."""
    checksums = {
        entry["map"]: entry["checksum"]
        for entry in results.about.get("maps", [])
        if isinstance(entry, dict) and {"map", "checksum"} <= set(entry)
    }
    found, absent = {}, []
    for name in sorted({str(name) for name in results.runs["map"]}):
        for place in (name, study / name):
            try:
                behaviour_map = load_map(place)
            except InputError:
                continue
            if checksums.get(name) in (None, checksum(behaviour_map)):
                found[name] = behaviour_map
                break
        else:
            absent.append(name)
    sentences = [f"The evolution figure is without the map {name}: not found." for name in absent]
    return found, sentences


def check_folder(folder: str | os.PathLike[str]) -> None:
    """InputError when a report cannot be written into a folder; call it before the work."""
    files.check_folder(folder, _ENTRIES, "which is no part of a report")


def _write(path: Path, content: str) -> None:
    path.write_text(content, encoding="utf-8", errors="replace", newline="\n")
