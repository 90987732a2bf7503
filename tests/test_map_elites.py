"""MAP-Elites: its archive, its emitter, and evolutions that repeat themselves to the bit."""

import os
import signal
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ribs.archives import GridArchive
from ribs.emitters import GaussianEmitter
from ribs.schedulers import Scheduler
from scipy import stats

from swarmbo import (
    BehaviourMap,
    Evolution,
    EvolutionOptions,
    Genomes,
    InputError,
    Rollout,
    VariationEmitter,
    evolve,
    hbd,
    make_archive,
    objective,
    random_genomes,
    rollout,
)
from swarmbo.engine.gpu import driver as gpu
from swarmbo.evolution import map_elites
from swarmbo.evolution.archive import Archive
from swarmbo.evolution.emitter import VECTOR, choose_parents, pack, parameters, unpack
from swarmbo.evolution.map_elites import generations, listening, uninterrupted
from swarmbo.evolution.tessellation import k_means, nearest_centroids, uniform_centroids

INITIAL = 40
CENTROIDS = np.random.default_rng(1).random((200, 10))


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Evolutions begin with 40 random controllers instead of 1,000."""
    monkeypatch.setattr(map_elites, "INITIAL", INITIAL)


def options(**changes: Any) -> EvolutionOptions:
    """Of an evolution that takes a moment, but in which some items are delivered."""
    return EvolutionOptions(**{"evaluations": 150, "batch": 20, "ticks": 150} | changes)


def new(plan: EvolutionOptions) -> Evolution:
    """A new evolution; one of SDBC with few centroids."""
    return Evolution(plan, centroids=CENTROIDS if plan.descriptor == "sdbc" else None)


def finish(evolution: Evolution, threads: int | None = None) -> BehaviourMap:
    """Run an evolution to its end."""
    for _ in generations([evolution], threads=threads):
        pass
    return evolution.map()


def same_genomes(one: Genomes, two: Genomes) -> bool:
    """Whether two batches have the same bits."""
    return pack(one).tobytes() == pack(two).tobytes()


# --- the archive -------------------------------------------------------------------------------

# Descriptors on a grid fine enough to lie on edges of cells, coarse enough for ties.
entries = st.lists(
    st.tuples(st.integers(0, 6), st.tuples(*[st.integers(0, 64)] * 3)), min_size=1, max_size=30
)


def add(archive: Archive, first: int, performance: np.ndarray, measures: np.ndarray) -> None:
    """Add a batch, solutions numbered from `first` on."""
    archive.add(
        solution=first + np.arange(len(measures)),
        objective=objective(archive, performance, measures),
        measures=measures,
        performance=performance,
    )


def numbered_archive(descriptor: str, **settings: Any) -> Archive:
    """An archive of which the solutions are numbers."""
    return make_archive(descriptor, solution_dim=(), solution_dtype=np.int64, **settings)


@settings(max_examples=150)
@given(st.lists(entries, min_size=1, max_size=4))
def test_grid_keeps_what_a_dictionary_would(batches: list[list[Any]]) -> None:
    archive = numbered_archive("hbd")
    naive: dict[tuple[int, ...], tuple[int, Fraction, int]] = {}
    first = 0
    for batch in batches:
        performance = np.array([items / 8 for items, _ in batch])
        measures = np.array([place for _, place in batch]) / 64
        add(archive, first, performance, measures)
        for number, (items, place) in enumerate(batch, first):
            numbers = [Fraction(step, 64) for step in place]
            # Round half up, at most 15.
            cell = tuple(min(int(16 * number + Fraction(1, 2)), 15) for number in numbers)
            distance = sum((n - Fraction(i, 16)) ** 2 for n, i in zip(numbers, cell, strict=True))
            there = naive.get(cell)
            if there is None or (items, -distance) > (there[0], -there[1]):
                naive[cell] = (items, Fraction(distance), number)
        first += len(batch)
    kept = archive.data(["solution", "performance", "index"])
    assert isinstance(archive, GridArchive)
    cells = archive.int_to_grid_index(kept["index"])
    found = {
        tuple(cell): (8 * performance, solution)
        for cell, performance, solution in zip(
            cells.tolist(), kept["performance"].tolist(), kept["solution"].tolist(), strict=True
        )
    }
    assert found == {cell: (items, number) for cell, (items, _, number) in naive.items()}


@settings(max_examples=50)
@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 2**32)), min_size=1, max_size=60),
)
def test_tessellation_keeps_what_a_dictionary_would(entries: list[tuple[int, int]]) -> None:
    centroids = CENTROIDS[:12]
    archive = numbered_archive("sdbc", centroids=centroids)
    measures = np.array([np.random.default_rng(seed).random(10) for _, seed in entries])
    performance = np.array([items / 8 for items, _ in entries])
    naive: dict[int, tuple[float, float, int]] = {}
    for number, (place, items) in enumerate(zip(measures, performance, strict=True)):
        distances = np.linalg.norm(centroids - place, axis=1)
        cell, distance = int(distances.argmin()), float(distances.min())
        if cell not in naive or (items, -distance) > (naive[cell][0], -naive[cell][1]):
            naive[cell] = (items, distance, number)
    for first in range(0, len(measures), 7):
        add(archive, first, performance[first : first + 7], measures[first : first + 7])
    kept = archive.data(["solution", "index"])
    found = dict(zip(kept["index"].tolist(), kept["solution"].tolist(), strict=True))
    assert found == {cell: number for cell, (_, _, number) in naive.items()}


def test_performance_is_kept_as_it_is() -> None:
    archive = numbered_archive("hbd")
    add(archive, 0, np.array([2.125]), np.array([[0.3, 0.3, 0.3]]))
    assert archive.data("performance").tolist() == [2.125]
    assert 2.125 < archive.data("objective")[0] <= 2.1875


def test_unknown_descriptor_has_no_archive() -> None:
    with pytest.raises(InputError, match=r"'xyz'; name one of hbd, sdbc"):
        make_archive("xyz", solution_dim=3)


@settings(max_examples=50)
@given(st.integers(1, 300), st.integers(1, 40), st.integers(1, 10), st.integers(0, 2**32))
def test_nearest_centroid_is_found(centroids: int, points: int, dimensions: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    places, centres = random.random((points, dimensions)), random.random((centroids, dimensions))
    owner, distance = nearest_centroids(places, centres)
    distances = np.linalg.norm(places[:, None] - centres, axis=2)
    assert owner.tolist() == distances.argmin(axis=1).tolist()
    assert distance == pytest.approx(distances.min(axis=1))


def naive_k_means(points: np.ndarray, count: int) -> np.ndarray:
    """Lloyd's algorithm, from the first points."""
    centroids, owner = points[:count], np.full(len(points), -1)
    while True:
        nearest = ((points[:, None] - centroids) ** 2).sum(axis=2).argmin(axis=1)
        if (nearest == owner).all():
            return centroids
        owner = nearest
        centroids = np.array(
            [
                points[owner == k].mean(axis=0) if (owner == k).any() else centroids[k]
                for k in range(count)
            ]
        )


@pytest.mark.parametrize(("points", "count", "dimensions"), [(500, 40, 3), (300, 7, 10), (9, 9, 2)])
def test_k_means_is_lloyds(points: int, count: int, dimensions: int) -> None:
    places = np.random.default_rng(points).random((points, dimensions))
    assert k_means(places, count) == pytest.approx(naive_k_means(places, count), abs=1e-12)


def test_centroids_fill_the_cube_evenly_and_are_always_the_same() -> None:
    centroids = uniform_centroids(64, 3, points=4000)
    assert centroids.shape == (64, 3)
    assert np.array_equal(centroids, uniform_centroids.__wrapped__(64, 3, points=4000))
    points = np.random.default_rng(1).random((20_000, 3))
    shares = np.bincount(nearest_centroids(points, centroids)[0], minlength=64) / 20_000
    assert shares.min() > 0.5 / 64
    assert shares.max() < 2 / 64


# --- the emitter -------------------------------------------------------------------------------


@given(st.integers(0, 2**64 - 1))
def test_packing_is_exact(key: int) -> None:
    genomes = random_genomes(20, key)
    vectors = pack(genomes)
    assert vectors.shape == (20, VECTOR)
    for name in ("hidden", "count", "bias", "source", "target", "weight"):
        before, after = getattr(genomes, name), getattr(unpack(vectors), name)
        assert before.dtype == after.dtype
        assert before.tobytes() == after.tobytes()


def test_unused_numbers_of_a_vector_may_be_anything() -> None:
    genomes = random_genomes(5, 1)
    vectors = pack(genomes)
    noisy = np.where((vectors == 0) & parameters(), 1.5, vectors)
    restored = unpack(noisy)
    assert np.array_equal(pack(restored)[:, ~parameters()], vectors[:, ~parameters()])
    restored.check()


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (0, 65, "vector 1 has 65 hidden neurons; give an integer, 0 to 64"),
        (0, 0.5, "vector 1 has 0.5 hidden neurons"),
        (1, -1, "vector 1 has -1 connections; give an integer, 0 to 256"),
        (1, float("nan"), "vector 1 has nan connections"),
        (-256, 0.25, "vector 1 has a connection that is not 256"),
        (-256, 2.0**16, "vector 1 has a connection that is not 256"),
        (-256, 5.0, "controller 1.*goes into an input"),
        (2, float("inf"), "controller 1.*bias 0 is inf"),
    ],
)
def test_vector_that_is_no_controller_is_refused(place: int, value: float, message: str) -> None:
    vectors = pack(random_genomes(50, 3))
    vectors = vectors[vectors[:, 1] > 0][:3]
    vectors[1, place] = value
    with pytest.raises(InputError, match=message):
        unpack(vectors)


def test_vectors_of_another_length_are_refused() -> None:
    with pytest.raises(InputError, match=rf"shape \(2, 3\); give rows of {VECTOR} numbers"):
        unpack(np.zeros((2, 3)))
    with pytest.raises(InputError, match=f"solution_dim is 3; give it {VECTOR}"):
        VariationEmitter(make_archive("hbd", solution_dim=3), seed=1)
    with pytest.raises(InputError, match="batch_size is 0; give at least 1"):
        VariationEmitter(make_archive("hbd", solution_dim=VECTOR), seed=1, batch_size=0)


def test_parents_are_drawn_uniformly() -> None:
    drawn = np.concatenate([choose_parents(1, generation, 37, 500) for generation in range(100)])
    assert stats.chisquare(np.bincount(drawn, minlength=37)).pvalue > 0.01
    assert len(np.bincount(drawn)) == 37


def test_parents_depend_on_seed_and_generation_only() -> None:
    drawn = choose_parents(3, 5, 100, 50)
    assert np.array_equal(drawn, choose_parents(3, 5, 100, 50))
    assert np.array_equal(drawn[:20], choose_parents(3, 5, 100, 20))
    assert not np.array_equal(drawn, choose_parents(3, 6, 100, 50))
    assert not np.array_equal(drawn, choose_parents(4, 5, 100, 50))


@pytest.mark.usefixtures("small")
def test_emitter_in_a_scheduler_evolves_the_same_map() -> None:
    evolution = new(options(evaluations=100, ticks=60))
    expected = finish(evolution)
    archive = make_archive("hbd", solution_dim=VECTOR)
    emitter = VariationEmitter(archive, seed=1, batch_size=20, initial=INITIAL)
    scheduler = Scheduler(archive, [emitter])
    for _ in range(4):
        result = rollout(unpack(scheduler.ask()), evolution.scenario)
        measures = hbd(result)
        scheduler.tell(
            objective(archive, result.performance, measures),
            measures,
            performance=result.performance,
        )
    kept = archive.data(["solution", "performance", "measures", "index"])
    order = np.argsort(kept["index"])
    assert np.array_equal(kept["measures"][order], expected.descriptor)
    assert np.array_equal(kept["performance"][order], expected.performance)
    assert expected.genomes is not None
    assert same_genomes(unpack(kept["solution"][order]), expected.genomes)
    assert emitter.refused == evolution.refused


def test_emitter_works_beside_others() -> None:
    archive = make_archive("hbd", solution_dim=VECTOR)
    ours = VariationEmitter(archive, seed=1, batch_size=8, initial=16)
    theirs = GaussianEmitter(
        archive,
        sigma=0.2 * parameters(),
        initial_solutions=pack(random_genomes(4, 1)),
        batch_size=8,
        seed=1,
    )
    scheduler = Scheduler(archive, [ours, theirs])
    scenario = options(ticks=20).scenario()
    sizes = []
    for _ in range(3):
        genomes = unpack(scheduler.ask())
        sizes.append(len(genomes))
        result = rollout(genomes, scenario)
        measures = hbd(result)
        scheduler.tell(
            objective(archive, result.performance, measures),
            measures,
            performance=result.performance,
        )
    assert sizes == [20, 16, 16]
    assert len(archive) > 1


# --- evolutions --------------------------------------------------------------------------------


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("descriptor", ["hbd", "sdbc"])
def test_controllers_of_a_map_do_what_it_says(descriptor: str) -> None:
    evolution = new(options(descriptor=descriptor))
    behaviour_map = finish(evolution)
    assert behaviour_map.genomes is not None
    again = rollout(behaviour_map.genomes, evolution.scenario, features=descriptor == "sdbc")
    assert behaviour_map.filled_cells > 5
    assert behaviour_map.performance.max() > 0
    assert np.array_equal(again.performance, behaviour_map.performance)
    assert np.array_equal(evolution.describe(again), behaviour_map.descriptor)


@pytest.mark.usefixtures("small")
def test_map_tells_how_it_was_made() -> None:
    behaviour_map = finish(new(options(seed=5)))
    made = behaviour_map.made
    assert (made["seed"], made["device"], made["evaluations"]) == (5, "cpu", 150)
    assert made["options"] == {
        **{"descriptor": "hbd", "evaluations": 150, "initial": INITIAL, "batch": 20},
        **{"robots": 6, "trials": 8, "ticks": 150},
    }
    assert sorted(made["versions"]) == ["numba", "numpy", "ribs", "swarmbo"]
    assert made["refused_mutations"] == 0


@pytest.mark.usefixtures("small")
def test_log_follows_the_evolution() -> None:
    evolution = new(options())
    seen = []
    for state in generations([evolution]):
        seen.append((state.evaluations, state.filled_cells, state.best, state.mean))
    log = evolution.map().log
    assert log.generation.tolist() == list(range(7))
    assert log.evaluations.tolist() == [40, 60, 80, 100, 120, 140, 150]
    columns = (log.evaluations, log.filled_cells, log.best, log.mean)
    assert [tuple(row) for row in zip(*(c.tolist() for c in columns), strict=True)] == seen
    assert (np.diff(log.filled_cells) >= 0).all()
    assert (np.diff(log.best) >= 0).all()
    assert log.best[-1] == evolution.map().best
    assert log.mean[-1] == evolution.map().mean


def test_long_log_has_at_most_2001_rows_with_the_first_and_the_last() -> None:
    for evaluations in (1_000, 1_001, 101_000, 201_000, 201_001, 399_950, 10_001_000):
        plan = EvolutionOptions(evaluations=evaluations, batch=50)
        logged = [n for n in range(plan.generations) if n % plan.log_step == 0]
        assert len({*logged, plan.generations}) <= 2001


@pytest.mark.usefixtures("small")
def test_few_evaluations_are_of_random_controllers_only() -> None:
    behaviour_map = finish(new(options(evaluations=30, ticks=20)))
    assert behaviour_map.made["options"]["initial"] == 30
    assert behaviour_map.log.generation.tolist() == [0]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("descriptor", ["hbd", "sdbc"])
def test_map_does_not_depend_on_threads(descriptor: str) -> None:
    plan = options(descriptor=descriptor, evaluations=100, ticks=80)
    assert len({finish(new(plan), threads).to_bytes() for threads in (1, 3)}) == 1


@pytest.mark.usefixtures("small")
def test_seeds_differ() -> None:
    maps = [finish(new(options(seed=seed, evaluations=60, ticks=40))) for seed in (1, 2)]
    assert maps[0].descriptor.tobytes() != maps[1].descriptor.tobytes()


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("descriptor", ["hbd", "sdbc"])
def test_continued_evolution_equals_uninterrupted_one(descriptor: str) -> None:
    plan = options(descriptor=descriptor, evaluations=110, ticks=80)
    evolution = new(plan)
    states = [evolution.map().to_bytes() for _ in generations([evolution])]
    for state in states[:-1]:
        continued = Evolution.continued(plan, BehaviourMap.from_bytes(state))
        assert not continued.finished
        assert continued.map().to_bytes() == state
        assert finish(continued).to_bytes() == states[-1]


@pytest.mark.usefixtures("small")
def test_asking_twice_changes_nothing() -> None:
    evolution = new(options(evaluations=60, ticks=20))
    for _ in generations([evolution]):
        if not evolution.finished:
            assert same_genomes(evolution.ask(), evolution.ask())
    with pytest.raises(InputError, match="finished"):
        evolution.ask()


@pytest.mark.usefixtures("small")
def test_evolution_cannot_be_continued_with_other_options() -> None:
    plan = options(evaluations=100, ticks=20)
    evolution = new(plan)
    next(generations([evolution]))
    state = evolution.map()
    for change, message in (
        ({"seed": 2}, "was made with seed 1, not 2"),
        ({"batch": 30}, "was made with batch 20, not 30"),
        ({"evaluations": 120}, "was made with evaluations 100, not 120"),
        ({"ticks": 21}, "was made with ticks 20, not 21"),
        ({"device": "gpu"}, "was made with device 'cpu', not 'gpu'"),
        ({"descriptor": "sdbc"}, "was made with descriptor 'hbd', not 'sdbc'"),
    ):
        with pytest.raises(InputError, match=message):
            Evolution.continued(options(**{"evaluations": 100, "ticks": 20} | change), state)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"evaluations": 0}, "evaluations is 0; give an integer, 1 to"),
        ({"batch": 0}, "batch is 0"),
        ({"batch": 2.5}, "batch is 2.5"),
        ({"seed": -1}, "seed is -1"),
        ({"descriptor": "xyz"}, "'xyz'.*name one of hbd, sdbc"),
        ({"device": "tpu"}, "'tpu'; name one of cpu, gpu"),
    ],
)
def test_impossible_options_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        options(**change)


@pytest.mark.usefixtures("small")
def test_evolve_makes_the_map_in_one_call() -> None:
    done: list[int] = []
    behaviour_map = evolve(
        evaluations=45, batch=5, seed=2, device="cpu", progress=lambda _, count: done.append(count)
    )
    assert behaviour_map.made["evaluations"] == 45
    assert done == sorted(done)
    assert done[-1] == 45


class _Pending:
    def __init__(self, jobs: Sequence[gpu.Job], features: bool) -> None:
        self.jobs, self.features = jobs, features

    def result(self) -> list[Rollout]:
        return [rollout(job.genomes, job.scenario, features=self.features) for job in self.jobs]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("count", [1, 2, 5])
def test_replicates_on_a_gpu_equal_each_seed_alone(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    launches: list[int] = []

    def launch(jobs: Sequence[gpu.Job], features: bool = False) -> _Pending:
        launches.append(len({id(job.scenario) for job in jobs}))
        return _Pending(jobs, features)

    monkeypatch.setattr(gpu, "launch", launch)
    plans = [
        options(seed=seed, device="gpu", ticks=30, evaluations=60 + 20 * (seed % 2))
        for seed in range(1, count + 1)
    ]
    evolutions = [new(plan) for plan in plans]
    order = list(generations(evolutions))
    assert all(evolution.finished for evolution in evolutions)
    assert max(launches) == count
    assert len(order) == sum(plan.generations + 1 for plan in plans)
    for plan, evolution in zip(plans, evolutions, strict=True):
        assert finish(new(plan)).to_bytes() == evolution.map().to_bytes()


@pytest.mark.usefixtures("small")
def test_result_of_other_controllers_is_refused() -> None:
    evolution = new(options(ticks=5))
    result = rollout(evolution.ask().take(np.arange(3)), evolution.scenario)
    with pytest.raises(InputError, match="of 3 controllers; 40 were asked for"):
        evolution.tell(result)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("descriptor", ["hbd", "sdbc"])
def test_result_that_is_no_number_is_refused(descriptor: str) -> None:
    evolution = new(options(descriptor=descriptor, ticks=5))
    result = rollout(evolution.ask(), evolution.scenario, features=True)
    for column in (result.coverage, result.features):
        assert column is not None
        column[7] = np.nan
    with pytest.raises(InputError, match="finite numbers"):
        evolution.tell(result)
    assert evolution.evaluations == 0


def test_ctrl_c_waits_for_the_end_of_the_block() -> None:
    steps = []

    def interrupt() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        steps.append("after the signal")

    with pytest.raises(KeyboardInterrupt), uninterrupted():
        interrupt()
    assert steps == ["after the signal"]
    with pytest.raises(KeyboardInterrupt):
        interrupt()
    assert len(steps) == 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_ctrl_c_that_a_finaliser_drops_is_raised_again() -> None:
    class Finalised:
        def __del__(self) -> None:
            os.kill(os.getpid(), signal.SIGINT)
            sum(range(10))  # Python hears it here

    with listening() as check:
        check()
        Finalised()
        with pytest.raises(KeyboardInterrupt):
            check()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_that_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with uninterrupted():
            os.kill(os.getpid(), signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
