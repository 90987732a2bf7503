"""Tools of warps and blocks on the GPU, with stand-ins for Numba's CUDA simulator, and formulas.

The simulator (NUMBA_ENABLE_CUDASIM=1) knows no warps. There a block is one
warp, and its threads meet at the block's barrier instead.
"""

import math
import threading
import warnings
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

if not hasattr(np, "row_stack"):  # NumPy 2.5 dropped a name that some numba-cuda ask for
    np.row_stack = np.vstack  # type: ignore[attr-defined]

from numba import cuda as cuda  # for gpu.py, which needs the name above first

from swarmbo.compilation import kept
from swarmbo.engine import formulas

# Of launches with few teams, which small jobs have.
warnings.filterwarnings("ignore", ".*Grid size .* will likely result in GPU under-utilization")

LANES = 32  # threads of a warp
SIMULATED = not hasattr(cuda, "syncwarp")

U = np.uint32
J = np.int32
I = np.uint64  # noqa: E741 - of indices to which constants are added: free where they are wide


def device(function: Any) -> Any:
    """A function that kernels call; in the simulator, the function itself."""
    return function if SIMULATED else cuda.jit(device=True, fastmath=True)(function)


def kernel(function: Any, **options: Any) -> Any:
    """A kernel, its machine code kept on disk; the options are those of `cuda.jit`."""
    if SIMULATED:
        return cuda.jit(function)
    with kept():
        return cuda.jit(cache=True, **options)(function)


if SIMULATED:
    _LOCK = threading.Lock()

    def meet() -> None:
        """Wait for the other threads of the block, and see what they wrote."""
        threading.current_thread().syncthreads()  # type: ignore[attr-defined]

    def sync() -> None:
        """Wait for the other lanes of the warp, and see what they wrote."""
        meet()

    def any_lane(flag: Any, scratch: Any, lane: Any) -> Any:
        """Whether any lane of the warp raises `flag`. `scratch`: 32 numbers to do it."""
        sync()
        scratch[lane] = flag
        sync()
        return bool(scratch[:LANES].any())

    def swap(value: Any, scratch: Any, lane: Any) -> Any:
        """The value of the lane beside: lanes 0 and 1, 2 and 3 ... exchange theirs."""
        sync()
        scratch[lane] = value
        sync()
        return scratch[lane ^ U(1)]

    def bits_set(word: Any) -> Any:
        """How many bits of a word are 1."""
        return U(int(word).bit_count())

    def inverse_root(x: Any) -> Any:
        """1 / sqrt(x)."""
        return np.float32(1) / np.sqrt(x)

    def lower_to(array: Any, index: Any, value: Any) -> None:
        """Let array[index] be at most `value`, whatever other threads do to it."""
        with _LOCK:
            array[index] = min(array[index], value)

    def add_to(array: Any, index: Any, value: Any) -> Any:
        """Add `value` to array[index], whatever other threads do to it; return what was there."""
        with _LOCK:
            before = array[index]
            array[index] += value
            return before

    def set_bits(array: Any, index: Any, value: Any) -> None:
        """Set bits of array[index], whatever other threads do to it."""
        with _LOCK:
            array[index] |= value

else:
    from numba.cuda import libdevice

    @device
    def meet():  # type: ignore[no-untyped-def]
        """Wait for the other threads of the block, and see what they wrote."""
        cuda.syncthreads()

    @device
    def sync():  # type: ignore[no-untyped-def]
        """Wait for the other lanes of the warp, and see what they wrote."""
        cuda.syncwarp()

    @device
    def any_lane(flag, scratch, lane):  # type: ignore[no-untyped-def]
        """Whether any lane of the warp raises `flag`."""
        return cuda.any_sync(0xFFFFFFFF, flag)

    @device
    def swap(value, scratch, lane):  # type: ignore[no-untyped-def]
        """The value of the lane beside: lanes 0 and 1, 2 and 3 ... exchange theirs."""
        return cuda.shfl_xor_sync(0xFFFFFFFF, value, 1)

    @device
    def bits_set(word):  # type: ignore[no-untyped-def]
        """How many bits of a word are 1."""
        return U(cuda.popc(word))

    @device
    def inverse_root(x):  # type: ignore[no-untyped-def]
        """1 / sqrt(x)."""
        return libdevice.rsqrtf(x)

    @device
    def lower_to(array, index, value):  # type: ignore[no-untyped-def]
        """Let array[index] be at most `value`, whatever other threads do to it."""
        cuda.atomic.min(array, index, value)

    @device
    def add_to(array, index, value):  # type: ignore[no-untyped-def]
        """Add `value` to array[index], whatever other threads do to it; return what was there."""
        return cuda.atomic.add(array, index, value)

    @device
    def set_bits(array, index, value):  # type: ignore[no-untyped-def]
        """Set bits of array[index], whatever other threads do to it."""
        cuda.atomic.or_(array, index, value)


@device
def _least(a, b):  # type: ignore[no-untyped-def]
    return min(a, b)


@device
def _greatest(a, b):  # type: ignore[no-untyped-def]
    return max(a, b)


def _for_device() -> ModuleType:
    """The module `formulas` as functions that kernels call.

    They are the same functions, but in a module of their own where `np` has a
    square root and a floor that CUDA knows, and `least` and `greatest` are
    instructions.
    """
    module = ModuleType("swarmbo.engine.formulas on the GPU")
    names = module.__dict__
    names.update(vars(formulas))
    numpy = names["np"] = ModuleType("numpy")
    for name in ("float32", "float64", "int32", "int64", "uint32", "uint64", "pi"):
        setattr(numpy, name, getattr(np, name))
    if SIMULATED:
        numpy.sqrt, numpy.floor = np.sqrt, np.floor  # type: ignore[attr-defined]
    else:
        numpy.sqrt, numpy.floor = math.sqrt, libdevice.floor  # type: ignore[attr-defined]
    for name, value in vars(formulas).items():
        function = getattr(value, "py_func", None)
        if function is not None:
            names[name] = device(FunctionType(function.__code__, names, name))
    names["least"], names["greatest"] = _least, _greatest
    return module


on: Any = _for_device()
