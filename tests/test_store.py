"""The journal of a study."""

import os
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
import pytest

from swarmbo import InputError
from swarmbo.study import store
from swarmbo.study.campaign import run_study
from swarmbo.study.definition import Definition
from swarmbo.study.repair import repair_study
from swarmbo.study.rows import insert
from swarmbo.study.store import JOURNAL, LOCK, Journal, at_work, load_results
from tests.studies import CONDITIONS, ENVIRONMENT, EVALUATIONS, RUNS, contents, read_study


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
            "import sys; from swarmbo.study.store import Journal\n"
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
        "import sys, time; from swarmbo.study.store import Journal\n"
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
