"""How messages travel between robots: perfectly, or with losses and delays."""

from collections.abc import Iterable
from typing import Any

from swarmbo.adaptation.checks import check_count, checked_index, checked_list
from swarmbo.adaptation.messages import MAX_EVALUATIONS, Message
from swarmbo.errors import InputError, is_finite_number, short
from swarmbo.maps.behaviour_map import MAX_ROBOTS
from swarmbo.streams import Stream


class Channel:
    """Carries messages to the other robots; each copy may be lost or late.

    A copy is lost with probability `loss`. One that is not waits for a time step
    of its receiver with probability `delay`, then for another with the same
    probability, and so on. What happens to a copy is a function of the seed, the
    receiver and the message's identity, whatever else is sent.
    """

    def __init__(
        self, robots: int, *, loss: float = 0.0, delay: float = 0.0, seed: int = 1
    ) -> None:
        check_count("robots", robots, 1, MAX_ROBOTS)
        check_count("seed", seed, 0, 2**53)
        for name, value in (("loss", loss), ("delay", delay)):
            if not is_finite_number(value) or not 0 <= value <= 1:
                raise InputError(f"{name} is {short(value)}; give a probability, 0 to 1")
        if delay == 1:
            raise InputError("delay is 1: no message would ever arrive; give less")
        self.robots = robots
        self.loss = loss
        self.delay = delay
        self.seed = seed
        self._clock = [0] * robots  # time steps of each receiver
        self._arriving: list[list[tuple[int, Message]]] = [[] for _ in range(robots)]

    def send(self, message: Message, to: Iterable[int] | None = None) -> None:
        """Send a message to the robots named, or to all; never back to its sender."""
        if not isinstance(message, Message):
            raise InputError(f"the message is {short(message)}; give a Message")
        for robot in range(self.robots) if to is None else self._checked(to):
            if robot != message.robot:
                wait = self._wait(message, robot)
                if wait is not None:
                    self._arriving[robot].append((self._clock[robot] + wait, message))

    def _checked(self, receivers: Iterable[int]) -> list[int]:
        """The receivers as a list; InputError when one of them is no robot of the channel."""
        try:
            listed = list(receivers)
        except TypeError:
            raise InputError(
                f"the receivers are {short(receivers)}; give a list of robots, or leave it out"
            ) from None
        return [
            robot
            if type(robot) is int and 0 <= robot < self.robots
            else checked_index("a receiver", robot, self.robots)
            for robot in listed
        ]

    def receive(self, robot: int) -> list[Message]:
        """The messages that have reached a robot since it last asked."""
        robot = checked_index("the robot", robot, self.robots)
        waiting, now = self._arriving[robot], self._clock[robot]
        self._arriving[robot] = [(due, message) for due, message in waiting if due > now]
        return [message for due, message in waiting if due <= now]

    def step(self, robot: int) -> None:
        """Let a time step pass for a robot: one that delayed messages to it wait for."""
        self._clock[checked_index("the robot", robot, self.robots)] += 1

    def _wait(self, message: Message, robot: int) -> int | None:
        """How many time steps a copy waits, or None when it is lost."""
        if self.loss == 0 and self.delay == 0:
            return 0
        stream = Stream(
            "channel", self.seed, robot, message.robot, message.evaluation, message.trials
        )
        if stream.uniform() < self.loss:
            return None
        steps = 0
        while stream.uniform() < self.delay:
            steps += 1
        return steps

    def under_way(self, robot: int) -> list[Message]:
        """The messages to a robot that it has not received yet."""
        return [message for _, message in self._arriving[robot]]

    def state(self) -> list[dict[str, Any]]:
        """Clocks and messages under way, an object per receiver."""
        return [
            {
                "clock": clock,
                "arriving": [[due, message.to_json()] for due, message in arriving],
            }
            for clock, arriving in zip(self._clock, self._arriving, strict=True)
        ]

    def restore(self, state: Any) -> None:
        """Take over a state; InputError when it is impossible."""
        if len(checked_list("the channel", state)) != self.robots:
            raise InputError(
                f"the channel has {len(state)} receivers; give {self.robots}, one per robot"
            )
        for robot, receiver in enumerate(state):
            if not isinstance(receiver, dict) or set(receiver) != {"clock", "arriving"}:
                raise InputError(f"receiver {robot} of the channel has no clock and arriving")
            check_count("the channel's clock", receiver["clock"], 0, MAX_EVALUATIONS)
            self._clock[robot] = receiver["clock"]
            self._arriving[robot] = []
            for pair in checked_list("arriving", receiver["arriving"]):
                if not isinstance(pair, list) or len(pair) != 2:
                    raise InputError("a message under way is not a pair of time and message")
                check_count("the time of a message", pair[0], 0, MAX_EVALUATIONS)
                self._arriving[robot].append((pair[0], Message.from_json(pair[1])))
