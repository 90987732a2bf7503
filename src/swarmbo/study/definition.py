"""A study is data: which maps, disturbances and learners, written in TOML.

docs/studies.md describes the form. Everything is checked when it is read.
"""

import os
import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from swarmbo.adaptation.options import CENTRALISED, LEARNERS, Options
from swarmbo.errors import InputError, cut, is_finite_number, is_integer, naming, short
from swarmbo.files import is_file, read_text, too_many_digits
from swarmbo.maps.behaviour_map import BehaviourMap, load_map
from swarmbo.paper.conditions import CONDITION_KINDS, EVALUATIONS, NOISE, check_noise, conditions
from swarmbo.streams import Stream
from swarmbo.study.rows import REMEDY, DamageError
from swarmbo.world.disturbance import from_json, load_disturbances
from swarmbo.world.robot import THYMIO, Robot
from swarmbo.world.scenario import TRIALS

TABLES = ("1", "2a", "2b")
MAX_RUNS = 10_000_000
_ROBOT = ("wheel_base", "max_speed", "friction", "proximity_range", "proximity_noise")
ROBOT_KEYS = (*_ROBOT, "ground_noise")  # of a robot that a study can change
_MOST = 2**31 - 1


class CaseKey(NamedTuple):
    """A map's swarm under one condition of a disturbance."""

    disturbance: str
    replicate: int
    map: str
    condition: int  # from 0


class RunKey(NamedTuple):
    """What identifies a run within its study."""

    disturbance: str
    replicate: int
    map: str
    condition: int  # from 0
    variant: str
    seed: int

    @property
    def case(self) -> CaseKey:
        """The case that the run copes with."""
        return CaseKey(*self[:4])


@dataclass(frozen=True)
class MapEntry:
    """A map of a study, and the replicate whose poses, noise and conditions go with it."""

    name: str  # as written
    replicate: int
    path: str = field(default="", compare=False)  # where it is; its name, if it is bundled

    def load(self) -> BehaviourMap:
        """The map itself; InputError when it is not there, or has no controllers."""
        behaviour_map = load_map(self.path or self.name)
        with naming(self.name):
            behaviour_map.controllers()  # InputError when it has none, or impossible ones
        return behaviour_map


@dataclass(frozen=True)
class Variant:
    """A learner with options, by the label that the study gives it."""

    label: str
    learner: str
    options: Mapping[str, Any]  # all that the learner has

    @property
    def table(self) -> str:
        """The table of the paper that it belongs to: 1, or 2a (and so 2b)."""
        return "1" if self.learner in CENTRALISED else "2a"


@dataclass(frozen=True)
class Experiment:
    """Disturbances, and the learners that cope with each of their conditions."""

    disturbances: tuple[str, ...]
    learners: tuple[str, ...]  # labels of variants
    conditions: int | None = None  # the first so many per replicate; None: all


@dataclass(frozen=True)
class Selection:
    """A part of a study; None selects everything."""

    tables: tuple[str, ...] | None = None
    disturbances: tuple[str, ...] | None = None
    learners: tuple[str, ...] | None = None  # labels of variants
    replicates: tuple[int, ...] | None = None
    conditions: int | None = None  # the first so many per replicate

    def has(self, key: RunKey, table: str) -> bool:
        """Whether a run of a table belongs to the part."""
        tables = None if self.tables is None else {name.replace("b", "a") for name in self.tables}
        return (
            (tables is None or table in tables)
            and (self.disturbances is None or key.disturbance in self.disturbances)
            and (self.learners is None or key.variant in self.learners)
            and (self.replicates is None or key.replicate in self.replicates)
            and (self.conditions is None or key.condition < self.conditions)
        )

    def check(self, definition: "Definition") -> None:
        """InputError when it names what the study does not have, or selects nothing."""
        known: dict[str, Collection[Any]] = {
            "tables": TABLES,
            "disturbances": definition.disturbances,
            "learners": definition.variants,
            "replicates": sorted({entry.replicate for entry in definition.maps}),
        }
        for name, values in known.items():
            for value in getattr(self, name) or ():
                if value not in values:
                    raise InputError(
                        f"--{name}: the study has no {cut(value)}; "
                        f"name some of {cut(', '.join(map(str, values)), 400)}"
                    )
        if not any(
            self.has(key, definition.variants[key.variant].table) for key in definition.runs
        ):
            raise InputError("the options select no run of the study; leave one of them out")


@dataclass(frozen=True, kw_only=True)
class Definition:
    """A whole study."""

    name: str
    maps: tuple[MapEntry, ...]
    experiments: tuple[Experiment, ...]
    variants: Mapping[str, Variant]  # by label, in the order of the experiments
    evaluations: int = EVALUATIONS
    seeds: tuple[int, ...] = (1,)  # of learners' choices and of fresh noise
    noise: str = NOISE[0]  # with which centralised learners and references are evaluated
    trials: int = TRIALS
    ticks: int | None = None  # of a trial; None: those of the arena
    robot: Mapping[str, Any] = field(default_factory=dict)  # what differs from the Thymio
    given: Mapping[str, list[Any]] = field(default_factory=dict)  # disturbances in files, as JSON

    @property
    def disturbances(self) -> list[str]:
        """The names of the disturbances, in their order."""
        return list(dict.fromkeys(name for each in self.experiments for name in each.disturbances))

    @cached_property
    def runs(self) -> dict[RunKey, int]:
        """Every run of the study with its number, from 0."""
        return {key: number for number, key in enumerate(self._keys())}

    def _keys(self) -> Iterator[RunKey]:
        """Every run once: by table, disturbance, replicate, map, condition, learner and seed."""
        for table in ("1", "2a"):
            for disturbance in self.disturbances:
                wanted: dict[str, int] = {}  # conditions per variant
                for each in self.experiments:
                    if disturbance in each.disturbances:
                        for label in each.learners:
                            count = self._conditions(disturbance, each)
                            wanted[label] = max(count, wanted.get(label, 0))
                labels = [
                    label
                    for label, variant in self.variants.items()
                    if label in wanted and variant.table == table
                ]
                for entry in sorted(self.maps, key=lambda entry: entry.replicate):
                    for condition in range(max(wanted.values())):
                        for label in labels:
                            if condition < wanted[label]:
                                where = (disturbance, entry.replicate, entry.name, condition)
                                for seed in self.seeds:
                                    yield RunKey(*where, label, seed)

    def _conditions(self, disturbance: str, experiment: Experiment) -> int:
        count = 1 if disturbance in self.given else len(conditions(disturbance, 1))
        return count if experiment.conditions is None else min(count, experiment.conditions)

    def selected(self, selection: Selection) -> list[RunKey]:
        """The runs of a part of the study, in order."""
        return [key for key in self.runs if selection.has(key, self.variants[key.variant].table)]

    def robot_model(self) -> Robot:
        """The robot of the study."""
        return Robot(**self.robot) if self.robot else THYMIO

    def to_json(self) -> dict[str, Any]:
        """The definition as JSON values; `definition_from_json` reads it."""
        return {
            "name": self.name,
            "maps": [{"map": entry.name, "replicate": entry.replicate} for entry in self.maps],
            "experiments": [
                {
                    "disturbances": list(each.disturbances),
                    "learners": list(each.learners),
                    "conditions": each.conditions,
                }
                for each in self.experiments
            ],
            "variants": {
                label: {"learner": variant.learner, "options": dict(variant.options)}
                for label, variant in self.variants.items()
            },
            "evaluations": self.evaluations,
            "seeds": list(self.seeds),
            "noise": self.noise,
            "trials": self.trials,
            "ticks": self.ticks,
            "robot": dict(self.robot),
            "given": dict(self.given),
        }

    def check_extends(self, before: "Definition") -> None:
        """InputError when a study differs from what it was, other than by additions."""
        for name in ("name", "evaluations", "noise", "trials", "ticks", "robot"):
            mine, theirs = getattr(self, name), getattr(before, name)
            if mine != theirs:
                raise _changed(f"{name} is now {short(mine)} and was {short(theirs)}")
        for label, variant in before.variants.items():
            now = self.variants.get(label)
            if now is None:
                raise _changed(f"the learner {cut(label)} is missing")
            if now.learner != variant.learner:
                raise _changed(f"{cut(label)} is now {now.learner} and was {variant.learner}")
            for name, value in variant.options.items():
                if now.options[name] != value:
                    raise _changed(
                        f"{name} of {cut(label)} is now {short(now.options[name])} and was "
                        f"{short(value)}"
                    )
        for name, value in before.given.items():
            if self.given.get(name, value) != value:
                raise _changed(f"the disturbance in {cut(name)} is another one")
        for key in before.runs:
            if key not in self.runs:
                raise _changed(f"{describe(key)} is missing")


def _changed(what: str) -> InputError:
    return InputError(
        f"the study was begun with another definition: {what}; "
        "add to a study, but for a changed one name another folder"
    )


def describe(key: RunKey) -> str:
    """A run in words."""
    return (
        f"{cut(key.variant)} under {cut(key.disturbance)}:{key.condition} with the map "
        f"{cut(key.map)} (replicate {key.replicate}, seed {key.seed})"
    )


def learner_seed(key: RunKey) -> int:
    """The seed of a run's learner and of fresh noise: alike for all learners of a condition."""
    return Stream("study", key.seed, key.disturbance, key.replicate, key.condition).choice(2**31)


# --- reading -----------------------------------------------------------------------------------


def bundled_studies() -> list[str]:
    """The names of the studies that come with swarmbo."""
    names = (entry.name for entry in files("swarmbo.paper.studies").iterdir())
    return sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml"))


def load_definition(name: str | os.PathLike[str]) -> Definition:
    """The study in a TOML file, or the one of that name that comes with swarmbo.

    Files that it names are looked for beside it.
    """
    text = os.fspath(name)
    if text in bundled_studies() and not is_file(text):
        source = (files("swarmbo.paper.studies") / f"{text}.toml").read_text(encoding="utf-8")
        folder = Path()
    elif not os.path.lexists(text) and Path(text).name == text and not text.endswith(".toml"):
        raise InputError(
            f"{cut(text)}: is neither a file nor a bundled study; name a TOML file, "
            f"or one of {', '.join(bundled_studies())}"
        )
    else:
        source, folder = read_text(text), Path(text).parent
    with naming(text):
        try:
            content = tomllib.loads(source)
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"is not TOML ({error}); correct it there") from None
        except RecursionError:
            raise InputError("is nested too deeply; use the documented form") from None
        except ValueError:
            raise too_many_digits() from None
        return _read(content, folder)


_TOP = ("name", "maps", "experiments", "variants", "evaluations", "seeds", "noise", "robot")
_HIDDEN = ("trials", "ticks")  # for studies that try something out


def _read(content: dict[str, Any], folder: Path) -> Definition:
    _check_keys("the study", content, _TOP, hidden=_HIDDEN, needed=("maps", "experiments"))
    name = content.get("name", "study")
    if not isinstance(name, str) or not name.strip():
        raise InputError(f"name is {short(name)}; give a text")
    evaluations = _integer("evaluations", content.get("evaluations", EVALUATIONS), 1)
    seeds = _list("seeds", content.get("seeds", [1]))
    for seed in seeds:
        _integer("seeds", seed, 0)
    noise = check_noise(content.get("noise", NOISE[0]))
    trials = _integer("trials", content.get("trials", TRIALS), 1, 1000)
    ticks = content.get("ticks")
    if ticks is not None:
        _integer("ticks", ticks, 1)
    robot = _robot(content.get("robot", {}))
    listed = content.get("variants", {})
    if not isinstance(listed, dict):
        raise InputError(f"variants is {short(listed)}; give a table with an entry per label")
    defined = {label: _variant(label, entry) for label, entry in listed.items()}
    given: dict[str, list[Any]] = {}
    experiments = []
    for number, entry in enumerate(_list("experiments", content["experiments"]), 1):
        with naming(f"experiment {number}"):
            experiments.append(_experiment(entry, folder, defined, given))
    used = dict.fromkeys(label for each in experiments for label in each.learners)
    for label in defined:
        if label not in used:
            raise InputError(
                f"variants: no experiment names {short(label)}; add it to learners, or leave it out"
            )
    definition = Definition(
        name=name,
        maps=_maps(content["maps"], folder),
        experiments=tuple(experiments),
        variants={label: defined.get(label) or _variant(label, {}) for label in used},
        evaluations=evaluations,
        seeds=tuple(seeds),
        noise=noise,
        trials=trials,
        ticks=ticks,
        robot=robot,
        given=given,
    )
    _check_size(definition)
    return definition


def _check_size(definition: Definition) -> None:
    """InputError when a study has too many runs."""
    if len(definition.maps) * len(definition.seeds) * len(definition.variants) * 20 > MAX_RUNS:
        raise InputError(f"the study has more than {MAX_RUNS:,} runs; make several of it")


def _check_keys(
    what: str,
    table: Any,
    known: Collection[str],
    *,
    hidden: Collection[str] = (),
    needed: Collection[str] = (),
) -> None:
    if not isinstance(table, dict):
        raise InputError(f"{what} is {short(table)}; give a table")
    for name in table:
        if name not in known and name not in hidden:
            raise InputError(f"{what} has no key {short(name)}; use {', '.join(known)}")
    for name in needed:
        if name not in table:
            raise InputError(f"{what} has no {name}; add it")


def _integer(what: str, value: Any, least: int, most: int = _MOST) -> int:
    if not is_integer(value) or not least <= value <= most:
        raise InputError(f"{what} is {short(value)}; give an integer, {least} to {most}")
    return value


def _list(what: str, value: Any) -> list[Any]:
    """A list with at least one entry, each of them once."""
    if not isinstance(value, list) or not value:
        raise InputError(f"{what} is {short(value)}; give a list with at least one entry")
    for number, entry in enumerate(value):
        if entry in value[:number]:
            raise InputError(f"{what} has {short(entry)} twice; keep one")
    return value


def _texts(what: str, value: Any) -> tuple[str, ...]:
    for entry in _list(what, value):
        if not isinstance(entry, str) or not entry:
            raise InputError(f"{what} has {short(entry)}; give texts")
    return tuple(value)


def _robot(table: Any) -> dict[str, Any]:
    _check_keys("robot", table, ROBOT_KEYS)
    for name, value in table.items():
        if not is_finite_number(value):
            raise InputError(f"robot: {name} is {short(value)}; give a number")
    values: dict[str, Any] = {name: float(value) for name, value in table.items()}
    with naming("robot"):
        Robot(**values)
    return values


def _variant(label: str, table: Any) -> Variant:
    with naming(f"variants: {label}"):
        if not isinstance(table, dict):
            raise InputError(f"is {short(table)}; give a table of options")
        options = {name.replace("-", "_"): value for name, value in table.items()}
        learner = options.pop("learner", label)
        if learner not in LEARNERS:
            raise InputError(
                f"there is no learner {short(learner)}; name one of {', '.join(LEARNERS)}"
            )
        if label in LEARNERS and label != learner:
            raise InputError(f"is the name of a learner, but has the learner {learner}; rename it")
        return Variant(label, learner, Options.of(learner, options).to_json(learner))


def _experiment(
    table: Any, folder: Path, defined: Mapping[str, Variant], given: dict[str, list[Any]]
) -> Experiment:
    known = ("disturbances", "learners", "conditions")
    _check_keys("it", table, known, needed=known[:2])
    disturbances = _texts("disturbances", table["disturbances"])
    for name in disturbances:
        if name not in CONDITION_KINDS and name not in given:
            if not name.endswith(".json"):
                raise InputError(
                    f"disturbances: there is no {short(name)}; name a JSON file, "
                    f"or some of {', '.join(CONDITION_KINDS)}"
                )
            given[name] = [entry.to_json() for entry in load_disturbances(folder / name)]
    learners = _texts("learners", table["learners"])
    for label in learners:
        if label not in defined and label not in LEARNERS:
            raise InputError(
                f"learners: {short(label)} is neither a learner nor in variants; "
                f"name some of {', '.join([*map(cut, defined), *LEARNERS])}"
            )
    count = table.get("conditions")
    if count is not None:
        _integer("conditions", count, 1)
    return Experiment(disturbances, learners, count)


def _maps(value: Any, folder: Path) -> tuple[MapEntry, ...]:
    entries: list[MapEntry] = []
    for item in _list("maps", value):
        if isinstance(item, dict):
            _check_keys("maps: an entry", item, ("map", "replicate"), needed=("map",))
            name, replicate = item["map"], item.get("replicate")
        else:
            name, replicate = item, None
        if not isinstance(name, str) or not name:
            raise InputError(f"maps has {short(name)}; give names of maps")
        beside = folder / name
        in_file = is_file(beside) or "/" in name or os.sep in name or name.endswith(".map")
        path = str(beside) if in_file else name
        if replicate is None:
            made = load_map(path).made.get("seed")
            replicate = 1 if made is None else made
        entry = MapEntry(name, _integer("maps: replicate", replicate, 0, 2**53), path)
        if entry in entries:
            raise InputError(f"maps has {cut(name)} twice for replicate {replicate}; keep one")
        entries.append(entry)
    return tuple(entries)


_STORED = ("name", "maps", "experiments", "variants", "evaluations", "seeds", "trials", "ticks")
_SINCE = ("noise",)  # not in the oldest journals


def definition_from_json(value: Any) -> Definition:
    """The definition whose `to_json` gave this value; InputError when it is none."""
    try:
        needed = (*_STORED, "robot", "given")
        _check_keys("it", value, (*needed, *_SINCE), needed=needed)
        given = value["given"]
        for disturbances in given.values():
            from_json(disturbances)
        variants = {
            label: _variant(label, {**entry["options"], "learner": entry["learner"]})
            for label, entry in value["variants"].items()
        }
        experiments = [
            _experiment(
                {name: entry for name, entry in each.items() if entry is not None},
                Path(),
                variants,
                dict(given),
            )
            for each in _list("experiments", value["experiments"])
        ]
        for label in {label for each in experiments for label in each.learners} - set(variants):
            raise InputError(f"there is no variant {short(label)}")
        definition = Definition(
            name=_texts("name", [value["name"]])[0],
            maps=tuple(
                MapEntry(
                    _texts("maps", [entry["map"]])[0],
                    _integer("replicate", entry["replicate"], 0, 2**53),
                )
                for entry in _list("maps", value["maps"])
            ),
            experiments=tuple(experiments),
            variants=variants,
            evaluations=_integer("evaluations", value["evaluations"], 1),
            seeds=tuple(_integer("seeds", seed, 0) for seed in _list("seeds", value["seeds"])),
            noise=check_noise(value.get("noise", NOISE[0])),
            trials=_integer("trials", value["trials"], 1, 1000),
            ticks=None if value["ticks"] is None else _integer("ticks", value["ticks"], 1),
            robot=_robot(value["robot"]),
            given=dict(given),
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        what = f"({error})" if isinstance(error, InputError) else "(it has another form)"
        raise DamageError(f"the study's definition is damaged {what}; {REMEDY}") from None
    _check_size(definition)
    return definition
