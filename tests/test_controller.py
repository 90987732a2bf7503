"""Controllers: the JSON exchange form, and what it refuses."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmbo import Controller, InputError, load_controllers
from swarmbo.controller.network import INPUTS, OUTPUTS, load_teams

FINITE = st.floats(allow_nan=False, allow_infinity=False)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@st.composite
def controllers(draw: st.DrawFn) -> Controller:
    """Any controller: up to 6 hidden neurons, weights and biases of any finite size."""
    hidden = draw(st.integers(0, 6))
    last = INPUTS + OUTPUTS + hidden - 1
    sources = st.integers(0, last).filter(lambda n: not INPUTS <= n < INPUTS + OUTPUTS)
    ends = draw(st.sets(st.tuples(sources, st.integers(INPUTS, last)), max_size=20))
    return Controller(
        hidden=hidden,
        bias=tuple(draw(FINITE) for _ in range(OUTPUTS + hidden)),
        connections=tuple((source, target, draw(FINITE)) for source, target in sorted(ends)),
    )


@given(controllers())
def test_controller_survives_json(controller: Controller) -> None:
    assert Controller.from_json(json.loads(json.dumps(controller.to_json()))) == controller


@given(
    JSON_VALUES
    | st.fixed_dictionaries(
        {"hidden": JSON_VALUES, "bias": JSON_VALUES, "connections": JSON_VALUES}
    )
)
def test_any_other_json_is_refused_with_one_sentence(value: Any) -> None:
    with pytest.raises(InputError) as caught:
        Controller.from_json(value)
    assert "\n" not in str(caught.value)


GOOD: dict[str, Any] = {
    "hidden": 1,
    "bias": [0.5, -0.5, 1],
    "connections": [[0, 12, 1.5], [12, 10, -1], [12, 12, 0.1]],
}


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"connections": [[12, 3, 1.0]]}, "connection 0 .* into an input"),
        ({"connections": [[10, 12, 1.0]]}, "connection 0 .* out of an output"),
        ({"connections": [[0, 10, 1.0], [0, 10, 2.0]]}, "connection 1 .* twice"),
        ({"connections": [[0, 13, 1.0]]}, "connection 0 .* neuron 13.* 0 to 12"),
        ({"connections": [[-1, 12, 1.0]]}, "connection 0 .* neuron -1"),
        ({"connections": [[0, 12, float("nan")]]}, "connection 0 .* weight nan"),
        ({"connections": [[0, 12, 10**400]]}, "connection 0 .* finite"),
        ({"connections": [[0, 12]]}, r"connection 0 .* \[source, target, weight\]"),
        ({"connections": [[0, 12.0, 1]]}, "connection 0 .* integers"),
        ({"bias": [0, 0]}, "2 biases.* give 3"),
        ({"bias": [0, 0, float("inf")]}, "bias 2"),
        ({"bias": [0, 0, "1"]}, "bias 2"),
        ({"hidden": -1}, "hidden is -1"),
        ({"hidden": True}, "hidden is True"),
        ({"colour": "red"}, "unknown field 'colour'"),
    ],
)
def test_broken_controller_is_refused_by_place(change: dict[str, Any], complaint: str) -> None:
    Controller.from_json(GOOD)
    with pytest.raises(InputError, match=complaint):
        Controller.from_json(GOOD | change)


def test_file_with_a_broken_controller_is_refused_by_file_and_number(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps([GOOD, GOOD | {"bias": []}]))
    with pytest.raises(InputError, match=r"mine\.json: controller 1: has 0 biases"):
        load_controllers(path)


def test_teams_name_one_known_controller_per_robot(tmp_path: Path) -> None:
    path = tmp_path / "teams.json"
    known = [Controller.from_json(GOOD)] * 2
    path.write_text("[[0, 1, 1], [1, 1, 1]]")
    assert load_teams(path, known, robots=3) == [(0, 1, 1), (1, 1, 1)]
    with pytest.raises(InputError, match=r"teams\.json: team 0 names 3 controllers; give 4"):
        load_teams(path, known, robots=4)
    with pytest.raises(InputError, match=r"team 0, robot 1 names controller 1"):
        load_teams(path, known[:1], robots=3)
