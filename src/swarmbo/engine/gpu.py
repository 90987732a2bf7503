"""The engine on the GPU: many jobs at once, while the caller goes on.

`launch` queues the work and returns; `Pending.result` waits for it. What
scenarios need lies on the device from one launch to the next.
"""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from swarmbo.engine.gpu_graph import Graph, recorded
from swarmbo.engine.lanes import FEATURES, make_world, noise_keys
from swarmbo.engine.rollout import Rollout
from swarmbo.errors import InputError
from swarmbo.world.scenario import Scenario

if TYPE_CHECKING:
    from swarmbo.controller.genomes import Genomes

MAX_ROBOTS = 32  # a trial's robots are lanes of one warp
WARPS = 4  # of a block
SHARED = 48 * 1024  # bytes of a block
FULL = 8  # warps of a multiprocessor that keep it busy
RESIDENT = 32  # warps that look after contacts, per multiprocessor; one for two trials is enough
SPREAD = 8  # warps per multiprocessor take crowds of a size one by one, as long as that is enough
TOGETHER = 20  # ticks that are queued together
TABLES = 8  # sets of scenarios that stay on the device
ROUND = 32  # connections to which the room per genome is rounded up


@dataclass(frozen=True, eq=False)
class Job:
    """Teams to evaluate in a scenario.

    `teams` has the shape teams x robots: numbers of genomes. Without it every
    genome is a team of its own, all robots alike.
    """

    scenario: Scenario
    genomes: "Genomes"
    teams: np.ndarray | None = None

    def __post_init__(self) -> None:
        robots, genomes = self.scenario.robots, len(self.genomes.hidden)
        if robots > MAX_ROBOTS:
            raise InputError(
                f"the GPU runs swarms of up to {MAX_ROBOTS} robots, not {robots}; use the CPU"
            )
        if self.teams is None:
            teams = np.repeat(np.arange(genomes, dtype=np.int32)[:, None], robots, axis=1)
        else:
            teams = np.asarray(self.teams, dtype=np.int32)
            if teams.ndim != 2 or teams.shape[1] != robots:
                raise InputError(
                    f"teams must have the shape teams x {robots} robots, not {teams.shape}"
                )
            if teams.size and not (teams.min() >= 0 and teams.max() < genomes):
                raise InputError(f"teams must name genomes 0 to {genomes - 1}")
        if not len(teams):
            raise InputError("there are no teams to evaluate; give at least one")
        object.__setattr__(self, "teams", teams)


# --- is there a GPU? ---------------------------------------------------------------------------


def why_not() -> str:
    """Why there is no GPU to use and how to get one, in a sentence; empty when there is one."""
    try:
        from swarmbo.engine.gpu_warp import cuda
    except ImportError:
        return 'the GPU needs numba-cuda; install it with pip install "swarmbo[gpu]"'
    try:
        if cuda.is_available():
            return ""
        reason = "no NVIDIA GPU with a working driver was found"
    except Exception as error:  # whatever a broken driver raises
        reason = (
            f"the GPU does not answer ({str(error).splitlines()[0] if str(error) else error!r})"
        )
    return (
        f"{reason}; on a machine with one, install NVIDIA's driver and "
        'pip install "swarmbo[gpu]", or use the CPU'
    )


def available() -> bool:
    """Whether there is a GPU to use."""
    return not why_not()


# --- scenarios on the device -------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Scene:
    """What the kernel needs of one scenario, on the host."""

    constants: Any
    poses: np.ndarray  # trials x robots x 3
    keys: np.ndarray  # trials x robots x 2
    codes: np.ndarray  # robots x (proximity fault, ground fault, software)
    gains: np.ndarray  # robots x 2
    food: np.ndarray  # discs x 4, see `gpu_senses.over_food`
    body: np.ndarray
    facing: np.ndarray
    sensors: np.ndarray
    per_half_diagonal: float


_scenes: "WeakKeyDictionary[Scenario, _Scene]" = WeakKeyDictionary()


def _scene(scenario: Scenario) -> _Scene:
    scene = _scenes.get(scenario)
    if scene is None:
        scene = _scenes[scenario] = _make_scene(scenario)
    return scene


def _make_scene(scenario: Scenario) -> _Scene:
    from swarmbo.engine.gpu_world import body_table, constants_of, facing_table

    world = make_world(scenario)
    effects = scenario.effects()
    poses = scenario.poses.copy()
    # Headings in (-pi, pi], as everywhere in the engine.
    poses[..., 2] = -((np.pi - poses[..., 2]) % (2 * np.pi) - np.pi)
    keys = noise_keys(scenario.noise_key, scenario.trials, scenario.robots)
    x, y, radius = world.food.T
    points = np.hypot(*np.transpose(world.ground_points)).max()  # m, of a sensor from the centre
    food = np.column_stack([x, y, radius**2, (radius + points + 1e-3) ** 2])
    return _Scene(
        constants=constants_of(world),
        poses=poses,
        keys=keys.transpose(1, 0, 2),
        codes=np.column_stack([effects.proximity, effects.ground, effects.software]),
        gains=effects.wheel_gain,
        food=food,
        body=body_table(world),
        facing=facing_table(world),
        sensors=world.sensors,
        per_half_diagonal=world.per_half_diagonal,
    )


@dataclass(frozen=True, eq=False)
class _Table:
    """The scenarios of a launch, on the device."""

    scenarios: tuple[Scenario, ...]  # kept, so that their addresses stay theirs
    tables: tuple[Any, ...]  # pairs, facing, sensors
    body: Any
    scene: tuple[Any, ...]


_tables: "OrderedDict[tuple[int, ...], _Table]" = OrderedDict()


def _table(scenarios: tuple[Scenario, ...]) -> _Table:
    key = tuple(map(id, scenarios))
    table = _tables.get(key)
    if table is None:
        table = _tables[key] = _make_table(scenarios)
        while len(_tables) > TABLES:
            _tables.popitem(last=False)
    _tables.move_to_end(key)
    return table


def _make_table(scenarios: tuple[Scenario, ...]) -> _Table:
    from swarmbo.engine.gpu_warp import cuda
    from swarmbo.engine.gpu_world import pair_table

    scenes = [_scene(scenario) for scenario in scenarios]
    robots = scenarios[0].robots
    discs = max(1, *(len(scene.food) for scene in scenes))
    food = np.full((len(scenes), discs, 4), -1.0)  # no point is within a negative radius^2
    for row, scene in zip(food, scenes, strict=True):
        row[: len(scene.food)] = scene.food

    def upload(array: Any, kind: type) -> Any:
        return cuda.to_device(np.ascontiguousarray(array, dtype=kind))

    return _Table(
        scenarios=scenarios,
        tables=(
            upload(pair_table(robots), np.uint32),
            upload(scenes[0].facing, np.uint32),
            upload(scenes[0].sensors.ravel(), np.float32),
        ),
        body=upload(scenes[0].body.ravel(), np.float32),
        scene=(
            upload(np.stack([scene.poses for scene in scenes]), np.float64),
            upload(np.stack([scene.keys for scene in scenes]), np.uint32),
            upload(np.stack([scene.codes for scene in scenes]), np.int32),
            upload(np.stack([scene.gains for scene in scenes]), np.float32),
            upload(food, np.float32),
        ),
    )


# --- launches ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Launch:
    """A kernel with its arguments."""

    kernel: Any
    blocks: int
    threads: int
    arguments: tuple[Any, ...]

    @property
    def compiled(self) -> bool:
        """Whether the kernel can be launched without delay."""
        return bool(getattr(self.kernel, "overloads", None))  # there are none in the simulator

    def key(self) -> tuple[Any, ...]:
        """What makes a launch this one: kernel, size, and addresses or values of the arguments."""
        return (id(self.kernel), self.blocks, self.threads, *_keys(self.arguments))

    def queue(self, stream: Any) -> None:
        """Queue the launch."""
        self.kernel[self.blocks, self.threads, stream](*self.arguments)


def _keys(arguments: tuple[Any, ...]) -> Iterator[Any]:
    for argument in arguments:
        if isinstance(argument, tuple):
            yield from _keys(argument)
        elif isinstance(argument, int):
            yield argument
        else:
            yield argument.__cuda_array_interface__["data"][0]
            yield argument.shape


class _Desk:
    """A stream and the memory of a launch, used again by later ones."""

    def __init__(self) -> None:
        from swarmbo.engine.gpu_warp import cuda

        self._cuda = cuda
        self.stream = cuda.stream()
        self._host: dict[str, Any] = {}
        self._device: dict[str, Any] = {}
        self._most: dict[str, int] = {}
        # Launches that were recorded: their keys, themselves (so that their memory stays theirs).
        self._graph: tuple[list[Any], list[_Launch], Graph] | None = None

    def most(self, name: str, value: int) -> int:
        """The largest of the values so far: room that grows need not be found anew each time."""
        self._most[name] = max(value, self._most.get(name, 0))
        return self._most[name]

    def host(self, name: str, shape: tuple[int, ...], kind: type) -> Any:
        """Page-locked memory of the host, from which and to which copies run by themselves."""
        array = self._host.get(name)
        if array is None or array.shape != shape:
            array = self._host[name] = self._cuda.pinned_array(shape, kind)
        return array

    def device(self, name: str, shape: tuple[int, ...], kind: type) -> tuple[Any, bool]:
        """Memory of the device, and whether it is new."""
        array = self._device.get(name)
        fresh = array is None or array.shape != shape
        if fresh:
            self._graph = None  # it would keep the old memory
            array = self._device[name] = self._cuda.device_array(shape, kind)
        return array, fresh

    def upload(self, name: str, array: Any) -> Any:
        """Queue the copy of a page-locked array to the device."""
        there, _ = self.device(name, array.shape, array.dtype)
        there.copy_to_device(array, stream=self.stream)
        return there

    def repeat(self, launches: Sequence["_Launch"], times: int) -> None:
        """Queue the launches, one after the other, so many times."""

        def once() -> None:
            for launch in launches:
                launch.queue(self.stream)

        def many() -> None:
            for _ in range(TOGETHER):
                once()

        # What is not yet compiled cannot be recorded.
        if times >= TOGETHER and all(launch.compiled for launch in launches):
            key = [launch.key() for launch in launches]
            if self._graph is None or self._graph[0] != key:
                self._graph = None
                graph = recorded(self.stream, many)
                if graph is not None:
                    self._graph = (key, list(launches), graph)
            if self._graph is not None:
                for _ in range(times // TOGETHER):
                    self._graph[2].launch()
                times %= TOGETHER
        for _ in range(times):
            once()

    def download(self, name: str, array: Any) -> Any:
        """Queue the copy of a device array to page-locked memory."""
        here = self.host(name, array.shape, array.dtype)
        array.copy_to_host(here, stream=self.stream)
        return here


_LOCK = Lock()  # launches of several threads come one after the other
_idle: list[_Desk] = []


@dataclass
class _Part:
    """One kernel launch: jobs whose scenarios differ only in poses, faults, food and noise."""

    numbers: list[int]  # of the jobs
    jobs: list[Job]
    desk: _Desk
    results: dict[str, Any] = field(default_factory=dict)
    poses: Any = None


class Pending:
    """Work under way on the GPU."""

    def __init__(self, parts: list[_Part], jobs: int) -> None:
        self._parts = parts
        self._jobs = jobs
        self._rollouts: list[Rollout] | None = None

    def result(self) -> list[Rollout]:
        """The scores, a `Rollout` per job; waits for them."""
        if self._rollouts is None:
            rollouts: dict[int, Rollout] = {}
            for part in self._parts:
                part.desk.stream.synchronize()
                rollouts |= dict(zip(part.numbers, _rollouts(part), strict=True))
            self._rollouts = [rollouts[number] for number in range(self._jobs)]
            self._release()
        return self._rollouts

    def poses(self) -> list[np.ndarray]:
        """The poses after the last tick, teams x trials x robots x 3 per job; before `result`."""
        if self._rollouts is not None:
            raise RuntimeError("ask for the poses before the result")
        poses: dict[int, np.ndarray] = {}
        for part in self._parts:
            part.desk.stream.synchronize()
            robots = part.jobs[0].scenario.robots
            everything = part.poses.copy_to_host().reshape(-1, robots, 3)
            for number, job, rows in zip(part.numbers, part.jobs, _rows(part.jobs), strict=True):
                shape = (-1, job.scenario.trials, robots, 3)
                poses[number] = everything[rows].reshape(shape)
        return [poses[number] for number in range(self._jobs)]

    def _release(self) -> None:
        with _LOCK:
            _idle.extend(part.desk for part in self._parts)
        self._parts = []


def _rows(jobs: Sequence[Job]) -> list[slice]:
    """The rows of each job among all trials of a launch."""
    ends = np.cumsum([len(_teams(job)) * job.scenario.trials for job in jobs])
    return [slice(int(a), int(b)) for a, b in zip([0, *ends[:-1]], ends, strict=True)]


def _teams(job: Job) -> np.ndarray:
    assert job.teams is not None
    return job.teams


def _rollouts(part: _Part) -> list[Rollout]:
    results = part.results
    rollouts = []
    for job, rows in zip(part.jobs, _rows(part.jobs), strict=True):
        scenario = job.scenario
        shape = (len(_teams(job)), scenario.trials)
        squares_x, squares_y = scenario.arena.squares
        distance = results["distance"][rows] * _scene(scenario).per_half_diagonal
        rollouts.append(
            Rollout(
                items=results["items"][rows].reshape(*shape, scenario.robots).astype(np.int64),
                uniformity=results["uniformity"][rows].reshape(shape).copy(),
                centre_distance=distance.reshape(shape),
                coverage=results["visited"][rows].reshape(shape) / (squares_x * squares_y),
                features=_features(results, rows, shape, scenario.ticks),
            )
        )
    return rollouts


def _features(
    results: dict[str, Any], rows: slice, shape: tuple[int, int], ticks: int
) -> np.ndarray | None:
    """Means and standard deviations over the ticks, from the sums; as `Swarm.scores` does it."""
    if "features" not in results:
        return None
    mean, square = np.split(results["features"][rows] / ticks, 2, axis=1)
    deviation = np.sqrt(np.maximum(square - mean * mean, 0))
    return np.concatenate([mean, deviation], axis=1).reshape(*shape, -1)


def launch(jobs: Sequence[Job], *, features: bool = False, packing: int | None = None) -> Pending:
    """Begin to evaluate the jobs; returns once the work is queued.

    Jobs whose arena, robot, number of trials and ticks agree share a kernel
    launch. With `features` the results have those on which the descriptor SDBC is
    built. `packing` is the number of trials in a warp, by default as few as fill
    the GPU.
    """
    reason = why_not()
    if reason:
        raise InputError(reason)
    groups: dict[Any, list[int]] = {}
    for number, job in enumerate(jobs):
        scenario = job.scenario
        scene = _scene(scenario)
        key = (scene.constants, scene.sensors.tobytes(), scenario.trials, scenario.ticks)
        groups.setdefault(key, []).append(number)
    with _LOCK:
        parts = [
            _launch(numbers, [jobs[number] for number in numbers], features, packing)
            for numbers in groups.values()
        ]
    return Pending(parts, len(jobs))


def _packing(robots: int, trials: int, total: int) -> int:
    """How many of `total` trials a warp gets: as few as fill the GPU.

    Trials of one team, if possible: they think alike.
    """
    from swarmbo.engine.gpu_warp import LANES

    most = LANES // robots
    fits = [count for count in range(most, most // 2, -1) if trials % count == 0]
    return min(fits[0] if fits else most, -(-total // (FULL * _multiprocessors())))


def _multiprocessors() -> int:
    from swarmbo.engine.gpu_warp import SIMULATED, cuda

    return 1 if SIMULATED else int(cuda.get_current_device().MULTIPROCESSOR_COUNT)


def _state(desk: _Desk, total: int, robots: int) -> tuple[Any, ...]:
    """What the robots and pairs of so many trials keep from tick to tick, and the lists.

    motion, marks; memory of the pairs; per trial the number of its crowd's pairs, these
    pairs, what of them faces the other; lists, their lengths in even and odd ticks; the clock.
    """
    from swarmbo.engine.gpu_layout import KINDS, MEMORY_ROWS, STATE_ROWS, WORDS

    everyone = total * robots
    pairs = max(1, total * (robots * (robots - 1) // 2))
    shapes: dict[str, tuple[tuple[int, ...], type]] = {
        "motion": ((STATE_ROWS, everyone), np.float32),
        "marks": ((everyone,), np.int32),
        "memory": ((MEMORY_ROWS, pairs), np.float32),
        "link_counts": ((total,), np.int32),
        "links": ((pairs,), np.uint32),
        "windows": ((pairs,), np.uint32),
        "lists": ((KINDS, WORDS, everyone), np.uint32),
    }
    arrays = [desk.device(name, shape, kind)[0] for name, (shape, kind) in shapes.items()]
    for name, size in (("counts", (2, KINDS)), ("clock", (2,))):
        start = desk.host(name, size, np.int32)
        start[:] = 0
        arrays.append(desk.upload(name, start))
    return tuple(arrays)


def _launch(numbers: list[int], jobs: list[Job], features: bool, packing: int | None) -> _Part:
    from swarmbo.engine import gpu_ends
    from swarmbo.engine.gpu_layout import KINDS
    from swarmbo.engine.gpu_life import life, shared_bytes
    from swarmbo.engine.gpu_touch import touch
    from swarmbo.engine.gpu_warp import LANES, SIMULATED

    desk = _idle.pop() if _idle else _Desk()
    stream = desk.stream
    scenario = jobs[0].scenario
    robots, trials, ticks = scenario.robots, scenario.trials, scenario.ticks
    scenarios = tuple(dict.fromkeys(job.scenario for job in jobs))
    table = _table(scenarios)
    teams = sum(len(_teams(job)) for job in jobs)
    total = teams * trials

    brain, hidden, first_genome = _send_genomes(desk, jobs)
    scenario_of = desk.host("scenario_of", (teams,), np.int32)
    genome_of = desk.host("genome_of", (teams, robots), np.int32)
    place = 0
    number_of = {scenario: number for number, scenario in enumerate(scenarios)}
    for job in jobs:
        end = place + len(_teams(job))
        scenario_of[place:end] = number_of[job.scenario]
        genome_of[place:end] = _teams(job)
        genome_of[place:end] += first_genome[id(job.genomes)]
        place = end
    which = (desk.upload("scenario_of", scenario_of), desk.upload("genome_of", genome_of))

    constants = _scene(scenario).constants
    squares = constants.squares_x * constants.squares_y
    visits, fresh = desk.device("visits", (total, squares), np.int32)
    if fresh:
        gpu_ends.clear[total, LANES, stream](visits)
    items, _ = desk.device("items", (total, robots), np.int32)
    distances, _ = desk.device("distances", (total, robots), np.float64)
    poses, _ = desk.device("poses", (total * robots, 3), np.float64)
    uniformity, _ = desk.device("uniformity", (total,), np.float64)
    visited, _ = desk.device("visited", (total,), np.int32)
    distance, _ = desk.device("distance", (total,), np.float64)
    out: tuple[Any, ...] = (visits, items, distances, poses)
    if features:
        out = (*out, desk.device("features", (total, 2 * len(FEATURES)), np.float64)[0])
    state = _state(desk, total, robots)
    hidden_of, _ = desk.device("hidden_of", (2, hidden, total * robots), np.float32)

    if packing is None:
        packing = _packing(robots, trials, total)
    packing = min(packing, LANES // robots)
    warps = 1 if SIMULATED else WARPS
    while warps > 1 and warps * shared_bytes(robots, features) > SHARED:
        warps -= 1
    arrays = (which, table.tables, table.scene, brain, out, state, hidden_of)
    lives = _Launch(
        life(constants, warps, features),
        -(-total // (packing * warps)),
        LANES * warps,
        (trials, packing, total, *arrays),
    )
    multiprocessors = _multiprocessors()
    touches = _Launch(
        touch(constants),
        2 if SIMULATED else min(RESIDENT * multiprocessors, -(-total // 2) + KINDS),
        LANES,
        (SPREAD * multiprocessors, table.body, poses, state),
    )
    lives.queue(stream)
    desk.repeat([touches, lives], ticks)
    gpu_ends.score[total, LANES, stream](
        visits, distances, float(ticks * robots), uniformity, visited, distance
    )
    results = {
        "items": desk.download("items", items),
        "uniformity": desk.download("uniformity", uniformity),
        "visited": desk.download("visited", visited),
        "distance": desk.download("distance", distance),
    }
    if features:
        results["features"] = desk.download("features", out[-1])
    return _Part(numbers, jobs, desk, results, poses)


def _send_genomes(desk: _Desk, jobs: list[Job]) -> tuple[tuple[Any, ...], int, dict[int, int]]:
    """Queue the upload and sorting of all genomes.

    Returns the brains on the device, their room for hidden neurons, and
    the number of the first genome of each batch, by the batch's id.
    """
    from swarmbo.engine import gpu_ends

    batches = list({id(job.genomes): job.genomes for job in jobs}.values())
    count = sum(len(batch.hidden) for batch in batches)
    hidden = max(1, *(int(batch.hidden.max(initial=0)) for batch in batches))
    longest = max(1, *(int(batch.count.max(initial=0)) for batch in batches))
    longest = desk.most("connections", -(-longest // ROUND) * ROUND)
    neurons = desk.most("neurons", min(2 + -(-hidden // 8) * 8, gpu_ends.MAX_NEURONS))
    parts = {
        "hidden": ((count,), np.int32),
        "count": ((count,), np.int32),
        "bias": ((count, neurons), np.float64),
        "source": ((count, longest), np.uint8),
        "target": ((count, longest), np.uint8),
        "weight": ((count, longest), np.float64),
    }
    sent = []
    for name, (shape, kind) in parts.items():
        array = desk.host(name, shape, kind)
        place = 0
        for batch in batches:
            rows = getattr(batch, name)
            end = place + len(rows)
            if rows.ndim == 1:
                array[place:end] = rows
            else:
                columns = min(shape[1], rows.shape[1])
                array[place:end, :columns] = rows[:, :columns]
            place = end
        sent.append(desk.upload(name, array))
    brain = (
        desk.device("neurons_of", (count,), np.int32)[0],
        desk.device("starts", (count, neurons + 1), np.int32)[0],
        desk.device("sorted_bias", (count, neurons), np.float64)[0],
        desk.device("sources", (count, longest), np.uint8)[0],
        desk.device("weights", (count, longest), np.float64)[0],
    )
    gpu_ends.pack[-(-count // 64), 64, desk.stream](tuple(sent), brain)
    first = np.cumsum([0] + [len(batch.hidden) for batch in batches])
    return brain, neurons - 2, {id(batch): int(n) for batch, n in zip(batches, first, strict=False)}
