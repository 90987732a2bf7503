"""The engine on the GPU: in Numba's CUDA simulator everywhere, and on a GPU where there is one."""

import os
import subprocess
import sys
from dataclasses import replace
from threading import Lock
from typing import Any

import numpy as np
import pytest

from swarmbo.controller.bundled import bundled_controllers
from swarmbo.controller.genomes import MAX_CONNECTIONS, MAX_HIDDEN, Genomes
from swarmbo.controller.network import INPUTS, OUTPUTS, Controller
from swarmbo.engine.gpu import driver as gpu
from swarmbo.engine.rollout import rollout
from swarmbo.engine.swarm import Swarm
from swarmbo.errors import InputError
from swarmbo.evolution.map_elites import Evolution, EvolutionOptions, generations
from swarmbo.world.arena import FORAGING_2X, Food
from swarmbo.world.disturbance import (
    Actuator,
    FoodScarcity,
    Ground,
    Proximity,
    SoftwareFood,
    SoftwareNest,
)
from swarmbo.world.scenario import Scenario

needs_gpu = pytest.mark.skipif(
    not gpu.available() or "NUMBA_ENABLE_CUDASIM" in os.environ, reason=gpu.why_not()
)

CONTROLLERS = bundled_controllers("recorded")
TICKS = 3


# --- in the simulator --------------------------------------------------------------------------


def jobs_in_contact() -> list[gpu.Job]:
    """Teams of four robots, two trials each: crowded in a corner, also with faults; in pairs."""
    four = range(4)
    close = [
        [(0.12 + 0.13 * (r % 2) + 0.3 * t, 0.11 + 0.13 * (r // 2), 0.7 * r - t) for r in four]
        for t in range(2)
    ]
    healthy = Scenario(poses=np.array(close), ticks=TICKS, noise_key=5)
    broken = replace(
        healthy,
        noise_key=6,
        disturbances=(
            Proximity(("min", "max", "random", "none")),
            Ground(("none", "random", "min", "max")),
            Actuator(("left", "none", "both", "right")),
        ),
    )
    mad = replace(
        healthy,
        noise_key=7,
        disturbances=(SoftwareNest(0), SoftwareFood(3), FoodScarcity(Food(0.45, 0.2, 0.1))),
    )
    apart = [
        [(0.5, 0.5, 0.0), (0.62, 0.5, 3.1), (1.0, 0.07, 0.0), (1.12, 0.07, 3.0)],
        [(0.07, 0.07, 0.5), (0.19, 0.07, 3.0), (2.0, 4.1, 0.2), (1.0, 1.0, 0.3)],
    ]
    pairs = replace(healthy, poses=np.array(apart), noise_key=8)
    genomes = Genomes.from_controllers(CONTROLLERS[:6])
    mixed = np.array([[0, 0, 0, 0], [1, 2, 3, 4]])
    return [
        gpu.Job(healthy, genomes, mixed),
        gpu.Job(broken, genomes, mixed[1:]),
        gpu.Job(mad, genomes, mixed[:1] + 5),
        gpu.Job(pairs, genomes, mixed[:1]),
    ]


def large() -> Controller:
    """A controller with as many neurons and connections as there is room for."""
    draw = np.random.default_rng(1)
    sources = [*range(INPUTS), *range(INPUTS + OUTPUTS, INPUTS + OUTPUTS + MAX_HIDDEN)]
    targets = range(INPUTS, INPUTS + OUTPUTS + MAX_HIDDEN)
    every = [(source, target) for source in sources for target in targets]
    chosen = np.sort(draw.choice(len(every), MAX_CONNECTIONS, replace=False))
    connections = tuple((*every[place], draw.uniform(-2, 2)) for place in chosen)
    return Controller(MAX_HIDDEN, tuple(draw.uniform(-1, 1, OUTPUTS + MAX_HIDDEN)), connections)


def jobs_apart() -> list[gpu.Job]:
    """Teams of three robots that do not meet, three trials each, and of one robot."""
    apart = [(0.5, 0.5, 0.0), (1.6, 0.7, 2.0), (1.0, 3.0, -1.0)]
    turned = [[(x, y, heading + trial) for x, y, heading in apart] for trial in range(3)]
    three = Scenario(poses=np.array(turned), ticks=TICKS, noise_key=9)
    alone = replace(three, poses=three.poses[:, :1])
    genomes = Genomes.from_controllers(CONTROLLERS[:3])
    return [
        gpu.Job(three, genomes, np.array([[0, 1, 2], [2, 2, 2]])),
        gpu.Job(replace(three, disturbances=(Actuator(("left",) * 3),)), genomes),
        gpu.Job(alone, Genomes.from_controllers([CONTROLLERS[0], large()])),
    ]


def teams_of(job: gpu.Job) -> list[list[Controller]]:
    """The controllers of a job's teams."""
    assert job.teams is not None
    return [[job.genomes.controller(index) for index in team] for team in job.teams]


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> dict[str, np.ndarray]:
    """What the jobs give in Numba's CUDA simulator."""
    path = tmp_path_factory.mktemp("simulated") / "out.npz"
    subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.test_gpu", path],
        env=os.environ | {"NUMBA_ENABLE_CUDASIM": "1"},
        check=True,
    )
    return dict(np.load(path))


def test_simulated_gpu_agrees_with_cpu_in_contact_and_with_faults(
    simulated: dict[str, np.ndarray],
) -> None:
    found = simulated
    for number, job in enumerate(jobs_in_contact()):
        teams = teams_of(job)
        expected = rollout(teams, job.scenario)
        for name in ("items", "uniformity", "centre_distance", "coverage"):
            there = found[f"{name}{number}"]
            np.testing.assert_allclose(there, getattr(expected, name), atol=1e-4, err_msg=name)
        for team, poses in zip(teams, found[f"poses{number}"], strict=True):
            swarm = Swarm(job.scenario, team)
            swarm.advance(TICKS)
            # Crowds are chaotic: what differs in the last digit soon differs in the fourth.
            np.testing.assert_allclose(poses, swarm.poses, atol=1e-3)
            assert np.median(np.abs(poses - swarm.poses)) < 1e-5


def test_crowds_do_not_depend_on_others_in_their_warp(simulated: dict[str, np.ndarray]) -> None:
    for number in range(len(jobs_in_contact())):
        np.testing.assert_array_equal(simulated[f"packed{number}"], simulated[f"poses{number}"])


def test_simulated_gpu_measures_the_features_of_the_cpu(simulated: dict[str, np.ndarray]) -> None:
    for number, job in enumerate(jobs_apart()):
        teams = teams_of(job)
        features = simulated[f"features{number}"]
        assert features.shape == (len(teams), 3, 12)
        expected = rollout(teams, job.scenario, features=True).features
        assert expected is not None
        np.testing.assert_allclose(features, expected, rtol=1e-6, atol=1e-6)
        assert features.any()
        assert features[:, :, [3, 4, 5]].all() == (job.scenario.robots > 1)


class OneAtATime(dict[Any, Any]):
    """The simulator's shared arrays; the thread that finds one missing makes it for all."""

    lock = Lock()

    def get(self, key: Any, default: Any = None) -> Any:
        self.lock.acquire()
        if key in self:
            self.lock.release()
        return super().get(key, default)

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value)
        self.lock.release()


def write_simulated(path: str) -> None:
    """Run the jobs in the simulator, contacts solved to the end; write the results."""
    from numba.cuda.simulator.kernelapi import FakeCUDAShared

    from swarmbo.engine.gpu import contacts as gpu_contacts
    from swarmbo.engine.gpu import crowds as gpu_crowds

    begin = FakeCUDAShared.__init__

    def begin_safely(self: Any, size: int) -> None:
        begin(self, size)
        self._allocations = OneAtATime()

    FakeCUDAShared.__init__ = begin_safely
    gpu_contacts.SWEEPS, gpu_crowds.ROUNDS, gpu_contacts.SETTLED = 10, 40, np.float32(1e-5)
    sys.setswitchinterval(1e-4)  # 32 threads that mostly wait for each other
    pending = gpu.launch(jobs_in_contact())
    arrays: dict[str, Any] = {
        f"poses{number}": poses for number, poses in enumerate(pending.poses())
    }
    for number, result in enumerate(pending.result()):
        for name in ("items", "uniformity", "centre_distance", "coverage"):
            arrays[f"{name}{number}"] = getattr(result, name)
    for number, result in enumerate(gpu.launch(jobs_apart(), features=True).result()):
        arrays[f"features{number}"] = result.features
    gpu.SPREAD = 1  # all crowds in one warp
    for number, poses in enumerate(gpu.launch(jobs_in_contact()).poses()):
        arrays[f"packed{number}"] = poses
    np.savez(path, **arrays)


# --- at the door -------------------------------------------------------------------------------


def test_a_swarm_too_large_for_the_gpu_is_refused() -> None:
    scenario = Scenario.draw(seed=1, arena=FORAGING_2X, robots=33, trials=1)
    with pytest.raises(InputError, match="up to 32 robots, not 33"):
        gpu.Job(scenario, Genomes.from_controllers(CONTROLLERS[:1]))


def test_teams_that_name_no_genome_are_refused() -> None:
    scenario = Scenario.draw(seed=1, trials=1)
    genomes = Genomes.from_controllers(CONTROLLERS[:3])
    with pytest.raises(InputError, match="genomes 0 to 2"):
        gpu.Job(scenario, genomes, np.full((1, 6), 3))
    with pytest.raises(InputError, match="teams x 6 robots"):
        gpu.Job(scenario, genomes, np.zeros((1, 5), int))


def test_more_robots_than_a_launch_can_number_are_refused() -> None:
    scenario = Scenario.draw(seed=1, arena=FORAGING_2X, robots=32, trials=1024)
    genomes = Genomes.from_controllers(CONTROLLERS[:1])
    with pytest.raises(InputError, match=r"33,587,200 robots.* 33,554,432 at the most"):
        gpu.launch([gpu.Job(scenario, genomes, np.zeros((1025, 32), int))])


@pytest.mark.skipif(gpu.available(), reason="there is a GPU")
def test_without_a_gpu_the_reason_says_how_to_get_one() -> None:
    assert "swarmbo[gpu]" in gpu.why_not()
    scenario = Scenario.draw(seed=1, trials=1)
    with pytest.raises(InputError, match="install"):
        gpu.launch([gpu.Job(scenario, Genomes.from_controllers(CONTROLLERS[:1]))])


# --- on a GPU ----------------------------------------------------------------------------------


@needs_gpu
def test_positions_before_contact_are_those_of_the_cpu_to_a_tenth_of_a_millimetre() -> None:
    scenario = replace(Scenario.draw(seed=1).without_noise(), ticks=30)
    found = gpu.launch([gpu.Job(scenario, Genomes.from_controllers(CONTROLLERS))]).poses()[0]
    compared = 0
    for controller, there in zip(CONTROLLERS, found, strict=True):
        swarm = Swarm(scenario, [controller] * 6)
        clear = np.full(scenario.trials, True)
        for _ in range(scenario.ticks):
            swarm.advance(1)
            x, y = swarm.poses[..., 0], swarm.poses[..., 1]
            walls = np.minimum(np.minimum(x, 2.1 - x), np.minimum(y, 4.2 - y)).min(axis=1)
            apart = np.hypot(x[:, :, None] - x[:, None], y[:, :, None] - y[:, None])
            apart[:, range(6), range(6)] = 9
            clear &= (walls > 0.08) & (apart.min(axis=(1, 2)) > 0.17)
        np.testing.assert_allclose(there[clear, :, :2], swarm.poses[clear, :, :2], atol=1e-4)
        compared += clear.sum()
    assert compared > 100


@needs_gpu
def test_items_agree_with_the_cpu_as_two_noises_on_the_cpu_do() -> None:
    scenario = Scenario.draw(seed=1)
    teams = [[controller] * 6 for controller in CONTROLLERS]
    cpu = rollout(teams, scenario).performance
    other = rollout(teams, replace(scenario, noise_key=99)).performance
    found = gpu.launch([gpu.Job(scenario, Genomes.from_controllers(CONTROLLERS))]).result()[0]
    assert np.abs(found.performance - cpu).mean() <= 1.1 * np.abs(other - cpu).mean()
    assert abs((found.performance - cpu).mean()) < 0.2


@needs_gpu
def test_random_numbers_are_those_of_the_cpu() -> None:
    poses = np.array([[[0.32, 2.0, np.pi / 2]]] * 8)
    scenario = Scenario(poses=poses, ticks=300, disturbances=(SoftwareNest(0),), noise_key=3)
    genomes = Genomes.from_controllers(CONTROLLERS[:1])
    found = gpu.launch([gpu.Job(scenario, genomes)]).poses()[0][0]
    swarm = Swarm(scenario, CONTROLLERS[:1])
    swarm.advance(300)
    np.testing.assert_allclose(found, swarm.poses, atol=1e-4)


def crowded(*, seed: int, ticks: int) -> Scenario:
    """Trials that begin with crowds of six, of three and three, of four and two."""
    draw = np.random.default_rng(seed)
    poses = np.empty((8, 6, 3))
    for trial, here in enumerate(poses):
        places = draw.permutation([(0.5, 0.6), (0.5, 3.2), (1.4, 1.0), (1.3, 2.6)])
        together = (6, 3, 4)[trial % 3]
        for robot in range(6):
            x, y = places[int(robot >= together)]
            here[robot] = x + 0.14 * (robot % 3), y + 0.14 * (robot // 3), draw.uniform(0, 6)
    return Scenario(poses=poses, ticks=ticks, noise_key=seed)


@needs_gpu
def test_results_do_not_depend_on_packing_and_company(monkeypatch: pytest.MonkeyPatch) -> None:
    genomes = Genomes.from_controllers(CONTROLLERS)
    jobs = [gpu.Job(replace(Scenario.draw(seed=s), ticks=100), genomes) for s in (1, 2)]
    jobs += [gpu.Job(crowded(seed=s, ticks=100), genomes) for s in (3, 4)]
    jobs.append(gpu.Job(Scenario.draw(seed=1, arena=FORAGING_2X, ticks=50), genomes))
    together = gpu.launch(jobs, features=True)
    monkeypatch.setattr(gpu, "SPREAD", 1)
    monkeypatch.setattr(gpu, "_multiprocessors", lambda: 1)  # as many crowds in a warp as it takes
    alone = [gpu.launch([job], features=True, packing=1).result()[0] for job in jobs]
    for a, b in zip(together.result(), alone, strict=True):
        for name in ("items", "uniformity", "centre_distance", "coverage", "features"):
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


@needs_gpu
@pytest.mark.parametrize("descriptor", ["hbd", "sdbc"])
def test_generations_ahead_of_time_give_the_map_of_one_after_the_other(descriptor: str) -> None:
    options = [
        EvolutionOptions(
            evaluations=4000, descriptor=descriptor, batch=100, seed=s, device="gpu", ticks=200
        )
        for s in (1, 2)
    ]
    evolutions = [Evolution(each) for each in options]
    for _ in generations(evolutions):
        pass
    for evolution, each in zip(evolutions, options, strict=True):
        plain = Evolution(each)
        while not plain.finished:
            job = gpu.Job(plain.scenario, plain.ask())
            plain.tell(gpu.launch([job], features=descriptor == "sdbc").result()[0])
        assert evolution.map().to_bytes() == plain.map().to_bytes()


@needs_gpu
def test_features_before_contact_are_those_of_the_cpu() -> None:
    for job in jobs_apart():
        found = gpu.launch([job], features=True).result()[0].features
        expected = rollout(teams_of(job), job.scenario, features=True).features
        assert found is not None
        assert expected is not None
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


if __name__ == "__main__":
    write_simulated(sys.argv[1])
