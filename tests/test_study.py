"""Studies: what they are made of, how they run, and what they survive."""

import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from swarmbo import InputError, conditions, load_map, recover
from swarmbo.cli.study import asked_for, numbers, spoken
from swarmbo.recovery.runner import references
from swarmbo.study import units
from swarmbo.study.campaign import run_study
from swarmbo.study.definition import (
    Definition,
    RunKey,
    Selection,
    bundled_studies,
    definition_from_json,
    learner_seed,
    load_definition,
)
from swarmbo.study.journal import load_results
from tests.command import PATIENCE, Outcome, swarmbo, wait_until
from tests.studies import (
    CONDITIONS,
    ENVIRONMENT,
    RUNS,
    STUDY,
    assert_equal_studies,
    contents,
    read_study,
    write_study,
)

Run = Callable[..., Outcome]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """`swarmbo study run study.toml --device cpu` with more arguments, which must succeed."""

    def command(*arguments: object) -> Outcome:
        outcome = swarmbo(capsys, "study", "run", "study.toml", *arguments, "--device", "cpu")
        assert outcome.code == 0, outcome.stderr
        return outcome

    write_study(Path())
    return command


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """What `swarmbo study` says when it exits with 2."""
    outcome = swarmbo(capsys, "study", *arguments)
    assert outcome.code == 2
    assert outcome.stdout == ""
    assert outcome.stderr.count("\n") == 1
    assert "Traceback" not in outcome.stderr
    return outcome.stderr


# --- the definition ----------------------------------------------------------------------------


def test_paper_has_its_conditions_and_learners() -> None:
    paper = load_definition("paper")
    central = [key for key in paper.runs if paper.variants[key.variant].table == "1"]
    apart = [key for key in paper.runs if paper.variants[key.variant].table == "2a"]
    assert len({key.case for key in central}) == 390
    assert len(central) == 4 * 390
    assert len({key.case for key in apart}) == 5 * (20 + 6) * 2
    assert len(apart) == 4 * 5 * (20 + 6) * 2
    assert {(entry.name, entry.replicate) for entry in paper.maps} == {
        (f"paper-{number}", number) for number in range(1, 6)
    }
    assert paper.evaluations == 30
    assert (paper.trials, paper.ticks, dict(paper.robot)) == (8, None, {})


def test_published_differs_from_paper_by_the_options_that_imitate_the_authors_runs() -> None:
    paper, published = load_definition("paper"), load_definition("paper-published")
    assert paper.runs == published.runs
    changed = {
        (label, name)
        for label, variant in published.variants.items()
        for name, value in variant.options.items()
        if value != paper.variants[label].options[name]
    }
    apart = ("smbo-dec", "smbo-dec-naive", "smbo-no-sharing", "random-no-sharing")
    assert changed == {
        *((label, "tried_cells") for label in apart),
        ("random-no-sharing", "running_mean"),
    }


def test_definition_survives_json(tmp_path: Path) -> None:
    for definition in (read_study(tmp_path), load_definition("paper")):
        again = definition_from_json(json.loads(json.dumps(definition.to_json())))
        assert again == definition
        assert list(again.runs.items()) == list(definition.runs.items())
    older = {key: value for key, value in definition.to_json().items() if key != "noise"}
    assert definition_from_json(older) == definition
    for damaged in ({"name": "x"}, older | {"noise": "loud"}):
        with pytest.raises(InputError, match="is damaged"):
            definition_from_json(damaged)


def test_replicate_is_the_maps_seed_or_as_written(tmp_path: Path) -> None:
    assert [entry.replicate for entry in read_study(tmp_path).maps] == [1, 2]
    text = STUDY.replace('{ map = "two.map", replicate = 2 }', '"two.map"')
    assert [entry.replicate for entry in read_study(tmp_path, text).maps] == [1, 7]


def test_files_are_looked_for_beside_the_study(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "stuck.json").write_text('{"kind": "software-food", "robot": 1}')
    text = STUDY.replace('"software-nest"', '"stuck.json"')
    definition = read_study(tmp_path / "deep", text)
    assert definition.given == {"stuck.json": [{"kind": "software-food", "robot": 1, "source": 0}]}
    assert len([key for key in definition.runs if key.disturbance == "stuck.json"]) == 2 * 3


def test_seed_of_learners_is_alike_within_a_condition_only() -> None:
    key = RunKey("proximity", 1, "m", 3, "smbo", 1)
    assert learner_seed(key) == learner_seed(key._replace(variant="random", map="other"))
    others = [key._replace(condition=2), key._replace(replicate=2), key._replace(seed=2)]
    assert len({learner_seed(each) for each in [key, *others]}) == 4


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("evaluations =", "evaluation =", "the study has no key 'evaluation'; use name, maps"),
        ("evaluations = 3", "evaluations = 0", "evaluations is 0; give an integer, 1 to"),
        ("evaluations = 3", "evaluations = true", "evaluations is True; give an integer"),
        ("trials = 2", "trials = 0", "trials is 0; give an integer"),
        ("ticks = 100", "ticks = 1.5", "ticks is 1.5; give an integer"),
        ("ticks = 100", "seeds = []", "seeds is []; give a list with at least one entry"),
        ("ticks = 100", "seeds = [1, 1]", "seeds has 1 twice; keep one"),
        ("ticks = 100", "seeds = [-1]", "seeds is -1; give an integer, 0 to"),
        ("ticks = 100", "noise = 3", 'noise is 3; give "replicate" or "fresh"'),
        ("ticks = 100", "robot = {noise = 1}", "robot has no key 'noise'; use wheel_base"),
        ("ticks = 100", "robot = {friction = -1}", "robot: a robot's friction must be finite"),
        ('"software-nest"', '"moon"', "experiment 1: disturbances: there is no 'moon'"),
        ('"software-nest"', '"no.json"', "no.json: there is no such file"),
        ('"software-nest"', '"proximity"', "disturbances has 'proximity' twice; keep one"),
        ("conditions = 2", "conditions = 0", "experiment 1: conditions is 0"),
        ("conditions = 2", "count = 2", "experiment 1: it has no key 'count'"),
        ('"random"]', '"rnd"]', "learners: 'rnd' is neither a learner nor in variants"),
        ('learner = "smbo",', 'learner = "x",', "variants: smooth: there is no learner 'x'"),
        ('learner = "smbo",', "", "variants: smooth: there is no learner 'smooth'"),
        ("length_scale = 0.3", "rho = 0.3", "variants: smooth: smbo has no option 'rho'"),
        ("length_scale = 0.3", "length_scale = -1", "smooth: length_scale is -1; give a number"),
        ("loss = 0.4", "loss = 2", "variants: lossy: loss is 2; give a number, 0 to 1"),
        ('"smooth", ', "", "variants: no experiment names 'smooth'; add it to learners"),
        ("smooth = {", "random = {", "variants: random: is the name of a learner"),
        ('"one.map"', '"none.map"', "none.map: is neither a file nor a bundled map"),
        ('"one.map"', '"paper-0"', "paper-0: is neither a file nor a bundled map"),
        ('"one.map"', '{replicate = 1}', "maps: an entry has no map; add it"),
        ('"one.map"', "7", "maps has 7; give names of maps"),
        ('maps = ["one.map"', 'maps = ["one.map", "one.map"', "maps has 'one.map' twice"),
        ("name = ", "name == ", "is not TOML"),
        ("[[experiments]]", "[experiments]", "is not TOML"),
        ("maps = ", "cards = ", "the study has no key 'cards'"),
    ],
)  # fmt: skip
def test_wrong_study_is_refused_in_a_sentence(
    old: str, new: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert old in STUDY
    write_study(Path(), STUDY.replace(old, new, 1))
    sentence = refused(capsys, "run", "study.toml", "--out", "out")
    assert sentence.startswith("swarmbo: study.toml: ")
    assert words in sentence
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("study.txt",), "study.txt: is neither a file nor a bundled study; name a TOML file"),
        (("missing.toml",), "missing.toml: there is no such file"),
        (("study.toml", "--tables", "3"), "--tables: the study has no 3; name some of 1, 2a, 2b"),
        (("study.toml", "--tables", "1,,2a"), "--tables: '1,,2a' is not a list"),
        (("study.toml", "--disturbances", "ground"), "--disturbances: the study has no ground"),
        (("study.toml", "--learners", "gradient-ascent"), "--learners: the study has no gradient"),
        (("study.toml", "--replicates", "1-3"), "--replicates: the study has no 3; name some of"),
        (("study.toml", "--replicates", "a"), "--replicates: 'a' is not a list like 1-3,5"),
        (("study.toml", "--replicates", "3-1"), "--replicates: '3-1' is not a range"),
        (("study.toml", "--tables", "1", "--learners", "lossy"), "the options select no run"),
        (("study.toml", "--conditions", "0"), "'--conditions'"),
        (("study.toml", "--threads", "0"), "'--threads'"),
        (("study.toml", "--threads", "2", "--dask", "local:2"), "--threads and --dask exclude"),
        (("study.toml", "--device", "tpu"), "--device: there is no device 'tpu'"),
        (("paper", "--replicates", "9"), "--replicates: the study has no 9; name some of 1, 2,"),
    ],
)
def test_wrong_options_are_refused(
    arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_study(Path())
    assert words in refused(capsys, "run", *arguments, "--out", "out")
    assert not Path("out").exists()


def test_map_that_is_not_there_is_named_and_other_replicates_run(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    text = STUDY.replace('"two.map"', '"paper-99"')
    Path("study.toml").write_text(text)
    sentence = refused(capsys, "run", "study.toml", "--out", "out")
    assert sentence.startswith("swarmbo: paper-99: is neither a file nor a bundled map; name ")
    assert not Path("out").exists()
    run("--out", "out", "--replicates", 1)
    assert len(load_results("out").runs) == RUNS // 2


def test_map_whose_swarm_does_not_fit_is_refused_before_anything_is_written(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("faults.json").write_text('{"kind": "proximity", "robots": ["min", "none"]}')
    write_study(Path(), STUDY.replace('"software-nest"', '"faults.json"'))
    assert "lists 2 robots" in refused(capsys, "run", "study.toml", "--out", "out")
    assert not Path("out").exists()


def test_lists_of_numbers_and_durations_in_words() -> None:
    assert numbers("1-3, 5,2") == (1, 2, 3, 5)
    assert [spoken(s) for s in (1.23, 12.3, 61, 7300)] == [
        "1.2 s",
        "12 s",
        "1 min 1 s",
        "2 h 1 min",
    ]
    assert "paper" in bundled_studies()


# --- running -----------------------------------------------------------------------------------


def test_run_of_a_study_is_the_recovery_of_the_same_condition(run: Run) -> None:
    run("--out", "out", "--replicates", 1)
    found = load_results("out")
    for label, learner, options in (
        ("smooth", "smbo", {"length_scale": 0.3}),
        ("smbo-dec", "smbo-dec", {}),
    ):
        key = RunKey("proximity", 1, "one.map", 1, label, 1)
        number = load_definition("study.toml").runs[key]
        rows = found.evaluations[found.evaluations.run == number]
        recovery = recover(
            load_map("one.map"),
            [conditions("proximity", 1)[1]],
            learner,
            evaluations=3,
            seed=learner_seed(key),
            options=options,
            trials=2,
            ticks=100,
            device="cpu",
        )
        cells = [cell for each in recovery.evaluations for cell in each.cell]
        assert rows.cell.tolist() == cells
        assert rows.outcome.tolist() == [x for each in recovery.evaluations for x in each.outcome]
        assert rows.best.tolist() == [x for each in recovery.evaluations for x in each.best]
        (row,) = found.runs[found.runs.run == number].to_dict("records")
        if recovery.composed is not None:
            assert row["composed"] == recovery.composed
    lines = found.references
    line = lines[(lines.disturbance == "proximity") & (lines.condition == 1)].iloc[0]
    assert (line.before, line.at_fault) == (recovery.before, recovery.at_fault)
    assert (line.exhaustive, line.exhaustive_cell) == (
        recovery.exhaustive,
        recovery.exhaustive_cell,
    )


def test_one_thread_and_four_give_equal_journals(run: Run) -> None:
    run("--out", "one", "--threads", 1)
    run("--out", "four", "--threads", 4)
    assert_equal_studies("one", "four")


def test_many_tasks_together_are_as_each_alone(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run("--out", "alone")
    monkeypatch.setitem(units.TASKS, "cpu", 5)
    run("--out", "together")
    assert_equal_studies("alone", "together")


def test_finished_study_is_not_done_again(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run("--out", "out")
    before = contents("out")
    monkeypatch.setattr(units, "adapt", None)
    outcome = run("--out", "out")
    assert f"all {RUNS} runs were there before; there was nothing to do." in outcome.stdout
    assert contents("out") == before
    assert len(load_results("out").about["sessions"]) == 1


def test_parts_one_after_the_other_make_the_whole(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[int] = []

    def counting(cases: list[object], *arguments: object, **options: object) -> object:
        searched.append(len(cases))
        return references(cases, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(units, "references", counting)
    run("--out", "parts", "--tables", "1", "--conditions", 1)
    assert set(load_results("parts").runs.table) == {"1"}
    assert set(load_results("parts").references.condition) == {0}
    run("--out", "parts", "--tables", "2b", "--replicates", 2)
    run("--out", "parts", "--learners", "smbo,lossy", "--disturbances", "proximity")
    run("--out", "parts")
    assert sum(searched) == CONDITIONS


def test_parts_equal_the_whole(run: Run) -> None:
    run("--out", "parts", "--tables", "2a", "--conditions", 1)
    run("--out", "parts", "--learners", "random")
    run("--out", "parts")
    run("--out", "whole")
    assert_equal_studies("parts", "whole")


def test_study_can_be_added_to(run: Run) -> None:
    bigger = STUDY.replace('"random"]', '"random", "gradient-ascent"]').replace(
        "conditions = 2", "conditions = 3", 1
    )
    run("--out", "grown")
    Path("study.toml").write_text(bigger.replace("ticks", "seeds = [1, 4]\nticks"))
    outcome = run("--out", "grown")
    assert f"{RUNS} were there before" in outcome.stdout
    run("--out", "whole")
    assert_equal_studies("grown", "whole")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("evaluations = 3", "evaluations = 4", "evaluations is now 4 and was 3"),
        ('name = "small"', 'name = "other"', "name is now 'other' and was 'small'"),
        ("ticks = 100", "ticks = 90", "ticks is now 90 and was 100"),
        ("ticks", 'noise = "fresh"\nticks', "noise is now 'fresh' and was 'replicate'"),
        ("ticks = 100", "ticks = 100\nrobot = {friction = 1}", "robot is now {'friction': 1.0}"),
        ("loss = 0.4", "loss = 0.5", "loss of lossy is now 0.5 and was 0.4"),
        (', "random"]', "]", "the learner random is missing"),
        ("conditions = 2", "conditions = 1", "smbo under proximity:1 with the map one.map"),
        ('"one.map", ', "", "with the map one.map (replicate 1, seed 1) is missing"),
        ("ticks", "seeds = [2]\nticks", "seed 1) is missing"),
    ],
)
def test_changed_study_is_refused(
    old: str, new: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_part(tmp_path)
    before = contents("out")
    write_study(tmp_path, STUDY.replace(old, new, 1))
    sentence = refused(capsys, "run", "study.toml", "--out", "out")
    assert "the study was begun with another definition: " in sentence
    assert words in sentence
    assert contents("out") == before


def run_part(folder: Path) -> Definition:
    """Do two runs of the study, into the folder out."""
    definition = read_study(folder)
    part = Selection(learners=("random",), replicates=(1,), conditions=1)
    run_study(definition, folder / "out", selection=part, threads=1, device="cpu")
    return definition


def test_changed_map_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_part(tmp_path)
    load_map("two.map").save("one.map")
    write = STUDY.replace('"one.map"', '{ map = "one.map", replicate = 1 }')
    Path("study.toml").write_text(write)
    sentence = refused(capsys, "run", "study.toml", "--out", "out")
    assert "the map one.map is another one than when the study was begun" in sentence


def test_other_noise_gives_other_results(run: Run) -> None:
    run("--out", "out", "--replicates", 1)
    Path("study.toml").write_text(STUDY.replace("ticks", "robot = {ground_noise = 0}\nticks", 1))
    run("--out", "quiet", "--replicates", 1)
    one, two = load_results("out"), load_results("quiet")
    assert not one.evaluations.outcome.equals(two.evaluations.outcome)


# --- trouble -----------------------------------------------------------------------------------

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")


def begin(*arguments: object, limit: int | None = None) -> "subprocess.Popen[str]":
    """`swarmbo study run` in a process of its own, perhaps with a limit on sizes of files."""

    def prepare() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    return subprocess.Popen(
        [sys.executable, "-m", "swarmbo", "study", "run", *map(str, arguments)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=prepare,
        env=ENVIRONMENT,
    )


LONGER = STUDY.replace("evaluations = 3", "evaluations = 6").replace("ticks = 100", "ticks = 400")


def test_killed_at_any_moment_loses_nothing_and_doubles_nothing(run: Run) -> None:
    Path("study.toml").write_text(LONGER)
    run("--out", "whole")
    chance = random.Random(1)
    killed = 0
    done = [0]
    while done[-1] < RUNS and killed < 4:
        child = begin("study.toml", "--out", "out", "--threads", 2, "--device", "cpu")
        wait_until(lambda: child.poll() is not None or progress() > done[-1])  # noqa: B023
        time.sleep(chance.uniform(0, 0.15))
        child.send_signal(signal.SIGKILL)
        child.wait()
        assert child.returncode in (0, -signal.SIGKILL)
        killed += child.returncode == -signal.SIGKILL
        done.append(progress())
    assert killed >= 1
    assert done == sorted(done)
    run("--out", "out")
    assert_equal_studies("whole", "out")


def progress() -> int:
    """How many runs the study in the folder out has done."""
    try:
        return len(load_results("out").runs)
    except InputError:
        return 0


def test_ctrl_c_exits_with_130_and_keeps_what_is_done(run: Run) -> None:
    Path("study.toml").write_text(LONGER)
    child = begin("study.toml", "--out", "out", "--threads", 2, "--device", "cpu")
    wait_until(lambda: child.poll() is not None or progress())
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=PATIENCE)
    assert child.returncode == 130
    assert said == "swarmbo: stopped\n"
    assert 0 < progress() <= RUNS


def test_full_disk_is_a_sentence_and_exit_code_1(run: Run) -> None:
    child = begin("study.toml", "--out", "out", "--device", "cpu", limit=2**16)
    _, said = child.communicate(timeout=PATIENCE)
    assert child.returncode == 1
    assert said.count("\n") == 1
    assert said.startswith("swarmbo: out/study.sqlite: cannot be written (")
    run("--out", "out")
    run("--out", "whole")
    assert_equal_studies("out", "whole")


# --- status ------------------------------------------------------------------------------------


def test_status_counts_what_was_asked_for_beside_the_whole_study(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_part(tmp_path)
    outcome = swarmbo(capsys, "study", "status", "out")
    assert outcome.code == 0
    words = f"small: 2 of 2 runs that were asked for (the whole study has {RUNS}) are done"
    assert words in outcome.stdout
    assert "nobody is at work on it" in outcome.stdout
    state = json.loads(swarmbo(capsys, "study", "status", "out", "--json").stdout)
    assert (state["runs"], state["asked"], state["done"]) == (RUNS, 2, 2)
    assert state["at_work"] is False
    assert state["references"] >= 1
    cells = {(c["table"], c["disturbance"], c["learner"]): c for c in state["cells"]}
    assert cells["1", "proximity", "random"]["done"] == 1
    assert cells["1", "proximity", "random"]["runs"] == 4
    assert cells["1", "proximity", "random"]["asked"] == 1
    assert cells["2b", "proximity", "lossy"] == {
        "table": "2b", "disturbance": "proximity", "learner": "lossy",
        "runs": 4, "asked": 0, "done": 0, "mean": None,
    }  # fmt: skip


def test_status_adds_up_what_several_commands_asked_for(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    run("--out", "out", "--learners", "smbo", "--conditions", 1)
    run(
        "--out", "out", "--learners", "smbo,lossy", "--conditions", 1, "--disturbances", "proximity"
    )
    outcome = swarmbo(capsys, "study", "status", "out")
    words = f"small: 6 of 6 runs that were asked for (the whole study has {RUNS}) are done"
    assert words in outcome.stdout
    rows = {tuple(line.split()[:3]) for line in outcome.stdout.splitlines()}
    assert {
        ("1", "proximity", "2/2"),
        ("2a", "proximity", "2/2"),
        ("2b", "proximity", "(2/2)"),
    } <= rows
    assert "food-scarcity-2x" not in outcome.stdout
    run("--out", "out")
    whole = swarmbo(capsys, "study", "status", "out").stdout
    assert f"small: {RUNS} of {RUNS} runs are done" in whole


def test_counts_of_runs_add_up_to_what_is_below_them(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    output = run("--out", "out", "--conditions", 1).stdout
    counts = [word for word in output.split() if re.fullmatch(r"[0-9]+/[0-9]+", word)]
    runs = sum(int(word.partition("/")[0]) for word in counts)
    assert f"out: {runs} runs in " in output
    assert "The runs of Table 2b are those of 2a" in output
    assert swarmbo(capsys, "study", "report", "out").code == 0
    report = Path("out/report/report.md").read_text()
    (said,) = re.findall(
        r"^([0-9]+) runs \(([0-9]+) for Table 1, ([0-9]+) for Tables 2a and 2b\): ", report, re.M
    )
    total, *parts = map(int, said)
    assert total == runs == sum(parts)
    table = re.compile(r"^\| [^|]+ \| [^|]+ \| ([0-9]+) \|", re.MULTILINE)  # the details
    for part, title in zip(parts, ("## Table 1:", "## Table 2b:"), strict=True):
        rows = report.partition(title)[2].partition("\n## ")[0]
        assert sum(map(int, table.findall(rows))) == part


@pytest.mark.parametrize(
    "options",
    [
        "null",
        "{}",
        '{"selection": 5}',
        '{"selection": {"conditions": "x"}}',
        '{"selection": {"tables": [1]}}',
        "[",
    ],
)
def test_sessions_with_unknown_options_count_as_the_whole_study(options: str) -> None:
    definition = read_study(Path())
    assert asked_for(definition, [options]) == list(definition.runs)


def test_status_of_a_folder_without_a_study_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert "holds no study; name a folder that" in refused(capsys, "status", ".")
