"""The command line: what `swarmbo simulate` and `swarmbo bench` print and write."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import swarmbo as library
from swarmbo import Scenario, Swarm, bundled_controllers, conditions, rollout
from tests.command import PATIENCE, Outcome, swarmbo, wait_until

RECORDINGS = Path(__file__).parent / "data" / "argos"
QUICK = ("--trials", 2, "--ticks", 40)

Run = Callable[..., Outcome]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """`swarmbo` in an empty folder; fails when the command does."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> Outcome:
        outcome = swarmbo(capsys, *arguments)
        assert outcome.code == 0, outcome.stderr
        return outcome

    return run


def start(*arguments: object, **settings: Any) -> "subprocess.Popen[str]":
    """`swarmbo` in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "swarmbo", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **settings,
    )


def test_version_is_printed(run: Run) -> None:
    assert run("--version").stdout == f"swarmbo {library.__version__}\n"


@pytest.mark.parametrize("command", ["simulate", "bench"])
def test_help_shows_examples(run: Run, command: str) -> None:
    text = run(command, "--help").stdout
    assert "For example:" in text
    assert f"swarmbo {command} " in text


def test_command_without_arguments_shows_help(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = swarmbo(capsys, "simulate")
    assert outcome.code == 2
    assert "Usage: swarmbo simulate" in outcome.stdout


def test_module_is_the_command() -> None:
    process = start("--version")
    assert process.communicate(timeout=PATIENCE)[0] == f"swarmbo {library.__version__}\n"
    assert process.returncode == 0


def test_table_shows_every_team_of_the_example(run: Run) -> None:
    outcome = run("simulate", "example")
    result = rollout(
        [[controller] * 6 for controller in bundled_controllers("example")], Scenario.draw(seed=1)
    )
    lines = outcome.stdout.splitlines()
    for team, items in enumerate(result.performance):
        (row,) = (line for line in lines if line.startswith(f"     {team}  "))
        assert f" {items:.2f} ±" in row
        assert f" {items / 6:.2f} " in row
    assert "6 robots in the arena foraging, 8 trials of 600 ticks (120 s)" in outcome.stdout
    assert outcome.stderr == ""


def test_long_table_shows_the_best_and_the_worst(run: Run) -> None:
    report = json.loads(run("simulate", "recorded", *QUICK, "--ticks", 200, "--json").stdout)
    rows = run("simulate", "recorded", *QUICK, "--ticks", 200).stdout.splitlines()
    shown = [float(row.split()[1]) for row in rows if " ± " in row and row.split()[0].isdigit()]
    ranked = sorted((team["items"] for team in report["teams"]), reverse=True)
    assert shown == [round(items, 2) for items in ranked[:10] + ranked[-10:]]


def test_scores_have_the_documented_columns_and_full_precision(run: Run) -> None:
    run("simulate", "example", *QUICK, "--seed", 3, "--scores", "scores.csv")
    table = pd.read_csv("scores.csv", dtype=str).map(float)
    assert list(table) == [
        *("team", "trial", "items", *(f"items_{robot}" for robot in range(6))),
        *("uniformity", "centre_distance", "coverage"),
    ]
    assert table[["team", "trial"]].to_numpy().tolist() == [
        [i, j] for i in range(6) for j in (0, 1)
    ]
    result = rollout(
        [[controller] * 6 for controller in bundled_controllers("example")],
        Scenario.draw(seed=3, trials=2, ticks=40),
    )
    for name in ("uniformity", "centre_distance", "coverage"):
        assert (table[name] == getattr(result, name).ravel()).all()
    assert (table["items"] == result.items.sum(axis=2).ravel()).all()
    assert (table.filter(regex=r"items_\d").to_numpy() == result.items.reshape(12, 6)).all()


def test_trace_has_the_documented_columns_and_follows_the_swarm(run: Run) -> None:
    run("simulate", "example", *QUICK, "--trace", "trace.parquet")
    schema = pq.read_schema("trace.parquet")
    assert schema.names == [
        *("team", "trial", "tick", "robot", "x", "y", "theta"),
        *(f"in{number}" for number in range(10)),
        *("left", "right", "carrying"),
    ]
    kinds = {name: str(schema.field(name).type) for name in schema.names}
    assert {kinds[name] for name in ("team", "trial", "tick", "robot")} == {"int32"}
    assert {kinds[name] for name in ("x", "y", "theta", "in0", "left")} == {"double"}
    assert kinds["carrying"] == "int8"

    trace = pd.read_parquet("trace.parquet")
    keys = ["team", "trial", "tick", "robot"]
    expected = pd.MultiIndex.from_product([range(6), range(2), range(1, 41), range(6)], names=keys)
    assert pd.MultiIndex.from_frame(trace[keys]).equals(expected)

    controllers = bundled_controllers("example")
    swarm = Swarm(Scenario.draw(seed=1, trials=2), [controllers[4]] * 6)
    swarm.advance(17)
    then = trace[(trace.team == 4) & (trace.tick == 17)]
    assert (then[["x", "y", "theta"]].to_numpy() == swarm.poses.reshape(12, 3)).all()
    assert (then[[f"in{k}" for k in range(10)]].to_numpy() == swarm.inputs.reshape(12, 10)).all()
    assert (then[["left", "right"]].to_numpy() == swarm.wheels.reshape(12, 2)).all()
    assert (then["carrying"].to_numpy() == swarm.carrying.ravel()).all()


def test_deliveries_in_the_trace_are_the_items_of_the_scores(run: Run) -> None:
    run("simulate", "example", "--trials", 2, "--scores", "s.csv", "--trace", "t.parquet")
    trace, scores = pd.read_parquet("t.parquet"), pd.read_csv("s.csv")
    carrying = trace.pivot(index=["team", "trial", "tick"], columns="robot", values="carrying")
    dropped = carrying.groupby(["team", "trial"]).diff() == -1
    items = dropped.groupby(["team", "trial"]).sum().to_numpy()
    assert items.sum() > 0
    assert (items == scores.filter(regex=r"items_\d").to_numpy()).all()


def test_json_is_one_object_that_repeats_the_options(run: Run) -> None:
    outcome = run(
        *("simulate", "example", *QUICK, "--seed", 4, "--no-noise", "--json"),
        *("--disturbance", "proximity:3", "--threads", 1),
    )
    report = json.loads(outcome.stdout)
    (disturbance,) = conditions("proximity", 4)[3:4]
    assert report["disturbance"] == json.loads(json.dumps([disturbance.to_json()]))
    options = {name: report[name] for name in ("arena", "robots", "trials", "ticks", "seed")}
    assert options == {"arena": "foraging", "robots": 6, "trials": 2, "ticks": 40, "seed": 4}
    assert report["noise"] is False
    assert len(report["teams"]) == 6
    scenario = Scenario.draw(seed=4, trials=2, ticks=40, disturbances=(disturbance,))
    result = rollout([[bundled_controllers("example")[2]] * 6], scenario.without_noise())
    team = report["teams"][2]
    assert team["team"] == 2
    assert team["controllers"] == [2] * 6
    assert team["items"] == result.performance[0]
    assert team["items_per_trial"] == result.items[0].sum(axis=1).tolist()
    assert team["items_per_trial_and_robot"] == result.items[0].tolist()
    assert team["uniformity"] == result.uniformity[0].mean()
    assert team["centre_distance"] == result.centre_distance[0].mean()
    assert team["coverage"] == result.coverage[0].mean()


def test_result_does_not_depend_on_threads(run: Run) -> None:
    outputs = {run("simulate", "recorded", *QUICK, "--json", "--threads", n).stdout for n in (1, 3)}
    assert len(outputs) == 1


def test_teams_may_mix_controllers(run: Run) -> None:
    Path("teams.json").write_text("[[0, 1, 2, 3, 4, 5], [2, 2, 2, 2, 2, 2]]")
    mixed = json.loads(run("simulate", "example", *QUICK, "--teams", "teams.json", "--json").stdout)
    plain = json.loads(run("simulate", "example", *QUICK, "--json").stdout)
    assert [team["controllers"] for team in mixed["teams"]] == [[0, 1, 2, 3, 4, 5], [2] * 6]
    same = {"team": 0, "controllers": 0}
    assert mixed["teams"][1] | same == plain["teams"][2] | same
    assert "0 1 2 3 4 5" in run("simulate", "example", *QUICK, "--teams", "teams.json").stdout


NUMBERS = re.compile(r"[0-9]+\.[0-9]{2} ± +[0-9.]+|[0-9]+\.[0-9]{2,3}(?![0-9])")


@pytest.mark.parametrize("width", [40, 50, 60, 72, 80])
@pytest.mark.parametrize("robots", [6, 12])
def test_narrow_terminals_cut_no_number_and_no_controller(
    run: Run, monkeypatch: pytest.MonkeyPatch, width: int, robots: int
) -> None:
    team = [0, 1, 2, 3, 4, 5] * (robots // 6)
    Path("teams.json").write_text(json.dumps([team, [5] * robots]))
    arguments = ("simulate", "example", "--teams", "teams.json", "--robots", robots)
    arena = ("--arena", "foraging-2x", "--ticks", 200)

    def lines(columns: int) -> list[str]:
        monkeypatch.setenv("COLUMNS", str(columns))
        return run(*arguments, *arena).stdout.partition("\nItems:")[0].splitlines()[1:]

    wide, narrow = lines(200), lines(width)
    assert "…" not in "".join(wide + narrow)
    assert NUMBERS.findall("\n".join(narrow)) == NUMBERS.findall("\n".join(wide))
    assert len(NUMBERS.findall("\n".join(narrow))) == 2 * 5
    if width >= 60:
        assert max(map(len, narrow)) <= width
    first = next(number for number, line in enumerate(narrow) if "±" in line)
    second = next(n for n, line in enumerate(narrow) if "±" in line and n > first)
    shown = "".join(NUMBERS.sub("", line) for line in narrow[first:second])
    assert [int(word) for word in shown.split()] == [0, *team]


@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")
def test_real_terminal_of_80_columns_shows_every_number(run: Run) -> None:
    import fcntl
    import pty
    import struct
    import termios

    Path("teams.json").write_text("[[0, 1, 2, 3, 4, 5]]")
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    plain = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    process = subprocess.Popen(
        [sys.executable, "-m", "swarmbo", "simulate", "example", "--teams", "teams.json"],
        stdin=slave,
        stdout=slave,
        stderr=subprocess.DEVNULL,
        env=plain | {"TERM": "xterm"},
    )
    os.close(slave)
    shown = b""
    with suppress(OSError):  # Linux's way to say that nobody writes any more
        while piece := os.read(master, 65536):
            shown += piece
    os.close(master)
    assert process.wait(timeout=60) == 0
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())
    (row,) = (line for line in text.splitlines() if line.startswith("     0  "))
    assert re.search(r"0 1 2 3 4 5 +[0-9]+\.[0-9]{2} ± +[0-9.]+( +[0-9]\.[0-9]{2,3}){4}", row)
    assert len(row.rstrip()) <= 80


def test_poses_are_used_as_they_are_with_the_seeds_noise(run: Run) -> None:
    scenario = Scenario.draw(seed=9, robots=3, trials=2)
    rows = [
        {"trial": trial, "robot": robot, "x": x, "y": y, "theta": theta}
        for trial in range(2)
        for robot, (x, y, theta) in enumerate(scenario.poses[trial].tolist())
    ]
    pd.DataFrame(rows).to_csv("poses.csv.gz", index=False)
    options = ("--ticks", 40, "--seed", 9)
    drawn = run("simulate", "example", "--robots", 3, "--trials", 2, *options, "--json")
    given = run("simulate", "example", "--poses", "poses.csv.gz", *options, "--json")
    assert json.loads(given.stdout) == json.loads(drawn.stdout) | {"poses": "poses.csv.gz"}


def test_mad_robot_starts_where_the_poses_say(run: Run) -> None:
    recorded = RECORDINGS / "foraging_seed1_poses.csv.gz"
    Path("fault.json").write_text('{"kind": "software-nest", "robot": 2}')
    run(
        *("simulate", "example", "--poses", recorded, "--ticks", 1),
        *("--disturbance", "fault.json", "--trace", "trace.parquet"),
    )
    trace = pd.read_parquet("trace.parquet").query("team == 0")
    start = pd.read_csv(recorded).sort_values(["trial", "robot"])
    assert np.allclose(trace[["x", "y"]], start[["x", "y"]], atol=1e-12)


@pytest.mark.parametrize("kind", ["proximity-2x", "food-scarcity-2x"])
def test_2x_condition_implies_its_arena_robots_and_ticks(run: Run, kind: str) -> None:
    options = ("--trials", 1, "--disturbance", f"{kind}:0", "--json")
    report = json.loads(run("simulate", "example", *options).stdout)
    assert (report["arena"], report["robots"], report["ticks"]) == ("foraging-2x", 12, 1200)
    shorter = json.loads(run("simulate", "example", *options, "--ticks", 10).stdout)
    assert (shorter["arena"], shorter["robots"], shorter["ticks"]) == ("foraging-2x", 12, 10)


def test_2x_arena_has_12_robots_by_default(run: Run) -> None:
    report = json.loads(
        run("simulate", "example", "--arena", "foraging-2x", "--trials", 1, "--json").stdout
    )
    assert (report["robots"], report["ticks"]) == (12, 600)


def test_bundled_name_wins_over_a_file_of_that_name(run: Run) -> None:
    Path("example").write_text('[{"hidden": 0, "bias": [0, 0], "connections": []}]')
    bundled = json.loads(run("simulate", "example", *QUICK, "--json").stdout)
    assert len(bundled["teams"]) == 6
    mine = json.loads(run("simulate", "./example", *QUICK, "--json").stdout)
    assert len(mine["teams"]) == 1


def test_existing_output_is_replaced_through_a_link(run: Run) -> None:
    Path("real.csv").write_text("old")
    Path("link.csv").symlink_to("real.csv")
    run("simulate", "example", *QUICK, "--scores", "link.csv")
    assert Path("link.csv").is_symlink()
    assert Path("real.csv").read_text().startswith("team,trial,items")


def test_bench_reports_the_median_and_the_spread(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    few = bundled_controllers("example")[:2]
    monkeypatch.setattr("swarmbo.cli.bench.bundled_controllers", lambda name: few)
    report = json.loads(run("bench", "--threads", 1, "--repeats", 6, "--json").stdout)
    rates = report["repeats"]
    assert len(rates) == 6
    assert report["robot_ticks_per_second"] == pytest.approx(np.median(rates))
    assert report["min"] == min(rates)
    assert report["max"] == max(rates)
    assert report["lower_quartile"] == pytest.approx(np.quantile(rates, 0.25))
    assert report["upper_quartile"] == pytest.approx(np.quantile(rates, 0.75))
    assert (report["device"], report["threads"]) == ("cpu", 1)
    assert report["version"] == library.__version__
    for name in ("cpu", "python", "numba", "numpy"):
        assert report[name]
    shown = run("bench", "--threads", 1).stdout
    assert "robot-ticks per second, the median of 5" in shown


def test_ctrl_c_stops_at_once_and_leaves_no_file(tmp_path: Path) -> None:
    outputs = ("--scores", tmp_path / "s.csv", "--trace", tmp_path / "t.parquet")
    process = start("simulate", "example", "--ticks", 10_000_000, *outputs)
    wait_until(lambda: any(tmp_path.iterdir()))  # the temporary file: the simulation runs
    assert [path.suffix for path in tmp_path.iterdir()] == [".part"]
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert errors.splitlines()[-1] == "swarmbo: stopped"
    assert list(tmp_path.iterdir()) == []


def test_first_compilation_is_announced_and_can_be_stopped(tmp_path: Path) -> None:
    empty = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    process = start("simulate", "example", "--json", env=empty)
    assert process.stderr is not None
    assert process.stderr.readline().startswith("compiling the simulator for this machine, once")
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert errors.splitlines() == ["swarmbo: stopped"]
    assert output == ""


@pytest.mark.parametrize("form", [(), ("--json",)], ids=["table", "json"])
def test_reader_that_goes_away_is_no_error_message(form: tuple[str, ...]) -> None:
    process = start("simulate", "recorded", "--trials", 1, "--ticks", 2, *form)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(timeout=PATIENCE) == 1
    process.stderr.close()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_full_disk_is_one_sentence_and_exit_code_1() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "swarmbo", "simulate", "example", "--ticks", "2", "--json"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=PATIENCE,
        )
    assert done.returncode == 1
    assert done.stderr.startswith("swarmbo: the output cannot be written (No space left")
    assert done.stderr.count("\n") == 1
