"""The page of `swarmbo play` in a real browser, on the real server.

Screenshots go to the folder `.artefacts`, or to that which $SWARMBO_ARTEFACTS names.
"""

import csv
import json
import os
import re
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from tests.command import PATIENCE
from tests.playing import served

ARTEFACTS = Path(os.environ.get("SWARMBO_ARTEFACTS", Path(__file__).parent.parent / ".artefacts"))
NOTHING = "\N{EN DASH}"  # where there is no number
FOCUS = """() => {
  const {id} = document.activeElement;
  return [id, getComputedStyle(document.activeElement).outlineStyle];
}"""
PAINTED = """
for (const name of ["fillText", "clearRect"]) {
  const {[name]: paint} = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype[name] = function (...given) {
    if (name === "clearRect") this.canvas.painted = [];
    else {
      const {width} = this.measureText(given[0]);
      const share = {left: 0, start: 0, center: 0.5, right: 1, end: 1}[this.textAlign];
      const left = given[1] - width * share;
      (this.canvas.painted ??= []).push({text: given[0], left, right: left + width, y: given[2]});
    }
    return paint.apply(this, given);
  };
}
"""
FAST = 69  # on the slider: 200 times real time, so that a round takes 0.6 s


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Where the page is."""
    with served() as (_, found):
        yield found


class Guest:
    """Somebody who looks at the page, and at what the server tells it."""

    def __init__(self, browser: Any, address: str, **options: Any) -> None:
        self.context = browser.new_context(
            **{"viewport": {"width": 1366, "height": 900}, "color_scheme": "light"} | options
        )
        self.context.add_init_script(PAINTED)
        self.page = self.context.new_page()
        self.page.set_default_timeout(1000 * PATIENCE)
        self.problems: list[str] = []
        self.heard: dict[str, Any] = {}  # the last message of each kind
        self.bests: list[float] = []  # best so far, after each evaluation
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("request", self._request)
        self.page.on("websocket", lambda line: line.on("framereceived", self._hear))
        self.address = address
        self.page.goto(address)
        self.until(lambda: "frame" in self.heard and self.text("level-before") != NOTHING)

    def _console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(message.text)

    def _request(self, request: Any) -> None:
        if not request.url.startswith(self.address.partition("?")[0]):
            self.problems.append(f"loads {request.url}")

    def _hear(self, text: str) -> None:
        message = json.loads(text)
        self.heard[message["type"]] = message
        found = [best for _, _, best in message.get("ended", ()) if best is not None]
        self.bests += found

    @property
    def state(self) -> Any:
        """What the server last said about the swarm."""
        return self.heard["state"]

    def until(self, is_so: Callable[[], bool]) -> None:
        """Wait until something is so."""
        end = monotonic() + PATIENCE
        while not is_so():
            assert monotonic() < end, "it does not happen"
            self.page.wait_for_timeout(20)

    def at_rest(self) -> int:
        """Wait until a swarm that is paused, and its picture, stand still; its tick."""
        self.until(lambda: self.state["paused"])
        self.page.wait_for_timeout(400)
        return int(self.heard["frame"]["tick"])

    def text(self, element: str) -> str:
        """The words of an element."""
        return str(self.page.locator(f"#{element}").text_content())

    def level(self, name: str) -> float:
        """One of the levels above the curve, in items per robot; nan while there is none."""
        words = self.text(f"level-{name}")
        return float("nan") if words == NOTHING else float(words)

    def set_speed(self, place: int) -> None:
        """Move the slider."""
        self.page.locator("#speed").fill(str(place))
        self.until(lambda: self.state["speed"] is not None and self.state["speed"] != 20)

    def picture(self, canvas: str) -> str:
        """What is painted, as text."""
        found: str = self.page.evaluate("(id) => document.getElementById(id).toDataURL()", canvas)
        return found

    def painted(self, canvas: str) -> list[str]:
        """The words on a canvas."""
        found: list[str] = self.page.evaluate(
            "(id) => document.getElementById(id).painted.map(({text}) => text)", canvas
        )
        return found

    def rounds(self) -> list[int]:
        """The numbers of rounds below the curve."""
        words = self.page.evaluate("""() => {
          const {painted} = document.getElementById("curve");
          const {y} = painted.find(({text}) => text === "rounds");
          return painted.filter((each) => each.y === y).map(({text}) => text);
        }""")
        return [int(text.replace(",", "")) for text in words if text != "rounds"]

    def fits(self, *elements: str) -> bool:
        """Whether elements are on the screen as a whole, without scrolling."""
        size = self.page.viewport_size
        boxes = [self.page.locator(f"#{element}").bounding_box() for element in elements]
        return self.page.evaluate("scrollY") == 0 and all(
            min(box["x"], box["y"]) >= 0
            and box["x"] + box["width"] <= size["width"]
            and box["y"] + box["height"] <= size["height"]
            for box in boxes
        )

    def where(self, robot: int) -> tuple[float, float]:
        """Where a robot that stands still is on the screen; the arena is drawn to scale."""
        self.page.locator("#arena").scroll_into_view_if_needed()
        box = self.page.locator("#arena").bounding_box()
        world, frame = self.heard["world"], self.heard["frame"]
        x, y = frame["x"][robot], frame["y"][robot]
        if box["width"] > box["height"]:  # lying on its side: y to the right, x down
            x, y, long, high = y, x, world["height"], world["width"]
        else:
            y, long, high = world["height"] - y, world["width"], world["height"]
        scale = min((box["width"] - 10) / long, (box["height"] - 10) / high)
        return (
            box["x"] + box["width"] / 2 + scale * (x - long / 2),
            box["y"] + box["height"] / 2 + scale * (y - high / 2),
        )

    def alone(self) -> int:
        """A robot that no other one is near to on the screen."""
        robots = range(self.state["robots"])
        places = [self.where(robot) for robot in robots]

        def space(robot: int) -> float:
            (x, y) = places[robot]
            others = [places[other] for other in robots if other != robot]
            return min(abs(x - ox) + abs(y - oy) for ox, oy in others)

        return max(robots, key=space)

    def shoot(self, name: str, whole: bool = True) -> None:
        """Keep a screenshot."""
        ARTEFACTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=ARTEFACTS / f"play-{name}.png", full_page=whole)


@pytest.fixture
def enter(browser: Any, address: str) -> Iterator[Callable[..., Guest]]:
    """Lets guests in; in the end nobody has met an error."""
    guests: list[Guest] = []

    def let_in(**options: Any) -> Guest:
        guests.append(Guest(browser, address, **options))
        return guests[-1]

    yield let_in
    for guest in guests:
        guest.context.close()
        assert guest.problems == []


def test_robots_move_one_is_broken_by_a_click_the_curve_falls_and_smbo_dec_lets_it_rise(
    enter: Callable[..., Guest],
) -> None:
    guest = enter()
    page = guest.page
    before = guest.picture("arena")
    tick = guest.heard["frame"]["tick"]
    guest.until(lambda: guest.heard["frame"]["tick"] > tick + 20)
    assert guest.picture("arena") != before
    assert guest.text("pace") == "20\N{MULTIPLICATION SIGN}"

    guest.set_speed(FAST)
    guest.until(lambda: guest.level("now") == pytest.approx(guest.level("before"), abs=0.02))
    page.click("#pause")
    guest.at_rest()
    robot = guest.alone()
    page.mouse.click(*guest.where(robot))
    page.get_by_role("dialog", name=f"Robot {robot}").wait_for()
    guest.shoot("menu", whole=False)
    page.get_by_role("group", name="Proximity sensors").get_by_label("read 1").check()
    guest.until(lambda: guest.state["team"][robot]["fault"] == "proximity max")
    page.get_by_role("button", name="Close").first.click()
    page.click("#pause")
    guest.until(lambda: guest.level("fault") < 0.9 * guest.level("before"))
    guest.until(lambda: guest.level("now") < 0.9 * guest.level("before"))
    page.click("#condition-button")  # and the others too
    guest.until(lambda: guest.state["team"][3]["fault"] == "proximity random")
    guest.shoot("fall")

    map_before = guest.picture("map")
    page.click("#learn")
    guest.until(lambda: len(guest.heard["model"]["tried"]) >= 6)
    assert guest.picture("map") != map_before
    assert page.get_by_label("Expected now").is_checked()
    assert "SMBO-Dec: evaluation" in guest.text("progress")
    assert "±" in page.locator("#team tbody tr").first.text_content()
    expected = guest.heard["model"]["prediction"]
    guest.until(lambda: guest.level("best") > guest.level("fault"))
    guest.until(lambda: guest.heard["model"]["prediction"] != expected)
    guest.shoot("recovery")

    page.click("#max")
    guest.until(lambda: "is done after 30" in guest.text("progress"))
    assert guest.bests == sorted(guest.bests)
    assert guest.bests[-1] > guest.bests[0]
    page.click("#pause")
    tick = guest.at_rest()
    guest.shoot("recovered")
    assert guest.heard["frame"]["tick"] == tick
    page.click("#tick")
    guest.until(lambda: guest.heard["frame"]["tick"] == tick + 1)

    guest.heard.clear()
    page.reload()
    guest.until(lambda: "frame" in guest.heard and guest.text("level-before") != NOTHING)
    assert guest.state["learner"] is None
    assert not guest.state["paused"]
    assert guest.text("level-fault") == NOTHING


def test_cells_and_food_are_clicked_and_the_swarm_is_restarted_with_twelve_robots(
    enter: Callable[..., Guest],
) -> None:
    guest = enter(color_scheme="dark")
    page = guest.page
    row = guest.state["team"][0]["row"]
    page.locator("#map").scroll_into_view_if_needed()
    box = page.locator("#map").bounding_box()
    shares = (0.3, 0.4, 0.5, 0.6, 0.7)
    for across, down in product(shares, shares):  # one of these is a cell
        page.mouse.click(box["x"] + across * box["width"], box["y"] + down * box["height"])
        page.wait_for_timeout(50)
        if not page.locator("#run-all").is_disabled():
            break
    guest.until(lambda: guest.state["team"][0]["row"] != row)
    assert "before the fault" in guest.text("cell")

    page.get_by_label("Take food 4 away").click()
    guest.until(lambda: guest.state["food"][4]["taken"])
    page.get_by_label("Put food 4 back").click()
    guest.until(lambda: not guest.state["food"][4]["taken"])
    page.click("#food-all")
    guest.until(lambda: all(food["taken"] for food in guest.state["food"]))
    guest.until(lambda: guest.text("food-all") == "Put all back")
    page.click("#repair-all")
    guest.until(lambda: not any(food["taken"] for food in guest.state["food"]))

    page.locator("summary").click()
    page.locator("#rays").check()
    page.select_option("#robots", "12")
    page.fill("#seed", "5")
    page.click("#restart-button")
    guest.until(lambda: guest.state["robots"] == 12 and guest.state["seed"] == 5)
    guest.until(lambda: "evolved with 6 robots" in guest.text("event"))
    guest.until(lambda: "proximity" in guest.heard["frame"])
    guest.until(lambda: page.locator("#team tbody tr").count() == 12)
    page.click("#condition-button")
    guest.until(lambda: guest.level("fault") >= 0)
    page.select_option("#learner", "smbo")
    page.click("#learn")
    guest.set_speed(FAST)
    guest.until(lambda: len(guest.heard["model"]["tried"]) >= 2)
    page.get_by_label("Uncertainty").check()
    page.wait_for_timeout(200)
    guest.shoot("twelve-dark")
    assert page.locator("#condition option[value=ground]").is_disabled()  # drawn for 6 robots


def test_everything_can_be_done_by_keyboard(enter: Callable[..., Guest]) -> None:
    guest = enter()
    page, keys = guest.page, guest.page.keyboard
    keys.press(" ")
    tick = guest.at_rest()
    keys.press(".")
    guest.until(lambda: guest.heard["frame"]["tick"] == tick + 1)
    keys.press("+")
    guest.until(lambda: guest.state["speed"] == 40)
    keys.press("?")
    page.get_by_role("dialog", name="Keys").wait_for()
    guest.shoot("keys", whole=False)
    keys.press("Escape")
    page.get_by_role("dialog", name="Keys").wait_for(state="hidden")

    keys.press("2")
    page.get_by_role("dialog", name="Robot 2").wait_for()
    keys.press("ArrowRight")
    guest.until(lambda: guest.state["team"][2]["fault"] == "proximity min")
    keys.press("Tab")
    keys.press("ArrowRight")
    guest.until(lambda: guest.state["team"][2]["fault"] == "proximity min + ground min")
    keys.press("Escape")
    page.get_by_role("dialog", name="Robot 2").wait_for(state="hidden")
    keys.press("l")
    guest.until(lambda: guest.state["learner"] is not None)
    assert guest.state["learner"]["at_work"]
    keys.press("l")
    guest.until(lambda: not guest.state["learner"]["at_work"])
    keys.press("h")
    guest.until(lambda: guest.state["team"][2]["fault"] == "none")

    met: set[str] = set()
    page.evaluate("document.activeElement.blur()")
    for _ in range(60):
        keys.press("Tab")
        name, outline = page.evaluate(FOCUS)
        met.add(name)
        assert outline != "none", f"the focus cannot be seen on {name}"
        if name == "map":
            break
    controls = {
        "arena",
        "pause",
        "tick",
        "speed",
        "max",
        "food-all",
        "condition",
        "learner",
        "learn",
    }
    assert controls | {"condition-button", "evaluations", "map", "help-button"} <= met
    row = guest.state["team"][0]["row"]
    keys.press("ArrowRight")
    keys.press("ArrowUp")
    keys.press("Enter")
    guest.until(lambda: guest.state["team"][0]["row"] != row)

    keys.press("?")
    page.locator("#keys-on").uncheck()
    keys.press("Escape")
    keys.press("m")
    page.wait_for_timeout(150)
    assert guest.state["speed"] == 40


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_fits_a_phone_and_a_robot_is_broken_by_a_finger(
    enter: Callable[..., Guest], scheme: str
) -> None:
    guest = enter(
        viewport={"width": 360, "height": 740},
        has_touch=True,
        is_mobile=True,
        device_scale_factor=2,
        color_scheme=scheme,
    )
    page = guest.page
    assert page.evaluate("document.scrollingElement.scrollWidth") <= 360
    page.tap("#pause")
    guest.at_rest()
    robot = guest.alone()
    page.touchscreen.tap(*guest.where(robot))
    page.get_by_role("dialog", name=f"Robot {robot}").wait_for()
    guest.shoot(f"phone-menu-{scheme}", whole=False)
    page.get_by_label("left slow").tap()
    guest.until(lambda: guest.state["team"][robot]["fault"] == "wheels left")
    box = page.locator("#menu").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 360
    page.locator("#menu-close").tap()
    page.tap("#pause")
    page.tap("#learn")
    guest.until(lambda: guest.state["learner"] is not None)
    page.tap("#max")
    guest.until(lambda: len(guest.heard["model"]["tried"]) > 30)
    page.tap("#pause")
    guest.at_rest()
    assert page.evaluate("document.scrollingElement.scrollWidth") <= 360
    guest.shoot(f"phone-{scheme}")


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (1280, 720), (1920, 1080)])
def test_arena_curve_and_map_are_on_the_screen_without_scrolling(
    enter: Callable[..., Guest], width: int, height: int
) -> None:
    guest = enter(viewport={"width": width, "height": height})
    page = guest.page
    assert guest.fits("arena", "curve", "map", "max", "save", "learn")
    page.click("#max")
    page.click("#condition-button")
    guest.until(lambda: guest.level("fault") >= 0)
    page.fill("#evaluations", "2")
    page.click("#learn")
    guest.until(lambda: "over 8 trials" in guest.text("verdict"))
    assert guest.fits("arena", "curve", "map", "max", "save", "learn", "verdict")
    sizes = [page.locator(f"#{name}").bounding_box() for name in ("arena", "curve", "map")]
    assert all(box["height"] >= 100 and box["width"] >= 290 for box in sizes)
    page.locator("summary").click()
    page.select_option("#robots", "12")
    page.click("#restart-button")
    page.locator("summary").click()
    guest.until(lambda: page.locator("#team tbody tr").count() == 12)
    page.wait_for_timeout(100)
    assert guest.fits("arena", "curve", "map")
    guest.shoot(f"{width}x{height}", whole=False)


@pytest.mark.parametrize("robots", [6, 12])
def test_last_columns_of_the_table_are_on_a_phones_screen(
    enter: Callable[..., Guest], robots: int
) -> None:
    guest = enter(
        viewport={"width": 390, "height": 844},
        has_touch=True,
        is_mobile=True,
        device_scale_factor=2,
    )
    page = guest.page
    if robots == 12:
        page.locator("summary").tap()
        page.select_option("#robots", "12")
        page.tap("#restart-button")
        guest.until(lambda: guest.state["robots"] == 12)
    page.tap("#condition-button")
    guest.until(lambda: guest.level("fault") >= 0)
    page.fill("#evaluations", "2")
    page.tap("#max")
    page.tap("#learn")
    guest.until(lambda: "over 8 trials" in guest.text("verdict"))
    page.locator("#team").scroll_into_view_if_needed()
    cells = page.locator("#team tr > :last-child")
    assert cells.count() == robots + 1
    for cell in cells.all():
        box = cell.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
    room = "(box) => [box.scrollWidth, box.clientWidth]"
    needed, there = page.locator(".scroll").evaluate(room)
    assert needed <= there
    assert page.evaluate("document.scrollingElement.scrollWidth") <= 390
    guest.shoot(f"phone-table-{robots}", whole=False)


def test_recovery_is_found_long_after_it_whatever_the_speed(enter: Callable[..., Guest]) -> None:
    guest = enter(viewport={"width": 1440, "height": 900})
    page = guest.page
    page.click("#max")
    guest.until(lambda: guest.heard["frame"]["round"] > 20)
    page.click("#condition-button")
    guest.until(lambda: guest.level("fault") >= 0)
    page.fill("#evaluations", "10")
    page.click("#learn")
    guest.until(lambda: "is done after 10" in guest.text("progress"))
    done = guest.heard["frame"]["round"]
    guest.until(lambda: guest.heard["frame"]["round"] > done + 60)  # far more than 24 rounds
    page.click("#pause")
    now = guest.at_rest() / guest.heard["world"]["round_ticks"]
    assert page.locator("#show-all").get_attribute("aria-pressed") == "true"
    assert guest.rounds()[0] == 0
    assert guest.rounds()[-1] > 0.5 * now
    signs = [text for text in guest.painted("curve") if text in "✕▶■"]
    assert sorted(signs) == sorted("✕▶■")
    whole = guest.picture("curve")

    page.click("#show-learner")
    page.wait_for_timeout(50)
    assert guest.picture("curve") != whole
    assert 0 < guest.rounds()[0] < guest.rounds()[-1] <= done + 5
    assert {"▶", "■"} <= set(guest.painted("curve"))
    assert page.locator("#show-all").get_attribute("aria-pressed") == "false"
    guest.shoot("found", whole=False)

    with page.expect_download() as saving:
        page.click("#save")
    assert saving.value.suggested_filename.endswith(".csv")
    rows = list(csv.DictReader(saving.value.path().read_text().splitlines()))
    assert [int(row["time_in_rounds"]) for row in rows] == list(range(1, len(rows) + 1))
    assert len(rows) in (int(now), int(now) + 1)
    bests = [float(row["best_so_far"]) for row in rows if row["best_so_far"]]
    assert len(bests) == 10
    assert bests == pytest.approx(guest.bests)
    began, ended = (
        next(k for k, row in enumerate(rows) if words in row["events"])
        for words in ("learner: smbo-dec starts", "end: smbo-dec is done")
    )
    assert began < ended == next(k for k, row in enumerate(rows) if row["best_so_far"]) + 9
    assert float(rows[0]["items_per_robot"]) == pytest.approx(guest.level("before"), abs=0.006)
    assert float(rows[-2]["items_per_robot"]) == pytest.approx(guest.level("now"), abs=0.006)
    assert not guest.text("verdict").startswith("smbo")
    for name in ("before", "fault", "now"):
        assert f"{guest.level(name):.2f} ±" in guest.text("verdict")


def test_curve_is_zoomed_with_wheel_buttons_and_keys(enter: Callable[..., Guest]) -> None:
    guest = enter(viewport={"width": 1440, "height": 900})
    page, keys = guest.page, guest.page.keyboard
    page.click("#max")
    guest.until(lambda: guest.heard["frame"]["round"] > 60)
    page.click("#pause")
    guest.at_rest()

    def shown() -> tuple[int, int]:
        words = page.locator("#curve").get_attribute("aria-label")
        first, last = re.findall(r"rounds (\d+) to (\d+)", words)[0]
        return int(first), int(last)

    everything = shown()
    assert everything[0] == 0
    page.click("#zoom-in")
    page.click("#zoom-in")
    zoomed = shown()
    assert zoomed[1] - zoomed[0] == pytest.approx(everything[1] / 1.5**2, abs=2)
    assert guest.rounds()[0] >= zoomed[0]
    page.locator("#curve").focus()
    keys.press("ArrowLeft")
    assert shown()[0] < zoomed[0]
    keys.press("+")
    assert shown()[1] - shown()[0] < zoomed[1] - zoomed[0]
    keys.press("End")
    assert shown()[1] == everything[1]
    keys.press("Home")
    assert shown() == everything
    assert guest.state["speed"] is None  # the keys of the page do something else
    page.locator("#curve").hover()
    for _ in range(6):
        page.mouse.wheel(0, -100)
    guest.until(lambda: shown()[1] - shown()[0] < 0.4 * everything[1])
    first, box = shown()[0], page.locator("#curve").bounding_box()
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"], box["y"] + 50, steps=5)
    page.mouse.up()
    guest.until(lambda: shown()[0] < first)
    for _ in range(20):
        page.mouse.wheel(0, 100)
    guest.until(lambda: shown() == everything)


OVERLAPS = """async () => {
  const {TimelineView} = await import("/timeline.js");
  const canvas = document.body.appendChild(document.createElement("canvas"));
  const found = [];
  let told = 0;
  for (const width of [330, 560, 800])
  for (const rounds of [3, 24, 999, 2245, 12345, 123456, 300001])
  for (const most of [0.02, 3, 1234.5]) {
    canvas.style.cssText = `width: ${width}px; height: 220px`;
    const view = new TimelineView(canvas);
    for (let from = 0; from < rounds; from += 1000) {
      const times = Array.from({length: Math.min(1000, rounds - from)}, (_, k) => from + k + 1);
      const samples = times.map((time) => [time, most * ((time * 7919) % 100) / 100]);
      view.add({samples, ended: samples.map((each) => [...each, null])});
    }
    const looks = [() => {}, () => view.zoom?.(0.3, 0.9), () => view.showLatest?.(),
      () => view.zoom?.(0.001, 0.99)];
    for (const look of looks) {
      look();
      view.draw({before: most, fault: most * 0.99, best: most / 3}, false);
      const all = canvas.painted;
      told += all.length;
      all.forEach((one, k) => all.slice(k + 1).forEach((other) => {
        const apart = Math.max(other.left - one.right, one.left - other.right);
        if (apart < 3 && Math.abs(one.y - other.y) < 10) found.push([one.text, other.text, rounds]);
      }));
      all.filter(({left, right, y}) => left < 0 || right > width || y < 4 || y > 218)
        .forEach(({text}) => found.push([text, "edge", rounds]));
    }
  }
  return [told, found];
}"""


def test_words_on_the_curve_do_not_overlap_however_large_the_numbers(
    enter: Callable[..., Guest],
) -> None:
    told, found = enter().page.evaluate(OVERLAPS)
    assert told > 1000
    assert found == []


KEPT = """async () => {
  const {History, MOST} = await import("/history.js");
  const history = new History();
  const rounds = MOST + 1000;
  let sum = 0;
  for (let k = 1; k <= rounds; k += 1) {
    sum += k % 10;
    history.add([[k - 0.5, 1], [k, k % 10]], [[k, k % 10, k === 77 ? 5 : null]]);
  }
  const {whole, best, low, high, live} = history.merged(0, history.length);
  const csv = history.csv([[77, "end", 'a "b", c']]).trim().split("\\n");
  return {MOST, rounds, length: history.length, mean: sum / rounds, whole, best, low, high, live,
    told: csv.slice(1).reduce((all, line) => all + Number(line.split(",")[1]), 0),
    event: csv.find((line) => line.includes("end")),
    shown: history.between(0, rounds, 100).length, around: history.between(70, 80, 100)};
}"""


def test_history_keeps_all_rounds_in_bounded_memory(enter: Callable[..., Guest]) -> None:
    found = enter().page.evaluate(KEPT)
    assert found["MOST"] / 2 < found["length"] <= found["MOST"]
    assert found["whole"] == pytest.approx(found["mean"], rel=1e-4)
    assert (found["best"], found["low"], found["high"]) == (5, 0, 9)
    assert found["live"] == found["rounds"] % 10
    assert found["rounds"] <= found["told"] <= found["rounds"] + 1
    assert found["event"] == '78,2,7.5,5,8,1,8,"end: a ""b"", c"'
    assert found["shown"] <= 101
    assert 5 in [row["best"] for row in found["around"]]


ALL_CELLS = """() => {
  const map = document.getElementById("map"), found = new Set();
  const {left, top, width, height} = map.getBoundingClientRect();
  for (let y = 0; y < height; y += 3) for (let x = 0; x < width; x += 3) {
    map.dispatchEvent(new PointerEvent("pointermove", {clientX: left + x, clientY: top + y}));
    found.add(document.getElementById("cell").textContent);
  }
  return [...found];
}"""


def test_nobody_is_expected_to_deliver_less_than_nothing(enter: Callable[..., Guest]) -> None:
    guest = enter(viewport={"width": 1440, "height": 900})
    page = guest.page
    page.click("#food-all")  # nothing can be delivered: models learn that, and more than that
    guest.until(lambda: guest.level("fault") == 0)
    page.click("#max")
    page.click("#learn")
    guest.until(lambda: "is done after 30" in guest.text("progress"))
    page.click("#pause")
    guest.at_rest()
    assert min(guest.heard["model"]["prediction"]) < -0.01  # the model's numbers are as they are
    told = [words for words in page.evaluate(ALL_CELLS) if "now expected" in words]
    assert len(told) > 400
    assert [words for words in told if "-" in words] == []
    expected = page.locator("#team tbody td:nth-child(3)").all_text_contents()
    assert [words for words in expected if "-" in words] == []


def test_address_with_a_token_opens_the_page_which_can_be_loaded_again(browser: Any) -> None:
    with served("0.0.0.0") as (_, address):
        guest = Guest(browser, address)
        guest.heard.clear()
        guest.page.reload()
        guest.until(lambda: "frame" in guest.heard and guest.text("level-before") != NOTHING)
        guest.heard.clear()
        guest.page.goto(address.partition("?")[0])  # the cookie is enough
        guest.until(lambda: "frame" in guest.heard)
        assert guest.problems == []
        guest.context.close()
        stranger = browser.new_page()
        answer = stranger.goto(address.partition("?")[0])
        assert answer.status == 403
        assert "terminal where it was started" in stranger.locator("body").text_content()
        stranger.close()


def test_little_motion_is_shown_to_those_who_like_little(enter: Callable[..., Guest]) -> None:
    guest = enter(reduced_motion="reduce")
    started, pictures = monotonic(), set()

    def look() -> bool:
        pictures.add(guest.picture("arena"))
        return len(pictures) == 4

    guest.until(look)
    assert monotonic() - started > 0.9  # two whole intervals of half a second


def test_page_says_when_the_server_has_gone(browser: Any) -> None:
    with served() as (_, address):
        guest = Guest(browser, address)
    guest.page.locator("#lost").get_by_text("lost").or_(
        guest.page.locator("#lost").get_by_text("gone")
    ).first.wait_for()
    guest.context.close()
