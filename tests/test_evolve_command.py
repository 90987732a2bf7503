"""`swarmbo evolve`: the maps it writes, and what happens when it is stopped."""

import json
import os
import random
import re
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from swarmbo import InputError, Rollout, load_map, rollout
from swarmbo.cli import main
from swarmbo.cli.evolve import PRESETS, map_paths
from swarmbo.engine.gpu import driver as gpu
from swarmbo.evolution import archive, checkpoint, map_elites
from tests.command import PATIENCE, Outcome, swarmbo, wait_until

FAST = ("--evaluations", 120, "--batch", 20, "--ticks", 60, "--device", "cpu")
CHECKPOINT = Path("mine.map.checkpoint")

Run = Callable[..., Outcome]


@pytest.fixture(autouse=True)
def _small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in an empty folder; evolutions begin with 40 random controllers, not 1,000."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(map_elites, "INITIAL", 40)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """`swarmbo evolve`; fails when the command does."""

    def run(*arguments: object) -> Outcome:
        outcome = swarmbo(capsys, "evolve", *arguments)
        assert outcome.code == 0, outcome.stderr
        return outcome

    return run


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The sentence with which `swarmbo evolve` refuses its arguments, having written nothing."""
    before = sorted(Path().iterdir())
    outcome = swarmbo(capsys, "evolve", *arguments)
    assert (outcome.code, outcome.stdout) == (2, "")
    assert outcome.stderr.startswith("swarmbo: ")
    assert outcome.stderr.count("\n") == 1
    assert sorted(Path().iterdir()) == before
    return outcome.stderr


def begin(*arguments: object) -> int:
    """`swarmbo evolve` in a process of its own, silent; its id."""
    if not hasattr(os, "fork"):
        pytest.skip("needs fork")
    child = os.fork()
    if child:
        return child
    try:
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        code = main(["evolve", *map(str, arguments)])
    except BaseException:  # whatever it is, this process must not go on with the tests
        code = 99
    os._exit(code)


def end(child: int, timeout: float = PATIENCE) -> int:
    """Wait for a process; its exit code, or minus the signal that ended it."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise TimeoutError


def has_ended(child: int) -> bool:
    """Whether a process has ended; `end` tells how."""
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def checkpoint_time() -> int | None:
    """When the checkpoint was written, in nanoseconds; None when there is none."""
    try:
        return CHECKPOINT.stat().st_mtime_ns
    except FileNotFoundError:
        return None


def save_always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let there be a checkpoint after every generation."""
    monkeypatch.setattr(checkpoint, "INTERVAL", 0.0)
    monkeypatch.setattr(checkpoint, "SHARE", 1e9)


# --- maps --------------------------------------------------------------------------------------


def test_map_is_written_and_summarised(run: Run) -> None:
    outcome = run("--out", "mine.map", *FAST, "--seed", 3)
    behaviour_map = load_map("mine.map")
    assert behaviour_map.made["seed"] == 3
    assert behaviour_map.made["evaluations"] == 120
    assert outcome.stdout.startswith(
        f"mine.map: {behaviour_map.filled_cells} cells, best {behaviour_map.best:.2f}, "
        f"mean {behaviour_map.mean:.2f} items per robot\n120 evaluations in "
    )
    assert outcome.stderr == ""
    assert [path.name for path in Path().iterdir()] == ["mine.map"]


def test_json_is_one_object(run: Run) -> None:
    report = json.loads(run("--out", "mine.map", *FAST, "--json").stdout)
    behaviour_map = load_map("mine.map")
    (entry,) = report["maps"]
    assert entry == {
        "map": "mine.map",
        "seed": 1,
        "filled_cells": behaviour_map.filled_cells,
        "best": behaviour_map.best,
        "mean": behaviour_map.mean,
        "refused_mutations": 0,
    }
    options = {name: report[name] for name in ("descriptor", "evaluations", "batch", "device")}
    assert options == {"descriptor": "hbd", "evaluations": 120, "batch": 20, "device": "cpu"}
    assert report["evaluations_now"] == 120
    assert report["seconds"] > 0


def test_map_of_sdbc_has_its_centroids(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    few = np.random.default_rng(1).random((300, 10))
    monkeypatch.setattr(archive, "uniform_centroids", lambda count, dimensions: few)
    run("--out", "mine.map", "--descriptor", "sdbc", *FAST)
    behaviour_map = load_map("mine.map")
    assert behaviour_map.descriptor_name == "sdbc"
    assert behaviour_map.centroids is not None
    assert np.array_equal(behaviour_map.centroids, few)


def test_evaluating_a_map_again_gives_what_it_promises(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    run("--out", "mine.map", *FAST, "--seed", 4)
    again = swarmbo(capsys, "map", "evaluate", "mine.map", "--ticks", 60, "--json")
    report = json.loads(again.stdout)
    assert report["items"] == report["prior_items"]
    assert max(report["items"]) > 0


def test_replicates_have_their_seeds_in_their_names_and_equal_each_seed_alone(run: Run) -> None:
    run("--out", "both.map", *FAST, "--replicates", 2, "--seed", 3, "--threads", 1)
    assert sorted(path.name for path in Path().iterdir()) == ["both-3.map", "both-4.map"]
    for seed in (3, 4):
        run("--out", f"alone-{seed}.map", *FAST, "--seed", seed)
        alone, both = Path(f"alone-{seed}.map"), Path(f"both-{seed}.map")
        assert alone.read_bytes() == both.read_bytes()


def test_finished_map_is_not_overwritten(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    run("--out", "mine.map", *FAST)
    first = Path("mine.map").read_bytes()
    sentence = refused(capsys, "--out", "mine.map", *FAST, "--seed", 2)
    assert sentence == (
        "swarmbo: mine.map: is there already; use --resume to keep it, "
        "or another name for a new map\n"
    )
    assert Path("mine.map").read_bytes() == first
    run("--out", "run.map", *FAST, "--seed", 2)
    Path("run.map").rename("run-2.map")
    assert "run-2.map: is there already" in refused(
        capsys, "--out", "run.map", *FAST, "--replicates", 3
    )


def test_one_of_anything_is_not_many(run: Run) -> None:
    shown = run("--out", "mine.map", "--evaluations", 1, "--ticks", 20, "--device", "cpu").stdout
    assert shown.startswith("mine.map: 1 cell, best ")
    assert "1 evaluation in " in shown


def test_presets_are_those_of_the_documentation() -> None:
    assert PRESETS["paper"] == (1_000 + 20_000 * 500, 500)
    assert PRESETS["quick"] == (50_000, 200)


def test_names_of_replicates() -> None:
    names = map_paths(Path("a.b/mine.x.map"), 2, 3)
    assert names == [Path(f"a.b/mine.x-{seed}.map") for seed in (2, 3, 4)]
    assert map_paths(Path("mine"), 1, 1) == [Path("mine")]
    with pytest.raises(InputError, match="not a file name"):
        map_paths(Path(), 1, 1)


# --- stopping and going on ---------------------------------------------------------------------


def test_resumed_evolution_equals_uninterrupted_one_after_kill_9(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    longer = ("--evaluations", 600, "--batch", 20, "--ticks", 60, "--device", "cpu")
    run("--out", "whole.map", *longer)
    save_always(monkeypatch)
    chance = random.Random(1)
    killed = resumed = 0
    while not Path("mine.map").exists():
        resumed += CHECKPOINT.exists()
        threads = chance.choice([1, 2, 3])
        before = checkpoint_time()
        child = begin("--out", "mine.map", *longer, "--resume", "--threads", threads)
        if chance.random() < 0.8:  # it comes farther than the one before
            wait_until(lambda: checkpoint_time() != before or has_ended(child))  # noqa: B023
        time.sleep(chance.uniform(0, 0.03))
        os.kill(child, signal.SIGKILL)
        killed += end(child) == -signal.SIGKILL
        assert killed < 200
    assert killed > 1
    assert resumed > 1
    run("--out", "mine.map", *longer, "--resume")
    assert Path("mine.map").read_bytes() == Path("whole.map").read_bytes()


def test_ctrl_c_keeps_the_last_generation_and_exits_with_130(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "INTERVAL", 1e9)
    longer = ("--evaluations", 40_000, "--batch", 20, "--ticks", 60, "--device", "cpu")
    begun = Path("begun")
    during(monkeypatch, begun.touch)
    child = begin("--out", "mine.map", *longer)
    wait_until(begun.exists)
    begun.unlink()
    os.kill(child, signal.SIGINT)
    assert end(child) == 130
    assert [path.name for path in Path().iterdir()] == ["mine.map.checkpoint"]
    state = load_map("mine.map.checkpoint")
    assert 60 <= state.made["evaluations"] < 40_000
    assert state.log.evaluations[-1] == state.made["evaluations"]


def test_ctrl_c_among_the_random_controllers_says_that_nothing_is_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(*_: object, **__: object) -> Rollout:
        raise KeyboardInterrupt

    monkeypatch.setattr(map_elites, "rollout", stop)
    monkeypatch.setattr("os._exit", lambda code: sys.exit(code))
    with pytest.raises(SystemExit) as stopped:
        main(["evolve", "--out", "mine.map", *map(str, FAST)])
    assert stopped.value.code == 130
    said = capsys.readouterr().err
    assert said == (
        "nothing is kept: the random controllers were not all evaluated yet\nswarmbo: stopped\n"
    )
    assert list(Path().iterdir()) == []


def test_resume_of_an_interrupted_run_goes_on_and_removes_the_checkpoint(run: Run) -> None:
    run("--out", "whole.map", *FAST, "--seed", 6)
    interrupt_after(2, "--out", "mine.map", *FAST, "--seed", 6)
    assert load_map(CHECKPOINT).made["evaluations"] == 60
    report = json.loads(run("--out", "mine.map", *FAST, "--seed", 6, "--resume", "--json").stdout)
    assert report["evaluations_now"] == 60
    assert Path("mine.map").read_bytes() == Path("whole.map").read_bytes()
    assert not CHECKPOINT.exists()


def interrupt_after(generations: int, *arguments: object) -> None:
    """Run `swarmbo evolve` until so many generations are done, then stop it as Ctrl-C does."""
    tell = map_elites.Evolution.tell

    def tell_and_stop(evolution: map_elites.Evolution, result: Rollout) -> None:
        tell(evolution, result)
        if evolution.generation == generations:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(map_elites.Evolution, "tell", tell_and_stop)
        assert end(begin(*arguments)) == 130


def test_interrupted_replicates_all_go_on(run: Run) -> None:
    run("--out", "whole.map", *FAST, "--replicates", 2)
    interrupt_after(3, "--out", "mine.map", *FAST, "--replicates", 2)
    assert Path("mine-1.map.checkpoint").exists()
    run("--out", "mine.map", *FAST, "--replicates", 2, "--resume")
    for seed in (1, 2):
        assert Path(f"mine-{seed}.map").read_bytes() == Path(f"whole-{seed}.map").read_bytes()
    assert len(list(Path().iterdir())) == 4


def test_resume_of_nothing_starts_afresh(run: Run) -> None:
    run("--out", "mine.map", *FAST, "--resume")
    run("--out", "other.map", *FAST)
    assert Path("mine.map").read_bytes() == Path("other.map").read_bytes()


def test_resume_of_a_finished_map_says_so_and_does_nothing(run: Run) -> None:
    run("--out", "mine.map", *FAST)
    before = Path("mine.map").stat()
    outcome = run("--out", "mine.map", *FAST, "--resume")
    after = Path("mine.map").stat()
    assert (after.st_mtime_ns, after.st_ino) == (before.st_mtime_ns, before.st_ino)
    assert "Finished before; there was nothing to do." in outcome.stdout


def test_finished_map_of_other_versions_is_still_finished(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("--out", "mine.map", *FAST)
    monkeypatch.setattr(map_elites, "version", lambda name: "0.0.1")
    assert "Finished before" in run("--out", "mine.map", *FAST, "--resume").stdout


def test_map_that_was_saved_but_whose_checkpoint_remains_is_made_again(run: Run) -> None:
    interrupt_after(3, "--out", "mine.map", *FAST)
    late = CHECKPOINT.read_bytes()
    run("--out", "mine.map", *FAST, "--resume")
    whole = Path("mine.map").read_bytes()
    CHECKPOINT.write_bytes(late)
    run("--out", "mine.map", *FAST, "--resume")
    assert Path("mine.map").read_bytes() == whole
    assert not CHECKPOINT.exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("--seed", 2), "was made with seed 1, not 2"),
        (("--batch", 10), "was made with batch 20, not 10"),
        (("--evaluations", 140), "was made with evaluations 120, not 140"),
        (("--descriptor", "sdbc"), "was made with descriptor 'hbd', not 'sdbc'"),
    ],
)
@pytest.mark.parametrize("finished", [False, True], ids=["checkpoint", "map"])
def test_resume_with_other_options_is_refused(
    change: Sequence[object],
    message: str,
    finished: bool,
    run: Run,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if finished:
        run("--out", "mine.map", *FAST)
    else:
        interrupt_after(1, "--out", "mine.map", *FAST)
    there = "mine.map" if finished else CHECKPOINT
    sentence = refused(capsys, "--out", "mine.map", *FAST, *change, "--resume")
    assert sentence.startswith(f"swarmbo: {there}: {message}; use the same, or another name")


@pytest.mark.parametrize(
    ("begun", "resumed"),
    [
        ((), ("--replicates", 2)),
        (("--replicates", 2), ()),
        (("--replicates", 2), ("--replicates", 2, "--seed", 5)),
    ],
)
def test_resume_under_other_names_is_refused(
    begun: Sequence[object],
    resumed: Sequence[object],
    run: Run,
    capsys: pytest.CaptureFixture[str],
) -> None:
    interrupt_after(2, "--out", "mine[1].map", *FAST, *begun)
    (there,) = Path().glob("*.checkpoint")
    sentence = refused(capsys, "--out", "mine[1].map", *FAST, *resumed, "--resume")
    assert sentence.startswith(f"swarmbo: {there}: is of an evolution with another --replicates")
    run("--out", "mine[1].map", *FAST, *begun, "--resume")


def test_resume_with_more_replicates_goes_on(run: Run) -> None:
    interrupt_after(2, "--out", "mine.map", *FAST, "--replicates", 2)
    run("--out", "mine.map", *FAST, "--replicates", 3, "--resume")
    run("--out", "whole.map", *FAST, "--replicates", 3)
    for seed in (1, 2, 3):
        assert Path(f"mine-{seed}.map").read_bytes() == Path(f"whole-{seed}.map").read_bytes()


def test_checkpoints_of_other_maps_do_not_matter(run: Run) -> None:
    for name in ("my-1.map.checkpoint", "mine-b.map.checkpoint", "mine-1.png.checkpoint"):
        Path(name).touch()
    run("--out", "mine.map", *FAST, "--resume")


def test_resume_with_other_versions_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    interrupt_after(1, "--out", "mine.map", *FAST)
    monkeypatch.setattr(map_elites, "version", lambda name: "0.0.1")
    sentence = refused(capsys, "--out", "mine.map", *FAST, "--resume")
    assert f"was made with version of numpy '{np.__version__}', not '0.0.1'" in sentence


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "text"])
def test_damaged_checkpoint_is_refused(damage: str, capsys: pytest.CaptureFixture[str]) -> None:
    interrupt_after(1, "--out", "mine.map", *FAST)
    content = CHECKPOINT.read_bytes()
    middle = len(content) // 2
    damaged = {
        "cut": content[:middle],
        "flipped": content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :],
        "empty": b"",
        "text": b"hello",
    }[damage]
    CHECKPOINT.write_bytes(damaged)
    sentence = refused(capsys, "--out", "mine.map", *FAST, "--resume")
    assert sentence.startswith(f"swarmbo: {CHECKPOINT}: is ")
    assert sentence.endswith("; delete it to start anew\n")
    assert CHECKPOINT.read_bytes() == damaged


def test_unfinished_evolution_is_not_overwritten(capsys: pytest.CaptureFixture[str]) -> None:
    interrupt_after(1, "--out", "mine.map", *FAST)
    sentence = refused(capsys, "--out", "mine.map", *FAST)
    assert "continue it with --resume, or delete it to start anew" in sentence


def test_two_processes_do_not_evolve_the_same_map(capsys: pytest.CaptureFixture[str]) -> None:
    child = begin("--out", "mine.map", "--evaluations", 100_000, "--device", "cpu")
    lock = Path("mine.map.lock")
    wait_until(Path("mine.map.lock-journal").exists)  # it is made once the lock is taken
    os.kill(child, signal.SIGSTOP)  # so that no checkpoint appears meanwhile
    CHECKPOINT.touch()  # as after its first seconds
    for more in ((), ("--resume",)):
        sentence = refused(capsys, "--out", "mine.map", *FAST, *more)
        assert sentence == (
            "swarmbo: mine.map: another process is evolving this map; "
            "wait for it, or use another name\n"
        )
    CHECKPOINT.unlink()
    os.kill(child, signal.SIGKILL)
    end(child)
    assert lock.exists()
    assert swarmbo(capsys, "evolve", "--out", "mine.map", *FAST).code == 0
    assert [path.name for path in Path().iterdir()] == ["mine.map"]


def test_without_a_terminal_a_line_tells_now_and_then_how_it_goes(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swarmbo.cli.evolve.LINES", 0.0)
    lines = run("--out", "mine.map", *FAST).stderr.splitlines()
    assert re.fullmatch(
        r"mine.map: \d+ of 120 evaluations, [\d,]+/s, 0:00:\d\d left, "
        r"\d+ cells, best [\d.]+, mean [\d.]+ items per robot",
        lines[-1],
    )


# --- devices and bad values --------------------------------------------------------------------


class _Pending:
    def __init__(self, jobs: Sequence[gpu.Job], features: bool) -> None:
        self.jobs, self.features = jobs, features

    def result(self) -> list[Rollout]:
        return [rollout(job.genomes, job.scenario, features=self.features) for job in self.jobs]


def test_auto_takes_the_gpu_when_there_is_one_and_keeps_to_the_device(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    auto = (*FAST[:-1], "auto")
    monkeypatch.setattr(gpu, "why_not", lambda: "there is no GPU; buy one")
    interrupt_after(1, "--out", "mine.map", *auto)
    monkeypatch.setattr(gpu, "why_not", lambda: "")
    monkeypatch.setattr(gpu, "launch", lambda jobs, features: _Pending(jobs, features))
    run("--out", "new.map", *auto)
    assert load_map("new.map").made["device"] == "gpu"
    few = np.random.default_rng(1).random((300, 10))
    monkeypatch.setattr(archive, "uniform_centroids", lambda count, dimensions: few)
    run("--out", "sdbc.map", *FAST[:-1], "gpu", "--descriptor", "sdbc")
    assert load_map("sdbc.map").made["device"] == "gpu"
    run("--out", "mine.map", *auto, "--resume")
    assert load_map("mine.map").made["device"] == "cpu"
    monkeypatch.setattr(gpu, "why_not", lambda: "there is no GPU; buy one")
    sentence = refused(capsys, "--out", "another.map", *FAST[:-1], "gpu")
    assert sentence == "swarmbo: --device: there is no GPU; buy one\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--evaluations", 0), "'--evaluations'"),
        (("--batch", 0), "'--batch'"),
        (("--batch", "many"), "'--batch'"),
        (("--seed", -1), "'--seed'"),
        (("--replicates", 0), "'--replicates'"),
        (("--replicates", 101), "'--replicates'"),
        (("--threads", 0), "'--threads'"),
        (("--descriptor", "xyz"), "--descriptor: there is no 'xyz'; name one of hbd, sdbc"),
        (("--preset", "huge"), "--preset: there is no 'huge'; name one of quick, paper"),
        (("--device", "tpu"), "--device: there is no device 'tpu'; name one of auto, cpu, gpu"),
        (("--out", "folder"), "folder: is a folder"),
        (("--out", "missing/mine.map"), "missing does not exist; make it first"),
        (("--out", "file/mine.map"), "file is not a folder; choose another place"),
        (("--out", "x" * 250), "has too long a name; choose a shorter one"),
        (("--out", "taken.map"), "taken.map.checkpoint: is a folder in the place of a file"),
        (("--out", "."), ".: is not a file name"),
        (("--seed", 2**60), "seed is"),
    ],
)
def test_bad_values_are_refused(
    arguments: Sequence[Any], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("folder").mkdir()
    Path("taken.map.checkpoint").mkdir()
    Path("file").touch()
    options = {"--out": "mine.map", "--evaluations": 50} | {arguments[0]: arguments[1]}
    flat = [part for pair in options.items() for part in pair]
    assert words in refused(capsys, *flat)


def test_missing_name_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert "'--out'" in refused(capsys)


def test_help_shows_examples(capsys: pytest.CaptureFixture[str]) -> None:
    text = swarmbo(capsys, "evolve", "--help").stdout
    assert "swarmbo evolve --out mine.map" in text
    assert "--ticks" not in text


# --- files that appear or vanish during the work -----------------------------------------------


def during(
    monkeypatch: pytest.MonkeyPatch, happen: Callable[[], object], generation: int = 2
) -> None:
    """Let something happen after a generation of the next evolution."""
    after = checkpoint.Keeper.after_generation

    def patched(keeper: checkpoint.Keeper) -> None:
        if keeper.evolution.generation == generation:
            happen()
        after(keeper)

    monkeypatch.setattr(checkpoint.Keeper, "after_generation", patched)


def test_file_that_appears_during_the_work_is_kept_and_so_is_the_map(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("--out", "plain.map", *FAST)
    during(monkeypatch, lambda: Path("mine.map").write_text("precious"))
    outcome = run("--out", "mine.map", *FAST, "--json")
    assert Path("mine.map").read_text() == "precious"
    assert Path("mine.2.map").read_bytes() == Path("plain.map").read_bytes()
    assert outcome.stderr == (
        "mine.map: a file appeared there while the map was evolved; it stays, "
        "and the map is in mine.2.map\n"
    )
    assert json.loads(outcome.stdout)["maps"][0]["map"] == "mine.2.map"
    assert sorted(path.name for path in Path().iterdir()) == [
        *("mine.2.map", "mine.map", "plain.map")
    ]


def test_killed_between_map_and_checkpoint_leaves_one_map(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        save_always(patch)
        during(patch, lambda: CHECKPOINT.rename("kept"), generation=3)
        run("--out", "mine.map", *FAST)
    Path("kept").rename(CHECKPOINT)
    before = Path("mine.map").read_bytes()
    run("--out", "mine.map", *FAST, "--resume")
    assert Path("mine.map").read_bytes() == before
    assert [path.name for path in Path().iterdir()] == ["mine.map"]


def test_deleted_lock_ends_the_work_and_keeps_what_is_done(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run("--out", "plain.map", *FAST)
    with monkeypatch.context() as patch:
        during(patch, Path("mine.map.lock").unlink, generation=4)  # the last; nothing is saved yet
        outcome = swarmbo(capsys, "evolve", "--out", "mine.map", *FAST)
    assert outcome.code == 1
    assert outcome.stderr == (
        "swarmbo: mine.map.lock: was deleted during the work, so that another process could begin "
        "the same; run the same command with --resume to go on\n"
    )
    assert sorted(path.name for path in Path().iterdir()) == ["mine.map.checkpoint", "plain.map"]
    assert load_map(CHECKPOINT).made["evaluations"] == 120
    run("--out", "mine.map", *FAST, "--resume")
    assert Path("mine.map").read_bytes() == Path("plain.map").read_bytes()


def test_deleted_lock_that_another_process_took_leaves_both_their_work(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run("--out", "plain.map", *FAST)

    def begin_another() -> None:
        Path("mine.map.lock").unlink()
        held.__enter__()
        CHECKPOINT.write_bytes(b"of the other")

    held = checkpoint.reserved(Path("mine.map"))
    with monkeypatch.context() as patch:
        during(patch, begin_another, generation=4)
        outcome = swarmbo(capsys, "evolve", "--out", "mine.map", *FAST)
    held.__exit__(None, None, None)
    assert outcome.code == 1
    assert "what was done is in mine.map.2.checkpoint" in outcome.stderr
    assert CHECKPOINT.read_bytes() == b"of the other"
    Path("mine.map.2.checkpoint").replace(CHECKPOINT)
    run("--out", "mine.map", *FAST, "--resume")
    assert Path("mine.map").read_bytes() == Path("plain.map").read_bytes()
