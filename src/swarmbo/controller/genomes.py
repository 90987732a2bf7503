"""Many controllers as arrays: what evolution varies, and what a map's file holds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from swarmbo.controller.network import INPUTS, OUTPUTS, Controller
from swarmbo.errors import InputError, naming

MAX_HIDDEN = 64
MAX_CONNECTIONS = 256

Array = np.ndarray[Any, np.dtype[Any]]

_FORM: dict[str, tuple[type, tuple[int, ...]]] = {  # type, and shape after the first axis
    "hidden": (np.int32, ()),
    "count": (np.int32, ()),
    "bias": (np.float64, (OUTPUTS + MAX_HIDDEN,)),
    "source": (np.uint8, (MAX_CONNECTIONS,)),
    "target": (np.uint8, (MAX_CONNECTIONS,)),
    "weight": (np.float64, (MAX_CONNECTIONS,)),
}


@dataclass(frozen=True, eq=False)
class Genomes:
    """A batch of controllers of at most 64 hidden neurons and 256 connections each.

    Types and shapes are checked when a batch is made, the numbers in it only by
    `check`. What lies beyond a controller's neurons and connections is 0 in
    every batch made by swarmbo, and read by nothing.
    """

    hidden: Array  # controllers, int32: hidden neurons
    count: Array  # controllers, int32: connections
    bias: Array  # controllers x 66, float64: of the outputs, then of the hidden neurons
    source: Array  # controllers x 256, uint8: neurons numbered as in Controller
    target: Array  # controllers x 256, uint8
    weight: Array  # controllers x 256, float64

    def __post_init__(self) -> None:
        for name, (kind, tail) in _FORM.items():
            array = getattr(self, name)
            if not isinstance(array, np.ndarray):
                raise InputError(f"{name} is of type {type(array).__name__}; give a NumPy array")
            shape = (self.hidden.size, *tail)
            if array.dtype != kind:
                raise InputError(f"{name} holds {array.dtype}; give {np.dtype(kind)}")
            if array.shape != shape:
                raise InputError(f"{name} has the shape {array.shape}; give {shape}")

    def __len__(self) -> int:
        return len(self.hidden)

    @classmethod
    def zeros(cls, size: int) -> "Genomes":
        """So many controllers without hidden neurons and connections, all biases 0."""
        return cls(**{name: np.zeros((size, *tail), kind) for name, (kind, tail) in _FORM.items()})

    @classmethod
    def from_controllers(cls, controllers: Sequence[Controller]) -> "Genomes":
        """These controllers as a batch; their connections keep their order."""
        genomes = cls.zeros(len(controllers))
        for number, controller in enumerate(controllers):
            hidden, count = controller.hidden, len(controller.connections)
            with naming(f"controller {number}"):
                _check_size(hidden, count)
            genomes.hidden[number] = hidden
            genomes.count[number] = count
            genomes.bias[number, : OUTPUTS + hidden] = [float(bias) for bias in controller.bias]
            if count:
                sources, targets, weights = zip(*controller.connections, strict=True)
                genomes.source[number, :count] = sources
                genomes.target[number, :count] = targets
                genomes.weight[number, :count] = [float(weight) for weight in weights]
        return genomes

    def controller(self, number: int) -> Controller:
        """One controller of a batch that passes `check`."""
        hidden, count = int(self.hidden[number]), int(self.count[number])
        connections = zip(
            self.source[number, :count].tolist(),
            self.target[number, :count].tolist(),
            self.weight[number, :count].tolist(),
            strict=True,
        )
        bias = self.bias[number, : OUTPUTS + hidden].tolist()
        return Controller(hidden, tuple(bias), tuple(connections))

    def controllers(self) -> list[Controller]:
        """All controllers of a batch that passes `check`."""
        return [self.controller(number) for number in range(len(self))]

    def take(self, indices: ArrayLike) -> "Genomes":
        """The controllers with these numbers, in this order, copied; a mask selects too."""
        chosen = np.asarray(indices)
        if chosen.size == 0:
            chosen = chosen.astype(np.intp)
        return Genomes(**{name: getattr(self, name)[chosen] for name in _FORM})

    def put(self, rows: ArrayLike, source: "Genomes", chosen: ArrayLike | None = None) -> None:
        """Let the controllers `rows` be those of `source` with the same numbers, or `chosen`."""
        for name in _FORM:
            getattr(self, name)[rows] = getattr(source, name)[rows if chosen is None else chosen]

    @classmethod
    def concatenate(cls, batches: Sequence["Genomes"]) -> "Genomes":
        """The controllers of all batches, one batch after the other."""
        batches = batches or [cls.zeros(0)]
        return cls(**{name: np.concatenate([getattr(b, name) for b in batches]) for name in _FORM})

    def check_sizes(self) -> None:
        """Refuse, by its number, a controller whose numbers of neurons or connections do not fit.

        With this, code that trusts the numbers stays within the arrays.
        """
        fits = (self.hidden >= 0) & (self.hidden <= MAX_HIDDEN)
        fits &= (self.count >= 0) & (self.count <= MAX_CONNECTIONS)
        if not fits.all():
            number = int(fits.argmin())
            with naming(f"controller {number}"):
                _check_size(int(self.hidden[number]), int(self.count[number]))

    def check(self) -> None:
        """Refuse, by its number, a controller that Controller would refuse.

        Weights and biases may be any finite numbers, not only those in [-2, 2].
        """
        self.check_sizes()
        wrong = ~(self._sound_biases() & self._sound_connections())
        if wrong.any():
            number = int(wrong.argmax())
            with naming(f"controller {number}"):
                self.controller(number)

    def _sound_biases(self) -> Array:
        beyond = np.arange(OUTPUTS + MAX_HIDDEN) >= OUTPUTS + self.hidden[:, None]
        sound: Array = np.isfinite(self.bias) | beyond
        return np.all(sound, axis=1)

    def _sound_connections(self) -> Array:
        width = int(self.count.max(initial=0))
        source, target = self.source[:, :width], self.target[:, :width]
        neurons = (INPUTS + OUTPUTS + self.hidden[:, None]).astype(np.uint8)
        used = np.arange(width) < self.count[:, None]
        sound = (source < neurons) & (target < neurons) & (target >= INPUTS)
        sound &= (source < INPUTS) | (source >= INPUTS + OUTPUTS)
        sound &= np.isfinite(self.weight[:, :width])
        pairs = np.where(used, source.astype(np.uint16) << 8 | target, 0)
        pairs.sort(axis=1, kind="stable")  # for 16 bits a radix sort
        twice = (pairs[:, 1:] == pairs[:, :-1]) & (pairs[:, 1:] != 0)
        return (sound | ~used).all(axis=1) & ~twice.any(axis=1)


def _check_size(hidden: int, count: int) -> None:
    if not 0 <= hidden <= MAX_HIDDEN:
        raise InputError(f"has {hidden} hidden neurons; evolution takes 0 to {MAX_HIDDEN}")
    if not 0 <= count <= MAX_CONNECTIONS:
        raise InputError(f"has {count} connections; evolution takes 0 to {MAX_CONNECTIONS}")
