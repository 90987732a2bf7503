"""The journal of a study: an SQLite file in the study's folder.

One transaction per finished run, so that stopping at any moment, however rudely,
loses only the runs that were under way. docs/studies.md describes the tables.
"""

import errno
import json
import math
import os
import platform
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from swarmbo.adaptation.options import CENTRALISED
from swarmbo.errors import InputError, LostFileError, cut, naming, short
from swarmbo.files import (
    Identity,
    Lock,
    check_folder,
    check_path,
    free_name,
    give_usual_rights,
    identity,
    locked,
    rename_to_new,
    unfinished,
)
from swarmbo.study.definition import CaseKey, Definition, RunKey, definition_from_json
from swarmbo.study.rows import (
    FORMAT,
    REMEDY,
    UNREADABLE,
    DamageError,
    Rows,
    create_tables,
    insert,
)
from swarmbo.version import __version__

if TYPE_CHECKING:
    import pandas as pd

JOURNAL = "study.sqlite"
LOCK = "study.lock"
_SUFFIXES = ("", "-wal", "-shm", "-journal")
FILES = tuple(name + suffix for name in (JOURNAL, LOCK) for suffix in _SUFFIXES)


class FinishedCondition(NamedTuple):
    """What runs under a condition are compared with, in items per robot."""

    key: CaseKey
    before: float
    at_fault: float
    exhaustive: float
    exhaustive_cell: int


class FinishedEvaluation(NamedTuple):
    """What a swarm (robot -1) or a robot tried, in items per robot."""

    number: int  # from 1
    robot: int
    cell: int | None
    outcome: float | None
    best: float | None


class FinishedRun(NamedTuple):
    """A run that has come to its end, in items per robot."""

    key: RunKey
    learner: str
    learner_seed: int
    robots: int
    best: float  # mean over the robots of the best that each knows of
    composed: float | None
    team: tuple[int, ...]  # rows of the controllers after adaptation
    evaluations: tuple[FinishedEvaluation, ...]


@dataclass(frozen=True, eq=False)
class Results:
    """All that a study has found so far; performances are in items per robot.

    `runs`: run, table, disturbance, replicate, condition, learner, variant, map,
    robots, evaluations, composed (NaN for a centralised learner), seed.
    `evaluations`: run, number (from 1), robot (-1 for a centralised swarm), cell
    (-1 for none), outcome, best (both NaN for a robot that is no worker).
    `references`: disturbance, replicate, condition, map, before, at_fault,
    exhaustive, exhaustive_cell. `about`: how it was made.
    """

    runs: "pd.DataFrame"
    evaluations: "pd.DataFrame"
    references: "pd.DataFrame"
    about: dict[str, Any]


def versions() -> dict[str, str]:
    """The versions of what a study's bits depend on."""
    return {"swarmbo": __version__} | {name: version(name) for name in ("numba", "numpy", "scipy")}


def machine() -> dict[str, Any]:
    """What this machine is."""
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        model = next(line.split(":", 1)[1].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):
        pass
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


# --- writing -----------------------------------------------------------------------------------


def check_study_folder(folder: str | os.PathLike[str]) -> None:
    """InputError when a study cannot be in a folder; call it before the work."""
    there = Path(folder)
    is_study = (there / JOURNAL).is_file()  # then what else is there does not matter
    known = [path.name for path in there.iterdir()] if is_study else FILES
    check_folder(folder, known, "but no study")


class Journal:
    """The journal of a study, open for writing by one process at a time.

    OSError, naming the file, when the disk is full. LostFileError when the journal or
    its lock was deleted during the work; what was known is saved then.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path, lock: Lock) -> None:
        self._connection = connection
        self._path = path
        self._lock = lock
        self._files: dict[str, Identity | None] = {}  # with which SQLite works
        self._session: int | None = None
        with naming(path), _disk(path):
            self._rows = sound_rows(connection)

    @classmethod
    @contextmanager
    def open(cls, folder: str | os.PathLike[str]) -> Iterator["Journal"]:
        """The journal in a folder, made where there is none; InputError when another has it."""
        check_study_folder(folder)
        made = not Path(folder).is_dir()
        Path(folder).mkdir(exist_ok=True)
        path = Path(folder) / JOURNAL
        try:
            with work_on(folder) as lock:
                with naming(path), _disk(path):
                    _prepare(path)
                    connection = _connected(path)
                with closing(connection):
                    yield cls(connection, path, lock)
        finally:
            if made and not path.exists():
                _remove_empty(Path(folder))

    def read(self, name: str) -> Any:
        """A value of the study as a whole, None where there is none."""
        return stored(self._rows, name)

    def definition(self) -> Definition | None:
        """The study's definition; None of a new journal."""
        found = self.read("definition")
        return None if found is None else definition_from_json(found)

    def begin(
        self, definition: Definition, device: str, checksums: Mapping[tuple[str, int], Any]
    ) -> None:
        """Begin or continue a study.

        `checksums` has checksum, cells and robots of maps, by name and replicate.
        InputError when what the journal has was made otherwise.
        """
        with naming(self._path):
            before = self.definition()
            if before is not None:
                definition.check_extends(before)
                self._check_same("device", device)
                known = stored_versions(self._rows)
                for name, mine in versions().items():
                    theirs = known.get(name)
                    if mine != theirs:
                        raise InputError(
                            f"the study was begun with {name} {theirs}, not {mine}; "
                            "use that version, or name another folder"
                        )
            there = {
                (name, replicate): content
                for name, replicate, content, *_ in self._rows.read("maps")
            }
            for (name, replicate), (checksum, *_) in checksums.items():
                if there.get((name, replicate), checksum) != checksum:
                    raise InputError(
                        f"the map {name} is another one than when the study was begun; "
                        "use that one, or name another folder"
                    )
        values = {"format": FORMAT, "device": device, "versions": versions()}
        with self._transaction():
            for name, value in (values | {"definition": definition.to_json()}).items():
                for table in ("study", "copies"):
                    insert(self._connection, table, (name, _text(value)), replace=True)
            for key, content in checksums.items():
                if key not in there:
                    insert(self._connection, "maps", (*key, *content))

    def _check_same(self, name: str, value: str) -> None:
        found = self.read(name)
        if found != value:
            raise InputError(
                f"the study was begun with the {name} {short(found)}, not {value}; "
                "use the same, or name another folder"
            )

    def begin_session(self, options: Mapping[str, Any]) -> None:
        """Note that work begins here and now, with these options of the command."""
        begun = datetime.now(UTC).isoformat(timespec="seconds")
        with self._transaction():
            self._session = self._next("sessions", "session")
            row = (self._session, begun, 0, _text(machine()), _text(options))
            insert(self._connection, "sessions", row)

    def _next(self, table: str, column: str) -> int:
        """The number of a new row."""
        (last,) = self._connection.execute(f"SELECT max({column}) FROM {table}").fetchone()
        return (last or 0) + 1

    def finished_runs(self) -> dict[RunKey, tuple[float, float | None]]:
        """The runs that are done: the best that was found, and the composed swarm."""
        with naming(self._path):
            check_complete(self._rows)
            return finished_runs(self._rows, stored_definition(self._rows))

    def finished_conditions(self) -> set[CaseKey]:
        """The cases whose references are done."""
        with naming(self._path):
            return {CaseKey(*row[:4]) for row in self._rows.read("conditions")}

    def add_condition(self, done: FinishedCondition) -> None:
        """Write the references of a condition, unless they are there."""
        with self._transaction():
            clause = "WHERE disturbance = ? AND replicate = ? AND map = ? AND condition = ?"
            if self._is_new("conditions", clause, (*done.key, *done[1:]), done.key):
                insert(self._connection, "conditions", (*done.key, *done[1:]))

    def add_run(self, done: FinishedRun, seconds: float) -> None:
        """Write a finished run, unless it is there.

        `seconds` is how long this session has worked so far.
        """
        values = (
            *done.key,
            done.learner,
            done.learner_seed,
            done.robots,
            max(each.number for each in done.evaluations),
            done.best,
            done.composed,
            _text(list(done.team)),
        )
        clause = "WHERE " + " AND ".join(f"{name} = ?" for name in RunKey._fields)
        with self._transaction():
            run = self._next("runs", "run")
            if self._is_new("runs", clause, (run, *values), done.key):
                insert(self._connection, "runs", (run, *values))
                for each in done.evaluations:
                    insert(self._connection, "evaluations", (run, *each))
            self._note_seconds(seconds)

    def _is_new(self, table: str, clause: str, row: Sequence[Any], key: Sequence[Any]) -> bool:
        """Whether no process has written such a row; InputError when one wrote another result."""
        there = next(self._rows.read(table, clause, key), None)
        if there is not None and there[1:] != tuple(row[1:]):
            raise InputError(
                f"another process has written another result into {table} for "
                f"{', '.join(map(str, key))}; name another folder"
            )
        return there is None

    def note_seconds(self, seconds: float) -> None:
        """Note how long this session has worked so far."""
        with self._transaction():
            self._note_seconds(seconds)

    def _note_seconds(self, seconds: float) -> None:
        (row,) = self._rows.read("sessions", "WHERE session = ?", (self._session,))
        insert(self._connection, "sessions", (*row[:2], seconds, *row[3:]), replace=True)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with naming(self._path), _disk(self._path), self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            yield
        present = {suffix: identity(self._with(suffix)) for suffix in _SUFFIXES[:3]}
        self._files = self._files or present  # SQLite makes some of them when it first writes
        if present[""] != self._files[""]:
            self._save_elsewhere()
        self._lock.check()

    def _with(self, suffix: str) -> Path:
        return self._path.with_name(self._path.name + suffix)

    def _save_elsewhere(self) -> None:
        """Write a journal that was deleted anew, or beside what took its place, and say so."""
        with _disk(self._path):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            for suffix in _SUFFIXES[1:3]:  # or they were taken for those of the new journal
                if self._files[suffix] == identity(self._with(suffix)):
                    self._with(suffix).unlink(missing_ok=True)
            place = free_name(self._path)
            with unfinished(place.parent) as temporary:
                with closing(sqlite3.connect(temporary)) as copy:
                    self._connection.backup(copy)
                give_usual_rights(temporary)
                rename_to_new(temporary, place)
        where = "there again"
        if place != self._path:
            where = f"in {place.name}: give it the name {self._path.name}"
        raise LostFileError(
            f"{cut(self._path)}: was deleted during the work; what is known is {where}; run "
            "the same command again to go on"
        )

    def check_written(self, runs: int) -> None:
        """LostFileError when what is in the file now is not what was written, `runs` in all."""
        try:
            with reading(self._path.parent) as rows:
                found = sum(1 for _ in rows.read("runs"))
        except InputError as error:
            raise LostFileError(f"{error}: it was changed by others during the work") from None
        if found != runs:
            raise LostFileError(
                f"{cut(self._path)}: has {found} runs instead of {runs}: it was changed by others "
                "during the work; run the same command again to do the rest"
            )


@contextmanager
def work_on(folder: str | os.PathLike[str]) -> Iterator[Lock]:
    """Keep other processes from a study's folder; InputError when one is at work on it."""
    busy = f"{cut(folder)}: another process is at work on this study; wait for it or stop it"
    with locked(Path(folder) / LOCK, busy) as lock:
        yield lock


def _text(value: Any) -> str:
    return json.dumps(value, allow_nan=False)


def at_work(folder: str | os.PathLike[str]) -> bool:
    """Whether a process is at work on the study in a folder."""
    path = Path(folder).resolve() / LOCK
    try:
        uri = f"{path.as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, timeout=0)) as connection:
            connection.execute("SELECT 1 FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as error:
        return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
    except sqlite3.DatabaseError:
        return False
    return False


def _prepare(path: Path) -> None:
    """Make a journal where there is none, and digests in one that was made before they were."""
    if path.is_file():
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            if not _is_empty(connection):
                if not Rows(connection).digests:
                    _checkpoint(connection)
                    rows = sound_rows(connection)
                    check_complete(rows)
                    with new_journal(path) as copy:
                        for table in rows.tables:
                            for row in rows.read(table):
                                insert(copy, table, row)
                return
    with new_journal(path):
        pass


def _checkpoint(connection: sqlite3.Connection) -> None:
    """Move what is in the journal's -wal file into the journal itself."""
    busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if busy:
        raise InputError("another process reads it; start the same command again")


@contextmanager
def new_journal(path: Path) -> Iterator[sqlite3.Connection]:
    """Yield a new journal, with its tables, that takes its place if the block succeeds."""
    path = path.resolve()  # a link stays a link
    with unfinished(path.parent, as_folder=True) as folder:
        temporary = folder / path.name
        with closing(sqlite3.connect(temporary, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            with connection:
                connection.execute("BEGIN")
                create_tables(connection)
                yield connection
                insert(connection, "study", ("format", _text(FORMAT)), replace=True)
        for suffix in _SUFFIXES[1:]:  # of a journal that was deleted without them
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        temporary.replace(path)


def _connected(path: Path) -> sqlite3.Connection:
    """A connection to a journal, for writing."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


def check_writable(path: Path) -> None:
    """DamageError when a journal's header keeps SQLite from writing to it."""
    with naming(path), _disk(path), closing(_connected(path)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("CREATE TABLE probe (x)")
        connection.execute("ROLLBACK")


def _is_empty(connection: sqlite3.Connection) -> bool:
    """Whether a database has no tables: a process was killed before it made them."""
    return connection.execute("SELECT 1 FROM sqlite_master").fetchone() is None


@contextmanager
def _disk(path: Path) -> Iterator[None]:
    """Errors of SQLite as those of the file: OSError of a full disk, InputError of damage."""
    try:
        yield
    except UNREADABLE as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        damaged = code in _DAMAGED
        if code == sqlite3.SQLITE_READONLY:  # or it is its header that says so
            damaged = os.access(path, os.W_OK)
        if isinstance(error, sqlite3.OperationalError) and not damaged:
            number = errno.ENOSPC if code == sqlite3.SQLITE_FULL else errno.EIO
            raise OSError(number, str(error), str(path)) from None
        raise DamageError(f"{_not_sound(error)}; {REMEDY}") from None


_DAMAGED = (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR)


def _not_sound(error: Exception) -> str:
    return f"is not the journal of a study, or damaged ({error})"


def _remove_empty(folder: Path) -> None:
    """Remove a folder that was made for nothing."""
    for name in FILES:
        (folder / name).unlink(missing_ok=True)
    with suppress(OSError):
        folder.rmdir()


# --- reading -----------------------------------------------------------------------------------


def has_journal(folder: str | os.PathLike[str]) -> bool:
    """Whether a folder holds a journal; an empty one is none."""
    check_path(folder)
    path = Path(folder).resolve() / JOURNAL
    if not path.is_file():
        return False
    try:
        with closing(_read_only(path)) as connection:
            return not _is_empty(connection)
    except UNREADABLE:
        return True  # a damaged one


def no_study(folder: str | os.PathLike[str]) -> InputError:
    """What is said of a folder without a journal."""
    return InputError(
        f"{cut(folder)}: holds no study; name a folder that swarmbo study run has made"
    )


@contextmanager
def reading(folder: str | os.PathLike[str]) -> Iterator[Rows]:
    """A study's rows to read, also while another process writes; InputError if there are none."""
    if not has_journal(folder):
        raise no_study(folder)
    path = Path(folder).resolve() / JOURNAL
    try:
        with naming(path), closing(_read_only(path)) as connection:
            connection.execute("BEGIN")  # one state of the journal for all that is read
            yield sound_rows(connection)
    except UNREADABLE as error:
        raise DamageError(f"{cut(path)}: {_not_sound(error)}; {REMEDY}") from None


def _read_only(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, isolation_level=None)
    try:
        connection.execute("SELECT 1 FROM sqlite_master")
    except sqlite3.OperationalError:  # a folder in which SQLite cannot make its files
        connection.close()
        connection = sqlite3.connect(f"{path.as_uri()}?immutable=1", uri=True, isolation_level=None)
    return connection


def sound_rows(connection: sqlite3.Connection) -> Rows:
    """The rows of a journal; InputError when SQLite finds its pages or references damaged."""
    rows = Rows(connection)
    (found,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if found != "ok":
        raise DamageError(f"is damaged ({' '.join(found.split())}); {REMEDY}")
    lost = connection.execute("PRAGMA foreign_key_check").fetchone()
    if lost is not None:
        raise DamageError(f"a row of {lost[0]} belongs to no row of {lost[2]}; {REMEDY}")
    return rows


def check_complete(rows: Rows) -> None:
    """InputError when a run lacks evaluations or has damaged ones, or a copy is damaged."""
    if rows.digests:
        for _ in rows.read("copies"):
            pass
    wanted = {row[0]: evaluations_of(row) for row in rows.read("runs")}
    there = Counter(run for run, *_ in rows.read("evaluations"))
    for run, count in wanted.items():
        if there[run] != count:
            raise DamageError(
                f"the run {run} has {there[run]} evaluations instead of {count}; {REMEDY}"
            )


def evaluations_of(run: Sequence[Any]) -> int:
    """How many rows of evaluations belong to a row of runs."""
    learner, _, robots, evaluations = run[7:11]
    return int(evaluations * (1 if learner in CENTRALISED else robots))


def stored(rows: Rows, name: str) -> Any:
    """A value of the study as a whole, None where there is none."""
    text = dict(rows.read("study")).get(name)
    return None if text is None else parsed(f"the row of study with name {name!r}", text)


def parsed(what: str, text: str) -> Any:
    """The JSON value in a row; DamageError when there is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise DamageError(f"{what} is damaged (it is not JSON); {REMEDY}") from None


def stored_versions(rows: Rows) -> dict[str, str]:
    """The versions with which a study was begun."""
    found = stored(rows, "versions")
    if not isinstance(found, dict) or not all(isinstance(each, str) for each in found.values()):
        raise DamageError(f"the row of study with name 'versions' is damaged; {REMEDY}")
    return found


def stored_definition(rows: Rows) -> Definition:
    """The definition in a journal; InputError of one that was never begun."""
    found = stored(rows, "definition")
    if found is None:
        if next(rows.read("runs"), None) is not None:
            raise DamageError(f"it has runs but no definition; {REMEDY}")
        raise InputError("the study has not begun; start it with swarmbo study run")
    return definition_from_json(found)


def finished_runs(rows: Rows, definition: Definition) -> dict[RunKey, tuple[float, float | None]]:
    """The runs in a journal: the best that was found, and the composed swarm."""
    return {key: (row[-3], row[-2]) for key, row in _known_runs(rows, definition)}


def _known_runs(rows: Rows, definition: Definition) -> Iterator[tuple[RunKey, Any]]:
    """The runs in a journal with their rows; InputError at one that the study does not have."""
    for row in rows.read("runs"):
        key = RunKey(*row[1:7])
        if key not in definition.runs or definition.variants[key.variant].learner != row[7]:
            raise DamageError(
                f"the row of runs with run {row[0]} is of none of the study's runs; {REMEDY}"
            )
        yield key, row


def load_results(directory: str | os.PathLike[str]) -> Results:
    """What a study has found so far, sorted: equal studies give equal tables.

    InputError for a folder without a study, or with a damaged one.
    """
    import pandas as pd

    with reading(directory) as rows:
        definition = stored_definition(rows)
        check_complete(rows)
        cells = {(name, replicate): count for name, replicate, _, count, _ in rows.read("maps")}
        return Results(
            *_runs_and_evaluations(pd, rows, definition, cells),
            _references(pd, rows, definition, cells),
            _about(rows, definition),
        )


def _runs_and_evaluations(
    pd: Any, rows: Rows, definition: Definition, cells: Mapping[tuple[str, int], int]
) -> tuple["pd.DataFrame", "pd.DataFrame"]:
    runs = []
    numbers: dict[
        int, tuple[int, int | None]
    ] = {}  # of the definition, and how many cells there are
    for key, row in _known_runs(rows, definition):
        learner, _, robots, evaluations, _, composed, _ = row[7:]
        numbers[row[0]] = definition.runs[key], cells.get((key.map, key.replicate))
        where = (key.disturbance, key.replicate, key.condition, learner, key.variant, key.map)
        table = definition.variants[key.variant].table
        number = definition.runs[key]
        runs.append((number, table, *where, robots, evaluations, composed, key.seed))
    tried = []
    for run, number, robot, cell, outcome, best in rows.read("evaluations"):
        which, count = numbers[run]
        if None not in (cell, count) and cell >= count:
            raise DamageError(f"the run {run} tried the cell {cell} of {count}; {REMEDY}")
        tried.append((which, number, robot, -1 if cell is None else cell, outcome, best))
    evaluations = _frame(pd, tried, _EVALUATION_COLUMNS)
    return (
        _frame(pd, sorted(runs, key=lambda row: row[0]), _RUN_COLUMNS),
        evaluations.sort_values(["run", "number", "robot"], ignore_index=True),
    )


def _references(
    pd: Any, rows: Rows, definition: Definition, cells: Mapping[tuple[str, int], int]
) -> "pd.DataFrame":
    order = {name: number for number, name in enumerate(definition.disturbances)}
    places = {entry.name: number for number, entry in enumerate(definition.maps)}
    lines = []
    for row in rows.read("conditions"):
        disturbance, replicate, name, condition, *_, cell = row
        if disturbance not in order or cell >= cells.get((name, replicate), math.inf):
            raise DamageError(
                f"the row of conditions with {disturbance}:{condition} of the map {name} is of "
                f"none of the study's conditions; {REMEDY}"
            )
        lines.append((disturbance, replicate, condition, name, *row[4:]))
    lines.sort(key=lambda row: (order[row[0]], row[1], places.get(row[3], -1), row[2]))
    return _frame(pd, lines, _REFERENCE_COLUMNS)


_RUN_COLUMNS = {
    "run": "int64",
    "table": "str",
    "disturbance": "str",
    "replicate": "int64",
    "condition": "int64",
    "learner": "str",
    "variant": "str",
    "map": "str",
    "robots": "int64",
    "evaluations": "int64",
    "composed": "float64",
    "seed": "int64",
}
_EVALUATION_COLUMNS = {
    "run": "int64",
    "number": "int64",
    "robot": "int64",
    "cell": "int64",
    "outcome": "float64",
    "best": "float64",
}
_REFERENCE_COLUMNS = {
    "disturbance": "str",
    "replicate": "int64",
    "condition": "int64",
    "map": "str",
    "before": "float64",
    "at_fault": "float64",
    "exhaustive": "float64",
    "exhaustive_cell": "int64",
}


def _frame(pd: Any, rows: Iterable[tuple[Any, ...]], columns: Mapping[str, str]) -> "pd.DataFrame":
    frame = pd.DataFrame(list(rows), columns=list(columns))
    kinds = {name: kind for name, kind in columns.items() if kind != "str"}
    return frame.astype(kinds | {name: object for name in columns if name not in kinds})


def _about(rows: Rows, definition: Definition) -> dict[str, Any]:
    sessions = [
        {
            "begun": begun,
            "seconds": seconds,
            "machine": _object(f"the machine of session {number}", machine),
            "options": _object(f"the options of session {number}", options),
        }
        for number, begun, seconds, machine, options in rows.read("sessions", "ORDER BY session")
    ]
    maps = [
        dict(zip(("map", "replicate", "checksum", "cells", "robots"), row, strict=True))
        for row in rows.read("maps", "ORDER BY replicate, map")
    ]
    return {
        "versions": stored_versions(rows),
        "device": stored(rows, "device"),
        "definition": definition.to_json(),
        "options": [session["options"] for session in sessions],
        "machine": sessions[-1]["machine"] if sessions else {},
        "seconds": sum(session["seconds"] for session in sessions),
        "sessions": sessions,
        "maps": maps,
        "runs": len(definition.runs),
    }


def _object(what: str, text: str) -> dict[str, Any]:
    found = parsed(what, text)
    if not isinstance(found, dict):
        raise DamageError(f"{what} is damaged (it is no object); {REMEDY}")
    return found
