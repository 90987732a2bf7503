"""How much memory a swarm takes, and how much there is: what is too large is refused beforehand."""

import os
from contextlib import suppress
from pathlib import Path

from swarmbo.errors import InputError
from swarmbo.world.arena import Arena

PAIRS = 16  # of robots near each other that there is room for, per robot, unless they need more
PAIR = 920  # bytes for each of these
ROBOT = 1000  # bytes of a robot in a trial, besides
SMALL = 2**27  # bytes that are not worth asking about
SQUARE = 8  # bytes of a square in a trial: its visits, and how they begin


def memory_of(arena: Arena, robots: int, trials: int, swarms: int = 1) -> int:
    """About how many bytes so many swarms take that are simulated side by side."""
    squares_x, squares_y = arena.squares
    pairs = min(PAIRS, robots / 2) * PAIR
    return int(swarms * trials * (robots * (ROBOT + pairs) + SQUARE * squares_x * squares_y))


def check_memory(needed: float, what: str) -> None:
    """InputError when `what` needs more bytes than this process can still get."""
    if needed < SMALL:
        return
    free = free_memory()
    if free is not None and needed > free:
        raise InputError(
            f"{what} need {needed / 2**30:,.1f} GiB of memory, but {free / 2**30:,.1f} GiB are "
            "free; give fewer of them, or smaller ones"
        )


def free_memory() -> int | None:
    """Bytes that this process can still get, as far as the system tells; None where it does not."""
    free = [*_of_machine(), *_of_groups(), *_of_process()]
    return max(0, min(free)) if free else None


def _of_machine() -> list[int]:
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return [1024 * int(line.split()[1])]
    with suppress(AttributeError, OSError, ValueError):  # a system without /proc
        return [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    return []


def _of_groups() -> list[int]:
    """What the control groups leave, from this process's up to the root: containers set them."""
    free = []
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, name = line.split(":", 2)
            if controllers == "":
                top, limit, used = "/sys/fs/cgroup", "memory.max", "memory.current"
            elif "memory" in controllers.split(","):
                top = "/sys/fs/cgroup/memory"
                limit, used = "memory.limit_in_bytes", "memory.usage_in_bytes"
            else:
                continue
            folder = Path(top, name.lstrip("/"))
            for place in (folder, *folder.parents):
                with suppress(OSError, ValueError):  # no such file, or "max"
                    most = int((place / limit).read_text())
                    free.append(most - int((place / used).read_text()) + _cache_of(place))
                if place == Path(top):
                    break
    return free


def _cache_of(place: Path) -> int:
    """Bytes of files that a control group keeps in memory as long as nobody needs it."""
    with suppress(OSError, ValueError):
        for line in (place / "memory.stat").read_text().splitlines():
            name, _, number = line.partition(" ")
            if name in ("inactive_file", "total_inactive_file"):
                return int(number)
    return 0


def _of_process() -> list[int]:
    """What a limit on the address space leaves (`ulimit -v`)."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit != resource.RLIM_INFINITY:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            return [limit - pages * os.sysconf("SC_PAGE_SIZE")]
    return []
