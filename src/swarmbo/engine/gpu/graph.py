"""Many kernel launches as one: CUDA graphs, which Numba does not offer.

A launch of a kernel costs the host about 0.1 ms; a simulation is over a
thousand of them. Recorded once, they are launched together in microseconds.
"""

import ctypes
import sys
from collections.abc import Callable
from typing import Any

_RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED: other streams may go on meanwhile


def _library() -> Any:
    name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    return ctypes.CDLL(name)


def _handle(stream: Any) -> ctypes.c_void_p:
    """CUDA's name of a stream, whatever kind of object Numba keeps it in."""
    handle = stream.handle
    return ctypes.c_void_p(int(getattr(handle, "value", handle)))


class Graph:
    """What `record` launches in a stream, to be launched again."""

    def __init__(self, stream: Any, record: Callable[[], None]) -> None:
        self._graph = ctypes.c_void_p()
        self._ready = ctypes.c_void_p()
        self._cuda = _library()
        self._stream = _handle(stream)
        self._call("cuStreamBeginCapture_v2", self._stream, ctypes.c_int(_RELAXED))
        try:
            record()
        except BaseException:
            self._cuda.cuStreamEndCapture(self._stream, ctypes.byref(self._graph))
            raise
        self._call("cuStreamEndCapture", self._stream, ctypes.byref(self._graph))
        self._call(
            "cuGraphInstantiateWithFlags",
            ctypes.byref(self._ready),
            self._graph,
            ctypes.c_ulonglong(0),
        )

    def launch(self) -> None:
        """Queue everything that was recorded."""
        self._call("cuGraphLaunch", self._ready, self._stream)

    def __del__(self) -> None:
        if self._ready:
            self._cuda.cuGraphExecDestroy(self._ready)
        if self._graph:
            self._cuda.cuGraphDestroy(self._graph)

    def _call(self, name: str, *arguments: Any) -> None:
        error = getattr(self._cuda, name)(*arguments)
        if error:
            raise RuntimeError(f"CUDA's {name} failed with error {error}")


def recorded(stream: Any, record: Callable[[], None]) -> Graph | None:
    """What `record` launches, or None where the driver cannot record it."""
    try:
        return Graph(stream, record)
    except (AttributeError, OSError, RuntimeError):
        return None
