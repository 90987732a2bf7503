"""`swarmbo play` without a browser: the door, a page's swarm, the server, the command."""

import gc
import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from time import monotonic, perf_counter, sleep
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import swarmbo as package
from swarmbo import BehaviourMap, Genomes, Scenario, rollout
from swarmbo.adaptation.options import LEARNERS
from swarmbo.errors import InputError
from swarmbo.maps.behaviour_map import load_map
from swarmbo.recovery import runner
from swarmbo.recovery.runner import Case, Evaluator, adapt, compose, per_robot
from swarmbo.view.play import connections, messages, protocol
from swarmbo.view.play.faults import Faults
from swarmbo.view.play.hosts import host_name, is_address, is_loopback, is_served
from swarmbo.view.play.protocol import (
    Break,
    Condition,
    Learn,
    Look,
    Pause,
    PutBack,
    Repair,
    Restart,
    Run,
    Speed,
    Step,
    Stop,
    TakeFood,
)
from swarmbo.view.play.session import Session
from swarmbo.view.play.verdict import Evidence, verdict
from swarmbo.world.arena import FORAGING
from swarmbo.world.disturbance import HEALTHY, MAD, SENSOR_FAULTS, STUCK, WHEEL_FAULTS
from swarmbo.world.geometry import first_overlap
from swarmbo.world.robot import THYMIO
from tests.command import PATIENCE, swarmbo
from tests.playing import Visitor, served


@pytest.fixture(scope="module")
def paper_map() -> BehaviourMap:
    """The map that comes with swarmbo."""
    return load_map("paper-1")


@pytest.fixture
def session(paper_map: BehaviourMap) -> Session:
    """A page's swarm."""
    return Session(paper_map)


# --- the door ----------------------------------------------------------------------------------

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
names = sorted({name for cls in protocol.COMMANDS.values() for name in cls.__dataclass_fields__})
near_misses = st.builds(
    lambda kind, given: {"type": kind, **given},
    st.sampled_from(sorted(protocol.COMMANDS)),
    st.dictionaries(
        st.sampled_from(names),
        json_values
        | st.integers(-1, 20)
        | st.sampled_from(["proximity", "none", "max", "nest", "food", "smbo", "smbo-dec"]),
        max_size=4,
    ),
)
texts = (
    near_misses.map(json.dumps)
    | json_values.map(json.dumps)
    | st.text(max_size=60)
    | st.binary(max_size=60)
    | st.just("[" * 900)
    | st.just('{"type":"look","trial":' + "9" * 900 + "}")
)


@given(texts)
@settings(max_examples=400)
def test_any_message_is_a_command_or_answered_with_a_sentence(text: str | bytes) -> None:
    words, command = "", None
    try:
        command = protocol.read(text)
    except InputError as error:
        words = str(error)
    assert type(command) in protocol.COMMANDS.values() or 0 < len(words) < 400
    assert "\n" not in words


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "not JSON"),
        ("[]", "type is None"),
        ('{"type": "explode"}', "'explode'"),
        ('{"type": "speed", "factor": 0.5}', "factor is 0.5"),
        ('{"type": "speed", "factor": NaN}', "not JSON"),
        ('{"type": "speed", "factor": 1e999}', "factor is inf"),
        ('{"type": "pause", "paused": 1}', "true or false"),
        ('{"type": "break", "robot": 0, "part": "lasers", "fault": "none"}', "'lasers'"),
        ('{"type": "break", "robot": true, "part": "ground", "fault": "min"}', "robot is True"),
        ('{"type": "restart", "seed": 1, "robots": 7}', "give 6 or 12"),
        ('{"type": "stop", "now": 1}', "no fields"),
        ('{"type": "learn"}', "learner, evaluations"),
        ("x" * 1025, "too long"),
    ],
)
def test_wrong_message_gets_a_sentence_on_what_is_wrong(text: str, part: str) -> None:
    with pytest.raises(InputError) as error:
        protocol.read(text)
    assert part in str(error.value)


def test_right_message_is_read() -> None:
    assert protocol.read('{"type": "speed", "factor": null}') == Speed(None)
    assert protocol.read('{"type": "step"}') == Step(1)
    assert protocol.read(b'{"type": "run", "row": 3, "robot": 5}') == Run(3, 5)


# --- a page's swarm ----------------------------------------------------------------------------


def rounds(session: Session, count: int) -> list[tuple[float, float | None]]:
    """Let rounds go by: items per robot and the best so far of each."""
    session.ended = []
    session.advance(count * session.round_ticks)
    return [(performance, best) for _, performance, best in session.ended]


def test_healthy_swarm_delivers_in_each_round_what_the_level_before_says(session: Session) -> None:
    case = Case.of(session.behaviour_map, ())
    (items,) = Evaluator(threads=1).items([case.swarm_of(case.prior_best)])
    assert session.before == per_robot(items)
    assert rounds(session, 2) == [(session.before, None)] * 2


def test_live_performance_falls_from_the_level_before_to_that_at_the_fault(
    session: Session,
) -> None:
    session.advance(session.round_ticks * 3 // 2)
    assert session.samples[-1][1] == pytest.approx(session.before)
    session.apply(Condition("proximity", 19))
    assert session.at_fault is not None
    assert session.at_fault < 0.7 * session.before
    session.advance(session.round_ticks * 2)
    assert session.samples[-1][1] == pytest.approx(session.at_fault, abs=0.3 * session.before)
    assert [kind for _, kind, _ in session.marks] == ["fault"]


@pytest.mark.parametrize("name", ["smbo-dec", "smbo"])
def test_learner_on_the_page_does_what_swarmbo_recover_does(
    paper_map: BehaviourMap, name: str
) -> None:
    session = Session(paper_map)
    session.advance(77)
    session.apply(Condition("proximity", 19))
    session.apply(Learn(name, 3))
    found = rounds(session, 4)
    case = Case.of(paper_map, "proximity:19")
    evaluator = Evaluator(threads=1)
    expected = runner.Run(case, name, evaluations=3)
    bests = []
    adapt([expected], evaluator, progress=lambda runs: bests.append(runs[0].best))
    (at_fault,) = evaluator.items([case.swarm_of(case.prior_best)])
    assert session.run is not None
    assert session.run.done == expected.done
    assert [best for _, best in found] == [*bests, None]
    assert session.at_fault == per_robot(at_fault)
    assert tuple(session.rows) == expected.final_team()
    (composed,) = compose([expected], evaluator)
    assert found[3][0] == (expected.best if composed is None else composed)


def test_running_in_small_turns_gives_the_same_swarm(paper_map: BehaviourMap) -> None:
    one, other = Session(paper_map), Session(paper_map)
    for each in (one, other):
        each.apply(Break(1, "wheels", "left"))
        each.apply(Learn("smbo-dec", 2))
    one.advance(1500)
    other.apply(Speed(None))
    while other.time < 1500:
        other.advance(min(37, 1500 - other.time))
    np.testing.assert_array_equal(one.swarm.poses, other.swarm.poses)
    assert one.samples == other.samples
    assert one.ended == other.ended


def fault_of(session: Session, robot: int, part: str) -> str:
    """The fault that the engine gives a part of a robot."""
    effects = session.swarm.effects
    if part == "wheels":
        gains = {gain: fault for fault, gain in WHEEL_FAULTS.items()}
        return gains[tuple(effects.wheel_gain[robot])]
    if part == "software":
        return {HEALTHY: "none", MAD: "nest", STUCK: "food"}[int(effects.software[robot])]
    return SENSOR_FAULTS[getattr(effects, part)[robot]]


def test_every_fault_of_every_part_reaches_the_robot_while_it_runs(session: Session) -> None:
    for part, known in protocol.FAULTS.items():
        for fault in known:
            session.advance(5)
            before = session.swarm.poses[:, [0, 1, 3, 4, 5]]
            session.apply(Break(2, part, fault))
            assert fault_of(session, 2, part) == fault
            np.testing.assert_array_equal(session.swarm.poses[:, [0, 1, 3, 4, 5]], before)
        session.apply(Repair(2))
        assert session.swarm.disturbances == ()


def test_mad_robots_are_put_at_the_nest_and_stuck_ones_on_food_where_nobody_stands(
    session: Session,
) -> None:
    session.advance(300)
    for robot in range(5):
        session.apply(Break(robot, "software", "nest" if robot % 2 else "food"))
    poses = session.swarm.poses
    body = np.array(THYMIO.body)
    for trial in poses:
        assert first_overlap(body, trial) is None
    assert np.abs(poses[:, [1, 3], 0] - FORAGING.nest_depth).max() < 0.2
    for robot in (0, 2, 4):
        food = FORAGING.food[session.faults.stuck_on[robot]]
        assert np.hypot(*(poses[:, robot, :2] - food[:2]).T).max() < 0.4
    assert len(set(session.faults.stuck_on.values())) == 3
    there = session.swarm.poses[:, 0]
    session.advance(200)
    moved = np.hypot(*(session.swarm.poses[:, 0] - there)[:, :2].T)
    assert moved.max() < 0.3  # others may push it, but it does not drive
    session.apply(Break(5, "software", "nest"))
    with pytest.raises(InputError, match="lost their controller"):
        session.apply(Learn("smbo", 5))


def test_food_is_taken_away_and_put_back(session: Session) -> None:
    session.advance(50)
    session.apply(TakeFood(4, True))
    assert len(session.swarm.food) == 9
    assert FORAGING.food[4] not in session.swarm.food
    session.apply(TakeFood(None, True))
    assert session.swarm.food == ()
    rounds(session, 1)
    assert rounds(session, 1) == [(0.0, None)]
    session.apply(TakeFood(None, False))
    assert session.swarm.food == FORAGING.food
    assert session.at_fault is None


def test_scarce_food_of_the_paper_can_be_taken_away_too(session: Session) -> None:
    session.apply(Condition("food-scarcity", 5))
    assert len(session.swarm.food) == 1
    session.apply(TakeFood(0, True))
    assert not session.swarm.food
    with pytest.raises(InputError, match="no food 1"):
        session.apply(TakeFood(1, True))
    session.apply(Repair())
    assert session.swarm.food == FORAGING.food


def test_verdict_says_what_the_learner_has_brought_and_from_how_many_rounds(
    session: Session,
) -> None:
    session.apply(Condition("proximity", 19))
    assert messages.state(session)["verdict"] is None
    session.apply(Learn("smbo-dec", 6))
    rounds(session, 6)
    assert session.verdict is not None
    assert "ended after 6 evaluations; this round tells" in session.verdict
    ((now, _),) = rounds(session, 1)
    words = messages.state(session)["verdict"]
    for name, value in (("now", now), ("at the fault", session.at_fault), ("it", session.before)):
        assert re.search(rf"{name} {value:.2f} ± \d\.\d\d in 1 round[, ]", words), words
    assert "8 trials" in words
    rounds(session, 3)  # in which robots that are put back do the same again
    assert session.verdict == words
    session.apply(PutBack(False))
    rounds(session, 1)
    rounds(session, 2)
    assert "in 3 rounds" in session.verdict or "in 4 rounds" in session.verdict
    session.apply(Break(0, "ground", "min"))
    assert session.verdict is None


def told(now: Any, at_fault: Any) -> str:
    """A verdict on rounds of these items."""
    before, fault = Evidence.of(np.full((8, 6), 5)), Evidence.of(np.array(at_fault))
    return verdict("smbo", before, fault, Evidence.of(np.array(now)), 30)


def test_verdict_calls_better_only_what_noise_does_not_explain() -> None:
    noisy = np.random.default_rng(1).integers(0, 5, (8, 6))
    assert "is better than at the fault" in told(noisy + 3, noisy)
    assert "is worse than at the fault" in told(noisy, noisy + 3)
    assert "is not clearly better or worse than" in told(noisy + (noisy > 3), noisy)
    assert "is not clearly better or worse than" in told(noisy * 0, noisy * 0)
    assert "is not clearly" in told(noisy[:1] + 3, noisy[:1])  # one trial has no spread
    evidence = Evidence.of(noisy)
    assert evidence.and_then(noisy).rounds == 1
    more = evidence.and_then(noisy + 1).and_then(noisy + 5)
    assert more.rounds == 3
    assert more.mean == pytest.approx(evidence.mean + 2)
    assert "1,000 rounds" in str(Evidence(noisy.mean(axis=1), noisy.mean(axis=1), 1000))


def test_learner_that_ends_without_an_evaluation_leaves_a_mark(session: Session) -> None:
    session.apply(Learn("smbo", 5))
    session.apply(Stop())
    assert [kind for _, kind, _ in session.marks] == ["learner", "end"]
    assert session.verdict is None


def test_every_round_is_told_however_many_end_between_two_pictures(session: Session) -> None:
    session.advance(100 * session.round_ticks)
    assert len(messages.frame(session)["ended"]) == 100


def test_another_fault_lets_the_learner_begin_again_with_other_groups(session: Session) -> None:
    session.apply(Break(0, "proximity", "max"))
    session.apply(Learn("smbo-dec", 5))
    rounds(session, 2)
    session.apply(Break(1, "proximity", "max"))
    assert session.learning
    assert session.run is not None
    assert session.run.done == []
    assert session.run.case.groups[:3] == ("proximity max", "proximity max", "no fault")
    team = messages.state(session)["team"]
    assert team[0]["shares_with"] == [1]
    assert team[2]["shares_with"] == [3, 4, 5]


def test_learner_is_done_when_the_map_has_no_more_cells(paper_map: BehaviourMap) -> None:
    assert paper_map.genomes is not None
    few = BehaviourMap.from_arrays(
        paper_map.cells[:4],
        paper_map.performance[:4],
        genomes=Genomes.from_controllers(paper_map.controllers()[:4]),
    )
    session = Session(few)
    session.apply(Learn("smbo", 30))
    session.apply(Condition("ground", 3))
    assert session.learning
    rounds(session, 6)
    assert not session.learning
    assert session.run is not None
    assert len({each.cell for each in session.run.done}) == len(session.run.done) == 4


def test_stopped_learner_leaves_each_robot_the_best_that_it_knows(session: Session) -> None:
    session.apply(Condition("ground", 3))
    session.apply(Learn("smbo-no-sharing", 30))
    rounds(session, 3)
    session.apply(Stop())
    assert not session.learning
    assert session.run is not None
    assert tuple(session.rows) == session.run.final_team()
    assert [best for _, best in rounds(session, 2)] == [None, None]


def test_chosen_cell_delivers_what_its_controller_delivers(session: Session) -> None:
    row = 7
    session.apply(Run(row))
    rounds(session, 1)  # the rest of a round with another controller
    controller = session.controllers[row]
    result = rollout([[controller] * 6], Scenario.draw(seed=session.seed))
    assert rounds(session, 1)[0][0] == pytest.approx(float(result.performance[0]) / 6)
    session.apply(Run(9, robot=2))
    assert session.rows == [7, 7, 9, 7, 7, 7]
    with pytest.raises(InputError, match="no row"):
        session.apply(Run(10**6))


def test_cell_that_is_run_stops_the_learner(session: Session) -> None:
    session.apply(Learn("random", 30))
    session.apply(Run(3))
    assert not session.learning
    assert session.rows == [3] * 6


def test_restart_gives_a_healthy_swarm_of_the_seed_and_size(session: Session) -> None:
    session.apply(Condition("actuator", 2))
    session.apply(Learn("smbo", 3))
    session.advance(800)
    session.apply(Restart(5, 12))
    assert session.robots == 12
    assert session.arena.name == "foraging-2x"
    assert session.swarm.disturbances == ()
    assert session.run is None
    expected = Scenario.draw(seed=5, arena=session.arena)
    np.testing.assert_array_equal(session.swarm.scenario.poses, expected.poses)
    assert (session.time, session.rounds, session.samples) == (0, 0, [])
    session.apply(Condition("proximity", 1))
    with pytest.raises(InputError, match="6 robots only"):
        session.apply(Condition("ground", 1))
    assert set(session.faults.proximity) != {"none"}


def test_robots_that_are_left_alone_go_on_where_the_round_before_ended(session: Session) -> None:
    session.apply(PutBack(False))
    session.advance(session.round_ticks)
    there = session.swarm.poses
    session.advance(1)
    assert np.abs(session.swarm.poses - there)[..., :2].max() < 0.03
    assert session.rounds == 1


def test_paused_swarm_stands_still_but_steps(session: Session) -> None:
    session.apply(Pause(True))
    session.turn(10.0, until=perf_counter() + 1)
    assert session.time == 0
    session.apply(Step(3))
    session.turn(0.0, until=perf_counter() + 1)
    assert session.time == 3
    assert not session.is_busy


@pytest.mark.parametrize("factor", [1, 3.3, 100])
def test_swarm_runs_at_the_speed_that_is_asked_for(session: Session, factor: float) -> None:
    session.apply(Speed(factor))
    for _ in range(50):
        session.turn(0.1, until=perf_counter() + 1)
    assert session.time == pytest.approx(5 * factor / 0.2, abs=1)
    assert session.pace == pytest.approx(factor, rel=0.3)


def test_swarm_that_cannot_keep_up_makes_no_debts(session: Session) -> None:
    session.apply(Speed(1_000_000))
    session.turn(1.0, until=perf_counter())
    done = session.time
    assert 0 < done < 5_000_000
    session.apply(Speed(1))
    session.turn(0.2, until=perf_counter() + 1)
    assert session.time == done + 1


def test_page_is_told_about_models_and_what_robots_expect(session: Session) -> None:
    session.apply(Condition("proximity", 19))
    session.apply(Learn("smbo-dec", 4))
    state = messages.state(session)
    assert all(robot["expects"] is not None for robot in state["team"])
    assert state["learner"]["at_work"]
    first = messages.model(session)
    assert first["tried"] == []
    rounds(session, 2)
    session.apply(Look(robot=2))
    second = messages.model(session)
    assert len(second["tried"]) == 12
    assert second["prediction"] != first["prediction"]
    tried = {each["row"] for each in second["tried"] if each["robot"] in (2, 5)}
    uncertainty = np.array(second["uncertainty"])
    assert uncertainty[list(tried)].mean() < uncertainty.mean()
    json.dumps(second, allow_nan=False)


@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_can_be_watched(session: Session, name: str) -> None:
    session.apply(Break(0, "ground", "random"))
    session.apply(Learn(name, 2))
    rounds(session, 2)
    state, model = messages.state(session), messages.model(session)
    assert state["learner"] == {
        "name": name,
        "at_work": False,
        "done": 2,
        "evaluations": 2,
        "centralised": name in ("smbo", "smbo-uniform", "random", "gradient-ascent"),
    }
    assert ("prediction" in model) == (name not in messages.NO_MODEL)
    assert state["levels"]["best"] is not None


def test_condition_of_the_paper_breaks_what_its_disturbance_breaks(session: Session) -> None:
    for kind in protocol.PLAYED_CONDITIONS:
        session.apply(Condition(kind, 0))
        expected = Case.of(session.behaviour_map, f"{kind}:0").scenario
        assert session.swarm.disturbances == expected.disturbances
        np.testing.assert_array_equal(session.case.scenario.poses, expected.poses)


commands = st.one_of(
    st.builds(Break, st.integers(0, 11), st.just("ground"), st.sampled_from(SENSOR_FAULTS)),
    st.builds(
        Break, st.integers(0, 5), st.just("software"), st.sampled_from(["none", "nest", "food"])
    ),
    st.builds(Repair, st.none() | st.integers(0, 11)),
    st.builds(TakeFood, st.none() | st.integers(0, 9), st.booleans()),
    st.builds(Learn, st.sampled_from(LEARNERS), st.integers(1, 2)),
    st.just(Stop()),
    st.builds(Run, st.integers(0, 600), st.none() | st.integers(0, 11)),
    st.builds(Condition, st.sampled_from(protocol.PLAYED_CONDITIONS), st.integers(0, 30)),
    st.builds(PutBack, st.booleans()),
    st.builds(Look, st.integers(0, 7), st.booleans(), st.none() | st.integers(0, 11)),
)


@given(st.lists(st.tuples(commands, st.integers(0, 700)), max_size=6))
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_sequence_of_commands_leaves_a_page_that_cannot_be_told(
    paper_map: BehaviourMap, sequence: list[tuple[Any, int]]
) -> None:
    session = Session(paper_map)
    for command, ticks in sequence:
        before = messages.state(session)
        try:
            session.apply(command)
        except InputError:
            assert messages.state(session) == before
        session.advance(ticks)
        for message in (messages.state, messages.model, messages.world, messages.frame):
            protocol.write(message(session))
    poses = session.swarm.poses
    assert np.isfinite(poses).all()
    assert (poses[..., :2] > 0).all()
    assert (poses[..., :2] < [FORAGING.width, FORAGING.height]).all()


def test_copy_of_faults_does_not_follow_its_original() -> None:
    faults = Faults(6)
    copy = faults.copy()
    faults.proximity[0] = "max"
    faults.taken.add(1)
    assert copy == Faults(6) != faults


# --- the server --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[Any, str]]:
    """What is served, and its address."""
    with served() as found:
        yield found


def fetch(address: str, host: str | None = None) -> tuple[int, dict[str, str], str]:
    """Status, headers and text of a page."""
    request = urllib.request.Request(address, headers={} if host is None else {"Host": host})
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.status, dict(answer.headers), answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, dict(error.headers), error.read().decode()


def test_page_may_load_nothing_from_elsewhere(server: tuple[Any, str]) -> None:
    play, address = server
    status, headers, text = fetch(address)
    assert status == 200
    assert "script-src 'self'; style-src 'self'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert "<title>swarmbo play</title>" in text
    for name, (_, content) in play.files.items():
        text = content.decode().replace("http://www.w3.org/2000/svg", "")
        assert "http:" not in text, name
        assert "https:" not in text, name
        if name == "index.html":
            assert "<style" not in text
            assert " style=" not in text
            assert " on" + "click" not in text


@pytest.mark.parametrize("path", ["play.js", "style.css", "arena.js", "map.js", "icon.svg"])
def test_files_of_the_page_are_there(server: tuple[Any, str], path: str) -> None:
    status, headers, _ = fetch(server[1] + path)
    assert status == 200
    assert headers["content-type"].split(";")[0] in (
        "text/javascript",
        "text/css",
        "image/svg+xml",
    )


@pytest.mark.parametrize(
    "path", ["nothing.js", "..%2fplay%2fserver.py", "__init__.py", "docs", "replay.html"]
)
def test_nothing_else_is_there(server: tuple[Any, str], path: str) -> None:
    assert fetch(server[1] + path)[0] == 404


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", ""])
def test_host_of_a_strangers_domain_is_refused(server: tuple[Any, str], host: str) -> None:
    status, _, text = fetch(server[1], host)
    assert status in (400, 421)
    assert "swarmbo play" not in text


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "https://127.0.0.1", "null", None, "http://localhost:1"]
)
def test_websocket_of_a_foreign_origin_is_refused(
    server: tuple[Any, str], origin: str | None
) -> None:
    with pytest.raises(Exception, match="403"), Visitor(server[1], origin=origin):
        pass


def test_websocket_to_a_strangers_domain_is_refused(server: tuple[Any, str]) -> None:
    """The stranger's domain may lead here: then its page, and all it asks, has its name."""
    port = int(server[1].rstrip("/").rpartition(":")[2])
    stranger = f"http://evil.example:{port}/"
    with (
        socket.create_connection(("127.0.0.1", port)) as line,
        pytest.raises(Exception, match="403"),
        Visitor(stranger, sock=line),
    ):
        pass


@pytest.mark.parametrize("name", ["10.1.2.3", "192.168.0.1", "127.0.0.2", "[::1]", "0.0.0.0"])
def test_address_at_which_the_server_does_not_listen_is_refused(
    server: tuple[Any, str], name: str
) -> None:
    port = int(server[1].rstrip("/").rpartition(":")[2])
    assert fetch(server[1], f"{name}:{port}")[0] == 421
    with (
        socket.create_connection(("127.0.0.1", port)) as line,
        pytest.raises(Exception, match="403"),
        Visitor(f"http://{name}:{port}/", sock=line),
    ):
        pass


def test_server_at_all_addresses_answers_to_those_of_this_machine_only() -> None:
    with served("0.0.0.0") as (_, address):
        page, _, query = address.partition("?")
        port = page.rstrip("/").rpartition(":")[2]
        other = page.replace("127.0.0.1", "127.0.0.2") + f"?{query}"
        for where in (address, other):
            assert fetch(where)[0] == 200
            with Visitor(where) as visitor:
                visitor.hear("hello")
        for name in ("localhost", socket.gethostname()):
            assert fetch(address, f"{name}:{port}")[0] == 200
        for name in ("10.1.2.3", "evil.example"):
            status, _, text = fetch(address, f"{name}:{port}")
            assert status == 421
            assert "<title>" not in text


def test_server_that_other_machines_reach_opens_with_its_token_only() -> None:
    with served("0.0.0.0") as (play, address):
        page, _, token = address.partition("?token=")
        assert token == play.token
        assert len(token) > 20
        for wrong in (
            page,
            f"{page}?token=",
            f"{page}?token={token[:-1]}",
            f"{page}?token=%C3%A9",
            f"{page}play.js",
            f"{page}nothing.js",
        ):
            status, headers, text = fetch(wrong)
            assert status == 403, wrong
            assert headers["content-type"].startswith("text/plain")
            assert "set-cookie" not in headers
            assert "terminal" in text
            assert text.count(".") == 1
            assert token not in text
        for wrong in (page, f"{page}?token=x"):
            with pytest.raises(Exception, match="403"), Visitor(wrong):
                pass
        with Visitor(address) as visitor:
            assert visitor.hear("hello")


def test_cookie_keeps_the_token_for_what_the_page_loads() -> None:
    with served("0.0.0.0") as (_, address):
        page = address.partition("?")[0]
        _, headers, text = fetch(address)
        assert "<title>swarmbo play</title>" in text
        words = headers["set-cookie"].split("; ")
        assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(words)
        for path in ("", "play.js"):
            request = urllib.request.Request(page + path, headers={"Cookie": words[0]})
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                assert answer.status == 200
        with Visitor(page, additional_headers={"Cookie": words[0]}) as visitor:
            assert visitor.hear("hello")
        foreign = {"origin": "http://evil.example", "additional_headers": {"Cookie": words[0]}}
        with pytest.raises(Exception, match="403"), Visitor(page, **foreign):
            pass


def test_nobody_needs_a_token_on_loopback(server: tuple[Any, str]) -> None:
    play, address = server
    assert play.token is None
    assert "?" not in address
    assert "set-cookie" not in fetch(address)[1]


# What somebody sends who never finishes: nothing, half of a request, half of a handshake, one
# request and half of the next, half of a body.
HANDSHAKE = "GET /swarm HTTP/1.1\r\nHost: {0}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
UNFINISHED = [
    "",
    "GET / HTTP/1.1\r\nHost: {0}\r\n",
    HANDSHAKE,
    "GET /icon.svg HTTP/1.1\r\nHost: {0}\r\n\r\nGET / HT",
    "GET /icon.svg HTTP/1.1\r\nHost: {0}\r\nContent-Length: 1000\r\n\r\nabc",
]


@contextmanager
def lines(address: str, count: int) -> Iterator[list[socket.socket]]:
    """Connections to a server."""
    host, _, port = urlsplit(address).netloc.rpartition(":")
    with ExitStack() as stack:
        yield [
            stack.enter_context(socket.create_connection((host, int(port)), PATIENCE))
            for _ in range(count)
        ]


def is_closed(line: socket.socket) -> bool:
    """Whether the other end closes a connection, whatever it says before."""
    try:
        while line.recv(65536):
            pass
    except TimeoutError:
        return False
    except ConnectionError:
        pass
    return True


@pytest.mark.parametrize("text", UNFINISHED)
def test_connections_that_never_finish_a_request_are_closed_and_open_pages_are_not(
    server: tuple[Any, str], monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    words = text.format(urlsplit(server[1]).netloc).encode()
    with Visitor(server[1]) as visitor:
        visitor.say("pause", paused=True)
        visitor.hear("state", paused=True)
        monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.5)
        with lines(server[1], 200) as slow:
            for line in slow:
                with suppress(ConnectionError):  # on a busy machine it is closed already
                    line.sendall(words)
            assert all(map(is_closed, slow))
        visitor.say("speed", factor=9)  # which has been silent for as long
        assert visitor.hear("state", speed=9)


def test_connection_that_sends_a_byte_now_and_then_is_closed(
    server: tuple[Any, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.5)
    with lines(server[1], 1) as (line,):
        with suppress(ConnectionError):
            line.sendall(b"GET / HTTP/1.1\r\nX: ")
        end, is_open = monotonic() + PATIENCE, True
        while is_open and monotonic() < end:
            sleep(0.05)
            try:
                line.sendall(b"x")
            except ConnectionError:
                is_open = False
        assert not is_open


def test_request_that_arrives_in_pieces_is_answered(
    server: tuple[Any, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "REQUEST_SECONDS", PATIENCE)
    with lines(server[1], 1) as (line,):
        for piece in (b"GET / HT", b"TP/1.1\r\nHost: localhost\r\n", b"\r\n"):
            line.sendall(piece)
            sleep(0.01)
        assert line.recv(100).startswith(b"HTTP/1.1 200")


def test_only_so_many_connections_are_held_and_those_that_wait_longest_go(
    server: tuple[Any, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 20)
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 10 * PATIENCE)
    with Visitor(server[1]) as visitor, lines(server[1], 40) as idle:
        visitor.hear("frame")
        for line in idle[:20]:
            assert is_closed(line)
        idle[-1].sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert idle[-1].recv(100).startswith(b"HTTP/1.1 200")
        visitor.say("speed", factor=11)
        assert visitor.hear("state", speed=11)


def test_page_runs_and_is_told_what_happens(server: tuple[Any, str]) -> None:
    with Visitor(server[1]) as visitor:
        assert visitor.hear("hello")["map"]["name"] == "paper-1"
        world = visitor.hear("world")
        assert (world["width"], world["robots"]) == (2.1, 6)
        first = visitor.hear("frame")
        second = visitor.hear("frame")
        assert second["tick"] > first["tick"]
        assert second["x"] != first["x"]
        visitor.say("break", robot=3, part="wheels", fault="both")
        state = visitor.hear("state")
        while state["team"][3]["fault"] == "none":
            state = visitor.hear("state")
        assert state["team"][3]["fault"] == "wheels both"
        visitor.say("pause", paused=True)
        visitor.hear("state", paused=True)
        tick = visitor.hear("frame")["tick"]
        visitor.say("step")
        after = visitor.hear("frame")
        while after["tick"] == tick:
            after = visitor.hear("frame")
        assert after["tick"] == tick + 1


def test_pages_have_swarms_of_their_own_and_closed_ones_free_theirs(
    server: tuple[Any, str],
) -> None:
    play, address = server
    wait_for_pages(play, 0)
    with Visitor(address) as one, Visitor(address) as other:
        one.say("restart", seed=3, robots=12)
        assert one.hear("state", seed=3)["robots"] == 12
        other.say("pause", paused=True)
        assert other.hear("state", paused=True)["robots"] == 6
        assert play.pages == 2
    wait_for_pages(play, 0)


def wait_for_pages(play: Any, count: int) -> None:
    end = monotonic() + PATIENCE
    while play.pages != count and monotonic() < end:
        sleep(0.01)
    assert play.pages == count


def test_swarm_of_a_closed_page_is_gone(
    server: tuple[Any, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    swarms: list[weakref.ref[Session]] = []

    class Noted(Session):
        """A session that leaves a note of itself."""

        def __init__(self, behaviour_map: BehaviourMap) -> None:
            super().__init__(behaviour_map)
            swarms.append(weakref.ref(self))

    monkeypatch.setattr("swarmbo.view.play.server.Session", Noted)
    with Visitor(server[1]) as visitor:
        visitor.say("speed", factor=None)
        visitor.hear("state", speed=None)
        assert swarms[0]() is not None
    end = monotonic() + PATIENCE
    while swarms[0]() is not None and monotonic() < end:
        gc.collect()
        sleep(0.05)
    assert swarms[0]() is None


def test_malformed_messages_are_answered_and_the_page_goes_on(server: tuple[Any, str]) -> None:
    wrong = [
        "",
        "{",
        b"\xff\xfe\x00",
        "[" * 1000,
        '{"type": "break"}',
        '{"type": "run", "row": 1e400}',
        '{"type": "look", "robot": 11}',
        '{"type": "run", "row": 100000}',
        "7" * 2000,
    ]
    with Visitor(server[1]) as visitor:
        for text in wrong:
            visitor.socket.send(text)
            assert visitor.hear("error")["message"]
        visitor.say("speed", factor=7)
        assert visitor.hear("state", speed=7)


def test_random_messages_leave_the_server_standing(server: tuple[Any, str]) -> None:
    with Visitor(server[1]) as visitor:

        @given(texts)
        @settings(max_examples=30)
        def throw(text: str | bytes) -> None:
            visitor.socket.send(text)
            sleep(0.025)  # the pace that the server allows

        throw()
        visitor.say("restart", seed=77, robots=6)
        assert visitor.hear("state", seed=77)


def test_flood_and_giant_close_the_page_that_sends_them_only(server: tuple[Any, str]) -> None:
    from websockets.exceptions import ConnectionClosed

    with Visitor(server[1]) as good:
        with Visitor(server[1]) as flood:
            with pytest.raises(ConnectionClosed) as error:
                flood.say_often("step", 5000)
            assert error.value.rcvd is None or error.value.rcvd.code == 1008
        with Visitor(server[1]) as giant:
            giant.socket.send("x" * 100_000)
            with pytest.raises(ConnectionClosed) as error:
                giant.hear("never")
            assert error.value.rcvd is None or error.value.rcvd.code == 1009
        good.say("speed", factor=3)
        assert good.hear("state", speed=3)


def test_pages_that_ask_for_much_work_do_not_stop_the_others(server: tuple[Any, str]) -> None:
    play, address = server
    with Visitor(address) as busy, Visitor(address) as too, Visitor(address) as other:
        for visitor in (busy, too, other):
            visitor.hear("frame")
        for _ in range(60):  # each of which takes the swarm's whole turn
            for visitor in (busy, too):
                visitor.say("restart", seed=1, robots=12)
        start = monotonic()
        for _ in range(10):
            other.hear("frame")
        assert monotonic() - start < 5  # without turns it would wait for all of the restarts
    wait_for_pages(play, 0)


def test_too_many_pages_are_sent_away(
    server: tuple[Any, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from websockets.exceptions import ConnectionClosed

    monkeypatch.setattr("swarmbo.view.play.server.MAX_PAGES", 1)
    wait_for_pages(server[0], 0)
    with Visitor(server[1]) as visitor:
        visitor.hear("frame")
        with Visitor(server[1]) as late, pytest.raises(ConnectionClosed) as error:
            late.hear("hello")
        assert error.value.rcvd is not None
        assert error.value.rcvd.code == 1013


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("127.0.0.1:80", "127.0.0.1"),
        ("[::1]:80", "::1"),
        ("[::1]", "::1"),
        ("LocalHost", "localhost"),
        ("a:b", None),
        ("a:", None),
    ],
)
def test_names_of_hosts_are_read(header: str, name: str | None) -> None:
    assert host_name(header) == name


def test_address_with_a_zone_is_no_name_of_ours() -> None:
    assert is_address("::1")
    assert not is_address("::1%; script-src *")


@pytest.mark.parametrize(
    ("name", "host", "here", "served"),
    [
        ("127.0.0.1", "127.0.0.1", "127.0.0.1", True),
        ("localhost", "127.0.0.1", "127.0.0.1", True),
        ("10.1.2.3", "127.0.0.1", "127.0.0.1", False),
        ("127.0.0.1", "localhost", "127.0.0.1", True),
        ("::1", "localhost", "127.0.0.1", False),
        ("192.168.1.2", "192.168.1.2", "192.168.1.2", True),
        ("127.0.0.1", "192.168.1.2", "192.168.1.2", False),
        ("lab", "Lab", "192.168.1.2", True),
        ("lab.example", "lab", "192.168.1.2", False),
        ("192.168.1.2", "0.0.0.0", "192.168.1.2", True),
        ("192.168.1.3", "0.0.0.0", "192.168.1.2", False),
        ("127.0.0.1", "0.0.0.0", "172.17.0.2", True),  # a port that a container forwards
        ("192.168.1.2", "::", "::ffff:192.168.1.2", True),
        ("0:0:0:0:0:0:0:1", "::1", "::1", True),
        ("fe80::1", "::", "fe80::1%eth0", True),
        ("", "0.0.0.0", "192.168.1.2", False),
        ("", "", "192.168.1.2", False),
    ],
)
def test_server_answers_to_the_addresses_at_which_it_listens(
    name: str, host: str, here: str, served: bool
) -> None:
    assert is_served(name, host, here) == served


def test_only_loopback_is_loopback() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.8.9.1", "::1", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "192.168.1.2", "::", "example.org")))


# --- the command -------------------------------------------------------------------------------


def test_unknown_map_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    done = swarmbo(capsys, "play", "--map", "no-such-map", "--no-browser")
    assert done.code == 2
    assert "no-such-map" in done.stderr
    assert done.stderr.count("\n") == 1


def test_port_in_use_and_strange_host_are_refused(
    capsys: pytest.CaptureFixture[str], server: tuple[Any, str]
) -> None:
    port = server[1].rstrip("/").rpartition(":")[2]
    done = swarmbo(capsys, "play", "--port", port, "--no-browser")
    assert done.code == 2
    assert f"port {port}" in done.stderr
    assert "in use" in done.stderr
    done = swarmbo(capsys, "play", "--host", "no.such.host.invalid", "--no-browser")
    assert done.code == 2
    assert "no.such.host.invalid" in done.stderr
    assert done.stderr.count("\n") == 1


def test_without_the_extra_a_sentence_says_how_to_install_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in list(sys.modules):
        if name == "fastapi" or name.startswith(("fastapi.", "swarmbo.view.play")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "fastapi", None)
    done = swarmbo(capsys, "play", "--no-browser")
    assert done.code == 2
    assert "fastapi" in done.stderr
    assert 'pip install "swarmbo[play]"' in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="Ctrl-C is another signal there")
def test_command_says_where_it_is_warns_of_other_hosts_and_ends_at_once_at_ctrl_c() -> None:
    command = [sys.executable, "-m", "swarmbo", "play", "--no-browser", "--host", "0.0.0.0"]
    environment = os.environ | {"PYTHONPATH": str(Path(package.__file__).parent.parent)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        address = process.stdout.readline().split()[0]
        assert fetch(address.partition("?")[0])[0] == 403
        with Visitor(address) as visitor:
            visitor.say("speed", factor=None)
            visitor.hear("state", speed=None)
            started = monotonic()
            process.send_signal(signal.SIGINT)
            _, words = process.communicate(timeout=PATIENCE)
            assert monotonic() - started < 5
        assert process.returncode == 130
        assert "has the token in the address" in words
        assert "Traceback" not in words


def test_help_shows_examples(capsys: pytest.CaptureFixture[str]) -> None:
    done = swarmbo(capsys, "play", "--help")
    assert done.code == 0
    assert "swarmbo play --no-browser" in done.stdout
