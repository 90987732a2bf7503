"""The learners by their names, and their state as JSON."""

from collections.abc import Hashable, Sequence
from typing import Any, Literal, overload

from swarmbo.adaptation.centralised import CentralisedLearner, GradientAscent, RandomSearch, Smbo
from swarmbo.adaptation.checks import (
    FORMAT,
    check_count,
    check_map,
    checked_fields,
    checked_list,
    fingerprint,
)
from swarmbo.adaptation.decentralised import DecentralisedLearner, numbered_groups
from swarmbo.adaptation.messages import MAX_TRIALS
from swarmbo.adaptation.options import (
    CENTRALISED,
    DECENTRALISED,
    LEARNERS,
    OPTIONS,
    Options,
    check_name,
)
from swarmbo.adaptation.worker import TRIALS
from swarmbo.errors import InputError, short
from swarmbo.maps.behaviour_map import MAX_ROBOTS, BehaviourMap

__all__ = [
    "CENTRALISED",
    "DECENTRALISED",
    "LEARNERS",
    "OPTIONS",
    "Learner",
    "learner",
    "learner_from_json",
]

Learner = CentralisedLearner | DecentralisedLearner

_CLASSES: dict[str, type[CentralisedLearner]] = {
    "smbo": Smbo,
    "smbo-uniform": Smbo,
    "random": RandomSearch,
    "gradient-ascent": GradientAscent,
}
_HEADER = ("format", "name", "map", "seed", "options")
_CENTRALISED_STATE = (*_HEADER, "robots", "evaluations")
_DECENTRALISED_STATE = (*_HEADER, "groups", "trials", "messages", "workers", "channel")


@overload
def learner(
    name: Literal["smbo", "smbo-uniform", "random", "gradient-ascent"],
    behaviour_map: BehaviourMap,
    robots: int = 6,
    groups: Sequence[Hashable] | None = None,
    trials: int = TRIALS,
    seed: int = 1,
    **options: Any,
) -> CentralisedLearner: ...


@overload
def learner(
    name: Literal["smbo-dec", "smbo-dec-naive", "smbo-no-sharing", "random-no-sharing"],
    behaviour_map: BehaviourMap,
    robots: int = 6,
    groups: Sequence[Hashable] | None = None,
    trials: int = TRIALS,
    seed: int = 1,
    **options: Any,
) -> DecentralisedLearner: ...


@overload
def learner(
    name: str,
    behaviour_map: BehaviourMap,
    robots: int = 6,
    groups: Sequence[Hashable] | None = None,
    trials: int = TRIALS,
    seed: int = 1,
    **options: Any,
) -> Any: ...


def learner(
    name: str,
    behaviour_map: BehaviourMap,
    robots: int = 6,
    groups: Sequence[Hashable] | None = None,
    trials: int = TRIALS,
    seed: int = 1,
    **options: Any,
) -> Any:
    """A learner by its name, that tries cells of a map.

    Centralised ones (smbo, smbo-uniform, random, gradient-ascent) have `ask()`,
    `tell(cell, performance)` and `best()`, and ignore `groups` and `trials`.
    Decentralised ones (smbo-dec, smbo-dec-naive, smbo-no-sharing,
    random-no-sharing) have `ask(robot)`, `tell(robot, performance)` after each of
    `trials` trials, and `best(robot)`. `groups` has a label per robot: robots
    with the same one share a model, and one with the label None is no worker;
    left out, all robots are one group. The same seed gives the same answers.
    """
    chosen = Options.of(name, options)
    check_count("robots", robots, 1, MAX_ROBOTS)
    check_count("trials", trials, 1, MAX_TRIALS)
    check_count("seed", seed, 0, 2**53)
    check_map(behaviour_map)
    numbers = numbered_groups(groups, robots)
    if name in CENTRALISED:
        return _CLASSES[name](name, behaviour_map, robots=robots, seed=seed, options=chosen)
    return DecentralisedLearner(
        name, behaviour_map, groups=numbers, trials=trials, seed=seed, options=chosen
    )


def learner_from_json(state: Any, behaviour_map: BehaviourMap) -> Any:
    """The learner whose `to_json` gave this state, with the map that it had; it goes on alike.

    InputError when the state is damaged, or the map another one.
    """
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise InputError(f"the state is not one of a learner; its format should be {FORMAT!r}")
    name: str = state.get("name", "")
    check_name(name)
    central = name in CENTRALISED
    checked_fields("the state", state, _CENTRALISED_STATE if central else _DECENTRALISED_STATE)
    check_map(behaviour_map)
    if state["map"] != fingerprint(behaviour_map):
        raise InputError("the state belongs to another map; give the map that the learner had")
    if not isinstance(state["options"], dict):
        raise InputError(f"options is {short(state['options'])}; give an object")
    Options.of(name, state["options"])
    given: dict[str, Any] = {"seed": state["seed"], **state["options"]}
    if central:
        made = learner(name, behaviour_map, state["robots"], **given)
    else:
        groups = checked_list("groups", state["groups"])
        made = learner(name, behaviour_map, len(groups), groups, state["trials"], **given)
        if list(made.groups) != groups:
            raise InputError("groups are not numbered in the order of their robots; restore them")
    made.restore(state)
    return made
