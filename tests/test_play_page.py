"""The page of `swarmbo play` in a real browser, on the real server.

Screenshots go to the folder `.artefacts`, or to that which $SWARMBO_ARTEFACTS names.
"""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from tests.playing import PATIENCE, served

ARTEFACTS = Path(os.environ.get("SWARMBO_ARTEFACTS", Path(__file__).parent.parent / ".artefacts"))
NOTHING = "\N{EN DASH}"  # where there is no number
FOCUS = """() => {
  const {id} = document.activeElement;
  return [id, getComputedStyle(document.activeElement).outlineStyle];
}"""
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
        if not request.url.startswith(self.address):
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
    for share in (0.3, 0.4, 0.5, 0.6, 0.7):  # one of these is a cell
        page.mouse.click(box["x"] + share * box["width"], box["y"] + 0.4 * box["height"])
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
