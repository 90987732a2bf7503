"""Pictures of a recovery: its performance, and the cells that were tried.

Importing this module imports matplotlib; nothing is drawn on a screen.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator

from swarmbo.maps import plots
from swarmbo.maps.behaviour_map import GRID, BehaviourMap
from swarmbo.recovery.recovery import Recovery

_SWARM = "#21618c"
_BEFORE = "#2e7d32"
_FAULT = "#b03a2e"
_SEARCH = "#7d6608"
_GROUPS = ("#1f77b4", "#d35400", "#8e44ad", "#16a085", "#c0392b", "#7f8c8d")


def plot_curve(recovery: Recovery) -> Figure:
    """Best so far against evaluations, in items per robot, between lines of reference.

    Of a decentralised learner a thin line per robot, coloured by its group, and
    at the right the composed swarm.
    """
    with mpl.rc_context(plots.STYLE):
        figure = Figure(figsize=(7.2, 4.0), layout=ConstrainedLayoutEngine())
        axis = figure.subplots()
        _plot_tries(axis, recovery)
        count = len(recovery.evaluations)
        numbers = np.arange(1, count + 1)
        alone = "o" if count == 1 else ""
        several = len(recovery.evaluations[0].cell) > 1
        label = "best so far, mean over robots" if several else "best so far"
        axis.step(
            numbers,
            recovery.curve,
            "-" + alone,
            where="post",
            color=_SWARM,
            linewidth=2.2,
            label=label,
        )
        for value, colour, text in (
            (recovery.before, _BEFORE, "before the fault"),
            (recovery.at_fault, _FAULT, "at the fault"),
            (recovery.exhaustive, _SEARCH, "exhaustive search"),
        ):
            words = f"{text}: {value:.2f}"
            axis.axhline(value, color=colour, linewidth=1, linestyle="--", label=words)
        if recovery.composed is not None:
            words = f"composed swarm: {recovery.composed:.2f}"
            axis.plot(count, recovery.composed, "D", color=_SWARM, markersize=6, label=words)
        axis.set(
            xlabel="evaluations",
            ylabel="items per robot",
            xlim=(0.5, count + 0.5),
        )
        axis.set_ylim(bottom=0)
        axis.xaxis.set_major_locator(MaxNLocator(7, integer=True))
        axis.grid(axis="y", color="#ececec", linewidth=0.8)
        axis.set_axisbelow(True)
        axis.legend(fontsize=7, frameon=False, loc="center left", bbox_to_anchor=(1.01, 0.5))
        figure.suptitle(_headline(recovery), x=0.01, ha="left", fontsize=10, fontweight="bold")
        return figure


def _plot_tries(axis: Axes, recovery: Recovery) -> None:
    """What came out of every evaluation, and what each robot knew to be the best."""
    groups = recovery.case.groups
    colours = _group_colours(groups)
    whole = len(recovery.evaluations[0].cell) == 1
    numbers = np.arange(1, len(recovery.evaluations) + 1)
    seen: set[str | None] = set()
    for robot in range(len(recovery.evaluations[0].cell)):
        if not whole and groups[robot] is None:
            continue
        colour = "#9a9a9a" if whole else colours[groups[robot]]
        outcome: Any = [each.outcome[robot] for each in recovery.evaluations]
        label = None
        if whole:
            label = "tried"
        elif groups[robot] not in seen:
            label = f"robots, {groups[robot]}"
            seen.add(groups[robot])
        axis.plot(numbers, outcome, ".", color=colour, markersize=4, alpha=0.55, label=label)
        if not whole:
            best: Any = [each.best[robot] for each in recovery.evaluations]
            axis.step(numbers, best, where="post", color=colour, linewidth=0.7, alpha=0.6)


def plot_tried(recovery: Recovery) -> Figure:
    """The map as it was before the fault, and on it the cells that were tried, in their order.

    A row of pictures per group of robots. Numbers are those of the evaluation in
    which a cell was first tried; the best of the group has a ring.
    """
    rows = _tried_rows(recovery)
    behaviour_map = recovery.behaviour_map
    with mpl.rc_context(plots.STYLE):
        figure = Figure(
            figsize=(9.6, 3.4 * len(rows) + 0.4),
            layout=ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.06),
        )
        figure.suptitle(_headline(recovery), x=0.01, ha="left", fontsize=10, fontweight="bold")
        parts = figure.subfigures(len(rows), 1, squeeze=False)[:, 0]
        for part, (label, order, best) in zip(parts, rows, strict=True):
            if plots.is_grid([behaviour_map]):
                _plot_grid(part, behaviour_map, order, best)
            else:
                _plot_cloud(part, behaviour_map, order, best)
            part.suptitle(label, x=0.01, ha="left", fontsize=9)
        return figure


def _tried_rows(recovery: Recovery) -> list[tuple[str, dict[int, int], list[int]]]:
    """Per group of robots a label, the tried rows with their evaluations, and the best rows."""
    whole = len(recovery.evaluations[0].cell) == 1
    groups: Sequence[str | None] = ("all robots alike",) if whole else recovery.case.groups
    labels = [label for label in dict.fromkeys(groups) if label is not None]
    if len(labels) > len(_GROUPS):
        labels, groups = ["all robots"], ["all robots"] * len(groups)
    found = []
    for label in labels:
        members = [robot for robot, group in enumerate(groups) if group == label]
        order: dict[int, int] = {}
        for number, each in enumerate(recovery.evaluations, 1):
            for robot in members:
                row = each.cell[robot]
                if row is not None:
                    order.setdefault(row, number)
        names = ", ".join(map(str, members))
        words = label if whole else f"{label}: robot{'s' * (len(members) > 1)} {names}"
        best = sorted({recovery.team[robot] for robot in members})
        by = ", ".join(str(order[row]) for row in best if row in order)
        ring = f"ring: the best found, by evaluation {by}" if by else "ring: the best"
        tried = f"{len(order)} cells tried (a square shows its first)"
        found.append((f"{words}; {tried}, {ring}", order, best))
    return found


def _plot_grid(
    part: SubFigure, behaviour_map: BehaviourMap, order: dict[int, int], best: list[int]
) -> None:
    sizes = behaviour_map.cells.max(axis=0) + 1
    if behaviour_map.descriptor_name == "hbd":
        sizes = np.full(len(sizes), GRID)
    plots.plot_projections(part, behaviour_map, sizes, plots.colour_scale([behaviour_map]))
    pairs = plots.projections(len(sizes))
    for axis, pair in zip(part.axes, pairs, strict=False):
        places = behaviour_map.cells[:, pair] / GRID
        _mark(axis, places, order, best)
        low, high = places.min(axis=0) - 1 / GRID, places.max(axis=0) + 1 / GRID
        axis.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="auto")


def _plot_cloud(
    part: SubFigure, behaviour_map: BehaviourMap, order: dict[int, int], best: list[int]
) -> None:
    axis = part.subplots()
    places = plots.plot_components(axis, behaviour_map, plots.colour_scale([behaviour_map]))
    plots.colour_bar(part, axis.collections[0], [axis])
    _mark(axis, places, order, best)


def _mark(axis: Axes, places: np.ndarray, order: dict[int, int], best: list[int]) -> None:
    """Number the tried rows; of several at one place the first."""
    first: dict[tuple[float, float], int] = {}
    for row, number in order.items():
        across, up = places[row].tolist()
        first.setdefault((across, up), number)
    spots, rings = np.array(list(first)), places[best]
    axis.scatter(spots[:, 0], spots[:, 1], s=62, color="white", alpha=0.85, linewidths=0, zorder=3)
    ring: Any = {"facecolors": "none", "edgecolors": _FAULT, "linewidths": 1.6}
    axis.scatter(rings[:, 0], rings[:, 1], s=100, zorder=4, **ring)
    for place, number in first.items():
        axis.annotate(str(number), place, ha="center", va="center_baseline", fontsize=5.5, zorder=5)


def _group_colours(groups: Sequence[str | None]) -> dict[str | None, str]:
    labels = [label for label in dict.fromkeys(groups) if label is not None]
    return {label: _GROUPS[number % len(_GROUPS)] for number, label in enumerate(labels)}


def _headline(recovery: Recovery) -> str:
    names = [Path(name).name for name in (recovery.map_name, recovery.disturbance_name)]
    words = f"{recovery.learner} on {names[0]}, {names[1]}"
    return words.encode(errors="replace").decode()  # names of odd files
