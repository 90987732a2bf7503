"""swarmbo: robot swarms that repair themselves, on a fast simulator that follows ARGoS.

The names below are the public ones. They are loaded when first used, so that
`import swarmbo` is quick; the simulator is compiled when it first runs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from swarmbo.version import __version__

if TYPE_CHECKING:
    from swarmbo.adaptation.channel import Channel
    from swarmbo.adaptation.learners import LEARNERS, learner, learner_from_json
    from swarmbo.adaptation.messages import Message
    from swarmbo.adaptation.worker import Worker
    from swarmbo.controller.bundled import bundled_controllers
    from swarmbo.controller.genomes import Genomes
    from swarmbo.controller.network import Controller, load_controllers
    from swarmbo.controller.variation import mutate, random_genomes
    from swarmbo.engine.results import scores_table, write_trace
    from swarmbo.engine.rollout import Rollout, rollout
    from swarmbo.engine.swarm import Scores, Swarm
    from swarmbo.errors import InputError
    from swarmbo.evolution.archive import make_archive, objective
    from swarmbo.evolution.descriptor import hbd, sdbc
    from swarmbo.evolution.emitter import VariationEmitter
    from swarmbo.evolution.map_elites import Evolution, EvolutionOptions, evolve
    from swarmbo.maps.behaviour_map import BehaviourMap, Log, bundled_maps, load_map
    from swarmbo.paper.conditions import condition, conditions
    from swarmbo.recovery.recovery import Recovery, recover
    from swarmbo.world.arena import ARENAS, FORAGING, FORAGING_2X, Arena, Food
    from swarmbo.world.disturbance import (
        Actuator,
        Disturbance,
        Effects,
        FoodScarcity,
        Ground,
        Proximity,
        SoftwareFood,
        SoftwareNest,
        disturbance,
        load_disturbances,
    )
    from swarmbo.world.poses import load_poses
    from swarmbo.world.robot import THYMIO, Robot, Sensor
    from swarmbo.world.scenario import Scenario


__all__ = [
    "ARENAS",
    "FORAGING",
    "FORAGING_2X",
    "LEARNERS",
    "THYMIO",
    "Actuator",
    "Arena",
    "BehaviourMap",
    "Channel",
    "Controller",
    "Disturbance",
    "Effects",
    "Evolution",
    "EvolutionOptions",
    "Food",
    "FoodScarcity",
    "Genomes",
    "Ground",
    "InputError",
    "Log",
    "Message",
    "Proximity",
    "Recovery",
    "Robot",
    "Rollout",
    "Scenario",
    "Scores",
    "Sensor",
    "SoftwareFood",
    "SoftwareNest",
    "Swarm",
    "VariationEmitter",
    "Worker",
    "__version__",
    "bundled_controllers",
    "bundled_maps",
    "condition",
    "conditions",
    "disturbance",
    "evolve",
    "hbd",
    "learner",
    "learner_from_json",
    "load_controllers",
    "load_disturbances",
    "load_map",
    "load_poses",
    "make_archive",
    "mutate",
    "objective",
    "random_genomes",
    "recover",
    "rollout",
    "scores_table",
    "sdbc",
    "write_trace",
]

_HOMES = {
    "adaptation.channel": ("Channel",),
    "adaptation.learners": ("LEARNERS", "learner", "learner_from_json"),
    "adaptation.messages": ("Message",),
    "adaptation.worker": ("Worker",),
    "controller.bundled": ("bundled_controllers",),
    "controller.genomes": ("Genomes",),
    "controller.network": ("Controller", "load_controllers"),
    "controller.variation": ("mutate", "random_genomes"),
    "engine.rollout": ("Rollout", "rollout"),
    "engine.swarm": ("Scores", "Swarm"),
    "errors": ("InputError",),
    "evolution.archive": ("make_archive", "objective"),
    "maps.behaviour_map": ("BehaviourMap", "Log", "bundled_maps", "load_map"),
    "evolution.descriptor": ("hbd", "sdbc"),
    "evolution.emitter": ("VariationEmitter",),
    "evolution.map_elites": ("Evolution", "EvolutionOptions", "evolve"),
    "engine.results": ("scores_table", "write_trace"),
    "paper.conditions": ("condition", "conditions"),
    "recovery.recovery": ("Recovery", "recover"),
    "world.arena": ("ARENAS", "FORAGING", "FORAGING_2X", "Arena", "Food"),
    "world.disturbance": (
        "Actuator",
        "Disturbance",
        "Effects",
        "FoodScarcity",
        "Ground",
        "Proximity",
        "SoftwareFood",
        "SoftwareNest",
        "disturbance",
        "load_disturbances",
    ),
    "world.poses": ("load_poses",),
    "world.robot": ("THYMIO", "Robot", "Sensor"),
    "world.scenario": ("Scenario",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
