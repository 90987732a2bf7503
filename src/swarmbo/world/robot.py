"""The robot: body, drive, sensors and their noise. The default is the Thymio of the paper."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from swarmbo.errors import InputError
from swarmbo.world.checks import checked_entries, checked_integer, checked_number

MAX_SIZE = 100.0  # m, of a body, and to the farthest of its sensors
MIN_RADIUS = 1e-3  # m
THINNEST = 0.25  # of the radius, between an edge and the farthest vertex
# Of the fields that are numbers: least, largest, unit, and why not more.
RANGES = {
    "wheel_base": (1e-4, 1e3, "m", ""),
    "max_speed": (1e-6, 1e3, "m/s", ""),
    "mass": (1e-6, 1e6, "kg", ""),
    "max_force": (1e-6, 1e9, "N", ""),
    "friction": (0.0, 1.5, "", "from 2 on the contacts of a crowd may have no finite solution"),
    "proximity_range": (1e-4, 1e3, "m", ""),
    "proximity_noise": (0.0, 10.0, "", "a value lies in [0, 1]"),
    "ground_noise": (0.0, 2550.0, "", "a grey level lies in [0, 255]"),
}


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
        body = tuple(
            _numbers(f"vertex {number} of a robot's body", vertex, 2, MAX_SIZE)
            for number, vertex in enumerate(checked_entries("a robot's body", self.body, 3, 9))
        )
        object.__setattr__(self, "body", body)
        _check_body(body)
        for name, count in (("proximity_sensors", 7), ("ground_sensors", 2)):
            sensors = checked_entries(f"a robot's {name}", getattr(self, name), count, count)
            placed = tuple(_sensor(name, number, each) for number, each in enumerate(sensors))
            object.__setattr__(self, name, placed)
        front = checked_integer("a robot's front_sensors", self.front_sensors, 0, 7)
        object.__setattr__(self, "front_sensors", front)
        for name, (low, high, unit, reason) in RANGES.items():
            value = checked_number(
                f"a robot's {name}", getattr(self, name), low, high, unit, reason
            )
            object.__setattr__(self, name, value)
        response = _numbers("a robot's proximity_response", self.proximity_response, 2, 1e6)
        object.__setattr__(self, "proximity_response", response)

    @property
    def radius(self) -> float:
        """From the origin to the farthest vertex, in metres."""
        return max(math.hypot(x, y) for x, y in self.body)

    @property
    def area(self) -> float:
        """Of the body, in m^2."""
        sides = zip(self.body, (*self.body[1:], self.body[0]), strict=True)
        return sum(bx * ay - ax * by for (ax, ay), (bx, by) in sides) / 2

    def without_noise(self) -> "Robot":
        """The same robot with noiseless sensors."""
        return replace(self, proximity_noise=0.0, ground_noise=0.0)


def _numbers(what: str, value: Any, count: int, largest: float) -> tuple[float, ...]:
    """So many numbers of -largest to largest; InputError when there are others."""
    entries = checked_entries(what, value, count, count)
    return tuple(checked_number(f"{what} has a number that", x, -largest, largest) for x in entries)


def _sensor(name: str, number: int, sensor: Any) -> Sensor:
    what = f"sensor {number} of a robot's {name}"
    numbers = checked_entries(what, sensor, 2, 3)
    return Sensor(*_numbers(what, numbers, len(numbers), MAX_SIZE))


def _check_body(body: tuple[tuple[float, ...], ...]) -> None:
    """InputError when a body is not convex, not clockwise, not around its origin, or too thin."""
    radius = max(math.hypot(x, y) for x, y in body)
    if radius < MIN_RADIUS:
        raise InputError(
            f"a robot's body reaches {radius:g} m from its origin; give at least {MIN_RADIUS:g} m"
        )
    if all(inside > 0 for *_, inside in _sides(body)):
        raise InputError(
            "a robot's body has its vertices counter-clockwise; give them in the reverse order"
        )
    for start, end, number, inside in _sides(body):
        if inside >= 0:
            raise InputError(
                "a robot's body must be strictly convex with its vertices clockwise, but vertex "
                f"{number} is not on the right of the edge from vertex {start} to vertex {end}"
            )
    depths = _depths(body)
    if min(depth for depth, _ in depths) < radius * THINNEST:
        raise InputError(
            f"a robot's body is {min(depth for depth, _ in depths):g} m thin; give at least "
            f"{radius * THINNEST:g} m, a quarter of its radius: thin ones pass through each other"
        )
    if min(origin for _, origin in depths) < 0:
        raise InputError(
            "a robot's body does not contain its origin (0, 0), the middle of the axle; "
            "give the vertices in the robot's frame"
        )


def _sides(body: tuple[tuple[float, ...], ...]) -> Iterator[tuple[int, int, int, float]]:
    """For every edge and other vertex: their numbers, and > 0 where it is on the edge's left."""
    count = len(body)
    for start in range(count):
        end = (start + 1) % count
        (ax, ay), (bx, by) = body[start], body[end]
        for step in range(2, count):
            number = (start + step) % count
            x, y = body[number]
            yield start, end, number, (bx - ax) * (y - ay) - (by - ay) * (x - ax)


def _depths(body: tuple[tuple[float, ...], ...]) -> list[tuple[float, float]]:
    """For every edge: how far within it are the farthest vertex, and the origin, in metres."""
    depths = []
    for (ax, ay), (bx, by) in zip(body, (*body[1:], body[0]), strict=True):
        nx, ny = by - ay, ax - bx  # inward: the body is clockwise
        length = math.hypot(nx, ny)
        farthest = max(nx * (x - ax) + ny * (y - ay) for x, y in body)
        depths.append((farthest / length, -(nx * ax + ny * ay) / length))
    return depths


THYMIO = Robot()
