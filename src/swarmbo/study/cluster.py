"""Units of a study on the workers of a Dask cluster."""

import logging
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from swarmbo.errors import InputError, cut, short
from swarmbo.study.units import Done, Unit, work

LOCAL = "local:"
FAILURES = 10  # workers that may die at a unit before the unit counts as the cause
AHEAD = 1000  # units that the scheduler knows of, or four per thread of its workers
PATIENCE = 10  # s that a scheduler has to answer


def is_local(address: str) -> bool:
    """Whether an address asks for worker processes on this machine."""
    return address.startswith(LOCAL)


def check_address(address: str) -> None:
    """InputError when no cluster can have this address, or Dask is not installed."""
    if is_local(address):
        number = address.removeprefix(LOCAL)
        if not number.isdecimal() or len(number) > 9 or not 1 <= int(number) <= 4096:
            raise InputError(
                f"--dask: {short(address)} is not local:N; give the number of worker processes, "
                "1 to 4096"
            )
    elif "://" not in address:
        raise InputError(
            f"--dask: {short(address)} is no address; give one like tcp://192.168.0.1:8786, "
            "or local:N"
        )
    try:
        import distributed  # noqa: F401
    except ImportError:
        raise InputError(
            "--dask: Dask is not installed; install swarmbo with the extra cluster"
        ) from None


def on_cluster(
    units: Sequence[Unit],
    contents: Mapping[str, bytes],
    client: Any,
    workers: Callable[[int], None],
) -> Generator[tuple[Unit, Done], None, None]:
    """Units with what came out, as they are finished, by the workers of a cluster.

    What a worker was doing when it died is done again by another. `workers` is
    called with how many there are, every few seconds or more often.
    """
    from distributed import CancelledError, KilledWorker

    waiting = list(enumerate(units))[::-1]
    running: dict[Any, int] = {}
    failures = [0] * len(units)
    try:
        # What many units need is sent once, as tasks and not as scattered data: when a worker
        # dies the scheduler makes it again.
        study = client.submit(_content, units[0].study.encode(), pure=False)
        maps = {name: client.submit(_content, each, pure=False) for name, each in contents.items()}
        while waiting or running:
            while waiting and len(running) < max(AHEAD, 4 * sum(client.nthreads().values())):
                number, unit = waiting.pop()
                needed = {task.case.map: maps[task.case.map] for task in unit.tasks}
                unit = unit._replace(study="")
                future = client.submit(_work, study, unit, needed, pure=False, priority=-number)
                running[future] = number
            ended = _ended(running)
            workers(len(client.nthreads()))
            for future in ended:
                if not future.done():  # its worker died before the result was fetched
                    continue
                number = running.pop(future)
                try:
                    done = future.result()
                except KilledWorker:
                    failures[number] += 1
                    if failures[number] == FAILURES:
                        raise InputError(
                            "--dask: workers died again and again at the same condition; "
                            "look at their logs, for example for a lack of memory"
                        ) from None
                    waiting.append((number, units[number]))
                else:
                    future.release()
                    yield units[number], done
    except (CancelledError, OSError):
        raise InputError(
            "--dask: the scheduler is gone; the journal is whole, start again when there is one"
        ) from None


def _ended(running: Mapping[Any, int]) -> list[Any]:
    """The tasks that have ended, in their order; none after a few seconds without."""
    from distributed import wait

    try:
        ended = wait(list(running), timeout=5, return_when="FIRST_COMPLETED").done
    except TimeoutError:
        return []
    return sorted(ended, key=running.__getitem__)


def _content(content: bytes) -> bytes:
    return content


def _work(study: bytes, unit: Unit, maps: Mapping[str, bytes]) -> Done:
    _stop_profiler()
    return work(unit._replace(study=study.decode()), maps)


def _stop_profiler() -> None:
    """Stop the profiler of the worker that this is.

    It looks at the frames of all threads a hundred times a second. In CPython 3.11
    that can block for ever when a thread ends meanwhile, as those of the engine do.
    """
    from distributed import get_worker

    worker = get_worker()
    profiler = worker.periodic_callbacks.get("profile")
    if profiler is not None and profiler.is_running():
        worker.loop.add_callback(profiler.stop)


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """A client of the cluster at an address, or of a local one that lives as long as the block."""
    import dask
    from distributed import Client, LocalCluster

    settings = {
        "distributed.scheduler.allowed-failures": FAILURES,
        "distributed.worker.profile.enabled": False,  # see _stop_profiler
    }
    for name in logging.root.manager.loggerDict:  # what goes wrong is said in sentences
        if name.partition(".")[0] == "distributed":
            logging.getLogger(name).setLevel(logging.CRITICAL)
    if not is_local(address):
        try:
            client = Client(address, timeout=PATIENCE)
        except (OSError, ValueError):
            raise InputError(
                f"--dask: no scheduler answers at {cut(address)}; start one, or check the address"
            ) from None
        with client:
            yield client
        return
    with (
        dask.config.set(settings),
        LocalCluster(
            n_workers=int(address.removeprefix(LOCAL)),
            threads_per_worker=1,
            memory_limit=0,
            dashboard_address=None,
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client
