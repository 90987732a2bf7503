"""What the page does to a running swarm beyond what the engine offers by itself."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from swarmbo.engine.swarm import Swarm
from swarmbo.errors import InputError
from swarmbo.streams import Stream
from swarmbo.world.arena import Food
from swarmbo.world.disturbance import Disturbance, Effects
from swarmbo.world.geometry import bodies_intersect, body_at
from swarmbo.world.scenario import TRIES


@dataclass(frozen=True)
class FoodLeft(Disturbance):
    """Somebody has taken food away: only these discs are left, perhaps none."""

    kind = "food-left"
    food: tuple[Food, ...]

    def apply(self, effects: Effects) -> None:
        effects.food = self.food


class PlayedSwarm(Swarm):
    """A swarm of which a robot can be picked up and put down elsewhere while it runs."""

    def put(self, robot: int, place: Disturbance, stream: Stream) -> None:
        """Put a robot where a disturbance places it, in each trial where no other one stands.

        The robot stands still there and carries nothing. InputError, and nothing
        has changed, when in some trial there is no such place.
        """
        poses = self.poses
        for trial in range(self.scenario.trials):
            others = np.delete(poses[trial], robot, axis=0)
            poses[trial, robot] = self._free_place(robot, place, others, stream)
        self._set_down(robot, poses[:, robot])

    def _free_place(
        self, robot: int, place: Disturbance, others: np.ndarray, stream: Stream
    ) -> Sequence[float]:
        arena = self.scenario.arena
        body = np.array(self.scenario.robot.body)
        reach = 2 * self.scenario.robot.radius
        for number in range(TRIES):
            pose = np.array(place.place(arena, stream)[robot])
            # Another robot may stand right there: look farther and farther around the place.
            aside = number * reach / 100
            pose[:2] += [stream.uniform(-aside, aside) for _ in range(2)]
            here = body_at(body, pose)
            if (here < 0).any() or (here > [arena.width, arena.height]).any():
                continue
            near = others[np.hypot(*(others[:, :2] - pose[:2]).T) < reach]
            if not any(bodies_intersect(body_at(body, other), here) for other in near):
                return pose.tolist()
        raise InputError(f"there is no room for robot {robot}; restart with fewer robots")

    def _set_down(self, robot: int, poses: np.ndarray) -> None:
        lanes, trials = self._lanes, self.scenario.trials
        mine = slice(robot * trials, (robot + 1) * trials)
        lanes.x[mine], lanes.y[mine], lanes.heading[mine] = poses.T
        for row in (lanes.vx, lanes.vy, lanes.turn, lanes.left, lanes.right, lanes.carrying):
            row[mine] = 0
        lanes.values[:, mine] = 0
        # Nobody touches the robot any more: impulses of its last contacts must not push it.
        touched = (lanes.partners >= mine.start) & (lanes.partners < mine.stop)
        touched[mine] = True
        lanes.partners[touched] = -1
        lanes.pair_push[touched] = 0
