"""The engine on the GPU: does it agree with the CPU, and how fast is it?

Run it on a machine with a GPU, from the repository's root:

    PYTHONPATH=src python benchmarks/gpu.py
"""

import statistics
from dataclasses import replace
from time import perf_counter

import numpy as np

from swarmbo.controller.bundled import bundled_controllers
from swarmbo.controller.genomes import Genomes
from swarmbo.engine.gpu import driver as gpu
from swarmbo.engine.rollout import Rollout, rollout
from swarmbo.world.scenario import Scenario

TEAMS = (8192, 2500, 1000, 500)
REPEATS = 5
PACKINGS = (1, 2, 3, 4, 5)  # trials in a warp
TOGETHER = (1, 2, 3, 4, 5)  # maps' generations of 500 in one launch
RESIDENT = (8, 16, 32)  # warps per multiprocessor that look after contacts


def difference(a: Rollout, b: Rollout) -> str:
    """How two evaluations of the same controllers differ, in items and descriptors."""
    items = np.abs(a.performance - b.performance)
    bias = (a.performance - b.performance).mean()
    parts = [f"items {items.mean():.3f} (bias {bias:+.3f}, largest {items.max():.2f})"]
    for name in ("uniformity", "centre_distance", "coverage"):
        change = np.abs(getattr(a, name).mean(axis=1) - getattr(b, name).mean(axis=1))
        parts.append(f"{name} {change.mean():.4f}")
    return ", ".join(parts)


def check(scenario: Scenario) -> None:
    """Compare GPU and CPU on the 78 recorded controllers."""
    controllers = bundled_controllers("recorded")
    teams = [[controller] * scenario.robots for controller in controllers]
    genomes = Genomes.from_controllers(controllers)

    still = replace(scenario.without_noise(), ticks=25)
    pending = gpu.launch([gpu.Job(still, genomes)])
    start = perf_counter()
    on_gpu = pending.poses()[0]
    print(f"first results after {perf_counter() - start:.1f} s")
    from swarmbo.engine.swarm import Swarm

    errors = []
    for number, team in enumerate(teams):
        swarm = Swarm(still, team)
        swarm.advance(still.ticks)
        errors.append(np.abs(swarm.poses - on_gpu[number])[..., :2].max(axis=2).ravel())
    shares = np.quantile(np.concatenate(errors), [0.5, 0.9, 0.99, 1])
    print(
        "positions after 25 ticks without noise, m: "
        f"median {shares[0]:.1e}, 90 % {shares[1]:.1e}, 99 % {shares[2]:.1e}, all {shares[3]:.1e}"
    )

    cpu = rollout(teams, scenario)
    other = rollout(teams, replace(scenario, noise_key=12345))
    start = perf_counter()
    result = gpu.launch([gpu.Job(scenario, genomes)]).result()[0]
    print(f"78 controllers with compilation: {perf_counter() - start:.1f} s")
    again = gpu.launch([gpu.Job(scenario, genomes)], packing=3).result()[0]
    print("same bits again, packed otherwise:", np.array_equal(result.items, again.items))
    print("GPU against CPU:        ", difference(result, cpu))
    print("CPU with another noise: ", difference(other, cpu))


def robot_ticks(scenario: Scenario, teams: int) -> int:
    """The work of an evaluation of so many teams."""
    return teams * scenario.trials * scenario.ticks * scenario.robots


def measure(scenario: Scenario, teams: int, packing: int | None = None) -> float:
    """Median robot-ticks per second of launches of so many teams."""
    controllers = bundled_controllers("recorded")
    genomes = Genomes.from_controllers(controllers).take(np.arange(teams) % len(controllers))
    job = gpu.Job(scenario, genomes)
    times = []
    for _ in range(REPEATS + 1):
        start = perf_counter()
        gpu.launch([job], packing=packing).result()
        times.append(perf_counter() - start)
    return robot_ticks(scenario, teams) / statistics.median(times[1:])


def host_time(scenario: Scenario, teams: int) -> float:
    """Seconds that the host is busy with a launch."""
    controllers = bundled_controllers("recorded")
    genomes = Genomes.from_controllers(controllers).take(np.arange(teams) % len(controllers))
    times = []
    for _ in range(REPEATS + 1):
        start = perf_counter()
        pending = gpu.launch([gpu.Job(scenario, genomes)])
        queued = perf_counter()
        for part in pending._parts:
            part.desk.stream.synchronize()
        done = perf_counter()
        pending.result()
        times.append(queued - start + perf_counter() - done)
    return statistics.median(times[1:])


def describe(scenario: Scenario) -> None:
    """Registers and memory of the kernels."""
    from swarmbo.engine.gpu.life import life
    from swarmbo.engine.gpu.scene import scene_of
    from swarmbo.engine.gpu.touch import touch

    constants = scene_of(scenario).constants
    for name, kernel in (("life", life(constants, gpu.WARPS, False)), ("touch", touch(constants))):
        (compiled,) = kernel.overloads.values()
        print(
            f"{name}: registers {compiled.regs_per_thread}, "
            f"local memory {compiled.local_mem_per_thread} bytes per thread, "
            f"shared memory {compiled.shared_mem_per_block} bytes per block"
        )


def main() -> None:
    """Check, then measure."""
    if not gpu.available():
        raise SystemExit(gpu.why_not())
    scenario = Scenario.draw(seed=1)
    check(scenario)
    describe(scenario)
    for teams in TEAMS:
        rate = measure(scenario, teams)
        seconds = robot_ticks(scenario, teams) / rate
        print(f"{teams:5} teams: {rate:.3e} robot-ticks/s, {1e3 * seconds:.1f} ms", flush=True)
    for teams in (500, 2500):
        for packing in PACKINGS:
            rate = measure(scenario, teams, packing)
            print(f"{teams:5} teams, {packing} trials per warp: {rate:.3e}", flush=True)
    for maps in TOGETHER:
        seconds = robot_ticks(scenario, 500 * maps) / measure(scenario, 500 * maps)
        print(f"{maps} x 500 teams: {1e3 * seconds / maps:.1f} ms for each 500", flush=True)
    for gpu.RESIDENT in RESIDENT:
        rates = [measure(scenario, teams) for teams in TEAMS]
        print(f"{gpu.RESIDENT} warps for contacts:", " ".join(f"{rate:.3e}" for rate in rates))
    print(f"host: {1e3 * host_time(scenario, 2500):.2f} ms per launch of 2500 teams")


if __name__ == "__main__":
    main()
