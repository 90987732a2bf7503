"""How the engine's functions are compiled, and where the machine code is kept.

Numba's own cache does not notice when a *called* function changes in another
file. So the cache folder is named after the contents of all sources with
kernels that call each other, the engine's and the controllers', and those of the
world, whose constants they hold: a new version of swarmbo never meets machine code
of an old one. Nor does a new version of numba-cuda, which leaves its own out.
"""

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numba
from numba import njit

# The kernels meet neither infinities nor NaNs, and allocate nothing: without reference counts a
# loop may take arrays out of a tuple at no cost.
_OPTIONS: dict[str, Any] = {"fastmath": True, "error_model": "numpy", "nogil": True, "_nrt": False}
# Only kernels are called from Python; wrappers for the rest would double the compilation.
_NO_WRAPPERS = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def cache_folder() -> Path:
    """Where compiled kernels are kept: $NUMBA_CACHE_DIR or the user's cache folder."""
    base = os.environ.get("NUMBA_CACHE_DIR")
    if base is None:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        base = str(Path(home) / "swarmbo")
    return Path(base) / f"kernels-{_digest()}"


@cache
def _digest() -> str:
    """What the sources are called together."""
    home = Path(__file__).parent
    digest = hashlib.blake2b(Path(__file__).read_bytes(), digest_size=8)
    for room in ("world", "controller", "engine"):
        for source in sorted((home / room).rglob("*.py")):
            digest.update(source.read_bytes())
    with suppress(PackageNotFoundError):
        digest.update(version("numba-cuda").encode())
    return digest.hexdigest()


def formula(function: Callable[..., Any]) -> Any:
    """A function inlined wherever it is called, so that loops over lanes vectorise."""
    return njit(**_OPTIONS, **_NO_WRAPPERS, forceinline=True)(function)


def exact(function: Callable[..., Any]) -> Any:
    """A function that kernels call, whose arithmetic rounds as it is written, on any processor.

    That of formulas and kernels may be rearranged for speed.
    """
    options = _OPTIONS | {"fastmath": False}
    return njit(**options, **_NO_WRAPPERS)(function)


def kernel(function: Callable[..., Any]) -> Any:
    """A function called from Python: without the GIL, its machine code kept on disk."""
    with kept():
        return njit(**_OPTIONS, cache=True)(function)


@contextmanager
def kept() -> Iterator[None]:
    """What Numba is asked to cache within, goes to the cache folder."""
    previous = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(cache_folder())
    try:
        yield
    finally:
        numba.config.CACHE_DIR = previous


def is_cached() -> bool:
    """Whether the simulator's machine code is on disk already, so that it need not be compiled."""
    return any(cache_folder().rglob("driver.advance*.nbi"))
