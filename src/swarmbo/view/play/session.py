"""One page's swarm: it forages in rounds, is broken, and recovers; paced from outside.

A *round* is an evaluation as everywhere in swarmbo: eight trials side by side, of
which the page shows one, each of 120 s (240 s in the 2x arena). Then the robots are
put back to their start poses and the next round begins. A learner that is at work
has each round for one evaluation, exactly as in `swarmbo recover`.
"""

from collections import deque
from collections.abc import Iterable
from time import perf_counter

import numpy as np

from swarmbo.controller.network import Controller
from swarmbo.engine.swarm import Swarm
from swarmbo.errors import InputError
from swarmbo.maps.behaviour_map import BehaviourMap
from swarmbo.paper.conditions import CONDITION_KINDS, conditions
from swarmbo.recovery import runner
from swarmbo.streams import Stream
from swarmbo.view.play import protocol
from swarmbo.view.play.faults import Faults
from swarmbo.view.play.swarm import PlayedSwarm
from swarmbo.view.play.verdict import Evidence, verdict
from swarmbo.world.arena import FORAGING, FORAGING_2X
from swarmbo.world.scenario import Scenario

SAMPLES = 20  # of the live performance in a round
LONGEST = 10_000_000  # ticks after which even a swarm that is left alone is put back
SLICE = 200  # ticks between looks at the clock


class Session:
    """The swarm of one page. `apply` commands, `advance` it, and `report` what is new.

    Nothing here waits or sends; whoever has the session calls it from one thread
    at a time. The same commands at the same ticks give the same swarm.
    """

    def __init__(self, behaviour_map: BehaviourMap, *, seed: int | None = None) -> None:
        self.behaviour_map = behaviour_map
        self.controllers: list[Controller] = behaviour_map.controllers()
        self.paused = False
        self.speed: float | None = 20.0  # times real time; None: as fast as the engine goes
        self.put_back = True
        self.look = protocol.Look()
        self._restart(runner.replicate_of(behaviour_map) if seed is None else seed, 6)

    # --- the world -----------------------------------------------------------------------------

    def _restart(self, seed: int, robots: int) -> None:
        self.seed = seed
        self.arena = FORAGING if robots == FORAGING.robots else FORAGING_2X
        self.faults = Faults(robots)
        self.case = self._make_case()
        self.run: runner.Run | None = None  # the learner, at work or done
        self.learning = False
        self._keeps_found = False  # the robots run what the learner found
        self._before = self._reference()
        self._at_fault: np.ndarray | None = None
        self._now: Evidence | None = None  # of what the robots keep, since the learner ended
        self.rows = [self.case.prior_best] * robots
        self.swarm = PlayedSwarm(self.case.scenario, self._team())
        self.time = 0  # ticks since the restart; those of the swarm begin anew with each round
        self.rounds = 0  # ended
        self._stepping = 0
        self._forget_pace()
        self._clear_news()
        self._delivered = 0.0  # items per robot, mean over the trials, before the present reset
        self._history = deque([0.0], SAMPLES + 1)  # delivered so far, at the last samples
        self._begin_round()
        self._changed("world", "model")

    def _make_case(self) -> runner.Case:
        scenario = Scenario.draw(
            seed=self.seed,
            arena=self.arena,
            disturbances=self.faults.disturbances(self.arena),
        )
        return runner.Case(behaviour_map=self.behaviour_map, scenario=scenario, replicate=self.seed)

    def _reference(self) -> np.ndarray:
        """What the map's best controller delivers in this world: items, trials x robots."""
        scenario = self.case.scenario
        best = self.controllers[self.case.prior_best]
        swarm = Swarm(scenario, [best] * scenario.robots)
        swarm.advance(scenario.ticks)
        return swarm.items

    @property
    def before(self) -> float:
        """What the map's best controller delivers in the healthy swarm, in items per robot."""
        return runner.per_robot(self._before)

    @property
    def at_fault(self) -> float | None:
        """The same with what is broken; None when nothing is."""
        return None if self._at_fault is None else runner.per_robot(self._at_fault)

    @property
    def verdict(self) -> str | None:
        """What the learner has brought, while the robots keep what it found."""
        if self.run is None or not self._keeps_found:
            return None
        at_fault = None if self._at_fault is None else Evidence.of(self._at_fault)
        done = len(self.run.done)
        return verdict(self.run.name, Evidence.of(self._before), at_fault, self._now, done)

    @property
    def robots(self) -> int:
        """How many robots the swarm has."""
        return self.faults.robots

    @property
    def round_ticks(self) -> int:
        """The length of a round in ticks."""
        return self.case.scenario.ticks

    @property
    def round_tick(self) -> int:
        """Ticks of the present round so far."""
        return self.swarm.tick - self._round_start

    @property
    def tick_seconds(self) -> float:
        """The length of a tick in seconds."""
        return self.case.scenario.tick

    def _team(self) -> list[Controller]:
        return [self.controllers[row] for row in self.rows]

    # --- running -------------------------------------------------------------------------------

    def advance(self, ticks: int, *, until: float = float("inf")) -> int:
        """Run for so many ticks, or until the clock (`perf_counter`) says so; how many it were."""
        done = 0
        while done < ticks and (done == 0 or perf_counter() < until):
            sample = max(1, self.round_ticks // SAMPLES)
            next_sample = sample - self.round_tick % sample
            now = min(ticks - done, SLICE, next_sample, self.round_ticks - self.round_tick)
            self.swarm.advance(now)
            self.time += now
            done += now
            if self.round_tick % sample == 0:
                self._sample()
            if self.round_tick == self.round_ticks:
                self._end_round()
        return done

    def _sample(self) -> None:
        """Note the items per robot that were delivered within the last round's length."""
        self._history.append(self._delivered + runner.per_robot(self.swarm.items))
        if len(self._history) == self._history.maxlen:
            self.samples.append((self.clock, self._history[-1] - self._history[0]))

    @property
    def clock(self) -> float:
        """The time since the restart, in rounds."""
        return self.time / self.round_ticks

    def _begin_round(self) -> None:
        """Put the robots back, unless they are to be left alone.

        The noise is that of the corresponding evaluation of `swarmbo recover`: the
        replicate's, except while a decentralised learner works and after it.
        """
        scenario = self.case.scenario
        if self.run is not None and self.learning:
            asked = self.run.ask()
            self._set_rows(asked.team)
            scenario = asked.scenario
        elif self.run is not None and self._keeps_found:
            composed = self.run.composed()
            scenario = scenario if composed is None else composed.scenario
        if self.put_back or self.time == 0 or self.swarm.tick > LONGEST:
            self._delivered += runner.per_robot(self.swarm.items)
            self.swarm.reset(scenario.poses, scenario.noise_key)
        self._round_start = self.swarm.tick
        self._round_items = self.swarm.items
        self._is_whole = True  # nothing has changed since the round began

    def _end_round(self) -> None:
        items = self.swarm.items - self._round_items
        self.rounds += 1
        best = None
        if self.learning:
            assert self.run is not None
            self.run.tell(items)
            best = self.run.best
            self._changed("model")
        if self._is_whole:
            self.ended.append((self.clock, runner.per_robot(items), best))
            if self._keeps_found:
                self._now = Evidence.of(items) if self._now is None else self._now.and_then(items)
                self._changed()
        if self.learning and self.run is not None and self.run.finished:
            self._finish_learning()
        self._begin_round()

    # --- learning ------------------------------------------------------------------------------

    def _learn(self, name: str, evaluations: int, because: str = "") -> None:
        evaluations = min(evaluations, runner.most_evaluations(self.case, name, {}))
        run = runner.Run(self.case, name, evaluations=evaluations, seed=1)
        self.run, self.learning, self._keeps_found = run, True, False
        self._mark("learner", f"{name} begins anew: {because}" if because else f"{name} starts")
        self._begin_round()
        self._changed("model")

    def _finish_learning(self) -> None:
        """Go on with the best controllers that are known."""
        assert self.run is not None
        self.learning = False
        what = "is done" if self.run.finished else "is stopped"
        if self.run.done:
            self._keeps_found, self._now = True, None
            self._set_rows(self.run.final_team())
            self._mark("end", f"{self.run.name} {what}: each robot keeps its best controller")
        else:
            self._mark("end", f"{self.run.name} {what} before its first evaluation")
        self._is_whole = False
        self._changed("model")

    def _stop_learning(self) -> None:
        if self.learning:
            self._finish_learning()
            self._begin_round()

    def _set_rows(self, rows: Iterable[int]) -> None:
        self.rows = list(rows)
        self.swarm.team = self._team()

    def predictions(self, robot: int | None) -> tuple[np.ndarray, np.ndarray] | None:
        """Per cell the mean and deviation that a robot's learner expects, in items per robot.

        None without a learner, or when it has no model, or the robot no learner.
        """
        run = self.run
        if run is None or run.name in ("random", "gradient-ascent", "random-no-sharing"):
            return None
        who: tuple[int, ...] = ()
        if not run.centralised:
            if robot is None or robot not in run.workers:
                robot = run.workers[0]
            who = (robot,)
        cells = range(self.behaviour_map.filled_cells)
        pairs = np.array([run.learner.predict(*who, cell) for cell in cells])
        return pairs[:, 0] / run.factor, pairs[:, 1] / run.factor

    def expected(self, robot: int) -> tuple[float, float | None] | None:
        """Mean and deviation that a robot expects of what it runs now, in items per robot."""
        run = self.run
        if run is None or not (self.learning or self._keeps_found):
            return None
        if run.centralised:
            mean, deviation = run.learner.predict(self.rows[robot])
        elif robot in run.workers:
            mean, deviation = run.learner.predict(robot, self.rows[robot])
        else:
            return None
        spread = None if np.isnan(deviation) else float(deviation) / run.factor
        return float(mean) / run.factor, spread

    # --- commands ------------------------------------------------------------------------------

    def apply(self, command: protocol.Command) -> None:
        """Do what the page asks for; InputError when that cannot be, and nothing has changed."""
        match command:
            case protocol.Speed(factor):
                self.speed = factor
                self._forget_pace()
            case protocol.Pause(paused):
                self.paused = paused
                self._forget_pace()
            case protocol.Step(ticks):
                self.paused = True
                self._stepping += ticks
            case protocol.Restart(seed, robots):
                self._restart(seed, robots)
            case protocol.Learn(name, evaluations):
                self._learn(name, evaluations)
            case protocol.Stop():
                self._stop_learning()
            case protocol.PutBack(wanted):
                self.put_back = wanted
            case protocol.Look():
                self._check_robot(command.robot)
                self.look = command
                self._changed("model")
            case protocol.Run(row, robot):
                self._run_row(row, robot)
            case _:
                self._break(command)
        self._changed()

    def _check_robot(self, robot: int | None) -> None:
        if robot is not None and robot >= self.robots:
            raise InputError(f"there is no robot {robot}; name one of 0 to {self.robots - 1}")

    def _run_row(self, row: int, robot: int | None) -> None:
        self._check_robot(robot)
        cells = self.behaviour_map.filled_cells
        if row >= cells:
            raise InputError(f"there is no row {row}; name one of 0 to {cells - 1}")
        self.learning = self._keeps_found = False
        self._set_rows(
            row if robot in (None, number) else old for number, old in enumerate(self.rows)
        )
        self._is_whole = False
        who = "all robots" if robot is None else f"robot {robot}"
        self._mark("cell", f"{who}: another controller")

    def _break(self, command: protocol.Command) -> None:
        """Change what is broken; when that is impossible, all stays as it was."""
        before = self.faults.copy()
        case = self.case
        try:
            words = self._change_faults(command)
            if self.faults == before:
                return
            self.case = self._make_case()
            self._move_software_faults(before)
        except InputError:
            self.faults, self.case = before, case
            raise
        self.swarm.disturbances = self.case.scenario.disturbances
        broken = bool(self.case.scenario.disturbances)
        self._at_fault = self._reference() if broken else None
        self._keeps_found = False  # the learner's case is another one
        self._is_whole = False
        self._mark("fault" if broken else "repair", words)
        if self.learning:
            assert self.run is not None
            try:
                self._learn(self.run.name, self.run.evaluations, words)
            except InputError:  # nobody is left who could adapt
                self.learning = False
                self._mark("end", f"{self.run.name} ends: nobody is left who could adapt")

    def _change_faults(self, command: protocol.Command) -> str:
        """Enter a command into the list of what is broken; what happened, in words."""
        faults = self.faults
        match command:
            case protocol.Break(robot, part, fault):
                self._check_robot(robot)
                if part == "software":
                    faults.stuck_on.pop(robot, None)
                getattr(faults, part)[robot] = fault
                if fault == "food":
                    faults.stuck_on[robot] = self._nearest_free_food(robot)
                return f"robot {robot}: {part} {fault}"
            case protocol.Repair(None):
                self.faults = Faults(self.robots)
                return "everything is repaired"
            case protocol.Repair(int() as robot):
                self._check_robot(robot)
                faults.repair(robot)
                return f"robot {robot} is repaired"
            case protocol.TakeFood(None, taken):
                faults.scarce = None
                faults.taken = set(range(len(self.arena.food))) if taken else set()
                return "all food is taken away" if taken else "all food is back"
            case protocol.TakeFood(int() as source, taken):
                sources = len(faults.food(self.arena))
                if source >= sources:
                    raise InputError(f"there is no food {source}; name one of 0 to {sources - 1}")
                (faults.taken.add if taken else faults.taken.discard)(source)
                return f"food {source} is {'taken away' if taken else 'back'}"
            case protocol.Condition(kind, index):
                return self._enter_condition(kind, index)
        raise AssertionError(command)

    def _nearest_free_food(self, robot: int) -> int:
        """The food source nearest to a robot on which no other one is stuck."""
        food = np.array(self.arena.food)
        where = self.swarm.poses[self.look.trial, robot, :2]
        distance = np.hypot(*(food[:, :2] - where).T)
        distance[list(self.faults.stuck_on.values())] = np.inf
        if np.isinf(distance).all():
            raise InputError("there is a robot on every food source; free one of these")
        return int(distance.argmin())

    def _enter_condition(self, kind: str, index: int) -> str:
        name = kind if self.arena is FORAGING else f"{kind}-2x"
        if name not in CONDITION_KINDS:
            if not kind.startswith("software"):
                raise InputError(f"{kind} is drawn for 6 robots only; restart with 6 robots")
            name = kind
        drawn = conditions(name, self.seed)
        self.faults = Faults.of(drawn[index % len(drawn)], self.robots)
        return f"{name}:{index % len(drawn)}"

    def _move_software_faults(self, before: Faults) -> None:
        """Put robots whose software has just broken where it breaks."""
        for robot in range(self.robots):
            fault = self.faults.software_fault(robot)
            if fault is not None and fault != before.software_fault(robot):
                self.swarm.put(robot, fault, Stream("play", fault.kind, self.seed, self.time))

    # --- pace ----------------------------------------------------------------------------------

    def _forget_pace(self) -> None:
        self._owed = 0.0  # ticks
        self.pace = 0.0  # measured, times real time

    def turn(self, seconds: float, *, until: float) -> None:
        """Run for what a time is worth at the present speed; not beyond `until`, and no debts.

        `until` is a moment of `perf_counter`.
        """
        ticks = 0
        if self._stepping:
            ticks = self.advance(self._stepping, until=until)
            self._stepping -= ticks
            return
        if self.paused:
            return
        if self.speed is None:
            ticks = self.advance(LONGEST, until=until)
        else:
            self._owed += seconds * self.speed / self.tick_seconds
            whole = int(self._owed)
            ticks = self.advance(whole, until=until) if whole else 0
            self._owed = self._owed - ticks if ticks == whole else 0.0
        if seconds > 0:
            now = ticks * self.tick_seconds / seconds
            weight = min(1.0, seconds / 0.5)
            self.pace = now if self.pace == 0 else self.pace + weight * (now - self.pace)

    @property
    def interval(self) -> float:
        """Seconds between two pictures: 1/30, or a tick where that takes longer."""
        if self.speed is None:
            return 1 / 30
        return max(1 / 30, self.tick_seconds / self.speed)

    @property
    def is_busy(self) -> bool:
        """Whether time matters now."""
        return not self.paused or self._stepping > 0

    # --- what is new ---------------------------------------------------------------------------

    def _clear_news(self) -> None:
        self.news: set[str] = set()  # of "world", "state", "model"
        self.samples: list[tuple[float, float]] = []  # clock, items per robot in a round's length
        self.ended: list[tuple[float, float, float | None]] = []  # clock, items per robot, best
        self.marks: list[tuple[float, str, str]] = []  # clock, kind, words

    def _mark(self, kind: str, words: str) -> None:
        self.marks.append((self.clock, kind, words))
        self._changed()

    def _changed(self, *what: str) -> None:
        self.news.update(("state", *what))
