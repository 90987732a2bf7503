"""Batches of controllers: exact copies, and what they refuse."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from swarmbo import Controller, InputError, bundled_controllers
from swarmbo.controller.genomes import MAX_CONNECTIONS, MAX_HIDDEN, Genomes
from swarmbo.controller.network import INPUTS, OUTPUTS
from tests.test_controller import controllers

NAMES = ("hidden", "count", "bias", "source", "target", "weight")
RECORDED = bundled_controllers("recorded")


def bits(genomes: Genomes) -> list[bytes]:
    """Everything in a batch."""
    return [getattr(genomes, name).tobytes() for name in NAMES]


def sized(hidden: int, connections: int) -> Controller:
    """A controller with so many hidden neurons and connections."""
    neurons = INPUTS + OUTPUTS + hidden
    sources = [n for n in range(neurons) if not INPUTS <= n < INPUTS + OUTPUTS]
    pairs = [(source, target) for source in sources for target in range(INPUTS, neurons)]
    return Controller(
        hidden=hidden,
        bias=tuple(k / 7 for k in range(OUTPUTS + hidden)),
        connections=tuple((*pair, k / 9) for k, pair in enumerate(pairs[:connections])),
    )


@given(st.lists(controllers(), max_size=5))
def test_controllers_survive_the_arrays_bit_for_bit(given_controllers: list[Controller]) -> None:
    genomes = Genomes.from_controllers(given_controllers)
    genomes.check()
    back = genomes.controllers()
    assert repr(back) == repr(given_controllers)  # the repr tells 0.0 from -0.0
    assert bits(Genomes.from_controllers(back)) == bits(genomes)


def test_recorded_controllers_keep_the_order_of_their_connections() -> None:
    assert Genomes.from_controllers(RECORDED).controllers() == RECORDED


def test_integers_become_the_same_floats() -> None:
    whole = Controller(0, (1, -2), ((0, 10, 10**300),))
    (back,) = Genomes.from_controllers([whole]).controllers()
    assert back == Controller(0, (1.0, -2.0), ((0, 10, 1e300),))


def test_the_largest_controller_fits() -> None:
    largest = sized(MAX_HIDDEN, MAX_CONNECTIONS)
    genomes = Genomes.from_controllers([RECORDED[0], largest])
    genomes.check()
    assert genomes.controller(1) == largest


@pytest.mark.parametrize(
    ("controller", "complaint"),
    [
        (sized(65, 3), "controller 1: has 65 hidden neurons; evolution takes 0 to 64"),
        (sized(20, 257), "controller 1: has 257 connections; evolution takes 0 to 256"),
    ],
)
def test_larger_controller_is_refused_by_number(controller: Controller, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        Genomes.from_controllers([RECORDED[0], controller])


def test_batches_are_taken_apart_and_joined() -> None:
    genomes = Genomes.from_controllers(RECORDED)
    assert genomes.take([3, 0, 3]).controllers() == [RECORDED[3], RECORDED[0], RECORDED[3]]
    assert genomes.take(genomes.hidden > 5).controllers() == [c for c in RECORDED if c.hidden > 5]
    assert len(genomes.take([])) == 0
    parts = [genomes.take(range(5)), genomes.take([]), genomes.take(range(5, len(genomes)))]
    assert bits(Genomes.concatenate(parts)) == bits(genomes)
    assert len(Genomes.concatenate([])) == 0


def test_what_is_taken_is_a_copy() -> None:
    genomes = Genomes.from_controllers(RECORDED)
    genomes.take([0]).weight[:] = 9
    assert genomes.controllers() == RECORDED


def test_batch_without_controllers_is_sound() -> None:
    Genomes.zeros(0).check()
    assert Genomes.zeros(0).controllers() == []


BAD: list[tuple[str, int, float, str]] = [
    ("hidden", 0, -1, "has -1 hidden neurons"),
    ("hidden", 0, 65, "has 65 hidden neurons"),
    ("count", 0, -1, "has -1 connections"),
    ("count", 0, 257, "has 257 connections"),
    ("bias", 1, np.nan, "bias 1 is nan"),
    ("bias", 4, -np.inf, "bias 4 is -inf"),
    ("weight", 2, np.inf, "connection 2 .* has the weight inf"),
    ("source", 0, 255, "connection 0 .* names neuron 255; the neurons are 0 to 14"),
    ("source", 0, 15, "connection 0 .* names neuron 15"),
    ("target", 39, 200, "connection 39 .* names neuron 200"),
    ("target", 0, 9, "connection 0 .* goes into an input"),
    ("source", 0, 11, "connection 0 .* comes out of an output"),
    ("target", 1, 10, "connection 1 .* is there twice"),
]


@pytest.mark.parametrize(("name", "place", "value", "complaint"), BAD)
def test_broken_genome_is_refused_by_number(
    name: str, place: int, value: float, complaint: str
) -> None:
    genomes = Genomes.from_controllers([sized(3, 40)] * 3)
    getattr(genomes, name).reshape(3, -1)[2, place] = value
    with pytest.raises(InputError, match=f"^controller 2: {complaint}"):
        genomes.check()


def test_weights_beyond_those_of_evolution_are_sound() -> None:
    genomes = Genomes.from_controllers([sized(3, 40)])
    genomes.weight[0, 0], genomes.bias[0, 0] = 1e308, -3
    genomes.check()


def test_what_lies_beyond_a_controller_does_not_matter() -> None:
    genomes = Genomes.from_controllers([sized(3, 40)])
    genomes.weight[:, 40:], genomes.bias[:, 5:] = np.nan, np.inf
    genomes.source[:, 40:] = genomes.target[:, 40:] = 255
    genomes.check()
    assert genomes.controllers() == [sized(3, 40)]


@pytest.mark.parametrize(
    ("name", "array", "complaint"),
    [
        ("hidden", np.zeros(2), "hidden holds float64; give int32"),
        ("hidden", np.int32(2), "hidden is of type int32; give a NumPy array"),
        ("hidden", np.array(2, np.int32), r"hidden has the shape \(\); give \(1,\)"),
        ("count", np.zeros(3, np.int32), r"count has the shape \(3,\); give \(2,\)"),
        ("count", np.zeros(2, ">i4"), "count holds >i4; give int32"),
        ("weight", np.zeros((2, 255)), r"weight has the shape \(2, 255\); give \(2, 256\)"),
        ("weight", np.zeros((2, 256), object), "weight holds object; give float64"),
        ("source", [[0] * 256] * 2, "source is of type list; give a NumPy array"),
    ],
)
def test_wrong_type_or_shape_is_refused_by_name(name: str, array: Any, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        replace(Genomes.zeros(2), **{name: array})


@st.composite
def hostile(draw: st.DrawFn) -> Genomes:
    """A batch of any content, half of the time with little wrong in it."""
    if draw(st.booleans()):
        batch = Genomes.from_controllers([sized(3, 40), sized(0, 20), sized(1, 7)])
        for _ in range(draw(st.integers(0, 3))):
            array = getattr(batch, draw(st.sampled_from(NAMES))).reshape(3, -1)
            place = draw(st.integers(0, 2)), draw(st.integers(0, min(array.shape[1], 60) - 1))
            array[place] = draw(arrays.from_dtype(array.dtype))
        return batch

    def anything(name: str) -> Any:
        like = getattr(Genomes.zeros(2), name)
        return draw(arrays.arrays(like.dtype, like.shape))

    return Genomes(**{name: anything(name) for name in NAMES})


@settings(max_examples=200)
@given(hostile())
def test_check_refuses_exactly_what_controller_refuses(genomes: Genomes) -> None:
    fits = (genomes.hidden >= 0) & (genomes.hidden <= 64)
    fits &= (genomes.count >= 0) & (genomes.count <= 256)
    first = None
    if not fits.all():
        first = int(fits.argmin())
    else:
        for number in range(len(genomes)):
            try:
                genomes.controller(number)
            except InputError:
                first = number
                break
    if first is None:
        genomes.check()
    else:
        with pytest.raises(InputError, match=f"^controller {first}: .*[^\n]$"):
            genomes.check()
