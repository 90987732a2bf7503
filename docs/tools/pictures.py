"""Draw the pictures of docs/: the robot, its arena, a map, and what a learner thinks.

python docs/tools/pictures.py [FOLDER]

What looks like a measurement is one: swarms run in the simulator, and models are those of the
learners. Equal versions give equal files.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch, Polygon, Rectangle

from swarmbo import THYMIO, Arena, BehaviourMap, Controller, Scenario, Swarm, load_map
from swarmbo.adaptation.acquisition import lipschitz, log_penalty, upper_confidence_bound
from swarmbo.adaptation.cells import cells_of
from swarmbo.adaptation.gaussian_process import LENGTH_SCALE, GaussianProcess, Posterior
from swarmbo.maps import plots
from swarmbo.recovery.runner import Case
from swarmbo.world.geometry import body_at

FOLDER = Path(__file__).parent.parent / "images"
MAP, FAULT = "paper-1", "proximity:12"  # those of docs/first-recovery.md
TICKS = 600  # of the trials that are drawn
EVERY = 3  # ticks between the points of a path

# The colours of Okabe and Ito, which colour-blind people can tell apart.
ROBOTS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
BLUE, ORANGE, GREEN = ROBOTS[0], ROBOTS[5], ROBOTS[2]
INK, GREY, FLOOR, FOOD, BROKEN = "#2b2b2b", "#8a8a8a", "#ededed", "#6f6f6f", "#c62828"
STYLE: Any = plots.STYLE | {"font.size": 9, "axes.titlesize": 9.5, "path.simplify_threshold": 0.5}


def main(folder: Path) -> None:
    """Write all pictures into a folder."""
    pictures = {
        "idea": idea,
        "robot": robot,
        "fault": fault,
        "behaviours": behaviours,
        "model": model,
        "penalty": penalty,
    }
    for name, draw in pictures.items():
        with mpl.rc_context(STYLE):
            plots.save_figure(draw(), folder / f"{name}.svg")


# --- the idea ----------------------------------------------------------------------------------


def idea() -> Figure:
    """A map is made once; it is what the swarm knows when something breaks."""
    figure = Figure(figsize=(8.4, 2.7))
    axis = figure.add_axes((0, 0, 1, 1))
    axis.set(xlim=(0, 8.4), ylim=(0, 2.7))
    axis.set_axis_off()
    axis.text(0.15, 2.42, "Once, in simulation", fontsize=10, fontweight="bold", color=BLUE)
    axis.text(4.4, 2.42, "When something breaks", fontsize=10, fontweight="bold", color=ORANGE)
    box(axis, (0.15, 1.0), "evolve", "millions of controllers,\nmutated and scored", BLUE)
    box(axis, (2.2, 1.0), "map", "the best controller of\neach kind of behaviour", BLUE)
    box(axis, (4.4, 1.0), "choose", "the controller that the\nmodel expects most of", ORANGE)
    box(axis, (6.6, 1.0), "forage", "two minutes with it,\nand count the items", ORANGE)
    arrow(axis, (1.75, 1.5), (2.2, 1.5))
    arrow(axis, (3.8, 1.5), (4.4, 1.5))
    arrow(axis, (6.0, 1.5), (6.6, 1.5))
    arrow(axis, (7.4, 1.0), (5.2, 1.0), bend=-0.42)
    axis.text(6.3, 0.22, "the result corrects the model; 30 times", ha="center", color=INK)
    axis.text(4.1, 1.62, "prior", ha="center", va="bottom", color=GREY, fontsize=8)
    return figure


def box(axis: Axes, corner: tuple[float, float], title: str, text: str, colour: str) -> None:
    """A rounded box of 1.6 x 1 with a title and a line or two of text."""
    x, y = corner
    style: Any = {"boxstyle": "round,pad=0,rounding_size=0.08", "linewidth": 1.2}
    axis.add_patch(FancyBboxPatch(corner, 1.6, 1, edgecolor=colour, facecolor="white", **style))
    axis.text(x + 0.8, y + 0.72, title, ha="center", va="center", fontsize=11, fontweight="bold")
    axis.text(x + 0.8, y + 0.32, text, ha="center", va="center", fontsize=8, color=INK)


def arrow(
    axis: Axes, start: tuple[float, float], end: tuple[float, float], bend: float = 0.0
) -> None:
    """An arrow between two points."""
    axis.add_patch(
        FancyArrowPatch(
            start,
            end,
            connectionstyle=f"arc3,rad={bend}",
            arrowstyle="-|>",
            mutation_scale=12,
            color=INK,
            linewidth=1.2,
            shrinkA=3,
            shrinkB=3,
        )
    )


# --- the robot and its arena -------------------------------------------------------------------


def robot() -> Figure:
    """The robot's body, wheels and sensors, with the numbers of its network's neurons."""
    figure = Figure(figsize=(8.4, 3.7), layout="constrained")
    left, right = figure.subplots(1, 2)
    turned = [(-y * 100, x * 100) for x, y in THYMIO.body]  # cm, ahead is up
    left.add_patch(Polygon(turned, facecolor="#dbe9f4", edgecolor=INK, linewidth=1.2))
    for output, side in ((10, -1), (11, 1)):
        x = side * THYMIO.wheel_base * 50
        left.add_patch(Rectangle((x - 0.8, -1.7), 1.6, 3.4, facecolor=INK))
        left.text(x, 0, str(output), color="white", fontsize=7, ha="center", va="center")
    for number, sensor in enumerate(THYMIO.proximity_sensors):
        reach = THYMIO.proximity_range * 100
        x, y = -sensor.y * 100, sensor.x * 100
        across, up = -np.sin(sensor.angle) * reach, np.cos(sensor.angle) * reach
        colour = ORANGE if number < THYMIO.front_sensors else BLUE
        left.plot([x, x + across], [y, y + up], color=colour, linewidth=1.4)
        left.plot(x, y, "o", color=colour, markersize=3)
        place = (x + 1.09 * across, y + 1.09 * up)
        left.text(*place, str(number), ha="center", va="center", color=colour, fontsize=9)
    for number, sensor in enumerate(THYMIO.ground_sensors, 7):
        x, y = -sensor.y * 100, sensor.x * 100
        left.plot(x, y * 0.8, "s", color=GREEN, markersize=7)
        left.text(x + 0.8, y * 0.8, str(number), color=GREEN, va="center", fontsize=9)
    left.annotate(
        "", (0, 3.0), (0, 0), arrowprops={"arrowstyle": "-|>", "color": INK, "linewidth": 1}
    )
    left.plot([8, 13], [-15, -15], color=INK, linewidth=1.5)
    left.text(10.5, -14.2, "5 cm", ha="center", fontsize=8)
    left.set(xlim=(-14, 14), ylim=(-18, 18.5), aspect="equal")
    left.set_axis_off()
    left.set_title("The robot, seen from above")
    _response(right)
    return figure


def _response(axis: Axes) -> None:
    """What a proximity sensor reads against the distance of what is before it."""
    reach = THYMIO.proximity_range * 100
    distance = np.linspace(0, reach, 200)
    linear, square = THYMIO.proximity_response
    value = 1 + linear * distance + square * distance**2
    noise = THYMIO.proximity_noise
    low, high = np.clip(value - noise, 0, 1), np.clip(value + noise, 0, 1)
    axis.fill_between(distance, low, high, color=ORANGE, alpha=0.25, linewidth=0, label="noise")
    axis.plot(distance, np.clip(value, 0, 1), color=ORANGE, label="a sensor that works")
    axis.axhline(1, color=INK, linewidth=1, linestyle="--", label="the fault max")
    axis.axhline(0, color=INK, linewidth=1, linestyle=":", label="the fault min")
    axis.set(xlabel="distance of a wall or a robot (cm)", ylabel="value", xlim=(0, 13))
    axis.set_title("What a proximity sensor reads", loc="left")
    axis.legend(frameon=False, fontsize=8, loc=(0.04, 0.14))


def fault() -> Figure:
    """Two minutes of one swarm, healthy and with broken sensors."""
    case = Case.of(load_map(MAP), FAULT)
    controller = case.behaviour_map.controllers()[case.prior_best]
    figure = Figure(figsize=(8.4, 2.75), layout="constrained")
    axes = figure.subplots(1, 2)
    for axis, scenario, title in zip(
        axes, (case.healthy, case.scenario), ("Before", "At the fault"), strict=True
    ):
        items = draw_trial(axis, scenario, controller)
        axis.set_title(f"{title}: {items} items in two minutes", loc="left")
    return figure


def draw_trial(axis: Axes, scenario: Scenario, controller: Controller) -> int:
    """The first trial of a swarm from above, the nest below; returns the items delivered.

    Paths are thick while the robot carries an item; bodies are where they are in
    the end, with a red edge if sensors or wheels are broken.
    """
    swarm = Swarm(scenario, [controller] * scenario.robots)
    poses, carrying = [swarm.poses[0]], [swarm.carrying[0]]
    for _ in range(TICKS // EVERY):
        swarm.advance(EVERY)
        poses.append(swarm.poses[0])
        carrying.append(swarm.carrying[0])
    draw_arena(axis, scenario.arena)
    path, loaded = np.array(poses), np.array(carrying)
    effects = scenario.effects()
    body = np.array(scenario.robot.body)
    for number in range(scenario.robots):
        colour = ROBOTS[number % len(ROBOTS)]
        x, y = path[:, number, 0], path[:, number, 1]
        axis.plot(y, x, color=colour, linewidth=0.6, alpha=0.9)
        full = np.where(loaded[:, number], 1.0, np.nan)
        axis.plot(y * full, x * full, color=colour, linewidth=1.7)
        corners = body_at(body, path[-1, number])
        broken = effects.proximity[number] or effects.ground[number]
        edge = BROKEN if broken or (effects.wheel_gain[number] != 1).any() else INK
        axis.add_patch(
            Polygon(corners[:, ::-1], facecolor=colour, edgecolor=edge, linewidth=1.3, zorder=3)
        )
    return int(swarm.items[0].sum())


def draw_arena(axis: Axes, arena: Arena) -> None:
    """Floor, nest and food, turned by 90 degrees so that the nest is below."""
    axis.add_patch(Rectangle((0, 0), arena.height, arena.width, facecolor=FLOOR))
    axis.add_patch(Rectangle((0, 0), arena.height, arena.nest_depth, facecolor="white"))
    for food in arena.food:
        axis.add_patch(Circle((food.y, food.x), food.radius, facecolor=FOOD, alpha=0.75))
    axis.add_patch(
        Rectangle((0, 0), arena.height, arena.width, facecolor="none", edgecolor=INK, zorder=4)
    )
    axis.set(xlim=(arena.height, 0), ylim=(0, arena.width), aspect="equal", xticks=[], yticks=[])
    for spine in axis.spines.values():
        spine.set_visible(False)


# --- a map -------------------------------------------------------------------------------------


def behaviours() -> Figure:
    """A map, and what four of its controllers do."""
    behaviour_map = load_map(MAP)
    figure = Figure(figsize=(8.4, 3.6), layout="constrained")
    parts: Any = figure.subfigures(1, 2, width_ratios=(1, 1.55))
    left, right = parts
    axis = left.subplots()
    items = behaviour_map.performance / behaviour_map.robots
    distance, coverage = behaviour_map.descriptor[:, 1], behaviour_map.descriptor[:, 2]
    order = np.argsort(items)
    dots = axis.scatter(coverage[order], distance[order], c=items[order], s=14, linewidths=0)
    dots.set_rasterized(True)  # hundreds of them make a large file otherwise
    axis.set(xlabel="coverage: share of squares visited", ylabel="distance to the arena's centre")
    axis.set_title(f"{behaviour_map.filled_cells} controllers, each the best of its kind")
    bar = left.colorbar(dots, ax=axis, orientation="horizontal", label="items per robot")
    bar.outline.set_visible(False)
    axes = right.subplots(2, 2).flat
    scenario = Case.of(behaviour_map, FAULT).healthy
    controllers = behaviour_map.controllers()
    for letter, panel, row in zip("ABCD", axes, _different(behaviour_map), strict=True):
        found = draw_trial(panel, scenario, controllers[row])
        panel.set_title(f"{letter}: {found} items", loc="left")
        axis.annotate(
            letter,
            (coverage[row], distance[row]),
            (0, 0),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=8,
            fontweight="bold",
            bbox={"boxstyle": "circle,pad=0.25", "facecolor": "white", "edgecolor": INK},
        )
    return figure


def _different(behaviour_map: BehaviourMap) -> list[int]:
    """Four rows: the best; that which covers most and that which is farthest out; the stillest."""
    descriptor = behaviour_map.descriptor
    return [
        int(behaviour_map.performance.argmax()),
        int(descriptor[:, 2].argmax()),
        int(descriptor[:, 1].argmax()),
        int(descriptor[:, 1].argmin()),
    ]


# --- what a learner thinks ---------------------------------------------------------------------

CELLS = 161  # of a map of one dimension, from 0 to 1


def example() -> tuple[np.ndarray, np.ndarray, np.ndarray, BehaviourMap, float]:
    """Places, prior and truth (items per robot) of a map of one dimension, for pictures.

    Also the map, and a length-scale that is rho on its places.
    """
    place = np.linspace(0, 1, CELLS)
    prior = 1.6 + 3.0 * bump(place, 0.3, 0.1) + 2.1 * bump(place, 0.72, 0.11)
    truth = 1.1 + 0.5 * bump(place, 0.3, 0.1) + 1.9 * bump(place, 0.78, 0.1)
    cells = np.arange(CELLS)[:, None]
    behaviour_map = BehaviourMap.from_arrays(cells, prior)
    stretch = behaviour_map.coordinates[-1, 0]
    return place, prior, truth, behaviour_map, LENGTH_SCALE * stretch


def bump(place: np.ndarray, centre: float, width: float) -> np.ndarray:
    """A hill of height 1."""
    return np.exp(-(((place - centre) / width) ** 2) / 2)


def posterior(tried: Sequence[int]) -> Posterior:
    """The learners' model after these cells were tried."""
    _, prior, truth, behaviour_map, length_scale = example()
    process = GaussianProcess(cells_of(behaviour_map), prior, length_scale)
    at = np.array(tried, np.int64)
    return process.posterior(at, truth[at], np.zeros(len(at)))


def model() -> Figure:
    """Mean and deviation after some evaluations, and the cell that is tried next."""
    place, prior, truth, _, _ = example()
    figure = Figure(figsize=(8.4, 3.1), layout="constrained")
    axes = figure.subplots(1, 4, sharey=True)
    tried: list[int] = []
    for number in range(7):
        known = posterior(tried)
        bound = upper_confidence_bound(known)
        bound[tried] = -np.inf
        following = int(bound.argmax())
        if number in (0, 1, 2, 6):
            axis = axes[(0, 1, 2, 6).index(number)]
            low, high = known.mean - known.deviation, known.mean + known.deviation
            axis.fill_between(place, low, high, color=BLUE, alpha=0.2, linewidth=0)
            axis.plot(place, prior, color=GREY, linewidth=1, linestyle="--", label="map (prior)")
            axis.plot(place, truth, color=GREEN, linewidth=1, label="the truth, unknown")
            axis.plot(place, known.mean, color=BLUE, label="model, ± deviation")
            axis.plot(place[tried], truth[tried], "o", color=INK, markersize=4, label="tried")
            top = known.mean[following] + known.deviation[following]
            axis.plot(place[following], top + 0.25, "v", color=ORANGE, label="tried next")
            axis.set(xlabel="behaviour", xticks=[], ylim=(-0.3, 6.4))
            axis.set_title(f"{number} evaluation{'s' * (number != 1)}", loc="left")
        tried.append(following)
    axes[0].set_ylabel("items per robot")
    handles, labels = axes[1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False, fontsize=8)
    return figure


def penalty() -> Figure:
    """Where a robot searches when another one is busy near the best place."""
    place, _, truth, behaviour_map, _ = example()
    tried = [48, 56, 40]
    known = posterior(tried)
    bound = upper_confidence_bound(known)
    cells = cells_of(behaviour_map)
    busy = int(bound.argmax())
    factor = np.exp(
        log_penalty(
            known,
            [busy],
            cells,
            lipschitz=lipschitz(known.mean, cells),
            maximum=float(truth[tried].max()),
        )
    )
    chosen = int((bound * factor).argmax())
    figure = Figure(figsize=(8.4, 2.6), layout="constrained")
    axis = figure.subplots()
    axis.plot(place, bound, color=BLUE, label="bound: mean + 0.93 deviations")
    axis.plot(place, bound * factor, color=ORANGE, label="bound times penalty")
    axis.axvline(place[busy], color=GREY, linewidth=1, linestyle="--")
    axis.text(place[busy], 0.2, " robot 1 is busy here", color=INK, fontsize=8)
    axis.plot(place[chosen], bound[chosen] * factor[chosen], "v", color=ORANGE)
    axis.annotate(
        "robot 2 tries this",
        (place[chosen], bound[chosen] * factor[chosen]),
        (0, 42),
        textcoords="offset points",
        ha="center",
        fontsize=8,
        arrowprops={"arrowstyle": "-", "color": GREY, "linewidth": 0.8, "shrinkB": 4},
    )
    axis.set(xlabel="behaviour", ylabel="items per robot", xticks=[], xlim=(0, 1), ylim=(0, 5.4))
    axis.legend(frameon=False, fontsize=8, loc="upper left")
    return figure


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
