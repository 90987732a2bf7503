"""Where the GPU keeps what it knows: rows of arrays, words, and the lists between its kernels.

From tick to tick everything lies in global memory, a quantity of all robots as
a row; robots are numbered trial by trial. Two kernels take turns, and in each a
lane of a warp is a robot: `gpu_life` moves, senses, thinks and drives, and lists
the robots that may touch something; `gpu_touch` takes these through the
sub-steps of the tick. A place is a lane of a block, for what lies in shared memory.
"""

import numpy as np

from swarmbo.engine.gpu.warp import U, device, on

F = np.float32
UNTOUCHED = F(1e30)  # m/s, as the impulse of a pair that did not touch

# Rows of a robot's state in global memory.
(
    G_COS,
    G_SIN,
    G_UX,  # m/s, commanded
    G_UY,
    G_TURN,  # rad/s, commanded
    G_OLD_TURN,  # rad/s, of the tick before
    G_VX,  # m/s
    G_VY,
    G_MOVED_X,  # m, in this tick
    G_MOVED_Y,
    G_WALL,  # m/s, impulse of the wall across x, along that wall, of the one across y, along it
    STATE_ROWS,
) = (*range(11), 14)

# Bits of a robot's mark.
CARRIES, BACKWARDS, AT_X, AT_Y = 1, 2, 4, 8  # the last two: at the wall across x, across y

# What may touch something in this tick, by kind: trials with *crowds*, robots that may touch others
# which may touch more (of any number of robots, of four, of three); lone pairs, one of them at a
# wall; other lone pairs; single robots at walls.
CROWDS, CROWDS_OF_4, CROWDS_OF_3, WALL_PAIRS, PAIRS, SINGLES, KINDS = range(7)
# The words of an entry: a trial, or a robot; the crowd's robots as bits, or the other robot;
# windows and the pair's number.
FIRST, SECOND, DETAIL, WORDS = range(4)

# Rows of a robot in shared memory, while it senses and drives.
X, Y, COS, SIN, PATH_X, PATH_Y, TURNED, LIFE_ROWS = range(8)
# ... and in the sub-steps: the first four, and
(
    UX,
    UY,
    TURN,
    QX,  # m/s, velocity before contacts and motor
    QY,
    VX,  # m/s, velocity after them
    VY,
    GIVE_XX,  # how it answers to an impulse, times the number of its contacts: see gpu_crowds
    GIVE_XY,
    GIVE_YY,
    TOUCH_ROWS,
) = range(4, 15)
# ... and of whole numbers, while it drives.
PARTNERS, WALL, MATE, FLAG_ROWS = range(4)

# Rows of a contact of a crowd, in the arena's frame.
NORMAL_X, NORMAL_Y, DEMAND, SLIDE, IMPULSE_N, IMPULSE_T, CONTACT_ROWS = range(7)

# What a warp counts, in `gpu_life`: pairs near each other, those that may touch, its entries of the
# lists, which `gpu_lists.claim` turns into where they begin among the block's; in `gpu_touch`:
# pairs and contacts.
NEAR, CLOSE, LISTED = range(3)
LIFE_COUNTERS = LISTED + KINDS
LINKS, CONTACTS, TOUCH_COUNTERS = range(3)

# Rows of the body's table, the edges and vertices one and a half times around.
EDGE_X, EDGE_Y, EDGE_OFFSET, VERTEX_X, VERTEX_Y, BODY_ROWS = range(6)
AROUND = 14

# Rows of what pairs remember from tick to tick, in global memory: the impulse on A.
PUSH_X, PUSH_Y, MEMORY_ROWS = range(3)


@device
def pair_entry(a, b, number):
    """Two robots of a warp and a number, as one word; of a wall, twice its robot."""
    return U(a | ((b & U(31)) << U(9)) | (number << U(14)))


@device
def robots_of(entry):
    """The robots A and B of a pair or contact, as places in the block."""
    a = entry & U(511)
    return a, (a & U(480)) | ((entry >> U(9)) & U(31))


@device
def number_of(entry):
    """The number of a pair among those of its warp; of a contact with a wall, 0 (across x) or 1."""
    return entry >> U(14)


@device
def trial_of(world, a):
    """The number of a robot's trial in the block, of 32 per warp."""
    return (a & U(480)) | U((a & U(31)) // U(world.robots))


@device
def drive(world, motion, at):
    """How a robot begins the sub-steps of a tick.

    Returns cosine and sine of its heading, its commanded and its present velocity, its turn
    rate, and cosine and sine of its first turn.
    """
    return (
        motion[U(G_COS), at],
        motion[U(G_SIN), at],
        (motion[U(G_UX), at], motion[U(G_UY), at]),
        (motion[U(G_VX), at], motion[U(G_VY), at]),
        motion[U(G_TURN), at],
        on.small_turn(world.dt * motion[U(G_OLD_TURN), at]),
    )


@device
def arrive(motion, at, moved, velocity):
    """Note how far the sub-steps moved a robot, in m, and its velocity after them."""
    motion[U(G_MOVED_X), at] = moved[0]
    motion[U(G_MOVED_Y), at] = moved[1]
    motion[U(G_VX), at] = velocity[0]
    motion[U(G_VY), at] = velocity[1]
