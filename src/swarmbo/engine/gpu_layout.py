"""What the warps of a block keep in shared memory: rows, counters and words.

A robot's place is its lane and warp in the block; a quantity of all robots is a
row. Pairs of robots and contacts are words: two robots and some small numbers.
"""

import numpy as np

from swarmbo.engine.gpu_warp import LANES, U, device

F = np.float32
UNTOUCHED = F(1e30)  # m/s, as the impulse of a pair that did not touch

# Rows of a robot's state in shared memory.
(
    X,  # m
    Y,
    COS,
    SIN,
    UX,  # m/s, commanded
    UY,
    TURN,  # rad/s, commanded
    OLD_TURN,  # rad/s, of the tick before
    QX,  # m/s, velocity with the contacts' impulses but without the motor's
    QY,
    WALL_X_N,  # m/s, impulse of the wall across x on a crowded robot, and along that wall
    WALL_X_T,
    WALL_Y_N,
    WALL_Y_T,
    TURNS,  # rad, in this tick
    ROBOT_ROWS,
) = range(16)
PATH_X, PATH_Y = QX, QY  # m, without contact, before the sub-steps
TURNED = OLD_TURN  # rad, likewise
MOVED_X, MOVED_Y = X, Y  # m, after the sub-steps; and QX, QY the velocity

# Rows of a robot's whole numbers.
(
    CROWDED,  # before the sub-steps its partners, in them the colours of its contacts
    AT_WALL,
    TRIAL,  # number of its trial among all of the launch, or -1
    TEAM,
    FLAG_ROWS,
) = range(5)

# The numbers of a contact, in the arena's frame.
NORMAL_X, NORMAL_Y, DEMAND, SLIDE, IMPULSE_N, IMPULSE_T, CONTACT_SIZE = range(7)

# What a warp counts: of its own robots the pairs near each other, those that may touch, and the
# robots that it hands in as crowds, as lone pairs and as single ones at walls; of its crowds the
# pairs; of the robots that it runs the contacts and their steps.
NEAR, CLOSE, CROWDS, PAIRS, SINGLES, LINKS, CONTACTS, STEPS, COUNTERS = range(9)

# Rows of the body's table, the edges and vertices one and a half times around.
EDGE_X, EDGE_Y, EDGE_OFFSET, VERTEX_X, VERTEX_Y, BODY_ROWS = range(6)
AROUND = 14

# Rows of what pairs remember from sub-step to sub-step.
PUSH_X, PUSH_Y, MEMORY_ROWS = range(3)


@device
def pair_entry(a, b, colour, number):
    """A pair of robots of a warp, its colour and its number in the warp, as one word."""
    return U(a | ((b & U(31)) << U(9)) | (colour << U(14)) | (number << U(20)))


@device
def robots_of(entry):
    """The robots A and B of a pair or contact, as places in the block."""
    a = entry & U(511)
    return a, (a & U(480)) | ((entry >> U(9)) & U(31))


@device
def place_of(entry):
    """The colour of a pair, or the step of a contact."""
    return (entry >> U(14)) & U(63)


@device
def number_of(entry):
    """The number of a pair in its warp; of a contact with a wall, 0 (across x) or 1."""
    return entry >> U(20)


@device
def memory_of(world, entry):
    """Where a pair's memory is."""
    room = world.robots * (world.robots - 1) // 2 * (LANES // world.robots)
    return ((entry & U(511)) >> U(5)) * U(room) + number_of(entry)


@device
def trial_of(world, a):
    """The number of a robot's trial in the block, of 32 per warp."""
    return (a & U(480)) | U((a & U(31)) // U(world.robots))
