"""The sets of controllers that come with swarmbo, by name."""

from importlib.resources import as_file, files

from swarmbo.controller.network import Controller, load_controllers
from swarmbo.errors import InputError, short

BUNDLED = {
    "example": "six of the recorded controllers, from the best forager to a useless one",
    "recorded": "the 78 controllers with which ARGoS was recorded, of all qualities",
}


def bundled_controllers(name: str) -> list[Controller]:
    """The controllers of a set that comes with swarmbo: `example` or `recorded`."""
    if name not in BUNDLED:
        raise InputError(f"there is no set {short(name)}; the sets are {', '.join(BUNDLED)}")
    with as_file(files("swarmbo") / "data" / f"{name}_controllers.json") as path:
        return load_controllers(path)
