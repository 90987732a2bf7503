/**
 * The performance of a running swarm over time: the live line, each round's result, the best so far,
 * the levels before and at the fault, and what has happened.
 *
 * Time is in rounds since the restart. `add({samples, ended, marks})` takes what a frame brings:
 * samples [[time, items per robot within the last round's length]...],
 * ended [[time, items per robot of a whole round, best so far or null]...],
 * marks [[time, kind, words]...]. `plan` is {start, evaluations} of a learner, or null.
 */
import {FONT, prepared, redrawing, scheme} from "./colours.js";

const SPAN = 24; // rounds that are shown at least
const KEPT = 400; // rounds that are remembered
const MOST = 6000; // points that are remembered

export class TimelineView {
  #samples = [];
  #ended = [];
  #marks = [];
  #levels = {};
  plan = null;

  constructor(canvas) {
    this.canvas = canvas;
    redrawing(canvas, () => this.draw());
  }

  clear() {
    this.#samples = [];
    this.#ended = [];
    this.#marks = [];
    this.plan = null;
  }

  add({samples = [], ended = [], marks = []}) {
    this.#samples.push(...samples);
    this.#ended.push(...ended);
    this.#marks.push(...marks);
    for (const [time, kind] of marks) {
      if (kind === "learner") this.plan = {start: time};
    }
    const oldest = this.now - KEPT;
    for (const list of [this.#samples, this.#ended, this.#marks]) {
      if (list.length && (list[0][0] < oldest - KEPT / 4 || list.length > MOST)) {
        const first = list.findIndex(([time]) => time >= oldest);
        list.splice(0, Math.max(first, list.length - MOST / 2, 0));
      }
    }
  }

  /** The time of the latest point. */
  get now() {
    return Math.max(this.#samples.at(-1)?.[0] ?? 0, this.#ended.at(-1)?.[0] ?? 0, this.#marks.at(-1)?.[0] ?? 0);
  }

  /** The latest performance, or undefined. */
  get latest() {
    return this.#samples.at(-1)?.[1];
  }

  #window() {
    const now = this.now;
    if (this.plan) {
      const fault = this.#marks.findLast(([time, kind]) => kind === "fault" && time <= this.plan.start)?.[0];
      const since = fault > this.plan.start - 20 ? fault : this.plan.start;
      const start = Math.max(since - 4, 0), end = this.plan.start + (this.plan.evaluations ?? 30) + 4;
      if (now < end) return [start, end];
    }
    const span = this.plan ? Math.max(SPAN, (this.plan.evaluations ?? 30) + 9) : SPAN;
    return now + 1 < span ? [0, span] : [now + 1 - span, now + 1];
  }

  draw(levels = this.#levels) {
    this.#levels = levels;
    const {context: c, width, height} = prepared(this.canvas);
    if (width < 60 || height < 60) return;
    const colours = scheme();
    const small = width < 460;
    c.font = `${small ? 10 : 11}px ${FONT}`;
    const [from, to] = this.#window();
    const seen = (list) => {
      const first = list.findIndex(([time]) => time >= from);
      return first < 0 ? [] : list.slice(Math.max(first - 1, 0));
    };
    const samples = seen(this.#samples), ended = this.#ended.filter(([time]) => time >= from);
    const values = [...samples.map((s) => s[1]), ...ended.flatMap((e) => [e[1], e[2] ?? 0]),
      levels.before ?? 0, levels.fault ?? 0, levels.best ?? 0, 1];
    const [left, right, top, bottom] = [26, width - 6, 24, height - 20];
    const [step, ceiling] = scale(Math.max(...values) * 1.06, Math.max(2, Math.floor((bottom - top) / 34)));
    const across = (time) => left + ((time - from) / (to - from)) * (right - left);
    const up = (value) => bottom - (value / ceiling) * (bottom - top);

    this.#axes(c, colours, {left, right, top, bottom, step, ceiling, up, across, from, to});
    c.save();
    c.beginPath();
    c.rect(left, 0, right - left, height);
    c.clip();
    this.#level(c, colours.before, levels.before, [6, 4], {left, right, up});
    this.#level(c, colours.fault, levels.fault, [2, 3], {left, right, up});
    this.#marksOf(c, colours, {across, top, bottom, from});
    this.#live(c, colours, samples, {across, up, bottom});
    this.#best(c, colours, ended, {across, up});
    this.#rounds(c, colours, ended, {across, up});
    c.restore();
    this.#names(c, colours, levels, {right, up, top});
  }

  #axes(c, colours, {left, right, top, bottom, step, ceiling, up, across, from, to}) {
    c.strokeStyle = colours.line;
    c.fillStyle = colours.quiet;
    c.lineWidth = 1;
    c.textAlign = "right";
    c.textBaseline = "middle";
    for (let value = 0; value <= ceiling + 1e-9; value += step) {
      const y = Math.round(up(value)) + 0.5;
      c.globalAlpha = value === 0 ? 1 : 0.5;
      c.beginPath();
      c.moveTo(left, y);
      c.lineTo(right, y);
      c.stroke();
      c.globalAlpha = 1;
      c.fillText(String(+value.toFixed(2)), left - 5, y);
    }
    c.textBaseline = "alphabetic";
    c.textAlign = "center";
    const [stride] = scale(to - from, Math.max(2, Math.floor((right - left) / 70)));
    const each = Math.max(1, Math.round(stride));
    for (let time = Math.ceil(Math.max(from, 0) / each) * each; time <= to; time += each) {
      const x = across(time);
      if (x > right - 46) break;
      c.fillText(String(time), x, bottom + 14);
    }
    c.textAlign = "right";
    c.fillText("rounds", right, bottom + 14);
  }

  #level(c, colour, value, dash, {left, right, up}) {
    if (!Number.isFinite(value)) return;
    c.strokeStyle = colour;
    c.lineWidth = 1.6;
    c.setLineDash(dash);
    c.beginPath();
    c.moveTo(left, up(value));
    c.lineTo(right, up(value));
    c.stroke();
    c.setLineDash([]);
  }

  #marksOf(c, colours, {across, top, bottom, from}) {
    const signs = {fault: ["✕", colours.fault], repair: ["✓", colours.before],
      learner: ["▶", colours.best], end: ["■", colours.best], cell: ["◆", colours.other]};
    let last = -Infinity;
    c.textAlign = "center";
    c.textBaseline = "middle";
    for (const [time, kind] of this.#marks) {
      if (time < from) continue;
      const [sign, colour] = signs[kind] ?? ["•", colours.quiet];
      const x = across(time);
      c.strokeStyle = c.fillStyle = colour;
      c.globalAlpha = 0.5;
      c.lineWidth = 1;
      c.beginPath();
      c.moveTo(x, top - 4);
      c.lineTo(x, bottom);
      c.stroke();
      c.globalAlpha = 1;
      const beside = Math.max(x, last + 11); // signs stay apart, as far as there is room
      if (beside - x < 25) c.fillText(sign, beside, top - 12);
      last = Math.min(beside, x + 25);
    }
  }

  #live(c, colours, samples, {across, up, bottom}) {
    if (samples.length < 2) return;
    c.beginPath();
    samples.forEach(([time, value]) => c.lineTo(across(time), up(value)));
    c.strokeStyle = colours.ink;
    c.lineWidth = 1.6;
    c.lineJoin = "round";
    c.stroke();
    c.lineTo(across(samples.at(-1)[0]), bottom);
    c.lineTo(across(samples[0][0]), bottom);
    c.closePath();
    c.globalAlpha = 0.07;
    c.fillStyle = colours.ink;
    c.fill();
    c.globalAlpha = 1;
    const [time, value] = samples.at(-1);
    c.beginPath();
    c.arc(across(time), up(value), 3.2, 0, 2 * Math.PI);
    c.fillStyle = colours.ink;
    c.fill();
  }

  #rounds(c, colours, ended, {across, up}) {
    if (ended.length > 150) return;
    for (const [time, value, best] of ended) {
      c.beginPath();
      c.arc(across(time), up(value), 2.6, 0, 2 * Math.PI);
      c.fillStyle = best === null ? colours.page : colours.best;
      c.fill();
      c.strokeStyle = best === null ? colours.quiet : colours.best;
      c.lineWidth = 1.2;
      c.stroke();
    }
  }

  #best(c, colours, ended, {across, up}) {
    c.strokeStyle = colours.best;
    c.lineWidth = 2.4;
    c.beginPath();
    let before = null;
    for (const [time, , best] of ended) {
      if (best === null) {
        before = null;
        continue;
      }
      if (before === null) c.moveTo(across(time), up(best));
      else {
        c.lineTo(across(time), up(before));
        c.lineTo(across(time), up(best));
      }
      before = best;
    }
    c.stroke();
  }

  /** Words at the right end of the lines, apart from each other. */
  #names(c, colours, levels, {right, up, top}) {
    const words = [["before", "before"], ["fault", "at the fault"], ["best", "best so far"]]
      .filter(([name]) => Number.isFinite(levels[name]))
      .map(([name, text]) => ({name, text, y: up(levels[name]) - 7}))
      .sort((one, other) => one.y - other.y);
    let last = top - 14;
    for (const word of words) {
      word.y = Math.max(word.y, last + 13);
      last = word.y;
    }
    c.textAlign = "right";
    c.textBaseline = "middle";
    c.lineJoin = "round";
    for (const {name, text, y} of words) {
      c.strokeStyle = colours.card;
      c.lineWidth = 4;
      c.strokeText(text, right - 4, y);
      c.fillStyle = colours[name];
      c.fillText(text, right - 4, y);
    }
  }
}

/** A round step and the ceiling it leads to, for an axis with about so many steps. */
function scale(most, steps) {
  const rough = most / steps;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((digit) => digit * power).find((size) => size >= rough - 1e-12);
  return [step, Math.max(Math.ceil(most / step - 1e-9), 1) * step];
}
