"""The journal of a study: an SQLite file in the study's folder.

One transaction per finished run, so that stopping at any moment, however rudely,
loses only the runs that were under way. docs/studies.md describes the tables.
"""

import errno
import json
import os
import platform
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from swarmbo import __version__
from swarmbo.errors import InputError, naming
from swarmbo.files import check_folder, locked
from swarmbo.study.definition import CaseKey, Definition, RunKey, definition_from_json

if TYPE_CHECKING:
    import pandas as pd

JOURNAL = "study.sqlite"
LOCK = "study.lock"
FORMAT = "swarmbo study 1"
_SUFFIXES = ("", "-wal", "-shm", "-journal")
FILES = tuple(name + suffix for name in (JOURNAL, LOCK) for suffix in _SUFFIXES)

_TABLES = """
CREATE TABLE study (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE maps (
    map TEXT NOT NULL, replicate INTEGER NOT NULL, checksum TEXT NOT NULL,
    cells INTEGER NOT NULL, robots INTEGER NOT NULL, PRIMARY KEY (map, replicate)
) WITHOUT ROWID;
CREATE TABLE sessions (
    session INTEGER PRIMARY KEY, begun TEXT NOT NULL, seconds REAL NOT NULL,
    machine TEXT NOT NULL, options TEXT NOT NULL
);
CREATE TABLE conditions (
    disturbance TEXT NOT NULL, replicate INTEGER NOT NULL, map TEXT NOT NULL,
    condition INTEGER NOT NULL, before REAL NOT NULL, at_fault REAL NOT NULL,
    exhaustive REAL NOT NULL, exhaustive_cell INTEGER NOT NULL,
    PRIMARY KEY (disturbance, replicate, map, condition)
) WITHOUT ROWID;
CREATE TABLE runs (
    run INTEGER PRIMARY KEY,
    disturbance TEXT NOT NULL, replicate INTEGER NOT NULL, map TEXT NOT NULL,
    condition INTEGER NOT NULL, variant TEXT NOT NULL, seed INTEGER NOT NULL,
    learner TEXT NOT NULL, learner_seed INTEGER NOT NULL, robots INTEGER NOT NULL,
    evaluations INTEGER NOT NULL, best REAL NOT NULL, composed REAL, team TEXT NOT NULL,
    UNIQUE (disturbance, replicate, map, condition, variant, seed)
);
CREATE TABLE evaluations (
    run INTEGER NOT NULL REFERENCES runs, number INTEGER NOT NULL, robot INTEGER NOT NULL,
    cell INTEGER, outcome REAL, best REAL, PRIMARY KEY (run, number, robot)
) WITHOUT ROWID;
"""


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

    OSError, naming the file, when the disk is full.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path
        self._session: int | None = None

    @classmethod
    @contextmanager
    def open(cls, folder: str | os.PathLike[str]) -> Iterator["Journal"]:
        """The journal in a folder, made where there is none; InputError when another has it."""
        check_study_folder(folder)
        made = not Path(folder).is_dir()
        Path(folder).mkdir(exist_ok=True)
        path = Path(folder) / JOURNAL
        try:
            busy = f"{folder}: another process is at work on this study; wait for it or stop it"
            with locked(Path(folder) / LOCK, busy):
                with naming(path), _disk(path):
                    connection = _connected(path)
                with closing(connection):
                    yield cls(connection, path)
        finally:
            if made and not path.exists():
                _remove_empty(Path(folder))

    def read(self, name: str) -> Any:
        """A value of the study as a whole, None where there is none."""
        found = self._connection.execute(
            "SELECT value FROM study WHERE name = ?", (name,)
        ).fetchone()
        return None if found is None else json.loads(found[0])

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
                for name, mine in versions().items():
                    theirs = self.read("versions").get(name)
                    if mine != theirs:
                        raise InputError(
                            f"the study was begun with {name} {theirs}, not {mine}; "
                            "use that version, or name another folder"
                        )
            for (name, replicate), (checksum, *_) in checksums.items():
                found = self._connection.execute(
                    "SELECT checksum FROM maps WHERE map = ? AND replicate = ?", (name, replicate)
                ).fetchone()
                if found is not None and found[0] != checksum:
                    raise InputError(
                        f"the map {name} is another one than when the study was begun; "
                        "use that one, or name another folder"
                    )
        values = {"format": FORMAT, "device": device, "versions": versions()}
        with self._transaction():
            for name, value in (values | {"definition": definition.to_json()}).items():
                self._connection.execute(
                    "INSERT OR REPLACE INTO study VALUES (?, ?)", (name, _text(value))
                )
            self._connection.executemany(
                "INSERT OR IGNORE INTO maps VALUES (?, ?, ?, ?, ?)",
                [(*key, *values) for key, values in checksums.items()],
            )

    def _check_same(self, name: str, value: str) -> None:
        found = self.read(name)
        if found != value:
            raise InputError(
                f"the study was begun with the {name} {found}, not {value}; "
                "use the same, or name another folder"
            )

    def begin_session(self, options: Mapping[str, Any]) -> None:
        """Note that work begins here and now, with these options of the command."""
        row = (datetime.now(UTC).isoformat(timespec="seconds"), _text(machine()), _text(options))
        with self._transaction():
            self._session = self._connection.execute(
                "INSERT INTO sessions (begun, seconds, machine, options) VALUES (?, 0, ?, ?)", row
            ).lastrowid

    def finished_runs(self) -> dict[RunKey, tuple[float, float | None]]:
        """The runs that are done: the best that was found, and the composed swarm."""
        return finished_runs(self._connection)

    def finished_conditions(self) -> set[CaseKey]:
        """The cases whose references are done."""
        rows = self._connection.execute(
            "SELECT disturbance, replicate, map, condition FROM conditions"
        )
        return {CaseKey(*row) for row in rows}

    def add_condition(self, done: FinishedCondition) -> None:
        """Write the references of a condition."""
        with self._transaction():
            self._connection.execute(
                "INSERT INTO conditions VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (*done.key, *done[1:])
            )

    def add_run(self, done: FinishedRun, seconds: float) -> None:
        """Write a finished run; `seconds` is how long this session has worked so far."""
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
        with self._transaction():
            run = self._connection.execute(
                f"INSERT INTO runs VALUES (NULL{', ?' * len(values)})", values
            ).lastrowid
            self._connection.executemany(
                "INSERT INTO evaluations VALUES (?, ?, ?, ?, ?, ?)",
                ((run, *each) for each in done.evaluations),
            )
            self._note_seconds(seconds)

    def note_seconds(self, seconds: float) -> None:
        """Note how long this session has worked so far."""
        with self._transaction():
            self._note_seconds(seconds)

    def _note_seconds(self, seconds: float) -> None:
        self._connection.execute(
            "UPDATE sessions SET seconds = ? WHERE session = ?", (seconds, self._session)
        )

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with _disk(self._path), self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            yield


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


def _connected(path: Path) -> sqlite3.Connection:
    """A connection to a journal, with its tables; InputError when the file is something else."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")
        names = _table_names(connection)
        if not names:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(f"BEGIN; {_TABLES} COMMIT;")
        else:
            _check_format(connection, names)
    except BaseException:
        connection.close()
        raise
    return connection


def _table_names(connection: sqlite3.Connection) -> set[str]:
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    return {name for (name,) in rows}


def _check_format(connection: sqlite3.Connection, names: set[str]) -> None:
    wanted = {"study", "maps", "sessions", "conditions", "runs", "evaluations"}
    if not wanted <= names:
        raise InputError("is not the journal of a study; name another folder")
    found = connection.execute("SELECT value FROM study WHERE name = 'format'").fetchone()
    if found is not None and json.loads(found[0]) != FORMAT:
        raise InputError(f"is of another version of swarmbo; this one reads {FORMAT!r}")


@contextmanager
def _disk(path: Path) -> Iterator[None]:
    """Errors of SQLite as those of the file: OSError of a full disk, InputError of damage."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
            raise InputError(
                "is not the journal of a study, or damaged; name another folder"
            ) from None
        if isinstance(error, sqlite3.OperationalError):
            number = errno.ENOSPC if code == sqlite3.SQLITE_FULL else errno.EIO
            raise OSError(number, str(error), str(path)) from None
        raise


def _remove_empty(folder: Path) -> None:
    """Remove a folder that was made for nothing."""
    for name in FILES:
        (folder / name).unlink(missing_ok=True)
    folder.rmdir()


# --- reading -----------------------------------------------------------------------------------


@contextmanager
def reading(folder: str | os.PathLike[str]) -> Iterator[sqlite3.Connection]:
    """A study's journal to read, also while another process writes; InputError if there is none."""
    path = Path(folder).resolve() / JOURNAL
    if not path.is_file():
        raise InputError(f"{folder}: holds no study; name a folder that swarmbo study run has made")
    with naming(path):
        try:
            with closing(_read_only(path)) as connection:
                _check_format(connection, _table_names(connection))
                connection.execute("BEGIN")  # one state of the journal for all that is read
                yield connection
        except sqlite3.DatabaseError as error:
            raise InputError(
                f"is not the journal of a study, or damaged ({error}); get it again"
            ) from None


def _read_only(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, isolation_level=None)
    try:
        connection.execute("SELECT 1 FROM sqlite_master")
    except sqlite3.OperationalError:  # a folder in which SQLite cannot make its files
        connection.close()
        connection = sqlite3.connect(f"{path.as_uri()}?immutable=1", uri=True, isolation_level=None)
    return connection


def stored_definition(connection: sqlite3.Connection) -> Definition:
    """The definition in a journal; InputError of one that was never begun."""
    found = connection.execute("SELECT value FROM study WHERE name = 'definition'").fetchone()
    if found is None:
        raise InputError("the study has not begun; start it with swarmbo study run")
    return definition_from_json(json.loads(found[0]))


def finished_runs(connection: sqlite3.Connection) -> dict[RunKey, tuple[float, float | None]]:
    """The runs in a journal: the best that was found, and the composed swarm."""
    rows = connection.execute(
        "SELECT disturbance, replicate, map, condition, variant, seed, best, composed FROM runs"
    )
    return {RunKey(*row[:6]): row[6:] for row in rows}


def load_results(directory: str | os.PathLike[str]) -> Results:
    """What a study has found so far, sorted: equal studies give equal tables.

    InputError for a folder without a study.
    """
    import pandas as pd

    with reading(directory) as connection:
        definition = stored_definition(connection)
        columns = {
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
        rows = []
        numbers: dict[int, int] = {}
        for stored, *found in connection.execute(
            "SELECT run, disturbance, replicate, map, condition, variant, seed, learner, robots, "
            "evaluations, composed FROM runs"
        ):
            key = RunKey(*found[:6])
            number = definition.runs.get(key)
            if number is None or key.variant not in definition.variants:
                raise InputError("holds a run that the study does not have; get it again")
            numbers[stored] = number
            table = definition.variants[key.variant].table
            learner, robots, evaluations, composed = found[6:]
            where = (key.disturbance, key.replicate, key.condition, learner, key.variant, key.map)
            rows.append((number, table, *where, robots, evaluations, composed, key.seed))
        runs = _frame(pd, sorted(rows), columns)
        columns = {
            "run": "int64",
            "number": "int64",
            "robot": "int64",
            "cell": "int64",
            "outcome": "float64",
            "best": "float64",
        }
        selected = connection.execute(
            "SELECT run, number, robot, coalesce(cell, -1), outcome, best FROM evaluations"
        )
        tried = [(numbers[run], *others) for run, *others in selected if run in numbers]
        evaluations = _frame(pd, tried, columns)
        evaluations = evaluations.sort_values(["run", "number", "robot"], ignore_index=True)
        columns = {
            "disturbance": "str",
            "replicate": "int64",
            "condition": "int64",
            "map": "str",
            "before": "float64",
            "at_fault": "float64",
            "exhaustive": "float64",
            "exhaustive_cell": "int64",
        }
        selected = connection.execute(
            "SELECT disturbance, replicate, condition, map, before, at_fault, exhaustive, "
            "exhaustive_cell FROM conditions"
        )
        order = {name: number for number, name in enumerate(definition.disturbances)}
        places = {entry.name: number for number, entry in enumerate(definition.maps)}
        lines = sorted(
            selected,
            key=lambda row: (order.get(row[0], -1), row[1], places.get(row[3], -1), row[2]),
        )
        references = _frame(pd, lines, columns)
        return Results(runs, evaluations, references, _about(connection, definition))


def _frame(pd: Any, rows: Iterable[tuple[Any, ...]], columns: Mapping[str, str]) -> "pd.DataFrame":
    frame = pd.DataFrame(list(rows), columns=list(columns))
    kinds = {name: kind for name, kind in columns.items() if kind != "str"}
    return frame.astype(kinds | {name: object for name in columns if name not in kinds})


def _about(connection: sqlite3.Connection, definition: Definition) -> dict[str, Any]:
    values = {name: json.loads(value) for name, value in connection.execute("SELECT * FROM study")}
    sessions = [
        {
            "begun": begun,
            "seconds": seconds,
            "machine": json.loads(machine),
            "options": json.loads(options),
        }
        for begun, seconds, machine, options in connection.execute(
            "SELECT begun, seconds, machine, options FROM sessions ORDER BY session"
        )
    ]
    maps = [
        dict(zip(("map", "replicate", "checksum", "cells", "robots"), row, strict=True))
        for row in connection.execute("SELECT * FROM maps ORDER BY replicate, map")
    ]
    return {
        "versions": values.get("versions", {}),
        "device": values.get("device"),
        "definition": definition.to_json(),
        "options": [session["options"] for session in sessions],
        "machine": sessions[-1]["machine"] if sessions else {},
        "seconds": sum(session["seconds"] for session in sessions),
        "sessions": sessions,
        "maps": maps,
        "runs": len(definition.runs),
    }
