"""Arenas, robots, start poses and scenarios."""

import math
import subprocess
import sys
from pathlib import Path

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
    ],
)
def test_impossible_scenario_is_refused(change: dict[str, object], complaint: str) -> None:
    good: dict[str, object] = {"poses": Scenario.draw(seed=1).poses}
    with pytest.raises(InputError, match=complaint):
        Scenario(**(good | change))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [({"robots": 0}, "at least 1 robot, not 0"), ({"trials": 10**20}, "1 to 10,000 trials, not")],
)
def test_as_many_robots_or_trials_are_not_drawn(change: dict[str, int], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        Scenario.draw(seed=1, **change)  # type: ignore[arg-type]


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


@pytest.mark.parametrize(
    "change",
    [
        {"width": 0},
        {"height": math.nan},
        {"square": -1},
        {"nest_depth": 9},
        {"food": [(1, 1, -1)]},
    ],
    ids=str,
)
def test_impossible_arena_is_refused(change: dict[str, object]) -> None:
    good: dict[str, object] = {
        "name": "mine",
        "width": 1,
        "height": 1,
        "food": (),
        "start_x": (0.2, 0.8),
        "start_y": (0.2, 0.8),
        "robots": 1,
        "ticks": 10,
    }
    Arena(**good)  # type: ignore[arg-type]
    with pytest.raises(InputError):
        Arena(**(good | change))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "change",
    [
        {"body": THYMIO.body[::-1]},
        {"body": THYMIO.body[:2]},
        {"mass": 0},
        {"ground_noise": -1},
        {"proximity_sensors": THYMIO.proximity_sensors[:6]},
        {"front_sensors": 8},
    ],
    ids=lambda change: next(iter(change)),
)
def test_impossible_robot_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(InputError):
        Robot(**change)  # type: ignore[arg-type]


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
