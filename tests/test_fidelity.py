"""The engine matches recordings of the ARGoS simulator."""

from collections.abc import Iterable

import pytest

from tests import fidelity

Swarm = pytest.importorskip("swarmbo.engine.swarm").Swarm
rollout = pytest.importorskip("swarmbo.engine.rollout").rollout


def assert_met(rows: Iterable[fidelity.Row]) -> None:
    """Fail with the demands that are not met."""
    missed = [row for row in rows if not row.ok]
    assert not missed, missed


def test_free_motion_matches_argos() -> None:
    assert_met(fidelity.free_motion(Swarm))


def test_proximity_readings_match_argos() -> None:
    assert_met(fidelity.proximity_readings(Swarm))


def test_ground_readings_match_argos() -> None:
    assert_met(fidelity.ground_readings(Swarm))


def test_sensor_noise_is_distributed_as_in_argos() -> None:
    assert_met(fidelity.sensor_noise(Swarm))


def test_wall_contact_matches_argos() -> None:
    assert_met(fidelity.wall_contact(Swarm))


def test_contact_of_two_and_three_robots_matches_argos() -> None:
    assert_met(fidelity.robot_contact(Swarm))


def test_trajectories_match_argos_until_contact() -> None:
    assert_met(fidelity.trajectories(Swarm))


def test_foraging_scores_match_argos() -> None:
    assert_met(fidelity.foraging(rollout))


def test_items_are_unbiased_where_the_controllers_were_not_selected() -> None:
    assert_met(fidelity.not_selected(rollout))


@pytest.mark.parametrize("name", fidelity.fault_names())
def test_items_under_fault_match_argos(name: str) -> None:
    assert_met(fidelity.under_fault(name, rollout))
