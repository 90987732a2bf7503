"""Pictures of maps: where the good behaviours are, and how evolution found them.

Importing this module imports matplotlib; nothing is drawn on a screen.
"""

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure, SubFigure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import EngFormatter, MaxNLocator, NullFormatter

from swarmbo.errors import InputError, cut
from swarmbo.files import whole_file
from swarmbo.maps.behaviour_map import GRID, BehaviourMap

PICTURES = ("png", "svg", "pdf")  # that can be written, by the end of a file's name

HBD_NAMES = (
    "uniformity of visits, 1 = even",
    "distance to centre / half diagonal",
    "coverage, share of squares",
)
SDBC_NAMES = (
    "speed forwards",
    "turn rate",
    "distance to walls",
    "distance to robots",
    "distance to nearest robot",
)

_COLOURS = mpl.colormaps["viridis"]  # perceptual, and safe for the colour-blind
_EMPTY = "#ececec"
_INK = "#2b2b2b"
_LINE = "#21618c"
_WIDTH = 9.6  # inches
_GREY = "Each picture shows the best over the dimension that it leaves out; grey cells are empty"
_MAX_SIDE = 256  # of a heat map, in cells
_LEVELS = 8  # of a map, side by side
STYLE: Any = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "axes.edgecolor": "#9a9a9a",
    "axes.linewidth": 0.6,
    "axes.labelcolor": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.color": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "text.parse_math": False,  # a dollar in a name is a dollar
    "svg.hashsalt": "swarmbo",
    "figure.dpi": 160,
}


def plot_maps(maps: Sequence[BehaviourMap], names: Sequence[str] | None = None) -> Figure:
    """Maps of one descriptor as pictures, in items per robot, and the course of their evolution.

    A grid of three dimensions is shown as three heat maps, each the best over
    one dimension, and a single map also level by level; a map in more
    dimensions by its principal components and along each feature. The course
    is that of the map or, of several, their mean and standard deviation; maps that
    differ in length are drawn one by one.
    """
    if not maps:
        raise InputError("there are no maps to plot; give at least one")
    kinds = {(each.descriptor_name, each.cells.shape[1]) for each in maps}
    if len(kinds) > 1:
        found = ", ".join(sorted({name for name, _ in kinds}))
        raise InputError(
            f"the maps are of different descriptors ({found}); plot those of each by themselves"
        )
    if names is None:
        names = [f"map {number}" for number in range(len(maps))]
    names = [name.encode(errors="replace").decode() for name in names]  # names of odd files
    with mpl.rc_context(STYLE):
        return _plot_grids(maps, names) if is_grid(maps) else _plot_features(maps, names)


def save_figure(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure as PNG, SVG or PDF, by the end of the name; equal figures give equal files."""
    kind = picture_kind(path)
    dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    with whole_file(path) as temporary, mpl.rc_context(STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # a name that the font cannot show
        figure.savefig(temporary, format=kind, metadata=dates.get(kind))


def picture_kind(path: str | os.PathLike[str]) -> str:
    """The kind of picture that a file's name asks for; InputError when it is not known."""
    kind = Path(path).suffix.lower().removeprefix(".")
    if kind not in PICTURES:
        raise InputError(
            f"{cut(path)}: is not the name of a picture; let it end in .{', .'.join(PICTURES)}"
        )
    return kind


# Maps in a grid.


def is_grid(maps: Sequence[BehaviourMap]) -> bool:
    """Whether heat maps can show them."""
    return maps[0].cells.shape[1] in (2, 3) and all(
        each.centroids is None and each.cells.max() < _MAX_SIDE for each in maps
    )


def _plot_grids(maps: Sequence[BehaviourMap], names: Sequence[str]) -> Figure:
    first = maps[0]
    sizes = np.max([each.cells.max(axis=0) + 1 for each in maps], axis=0)
    if first.descriptor_name == "hbd":
        sizes = np.full(len(sizes), GRID)
    norm = colour_scale(maps)
    levels = np.unique(first.cells[:, 2]).tolist() if len(maps) == 1 and len(sizes) == 3 else []
    levels = levels if len(levels) <= GRID else []
    level_rows = -(-len(levels) // _LEVELS)
    heights = [3.2 if len(maps) == 1 else 2.9] * len(maps)
    if levels:
        heights.append(1.55 * level_rows + 0.7)
    figure, parts = _figure(maps, names, heights)
    for part, each, name in zip(parts, maps, names, strict=False):
        plot_projections(part, each, sizes, norm)
        _heading(part, _summary(each, name) if len(maps) > 1 else _GREY)
    if levels:
        _plot_levels(parts[1], first, levels, sizes, norm)
    return figure


def projections(dimensions: int) -> list[tuple[int, int]]:
    """The pairs of dimensions, across and up, that the heat maps of a grid show."""
    return [(0, 1), (2, 1), (2, 0)] if dimensions == 3 else [(0, 1)]


def plot_projections(
    part: SubFigure, behaviour_map: BehaviourMap, sizes: np.ndarray, norm: Normalize
) -> None:
    """The map as seen along each of its dimensions."""
    labels = _axis_names(behaviour_map)
    pairs = projections(len(sizes))
    axes = part.subplots(1, len(pairs), squeeze=False)[0]
    for axis, pair in zip(axes, pairs, strict=True):
        picture = _heat(axis, behaviour_map, pair, sizes, norm)
        axis.set(xlabel=labels[pair[0]], ylabel=labels[pair[1]])
    colour_bar(part, picture, axes)


def _plot_levels(
    part: SubFigure,
    behaviour_map: BehaviourMap,
    levels: Sequence[int],
    sizes: np.ndarray,
    norm: Normalize,
) -> None:
    """The map level by level along its third dimension, as close as its cells allow."""
    labels = _axis_names(behaviour_map)
    rows = -(-len(levels) // _LEVELS)
    columns = max(-(-len(levels) // rows), 4)
    axes = part.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    for axis in axes.flat[len(levels) :]:
        axis.set_axis_off()
    for axis, level in zip(axes.flat, levels, strict=False):
        _heat(axis, behaviour_map, (0, 1), sizes, norm, behaviour_map.cells[:, 2] == level)
        axis.set_title(f"{_short(labels[2])} {level / GRID:.2f}", fontsize=7.5)
    for axis in axes.flat[max(0, len(levels) - columns) : len(levels)]:
        axis.tick_params(labelbottom=True)  # the lowest of its column
    low = (behaviour_map.cells.min(axis=0) - 1) / GRID
    high = (behaviour_map.cells.max(axis=0) + 1) / GRID
    axes[0, 0].set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    part.supxlabel(labels[0], fontsize=8)
    part.supylabel(labels[1], fontsize=8)
    _heading(part, f"The same, one level of {_short(labels[2])} at a time")


def _heat(
    axis: Axes,
    behaviour_map: BehaviourMap,
    pair: tuple[int, int],
    sizes: np.ndarray,
    norm: Normalize,
    chosen: np.ndarray | slice = slice(None),
) -> Any:
    """The best performance over all dimensions but two, as a picture."""
    across, up = pair
    best = np.full((sizes[up], sizes[across]), -np.inf)
    cells = behaviour_map.cells[chosen]
    items = behaviour_map.performance[chosen] / behaviour_map.robots
    np.maximum.at(best, (cells[:, up], cells[:, across]), items)
    axis.set_facecolor(_EMPTY)
    if sizes[up] == sizes[across]:
        axis.set_aspect("equal")
    for spine in axis.spines.values():
        spine.set_visible(False)
    return axis.pcolormesh(
        (np.arange(sizes[across] + 1) - 0.5) / GRID,
        (np.arange(sizes[up] + 1) - 0.5) / GRID,
        np.ma.masked_invalid(best),
        cmap=_COLOURS,
        norm=norm,
        edgecolors=_EMPTY,
        linewidth=0.4,
    )


# Maps around centroids, and grids of other dimensions.


def _plot_features(maps: Sequence[BehaviourMap], names: Sequence[str]) -> Figure:
    norm = colour_scale(maps)
    features = maps[0].descriptor.shape[1]
    figure, parts = _figure(maps, names, [max(3.3, 0.27 * features + 0.7)] * len(maps))
    for part, each, name in zip(parts, maps, names, strict=False):
        axes = part.subplots(1, 3, width_ratios=(1, 1, 1.1))
        plot_components(axes[0], each, norm)
        _plot_ranking(axes[1], each, norm)
        picture = _plot_marginals(axes[2], each, norm)
        colour_bar(part, picture, axes)
        if len(maps) > 1:
            _heading(part, _summary(each, name))
    return figure


def plot_components(axis: Axes, behaviour_map: BehaviourMap, norm: Normalize) -> np.ndarray:
    """Behaviours along the two directions in which they differ most; returns their places."""
    centred = behaviour_map.descriptor - behaviour_map.descriptor.mean(axis=0)
    if centred.shape[1] == 1 or len(centred) < 3:
        places = np.column_stack([centred[:, 0], np.zeros(len(centred))])
        shares = np.array([1.0, 0.0])
    else:
        left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
        signs = np.sign(left[np.abs(left).argmax(axis=0), range(len(sizes))])
        places = (left * sizes * signs)[:, :2]
        shares = sizes**2 / max((sizes**2).sum(), 1e-300)
    order = np.argsort(behaviour_map.performance, kind="stable")
    items = behaviour_map.performance / behaviour_map.robots
    across, up = places[order].T
    axis.scatter(across, up, c=items[order], cmap=_COLOURS, norm=norm, s=14, linewidths=0)
    axis.set_title("behaviours, by principal components")
    axis.set(
        xlabel=f"first component ({shares[0]:.0%} of variance)",
        ylabel=f"second component ({shares[1]:.0%})",
    )
    return places


def _plot_ranking(axis: Axes, behaviour_map: BehaviourMap, norm: Normalize) -> None:
    """Performance of all cells, best first."""
    items = np.sort(behaviour_map.performance / behaviour_map.robots)[::-1]
    left, right = np.arange(len(items)) + 0.5, np.arange(len(items)) + 1.5
    foot = np.zeros(len(items))
    corners = [(left, foot), (left, items), (right, items), (right, foot)]
    bars = np.stack([np.stack(corner, axis=1) for corner in corners], axis=1)
    axis.add_collection(PolyCollection(list(bars), facecolors=_COLOURS(norm(items)), linewidths=0))
    axis.axhline(behaviour_map.mean, color=_INK, linewidth=0.8, linestyle="--")
    axis.annotate(
        f"mean {behaviour_map.mean:.2f}",
        (len(items) + 0.5, behaviour_map.mean),
        ha="right",
        va="bottom",
        fontsize=7,
    )
    axis.set_title("cells, best first")
    axis.set(xlabel="rank", ylabel="items per robot", xlim=(0.5, len(items) + 0.5))
    axis.set_ylim(min(0, items[-1]), 1.05 * items[0] if items[0] > 0 else 0.05)


def _plot_marginals(axis: Axes, behaviour_map: BehaviourMap, norm: Normalize) -> Any:
    """Every feature of the behaviours, a strip each; better ones drawn on top and higher."""
    items = behaviour_map.performance / behaviour_map.robots
    order = np.argsort(items, kind="stable")
    features = behaviour_map.descriptor.shape[1]
    rise = 0.7 * norm(items[order]) - 0.35
    for feature in range(features):
        picture = axis.scatter(
            behaviour_map.descriptor[order, feature],
            features - 1 - feature + rise,
            c=items[order],
            cmap=_COLOURS,
            norm=norm,
            s=5,
            linewidths=0,
        )
    axis.set_yticks(range(features), list(_axis_names(behaviour_map))[::-1])
    for border in range(features - 1):
        axis.axhline(border + 0.5, color=_EMPTY, linewidth=0.8)
    axis.tick_params(axis="y", length=0)
    axis.set_title("behaviours, feature by feature")
    sdbc = behaviour_map.descriptor_name == "sdbc"
    axis.set(
        xlabel="feature, normalised to 0 to 1" if sdbc else "coordinate",
        ylim=(-0.5, features - 0.5),
    )
    return picture


# What all have in common.


def plot_course(
    part: SubFigure, maps: Sequence[BehaviourMap], names: Sequence[str] | None = None
) -> str:
    """Best, mean and filled cells against generations; mean and deviation of several maps.

    Maps of different length or size of a generation are drawn one by one, against
    evaluations. Returns in words what is shown.
    """
    alike = len({(each.log.generation[-1], each.log.evaluations[-1]) for each in maps}) == 1
    axes = part.subplots(1, 3)
    for axis, (column, label) in zip(
        axes,
        (
            ("best", "best, items per robot"),
            ("mean", "mean over cells, items per robot"),
            ("filled_cells", "filled cells"),
        ),
        strict=True,
    ):
        if alike:
            _plot_mean_course(axis, maps, column)
        else:
            _plot_courses(axis, maps, column, names)
        axis.set_title(label, loc="left")
        axis.grid(axis="y", color=_EMPTY, linewidth=0.8)
        axis.set_axisbelow(True)
    if alike:
        return f"mean ± standard deviation of {len(maps)} maps" if len(maps) > 1 else "one map"
    if names is not None:
        axes[0].legend(fontsize=7, frameon=False)
    return f"{len(maps)} maps of different length or size of a generation, each by itself"


def _plot_mean_course(axis: Axes, maps: Sequence[BehaviourMap], column: str) -> None:
    """Mean and deviation of what the logs say by each generation, from where all have begun."""
    logs = [each.log for each in maps]
    generation = np.unique(np.concatenate([log.generation for log in logs]))
    generation = generation[generation >= max(log.generation[0] for log in logs)]
    rows = [np.searchsorted(log.generation, generation, side="right") - 1 for log in logs]
    course = np.array([getattr(log, column)[row] for log, row in zip(logs, rows, strict=True)])
    centre, spread = course.mean(axis=0), course.std(axis=0)
    if len(maps) > 1:
        band = (centre - spread, centre + spread)
        axis.fill_between(generation, *band, color=_LINE, alpha=0.22, linewidth=0)
    axis.plot(
        generation, centre, color=_LINE, linewidth=1.4, marker=_marker(generation), clip_on=False
    )
    axis.set(xlabel="generation", xlim=(0, max(generation[-1], 1)))
    axis.set_ylim(bottom=min(0, (centre - spread).min()))
    axis.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axis.xaxis.set_major_formatter("{x:,.0f}")


def _plot_courses(
    axis: Axes, maps: Sequence[BehaviourMap], column: str, names: Sequence[str] | None
) -> None:
    """What each log says, against evaluations."""
    courses = [getattr(each.log, column) for each in maps]
    for number, (each, course) in enumerate(zip(maps, courses, strict=True)):
        axis.plot(
            each.log.evaluations,
            course,
            color=_COLOURS(0.9 * number / (len(maps) - 1)),
            linewidth=1.4,
            marker=_marker(course),
            label=None if names is None else names[number],
        )
    axis.set(xlabel="evaluations", xscale="log")
    axis.xaxis.set_major_formatter(EngFormatter(sep=""))  # 10k, 1M
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.set_ylim(bottom=min(0, *(course.min() for course in courses)))


def _marker(points: np.ndarray) -> str:
    return "o" if len(points) == 1 else ""  # a line of one point is not seen


def _figure(
    maps: Sequence[BehaviourMap], names: Sequence[str], heights: Sequence[float]
) -> tuple[Figure, list[SubFigure]]:
    """A figure in parts of these heights (inches), and below them the course of evolution."""
    course = all(len(each.log) > 0 for each in maps)
    heights = [*heights, *[2.2] * course]
    figure = Figure(
        figsize=(_WIDTH, sum(heights) + 0.4), layout=ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.06)
    )
    figure.suptitle(_headline(maps, names), x=0.01, ha="left", fontsize=11, fontweight="bold")
    parts = figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    if course:
        shown = plot_course(parts[-1], maps, names)
        _heading(parts[-1], "The course of evolution" + (f": {shown}" if len(maps) > 1 else ""))
    return figure, list(parts)


def colour_scale(maps: Sequence[BehaviourMap]) -> Normalize:
    """One scale of colours for all maps, in items per robot."""
    lowest = min(each.performance.min() / each.robots for each in maps)
    highest = max(each.best for each in maps)
    low = min(0.0, lowest)
    return Normalize(low, highest if highest > low else low + 1)


def _heading(part: SubFigure, text: str) -> None:
    part.suptitle(text, x=0.01, ha="left", fontsize=9)


def colour_bar(part: SubFigure, picture: Any, axes: Any) -> None:
    """The scale of colours, beside the axes."""
    bar = part.colorbar(picture, ax=list(axes), label="items per robot", shrink=0.9, pad=0.01)
    bar.outline.set_visible(False)


def _axis_names(behaviour_map: BehaviourMap) -> Sequence[str]:
    match behaviour_map.descriptor_name:
        case "hbd":
            return HBD_NAMES
        case "sdbc":
            return [f"{name}, {kind}" for kind in ("mean", "deviation") for name in SDBC_NAMES]
        case _:
            return [f"dimension {number}" for number in range(behaviour_map.descriptor.shape[1])]


def _short(label: str) -> str:
    """An axis's name without its unit."""
    return label.partition(",")[0].partition(" /")[0]


def _summary(behaviour_map: BehaviourMap, name: str) -> str:
    return (
        f"{name}: {behaviour_map.filled_cells} cells, best {behaviour_map.best:.2f}, "
        f"mean {behaviour_map.mean:.2f} items per robot"
    )


def _headline(maps: Sequence[BehaviourMap], names: Sequence[str]) -> str:
    if len(maps) == 1:
        return _summary(maps[0], names[0])

    def spread(values: Sequence[float], digits: int) -> str:
        return f"{np.mean(values):.{digits}f} ± {np.std(values):.{digits}f}"

    return (
        f"{len(maps)} maps: {spread([each.filled_cells for each in maps], 0)} cells, "
        f"best {spread([each.best for each in maps], 2)}, "
        f"mean {spread([each.mean for each in maps], 2)} items per robot"
    )
