"""Contact: which bodies touch where, and the velocities that this leaves them.

Velocities are complex numbers in m/s, impulses in kg m/s.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from swarmbo.world.robot import Robot
from tests.naive.geometry import Body, Line, dot, least_penetration

CONVERGED = 1e-12  # kg m/s, the largest impulse added in the last round
MAX_ROUNDS = 2000


@dataclass
class Contact:
    """One point where a robot touches a wall or another robot."""

    robot: int
    other: int | None  # None: a wall
    normal: complex  # unit vector, from the other side to the robot
    arm: complex  # m, from the robot's centre to the point
    other_arm: complex  # m, from the other's centre to the point
    friction: float  # coefficient
    normal_impulse: float = 0.0  # accumulated, >= 0
    tangent_impulse: float = 0.0  # accumulated, within +- friction x normal impulse


def wall_contacts(robot: int, body: Body, walls: list[Line], friction: float) -> Iterator[Contact]:
    """A contact for every vertex beyond a wall."""
    for wall in walls:
        for vertex in body.vertices:
            if wall.distance(vertex) < 0:
                yield Contact(robot, None, wall.normal, vertex - body.centre, 0j, friction)


def robot_contacts(
    pair: tuple[int, int], first: Body, second: Body, friction: float
) -> Iterator[Contact]:
    """A contact for every vertex of one body inside the other, if the bodies overlap."""
    depth, normal = least_penetration(first, second)
    if depth <= 0:
        return
    points = [vertex for vertex in first.vertices if second.contains(vertex)]
    points += [vertex for vertex in second.vertices if first.contains(vertex)]
    # Edges can cross without a vertex inside.
    for point in points or [(first.centre + second.centre) / 2]:
        yield Contact(*pair, normal, point - first.centre, point - second.centre, friction)


def find_contacts(
    bodies: list[Body], walls: list[Line], robot: Robot, wall_friction: float
) -> list[Contact]:
    """All contacts of a trial's robots at the moment."""
    contacts: list[Contact] = []
    for number, body in enumerate(bodies):
        contacts += wall_contacts(number, body, walls, robot.friction * wall_friction)
    for pair in combinations(range(len(bodies)), 2):
        first, second = (bodies[number] for number in pair)
        if abs(first.centre - second.centre) < 2 * robot.radius:
            contacts += robot_contacts(pair, first, second, robot.friction**2)
    return contacts


def solve(
    velocities: list[complex],
    spins: list[float],
    targets: list[complex],
    contacts: list[Contact],
    robot: Robot,
    step: float,
) -> None:
    """Change `velocities` to what contacts and motors make of them in a sub-step of `step` s.

    Gauss-Seidel rounds: each contact in turn stops the approach of its two
    sides and rubs, then each motor pulls its robot to its target velocity with
    what is left of its strength, until nothing changes any more. Spins (rad/s)
    count for how fast the sides approach, but no impulse changes them.
    """
    pulls = [0j] * len(velocities)  # accumulated impulses of the motors
    for _ in range(MAX_ROUNDS):
        changes = [_press(contact, velocities, spins, robot.mass) for contact in contacts]
        for number, target in enumerate(targets):
            wanted = pulls[number] + robot.mass * (target - velocities[number])
            change = _limited(wanted, robot.max_force * step) - pulls[number]
            pulls[number] += change
            velocities[number] += change / robot.mass
            changes.append(abs(change))
        # A contact and a motor can undo each other's work: look at each, not at the velocities.
        if max(changes) < CONVERGED:
            return


def _limited(vector: complex, length: float) -> complex:
    """The vector, cut to a length."""
    return vector if abs(vector) <= length else vector * (length / abs(vector))


def _press(contact: Contact, velocities: list[complex], spins: list[float], mass: float) -> float:
    """One visit of the solver to a contact; returns the size of the impulse it added."""
    robot, other = contact.robot, contact.other
    approach = velocities[robot] + 1j * spins[robot] * contact.arm
    if other is None:
        moved_mass = mass
    else:
        approach -= velocities[other] + 1j * spins[other] * contact.other_arm
        moved_mass = mass / 2
    tangent = 1j * contact.normal

    normal_impulse = max(0.0, contact.normal_impulse - moved_mass * dot(approach, contact.normal))
    limit = contact.friction * normal_impulse
    tangent_impulse = contact.tangent_impulse - moved_mass * dot(approach, tangent)
    tangent_impulse = min(limit, max(-limit, tangent_impulse))

    impulse = (normal_impulse - contact.normal_impulse) * contact.normal
    impulse += (tangent_impulse - contact.tangent_impulse) * tangent
    contact.normal_impulse, contact.tangent_impulse = normal_impulse, tangent_impulse
    velocities[robot] += impulse / mass
    if other is not None:
        velocities[other] -= impulse / mass
    return abs(impulse)
