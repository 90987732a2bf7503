"""MAP-Elites (Mouret and Clune 2015): the best controller of every kind of behaviour."""

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from functools import partial
from importlib.metadata import version
from threading import current_thread, main_thread
from typing import Any

import numpy as np
from ribs.archives import GridArchive

from swarmbo.controller.genomes import Genomes
from swarmbo.controller.variation import Variation
from swarmbo.engine.rollout import Rollout, choose_device, rollout
from swarmbo.errors import InputError, is_integer, short
from swarmbo.evolution.archive import EVOLVED, Places, make_archive, places
from swarmbo.evolution.descriptor import hbd, sdbc
from swarmbo.evolution.emitter import (
    BATCH,
    INITIAL,
    choose_parents,
    initial_genomes,
    make_children,
)
from swarmbo.maps.behaviour_map import BehaviourMap, Log
from swarmbo.maps.map_file import LOG_ROWS
from swarmbo.version import __version__
from swarmbo.world.arena import FORAGING
from swarmbo.world.scenario import TRIALS, Scenario

Progress = Callable[["Evolution", int], None]


@dataclass(frozen=True, kw_only=True)
class EvolutionOptions:
    """What an evolution depends on; equal options give equal maps, on one kind of machine."""

    evaluations: int  # in all; the first 1,000 are of random controllers
    descriptor: str = "hbd"  # or "sdbc"
    batch: int = BATCH  # children in a generation
    seed: int = 1  # of poses, noise and all that is drawn
    device: str = "cpu"  # or "gpu"
    ticks: int = FORAGING.ticks  # of a trial

    def __post_init__(self) -> None:
        if self.descriptor not in EVOLVED:
            raise InputError(
                f"there is no descriptor {short(self.descriptor)} to evolve with; "
                f"name one of {', '.join(EVOLVED)}"
            )
        if self.device not in ("cpu", "gpu"):
            raise InputError(f"there is no device {short(self.device)}; name one of cpu, gpu")
        for name, least, most in (
            ("evaluations", 1, 2**53),
            ("batch", 1, 2**20),
            ("seed", 0, 2**53),
            ("ticks", 1, 2**20),
        ):
            value = getattr(self, name)
            if not is_integer(value) or not least <= value <= most:
                raise InputError(f"{name} is {short(value)}; give an integer, {least} to {most}")

    @property
    def initial(self) -> int:
        """How many random controllers there are."""
        return min(INITIAL, self.evaluations)

    @property
    def generations(self) -> int:
        """How many generations follow the random one; the last may be smaller."""
        return -(-(self.evaluations - self.initial) // self.batch)

    @property
    def log_step(self) -> int:
        """How many generations lie between two rows of the log, which has 2,001 at most."""
        return max(1, -(-self.generations // (LOG_ROWS - 1)))

    def scenario(self) -> Scenario:
        """In which all controllers are evaluated: 6 robots, 8 trials, noise."""
        return Scenario.draw(seed=self.seed, ticks=self.ticks)

    def made(self) -> dict[str, Any]:
        """What a map's file says about its origin."""
        options = asdict(self)
        more = {"initial": self.initial, "robots": FORAGING.robots, "trials": TRIALS}
        return {
            "seed": options.pop("seed"),
            "device": options.pop("device"),
            "options": options | more,
            "versions": versions(),
        }

    def check_finished(self, behaviour_map: BehaviourMap) -> None:
        """InputError when the map was not made with these options, by whatever versions."""
        expected = self.made() | {"evaluations": self.evaluations}
        made = dict(behaviour_map.made)
        for name in ("versions", "refused_mutations"):
            expected.pop(name, None)
            made.pop(name, None)
        _check_made(made, expected)

    def evaluations_after(self, generation: int) -> int:
        """How many evaluations there have been when this generation is done."""
        return min(self.initial + generation * self.batch, self.evaluations)


class Evolution:
    """The evolution of one map, generation by generation.

    Evaluate what `ask` gives in `scenario`, and `tell` the result. All that is
    drawn is a function of the options and the generation, so an evolution can
    go on from any `map` that was made on the way, to the same end.
    """

    def __init__(self, options: EvolutionOptions, *, centroids: np.ndarray | None = None) -> None:
        self.options = options
        self.scenario = options.scenario()
        self.generation = 0  # generations done, the random one included
        self.refused = 0  # mutations that found no room in a genome
        # The archive's solutions are the numbers of their evaluations, -1 for those of a map that
        # goes on. The controllers themselves are beside it, a row per cell: large solutions make
        # an archive slow.
        self.archive = make_archive(
            options.descriptor, solution_dim=(), solution_dtype=np.int64, centroids=centroids
        )
        self.elites = Genomes.zeros(int(self.archive.cells))
        self._asked: Variation | None = None
        self._log: list[tuple[int, int, int, float, float]] = []

    # --- where it stands

    @property
    def evaluations(self) -> int:
        """How many controllers have been evaluated."""
        return self.options.evaluations_after(self.generation - 1) if self.generation else 0

    @property
    def finished(self) -> bool:
        """Whether all evaluations are done."""
        return self.evaluations == self.options.evaluations

    @property
    def filled_cells(self) -> int:
        """How many cells are filled."""
        return len(self.archive)

    @property
    def best(self) -> float:
        """The best performance, in items per robot."""
        return float(self._performance().max()) / self.scenario.robots

    @property
    def mean(self) -> float:
        """The mean performance over the filled cells, in items per robot."""
        return float(self._performance().mean()) / self.scenario.robots

    def _performance(self) -> np.ndarray:
        return self.archive.data("performance")

    # --- how it goes on

    def ask(self) -> Genomes:
        """The controllers of the next generation; the same until `tell` is called."""
        if self._asked is None:
            if self.finished:
                raise InputError("the evolution is finished; there is nothing more to evaluate")
            self._asked = self._next()
        return self._asked.children

    def _next(self) -> Variation:
        options, generation = self.options, self.generation
        if generation == 0:
            random = initial_genomes(options.seed, options.initial)
            return Variation(random, np.zeros(len(random), np.int64))
        cells = np.sort(self.archive.data("index"))
        count = options.evaluations_after(generation) - self.evaluations
        chosen = choose_parents(options.seed, generation, len(cells), count)
        return make_children(self.elites, cells[chosen], options.seed, generation)

    def tell(self, result: Rollout) -> None:
        """Take in how the controllers did that `ask` gave. Ctrl-C waits until this is done."""
        asked = self.ask()
        if len(result.items) != len(asked):
            raise InputError(
                f"the result is of {len(result.items)} controllers; {len(asked)} were asked for"
            )
        assert self._asked is not None
        self.take_in(self._asked, self.places(result))

    def places(self, result: Rollout) -> Places:
        """Where in the archive evaluated controllers belong."""
        return places(self.archive, result.performance, self.describe(result))

    def take_in(self, asked: Variation, found: Places) -> None:
        """Take in what `ask` would give, and its places: for those who made both themselves."""
        with uninterrupted():
            self._insert(asked.children, found)
            self.refused += int(asked.refused.sum())
            self._asked = None
            self.generation += 1
            if self.finished or (self.generation - 1) % self.options.log_step == 0:
                state = (self.filled_cells, self.best, self.mean)
                self._log.append((self.generation - 1, self.evaluations, *state))

    def describe(self, result: Rollout) -> np.ndarray:
        """The descriptors of evaluated controllers."""
        if self.options.descriptor == "hbd":
            return hbd(result)
        return sdbc(result, self.scenario)

    def _insert(self, children: Genomes, found: Places) -> None:
        """Put the children that are good enough into the archive, and into the rows beside it."""
        better = np.flatnonzero(found.objective > self.thresholds()[found.cell])
        if not len(better):
            return
        numbers = self.evaluations + better
        measures = found.measures[better]
        self.archive.add(
            solution=numbers,
            objective=found.objective[better],
            measures=measures,
            performance=found.performance[better],
        )
        _, now = self.archive.retrieve(measures)
        won = np.flatnonzero(now["solution"] == numbers)
        self.elites.put(now["index"][won], children, better[won])

    def thresholds(self) -> np.ndarray:
        """What a child must exceed, per cell: the objective of its elite, -inf without one."""
        now = self.archive.data(["index", "objective"])
        thresholds = np.full(int(self.archive.cells), -np.inf)
        thresholds[now["index"]] = now["objective"]
        return thresholds

    # --- what it leaves behind

    def map(self) -> BehaviourMap:
        """The map as it is after the last generation."""
        elites = self.archive.data(["performance", "measures", "index"])
        order = np.argsort(elites["index"])
        index = elites["index"][order]
        archive = self.archive
        grid = archive.int_to_grid_index(index) if isinstance(archive, GridArchive) else None
        columns = zip(*self._log, strict=True)
        return BehaviourMap(
            descriptor_name=self.options.descriptor,
            cells=index[:, None] if grid is None else grid,
            performance=elites["performance"][order],
            descriptor=elites["measures"][order],
            genomes=self.elites.take(index),
            robots=self.scenario.robots,
            centroids=None if isinstance(archive, GridArchive) else archive.centroids,
            made=self.options.made()
            | {"evaluations": self.evaluations, "refused_mutations": self.refused},
            log=Log(*(np.array(column) for column in columns)),
        )

    @classmethod
    def continued(cls, options: EvolutionOptions, behaviour_map: BehaviourMap) -> "Evolution":
        """The evolution with these options that had come to `behaviour_map`.

        InputError when it cannot have been one of them.
        """
        made = dict(behaviour_map.made)
        evaluations, refused = made.pop("evaluations", None), made.pop("refused_mutations", None)
        _check_made(made, options.made())
        done = range(1, options.generations + 2)
        generation = next((n for n in done if options.evaluations_after(n - 1) == evaluations), 0)
        if not generation or not is_integer(refused) or refused < 0:
            raise InputError("is not of the end of a generation; delete it to start anew")
        if behaviour_map.genomes is None:
            raise InputError("holds no controllers; delete it to start anew")
        evolution = cls(options, centroids=behaviour_map.centroids)
        found = places(evolution.archive, behaviour_map.performance, behaviour_map.descriptor)
        evolution.archive.add(
            solution=np.full(behaviour_map.filled_cells, -1),
            objective=found.objective,
            measures=found.measures,
            performance=found.performance,
        )
        evolution.elites.put(found.cell, behaviour_map.genomes, np.arange(len(found.cell)))
        log = behaviour_map.log
        evolution._log = list(
            zip(*(getattr(log, column.name).tolist() for column in fields(Log)), strict=True)
        )
        evolution.generation = generation
        evolution.refused = refused
        if not np.array_equal(evolution.map().cells, behaviour_map.cells):
            raise InputError("has controllers in cells that are not theirs; delete it")
        return evolution


def _check_made(made: dict[str, Any], expected: dict[str, Any]) -> None:
    """InputError with the first difference between how a map was made and how it should be."""

    def flat(values: dict[str, Any]) -> dict[str, Any]:
        parts = {name: value for name, value in values.items() if not isinstance(value, dict)}
        for name, group in values.items():
            if isinstance(group, dict):
                parts |= {f"{name}: {entry}": value for entry, value in group.items()}
        return parts

    there, here = flat(made), flat(expected)
    for name in here | there:
        if there.get(name) != here.get(name):
            what = name.removeprefix("options: ").replace("versions: ", "version of ")
            raise InputError(
                f"was made with {what} {short(there.get(name))}, not {short(here.get(name))}; "
                "use the same, or another name for the map"
            )


def versions() -> dict[str, str]:
    """Of swarmbo, and of the packages on which the bits of a map depend."""
    return {"swarmbo": __version__} | {name: version(name) for name in ("numpy", "numba", "ribs")}


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let Ctrl-C wait until the block is done."""
    if current_thread() is not main_thread() or signal.getsignal(signal.SIGINT) is None:
        yield  # signals are not ours
        return
    waiting: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: waiting.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if waiting:
        signal.raise_signal(signal.SIGINT)


@contextmanager
def listening() -> Iterator[Callable[[], None]]:
    """Hear Ctrl-C also where Python drops it, in finalisers; the function raises it again."""
    before = signal.getsignal(signal.SIGINT)
    if current_thread() is not main_thread() or not callable(before):
        yield lambda: None  # signals are not ours, or ignored
        return
    heard: list[int] = []

    def hear(number: int, frame: Any) -> None:
        heard.append(number)
        before(number, frame)

    def raise_again() -> None:
        if heard:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, hear)
    try:
        yield raise_again
    finally:
        signal.signal(signal.SIGINT, before)


# --- running -----------------------------------------------------------------------------------


def evolve(
    *,
    evaluations: int,
    descriptor: str = "hbd",
    batch: int = BATCH,
    seed: int = 1,
    device: str = "auto",
    threads: int | None = None,
    progress: Progress | None = None,
) -> BehaviourMap:
    """Evolve a map: 1,000 random controllers, then generations of `batch` children.

    `descriptor` is "hbd" or "sdbc"; `device` is "cpu", "gpu", or "auto" for the
    GPU if there is one. The result does not depend on `threads`. `progress` is
    called with the evolution and the number of its evaluations done so far.
    """
    where = choose_device(device, robots=FORAGING.robots)
    options = EvolutionOptions(
        evaluations=evaluations, descriptor=descriptor, batch=batch, seed=seed, device=where
    )
    evolution = Evolution(options)
    for _ in generations([evolution], threads=threads, progress=progress):
        pass
    return evolution.map()


def generations(
    evolutions: Sequence[Evolution],
    *,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Iterator[Evolution]:
    """Run evolutions to their end; yields each one after each of its generations.

    Those of the CPU run one after the other, those of the GPU at once, with generations
    that are evaluated ahead of time: see `foresight`.
    """
    for evolution in evolutions:
        if evolution.options.device == "cpu":
            yield from _on_cpu(evolution, threads, progress)
    yield from _on_gpu([e for e in evolutions if e.options.device == "gpu"], progress)


def _on_cpu(
    evolution: Evolution, threads: int | None, progress: Progress | None
) -> Iterator[Evolution]:
    features = evolution.options.descriptor == "sdbc"
    while not evolution.finished:
        before = evolution.evaluations

        def done(count: int, before: int = before) -> None:
            if progress is not None:
                progress(evolution, before + count)

        evolution.tell(
            rollout(
                evolution.ask(),
                evolution.scenario,
                threads=threads,
                features=features,
                progress=done,
            )
        )
        yield evolution


def _on_gpu(evolutions: Sequence[Evolution], progress: Progress | None) -> Iterator[Evolution]:
    from swarmbo.engine.gpu import driver as gpu
    from swarmbo.evolution.speculation import foreseen

    features = any(evolution.options.descriptor == "sdbc" for evolution in evolutions)
    for evolution in foreseen(evolutions, partial(gpu.launch, features=features)):
        if progress is not None:
            progress(evolution, evolution.evaluations)
        yield evolution
