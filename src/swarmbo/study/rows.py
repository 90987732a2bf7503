"""The tables of a study's journal: what their rows may hold, and the digest that ends each.

docs/studies.md describes the columns.
"""

import hashlib
import json
import math
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from swarmbo.errors import InputError, short

FORMAT = "swarmbo study 2"
FORMATS = (FORMAT, "swarmbo study 1")  # the latter has no digests and no copies
UNREADABLE = (sqlite3.DatabaseError, UnicodeDecodeError)  # the latter of SQLite's own words
REMEDY = "swarmbo study repair keeps all rows that are sound"
_LARGEST = 2.0**53


class _Kind(NamedTuple):
    """What a column holds."""

    sql: str
    types: tuple[type, ...]
    least: float = -math.inf
    most: float = math.inf

    def takes(self, value: Any) -> bool:
        """Whether the column may hold a value."""
        if type(value) not in self.types:
            return False
        if not isinstance(value, int | float):
            return True
        return math.isfinite(value) and self.least <= value <= self.most


_TEXT = _Kind("TEXT NOT NULL", (str,))
_COUNT = _Kind("INTEGER NOT NULL", (int,), 0, _LARGEST)
_POSITIVE = _Kind("INTEGER NOT NULL", (int,), 1, _LARGEST)
_NUMBER = _Kind("REAL NOT NULL", (float,))
_PERHAPS = _Kind("REAL", (float, type(None)))
_CASE = {"disturbance": _TEXT, "replicate": _COUNT, "map": _TEXT, "condition": _COUNT}
_RUN = {**_CASE, "variant": _TEXT, "seed": _COUNT}


class Table(NamedTuple):
    """A table: its columns before the digest, and those that identify a row."""

    columns: Mapping[str, _Kind]
    key: tuple[str, ...]
    constraint: str = ""


TABLES = {
    "study": Table({"name": _TEXT, "value": _TEXT}, ("name",)),
    "copies": Table({"name": _TEXT, "value": _TEXT}, ("name",)),  # of those, on another page
    "maps": Table(
        {
            "map": _TEXT,
            "replicate": _COUNT,
            "checksum": _TEXT,
            "cells": _POSITIVE,
            "robots": _POSITIVE,
        },
        ("map", "replicate"),
    ),
    "sessions": Table(
        {
            "session": _POSITIVE,
            "begun": _TEXT,
            "seconds": _NUMBER._replace(least=0),
            "machine": _TEXT,
            "options": _TEXT,
        },
        ("session",),
    ),
    "conditions": Table(
        {
            **_CASE,
            "before": _NUMBER,
            "at_fault": _NUMBER,
            "exhaustive": _NUMBER,
            "exhaustive_cell": _COUNT,
        },
        tuple(_CASE),
    ),
    "runs": Table(
        {
            "run": _POSITIVE,
            **_RUN,
            "learner": _TEXT,
            "learner_seed": _COUNT,
            "robots": _POSITIVE,
            "evaluations": _POSITIVE,
            "best": _NUMBER,
            "composed": _PERHAPS,
            "team": _TEXT,
        },
        ("run",),
        f"UNIQUE ({', '.join(_RUN)})",
    ),
    "evaluations": Table(
        {
            "run": _POSITIVE._replace(sql="INTEGER NOT NULL REFERENCES runs"),
            "number": _POSITIVE,
            "robot": _COUNT._replace(least=-1),
            "cell": _Kind("INTEGER", (int, type(None)), 0, _LARGEST),
            "outcome": _PERHAPS,
            "best": _PERHAPS,
        },
        ("run", "number", "robot"),
    ),
}


NUMBERED = ("sessions", "runs")  # tables whose key is the number of the row


def create_tables(connection: sqlite3.Connection) -> None:
    """Make the tables in an empty database."""
    for name, table in TABLES.items():
        numbered = name in NUMBERED
        columns = [f"{column} {kind.sql}" for column, kind in table.columns.items()]
        if numbered:
            columns[0] = f"{table.key[0]} INTEGER PRIMARY KEY"
        columns.append("digest TEXT NOT NULL")
        if not numbered:
            columns.append(f"PRIMARY KEY ({', '.join(table.key)})")
        if table.constraint:
            columns.append(table.constraint)
        end = "" if numbered else " WITHOUT ROWID"
        connection.execute(f"CREATE TABLE {name} ({', '.join(columns)}){end}")


def insert(
    connection: sqlite3.Connection, table: str, values: Sequence[Any], *, replace: bool = False
) -> None:
    """Write a row with its digest; with `replace` in the place of one with the same key."""
    kinds = TABLES[table].columns.values()
    row = [_plain(value, kind) for value, kind in zip(values, kinds, strict=True)]
    insertion = "INSERT OR REPLACE" if replace else "INSERT"
    marks = ", ?" * len(row)
    connection.execute(f"{insertion} INTO {table} VALUES (?{marks})", (*row, _digest(table, row)))


def _plain(value: Any, kind: _Kind) -> Any:
    """A value as SQLite gives it back: it has no -0.0."""
    return float(value) + 0.0 if float in kind.types and value is not None else value


def _digest(table: str, row: Sequence[Any]) -> str:
    text = json.dumps([table, *row], separators=(",", ":"))
    return hashlib.blake2b(text.encode("ascii"), digest_size=8).hexdigest()


class DamageError(InputError):
    """A row that is not as it was written."""


class Rows:
    """The rows of a journal, each checked as it is read.

    InputError when it has other tables or is of another version; not without `check`.
    """

    def __init__(self, connection: sqlite3.Connection, *, check: bool = True) -> None:
        self._connection = connection
        connection.text_factory = decoded
        connection.execute("PRAGMA trusted_schema = OFF")
        self.digests = "digest" in self._columns("study")
        if check:
            self._check_tables()
            self._check_format()

    @property
    def tables(self) -> list[str]:
        """The names of the tables."""
        return [name for name in TABLES if self.digests or name != "copies"]

    def _columns(self, table: str) -> list[str]:
        found = self._connection.execute(f"PRAGMA table_xinfo({table})")
        return [name for _, name, _, _, _, _, hidden in found if not hidden]

    def columns(self, table: str) -> list[str]:
        """The names of a table's columns, that of the digest the last if there is one."""
        return [*TABLES[table].columns, *["digest"] * self.digests]

    def _check_tables(self) -> None:
        """InputError when the tables are not those of a journal."""
        listed = self._connection.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
        tables = {name for kind, name, sql in listed if kind == "table"}
        if not set(self.tables) <= tables:
            raise DamageError("is not the journal of a study; name another folder")
        for kind, name, sql in listed:
            if (kind != "table" or name not in TABLES) and not (kind == "index" and sql is None):
                raise DamageError(f"has the {kind} {short(name)}, which no journal has; {REMEDY}")
        for name in self.tables:
            if self._columns(name) != self.columns(name):
                raise DamageError(f"the table {name} has other columns than a journal; {REMEDY}")

    def _check_format(self) -> None:
        row = self._connection.execute(
            f"SELECT {', '.join(self.columns('study'))} FROM study WHERE name = 'format'"
        ).fetchone()
        if row is None:
            return  # of a study that has not begun
        sound = self.sound("study", row)
        known = [json.dumps(name) for name in FORMATS]
        if row[1] not in known:
            words = "is of another version of swarmbo"
            if sound:
                raise InputError(f"{words}; this one reads {FORMAT!r}")
            raise DamageError(f"{words}, or damaged; {REMEDY}")
        if not sound:
            raise DamageError(f"the row of study with name 'format' is damaged; {REMEDY}")
        if row[1] != known[not self.digests]:
            raise DamageError(f"its rows do not go with its format {row[1]}; {REMEDY}")

    def read(self, table: str, clause: str = "", values: Sequence[Any] = ()) -> Iterator[Any]:
        """The rows of a table, as tuples without digests; DamageError at one that is unsound."""
        names = ", ".join(self.columns(table))
        for row in self._connection.execute(f"SELECT {names} FROM {table} {clause}", values):
            yield self._checked(table, row)

    def sound(self, table: str, row: Sequence[Any]) -> bool:
        """Whether a row, with its digest if there are any, is as it was written."""
        try:
            self._checked(table, row)
        except DamageError:
            return False
        return True

    def _checked(self, table: str, row: Sequence[Any]) -> tuple[Any, ...]:
        columns = TABLES[table].columns
        values = tuple(row[: len(columns)])
        flaw = ""
        for (name, kind), value in zip(columns.items(), values, strict=True):
            if not kind.takes(value):
                flaw = f"{name} is {short(value)}"
        if not flaw and self.digests and row[-1] != _digest(table, values):
            flaw = "its digest does not fit"
        if flaw:
            key = [
                f"{name} {short(value)}"
                for name, value in zip(columns, values, strict=True)
                if name in TABLES[table].key
            ]
            raise DamageError(
                f"the row of {table} with {', '.join(key)} is damaged ({flaw}); {REMEDY}"
            )
        return values


def decoded(text: bytes) -> str:
    """A text of a journal, also one that is not UTF-8."""
    return text.decode("utf-8", "replace")
