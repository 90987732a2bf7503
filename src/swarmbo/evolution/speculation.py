"""Generations evaluated ahead of time, so that a few maps keep a GPU busy.

A generation needs the archive after the one before. But few children enter it, so most of
what the next generations will ask for can be told before the results are there: as if
children without a result did not enter. Every result counts only for the very child it
was made for, of the same parent by the same draws; what was foreseen wrongly is evaluated
again. So the map is, bit for bit, that of one generation after the other.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np

from swarmbo.controller.genomes import Genomes
from swarmbo.controller.variation import Variation
from swarmbo.engine.gpu.driver import Job
from swarmbo.engine.rollout import Rollout, default_threads
from swarmbo.evolution.archive import Places
from swarmbo.evolution.emitter import choose_parents, make_children
from swarmbo.evolution.map_elites import Evolution

Array = np.ndarray[Any, np.dtype[Any]]

TEAMS = 16000  # under way at a time, at the most: more take as much longer
FLIGHTS = 3  # launches under way; the host works for one while the others run
THREADS = 4  # of the host; SDBC takes long to find the cells of results
PERIOD = 16  # launches after which it is asked whether to look farther ahead
IDLE = 2500  # teams that a GPU could run in the time for which it waits on latency
MARGIN = 1.05  # by how much another pace must be the better one

NOBODY = np.uint64(0)  # as the identity of an empty cell's elite, or of a parent
UNKNOWN, UNDER_WAY, KNOWN = range(3)


class Results(Protocol):
    """Evaluations under way."""

    def result(self) -> list[Rollout]:
        """The scores, per job; waits for them."""
        ...


Launch = Callable[[Sequence[Job]], Results]


def identity_of(numbers: Array, parents: Array) -> Array:
    """64 bits for each controller, of its number and its parent's identity.

    Of the number alone it could not be: before its parent is known for sure, a child
    may have been foreseen as that of another one.
    """
    word = parents + (numbers.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        word = (word ^ (word >> np.uint64(shift))) * np.uint64(factor)
    return word ^ (word >> np.uint64(31))


class Forecast:
    """An archive as it will most likely be some generations from now.

    `identity`: of the elites, per cell.
    """

    def __init__(self, evolution: Evolution) -> None:
        cells = int(evolution.archive.cells)
        self._evolution = evolution
        self._elites = Genomes.zeros(cells)
        self._thresholds = np.full(cells, -np.inf)
        self.identity = np.full(cells, NOBODY)
        self.generation = 0
        # The archive as it is: identities and numbers of its elites, those of a map that goes on by
        # their cells.
        now = evolution.archive.data(["index", "solution"])
        self._now = np.full(cells, NOBODY)
        self._now[now["index"]] = identity_of(-2 - now["index"], self._now[now["index"]])
        self._numbers = np.full(cells, -1)
        self._numbers[now["index"]] = now["solution"]

    def told(self, first: int, identity: Array) -> None:
        """Note that the archive was told of these children, numbered from `first` on."""
        now = self._evolution.archive.data(["index", "solution"])
        cells, numbers = now["index"], now["solution"]
        new = self._numbers[cells] != numbers
        self._now[cells[new]] = identity[numbers[new] - first]
        self._numbers[cells] = numbers

    def restart(self) -> None:
        """Be the archive as it is now."""
        evolution = self._evolution
        self._elites.put(np.flatnonzero(self._now != self.identity), evolution.elites)
        self._thresholds = evolution.thresholds()
        self.identity = self._now.copy()
        self.generation = evolution.generation

    def parents(self) -> Array:
        """The cells of the parents of the next generation; empty when there are none."""
        options = self._evolution.options
        cells = np.flatnonzero(self.identity != NOBODY)
        before = options.evaluations_after(self.generation - 1)
        count = options.evaluations_after(self.generation) - before if len(cells) else 0
        return cells[choose_parents(options.seed, self.generation, len(cells), count)]

    def children(self, parents: Array, numbers: Array) -> Variation:
        """The children with these numbers in the next generation, of parents in these cells."""
        seed = self._evolution.options.seed
        return make_children(self._elites, parents, seed, self.generation, numbers)

    def go_on(self, plan: "_Plan") -> None:
        """Let those children enter whose results are known to be good enough."""
        cells, rank = plan.places.cell, plan.places.objective
        better = (plan.state == KNOWN) & (rank > self._thresholds[cells])
        for row in np.flatnonzero(better):
            cell = cells[row]
            if rank[row] > self._thresholds[cell]:
                self._thresholds[cell] = rank[row]
                self.identity[cell] = plan.identity[row]
                self._elites.put([cell], plan.made.children, [row])
        self.generation += 1


class _Plan:
    """A generation to come: the children that it will most likely have, and their results."""

    def __init__(self, identity: Array, dimensions: int) -> None:
        count = len(identity)
        self.identity = identity  # of the children
        self.made = Variation(Genomes.zeros(count), np.zeros(count, np.int64))  # if not unknown
        self.state = np.full(count, UNKNOWN)
        self.places = Places(  # of the children that are known
            performance=np.zeros(count),
            measures=np.zeros((count, dimensions)),
            cell=np.zeros(count, int),
            objective=np.zeros(count),
        )

    def make(self, rows: Array, made: Variation) -> None:
        """Note children that are on their way to be evaluated."""
        self.made.children.put(rows, made.children, np.arange(len(rows)))
        self.made.refused[rows] = made.refused
        self.state[rows] = UNDER_WAY

    def expect(self, identity: Array) -> None:
        """Forget the children that are others."""
        other = identity != self.identity
        self.identity = identity
        self.state[other] = UNKNOWN

    def keep(self, evolution: Evolution, rows: Array, identity: Array, result: Rollout) -> None:
        """Note the results of children, if they are still expected."""
        expected = (self.identity[rows] == identity) & (self.state[rows] == UNDER_WAY)
        here = slice(len(rows)) if expected.all() else np.flatnonzero(expected)
        rows = rows[here]
        found = evolution.places(result.take(here))
        for values, new in zip(self.places, found, strict=True):
            values[rows] = new
        self.state[rows] = KNOWN


class Foresight:
    """An evolution whose coming generations are evaluated ahead of time."""

    def __init__(self, evolution: Evolution) -> None:
        self.evolution = evolution
        self._forecast = Forecast(evolution)
        self._plans: dict[int, _Plan] = {}

    def _first(self, generation: int) -> int:
        """The number of the first child of a generation."""
        return self.evolution.options.evaluations_after(generation - 1) if generation else 0

    def _plan(self, parents: Array) -> _Plan:
        """The plan of the forecast's next generation."""
        forecast = self._forecast
        if forecast.generation:
            origin = forecast.identity[parents]
        else:
            origin = np.full(self.evolution.options.initial, NOBODY)
        numbers = self._first(forecast.generation) + np.arange(len(origin))
        identity = identity_of(numbers, origin)
        if forecast.generation not in self._plans:
            dimensions = int(self.evolution.archive.measure_dim)
            self._plans[forecast.generation] = _Plan(identity, dimensions)
        plan = self._plans[forecast.generation]
        plan.expect(identity)
        return plan

    def replay(self) -> Iterator[Evolution]:
        """Go on by the generations whose results are all known; yields after each one."""
        while not self.evolution.finished:
            self._forecast.restart()
            plan = self._plan(self._forecast.parents())
            if not (plan.state == KNOWN).all():
                break
            first = self.evolution.evaluations
            self.evolution.take_in(plan.made, plan.places)
            self._forecast.told(first, plan.identity)
            del self._plans[self.evolution.generation - 1]
            yield self.evolution

    @property
    def known(self) -> int:
        """How many evaluations are done, those for generations to come included."""
        ahead = sum(int((plan.state == KNOWN).sum()) for plan in self._plans.values())
        return self.evolution.evaluations + ahead

    @property
    def due(self) -> int:
        """How many evaluations the next generation takes."""
        evolution = self.evolution
        return evolution.options.evaluations_after(evolution.generation) - evolution.evaluations

    def wanted(self, room: int, depth: int) -> list[tuple[int, Array, Array, Genomes]]:
        """Up to `room` children to evaluate: generations, rows in them, identities, the children.

        Those of the next generation first, then those that later ones will most likely have,
        of so many generations in all.
        """
        found = []
        forecast = self._forecast
        forecast.restart()
        last = min(forecast.generation + depth, self.evolution.options.generations + 1)
        while forecast.generation < last:
            parents = forecast.parents()
            if forecast.generation and not len(parents):
                break
            plan = self._plan(parents)
            rows = np.flatnonzero(plan.state == UNKNOWN)[:room]
            if len(rows):
                if forecast.generation:
                    made = forecast.children(parents[rows], rows)
                else:
                    random = self.evolution.ask().take(rows)
                    made = Variation(random, np.zeros(len(rows), np.int64))
                plan.make(rows, made)
                found.append((forecast.generation, rows, plan.identity[rows], made.children))
                room -= len(rows)
            if not room:
                break
            forecast.go_on(plan)
        return found

    def keep(self, generation: int, rows: Array, identity: Array, result: Rollout) -> None:
        """Take in results of the children with these identities."""
        plan = self._plans.get(generation)
        if plan is not None:
            plan.keep(self.evolution, rows, identity, result)


class _Flight:
    """Children of several generations, and maybe evolutions, that are being evaluated."""

    def __init__(self, coming: Sequence[Foresight], teams: int, depth: int, launch: Launch) -> None:
        self.teams = teams
        self._parts = []
        self._pending: Results | None = None
        jobs = []
        room = teams
        for number, foresight in enumerate(coming):
            share = -(-room // (len(coming) - number))
            for generation, rows, identity, children in foresight.wanted(share, depth):
                self._parts.append((foresight, generation, rows, identity))
                jobs.append((foresight.evolution.scenario, children))
                room -= len(rows)
        if jobs:
            # Launches of one size are the quickest: fill up with copies.
            scenario, children = jobs[-1]
            copies = np.concatenate([np.arange(len(children)), np.zeros(room, int)])
            jobs[-1] = (scenario, children.take(copies))
            self._pending = launch([Job(scenario, children) for scenario, children in jobs])

    def __bool__(self) -> bool:
        return self._pending is not None

    def land(self, threads: ThreadPoolExecutor) -> None:
        """Wait for the results, and hand them over; each part is of another plan."""
        assert self._pending is not None

        waiting = []
        for part, result in zip(self._parts, self._pending.result(), strict=True):
            foresight, generation, rows, identity = part
            waiting.append(threads.submit(foresight.keep, generation, rows, identity, result))
        for kept in waiting:
            kept.result()


class _Pace:
    """How many generations are under way at a time: twice or half as many, by what comes of it."""

    def __init__(self) -> None:
        self.ahead = 1
        self._launches = 0
        self._teams = 0
        self._used = 0

    def note(self, teams: int, used: int, due: int) -> None:
        """Note a launch of so many teams, since which so many more evaluations are known.

        That is fewer where others turn out to be of no use. `due` are the evaluations of
        one generation.
        """
        self._launches += 1
        self._teams += teams
        self._used += used
        if self._launches < PERIOD:
            return
        # With twice as many under way, twice as much turns out to be of no use.
        waste = (1 - self._used / self._teams) / under_way(self.ahead, due)
        speed = {}
        for ahead in (self.ahead, self.ahead * 2, max(1, self.ahead // 2)):
            teams = under_way(ahead, due)
            speed[ahead] = (1 - waste * teams) * teams / (IDLE + teams)
        best = max(speed, key=speed.__getitem__)
        if speed[best] > MARGIN * speed[self.ahead]:
            self.ahead = best
        self._launches = self._teams = self._used = 0


def under_way(ahead: int, due: int) -> int:
    """How many teams are under way with so many generations ahead of `due` evaluations each."""
    return min(TEAMS, ahead * due)


def foreseen(evolutions: Sequence[Evolution], launch: Launch) -> Iterator[Evolution]:
    """Run evolutions to their end by such launches; yields each one after each generation."""
    coming = [Foresight(evolution) for evolution in evolutions if not evolution.finished]
    flights: deque[_Flight] = deque()
    pace = _Pace()
    known = sum(foresight.known for foresight in coming)
    with ThreadPoolExecutor(min(THREADS, default_threads())) as threads:
        while coming:
            due = sum(foresight.due for foresight in coming)
            teams = max(len(coming), -(-under_way(pace.ahead, due) // FLIGHTS))
            depth = 3 * pace.ahead + 1
            while len(flights) < FLIGHTS and (flight := _Flight(coming, teams, depth, launch)):
                flights.append(flight)
            flight = flights.popleft()
            flight.land(threads)
            for foresight in coming:
                yield from foresight.replay()
            before, known = known, sum(foresight.known for foresight in coming)
            pace.note(flight.teams, known - before, due)
            coming = [foresight for foresight in coming if not foresight.evolution.finished]
            known = sum(foresight.known for foresight in coming)
