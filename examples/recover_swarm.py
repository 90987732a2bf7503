"""Six robots lose some of their sensors: how do four learners repair the swarm?

Each learner tries 30 controllers of a map, for all robots alike (smbo, random) or for each robot
by itself. The last column is what the swarm delivers in the end, all robots together.

python examples/recover_swarm.py [MAP] [CONDITION]
"""

import sys

from swarmbo import recover

behaviour_map = sys.argv[1] if len(sys.argv) > 1 else "paper-1"
condition = sys.argv[2] if len(sys.argv) > 2 else "proximity:0"

print(f"{'items per robot':20}{'best of 5':>10}{'of 15':>10}{'of 30':>10}{'in the end':>12}")
for learner in ("smbo", "random", "smbo-dec", "random-no-sharing"):
    found = recover(behaviour_map, condition, learner)
    curve = "".join(f"{found.curve[number - 1]:10.2f}" for number in (5, 15, 30))
    final = found.best if found.composed is None else found.composed
    print(f"{learner:20}{curve}{final:12.2f}")
print(
    f"\nBefore the fault {found.before:.2f}, at the fault {found.at_fault:.2f}; "
    f"the best controller for all robots alike: {found.exhaustive:.2f}."
)
