"""A report as one page of HTML that needs nothing else: no script, no font, no other file."""

import base64
import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from swarmbo.report import text
from swarmbo.report.summary import Cell, Count, Summary, Table, disturbance_name
from swarmbo.version import __version__

# In the dark, what is drawn in ink on white is drawn in chalk; curves keep their colours.
_SVG_STYLE = (
    "<style>:root{--ink:#2b2b2b;--grid:#ececec;--edge:#9a9a9a;--line:#21618c}"
    "@media (prefers-color-scheme:dark){"
    ":root{--ink:#dedcd7;--grid:#33383e;--edge:#6b7077;--line:#7db8e0}}</style>"
)
_SVG_COLOURS = {
    "#2b2b2b": "var(--ink)",
    "#ececec": "var(--grid)",
    "#9a9a9a": "var(--edge)",
    "#21618c": "var(--line)",
}


@dataclass(frozen=True)
class Picture:
    """A figure of a report."""

    name: str  # of its files, without their ends
    caption: str
    wide: bool
    svg: str


def page(
    summary: Summary, about: dict[str, Any], pictures: Sequence[Picture], maps: text.Rows
) -> str:
    """The whole report."""
    css = (files("swarmbo.report") / "report.css").read_text(encoding="utf-8")
    name = text.study_name(about)
    sections = [
        ("score", "Beside the paper", _score(summary)),
        *((f"table-{table.name}", table.title, _table(table)) for table in summary.tables),
    ]
    if summary.lines:
        lines = _plain(text.LINES, text.lines(summary)) + _note(text.LINES_READING)
        sections.append(("references", "References", lines))
    curves = [picture for picture in pictures if not picture.wide]
    sections.append(("development", "Development of performance", _development(curves)))
    evolution = "".join(_figure(picture) for picture in pictures if picture.wide)
    if maps:
        evolution += _plain(text.MAPS, maps)
    if evolution:
        sections.append(("evolution", "Evolution", evolution + _note(text.EVOLUTION_READING)))
    sections.append(("about", "How it was made", _about(about)))
    links = "".join(f'<a href="#{place}">{escape(title)}</a>' for place, title, _ in sections)
    body = "\n".join(
        f'<section id="{place}">\n<h2>{escape(title)}</h2>\n{content}\n</section>'
        for place, title, content in sections
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8"/>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>\n'
        f"<title>The study {_words(name)}</title>\n"
        '<link rel="icon" href="data:,"/>\n'
        f"<style>\n{css}</style>\n</head>\n<body>\n<main>\n<header>\n"
        f'<p class="eyebrow">swarmbo study report</p>\n<h1>The study “{_words(name)}”</h1>\n'
        f'<p class="lead">{_words(text.overview(summary))}</p>\n<nav>{links}</nav>\n</header>\n'
        f"{body}\n</main>\n</body>\n</html>\n"
    )


def _words(value: str) -> str:
    """Text for the page, without characters that HTML does not have."""
    clean = value.encode(errors="replace").decode()
    clean = clean.replace(" %", "\u00a0%").replace(" ±", "\u00a0±")
    return escape("".join(c for c in clean if c in "\t\n" or c >= " "))


def _note(words: str) -> str:
    return f'<p class="note">{_words(words)}</p>'


# --- score -------------------------------------------------------------------------------------


def _score(summary: Summary) -> str:
    score = summary.scores["all"]
    tiles = [
        _tile(score.means, "published means that come out, within 15 % or 0.15 items"),
        _tile(score.comparisons, "published comparisons that agree in significance and direction"),
        _tile(score.directions, "comparisons in which the same learner is ahead"),
    ]
    missing = ""
    if summary.missing:
        sentences = "".join(f"<li>{_words(sentence)}</li>" for sentence in summary.missing)
        missing = f'<div class="missing"><h3>What is missing</h3><ul>{sentences}</ul></div>'
    rows = _plain(text.SCORES, text.scores(summary))
    return f'<div class="tiles">{"".join(tiles)}</div>{missing}{rows}{_note(text.SCORE_READING)}'


def _tile(count: Count, what: str) -> str:
    absent = count.published - count.compared
    more = f"; {absent} more cannot be compared" if absent else ""
    share = 100 * count.agree / count.compared if count.compared else 0
    number = f"{count.agree} <small>of {count.compared}</small>" if count.compared else text.NOTHING
    return (
        f'<div class="tile"><div class="number">{number}</div>'
        f'<div class="meter"><div style="width:{share:.1f}%"></div></div>'
        f'<p class="what">{_words(what + more)}</p></div>'
    )


# --- tables ------------------------------------------------------------------------------------


def _table(table: Table) -> str:
    head = "".join(f'<th scope="col">{_words(column.label)}</th>' for column in table.columns)
    rows = []
    for disturbance in table.disturbances:
        cells = "".join(
            f'<td data-label="{_words(column.label)}">'
            f"{_cell(table.cells.get((disturbance, column)))}</td>"
            for column in table.columns
        )
        name = _words(disturbance_name(disturbance))
        rows.append(f'<tr><th scope="row">{name}</th>{cells}</tr>')
    details = _plain(text.DETAILS, text.details(table))
    words = text.DETAILS_READING.format(reference=text.reference_label(table))
    return (
        f'<div class="scroll"><table class="paper-form"><thead><tr><th scope="col">Disturbance</th>'
        f"{head}</tr></thead><tbody>\n{chr(10).join(rows)}\n</tbody></table></div>"
        f"{_note(text.reading(table))}\n<h3>Intervals, effect sizes, correction</h3>\n"
        f"{details}{_note(words)}"
    )


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return f'<span class="ours">{text.NOTHING}</span>'
    found = f'<span class="ours">{_spread(*text.ours(cell))}</span>'
    if cell.published:
        found += f'<span class="published">{_spread(*text.papers(cell.published))}</span>'
    words = "".join(f'<span class="differs">{_words(part)}</span>' for part in text.differs(cell))
    return found + (f"<span>{words}</span>" if words else "")


def _spread(words: str, bold: bool, sign: str) -> str:
    mean = f"<strong>{words}</strong>" if bold else words
    return f"{mean} {sign.replace('-', text.MINUS)}".rstrip()


def _plain(head: Sequence[str], rows: text.Rows) -> str:
    """A table of words; the first column's is shown once where it repeats."""
    numeric = [
        all(re.match(rf"[{text.MINUS}+<]? ?\d|{text.NOTHING}", row[place]) for row in rows)
        for place in range(len(head))
    ]

    def mark(place: int) -> str:
        return ' class="number"' if numeric[place] else ""

    titles = "".join(
        f'<th scope="col"{mark(place)}>{_words(name)}</th>' for place, name in enumerate(head)
    )
    body = []
    previous = None
    for row in rows:
        first = ' class="first"' if row[0] != previous else ""
        cells = "".join(
            f"<td{mark(place)}>{_words(value)}</td>" for place, value in enumerate(row) if place
        )
        body.append(f'<tr{first}><th scope="row"><span>{_words(row[0])}</span></th>{cells}</tr>')
        previous = row[0]
    return (
        f'<div class="scroll"><table class="plain"><thead><tr>{titles}</tr></thead>'
        f"<tbody>\n{chr(10).join(body)}\n</tbody></table></div>"
    )


# --- figures -----------------------------------------------------------------------------------


def _development(pictures: Sequence[Picture]) -> str:
    words = (
        "Lines: mean best-so-far over the conditions. Bands: one standard deviation to either "
        "side. An evaluation is booked with the time of one of its trials."
    )
    return f'<div class="figures">{"".join(map(_figure, pictures))}</div>{_note(words)}'


def _figure(picture: Picture) -> str:
    data = base64.b64encode(_adaptive(picture.svg).encode()).decode()
    width, height = _size(picture.svg)
    kind = ' class="wide"' if picture.wide else ""
    return (
        f'<figure{kind}><img src="data:image/svg+xml;base64,{data}" width="{width}" '
        f'height="{height}" alt="{_words(picture.caption)}"/></figure>'
    )


def _adaptive(svg: str) -> str:
    """The same drawing without what browsers do not need, on the page's own background."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, count=1, flags=re.DOTALL)
    for colour, name in _SVG_COLOURS.items():
        svg = svg.replace(f": {colour}", f": {name}")
    svg = svg.replace("fill: #ffffff", "fill: none")
    end = svg.index(">") + 1
    return svg[:end] + _SVG_STYLE + svg[end:]


def _size(svg: str) -> tuple[int, int]:
    """Width and height in pixels, so that the page does not jump while it loads."""
    width, height = (
        float(found.group(1)) if (found := re.search(rf'\b{name}="([\d.]+)pt"', svg)) else 400
        for name in ("width", "height")
    )
    return round(width * 4 / 3), round(height * 4 / 3)


# --- about -------------------------------------------------------------------------------------


def _about(about: dict[str, Any]) -> str:
    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "matplotlib"))
    made = f"swarmbo {__version__}, Python {platform.python_version()}, {libraries}"
    entries = "".join(_entry(name, value) for name, value in about.items())
    entries += _entry("this report", f"made with {made}")
    return f'<dl class="about">{entries}</dl>'


def _entry(name: str, value: Any, depth: int = 1) -> str:
    return f"<div><dt>{_words(_title(name))}</dt><dd>{_value(value, depth)}</dd></div>"


def _title(name: object) -> str:
    return str(name).replace("_", " ")


def _value(value: Any, depth: int) -> str:
    """A value of any shape: names and values, a list, a text of several lines."""
    if isinstance(value, dict) and value and depth < 3:
        entries = (_entry(name, entry, depth + 1) for name, entry in value.items())
        return f"<dl>{''.join(entries)}</dl>"
    if isinstance(value, list | tuple) and any(isinstance(entry, dict | list) for entry in value):
        return f"<ul>{''.join(f'<li>{_words(_inline(entry))}</li>' for entry in value)}</ul>"
    if isinstance(value, str) and "\n" in value.strip():
        return f"<pre>{_words(value.strip())}</pre>"
    return _words(_inline(value))


def _inline(value: Any) -> str:
    """A value in one line; what is not given is left out."""
    if isinstance(value, dict) and value:
        parts = []
        for name, entry in value.items():
            if entry is not None and entry != {}:
                words = _inline(entry)
                inner = f"({words})" if isinstance(entry, dict | list | tuple) else words
                parts.append(f"{_title(name)} {inner}")
        return ", ".join(parts) or "nothing given"
    if isinstance(value, list | tuple):
        return ", ".join(map(_inline, value)) or "none"
    return "none" if value in ("", {}) else _short(value)


def _short(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.6g}" if abs(value) < 1e15 else str(value)
    return "none" if value is None else str(value)
