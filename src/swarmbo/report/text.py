"""A report as text: the words that all its forms share, Markdown, LaTeX and CSV."""

import json
from collections.abc import Sequence
from typing import Any

import pandas as pd

from swarmbo.report.summary import (
    Cell,
    Column,
    Count,
    Published,
    Summary,
    Table,
    disturbance_name,
)

Rows = list[list[str]]  # of a table, without its head
MINUS = "\N{MINUS SIGN}"
NOTHING = "\N{EN DASH}"  # where there is no number

DETAILS = (
    "disturbance",
    "learner",
    "n",
    "mean [95 % CI]",
    "improvement",
    "difference [95 % CI]",
    "A12",
    "p",
    "p, Holm",
)
READING = (
    "Items per robot, mean ± standard deviation of the population, after the last evaluation. "
    "Bold: p < .05 in a rank-sum test against {reference}; (+) when {reference} is higher, (-) "
    "when it is lower."
)
POOLED = {
    "1": "Each condition gives one value.",
    "2a": "Each robot gives one value, the best that it knows of, as in the paper; a robot that "
    "has lost its controller counts 0. Robots of one swarm are not independent: see the next "
    "table.",
    "2a-conditions": "The same runs, but each condition gives one value, the mean over its robots. "
    "The paper has no such table.",
    "2b": "The same runs as in Table 2a, but each condition gives one value: that of the swarm in "
    "which every robot has its best controller.",
}
DETAILS_READING = (
    "n: conditions. Improvement: of the mean over the fault-injection performance. Difference: "
    "mean of {reference} minus that of the learner, over the conditions that both have. Intervals: "
    "bootstrap over conditions, 10,000 resamples, percentiles. A12: the chance that {reference} is "
    "better, 0.5 is no effect (Vargha and Delaney 2000). Holm: p corrected for all tests of this "
    "table."
)
SCORE_READING = (
    "A mean agrees within 15 % or 0.15 items of the published one. A comparison agrees when it is "
    "significant as published and, if so, in the published direction. The last column leaves "
    "significance aside: is the mean of the reference learner above, or below, as published?"
)
SCORES = ("", "means", "comparisons", "direction alone")
LINES = ("disturbance", "n", "before the fault", "fault injection", "exhaustive search")
LINES_READING = (
    "Items per robot, means over the conditions. Fault injection: the map's best controller under "
    "the disturbance. Exhaustive search: every controller of the map under the disturbance, the "
    "best one."
)
EVOLUTION_READING = (
    "Generations, and over the maps of a kind mean and standard deviation. The paper reports for "
    "HBD a best of just above 5 items per robot, a mean of just below 2 and roughly 500 filled "
    "cells; for SDBC 4.5, 1.3 and just above 100."
)
MAPS = ("map", "descriptor", "filled cells", "best", "mean")


# --- words that all forms share ----------------------------------------------------------------


def spread(mean: float, sd: float) -> str:
    """Mean and deviation: 3.01 ± 1.24."""
    return f"{mean:.2f} ± {sd:.2f}"


def ours(cell: Cell) -> tuple[str, bool, str]:
    """What a cell says, whether it is bold, and the sign behind it."""
    test = cell.comparison
    bold = bool(test and test.significant)
    return spread(cell.mean, cell.sd), bold, f"({test.sign})" if test and bold else ""


def papers(cell: Published) -> tuple[str, bool, str]:
    """The same of a published cell."""
    bold = bool(cell.significant)
    return spread(cell.mean, cell.sd), bold, f"({cell.sign})" if bold else ""


def differs(cell: Cell) -> list[str]:
    """In what a cell does not agree with the published one, in a few words."""
    words = []
    if cell.mean_agrees is False and cell.published:
        deviation = 100 * cell.mean / cell.published.mean - 100
        words.append(f"mean {_signed(deviation)} %")
    if cell.comparison_agrees is False:
        words.append("other test result")
    return words


def _signed(number: float, digits: int = 0) -> str:
    return f"{number:+.{digits}f}".replace("-", MINUS)


def interval(bounds: tuple[float, float] | None) -> str:
    """The bounds of an interval, or nothing."""
    if bounds is None:
        return ""
    return f" [{bounds[0]:.2f}, {bounds[1]:.2f}]".replace("-", MINUS)


def probability(p: float | None) -> str:
    """A p for people."""
    return NOTHING if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}"


def details(table: Table) -> Rows:
    """What the paper lacks, a row per cell of a table."""
    rows = []
    for disturbance in table.disturbances:
        for column in table.columns:
            cell = table.cells.get((disturbance, column))
            if cell is None:
                continue
            test = cell.comparison
            gap = test.difference if test else None
            rows.append(
                [
                    disturbance_name(disturbance),
                    column.label,
                    str(cell.conditions),
                    f"{cell.mean:.2f}{interval(cell.interval)}",
                    NOTHING if cell.improvement is None else f"{_signed(cell.improvement)} %",
                    _signed(gap, 2) + interval(test.interval)
                    if test and gap is not None
                    else NOTHING,
                    f"{test.a12:.2f}" if test and test.a12 is not None else NOTHING,
                    probability(test.p if test else None),
                    probability(test.holm if test else None),
                ]
            )
    return rows


def reference_label(table: Table) -> str:
    """The name of the learner that a table compares with."""
    return table.reference.label if table.reference else "the reference learner"


def reading(table: Table) -> str:
    """How a table in the paper's form is to be read."""
    return READING.format(reference=reference_label(table)) + " " + POOLED[table.name]


def scores(summary: Summary) -> Rows:
    """The score, a row per table of the paper."""
    return [
        ["all" if name == "all" else f"Table {name}", *map(count, vars(score).values())]
        for name, score in summary.scores.items()
    ]


def count(found: Count) -> str:
    """For example 20 of 24, and how many more are published but not in the study."""
    absent = found.published - found.compared
    words = f"{found.agree} of {found.compared}"
    return f"{words} ({absent} more cannot be compared)" if absent else words


def lines(summary: Summary) -> Rows:
    """The references, a row per disturbance."""
    return [
        [
            disturbance_name(disturbance),
            str(found.conditions),
            *(f"{value:.2f}" for value in (found.before, found.at_fault, found.exhaustive)),
        ]
        for disturbance, found in summary.lines.items()
    ]


def overview(summary: Summary) -> str:
    """How much there is, in a sentence."""
    runs = summary.conditions
    numbers = sorted(set(runs["evaluations"]))
    most = f"{numbers[0]} to {numbers[-1]}" if len(numbers) > 1 else f"{numbers[0]}"
    seconds = {False: 0.0, True: 0.0}  # in 2x?
    for each in summary.developments:
        place = each.disturbance.endswith("-2x")
        seconds[place] = max(seconds[place], *(float(curve.seconds[-1]) for curve in each.curves))
    times = [f"{seconds[False]:,.0f} s"] if seconds[False] else []
    times += [f"{seconds[True]:,.0f} s in 2x"] if seconds[True] else []
    counts = {name: int((runs["table"] == name).sum()) for name in ("1", "2a")}
    places = {"1": "for Table 1", "2a": "for Tables 2a and 2b"}
    shares = [f"{count:,} {places[name]}" for name, count in counts.items() if count]
    parts = [
        f"{_plural(len(runs), 'run')} ({', '.join(shares)})",
        _plural(len(runs.drop_duplicates(["learner", "variant"])), "learner"),
        _plural(runs["disturbance"].nunique(), "disturbance"),
        _plural(len(runs.drop_duplicates(["disturbance", "map", "replicate", "condition"])))
        + " in all",
        _plural(len(runs.drop_duplicates(["map", "replicate"])), "replicate"),
    ]
    noise = " Centralised learners and references with noise that the maps never met."
    return (
        f"{parts[0]}: {parts[1]}, {parts[2]} ({parts[3]}), {parts[4]}; {most} evaluations each, "
        f"booked as {', '.join(times)}.{noise * summary.fresh_noise}"
    )


def _plural(number: int, what: str = "condition") -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"


def study_name(about: dict[str, Any]) -> str:
    """What the study is called."""
    definition = about.get("definition")
    places = [about, definition if isinstance(definition, dict) else {}]
    for place in places:
        for key in ("study", "name"):
            if isinstance(place.get(key), str) and place[key]:
                return str(place[key])
    return "of one's own"


# --- Markdown ----------------------------------------------------------------------------------


def markdown(
    summary: Summary, about: dict[str, Any], figures: Sequence[tuple[str, str]], maps: Rows
) -> str:
    """The whole report; `figures` are names of files without their ends, and captions."""
    parts = [f"# The study {_md(study_name(about))}", overview(summary), "## Beside the paper"]
    parts += [_md_table(SCORES, scores(summary)), SCORE_READING]
    if summary.missing:
        parts += ["## What is missing", "\n".join(f"- {_md(text)}" for text in summary.missing)]
    for table in summary.tables:
        parts += [f"## {table.title}", _md_paper(table), reading(table)]
        parts += [_md_table(DETAILS, details(table))]
        parts += [DETAILS_READING.format(reference=reference_label(table))]
    if summary.lines:
        parts += ["## References", _md_table(LINES, lines(summary)), LINES_READING]
    parts.append("## Figures")
    parts += [f"![{_md(caption)}](figures/{name}.svg)" for name, caption in figures]
    if maps:
        parts += ["## Maps", _md_table(MAPS, maps), EVOLUTION_READING]
    text = json.dumps(about, indent=2, ensure_ascii=False, default=str)
    fence = "`" * 3
    parts += ["## How it was made", f"{fence}json\n{text.replace(fence, '')}\n{fence}"]
    return "\n\n".join(parts) + "\n"


def _md(text: str) -> str:
    for special in "\\`*_[]<>|#":
        text = text.replace(special, "\\" + special)
    return " ".join(text.split())


def _md_table(head: Sequence[str], rows: Rows) -> str:
    rule = ["---", *["---:"] * (len(head) - 1)]
    body = [[_md(text) for text in row] for row in [list(head), *rows]]
    return "\n".join(f"| {' | '.join(row)} |" for row in [body[0], rule, *body[1:]])


def _md_paper(table: Table) -> str:
    with_paper = _has_published(table)
    head = ["disturbance", *(column.label for column in table.columns)]
    lines = [f"| {' | '.join(map(_md, head))} |", "| --- " * len(head) + "|"]
    for disturbance in table.disturbances:
        row = [_md(disturbance_name(disturbance))]
        for column in table.columns:
            cell = table.cells.get((disturbance, column))
            text = _md_spread(*ours(cell)) if cell else NOTHING
            if cell and with_paper:
                paper = _md_spread(*papers(cell.published)) if cell.published else NOTHING
                text += f"<br>paper: {paper}"
                text += "".join(f"<br>*{words}*" for words in differs(cell))
            row.append(text)
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines)


def _md_spread(text: str, bold: bool, sign: str) -> str:
    return " ".join(filter(None, [f"**{text}**" if bold else text, sign]))


def _has_published(table: Table) -> bool:
    return any(cell.published for cell in table.cells.values())


# --- LaTeX -------------------------------------------------------------------------------------

_TEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "±": r"$\pm$",
    NOTHING: "--",
    MINUS: "$-$",
    **{special: "\\" + special for special in "&%$#_{}"},
}


def latex_table(table: Table) -> str:
    """A table in the paper's form, each row above the published one; needs booktabs."""
    columns = table.columns
    lines = [
        r"\begin{tabular}{l" + "l" * len(columns) + "}",
        r"\toprule",
        r"\textbf{Disturbance} & \multicolumn{" + str(len(columns)) + r"}{l}{\textbf{Learner}} \\",
        r"\midrule",
        " & ".join(["", *(_tex(column.label) for column in columns)]) + r" \\",
        r"\midrule",
    ]
    for disturbance in table.disturbances:
        cells = [table.cells.get((disturbance, column)) for column in columns]
        row = [_tex(disturbance_name(disturbance))]
        row += [_tex_spread(*ours(cell)) if cell else "--" for cell in cells]
        lines.append(" & ".join(row) + r" \\")
        if any(cell and cell.published for cell in cells):
            row = [r"\quad\textit{published}"]
            row += [_tex_spread(*papers(c.published)) if c and c.published else "--" for c in cells]
            lines.append(" & ".join(row) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    return "\n".join([_tex_comment(table, reading(table)), *lines]) + "\n"


def latex_details(table: Table) -> str:
    """Intervals, effect sizes and corrected p of a table; needs booktabs."""
    body = [" & ".join(map(_tex, row)) + r" \\" for row in details(table)]
    lines = [
        r"\begin{tabular}{llrlrlrrr}",
        r"\toprule",
        " & ".join(map(_tex, DETAILS)) + r" \\",
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}",
    ]
    words = DETAILS_READING.format(reference=reference_label(table))
    return "\n".join([_tex_comment(table, words), *lines]) + "\n"


def _tex_comment(table: Table, words: str) -> str:
    return "% " + " ".join(f"{table.title}. {words}".split())


def _tex(text: str) -> str:
    return "".join(_TEX.get(letter, letter) for letter in " ".join(text.split()))


def _tex_spread(text: str, bold: bool, sign: str) -> str:
    inner = text.replace("±", r"\pm")
    inner = rf"\mathbf{{{inner}}}" if bold else inner
    return f"${inner}$ {sign}".rstrip()


# --- CSV ---------------------------------------------------------------------------------------


def csv_tables(summary: Summary) -> dict[str, pd.DataFrame]:
    """The results as tables, by the name of their file; equal results give equal tables."""
    found = {
        f"table-{table.name}": pd.DataFrame(
            [
                _csv_row(disturbance, column, table.cells[disturbance, column])
                for disturbance in table.disturbances
                for column in table.columns
                if (disturbance, column) in table.cells
            ]
        )
        for table in summary.tables
    }
    found["score"] = pd.DataFrame(
        [
            {"table": name, "what": what, **vars(tally)}
            for name, score in summary.scores.items()
            for what, tally in vars(score).items()
        ]
    )
    found["references"] = pd.DataFrame(
        [{"disturbance": name, **vars(line)} for name, line in summary.lines.items()],
        columns=["disturbance", "conditions", "before", "at_fault", "exhaustive"],
    )
    found["curves"] = pd.DataFrame(
        [
            {
                "table": development.table,
                "disturbance": development.disturbance,
                "learner": curve.column.learner,
                "variant": curve.column.variant,
                "seconds": seconds,
                "mean": mean,
                "sd": sd,
            }
            for development in summary.developments
            for curve in development.curves
            for seconds, mean, sd in zip(curve.seconds, curve.mean, curve.sd, strict=True)
        ]
    )
    found["conditions"] = summary.conditions
    return found


def _csv_row(disturbance: str, column: Column, cell: Cell) -> dict[str, Any]:
    test, paper = cell.comparison, cell.published
    low, high = cell.interval or (None, None)
    difference_low, difference_high = (test.interval if test else None) or (None, None)
    return {
        "disturbance": disturbance,
        "learner": column.learner,
        "variant": column.variant,
        "conditions": cell.conditions,
        "values": cell.values,
        "mean": cell.mean,
        "sd": cell.sd,
        "mean_low": low,
        "mean_high": high,
        "improvement_percent": cell.improvement,
        "z": test.z if test else None,
        "p": test.p if test else None,
        "p_holm": test.holm if test else None,
        "significant": _yes(test.significant if test else None),
        "sign": test.sign if test and test.significant else "",
        "a12": test.a12 if test else None,
        "difference": test.difference if test else None,
        "difference_low": difference_low,
        "difference_high": difference_high,
        "published_mean": paper.mean if paper else None,
        "published_sd": paper.sd if paper else None,
        "published_significant": _yes(paper.significant if paper else None),
        "published_sign": paper.sign if paper else "",
        "mean_agrees": _yes(cell.mean_agrees),
        "comparison_agrees": _yes(cell.comparison_agrees),
    }


def _yes(value: bool | None) -> str:
    return "" if value is None else "yes" if value else "no"
