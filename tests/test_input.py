"""Bad input: one sentence that names the file and the place, exit code 2, nothing written."""

import gzip
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from swarmbo import InputError, recover
from swarmbo.controller.network import load_controllers, load_teams
from swarmbo.study.campaign import run_study
from swarmbo.study.definition import load_definition
from swarmbo.view.footage import load_footage
from swarmbo.world.disturbance import load_disturbances
from tests.command import Outcome, swarmbo
from tests.studies import STUDY, write_study

CONTROLLER: dict[str, Any] = {"hidden": 1, "bias": [0, 0, 0], "connections": [[0, 12, 1.0]]}
POSES = [(0, 0, 1.0, 1.0, 0.0), (0, 1, 1.0, 2.0, 0.0), (1, 0, 1.0, 1.0, 1.0), (1, 1, 0.5, 2.0, 2.0)]


class Case(NamedTuple):
    """Files with something wrong, and what the complaint must say."""

    name: str
    files: dict[str, str | bytes]
    options: list[str]
    words: list[str]


def wrong_controller(name: str, change: dict[str, Any], *words: str) -> Case:
    """A file whose second controller is wrong."""
    text = json.dumps([CONTROLLER, CONTROLLER | change])
    options = ["bad.json"]
    return Case(name, {"bad.json": text}, options, ["bad.json: controller 1: ", *words])


def wrong_poses(name: str, rows: list[Any], *words: str, header: str = "") -> Case:
    """A file with wrong start poses."""
    lines = [header or "trial,robot,x,y,theta", *(",".join(map(str, row)) for row in rows)]
    options = ["good.json", "--poses", "bad.csv"]
    return Case(name, {"bad.csv": "\n".join(lines) + "\n"}, options, ["bad.csv: ", *words])


def wrong_json(option: str, name: str, text: str | bytes, *words: str) -> Case:
    """A wrong file of teams or disturbances."""
    options = ["good.json", option, "bad.json"]
    return Case(f"{option} {name}", {"bad.json": text}, options, ["bad.json: ", *words])


def wrong_options(name: str, options: str, *words: str) -> Case:
    """Options that cannot be used; example controllers unless named."""
    return Case(name, {}, options.split(), list(words))


FAULTS = json.dumps({"kind": "proximity", "robots": ["none"] * 5 + ["mad"]})

CASES = [
    wrong_options("controllers missing", "nowhere.json", "nowhere.json: there is no such file"),
    wrong_options("controllers a folder", ".", ".: is a folder"),
    Case("not JSON", {"bad.json": "[{"}, ["bad.json"], ["bad.json: is not JSON (line 1, column 3"]),
    Case(
        "cut gzip", {"b.json.gz": gzip.compress(b"[]")[:-6]}, ["b.json.gz"], ["b.json.gz: is not"]
    ),
    Case("no gzip", {"b.json.gz": b"[]"}, ["b.json.gz"], ["b.json.gz: is not a gzip file"]),
    Case("not text", {"bad.json": b"\xff\xfe["}, ["bad.json"], ["bad.json: byte 0 is not UTF-8"]),
    Case("too deep", {"bad.json": "[" * 10**5}, ["bad.json"], ["bad.json: is nested too deeply"]),
    Case("empty list", {"bad.json": "[]"}, ["bad.json"], ["bad.json: must hold a non-empty list"]),
    Case("an object", {"bad.json": "{}"}, ["bad.json"], ["bad.json: must hold a non-empty list"]),
    Case(
        "NaN",
        {"bad.json": json.dumps([CONTROLLER | {"bias": [0, 0, float("nan")]}])},
        ["bad.json"],
        ["bad.json: holds NaN", "finite number"],
    ),
    Case(
        "too large",
        {"bad.json": '[{"hidden": 0, "bias": [0, 1e999], "connections": []}]'},
        ["bad.json"],
        ["bad.json: controller 0: bias 1 is inf"],
    ),
    wrong_controller("into an input", {"connections": [[12, 3, 1]]}, "connection 0", "an input"),
    wrong_controller("out of output", {"connections": [[10, 12, 1]]}, "connection 0", "an output"),
    wrong_controller("twice", {"connections": [[0, 10, 1], [0, 10, 2]]}, "connection 1", "twice"),
    wrong_controller("no neuron", {"connections": [[0, 13, 1]]}, "connection 0", "0 to 12"),
    wrong_controller("biases", {"bias": [0, 0]}, "has 2 biases", "give 3"),
    wrong_controller("field", {"weights": []}, "unknown field 'weights'"),
    wrong_options("poses missing", "good.json --poses no.csv", "no.csv: there is no such file"),
    wrong_poses("nothing", [], "holds no poses"),
    wrong_poses("no column", POSES, "the column theta is missing", header="trial,robot,x,y,angle"),
    wrong_poses(
        "column twice",
        [(*row, 0) for row in POSES],
        "the column x is twice",
        header="trial,robot,x,y,theta,x",
    ),
    wrong_poses("robot missing", POSES[:3], "robot 1 is missing in trial 1"),
    wrong_poses("robot twice", [*POSES, POSES[0]], "lines 2 and 6", "robot 0 in trial 0"),
    wrong_poses("trials from 1", [(t + 1, *row) for t, *row in POSES], "trial 0 is missing"),
    wrong_poses("robot gap", [(t, 2 * r, *row) for t, r, *row in POSES], "robot 1 is missing"),
    wrong_poses("NaN", [*POSES[:3], (1, 1, "nan", 2, 2)], "line 5: x is 'nan'"),
    wrong_poses("empty cell", [*POSES[:3], (1, 1, 0.5, "", 2)], "line 5: y is ''"),
    wrong_poses("a word", [*POSES[:3], (1, 1, 0.5, 2, "left")], "line 5: theta is 'left'"),
    wrong_poses("half a robot", [*POSES[:3], (1, 0.5, 0.5, 2, 0)], "line 5: robot is '0.5'"),
    wrong_poses("short line", [*POSES[:3], (1, 1, 0.5)], "line 5 has 3 cells; give 5"),
    wrong_poses("outside", [*POSES[:3], (1, 1, 2.2, 2, 2)], "trial 1, robot 1", "inside the walls"),
    wrong_poses("into a wall", [*POSES[:3], (1, 1, 0.05, 2, 0)], "trial 1, robot 1", "walls"),
    wrong_poses("one place", [*POSES[:3], (1, 1, 1.05, 1.05, 0)], "trial 1", "robots 0 and 1"),
    wrong_json("--teams", "not JSON", "[[0, 0", "is not JSON"),
    wrong_json("--teams", "empty", "[]", "non-empty list of teams"),
    wrong_json("--teams", "too small", "[[0, 0, 0, 0, 0]]", "team 0 names 5 controllers; give 6"),
    wrong_json("--teams", "no controller", "[[0, 0, 0, 0, 0, 1]]", "team 0, robot 5", "0 to 0"),
    wrong_json("--teams", "not numbers", '[["a", 0, 0, 0, 0, 0]]', "team 0, robot 0"),
    wrong_json("--teams", "not lists", "[0]", "team 0 is 0"),
    wrong_json("--disturbance", "not JSON", "{", "is not JSON"),
    wrong_json("--disturbance", "unknown kind", '{"kind": "rust"}', "unknown disturbance 'rust'"),
    wrong_json("--disturbance", "unknown fault", FAULTS, "robot 5 has the unknown fault 'mad'"),
    wrong_json("--disturbance", "few robots", '{"kind": "ground", "robots": ["min"]}', "1 robots"),
    wrong_json("--disturbance", "no robot", '{"kind": "software-nest", "robot": 6}', "robot 6"),
    wrong_json(
        "--disturbance",
        "no source",
        '{"kind": "software-food", "robot": 0, "source": 10}',
        "source is 10",
    ),
    wrong_json("--disturbance", "no food", '{"kind": "food-scarcity", "food": [1, 1]}', "radius"),
    wrong_json(
        "--disturbance",
        "one place",
        '[{"kind": "software-food", "robot": 0}, {"kind": "software-food", "robot": 1}]',
        "robot 1 where another one stands",
    ),
    wrong_options("no condition", "good.json --disturbance proximity:20", "proximity:0 to"),
    wrong_options("no index", "good.json --disturbance proximity:x", "proximity:0 to"),
    wrong_options("no kind", "good.json --disturbance rust:0", "'rust:0'", "proximity, ground"),
    wrong_options("no fault file", "good.json --disturbance no.json", "'no.json'"),
    wrong_options("2x arena", "good.json --disturbance proximity-2x:0 --arena foraging", "--arena"),
    wrong_options(
        "2x robots", "good.json --disturbance food-scarcity-2x:0 --robots 6", "12 robots"
    ),
    wrong_options("2x poses", "good.json --disturbance food-scarcity-2x:0 --poses good.csv", "12"),
    wrong_options("robots", "good.json --disturbance proximity:0 --robots 5", "lists 6 robots"),
    wrong_options("poses and robots", "good.json --poses good.csv --robots 3", "--robots is 3"),
    wrong_options("poses and trials", "good.json --poses good.csv --trials 3", "--trials is 3"),
    wrong_options("no arena", "good.json --arena mars", "'mars'", "foraging, foraging-2x"),
    wrong_options("no room", "good.json --robots 300 --trials 1", "no room for 300 robots"),
    wrong_options("no robots", "good.json --robots 0", "'--robots'"),
    wrong_options("many robots", "good.json --robots 200000000", "from 1 to 16,777,216"),
    wrong_options("too many robots", "good.json --robots 99999999999999999999", "16,777,216"),
    wrong_options("robots that lack memory", "good.json --robots 250 --trials 10000", "memory"),
    wrong_options("too many trials", "good.json --trials 99999999999999999999", "from 1 to 10,000"),
    wrong_options("no trials", "good.json --trials 0", "'--trials'"),
    wrong_options("no ticks", "good.json --ticks 0", "'--ticks'"),
    wrong_options("too many ticks", "good.json --ticks 99999999999999999999", "ticks"),
    wrong_options("half a tick", "good.json --ticks 0.5", "'--ticks'"),
    wrong_options("no threads", "good.json --threads 0", "'--threads'"),
    wrong_options("negative seed", "good.json --seed -1", "'--seed'"),
    wrong_options("unknown option", "good.json --speed 9", "--speed"),
    wrong_options("two files", "good.json good.json", "good.json"),
    wrong_options("no folder", "good.json --scores no/s.csv", "no/s.csv: the folder", "make it"),
    wrong_options("folder as file", "good.json --trace .", ".: is a folder"),
    wrong_options("device as file", "good.json --scores /dev/null", "/dev/null: is not a plain"),
    wrong_options("one output", "good.json --scores a --trace ./a", "named for two purposes"),
    wrong_options("input as output", "good.json --scores good.json", "good.json: is named for two"),
]


def contents(folder: Path) -> dict[str, bytes]:
    """All files of a folder."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_bad_input_of_simulate(
    case: Case,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    good_poses = ["trial,robot,x,y,theta", *(",".join(map(str, row)) for row in POSES)]
    files = {"good.json": json.dumps([CONTROLLER]), "good.csv": "\n".join(good_poses)} | case.files
    for name, content in files.items():
        Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    before = contents(tmp_path)
    outputs = [] if {"--scores", "--trace"} & set(case.options) else ["--scores", "scores.csv"]
    outcome = swarmbo(capsys, "simulate", *case.options, *outputs)
    assert outcome.code == 2
    assert outcome.stdout == ""
    assert outcome.stderr.startswith("swarmbo: ")
    assert outcome.stderr.count("\n") == 1
    for words in case.words:
        assert words in outcome.stderr
    assert contents(tmp_path) == before


def test_good_files_of_these_tests_are_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("good.json").write_text(json.dumps([CONTROLLER]))
    rows = ["trial,robot,x,y,theta", *(",".join(map(str, row)) for row in POSES)]
    Path("good.csv").write_text("\n".join(rows))
    outcome = swarmbo(capsys, "simulate", "good.json", "--poses", "good.csv", "--ticks", 2)
    assert (outcome.code, outcome.stderr) == (0, "")


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ("--device abacus", "'abacus'"),
        ("--repeats 4", "'--repeats'"),
        ("--threads 0", "'--threads'"),
        ("example", "example"),
    ],
)
def test_bad_input_of_bench(options: str, word: str, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = swarmbo(capsys, "bench", *options.split())
    assert (outcome.code, outcome.stdout) == (2, "")
    assert word in outcome.stderr
    assert outcome.stderr.count("\n") == 1


def test_lack_of_memory_is_said_in_a_sentence(tmp_path: Path) -> None:
    """Where 256 MiB more than the program itself are too much, whatever asks for them."""
    code = (
        "import sys, resource, swarmbo.engine.cpu.driver, swarmbo.engine.gpu.driver;"
        "import swarmbo.cli.app;"
        "from swarmbo.cli import main;"
        "import swarmbo.world.memory as memory;"
        "pages = int(open('/proc/self/statm').read().split()[0]);"
        "limit = pages * resource.getpagesize() + 2**28;"
        "resource.setrlimit(resource.RLIMIT_AS, (limit, limit));"
        "memory.free_memory = lambda: None;"  # as on a system that does not tell
        "sys.exit(main(['simulate', 'example', '--robots', '100', '--trials', '1000']))"
    )
    options: dict[str, Any] = {"capture_output": True, "text": True, "cwd": tmp_path}
    ended = subprocess.run([sys.executable, "-c", code], timeout=300, **options)
    assert ended.returncode == 1
    assert "not enough memory" in ended.stderr
    assert "Traceback" not in ended.stderr
    told = subprocess.run(
        [sys.executable, "-c", code.replace("memory.free_memory = lambda: None;", "")],
        timeout=300,
        **options,
    )
    assert told.returncode == 2
    assert "100 robots in 1,000 trials need 1." in told.stderr
    assert told.stderr.count("\n") == 1


def test_unknown_command_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = swarmbo(capsys, "fly")
    assert (outcome.code, outcome.stdout) == (2, "")
    assert "'fly'" in outcome.stderr
    assert outcome.stderr.count("\n") == 1


# --- paths at which nothing can be read or written ----------------------------------------------

INPUTS = {
    "simulate": ("simulate {}", ".json"),
    "simulate packed": ("simulate {}", ".json.gz"),
    "poses": ("simulate good.json --poses {} --scores new.csv", ".csv"),
    "teams": ("simulate good.json --teams {} --scores new.csv", ".json"),
    "disturbance": ("simulate good.json --disturbance {} --scores new.csv", ".json"),
    "show": ("map show {}", ".map"),
    "plot": ("map plot one.map {} --out new.png", ".map"),
    "export": ("map export {} --out new.json", ".map"),
    "evaluate": ("map evaluate {} --out new.csv", ".map"),
    "evaluate disturbance": ("map evaluate one.map --disturbance {} --out new.csv", ".json"),
    "recover map": ("recover --map {} --out new", ".map"),
    "recover disturbance": ("recover --disturbance {} --out new", ".json"),
    "replay": ("replay {} --out new.html", ""),
    "replay file": ("replay {} --out new.html", "/recovery.json"),
    "replay map": ("replay recovery --map {} --out new.html", ".map"),
    "study run": ("study run {} --out new", ".toml"),
    "study map": ("study run bad-map.toml --out new", ".map"),
    "study disturbance": ("study run bad-disturbance.toml --out new", ".json"),
    "status": ("study status {}", ""),
    "report": ("study report {} --out new", ""),
}
OUTPUTS = {
    "scores": ("simulate good.json --scores {}", ".csv"),
    "trace": ("simulate good.json --trace {}", ".parquet"),
    "plot": ("map plot one.map --out {}", ".png"),
    "export": ("map export one.map --out {}", ".json"),
    "evaluate": ("map evaluate one.map --out {}", ".csv"),
    "evolve": ("evolve --evaluations 50 --ticks 5 --out {}", ".map"),
    "evolve again": ("evolve --evaluations 50 --ticks 5 --resume --out {}", ".map"),
    "recover": ("recover --map one.map --out {}", ""),
    "recover replay": ("recover --map one.map --out new --replay {}", ".html"),
    "replay": ("replay recovery --out {}", ".html"),
    "study run": ("study run good.toml --out {}", ""),
    "report": ("study report study --out {}", ""),
}
BAD_PATHS = {
    "long name": "x" * 300 + "{}",
    "long folder": "x" * 300 + "/in{}",
    "long path": "folder/" * 700 + "in{}",
    "zero byte": "a\0b{}",
    "pipe": "pipe{}",
    "socket": "socket{}",
    "device": "/dev/zero",
    "link to nothing": "nowhere{}",
    "link to itself": "loop{}",
    "beyond a file": "good.json/in{}",
    "no rights": "secret{}",
}


@pytest.fixture(scope="module")
def things(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one good file of every kind."""
    folder = tmp_path_factory.mktemp("things")
    (folder / "good.json").write_text(json.dumps([CONTROLLER]))
    (folder / "recovery").mkdir()
    (folder / "recovery" / "recovery.json").write_text("{}")
    (folder / "folder").mkdir()
    write_study(
        folder,
        'maps = ["one.map"]\ntrials = 1\nticks = 5\nevaluations = 1\n[[experiments]]\n'
        'disturbances = ["food-scarcity"]\nlearners = ["random"]\nconditions = 1\n',
        "good.toml",
    )
    run_study(load_definition(folder / "good.toml"), folder / "study", threads=1, device="cpu")
    return folder


@pytest.fixture
def workplace(things: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of that folder to work in; a command that waits for ever there is stopped."""
    folder = tmp_path / "w"
    shutil.copytree(things, folder)
    monkeypatch.chdir(folder)

    def stop(*_: object) -> None:
        raise AssertionError("the command waits for ever")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(120)
    yield folder
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def bad_path(kind: str, end: str) -> str:
    """A path of some kind at which nothing can be read; what has to be there is made."""
    path = BAD_PATHS[kind].format(end)
    place = Path(path.removesuffix("/recovery.json"))
    match kind:
        case "pipe":
            os.mkfifo(place)
        case "socket":
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(str(place))
        case "link to nothing":
            place.symlink_to("no/such/thing")
        case "link to itself":
            place.symlink_to(place.name)
        case "no rights":
            place.write_text("{}")
            place.chmod(0)
            if os.access(place, os.R_OK):
                pytest.skip("who may read everything, may read this")
    return path


def listing(folder: Path) -> dict[str, int]:
    """All that there is in a folder, with sizes, but for what SQLite has beside an open journal."""
    found = {str(path): path.lstat().st_size for path in folder.rglob("*")}
    return {name: size for name, size in found.items() if not name.endswith(("-wal", "-shm"))}


def assert_refused(outcome: Outcome) -> None:
    """One sentence of a sensible length, and exit code 2."""
    assert outcome.code == 2, outcome.stderr
    assert outcome.stdout == ""
    assert outcome.stderr.startswith("swarmbo: ")
    assert outcome.stderr.count("\n") == 1
    assert "Traceback" not in outcome.stderr
    assert len(outcome.stderr) < 600


needs_posix = pytest.mark.skipif(os.name == "nt", reason="needs pipes, sockets and links")


@needs_posix
@pytest.mark.parametrize("kind", BAD_PATHS)
@pytest.mark.parametrize("use", INPUTS)
def test_input_that_cannot_be_read_is_one_sentence(
    use: str, kind: str, workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command, end = INPUTS[use]
    path = bad_path(kind, end)
    good = Path("good.toml").read_text()
    for name, word in (("bad-map", "one.map"), ("bad-disturbance", "food-scarcity")):
        Path(f"{name}.toml").write_text(good.replace(f'"{word}"', json.dumps(path)))
    before = listing(workplace)
    words = [path if word == "{}" else word for word in shlex.split(command)]
    outcome = swarmbo(capsys, *words)
    assert_refused(outcome)
    assert "written" not in outcome.stderr
    assert listing(workplace) == before


@needs_posix
@pytest.mark.parametrize("kind", BAD_PATHS)
@pytest.mark.parametrize("use", OUTPUTS)
def test_output_that_cannot_be_written_is_one_sentence(
    use: str, kind: str, workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command, end = OUTPUTS[use]
    if kind == "no rights":
        pytest.skip("a file that may not be read can be replaced")
    path = bad_path(kind, end)
    before = listing(workplace)
    words = [path if word == "{}" else word for word in shlex.split(command)]
    assert_refused(swarmbo(capsys, *words))
    assert listing(workplace) == before


# --- values of 10,000 characters ----------------------------------------------------------------

LONG = "QJ" * 5_000
VALUES = {
    "text": json.dumps(LONG),
    "words": json.dumps("Q J " * 2_500),
    "number": "7" * 4_200,
    "longer number": "-" + "7" * 10_000,
    "float": "7" * 4_000 + ".5e-4000",
    "list": json.dumps(["QJ"] * 5_000),
    "deep list": "[" * 900 + "]" * 900,
    "object": json.dumps({LONG: LONG}),
}
TEAMS = [[0, 0, 0, 0, 0, 0]]
FAULT = [
    {"kind": "proximity", "robots": ["none"] * 6},
    {"kind": "software-food", "robot": 0, "source": 0},
    {"kind": "food-scarcity", "food": [1, 1, 1]},
]


def places_in(document: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a JSON value whose content can be replaced: a list or object, and where."""
    inner = document.items() if isinstance(document, dict) else enumerate(document)
    for name, value in list(inner):
        yield document, name
        if isinstance(value, dict | list):
            yield from places_in(value)


def spoiled(document: Any) -> Iterator[tuple[str, str]]:
    """A JSON document in which one value, or the name of one, is absurdly long; and what it is."""
    for parent, name in places_in(document):
        old = parent[name]
        for kind, value in VALUES.items():
            parent[name] = "HERE"
            yield f"{name} {kind}", json.dumps(document).replace('"HERE"', value)
        parent[name] = old
        if isinstance(parent, dict):
            parent[LONG] = old
            yield f"{name} twice", json.dumps(document)
            del parent[LONG]


def assert_short(message: str) -> None:
    """A sentence that quotes at most 80 characters of a value."""
    assert "\n" not in message.strip()
    assert len(message) < 600
    assert max(map(len, re.findall(r"[QJ ]{3,}|7+|[\[\]]+", message)), default=0) <= 80
    assert "Exceeds the limit" not in message


@pytest.mark.parametrize("what", ["controllers", "teams", "disturbances", "recovery"])
def test_long_values_in_json_are_quoted_with_80_characters(what: str, workplace: Path) -> None:
    controllers = load_controllers("good.json")
    documents: dict[str, tuple[Any, Callable[[Path], object]]] = {
        "controllers": ([CONTROLLER], load_controllers),
        "teams": (TEAMS, lambda path: load_teams(path, controllers, 6)),
        "disturbances": (FAULT, load_disturbances),
        "recovery": ({}, load_footage),
    }
    document, load = documents[what]
    path = Path("spoiled.json")
    if what == "recovery":
        recover("one.map", "food-scarcity:0", "random", evaluations=1, trials=1, ticks=5, out="new")
        path = Path("new/recovery.json")
        document = json.loads(path.read_text())
    refused = 0
    for where, text in spoiled(document):
        if where.startswith("ticks"):  # those are the scenario's to judge
            continue
        path.write_text(text)
        try:
            load(path)
        except InputError as error:
            refused += 1
            assert_short(str(error))
    assert refused > 10


@pytest.mark.parametrize("kind", VALUES)
def test_long_values_in_a_study_are_quoted_with_80_characters(kind: str, workplace: Path) -> None:
    lines = STUDY.splitlines()
    value = VALUES[kind].replace("{", "{ ").replace(":", " =")
    refused = 0
    for number, line in enumerate(lines):
        name, equals, rest = line.partition(" = ")
        for changed in (f"{name} = {value}", f"{name} = [{value}]", f"{LONG} = {rest}"):
            if not equals:
                continue
            text = "\n".join([*lines[:number], changed, *lines[number + 1 :]])
            Path("spoiled.toml").write_text(text)
            try:
                load_definition("spoiled.toml")
            except InputError as error:
                refused += 1
                assert_short(str(error))
    assert refused > 10


@pytest.mark.parametrize(
    "command",
    [
        *(command for command, _ in (*INPUTS.values(), *OUTPUTS.values()) if "{}" in command),
        *(
            f"simulate good.json --{option} {{}}"
            for option in ("arena", "ticks", "trials", "seed", "threads", "device")
        ),
        "simulate good.json {}",
        "simulate good.json --disturbance proximity:{}",
        *(
            f"recover --{option} {{}}"
            for option in ("learner", "option", "option alpha={} --option", "seed", "device")
        ),
        "recover --option alpha={}",
        "recover --option {}=1 --option {}=1",
        *(f"evolve --out new.map --{name} {{}}" for name in ("preset", "descriptor", "device")),
        *(
            f"study run good.toml --out new --{name} {{}}"
            for name in ("tables", "disturbances", "learners", "replicates", "dask", "device")
        ),
        "study run good.toml --out new --dask local:{}",
        "bench --device {}",
        "simulate --{}",
        "{}",
        "study {}",
    ],
)
@pytest.mark.parametrize("value", [LONG, "Q J " * 2_500, "7" * 10_000], ids=["text", "words", "7"])
def test_long_values_of_options_are_quoted_with_80_characters(
    command: str, value: str, workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = swarmbo(capsys, *(word.replace("{}", value) for word in shlex.split(command)))
    assert_refused(outcome)
    assert_short(outcome.stderr)
