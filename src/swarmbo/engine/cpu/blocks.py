"""How the CPU keeps robots that may touch something: blocks of 8, row by row.

These robots, the *active* lanes, are gathered in blocks of 8: `active` is one
flat array in which a block holds 8 numbers of each row below. So the loops
over a block become vector instructions, with nothing to be checked for
overlap. The *place* of an active lane is the index of its first number; its
entry in a row is active[place + ROW]. Pairs of them are kept likewise.
"""

from swarmbo.compilation import formula
from swarmbo.engine.formulas import I
from swarmbo.engine.lanes import ACTIVE_ROWS, LONE_ROWS, PAIR_ROWS

(
    X,  # m, at the start of the tick
    Y,
    DX,  # m, moved since
    DY,
    COS,
    SIN,
    STEP_COS,  # of the turn in a sub-step
    STEP_SIN,
    VX,  # m/s
    VY,
    UX,  # m/s, commanded
    UY,
    TURN,  # rad/s, commanded
    SIDE_X,  # +1 or -1: which of the two walls across x is nearer
    SIDE_Y,
    DEMAND_X,  # m/s, of the wall across x; see formulas.wall_contact
    SLIDE_X,
    DEMAND_Y,
    SLIDE_Y,
    QX,  # m/s, velocity with the contacts' impulses but without the motor's
    QY,
    CROWDED,  # how many other robots touch it
    GIVE_XX,  # how the velocity answers to an impulse, see formulas.give
    GIVE_XY,
    GIVE_YY,
    LANE,  # its number; -1 for none
) = (I(8 * row) for row in range(ACTIVE_ROWS))

# Likewise for the pairs that may touch: B in A's frame.
(
    P_X,  # m
    P_Y,
    P_COS,
    P_SIN,
    P_TURN_A,  # rad/s
    P_TURN_B,
    P_SEPARATION,  # m
    P_NORMAL_X,  # from B to A
    P_NORMAL_Y,
    P_DEMAND,  # m/s
    P_SLIDE,
    P_FACING_A,  # 30 rows: six edges and six vertices of A that face B, see lanes.World
) = (I(8 * row) for row in range(12))
P_FACING_B = P_FACING_A + I(8 * 30)

# Likewise for contacts of lone pairs.
(
    L_NX,  # normal, from B to A
    L_NY,
    L_GAP,  # m/s, demanded along the normal
    L_SLIP,  # m/s, see P_SLIDE
    L_N,  # m/s, impulse along the normal and its left
    L_T,
    L_VAX,  # m/s, velocities
    L_VAY,
    L_VBX,
    L_VBY,
    L_ERROR,  # m/s, by which these are wrong
    L_A,  # 8 rows: what is known of A
) = (I(8 * row) for row in range(12))
L_B = L_A + I(8 * 8)
L_QX, L_QY, L_UX, L_UY, L_AT_X, L_SIDE, L_DEMAND, L_SLIDE = (I(8 * row) for row in range(8))

# Likewise for robots of crowds, which have L_A, L_VAX and L_VAY too.
L_XX, L_XY, L_YY = L_NX, L_NY, L_GAP  # how it gives way to an impulse, see formulas.give

LONE_BLOCK = I(8 * LONE_ROWS)
BLOCK = I(8 * ACTIVE_ROWS)
PAIR_BLOCK = I(8 * PAIR_ROWS)
EIGHT = I(8)
ZERO = I(0)


@formula
def place(number):
    """The place of the active lane of that number."""
    return I(number // 8) * BLOCK + I(number % 8)


@formula
def pair_index(pair):
    """Where a pair's numbers begin."""
    return I(pair // 8) * PAIR_BLOCK + I(pair % 8)
