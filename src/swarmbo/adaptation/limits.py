"""Which messages a worker believes, and how many it keeps."""

from dataclasses import dataclass
from typing import Any

from swarmbo.adaptation.checks import check_count
from swarmbo.adaptation.messages import MAX_EVALUATIONS, Message
from swarmbo.errors import InputError, is_finite_number, short
from swarmbo.maps.behaviour_map import MAX_NUMBER, MAX_ROBOTS, BehaviourMap

EVALUATIONS = 10_000  # of a robot
MEMORY = 10_000  # messages of other robots
MODEL_BYTES = 2**29  # of memory that the model of so many messages takes at most
_ROUNDING = 1 + 1e-9

UNLIMITED: dict[str, Any] = {
    "evaluations": MAX_EVALUATIONS,
    "largest_estimate": MAX_NUMBER,
    "memory": MAX_EVALUATIONS,
}


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a sound robot of a swarm can say; None stands for what a map suggests.

    A message is judged by its content alone, so which ones are refused does not
    depend on what came before.
    """

    cells: int  # of the map
    trials: int  # of an evaluation
    robots: int = MAX_ROBOTS
    evaluations: int = EVALUATIONS  # of each robot
    largest_estimate: float = MAX_NUMBER  # in the map's unit, without its sign
    memory: int = MEMORY  # messages of other robots that are kept

    @classmethod
    def of(
        cls,
        behaviour_map: BehaviourMap,
        *,
        trials: int,
        robots: int | None = None,
        evaluations: int | None = None,
        largest_estimate: float | None = None,
        memory: int | None = None,
    ) -> "Limits":
        """The limits given, and for None those that docs/learners.md names."""
        cells = behaviour_map.filled_cells
        best = float(abs(behaviour_map.performance).max())
        most = MAX_ROBOTS if robots is None else robots
        check_count("robots", most, 1, MAX_ROBOTS)
        # One robot that delivers as much as the whole swarm at its best.
        suggested = min(MAX_NUMBER, most * max(1.0, best)) if best else MAX_NUMBER
        return cls(
            cells=cells,
            trials=trials,
            robots=most,
            evaluations=EVALUATIONS if evaluations is None else evaluations,
            largest_estimate=suggested if largest_estimate is None else largest_estimate,
            memory=min(MEMORY, MODEL_BYTES // (8 * cells)) if memory is None else memory,
        )

    def __post_init__(self) -> None:
        check_count("robots", self.robots, 1, MAX_ROBOTS)
        check_count("evaluations", self.evaluations, 1, MAX_EVALUATIONS)
        check_count("memory", self.memory, 1, MAX_EVALUATIONS)
        largest = self.largest_estimate
        if not is_finite_number(largest) or not 0 < largest <= MAX_NUMBER:
            raise InputError(
                f"largest_estimate is {short(largest)}; give a number above 0, to {MAX_NUMBER:g}"
            )

    def allow(self, message: Message) -> bool:
        """Whether a sound robot can have sent a message; `refusal` says why not."""
        if not (
            message.cell < self.cells
            and message.trials <= self.trials
            and message.robot < self.robots
            and message.evaluation < self.evaluations
        ):
            return False
        estimate, noise = message.estimate, message.noise
        if estimate is None or noise is None:
            return True
        largest = self.largest_estimate * _ROUNDING
        return -largest <= estimate <= largest and noise <= self._largest_noise(message.trials)

    def refusal(self, message: object) -> str | None:
        """Why no sound robot can have sent a message, in a sentence; None when one can."""
        if not isinstance(message, Message):
            return f"there is {short(message)} among the messages; give a Message"
        if self.allow(message):
            return None
        who, largest = f"robot {message.robot} speaks", self.largest_estimate
        if message.cell >= self.cells or message.trials > self.trials:
            return (
                f"{who} of cell {message.cell} after {message.trials} trials; "
                f"here are {self.cells} cells and {self.trials} trials: "
                "give all workers the same map and trials"
            )
        if message.robot >= self.robots:
            return (
                f"{who}; here are robots 0 to {self.robots - 1}: "
                "give all workers the number of robots"
            )
        if message.evaluation >= self.evaluations:
            return (
                f"{who} of its evaluation {message.evaluation}; here are 0 to "
                f"{self.evaluations - 1}: give all workers the number of evaluations"
            )
        if abs(message.estimate or 0) > largest * _ROUNDING:
            return (
                f"{who} of an estimate of {message.estimate:g}; here are {-largest:g} to "
                f"{largest:g}: give all workers the largest_estimate that a robot can have"
            )
        return (
            f"{who} of a noise of {message.noise:g} after {message.trials} trials; here it is "
            f"{self._largest_noise(message.trials):g} at most: give the variance of the estimate, "
            "and all workers the largest_estimate that a robot can have"
        )

    def _largest_noise(self, trials: int) -> float:
        """The variance of a mean over so many trials of which half are as far off as can be."""
        return self.largest_estimate * self.largest_estimate * _ROUNDING / (trials - 1 or 1)
