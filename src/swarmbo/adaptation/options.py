"""The options of the learners, each by name; docs/learners.md says what they change."""

from dataclasses import asdict, dataclass
from typing import Any

from swarmbo.adaptation.acquisition import ALPHA
from swarmbo.adaptation.gaussian_process import LENGTH_SCALE
from swarmbo.errors import InputError, is_finite_number, short

CENTRALISED = ("smbo", "smbo-uniform", "random", "gradient-ascent")
DECENTRALISED = ("smbo-dec", "smbo-dec-naive", "smbo-no-sharing", "random-no-sharing")
LEARNERS = CENTRALISED + DECENTRALISED

_MODEL = ("alpha", "length_scale")
_WORKERS = ("tried_cells", "observation_factor")
_RADIO = ("loss", "delay")
OPTIONS = {
    "smbo": (*_MODEL, "noise"),
    "smbo-uniform": (*_MODEL, "noise"),
    "random": (),
    "gradient-ascent": ("step",),
    "smbo-dec": (*_MODEL, "penalty", "maximum", *_WORKERS, *_RADIO),
    "smbo-dec-naive": (*_MODEL, *_WORKERS, *_RADIO),
    "smbo-no-sharing": (*_MODEL, *_WORKERS),
    "random-no-sharing": (*_WORKERS, "running_mean"),
}
_CHOICES = {
    "penalty": ("standard", "paper-text"),
    "maximum": ("best-observation", "posterior-mean"),
    "tried_cells": ("model", "swarm"),
}


@dataclass(frozen=True, kw_only=True)
class Options:
    """All options of all learners; performance is in the unit of the map."""

    alpha: float = ALPHA  # weight of the deviation in the upper confidence bound
    length_scale: float = LENGTH_SCALE  # of the kernel, in units of coordinates
    noise: float = 0.0  # variance of a centralised learner's observations
    step: float = 0.05  # of gradient ascent, in units of coordinates
    penalty: str = "standard"  # or "paper-text": the formula as printed
    maximum: str = "best-observation"  # M of the penalty; or "posterior-mean", the highest
    tried_cells: str = "model"  # whose tried cells are no candidates; or "swarm": everybody's
    running_mean: bool = False  # estimates are means over all controllers tried, as published
    observation_factor: float | None = None  # performance is own items times it; None: robots
    loss: float = 0.0  # chance that a message does not reach a robot
    delay: float = 0.0  # chance that a message waits for a trial, and for another, ...

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            if not isinstance(value, str) or value not in choices:
                raise InputError(f"{name} is {short(value)}; name one of {', '.join(choices)}")
        if not isinstance(self.running_mean, bool):
            raise InputError(f"running_mean is {short(self.running_mean)}; give true or false")
        self._check_number("alpha", 0, 1e6)
        self._check_number("length_scale", 1e-6, 1e6)
        self._check_number("noise", 0, 1e18)
        self._check_number("step", 0, 1e6)
        if self.observation_factor is not None:
            self._check_number("observation_factor", 1e-6, 1e6)
        for name in _RADIO:
            self._check_number(name, 0, 1)
        if self.delay == 1:
            raise InputError("delay is 1: no message would ever arrive; give less")

    def _check_number(self, name: str, least: float, most: float) -> None:
        value = getattr(self, name)
        if not is_finite_number(value) or not least <= value <= most:
            raise InputError(f"{name} is {short(value)}; give a number, {least:g} to {most:g}")
        object.__setattr__(self, name, float(value))

    @classmethod
    def of(cls, learner: str, given: dict[str, Any]) -> "Options":
        """The options given to a learner; InputError when it has no such option."""
        check_name(learner)
        for name in given:
            if name not in OPTIONS[learner]:
                known = ", ".join(OPTIONS[learner])
                remedy = f"name one of {known}" if known else "it has none"
                raise InputError(f"{learner} has no option {short(name)}; {remedy}")
        return cls(**given)

    def to_json(self, learner: str) -> dict[str, Any]:
        """The options that the learner has, with their values."""
        values = asdict(self)
        return {name: values[name] for name in OPTIONS[learner]}


def check_name(learner: object) -> None:
    """InputError when there is no learner of that name."""
    if not isinstance(learner, str) or learner not in LEARNERS:
        raise InputError(f"there is no learner {short(learner)}; name one of {', '.join(LEARNERS)}")
