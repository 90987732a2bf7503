"""Files are written whole or not at all."""

import errno
import os
from pathlib import Path

import pytest

from swarmbo.files import whole_file


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
