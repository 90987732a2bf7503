"""Arenas, robots, start poses and scenarios."""

import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from swarmbo import (
    ARENAS,
    FORAGING,
    FORAGING_2X,
    THYMIO,
    Arena,
    InputError,
    Robot,
    Scenario,
    SoftwareFood,
    SoftwareNest,
    load_poses,
)
from swarmbo.world.geometry import bodies_intersect, body_at, first_overlap

BODY = np.array(THYMIO.body)
NARROW: dict[str, Any] = {"nest_depth": 0.1, "start_x": (0.0, 0.1)}
HUGE = replace(FORAGING, name="huge", width=1000, height=1000, start_x=(1, 999), start_y=(1, 999))
ARGOS = Path(__file__).parent / "data" / "argos"


def overlap_area(a: np.ndarray, b: np.ndarray) -> float:
    """Area (m^2) that two clockwise convex polygons share, by clipping a at the edges of b."""
    clipped = [complex(*point) for point in a]
    corners = [complex(*point) for point in b]
    for start, end in zip(corners, corners[1:] + corners[:1], strict=True):
        outward = 1j * (end - start)
        depth = [(outward.conjugate() * (start - point)).real for point in clipped]
        kept: list[complex] = []
        for i, point in enumerate(clipped):
            before, depth_before = clipped[i - 1], depth[i - 1]
            if (depth[i] > 0) != (depth_before > 0):
                share = depth_before / (depth_before - depth[i])
                kept.append(before + share * (point - before))
            if depth[i] > 0:
                kept.append(point)
        clipped = kept
    pairs = zip(clipped, clipped[1:] + clipped[:1], strict=True)
    return abs(sum((p.conjugate() * q).imag for p, q in pairs)) / 2


@given(
    x=st.floats(-0.16, 0.16),
    y=st.floats(-0.16, 0.16),
    heading=st.floats(-math.pi, math.pi),
    other=st.floats(-math.pi, math.pi),
)
@example(x=0.0, y=0.0, heading=0.0, other=0.0)
def test_bodies_intersect_where_they_share_area(
    x: float, y: float, heading: float, other: float
) -> None:
    a = body_at(BODY, np.array([0.0, 0.0, other]))
    b = body_at(BODY, np.array([x, y, heading]))
    area = overlap_area(a, b)
    assume(area == 0 or area > 1e-12)
    assert bodies_intersect(a, b) == bodies_intersect(b, a) == (area > 0)


def test_bodies_that_share_a_side_do_not_intersect() -> None:
    a = body_at(BODY, np.array([0.0, 0.0, 0.0]))
    assert not bodies_intersect(a, body_at(BODY, np.array([0.110, 0.0, 0.0])))
    assert bodies_intersect(a, body_at(BODY, np.array([0.1099, 0.0, 0.0])))


@given(seed=st.integers(0, 2**40), robots=st.integers(1, 40))
def test_drawn_bodies_stand_apart_in_the_start_area(seed: int, robots: int) -> None:
    scenario = Scenario.draw(seed=seed, robots=robots, trials=2)
    for poses in scenario.poses:
        assert first_overlap(BODY, poses) is None
        bodies = [body_at(BODY, pose) for pose in poses]
        assert not any(bodies_intersect(a, b) for i, a in enumerate(bodies) for b in bodies[:i])
    x, y, heading = np.moveaxis(scenario.poses, -1, 0)
    assert ((x >= 0.5) & (x < 1.6) & (y >= 0.5) & (y < 3.7)).all()
    assert (np.abs(heading) <= math.pi).all()


@given(seed=st.integers(0, 10_000))
def test_others_stay_where_they_are_unless_a_faulty_robot_takes_the_place(seed: int) -> None:
    healthy = Scenario.draw(seed=seed, trials=4).poses
    faulty = Scenario.draw(seed=seed, trials=4, disturbances=(SoftwareFood(5),)).poses
    for before, after in zip(healthy, faulty, strict=True):
        if all(
            math.dist(before[robot, :2], FORAGING.food[0][:2]) > 2 * THYMIO.radius
            for robot in range(5)
        ):
            assert (before[:5] == after[:5]).all()
        assert first_overlap(BODY, after) is None


def test_poses_are_uniform_over_the_start_area() -> None:
    poses = Scenario.draw(seed=5, robots=1, trials=2000).poses[:, 0]
    low, high = [0.5, 0.5, -math.pi], [1.6, 3.7, math.pi]
    shares = np.sort((poses - low) / np.subtract(high, low), axis=0)
    expected = (np.arange(2000) + 0.5) / 2000
    # Kolmogorov-Smirnov, at a significance of about 1e-4.
    assert np.abs(shares - expected[:, None]).max() < 2.2 / math.sqrt(2000)


def test_scenario_is_the_same_in_another_process() -> None:
    code = (
        "from swarmbo import Scenario, SoftwareNest;"
        "scenario = Scenario.draw(seed=7, disturbances=(SoftwareNest(1),));"
        "print(scenario.noise_key, scenario.poses.tobytes().hex())"
    )
    other = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300
    ).stdout.split()
    here = Scenario.draw(seed=7, disturbances=(SoftwareNest(1),))
    assert other == [str(here.noise_key), here.poses.tobytes().hex()]


def test_seeds_differ_in_poses_and_noise() -> None:
    one, two = Scenario.draw(seed=1), Scenario.draw(seed=2)
    assert one.noise_key != two.noise_key
    assert not np.isclose(one.poses, two.poses).any()


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"ticks": 0}, "not 0"),
        ({"ticks": 2**31}, "not 2147483648"),
        ({"noise_key": -1}, "noise key"),
        ({"substeps": 1}, "sub-steps"),
        ({"poses": np.zeros((6, 3))}, "trials x robots x 3"),
        ({"poses": np.full((1, 6, 3), np.nan)}, "finite"),
        ({"poses": np.full((1, 6, 3), 1j)}, "finite"),
        ({"poses": np.full((1, 6, 3), "1")}, "finite"),
        ({"poses": [[[1, 1, 0]], [[1, 1]]]}, "shape"),
        ({"poses": None}, "shape"),
        ({"poses": [[[1, 2, 10**400]]]}, "finite"),
        ({"poses": [[[1, 1, 0], [-0.5, 1, 0]]]}, "trial 0, robot 1: x = -0.5, y = 1 is not in"),
        ({"ticks": 1.5}, "not 1.5"),
        ({"ticks": None}, "not None"),
        ({"tick": math.nan}, "tick must be finite"),
        ({"tick": "0.2"}, "tick must be finite"),
        ({"tick": 2}, "0.2 m in a tick of 2 s, more than its radius"),
        ({"substeps": 10**400}, "sub-steps"),
        ({"substeps": 3, "tick": 0.4}, "too coarse .* give at least 5 sub-steps"),
        ({"noise_key": 2**64}, "noise key"),
        ({"noise_key": 0.5}, "noise key"),
        ({"arena": None}, "arena is None; give an Arena"),
        ({"robot": replace(THYMIO, max_speed=5)}, "give at most 0.3819.* m/s, or a shorter tick"),
        ({"robot": replace(THYMIO, wheel_base=0.001)}, "turns by 40 rad in a tick"),
        ({"robot": replace(THYMIO, max_force=1000)}, "moves 1.48.* m in a sub-step"),
        (
            {"poses": [[[0.05, 1, 0]]], "arena": replace(FORAGING, width=0.15, **NARROW)},
            "needs at least 0.19.* m in both directions to turn",
        ),
        ({"arena": replace(FORAGING, width=8000)}, "may measure 7638.* m at most"),
        ({"disturbances": 5}, "disturbances hold 5"),
    ],
)
def test_impossible_scenario_is_refused(change: dict[str, object], complaint: str) -> None:
    good: dict[str, object] = {"poses": Scenario.draw(seed=1).poses}
    with pytest.raises(InputError, match=complaint):
        Scenario(**(good | change))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"robots": 0}, "robots must be an integer from 1 to 16,777,216, not 0"),
        ({"robots": 1.5}, "robots must be an integer from 1 to 16,777,216, not 1.5"),
        ({"robots": True}, "robots must be an integer .* not True"),
        ({"robots": 10**20}, "robots must be an integer .* not 100000000000000000000"),
        ({"robots": 2 * 10**8}, "robots must be an integer .* not 200000000"),
        ({"robots": 10**7}, "80,000,000 in all; give 16,777,216"),
        ({"robots": 10**6}, "no room for 1000000 robots in the arena foraging"),
        (
            {"robots": 300, "trials": 10_000, "arena": HUGE},
            "need .* GiB of memory, but .* are free",
        ),
        ({"trials": 10**20}, "trials must be an integer from 1 to 10,000, not"),
        ({"trials": 1.5}, "trials must be an integer .* not 1.5"),
        ({"ticks": 1.5}, "ticks of a trial of 6 robots must be an integer .* not 1.5"),
        ({"ticks": 10**20}, "ticks of a trial of 6 robots must be an integer"),
        ({"seed": 1.5}, "a seed is 1.5"),
        ({"seed": "1"}, "a seed is '1'"),
        ({"arena": "mars"}, "an Arena and a Robot, not 'mars'"),
        ({"disturbances": None}, "disturbances hold None"),
        ({"disturbances": ["broken"]}, "disturbances hold 'broken'"),
    ],
)
def test_what_cannot_be_drawn_is_refused_at_once(change: dict[str, Any], complaint: str) -> None:
    start = perf_counter()
    with pytest.raises(InputError, match=complaint):
        Scenario.draw(**({"seed": 1} | change))
    assert perf_counter() - start < 30, "nothing is drawn before it is refused"


def test_poses_of_a_scenario_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        Scenario.draw(seed=1).poses[0, 0, 0] = 1


def test_foraging_is_the_papers_arena() -> None:
    assert list(ARENAS) == ["foraging", "foraging-2x"]
    assert FORAGING.centre == (1.05, 2.1)
    assert round(FORAGING.half_diagonal, 3) == 2.348
    assert FORAGING.squares == (20, 39)
    assert len(FORAGING.food) == 10
    assert [(*disc,) for disc in FORAGING.food[5:]] == [
        (x, y + 2.1, radius) for x, y, radius in FORAGING.food[:5]
    ]


def test_2x_arena_doubles_everything_but_the_nest() -> None:
    assert np.array_equal(FORAGING_2X.food, 2 * np.array(FORAGING.food))
    assert (FORAGING_2X.width, FORAGING_2X.height) == (4.2, 8.4)
    assert FORAGING_2X.nest_depth == FORAGING.nest_depth == 0.32
    assert (FORAGING_2X.robots, FORAGING_2X.ticks) == (12, 1200)


GOOD_ARENA: dict[str, Any] = {
    "name": "mine",
    "width": 1,
    "height": 1,
    "food": (),
    "start_x": (0.2, 0.8),
    "start_y": (0.2, 0.8),
    "robots": 1,
    "ticks": 10,
    "nest_depth": 0.1,
}


@pytest.mark.parametrize(
    "change",
    [
        {"width": 0},
        {"height": math.nan},
        {"square": -1},
        {"nest_depth": 9},
        {"width": "1"},
        {"width": True},
        {"height": 1e9},
        {"height": 1j},
        {"name": None},
        {"food": [(1, 1, -1)]},
        {"food": [(1, 1)]},
        {"food": [("1", 1, 1)]},
        {"food": [(10**400, 1, 1)]},
        {"food": 5},
        {"start_x": (0.8, 0.2)},
        {"start_x": (0.2, 1.2)},
        {"start_y": (-0.1, 0.5)},
        {"start_y": 0.5},
        {"start_y": (0.1, 0.2, 0.3)},
        {"start_y": (math.nan, 0.5)},
        {"robots": 1.5},
        {"robots": 0},
        {"ticks": 0},
        {"ticks": "10"},
        {"wall_friction": -1},
        {"wall_friction": 1e6},
        {"nest_grey": 256},
        {"food_grey": -1},
        {"floor_grey": math.inf},
        {"square": 1e-5},
        {"square": 1e-4, "width": 10},
        {"scale": 0},
        {"scale": None},
    ],
    ids=str,
)
def test_impossible_arena_is_refused(change: dict[str, Any]) -> None:
    Arena(**GOOD_ARENA)
    with pytest.raises(InputError):
        Arena(**(GOOD_ARENA | change))


SQUARE = ((-0.05, -0.05), (-0.05, 0.05), (0.05, 0.05), (0.05, -0.05))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"body": SQUARE[::-1]}, "counter-clockwise; give them in the reverse order"),
        (
            {"body": (SQUARE[0], SQUARE[2], SQUARE[1], SQUARE[3])},
            "convex with its vertices clockwise, but vertex 2 is not on the right of the edge from "
            "vertex 0 to vertex 1",
        ),
        (
            {"body": (*SQUARE[:2], (0, 0.05), *SQUARE[2:])},
            "vertex 3 is not on the right of the edge from vertex 1 to vertex 2",
        ),
        (
            {
                "body": [
                    (math.sin(4 * math.pi * k / 5), math.cos(4 * math.pi * k / 5)) for k in range(5)
                ]
            },
            "strictly convex",
        ),
        ({"body": [(x + 0.06, y) for x, y in SQUARE]}, "does not contain its origin"),
        ({"body": [(x, y * 1e-3) for x, y in SQUARE]}, "thin"),
        ({"body": [(x * 1e-3, y * 1e-3) for x, y in SQUARE]}, "reaches .* from its origin"),
        ({"body": THYMIO.body[:2]}, "list of 3 to 9 entries"),
        ({"body": [*SQUARE[:3], (math.nan, 0)]}, "vertex 3 .* finite"),
        ({"body": [*SQUARE[:3], (0, 0, 0)]}, "vertex 3 .* 2 entries"),
        ({"body": [*SQUARE[:3], "ab"]}, "vertex 3"),
        ({"body": 5}, "body must be a list"),
        ({"mass": 0}, "mass must be finite"),
        ({"mass": 10**400}, "mass must be finite"),
        ({"mass": 1j}, "mass must be finite"),
        ({"max_speed": "0.1"}, "max_speed must be finite"),
        ({"max_speed": None}, "max_speed must be finite"),
        ({"max_force": math.inf}, "max_force must be finite"),
        ({"wheel_base": True}, "wheel_base must be finite"),
        ({"friction": 1e6}, "friction must be finite and lie between 0 and 1.5"),
        ({"ground_noise": -1}, "ground_noise must be finite"),
        ({"proximity_noise": math.nan}, "proximity_noise must be finite"),
        ({"proximity_range": 0}, "proximity_range must be finite"),
        ({"proximity_response": (1,)}, "proximity_response must be a list of 2 entries"),
        ({"proximity_response": (1, math.nan)}, "proximity_response has a number"),
        ({"proximity_sensors": THYMIO.proximity_sensors[:6]}, "list of 7 entries"),
        ({"proximity_sensors": [(0, 0, math.nan)] * 7}, "sensor 0 .* finite"),
        ({"ground_sensors": [(0, 0), (0,)]}, "sensor 1 .* 2 to 3 entries"),
        ({"front_sensors": 8}, "front_sensors must be an integer"),
        ({"front_sensors": 1.5}, "front_sensors must be an integer"),
    ],
)
def test_impossible_robot_is_refused(change: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        Robot(**change)


def test_numbers_of_numpy_are_numbers() -> None:
    numbers: dict[str, Any] = {"mass": np.float64(0.27), "front_sensors": np.int8(5), "body": BODY}
    assert Robot(**numbers) == THYMIO
    arena = Arena(**(GOOD_ARENA | {"width": np.float32(1), "robots": np.int64(1)}))
    assert arena == Arena(**GOOD_ARENA)
    counts: dict[str, Any] = {"seed": np.int64(3), "trials": np.uint8(8), "ticks": np.int16(9)}
    one = Scenario.draw(**counts)
    assert one.poses.tobytes() == Scenario.draw(seed=3).poses.tobytes()
    assert type(one.ticks) is int


REAL = [  # radius in m, speed in m/s, wheel base in m, tick in s
    ("e-puck", 0.0355, 0.13, 0.053, 0.2),
    ("Kilobot", 0.0165, 0.01, 0.025, 0.2),
    ("TurtleBot", 0.17, 0.65, 0.23, 0.2),
    ("fast", 0.3, 1.0, 0.5, 0.2),
    ("fast and small", 0.15, 1.0, 0.25, 0.1),
]


@pytest.mark.parametrize(("name", "radius", "speed", "base", "tick"), REAL)
def test_real_robots_and_arenas_are_accepted(
    name: str, radius: float, speed: float, base: float, tick: float
) -> None:
    """An arena of a few of their diameters, and one of a square kilometre."""
    angles = -2 * math.pi * np.arange(8) / 8
    body: Any = radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    robot = Robot(body=body, max_speed=speed, wheel_base=base)
    for size in (5 * radius + 0.2, 1000.0):
        span = (radius, size - radius)
        arena = Arena(
            **GOOD_ARENA
            | {"name": name, "width": size, "height": size, "start_x": span, "start_y": span}
        )
        assert Scenario.draw(seed=1, arena=arena, robot=robot, tick=tick).robots == 1


def test_silent_robot_differs_in_noise_alone() -> None:
    silent = THYMIO.without_noise()
    assert (silent.proximity_noise, silent.ground_noise) == (0, 0)
    assert Robot(proximity_noise=0, ground_noise=0) == silent


@pytest.mark.parametrize("path", sorted(ARGOS.rglob("*poses.csv.gz")), ids=lambda path: path.name)
def test_recorded_poses_are_accepted(path: Path) -> None:
    arena = FORAGING_2X if path.name.startswith("2x") else FORAGING
    assert load_poses(path, arena).shape == (8, arena.robots, 3)


@given(seed=st.integers(0, 10_000), robots=st.integers(1, 6), trials=st.integers(1, 3))
def test_poses_survive_csv_in_any_order(
    tmp_path_factory: pytest.TempPathFactory, seed: int, robots: int, trials: int
) -> None:
    poses = Scenario.draw(seed=seed, robots=robots, trials=trials).poses
    rows = [
        f"{trial},{x!r},{y!r},{theta!r},{robot},ignored"
        for trial in range(trials)
        for robot, (x, y, theta) in enumerate(poses[trial].tolist())
    ]
    path = tmp_path_factory.mktemp("poses") / "poses.csv"
    path.write_text("\n".join(["trial,x,y,theta,robot,note", *rows[::-1]]))
    assert (load_poses(path) == poses).all()
