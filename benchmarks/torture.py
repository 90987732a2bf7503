"""Kill, damage, forge and fuzz: does anything break that should hold?

    python benchmarks/torture.py                  # some minutes
    python benchmarks/torture.py --scale 10       # ten times as many of each
    python benchmarks/torture.py --scale 0.02     # what CI does
    python benchmarks/torture.py --only kills --seed 7

Every attack is drawn from the seed. The table says how often each was made and what came of
it; any violation is printed, and the exit code is 1 then. docs/reliability.md has the results.
"""

import argparse
import gzip
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from swarmbo import (  # noqa: E402
    Arena,
    BehaviourMap,
    InputError,
    Robot,
    Scenario,
    Swarm,
    bundled_controllers,
    load_map,
)
from swarmbo.adaptation.messages import Message  # noqa: E402
from swarmbo.adaptation.worker import Worker  # noqa: E402
from swarmbo.controller.network import load_controllers  # noqa: E402
from swarmbo.recovery.recovery import recover, replay  # noqa: E402
from swarmbo.study.campaign import run_study  # noqa: E402
from swarmbo.study.definition import load_definition  # noqa: E402
from swarmbo.study.journal import JOURNAL, load_results  # noqa: E402
from swarmbo.study.repair import repair_study  # noqa: E402
from swarmbo.world.disturbance import load_disturbances  # noqa: E402
from swarmbo.world.geometry import body_at  # noqa: E402
from swarmbo.world.poses import load_poses  # noqa: E402

SIZES = {"kills": 142, "files": 47_000, "messages": 15_000, "commands": 1_540, "scenarios": 100}
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path[:2])}
LONGEST = 600  # characters of a sentence
PATIENCE = 60.0  # s
PAUSE = 0.03  # s between commands: a page that sends faster for long is closed


@dataclass
class Attack:
    """What an attack did, and what broke."""

    name: str
    chance: random.Random
    folder: Path
    outcomes: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)

    def check(self, holds: bool, what: str) -> None:
        """Note a violation when something does not hold."""
        if not holds:
            self.violations.append(what)

    def sentence(self, error: InputError, what: str) -> None:
        """Note a violation when the message of an error is no sentence for people."""
        text = str(error)
        self.check("\n" not in text and len(text) <= LONGEST, f"{what}: {text[:200]!r}")
        self.outcomes["refused"] += 1


# --- kills -------------------------------------------------------------------------------------

STUDY = """
maps = ["paper-1"]
evaluations = 3
trials = 2
ticks = 60
[[experiments]]
disturbances = ["proximity", "software-nest"]
learners = ["smbo", "random", "smbo-dec"]
conditions = 3
"""
OFTEN = """
import sys
from swarmbo.cli import main
from swarmbo.evolution import checkpoint
checkpoint.INTERVAL, checkpoint.SHARE = 0.0, 1e9
sys.exit(main(sys.argv[1:]))
"""
EVOLVE = (
    *("evolve", "--out", "mine.map", "--evaluations", "4000", "--batch", "50", "--ticks", "40"),
    *("--device", "cpu", "--resume"),
)
KILLED = {  # commands that are killed, and the file or folder that they leave
    "evolve": (EVOLVE, "mine.map"),
    "study": (("study", "run", "study.toml", "--out", "study", "--device", "cpu"), "study"),
    "simulate": (
        ("simulate", "recorded", "--trials", "2", "--ticks", "60", "--scores", "scores.csv"),
        "scores.csv",
    ),
    "recover": (
        ("recover", "--out", "recovery", "--ticks", "40", "--evaluations", "4", "--device", "cpu"),
        "recovery",
    ),
}


def kills(attack: Attack, count: int) -> None:
    """Commands die by SIGKILL at random moments; begun again, they end as if nothing had been."""
    results = {}
    seconds = {}
    for name in KILLED:
        for folder in (attack.folder / f"{name}-warm", attack.folder / f"{name}-whole"):
            start = time.monotonic()
            code = begin(folder, name).wait()
            seconds[name] = time.monotonic() - start
            results[name] = left_by(folder, name)
            attack.check(code == 0 and results[name] not in (None, BROKEN), f"{name} fails")
    names = list(KILLED)
    runs = 0
    while attack.outcomes["killed"] < count:
        name = names[attack.outcomes["killed"] * len(names) // count]
        runs += 1
        folder = attack.folder / f"{name}-{runs}"
        while attack.outcomes["killed"] < count:
            start = time.monotonic()
            if not killed(attack, folder, name, 1.2 * seconds[name]):
                seconds[name] = min(seconds[name], time.monotonic() - start)
                break
        else:
            begin(folder, name).wait()
        found = left_by(folder, name)
        attack.check(found == results[name], f"{name} {runs} ended otherwise than without kills")
        parts = [path.name for path in folder.rglob(".swarmbo-*")]
        attack.check(not parts, f"{name} {runs} left {parts}")
        attack.outcomes["ended as if never killed"] += found == results[name]


def killed(attack: Attack, folder: Path, name: str, longest: float) -> bool:
    """Begin a command and kill it after a while; whether it was still at work."""
    child = begin(folder, name)
    try:
        child.wait(attack.chance.uniform(0, longest))
    except subprocess.TimeoutExpired:
        child.send_signal(signal.SIGKILL)
    code = child.wait()
    attack.check(code in (0, -signal.SIGKILL), f"{name} ended with {code}: {folder}")
    attack.outcomes["killed"] += code == -signal.SIGKILL
    found = left_by(folder, name)
    attack.check(found is not BROKEN, f"{name} left a broken file behind: {folder}")
    return code == -signal.SIGKILL


def begin(folder: Path, name: str) -> "subprocess.Popen[bytes]":
    """One of the commands, in its folder."""
    folder.mkdir(exist_ok=True)
    (folder / "study.toml").write_text(STUDY)
    return subprocess.Popen(
        [sys.executable, "-c", OFTEN, *KILLED[name][0]],
        cwd=folder,
        env=ENVIRONMENT,
        stdout=subprocess.DEVNULL,
        stderr=(folder / "errors.txt").open("ab"),
    )


BROKEN = object()


def left_by(folder: Path, name: str) -> Any:
    """What a command has left, without times; None for nothing, BROKEN for a part of a file."""
    place = folder / KILLED[name][1]
    try:
        if not place.exists():
            return None
        if name == "evolve":
            return load_map(place).to_bytes()
        if name == "study":
            found = load_results(place)
            return [table.to_csv() for table in (found.runs, found.evaluations, found.references)]
        if name == "recover":
            names = {path.name: path.stat().st_size > 0 for path in place.glob("[!.]*")}
            return names, (place / "recovery.json").read_text()
        return place.read_text() if place.read_text().endswith("\n") else BROKEN
    except InputError as error:
        return None if "has not begun" in str(error) or "holds no study" in str(error) else BROKEN
    except (OSError, ValueError):
        return BROKEN


# --- damaged files -----------------------------------------------------------------------------

TOKENS = [b"1e999", b"-1", b'""', b"null", b"9" * 5000, b"NaN", b"[[[[]]]]", b"{}", b"\xff\xfe"]


def damaged(content: bytes, chance: random.Random) -> bytes:
    """A content with a bit, a span or its end changed."""
    here = chance.randrange(max(1, len(content)))
    there = min(len(content), here + chance.choice([1, 4, 40, 400]))
    match chance.randrange(6):
        case 0:
            return content[:here]
        case 1:
            return content[:here] + content[there:]
        case 2:
            return content[:there] + content[here:]
        case 3:
            return content[:here] + chance.choice(TOKENS) + content[there:]
        case 4:
            return content[:here] + chance.randbytes(there - here) + content[there:]
    flipped = content[here : here + 1] or b"\0"
    return content[:here] + bytes([flipped[0] ^ 1 << chance.randrange(8)]) + content[here + 1 :]


def files(attack: Attack, count: int) -> None:
    """Files with bits flipped, parts missing, doubled or replaced are refused, or are as before."""
    maps = count * 20 // 47
    journals = max(3, count * 3 // 94)
    damage_maps(attack, maps)
    damage_journals(attack, journals)
    damage_texts(attack, count - maps - journals)


def damage_maps(attack: Attack, count: int) -> None:
    """A map with any damage is refused: it has a checksum."""
    path = attack.folder / "damaged.map"
    for name in ("paper-1", "sdbc-1"):
        sound = load_map(name).to_bytes()
        for _ in range(count // 2):
            content = damaged(sound, attack.chance)
            path.write_bytes(content)
            try:
                attack.check(load_map(path).to_bytes() == sound, f"{name}: other content is taken")
                attack.outcomes["as before"] += 1
            except InputError as error:
                attack.sentence(error, name)
            except Exception as error:
                attack.violations.append(f"{name}: {error!r}")


def damage_journals(attack: Attack, count: int) -> None:
    """A journal with a flipped bit or without a page is refused or as before, and repaired."""
    (attack.folder / "study.toml").write_text(STUDY)
    run_study(load_definition(attack.folder / "study.toml"), attack.folder / "sound", device="cpu")
    content = (attack.folder / "sound" / JOURNAL).read_bytes()
    sound = tables(attack.folder / "sound")
    for number in range(count):
        folder = attack.folder / "journal"
        folder.mkdir()
        if number % 20 == 1:
            end = attack.chance.randrange(len(content))
            changed, what = bytearray(content[:end]), f"the journal without what follows {end}"
        elif number % 20:
            bit = attack.chance.randrange(8 * len(content))
            changed = bytearray(content)
            changed[bit // 8] ^= 1 << bit % 8
            what = f"bit {bit} of the journal"
        else:
            page = 4096 * attack.chance.randrange(len(content) // 4096)
            changed = bytearray(content[:page] + bytes(4096) + content[page + 4096 :])
            what = f"the page at {page} of the journal"
        (folder / JOURNAL).write_bytes(changed)
        try:
            attack.check(tables(folder) == sound, f"{what}: other results are taken")
            attack.outcomes["as before"] += 1
        except InputError as error:
            attack.sentence(error, what)
            repair(attack, folder, what, sound[0].count("\n") - 1)
        except Exception as error:
            attack.violations.append(f"{what}: {error!r}")
        shutil.rmtree(folder)


def repair(attack: Attack, folder: Path, what: str, runs: int) -> None:
    """Repair a journal; what is kept can be read."""
    try:
        kept = repair_study(folder)
        attack.check(len(load_results(folder).runs) == kept.runs, f"{what}: not what was kept")
        attack.outcomes["repaired"] += 1
        attack.outcomes["runs lost in repairs"] += runs - kept.runs
    except InputError as error:
        attack.outcomes["beyond repair"] += 1
        attack.check("cannot be had back" in str(error), f"{what}: {error}")
    except Exception as error:
        attack.violations.append(f"{what}, repaired: {error!r}")


def tables(folder: Path) -> list[str]:
    """The results of a study."""
    found = load_results(folder)
    return [table.to_csv() for table in (found.runs, found.evaluations, found.references)]


def damage_texts(attack: Attack, count: int) -> None:
    """Texts that people write are read, or refused in a sentence: nothing else."""
    readers = text_files(attack.folder)
    for number in range(count):
        path, read = readers[number % len(readers)]
        sound = path.read_bytes()
        packed = path.suffix == ".gz"
        changed = damaged(gzip.decompress(sound) if packed else sound, attack.chance)
        if packed and attack.chance.random() < 0.5:
            changed = damaged(sound, attack.chance)
        elif packed:
            changed = gzip.compress(changed, 1)
        place = path.with_name(f"damaged-{path.name}")
        place.write_bytes(changed)
        try:
            read(place)
            attack.outcomes["read"] += 1
        except InputError as error:
            attack.sentence(error, path.name)
        except Exception as error:
            attack.violations.append(f"{path.name}: {error!r}")


def text_files(folder: Path) -> list[tuple[Path, Callable[[Path], object]]]:
    """One file of each kind, with what reads it."""
    controllers = (ROOT / "src/swarmbo/data/example_controllers.json").read_bytes()
    (folder / "controllers.json").write_bytes(controllers)
    (folder / "controllers.json.gz").write_bytes(gzip.compress(controllers))
    (folder / "broken.json").write_text(
        '[{"kind": "proximity", "robots": ["max", "none", "min", "random", "none", "none"]},'
        ' {"kind": "software-food", "robot": 2, "source": 3},'
        ' {"kind": "food-scarcity", "food": [1.8, 1.0, 0.2]}]'
    )
    rows = [
        f"{trial},{robot},{0.5 + robot / 3},{1 + trial},0.5"
        for trial in range(3)
        for robot in range(6)
    ]
    (folder / "poses.csv").write_text("\n".join(["trial,robot,x,y,theta", *rows]) + "\n")
    (folder / "texts.toml").write_text(STUDY)
    recovery = recover(evaluations=2, trials=1, ticks=5, device="cpu").to_json()
    (folder / "recovery.json").write_text(json.dumps(recovery))
    return [
        (folder / "controllers.json", load_controllers),
        (folder / "controllers.json.gz", load_controllers),
        (folder / "broken.json", load_disturbances),
        (folder / "poses.csv", load_poses),
        (folder / "texts.toml", load_definition),
        (folder / "recovery.json", replay),
    ]


# --- hostile messages --------------------------------------------------------------------------

EDGES = [-1, 0, 1, 7, 8, 9, 29, 30, 31, 507, 508, 2**16, 2**31, 2**53, 2**53 + 1, 10**30, None, "1"]
NUMBERS = [0.0, -0.0, 1.0, -3.5, 5.2, 31.0, 1e9, -1e9, 1e300, 1e-300, None, "x", True, 10**400]


def hostile_message(chance: random.Random) -> dict[str, Any]:
    """A message that a sound robot may have sent, or nobody."""
    trials = chance.randrange(9)
    told = trials > 0
    sound: dict[str, Any] = {
        "robot": chance.randrange(6),
        "group": chance.randrange(3),
        "evaluation": chance.randrange(30),
        "cell": chance.randrange(508),
        "trials": trials,
        "estimate": chance.uniform(0, 40) if told else None,
        "noise": chance.uniform(0, 4) if told else None,
    }
    while chance.random() < 0.5:
        name = chance.choice(list(sound))
        sound[name] = chance.choice(NUMBERS if name in ("estimate", "noise") else EDGES)
    return sound


def messages(attack: Attack, count: int) -> None:
    """Equal sets of messages give equal workers, whatever is forged, in bounded memory."""
    behaviour_map = load_map("paper-1")
    rounds = max(1, count // 500)
    tracemalloc.start()
    memories = (None, 20, 3)  # messages that a worker keeps
    for number in range(rounds):
        said = []
        for _ in range(count // rounds):
            attack.outcomes["sent"] += 1
            try:
                said.append(Message.from_json(hostile_message(attack.chance)))
            except InputError as error:
                attack.sentence(error, "a message")
            except Exception as error:
                attack.violations.append(f"a message: {error!r}")
        memory = memories[number % 3]
        workers = [told_in_some_order(attack, behaviour_map, said, memory) for _ in range(3)]
        states = [json.dumps(each.state()) for each in workers]
        attack.check(len(set(states)) == 1, f"round {number}: the order of messages matters")
        bests = {(each.best(), each.best_performance(), each.ask()) for each in workers}
        attack.check(len(bests) == 1, f"round {number}: the order of messages matters to choices")
        largest = workers[0].limits.largest_estimate
        best = workers[0].best_performance()
        attack.check(not best > largest, f"round {number}: {best} is believed")
        attack.outcomes["believed"] += len(workers[0].known)
    flood(attack, behaviour_map, 20 * count)
    tracemalloc.stop()


def told_in_some_order(
    attack: Attack, behaviour_map: BehaviourMap, said: list[Message], memory: int | None
) -> Worker:
    """A worker that has received messages, some twice, in some order."""
    worker = Worker(0, behaviour_map, robots=6, evaluations=30, memory=memory)
    order = said + attack.chance.sample(said, len(said) // 3)
    attack.chance.shuffle(order)
    for message in order:
        try:
            worker.receive(message)
        except InputError as error:
            attack.sentence(error, "a message")
        except Exception as error:
            attack.violations.append(f"{message}: {error!r}")
    return worker


def flood(attack: Attack, behaviour_map: BehaviourMap, count: int) -> None:
    """One sender sends messages about ever more evaluations."""
    worker = Worker(0, behaviour_map)
    before, _ = tracemalloc.get_traced_memory()
    for evaluation in range(count):
        message = Message(1, 0, evaluation, evaluation % 508, 1, 1.0, 0.1)
        try:
            worker.receive(message)
        except InputError:
            attack.outcomes["beyond the limits"] += 1
    grown = tracemalloc.get_traced_memory()[0] - before
    attack.check(grown < 2e7, f"{count} messages of one sender took {grown / 1e6:.0f} MB")
    attack.outcomes["kB after a flood"] = grown // 1000
    worker.ask()


# --- fuzzed play -------------------------------------------------------------------------------

KINDS: dict[str, dict[str, list[Any]]] = {
    "speed": {"factor": [None, 1, 50, 1e6, -1, "fast"]},
    "pause": {"paused": [True, False, 1]},
    "step": {"ticks": [1, 7, 1000, 1001, 1.5]},
    "restart": {"seed": [0, 7, 2**31 - 1, -1], "robots": [6, 12, 6.0, 7]},
    "break": {
        "robot": [0, 5, 11, 12, None],
        "part": ["proximity", "ground", "wheels", "software", "soul"],
        "fault": ["none", "min", "max", "random", "left", "both", "nest", "food"],
    },
    "repair": {"robot": [None, 0, 5, 99]},
    "takefood": {"source": [None, 0, 9, 10], "taken": [True, False]},
    "condition": {"kind": ["proximity", "actuator", "food-scarcity", "x"], "index": [0, 3, 10**5]},
    "learn": {"learner": ["smbo", "smbo-dec", "random", "who"], "evaluations": [1, 3, 30, 10**9]},
    "stop": {},
    "run": {"row": [0, 100, 507, 508, -1], "robot": [None, 0, 5, 6]},
    "putback": {"wanted": [True, False, "no"]},
    "look": {"trial": [0, 7, 8], "rays": [True, False], "robot": [None, 0, 11]},
}
GARBAGE = [
    *("", "{", "[]", "null", '{"type": 1}', '{"type": "stop", "x": NaN}', "\0"),
    *("[" * 900, "x" * 1200),
]


def hostile_command(chance: random.Random) -> str:
    """Something that a page may send, or nobody."""
    if chance.random() < 0.15:
        return chance.choice(GARBAGE)
    kind = chance.choice(list(KINDS))
    values = {name: chance.choice(known) for name, known in KINDS[kind].items()}
    if values and chance.random() < 0.1:
        del values[chance.choice(list(values))]
    return json.dumps({"type": kind, **values})


def commands(attack: Attack, count: int) -> None:
    """A page that sends anything gets answers; it, and new ones, have sound swarms afterwards."""
    from websockets.exceptions import ConnectionClosed
    from websockets.sync.client import connect

    with served() as address:
        origin: Any = address.rstrip("/")
        where = address.replace("http", "ws", 1) + "swarm"
        sent = 0
        while sent < count:
            with connect(where, origin=origin, compression=None, max_size=None) as socket:
                for _ in range(min(220, count - sent)):
                    socket.send(hostile_command(attack.chance))
                    sent += 1
                    time.sleep(PAUSE)
                    read_what_is_there(attack, socket)
                socket.send('{"type": "restart", "seed": 1, "robots": 6}')
                socket.send('{"type": "nothing"}')
                attack.check(answers(attack, socket), f"no answer after {sent} commands")
            with connect(where, origin=origin, compression=None, max_size=None) as socket:
                try:
                    for _ in range(1000):  # without a pause
                        socket.send('{"type": "stop"}')
                    attack.check(not answers(attack, socket), "a page may send without end")
                except ConnectionClosed as error:
                    attack.check("too many messages" in str(error), f"closed: {error}")
                    attack.outcomes["pages closed that sent too fast"] += 1
        attack.outcomes["sent"] = sent


def served() -> Any:
    """The address of a server of play, in a process of its own."""
    from contextlib import contextmanager

    @contextmanager
    def run() -> Iterator[str]:
        arguments = ["-m", "swarmbo", "play", "--port", "0", "--no-browser"]
        child = subprocess.Popen(
            [sys.executable, *arguments], env=ENVIRONMENT, stdout=subprocess.PIPE, text=True
        )
        try:
            assert child.stdout is not None
            line = child.stdout.readline()
            yield next(word for word in line.split() if word.startswith("http"))
        finally:
            child.send_signal(signal.SIGINT)
            if child.wait(PATIENCE) != 130:
                raise RuntimeError("the server of play did not end as it should")

    return run()


def read_what_is_there(attack: Attack, socket: Any, seconds: float = 0.0) -> list[dict[str, Any]]:
    """The messages that have come; each is JSON without NaN."""
    found: list[dict[str, Any]] = []
    while len(found) < 20:  # a swarm in a hurry never falls silent
        try:
            text = socket.recv(timeout=seconds)
        except TimeoutError:
            break
        try:
            message = json.loads(text, parse_constant=lambda name: 1 / 0)
        except (ValueError, ZeroDivisionError):
            attack.violations.append(f"the server said {text[:200]}")
            continue
        if message["type"] == "error":
            attack.outcomes["refused"] += 1
        found.append(message)
    return found


def answers(attack: Attack, socket: Any) -> bool:
    """Whether the server still answers: with what is wrong about the last message."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        for message in read_what_is_there(attack, socket, 0.2):
            if "nothing" in json.dumps(message):
                return True
    return False


# --- extreme scenarios -------------------------------------------------------------------------


def scenarios(attack: Attack, count: int) -> None:
    """Robots and arenas of any size are refused, or stay within the walls with finite poses."""
    team = bundled_controllers("recorded")
    for _ in range(count):
        values = extreme(attack.chance)
        what = f"{values}"
        try:
            scenario = scenario_of(values)
        except InputError as error:
            attack.sentence(error, what)
            continue
        except Exception as error:
            attack.violations.append(f"{what}: {error!r}")
            continue
        try:
            swarm = Swarm(scenario, [attack.chance.choice(team) for _ in range(scenario.robots)])
            swarm.advance(scenario.ticks)
        except InputError as error:
            attack.sentence(error, what)
            attack.outcomes["ended with an error"] += 1
            continue
        except Exception as error:
            attack.violations.append(f"{what}: {error!r}")
            continue
        attack.outcomes["simulated"] += 1
        check_inside(attack, scenario, swarm.poses, what)


def extreme(chance: random.Random) -> dict[str, Any]:
    """Sizes and speeds from a thousandth to a thousand times the usual ones."""
    factor = {name: 10 ** chance.uniform(-3, 3) for name in ("size", "arena", "speed", "mass")}
    if chance.random() < 0.7:  # most refuse each other otherwise
        factor["arena"] = factor["size"] * 10 ** chance.uniform(-0.5, 1)
        factor["speed"] = factor["size"] * 10 ** chance.uniform(-1, 0.4)
    return {
        **factor,
        "friction": 10 ** chance.uniform(-3, chance.choice([0.3, 6])),
        "range": 10 ** chance.uniform(-3, 2),
        "robots": chance.choice([1, 2, 6, 12, 40, 100]),
        "tick": chance.choice([0.2, 0.2, 0.02, 1.0]),
        "substeps": chance.choice([10, 10, 3, 40]),
    }


def scenario_of(values: dict[str, Any]) -> Scenario:
    """The scenario with these values times the usual ones."""
    size, far = values["size"], values["arena"]
    usual = Robot()
    robot = Robot(
        body=tuple((x * size, y * size) for x, y in usual.body),
        wheel_base=usual.wheel_base * size,
        max_speed=usual.max_speed * values["speed"],
        mass=usual.mass * values["mass"],
        friction=usual.friction * values["friction"],
        proximity_range=usual.proximity_range * values["range"],
        proximity_sensors=tuple(
            sensor._replace(x=sensor.x * size, y=sensor.y * size)
            for sensor in usual.proximity_sensors
        ),
    )
    arena = Arena(
        name="extreme",
        width=2.1 * far,
        height=4.2 * far,
        food=((1.3 * far, 1.0 * far, 0.2 * far),),  # type: ignore[arg-type]
        start_x=(0.5 * far, 1.6 * far),
        start_y=(0.5 * far, 3.7 * far),
        nest_depth=0.32 * far,
        square=0.11 * far,
        robots=values["robots"],
        ticks=60,
    )
    return Scenario.draw(
        seed=1, arena=arena, robot=robot, trials=2, tick=values["tick"], substeps=values["substeps"]
    )


def check_inside(attack: Attack, scenario: Scenario, poses: np.ndarray, what: str) -> None:
    """Note a violation when a body is not within the walls, up to a tenth of its radius."""
    attack.check(bool(np.isfinite(poses).all()), f"{what}: poses are not finite")
    body, slack = np.array(scenario.robot.body), scenario.robot.radius / 10
    corners = np.array([body_at(body, pose) for pose in poses.reshape(-1, 3)])
    size = np.array([scenario.arena.width, scenario.arena.height])
    out = max(float((-corners).max()), float((corners - size).max()))
    attack.check(out <= slack, f"{what}: a body is {out:g} m outside the walls")


# --- the table ---------------------------------------------------------------------------------

ATTACKS: dict[str, Callable[[Attack, int], None]] = {
    "kills": kills,
    "files": files,
    "messages": messages,
    "commands": commands,
    "scenarios": scenarios,
}


def main() -> int:
    """Make the attacks; 1 when anything broke."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--scale", type=float, default=1.0, help="of the usual numbers (1)")
    parser.add_argument("--seed", type=int, default=1, help="of all that is random (1)")
    parser.add_argument("--only", choices=ATTACKS, nargs="+", default=list(ATTACKS))
    parser.add_argument("--json", type=Path, help="write the table into a file, too")
    options = parser.parse_args()
    if not 0 < options.scale <= 1000:
        parser.error(f"--scale is {options.scale}; give a number above 0, to 1000")
    # A process in the background of a script ignores Ctrl-C, and so would the server of play.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    screen = Console(highlight=False)
    table = Table("attack", "number", "what came of it", "violations", "seconds")
    rows = {}
    with TemporaryDirectory() as folder:
        for name in options.only:
            place = Path(folder) / name
            place.mkdir()
            attack = Attack(name, random.Random(f"{options.seed} {name}"), place)
            count = max(1, round(SIZES[name] * options.scale))
            screen.print(f"{name}: {count:,} ...")
            start = time.monotonic()
            ATTACKS[name](attack, count)
            seconds = time.monotonic() - start
            for violation in attack.violations[:20]:
                screen.print(f"[bold]VIOLATION[/] {name}: {violation}", soft_wrap=True)
            words = ", ".join(f"{number:,} {what}" for what, number in attack.outcomes.items())
            broke = len(attack.violations)
            screen.print(f"{name}: {words}; {broke:,} violations, {seconds:.0f} s", soft_wrap=True)
            table.add_row(name, f"{count:,}", words, f"{broke:,}", f"{seconds:.0f}")
            rows[name] = {
                "number": count,
                "outcomes": dict(attack.outcomes),
                "violations": attack.violations,
                "seconds": seconds,
            }
    screen.print(table)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    screen.print(f"seed {options.seed}; at most {most:,.0f} MB of memory")
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 1 if any(row["violations"] for row in rows.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
