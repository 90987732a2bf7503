"""The report of a study: its numbers, its files, and the page in a real browser."""

import html
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ranksums

from swarmbo import InputError
from swarmbo.cli.report import report
from swarmbo.report.folder import check_folder, write_report
from swarmbo.report.summary import (
    Cell,
    Column,
    Comparison,
    Published,
    Summary,
    published,
    summarise,
)
from swarmbo.report.text import csv_tables, latex_details, latex_table, markdown, overview
from swarmbo.study.journal import Results
from tests.test_behaviour_map import synthetic_map

ODD = 'loss 40 % & <script>alert("$x_1$")</script> \\ {#^~}'
ABOUT: dict[str, Any] = {
    "versions": {"swarmbo": "0.1.0", "numba": "0.61"},
    "device": "cpu",
    "definition": {"name": "small", "seeds": [1], "maps": [{"map": "one.map", "replicate": 1}]},
    "machine": {"processor": "Machine-4711", "cores": 2},
    "seconds": 12.5,
}


def results_of(
    runs: list[dict[str, Any]], references: dict[str, tuple[float, float, float]] | None = None
) -> Results:
    """Results as a journal gives them.

    A run names table, disturbance, learner and `final`: the swarm's best after
    the last of its 4 evaluations, or a list with that of every robot (None: no
    worker). References are before, at fault, exhaustive.
    """
    rows, tried = [], []
    for number, given in enumerate(runs):
        final = given["final"]
        finals = final if isinstance(final, list) else [final]
        rows.append(
            {
                "run": number,
                "variant": given["learner"],
                "replicate": 1,
                "condition": number,
                "map": "one.map",
                "robots": len(finals) if isinstance(final, list) else 6,
                "evaluations": 4,
                "composed": math.nan,
                "seed": 1,
                **{name: value for name, value in given.items() if name != "final"},
            }
        )
        for robot, best in enumerate(finals):
            for evaluation in range(1, 5):
                value = math.nan if best is None else best * min(1.0, 0.4 + 0.2 * evaluation)
                place = robot if isinstance(final, list) else -1
                tried.append((number, evaluation, place, 3, value, value))
    frame = pd.DataFrame(rows)
    cases = frame.drop_duplicates(["disturbance", "replicate", "condition", "map"])
    lines = [
        (row.disturbance, row.replicate, row.condition, row.map, *references[row.disturbance], 7)
        for row in cases.itertuples()
        if references and row.disturbance in references
    ]
    columns = ["run", "number", "robot", "cell", "outcome", "best"]
    names = ["disturbance", "replicate", "condition", "map", "before", "at_fault", "exhaustive"]
    return Results(
        runs=frame,
        evaluations=pd.DataFrame(tried, columns=columns),
        references=pd.DataFrame(lines, columns=[*names, "exhaustive_cell"]),
        about=dict(ABOUT),
    )


def under_proximity(results: Results) -> Results:
    """The part of a study that is drawn fastest."""
    return replace(results, runs=results.runs[results.runs["disturbance"] == "proximity"])


def small_study(conditions: int = 6) -> Results:
    """Both tables under proximity, a 2x kind and a disturbance of one's own, random numbers."""
    draw = np.random.default_rng(1)
    runs: list[dict[str, Any]] = []
    for table, disturbance, learners in (
        ("1", "proximity", ("smbo", "random")),
        ("2a", "proximity", ("smbo-dec", "smbo-no-sharing")),
        ("2a", "food-scarcity-2x", ("smbo-dec", "random-no-sharing")),
        ("1", "two/../odd faults.json", ("smbo", "random")),
    ):
        for place, learner in enumerate(learners):
            for condition in range(conditions):
                robots = 12 if disturbance.endswith("2x") else 6
                final: Any = draw.uniform(2 - place, 3.5 - place, robots).tolist()
                runs.append(
                    {
                        "table": table,
                        "disturbance": disturbance,
                        "learner": learner,
                        "variant": ODD if learner == "random" else learner,
                        "condition": condition,
                        "final": final if table == "2a" else final[0],
                        "composed": 0.8 * float(np.mean(final)) if table == "2a" else math.nan,
                    }
                )
    lines = {"proximity": (4.5, 1.5, 3.0), "food-scarcity-2x": (4.0, 0.5, 1.0)}
    return results_of(runs, lines)


def cell(summary: Summary, table: str, disturbance: str, learner: str) -> Cell:
    found = summary.table(table)
    assert found is not None
    column = found.standing_for(learner)
    assert column is not None
    return found.cells[disturbance, column]


# --- numbers -----------------------------------------------------------------------------------


def central(learner: str, values: list[float], **change: Any) -> list[dict[str, Any]]:
    """Runs of a centralised learner under proximity, a condition each."""
    given = {"table": "1", "disturbance": "proximity", "learner": learner, **change}
    return [{**given, "final": value, "condition": n} for n, value in enumerate(values)]


def test_cell_computed_by_hand() -> None:
    first, second = [4.0, 3.0, 5.0, 4.0], [2.0, 1.0, 3.0, 2.0]
    runs = central("smbo", first) + central("random", second)
    found = summarise(results_of(runs, {"proximity": (5.0, 2.5, 4.5)}))
    reference, other = (cell(found, "1", "proximity", name) for name in ("smbo", "random"))
    assert (reference.mean, reference.sd) == (4, math.sqrt(0.5))
    assert (reference.conditions, reference.values) == (4, 4)
    assert reference.improvement == pytest.approx(60)
    assert reference.comparison is None
    assert other.improvement == pytest.approx(-20)
    test = other.comparison
    assert test is not None
    assert (test.z, test.p) == tuple(ranksums(first, second))
    assert (test.significant, test.sign) == (True, "+")
    assert test.a12 == pytest.approx(15.5 / 16)
    assert (test.difference, test.interval) == (2, (2, 2))  # the same in every condition
    assert test.holm == test.p  # the table's only test
    assert found.lines["proximity"].exhaustive == 4.5


def test_table_2a_pools_robots_and_counts_those_without_controller_as_zero() -> None:
    finals: list[list[float | None]] = [[1.0, 2.0, None], [3.0, 3.0, 3.0]]
    given = {"table": "2a", "disturbance": "proximity", "learner": "smbo-dec"}
    results = results_of(
        [
            {**given, "final": final, "condition": n, "composed": 0.5 + n}
            for n, final in enumerate(finals)
        ]
    )
    found = summarise(results)
    pooled = cell(found, "2a", "proximity", "smbo-dec")
    assert (pooled.conditions, pooled.values) == (2, 6)
    assert pooled.mean == 2
    assert pooled.sd == pytest.approx(np.std([1, 2, 0, 3, 3, 3]))
    per_condition = cell(found, "2a-conditions", "proximity", "smbo-dec")
    assert (per_condition.values, per_condition.mean, per_condition.sd) == (2, 2, 1)
    assert per_condition.interval == pooled.interval == (1, 3)  # what is drawn are conditions
    composed = cell(found, "2b", "proximity", "smbo-dec")
    assert (composed.values, composed.mean, composed.sd) == (2, 1, 0.5)
    assert per_condition.published is None
    # a robot that left no rows at all counts the same
    kept = results.evaluations.dropna(subset=["best"])
    again = summarise(replace(results, evaluations=kept))
    assert cell(again, "2a", "proximity", "smbo-dec") == pooled


def test_curves_are_means_over_conditions_against_booked_time() -> None:
    runs = central("smbo", [2.0, 4.0])
    (found,) = summarise(results_of(runs, {"proximity": (5.0, 1.0, 4.5)})).developments
    (curve,) = found.curves
    assert curve.seconds.tolist() == [120, 240, 360, 480]
    assert curve.mean == pytest.approx(3 * np.array([0.6, 0.8, 1, 1]))
    assert curve.sd == pytest.approx([0.6, 0.8, 1, 1])
    assert found.lines is not None
    assert (found.lines.at_fault, found.lines.exhaustive) == (1, 4.5)
    (double,) = summarise(results_of(central("smbo", [2.0], disturbance="p-2x"))).developments
    assert double.curves[0].seconds.tolist() == [240, 480, 720, 960]


def test_short_trials_are_booked_as_such() -> None:
    results = results_of(central("smbo", [2.0, 4.0]))
    short = replace(results, about={"definition": {"ticks": 50}})
    assert summarise(short).developments[0].curves[0].seconds[0] == 10


def test_report_says_when_noise_was_fresh() -> None:
    usual = small_study()
    fresh = replace(usual, about={"definition": {"noise": "fresh"}})
    assert "noise that the maps never met" in overview(summarise(fresh))
    assert "noise" not in overview(summarise(usual))


def test_several_seeds_are_drawn_again_with_their_condition() -> None:
    values = [2.0, 4.0, 3.0, 5.0]
    once = results_of(central("smbo", values) + central("random", [1.0, 2.0, 2.5, 1.0]))
    twice = results_of(
        [
            run
            for seed in (1, 2)
            for learner, own in (("smbo", values), ("random", [1.0, 2.0, 2.5, 1.0]))
            for run in central(learner, own, seed=seed)
        ]
    )
    first, second = summarise(once), summarise(twice)
    for learner in ("smbo", "random"):
        alone, both = (cell(each, "1", "proximity", learner) for each in (first, second))
        assert (both.conditions, both.values) == (4, 8)
        assert both.interval == pytest.approx(alone.interval)
        assert both.mean == alone.mean
    tests = [cell(each, "1", "proximity", "random").comparison for each in (first, second)]
    assert tests[0] is not None
    assert tests[1] is not None
    assert tests[1].interval == pytest.approx(tests[0].interval)


def test_holm_corrects_for_all_tests_of_a_table() -> None:
    table = summarise(small_study()).table("2a")
    assert table is not None
    tests = [found.comparison for found in table.cells.values() if found.comparison]
    ps = sorted(test.p for test in tests if test.p is not None)
    corrected = sorted(test.holm for test in tests if test.holm is not None)
    assert corrected == pytest.approx([2 * ps[0], max(2 * ps[0], ps[1])])


def test_learner_without_options_stands_for_the_published_column() -> None:
    runs = (
        central("random", [1.0, 2.0], variant="another")
        + central("random", [2.0, 3.0])
        + central("smbo", [2.0, 3.0], variant="rho 0.2")
    )
    table = summarise(results_of(runs)).table("1")
    assert table is not None
    assert [column.label for column in table.columns] == ["rho 0.2", "Random", "another"]
    assert table.reference == Column("smbo", "rho 0.2")
    assert table.standing_for("random") == Column("random", "random")
    assert table.standing_for("gradient-ascent") is None


# --- beside the paper --------------------------------------------------------------------------


def test_published_numbers_are_those_of_the_paper() -> None:
    assert len(published()) == 24 + 16 + 16
    assert published()["1", "proximity", "smbo"] == Published(3.01, 1.24, None, "")
    assert published()["1", "actuator", "random"] == Published(1.43, 0.67, False, "")
    found = published()["2a", "food-scarcity-2x", "smbo-dec-naive"]
    assert found == Published(0.90, 0.35, True, "-")


def test_study_with_the_published_means_agrees_with_all_of_them() -> None:
    runs: list[dict[str, Any]] = []
    for (table, disturbance, learner), paper in published().items():
        if table != "2b":
            for condition, side in enumerate((-1, 1)):
                value = paper.mean + side * paper.sd
                composed = math.nan
                if table == "2a":
                    composed = published()["2b", disturbance, learner].mean
                runs.append(
                    {
                        "table": table,
                        "disturbance": disturbance,
                        "learner": learner,
                        "condition": condition,
                        "final": [value] * 2 if table == "2a" else value,
                        "composed": composed,
                    }
                )
    score = summarise(results_of(runs)).scores
    assert (score["all"].means.agree, score["all"].means.compared) == (56, 56)
    assert score["all"].means.published == 56
    assert score["all"].comparisons.published == 42
    assert score["all"].directions.agree == 42
    assert [score[name].means.published for name in ("1", "2a", "2b")] == [24, 16, 16]
    assert [score[name].comparisons.published for name in ("1", "2a", "2b")] == [18, 12, 12]


@pytest.mark.parametrize(
    ("mean", "paper", "agrees"),
    [
        (3.45, 3.0, True),  # 15 %
        (3.46, 3.0, False),
        (2.55, 3.0, True),
        (2.54, 3.0, False),
        (0.35, 0.2, True),  # 0.15 items
        (0.36, 0.2, False),
        (0.05, 0.2, True),
    ],
)
def test_means_agree_within_15_percent_or_015_items(
    mean: float, paper: float, agrees: bool
) -> None:
    found = Cell(9, 9, mean, 1.0, None, None, Published(paper, 1.0, None, ""), None)
    assert found.mean_agrees is agrees


@pytest.mark.parametrize(
    ("significant", "sign", "paper", "paper_sign", "agrees"),
    [
        (True, "+", True, "+", True),
        (True, "-", True, "+", False),
        (False, "+", True, "+", False),
        (True, "+", False, "", False),
        (False, "-", False, "", True),
        (None, "", True, "+", None),
    ],
)
def test_comparisons_agree_in_significance_and_direction(
    significant: bool | None, sign: str, paper: bool, paper_sign: str, agrees: bool | None
) -> None:
    test = Comparison(1.0, 0.5, 0.5, 0.5, significant, sign, 0.1, None)
    found = Cell(9, 9, 1.0, 1.0, None, None, Published(1.0, 1.0, paper, paper_sign), test)
    assert found.comparison_agrees is agrees


# --- partial studies ---------------------------------------------------------------------------


def test_report_says_what_is_missing() -> None:
    runs = central("smbo", [2.0, 3.0]) + central("random", [1.0]) + central("gradient-ascent", [1])
    results = results_of(runs)
    found = summarise(replace(results, about={"runs": 1560}))
    words = "\n".join(found.missing)
    assert "4 of the study's 1,560 runs are done" in words
    assert "Table 1: there are no runs of SMBO-Uniform." in words
    assert "Table 1: there are no runs under Ground-Sensor, Actuator" in words
    assert "2 with SMBO, 1 with Random, 1 with Gradient-ascent" in words
    assert "Table 2a: there are no finished runs." in words
    assert "Proximity-Sensor 2 of 100" in words
    assert "2 conditions without references" in words
    score = found.scores["all"]
    assert (score.means.compared, score.comparisons.compared) == (3, 0)


def test_too_few_values_are_not_tested() -> None:
    found = summarise(results_of(central("smbo", [2.0]) + central("random", [1.0])))
    other = cell(found, "1", "proximity", "random")
    assert (other.mean, other.sd, other.interval, other.improvement) == (1, 0, None, None)
    assert other.comparison is not None
    assert (other.comparison.p, other.comparison.significant) == (None, None)
    assert other.comparison_agrees is None
    assert other.comparison.a12 == 1


def test_without_the_reference_learner_nothing_is_compared() -> None:
    found = summarise(results_of(central("random", [2.0, 3.0])))
    assert cell(found, "1", "proximity", "random").comparison is None
    assert any("without SMBO there is nothing to compare" in words for words in found.missing)


def test_study_without_runs_is_refused() -> None:
    results = small_study()
    with pytest.raises(InputError, match="no finished run yet"):
        summarise(replace(results, runs=results.runs.iloc[:0]))


@pytest.mark.parametrize("change", ["one run", "one learner", "nothing published", "no references"])
def test_partial_studies_have_a_report(change: str, tmp_path: Path) -> None:
    results = small_study(2)
    runs = results.runs
    match change:
        case "one run":
            runs = runs.iloc[:1]
        case "one learner":
            runs = runs[runs["learner"] == "random-no-sharing"]
        case "nothing published":
            runs = runs[runs["disturbance"].str.endswith("json")]
        case _:
            runs = runs[runs["table"] == "1"]
            results = replace(results, references=results.references.iloc[:0])
    write_report(replace(results, runs=runs), tmp_path / "report")
    page = (tmp_path / "report/report.html").read_text()
    assert "What is missing" in page
    assert "nan" not in re.sub(r"base64,[^\"]*", "", page).lower()


# --- files -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a small study."""
    study = tmp_path_factory.mktemp("study")
    synthetic_map(1).save(study / "one.map")
    write_report(small_study(), study / "report", study=study)
    return study / "report"


def csv_files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.csv"))}


def shuffled(results: Results, seed: int) -> Results:
    """The same results, the runs done in another order and by another machine."""
    draw = np.random.default_rng(seed)
    numbers = draw.permutation(len(results.runs))
    runs = results.runs.assign(run=numbers[results.runs["run"]])
    tried = results.evaluations.assign(run=numbers[results.evaluations["run"]])
    return Results(
        runs.sample(frac=1, random_state=seed),
        tried.sample(frac=1, random_state=seed),
        results.references.sample(frac=1, random_state=seed),
        {**ABOUT, "seconds": 99.0, "machine": {"processor": "another"}},
    )


def test_equal_studies_give_equal_csv_files_and_figures(folder: Path, tmp_path: Path) -> None:
    synthetic_map(1).save(tmp_path / "one.map")
    write_report(shuffled(small_study(), 5), tmp_path / "report", study=tmp_path)
    assert csv_files(tmp_path / "report") == csv_files(folder)
    for path in (folder / "figures").iterdir():
        assert (tmp_path / "report/figures" / path.name).read_bytes() == path.read_bytes()
    for path in (folder / "latex").iterdir():
        assert (tmp_path / "report/latex" / path.name).read_bytes() == path.read_bytes()


def test_csv_files_hold_results_and_nothing_about_times_or_machine(folder: Path) -> None:
    files = csv_files(folder)
    assert list(files) == [
        *("conditions.csv", "curves.csv", "references.csv", "score.csv", "table-1.csv"),
        *("table-2a-conditions.csv", "table-2a.csv", "table-2b.csv"),
    ]
    for data in files.values():
        assert b"4711" not in data
        assert b"12.5" not in data
        assert b"\r" not in data
    table = pd.read_csv(folder / "table-2a.csv")
    found = summarise(small_study())
    for row in table.itertuples():
        known = cell(found, "2a", row.disturbance, row.learner)
        assert row.mean == pytest.approx(known.mean, rel=1e-5)
        assert row.sd == pytest.approx(known.sd, rel=1e-5)
    assert len(pd.read_csv(folder / "conditions.csv")) == len(small_study().runs)


def test_figures_are_there_for_every_disturbance_and_for_evolution(folder: Path) -> None:
    stems = [
        *("development-centralised-proximity", "development-centralised-two-odd-faults-json"),
        *("development-decentralised-food-scarcity-2x", "development-decentralised-proximity"),
        "evolution",
    ]
    names = sorted(path.name for path in (folder / "figures").iterdir())
    assert names == sorted(f"{stem}.{kind}" for stem in stems for kind in ("png", "svg"))
    for path in (folder / "figures").glob("*.png"):
        assert path.read_bytes().startswith(b"\x89PNG")
    for path in (folder / "figures").glob("*.svg"):
        text = path.read_text()
        ElementTree.fromstring(text)
        assert "dc:date" not in text


def check_latex(text: str) -> None:
    """Braces and environments are balanced, and all rows have the columns that are declared."""
    code = "\n".join(line for line in text.splitlines() if not line.startswith("%"))
    begun = re.findall(r"\\begin\{(\w+)\}", code)
    assert begun == re.findall(r"\\end\{(\w+)\}", code) == ["tabular"]
    bare = re.sub(r"\\[\\&%$#_{}]", "", code.replace(r"\textbackslash{}", ""))
    assert bare.count("{") == bare.count("}")
    assert bare.count("$") % 2 == 0
    assert not re.search(r"[#_~^%<>]", bare)
    assert code.isascii()
    spec = re.search(r"\\begin\{tabular\}\{([lr]+)\}", code)
    assert spec is not None
    for line in code.splitlines():
        if line.endswith(r"\\") and "multicolumn" not in line:
            assert len(re.findall(r"(?<!\\)&", line)) == len(spec.group(1)) - 1


def test_latex_tables_are_well_formed() -> None:
    found = summarise(small_study())
    for table in found.tables:
        check_latex(latex_table(table))
        check_latex(latex_details(table))
    decentralised = found.table("2a")
    assert decentralised is not None
    text = latex_table(decentralised)
    known = cell(found, "2a", "proximity", "smbo-no-sharing")
    assert rf"$\mathbf{{{known.mean:.2f} \pm {known.sd:.2f}}}$ (+)" in text
    assert r"\quad\textit{published} & $3.30 \pm 1.51$ & $\mathbf{2.91 \pm 1.51}$ (+)" in text


def test_odd_label_of_the_reference_learner_stays_in_its_place() -> None:
    results = results_of(central("smbo", [2.0, 3.0], variant="a\n\\input{b}"))
    (table,) = summarise(results).tables
    for text in (latex_table(table), latex_details(table)):
        check_latex(text)
        assert "\\input" not in text.partition("\n")[2]


def test_markdown_has_the_tables_and_how_they_were_made() -> None:
    found = summarise(small_study())
    text = markdown(found, ABOUT, [("evolution", "a caption")], [])
    known = cell(found, "2a", "proximity", "smbo-no-sharing")
    assert f"**{known.mean:.2f} ± {known.sd:.2f}** (+)<br>paper: **2.91 ± 1.51** (+)" in text
    assert "![a caption](figures/evolution.svg)" in text
    assert "Machine-4711" in text
    assert "<script>" not in text
    for line in text.splitlines():
        if line.startswith("|"):
            assert line.endswith("|")


def test_all_forms_have_the_same_numbers(folder: Path) -> None:
    page, text = (folder / "report.html").read_text(), (folder / "report.md").read_text()
    for name, table in csv_tables(summarise(small_study())).items():
        if name.startswith("table-"):
            for mean, sd in zip(table["mean"], table["sd"], strict=True):
                assert f"{mean:.2f} ± {sd:.2f}" in page
                assert f"{mean:.2f} ± {sd:.2f}" in text


def test_page_is_well_formed_and_needs_nothing_else(folder: Path) -> None:
    page = (folder / "report.html").read_text(encoding="utf-8")
    tree = ElementTree.fromstring(page.partition("\n")[2])
    ids = [element.get("id") for element in tree.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    for element in tree.iter():
        assert element.tag not in ("script", "iframe", "object", "embed")
        for name in ("src", "href", "srcset", "data", "action"):
            value = element.get(name)
            if value is not None:
                assert value.startswith("data:") or value[1:] in ids, value[:60]
    without_images = re.sub(r"base64,[^\"]*", "", page)
    assert "http" not in without_images
    assert "url(" not in without_images
    assert "@import" not in without_images


def test_page_says_how_the_study_was_made(folder: Path) -> None:
    page = (folder / "report.html").read_text(encoding="utf-8")
    for words in ("Machine-4711", "0.61", "12.5", "small", "made with swarmbo"):
        assert words in page
    assert html.escape("<script>alert") in page
    assert "<script" not in page


# --- the folder --------------------------------------------------------------------------------


def test_report_takes_the_place_of_an_earlier_one(tmp_path: Path) -> None:
    results = under_proximity(small_study(1))
    target = tmp_path / "report"
    write_report(results, target)
    central_only = replace(results, runs=results.runs[results.runs["table"] == "1"])
    write_report(central_only, target)
    assert not (target / "table-2a.csv").exists()
    assert not list(target.glob("figures/*decentralised*"))
    assert (target / "table-1.csv").exists()
    assert not [path for path in target.iterdir() if path.name.startswith(".")]
    assert [path.name for path in tmp_path.iterdir()] == ["report"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("mine", "mine: holds notes.txt, which is no part of a report"),
        ("mine/notes.txt", "is a file; name a folder"),
        ("no/report", "does not exist; make it first"),
    ],
)
def test_folder_that_is_not_for_reports_is_refused(
    name: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine").mkdir()
    Path("mine/notes.txt").write_text("keep")
    with pytest.raises(InputError, match=re.escape(words)):
        check_folder(name)
    with pytest.raises(InputError, match=re.escape(words)):
        write_report(small_study(1), name)
    assert sorted(str(path) for path in Path().rglob("*")) == ["mine", "mine/notes.txt"]
    assert Path("mine/notes.txt").read_text() == "keep"


def test_failure_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full_disk(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("swarmbo.maps.plots.save_figure", full_disk)
    with pytest.raises(OSError, match="No space left") as caught:
        write_report(small_study(1), tmp_path / "report")
    assert caught.value.filename == str(tmp_path / "report")
    assert list(tmp_path.iterdir()) == []


def test_command_writes_the_report_and_tells_the_score(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    results = under_proximity(small_study(2))
    monkeypatch.setattr("swarmbo.study.journal.load_results", lambda directory: results)
    report(tmp_path)
    said = capsys.readouterr().out
    assert str(tmp_path / "report/report.html") in said
    score = summarise(results).scores["all"].means
    assert f"Published means that come out: {score.agree} of {score.compared}" in said
    assert "Table 1: there are no runs of" in said
    assert (tmp_path / "report/report.html").is_file()


# --- in a browser ------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1200, 390], ids=["desktop", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_opens_in_a_browser_without_errors(
    browser: Any, folder: Path, width: int, scheme: str
) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("requestfailed", lambda request: complaints.append(request.url))
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto((folder / "report.html").as_uri())
    assert complaints == []
    assert [url[:60] for url in asked if not url.startswith(("file:", "data:"))] == []
    assert page.evaluate("[...document.images].map(i => i.naturalWidth > 100)") == [True] * 5
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("h2").count() == 9
    assert page.locator("table.paper-form").count() == 4
    known = cell(summarise(small_study()), "2b", "proximity", "smbo-dec")
    section = page.locator("#table-2b").inner_text()
    assert f"{known.mean:.2f} ± {known.sd:.2f}" in section
    assert "2.33 ± 0.77" in section
    context.close()
