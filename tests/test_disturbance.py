"""Disturbances and the conditions of the paper's experiments."""

import json
import math
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmbo import (
    FORAGING,
    FORAGING_2X,
    Actuator,
    Disturbance,
    Effects,
    Food,
    FoodScarcity,
    Ground,
    InputError,
    Proximity,
    Scenario,
    SoftwareFood,
    SoftwareNest,
    condition,
    conditions,
    load_disturbances,
)
from swarmbo.paper.conditions import CONDITION_KINDS
from swarmbo.world.disturbance import MAD, SENSOR_FAULTS, STUCK, WHEEL_FAULTS, from_json
from tests.test_controller import JSON_VALUES

COUNTS = {
    "proximity": 20,
    "ground": 20,
    "actuator": 20,
    "software-nest": 6,
    "software-food": 6,
    "food-scarcity": 6,
    "proximity-2x": 20,
    "food-scarcity-2x": 6,
    "software-food-random": 6,
}

sensor_faults = st.lists(st.sampled_from(SENSOR_FAULTS), max_size=12).map(tuple)
wheel_faults = st.lists(st.sampled_from(list(WHEEL_FAULTS)), max_size=12).map(tuple)
metres = st.floats(1e-6, 10)
disturbances = (
    st.builds(Proximity, sensor_faults)
    | st.builds(Ground, sensor_faults)
    | st.builds(Actuator, wheel_faults)
    | st.builds(SoftwareNest, st.integers(0, 11))
    | st.builds(SoftwareFood, st.integers(0, 11), st.integers(0, 9))
    | st.builds(FoodScarcity, st.builds(Food, metres, metres, metres))
)


@given(st.lists(disturbances, max_size=3))
def test_disturbances_survive_json(several: list[Disturbance]) -> None:
    text = json.dumps([single.to_json() for single in several])
    assert from_json(json.loads(text)) == tuple(several)


@pytest.mark.parametrize(
    "form",
    [
        {"kind": "proximity", "robots": ["none", "min", "max", "random"]},
        {"kind": "ground", "robots": ["none", "min", "max", "random"]},
        {"kind": "actuator", "robots": ["none", "left", "right", "both"]},
        {"kind": "software-nest", "robot": 0},
        {"kind": "software-food", "robot": 0, "source": 0},
        {"kind": "food-scarcity", "food": [1.75, 0.9, 0.04]},
    ],
    ids=lambda form: form["kind"],
)
def test_documented_form_is_the_form(form: dict[str, Any]) -> None:
    (single,) = from_json(form)
    assert json.loads(json.dumps(single.to_json())) == form


@given(
    JSON_VALUES
    | st.fixed_dictionaries(
        {"kind": st.sampled_from(list(COUNTS)[:6])},
        optional={"robots": JSON_VALUES, "robot": JSON_VALUES, "food": JSON_VALUES},
    )
)
def test_any_json_is_a_disturbance_or_refused(value: Any) -> None:
    complaint = ""
    several: tuple[Disturbance, ...] = ()
    try:
        several = from_json(value)
    except InputError as error:
        complaint = str(error)
    assert "\n" not in complaint
    assert all(isinstance(single, Disturbance) for single in several)


@pytest.mark.parametrize(
    ("form", "complaint"),
    [
        ({"kind": "gravity"}, "unknown disturbance 'gravity'; known are proximity"),
        ({"kind": "proximity", "robots": ["none", "mad"]}, "robot 1 .* unknown fault 'mad'"),
        ({"kind": "actuator", "robots": ["min"]}, "robot 0 .* unknown fault 'min'"),
        ({"kind": "proximity"}, "needs the fields robots"),
        ({"kind": "software-nest", "robot": -1}, "robot is -1"),
        ({"kind": "software-nest", "robot": 0, "source": 0}, "no field 'source'"),
        ({"kind": "food-scarcity", "food": [1, 1, 0]}, "radius > 0"),
        ({"kind": "food-scarcity", "food": "123"}, "food is '123'"),
        ({"kind": "food-scarcity", "food": [1, 1, 10**400]}, "food is"),
        ({"kind": "food-scarcity", "food": [1, 1, 1e300]}, "none beyond 100000 m"),
        ({"kind": "food-scarcity", "food": [True, 1, 1]}, "food is"),
        ({"kind": "ground", "robots": [["min"]]}, "unknown fault"),
        ({"kind": "ground", "robots": "min"}, "must be a list"),
        ({"kind": "software-food", "robot": 1.5}, "robot is 1.5"),
        ("proximity", "an object with a kind, not 'proximity'"),
    ],
)
def test_wrong_form_is_refused_by_place(form: Any, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        from_json(form)


def test_file_is_named_when_its_disturbance_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "fault.json"
    path.write_text('{"kind": "gravity"}')
    with pytest.raises(InputError, match=r"fault\.json: unknown disturbance"):
        load_disturbances(path)


def test_several_disturbances_act_together() -> None:
    effects = Scenario.draw(
        seed=1,
        disturbances=(
            Proximity(("min", "none", "none", "none", "none", "none")),
            Actuator(("left", "both", "none", "none", "none", "none")),
            SoftwareNest(2),
            SoftwareFood(3),
            FoodScarcity(Food(1.7, 1.0, 0.1)),
        ),
    ).effects()
    assert effects.proximity.tolist() == [SENSOR_FAULTS.index("min"), 0, 0, 0, 0, 0]
    assert effects.wheel_gain[:2].tolist() == [[0.5, 1.0], [0.5, 0.5]]
    assert effects.software.tolist() == [0, 0, MAD, STUCK, 0, 0]
    assert effects.food == (Food(1.7, 1.0, 0.1),)


@pytest.mark.parametrize(
    ("disturbance", "complaint"),
    [
        (Proximity(("min",) * 5), "lists 5 robots, but the swarm has 6"),
        (SoftwareNest(6), "names robot 6, but the swarm has robots 0 to 5"),
        (SoftwareFood(0, source=10), "source is 10, but the arena has food sources 0 to 9"),
        (SoftwareNest(10**400), "names robot 1000.*, but the swarm has robots 0 to 5"),
    ],
)
def test_disturbance_that_does_not_fit_the_swarm_is_refused(
    disturbance: Disturbance, complaint: str
) -> None:
    with pytest.raises(InputError, match=complaint):
        Scenario.draw(seed=1, disturbances=(disturbance,))
    with pytest.raises(InputError, match=complaint):
        Scenario(poses=Scenario.draw(seed=1).poses, disturbances=(disturbance,))


@dataclass(frozen=True)
class Spoiler(Disturbance):
    """Sets one of the effects to something."""

    kind = "spoiler"
    name: str
    value: Any

    def apply(self, effects: Effects) -> None:
        setattr(effects, self.name, self.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("wheel_gain", np.full((6, 2), np.nan)),
        ("wheel_gain", np.full((6, 2), 1e9)),
        ("wheel_gain", np.ones((5, 2))),
        ("wheel_gain", "fast"),
        ("proximity", np.full(6, 7)),
        ("ground", np.full(6, -1)),
        ("software", np.zeros(6)),
        ("food", [(0, 0, math.nan)]),
    ],
)
def test_what_no_robot_can_have_is_refused_from_a_disturbance_too(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=name):
        Scenario.draw(seed=1, disturbances=(Spoiler(name, value),))


def test_robots_that_numpy_counts_are_robots() -> None:
    one, two = np.array([1, 2], np.int16)
    assert SoftwareNest(two) == SoftwareNest(2)
    assert type(SoftwareFood(one, two).to_json()["source"]) is int


@given(seed=st.integers(0, 10_000), robot=st.integers(0, 5))
def test_mad_robot_starts_at_the_border_of_the_nest(seed: int, robot: int) -> None:
    scenario = Scenario.draw(seed=seed, trials=2, disturbances=(SoftwareNest(robot),))
    x, y, heading = scenario.poses[:, robot].T
    assert (x == FORAGING.nest_depth).all()
    assert ((y >= 0.3) & (y < 1.8)).all()
    assert y[0] != y[1]
    assert (heading == np.pi / 2).all()


@given(seed=st.integers(0, 10_000), robot=st.integers(0, 5), source=st.integers(0, 9))
def test_stuck_robot_starts_on_its_food_source(seed: int, robot: int, source: int) -> None:
    scenario = Scenario.draw(seed=seed, trials=2, disturbances=(SoftwareFood(robot, source),))
    assert (scenario.poses[:, robot, :2] == FORAGING.food[source][:2]).all()
    assert scenario.poses[0, robot, 2] != scenario.poses[1, robot, 2]


def test_two_mad_robots_find_room_and_two_on_one_source_do_not() -> None:
    scenario = Scenario.draw(seed=1, disturbances=(SoftwareNest(0), SoftwareNest(1)))
    assert (np.abs(np.diff(scenario.poses[:, :2, 1])) > 0.1).all()
    with pytest.raises(InputError, match="robot 1 where another one stands"):
        Scenario.draw(seed=1, disturbances=(SoftwareFood(0), SoftwareFood(1)))
    with pytest.raises(InputError, match="two disturbances place robot 0"):
        Scenario.draw(seed=1, disturbances=(SoftwareFood(0), SoftwareNest(0)))


def test_all_kinds_of_conditions_are_counted_here() -> None:
    assert tuple(COUNTS) == CONDITION_KINDS


@pytest.mark.parametrize("kind", CONDITION_KINDS)
def test_conditions_have_the_papers_number_and_fit_their_arena(kind: str) -> None:
    arena = FORAGING_2X if kind.endswith("-2x") else FORAGING
    drawn = conditions(kind, 1)
    assert len(drawn) == COUNTS[kind]
    for single in drawn:
        assert single.kind == kind.removesuffix("-2x").removesuffix("-random")
        scenario = Scenario.draw(seed=1, arena=arena, trials=1, disturbances=(single,))
        assert scenario.robots == arena.robots


@pytest.mark.parametrize("kind", ["proximity", "ground", "actuator", "proximity-2x"])
def test_faults_are_equally_likely(kind: str) -> None:
    faults = Counter(
        fault
        for replicate in range(1, 51)
        for single in conditions(kind, replicate)
        for fault in single.to_json()["robots"]
    )
    assert len(faults) == 4
    total = faults.total()
    for count in faults.values():  # within 4.5 standard deviations of a quarter
        assert abs(count / total - 0.25) < 4.5 * (0.25 * 0.75 / total) ** 0.5


def test_replicates_have_conditions_of_their_own() -> None:
    assert conditions("proximity", 1) != conditions("proximity", 2)
    assert conditions("food-scarcity", 1) != conditions("food-scarcity", 2)


def test_food_source_of_the_stuck_robot_is_the_first_or_drawn() -> None:
    fixed, drawn = (
        [
            single.to_json()["source"]
            for replicate in range(1, 9)
            for single in conditions(kind, replicate)
        ]
        for kind in ("software-food", "software-food-random")
    )
    assert set(fixed) == {0}
    assert set(drawn) <= set(range(10))
    assert len(set(drawn)) > 5


@pytest.mark.parametrize(("kind", "scale"), [("food-scarcity", 1), ("food-scarcity-2x", 2)])
def test_scarce_food_lies_at_one_place_and_grows(kind: str, scale: int) -> None:
    for replicate in range(1, 6):
        food = np.array([single.to_json()["food"] for single in conditions(kind, replicate)])
        assert np.allclose(food[:, 2], scale * 0.04 * np.arange(1, 7))
        x, y = food[0, :2] / scale
        assert (food[:, :2] == food[0, :2]).all()
        assert 1.7 <= x < 1.85
        assert 0.3 <= y < 1.8


def test_conditions_are_the_same_in_another_process() -> None:
    code = (
        "import json; from swarmbo.paper.conditions import CONDITION_KINDS, conditions;"
        "print(json.dumps([c.to_json() for kind in CONDITION_KINDS for c in conditions(kind, 3)]))"
    )
    other = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300
    ).stdout
    here = [single.to_json() for kind in CONDITION_KINDS for single in conditions(kind, 3)]
    assert json.loads(other) == json.loads(json.dumps(here))


def test_conditions_are_the_same_on_every_machine() -> None:
    # Written down once: a change of these draws would change everybody's experiments.
    assert conditions("proximity", 1)[0] == Proximity(
        ("random", "none", "max", "min", "none", "none")
    )
    assert conditions("food-scarcity", 1)[0] == FoodScarcity(
        Food(1.8391043009938592, 0.8835276702245829, 0.04)
    )


def test_condition_is_found_by_kind_and_index() -> None:
    assert condition("ground:7", 2) == conditions("ground", 2)[7]


@pytest.mark.parametrize("name", ["ground:20", "ground:-1", "ground:x", "ground:", "ground"])
def test_unknown_condition_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="ground:0 to ground:19"):
        condition(name, 1)


def test_unknown_kind_is_refused() -> None:
    with pytest.raises(InputError, match="unknown kind 'gravity'"):
        conditions("gravity", 1)
