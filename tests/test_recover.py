"""`swarmbo recover`: the story, the report and its replay, the figures, and wrong use."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import swarmbo as library
from swarmbo import (
    LEARNERS,
    BehaviourMap,
    FoodScarcity,
    Genomes,
    InputError,
    Recovery,
    SoftwareNest,
    conditions,
    load_map,
    recover,
)
from swarmbo.adaptation.options import CENTRALISED, DECENTRALISED
from swarmbo.cli.recover import read_options, verdict
from swarmbo.recovery.continuous import ContinuousRun
from swarmbo.recovery.recovery import FILES, Watcher, check_folder, finish, replay
from swarmbo.recovery.runner import Case, Evaluator, Run
from swarmbo.view.footage import film
from tests.command import PATIENCE, Outcome, swarmbo
from tests.test_behaviour_map import synthetic_map
from tests.test_runner import TICKS, TRIALS, small_map

QUICK = ("--map", "small.map", "--trials", TRIALS, "--ticks", TICKS, "--evaluations", 3)
QUICKLY: dict[str, Any] = {"trials": TRIALS, "ticks": TICKS, "evaluations": 3, "device": "cpu"}

Run_ = Callable[..., Outcome]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a map."""
    monkeypatch.chdir(tmp_path)
    small_map().save("small.map")
    return tmp_path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], folder: Path) -> Run_:
    """`swarmbo recover` in that folder, in short trials; fails when the command does."""

    def run(*arguments: object) -> Outcome:
        outcome = swarmbo(capsys, "recover", *QUICK, *arguments)
        assert outcome.code == 0, outcome.stderr
        assert outcome.stderr == ""
        return outcome

    return run


# --- what is reported --------------------------------------------------------------------------


def quick_recovery(learner: str = "smbo-dec", **options: Any) -> Recovery:
    """A recovery in short trials."""
    settings = {"disturbance": "proximity:1"} | QUICKLY | options
    return recover(small_map(), learner=learner, **settings)


@pytest.mark.parametrize("learner", LEARNERS)
def test_replay_gives_the_same_numbers(learner: str) -> None:
    report = json.loads(json.dumps(quick_recovery(learner).to_json()))
    assert replay(report, small_map()) == report


@pytest.mark.parametrize("learner", DECENTRALISED)
@pytest.mark.parametrize("disturbance", ["proximity:1", "software-food:0"])
def test_replay_of_a_continuous_world_gives_the_same_numbers(
    learner: str, disturbance: str
) -> None:
    found = quick_recovery(learner, continuous=True, disturbance=disturbance)
    report = json.loads(json.dumps(found.to_json()))
    assert replay(report, small_map()) == report


def test_replay_in_the_2x_arena_and_with_lost_messages_gives_the_same_numbers() -> None:
    options = {"loss": 0.5, "observation_factor": 6}
    found = quick_recovery(disturbance="proximity-2x:0", options=options, ticks=60)
    report = json.loads(json.dumps(found.to_json()))
    assert (report["robots"], report["arena"], report["options"]) == (12, "foraging-2x", options)
    assert replay(report, small_map()) == report


def test_replay_notices_what_was_changed() -> None:
    report = quick_recovery().to_json()
    changed = json.loads(json.dumps(report))
    changed["evaluations"][1]["outcome"][0] += 1
    changed["composed"] += 1
    assert replay(changed, small_map())["composed"] == report["composed"]
    assert replay(changed, small_map())["evaluations"] == report["evaluations"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"map_checksum": "0"}, "was made with another map"),
        ({"team": [0, 0, 0, 0, 0, 60]}, "names the controller 60; the map has 0 to 59"),
        ({"evaluations": None}, "is not a complete recovery"),
        ({"arena": "moon"}, "is not a complete recovery"),
        ({"disturbances": [{"kind": "rust"}]}, "unknown disturbance 'rust'"),
    ],
)
def test_replay_refuses_what_is_no_recovery(change: dict[str, Any], words: str) -> None:
    report = quick_recovery().to_json() | change
    with pytest.raises(InputError, match=words):
        replay(report, small_map())


def longer_than_the_map(name: str, continuous: bool) -> dict[str, Any]:
    """The report of a recovery of before, with more evaluations than a map of four has cells."""
    whole = small_map()
    assert whole.genomes is not None
    few = BehaviourMap.from_arrays(
        whole.cells[:4],
        whole.performance[:4],
        genomes=Genomes.from_controllers(whole.controllers()[:4]),
    )
    few.save("few.map")
    case = Case.of(few, "proximity:1", trials=1, ticks=20)
    kind = ContinuousRun if continuous else Run
    run = kind(case, name, evaluations=6 if name in CENTRALISED else 31, again=True)
    found = finish(
        run,
        map_name="few.map",
        disturbance_name="proximity:1",
        options={},
        evaluator=Evaluator(device="cpu"),
    )
    report: dict[str, Any] = json.loads(json.dumps(found.to_json()))
    return report


@pytest.mark.parametrize(
    ("name", "continuous"), [("smbo", False), ("smbo-dec", False), ("smbo-dec", True)]
)
def test_replay_of_more_evaluations_than_cells_gives_the_same_numbers(
    folder: Path, name: str, continuous: bool
) -> None:
    report = longer_than_the_map(name, continuous)
    assert replay(report) == report
    assert film(report, load_map("few.map")).models is not None


def test_more_evaluations_than_cells_are_refused(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    for name, most in (("smbo", 60), ("random", 60), ("smbo-no-sharing", 60), ("smbo-dec", 30)):
        arguments = ("--map", "small.map", "--learner", name, "--disturbance", "food-scarcity:0")
        outcome = swarmbo(capsys, "recover", *arguments, "--evaluations", 100_000, "--out", "new")
        assert outcome.code == 2
        assert outcome.stdout == ""
        assert outcome.stderr == (
            f"swarmbo: evaluations is 100000, but after {most} {name} has tried all 60 cells of "
            f"the map; give {most} at most\n"
        )
        assert names_in(".") == ["small.map"]
        with pytest.raises(InputError, match=f"give {most} at most"):
            recover("small.map", "food-scarcity:0", name, evaluations=100_000)


def test_recovery_is_repeatable_and_depends_on_the_seed_alone() -> None:
    reports = [
        quick_recovery(seed=seed, threads=n).to_json() for seed, n in ((4, 1), (4, 3), (5, 1))
    ]
    assert reports[0] == reports[1]
    assert reports[0]["evaluations"] != reports[2]["evaluations"]
    for name in ("before", "at_fault", "exhaustive"):
        assert reports[0][name] == reports[2][name]


def test_report_is_in_items_per_robot() -> None:
    found = quick_recovery("smbo")
    report = found.to_json()
    assert report["before"] == small_map().best
    assert report["at_fault"] == report["evaluations"][0]["outcome"]
    assert report["evaluations"][0]["prediction"] == small_map().best
    assert report["best"] == max(each["outcome"] for each in report["evaluations"])
    assert report["composed"] is None
    assert report["exhaustive"] >= report["best"]
    assert report["recovered"]["composed"] is None
    loss = report["before"] - report["at_fault"]
    if loss > 0:
        share = (report["best"] - report["at_fault"]) / loss
        assert report["recovered"]["best"] == pytest.approx(share)


def test_report_of_a_decentralised_learner_has_a_value_per_robot() -> None:
    report = quick_recovery().to_json()
    for each in report["evaluations"]:
        for name in ("cell", "place", "prediction", "deviation", "outcome", "best"):
            assert len(each[name]) == 6
        assert each["place"][2] == small_map().cells[each["cell"][2]].tolist()
        assert each["swarm_best"] == pytest.approx(np.mean(each["best"]))
    assert report["best"] == report["evaluations"][-1]["swarm_best"]
    assert [each["time_s"] for each in report["evaluations"]] == [120, 240, 360]
    assert report["composed"] >= 0


def test_python_takes_maps_and_disturbances_as_they_are() -> None:
    broken = (SoftwareNest(1), *conditions("food-scarcity", 3)[-1:])
    assert isinstance(broken[1], FoodScarcity)
    found = recover(small_map(), broken, "random", **QUICKLY)
    assert found.to_json()["disturbances"] == [each.to_json() for each in broken]
    assert (found.map_name, found.disturbance_name) == ("map", "given")
    assert found.robots == 6
    assert len(found.curve) == 3


def test_where_nothing_is_lost_nothing_is_recovered() -> None:
    found = quick_recovery("smbo", disturbance=())
    assert found.before == found.at_fault
    assert found.recovered(found.best) is None
    assert found.to_json()["recovered"] == {"best": None, "composed": None, "exhaustive": None}


def test_watcher_is_told_everything_in_order() -> None:
    told: list[Any] = []

    class Listener(Watcher):
        def begin(self, run: Run, before: float, at_fault: float) -> None:
            told.append((before, at_fault))

        def evaluation(self, run: Run) -> None:
            told.append(len(run.done))

        def searching(self, count: int, controllers: int) -> None:
            told.append((count, controllers))

    found = quick_recovery(watcher=Listener())
    assert told[:4] == [(found.before, found.at_fault), 1, 2, 3]
    assert told[-1] == (59, 60)  # one of them is known by then


# --- the command -------------------------------------------------------------------------------


def test_help_shows_examples(run: Run_) -> None:
    text = run("--help").stdout
    assert "For example:" in text
    assert "swarmbo recover --" in text
    for name in LEARNERS:
        assert name in text


def test_story_is_told_in_plain_lines(run: Run_) -> None:
    shown = run("--disturbance", "proximity:1").stdout
    assert "\x1b" not in shown
    found = recover("small.map", "proximity:1", **QUICKLY)
    words = " ".join(shown.split())
    assert "6 robots forage in the arena foraging with the map small.map" in words
    assert f"Before: {found.before:.2f} items per robot" in words
    assert f"Now: {found.at_fault:.2f} items per robot" in words
    lines = [
        line for line in shown.splitlines() if " robot " in line and line[:4].strip().isdigit()
    ]
    assert [int(line[:4]) for line in lines] == [1, 2, 3]
    assert f"composed swarm, evaluated together {found.composed:.2f}" in words
    assert f"exhaustive search, all robots alike {found.exhaustive:.2f}" in words


@pytest.mark.parametrize("learner", ["smbo", "smbo-dec"])
def test_json_is_what_python_gives(run: Run_, learner: str) -> None:
    options = ("--disturbance", "actuator:1", "--learner", learner, "--option", "alpha=0.5")
    report = json.loads(run(*options, "--seed", 7, "--json").stdout)
    found = recover("small.map", "actuator:1", learner, seed=7, options={"alpha": 0.5}, **QUICKLY)
    assert report == json.loads(json.dumps(found.to_json()))


def names_in(folder: str) -> list[str]:
    """The names of the files in a folder."""
    return sorted(path.name for path in Path(folder).iterdir())


def test_folder_gets_the_report_and_two_figures(run: Run_) -> None:
    report = json.loads(run("--out", "new", "--json").stdout)
    assert names_in("new") == sorted(FILES)
    assert json.loads(Path("new/recovery.json").read_text()) == report
    for name in ("curve.png", "map.png"):
        assert Path("new", name).read_bytes().startswith(b"\x89PNG")
    assert replay("new/recovery.json") == report
    before = Path("new/recovery.json").stat().st_ino
    again = run("--out", "new", "--learner", "smbo", "--disturbance", "software-nest:0").stdout
    assert "new: recovery.json, curve.png, map.png" in again
    assert Path("new/recovery.json").stat().st_ino != before
    assert names_in(".") == ["new", "small.map"]


def words_of(figure: Any) -> set[str]:
    """All that is written in a figure."""
    from matplotlib.text import Text

    return {text.get_text() for text in figure.findobj(Text)}


def test_figures_show_the_references_and_number_the_cells() -> None:
    from swarmbo.recovery.plots import plot_curve, plot_tried

    found = quick_recovery()
    words = words_of(plot_curve(found))
    assert {
        f"before the fault: {found.before:.2f}",
        f"at the fault: {found.at_fault:.2f}",
        f"exhaustive search: {found.exhaustive:.2f}",
        f"composed swarm: {found.composed:.2f}",
        "items per robot",
        "evaluations",
    } <= words
    words = words_of(plot_tried(found))
    assert {"1", "2", "3"} <= words
    assert len([word for word in words if "cells tried" in word]) == len(set(found.case.groups))


@pytest.mark.parametrize("shape", ["line", "sdbc", "robots"])
def test_any_recovery_can_be_drawn(shape: str, tmp_path: Path) -> None:
    from swarmbo.maps.plots import save_figure
    from swarmbo.recovery.plots import plot_curve, plot_tried

    genomes = small_map().genomes
    assert genomes is not None
    behaviour_map = {
        "line": BehaviourMap.from_arrays(np.arange(60)[:, None], np.arange(60), genomes=genomes),
        "sdbc": synthetic_map(1, cells=60, descriptor="sdbc"),
        "robots": replace(small_map(), robots=8),
    }[shape]
    evaluations = 1 if shape == "line" else 2
    found = recover(behaviour_map, (), "smbo-dec", **QUICKLY | {"evaluations": evaluations})
    for name, figure in (("curve", plot_curve(found)), ("map", plot_tried(found))):
        save_figure(figure, tmp_path / f"{name}.svg")
        assert "items per robot" in (tmp_path / f"{name}.svg").read_text()


@pytest.mark.parametrize(
    ("before", "at_fault", "composed", "words"),
    [
        (5.0, 2.0, 3.5, "won back [bold]50%[/]"),
        (5.0, 2.0, 1.5, "0.50 less than at the fault"),
        (5.0, 5.0, 5.5, "nothing to win back. The swarm now delivers 5.50"),
        (5.0, 5.0, 3.0, "costs nothing. The swarm now delivers 3.00, 2.00 less"),
    ],
)
def test_verdict_says_what_was_won_or_lost(
    before: float, at_fault: float, composed: float, words: str
) -> None:
    found = recover(small_map(), [], "smbo-dec", **QUICKLY)
    found = replace(found, before=before, at_fault=at_fault, composed=composed)
    assert words in verdict(found)
    assert len(repr(found)) < 200


def test_options_are_numbers_words_and_truths() -> None:
    given = ["alpha=1", "length-scale=0.5", "penalty=paper-text", "running_mean=true"]
    assert read_options(given) == {
        "alpha": 1,
        "length_scale": 0.5,
        "penalty": "paper-text",
        "running_mean": True,
    }


WRONG = {
    "map": ("--map no.map", "no.map: is neither a file nor a bundled map"),
    "damaged map": ("--map damaged.map", "damaged.map: is damaged"),
    "map without controllers": ("--map own.map", "own.map: the map holds no controllers"),
    "condition": ("--disturbance proximity:20", "proximity:0 to proximity:19"),
    "kind": ("--disturbance rust:1", "'rust:1' is neither a file nor a condition"),
    "fault file": ("--disturbance bad.json", "bad.json: unknown disturbance 'rust'"),
    "fault of other robots": ("--disturbance two.json", "lists 2 robots"),
    "all broken": ("--disturbance all.json", "all robots have lost their controller"),
    "learner": ("--learner best", "no learner 'best'; name one of smbo,"),
    "evaluations": ("--evaluations 0", "'--evaluations'"),
    "seed": ("--seed -1", "'--seed'"),
    "threads": ("--threads 0", "'--threads'"),
    "device": ("--device tpu", "no device 'tpu'"),
    "no option": ("--option alpha", "'alpha' is not NAME=VALUE"),
    "empty option": ("--option alpha=", "'alpha=' is not NAME=VALUE"),
    "option twice": ("--option alpha=1 --option alpha=2", "alpha is given twice"),
    "option unknown": ("--option colour=3", "smbo-dec has no option 'colour'"),
    "option that is an argument": ("--option robots=3", "smbo-dec has no option 'robots'"),
    "option of others": ("--learner random --option alpha=1", "random has no option 'alpha'"),
    "option value": ("--option alpha=much", "alpha is 'much'; give a number"),
    "option infinite": ("--option alpha=inf", "alpha is inf; give a number"),
    "continuous": ("--continuous --learner smbo", "which smbo does not"),
    "continuous gpu": ("--continuous --device gpu", "a continuous world runs on the CPU"),
    "out file": ("--out small.map", "small.map: is a file; name a folder"),
    "out full": ("--out full", "full: holds letter.txt, which is no file of a recovery"),
    "out here": ("--out .", "which is no file of a recovery"),
    "out nowhere": ("--out no/where", "no/where: the folder"),
    "argument": ("paper-1", "paper-1"),
}


@pytest.mark.parametrize(("arguments", "words"), list(WRONG.values()), ids=list(WRONG))
def test_wrong_use_is_one_sentence_and_writes_nothing(
    arguments: str, words: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("damaged.map").write_bytes(Path("small.map").read_bytes()[:-1])
    BehaviourMap.from_arrays([[0], [1]], [1.0, 2.0]).save("own.map")
    Path("bad.json").write_text('{"kind": "rust"}')
    Path("two.json").write_text('{"kind": "proximity", "robots": ["min", "max"]}')
    lost = [{"kind": "software-food", "robot": n, "source": n} for n in range(6)]
    Path("all.json").write_text(json.dumps(lost))
    Path("full").mkdir()
    Path("full/letter.txt").write_text("dear")

    def state() -> dict[str, Any]:
        files = (path for path in folder.rglob("*") if path.is_file())
        return {str(path): path.read_bytes() for path in files}

    before = state()
    given = arguments.split()
    quick = [] if "--map" in given else ["--map", "small.map"]
    outcome = swarmbo(capsys, "recover", *quick, *given)
    assert (outcome.code, outcome.stdout) == (2, "")
    assert outcome.stderr.startswith("swarmbo: ")
    assert outcome.stderr.count("\n") == 1
    assert words in outcome.stderr
    assert state() == before


def test_folder_is_refused_before_the_work_if_it_cannot_be_written(tmp_path: Path) -> None:
    check_folder(tmp_path / "new")
    (tmp_path / "recovery.json").write_text("{}")
    check_folder(tmp_path)
    (tmp_path / "sub").mkdir()
    with pytest.raises(InputError, match="holds sub"):
        check_folder(tmp_path)


def test_failure_while_writing_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from swarmbo.maps import plots

    def full(figure: Any, path: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(plots, "save_figure", full)
    with pytest.raises(OSError, match="No space left") as caught:
        quick_recovery().save(tmp_path / "new")
    assert caught.value.filename == str(tmp_path / "new")
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_stops_at_once_and_leaves_nothing(folder: Path) -> None:
    arguments = ("--map", "small.map", "--out", "new", "--ticks", "200000", "--device", "cpu")
    process = subprocess.Popen(
        [sys.executable, "-m", "swarmbo", "recover", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(library.__file__).parent.parent)},
    )
    time.sleep(4)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert errors.splitlines()[-1] == "swarmbo: stopped"
    assert names_in(".") == ["small.map"]


def test_recovering_needs_no_evolution() -> None:
    code = "import sys, swarmbo.recovery.recovery; print('ribs' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_learners_are_centralised_or_not() -> None:
    assert (*CENTRALISED, *DECENTRALISED) == tuple(LEARNERS)
    case = Case.of(small_map(), ())
    assert [Run(case, name).centralised for name in LEARNERS] == [True] * 4 + [False] * 4
