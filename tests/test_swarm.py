"""The engine's promises to its users: swarms that go on, and scores that do not depend on how."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swarmbo import (
    FORAGING,
    Actuator,
    Controller,
    Food,
    InputError,
    Proximity,
    Rollout,
    Scenario,
    SoftwareNest,
    Swarm,
    bundled_controllers,
    conditions,
    rollout,
)

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
    with pytest.raises(InputError, match="advanced by -1 ticks"):
        Swarm(scenario, MIXED).advance(-1)
    with pytest.raises(InputError, match="threads is 0"):
        rollout([MIXED], scenario, threads=0)
    with pytest.raises(InputError, match="no teams"):
        rollout([], scenario)
    with pytest.raises(InputError, match="lists 2 robots"):
        Swarm(scenario, MIXED).disturbances = [Proximity(("min", "max"))]


def test_many_robots_sense_each_other_in_a_corridor() -> None:
    """The neighbour grid of a long and narrow arena has more cells than that of a square one."""
    still = Controller(0, (0.0, 0.0), ())
    corridor = replace(FORAGING, width=400.0, height=0.3, food=(), start_x=(1, 399))
    poses = np.zeros((1, 26, 3))
    poses[0, :, 0] = np.repeat(np.linspace(1, 399, 13), 2) + np.tile([0, 0.2], 13)
    poses[0, :, 1] = 0.15
    swarm = Swarm(Scenario(poses=poses, arena=corridor).without_noise(), [still] * 26)
    swarm.advance(1)
    front = swarm.inputs[0, :, 2]
    assert (front[::2] < 1).all(), "the one behind sees the one before it"
    assert (front[1::2] == 1).all()
