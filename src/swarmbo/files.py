"""Reading and writing files: whole or not at all, and errors that name the file."""

import errno
import gzip
import json
import os
import shutil
import sqlite3
import stat
import sys
import tempfile
import threading
import zlib
from collections.abc import Collection, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from itertools import chain, count
from pathlib import Path
from typing import Any

from swarmbo.errors import InputError, LostFileError, cut, naming, short

try:
    import fcntl
except ImportError:  # Windows: what killed processes leave there stays
    fcntl = None  # type: ignore[assignment]

TEMPORARY, PART = ".swarmbo-", ".part"  # around the name of a file or folder that is not finished
NAME_MAX = 255  # bytes, of a file's name without its folder, where most systems draw the line
MIB = 2**20  # bytes
MAX_TEXT = 64  # MiB that a text may have, unpacked, unless this environment variable says more:
LIMIT = "SWARMBO_MAX_INPUT"


def is_file(path: str | os.PathLike[str]) -> bool:
    """Whether there is a plain file at a path; False also where nothing can be."""
    try:
        return Path(path).is_file()
    except OSError:
        return False


def read_bytes(path: str | os.PathLike[str], most: int, *, packed: bool = False) -> bytes:
    """The first bytes of a plain file, `most` and one more at most, unpacked with gzip if wanted.

    InputError, which does not name the file, if that fails.
    """
    try:
        mode = Path(path).stat().st_mode
        if stat.S_ISDIR(mode):
            raise InputError("is a folder; name a file in it")
        if not stat.S_ISREG(mode):  # a pipe or a device might give bytes for ever, or none
            raise InputError("is not a plain file; name one")
        with Path(path).open("rb") as file:
            if packed:
                with gzip.open(file) as unpacked:
                    return unpacked.read(most + 1)
            return file.read(most + 1)
    except InputError:
        raise
    except FileNotFoundError:
        if Path(path).is_symlink():
            raise InputError("is a link to a file that is not there; check it") from None
        raise InputError("there is no such file; check the path") from None
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise InputError(
            "is not a gzip file, or a damaged one; pack it again or leave out .gz"
        ) from None
    except OSError as error:
        remedy = "its rights" if isinstance(error, PermissionError) else "the path"
        raise InputError(f"cannot be read ({error.strerror}); check {remedy}") from None
    except ValueError:
        raise InputError("is not a file name; check the path") from None


def read_text(path: str | os.PathLike[str]) -> str:
    """The text of a UTF-8 file, unpacked if its name ends in .gz; InputError if that fails."""
    most = _most_text()
    packed = str(path).endswith(".gz")
    with naming(path):
        data = read_bytes(path, most * MIB, packed=packed)
        if len(data) > most * MIB:
            raise InputError(
                f"holds more than {most} MiB{', unpacked' * packed}; give a smaller file, "
                f"or set the environment variable {LIMIT} to more MiB"
            )
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InputError(f"byte {error.start} is not UTF-8; a text file is needed") from None


def _most_text() -> int:
    """How many MiB a text may have."""
    text = os.environ.get(LIMIT, str(MAX_TEXT))
    if not (text.isascii() and text.isdecimal() and len(text) < 8 and int(text) > 0):
        raise InputError(f"the variable {LIMIT} is {short(text)}; give an integer of MiB from 1")
    return int(text)


def _refuse_constant(name: str) -> float:
    raise InputError(f"holds {name}, which is not a JSON number; use a finite number")


def read_json(path: str | os.PathLike[str]) -> Any:
    """The value in a JSON file; NaN and Infinity, which JSON does not have, are refused."""
    text = read_text(path)
    with naming(path):
        try:
            return json.loads(text, parse_constant=_refuse_constant)
        except json.JSONDecodeError as error:
            raise InputError(
                f"is not JSON (line {error.lineno}, column {error.colno}: {error.msg}); "
                "correct it there"
            ) from None
        except RecursionError:
            raise InputError("is nested too deeply to be read; use the documented form") from None
        except ValueError as error:
            if isinstance(error, InputError):
                raise
            raise too_many_digits() from None


def too_many_digits() -> InputError:
    """What is wrong with a text when Python refuses one of its integers for its length."""
    return InputError(
        f"holds an integer of more than {sys.get_int_max_str_digits():,} digits; "
        "give numbers of a sensible size"
    )


def check_path(path: str | os.PathLike[str]) -> None:
    """InputError when nothing can be at a path: a name too long, a link to itself, no rights."""
    try:
        Path(path).stat()
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise InputError(
            f"{cut(path)}: cannot be used ({error.strerror}); choose another path"
        ) from None
    except ValueError:
        raise InputError(f"{cut(path)}: is not a file name; check the path") from None


def check_name(path: str | os.PathLike[str]) -> None:
    """InputError when a file's name is too long for any folder, or its path impossible."""
    if len(os.fsencode(Path(path).name)) > NAME_MAX:
        raise InputError(f"{cut(path)}: has too long a name; choose a shorter one")
    check_path(path)


def check_writable(path: str | os.PathLike[str]) -> None:
    """InputError when a file could not be written at `path`; call it before the work."""
    check_name(path)
    target = Path(path).resolve()
    if target.is_dir():
        raise InputError(f"{cut(path)}: is a folder; name a file in it")
    if target.exists() and not target.is_file():
        raise InputError(f"{cut(path)}: is not a plain file; choose another name")
    _check_parent(path, target)


def _check_parent(path: str | os.PathLike[str], target: Path) -> None:
    parent = cut(target.parent)
    if not target.parent.is_dir():
        if os.path.lexists(target.parent):
            raise InputError(f"{cut(path)}: {parent} is not a folder; choose another place")
        raise InputError(f"{cut(path)}: the folder {parent} does not exist; make it first")
    if not os.access(target.parent, os.W_OK):
        raise InputError(f"{cut(path)}: the folder {parent} is not writable; choose another")


def check_folder(folder: str | os.PathLike[str], known: Collection[str], reason: str) -> None:
    """InputError when files could not be written into a folder; call it before the work.

    It need not exist, and may hold entries of the names `known` and unfinished
    ones; `reason` says why no others.
    """
    check_name(folder)
    target = Path(folder).resolve()
    if target.is_dir():
        names = sorted(path.name for path in target.iterdir())
        others = [n for n in names if n not in known and not n.startswith(TEMPORARY)]
        if others:
            raise InputError(
                f"{cut(folder)}: holds {cut(others[0])}, {reason}; "
                "name an empty folder, or one that does not exist yet"
            )
        if not os.access(target, os.W_OK):
            raise InputError(f"{cut(folder)}: is not writable; choose another folder")
        return
    if os.path.lexists(target):
        raise InputError(f"{cut(folder)}: is a file; name a folder")
    _check_parent(folder, target)


@contextmanager
def whole_file(path: str | os.PathLike[str], *, replace: bool = True) -> Iterator[Path]:
    """Yield a temporary path beside `path` that takes its place if the block succeeds.

    OSError, naming `path`, when it cannot be written after all: a full disk. Without
    `replace` a file that is at `path` stays; FileExistsError then.
    """
    check_writable(path)
    target = Path(path).resolve()
    with naming_errors(path), unfinished(target.parent) as temporary:
        yield temporary
        give_usual_rights(temporary)
        if replace:
            temporary.replace(target)
        else:
            rename_to_new(temporary, target)


@contextmanager
def whole_folder(folder: str | os.PathLike[str], names: Collection[str]) -> Iterator[Path]:
    """Yield a temporary folder that takes the place of `folder` if the block succeeds.

    When `folder` is there already, its entries of these names are replaced or removed, and
    others stay. OSError, naming `folder`, when it cannot be written.
    """
    target = Path(folder).resolve()
    there = target.is_dir()
    place = target if there else target.parent
    with naming_errors(folder), unfinished(place, as_folder=True) as temporary:
        yield temporary
        if not there:
            give_usual_rights(temporary)
            temporary.rename(target)
            return
        for name in names:
            old, new = target / name, temporary / name
            if old.is_dir() and not old.is_symlink():
                shutil.rmtree(old)
            elif not new.is_file():
                old.unlink(missing_ok=True)
            if new.exists():
                new.replace(old)


def give_usual_rights(path: Path) -> None:
    """Give a temporary file or folder the rights of one that was made in the usual way."""
    umask = os.umask(0)
    os.umask(umask)
    path.chmod((0o777 if path.is_dir() else 0o666) & ~umask)


@contextmanager
def naming_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Let any OSError of the block name `path`."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from None


@contextmanager
def unfinished(folder: Path, *, as_folder: bool = False) -> Iterator[Path]:
    """Yield a new file, or folder, with a temporary name in a folder.

    It is removed at the end, unless it was renamed. Those that killed processes have
    left in the folder are removed first: whoever is at work on one holds a lock on it.
    """
    _remove_abandoned(folder)
    while True:
        if as_folder:
            temporary = Path(tempfile.mkdtemp(prefix=TEMPORARY, suffix=PART, dir=folder))
        else:
            handle, name = tempfile.mkstemp(prefix=TEMPORARY, suffix=PART, dir=folder)
            os.close(handle)
            temporary = Path(name)
        lock = _lock_on(temporary, wait=True)
        if identity(temporary) is not None:
            break
        _close(lock)  # somebody took it for abandoned before the lock was there
    try:
        yield temporary
    finally:
        _remove(temporary)
        _close(lock)


def _lock_on(path: Path, *, wait: bool) -> int | None:
    """An open handle with a lock on a file or folder; None when that is not to be had."""
    if fcntl is None:
        return None
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        os.close(handle)
        return None
    return handle


def _close(handle: int | None) -> None:
    if handle is not None:
        os.close(handle)


def _remove_abandoned(folder: Path) -> None:
    """Remove what killed processes have left unfinished in a folder."""
    try:
        left = list(folder.glob(f"{TEMPORARY}*{PART}"))
    except OSError:
        return
    for path in left:
        if not path.is_symlink() and (path.is_file() or path.is_dir()):
            lock = _lock_on(path, wait=False)
            if lock is not None:
                _remove(path)
                os.close(lock)


def _remove(path: Path) -> None:
    """Remove a file or folder, if it is there and can be removed."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def rename_to_new(path: Path, target: Path) -> None:
    """Rename a file; FileExistsError when something has the new name."""
    try:
        os.link(path, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target)) from None
        path.rename(target)
    else:
        path.unlink()


def free_name(path: Path) -> Path:
    """A name like `path` that nothing has: mine.map, or mine.2.map, mine.3.map, ..."""
    names = (path.with_name(f"{path.stem}.{number}{path.suffix}") for number in count(2))
    return next(name for name in chain([path], names) if not os.path.lexists(name))


Identity = tuple[int, int]


def identity(path: str | os.PathLike[str]) -> Identity | None:
    """Which file is at `path`, whatever its content; None when there is none."""
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


class Lock:
    """A lock that this process holds."""

    def __init__(self, path: Path, mine: Identity) -> None:
        self._path = path
        self._mine = mine

    def check(self) -> None:
        """LostFileError when the lock's file was deleted: another process may hold a new one."""
        if identity(self._path) != self._mine:
            raise LostFileError(
                f"{cut(self._path)}: was deleted during the work, so that another process could "
                "begin the same; what was done is kept: run the same command again to go on"
            )


_held: set[Identity] = set()  # files of the locks of this process
_asking = threading.Lock()


@contextmanager
def locked(path: str | os.PathLike[str], busy: str) -> Iterator[Lock]:
    """Keep other processes away while the block runs; InputError `busy` when one has the lock.

    The lock is on a file at `path`, made where there is none. It ends with this
    process, however it ends; the file stays.
    """
    with ExitStack() as stack:
        mine = None
        while mine is None:  # None: its last owner deleted the file after it was opened here
            stack.close()
            with _asking:
                mine = _lock(path, busy, stack)
        yield Lock(Path(path).resolve(), mine)


def _lock(path: str | os.PathLike[str], busy: str, stack: ExitStack) -> Identity | None:
    """Lock a file until the stack is closed; None when it is not the one at `path` any more."""
    if identity(path) in _held:  # to open and close it would end the lock
        raise InputError(busy)
    file = stack.enter_context(Path(path).open("ab"))  # noqa: SIM115
    status = os.fstat(file.fileno())
    mine = status.st_dev, status.st_ino
    try:
        connection = sqlite3.connect(path, timeout=1, isolation_level=None)
        stack.enter_context(closing(connection))
        connection.execute("BEGIN EXCLUSIVE")
    except sqlite3.DatabaseError as error:
        if identity(path) == mine:
            raise _lock_error(error, path, busy) from None
    if identity(path) != mine:
        return None
    _held.add(mine)
    stack.callback(_held.discard, mine)
    return mine


def _lock_error(
    error: sqlite3.DatabaseError, path: str | os.PathLike[str], busy: str
) -> InputError | OSError:
    if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY:
        return InputError(busy)
    if isinstance(error, sqlite3.OperationalError):
        return OSError(errno.EIO, str(error), str(path))
    return InputError(f"{cut(path)}: is not a lock of swarmbo; delete it")
