"""`swarmbo replay`: what is recorded, the page in a real browser, films, and wrong use."""

import base64
import json
import os
import re
import shutil
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from swarmbo import LEARNERS, BehaviourMap, FoodScarcity, InputError, SoftwareNest, recover
from swarmbo.adaptation.options import CENTRALISED
from swarmbo.recovery.recovery import check_folder
from swarmbo.recovery.runner import per_robot
from swarmbo.view import film as drawing
from swarmbo.view.footage import MODELLED, Footage, Take, film, load_footage
from swarmbo.view.replay import MAX_BYTES, bundle, page, replay_kind, write_replay
from swarmbo.view.scene import fault_words, map_json, palette, world_json
from swarmbo.view.stage import fault_sign
from swarmbo.world.arena import Food
from swarmbo.world.disturbance import Actuator, Effects, Ground, Proximity, SoftwareFood
from tests.command import swarmbo
from tests.test_behaviour_map import synthetic_map
from tests.test_runner import small_map

ARTEFACTS = Path(os.environ.get("SWARMBO_ARTEFACTS", Path(__file__).parent.parent / ".artefacts"))
SHORT: dict[str, Any] = {"trials": 2, "ticks": 150, "evaluations": 3, "device": "cpu"}


def report_of(
    disturbance: Any = "proximity:1",
    learner: str = "smbo-dec",
    behaviour_map: BehaviourMap | None = None,
    **options: Any,
) -> dict[str, Any]:
    """The recovery.json of a recovery in short trials, as it is read."""
    chosen = small_map() if behaviour_map is None else behaviour_map
    found = recover(chosen, disturbance, learner, **SHORT | options)
    report: dict[str, Any] = json.loads(json.dumps(found.to_json()))
    return report


@pytest.fixture(scope="module")
def footage() -> Footage:
    """A recovery in which robots with different faults learn."""
    return film(report_of(), small_map())


@pytest.fixture(scope="module")
def recovered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a map and a recovery."""
    folder = tmp_path_factory.mktemp("recovered")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        small_map().save("small.map")
        recover("small.map", "proximity:1", "smbo-dec", **SHORT, out="recovery")
    return folder


@pytest.fixture
def folder(recovered: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a map and a recovery."""
    shutil.copytree(recovered, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


# --- what is recorded --------------------------------------------------------------------------


@pytest.mark.parametrize("learner", LEARNERS)
def test_recorded_trials_deliver_what_the_recovery_says(learner: str) -> None:
    report = report_of("software-nest:2", learner, trials=1, ticks=400)
    found = film(report, small_map())

    def delivered(take: Take) -> float:
        return per_robot(take.items[-1:])

    assert delivered(found.before) == report["before"]
    assert delivered(found.at_fault) == report["at_fault"]
    assert delivered(found.after) == found.final
    for number, take in enumerate(found.tries):
        outcome = report["evaluations"][number]["outcome"]
        if isinstance(outcome, list):
            own = take.items[-1].tolist()
            assert outcome == [
                None if group is None else own[robot]
                for robot, group in enumerate(report["groups"])
            ]
        else:
            assert delivered(take) == outcome


def test_shown_trial_is_the_nearest_to_the_means_or_the_one_asked_for(footage: Footage) -> None:
    report = footage.report
    others = [film(report, small_map(), trial=trial) for trial in range(SHORT["trials"])]

    def away(found: Footage) -> float:
        pairs = (
            (found.before, report["before"]),
            (found.at_fault, report["at_fault"]),
            (found.after, found.final),
        )
        return sum(abs(per_robot(take.items[-1:]) - mean) for take, mean in pairs)

    assert [found.trial for found in others] == [0, 1]
    assert away(footage) == min(map(away, others))
    assert (others[0].before.x[0] != others[1].before.x[0]).any()
    for take in (footage.before, *footage.tries, footage.after):
        np.testing.assert_array_equal(take.x[0], footage.at_fault.x[0])  # the same start


@pytest.mark.parametrize(
    ("learner", "continuous"),
    [(name, False) for name in MODELLED]
    + [(name, True) for name in MODELLED if name not in CENTRALISED],
)
def test_models_expect_what_the_learner_expected(learner: str, continuous: bool) -> None:
    report = report_of("proximity:1", learner, continuous=continuous)
    found = film(report, small_map())
    assert found.models is not None
    assert found.models.mean.shape == (4, len(found.members), 60)
    # Robots choose one after the other, so that in one world the model moves between two choices.
    for number, entry in enumerate(report["evaluations"][: 1 if continuous else None]):
        for model, robots in enumerate(found.members):
            mean, deviation = found.models.mean[number], found.models.deviation[number]
            robot = robots[0]
            row = found.rows(number)[robot]
            expected, spread = entry["prediction"], entry["deviation"]
            if isinstance(expected, list):
                expected, spread = expected[robot], spread[robot]
            assert mean[model, row] == pytest.approx(expected, abs=1e-9)
            assert deviation[model, row] == pytest.approx(spread, abs=1e-9)


@pytest.mark.parametrize("learner", ["random", "gradient-ascent", "random-no-sharing"])
def test_learners_without_a_model_show_none(learner: str) -> None:
    assert film(report_of(learner=learner), small_map()).models is None


def test_stretches_of_a_continuous_world_follow_each_other() -> None:
    report = report_of("proximity:1", "smbo-dec", continuous=True, trials=1)
    found = film(report, small_map())
    assert [take.ticks for take in found.tries] == [150] * 3
    for one, next_one in zip(found.tries, found.tries[1:], strict=False):
        np.testing.assert_array_equal(one.x[-1], next_one.x[0])
        np.testing.assert_array_equal(one.theta[-1], next_one.theta[0])
    assert (found.tries[0].x[0] != found.before.x[0]).any()


def test_recovery_that_cannot_be_learnt_again_is_shown_without_models(footage: Footage) -> None:
    report = json.loads(json.dumps(footage.report))
    tried = report["evaluations"][1]["cell"]
    tried[0] = (tried[0] + 1) % 60  # as a GPU, which rounds otherwise, might have made it
    found = film(report | {"device": "gpu"}, small_map())
    assert found.models is None
    assert found.tries[1].team[0] == tried[0]
    assert "<canvas" in page(found)


def test_robots_that_learn_together_are_those_that_share(footage: Footage) -> None:
    groups = footage.report["groups"]
    for robots in footage.members:
        assert len({groups[robot] for robot in robots}) == 1
    assert sorted(sum(footage.members, ())) == list(range(6))
    alone = film(report_of(learner="smbo-no-sharing"), small_map())
    assert alone.members == tuple((robot,) for robot in range(6))
    lost = film(report_of([SoftwareNest(2)], options={"loss": 0.3}), small_map())
    assert lost.members == tuple((robot,) for robot in (0, 1, 3, 4, 5))


# --- the page ----------------------------------------------------------------------------------


def data_of(text: str) -> dict[str, Any]:
    """The data in a page."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


def first_take(data: dict[str, Any]) -> dict[str, np.ndarray]:
    """The first trial in a page, decoded by the description of its bytes."""
    raw = np.frombuffer(zlib.decompress(base64.b64decode(data["blob"])), np.uint8)
    robots, moments = data["world"]["robots"], data["ticks"] // data["every"] + 1
    planes = raw[: 6 * robots * moments].reshape(6, robots, moments).astype(np.int64)
    words = [planes[k] + (planes[k + 1] << 8) for k in (0, 2)]
    x, y = (((np.cumsum(word, axis=1) + 2**15) & 0xFFFF) - 2**15 for word in words)
    return {
        "x": x / 1000,
        "y": y / 1000,
        "theta": np.cumsum(planes[4], axis=1) * (2 * np.pi / 256),
        "items": np.cumsum(planes[5] >> 1, axis=1),
        "carrying": planes[5] & 1,
    }


def test_page_holds_every_trial_to_a_millimetre(footage: Footage) -> None:
    data = data_of(page(footage))
    found, take = first_take(data), footage.before
    assert np.abs(found["x"].T - take.x).max() <= 0.0005 + 1e-9
    assert np.abs(found["y"].T - take.y).max() <= 0.0005 + 1e-9
    turned = np.angle(np.exp(1j * (found["theta"].T - take.theta)))
    assert np.abs(turned).max() <= np.pi / 256 + 1e-9
    np.testing.assert_array_equal(found["items"].T, take.items)
    np.testing.assert_array_equal(found["carrying"].T, take.carrying)


def test_page_needs_nothing_from_elsewhere(footage: Footage) -> None:
    text = page(footage)
    assert len(text.encode()) <= MAX_BYTES
    assert re.findall(r"https?:|@import|url\(|src=", text) == []
    assert re.findall(r"^(?:import|export) ", text, re.MULTILINE) == []
    assert "{{" not in text.partition("<script")[0]


def test_page_of_a_long_recovery_leaves_moments_out(
    footage: Footage, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = page(footage)
    monkeypatch.setattr("swarmbo.view.replay.MAX_BYTES", len(whole) - 1000)
    thinned = page(footage)
    assert len(thinned) <= len(whole) - 1000
    assert (data_of(whole)["every"], data_of(thinned)["every"]) == (1, 2)
    np.testing.assert_allclose(
        first_take(data_of(thinned))["x"], first_take(data_of(whole))["x"][:, ::2]
    )
    monkeypatch.setattr("swarmbo.view.replay.MAX_BYTES", 1000)
    with pytest.raises(InputError, match="recover with fewer --evaluations"):
        page(footage)


def test_names_cannot_break_out_of_the_page(footage: Footage) -> None:
    odd = "</script><script>alert(1)</script>{{data}}\ud800"
    report = footage.report | {"disturbance": odd}
    text = page(film(report, small_map()))
    assert text.count("<script") == 2
    assert data_of(text)["disturbance"] == odd
    text.encode("utf-8")


def test_modules_become_one_script_in_which_none_sees_the_others() -> None:
    text = bundle(("colours", "arena"))
    assert text.count("const module_colours = (() => {") == 1
    assert "scheme} = module_colours;" in text
    assert "return {PALETTE, schemeName, scheme" in text
    assert not re.search(r"^(?:import|export) ", text, re.MULTILINE)


def test_every_module_that_pages_import_is_shipped() -> None:
    web = Path(drawing.__file__).parent / "web"
    for module in web.glob("*.js"):
        for name in re.findall(r'from "\./([\w.-]+)"', module.read_text()):
            assert (web / name).is_file(), (module.name, name)


# --- what both kinds of drawing share ----------------------------------------------------------


def all_faults() -> list[str]:
    """Words for every kind of fault, and for two at once."""
    effects = [
        (Proximity(("none", "min", "max", "random", "none", "none")),),
        (Ground(("none", "min", "max", "random", "none", "none")),),
        (Actuator(("none", "left", "right", "both", "none", "none")),),
        (SoftwareNest(1), SoftwareFood(2)),
        (Proximity(("min",) * 6), Actuator(("left",) * 6)),
    ]
    words: dict[str, None] = {}
    from swarmbo.world.arena import FORAGING

    for disturbances in effects:
        found = Effects.none(FORAGING, 6)
        for disturbance in disturbances:
            disturbance.apply(found)
        words |= dict.fromkeys(fault_words(found))
    return list(words)


def test_every_fault_has_words_and_a_sign_of_its_own() -> None:
    words = all_faults()
    assert {"none", "proximity min", "ground random", "wheels left", "mad", "stuck"} <= set(words)
    assert "proximity min + wheels left" in words
    signs = [fault_sign(each) for each in words]
    assert len({mark for _, mark in signs}) == len(words)
    kinds = dict(zip(words, (kind for kind, _ in signs), strict=True))
    assert (kinds["none"], kinds["ground max"], kinds["mad"]) == ("healthy", "faulty", "lost")


def test_schemes_have_the_same_colours_by_name() -> None:
    light, dark = palette()["light"], palette()["dark"]
    assert light.keys() == dark.keys()
    for colour in (*light.values(), *dark.values(), *palette()["performance"]):
        assert re.fullmatch("#[0-9a-f]{6}", colour)


def luminance(colour: str) -> float:
    """Relative luminance as in the Web Content Accessibility Guidelines."""
    parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("ground", ["page", "card"])
@pytest.mark.parametrize("ink", ["ink", "quiet", "before", "fault", "best", "other"])
def test_text_can_be_read_on_its_ground(scheme: str, ground: str, ink: str) -> None:
    colours = palette()[scheme]
    high, low = sorted((luminance(colours[ground]), luminance(colours[ink])), reverse=True)
    assert (high + 0.05) / (low + 0.05) >= 4.5


def test_maps_of_any_kind_have_a_place_for_every_cell() -> None:
    grid = map_json(synthetic_map(1), "one")
    assert grid["shape"] == [16, 16, 16]
    assert len(set(grid["cells"])) == 12
    table = map_json(synthetic_map(1, cells=60, descriptor="sdbc"), "two")
    assert table["shape"] is None
    assert len({tuple(place) for place in table["place"]}) == 60
    wide = BehaviourMap.from_arrays(np.arange(200)[:, None] * 5, np.arange(200))
    assert map_json(wide, "three")["shape"] is None
    assert map_json(small_map(), "four")["shape"] == [3, 4, 5]


def test_world_has_the_arena_and_the_robot_to_scale(footage: Footage) -> None:
    world = world_json(footage.case.scenario)
    assert (world["width"], world["height"], world["nest"]) == (2.1, 4.2, {"depth": 0.32})
    assert len(world["robot"]["sensors"]) == 7
    assert world["robots"] == 6


# --- films and pictures ------------------------------------------------------------------------


@pytest.fixture
def short_films(monkeypatch: pytest.MonkeyPatch) -> None:
    """Films of two seconds."""
    monkeypatch.setattr(drawing, "GIF_SECONDS", (1.0, 1.0))
    monkeypatch.setattr(drawing, "VIDEO_SECONDS", (0.4, 0.4))


def test_gif_moves_and_is_small(footage: Footage, tmp_path: Path, short_films: None) -> None:
    facts = write_replay(footage, tmp_path / "replay.gif")
    with Image.open(tmp_path / "replay.gif") as found:
        assert found.size == facts["size"] == (960, 540)
        assert getattr(found, "n_frames", 1) >= 20
        first = np.asarray(found.convert("RGB"))
        found.seek(10)
        assert (np.asarray(found.convert("RGB")) != first).any()
    assert facts["bytes"] <= drawing.MAX_GIF
    assert facts["seconds"] == pytest.approx(2, abs=0.2)


def test_gif_that_would_be_too_large_becomes_smaller(
    footage: Footage, tmp_path: Path, short_films: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawing, "MAX_GIF", 100_000)
    facts = write_replay(footage, tmp_path / "replay.gif")
    assert facts["size"][0] < 960


def test_mp4_can_be_decoded(footage: Footage, tmp_path: Path, short_films: None) -> None:
    av = pytest.importorskip("av", reason="PyAV is not installed")
    facts = write_replay(footage, tmp_path / "replay.mp4")
    with av.open(str(tmp_path / "replay.mp4")) as container:
        frames = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
    assert len(frames) == 16
    assert frames[0].shape == (720, 1280, 3)
    assert np.abs(frames[0].astype(int) - frames[-1]).max() > 100
    assert facts["seconds"] == pytest.approx(0.8)


def test_mp4_without_anything_to_write_it_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawing, "find_spec", lambda name: None)
    monkeypatch.setenv("PATH", str(folder))
    outcome = swarmbo(capsys, "replay", "recovery", "--out", "film.mp4")
    assert outcome.code == 2
    assert "pip install av, put ffmpeg on the PATH" in outcome.stderr
    assert not Path("film.mp4").exists()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_picture_has_the_colours_of_its_scheme(
    scheme: str, footage: Footage, tmp_path: Path
) -> None:
    write_replay(footage, tmp_path / "replay.png", scheme=scheme)
    with Image.open(tmp_path / "replay.png") as found:
        colours = {colour for _, colour in found.convert("RGB").getcolors(1 << 20) or []}
        assert found.size == (1920, 1080)
    for name in ("page", "floor", "nest", "food", "healthy", "faulty"):
        wanted = palette()[scheme][name]
        assert tuple(int(wanted[start : start + 2], 16) for start in (1, 3, 5)) in colours, name


@pytest.mark.parametrize("case", ["2x", "scarce", "sdbc", "continuous", "line"])
def test_any_recovery_can_be_replayed(case: str, tmp_path: Path) -> None:
    genomes = small_map().genomes
    assert genomes is not None
    scarce = [FoodScarcity(Food(1.8, 1.0, 0.2)), SoftwareNest(0)]
    cases: dict[str, tuple[BehaviourMap, Any, dict[str, Any]]] = {
        "2x": (small_map(), "proximity-2x:0", {}),
        "scarce": (small_map(), scarce, {}),
        "sdbc": (synthetic_map(1, cells=60, descriptor="sdbc"), "ground:1", {}),
        "continuous": (small_map(), "actuator:1", {"continuous": True}),
        "line": (
            BehaviourMap.from_arrays(np.arange(60)[:, None], np.arange(60), genomes=genomes),
            "software-food:1",
            {"evaluations": 1},
        ),
    }
    behaviour_map, disturbance, options = cases[case]
    report = report_of(disturbance, "smbo-dec", behaviour_map, **options)
    found = film(report, behaviour_map)
    data = data_of(page(found))
    assert len(data["takes"]) == len(report["evaluations"]) + 3
    if case == "2x":
        assert (data["world"]["robots"], data["world"]["width"]) == (12, 4.2)
    if case == "scarce":
        assert data["takes"][1]["food"] == [[1.8, 1.0, 0.2]]
        assert len(data["takes"][0]["food"]) == 10
    write_replay(found, tmp_path / "replay.png")
    with Image.open(tmp_path / "replay.png") as picture:
        assert len(picture.convert("RGB").getcolors(1 << 20) or []) > 100


# --- the command -------------------------------------------------------------------------------


def test_command_writes_a_page(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = swarmbo(capsys, "replay", "recovery")
    assert (outcome.code, outcome.stderr) == (0, "")
    assert outcome.stdout.startswith("replay.html: 0.")
    report = json.loads(Path("recovery/recovery.json").read_text())
    assert data_of(Path("replay.html").read_text())["before"] == report["before"]


def test_page_may_lie_in_the_folder_and_equal_commands_give_equal_files(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("--map", "small.map", "--trials", 2, "--ticks", 150, "--evaluations", 3)
    options = ("--disturbance", "proximity:1", "--out", "new", "--replay", "new/replay.html")
    outcome = swarmbo(capsys, "recover", *arguments, *options)
    assert (outcome.code, outcome.stderr) == (0, "")
    assert "new/replay.html: 0." in outcome.stdout
    assert swarmbo(capsys, "replay", "recovery", "--out", "again.html").code == 0
    assert Path("again.html").read_bytes() == Path("new/replay.html").read_bytes()
    check_folder("new")  # a recovery may be written there again


def test_recovery_is_replayed_without_a_folder_of_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("--map", "small.map", "--trials", 2, "--ticks", 150, "--evaluations", 2)
    outcome = swarmbo(capsys, "recover", *arguments, "--json", "--replay", "shown.html")
    assert outcome.code == 0
    assert json.loads(outcome.stdout)["learner"] == "smbo-dec"
    assert outcome.stderr.startswith("shown.html: ")
    assert len(data_of(Path("shown.html").read_text())["evaluations"]) == 2


def test_map_that_was_moved_can_be_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("small.map").rename("moved.map")
    outcome = swarmbo(capsys, "replay", "recovery")
    assert outcome.code == 2
    assert "small.map: is neither a file nor a bundled map" in outcome.stderr
    assert "--map" in outcome.stderr
    assert swarmbo(capsys, "replay", "recovery", "--map", "moved.map").code == 0


WRONG = {
    "name": ("replay recovery --out replay.doc", "let it end in .html, .gif, .mp4 or .png"),
    "no folder": ("replay nowhere", "nowhere: there is no such folder"),
    "other folder": ("replay .", ".: holds no recovery.json"),
    "file": ("replay small.map", "small.map: is a file; name a folder that swarmbo recover"),
    "out nowhere": ("replay recovery --out no/replay.html", "no/replay.html: the folder"),
    "out folder": ("replay recovery --out folder.html", "folder.html: is a folder"),
    "trial": ("replay recovery --trial 2", "has 2 trials, 0 to 1; trial 2 is none of them"),
    "other map": ("replay recovery --map other.map", "was made with another map"),
    "no map": ("replay recovery --map no.map", "no.map: is neither a file nor"),
    "not json": ("replay damaged", "recovery.json: is not JSON"),
    "half": ("replay half", "half/recovery.json: is not a complete recovery"),
    "words": ("replay words", "words/recovery.json: is not a complete recovery"),
    "unsure": ("replay unsure", "unsure/recovery.json: is not a complete recovery"),
    "device": ("replay device", "device/recovery.json: is not a complete recovery"),
    "list": ("replay list", "list/recovery.json: is not a complete recovery"),
    "trials": ("replay trials", "has 1000000 trials; a replay can show one of at most 100"),
    "row": ("replay row", "names the controller 60; the map has 0 to 59"),
    "recover name": ("recover --replay replay.doc", "let it end in .html"),
    "recover nowhere": ("recover --replay no/replay.html", "no/replay.html: the folder"),
    "recover twice": ("recover --out new.html --replay new.html", "is the folder of --out too"),
    "recover beside": ("recover --out new --replay new/a.html", "holds only replay.html"),
}


@pytest.mark.parametrize(("arguments", "words"), list(WRONG.values()), ids=list(WRONG))
def test_wrong_use_is_one_sentence_and_writes_nothing(
    arguments: str, words: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = Path("recovery/recovery.json").read_text()
    report = json.loads(text)
    evaluations = report["evaluations"]
    for name, content in {
        "damaged": text[: len(text) // 2],
        "half": json.dumps({name: report[name] for name in list(report)[:20]}),
        "words": json.dumps(report | {"before": "five"}),
        "list": json.dumps([report]),
        "unsure": json.dumps(
            report
            | {"evaluations": [{k: v for k, v in evaluations[0].items() if k != "deviation"}]}
        ),
        "device": json.dumps(report | {"device": {}}),
        "trials": json.dumps(report | {"trials": 10**6}),
        "row": json.dumps(report | {"evaluations": [evaluations[0] | {"cell": [60] * 6}]}),
    }.items():
        Path(name).mkdir()
        Path(name, "recovery.json").write_text(content)
    Path("folder.html").mkdir()
    small_map(50).save("other.map")

    def state() -> dict[str, Any]:
        files = (path for path in folder.rglob("*") if path.is_file())
        return {str(path): path.read_bytes() for path in files}

    before = state()
    outcome = swarmbo(capsys, *arguments.split())
    assert (outcome.code, outcome.stdout) == (2, "")
    assert outcome.stderr.startswith("swarmbo: ")
    assert outcome.stderr.count("\n") == 1
    assert words in outcome.stderr
    assert state() == before


def test_recovery_of_any_report_ends_in_a_page_or_a_sentence() -> None:
    """Every field in turn of another kind."""
    good = report_of(trials=1, ticks=10, evaluations=1)
    others: list[Any] = [None, "", [], {}, -1, 1e300, [[[]]]]
    for name in good:
        for value in others:
            with suppress(InputError):
                assert "<canvas" in page(film(good | {name: value}, small_map()))


def test_kind_is_that_of_the_end_of_the_name() -> None:
    assert [replay_kind(f"a.{end}") for end in ("html", "HTML", "gif", "png")] == [
        "html",
        "html",
        "gif",
        "png",
    ]


def test_report_itself_may_be_named(folder: Path) -> None:
    assert load_footage("recovery/recovery.json").report == load_footage("recovery").report


# --- in a browser ------------------------------------------------------------------------------


class Opened:
    """A replay that is open in a browser without a network, and what it complained about."""

    def __init__(self, browser: Any, path: Path, **settings: Any) -> None:
        viewport = {"width": settings.pop("width", 1200), "height": settings.pop("height", 900)}
        self.context = browser.new_context(viewport=viewport, **settings)
        self.context.set_offline(True)
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url[:60]))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("html[data-ready]")

    def words(self, selector: str) -> str:
        """The text of an element."""
        return str(self.page.inner_text(selector))

    def pixels(self, selector: str) -> str:
        """What a canvas shows."""
        found = self.page.eval_on_selector(selector, "canvas => canvas.toDataURL()")
        return str(found)

    def press(self, *keys: str) -> None:
        """Press keys, one after the other."""
        for key in keys:
            self.page.keyboard.press(key)

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait for something to happen, ten seconds at most."""
        for _ in range(200):
            if condition():
                return
            self.page.wait_for_timeout(50)
        raise AssertionError("it did not happen")

    def keep(self, name: str) -> None:
        """A screenshot for people to look at."""
        ARTEFACTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=ARTEFACTS / f"replay-{name}.png", full_page=True)

    def close(self) -> None:
        """Close it; it has asked for nothing, and there is nothing to complain about."""
        assert self.complaints == []
        assert [url for url in self.asked if not url.startswith(("file:", "data:", "blob:"))] == []
        self.context.close()


@pytest.fixture(scope="module")
def replay_file(footage: Footage, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page on a disk."""
    path = tmp_path_factory.mktemp("replay") / "replay.html"
    write_replay(footage, path)
    return path


NOW = "[data-arena=now] canvas"


def test_robots_move_by_themselves_until_they_are_paused(browser: Any, replay_file: Path) -> None:
    opened = Opened(browser, replay_file)
    opened.page.select_option("#speed", "2")
    assert opened.words("h1") == "A swarm recovers"
    before = [opened.pixels(f"[data-arena={name}] canvas") for name in ("before", "fault", "now")]
    time = opened.words("#timeWords")
    opened.until(lambda: opened.words("#timeWords") != time)
    after = [opened.pixels(f"[data-arena={name}] canvas") for name in ("before", "fault", "now")]
    assert all(one != other for one, other in zip(before, after, strict=True))
    opened.page.click("#play")
    assert opened.page.get_attribute("#play", "aria-label") == "Play"
    still = opened.pixels(NOW)
    opened.page.wait_for_timeout(150)
    assert opened.pixels(NOW) == still
    opened.close()


def test_replay_can_be_used_with_the_keyboard_alone(
    browser: Any, replay_file: Path, footage: Footage
) -> None:
    opened = Opened(browser, replay_file, reduced_motion="reduce")
    assert opened.page.get_attribute("#play", "aria-label") == "Play"  # nothing moves by itself
    assert opened.words("#now") == "After recovery"
    assert f"{footage.final:.2f} items per robot" in opened.words("[data-arena=now] figcaption")
    opened.press("Home")  # for those who scroll
    assert opened.words("#now") == "After recovery"
    opened.page.focus("#play")
    opened.press("Home")
    assert opened.words("#now") == "Evaluation 1 of 3"
    curve, cells = opened.pixels("#curve"), opened.pixels("#map")
    opened.press("ArrowUp")
    assert opened.words("#now") == "Evaluation 2 of 3"
    assert opened.page.input_value("#evaluation") == "2"
    assert opened.pixels("#curve") != curve
    assert opened.pixels("#map") != cells
    cells = opened.pixels("#map")
    opened.press("m")
    assert opened.page.input_value("#show") == "uncertainty"
    assert opened.pixels("#map") != cells
    arena = opened.pixels(NOW)
    opened.press("ArrowRight", "ArrowRight")
    assert opened.words("#timeWords").startswith("2 s of 30 s")
    assert opened.pixels(NOW) != arena
    opened.press(" ")
    assert opened.page.get_attribute("#play", "aria-label") == "Pause"
    opened.press(" ", "End")
    assert opened.words("#now") == "After recovery"
    focused = []
    for _ in range(12):
        opened.press("Tab")
        focused.append(opened.page.evaluate("document.activeElement.id"))
    assert {"learn", "play", "back", "on", "evaluation", "time", "speed", "show"} <= set(focused)
    opened.close()


def test_scrubbing_and_the_curve_lead_to_any_moment(browser: Any, replay_file: Path) -> None:
    opened = Opened(browser, replay_file, reduced_motion="reduce")
    opened.page.fill("#time", "100")
    assert opened.words("#timeWords") == "20 s of 30 s"
    total = opened.words("[data-arena=before] figcaption b")
    opened.page.fill("#time", "0")
    assert opened.words("[data-arena=before] figcaption b") == "0 items"
    assert total != ""
    opened.page.fill("#evaluation", "2")
    assert opened.words("#now") == "Evaluation 2 of 3"
    assert opened.words("#robotsTitle") == "Robots in evaluation 2"
    box = opened.page.locator("#curve").bounding_box()
    opened.page.click("#curve", position={"x": 60, "y": box["height"] / 2})
    assert opened.words("#now") == "Evaluation 1 of 3"
    opened.page.click("#learn")
    opened.until(lambda: opened.words("#now") == "Evaluation 2 of 3")
    opened.close()


@pytest.mark.parametrize(
    ("width", "scheme"),
    [(1200, "light"), (1200, "dark"), (820, "light"), (390, "light"), (390, "dark")],
)
def test_page_fits_every_screen(browser: Any, replay_file: Path, width: int, scheme: str) -> None:
    opened = Opened(browser, replay_file, width=width, color_scheme=scheme, reduced_motion="reduce")
    opened.page.fill("#time", "90")
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
    back = opened.page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    wanted = [int(palette()[scheme]["page"][start : start + 2], 16) for start in (1, 3, 5)]
    assert back == f"rgb({wanted[0]}, {wanted[1]}, {wanted[2]})"
    for selector in ("#curve", "#map", NOW):
        blank = "canvas => new Set(new Uint32Array(canvas.getContext('2d').getImageData("
        blank += "0, 0, canvas.width, canvas.height).data.buffer)).size"
        assert opened.page.eval_on_selector(selector, blank) > 20
        assert opened.page.get_attribute(selector, "role") == "img"
        assert len(opened.page.get_attribute(selector, "aria-label") or "") > 30
    buttons = opened.page.locator("button:visible, select:visible")
    for number in range(buttons.count()):
        assert buttons.nth(number).bounding_box()["height"] >= 28
    opened.keep(f"{width}-{scheme}")
    opened.close()


def test_signs_in_pictures_are_those_on_pages(browser: Any) -> None:
    page_ = browser.new_page()
    page_.add_script_tag(content=bundle(("colours",)))
    for words in all_faults():
        found = page_.evaluate("words => Object.values(faultSign(words))", words)
        assert tuple(found) == fault_sign(words), words
    page_.close()
