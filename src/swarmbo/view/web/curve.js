/**
 * The performance of a swarm: the fall at the fault, what was tried, and the best so far.
 *
 * `draw({levels, points, evaluations, unit, cursor})`:
 * - `levels`: {before, fault, best} and, if known, {composed, exhaustive}; lines with words at
 *   their ends. A level that is null or missing is not drawn.
 * - `points`: [{evaluation (from 1), performance: number or list of numbers per robot, best}...]
 * - `evaluations`: how many there will be; `unit`: words for the axis.
 * - `cursor` (optional): the evaluation that is shown elsewhere; later points are pale.
 */
import {FONT, prepared, redrawing, scheme} from "./colours.js";

const LEAD = 0.07; // share of the width that the time before the fault takes

const WORDS = {
  before: "before the fault",
  fault: "at the fault",
  best: "best so far",
  composed: "composed swarm",
  exhaustive: "exhaustive search",
};

export class CurveView {
  #last = null;
  #frame = null; // {left, right, evaluations}

  constructor(canvas) {
    this.canvas = canvas;
    redrawing(canvas, () => this.#last && this.draw(this.#last));
  }

  draw(given) {
    this.#last = given;
    const {levels, points = [], unit = "items per robot", cursor} = given;
    const evaluations = Math.max(given.evaluations ?? points.length, 1);
    const {context: c, width, height} = prepared(this.canvas);
    if (width < 60 || height < 60) return;
    const colours = scheme();
    const small = width < 460;
    c.font = `${small ? 10 : 11}px ${FONT}`;
    const named = Object.keys(WORDS).filter((name) => Number.isFinite(levels?.[name]));
    const words = named.map((name) => [name, `${WORDS[name]} ${levels[name].toFixed(2)}`]);
    const widest = Math.max(...Object.values(WORDS).map((text) => c.measureText(`${text} 0.00`).width));
    const right = width - widest - 14; // the same whichever lines there are
    const [left, top, bottom] = [30, 22, height - 30];
    const performances = points.flatMap((point) => point.performance ?? []).filter(Number.isFinite);
    const highest = Math.max(...named.map((name) => levels[name]), ...performances,
      ...points.map((point) => point.best ?? 0), 0.5);
    const [step, ceiling] = ticks(highest * 1.04, Math.max(3, Math.floor((bottom - top) / 42)));
    const start = left + LEAD * (right - left);
    const across = (evaluation) => start + (evaluation / evaluations) * (right - start);
    const up = (value) => bottom - (value / ceiling) * (bottom - top);
    this.#frame = {start, right, evaluations};

    this.#axes(c, colours, {left, right, top, bottom, step, ceiling, up, across, evaluations, unit});
    this.#lines(c, colours, levels, named, {left, right, up});
    const known = points.filter((point) => cursor === undefined || point.evaluation <= cursor);
    const later = points.filter((point) => cursor !== undefined && point.evaluation > cursor);
    c.globalAlpha = 0.22;
    this.#dots(c, colours, later, across, up);
    c.globalAlpha = 1;
    if (later.length) {
      c.globalAlpha = 0.25;
      this.#course(c, colours, levels, points, {left, start, across, up, end: right});
      c.globalAlpha = 1;
    }
    this.#dots(c, colours, known, across, up);
    const end = points.length && known.length === points.length && points.length >= evaluations
      ? right : across(known.at(-1)?.evaluation ?? 0);
    this.#course(c, colours, levels, known, {left, start, across, up, end});
    this.#cursor(c, colours, cursor, known, levels, {across, up, top, bottom, evaluations});
    if (Number.isFinite(levels?.composed)) diamond(c, colours, right, up(levels.composed));
    this.#names(c, colours, words, levels, {right, up, top, bottom});
  }

  #axes(c, colours, {left, right, top, bottom, step, ceiling, up, across, evaluations, unit}) {
    c.strokeStyle = colours.line;
    c.fillStyle = colours.quiet;
    c.lineWidth = 1;
    c.textBaseline = "middle";
    c.textAlign = "right";
    for (let value = 0; value <= ceiling + 1e-9; value += step) {
      c.globalAlpha = value ? 0.55 : 1;
      c.beginPath();
      c.moveTo(left, Math.round(up(value)) + 0.5);
      c.lineTo(right, Math.round(up(value)) + 0.5);
      c.stroke();
      c.globalAlpha = 1;
      c.fillText(String(+value.toFixed(2)), left - 6, up(value));
    }
    c.textAlign = "center";
    c.textBaseline = "top";
    const [gap] = ticks(evaluations, Math.max(2, Math.floor((right - left) / 70)));
    for (let at = Math.max(1, Math.round(gap)); at <= evaluations; at += Math.max(1, Math.round(gap))) {
      c.fillText(String(at), across(at), bottom + 5);
    }
    c.textAlign = "right";
    c.textBaseline = "alphabetic";
    c.fillText("evaluations", right, bottom + 28);
    c.textAlign = "left";
    c.fillText(unit, left - 24, top - 10);
  }

  #lines(c, colours, levels, named, {left, right, up}) {
    c.lineWidth = 1.3;
    for (const name of named) {
      if (name === "best" || name === "composed") continue;
      c.strokeStyle = colours[name] ?? colours.other;
      c.setLineDash(name === "before" ? [7, 4] : name === "fault" ? [2, 3] : [8, 3, 2, 3]);
      c.beginPath();
      c.moveTo(left, up(levels[name]));
      c.lineTo(right, up(levels[name]));
      c.stroke();
    }
    c.setLineDash([]);
  }

  #dots(c, colours, points, across, up) {
    c.fillStyle = colours.quiet;
    const alpha = c.globalAlpha;
    c.globalAlpha = alpha * 0.55;
    for (const {evaluation, performance} of points) {
      for (const value of [performance].flat()) {
        if (!Number.isFinite(value)) continue;
        c.beginPath();
        c.arc(across(evaluation), up(value), 2.2, 0, 2 * Math.PI);
        c.fill();
      }
    }
    c.globalAlpha = alpha;
  }

  /** The level before, the fall, and the steps of the best so far. */
  #course(c, colours, levels, points, {left, start, across, up, end}) {
    const path = [];
    if (Number.isFinite(levels?.before)) path.push([left, up(levels.before)], [start, up(levels.before)]);
    let level = levels?.fault ?? levels?.before;
    if (Number.isFinite(level)) path.push([start, up(level)]);
    for (const {evaluation, best} of points) {
      if (!Number.isFinite(best)) continue;
      if (Number.isFinite(level)) path.push([across(evaluation), up(level)]);
      path.push([across(evaluation), up(best)]);
      level = best;
    }
    if (path.length && Number.isFinite(level)) path.push([Math.max(end, path.at(-1)[0]), up(level)]);
    c.strokeStyle = colours.best;
    c.lineWidth = 2.6;
    c.lineJoin = "round";
    c.beginPath();
    for (const place of path) c.lineTo(...place);
    c.stroke();
  }

  #cursor(c, colours, cursor, known, levels, {across, up, top, bottom, evaluations}) {
    if (cursor === undefined) return;
    const at = across(Math.min(cursor, evaluations));
    c.strokeStyle = colours.ink;
    c.globalAlpha = 0.4;
    c.lineWidth = 1;
    c.beginPath();
    c.moveTo(at, top - 4);
    c.lineTo(at, bottom);
    c.stroke();
    c.globalAlpha = 1;
    const level = known.at(-1)?.best ?? levels?.fault;
    if (!Number.isFinite(level)) return;
    c.beginPath();
    c.arc(at, up(level), 5, 0, 2 * Math.PI);
    c.fillStyle = colours.best;
    c.fill();
    c.strokeStyle = colours.halo;
    c.lineWidth = 1.6;
    c.stroke();
  }

  /** Words at the ends of the lines, moved apart where they would overlap. */
  #names(c, colours, words, levels, {right, up, top, bottom}) {
    const placed = words.map(([name, text]) => ({name, text, y: up(levels[name])}));
    placed.sort((one, other) => one.y - other.y);
    placed.forEach((entry, k) => {
      entry.y = Math.max(entry.y, k ? placed[k - 1].y + 13 : top - 8);
    });
    for (let k = placed.length - 1; k >= 0; k -= 1) {
      placed[k].y = Math.min(placed[k].y, k + 1 < placed.length ? placed[k + 1].y - 13 : bottom - 4);
    }
    c.textAlign = "left";
    c.textBaseline = "middle";
    for (const {name, text, y} of placed) {
      c.fillStyle = colours[name === "composed" ? "best" : name] ?? colours.other;
      c.fillText(text, right + 10, y);
    }
  }

  /** The evaluation at a point on the screen: 0 is the fault. */
  evaluationAt(clientX) {
    if (!this.#frame) return 0;
    const {start, right, evaluations} = this.#frame;
    const share = (clientX - this.canvas.getBoundingClientRect().left - start) / (right - start);
    return Math.round(Math.min(Math.max(share, 0), 1) * evaluations);
  }
}

/** The composed swarm is one measurement, not a course. */
function diamond(c, colours, x, y) {
  c.beginPath();
  for (const [dx, dy] of [[0, -6], [6, 0], [0, 6], [-6, 0]]) c.lineTo(x + dx, y + dy);
  c.closePath();
  c.fillStyle = colours.best;
  c.fill();
  c.strokeStyle = colours.halo;
  c.lineWidth = 1.4;
  c.stroke();
}

/** A round step for about so many ticks up to a value, and the first step at or above the value. */
function ticks(value, count) {
  const rough = value / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((n) => n * power).find((n) => n >= rough * 0.999);
  return [step, Math.ceil(value / step - 1e-9) * step];
}
