"""What a robot senses: distances to obstacles and the grey of the floor."""

import cmath

from swarmbo.world.arena import Arena, Food
from swarmbo.world.robot import Robot, Sensor
from tests.naive.geometry import Body, Line, ray_to_body, ray_to_wall


def sensor_at(sensor: Sensor, centre: complex, heading: float) -> complex:
    """Where a sensor is in the arena, in m."""
    return centre + cmath.exp(1j * heading) * complex(sensor.x, sensor.y)


def proximity(
    robot: Robot,
    sensor: Sensor,
    centre: complex,
    heading: float,
    walls: list[Line],
    others: list[Body],
) -> float:
    """Noiseless reading in [0, 1] of one proximity sensor: 1 touching, 0 nothing in range."""
    start = sensor_at(sensor, centre, heading)
    direction = cmath.exp(1j * (heading + sensor.angle))
    hits = [ray_to_wall(start, direction, wall) for wall in walls]
    reach = robot.proximity_range + robot.radius
    hits += [
        ray_to_body(start, direction, other)
        for other in others
        if abs(other.centre - start) <= reach
    ]
    distance = min(hits)
    if distance > robot.proximity_range:
        return 0.0
    linear, square = robot.proximity_response
    centimetres = 100 * distance
    return 1 + linear * centimetres + square * centimetres**2


def floor_grey(arena: Arena, food: tuple[Food, ...], point: complex) -> float:
    """Grey level of the floor at a point, 0 black to 255 white; the nest covers food."""
    if point.real < arena.nest_depth:
        return arena.nest_grey
    if on_food(food, point):
        return arena.food_grey
    return arena.floor_grey


def on_food(food: tuple[Food, ...], point: complex) -> bool:
    """Whether a point lies on a disc of food."""
    return any(abs(point - complex(disc.x, disc.y)) <= disc.radius for disc in food)
