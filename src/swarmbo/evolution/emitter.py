"""Where new controllers come from: chance at first, then mutated copies of elites.

`VariationEmitter` is an emitter of pyribs, to be used alone or beside others in
one of its schedulers. pyribs wants solutions to be vectors of equal length;
`pack` and `unpack` turn controllers into them and back, exactly.
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from ribs.archives import ArchiveBase
from ribs.emitters import EmitterBase

from swarmbo.controller.genomes import MAX_CONNECTIONS, MAX_HIDDEN, Genomes
from swarmbo.controller.network import OUTPUTS
from swarmbo.controller.variation import Variation, mutate, random_genomes
from swarmbo.errors import InputError
from swarmbo.streams import Stream

Array = np.ndarray[Any, np.dtype[Any]]

INITIAL = 1000  # random controllers at the start
BATCH = 500  # children in a generation

_BIASES = OUTPUTS + MAX_HIDDEN
_BIAS = slice(2, 2 + _BIASES)
_WEIGHT = slice(_BIAS.stop, _BIAS.stop + MAX_CONNECTIONS)
_LINK = slice(_WEIGHT.stop, _WEIGHT.stop + MAX_CONNECTIONS)
VECTOR = _LINK.stop  # numbers in a packed controller


# --- variation ---------------------------------------------------------------------------------


def initial_genomes(seed: int, count: int) -> Genomes:
    """The random controllers with which the evolution of this seed begins."""
    return random_genomes(count, Stream("random controllers", seed).key())


def choose_parents(seed: int, generation: int, elites: int, count: int) -> Array:
    """The parents of a generation: uniform in 0 .. elites - 1, with replacement.

    Parent i is a function of (seed, generation, elites, i).
    """
    bits = np.random.Philox(key=_key("parents", seed, generation))
    shares = (bits.random_raw(count) >> np.uint64(11)) * 2.0**-53
    return (elites * shares).astype(np.intp)


def make_children(
    elites: Genomes,
    parents: ArrayLike,
    seed: int,
    generation: int,
    numbers: ArrayLike | None = None,
) -> Variation:
    """Mutated copies of the elites in these rows, and how many mutations found no room.

    `numbers`: of the children in their generation, by default 0, 1, 2 ...
    """
    return mutate(elites, _key("mutation", seed, generation), numbers, parents=parents)


@lru_cache(maxsize=1024)  # generations are foreseen many times
def _key(purpose: str, seed: int, generation: int) -> int:
    return Stream(purpose, seed, generation).key()


# --- vectors -----------------------------------------------------------------------------------


def pack(genomes: Genomes) -> Array:
    """Controllers x 580: each as one vector, from which `unpack` makes the same controller.

    Numbers of hidden neurons and of connections; biases; weights; 256 * source +
    target of each connection. What is not used is 0.
    """
    vectors = np.zeros((len(genomes), VECTOR))
    vectors[:, 0] = genomes.hidden
    vectors[:, 1] = genomes.count
    vectors[:, _BIAS] = genomes.bias
    vectors[:, _WEIGHT] = genomes.weight
    vectors[:, _LINK] = 256.0 * genomes.source + genomes.target
    return vectors


def unpack(vectors: ArrayLike) -> Genomes:
    """The controllers in packed vectors; InputError when one of them is none.

    Other emitters may have changed what is not used, and all biases and weights.
    """
    vectors = np.asarray(vectors, np.float64)
    if vectors.ndim != 2 or vectors.shape[1] != VECTOR:
        raise InputError(f"vectors have the shape {vectors.shape}; give rows of {VECTOR} numbers")
    sizes, links = vectors[:, :2], vectors[:, _LINK]
    for column, (name, most) in enumerate(
        (("hidden neurons", MAX_HIDDEN), ("connections", MAX_CONNECTIONS))
    ):
        number = sizes[:, column]
        wrong = ~((number >= 0) & (number <= most) & (number == np.floor(number)))
        if wrong.any():
            row = int(wrong.argmax())
            raise InputError(
                f"vector {row} has {number[row]:g} {name}; give an integer, 0 to {most}"
            )
    hidden, count = sizes.T.astype(np.int32)
    neurons = np.arange(_BIASES) < OUTPUTS + hidden[:, None]
    used = np.arange(MAX_CONNECTIONS) < count[:, None]
    links = np.where(used, links, 0)
    wrong = ~((links >= 0) & (links < 2**16) & (links == np.floor(links))).all(axis=1)
    if wrong.any():
        raise InputError(
            f"vector {int(wrong.argmax())} has a connection that is not 256 * source + target; "
            "let other emitters change biases and weights only"
        )
    source, target = np.divmod(links.astype(np.int32), 256)
    genomes = Genomes(
        hidden=hidden,
        count=count,
        bias=np.where(neurons, vectors[:, _BIAS], 0),
        source=source.astype(np.uint8),
        target=target.astype(np.uint8),
        weight=np.where(used, vectors[:, _WEIGHT], 0),
    )
    genomes.check()
    return genomes


def parameters() -> Array:
    """Which of the numbers in a vector are biases and weights, of any size; a mask of 580."""
    mask = np.zeros(VECTOR, bool)
    mask[_BIAS] = mask[_WEIGHT] = True
    return mask


class VariationEmitter(EmitterBase):
    """Random controllers while the archive is empty, then mutated copies of its elites.

    Parents are drawn uniformly from the filled cells. All that is drawn is a
    function of `seed`, the number of calls of `ask`, and the archive; not of
    the order in which its cells were filled. The archive's solutions are packed
    controllers (`solution_dim=VECTOR`).
    """

    def __init__(
        self,
        archive: ArchiveBase,
        *,
        seed: int,
        batch_size: int = BATCH,
        initial: int = INITIAL,
    ) -> None:
        if archive.solution_dim not in (VECTOR, (VECTOR,)):
            raise InputError(
                f"the archive's solution_dim is {archive.solution_dim}; give it {VECTOR}"
            )
        for name, count in (("batch_size", batch_size), ("initial", initial)):
            if count < 1:
                raise InputError(f"{name} is {count}; give at least 1")
        super().__init__(
            archive, solution_dim=VECTOR, bounds=None, lower_bounds=None, upper_bounds=None
        )
        self.seed = seed
        self.batch_size = batch_size
        self.initial = initial
        self.generation = 0  # calls of `ask` so far
        self.refused = 0  # mutations that found no room

    def ask(self) -> Array:
        """The next controllers to evaluate, packed: `initial` or `batch_size` of them."""
        generation = self.generation
        self.generation += 1
        if self.archive.empty:
            return pack(initial_genomes(self.seed, self.initial))
        elites = self.archive.data(["solution", "index"])
        order = np.argsort(elites["index"])
        chosen = choose_parents(self.seed, generation, len(order), self.batch_size)
        parents = unpack(elites["solution"][order[chosen]])
        variation = make_children(parents, np.arange(len(parents)), self.seed, generation)
        self.refused += int(variation.refused.sum())
        return pack(variation.children)
