"""The engine's promises to its users: swarms that go on, and scores that do not depend on how."""

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from swarmbo import (
    FORAGING,
    THYMIO,
    Actuator,
    Controller,
    Food,
    InputError,
    Proximity,
    Robot,
    Rollout,
    Scenario,
    SoftwareNest,
    Swarm,
    bundled_controllers,
    conditions,
    rollout,
)
from swarmbo.engine import lanes as layout
from swarmbo.world.geometry import body_at
from swarmbo.world.memory import memory_of

EXAMPLE = bundled_controllers("example")
MIXED = EXAMPLE  # six controllers, one per robot


def state(swarm: Swarm) -> list[bytes]:
    """Everything that can be read from a swarm, bit by bit."""
    scores = swarm.scores()
    arrays = [swarm.poses, swarm.inputs, swarm.wheels, swarm.carrying, swarm.items]
    arrays += [scores.items, scores.uniformity, scores.centre_distance, scores.coverage]
    return [np.asarray(array).tobytes() for array in arrays]


def assert_equal(one: Rollout, two: Rollout) -> None:
    """Fail unless two rollouts have the same bits."""
    for name in ("items", "uniformity", "centre_distance", "coverage"):
        assert getattr(one, name).tobytes() == getattr(two, name).tobytes(), name


def test_ten_calls_of_60_ticks_equal_one_of_600() -> None:
    scenario = Scenario.draw(seed=3, disturbances=tuple(conditions("proximity", 3)[:1]))
    whole, parts = Swarm(scenario, MIXED), Swarm(scenario, MIXED)
    whole.advance(600)
    for _ in range(10):
        parts.advance(60)
    assert state(whole) == state(parts)


@settings(max_examples=20)
@given(st.lists(st.integers(0, 40), min_size=1, max_size=8))
def test_advancing_in_any_pieces_gives_the_same_bits(pieces: list[int]) -> None:
    scenario = Scenario.draw(seed=4, trials=2, disturbances=(SoftwareNest(0),))
    whole, parts = Swarm(scenario, MIXED), Swarm(scenario, MIXED)
    whole.advance(sum(pieces))
    for piece in pieces:
        parts.advance(piece)
    assert state(whole) == state(parts)
    assert parts.tick == sum(pieces)


def test_rollout_equals_a_swarm_and_does_not_depend_on_threads() -> None:
    scenario = Scenario.draw(seed=5, ticks=150)
    teams = [[controller] * 6 for controller in EXAMPLE] + [MIXED, MIXED[::-1]]
    one, three = (rollout(teams, scenario, threads=threads) for threads in (1, 3))
    assert_equal(one, three)
    for number, team in enumerate(teams):
        swarm = Swarm(scenario, team)
        swarm.advance(150)
        scores = swarm.scores()
        assert (one.items[number] == scores.items).all()
        assert (one.coverage[number] == scores.coverage).all()
        assert (one.uniformity[number] == scores.uniformity).all()
        assert (one.centre_distance[number] == scores.centre_distance).all()


def test_progress_counts_the_teams() -> None:
    seen: list[int] = []
    teams = [[controller] * 6 for controller in EXAMPLE]
    rollout(teams, Scenario.draw(seed=1, ticks=5), threads=2, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == len(teams)


def test_robots_stand_still_in_the_first_tick() -> None:
    swarm = Swarm(Scenario.draw(seed=1), MIXED)
    before = swarm.poses
    swarm.advance(1)
    assert np.allclose(swarm.poses, before, atol=1e-12)
    swarm.advance(1)
    assert not np.allclose(swarm.poses, before, atol=1e-3)


def test_fault_that_comes_and_goes_changes_the_course_from_then_on() -> None:
    scenario = Scenario.draw(seed=2, trials=2)
    healthy, broken = Swarm(scenario, MIXED), Swarm(scenario, MIXED)
    for swarm in (healthy, broken):
        swarm.advance(100)
    assert state(healthy) == state(broken)
    broken.disturbances = [Actuator(("both",) * 6)]
    assert state(healthy) == state(broken)
    healthy.advance(3)
    broken.advance(3)
    assert state(healthy) != state(broken)
    broken.disturbances = []
    assert (broken.effects.wheel_gain == 1).all()


def test_food_that_is_taken_away_is_not_picked_up() -> None:
    swarm = Swarm(Scenario.draw(seed=1), [EXAMPLE[0]] * 6)
    swarm.food = []
    swarm.advance(600)
    assert swarm.items.sum() == 0
    swarm.reset()
    swarm.food = [Food(1.05, 2.1, 3.0)]
    swarm.advance(600)
    assert swarm.items.sum() > 0


def test_restarted_swarm_repeats_itself() -> None:
    swarm = Swarm(Scenario.draw(seed=1, trials=2), MIXED)
    swarm.advance(50)
    first = state(swarm)
    swarm.advance(31)
    swarm.reset()
    swarm.advance(50)
    assert state(swarm) == first


def test_without_noise_trials_from_equal_poses_are_equal() -> None:
    poses = np.repeat(Scenario.draw(seed=1, trials=1).poses, 3, axis=0)
    scenario = Scenario(poses=poses, ticks=100)
    noisy, quiet = Swarm(scenario, MIXED), Swarm(scenario.without_noise(), MIXED)
    noisy.advance(100)
    quiet.advance(100)
    assert (quiet.poses == quiet.poses[0]).all()
    assert not (noisy.poses == noisy.poses[0]).all()


def test_wrong_calls_are_refused() -> None:
    scenario = Scenario.draw(seed=1)
    with pytest.raises(InputError, match="names 5 controllers; give 6"):
        Swarm(scenario, MIXED[:5])
    for ticks in (-1, 1.5, "2", True, 2**31):
        with pytest.raises(InputError, match="ticks to advance must be an integer"):
            Swarm(scenario, MIXED).advance(ticks)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="needs a Scenario, not 'foraging'"):
        Swarm("foraging", MIXED)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="food 0 is"):
        Swarm(scenario, MIXED).food = [Food(0, 0, float("nan"))]
    with pytest.raises(InputError, match="threads is 1.5"):
        rollout([MIXED], scenario, threads=1.5)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="threads is 0"):
        rollout([MIXED], scenario, threads=0)
    with pytest.raises(InputError, match="no teams"):
        rollout([], scenario)
    with pytest.raises(InputError, match="lists 2 robots"):
        Swarm(scenario, MIXED).disturbances = [Proximity(("min", "max"))]


def test_many_robots_sense_each_other_in_a_corridor() -> None:
    """The neighbour grid of a long and narrow arena has more cells than that of a square one."""
    still = Controller(0, (0.0, 0.0), ())
    spans = {"start_x": (1, 399), "start_y": (0.1, 0.2)}
    corridor = replace(FORAGING, width=400.0, height=0.3, food=(), **spans)
    poses = np.zeros((1, 26, 3))
    poses[0, :, 0] = np.repeat(np.linspace(1, 399, 13), 2) + np.tile([0, 0.2], 13)
    poses[0, :, 1] = 0.15
    swarm = Swarm(Scenario(poses=poses, arena=corridor).without_noise(), [still] * 26)
    swarm.advance(1)
    front = swarm.inputs[0, :, 2]
    assert (front[::2] < 1).all(), "the one behind sees the one before it"
    assert (front[1::2] == 1).all()


def test_wheels_are_read_only_and_say_so() -> None:
    swarm = Swarm(Scenario.draw(seed=1), MIXED)
    swarm.advance(20)
    with pytest.raises(InputError, match="wheels is read-only: the controllers of Swarm.team"):
        swarm.wheels = np.zeros((8, 6, 2))
    before = swarm.wheels
    with pytest.raises(ValueError, match="read-only"):
        before[...] = 0
    assert np.abs(swarm.wheels).max() > 1, "in cm/s"


# --- crowds ------------------------------------------------------------------------------------


def crowd(robots: int) -> Scenario:
    """Robots that all sense each other, in two trials."""
    hall = replace(
        FORAGING, name="hall", width=6, height=6, start_x=(0.2, 5.8), start_y=(0.2, 5.8)
    )
    far = replace(THYMIO, proximity_range=5.0)
    return Scenario.draw(seed=1, arena=hall, robot=far, robots=robots, trials=2, ticks=60)


def test_crowd_whose_robots_are_all_near_each_other_does_not_overlap() -> None:
    scenario = crowd(100)
    recorded = bundled_controllers("recorded")
    swarm = Swarm(scenario, [recorded[number % len(recorded)] for number in range(100)])
    body = np.array(scenario.robot.body)
    for _ in range(20):
        swarm.advance(5)
        for poses in swarm.poses:
            assert deepest_overlap(body, poses) < 5e-3  # m


def deepest_overlap(body: np.ndarray, poses: np.ndarray) -> float:
    """By how much two bodies overlap at the most, in metres."""
    radius = np.hypot(body[:, 0], body[:, 1]).max()
    bodies = [body_at(body, pose) for pose in poses]
    deepest = 0.0
    for one, two in combinations(range(len(poses)), 2):
        if np.hypot(*(poses[one] - poses[two])[:2]) < 2 * radius:
            gaps = [gaps_by_edges(bodies[a], bodies[b]) for a, b in ((one, two), (two, one))]
            deepest = max(deepest, -max(gaps))
    return deepest


def gaps_by_edges(a: np.ndarray, b: np.ndarray) -> float:
    """The widest gap between two bodies along a normal of the first one's edges."""
    edges = np.roll(a, -1, axis=0) - a
    normals = np.stack([-edges[:, 1], edges[:, 0]], axis=1)
    normals /= np.hypot(normals[:, 0], normals[:, 1])[:, None]
    return float(((normals @ b.T).min(axis=1) - (normals @ a.T).max(axis=1)).max())


@pytest.mark.parametrize("features", [False, True])
def test_lists_that_grow_in_the_middle_of_a_tick_change_no_bit(features: bool) -> None:
    scenario = crowd(40)
    team = [EXAMPLE[number % 6] for number in range(40)]
    roomy, tight = (Swarm(scenario, team, features=features) for _ in range(2))
    roomy.advance(60)
    for _ in range(20):
        tight._work = layout.with_room(tight._work, 8)
        tight.advance(3)
        assert len(tight._work.near) > 8
    assert state(tight) == state(roomy)
    one, two = tight.scores().features, roomy.scores().features
    assert (one is two is None) or (one is not None and two is not None and (one == two).all())


# --- what cannot be simulated ------------------------------------------------------------------


@pytest.mark.parametrize("row", ["x", "y", "heading"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -5.0])
def test_run_that_is_no_longer_in_the_arena_ends_with_an_error(row: str, value: float) -> None:
    if (row, value) == ("heading", -5.0):
        pytest.skip("that is a heading")
    swarm = Swarm(Scenario.draw(seed=1, trials=2), MIXED)
    swarm.advance(3)
    getattr(swarm._lanes, row)[5] = value
    with pytest.raises(InputError, match="robots left the arena foraging by tick .* no scores"):
        swarm.advance(3)


def test_rollout_whose_robots_leave_the_arena_gives_no_scores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With friction far beyond what is accepted, which robots really are hurled about by."""
    packed = replace(
        FORAGING, width=1, height=1, start_x=(0.1, 0.9), start_y=(0.1, 0.9), food=()
    )
    scenario = Scenario.draw(seed=1, arena=packed, robots=20, trials=4, ticks=300)
    object.__setattr__(scenario.robot, "friction", THYMIO.friction)
    rough = replace(THYMIO)
    object.__setattr__(rough, "friction", 1e6)
    object.__setattr__(scenario, "robot", rough)
    with pytest.raises(InputError, match="robots left the arena foraging"):
        rollout([[EXAMPLE[0]] * 20, [EXAMPLE[number % 6] for number in range(20)]], scenario)


def test_scenario_that_does_not_fit_into_memory_is_refused() -> None:
    huge = replace(FORAGING, name="huge", width=1000, height=1000)
    scenario = Scenario(poses=np.ones((10_000, 1, 3)), arena=huge)
    with pytest.raises(InputError, match="1 robots in 10,000 trials need .* GiB of memory"):
        Swarm(scenario, MIXED[:1])
    few = Scenario(poses=scenario.poses[:8], arena=huge)
    with pytest.raises(InputError, match="teams.* need .* GiB of memory"):
        rollout([MIXED[:1]] * 1000, few, threads=1000)


@pytest.mark.parametrize(("robots", "trials"), [(1, 8), (6, 8), (12, 8), (40, 3), (100, 4)])
def test_memory_of_a_swarm_is_estimated_well(robots: int, trials: int) -> None:
    scenario = Scenario.draw(seed=1, robots=robots, trials=trials)
    swarm = Swarm(scenario, [EXAMPLE[0]] * robots)
    arrays = [*swarm._lanes, *swarm._work, *(copy for _, copy in swarm._start)]
    taken = sum(array.nbytes for array in arrays)
    estimate = memory_of(scenario.arena, robots, trials)
    assert 0.7 * taken - 100_000 < estimate < 1.5 * taken + 100_000


ANYTHING = (
    st.none()
    | st.booleans()
    | st.text(max_size=3)
    | st.sampled_from([10**400, -(10**30), 1j, np.float32(0.1), np.nan, np.int64(3), np.bool_(True)])
    | st.floats()
    | st.integers(-5, 50)
    | st.lists(st.floats(-1, 1), max_size=4)
)


def around(value: float) -> st.SearchStrategy[float]:
    """Numbers of a tenth to ten times a value."""
    return st.floats(-1, 1).map(lambda power: value * 10**power)


ROBOTS: dict[str, st.SearchStrategy[Any]] = {
    "wheel_base": around(THYMIO.wheel_base),
    "max_speed": around(THYMIO.max_speed),
    "mass": around(THYMIO.mass),
    "max_force": around(THYMIO.max_force),
    "friction": st.floats(0, 1),
    "proximity_range": around(THYMIO.proximity_range),
    "proximity_noise": st.floats(0, 10),
    "ground_noise": st.floats(0, 2550),
    "body": st.lists(st.tuples(st.floats(-0.1, 0.1), st.floats(-0.1, 0.1)), max_size=10),
    "proximity_sensors": st.lists(st.lists(st.floats(-1, 1), max_size=4), min_size=6, max_size=8),
    "ground_sensors": st.lists(st.lists(st.floats(-1, 1), max_size=4), max_size=3),
    "front_sensors": st.integers(-1, 8),
    "proximity_response": st.tuples(st.floats(-10, 10), st.floats(-10, 10)),
}
ARENA: dict[str, st.SearchStrategy[Any]] = {
    "name": st.text(max_size=3),
    "width": around(1.5),
    "height": around(1.5),
    "food": st.lists(st.lists(st.floats(-3, 3), min_size=3, max_size=3), max_size=3),
    "start_x": st.tuples(st.floats(0, 1), st.floats(1, 2)),
    "start_y": st.tuples(st.floats(0, 1), st.floats(1, 2)),
    "robots": st.integers(0, 5),
    "ticks": st.integers(0, 50),
    "nest_depth": st.floats(0, 2),
    "wall_friction": st.floats(0, 1),
    "nest_grey": st.floats(0, 255),
    "food_grey": st.floats(0, 255),
    "floor_grey": st.floats(0, 255),
    "square": around(0.11),
    "scale": around(1),
}
SCENARIO: dict[str, st.SearchStrategy[Any]] = {
    "seed": st.integers(0, 9),
    "robots": st.integers(0, 5),
    "trials": st.integers(0, 3),
    "ticks": st.integers(0, 50),
    "noise_key": st.integers(-1, 2**64),
    "tick": around(0.2),
    "substeps": st.integers(1, 40),
    "disturbances": st.just([SoftwareNest(0)]),
}


def fields_of(known: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """Some of the fields with values that are often accepted; now and then one with anything."""
    one = st.sampled_from(sorted(known)).flatmap(
        lambda name: st.tuples(st.just(name), known[name] | known[name] | ANYTHING)
    )
    return st.lists(one, max_size=3).map(dict)


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(robot=fields_of(ROBOTS), arena=fields_of(ARENA), scenario=fields_of(SCENARIO))
def test_whatever_is_accepted_stays_in_the_arena(
    robot: dict[str, Any], arena: dict[str, Any], scenario: dict[str, Any]
) -> None:
    """Anything else is an InputError with one sentence, at the door."""
    small = {"name": "small", "width": 1.5, "height": 1.5, "robots": 4, "ticks": 40}
    spans: dict[str, Any] = {"start_x": (0.2, 1.3), "start_y": (0.2, 1.3)}
    try:
        world = replace(FORAGING, **(small | spans | arena))
        drawn = Scenario.draw(
            **({"seed": 1, "trials": 2, "arena": world, "robot": Robot(**robot)} | scenario)
        )
    except InputError as error:
        event("refused")
        assert "\n" not in str(error)
        assert len(str(error)) < 400
        return
    event("accepted")
    still = Controller(0, (0.0, 0.0), ())
    wild = [Controller(0, (9.0, -9.0 + 4 * number), ()) for number in range(5)]
    team = [*wild, still][: drawn.robots]
    swarm = Swarm(drawn, team)
    for _ in range(10):
        swarm.advance(4)
        poses = swarm.poses
        assert np.isfinite(poses).all()
        edge = drawn.robot.radius  # of what may be pushed beyond a wall
        low, high = [-edge, -edge], [world.width + edge, world.height + edge]
        assert ((poses[..., :2] >= low) & (poses[..., :2] <= high)).all()
        assert (np.abs(poses[..., 2]) <= np.pi + 1e-9).all()
    scores = rollout([team], drawn)
    for name in ("uniformity", "centre_distance", "coverage"):
        assert np.isfinite(getattr(scores, name)).all()
