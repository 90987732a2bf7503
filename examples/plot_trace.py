"""Draw the paths of a swarm from a trace that `swarmbo simulate --trace` wrote.

swarmbo simulate example --trials 1 --trace trace.parquet
python examples/plot_trace.py trace.parquet paths.png --team 0 --trial 0
"""

import argparse
import math

import matplotlib
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Polygon, Rectangle

from swarmbo import ARENAS, THYMIO, Arena

matplotlib.use("Agg")


def draw(trace: pd.DataFrame, arena: Arena) -> Figure:
    """The arena from above, nest at the bottom: paths of the robots, thick while they carry."""
    figure, axes = plt.subplots(figsize=(9, 9 * arena.width / arena.height), layout="constrained")
    axes.add_patch(Rectangle((0, 0), arena.height, arena.width, facecolor="0.92"))
    axes.add_patch(Rectangle((0, 0), arena.height, arena.nest_depth, facecolor="white"))
    for food in arena.food:
        axes.add_patch(Circle((food.y, food.x), food.radius, facecolor="0.35"))
    for robot, path in trace.groupby("robot"):
        colour = f"C{robot}"
        carried = path.where(path.carrying == 1)
        axes.plot(path.y, path.x, color=colour, linewidth=0.7, alpha=0.8)
        axes.plot(carried.y, carried.x, color=colour, linewidth=2.2)
        x, y, theta = path[["x", "y", "theta"]].iloc[-1]
        cos, sin = math.cos(theta), math.sin(theta)
        corners = [(y + sin * a + cos * b, x + cos * a - sin * b) for a, b in THYMIO.body]
        axes.add_patch(Polygon(corners, facecolor=colour, edgecolor="black", zorder=3))
    axes.text(arena.height / 2, arena.nest_depth / 2, "nest", ha="center", va="center", alpha=0.6)
    # y runs to the left: the arena is turned by 90 degrees, not mirrored.
    axes.set(xlim=(arena.height, 0), ylim=(0, arena.width), xlabel="y (m)", ylabel="x (m)")
    axes.set_aspect("equal")
    return figure


def main() -> None:
    """Read the options and write the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trace", help="written by swarmbo simulate --trace")
    parser.add_argument("picture", help="the file to write, for example paths.png")
    parser.add_argument("--team", type=int, default=0)
    parser.add_argument("--trial", type=int, default=0)
    parser.add_argument("--arena", choices=ARENAS, default="foraging")
    options = parser.parse_args()
    trace = pd.read_parquet(
        options.trace,
        columns=["robot", "x", "y", "theta", "carrying"],
        filters=[("team", "==", options.team), ("trial", "==", options.trial)],
    )
    draw(trace, ARENAS[options.arena]).savefig(options.picture, dpi=120)


if __name__ == "__main__":
    main()
