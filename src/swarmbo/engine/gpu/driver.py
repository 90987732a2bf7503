"""The engine on the GPU: many jobs at once, while the caller goes on.

`launch` queues the work and returns; `Pending.result` waits for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from swarmbo.engine.gpu.buffers import Desk, Launch
from swarmbo.engine.gpu.scene import scene_of, table_of
from swarmbo.engine.lanes import FEATURES
from swarmbo.engine.rollout import Rollout
from swarmbo.engine.swarm import OUTSIDE, left_arena
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
ROUND = 32  # connections to which the room per genome is rounded up
MOST = 2**25  # robots in all trials of a launch: 64 hidden neurons each, twice, have 32-bit numbers


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
        from swarmbo.engine.gpu.warp import cuda
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


# --- launches ----------------------------------------------------------------------------------


_LOCK = Lock()  # launches of several threads come one after the other
_idle: list[Desk] = []


@dataclass
class _Part:
    """One kernel launch: jobs whose scenarios differ only in poses, faults, food and noise."""

    numbers: list[int]  # of the jobs
    jobs: list[Job]
    desk: Desk
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
            everything = part.poses.copy_to_host().T.reshape(-1, robots, 3)
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
        distance = results["distance"][rows] * scene_of(scenario).per_half_diagonal
        _check_distances(distance, scenario)
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


def _check_distances(distance: np.ndarray, scenario: Scenario) -> None:
    """InputError when the robots of a trial were, on average, outside the arena, or nowhere.

    Of where they were, only their mean distance to the centre comes back from the GPU, here
    in half diagonals.
    """
    far = 1 + OUTSIDE * scenario.robot.radius / scenario.arena.half_diagonal
    if not (distance <= far).all():
        raise left_arena(scenario, scenario.ticks)


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
    robots = sum(_teams(job).size * job.scenario.trials for job in jobs)
    if robots > MOST:
        raise InputError(
            f"{robots:,} robots, those of all teams and trials, are more than the GPU takes at a "
            f"time; give {MOST:,} at the most"
        )
    reason = why_not()
    if reason:
        raise InputError(reason)
    groups: dict[Any, list[int]] = {}
    for number, job in enumerate(jobs):
        scenario = job.scenario
        scene = scene_of(scenario)
        key = (scene.constants, scene.sensors.tobytes(), scenario.trials, scenario.ticks)
        groups.setdefault(key, []).append(number)
    with _LOCK:
        parts = [
            _launch(numbers, [jobs[number] for number in numbers], features, packing)
            for numbers in groups.values()
        ]
    return Pending(parts, len(jobs))


def _packing(robots: int, total: int) -> int:
    """How many of `total` trials a warp gets: as few as fill the GPU."""
    from swarmbo.engine.gpu.warp import LANES

    return min(LANES // robots, -(-total // (FULL * _multiprocessors())))


def _multiprocessors() -> int:
    from swarmbo.engine.gpu.warp import SIMULATED, cuda

    return 1 if SIMULATED else int(cuda.get_current_device().MULTIPROCESSOR_COUNT)


def _state(desk: Desk, total: int, robots: int) -> tuple[Any, ...]:
    """What the robots and pairs of so many trials keep from tick to tick, and the lists.

    motion, marks; memory of the pairs; per trial the number of its crowd's pairs, these
    pairs, what of them faces the other; lists, their lengths in even and odd ticks; the clock.
    """
    from swarmbo.engine.gpu.layout import KINDS, MEMORY_ROWS, STATE_ROWS, WORDS

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
    from swarmbo.engine.gpu import ends as gpu_ends
    from swarmbo.engine.gpu.layout import KINDS
    from swarmbo.engine.gpu.life import life, shared_bytes
    from swarmbo.engine.gpu.touch import touch
    from swarmbo.engine.gpu.warp import LANES, SIMULATED

    desk = _idle.pop() if _idle else Desk()
    stream = desk.stream
    scenario = jobs[0].scenario
    robots, trials, ticks = scenario.robots, scenario.trials, scenario.ticks
    scenarios = tuple(dict.fromkeys(job.scenario for job in jobs))
    table = table_of(scenarios)
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

    constants = scene_of(scenario).constants
    squares = constants.squares_x * constants.squares_y
    visits, fresh = desk.device("visits", (total, squares), np.int32)
    if fresh:
        gpu_ends.clear[total, LANES, stream](visits)
    items, _ = desk.device("items", (total, robots), np.int32)
    distances, _ = desk.device("distances", (total, robots), np.float64)
    poses, _ = desk.device("poses", (3, total * robots), np.float64)
    uniformity, _ = desk.device("uniformity", (total,), np.float64)
    visited, _ = desk.device("visited", (total,), np.int32)
    distance, _ = desk.device("distance", (total,), np.float64)
    out: tuple[Any, ...] = (visits, items, distances, poses)
    if features:
        out = (*out, desk.device("features", (total, 2 * len(FEATURES)), np.float64)[0])
    state = _state(desk, total, robots)
    hidden_of, _ = desk.device("hidden_of", (hidden * 2 * total * robots,), np.float32)

    if packing is None:
        packing = _packing(robots, total)
    packing = min(packing, LANES // robots)
    warps = 1 if SIMULATED else WARPS
    while warps > 1 and warps * shared_bytes(robots, features) > SHARED:
        warps -= 1
    arrays = (which, table.tables, table.scene, brain, out, state, hidden_of)
    lives = Launch(
        life(constants, warps, features),
        -(-total // (packing * warps)),
        LANES * warps,
        (trials, packing, total, *arrays),
    )
    multiprocessors = _multiprocessors()
    touches = Launch(
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


def _send_genomes(desk: Desk, jobs: list[Job]) -> tuple[tuple[Any, ...], int, dict[int, int]]:
    """Queue the upload and sorting of all genomes.

    Returns the brains on the device, their room for hidden neurons, and
    the number of the first genome of each batch, by the batch's id.
    """
    from swarmbo.engine.gpu import ends as gpu_ends
    from swarmbo.engine.gpu.life import HIDDEN_ROUND

    batches = list({id(job.genomes): job.genomes for job in jobs}.values())
    count = sum(len(batch.hidden) for batch in batches)
    hidden = max(1, *(int(batch.hidden.max(initial=0)) for batch in batches))
    longest = max(1, *(int(batch.count.max(initial=0)) for batch in batches))
    longest = desk.most("connections", -(-longest // ROUND) * ROUND)
    neurons = desk.most("neurons", 2 + -(-hidden // HIDDEN_ROUND) * HIDDEN_ROUND)
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
        neurons,
        desk.device("neurons_of", (count,), np.int32)[0],
        desk.device("starts", (count * (neurons // 2 + 1),), np.uint32)[0],
        desk.device("sorted_bias", (count * neurons,), np.float64)[0],
        desk.device("sources", (count * longest + 1,), np.uint16)[0],
        desk.device("weights", (count * longest * 2,), np.float64)[0],
    )
    gpu_ends.pack[-(-count // 64), 64, desk.stream](tuple(sent), brain)
    first = np.cumsum([0] + [len(batch.hidden) for batch in batches])
    return brain, neurons - 2, {id(batch): int(n) for batch, n in zip(batches, first, strict=False)}
