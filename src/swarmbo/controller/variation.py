"""Random controllers and mutation.

All that is drawn for controller i of a batch is a function of (key, i): it
depends neither on the size of the batch nor on the other controllers, and the
arithmetic rounds alike on every processor.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from swarmbo.compilation import kernel
from swarmbo.controller.genomes import MAX_CONNECTIONS, MAX_HIDDEN, Array, Genomes
from swarmbo.controller.network import INPUTS, OUTPUTS
from swarmbo.errors import InputError, is_integer, short

RANDOM_HIDDEN = 20  # a random controller has 0 .. 19 hidden neurons
RANDOM_CONNECTIONS = 40  # and 0 .. 39 connections
BOUND = 2.0  # weights and biases are in [-2, 2]

WEIGHT_RATE = 0.05  # of each weight
REWIRE_RATE = 0.15  # of each connection, until one is rewired
BIAS_RATE = 0.05  # of each bias
ADD_RATE = 0.15
DELETE_RATE = 0.15
SPLIT_RATE = 0.10
DELETE_NEURON_RATE = 0.10

U = np.uint64

_FIRST = INPUTS + OUTPUTS  # number of the first hidden neuron
_ONE = U(1)
_STEP = U(0x9E3779B97F4A7C15)  # of the SplitMix64 sequence
# Any two words, so that random controllers and mutations with the same key are unrelated.
_FOR_RANDOM = U(0x8E51D7A5C0B1F6E3)
_FOR_MUTATION = U(0x3C79AC492BA7B653)


class _Batch(NamedTuple):
    """Genomes as the kernels take them, with their scratch memory."""

    hidden: Array
    connections: Array
    bias: Array
    source: Array
    target: Array
    weight: Array
    state: Array  # 1, uint64: of the random numbers
    codes: Array  # 256, int32: for `_free`
    refused: Array  # controllers, int64: mutations without room


@dataclass(frozen=True, eq=False)
class Variation:
    """What mutation made of a batch."""

    children: Genomes
    refused: Array  # of each child: connections and neurons not added because it was full


def random_genomes(count: int, key: int) -> Genomes:
    """So many random controllers; number i is a function of (key, i).

    Each has 0 to 19 hidden neurons (uniform) and 0 to 39 connections (uniform),
    each new connection drawn uniformly among those that are not there yet; when
    all are there (10 inputs and 2 outputs allow 20) no more come. Weights and
    biases are uniform in [-2, 2]. Last, hidden neurons from which no output can
    be reached are removed with their connections.
    """
    if not is_integer(count) or count < 0:
        raise InputError(f"the number of random controllers is {short(count)}; give 0 or more")
    batch = _unpruned(count, key)
    _prune(batch)
    return _genomes(batch)


def mutate(
    genomes: Genomes,
    key: int,
    numbers: ArrayLike | None = None,
    *,
    parents: ArrayLike | None = None,
) -> Variation:
    """One child of every parent; child i is a function of (parent i, key, i).

    `parents` are the rows of the parents among the genomes, by default all of them.
    `numbers` are their i, by default 0, 1, 2 ...

    In this order:

    1. Each weight with probability 0.05: polynomial mutation.
    2. Each connection in turn with probability 0.15: another source or another
       target (a fair coin), drawn uniformly among those that make no duplicate;
       the weight stays. The walk ends with the first connection chosen, also
       when there is nothing else that it could lead to and it stays as it is.
    3. Each bias with probability 0.05: polynomial mutation.
    4. With probability 0.15 a new connection, drawn uniformly among those that
       are not there yet; its weight is uniform in [-2, 2].
    5. With probability 0.15 a connection, drawn uniformly, is deleted.
    6. With probability 0.10 a connection, drawn uniformly, is replaced by two
       through a new hidden neuron; both have the old weight, and the neuron's
       bias is uniform in [-2, 2].
    7. With probability 0.10 a hidden neuron, drawn uniformly, is deleted with
       its connections; the later ones move down by one number.

    A step without anything to work on does nothing. So do steps 4 and 6 when
    the child would have more than 64 hidden neurons or 256 connections; these
    are counted as refused. New connections come last; the others keep their
    order.

    Polynomial mutation (Deb and Goyal 1996; eta = 15) adds 4 d to a value and
    clips the sum to [-2, 2], where, for r uniform in [0, 1),
    d = (2 r)^(1/16) - 1 if r < 0.5, else 1 - (2 (1 - r))^(1/16). A parent's
    value outside [-2, 2] stays as it is until it is mutated.
    """
    genomes.check_sizes()
    rows = np.arange(len(genomes)) if parents is None else np.asarray(parents)
    if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
        raise InputError("parents must be a list of integers: rows of the genomes")
    rows = rows.astype(np.intp)
    if rows.size and not 0 <= rows.min() <= rows.max() < len(genomes):
        raise InputError(f"parents must be rows of the genomes, 0 to {len(genomes) - 1}")
    chosen = np.arange(len(rows)) if numbers is None else np.asarray(numbers)
    if chosen.shape != (len(rows),) or chosen.dtype.kind not in "iu":
        raise InputError(f"the numbers of {len(rows)} parents must be as many integers")
    word = _key(key)
    batch = _batch(len(rows))
    batch.hidden[:] = genomes.hidden[rows]
    batch.connections[:] = genomes.count[rows]
    neurons = OUTPUTS + int(batch.hidden.max(initial=0))
    width = int(batch.connections.max(initial=0))
    batch.bias[:, :neurons] = genomes.bias[rows, :neurons]
    batch.source[:, :width] = genomes.source[rows, :width]
    batch.target[:, :width] = genomes.target[rows, :width]
    batch.weight[:, :width] = genomes.weight[rows, :width]
    _mutate(batch, chosen.astype(np.int64), neurons, width, word)
    return Variation(_genomes(batch), batch.refused)


def _unpruned(count: int, key: int) -> _Batch:
    """Random controllers before hidden neurons are removed."""
    word = _key(key)
    batch = _batch(count)
    _grow(batch, word)
    return batch


def _key(key: int) -> Any:
    if not is_integer(key) or not 0 <= key < 2**64:
        raise InputError(f"the key is {short(key)}; give an integer from 0 to 2^64 - 1")
    return U(key)


def _batch(size: int) -> _Batch:
    genomes = Genomes.zeros(size)
    return _Batch(
        hidden=genomes.hidden,
        connections=genomes.count,
        bias=genomes.bias,
        source=genomes.source,
        target=genomes.target,
        weight=genomes.weight,
        state=np.zeros(1, U),
        codes=np.zeros(MAX_CONNECTIONS, np.int32),
        refused=np.zeros(size, np.int64),
    )


def _genomes(batch: _Batch) -> Genomes:
    return Genomes(*batch[:6])


def _exact(function: Callable[..., Any]) -> Any:
    """A function called by kernels, whose arithmetic rounds as it is written.

    The engine's formulas may be rearranged for speed, differently on different
    processors.
    """
    return njit(
        error_model="numpy",
        nogil=True,
        _nrt=False,
        no_cpython_wrapper=True,
        no_cfunc_wrapper=True,
    )(function)


# --- random numbers ----------------------------------------------------------------------------


@_exact
def _mix(word: Any) -> Any:
    """The bijection of 64-bit words of SplitMix64 (Steele, Lea and Flood 2014)."""
    word = (word ^ (word >> U(30))) * U(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> U(27))) * U(0x94D049BB133111EB)
    return word ^ (word >> U(31))


@_exact
def _start(state: Array, key: Any, purpose: Any, number: int) -> None:
    """Begin the random numbers of one controller of the batch."""
    state[0] = _mix(_mix(key ^ purpose) + U(number) * _STEP)


@_exact
def _uniform(state: Array) -> Any:
    """The next random number in [0, 1); 53 bits."""
    state[0] += _STEP
    return np.float64(_mix(state[0]) >> U(11)) * 2.0**-53


@_exact
def _choose(state: Array, count: int) -> Any:
    """The next random integer in 0 .. count - 1."""
    return np.int64(_uniform(state) * count)


@_exact
def _value(state: Array) -> Any:
    """The next random weight or bias."""
    return 2 * BOUND * _uniform(state) - BOUND


@_exact
def _polynomial(state: Array, value: float) -> Any:
    """A weight or bias after polynomial mutation.

    Four square roots, as they are rounded alike everywhere; powers are not.
    """
    r = _uniform(state)
    below = r < 0.5
    root = np.sqrt(np.sqrt(np.sqrt(np.sqrt(2 * r if below else 2 * (1 - r)))))
    d = root - 1 if below else 1 - root
    return min(max(value + 2 * BOUND * d, -BOUND), BOUND)


# --- parts of a network ------------------------------------------------------------------------


@_exact
def _source_place(neuron: int) -> Any:
    """Place of a neuron among the possible sources: inputs, then hidden neurons."""
    return neuron if neuron < INPUTS else neuron - OUTPUTS


@_exact
def _source_at(place: int) -> Any:
    """The neuron at a place among the possible sources."""
    return place if place < INPUTS else place + OUTPUTS


@_exact
def _free(codes: Array, taken: int, rank: int) -> Any:
    """The number of this rank, from 0, among 0, 1, 2 ... without the first `taken` codes.

    It is the least number that equals rank + (codes up to that number); counting
    from below finds it in a few rounds.
    """
    before = np.int64(-1)
    free = np.int64(rank)
    while free != before:
        before = free
        free = np.int64(rank)
        for k in range(taken):
            free += codes[k] <= before
    return free


@_exact
def _connect(batch: _Batch, i: int, source: int, target: int, weight: float) -> None:
    last = batch.connections[i]
    batch.source[i, last] = source
    batch.target[i, last] = target
    batch.weight[i, last] = weight
    batch.connections[i] = last + 1


@_exact
def _cut(batch: _Batch, i: int, count: int) -> None:
    """Keep the first `count` connections."""
    for c in range(count, batch.connections[i]):
        batch.source[i, c] = 0
        batch.target[i, c] = 0
        batch.weight[i, c] = 0
    batch.connections[i] = count


@_exact
def _disconnect(batch: _Batch, i: int, connection: int) -> None:
    last = batch.connections[i] - 1
    for c in range(connection, last):
        batch.source[i, c] = batch.source[i, c + 1]
        batch.target[i, c] = batch.target[i, c + 1]
        batch.weight[i, c] = batch.weight[i, c + 1]
    _cut(batch, i, last)


@_exact
def _remove_neuron(batch: _Batch, i: int, neuron: int) -> None:
    """Remove a hidden neuron and its connections; the later ones get the numbers before."""
    kept = 0
    for c in range(batch.connections[i]):
        source = batch.source[i, c]
        target = batch.target[i, c]
        if source != neuron and target != neuron:
            batch.source[i, kept] = source - 1 if source > neuron else source
            batch.target[i, kept] = target - 1 if target > neuron else target
            batch.weight[i, kept] = batch.weight[i, c]
            kept += 1
    _cut(batch, i, kept)
    last = OUTPUTS + batch.hidden[i] - 1
    for k in range(neuron - INPUTS, last):
        batch.bias[i, k] = batch.bias[i, k + 1]
    batch.bias[i, last] = 0
    batch.hidden[i] -= 1


# --- steps -------------------------------------------------------------------------------------


@_exact
def _add(batch: _Batch, i: int) -> None:
    """Add a connection that is not there yet."""
    count = batch.connections[i]
    targets = OUTPUTS + batch.hidden[i]
    free = (INPUTS + batch.hidden[i]) * targets - count
    if free <= 0:
        return
    if count == MAX_CONNECTIONS:
        batch.refused[i] += 1
        return
    for c in range(count):
        place = _source_place(batch.source[i, c])
        batch.codes[c] = place * targets + batch.target[i, c] - INPUTS
    code = _free(batch.codes, count, _choose(batch.state, free))
    source = _source_at(code // targets)
    target = INPUTS + code % targets
    _connect(batch, i, source, target, _value(batch.state))


@_exact
def _rewire_source(batch: _Batch, i: int, connection: int) -> None:
    taken = 0
    for c in range(batch.connections[i]):
        if batch.target[i, c] == batch.target[i, connection]:
            batch.codes[taken] = _source_place(batch.source[i, c])
            taken += 1
    free = INPUTS + batch.hidden[i] - taken
    if free > 0:
        place = _free(batch.codes, taken, _choose(batch.state, free))
        batch.source[i, connection] = _source_at(place)


@_exact
def _rewire_target(batch: _Batch, i: int, connection: int) -> None:
    taken = 0
    for c in range(batch.connections[i]):
        if batch.source[i, c] == batch.source[i, connection]:
            batch.codes[taken] = batch.target[i, c] - INPUTS
            taken += 1
    free = OUTPUTS + batch.hidden[i] - taken
    if free > 0:
        place = _free(batch.codes, taken, _choose(batch.state, free))
        batch.target[i, connection] = INPUTS + place


@_exact
def _rewire(batch: _Batch, i: int) -> None:
    """Give the first connection that is chosen another source or another target."""
    for connection in range(batch.connections[i]):
        if _uniform(batch.state) < REWIRE_RATE:
            if _uniform(batch.state) < 0.5:
                _rewire_source(batch, i, connection)
            else:
                _rewire_target(batch, i, connection)
            return


@_exact
def _split(batch: _Batch, i: int) -> None:
    """Put a new hidden neuron in the middle of a connection."""
    count, hidden = batch.connections[i], batch.hidden[i]
    if count == 0:
        return
    if count == MAX_CONNECTIONS or hidden == MAX_HIDDEN:
        batch.refused[i] += 1
        return
    connection = _choose(batch.state, count)
    source = batch.source[i, connection]
    target = batch.target[i, connection]
    weight = batch.weight[i, connection]
    _disconnect(batch, i, connection)
    batch.hidden[i] = hidden + 1
    batch.bias[i, OUTPUTS + hidden] = _value(batch.state)
    _connect(batch, i, source, _FIRST + hidden, weight)
    _connect(batch, i, _FIRST + hidden, target, weight)


@_exact
def _mutate_one(batch: _Batch, i: int) -> None:
    state = batch.state
    for c in range(batch.connections[i]):
        if _uniform(state) < WEIGHT_RATE:
            batch.weight[i, c] = _polynomial(state, batch.weight[i, c])
    _rewire(batch, i)
    for k in range(OUTPUTS + batch.hidden[i]):
        if _uniform(state) < BIAS_RATE:
            batch.bias[i, k] = _polynomial(state, batch.bias[i, k])
    if _uniform(state) < ADD_RATE:
        _add(batch, i)
    if _uniform(state) < DELETE_RATE and batch.connections[i] > 0:
        _disconnect(batch, i, _choose(state, batch.connections[i]))
    if _uniform(state) < SPLIT_RATE:
        _split(batch, i)
    if _uniform(state) < DELETE_NEURON_RATE and batch.hidden[i] > 0:
        _remove_neuron(batch, i, _FIRST + _choose(state, batch.hidden[i]))


@_exact
def _grow_one(batch: _Batch, i: int) -> None:
    state = batch.state
    batch.hidden[i] = _choose(state, RANDOM_HIDDEN)
    for k in range(OUTPUTS + batch.hidden[i]):
        batch.bias[i, k] = _value(state)
    for _ in range(_choose(state, RANDOM_CONNECTIONS)):
        _add(batch, i)


@_exact
def _prune_one(batch: _Batch, i: int) -> None:
    useful = U(0)  # bit h: an output can be reached from hidden neuron h
    before = _ONE
    while useful != before:
        before = useful
        for c in range(batch.connections[i]):
            source = batch.source[i, c]
            target = batch.target[i, c]
            if source >= _FIRST and (
                target < _FIRST or (useful >> U(target - _FIRST)) & _ONE == _ONE
            ):
                useful |= _ONE << U(source - _FIRST)
    for neuron in range(_FIRST + batch.hidden[i] - 1, _FIRST - 1, -1):
        if (useful >> U(neuron - _FIRST)) & _ONE != _ONE:
            _remove_neuron(batch, i, neuron)


# --- kernels -----------------------------------------------------------------------------------


@kernel
def _mutate(batch: _Batch, numbers: Array, neurons: int, width: int, key: Any) -> None:
    """Mutate all controllers of a batch, of which so many biases and connections were copied."""
    for i in range(batch.hidden.size):
        for k in range(OUTPUTS + batch.hidden[i], neurons):
            batch.bias[i, k] = 0
        for c in range(batch.connections[i], width):
            batch.source[i, c] = 0
            batch.target[i, c] = 0
            batch.weight[i, c] = 0
        _start(batch.state, key, _FOR_MUTATION, numbers[i])
        _mutate_one(batch, i)


@kernel
def _grow(batch: _Batch, key: Any) -> None:
    """Turn empty controllers into random ones."""
    for i in range(batch.hidden.size):
        _start(batch.state, key, _FOR_RANDOM, i)
        _grow_one(batch, i)


@kernel
def _prune(batch: _Batch) -> None:
    """Remove the hidden neurons from which no output can be reached."""
    for i in range(batch.hidden.size):
        _prune_one(batch, i)
