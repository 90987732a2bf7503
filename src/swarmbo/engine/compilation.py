"""How the engine's functions are compiled, and where the machine code is kept.

Numba's own cache does not notice when a *called* function changes in another
file. So the cache folder is named after the contents of all the engine's
sources: a new version of swarmbo never meets machine code of an old one.
"""

import hashlib
import os
from collections.abc import Callable
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
    digest = hashlib.blake2b(digest_size=8)
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    return Path(base) / f"kernels-{digest.hexdigest()}"


def formula(function: Callable[..., Any]) -> Any:
    """A function inlined wherever it is called, so that loops over lanes vectorise."""
    return njit(**_OPTIONS, **_NO_WRAPPERS, forceinline=True)(function)


def kernel(function: Callable[..., Any]) -> Any:
    """A function called from Python: without the GIL, its machine code kept on disk."""
    previous = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(cache_folder())
    try:
        return njit(**_OPTIONS, cache=True)(function)
    finally:
        numba.config.CACHE_DIR = previous


def is_cached() -> bool:
    """Whether the kernels' machine code is on disk already, so that nothing will be compiled."""
    return any(cache_folder().rglob("*.nbi"))
