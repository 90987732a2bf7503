"""How fast is swarmbo next to other simulators? All in one run, one core each.

Counts robot-ticks per second: one robot for one control tick of 0.2 s, with its
sensors, its controller and ten sub-steps of physics. The measurements take turns,
so that a machine that slows down slows down all of them.

    python benchmarks/peers.py --repeats 5 --seconds 3 --json peers.json
"""

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from importlib.util import find_spec
from itertools import repeat
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from swarmbo.controller.network import Controller, load_controllers
from swarmbo.world.scenario import Scenario

Pieces = Iterator[Callable[[], int]]  # each piece of work returns the robot-ticks it did

RECORDED = Path(str(files("swarmbo"))) / "data" / "recorded_controllers.json"
ARGOS_NOTE = (
    "For scale: ARGoS 3 with the same robots, arena and networks reached about 0.125 million "
    "robot-ticks per second on one core. It was measured separately, not in this run."
)


@dataclass
class Contestant:
    """A simulator in the comparison, and the speeds that were measured."""

    name: str
    module: str  # what must be importable
    install: str  # how to make it so
    make_pieces: Callable[[Scenario, Sequence[Controller]], Pieces]
    rates: list[float] = field(default_factory=list)  # robot-ticks per second, one per repeat
    cores: list[float] = field(default_factory=list)  # CPU time over wall time, one per repeat

    @property
    def is_installed(self) -> bool:
        """Whether it can take part."""
        return find_spec(self.module) is not None

    @property
    def median(self) -> float:
        """The median of the measured speeds."""
        return statistics.median(self.rates)


def swarmbo_pieces(scenario: Scenario, controllers: Sequence[Controller]) -> Pieces:
    """Evaluations of all controllers, each as a homogeneous swarm."""
    from swarmbo.engine.rollout import rollout

    teams = [(controller,) * scenario.robots for controller in controllers]

    def evaluate() -> int:
        rollout(teams, scenario, threads=1)
        return len(teams) * scenario.trials * scenario.ticks * scenario.robots

    return repeat(evaluate)


def pymunk_pieces(scenario: Scenario, controllers: Sequence[Controller]) -> Pieces:
    """Trials of the same controllers on pymunk."""
    import peer_pymunk

    return peer_pymunk.pieces(scenario, controllers)


def navground_pieces(scenario: Scenario, controllers: Sequence[Controller]) -> Pieces:
    """Trials on navground, whose robots have a controller of its own."""
    import peer_navground

    return peer_navground.pieces(scenario)


def contestants() -> list[Contestant]:
    """Everybody who may take part, ourselves first."""
    return [
        Contestant("swarmbo", "swarmbo.engine.rollout", "pip install -e .", swarmbo_pieces),
        Contestant("navground", "navground", "pip install navground", navground_pieces),
        Contestant("pymunk", "pymunk", "pip install pymunk", pymunk_pieces),
    ]


def measure(pieces: Pieces, seconds: float) -> tuple[float, float]:
    """Robot-ticks per second over at least `seconds`, and how many cores were busy.

    Only whole pieces are timed; making a piece is not.
    """
    robot_ticks, wall, cpu = 0, 0.0, 0.0
    while wall < seconds:
        piece = next(pieces)
        wall_start, cpu_start = time.perf_counter(), time.process_time()
        robot_ticks += piece()
        wall += time.perf_counter() - wall_start
        cpu += time.process_time() - cpu_start
    return robot_ticks / wall, cpu / wall


def compete(
    taking_part: Sequence[Contestant],
    scenario: Scenario,
    controllers: Sequence[Controller],
    *,
    repeats: int,
    seconds: float,
) -> None:
    """Warm everybody up, then measure in turns: A B C, A B C, ..."""
    runs = [
        (contestant, contestant.make_pieces(scenario, controllers)) for contestant in taking_part
    ]
    for _, pieces in runs:
        measure(pieces, 0.1)  # compiles, loads libraries, fills caches
    for _ in range(repeats):
        for contestant, pieces in runs:
            rate, cores = measure(pieces, seconds)
            contestant.rates.append(rate)
            contestant.cores.append(cores)


def report(taking_part: Sequence[Contestant]) -> Table:
    """The measured speeds, and how many times as fast as each of the others the first one is."""
    reference = taking_part[0]
    table = Table(title="Million robot-ticks per second, one core each")
    for heading in ("simulator", "median", "min .. max", f"{reference.name} is faster by", "cores"):
        table.add_column(heading, justify="left" if heading == "simulator" else "right")
    for contestant in taking_part:
        table.add_row(
            f"{contestant.name} {installed_version(contestant.name)}",
            f"{contestant.median / 1e6:.3f}",
            f"{min(contestant.rates) / 1e6:.3f} .. {max(contestant.rates) / 1e6:.3f}",
            "" if contestant is reference else f"{reference.median / contestant.median:.1f} x",
            f"{statistics.median(contestant.cores):.2f}",
        )
    return table


def as_json(taking_part: Sequence[Contestant], *, repeats: int, seconds: float) -> dict[str, Any]:
    """The same as a JSON value, with every single measurement."""
    reference = taking_part[0]
    return {
        "machine": platform.machine(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "unit": "robot-ticks per second, one core",
        "repeats": repeats,
        "seconds": seconds,
        "reference": reference.name,
        "simulators": {
            contestant.name: {
                "version": installed_version(contestant.name),
                "median": contestant.median,
                "min": min(contestant.rates),
                "max": max(contestant.rates),
                "rates": contestant.rates,
                "cores": contestant.cores,
                "reference_is_faster_by": reference.median / contestant.median,
            }
            for contestant in taking_part
        },
    }


def installed_version(package: str) -> str:
    """A package's version, or nothing when it runs from its source folder."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def positive(kind: type) -> Callable[[str], Any]:
    """An argparse type: a number of that kind above 0."""

    def convert(text: str) -> Any:
        value = kind(text)
        if not value > 0:
            raise argparse.ArgumentTypeError(f"{text} is not above 0")
        return value

    return convert


def arguments() -> argparse.Namespace:
    """What was asked for on the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--repeats", type=positive(int), default=5, help="measurements of each simulator"
    )
    parser.add_argument(
        "--seconds", type=positive(float), default=3.0, help="least length of a measurement"
    )
    parser.add_argument(
        "--controllers", type=Path, default=RECORDED, help="a JSON file in the exchange format"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results here too")
    return parser.parse_args()


def main() -> None:
    """Run the comparison."""
    options = arguments()
    console = Console()
    everybody = contestants()
    for contestant in everybody:
        if not contestant.is_installed:
            console.print(f"{contestant.name} is left out; to add it: {contestant.install}")
    taking_part = [contestant for contestant in everybody if contestant.is_installed]
    if not taking_part:
        raise SystemExit("nothing to measure")
    compete(
        taking_part,
        Scenario.draw(seed=1),
        load_controllers(options.controllers),
        repeats=options.repeats,
        seconds=options.seconds,
    )
    console.print(report(taking_part))
    console.print(ARGOS_NOTE)
    if options.json:
        results = as_json(taking_part, repeats=options.repeats, seconds=options.seconds)
        options.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
