"""Files are written whole or not at all, and read up to a limit."""

import errno
import gzip
import hashlib
import os
import signal
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmbo import InputError
from swarmbo.errors import LostFileError, cut
from swarmbo.files import free_name, locked, read_json, unfinished, whole_file, whole_folder
from swarmbo.maps import map_file
from swarmbo.study.definition import load_definition
from tests.studies import ENVIRONMENT, small_map


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
        with pytest.raises(LostFileError, match="was deleted during the work"):
            lock.check()
        with locked(file, "busy") as second:
            second.check()
            with pytest.raises(LostFileError, match="was deleted during the work"):
                lock.check()
    with locked(file, "busy"):
        pass


EXPERIMENT = "[[experiments]]\ndisturbances = ['ground']\nlearners = ['smbo']\n"

# --- reading ------------------------------------------------------------------------------------

MEMORY = """
import resource
from pathlib import Path
from swarmbo import InputError, load_map
from swarmbo.evolution.checkpoint import begun_on
from swarmbo.files import read_json
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    {call}
except InputError as error:
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024, error)
"""


def complaint(call: str) -> tuple[int, str]:
    """How many MiB a call takes in a process of its own until it raises InputError, and that."""
    done = subprocess.run(
        [sys.executable, "-c", MEMORY.format(call=call)], capture_output=True, text=True, check=True
    )
    memory, words = done.stdout.split(" ", 1)
    return int(memory), words.strip()


def zeros(packer: Any, mebibytes: int) -> bytes:
    """So many MiB of zeros, packed."""
    piece = bytes(2**20)
    return b"".join([*(packer.compress(piece) for _ in range(mebibytes)), packer.flush()])


@pytest.mark.skipif(os.name == "nt", reason="needs getrusage")
def test_packed_text_is_unpacked_only_up_to_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(zeros(zlib.compressobj(9, wbits=31), 1000))
    assert path.stat().st_size < 1_100_000
    memory, words = complaint(f"read_json({str(path)!r})")
    assert words.endswith(
        "bomb.json.gz: holds more than 64 MiB, unpacked; give a smaller file, or set the "
        "environment variable SWARMBO_MAX_INPUT to more MiB"
    )
    assert memory < 200


@pytest.mark.skipif(os.name == "nt", reason="needs getrusage")
@pytest.mark.parametrize("name", ["bomb.map", "bomb.map.checkpoint"])
def test_packed_arrays_of_a_map_are_unpacked_only_up_to_their_size(
    name: str, tmp_path: Path
) -> None:
    data = small_map(1).to_bytes()
    line = data[len(map_file.MAGIC) :].partition(b"\n")[0]
    bomb = map_file.MAGIC + line + b"\n" + zeros(zlib.compressobj(9), 1000)
    (tmp_path / name).write_bytes(bomb + hashlib.blake2b(bomb, digest_size=32).digest())
    call = f"load_map({str(tmp_path / name)!r})"
    if name.endswith("checkpoint"):
        call = f"begun_on(Path({str(tmp_path / 'bomb.map')!r}))"
    memory, words = complaint(call)
    assert "bytes exactly; " in words
    assert memory < 50


@pytest.mark.skipif(os.name == "nt", reason="needs files with holes")
def test_huge_files_are_not_read_to_their_end(tmp_path: Path) -> None:
    for name, call, limit in (
        ("huge.json", "read_json({!r})", "holds more than 64 MiB; give a smaller file"),
        ("huge.map", "load_map({!r})", "is larger than any map"),
        (
            "new.map.checkpoint",
            "begun_on(Path({!r}).with_suffix(''))",
            "is larger than any map; delete it to start anew",
        ),
    ):
        path = tmp_path / name
        with path.open("wb") as file:
            file.truncate(2**40)
        memory, words = complaint(call.format(str(path)))
        assert limit in words
        assert memory < 200


def test_variable_sets_the_limit_of_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "wide.json.gz"
    path.write_bytes(gzip.compress(b"[" + b" " * 2**20 + b"]"))
    monkeypatch.setenv("SWARMBO_MAX_INPUT", "1")
    with pytest.raises(InputError, match=r"wide\.json\.gz: holds more than 1 MiB, unpacked"):
        read_json(path)
    monkeypatch.setenv("SWARMBO_MAX_INPUT", "2")
    assert read_json(path) == []
    for text in ("", "0", "-1", "many", "9" * 100):
        monkeypatch.setenv("SWARMBO_MAX_INPUT", text)
        with pytest.raises(InputError, match=r"variable SWARMBO_MAX_INPUT is '.*; give an int"):
            read_json(path)


def test_text_that_just_fits_is_read_in_all_its_members(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = b"[" + b" " * (2**20 - 2) + b"]"
    monkeypatch.setenv("SWARMBO_MAX_INPUT", "1")
    (tmp_path / "two.json.gz").write_bytes(gzip.compress(text[:1000]) + gzip.compress(text[1000:]))
    (tmp_path / "plain.json").write_bytes(text)
    assert read_json(tmp_path / "two.json.gz") == read_json(tmp_path / "plain.json") == []


def test_integers_of_too_many_digits_are_called_that(tmp_path: Path) -> None:
    (tmp_path / "long.json").write_text("[" + "7" * 5_000 + "]")
    (tmp_path / "long.toml").write_text("evaluations = " + "7" * 5_000)
    words = r"long\.\w+: holds an integer of more than 4,300 digits; give numbers of a sensible"
    with pytest.raises(InputError, match=words):
        read_json(tmp_path / "long.json")
    with pytest.raises(InputError, match=words):
        load_definition(tmp_path / "long.toml")
    (tmp_path / "hex.toml").write_text("maps = [0x" + "f" * 5_000 + "]\n" + EXPERIMENT)
    with pytest.raises(InputError, match=r"maps has a huge int; give names of maps"):
        load_definition(tmp_path / "hex.toml")


@given(st.text() | st.text(min_size=70))
def test_quoted_paths_have_begin_and_end_and_nothing_that_a_terminal_obeys(text: str) -> None:
    shown = cut(text)
    assert len(shown) <= 80
    assert shown.isprintable()
    if text.isprintable():
        assert shown == text or (
            len(text) > 80 and text.startswith(shown[:38]) and text.endswith(shown[-38:])
        )
