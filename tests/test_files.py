"""Files are written whole or not at all."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from swarmbo import InputError
from swarmbo.files import free_name, locked, unfinished, whole_file, whole_folder
from tests.studies import ENVIRONMENT


def test_file_appears_when_the_block_is_done(tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    with whole_file(target) as temporary:
        temporary.write_text("new")
        assert not target.exists()
    assert target.read_text() == "new"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt])
def test_failure_leaves_the_old_file_and_no_other(
    tmp_path: Path, failure: type[BaseException]
) -> None:
    target = tmp_path / "out.csv"
    target.write_text("old")

    def fail() -> None:
        with whole_file(target) as temporary:
            temporary.write_text("half")
            raise failure

    with pytest.raises(failure):
        fail()
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_full_disk_names_the_file(tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    with pytest.raises(OSError, match=r"No space.*out\.csv") as caught, whole_file(target):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert caught.value.filename == str(target)
    assert list(tmp_path.iterdir()) == []


def test_file_has_the_usual_rights(tmp_path: Path) -> None:
    (tmp_path / "usual").write_text("")
    with whole_file(tmp_path / "out.csv"):
        pass
    assert (tmp_path / "out.csv").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_file_that_is_there_stays_when_none_may_be_replaced(tmp_path: Path) -> None:
    target = tmp_path / "out.csv"

    def write() -> None:
        with whole_file(target, replace=False) as temporary:
            temporary.write_text("new")
            target.write_text("appeared")

    with pytest.raises(FileExistsError) as caught:
        write()
    assert caught.value.filename == str(target)
    assert target.read_text() == "appeared"
    assert list(tmp_path.iterdir()) == [target]
    assert free_name(target) == tmp_path / "out.2.csv"
    with whole_file(tmp_path / "out.2.csv", replace=False) as temporary:
        temporary.write_text("new")
    assert free_name(target) == tmp_path / "out.3.csv"


def test_folder_is_made_whole_or_changed_in_its_entries_alone(tmp_path: Path) -> None:
    target = tmp_path / "out"
    for content in ("one", "two"):
        with whole_folder(target, ("a", "b")) as temporary:
            (temporary / "a").write_text(content)
            assert not (target / "a").exists() or (target / "a").read_text() == "one"
        if content == "one":
            (target / "b").write_text("old")
            (target / "mine").write_text("stays")
    names = {path.name: path.read_text() for path in target.iterdir()}
    assert names == {"a": "two", "mine": "stays"}
    assert list(tmp_path.iterdir()) == [target]


# --- what killed processes leave behind --------------------------------------------------------

needs_posix = pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL and locks of POSIX")
WRITER = """
import sys, time
from pathlib import Path
from swarmbo.files import unfinished
with unfinished(Path(sys.argv[1]), as_folder=sys.argv[2] == "folder") as temporary:
    if temporary.is_dir():
        (temporary / "half").write_text("half")
    print(temporary, flush=True)
    time.sleep(600)
"""


def begin_to_write(folder: Path, what: str) -> "tuple[subprocess.Popen[str], Path]":
    """A process that never finishes the file or folder that it writes, and its name."""
    child = subprocess.Popen(
        [sys.executable, "-c", WRITER, folder, what],
        stdout=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )
    assert child.stdout is not None
    return child, Path(child.stdout.readline().strip())


@needs_posix
@pytest.mark.parametrize("what", ["file", "folder"])
def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path: Path, what: str) -> None:
    child, left = begin_to_write(tmp_path, what)
    with child:
        with whole_file(tmp_path / "mine"):
            assert left.exists(), "its writer lives"
        child.send_signal(signal.SIGKILL)
    assert left.exists()
    (tmp_path / ".swarmbo-older.part").write_text("of an earlier version")
    (tmp_path / ".swarmbo-notes").write_text("of somebody else")
    with whole_file(tmp_path / "mine"):
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == [".swarmbo-notes", "mine"]


@needs_posix
def test_two_writers_in_a_folder_leave_each_other_alone(tmp_path: Path) -> None:
    with unfinished(tmp_path) as one, unfinished(tmp_path) as two:
        assert one != two
        assert one.exists()
        with whole_file(tmp_path / "third"):
            pass
        assert one.exists()
        assert two.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["third"]


# --- locks -------------------------------------------------------------------------------------

HAMMER = """
import os, sys
from pathlib import Path
from swarmbo import InputError
from swarmbo.evolution.checkpoint import reserved
place = Path(sys.argv[1])
got = 0
for _ in range(300):
    try:
        with reserved(place):
            os.close(os.open(place.with_name("inside"), os.O_CREAT | os.O_EXCL))
            place.with_name("inside").unlink()
            got += 1
    except InputError:
        pass
print(got)
"""


def test_a_lock_that_its_owners_delete_lets_one_process_in_at_a_time(tmp_path: Path) -> None:
    children = [
        subprocess.Popen(
            [sys.executable, "-c", HAMMER, tmp_path / "mine.map"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=ENVIRONMENT,
        )
        for _ in range(3)
    ]
    said = [child.communicate() for child in children]
    assert [child.returncode for child in children] == [0, 0, 0], said
    assert all(int(out) > 0 for out, _ in said)
    assert list(tmp_path.iterdir()) == []


def test_second_lock_of_a_process_is_refused_and_leaves_the_first(tmp_path: Path) -> None:
    file = tmp_path / "lock"
    program = "import sys; from swarmbo.files import locked\nwith locked(sys.argv[1], 'busy'): pass"
    with locked(file, "busy") as lock:
        with pytest.raises(InputError, match="busy"), locked(file, "busy"):
            pass
        other = subprocess.run(
            [sys.executable, "-c", program, file], capture_output=True, text=True, env=ENVIRONMENT
        )
        assert "InputError: busy" in other.stderr
        lock.check()
        file.unlink()
        with pytest.raises(OSError, match="it was deleted during the work"):
            lock.check()
        with locked(file, "busy") as second:
            second.check()
            with pytest.raises(OSError, match="it was deleted during the work"):
                lock.check()
    with locked(file, "busy"):
        pass
