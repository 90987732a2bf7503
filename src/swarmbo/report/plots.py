"""Pictures of a study: how the learners develop, and how the maps evolved.

Importing this module imports matplotlib; nothing is drawn on a screen.
"""

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator

from swarmbo.maps import plots
from swarmbo.maps.behaviour_map import BehaviourMap
from swarmbo.report.summary import Curve, Development, disturbance_name

INK = "#2b2b2b"
GRID = "#ececec"
# Told apart by the colour-blind, on white and on black; markers tell them apart in grey.
_COLOURS = ("#2a78b5", "#d9731a", "#2f9e6e", "#b8569b", "#8a7400", "#6a6fd1", "#a34a3a", "#5f8a9a")
_MARKERS = "os^Dvp*X"
_KINDS = {"1": "centralised", "2a": "decentralised, during adaptation"}


def plot_development(development: Development) -> Figure:
    """Mean best-so-far of every learner against time, between two lines of reference.

    In items per robot. The bands are one standard deviation over the conditions
    to either side.
    """
    with mpl.rc_context(plots.STYLE):
        figure = Figure(figsize=(5.6, 4.1), layout=ConstrainedLayoutEngine())
        axis = figure.subplots()
        for number, curve in enumerate(development.curves):
            _plot_curve(axis, curve, number)
        _plot_lines(axis, development)
        longest = max(curve.seconds[-1] for curve in development.curves)
        axis.set(xlabel="time, s", ylabel="best so far, items per robot", xlim=(0, longest * 1.01))
        axis.set_ylim(bottom=0)
        axis.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 1.2, 2, 3, 6, 10]))
        axis.xaxis.set_major_formatter("{x:,.0f}")
        axis.grid(axis="y", color=GRID, linewidth=0.8)
        axis.set_axisbelow(True)
        figure.legend(
            loc="outside lower center",
            ncols=min(3, (len(development.curves) + 3) // 2),  # curves and lines in two rows
            frameon=False,
            fontsize=7.5,
            handlelength=2.6,
        )
        figure.suptitle(_heading(development), x=0.01, ha="left", fontsize=9.5, fontweight="bold")
        return figure


def _plot_curve(axis: Axes, curve: Curve, number: int) -> None:
    colour = _COLOURS[number % len(_COLOURS)]
    band: Any = {"color": colour, "alpha": 0.11, "linewidth": 0}
    axis.fill_between(
        curve.seconds, np.maximum(curve.mean - curve.sd, 0), curve.mean + curve.sd, **band
    )
    axis.plot(
        curve.seconds,
        curve.mean,
        color=colour,
        marker=_MARKERS[number % len(_MARKERS)],
        markevery=(number % 5 if len(curve.mean) > 10 else 0, 5 if len(curve.mean) > 10 else 1),
        markersize=4,
        linewidth=2.2 if number == 0 else 1.6,
        zorder=4 - 0.01 * number,
        label=_printable(curve.column.label),
    )


def _plot_lines(axis: Axes, development: Development) -> None:
    lines = development.lines
    if lines is None:
        return
    axis.axhline(
        lines.at_fault,
        color=INK,
        linewidth=1,
        linestyle=":",
        label=f"fault injection: {lines.at_fault:.2f}",
    )
    axis.axhline(
        lines.exhaustive,
        color=INK,
        linewidth=1,
        linestyle=(0, (6, 2)),
        label=f"exhaustive search: {lines.exhaustive:.2f}",
    )


def _heading(development: Development) -> str:
    count = development.conditions
    return _printable(
        f"{disturbance_name(development.disturbance)}, {_KINDS[development.table]}"
        f" ({count} condition{'s' * (count > 1)})"
    )


def _printable(text: str) -> str:
    return text.encode(errors="replace").decode()  # names of odd files


def plot_evolution(maps: Sequence[BehaviourMap]) -> Figure | None:
    """Best, mean and filled cells against generations, a row per kind of map.

    Mean and standard deviation over the maps; None when no map has a log.
    """
    kinds: dict[str, list[BehaviourMap]] = {}
    for each in maps:
        if len(each.log):
            kinds.setdefault(each.descriptor_name, []).append(each)
    if not kinds:
        return None
    with mpl.rc_context(plots.STYLE):
        figure = Figure(
            figsize=(9.6, 2.4 * len(kinds)), layout=ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.06)
        )
        parts = figure.subfigures(len(kinds), 1, squeeze=False)[:, 0]
        for part, (kind, own) in zip(parts, sorted(kinds.items()), strict=True):
            shown = plots.plot_course(part, own)
            part.suptitle(f"{kind.upper()}: {shown}", x=0.01, ha="left", fontsize=9)
        return figure
