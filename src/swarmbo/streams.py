"""Counter-based random streams for everything that is drawn once: poses, conditions, seeds.

A stream is named, not passed around: the same name gives the same numbers on
every machine, whatever else was drawn before. (The engine's sensor noise has a
counter-based generator of its own, in `engine.formulas`.)
"""

import hashlib

import numpy as np


class Stream:
    """Uniform random numbers from Philox, keyed by a name of words and integers."""

    def __init__(self, *name: str | int) -> None:
        digest = hashlib.blake2b("/".join(map(str, name)).encode(), digest_size=16).digest()
        self._bits = np.random.Philox(key=int.from_bytes(digest, "little"))

    def uniform(self, low: float = 0.0, high: float = 1.0) -> float:
        """The next number in [low, high)."""
        return low + (high - low) * (int(self._bits.random_raw()) >> 11) * 2.0**-53

    def choice(self, count: int) -> int:
        """The next integer in 0 .. count - 1."""
        return int(self.uniform(0, count))

    def key(self) -> int:
        """The next 64-bit key, for example of a noise generator."""
        return int(self._bits.random_raw())
