"""What is sound in a damaged journal, written into a new one."""

import os
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from swarmbo.errors import InputError, naming
from swarmbo.files import free_name
from swarmbo.study.definition import Definition, RunKey, definition_from_json
from swarmbo.study.journal import (
    FILES,
    JOURNAL,
    check_writable,
    evaluations_of,
    has_journal,
    load_results,
    new_journal,
    no_study,
    parsed,
    work_on,
)
from swarmbo.study.rows import NUMBERED, TABLES, UNREADABLE, DamageError, Rows, decoded, insert

PAGE = 4096  # bytes of a page of a journal
KEPT = (JOURNAL, f"{JOURNAL}-wal")  # of a damaged one


class Repair(NamedTuple):
    """What was sound in a journal."""

    runs: int
    conditions: int  # whose references were sound
    damaged: Path | None  # where the damaged journal is; None when all was sound


def repair_study(folder: str | os.PathLike[str]) -> Repair:
    """Write the sound rows of a study's journal into a new one, and keep the damaged one beside.

    A run is kept if all of its evaluations are sound; the others are done again when
    the study is run. Nothing is written when all is sound. InputError when the study's
    definition is not.
    """
    if not has_journal(folder):
        raise no_study(folder)
    path = Path(folder).resolve() / JOURNAL
    with work_on(folder), naming(path):
        try:
            results = load_results(folder)
            check_writable(path)
            return Repair(len(results.runs), len(results.references), None)
        except DamageError:
            pass
        sound = _sound_rows(path)
        _keep_complete_runs(sound, _definition(sound))
        damaged = _kept(path)
        with new_journal(path) as connection:
            for table, rows in sound.items():
                for row in rows.values():
                    insert(connection, table, row)
        return Repair(len(sound["runs"]), len(sound["conditions"]), damaged)


Sound = dict[str, dict[Any, Any]]  # per table: rows by key


def _kept(path: Path) -> Path:
    """Copy a journal, with what belongs to it, to another name."""
    place = free_name(path.with_name(f"{path.name}.damaged"))
    for name in FILES:
        if name in KEPT and (source := path.with_name(name)).is_file():
            shutil.copy2(source, place.with_name(place.name + name.removeprefix(JOURNAL)))
    return place


def _sound_rows(path: Path) -> Sound:
    """All sound rows of a journal that can be read in some way."""
    sound: Sound = {table: {} for table in TABLES}
    with TemporaryDirectory() as folder:
        for heading in (None, _first_page(Path(folder))):
            copy = Path(folder) / ("as it is" if heading is None else "with a new first page")
            copy.mkdir()
            for name in FILES:
                if name.startswith(JOURNAL) and path.with_name(name).is_file():
                    shutil.copy(path.with_name(name), copy / name)
            _fill_up(copy / JOURNAL)
            if heading is not None:
                _replace_first_page(copy / JOURNAL, heading)
            try:
                with closing(sqlite3.connect(copy / JOURNAL)) as connection:
                    rows = Rows(connection, check=False)
            except UNREADABLE:
                continue
            for table in rows.tables:
                count = len(TABLES[table].key)
                for row in _readable(copy / JOURNAL, rows, table):
                    if rows.sound(table, row):
                        values = tuple(row[: len(TABLES[table].columns)])
                        sound[table].setdefault(values[:count], values)
    return sound


def _fill_up(path: Path) -> None:
    """Give a journal that was cut off whole pages, and as many as there are tables at least."""
    size = path.stat().st_size
    pages = max(-(-size // PAGE), len(TABLES) + 2)
    with path.open("ab") as file:
        file.write(bytes(pages * PAGE - size))


def _first_page(folder: Path) -> bytes:
    """The first page of any journal: SQLite's header, and where the tables begin."""
    with new_journal(folder / "new"):
        pass
    return (folder / "new").read_bytes()[:PAGE]


def _replace_first_page(path: Path, page: bytes) -> None:
    """Give a journal a first page; the number of its pages is in bytes 28 to 31."""
    content = path.read_bytes()
    pages = max(1, len(content) // PAGE)
    path.write_bytes(page[:28] + pages.to_bytes(4, "big") + page[32:] + content[PAGE:])


def _readable(path: Path, rows: Rows, table: str) -> Iterator[Any]:
    """What can be read of a table: from its beginning, from its end, or page by page."""
    query = f"SELECT {', '.join(rows.columns(table))} FROM {table}"
    for order in ("ASC", "DESC"):
        by = ", ".join(f"{name} {order}" for name in TABLES[table].key)
        try:
            with closing(sqlite3.connect(path)) as connection:
                connection.text_factory = decoded
                yield from connection.execute(f"{query} ORDER BY {by}")
                return
        except UNREADABLE:
            pass
    leaf = KINDS[3] if table in NUMBERED else KINDS[2]
    first_bytes = path.read_bytes()[PAGE::PAGE]
    for page, kind in enumerate(first_bytes, 2):
        if kind in KINDS and kind != leaf:
            continue
        with suppress(*UNREADABLE), closing(_rooted_at(path, table, page)) as connection:
            yield from connection.execute(query)


KINDS = b"\x02\x05\x0a\x0d"  # with which pages of rows begin


def _rooted_at(path: Path, table: str, page: int) -> sqlite3.Connection:
    """A connection in which a table consists of one page and those below it."""
    with path.open("r+b") as file:
        file.seek(PAGE * (page - 1))
        if file.read(1) not in KINDS:
            file.seek(PAGE * (page - 1))
            file.write(KINDS[3:] if table in NUMBERED else KINDS[2:3])
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA synchronous = OFF")  # of a copy
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_master SET rootpage = ? WHERE name = ?", (page, table))
    connection = sqlite3.connect(path)
    connection.text_factory = decoded
    return connection


def _definition(sound: Sound) -> Definition:
    """The definition, from its value or the copy; what else is there once comes from its copy."""
    values, copies = sound["study"], sound["copies"]
    for name in ("definition", "device", "versions"):
        for one, other in ((values, copies), (copies, values)):
            if (name,) in one:
                other.setdefault((name,), one[name,])
        if (name,) not in values:
            raise InputError(
                f"the study's {name} is damaged and cannot be had back; begin the study anew in "
                "another folder"
            )
    return definition_from_json(parsed("the definition", values["definition",][1]))


def _keep_complete_runs(sound: Sound, definition: Definition) -> None:
    """Leave out runs that the study does not have or that lack evaluations, and their rows."""
    there = Counter(run for run, *_ in sound["evaluations"])
    kept: dict[RunKey, int] = {}
    for (number,), row in sound["runs"].items():
        key = RunKey(*row[1:7])
        if key in definition.runs and there[number] == evaluations_of(row):
            kept.setdefault(key, number)
    numbers = set(kept.values())
    for table in ("runs", "evaluations"):
        sound[table] = {key: row for key, row in sound[table].items() if key[0] in numbers}
    known = {key.case for key in definition.runs}
    sound["conditions"] = {key: row for key, row in sound["conditions"].items() if key in known}
