"""What came out of a study: tables, curves and lines of reference, beside the published numbers.

Everything is in items per robot. Nothing here depends on the order in which the
runs were done, on times or on the machine.
"""

import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from swarmbo.adaptation.options import LEARNERS
from swarmbo.errors import InputError
from swarmbo.paper.conditions import CONDITION_KINDS, condition_arena, conditions
from swarmbo.report.statistics import a12, holm, improvement, mean_interval, rank_sum

if TYPE_CHECKING:
    from swarmbo.study.journal import Results

REPLICATES = 5  # of the paper
TICK = 0.2  # s
AGREE_SHARE = 0.15  # of the published mean
AGREE_ITEMS = 0.15  # items per robot

REFERENCE = {"1": "smbo", "2a": "smbo-dec", "2a-conditions": "smbo-dec", "2b": "smbo-dec"}
TITLES = {
    "1": "Table 1: centralised adaptation",
    "2a": "Table 2a: during decentralised adaptation",
    "2a-conditions": "Table 2a, per condition",
    "2b": "Table 2b: the composed swarm",
}
_LEARNER_NAMES = {
    "smbo": "SMBO",
    "smbo-uniform": "SMBO-Uniform",
    "random": "Random",
    "gradient-ascent": "Gradient-ascent",
    "smbo-dec": "SMBO-Dec",
    "smbo-dec-naive": "SMBO-Dec Naive",
    "smbo-no-sharing": "SMBO No Sharing",
    "random-no-sharing": "Random No Sharing",
}
_DISTURBANCE_NAMES = {
    "proximity": "Proximity-Sensor",
    "ground": "Ground-Sensor",
    "actuator": "Actuator",
    "software-nest": "Software-Nest",
    "software-food": "Software-Food",
    "food-scarcity": "Food-Scarcity",
    "proximity-2x": "Proximity-Sensor 2x",
    "food-scarcity-2x": "Food-Scarcity 2x",
}
_CONDITION = ["map", "replicate", "condition"]  # what a condition of a disturbance is known by
_RUN = [*_CONDITION, "seed"]  # what a run of one learner under a disturbance is known by


@dataclass(frozen=True)
class Published:
    """A cell of the paper's tables."""

    mean: float
    sd: float
    significant: bool | None  # None in the reference learner's column
    sign: str  # + when the reference learner is higher, - when it is lower; empty: neither


@dataclass(frozen=True)
class Column:
    """A learner of a table, with its options."""

    learner: str
    variant: str

    @property
    def label(self) -> str:
        """Its name for people: that of the paper, or that of the variant."""
        named = _LEARNER_NAMES.get(self.learner, self.learner)
        return named if self.variant == self.learner else self.variant


@dataclass(frozen=True)
class Comparison:
    """The reference learner against another one."""

    z: float | None  # of the rank-sum test; None: too few values
    p: float | None
    holm: float | None  # p, corrected for all tests of the table
    a12: float | None  # chance that the reference learner is better
    significant: bool | None  # p < .05, without correction
    sign: str  # + when the reference learner is higher, - when it is lower; empty: neither
    difference: float | None  # of the means over the conditions that both have
    interval: tuple[float, float] | None  # of that, 95 %


@dataclass(frozen=True)
class Cell:
    """A learner under a disturbance, after its last evaluation."""

    conditions: int
    values: int  # that were pooled: of runs, or of their robots
    mean: float
    sd: float  # of the population
    interval: tuple[float, float] | None  # of the mean, 95 %; conditions are what is drawn again
    improvement: float | None  # over the fault-injection performance, in percent
    published: Published | None
    comparison: Comparison | None  # None in the reference learner's column, or without it

    @property
    def mean_agrees(self) -> bool | None:
        """Whether the mean is within 15 % or 0.15 items of the published one."""
        if self.published is None:
            return None
        allowed = max(AGREE_SHARE * self.published.mean, AGREE_ITEMS)
        return abs(self.mean - self.published.mean) <= allowed + 1e-12

    @property
    def comparison_agrees(self) -> bool | None:
        """Whether the test comes out as published: significance and, with it, direction."""
        if self.published is None or self.published.significant is None:
            return None
        if self.comparison is None or self.comparison.significant is None:
            return None
        if self.comparison.significant != self.published.significant:
            return False
        return not self.comparison.significant or self.comparison.sign == self.published.sign


@dataclass(frozen=True)
class Table:
    """Disturbances x learners."""

    name: str  # "1", "2a", "2a-conditions" or "2b"
    disturbances: tuple[str, ...]
    columns: tuple[Column, ...]
    reference: Column | None  # the learner that the others are compared with
    cells: dict[tuple[str, Column], Cell]  # some may be missing
    evaluations: tuple[int, ...]  # of the runs: one number, unless they differ

    @property
    def title(self) -> str:
        """Its name for people."""
        return TITLES[self.name]

    def standing_for(self, learner: str) -> Column | None:
        """The column that is set beside the published one: that without options, or the first."""
        own = [column for column in self.columns if column.learner == learner]
        return next((c for c in own if c.variant == learner), own[0] if own else None)


@dataclass(frozen=True, eq=False)
class Curve:
    """Best so far of one learner under one disturbance, mean and deviation over conditions."""

    column: Column
    seconds: np.ndarray  # booked by the end of each evaluation
    mean: np.ndarray
    sd: np.ndarray


@dataclass(frozen=True)
class Lines:
    """References of a disturbance, means over its conditions."""

    conditions: int
    before: float  # the map's best controller in the healthy swarm
    at_fault: float  # the same under the disturbance: the fault-injection performance
    exhaustive: float  # the best controller of the map under the disturbance


@dataclass(frozen=True, eq=False)
class Development:
    """The curves of all learners of a kind under one disturbance."""

    table: str  # "1" or "2a"
    disturbance: str
    conditions: int
    curves: tuple[Curve, ...]
    lines: Lines | None


@dataclass(frozen=True)
class Count:
    """How many of the published things come out, of those that can be compared."""

    agree: int
    compared: int
    published: int


@dataclass(frozen=True)
class Score:
    """How well a study reproduces one of the paper's tables, or all of them."""

    means: Count  # within 15 % or 0.15 items
    comparisons: Count  # same significance and, where significant, same direction
    directions: Count  # the reference learner's mean is above, or below, as published


@dataclass(frozen=True, eq=False)
class Summary:
    """All that a report says about the results."""

    tables: tuple[Table, ...]
    developments: tuple[Development, ...]
    lines: dict[str, Lines]
    scores: dict[str, Score]  # per table, and "all"
    conditions: pd.DataFrame  # a row per run: its condition, what came out, the references
    missing: tuple[str, ...]  # sentences
    fresh_noise: bool = False  # did centralised learners meet other noise than their maps?

    def table(self, name: str) -> Table | None:
        """The table of that name, if the study has runs for it."""
        return next((table for table in self.tables if table.name == name), None)


def disturbance_name(disturbance: str) -> str:
    """A disturbance's name for people, as in the paper."""
    return _DISTURBANCE_NAMES.get(disturbance, disturbance)


def evaluation_seconds(disturbance: str, ticks: int | None = None) -> float:
    """The time that an evaluation is booked with: that of one trial, 120 s or, in 2x, 240 s."""
    return (ticks or condition_arena(disturbance).ticks) * TICK


@cache
def published() -> dict[tuple[str, str, str], Published]:
    """The paper's Tables 1, 2a and 2b, by table, disturbance and learner."""
    text = (files("swarmbo.paper") / "published.csv").read_text(encoding="utf-8")
    return {
        (row["table"], row["disturbance"], row["learner"]): Published(
            mean=float(row["mean"]),
            sd=float(row["sd"]),
            significant={"yes": True, "no": False}.get(row["significant"]),
            sign=row["sign"],
        )
        for row in csv.DictReader(text.splitlines())
    }


def summarise(results: "Results") -> Summary:
    """The tables, curves and score of a study, finished or not."""
    runs = _sorted_runs(results.runs)
    if runs.empty:
        raise InputError("the study has no finished run yet; let it run first")
    course = _courses(runs, results.evaluations)
    runs = runs[runs["run"].isin(course.index)].reset_index(drop=True)
    if runs.empty:
        raise InputError("the study has runs without evaluations; run it again")
    runs["final"] = course.ffill(axis=1).iloc[:, -1].loc[runs["run"]].to_numpy()
    runs = _with_references(runs, results.references)
    robots = _final_per_robot(runs, results.evaluations)
    tables = tuple(
        _table(name, own, robots) for name in TITLES if not (own := _runs_of(runs, name)).empty
    )
    lines = _lines(runs)
    definition = results.about.get("definition")
    definition = definition if isinstance(definition, dict) else {}
    ticks = definition.get("ticks")
    developments = tuple(
        _development(table, str(disturbance), own, course, ticks)
        for table in ("1", "2a")
        for disturbance, own in runs[runs["table"] == table].groupby("disturbance", sort=False)
    )
    return Summary(
        tables=tables,
        developments=developments,
        lines=lines,
        scores=_scores(tables),
        conditions=_conditions(runs),
        missing=tuple(_missing(tables, runs, results.about.get("runs"))),
        fresh_noise=definition.get("noise") == "fresh",
    )


# --- runs --------------------------------------------------------------------------------------


def _place(name: str, known: Sequence[str]) -> tuple[int, str]:
    """Sorts names that are known in their order, and others by their letters after them."""
    return (known.index(name) if name in known else len(known), name)


def _sorted_runs(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs in an order that does not depend on when they were done."""
    found = runs.copy()
    for name in ("table", "disturbance", "learner", "variant", "map"):
        found[name] = found[name].astype(str)
    if "seed" not in found:
        found["seed"] = 0
    names = ["table", "disturbance", "learner", "variant", *_CONDITION, "seed"]
    keys = [
        (
            table,
            _place(disturbance, CONDITION_KINDS),
            _place(learner, LEARNERS),
            variant != learner,
            variant,
            *where,
        )
        for table, disturbance, learner, variant, *where in found[names].itertuples(index=False)
    ]
    order = sorted(range(len(found)), key=keys.__getitem__)
    return found.iloc[order].reset_index(drop=True)


def _courses(runs: pd.DataFrame, evaluations: pd.DataFrame) -> pd.DataFrame:
    """Runs x evaluation numbers: best so far, mean over all robots; who has none counts 0."""
    found = evaluations[["run", "number", "robot", "best"]].merge(runs[["run", "robots"]], on="run")
    found = found.sort_values(["run", "number", "robot"], kind="stable")
    divisor = np.where(found["robot"] < 0, 1, found["robots"])
    found["share"] = found["best"].fillna(0) / divisor
    totals = found.groupby(["run", "number"])["share"].sum()
    return totals.unstack("number").sort_index(axis=1)


def _final_per_robot(runs: pd.DataFrame, evaluations: pd.DataFrame) -> dict[int, np.ndarray]:
    """Per decentralised run what each robot has found; 0 for one that does not adapt."""
    wanted = runs.loc[runs["table"] == "2a", ["run", "robots"]].set_index("run")["robots"]
    found = evaluations[evaluations["run"].isin(wanted.index)]
    last = found.groupby("run")["number"].transform("max")
    final = {run: np.zeros(int(robots)) for run, robots in wanted.items()}
    rows = found[(found["number"] == last) & (found["robot"] >= 0)]
    for run, robot, best in zip(rows["run"], rows["robot"], rows["best"].fillna(0), strict=True):
        if robot < len(final[run]):
            final[run][robot] = best
    return final


def _with_references(runs: pd.DataFrame, references: pd.DataFrame) -> pd.DataFrame:
    key = ["disturbance", *_CONDITION]
    found = references[[*key, "before", "at_fault", "exhaustive"]].copy()
    for name in ("disturbance", "map"):
        found[name] = found[name].astype(str)
    for name in ("replicate", "condition"):
        found[name] = found[name].astype(runs[name].dtype)
    return runs.merge(found.drop_duplicates(key), on=key, how="left")


def _runs_of(runs: pd.DataFrame, name: str) -> pd.DataFrame:
    """The runs that a table is made of, with their `value`."""
    own = runs[runs["table"] == ("1" if name == "1" else "2a")]
    value = "composed" if name == "2b" else "final"
    return own.assign(value=own[value].astype(float)).dropna(subset=["value"])


# --- tables ------------------------------------------------------------------------------------


def _table(name: str, runs: pd.DataFrame, robots: dict[int, np.ndarray]) -> Table:
    columns = tuple(
        sorted(
            {Column(learner, variant) for learner, variant in _pairs(runs)},
            key=lambda c: (_place(c.learner, LEARNERS), c.variant != c.learner, c.variant),
        )
    )
    own = [column for column in columns if column.learner == REFERENCE[name]]
    reference = next((c for c in own if c.variant == c.learner), own[0] if own else None)
    groups = {
        (str(disturbance), Column(str(learner), str(variant))): found
        for (disturbance, learner, variant), found in runs.groupby(
            ["disturbance", "learner", "variant"], sort=False
        )
    }
    disturbances = tuple(dict.fromkeys(disturbance for disturbance, _ in groups))

    def pooled(found: pd.DataFrame) -> list[np.ndarray]:
        if name == "2a":
            return [robots[run] for run in found["run"]]
        return [np.array([value]) for value in found["value"]]

    compared = {
        (disturbance, column): _compare(base, found, pooled(base), pooled(found))
        for (disturbance, column), found in groups.items()
        if reference is not None
        and column != reference
        and (base := groups.get((disturbance, reference))) is not None
    }
    corrected = holm([comparison.p for comparison in compared.values()])
    compared = {
        key: replace(comparison, holm=p)
        for (key, comparison), p in zip(compared.items(), corrected, strict=True)
    }
    cells = {
        key: _cell(name, key, found, pooled(found), compared.get(key))
        for key, found in groups.items()
    }
    evaluations = tuple(sorted({int(number) for number in runs["evaluations"]}))
    return Table(name, disturbances, columns, reference, cells, evaluations)


def _pairs(runs: pd.DataFrame) -> list[tuple[str, str]]:
    return list(zip(runs["learner"], runs["variant"], strict=True))


def _compare(
    reference: pd.DataFrame,
    other: pd.DataFrame,
    reference_values: list[np.ndarray],
    other_values: list[np.ndarray],
) -> Comparison:
    """Test one learner against the other; the difference is over conditions that both have."""
    first, second = np.concatenate(reference_values), np.concatenate(other_values)
    test = rank_sum(first.tolist(), second.tolist())
    both = reference[[*_RUN, "value"]].merge(other[[*_RUN, "value"]], on=_RUN)
    both["difference"] = both["value_x"] - both["value_y"]
    differences = both.groupby(_CONDITION)["difference"].mean().tolist()
    return Comparison(
        z=test.z if test else None,
        p=test.p if test else None,
        holm=None,
        a12=a12(first.tolist(), second.tolist()),
        significant=test.significant if test else None,
        sign=test.sign if test else "",
        difference=float(np.mean(differences)) if differences else None,
        interval=mean_interval(differences),
    )


def _cell(
    name: str,
    key: tuple[str, Column],
    runs: pd.DataFrame,
    pooled: list[np.ndarray],
    comparison: Comparison | None,
) -> Cell:
    disturbance, column = key
    values = np.concatenate(pooled)
    groups = runs.assign(sum=[each.sum() for each in pooled], size=[each.size for each in pooled])
    totals = groups.groupby(_CONDITION)[["sum", "size"]].sum()
    known = runs.dropna(subset=["at_fault"])  # a mean over none is NaN: no improvement
    gain = improvement(float(known["value"].mean()), float(known["at_fault"].mean()))
    return Cell(
        conditions=len(totals),
        values=len(values),
        mean=float(values.mean()),
        sd=float(values.std()),
        interval=mean_interval(totals["sum"].tolist(), totals["size"].tolist()),
        improvement=gain,
        published=published().get((name, disturbance, column.learner)),
        comparison=comparison,
    )


# --- curves and lines --------------------------------------------------------------------------


def _development(
    table: str, disturbance: str, runs: pd.DataFrame, course: pd.DataFrame, ticks: int | None
) -> Development:
    curves = []
    seconds = evaluation_seconds(disturbance, ticks)
    for (learner, variant), own in runs.groupby(["learner", "variant"], sort=False):
        values = course.loc[own["run"].tolist()].dropna(axis=1).to_numpy()
        numbers = np.arange(1, values.shape[1] + 1)
        curves.append(
            Curve(
                Column(str(learner), str(variant)),
                numbers * seconds,
                values.mean(axis=0),
                values.std(axis=0),
            )
        )
    count = len(runs.drop_duplicates(_CONDITION))
    return Development(table, disturbance, count, tuple(curves), _lines(runs).get(disturbance))


def _lines(runs: pd.DataFrame) -> dict[str, Lines]:
    """Per disturbance the mean references over the conditions that have runs."""
    known = runs.dropna(subset=["before", "at_fault", "exhaustive"])
    known = known.sort_values(_CONDITION, kind="stable")
    known = known.drop_duplicates(["disturbance", *_CONDITION])
    order = dict.fromkeys(runs["disturbance"])
    found = {
        str(disturbance): Lines(
            len(own),
            *(float(own[name].mean()) for name in ("before", "at_fault", "exhaustive")),
        )
        for disturbance, own in known.groupby("disturbance", sort=False)
    }
    names = sorted(order, key=lambda name: _place(name, CONDITION_KINDS))
    return {name: found[name] for name in names if name in found}


def _conditions(runs: pd.DataFrame) -> pd.DataFrame:
    names = ["table", "disturbance", *_RUN, "learner", "variant", "robots", "evaluations"]
    return runs[[*names, "final", "composed", "before", "at_fault", "exhaustive"]]


# --- beside the paper --------------------------------------------------------------------------


def _scores(tables: Sequence[Table]) -> dict[str, Score]:
    """How many of the published cells and comparisons come out, per table and in all."""
    by_name = {table.name: table for table in tables}
    tallies: dict[str, list[list[bool | None]]] = {
        name: [[], [], []] for name in ("1", "2a", "2b", "all")
    }
    for (name, disturbance, learner), paper in published().items():
        cell = _cell_of(by_name.get(name), disturbance, learner)
        base = published()[name, disturbance, REFERENCE[name]]
        verdicts = [cell.mean_agrees if cell else None]
        if paper.significant is not None:
            verdicts.append(cell.comparison_agrees if cell else None)
            known = cell.comparison.difference if cell and cell.comparison else None
            verdicts.append(None if known is None else _same_side(known, base.mean - paper.mean))
        for place, verdict in enumerate(verdicts):
            tallies[name][place].append(verdict)
            tallies["all"][place].append(verdict)
    return {
        name: Score(
            *(
                Count(
                    agree=sum(verdict is True for verdict in verdicts),
                    compared=sum(verdict is not None for verdict in verdicts),
                    published=len(verdicts),
                )
                for verdicts in tally
            )
        )
        for name, tally in tallies.items()
    }


def _cell_of(table: Table | None, disturbance: str, learner: str) -> Cell | None:
    column = table.standing_for(learner) if table else None
    return table.cells.get((disturbance, column)) if table and column else None


def _same_side(one: float, other: float) -> bool:
    return bool(np.sign(one) == np.sign(other))


def _missing(tables: Sequence[Table], runs: pd.DataFrame, planned: object) -> list[str]:
    """What a reader would look for and not find, in sentences; `planned` runs, if known."""
    by_name = {table.name: table for table in tables}
    sentences = []
    if isinstance(planned, int) and planned > len(runs):
        sentences.append(f"{len(runs):,} of the study's {planned:,} runs are done.")
    for name in ("1", "2a", "2b"):
        table = by_name.get(name)
        if table is None:
            sentences.append(f"Table {name}: there are no finished runs.")
            continue
        wanted = list(dict.fromkeys(d for t, d, _ in published() if t == name))
        absent = [disturbance_name(d) for d in wanted if d not in table.disturbances]
        if absent:
            sentences.append(f"Table {name}: there are no runs under {_list(absent)}.")
        learners = list(dict.fromkeys(learner for t, _, learner in published() if t == name))
        unknown = [_LEARNER_NAMES[n] for n in learners if table.standing_for(n) is None]
        if unknown:
            sentences.append(f"Table {name}: there are no runs of {_list(unknown)}.")
        if table.reference is None:
            sentences.append(
                f"Table {name}: without {_LEARNER_NAMES[REFERENCE[name]]} "
                "there is nothing to compare the others with."
            )
        sentences += _incomplete(table)
    sentences += _fewer_conditions(runs)
    for disturbance, own in runs.groupby("disturbance", sort=False):
        lacking = len(own[own["at_fault"].isna()].drop_duplicates(_CONDITION))
        if lacking:
            sentences.append(
                f"{disturbance_name(str(disturbance))}: {lacking} condition{'s' * (lacking > 1)} "
                "without references; improvements and lines leave them out."
            )
    return list(dict.fromkeys(sentences))


def _incomplete(table: Table) -> list[str]:
    """Disturbances under which the learners do not have equally many conditions."""
    sentences = []
    for disturbance in table.disturbances:
        counts = {
            column.label: cell.conditions if (cell := table.cells.get((disturbance, column))) else 0
            for column in table.columns
        }
        if len(set(counts.values())) > 1:
            words = ", ".join(f"{count} with {label}" for label, count in counts.items())
            sentences.append(
                f"Table {table.name}, {disturbance_name(disturbance)}: "
                f"the learners have different conditions ({words})."
            )
    return sentences


def _fewer_conditions(runs: pd.DataFrame) -> list[str]:
    """Which of the paper's disturbances have fewer conditions than there."""
    words = []
    for disturbance, own in runs.groupby("disturbance", sort=False):
        if disturbance in CONDITION_KINDS:
            count = len(own.drop_duplicates(_CONDITION))
            paper = REPLICATES * len(conditions(str(disturbance), 1))
            if count < paper:
                words.append(f"{disturbance_name(str(disturbance))} {count} of {paper}")
    return [f"There are fewer conditions than in the paper: {', '.join(words)}."] if words else []


def _list(words: Sequence[str]) -> str:
    return ", ".join(words[:-1]) + " and " + words[-1] if len(words) > 1 else words[0]
