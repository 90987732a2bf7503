"""Evolutions that survive being stopped: a checkpoint lies beside the map until it is finished.

A checkpoint is a map like any other, of fewer evaluations than its options ask
for. It is written whole or not at all, so that stopping at any moment, however
rudely, costs the work of the last few seconds at most.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic

from swarmbo.errors import InputError, LostFileError, cut, naming
from swarmbo.evolution.map_elites import Evolution, EvolutionOptions, uninterrupted
from swarmbo.files import Lock, check_name, check_writable, free_name, locked
from swarmbo.maps import map_file
from swarmbo.maps.behaviour_map import BehaviourMap

INTERVAL = 5.0  # s between checkpoints, or more:
SHARE = 0.01  # of the time, at most, goes into checkpoints


def checkpoint_path(path: Path) -> Path:
    """Where the checkpoint of a map lies: mine.map.checkpoint."""
    return path.with_name(f"{path.name}.checkpoint")


def _lock_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.lock")


@contextmanager
def reserved(path: Path) -> Iterator[Lock]:
    """Keep other processes from evolving a map at `path` while the block runs."""
    file = _lock_path(path)
    busy = f"{cut(path)}: another process is evolving this map; wait for it, or use another name"
    with locked(file, busy) as lock:
        try:
            yield lock
        finally:
            with suppress(OSError, LostFileError):
                lock.check()  # not one of another process
                file.unlink()


def check_place(path: Path, *, resume: bool) -> None:
    """InputError when a map cannot be evolved at `path`, or what is there would be lost."""
    check_writable(path)
    checkpoint = checkpoint_path(path)
    check_name(checkpoint)  # the longest
    for beside in (checkpoint, _lock_path(path)):
        if beside.is_dir():
            raise InputError(
                f"{cut(beside)}: is a folder in the place of a file; remove it, or use another "
                "name for the map"
            )
        check_writable(beside)
    if not resume and (checkpoint.exists() or path.exists()):
        with suppress(OSError), reserved(path):  # InputError when a process is at work on it
            pass
    if checkpoint.exists() and not resume:
        raise InputError(
            f"{cut(checkpoint)}: is of an evolution that is not finished; continue it with "
            "--resume, or delete it to start anew"
        )
    if path.exists() and not resume:
        raise InputError(
            f"{cut(path)}: is there already; use --resume to keep it, or another name for a new map"
        )


def begun_on(path: Path) -> str | None:
    """The device on which what lies at `path` was begun, if anything does."""
    for place in (checkpoint_path(path), path):
        if place.exists():
            device = _load(place).made.get("device")
            return device if device in ("cpu", "gpu") else None
    return None


def resumed(options: EvolutionOptions, path: Path) -> Evolution | BehaviourMap | None:
    """What there is to resume at `path`: an evolution, its finished map, or nothing.

    InputError when it was begun with other options, or is damaged; an evolution
    also when it was begun with other versions of what its bits depend on.
    """
    checkpoint = checkpoint_path(path)
    if checkpoint.exists():
        state = _load(checkpoint)
        with naming(checkpoint):
            return Evolution.continued(options, state)
    if path.exists():
        behaviour_map = _load(path)
        with naming(path):
            options.check_finished(behaviour_map)
        return behaviour_map
    return None


def _load(path: Path) -> BehaviourMap:
    with naming(path):
        try:
            return BehaviourMap.from_bytes(map_file.read(path))
        except InputError as error:
            reason = str(error).partition(";")[0]
            raise InputError(f"{reason}; delete it to start anew") from None


class Keeper:
    """Keeps one evolution on disk: checkpoints every few seconds, the map at the end.

    LostFileError when the lock on the map's place was deleted: two processes never write there.
    """

    def __init__(
        self, evolution: Evolution, path: Path, *, lock: Lock | None = None, share: float = SHARE
    ) -> None:
        self.evolution = evolution
        self.path = path
        self._lock = lock
        self._share = share
        self._saved = evolution.generation  # generations that are on disk
        self._due = monotonic() + INTERVAL

    def after_generation(self) -> None:
        """Save what is due."""
        self.finish_if_done()
        if monotonic() >= self._due:
            self.save()

    def save(self) -> None:
        """Write a checkpoint, unless there is nothing new to keep."""
        if self._saved == self.evolution.generation or self.evolution.finished:
            return
        start = monotonic()
        with uninterrupted():
            self._check_lock()
            self.evolution.map().save(checkpoint_path(self.path))
            self._saved = self.evolution.generation
        end = monotonic()
        self._due = end + max(INTERVAL, (end - start) / self._share)

    def finish_if_done(self) -> None:
        """Write the map and remove the checkpoint, once the evolution is finished.

        When a file has appeared at the map's place in the meantime, both are kept:
        `path` is then another one.
        """
        if not self.evolution.finished:
            return
        with uninterrupted():
            self._check_lock()
            checkpoint = checkpoint_path(self.path)
            self.path = _save_beside(self.evolution.map(), self.path)
            checkpoint.unlink(missing_ok=True)
            self._saved = self.evolution.generation

    def _check_lock(self) -> None:
        """LostFileError when the lock was deleted; what was done is saved first."""
        try:
            if self._lock is not None:
                self._lock.check()
        except LostFileError:
            raise LostFileError(
                f"{cut(_lock_path(self.path))}: was deleted during the work, so that another "
                f"process could begin the same; {self._save_without_lock()}"
            ) from None

    def _save_without_lock(self) -> str:
        """Save the evolution, though others may write at its place; says where it is."""
        state, place = self.evolution.map(), checkpoint_path(self.path)
        try:
            with reserved(self.path):
                state.save(place)
            return "run the same command with --resume to go on"
        except InputError:  # another process evolves this map now, or the folder is gone
            if not self.path.parent.is_dir():
                return "its folder is gone, too, and with it all that was done"
            return f"what was done is in {_save_beside(state, place).name}"


def _save_beside(behaviour_map: BehaviourMap, path: Path) -> Path:
    """Write a map to a path, or to one like it when something else is there; returns which."""
    while True:
        free = free_name(path)
        if free != path and _holds(path, behaviour_map):  # the process was killed just after that
            return path
        with suppress(FileExistsError):  # something has just appeared there
            behaviour_map.save(free, replace=False)
            return free


def _holds(path: Path, behaviour_map: BehaviourMap) -> bool:
    try:
        return path.read_bytes() == behaviour_map.to_bytes()
    except OSError:
        return False
