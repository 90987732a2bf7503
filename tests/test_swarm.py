"""The engine's promises to its users: swarms that go on, and scores that do not depend on how."""

from collections.abc import Callable
from dataclasses import fields, replace
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
    Arena,
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
    load_map,
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
    with pytest.raises(InputError, match=r"threads is 1\.5"):
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
    spans: dict[str, Any] = {"start_x": (1, 399), "start_y": (0.1, 0.2)}
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
    with pytest.raises(InputError, match="wheels is read-only"):
        swarm.wheels = np.zeros((8, 6, 2))
    before = swarm.wheels
    with pytest.raises(ValueError, match="read-only"):
        before[...] = 0
    assert np.abs(swarm.wheels).max() > 1, "in cm/s"


# --- crowds ------------------------------------------------------------------------------------


def crowd(robots: int) -> Scenario:
    """Robots that all sense each other, in two trials."""
    hall = replace(FORAGING, name="hall", width=6, height=6, start_x=(0.2, 5.8), start_y=(0.2, 5.8))
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
            assert deepest_overlap(body, poses) < 0.01, "m, as with short-sighted robots"


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


@pytest.mark.parametrize(
    ("row", "value"),
    [(row, value) for row in ("x", "y", "heading") for value in (np.nan, np.inf)],
)
def test_run_that_is_no_longer_in_the_arena_ends_with_an_error(row: str, value: float) -> None:
    swarm = Swarm(Scenario.draw(seed=1, trials=2), MIXED)
    swarm.advance(3)
    getattr(swarm._lanes, row)[5] = value
    with pytest.raises(InputError, match=r"robots left the arena foraging by tick .* no scores"):
        swarm.advance(3)


@pytest.mark.parametrize(("robots", "row"), [(20, 420), (40, 440), (100, 112), (100, 352)])
def test_no_crowd_throws_a_robot_through_a_wall(robots: int, row: int) -> None:
    """Without the walls' last word the centre of one was 0.3 to 0.65 m outside."""
    controller = load_map("paper-1").controllers()[row]
    swarm = Swarm(Scenario.draw(seed=5, robots=robots), [controller] * robots)
    for _ in range(60):
        swarm.advance(10)
        centres = swarm.poses[..., :2]
        assert centres.min() > -1e-6
        assert (centres - [FORAGING.width, FORAGING.height]).max() < 1e-6


def test_rollout_whose_robots_leave_the_arena_gives_no_scores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With a friction far beyond what is accepted, of which the contact solver makes infinities."""
    packed = replace(FORAGING, width=1, height=1, start_x=(0.1, 0.9), start_y=(0.1, 0.9), food=())
    scenario = Scenario.draw(seed=1, arena=packed, robots=20, trials=4, ticks=300)
    rough = replace(THYMIO)
    object.__setattr__(rough, "friction", 1e6)
    object.__setattr__(scenario, "robot", rough)
    with pytest.raises(InputError, match="robots left the arena foraging"):
        rollout([[EXAMPLE[0]] * 20, [EXAMPLE[number % 6] for number in range(20)]], scenario)


def test_scenario_that_does_not_fit_into_memory_is_refused() -> None:
    huge = replace(FORAGING, name="huge", width=1000, height=1000)
    scenario = Scenario(poses=np.ones((10_000, 1, 3)), arena=huge)
    with pytest.raises(InputError, match=r"1 robots in 10,000 trials need .* GiB of memory"):
        Swarm(scenario, MIXED[:1])
    few = Scenario(poses=scenario.poses[:8], arena=huge)
    with pytest.raises(InputError, match=r"teams.* need .* GiB of memory"):
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
    | st.sampled_from(
        [10**400, -(10**30), 1j, np.float32(0.1), np.nan, np.int64(3), np.bool_(True)]
    )
    | st.floats()
    | st.integers(-5, 5)
    | st.lists(st.floats(-1, 1), max_size=4)
)


ROBOT_FIELDS = [field.name for field in fields(Robot)]
ARENA_FIELDS = [field.name for field in fields(Arena)]
SCENARIO_FIELDS = ["seed", "robots", "trials", "ticks", "noise_key", "tick", "substeps"]
SMALL = replace(
    FORAGING, name="small", width=1.5, height=1.5, start_x=(0.2, 1.3), start_y=(0.2, 1.3), robots=4
)


def some_of(names: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    """One or two of the fields with anything."""
    return st.dictionaries(st.sampled_from(names), ANYTHING, max_size=2)


@settings(max_examples=500)
@given(some_of(ROBOT_FIELDS), some_of(ARENA_FIELDS), some_of([*SCENARIO_FIELDS, "disturbances"]))
def test_anything_in_a_field_is_used_or_refused_in_a_sentence(
    robot: dict[str, Any], arena: dict[str, Any], scenario: dict[str, Any]
) -> None:
    given_values: dict[str, Any] = {"seed": 1, "trials": 2, "ticks": 20}
    complaint = ""
    drawn = None
    try:
        world, thymio = replace(SMALL, **arena), replace(THYMIO, **robot)
        drawn = Scenario.draw(**(given_values | {"arena": world, "robot": thymio} | scenario))
    except InputError as error:
        complaint = str(error)
    assert "\n" not in complaint
    assert len(complaint) < 400
    if drawn is not None:
        check_course(drawn, 3)


def around(value: float, most: float = 10) -> st.SearchStrategy[float]:
    """Numbers of a tenth of a value to `most` times the value."""
    return st.floats(-1, np.log10(most)).map(lambda power: float(value * 10**power))


@st.composite
def robots(draw: st.DrawFn) -> Robot:
    """Robots of all sizes, with bodies of all shapes, fast and slow."""
    size = draw(around(0.08))
    count = draw(st.integers(4, 9))
    lean = draw(st.lists(st.floats(-0.2, 0.2), min_size=count, max_size=count))
    angles = -2 * np.pi * (np.arange(count) + np.array(lean)) / count
    wide = draw(st.floats(0.5, 1))
    body: Any = size * np.stack([np.cos(angles), wide * np.sin(angles)], axis=1)
    place = st.floats(-size, size)
    sensor = st.tuples(place, place, st.floats(-4, 4))
    return Robot(
        body=body,
        wheel_base=draw(around(size, 3)),
        max_speed=draw(around(2 * size, 3)),
        mass=draw(around(THYMIO.mass)),
        max_force=draw(around(THYMIO.max_force)),
        friction=draw(st.floats(0, 1)),
        proximity_sensors=draw(st.tuples(*[sensor] * 7)),
        ground_sensors=draw(st.tuples(*[sensor] * 2)),
        front_sensors=draw(st.integers(0, 7)),
        proximity_range=draw(around(size, 30)),
        proximity_noise=draw(st.floats(0, 10)),
        ground_noise=draw(st.floats(0, 2550)),
    )


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """A few of these robots in arenas of a few of their diameters and more."""
    robot = draw(robots())
    diameter = 2 * robot.radius
    width, height = draw(st.tuples(*[st.floats(8, 40)] * 2))
    disc = st.tuples(st.floats(0, width), st.floats(0, height), st.floats(0, 5))
    arena = Arena(
        name="drawn",
        width=width * diameter,
        height=height * diameter,
        food=tuple(Food(*np.multiply(food, diameter)) for food in draw(st.lists(disc, max_size=3))),
        start_x=(diameter, (width - 1) * diameter),
        start_y=(diameter, (height - 1) * diameter),
        robots=draw(st.integers(1, 4)),
        ticks=draw(st.integers(1, 60)),
        nest_depth=draw(st.floats(0, 8)) * diameter,
        wall_friction=draw(st.floats(0, 1)),
        square=draw(st.floats(0.3, 9)) * diameter,
    )
    return Scenario.draw(
        seed=draw(st.integers(0, 99)),
        arena=arena,
        robot=robot,
        trials=2,
        tick=draw(around(0.2, 1.5)),
        substeps=draw(st.integers(5, 40)),
    )


def accepted(make: Callable[[], Scenario]) -> Scenario | None:
    """What is made, or None where it is refused."""
    try:
        return make()
    except InputError:
        return None


@settings(max_examples=200, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_whatever_is_accepted_stays_in_the_arena(data: st.DataObject) -> None:
    drawn = accepted(lambda: data.draw(scenarios()))
    event("refused" if drawn is None else "accepted")
    if drawn is not None:
        check_course(drawn, 15)


def check_course(scenario: Scenario, parts: int) -> None:
    """Fail unless robots that drive as they like stay finite and in the arena."""
    wild = [Controller(0, (9.0, -9.0 + 4 * number), ()) for number in range(5)]
    team = [wild[number % 5] for number in range(scenario.robots)]
    swarm = Swarm(scenario, team)
    low = -scenario.robot.radius  # m: so far others may push a robot's centre
    high = np.array([scenario.arena.width, scenario.arena.height]) - low
    for part in range(parts):
        swarm.team = team[part % len(team) :] + team[: part % len(team)]
        swarm.advance(4)
        poses = swarm.poses
        assert np.isfinite(poses).all()
        assert ((poses[..., :2] >= low) & (poses[..., :2] <= high)).all()
        assert (np.abs(poses[..., 2]) <= np.pi + 1e-9).all()
        assert np.isfinite(swarm.inputs).all()
    scores = swarm.scores()
    for name in ("uniformity", "centre_distance", "coverage"):
        assert np.isfinite(getattr(scores, name)).all()
