"""The robot: body, drive, sensors and their noise. The default is the Thymio of the paper."""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

from swarmbo.errors import InputError


class Sensor(NamedTuple):
    """Where a sensor sits in the body frame (x forward, y left), and where it looks."""

    x: float  # m
    y: float  # m
    angle: float = 0.0  # rad, counter-clockwise from straight ahead


_THYMIO_BODY = (
    (-0.055, -0.053),
    (-0.055, 0.033),
    (-0.050, 0.040),
    (-0.0255, 0.050),
    (0.0, 0.056),
    (0.0255, 0.050),
    (0.050, 0.040),
    (0.055, 0.033),
    (0.055, -0.053),
)


@dataclass(frozen=True, kw_only=True)
class Robot:
    """A two-wheeled robot; its origin is the middle of the axle, its centre of rotation.

    The drive's torque limit (Thymio: 1.5 N m) is no field: it is never reached,
    since the robots' heading follows the wheels even in contact.
    """

    body: tuple[tuple[float, float], ...] = _THYMIO_BODY  # m, convex, clockwise, 3 to 9 vertices
    wheel_base: float = 0.08  # m between the wheels
    max_speed: float = 0.10  # m/s of a wheel when the network's output is 1
    mass: float = 0.27  # kg
    max_force: float = 1.5  # N, what the drive can push with
    friction: float = 0.7  # multiplied by the other side's to give a contact's coefficient
    proximity_sensors: tuple[Sensor, ...] = (
        # 40 and 20 degrees, rounded as in the ARGoS model: robots are chaotic enough to notice.
        Sensor(0.040, 0.050, 0.69813),
        Sensor(0.050, 0.025, 0.34906),
        Sensor(0.056, 0.0, 0.0),
        Sensor(0.050, -0.025, -0.34906),
        Sensor(0.040, -0.050, -0.69813),
        Sensor(-0.052, 0.030, math.pi),
        Sensor(-0.052, -0.030, math.pi),
    )
    front_sensors: int = 5  # the first ones; a proximity fault hits these
    proximity_range: float = 0.11  # m
    # With x the distance in cm: value = 1 + a x + b x^2 within the range, else 0.
    proximity_response: tuple[float, float] = (40 / 4400, -40 / 4400)  # (1/cm, 1/cm^2)
    proximity_noise: float = 0.05  # half-width of the uniform noise on a value in [0, 1]
    ground_sensors: tuple[Sensor, ...] = (Sensor(-0.050, -0.010), Sensor(0.050, -0.010))
    ground_noise: float = 20.0  # half-width of the uniform noise on a grey level in [0, 255]

    def __post_init__(self) -> None:
        if not 3 <= len(self.body) <= 9:
            raise InputError(f"a body has 3 to 9 vertices, not {len(self.body)}")
        if len(self.proximity_sensors) != 7 or len(self.ground_sensors) != 2:
            raise InputError("a robot has 7 proximity and 2 ground sensors: the network's inputs")
        if not 0 <= self.front_sensors <= 7:
            raise InputError("front_sensors must lie between 0 and 7")
        for name in ("wheel_base", "max_speed", "mass", "max_force", "proximity_range"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise InputError(f"a robot's {name} must be finite and positive, not {value}")
        for name in ("friction", "proximity_noise", "ground_noise"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise InputError(f"a robot's {name} must be finite and not negative, not {value}")
        corners = [*self.body, *self.body[:2]]
        for (ax, ay), (bx, by), (cx, cy) in zip(corners, corners[1:], corners[2:], strict=False):
            if (bx - ax) * (cy - by) - (by - ay) * (cx - bx) >= 0:
                raise InputError("a body must be strictly convex with its vertices clockwise")

    @property
    def radius(self) -> float:
        """From the origin to the farthest vertex, in metres."""
        return max(math.hypot(x, y) for x, y in self.body)

    def without_noise(self) -> "Robot":
        """The same robot with noiseless sensors."""
        return replace(self, proximity_noise=0.0, ground_noise=0.0)


THYMIO = Robot()
