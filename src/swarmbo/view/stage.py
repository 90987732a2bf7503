"""What films and pictures of a recovery show, with the colours and layout of the page.

Drawn with Pillow, which comes with matplotlib: the same arenas, curve and map as
in `view/web`, larger than needed and then reduced, which makes edges smooth.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from swarmbo.view.footage import Footage, Take
from swarmbo.view.scene import map_json, palette

WIDTH, HEIGHT = 1280, 720  # of the layout; pictures are larger or smaller as a whole
SMOOTH = 2  # drawn so many times larger than shown
TRAIL = 8.0  # seconds of a robot's path behind it, in a film

Colour = tuple[int, int, int]


def rgb(colour: str) -> Colour:
    """The parts of a colour like #0072b2, from 0 to 255."""
    red, green, blue = (int(colour[start : start + 2], 16) for start in (1, 3, 5))
    return red, green, blue


def mixed(below: str, above: str, share: float) -> Colour:
    """A colour seen through another that covers so much of it."""
    pairs = zip(rgb(below), rgb(above), strict=True)
    red, green, blue = (round(low + (high - low) * share) for low, high in pairs)
    return red, green, blue


def ramp(name: str, shares: np.ndarray) -> list[Colour]:
    """Colours at shares of a ramp."""
    stops = np.array([rgb(stop) for stop in palette()[name]], float)
    places = np.clip(shares, 0, 1) * (len(stops) - 1)
    parts = [np.interp(places, range(len(stops)), stops[:, part]) for part in range(3)]
    rounded = np.round(np.stack(parts, axis=1)).astype(int).tolist()
    return [(red, green, blue) for red, green, blue in rounded]


@cache
def _font(size: int, bold: bool) -> ImageFont.FreeTypeFont:
    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    return ImageFont.truetype(str(Path(mpl.get_data_path()) / "fonts" / "ttf" / name), size)


def fault_sign(words: str) -> tuple[str, str]:
    """The kind of a fault (healthy, faulty, lost) and its mark; as in colours.js."""
    if words == "none":
        return "healthy", ""
    marks = []
    for fault in words.split(" + "):
        kind, _, how = fault.partition(" ")
        known = {"min": "\u2212", "max": "+", "random": "?"} if kind != "wheels" else {}
        marks.append(kind[0].upper() + known.get(how, how[:1].upper()))
    return ("lost" if marks[0] in ("M", "S") else "faulty"), "".join(marks)


class Pen:
    """Draws in the units of the layout on a picture of another size."""

    def __init__(self, image: Image.Image, unit: float) -> None:
        self.image = image
        self.draw = ImageDraw.Draw(image)
        self.unit = unit  # pixels per unit

    def at(self, *places: tuple[float, float]) -> list[tuple[float, float]]:
        """Places in pixels."""
        return [(self.unit * x, self.unit * y) for x, y in places]

    def width(self, units: float) -> int:
        """The width of a line in pixels."""
        return max(1, round(self.unit * units))

    def line(
        self, places: Sequence[tuple[float, float]], colour: Any, width: float, *, dash: float = 0
    ) -> None:
        """A line; a dashed one goes straight from the first place to the last."""
        if not dash:
            self.draw.line(self.at(*places), colour, self.width(width), joint="curve")
            return
        (x0, y0), (x1, y1) = places[0], places[-1]
        long = max(np.hypot(x1 - x0, y1 - y0), 1e-9)
        for start in np.arange(0, long, 1.6 * dash):
            shares = start / long, min(start + dash, long) / long
            ends = [(x0 + (x1 - x0) * share, y0 + (y1 - y0) * share) for share in shares]
            self.draw.line(self.at(*ends), colour, self.width(width))

    def disc(
        self,
        x: float,
        y: float,
        radius: float,
        fill: Any = None,
        line: Any = None,
        width: float = 1,
    ) -> None:
        """A disc or a ring."""
        box = self.at((x - radius, y - radius), (x + radius, y + radius))
        self.draw.ellipse(box, fill, line, self.width(width))

    def box(
        self,
        corners: tuple[float, float, float, float],
        fill: Any = None,
        line: Any = None,
        *,
        width: float = 1,
        radius: float = 0,
    ) -> None:
        """A rectangle from (x, y) to (x, y)."""
        places = self.at(corners[:2], corners[2:])
        if radius:
            self.draw.rounded_rectangle(places, self.unit * radius, fill, line, self.width(width))
        else:
            self.draw.rectangle(places, fill, line, self.width(width))

    def polygon(
        self, places: Sequence[tuple[float, float]], fill: Any, line: Any = None, width: float = 1
    ) -> None:
        """A filled shape."""
        self.draw.polygon(self.at(*places), fill)
        if line is not None:
            closed = [*places, *places[:2]]
            self.draw.line(self.at(*closed), line, self.width(width), joint="curve")

    def text(
        self,
        place: tuple[float, float],
        words: str,
        colour: Any,
        size: float = 13,
        *,
        bold: bool = False,
        anchor: str = "ls",
        halo: Any = None,
    ) -> None:
        """Words; `anchor` as in Pillow: l, m, r and a, m, s."""
        font = _font(max(6, round(self.unit * size)), bold)
        stroke = self.width(1.6) if halo is not None else 0
        place = self.at(place)[0]
        self.draw.text(place, words, colour, font, anchor, stroke_width=stroke, stroke_fill=halo)

    def long(self, words: str, size: float, *, bold: bool = False) -> float:
        """How long words are, in units."""
        return _font(max(6, round(self.unit * size)), bold).getlength(words) / self.unit


class Stage:
    """Where a recovery is drawn: three arenas side by side, and beside them curve and map."""

    def __init__(self, footage: Footage, scheme: str, width: int) -> None:
        self.footage = footage
        self.colours: dict[str, str] = palette()[scheme]
        self.size = (width, round(width * HEIGHT / WIDTH / 2) * 2)
        self._unit = SMOOTH * width / WIDTH
        arena = footage.case.scenario.arena
        room = (282.0, 564.0)
        self._scale = min(room[0] / arena.width, room[1] / arena.height)
        wide, high = self._scale * arena.width, self._scale * arena.height
        self._arenas = [
            (24 + k * 302 + (room[0] - wide) / 2, 92 + (room[1] - high) / 2) for k in range(3)
        ]
        self._grid = map_json(footage.behaviour_map, "")
        self._base: tuple[int, Image.Image] | None = None

    def film(self, seconds: tuple[float, float], rate: float) -> Iterator[Image.Image]:
        """The frames: a trial during which the tries follow each other, then one after recovery."""
        count = len(self.footage.tries)
        learning, after = (max(2, round(length * rate)) for length in seconds)
        for number in range(learning):
            share = number / learning
            yield self.picture(int(share * count), share, TRAIL)
        for number in range(after):
            yield self.picture(count, number / (after - 1), TRAIL)

    def picture(self, stop: int, share: float, trail: float) -> Image.Image:
        """One moment: the try of that number (from 0), or after the last the recovered swarm.

        `share` is that of the trial's time, `trail` the seconds of the paths.
        """
        footage = self.footage
        if self._base is None or self._base[0] != stop:
            size = (SMOOTH * self.size[0], SMOOTH * self.size[1])
            image = Image.new("RGB", size, self.colours["page"])
            self._draw_base(Pen(image, self._unit), stop)
            self._base = stop, image
        image = self._base[1].copy()
        pen = Pen(image, self._unit)
        for k, take in enumerate([footage.before, footage.at_fault, self._take(stop)]):
            self._draw_robots(pen, self._arenas[k], take, share * take.ticks, trail)
            total = int(take.items[round(share * take.ticks)].sum())
            words = f"{total} item{'s' * (total != 1)} so far"
            x = 24 + k * 302
            pen.text((x + 282, 684), words, self.colours["quiet"], 14, anchor="rs")
        return image.reduce(SMOOTH)

    def _take(self, stop: int) -> Take:
        tries = self.footage.tries
        return tries[stop] if stop < len(tries) else self.footage.after

    def _place(self, corner: tuple[float, float], x: Any, y: Any) -> tuple[Any, Any]:
        """Metres as units of the layout."""
        height = self.footage.case.scenario.arena.height
        return corner[0] + self._scale * x, corner[1] + self._scale * (height - y)

    # What does not move.

    def _draw_base(self, pen: Pen, stop: int) -> None:
        footage, colours = self.footage, self.colours
        report, count = footage.report, len(footage.tries)
        recovered = stop == count
        pen.text((24, 40), "A swarm recovers", colours["ink"], 26, bold=True)
        per = "" if report["composed"] is None else " per robot"
        names = [Path(report["map"]).name, report["disturbance"]]
        names = [name.encode(errors="replace").decode()[-28:] for name in names]
        words = f"map {names[0]}, {names[1]}, {report['learner']} with {count} evaluations{per}"
        pen.text((1256, 40), words, colours["quiet"], 14.5, anchor="rs")
        titles = ["Before the fault", "The fault strikes"]
        titles.append("After recovery" if recovered else f"Evaluation {stop + 1} of {count}")
        outcomes = [] if recovered else footage.outcomes(stop)
        now = footage.final if recovered else sum(outcomes) / max(len(outcomes), 1)
        takes = [footage.before, footage.at_fault, self._take(stop)]
        for k, number in enumerate((report["before"], report["at_fault"], now)):
            x = 24 + k * 302
            pen.text((x, 80), titles[k], colours["ink"], 17, bold=True)
            strong = f"{number:.2f}"
            pen.text((x, 684), strong, colours["ink"], 19, bold=True)
            after = x + pen.long(strong, 19, bold=True) + 6
            pen.text((after, 684), "items per robot", colours["quiet"], 14)
            self._draw_floor(pen, self._arenas[k], takes[k])
        self._draw_legend(pen)
        self._draw_curve(pen, (952, 92, 1256, 346), stop)
        self._draw_map(pen, (952, 410, 1256, 656), stop)

    def _draw_legend(self, pen: Pen) -> None:
        """Signs of the faults, and the robots that have them."""
        groups: dict[str, list[int]] = {}
        for robot, words in enumerate(self.footage.at_fault.faults):
            if words != "none":
                groups.setdefault(words, []).append(robot)
        x = 24.0
        for words, robots in groups.items():
            kind, mark = fault_sign(words)
            colour = self.colours[kind]
            long = pen.long(mark, 12.5, bold=True) + 8
            pen.box((x, 696, x + long, 711), None, colour, radius=3)
            pen.text((x + long / 2, 704), mark, colour, 12.5, bold=True, anchor="mm")
            text = f"{words}: robot{'s' * (len(robots) > 1)} {', '.join(map(str, robots))}"
            if x + long + pen.long(text, 13) > 1250:
                break
            pen.text((x + long + 6, 708), text, self.colours["quiet"], 13)
            x += long + pen.long(text, 13) + 26

    def _draw_floor(self, pen: Pen, corner: tuple[float, float], take: Take) -> None:
        colours, scale = self.colours, self._scale
        arena = self.footage.case.scenario.arena
        left, top = corner
        right, bottom = left + scale * arena.width, top + scale * arena.height
        # A picture of its own cuts off what lies beyond the walls.
        (x0, y0), (x1, y1) = pen.at((left, top), (right, bottom))
        size = (max(1, round(x1 - x0)), max(1, round(y1 - y0)))
        floor = Pen(Image.new("RGB", size, colours["floor"]), pen.unit)
        grid = rgb(colours["grid"])
        for x in np.arange(0.5, arena.width, 0.5).tolist():
            floor.line([(scale * x, 0), (scale * x, bottom - top)], grid, 1)
        for y in np.arange(0.5, arena.height, 0.5).tolist():
            floor.line([(0, scale * y), (right - left, scale * y)], grid, 1)
        here = set(take.food)
        for x, y, radius in arena.food:
            if (x, y, radius) not in here:
                place = (scale * x, scale * (arena.height - y))
                floor.disc(*place, scale * radius, None, colours["line"], 1.2)
        for x, y, radius in take.food:
            place = (scale * x, scale * (arena.height - y))
            floor.disc(*place, scale * radius, colours["food"], colours["foodLine"], 1.4)
        depth = scale * arena.nest_depth
        floor.box((0, 0, depth, bottom - top), colours["nest"])
        hatch = mixed(colours["nest"], colours["nestLine"], 0.45)
        strip = Image.new("RGB", (max(1, round(depth * pen.unit)), size[1]), colours["nest"])
        lines = Pen(strip, pen.unit)
        for start in np.arange(-depth, bottom - top + depth, 11.0).tolist():
            lines.line([(0, start + depth), (depth, start)], hatch, 1)
        floor.image.paste(strip, (0, 0))
        floor.line([(depth, 0), (depth, bottom - top)], colours["nestLine"], 1.4)
        pen.image.paste(floor.image, (round(x0), round(y0)))
        pen.box((left, top, right, bottom), None, colours["wall"], width=2)

    # What moves.

    def _draw_robots(
        self, pen: Pen, corner: tuple[float, float], take: Take, tick: float, trail: float
    ) -> None:
        colours, scenario = self.colours, self.footage.case.scenario
        low = min(int(tick), take.ticks - 1)
        share = min(tick - low, 1.0)
        x, y = (part[low] + (part[low + 1] - part[low]) * share for part in (take.x, take.y))
        turn = np.angle(np.exp(1j * (take.theta[low + 1] - take.theta[low])))
        theta = take.theta[low] + turn * share
        first = max(0, low - round(trail / scenario.tick))
        for robot in range(scenario.robots):
            xs = np.append(take.x[first : low + 1, robot], x[robot])
            ys = np.append(take.y[first : low + 1, robot], y[robot])
            across, down = self._place(corner, xs, ys)
            kind, _ = fault_sign(take.faults[robot])
            self._draw_trail(pen, list(zip(across, down, strict=True)), colours[kind])
        for robot in range(scenario.robots):
            place = self._place(corner, x[robot], y[robot])
            self._draw_robot(pen, place, theta[robot], take, robot, bool(take.carrying[low, robot]))
        for robot in range(scenario.robots):
            place = self._place(corner, x[robot], y[robot])
            self._draw_label(pen, corner, place, take.faults[robot], robot)

    def _draw_trail(self, pen: Pen, places: list[tuple[float, float]], colour: str) -> None:
        pieces = 6
        for piece in range(pieces):
            part = places[piece * len(places) // pieces : (piece + 1) * len(places) // pieces + 1]
            if len(part) > 1:
                share = (piece + 1) / pieces
                shade = mixed(self.colours["floor"], colour, 0.1 + 0.45 * share)
                pen.line(part, shade, 0.9 + 1.6 * share)

    def _draw_robot(
        self,
        pen: Pen,
        place: tuple[float, float],
        theta: float,
        take: Take,
        robot: int,
        carrying: bool,
    ) -> None:
        colours, scale = self.colours, self._scale
        body = self.footage.case.scenario.robot.body
        cos, sin = np.cos(theta), np.sin(theta)

        def own(x: float, y: float) -> tuple[float, float]:
            ahead, left = scale * x, scale * y
            return place[0] + cos * ahead - sin * left, place[1] - sin * ahead - cos * left

        kind, _ = fault_sign(take.faults[robot])
        pen.polygon([own(*corner) for corner in body], colours[kind], colours["halo"])
        front, wide = max(x for x, _ in body), max(abs(y) for _, y in body)
        nose = [(0.85 * front, 0.0), (-0.35 * front, 0.6 * wide), (-0.35 * front, -0.6 * wide)]
        pen.polygon([own(*corner) for corner in nose], colours["onRobot"])
        if carrying:
            reach = max(0.42 * scale * self._radius, 3.0)
            pen.disc(*own(-1.15 * front, 0), reach + 1.4, colours["halo"])
            pen.disc(*own(-1.15 * front, 0), reach, colours["item"])

    @property
    def _radius(self) -> float:
        return self.footage.case.scenario.robot.radius

    def _draw_label(
        self,
        pen: Pen,
        corner: tuple[float, float],
        place: tuple[float, float],
        words: str,
        robot: int,
    ) -> None:
        kind, mark = fault_sign(words)
        colour = self.colours[kind]
        reach = self._scale * self._radius
        if mark:
            pen.disc(*place, 1.3 * reach + 1, None, colour, 1.6)
        text = " ".join(part for part in (str(robot), mark if reach >= 8 else "") if part)
        long = pen.long(text, 11, bold=True) + 7
        edge = corner[0] + self._scale * self.footage.case.scenario.arena.width
        x = place[0] + 0.8 * reach
        if x + long > edge:
            x = place[0] - 0.8 * reach - long
        y = max(place[1] - 1.25 * reach - 5, corner[1] + 8)
        if mark:
            box = (x, y - 8, x + long, y + 8)
            pen.box(box, self.colours["page"], colour, radius=4)
        halo = None if mark else self.colours["floor"]
        pen.text((x + long / 2, y), text, colour, 11, bold=True, anchor="mm", halo=halo)

    # Curve and map.

    def _draw_curve(self, pen: Pen, box: tuple[float, float, float, float], stop: int) -> None:
        colours, report = self.colours, self.footage.report
        count = len(self.footage.tries)
        left, top, right, bottom = box[0] + 20, box[1] + 8, box[2] - 144, box[3]
        pen.text((box[0], 80), "Items per robot", colours["ink"], 17, bold=True)
        bests = [entry["swarm_best"] for entry in report["evaluations"]]
        outcomes = [self.footage.outcomes(number) for number in range(count)]
        levels = [("before", "before the fault"), ("at_fault", "at the fault")]
        tried = [value for each in outcomes for value in each]
        highest = max([report["before"], report["at_fault"], *bests, *tried, 0.5])
        step = next(s for s in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 1e9) if highest / s <= 6)
        ceiling = step * np.ceil(highest / step)
        start = left + 0.09 * (right - left)

        def across(evaluation: float) -> float:
            return start + evaluation / count * (right - start)

        def up(value: float) -> float:
            return float(bottom - value / ceiling * (bottom - top))

        for value in np.arange(0, ceiling + step / 2, step).tolist():
            shade = colours["line"] if value == 0 else mixed(colours["page"], colours["line"], 0.6)
            pen.line([(left, up(value)), (right, up(value))], shade, 1)
            pen.text((left - 6, up(value)), f"{value:g}", colours["quiet"], 12.5, anchor="rm")
        gap = next(g for g in (1, 2, 5, 10, 20, 50, 100, 200, 500, 10**9) if count / g <= 4)
        for evaluation in range(gap, count + 1, gap):
            place = (across(evaluation), bottom + 16)
            pen.text(place, str(evaluation), colours["quiet"], 12.5, anchor="ms")
        pen.text((right + 12, bottom + 16), "evaluations", colours["quiet"], 12.5)
        ends: list[tuple[float, str, str]] = []
        for name, words in levels:
            colour = colours["before" if name == "before" else "fault"]
            value = report[name]
            dash = 7 if name == "before" else 3
            pen.line([(left, up(value)), (right, up(value))], colour, 1.4, dash=dash)
            ends.append((up(value), f"{words} {value:.2f}", colour))
        done = min(stop, count)
        for number in range(count):
            strength = 0.6 if number < done else 0.18
            shade = mixed(colours["page"], colours["quiet"], strength)
            for value in outcomes[number]:
                pen.disc(across(number + 1), up(value), 2.1, shade)
        path = [(left, up(report["before"])), (start, up(report["before"]))]
        path.append((start, up(report["at_fault"])))
        for number in range(done):
            path += [(across(number + 1), path[-1][1]), (across(number + 1), up(bests[number]))]
        pen.line(path, colours["best"], 2.8)
        pen.disc(*path[-1], 4.5, colours["best"])
        if done:
            ends.append((path[-1][1], f"best so far {bests[done - 1]:.2f}", colours["best"]))
        if stop == count and report["composed"] is not None:
            x, y = right, up(report["composed"])
            shape = [(x, y - 7), (x + 7, y), (x, y + 7), (x - 7, y)]
            pen.polygon(shape, colours["best"], colours["page"], 1.2)
            ends.append((y, f"recovered {report['composed']:.2f}", colours["best"]))
        last = top - 14
        for y, words, colour in sorted(ends):
            last = max(y, last + 14)
            pen.text((right + 12, last), words, colour, 12.5, anchor="lm")

    def _draw_map(self, pen: Pen, box: tuple[float, float, float, float], stop: int) -> None:
        colours, footage, count = self.colours, self.footage, len(self.footage.tries)
        pen.text((box[0], box[1] - 14), "Controllers tried", colours["ink"], 17, bold=True)
        rows_of = [
            [row for row in footage.rows(number) if row is not None] for number in range(count)
        ]
        tried = {row for rows in rows_of[:stop] for row in rows}
        current = set() if stop == count else set(rows_of[stop])
        chosen = set(footage.after.team) if stop == count else set()
        squares, side, grounds = self._squares(box)
        for ground in grounds:
            pen.box(ground, colours["empty"])
        performance = np.array(self._grid["performance"])
        top = max(float(performance.max()), 1e-9)
        gap = 1.0 if side > 5 else 0.4
        for (x, y), shade in zip(squares, ramp("performance", performance / top), strict=True):
            pen.box((x, y, x + side - gap, y + side - gap), shade)
        for row in tried:
            x, y = squares[row][0] + (side - gap) / 2, squares[row][1] + (side - gap) / 2
            pen.disc(x, y, max(0.24 * side, 1.5), colours["mark"], colours["markLine"], 0.7)
        for row in chosen:
            x, y = squares[row][0] + (side - gap) / 2, squares[row][1] + (side - gap) / 2
            r = max(0.75 * side, 5.0)
            shape = [(x, y - r), (x + r, y), (x, y + r), (x - r, y)]
            pen.polygon(shape, colours["mark"], colours["markLine"], 1.2)
        for row in current:
            x, y = squares[row]
            for more, width, colour in (
                (2.6, 1.6, colours["mark"]),
                (1.4, 2.4, colours["current"]),
            ):
                around = (x - more, y - more, x + side - gap + more, y + side - gap + more)
                pen.box(around, None, colour, width=width)
        below = max(ground[3] for ground in grounds)
        self._draw_scale(pen, (box[0], below + 14), top, stop == count)

    def _draw_scale(
        self, pen: Pen, corner: tuple[float, float], top: float, recovered: bool
    ) -> None:
        colours = self.colours
        left, y = corner
        for k, colour in enumerate(ramp("performance", np.linspace(0, 1, 60))):
            pen.box((left + 14 + k, y, left + 16 + k, y + 9), colour)
        pen.text((left, y + 9), "0", colours["quiet"], 12.5)
        pen.text((left + 80, y + 9), f"{top:.1f} items", colours["quiet"], 12.5)
        x = left + 150
        pen.disc(x, y + 5, 3.4, colours["mark"], colours["markLine"], 0.8)
        pen.text((x + 8, y + 9), "tried", colours["quiet"], 12.5)
        x += 58
        if recovered:
            shape = [(x, y - 1), (x + 6, y + 5), (x, y + 11), (x - 6, y + 5)]
            pen.polygon(shape, colours["mark"], colours["markLine"], 1)
        else:
            pen.box((x - 5, y, x + 5, y + 10), None, colours["current"], width=2.4)
        pen.text((x + 11, y + 9), "chosen" if recovered else "being tried", colours["quiet"], 12.5)

    def _squares(
        self, box: tuple[float, float, float, float]
    ) -> tuple[list[tuple[float, float]], float, list[tuple[float, float, float, float]]]:
        """Corners of the cells' squares, their side, and the grounds on which they lie."""
        shape = self._grid["shape"]
        if shape is None:
            places = np.array(self._grid["place"])
            across, up, level = places[:, 0], places[:, 1], np.zeros(len(places), int)
        else:
            cells = list(np.unravel_index(self._grid["cells"], shape))
            cells += [np.zeros_like(cells[0])] * (3 - len(cells))
            across, up, level = cells
            across, up = across - across.min(), up - up.min()
            level = np.unique(level, return_inverse=True)[1]
        columns, rows, levels = across.max() + 1, up.max() + 1, level.max() + 1
        wide, high = box[2] - box[0], box[3] - box[1]

        def side_of(side_by_side: int) -> float:
            below = -(-levels // side_by_side)
            return float(
                min(
                    (wide - 6 * (side_by_side - 1)) / (side_by_side * columns),
                    (high - 6 * (below - 1)) / (below * rows),
                )
            )

        beside = max(range(1, int(levels) + 1), key=side_of)
        side = side_of(beside)
        step_x, step_y = columns * side + 6, rows * side + 6
        corners = [
            (box[0] + n % beside * step_x, box[1] + n // beside * step_y) for n in range(levels)
        ]
        squares = [
            (corners[n][0] + column * side, corners[n][1] + (rows - 1 - row) * side)
            for n, column, row in zip(level.tolist(), across.tolist(), up.tolist(), strict=True)
        ]
        grounds = [(x, y, x + columns * side - 1, y + rows * side - 1) for x, y in corners]
        return squares, side, grounds
