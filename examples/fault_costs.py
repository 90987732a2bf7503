"""How much does each kind of disturbance cost, and is there a better controller for it?

For every kind of condition of the paper: the items of the controller that is best in a healthy
swarm, and those of the best one under the disturbance, among the recorded controllers. The gap is
what a swarm could win back by changing its controller.
"""

import numpy as np

from swarmbo import Scenario, bundled_controllers, conditions, rollout

SEED = 1
CONDITIONS = 2  # of each kind

teams = [[controller] * 6 for controller in bundled_controllers("recorded")]
healthy = rollout(teams, Scenario.draw(seed=SEED)).performance
favourite = healthy.argmax()
print(f"healthy: {healthy[favourite]:.2f} items per trial with controller {favourite}\n")
print(f"{'disturbance':15}{'same':>8}{'best':>8}")
kinds = ("proximity", "ground", "actuator", "software-nest", "software-food", "food-scarcity")
for kind in kinds:
    broken = np.array(
        [
            rollout(teams, Scenario.draw(seed=SEED, disturbances=(disturbance,))).performance
            for disturbance in conditions(kind, SEED)[:CONDITIONS]
        ]
    )
    print(f"{kind:15}{broken[:, favourite].mean():8.2f}{broken.max(axis=1).mean():8.2f}")
