"""What workers tell each other: plain data with an identity."""

from dataclasses import asdict, dataclass, fields
from typing import Any

from swarmbo.adaptation.checks import check_count, checked_fields
from swarmbo.errors import InputError, is_finite_number, short
from swarmbo.maps.behaviour_map import MAX_NUMBER, MAX_ROBOTS
from swarmbo.maps.map_file import MAX_CELLS

MAX_TRIALS = 10_000
MAX_EVALUATIONS = 2**53


@dataclass(frozen=True)
class Message:
    """What a robot says after choosing a cell (0 trials), or after a trial there.

    Robot, evaluation and trials identify a message: whoever has it twice has it
    once. A message after more trials replaces those before it.
    """

    robot: int  # who sends it
    group: int  # of the robots that share a model
    evaluation: int  # of that robot, from 0 on
    cell: int  # row of the map that the robot tries
    trials: int  # done so far in this evaluation; 0: "I am busy with this cell"
    estimate: float | None = None  # mean performance over these trials, in the map's unit
    noise: float | None = None  # variance of the estimate; both None after 0 trials

    def __post_init__(self) -> None:
        check_count("the message's robot", self.robot, 0, MAX_ROBOTS - 1)
        check_count("the message's group", self.group, 0, MAX_ROBOTS - 1)
        check_count("the message's evaluation", self.evaluation, 0, MAX_EVALUATIONS)
        check_count("the message's cell", self.cell, 0, MAX_CELLS - 1)
        check_count("the message's trials", self.trials, 0, MAX_TRIALS)
        if self.trials == 0:
            if self.estimate is not None or self.noise is not None:
                raise InputError(
                    "the message has an estimate or a noise after 0 trials; give neither"
                )
            return
        if not is_finite_number(self.estimate) or abs(self.estimate) > MAX_NUMBER:
            raise InputError(
                f"the message's estimate is {short(self.estimate)}; "
                f"give a number of -{MAX_NUMBER:g} to {MAX_NUMBER:g}"
            )
        if not is_finite_number(self.noise) or not 0 <= self.noise <= 4 * MAX_NUMBER**2:
            raise InputError(f"the message's noise is {short(self.noise)}; give a variance")

    def replaces(self, other: "Message") -> bool:
        """Whether this message about an evaluation counts instead of another about the same.

        That with more trials does. Two that differ though their identity is the
        same cannot come from one worker; what counts then does not depend on
        which came first.
        """
        if self.trials != other.trials:
            return self.trials > other.trials
        return self._content() > other._content()

    def _content(self) -> tuple[float, ...]:
        return (self.cell, self.estimate or 0.0, self.noise or 0.0, self.group)

    def to_json(self) -> dict[str, Any]:
        """The message as a JSON object."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Any) -> "Message":
        """The message in a JSON object; InputError when it is not one."""
        return cls(**checked_fields("the message", value, tuple(f.name for f in fields(cls))))
