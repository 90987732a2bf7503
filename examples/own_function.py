"""Let a learner optimise a function of your own; no robots, no simulator.

A cook wants the best bread. An old oven's results, for 16 temperatures and 16 baking times, are the
map. The new oven is hotter than its dial says, so the old results are only a prior: good where the
two ovens agree.
"""

import numpy as np

from swarmbo import BehaviourMap, learner

BAKES = 12

temperature, minutes = np.meshgrid(np.arange(16), np.arange(16), indexing="ij")
cells = np.stack([temperature.ravel(), minutes.ravel()], axis=1)


def taste(temperature: np.ndarray, minutes: np.ndarray) -> np.ndarray:
    """How good the bread is, 0 to 10: best at dial 9 and 8 minutes, worse on a hot or long bake."""
    return 10 * np.exp(-(((temperature - 9) / 4) ** 2) - ((temperature + minutes - 17) / 3) ** 2)


old_oven = taste(*cells.T)
new_oven = taste(cells[:, 0] + 3, cells[:, 1])

search = learner("smbo", BehaviourMap.from_arrays(cells, old_oven))
print("bake  dial  minutes  expected        taste   best")
for bake in range(1, BAKES + 1):
    cell = search.ask()
    mean, deviation = search.predict(cell)
    search.tell(cell, new_oven[cell])
    print(
        f"{bake:4}{cells[cell, 0]:6}{cells[cell, 1]:9}{mean:10.2f} ±{deviation:5.2f}"
        f"{new_oven[cell]:9.2f}{search.best_performance():7.2f}"
    )
print(f"\nThe best of all {len(cells)} would have been {new_oven.max():.2f}.")
