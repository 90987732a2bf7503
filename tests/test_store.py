"""The journal of a study."""

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from swarmbo import InputError
from swarmbo.errors import LostFileError
from swarmbo.study import journal as store
from swarmbo.study.campaign import Watcher, run_study
from swarmbo.study.definition import Definition, Selection
from swarmbo.study.journal import (
    JOURNAL,
    LOCK,
    FinishedRun,
    Journal,
    at_work,
    load_results,
    reading,
)
from swarmbo.study.repair import repair_study
from swarmbo.study.rows import TABLES, insert
from tests.command import swarmbo
from tests.studies import (
    CONDITIONS,
    ENVIRONMENT,
    EVALUATIONS,
    RUNS,
    assert_equal_studies,
    contents,
    read_study,
    write_study,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished study."""
    place = tmp_path_factory.mktemp("store")
    run_study(read_study(place), place / "out", threads=2)
    return place / "out"


@pytest.fixture
def definition(tmp_path: Path) -> Definition:
    return read_study(tmp_path)


def change(folder: Path, *statements: str) -> None:
    """Change a journal by SQL, without its digests."""
    with closing(sqlite3.connect(folder / JOURNAL)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


# --- what is read ------------------------------------------------------------------------------


def test_results_have_a_row_per_run_evaluation_and_condition(folder: Path) -> None:
    found = load_results(folder)
    assert list(found.runs) == [
        *("run", "table", "disturbance", "replicate", "condition", "learner", "variant", "map"),
        *("robots", "evaluations", "composed", "seed"),
    ]
    assert list(found.evaluations) == ["run", "number", "robot", "cell", "outcome", "best"]
    assert list(found.references) == [
        *("disturbance", "replicate", "condition", "map", "before", "at_fault", "exhaustive"),
        "exhaustive_cell",
    ]
    assert (len(found.runs), len(found.references)) == (RUNS, CONDITIONS)
    assert found.runs.run.tolist() == list(range(RUNS))
    robots = np.where(found.runs.table == "1", 1, found.runs.robots)
    assert len(found.evaluations) == EVALUATIONS * robots.sum()
    assert set(found.runs.robots[found.runs.disturbance == "food-scarcity-2x"]) == {12}
    assert (found.runs.evaluations == EVALUATIONS).all()


def test_centralised_swarms_are_robot_minus_one_and_have_no_composed_swarm(folder: Path) -> None:
    found = load_results(folder)
    central = found.runs[found.runs.table == "1"]
    assert set(central.learner) == {"smbo", "random"}
    assert set(central.variant) == {"smbo", "smooth", "random"}
    assert central.composed.isna().all()
    assert found.runs[found.runs.table == "2a"].composed.notna().all()
    rows = found.evaluations[found.evaluations.run.isin(central.run)]
    assert set(rows.robot) == {-1}
    apart = found.evaluations[~found.evaluations.run.isin(central.run)]
    assert apart.groupby(["run", "number"]).robot.apply(list).map(len).isin([6, 12]).all()


def test_best_so_far_is_the_highest_outcome_of_a_centralised_run(folder: Path) -> None:
    rows = load_results(folder).evaluations
    central = rows[rows.robot == -1]
    assert (central.groupby("run").outcome.cummax() == central.best).all()


def test_first_evaluation_of_smbo_is_the_reference_at_the_fault(folder: Path) -> None:
    found = load_results(folder)
    keys = ["disturbance", "replicate", "condition", "map"]
    runs = found.runs[found.runs.variant == "smbo"].merge(found.references, on=keys)
    first = found.evaluations[found.evaluations.number == 1]
    both = runs.merge(first, on="run")
    assert (both.at_fault == both.outcome).all()
    assert (both.exhaustive >= both.best).all()


def test_about_says_how_it_was_made(folder: Path) -> None:
    about = load_results(folder).about
    assert about["versions"]["numpy"] == np.__version__
    assert about["definition"]["evaluations"] == EVALUATIONS
    assert about["definition"]["variants"]["smooth"]["options"]["length_scale"] == 0.3
    assert about["seconds"] > 0
    assert about["machine"]["cores"] == os.cpu_count()
    assert [entry["map"] for entry in about["maps"]] == ["one.map", "two.map"]
    assert about["options"][0]["threads"] == 2


def test_robot_that_is_no_worker_has_no_cell_and_no_best(tmp_path: Path) -> None:
    text = """
maps = ["one.map"]
evaluations = 2
trials = 1
ticks = 20
[[experiments]]
disturbances = ["software-nest"]
learners = ["smbo-dec"]
conditions = 1
"""
    run_study(read_study(tmp_path, text), tmp_path / "out", threads=1)
    rows = load_results(tmp_path / "out").evaluations
    lost = rows[rows.robot == 0]
    assert lost.cell.tolist() == [-1, -1]
    assert lost[["outcome", "best"]].isna().all(axis=None)
    assert rows[rows.robot > 0].notna().all(axis=None)


def test_journal_in_a_folder_that_cannot_be_written_is_read(folder: Path) -> None:
    folder.chmod(0o555)
    try:
        assert len(load_results(folder).runs) == RUNS
    finally:
        folder.chmod(0o755)


@pytest.mark.parametrize("content", [b"", b"hello" * 1000, None], ids=["empty", "text", "nothing"])
def test_folder_without_a_study_is_refused(content: bytes | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / JOURNAL).write_bytes(content)
    with pytest.raises(InputError, match=r"holds no study|is not the journal of a study"):
        load_results(tmp_path)


def test_other_database_is_refused(tmp_path: Path, definition: Definition) -> None:
    out = tmp_path / "out"
    out.mkdir()
    with sqlite3.connect(out / JOURNAL) as connection:
        connection.execute("CREATE TABLE pictures (name TEXT)")
    connection.close()
    with pytest.raises(InputError, match="is not the journal of a study"):
        load_results(out)
    with pytest.raises(InputError, match="is not the journal of a study"):
        run_study(definition, out)


def test_journal_of_another_format_is_refused(folder: Path, tmp_path: Path) -> None:
    shutil.copy(folder / JOURNAL, tmp_path)
    change(tmp_path, "UPDATE study SET value = '\"swarmbo study 9\"' WHERE name = 'format'")
    with pytest.raises(InputError, match="is of another version of swarmbo, or damaged"):
        load_results(tmp_path)
    with closing(sqlite3.connect(tmp_path / JOURNAL)) as connection, connection:
        insert(connection, "study", ("format", '"swarmbo study 9"'), replace=True)
    for use in (load_results, repair_study):
        with pytest.raises(InputError, match="another version of swarmbo; this one reads"):
            use(tmp_path)


# --- what is written ---------------------------------------------------------------------------


def test_journal_is_in_wal_mode_and_leaves_nothing_else_behind(folder: Path) -> None:
    with sqlite3.connect(folder / JOURNAL) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()
    assert sorted(path.name for path in folder.iterdir()) == [LOCK, JOURNAL]


def test_run_is_written_once_or_refused(folder: Path, tmp_path: Path) -> None:
    one, two = tmp_path / "1", tmp_path / "2"
    definition = read_study(tmp_path)
    run_study(definition, one, threads=1)
    before = contents(one)
    with Journal.open(one) as journal:
        assert len(journal.finished_runs()) == RUNS
        key = next(iter(journal.finished_runs()))
        again = store.FinishedRun(key, "smbo", 1, 6, 0.0, None, (), (
            store.FinishedEvaluation(1, -1, 0, 0.0, 0.0),
        ))  # fmt: skip
        with pytest.raises(InputError, match="has written another result into runs"):
            journal.add_run(again, 0.0)
    assert contents(one) == before
    assert not two.exists()


def test_second_process_on_the_folder_is_refused(tmp_path: Path, definition: Definition) -> None:
    out = tmp_path / "out"
    with Journal.open(out):
        assert at_work(out)
        program = (
            "import sys; from swarmbo.study.journal import Journal\n"
            "with Journal.open(sys.argv[1]): pass"
        )
        done = subprocess.run(
            [sys.executable, "-c", program, out], capture_output=True, text=True, env=ENVIRONMENT
        )
        assert "another process is at work on this study" in done.stderr
        with pytest.raises(InputError, match="another process is at work"):
            run_study(definition, out)
    assert not at_work(out)


@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
def test_lock_dies_with_its_process(tmp_path: Path) -> None:
    program = (
        "import sys, time; from swarmbo.study.journal import Journal\n"
        "with Journal.open(sys.argv[1]): print('open', flush=True); time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, tmp_path / "out"],
        stdout=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "open\n"
        assert at_work(tmp_path / "out")
        child.send_signal(signal.SIGKILL)
    assert not at_work(tmp_path / "out")
    with Journal.open(tmp_path / "out"):
        pass


def limited(pages: int) -> Callable[[Path], sqlite3.Connection]:
    """How journals are opened on a disk that has room for so many pages more."""
    connected = store._connected

    def opened(path: Path) -> sqlite3.Connection:
        connection = connected(path)
        (used,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {used + pages}")
        return connection

    return opened


def test_full_disk_ends_the_work_and_loses_nothing(
    tmp_path: Path, definition: Definition, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr(store, "_connected", limited(6))
        with pytest.raises(OSError, match="full") as error:
            run_study(definition, out, threads=2)
    assert str(error.value.filename).endswith(JOURNAL)
    done = len(load_results(out).runs)
    assert 0 < done < RUNS
    for thread in threading.enumerate():
        if thread.name.startswith("ThreadPool"):
            thread.join(10)
    run_study(definition, out, threads=2)
    run_study(definition, tmp_path / "whole", threads=1)
    assert contents(out) == contents(tmp_path / "whole")


def test_folder_with_other_things_is_refused(tmp_path: Path, definition: Definition) -> None:
    with pytest.raises(InputError, match=r"holds one\.map, but no study; name an empty folder"):
        run_study(definition, tmp_path)
    with pytest.raises(InputError, match="is a file; name a folder"):
        run_study(definition, tmp_path / "one.map")
    with pytest.raises(InputError, match="does not exist; make it first"):
        run_study(definition, tmp_path / "a" / "b")


def test_other_versions_are_refused(
    tmp_path: Path, definition: Definition, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    with Journal.open(out) as journal:
        journal.begin(definition, "cpu", {})
    monkeypatch.setattr(store, "version", lambda name: "0.0.1")
    with (
        Journal.open(out) as journal,
        pytest.raises(InputError, match=r"begun with numba .*, not 0\.0\.1; use that version"),
    ):
        journal.begin(definition, "cpu", {})


def test_other_device_is_refused(tmp_path: Path, definition: Definition) -> None:
    with Journal.open(tmp_path / "out") as journal:
        journal.begin(definition, "gpu", {})
        with pytest.raises(InputError, match="begun with the device 'gpu', not cpu; use the same"):
            journal.begin(definition, "cpu", {})


# --- journals that are begun badly -------------------------------------------------------------


def test_empty_journal_counts_as_none(tmp_path: Path, definition: Definition) -> None:
    for name, tables in (("touched", ""), ("made", "PRAGMA journal_mode = WAL")):
        out = tmp_path / name
        out.mkdir()
        (out / JOURNAL).touch()
        change(out, *[tables] * bool(tables))
        with pytest.raises(InputError, match="holds no study"):
            load_results(out)
        run_study(definition, out, selection=ONE_RUN, threads=1)
        assert len(load_results(out).runs) == 1


ONE_RUN = Selection(
    learners=("random",), disturbances=("proximity",), replicates=(1,), conditions=1
)
BEGIN = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
from swarmbo.study.journal import Journal
with Journal.open(sys.argv[1]):
    print("open")
"""


@pytest.mark.skipif(os.name == "nt", reason="needs limits on the sizes of files")
@pytest.mark.parametrize("limit", [0, 100, 4096, 10_000, 30_000, 1_000_000])
def test_no_disk_space_for_a_new_journal_leaves_nothing_that_hinders(
    limit: int, tmp_path: Path, definition: Definition
) -> None:
    out = tmp_path / "out"
    done = subprocess.run(
        [sys.executable, "-c", BEGIN, out, str(limit)],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
    )
    assert (done.returncode == 0) == (limit == 1_000_000), done.stderr
    assert "OSError" in done.stderr or done.returncode == 0
    if out.exists():
        assert {path.name for path in out.iterdir()} <= {JOURNAL, LOCK}
    run_study(definition, out, selection=ONE_RUN, threads=1)
    assert len(load_results(out).runs) == 1


def test_wal_of_a_deleted_journal_does_not_enter_a_new_one(
    tmp_path: Path, definition: Definition
) -> None:
    out = tmp_path / "out"
    with Journal.open(out) as journal:
        journal.begin(definition, "cpu", {})
        left = (out / f"{JOURNAL}-wal").read_bytes()
    (out / JOURNAL).unlink()
    (out / f"{JOURNAL}-wal").write_bytes(left)
    with Journal.open(out) as journal:
        assert journal.definition() is None


# --- journals that are damaged -----------------------------------------------------------------

OLD = """
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


def as_before_digests(folder: Path, place: Path) -> Path:
    """A copy of a study whose journal is as they were before rows had digests."""
    place.mkdir()
    with closing(sqlite3.connect(place / JOURNAL)) as connection, connection:
        connection.executescript(f"PRAGMA journal_mode = WAL; BEGIN; {OLD} COMMIT;")
        connection.execute("ATTACH ? AS present", (str(folder / JOURNAL),))
        for table, description in TABLES.items():
            if table == "copies":
                continue
            names = ", ".join(description.columns)
            connection.execute(f"INSERT INTO {table} SELECT {names} FROM present.{table}")
        connection.execute("UPDATE study SET value = '\"swarmbo study 1\"' WHERE name = 'format'")
    return place


def tables_of(folder: Path) -> list[pd.DataFrame]:
    found = load_results(folder)
    return [found.runs, found.evaluations, found.references]


def equal_tables(one: list[pd.DataFrame], other: list[pd.DataFrame]) -> bool:
    return all(mine.equals(theirs) for mine, theirs in zip(one, other, strict=True))


def test_journal_made_before_digests_is_read_and_goes_on(folder: Path, tmp_path: Path) -> None:
    old = as_before_digests(folder, tmp_path / "old")
    assert equal_tables(tables_of(old), tables_of(folder))
    assert load_results(old).about["sessions"] == load_results(folder).about["sessions"]
    change(old, "DELETE FROM evaluations WHERE run = 3", "DELETE FROM runs WHERE run = 3")
    run_study(read_study(tmp_path), old, threads=1)
    assert equal_tables(tables_of(old), tables_of(folder))
    with reading(old) as rows:
        assert rows.digests


def flipped(content: bytes, bit: int) -> bytes:
    """A content with one bit changed."""
    position, shift = divmod(bit, 8)
    changed = content[position] ^ (1 << shift)
    return content[:position] + bytes([changed]) + content[position + 1 :]


def test_one_flipped_bit_is_said_or_changes_nothing_and_the_rest_is_kept(
    folder: Path, tmp_path: Path
) -> None:
    content = (folder / JOURNAL).read_bytes()
    sound = tables_of(folder)
    chance = random.Random(1)
    refused = 0
    for number in range(60):
        out = tmp_path / f"{number}"
        out.mkdir()
        (out / JOURNAL).write_bytes(flipped(content, chance.randrange(8 * len(content))))
        try:
            assert equal_tables(tables_of(out), sound)
        except InputError:
            refused += 1
            kept = repair_study(out)
            assert kept.damaged is not None
            assert RUNS - 4 <= kept.runs <= RUNS
            whole = load_results(out)
            assert whole.runs.equals(
                sound[0][sound[0].run.isin(whole.runs.run)].reset_index(drop=True)
            )
    assert refused > 20


def test_repaired_study_goes_on_to_the_same_results(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    shutil.copy(folder / JOURNAL, out)
    assert repair_study(out) == (RUNS, CONDITIONS, None)
    change(out, "UPDATE evaluations SET outcome = outcome + 1 WHERE run = 5 AND number = 2")
    change(out, "UPDATE conditions SET before = 99 WHERE condition = 1 AND replicate = 2")
    change(out, "UPDATE study SET value = 'null' WHERE name = 'versions'")
    with pytest.raises(InputError, match="row of study with name 'versions' is damaged"):
        load_results(out)
    kept = repair_study(out)
    assert (kept.runs, kept.conditions) == (RUNS - 1, CONDITIONS - 3)
    assert kept.damaged == out / f"{JOURNAL}.damaged"
    assert len(load_results(out).runs) == RUNS - 1
    run_study(read_study(tmp_path), out, threads=2)
    assert equal_tables(tables_of(out), tables_of(folder))


@pytest.mark.parametrize("page", [1, 2, 3, 5, 8])
def test_page_of_zeros_costs_the_runs_on_it_at_most(
    page: int, folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    content = (folder / JOURNAL).read_bytes()
    start = 4096 * (page - 1)
    (out / JOURNAL).write_bytes(content[:start] + bytes(4096) + content[start + 4096 :])
    with pytest.raises(InputError):
        load_results(out)
    try:
        kept = repair_study(out)
    except InputError as error:
        assert "is damaged and cannot be had back" in str(error)  # noqa: PT017
        return
    sound = tables_of(folder)[0]
    found = load_results(out).runs
    assert len(found) == kept.runs
    assert found.equals(sound[sound.run.isin(found.run)].reset_index(drop=True))


HOSTILE = [
    "UPDATE study SET value = 'null' WHERE name = 'versions'",
    "UPDATE study SET value = '[1]' WHERE name = 'versions'",
    "UPDATE study SET value = 'null' WHERE name = 'definition'",
    "UPDATE study SET value = '{}' WHERE name = 'definition'",
    "UPDATE study SET value = '[[[' WHERE name = 'definition'",
    'UPDATE study SET value = replace(value, \'"trials": 2\', \'"trials": "2"\')',
    "UPDATE study SET value = replace(value, '\"seeds\": [1]', '\"seeds\": 1')",
    "UPDATE study SET value = replace(value, '\"random\"', '\"nobody\"')",
    "UPDATE study SET value = replace(value, '\"proximity\"', '\"gravity\"')",
    "UPDATE study SET value = 7 WHERE name = 'device'",
    "UPDATE study SET value = x'00ff' WHERE name = 'format'",
    "DELETE FROM study WHERE name = 'definition'",
    "UPDATE runs SET best = 'much'",
    "UPDATE runs SET best = 9e999",
    "UPDATE runs SET robots = -6",
    "UPDATE runs SET team = 'null', variant = 'nobody' WHERE run = 7",
    "UPDATE runs SET seed = 1.5 WHERE run = 2",
    "UPDATE runs SET evaluations = 9 WHERE run = 2",
    "UPDATE evaluations SET cell = 10000 WHERE run = 1",
    "UPDATE evaluations SET cell = 'x', outcome = x'61'",
    "UPDATE evaluations SET outcome = 9e999 WHERE run = 4",
    "DELETE FROM evaluations WHERE run = 2 AND number = 1",
    "DELETE FROM runs WHERE run = 2",
    "UPDATE conditions SET exhaustive_cell = -1",
    "UPDATE conditions SET condition = 9 WHERE disturbance = 'proximity' AND condition = 0",
    "UPDATE conditions SET disturbance = 'gravity' WHERE disturbance = 'proximity'",
    "UPDATE conditions SET before = 'x'",
    "UPDATE sessions SET machine = 'null'",
    "UPDATE sessions SET seconds = 'long'",
    "UPDATE maps SET cells = 'some'",
    "DROP TABLE sessions",
    "CREATE TABLE more (x)",
    "CREATE VIEW more AS SELECT * FROM runs",
    "CREATE TRIGGER more AFTER INSERT ON runs BEGIN DELETE FROM runs; END",
    "ALTER TABLE maps ADD COLUMN more",
    "ALTER TABLE runs RENAME COLUMN best TO worst",
]


@pytest.mark.parametrize("digests", [True, False], ids=["present", "before digests"])
@pytest.mark.parametrize("statement", HOSTILE)
def test_hostile_values_get_a_sentence(
    statement: str,
    digests: bool,
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "out"
    if digests:
        out.mkdir()
        shutil.copy(folder / JOURNAL, out)
    else:
        as_before_digests(folder, out)
    change(out, statement)
    study = write_study(tmp_path)
    outcomes = [
        swarmbo(capsys, "study", *command)
        for command in (
            ("status", out),
            ("report", out, "--out", tmp_path / "report"),
            ("run", study, "--out", out, "--learners", "random", "--device", "cpu"),
        )
    ]
    for outcome in outcomes:
        assert outcome.code in (0, 2)
        assert (outcome.code == 2) == outcome.stderr.startswith("swarmbo: ")
        assert outcome.stderr.count("\n") == (outcome.code == 2)
    if digests:
        assert 2 in [outcome.code for outcome in outcomes]
    repaired = swarmbo(capsys, "study", "repair", out)
    assert repaired.code in (0, 2)


# --- files that vanish during the work ---------------------------------------------------------


class Deleting(Watcher):
    """Deletes something when the third run is finished."""

    def __init__(self, delete: Callable[[], object]) -> None:
        self.delete = delete
        self.runs = 0

    def finished(self, run: FinishedRun) -> None:
        self.runs += 1
        if self.runs == 3:
            self.delete()


@pytest.mark.skipif(os.name == "nt", reason="open files cannot be deleted there")
@pytest.mark.parametrize("what", ["journal", "all its files", "folder", "lock"])
def test_deleted_journal_is_said_and_what_is_known_is_saved(
    what: str, tmp_path: Path, definition: Definition
) -> None:
    out = tmp_path / "out"
    doomed = {"journal": [JOURNAL], "lock": [LOCK]}.get(what)

    def delete() -> None:
        if what == "folder":
            shutil.rmtree(out)
        for path in [out / name for name in doomed] if doomed else list(out.glob("*")):
            path.unlink()

    with pytest.raises(LostFileError, match=r"was deleted during the work") as error:
        run_study(definition, out, threads=1, watcher=Deleting(delete))
    assert (LOCK if what == "lock" else JOURNAL) in str(error.value)
    assert (out / JOURNAL).stat().st_mode == (tmp_path / "study.toml").stat().st_mode
    assert 3 <= len(load_results(out).runs) < RUNS
    run_study(definition, out, threads=2)
    run_study(definition, tmp_path / "whole", threads=2)
    assert_equal_studies(out, tmp_path / "whole")


@pytest.mark.skipif(os.name == "nt", reason="open files cannot be deleted there")
def test_journal_in_the_place_of_a_deleted_one_stays(
    tmp_path: Path, definition: Definition
) -> None:
    out = tmp_path / "out"

    def replace() -> None:
        for path in out.glob("*"):
            path.unlink()
        with Journal.open(out) as journal:
            journal.begin(definition, "cpu", {})

    with pytest.raises(LostFileError, match=r"is in study\.2\.sqlite: give it the name study\."):
        run_study(definition, out, threads=1, watcher=Deleting(replace))
    assert len(load_results(out).runs) == 0
    (out / "study.2.sqlite").replace(out / JOURNAL)
    assert len(load_results(out).runs) >= 3


@pytest.mark.skipif(os.name == "nt", reason="open files cannot be deleted there")
def test_two_processes_on_one_journal_make_the_same_study(
    tmp_path: Path, definition: Definition
) -> None:
    out = tmp_path / "out"

    def begin_another() -> None:
        (out / LOCK).unlink()
        run_study(definition, out, threads=1)

    with pytest.raises(LostFileError, match=r"study\.lock: was deleted during the work"):
        run_study(definition, out, threads=1, watcher=Deleting(begin_another))
    run_study(definition, tmp_path / "whole", threads=2)
    assert_equal_studies(out, tmp_path / "whole")


@pytest.mark.skipif(os.name == "nt", reason="open files cannot be replaced there")
def test_study_in_the_place_of_a_journal_keeps_its_own_results(
    tmp_path: Path, definition: Definition, folder: Path
) -> None:
    out = tmp_path / "out"
    shutil.copy(folder / JOURNAL, tmp_path / "other")
    watcher = Deleting(lambda: (tmp_path / "other").replace(out / JOURNAL))
    with pytest.raises(LostFileError, match="was deleted during the work"):
        run_study(definition, out, threads=1, watcher=watcher)
    assert len(load_results(out).runs) == RUNS
    assert equal_tables(tables_of(out), tables_of(folder))


def test_journal_that_others_cut_during_the_work_is_said(
    tmp_path: Path, definition: Definition
) -> None:
    out = tmp_path / "out"
    watcher = Deleting(lambda: os.truncate(out / f"{JOURNAL}-wal", 0))
    with pytest.raises(LostFileError, match="changed by others during the work"):
        run_study(definition, out, threads=1, watcher=watcher)


@pytest.mark.parametrize("left", [45_000, 50_001, 69_000])
def test_journal_that_was_cut_off_keeps_what_is_left(
    left: int, folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / JOURNAL).write_bytes((folder / JOURNAL).read_bytes()[:left])
    kept = repair_study(out)
    assert len(load_results(out).runs) == kept.runs
    run_study(read_study(tmp_path), out, threads=2)
    assert equal_tables(tables_of(out), tables_of(folder))


def test_journal_behind_a_link_is_repaired_where_it_is(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    shutil.copy(folder / JOURNAL, tmp_path / "real")
    (out / JOURNAL).symlink_to(tmp_path / "real")
    change(out, "UPDATE evaluations SET cell = 1 WHERE run = 5")
    assert repair_study(out).runs == RUNS - 1
    assert (out / JOURNAL).is_symlink()
    assert len(load_results(out).runs) == RUNS - 1


def test_journal_whose_header_forbids_writing_is_repaired(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    content = bytearray((folder / JOURNAL).read_bytes())
    content[18] ^= 4  # the version of the format that is needed to write
    (out / JOURNAL).write_bytes(content)
    with pytest.raises(InputError, match=r"readonly database.*study repair"):
        run_study(read_study(tmp_path), out, threads=1)
    kept = repair_study(out)
    assert (kept.runs, kept.damaged) == (RUNS, out / f"{JOURNAL}.damaged")
    run_study(read_study(tmp_path), out, threads=1)
    assert equal_tables(tables_of(out), tables_of(folder))


def test_damaged_copy_of_the_definition_is_said_and_repaired(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    shutil.copy(folder / JOURNAL, out)
    change(out, "UPDATE copies SET value = 'null' WHERE name = 'definition'")
    with pytest.raises(InputError, match="row of copies with name 'definition' is damaged"):
        load_results(out)
    assert repair_study(out).runs == RUNS
    with reading(out) as rows:
        assert dict(rows.read("copies")) == dict(rows.read("study"))
