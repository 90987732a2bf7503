"""Eight robots search together over a radio that loses messages; no simulator.

Each robot has a worker of its own. All they share is what the radio delivers: which cell a robot is
busy with, and how its estimate of it improves. The robots do not wait for each other.
"""

import json

import numpy as np

from swarmbo import BehaviourMap, Channel, Message, Worker

ROBOTS, TRIALS, EVALUATIONS, RUNS = 8, 4, 10, 4

cells = np.stack(np.unravel_index(np.arange(16**2), (16, 16)), axis=1)
x, y = (cells / 16).T
prior = 12 - 8 * np.hypot(x - 0.2, y - 0.2)  # the nearer to a corner, the better
truth = 4 + 8 * np.exp(-((x - 0.7) ** 2 + (y - 0.6) ** 2) / 0.03)  # no longer so
space = BehaviourMap.from_arrays(cells, prior)


def search(loss: float, seed: int) -> float:
    """The true performance of what the robots believe best, mean over robots, in items."""
    noise = np.random.default_rng([seed, 5])
    channel = Channel(ROBOTS, loss=loss, delay=0.2, seed=seed)
    workers = [Worker(robot, space, trials=TRIALS, seed=seed) for robot in range(ROBOTS)]
    left = np.full(ROBOTS, TRIALS * EVALUATIONS)
    while left.any():
        robot = int(noise.choice(np.flatnonzero(left)))  # whoever is next to finish a trial
        worker = workers[robot]
        worker.receive(*channel.receive(robot))
        cell = worker.ask()
        worker.tell(truth[cell] + noise.normal())
        channel.step(robot)
        for message in worker.outgoing():
            packet = json.dumps(message.to_json())  # what goes over the air
            channel.send(Message.from_json(json.loads(packet)))
        left[robot] -= 1
    return float(np.mean([truth[worker.best()] for worker in workers]))


print(f"best prior under the change {truth[prior.argmax()]:.2f}, best possible {truth.max():.2f}\n")
print("loss  found")
for loss in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0):
    found = np.mean([search(loss, seed) for seed in range(RUNS)])
    print(f"{loss:4.0%}{found:7.2f}")
