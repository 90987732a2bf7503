"""Controllers: recurrent networks of any shape, in the JSON form that people exchange."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from swarmbo.errors import InputError, cut, is_finite_number, is_integer, naming, short
from swarmbo.files import read_json

INPUTS = 10  # 7 proximity, 2 ground, bias
OUTPUTS = 2  # left and right wheel


@dataclass(frozen=True)
class Controller:
    """A network: neurons 0-9 are inputs, 10 and 11 the wheels, 12 and up hidden.

    Neuron i >= 10 computes tanh(5 * sum of weight * source + bias[i - 10]).
    Each connection is (source, target, weight). Inputs act within the tick;
    from any other neuron a connection reads the value of the tick before.
    """

    hidden: int
    bias: tuple[float, ...]
    connections: tuple[tuple[int, int, float], ...]

    def __post_init__(self) -> None:
        _check(self)

    @property
    def neurons(self) -> int:
        """How many neurons there are, inputs included."""
        return INPUTS + OUTPUTS + self.hidden

    def to_json(self) -> dict[str, Any]:
        """The exchange form."""
        return {
            "hidden": self.hidden,
            "bias": list(self.bias),
            "connections": [list(connection) for connection in self.connections],
        }

    @classmethod
    def from_json(cls, value: Any) -> "Controller":
        """The controller in a JSON value of the exchange form."""
        if not isinstance(value, dict):
            raise InputError(f"is {short(value)}; give an object with hidden, bias, connections")
        for name in ("hidden", "bias", "connections"):
            if name not in value:
                raise InputError(f"has no {name!r}; give hidden, bias and connections")
        extra = set(value) - {"hidden", "bias", "connections"}
        if extra:
            raise InputError(
                f"has the unknown field {short(min(extra))}; give hidden, bias, connections"
            )
        hidden, bias, connections = value["hidden"], value["bias"], value["connections"]
        if not isinstance(bias, list):
            raise InputError(f"bias is {short(bias)}; give a list of numbers")
        if not isinstance(connections, list):
            raise InputError(f"connections is {short(connections)}; give a list of them")
        for number, connection in enumerate(connections):
            if not isinstance(connection, list) or len(connection) != 3:
                raise InputError(
                    f"connection {number} is {short(connection)}; give [source, target, weight]"
                )
        return cls(hidden, tuple(bias), tuple(map(tuple, connections)))


def _check(controller: Controller) -> None:
    hidden, bias, connections = controller.hidden, controller.bias, controller.connections
    if not is_integer(hidden) or hidden < 0:
        raise InputError(f"hidden is {short(hidden)}; give the number of hidden neurons")
    if len(bias) != OUTPUTS + hidden:
        raise InputError(
            f"has {len(bias)} biases; with {short(hidden)} hidden neurons give "
            f"{short(OUTPUTS + hidden)}"
        )
    for number, value in enumerate(bias):
        if not is_finite_number(value):
            raise InputError(f"bias {number} is {short(value)}; give a finite number")
    last = INPUTS + OUTPUTS + hidden - 1
    seen: set[tuple[int, int]] = set()
    for number, (source, target, weight) in enumerate(connections):
        place = f"connection {number} ({short(source)} to {short(target)})"
        if not is_integer(source) or not is_integer(target):
            raise InputError(f"{place} must name its neurons by integers")
        for end in (source, target):
            if not 0 <= end <= last:
                raise InputError(f"{place} names neuron {short(end)}; the neurons are 0 to {last}")
        if target < INPUTS:
            raise InputError(f"{place} goes into an input; targets are {INPUTS} to {last}")
        if INPUTS <= source < INPUTS + OUTPUTS:
            raise InputError(f"{place} comes out of an output; sources are inputs and hidden ones")
        if (source, target) in seen:
            raise InputError(f"{place} is there twice; keep one")
        if not is_finite_number(weight):
            raise InputError(f"{place} has the weight {short(weight)}; give a finite number")
        seen.add((source, target))


def load_controllers(path: str | os.PathLike[str]) -> list[Controller]:
    """The controllers in a JSON file: a non-empty list in the exchange form."""
    value = read_json(path)
    if not isinstance(value, list) or not value:
        raise InputError(f"{cut(path)}: must hold a non-empty list of controllers")
    controllers = []
    for number, entry in enumerate(value):
        with naming(path), naming(f"controller {number}"):
            controllers.append(Controller.from_json(entry))
    return controllers


def load_teams(
    path: str | os.PathLike[str], controllers: Sequence[Controller], robots: int
) -> list[tuple[int, ...]]:
    """The teams in a JSON file: a list of lists of controller numbers, one per robot."""
    value = read_json(path)
    if not isinstance(value, list) or not value:
        raise InputError(f"{cut(path)}: must hold a non-empty list of teams")
    for number, team in enumerate(value):
        place = f"{cut(path)}: team {number}"
        if not isinstance(team, list):
            raise InputError(f"{place} is {short(team)}; give a list of controller numbers")
        if len(team) != robots:
            raise InputError(f"{place} names {len(team)} controllers; give {robots}, one per robot")
        for robot, index in enumerate(team):
            if not is_integer(index) or not 0 <= index < len(controllers):
                raise InputError(
                    f"{place}, robot {robot} names controller {short(index)}; "
                    f"the controllers are 0 to {len(controllers) - 1}"
                )
    return [tuple(team) for team in value]


def homogeneous_teams(controllers: Iterable[object], robots: int) -> list[tuple[int, ...]]:
    """One team per controller, each of its robots running that one."""
    return [(number,) * robots for number, _ in enumerate(controllers)]
