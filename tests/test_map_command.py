"""The command line: what `swarmbo map` prints, draws and writes."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from swarmbo import InputError, Scenario, conditions, load_controllers, load_map, rollout
from swarmbo.maps import behaviour_map as module
from swarmbo.maps.behaviour_map import BehaviourMap, Log
from tests.command import Outcome, swarmbo
from tests.test_behaviour_map import MADE, synthetic_map

QUICK = ("--trials", 1, "--ticks", 40)

Run = Callable[..., Outcome]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with some maps."""
    monkeypatch.chdir(tmp_path)
    for seed in (1, 2, 3):
        synthetic_map(seed).save(f"run-{seed}.map")
    synthetic_map(1, descriptor="sdbc").save("sdbc.map")
    BehaviourMap.from_arrays([[3, 4], [0, 0]], [6.0, 12.0]).save("own.map")
    return tmp_path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], folder: Path) -> Run:
    """`swarmbo map` in that folder; fails when the command does."""

    def run(*arguments: object) -> Outcome:
        outcome = swarmbo(capsys, "map", *arguments)
        assert outcome.code == 0, outcome.stderr
        assert outcome.stderr == ""
        return outcome

    return run


@pytest.mark.parametrize("command", ["show", "plot", "export", "evaluate"])
def test_help_shows_examples(run: Run, command: str) -> None:
    text = run(command, "--help").stdout
    assert "For example:" in text
    assert f"swarmbo map {command} " in text


def test_show_tells_what_is_in_a_map(run: Run) -> None:
    behaviour_map = synthetic_map(2)
    report = json.loads(run("show", "run-2.map", "--json").stdout)
    assert report == {
        "map": "run-2.map",
        "descriptor": "hbd",
        "filled_cells": 12,
        "best": behaviour_map.best,
        "mean": behaviour_map.mean,
        "robots": 6,
        "controllers": True,
        "evaluations": 6000,
        "finished": None,
        "seed": 2,
        "device": None,
        "options": MADE["options"],
        "versions": MADE["versions"],
    }
    shown = run("show", "run-2.map").stdout
    assert "12" in shown
    assert f"{behaviour_map.best:.2f} items per robot" in shown
    assert f"{behaviour_map.mean:.2f} items per robot" in shown
    assert "6,000" in shown
    assert 'preset "quick"' in shown


def test_show_of_a_map_of_ones_own(run: Run) -> None:
    report = json.loads(run("show", "own.map", "--json").stdout)
    assert report["filled_cells"] == 2
    assert (report["best"], report["mean"]) == (2, 1.5)
    assert (report["evaluations"], report["seed"], report["options"]) == (None, None, {})
    assert report["controllers"] is False
    assert "controllers   none" in run("show", "own.map").stdout


@pytest.mark.parametrize(
    ("total", "finished", "words"),
    [
        (6000, True, "6,000 "),
        (8_000_000, False, "6,000 of 8,000,000: not finished "),
        ("many", None, "6,000 "),
        (None, None, "6,000 "),
    ],
)
def test_show_tells_whether_the_evolution_is_finished(
    total: Any, finished: bool | None, words: str, run: Run
) -> None:
    made = MADE | {"options": {"evaluations": total}}
    replace(synthetic_map(), made=made).save("some.map")
    assert json.loads(run("show", "some.map", "--json").stdout)["finished"] is finished
    shown = " ".join(run("show", "some.map").stdout.split())
    assert f"evaluations {words}seed" in shown


def test_one_of_anything_is_not_many(run: Run) -> None:
    replace(synthetic_map(cells=1), performance=np.ones(1)).save("one.map")
    sizes = synthetic_map(cells=1).controllers()[0]
    shown = run("show", "one.map").stdout
    assert f"{sizes.hidden} hidden neuron{'s' * (sizes.hidden != 1)}, " in shown
    assert run("export", "one.map", "--out", "x.json").stdout == "x.json: 1 controller\n"
    shown = " ".join(run("evaluate", "one.map", "--trials", 1, "--ticks", 1).stdout.split())
    assert shown.startswith("1 controller, 6 robots in the arena foraging, 1 trial of 1 tick; ")


def test_show_does_not_obey_what_a_map_says(run: Run) -> None:
    made = {"options": {"[red]\x1b[2J": "[bold]\x1b]0;title\x07"}}
    replace(synthetic_map(), made=made).save("odd.map")
    shown = run("show", "odd.map").stdout
    assert "\x1b" not in shown
    assert "[red]" in shown
    assert "[bold]" in shown


def test_bundled_map_is_known_by_name(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf = Path("shelf")
    shelf.mkdir()
    synthetic_map(9).save(shelf / "paper-9.map")
    monkeypatch.setattr(module, "files", lambda package: shelf)
    assert json.loads(run("show", "paper-9", "--json").stdout)["seed"] == 9


def test_every_column_of_levels_has_numbers_below_it() -> None:
    from swarmbo.maps.plots import plot_maps

    levels = plot_maps([load_map("paper-1")]).subfigs[1].axes
    drawn = [axis for axis in levels if axis.axison]
    assert len(drawn) == 11  # in six columns
    numbered = {axis for axis in drawn if axis.xaxis.get_tick_params()["labelbottom"]}
    assert numbered == set(drawn[5:])


@pytest.mark.parametrize(
    ("names", "picture", "beginning"),
    [
        (["run-1.map"], "map.png", b"\x89PNG"),
        (["run-1.map", "run-2.map", "run-3.map"], "maps.PNG", b"\x89PNG"),
        (["sdbc.map"], "map.svg", b"<?xml"),
        (["own.map"], "map.pdf", b"%PDF"),
    ],
)
def test_plot_draws_a_picture(run: Run, names: list[str], picture: str, beginning: bytes) -> None:
    count = "1 map" if len(names) == 1 else f"{len(names)} maps"
    assert run("plot", *names, "--out", picture).stdout == f"{picture}: picture of {count}\n"
    assert Path(picture).read_bytes().startswith(beginning)
    assert Path(picture).stat().st_size > 5000


def words_of(figure: Any) -> set[str]:
    """All that is written in a figure."""
    from matplotlib.text import Text

    return {text.get_text() for text in figure.findobj(Text)}


def test_picture_names_its_axes_and_colours() -> None:
    from swarmbo.maps.plots import plot_maps

    behaviour_map = synthetic_map(cells=40)
    words = words_of(plot_maps([behaviour_map], ["mine"]))
    assert words >= {
        "uniformity of visits, 1 = even",
        "distance to centre / half diagonal",
        "coverage, share of squares",
        "items per robot",
        "best, items per robot",
        "filled cells",
        "generation",
    }
    assert f"mine: 40 cells, best {behaviour_map.best:.2f}" in " ".join(words)
    levels = {word for word in words if word.startswith("coverage 0.")}
    assert len(levels) == len(set(behaviour_map.cells[:, 2].tolist()))


def test_heat_maps_show_the_best_over_the_dimension_left_out() -> None:
    from swarmbo.maps.plots import plot_maps

    cells, performance = [[0, 1, 0], [0, 1, 3], [2, 2, 2]], [6.0, 18.0, 12.0]
    figure = plot_maps([BehaviourMap.from_arrays(cells, performance)])
    shown: Any = figure.subfigs[0].axes[0].collections[0].get_array()
    assert shown.shape == (3, 3)
    assert (shown[1, 0], shown[2, 2]) == (3, 2)
    assert np.ma.count(shown) == 2


def course(generations: list[int], best: list[float], batch: int = 1) -> BehaviourMap:
    """A map whose log says what the best was after these generations."""
    counts = np.array(generations)
    log = Log(counts, 10 + batch * counts, counts, np.array(best), counts)
    return replace(synthetic_map(), log=log)


def test_course_of_several_maps_is_their_mean_and_deviation() -> None:
    from swarmbo.maps.plots import plot_maps

    figure = plot_maps([course([0, 2, 3], [1, 3, 5]), course([0, 1, 2, 3], [3, 3, 5, 5])])
    axis = figure.subfigs[-1].axes[0]
    (line,) = axis.lines
    assert np.asarray(line.get_xdata()).tolist() == [0, 1, 2, 3]
    assert np.asarray(line.get_ydata()).tolist() == [2, 2, 4, 5]
    (band,) = axis.collections
    heights = np.asarray(band.get_paths()[0].vertices)[:, 1]
    assert (heights.min(), heights.max()) == (1, 5)


def test_courses_of_unlike_maps_are_drawn_one_by_one_to_their_ends() -> None:
    from swarmbo.maps.plots import plot_maps

    figure = plot_maps(
        [course([0, 1], [1, 2]), course([0, 1, 2], [2, 3, 5]), course([0, 1], [2, 3], batch=7)],
        ["short", "long", "large"],
    )
    axis = figure.subfigs[-1].axes[0]
    assert [np.asarray(line.get_xdata()).tolist() for line in axis.lines] == [
        [10, 11],
        [10, 11, 12],
        [10, 17],
    ]
    assert words_of(figure) >= {"short", "long", "large", "evaluations"}
    assert "each by itself" in " ".join(words_of(figure))


@pytest.mark.parametrize(
    ("descriptor", "change"),
    [
        ("hbd", {"performance": np.zeros(3)}),
        ("sdbc", {"performance": np.full(3, -3.0)}),
        ("hbd", {"log": Log.empty()}),
        ("sdbc", {"log": Log(*([5],) * 5)}),  # type: ignore[arg-type]
    ],
    ids=["useless", "negative", "no log", "one row of log"],
)
def test_odd_maps_can_be_drawn(descriptor: str, change: dict[str, Any], tmp_path: Path) -> None:
    from swarmbo.maps.plots import plot_maps, save_figure

    behaviour_map = replace(synthetic_map(cells=3, descriptor=descriptor), **change)
    save_figure(plot_maps([behaviour_map], ["$a_$ \udcff \u4e2d"]), tmp_path / "map.svg")
    assert "items per robot" in (tmp_path / "map.svg").read_text()


@pytest.mark.parametrize(
    "cells",
    [[[0], [5]], [[0, 0]], [[0, 0], [2**31 - 1, 3]], [[1, 2, 3]], [[1, 2, 3, 4], [0] * 4]],
)
def test_any_cells_can_be_drawn(cells: list[list[int]], tmp_path: Path) -> None:
    from swarmbo.maps.plots import plot_maps, save_figure

    behaviour_map = BehaviourMap.from_arrays(cells, np.arange(len(cells)))
    save_figure(plot_maps([behaviour_map]), tmp_path / "map.svg")
    assert "items per robot" in (tmp_path / "map.svg").read_text()


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_equal_maps_give_equal_pictures(kind: str, tmp_path: Path) -> None:
    from swarmbo.maps.plots import plot_maps, save_figure

    for number in (1, 2):
        own = BehaviourMap.from_arrays([[3, 4], [0, 0]], [6.0, 12.0])
        save_figure(plot_maps([own]), tmp_path / f"{number}.{kind}")
    assert (tmp_path / f"1.{kind}").read_bytes() == (tmp_path / f"2.{kind}").read_bytes()


def test_no_maps_give_no_picture() -> None:
    from swarmbo.maps.plots import plot_maps

    with pytest.raises(InputError, match="no maps to plot"):
        plot_maps([])


def test_export_writes_the_controllers_in_the_order_of_the_rows(run: Run) -> None:
    said = run("export", "run-3.map", "--out", "controllers.json").stdout
    assert said == "controllers.json: 12 controllers\n"
    assert load_controllers("controllers.json") == synthetic_map(3).controllers()


def test_evaluate_repeats_the_evaluation_of_the_map(run: Run) -> None:
    behaviour_map = synthetic_map(2)
    scenario = Scenario.draw(seed=2, trials=1, ticks=40)
    teams = [[controller] * 6 for controller in behaviour_map.controllers()]
    result = rollout(teams, scenario)
    replace(behaviour_map, performance=result.performance).save("true.map")
    report = json.loads(run("evaluate", "true.map", *QUICK, "--json").stdout)
    assert report["seed"] == 2
    assert report["items"] == result.performance.tolist() == report["prior_items"]
    assert report["best"] == report["prior_best"] == report["prior_best_now"]
    assert report["mean"] == report["prior_mean"]


def test_evaluate_under_a_disturbance_compares_with_the_map(run: Run) -> None:
    behaviour_map = synthetic_map(2)
    options = ("--disturbance", "ground:3", "--seed", 5, "--trials", 2, "--ticks", 200)
    report = json.loads(run("evaluate", "run-2.map", *options, "--threads", 1, "--json").stdout)
    (broken,) = conditions("ground", 2)[3:4]
    assert report["disturbance"] == json.loads(json.dumps([broken.to_json()]))
    scenario = Scenario.draw(seed=5, trials=2, ticks=200, disturbances=(broken,))
    teams = [[controller] * 6 for controller in behaviour_map.controllers()]
    result = rollout(teams, scenario)
    assert report["items"] == result.performance.tolist()
    assert report["mean"] == pytest.approx(result.performance.mean() / 6)
    best = int(result.performance.argmax())
    assert report["best_controller"] == best
    assert report["best_cell"] == behaviour_map.cells[best].tolist()
    assert report["prior_best"] == behaviour_map.best
    assert report["prior_items"] == behaviour_map.performance.tolist()
    if result.performance.std() > 0:
        expected = np.corrcoef(result.performance, behaviour_map.performance)[0, 1]
        assert report["correlation"] == pytest.approx(expected)
    text = " ".join(run("evaluate", "run-2.map", *options).stdout.split())
    assert "broken: ground:3 (ground)" in text
    assert f"{report['prior_mean']:.2f}" in text


@pytest.mark.parametrize("table", ["scores.csv", "scores.parquet"])
def test_evaluate_writes_a_row_per_controller(run: Run, table: str) -> None:
    run("evaluate", "sdbc.map", *QUICK, "--no-noise", "--out", table)
    read = pd.read_csv(table) if table.endswith("csv") else pd.read_parquet(table)
    behaviour_map = synthetic_map(1, descriptor="sdbc")
    assert list(read) == [
        *("controller", "cell_0", "prior", "items", "uniformity", "centre_distance", "coverage")
    ]
    assert read["controller"].tolist() == list(range(12))
    assert read["cell_0"].tolist() == behaviour_map.cells[:, 0].tolist()
    assert read["prior"].tolist() == behaviour_map.performance.tolist()
    teams = [[controller] * 6 for controller in behaviour_map.controllers()]
    result = rollout(teams, Scenario.draw(seed=1, trials=1, ticks=40).without_noise())
    assert read["items"].tolist() == result.performance.tolist()
    for name in ("uniformity", "centre_distance", "coverage"):
        assert read[name].tolist() == getattr(result, name)[:, 0].tolist()


def test_evaluate_does_not_depend_on_threads(run: Run) -> None:
    outputs = {
        run("evaluate", "run-1.map", *QUICK, "--json", "--threads", n).stdout for n in (1, 3)
    }
    assert len(outputs) == 1


def test_evaluate_in_a_2x_condition_has_its_arena_and_robots(run: Run) -> None:
    options = ("--trials", 1, "--ticks", 10, "--disturbance", "food-scarcity-2x:0")
    report = json.loads(run("evaluate", "run-1.map", *options, "--json").stdout)
    assert (report["arena"], report["robots"], report["ticks"]) == ("foraging-2x", 12, 10)


WRONG = {
    "show missing": ("show no.map", "no.map: is neither a file nor a bundled map"),
    "show folder": ("show .", ".: is a folder"),
    "show damaged": ("show damaged.map", "damaged.map: is damaged"),
    "show text": ("show text.map", "text.map: is not a map"),
    "show two": ("show run-1.map run-2.map", "run-2.map"),
    "plot missing": ("plot run-1.map no.map --out x.png", "no.map: is neither"),
    "plot nothing": ("plot --out x.png", "MAP"),
    "plot nowhere": ("plot run-1.map", "--out"),
    "plot kind": ("plot run-1.map --out x.jpg", "x.jpg: is not the name of a picture"),
    "plot no kind": ("plot run-1.map --out x", "let it end in .png, .svg, .pdf"),
    "plot folder": ("plot run-1.map --out no/x.png", "no/x.png: the folder"),
    "plot mixed": ("plot run-1.map sdbc.map --out x.png", "different descriptors (hbd, sdbc)"),
    "plot itself": ("plot pic.png --out pic.png", "pic.png: is named for two purposes"),
    "export nothing": ("export own.map --out x.json", "own.map: the map holds no controllers"),
    "export itself": ("export run-1.map --out run-1.map", "run-1.map: is named for two"),
    "export folder": ("export run-1.map --out .", ".: is a folder"),
    "export kind": ("export run-1.map --out x.txt", "x.txt: is not the name of a JSON file"),
    "export no kind": ("export run-1.map --out x", "let it end in .json"),
    "export nowhere": ("export run-1.map", "--out"),
    "evaluate nothing": ("evaluate own.map", "own.map: the map holds no controllers"),
    "evaluate condition": ("evaluate run-1.map --disturbance ground:20", "ground:0 to"),
    "evaluate fault": ("evaluate run-1.map --disturbance rust:0", "'rust:0'"),
    "evaluate robots": ("evaluate twelve.map --disturbance ground:0", "lists 6 robots"),
    "evaluate table": ("evaluate run-1.map --out x.txt", "end in .csv or .parquet"),
    "evaluate itself": ("evaluate own.csv --out own.csv", "own.csv: is named for two"),
    "evaluate seed": ("evaluate run-1.map --seed -1", "'--seed'"),
    "evaluate trials": ("evaluate run-1.map --trials 0", "'--trials'"),
    "evaluate ticks": ("evaluate run-1.map --ticks 0", "'--ticks'"),
    "evaluate threads": ("evaluate run-1.map --threads 0", "'--threads'"),
    "unknown command": ("paint run-1.map", "'paint'"),
}


@pytest.mark.parametrize(("arguments", "words"), list(WRONG.values()), ids=list(WRONG))
def test_wrong_use_is_one_sentence_and_writes_nothing(
    arguments: str, words: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = Path("run-1.map").read_bytes()
    Path("damaged.map").write_bytes(data[:-1])
    Path("text.map").write_text("hello")
    for name in ("pic.png", "own.csv"):
        Path(name).write_bytes(data)
    replace(synthetic_map(), robots=12).save("twelve.map")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    outcome = swarmbo(capsys, "map", *arguments.split())
    assert (outcome.code, outcome.stdout) == (2, "")
    assert outcome.stderr.startswith("swarmbo: ")
    assert outcome.stderr.count("\n") == 1
    assert words in outcome.stderr
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
