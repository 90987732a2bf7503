"""Evolve with swarmbo's emitter beside one of pyribs, in one of its schedulers.

Half of the new controllers are mutated in structure and parameters, as swarmbo does; the other
half keep the structure of an elite, and Gaussian noise is added to all its weights and biases.
"""

from ribs.emitters import GaussianEmitter
from ribs.schedulers import Scheduler

from swarmbo import Scenario, VariationEmitter, hbd, make_archive, objective, rollout
from swarmbo.evolution.emitter import VECTOR, initial_genomes, pack, parameters, unpack

SEED = 1
GENERATIONS = 20

scenario = Scenario.draw(seed=SEED)
archive = make_archive("hbd", solution_dim=VECTOR)
emitters = [
    VariationEmitter(archive, seed=SEED, batch_size=20, initial=60),
    GaussianEmitter(
        archive,
        sigma=0.1 * parameters(),
        initial_solutions=pack(initial_genomes(SEED + 1, 60)),
        batch_size=20,
        seed=SEED,
    ),
]
scheduler = Scheduler(archive, emitters)

print("generation  cells  items per robot: best  mean")
for generation in range(GENERATIONS + 1):
    result = rollout(unpack(scheduler.ask()), scenario)
    measures = hbd(result)
    scheduler.tell(
        objective(archive, result.performance, measures),
        measures,
        performance=result.performance,
    )
    if generation % 5 == 0:
        items = archive.data("performance") / scenario.robots
        print(f"{generation:10}{len(archive):7}{items.max():23.2f}{items.mean():6.2f}")
