"""Random controllers and mutation: against a plain version, and against the stated chances."""

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats  # type: ignore[import-untyped, unused-ignore]

from swarmbo import Controller, InputError, bundled_controllers
from swarmbo.controller import variation
from swarmbo.controller.genomes import MAX_CONNECTIONS, MAX_HIDDEN, Genomes
from swarmbo.controller.network import INPUTS, OUTPUTS
from swarmbo.controller.variation import mutate, random_genomes
from tests.test_controller import controllers
from tests.test_genomes import bits, sized

KEYS = st.integers(0, 2**64 - 1)
MANY = 10_000  # children in a test of chances
FIRST = INPUTS + OUTPUTS  # number of the first hidden neuron

# --- the plain version ---------------------------------------------------------------------------

MASK = 2**64 - 1
STEP = 0x9E3779B97F4A7C15


def mix(word: int) -> int:
    """The finaliser of SplitMix64."""
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 & MASK
    word = (word ^ word >> 27) * 0x94D049BB133111EB & MASK
    return word ^ word >> 31


class Numbers:
    """The random numbers of one controller of a batch."""

    def __init__(self, purpose: np.uint64, key: int, number: int) -> None:
        self.state = mix(mix(key ^ int(purpose)) + number * STEP & MASK)

    def uniform(self) -> float:
        self.state = self.state + STEP & MASK
        return (mix(self.state) >> 11) / 2**53

    def choose(self, options: Sequence[Any]) -> Any:
        return options[int(self.uniform() * len(options))]

    def value(self) -> float:
        return 4 * self.uniform() - 2

    def polynomial(self, value: float) -> float:
        r = self.uniform()
        root = 2 * r if r < 0.5 else 2 * (1 - r)
        for _ in range(4):
            root = math.sqrt(root)
        d = root - 1 if r < 0.5 else 1 - root
        return min(max(value + 4 * d, -2.0), 2.0)


class Plain:
    """A network as a list of biases and a list of connections."""

    def __init__(self, controller: Controller) -> None:
        self.bias = list(controller.bias)
        self.connections: list[list[Any]] = [list(c) for c in controller.connections]
        self.refused = 0

    @property
    def sources(self) -> list[int]:
        return [*range(INPUTS), *range(FIRST, INPUTS + len(self.bias))]

    @property
    def targets(self) -> list[int]:
        return list(range(INPUTS, INPUTS + len(self.bias)))

    @property
    def pairs(self) -> set[tuple[int, int]]:
        return {(source, target) for source, target, _ in self.connections}

    def controller(self) -> Controller:
        connections = tuple((s, t, w) for s, t, w in self.connections)
        return Controller(len(self.bias) - OUTPUTS, tuple(self.bias), connections)

    def rewire(self, numbers: Numbers) -> None:
        for connection in self.connections:
            if numbers.uniform() < 0.15:
                source, target, _ = connection
                if numbers.uniform() < 0.5:
                    end, free = 0, [s for s in self.sources if (s, target) not in self.pairs]
                else:
                    end, free = 1, [t for t in self.targets if (source, t) not in self.pairs]
                if free:
                    connection[end] = numbers.choose(free)
                return

    def add(self, numbers: Numbers) -> None:
        pairs = self.pairs
        free = [(s, t) for s in self.sources for t in self.targets if (s, t) not in pairs]
        if free and len(self.connections) == MAX_CONNECTIONS:
            self.refused += 1
        elif free:
            self.connections.append([*numbers.choose(free), numbers.value()])

    def split(self, numbers: Numbers) -> None:
        full = len(self.connections) == MAX_CONNECTIONS or len(self.bias) == OUTPUTS + MAX_HIDDEN
        if self.connections and full:
            self.refused += 1
        elif self.connections:
            old = numbers.choose(self.connections)
            self.connections.remove(old)
            source, target, weight = old
            new = INPUTS + len(self.bias)
            self.bias.append(numbers.value())
            self.connections += [[source, new, weight], [new, target, weight]]

    def remove_neuron(self, neuron: int) -> None:
        del self.bias[neuron - INPUTS]
        self.connections = [
            [source - (source > neuron), target - (target > neuron), weight]
            for source, target, weight in self.connections
            if neuron not in (source, target)
        ]


def plain_child(parent: Controller, key: int, number: int) -> Plain:
    """Child `number` of a batch, and how many of its mutations were refused."""
    numbers = Numbers(variation._FOR_MUTATION, key, number)
    child = Plain(parent)
    for connection in child.connections:
        if numbers.uniform() < 0.05:
            connection[2] = numbers.polynomial(connection[2])
    child.rewire(numbers)
    for k, bias in enumerate(child.bias):
        if numbers.uniform() < 0.05:
            child.bias[k] = numbers.polynomial(bias)
    if numbers.uniform() < 0.15:
        child.add(numbers)
    if numbers.uniform() < 0.15 and child.connections:
        child.connections.remove(numbers.choose(child.connections))
    if numbers.uniform() < 0.10:
        child.split(numbers)
    if numbers.uniform() < 0.10 and len(child.bias) > OUTPUTS:
        child.remove_neuron(numbers.choose(child.targets[OUTPUTS:]))
    return child


def reaching_an_output(network: Plain) -> set[int]:
    """The neurons from which a path leads to an output."""
    reached, fresh = {10, 11}, {10, 11}
    while fresh:
        fresh = {source for source, target in network.pairs if target in fresh} - reached
        reached |= fresh
    return reached


def plain_random(key: int, number: int) -> Controller:
    """Random controller `number` of a batch."""
    numbers = Numbers(variation._FOR_RANDOM, key, number)
    hidden = numbers.choose(range(20))
    bias = tuple(numbers.value() for _ in range(OUTPUTS + hidden))
    network = Plain(Controller(hidden, bias, ()))
    for _ in range(numbers.choose(range(40))):
        network.add(numbers)
    reaching = reaching_an_output(network)
    for neuron in reversed(network.targets[OUTPUTS:]):
        if neuron not in reaching:
            network.remove_neuron(neuron)
    return network.controller()


def nearly_full() -> list[Controller]:
    """Controllers at or close to the limits of a genome."""
    return [
        sized(hidden, connections)
        for hidden in (MAX_HIDDEN, MAX_HIDDEN - 1, 30)
        for connections in (MAX_CONNECTIONS, MAX_CONNECTIONS - 1, 250)
    ]


# --- what holds for every child ------------------------------------------------------------------


def test_random_controllers_equal_the_plain_version() -> None:
    assert random_genomes(150, key=3).controllers() == [plain_random(3, i) for i in range(150)]


def test_generations_of_children_equal_the_plain_version() -> None:
    genomes = random_genomes(60, key=1)
    for key in range(25):
        expected = [plain_child(c, key, i) for i, c in enumerate(genomes.controllers())]
        genomes = mutate(genomes, key).children
        genomes.check()
        assert genomes.controllers() == [child.controller() for child in expected]


def test_children_of_full_genomes_equal_the_plain_version() -> None:
    parents = 8 * nearly_full()
    expected = [plain_child(c, 5, i) for i, c in enumerate(parents)]
    result = mutate(Genomes.from_controllers(parents), 5)
    assert result.children.controllers() == [child.controller() for child in expected]
    assert result.refused.tolist() == [child.refused for child in expected]
    assert result.refused.any()


@settings(max_examples=60)
@given(st.lists(controllers(), min_size=1, max_size=4), KEYS)
def test_children_of_any_controllers_are_sound(parents: list[Controller], key: int) -> None:
    result = mutate(Genomes.from_controllers(parents), key)
    result.children.check()
    children = result.children.controllers()
    assert children == [plain_child(c, key, i).controller() for i, c in enumerate(parents)]
    assert not result.refused.any()
    restored = [Controller.from_json(json.loads(json.dumps(c.to_json()))) for c in children]
    assert bits(Genomes.from_controllers(restored)) == bits(result.children)


@settings(max_examples=30)
@given(KEYS)
def test_random_controllers_are_sound(key: int) -> None:
    genomes = random_genomes(20, key)
    genomes.check()
    restored = genomes.controllers()
    assert bits(Genomes.from_controllers(restored)) == bits(genomes)
    for controller in restored:
        assert reaching_an_output(Plain(controller)) >= set(range(FIRST, controller.neurons))


@settings(max_examples=30)
@given(KEYS, st.integers(0, 40))
def test_controllers_do_not_depend_on_the_rest_of_the_batch(key: int, size: int) -> None:
    genomes = random_genomes(40, key)
    part = genomes.take(range(size))
    assert bits(random_genomes(size, key)) == bits(part)
    children = mutate(genomes, key).children
    assert bits(mutate(part, key).children) == bits(children.take(range(size)))
    assert bits(mutate(genomes, key).children) == bits(children)


def test_another_key_or_place_gives_other_children() -> None:
    parents = Genomes.from_controllers([sized(5, 60)] * 50)
    children = mutate(parents, 0).children.controllers() + mutate(parents, 1).children.controllers()
    assert len(set(children)) == 100


def test_parents_stay_as_they_are_whatever_lies_beyond_them() -> None:
    parents = Genomes.from_controllers(bundled_controllers("recorded"))
    expected = bits(mutate(parents, 4).children)
    for name in ("bias", "weight", "source", "target"):
        array, last = getattr(parents, name), parents.count[:, None]
        last = OUTPUTS + parents.hidden[:, None] if name == "bias" else last
        array[np.arange(array.shape[1]) >= last] = 77
    for array in (parents.hidden, parents.count, parents.bias, parents.source, parents.weight):
        array.flags.writeable = False
    before = bits(parents)
    assert bits(mutate(parents, 4).children) == expected
    assert bits(parents) == before


@pytest.mark.parametrize("key", [-1, 2**64, 1.0, True])
def test_key_of_the_wrong_kind_is_refused(key: Any) -> None:
    with pytest.raises(InputError, match=r"the key is .*; give an integer from 0 to"):
        mutate(Genomes.zeros(1), key)
    with pytest.raises(InputError, match=r"the key is .*; give an integer from 0 to"):
        random_genomes(1, key)


def test_sizes_that_do_not_fit_are_refused() -> None:
    parents = Genomes.zeros(2)
    parents.count[1] = 300
    with pytest.raises(InputError, match="controller 1: has 300 connections"):
        mutate(parents, 0)
    with pytest.raises(InputError, match="the number of random controllers is -1"):
        random_genomes(-1, 0)


# --- chances -------------------------------------------------------------------------------------
# Keys are fixed; a p-value under 0.001 would be a fault of the code, not bad luck.

Array = np.ndarray[Any, np.dtype[Any]]


def assert_share(hits: Array, chance: float) -> None:
    """Fail unless so large a share of True is what such a chance gives."""
    assert stats.binomtest(int(hits.sum()), hits.size, chance).pvalue > 1e-3


def assert_frequencies(found: Array, chances: Sequence[float]) -> None:
    """Fail unless 0, 1, 2 ... are found as often as their chances say."""
    assert math.isclose(sum(chances), 1)
    counts = np.bincount(found, minlength=len(chances))
    assert len(counts) == len(chances)
    assert stats.chisquare(counts, found.size * np.array(chances)).pvalue > 1e-3


def assert_even(found: Array, options: int) -> None:
    """Fail unless 0 .. options - 1 are equally frequent."""
    assert_frequencies(found, [1 / options] * options)


def assert_distribution(values: Array, cumulative: str | Callable[..., Any], *args: float) -> None:
    """Fail unless the values follow a distribution (Kolmogorov-Smirnov)."""
    assert stats.kstest(values, cumulative, args).pvalue > 1e-3


def polynomial_below(d: Array) -> Array:
    """Chance that polynomial mutation with eta = 15 moves a gene by less than d."""
    return np.where(d < 0, 0.5 * (1 + d) ** 16, 1 - 0.5 * (1 - np.abs(d)) ** 16)


def two_layers(weight: float, bias: float = 0.0) -> Controller:
    """All 20 connections that a network without hidden neurons can have."""
    pairs = [(source, target) for source in range(INPUTS) for target in (10, 11)]
    return Controller(0, (bias, bias), tuple((*pair, weight) for pair in pairs))


def children_of(parent: Controller, key: int) -> Genomes:
    """Many children of one parent."""
    return mutate(Genomes.from_controllers([parent]).take(np.zeros(MANY, int)), key).children


def with_size(genomes: Genomes, hidden: int, count: int) -> Genomes:
    """The controllers of this size."""
    return genomes.take((genomes.hidden == hidden) & (genomes.count == count))


def missing(genomes: Genomes, parent: Controller) -> Array:
    """Which connection of the parent, the only one, each controller lacks."""
    lacking = []
    for source, target in zip(genomes.source.tolist(), genomes.target.tolist(), strict=True):
        pairs = set(zip(source, target, strict=True))
        (gone,) = (k for k, (s, t, _) in enumerate(parent.connections) if (s, t) not in pairs)
        lacking.append(gone)
    return np.array(lacking)


def test_each_weight_moves_with_chance_5_percent_by_the_polynomial() -> None:
    same = with_size(children_of(two_layers(0.0), 1), hidden=0, count=20)
    weight = same.weight[:, :20]
    assert_share(weight != 0, 0.05)
    assert_even(np.nonzero(weight)[1], 20)
    assert_distribution(weight[weight != 0] / 4, polynomial_below)


def test_weight_at_its_bound_moves_inwards_only() -> None:
    same = with_size(children_of(two_layers(2.0), 2), hidden=0, count=20)
    weight = same.weight[:, :20]
    assert_share(weight != 2, 0.025)
    assert_distribution(weight[weight != 2] / 4 - 0.5, lambda d: (1 + d) ** 16)


def test_weight_out_of_bounds_stays_until_it_is_mutated() -> None:
    same = with_size(children_of(two_layers(-5.0), 3), hidden=0, count=20)
    weight = same.weight[:, :20]
    assert_share(weight != -5, 0.05)
    assert np.all((weight == -5) | (np.abs(weight) <= 2))


def test_each_bias_moves_with_chance_5_percent_by_the_polynomial() -> None:
    bias = with_size(children_of(two_layers(0.0), 4), hidden=0, count=20).bias[:, :2]
    assert_share(bias != 0, 0.05)
    assert_distribution(bias[bias != 0] / 4, polynomial_below)


def test_biases_of_hidden_neurons_move_too() -> None:
    tags = 3 + np.arange(12.0)  # beyond the bounds: a mutated one is at most 2
    children = children_of(Controller(10, tuple(tags.tolist()), ()), 5)
    bias = children.bias[children.hidden == 10, :12]
    bias = bias[~((bias != tags) & (bias > 2)).any(axis=1)]  # no neuron was deleted
    assert_share(bias != tags, 0.05)
    assert_even(np.nonzero(bias != tags)[1], 12)


def rewired() -> tuple[Controller, Genomes]:
    """A parent with 10 tagged connections, and its children that only steps 2 and 3 changed."""
    pairs = [(k, 10 + k % 8) for k in range(10)]
    parent = Controller(6, (0.0,) * 8, tuple((*p, 3.0 + k) for k, p in enumerate(pairs)))
    children = with_size(children_of(parent, 6), hidden=6, count=10)
    tags = [weight for *_, weight in parent.connections]
    return parent, children.take((children.weight[:, :10] == tags).all(axis=1))


def test_the_first_connection_chosen_with_chance_15_percent_is_rewired_alone() -> None:
    parent, children = rewired()
    sources, targets, _ = zip(*parent.connections, strict=True)
    other_source = children.source[:, :10] != sources
    other_target = children.target[:, :10] != targets
    changed = other_source | other_target
    assert changed.sum(axis=1).max() == 1
    place = np.where(changed.any(axis=1), changed.argmax(axis=1), 10)
    assert_frequencies(place, [0.15 * 0.85**k for k in range(10)] + [0.85**10])
    assert not (other_source & other_target).any()
    assert_share(other_source[changed], 0.5)


def test_new_ends_of_a_connection_are_equally_likely() -> None:
    parent, children = rewired()
    source, target = children.source[:, 0], children.target[:, 0]
    taken = {t: {s for s, other, _ in parent.connections if other == t} for t in range(10, 18)}
    free = [s for s in (*range(10), *range(12, 18)) if s not in taken[10]]
    new = source[source != parent.connections[0][0]]
    assert_even(np.array([free.index(s) for s in new]), len(free))
    new = target[target != parent.connections[0][1]]
    assert_even(new.astype(int) - 11, 7)


def test_connection_without_another_place_stays() -> None:
    parent = two_layers(0.0)
    same = with_size(children_of(parent, 1), hidden=0, count=20)
    sources, targets, _ = zip(*parent.connections, strict=True)
    assert (same.source[:, :20] == sources).all()
    assert (same.target[:, :20] == targets).all()


def test_connection_is_added_with_chance_15_percent() -> None:
    children = children_of(Controller(0, (0.0, 0.0), ()), 7)
    stays = 0.15 * 0.85  # neither deleted, nor split in the next steps
    assert set(zip(children.hidden.tolist(), children.count.tolist(), strict=True)) == {
        (0, 0),
        (0, 1),
        (1, 2),
    }
    chances = [1 - stays * (0.9 + 0.1 * 0.9), stays * 0.9, stays * 0.1 * 0.9]
    assert_frequencies(children.count, chances)


def test_every_missing_connection_is_as_likely_to_be_added() -> None:
    children = with_size(children_of(Controller(4, (0.0,) * 6, ()), 8), hidden=4, count=1)
    source, target = children.source[:, 0].astype(int), children.target[:, 0].astype(int)
    place = np.where(source < INPUTS, source, source - OUTPUTS)
    assert_even(place * 6 + target - INPUTS, 14 * 6)
    assert_distribution(children.weight[:, 0], "uniform", -2, 4)


def test_connections_and_neurons_come_and_go_with_their_chances() -> None:
    children = children_of(two_layers(0.0), 9)
    outcomes = {  # (hidden, connections): chance; delete .15, split .10, delete neuron .10
        (0, 20): 0.85 * 0.9,
        (0, 19): 0.15 * 0.9 + 0.85 * 0.1 * 0.1,
        (0, 18): 0.15 * 0.1 * 0.1,
        (1, 20): 0.15 * 0.1 * 0.9,
        (1, 21): 0.85 * 0.1 * 0.9,
    }
    sizes = zip(children.hidden.tolist(), children.count.tolist(), strict=True)
    found = np.array([list(outcomes).index(size) for size in sizes])
    assert_frequencies(found, list(outcomes.values()))


def test_every_connection_is_as_likely_to_be_deleted_or_split() -> None:
    parent = two_layers(0.0)
    children = children_of(parent, 9)
    assert_even(missing(with_size(children, hidden=0, count=19), parent), 20)
    assert_even(missing(with_size(children, hidden=1, count=21), parent), 20)


def test_split_puts_a_neuron_with_a_random_bias_between_the_old_ends() -> None:
    tagged = [(*pair[:2], 3.0 + k) for k, pair in enumerate(two_layers(0.0).connections)]
    parent = Controller(0, (0.0, 0.0), tuple(tagged))
    split = with_size(children_of(parent, 10), hidden=1, count=21)
    assert_distribution(split.bias[:, 2], "uniform", -2, 4)
    for child, gone in zip(split.controllers(), missing(split, parent), strict=True):
        source, target, weight = tagged[gone]
        into, out = child.connections[19:]
        assert (into[:2], out[:2]) == ((source, 12), (12, target))
        assert into[2] == out[2]
        assert into[2] == weight or into[2] <= 2


def test_hidden_neuron_is_deleted_with_chance_10_percent() -> None:
    tags = 3 + np.arange(8.0)
    children = children_of(Controller(6, tuple(tags.tolist()), ()), 11)
    assert_share(children.hidden == 5, 0.1 * (1 - 0.15 * 0.85 * 0.1))
    left = children.bias[children.hidden == 5, 2:7]
    left = left[(left > 2).all(axis=1)]
    assert_even((tags[2:].sum() - left.sum(axis=1)).astype(int) - 5, 6)


def test_mutations_without_room_are_counted() -> None:
    full = Genomes.from_controllers([sized(MAX_HIDDEN, MAX_CONNECTIONS)])
    refused = mutate(full, 12, parents=np.zeros(5000, int)).refused.sum()
    mean, variance = 5000 * (0.15 + 0.10), 5000 * (0.15 * 0.85 + 0.10 * 0.90)
    assert abs(refused - mean) < 3.3 * math.sqrt(variance)


def test_random_controllers_have_the_stated_sizes_before_neurons_are_removed() -> None:
    batch = variation._unpruned(MANY, 13)
    assert_even(batch.hidden, 20)
    assert_even(batch.connections[batch.hidden >= 2], 40)
    assert_frequencies(batch.connections[batch.hidden == 0], [1 / 40] * 20 + [20 / 40])
    assert_frequencies(batch.connections[batch.hidden == 1], [1 / 40] * 33 + [7 / 40])


def test_random_controllers_have_even_weights_biases_and_connections() -> None:
    batch = variation._unpruned(MANY, 14)
    assert_distribution(batch.weight[batch.connections > 0, 0], "uniform", -2, 4)
    assert_distribution(batch.bias[:, 1], "uniform", -2, 4)
    assert_distribution(batch.bias[batch.hidden == 19, 20], "uniform", -2, 4)
    for hidden in (0, 3):
        for column in (0, 12):
            rows = (batch.hidden == hidden) & (batch.connections > column)
            source = batch.source[rows, column].astype(int)
            target = batch.target[rows, column].astype(int)
            place = np.where(source < INPUTS, source, source - OUTPUTS)
            targets = OUTPUTS + hidden
            assert_even(place * targets + target - INPUTS, (INPUTS + hidden) * targets)


def test_children_by_their_numbers_are_those_of_the_whole_batch() -> None:
    parents = random_genomes(20, 3)
    some = np.array([4, 17, 5])
    whole = mutate(parents, 9).children.take(some)
    part = mutate(parents.take(some), 9, some).children
    assert bits(part) == bits(whole)
    assert bits(mutate(parents, 9, some, parents=some).children) == bits(whole)
    for numbers in ([0], [], [0.5] * 20):
        with pytest.raises(InputError, match="numbers of 20 parents"):
            mutate(parents, 9, numbers)
    for rows in ([20], [-1], [0.5], np.ones(20, bool), [[0]]):
        with pytest.raises(InputError, match="parents must be"):
            mutate(parents, 9, parents=rows)
    assert len(mutate(parents, 9, parents=[]).children) == 0
