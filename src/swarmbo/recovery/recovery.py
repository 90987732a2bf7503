"""One recovery from beginning to end: before, at the fault, the learner's tries, and after."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from swarmbo import files
from swarmbo.errors import InputError, cut, naming, short
from swarmbo.files import read_json
from swarmbo.maps.behaviour_map import BehaviourMap, load_map
from swarmbo.paper.conditions import DEMONSTRATION
from swarmbo.recovery.continuous import ContinuousRun, adapt_continuously, recited
from swarmbo.recovery.runner import (
    Case,
    Evaluation,
    Evaluator,
    Request,
    Run,
    adapt,
    compose,
    per_robot,
    references,
    swarm_mean,
)
from swarmbo.version import __version__
from swarmbo.world.arena import ARENAS
from swarmbo.world.disturbance import Disturbance, from_json
from swarmbo.world.scenario import TRIALS, Scenario

MAP, DISTURBANCE, LEARNER = DEMONSTRATION
REPORT = "recovery.json"
CURVE = "curve.png"
TRIED = "map.png"
FILES = (REPORT, CURVE, TRIED)  # that a folder of a recovery holds
REPLAYS = tuple(f"replay.{kind}" for kind in ("html", "gif", "mp4", "png"))  # and may hold


class Watcher:
    """Is told how a recovery goes; these methods do nothing."""

    def begin(self, run: Run, before: float, at_fault: float) -> None:
        """The fault has struck; both numbers are in items per robot."""

    def evaluation(self, run: Run) -> None:
        """One more evaluation is in `run.done`."""

    def searching(self, count: int, controllers: int) -> None:
        """So many of the map's controllers are evaluated, for comparison."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Recovery:
    """How a swarm coped with a disturbance; all performances are in items per robot."""

    case: Case
    map_name: str
    disturbance_name: str
    learner: str
    options: dict[str, Any]
    seed: int
    continuous: bool
    device: str  # "cpu" or "gpu"
    before: float  # the map's best controller in the healthy swarm
    at_fault: float  # the same under the disturbance
    best: float  # mean over robots of the best outcome that each knows of
    composed: float | None  # all robots with their best controllers; None: centralised
    exhaustive: float  # the best controller of the map, if all robots have it
    exhaustive_cell: int  # its row in the map
    team: tuple[int, ...]  # rows of the controllers after adaptation, one per robot
    continued_with: tuple[int, ...] | None  # those of a continuous world when it ended
    evaluations: tuple[Evaluation, ...]

    def __repr__(self) -> str:
        numbers = ("before", "at_fault", "best", "composed", "exhaustive")
        words = ", ".join(f"{name}={getattr(self, name)}" for name in numbers)
        where = f"{self.map_name}, {self.disturbance_name}, {self.learner}"
        return f"<Recovery {where}: {words}, {len(self.evaluations)} evaluations>"

    @property
    def behaviour_map(self) -> BehaviourMap:
        """The map that was used."""
        return self.case.behaviour_map

    @property
    def robots(self) -> int:
        """How many robots the swarm has."""
        return self.case.scenario.robots

    @property
    def curve(self) -> list[float]:
        """The best so far after each evaluation, mean over the robots."""
        return [swarm_mean(each.best, self.robots) for each in self.evaluations]

    def recovered(self, performance: float | None) -> float | None:
        """What share of the loss a performance wins back; None where nothing was lost."""
        loss = self.before - self.at_fault
        return None if performance is None or loss <= 0 else (performance - self.at_fault) / loss

    def to_json(self) -> dict[str, Any]:
        """Everything, as described in docs/recovery.md."""
        scenario = self.case.scenario
        return {
            "version": __version__,
            "map": self.map_name,
            "map_checksum": checksum(self.behaviour_map),
            "disturbance": self.disturbance_name,
            "disturbances": [entry.to_json() for entry in scenario.disturbances],
            "learner": self.learner,
            "options": self.options,
            "seed": self.seed,
            "replicate": self.case.replicate,
            "continuous": self.continuous,
            "arena": scenario.arena.name,
            "robots": self.robots,
            "trials": scenario.trials,
            "ticks": scenario.ticks,
            "device": self.device,
            "groups": list(self.case.groups),
            "before": self.before,
            "at_fault": self.at_fault,
            "best": self.best,
            "composed": self.composed,
            "exhaustive": self.exhaustive,
            "recovered": {
                name: self.recovered(getattr(self, name))
                for name in ("best", "composed", "exhaustive")
            },
            "prior_cell": self.case.prior_best,
            "exhaustive_cell": self.exhaustive_cell,
            "team": list(self.team),
            "continued_with": None if self.continued_with is None else list(self.continued_with),
            "evaluations": [
                self._evaluation(number, each) for number, each in enumerate(self.evaluations, 1)
            ],
        }

    def _evaluation(self, number: int, each: Evaluation) -> dict[str, Any]:
        scenario = self.case.scenario
        places = [
            None if row is None else self.behaviour_map.cells[row].tolist() for row in each.cell
        ]
        tick = scenario.tick
        whole = len(each.cell) == 1

        def shape(values: Sequence[Any]) -> Any:
            return values[0] if whole else list(values)

        report = {
            "number": number,
            "time_s": number * scenario.ticks * tick,
            "cell": shape(each.cell),
            "place": shape(places),
            "prediction": shape(each.prediction),
            "deviation": shape(each.deviation),
            "outcome": shape(each.outcome),
            "best": shape(each.best),
            "swarm_best": swarm_mean(each.best, self.robots),
        }
        if self.continuous:
            report["end_s"] = [None if end is None else end * tick for end in each.end]
        return report

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write recovery.json and two figures into a folder, all or none of them."""
        from swarmbo.maps.plots import save_figure
        from swarmbo.recovery.plots import plot_curve, plot_tried

        check_folder(folder)
        with files.whole_folder(folder, FILES) as temporary:
            text = json.dumps(self.to_json(), allow_nan=False, indent=1)
            (temporary / REPORT).write_text(text + "\n", encoding="utf-8")
            save_figure(plot_curve(self), temporary / CURVE)
            save_figure(plot_tried(self), temporary / TRIED)


def check_folder(folder: str | os.PathLike[str]) -> None:
    """InputError when a recovery cannot be written into a folder; call it before the work."""
    files.check_folder(folder, FILES + REPLAYS, "which is no file of a recovery")


def checksum(behaviour_map: BehaviourMap) -> str:
    """A name for the content of a map: 128 bits of BLAKE2b, in hexadecimal digits."""
    return hashlib.blake2b(behaviour_map.to_bytes(), digest_size=16).hexdigest()


def recover(
    map: str | os.PathLike[str] | BehaviourMap = MAP,
    disturbance: str | Sequence[Disturbance] = DISTURBANCE,
    learner: str = LEARNER,
    *,
    evaluations: int | None = None,
    seed: int = 1,
    options: Mapping[str, Any] | None = None,
    continuous: bool = False,
    trials: int = TRIALS,
    ticks: int | None = None,
    out: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    device: str = "auto",
    watcher: Watcher | None = None,
) -> Recovery:
    """Break a swarm and let a learner repair it.

    `map` is a map, its file, or the name of a bundled one;
    `disturbance` is KIND:INDEX as drawn for the map's seed, a JSON file, or
    disturbances. `evaluations` are those of the swarm or of each robot: by default 30,
    or fewer where the map has no more cells to try. `seed` is that of the learner's
    choices and of fresh noise.
    `options` are the learner's, by name. With `continuous` the robots adapt in
    one world without resets, each by its own clock. `trials` and `ticks` are
    those of an evaluation. `out` is a folder for the report and figures. The
    result does not depend on `threads`.
    """
    name = "map" if isinstance(map, BehaviourMap) else os.fspath(map)
    behaviour_map = map if isinstance(map, BehaviourMap) else load_map(map)
    with naming(name):
        behaviour_map.controllers()
    case = Case.of(behaviour_map, disturbance, trials=trials, ticks=ticks)
    if out is not None:
        check_folder(out)
    kind = ContinuousRun if continuous else Run
    recovery = finish(
        kind(case, learner, evaluations=evaluations, seed=seed, options=options),
        map_name=name,
        disturbance_name=disturbance if isinstance(disturbance, str) else "given",
        options=options or {},
        evaluator=Evaluator(threads=threads, device=device, robots=case.scenario.robots),
        watcher=watcher,
    )
    if out is not None:
        recovery.save(out)
    return recovery


def finish(
    run: Run,
    *,
    map_name: str,
    disturbance_name: str,
    options: Mapping[str, Any],
    evaluator: Evaluator,
    watcher: Watcher | None = None,
) -> Recovery:
    """Let a run that has not begun come to its end; names and options are for the report."""
    watcher = watcher or Watcher()
    case = run.case
    before, at_fault = map(
        per_robot,
        evaluator.items(
            [case.swarm_of(case.prior_best, case.healthy), case.swarm_of(case.prior_best)]
        ),
    )
    watcher.begin(run, before, at_fault)
    if isinstance(run, ContinuousRun):
        adapt_continuously([run], threads=1, progress=watcher.evaluation)
    else:
        adapt([run], evaluator, progress=lambda _: watcher.evaluation(run))
    (composed,) = compose([run], evaluator)
    controllers = case.behaviour_map.filled_cells
    (found,) = references(
        [case], evaluator, progress=lambda count: watcher.searching(count, controllers)
    )
    return Recovery(
        case=case,
        map_name=map_name,
        disturbance_name=disturbance_name,
        learner=run.name,
        options=dict(options),
        seed=run.seed,
        continuous=isinstance(run, ContinuousRun),
        device=evaluator.device,
        before=before,
        at_fault=at_fault,
        best=run.best,
        composed=composed,
        exhaustive=found.exhaustive,
        exhaustive_cell=found.exhaustive_row,
        team=run.final_team(),
        continued_with=run.continued_with if isinstance(run, ContinuousRun) else None,
        evaluations=tuple(run.done),
    )


# --- again -------------------------------------------------------------------------------------


def replay(
    report: str | os.PathLike[str] | Mapping[str, Any],
    behaviour_map: BehaviourMap | None = None,
    *,
    threads: int | None = None,
) -> dict[str, Any]:
    """Simulate a recovery again: the same cells, without the learner.

    `report` is recovery.json, as a file or as read. Returns it with every number
    that was simulated, and the best so far, computed anew: on the same kind of
    device it equals what went in. `behaviour_map` defaults to the map that the
    report names.
    """
    is_read = isinstance(report, Mapping)
    found: Any = report if isinstance(report, Mapping) else read_json(report)
    with naming("the report" if is_read else report), complete_report():
        return _replay(dict(found), behaviour_map, threads)


@contextmanager
def complete_report() -> Iterator[None]:
    """InputError when the block fails because a report is not what `swarmbo recover` writes."""
    try:
        yield
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            "is not a complete recovery; use a file that swarmbo recover wrote"
        ) from None


def case_of(report: Mapping[str, Any], behaviour_map: BehaviourMap | None = None) -> Case:
    """The case of a recovery.json that was read, with the map that it names or the one given.

    InputError when the map is another one, or the report names rows that it does not have.
    """
    behaviour_map = load_map(report["map"]) if behaviour_map is None else behaviour_map
    if checksum(behaviour_map) != report["map_checksum"]:
        raise InputError(
            f"was made with another map than this one: {cut(report['map'])}, as it was "
            "then; give that"
        )
    _check_rows(report, behaviour_map.filled_cells)
    return Case(
        behaviour_map=behaviour_map,
        scenario=Scenario.draw(
            seed=report["replicate"],
            arena=ARENAS[report["arena"]],
            robots=report["robots"],
            trials=report["trials"],
            ticks=report["ticks"],
            disturbances=from_json(report["disturbances"]),
        ),
        replicate=report["replicate"],
    )


def _replay(
    report: dict[str, Any], behaviour_map: BehaviourMap | None, threads: int | None
) -> dict[str, Any]:
    case = case_of(report, behaviour_map)
    evaluator = Evaluator(threads=threads, device=report["device"], robots=report["robots"])
    (found,) = references([case], evaluator)
    done = [dict(entry) for entry in report["evaluations"]]
    for entry, outcome in zip(done, _outcomes(case, report, evaluator), strict=True):
        entry["outcome"] = outcome
    _best_so_far(done, report)
    composed = None
    if report["composed"] is not None:
        scenario = case.with_noise("composed", report["seed"])
        request = Request(case.behaviour_map, scenario, tuple(report["team"]))
        composed = per_robot(evaluator.items([request])[0])
    again = report | {
        "groups": list(case.groups),
        "before": found.before,
        "at_fault": found.at_fault,
        "best": done[-1]["swarm_best"],
        "composed": composed,
        "exhaustive": found.exhaustive,
        "exhaustive_cell": found.exhaustive_row,
        "evaluations": done,
    }
    loss = found.before - found.at_fault
    again["recovered"] = {
        name: None if loss <= 0 or again[name] is None else (again[name] - found.at_fault) / loss
        for name in ("best", "composed", "exhaustive")
    }
    return again


def _check_rows(report: Mapping[str, Any], rows: int) -> None:
    """InputError when a report names controllers that the map does not have."""
    for entry in [
        report["team"],
        report["continued_with"] or [],
        *(each["cell"] for each in report["evaluations"]),
    ]:
        for row in entry if isinstance(entry, list) else [entry]:
            if row is not None and not (type(row) is int and 0 <= row < rows):
                raise InputError(f"names the controller {short(row)}; the map has 0 to {rows - 1}")


def _outcomes(case: Case, report: dict[str, Any], evaluator: Evaluator) -> list[Any]:
    """What comes out of the evaluations of a report, in items per robot."""
    entries, seed = report["evaluations"], report["seed"]
    if report["continuous"]:
        tried = [entry["cell"] for entry in entries]
        run = recited(case, tried, report["continued_with"], seed=seed)
        adapt_continuously([run], threads=1)
        return [list(each.outcome) for each in run.done]
    if report["composed"] is None:
        asked = [case.swarm_of(entry["cell"]) for entry in entries]
        return [per_robot(items) for items in evaluator.items(asked)]
    asked = [
        Request(
            case.behaviour_map,
            case.with_noise("evaluation", seed, number),
            tuple(case.prior_best if row is None else row for row in entry["cell"]),
        )
        for number, entry in enumerate(entries)
    ]
    return [
        [
            None if group is None else mean
            for group, mean in zip(case.groups, items.mean(axis=0).tolist(), strict=True)
        ]
        for items in evaluator.items(asked)
    ]


def _best_so_far(done: list[dict[str, Any]], report: dict[str, Any]) -> None:
    """Work out anew what each robot knows to be the best.

    Left as it is where that depends on messages that were lost or late, or on
    estimates that are no means of an evaluation.
    """
    if any(report["options"].get(name) for name in ("loss", "delay", "running_mean")):
        return
    if report["composed"] is None:
        best = 0.0
        for number, entry in enumerate(done):
            best = entry["outcome"] if number == 0 else max(best, entry["outcome"])
            entry["best"] = entry["swarm_best"] = best
        return
    robots, groups = range(report["robots"]), report["groups"]
    alone = report["learner"].endswith("no-sharing")
    for number, entry in enumerate(done):
        bests: list[float | None] = []
        for robot in robots:
            mates = [m for m in robots if m == robot or (not alone and groups[m] == groups[robot])]
            known = [
                each["outcome"][mate]
                for past, each in enumerate(done)
                for mate in mates
                if (
                    each["end_s"][mate] <= entry["end_s"][robot]
                    if report["continuous"] and groups[robot] is not None
                    else past <= number
                )
            ]
            bests.append(None if groups[robot] is None else max(known))
        entry["best"] = bests
        entry["swarm_best"] = swarm_mean(bests, len(robots))
