"""What the page is told about its swarm. Lengths in metres, angles in radians, items per robot."""

import math
from typing import Any

import numpy as np

from swarmbo.adaptation.options import CENTRALISED, LEARNERS
from swarmbo.maps.behaviour_map import BehaviourMap
from swarmbo.paper.conditions import CONDITION_KINDS, DEMONSTRATION, conditions
from swarmbo.version import __version__
from swarmbo.view.play import protocol
from swarmbo.view.play.session import Session
from swarmbo.view.scene import fault_words, map_json, world_json

MOST_SAMPLES = 60  # of the live performance in one message
NO_MODEL = ("random", "gradient-ascent", "random-no-sharing")


def hello(behaviour_map: BehaviourMap, name: str) -> dict[str, Any]:
    """What never changes: the map, and what can be asked for."""
    return {
        "type": "hello",
        "version": __version__,
        "map": map_json(behaviour_map, name),
        "learners": [
            {
                "name": learner,
                "centralised": learner in CENTRALISED,
                "model": learner not in NO_MODEL,
            }
            for learner in LEARNERS
        ],
        "faults": {part: list(known) for part, known in protocol.FAULTS.items()},
        "conditions": {kind: len(conditions(kind, 1)) for kind in protocol.PLAYED_CONDITIONS},
        "only_for_6": [
            kind
            for kind in protocol.PLAYED_CONDITIONS
            if not kind.startswith("software") and f"{kind}-2x" not in CONDITION_KINDS
        ],
        "demonstration": DEMONSTRATION[1],
        "max_seed": protocol.MAX_SEED,
        "max_evaluations": protocol.MAX_EVALUATIONS,
    }


def world(session: Session) -> dict[str, Any]:
    """The arena and its robots, and how long ticks and rounds are."""
    scenario = session.case.scenario
    return {
        "type": "world",
        **world_json(scenario),
        "trials": scenario.trials,
        "tick_seconds": scenario.tick,
        "round_ticks": scenario.ticks,
    }


def frame(session: Session) -> dict[str, Any]:
    """Where the robots of the trial that is looked at are, and what has happened since the last."""
    trial, swarm = session.look.trial, session.swarm
    poses = swarm.poses[trial]
    message = {
        "type": "frame",
        "tick": session.time,
        "round": session.rounds,
        "round_tick": session.round_tick,
        "pace": round(session.pace, 2),
        "x": _rounded(poses[:, 0]),
        "y": _rounded(poses[:, 1]),
        "theta": _rounded(poses[:, 2]),
        "carrying": swarm.carrying[trial].astype(int).tolist(),
        "items": swarm.items[trial].tolist(),
    }
    if session.look.rays:
        message["proximity"] = _rounded(swarm.inputs[trial][:, :7])
    if session.samples:
        step = -(-len(session.samples) // MOST_SAMPLES)
        message["samples"] = [_rounded(np.array(pair)) for pair in session.samples[::-step][::-1]]
    if session.ended:
        message["ended"] = [
            [round(clock, 3), round(performance, 3), None if best is None else round(best, 3)]
            for clock, performance, best in session.ended
        ]
    if session.marks:
        message["marks"] = [[round(clock, 3), kind, words] for clock, kind, words in session.marks]
    session.samples, session.ended, session.marks = [], [], []
    return message


def state(session: Session) -> dict[str, Any]:
    """What holds until something happens: speed, faults, food, learner, and each robot."""
    faults, run = session.faults, session.run
    effects = session.case.scenario.effects()
    return {
        "type": "state",
        "paused": session.paused,
        "speed": session.speed,
        "seed": session.seed,
        "robots": session.robots,
        "put_back": session.put_back,
        "levels": {
            "before": round(session.before, 3),
            "fault": None if session.at_fault is None else round(session.at_fault, 3),
            "best": None if run is None or not run.done else round(run.best, 3),
        },
        "food": [
            {"disc": list(disc), "taken": number in faults.taken}
            for number, disc in enumerate(faults.food(session.arena))
        ],
        "learner": None
        if run is None
        else {
            "name": run.name,
            "at_work": session.learning,
            "done": len(run.done),
            "evaluations": run.evaluations,
            "centralised": run.centralised,
        },
        "verdict": session.verdict,
        "team": [_robot(session, robot, words) for robot, words in enumerate(fault_words(effects))],
    }


def _robot(session: Session, robot: int, fault: str) -> dict[str, Any]:
    """What a robot has, runs, expects and knows."""
    faults, run, row = session.faults, session.run, session.rows[robot]
    expected = session.expected(robot)
    message: dict[str, Any] = {
        "faults": {part: getattr(faults, part)[robot] for part in protocol.FAULTS},
        "fault": fault,
        "row": row if faults.software[robot] == "none" else None,
        "prior": round(
            float(session.behaviour_map.performance[row]) / session.behaviour_map.robots, 3
        ),
        "expects": None if expected is None else round(expected[0], 3),
        "deviation": None if expected is None or expected[1] is None else round(expected[1], 3),
        "outcome": None,
        "best": None,
        "shares_with": _mates(session, robot),
    }
    if run is not None and run.done:
        last = run.done[-1]
        place = 0 if run.centralised else robot
        for name in ("outcome", "best"):
            value = getattr(last, name)[place]
            message[name] = None if value is None else round(value, 3)
    return message


def _mates(session: Session, robot: int) -> list[int]:
    """The other robots with which a robot shares what is learnt."""
    run = session.run
    if run is None or robot not in run.workers:
        return []
    if run.centralised:
        return [mate for mate in run.workers if mate != robot]
    if run.name.endswith("no-sharing"):
        return []
    groups = run.case.groups
    return [mate for mate in run.workers if mate != robot and groups[mate] == groups[robot]]


def model(session: Session) -> dict[str, Any]:
    """The cells tried so far, and what the learner expects of each cell."""
    run = session.run
    tried: list[dict[str, Any]] = []
    for number, each in enumerate(run.done if run is not None else [], 1):
        for robot, (row, outcome) in enumerate(zip(each.cell, each.outcome, strict=True)):
            if row is not None and outcome is not None:
                tried.append(
                    {
                        "row": row,
                        "evaluation": number,
                        "robot": None if len(each.cell) == 1 else robot,
                        "outcome": round(outcome, 3),
                    }
                )
    expected = session.predictions(session.look.robot)
    message: dict[str, Any] = {"type": "model", "tried": tried, "robot": session.look.robot}
    if expected is not None:
        message["prediction"], message["uncertainty"] = map(_rounded, expected)
    return message


def _rounded(values: np.ndarray) -> list[Any]:
    """Numbers as JSON: thousandths are millimetres, and enough."""
    return [
        None if isinstance(value, float) and math.isnan(value) else value
        for value in np.round(values, 3).tolist()
    ]
