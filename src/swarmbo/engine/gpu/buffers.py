"""What a launch needs of the device: a stream, memory that later ones use again, its kernels."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from swarmbo.engine.gpu.graph import Graph, recorded

TOGETHER = 20  # ticks that are queued together


@dataclass(frozen=True, eq=False)
class Launch:
    """A kernel with its arguments."""

    kernel: Any
    blocks: int
    threads: int
    arguments: tuple[Any, ...]

    @property
    def compiled(self) -> bool:
        """Whether the kernel can be launched without delay."""
        return bool(getattr(self.kernel, "overloads", None))  # there are none in the simulator

    def key(self) -> tuple[Any, ...]:
        """What makes a launch this one: kernel, size, and addresses or values of the arguments."""
        return (id(self.kernel), self.blocks, self.threads, *_keys(self.arguments))

    def queue(self, stream: Any) -> None:
        """Queue the launch."""
        self.kernel[self.blocks, self.threads, stream](*self.arguments)


def _keys(arguments: tuple[Any, ...]) -> Iterator[Any]:
    for argument in arguments:
        if isinstance(argument, tuple):
            yield from _keys(argument)
        elif isinstance(argument, int):
            yield argument
        else:
            yield argument.__cuda_array_interface__["data"][0]
            yield argument.shape


class Desk:
    """A stream and the memory of a launch, used again by later ones."""

    def __init__(self) -> None:
        from swarmbo.engine.gpu.warp import cuda

        self._cuda = cuda
        self.stream = cuda.stream()
        self._host: dict[str, Any] = {}
        self._device: dict[str, Any] = {}
        self._most: dict[str, int] = {}
        # Launches that were recorded: their keys, themselves (so that their memory stays theirs).
        self._graph: tuple[list[Any], list[Launch], Graph] | None = None

    def most(self, name: str, value: int) -> int:
        """The largest of the values so far: room that grows need not be found anew each time."""
        self._most[name] = max(value, self._most.get(name, 0))
        return self._most[name]

    def host(self, name: str, shape: tuple[int, ...], kind: type) -> Any:
        """Page-locked memory of the host, from which and to which copies run by themselves."""
        array = self._host.get(name)
        if array is None or array.shape != shape:
            array = self._host[name] = self._cuda.pinned_array(shape, kind)
        return array

    def device(self, name: str, shape: tuple[int, ...], kind: type) -> tuple[Any, bool]:
        """Memory of the device, and whether it is new."""
        array = self._device.get(name)
        fresh = array is None or array.shape != shape
        if fresh:
            self._graph = None  # it would keep the old memory
            array = self._device[name] = self._cuda.device_array(shape, kind)
        return array, fresh

    def upload(self, name: str, array: Any) -> Any:
        """Queue the copy of a page-locked array to the device."""
        there, _ = self.device(name, array.shape, array.dtype)
        there.copy_to_device(array, stream=self.stream)
        return there

    def repeat(self, launches: Sequence[Launch], times: int) -> None:
        """Queue the launches, one after the other, so many times."""

        def once() -> None:
            for launch in launches:
                launch.queue(self.stream)

        def many() -> None:
            for _ in range(TOGETHER):
                once()

        # What is not yet compiled cannot be recorded.
        if times >= TOGETHER and all(launch.compiled for launch in launches):
            key = [launch.key() for launch in launches]
            if self._graph is None or self._graph[0] != key:
                self._graph = None
                graph = recorded(self.stream, many)
                if graph is not None:
                    self._graph = (key, list(launches), graph)
            if self._graph is not None:
                for _ in range(times // TOGETHER):
                    self._graph[2].launch()
                times %= TOGETHER
        for _ in range(times):
            once()

    def download(self, name: str, array: Any) -> Any:
        """Queue the copy of a device array to page-locked memory."""
        here = self.host(name, array.shape, array.dtype)
        array.copy_to_host(here, stream=self.stream)
        return here
