/**
 * The performance of a running swarm over time: the live line, each round's result, the best so far,
 * the levels before and at the fault, when learners worked, and what else has happened.
 *
 * Time is in rounds since the restart. `add({samples, ended, marks})` takes what a frame brings:
 * samples [[time, items per robot within the last round's length]...],
 * ended [[time, items per robot of a whole round, best so far or null]...],
 * marks [[time, kind, words]...]. `plan` is {start, evaluations} of a learner, or null.
 *
 * All rounds are kept (`history.js`). What is shown: by itself the whole history, or the learner that
 * is at work; after `zoom`, `pan` or `showLearner` a part of it; after `showAll` all of it.
 */
import {FONT, prepared, redrawing, scheme} from "./colours.js";
import {History} from "./history.js";

const SPAN = 24; // rounds that are shown at least, when all are
const LEAST = 3; // and at least when zoomed
const AROUND = 4; // rounds around a learner
const FINE = 6000; // samples that are remembered, 20 a round; what is older has one point a round
const MOST_MARKS = 1000; // the last ones
const MOST_DOTS = 150; // rounds that are drawn one by one

export class TimelineView {
  #history = new History();
  #samples = [];
  #marks = [];
  #levels = {};
  #ended = 0; // time of the last round
  #atWork = false; // a learner
  #view = null; // "all", {from, to, follows}, or null: by itself
  plan = null;

  constructor(canvas) {
    this.canvas = canvas;
    redrawing(canvas, () => this.draw());
  }

  clear() {
    this.#history.clear();
    this.#samples = [];
    this.#marks = [];
    this.#ended = 0;
    this.#view = null;
    this.plan = null;
  }

  add({samples = [], ended = [], marks = []}) {
    this.#history.add(samples, ended);
    this.#samples.push(...samples);
    if (this.#samples.length > 2 * FINE) this.#samples.splice(0, this.#samples.length - FINE);
    this.#ended = ended.at(-1)?.[0] ?? this.#ended;
    this.#marks.push(...marks);
    if (this.#marks.length > MOST_MARKS) this.#marks.splice(0, this.#marks.length - MOST_MARKS);
    for (const [time, kind] of marks) {
      if (kind === "learner") [this.plan, this.#view] = [{start: time}, null];
    }
  }

  /** The time of the latest point. */
  get now() {
    return Math.max(this.#samples.at(-1)?.[0] ?? 0, this.#ended, this.#marks.at(-1)?.[0] ?? 0);
  }

  /** The latest performance, or undefined. */
  get latest() {
    return this.#samples.at(-1)?.[1];
  }

  /** All rounds as CSV. */
  csv() {
    return this.#history.csv(this.#marks);
  }

  /** When learners worked: {start, end}, the last one last; its end is missing while it works. */
  learners() {
    const found = [];
    for (const [time, kind] of this.#marks) {
      const last = found.at(-1);
      if (last && last.end === undefined && ["learner", "end", "cell"].includes(kind)) last.end = time;
      if (kind === "learner") found.push({start: time});
    }
    return found;
  }

  /** Whether all rounds are shown. */
  get isWhole() {
    return this.#view === "all" || (this.#view === null && !this.#planned());
  }

  /** The times at the ends of the picture. */
  get window() {
    const now = this.now;
    if (this.#view === null || this.#view === "all") return (this.#view === null && this.#planned()) || this.#all();
    const {from, to, follows} = this.#view;
    return follows ? [now + 1 - (to - from), now + 1] : [from, to];
  }

  #all() {
    return [0, Math.max(this.now + 1, SPAN)];
  }

  /** What is shown while a learner works: from the fault on, until it will be done. */
  #planned() {
    if (!this.plan || !this.#atWork) return null;
    return [this.#since(this.plan.start), this.plan.start + (this.plan.evaluations ?? 30) + AROUND];
  }

  /** Shortly before a learner began, and before the fault that it repairs. */
  #since(start) {
    const fault = this.#marks.findLast(([time, kind]) => kind === "fault" && time <= start)?.[0];
    return Math.max((fault > start - 20 ? fault : start) - AROUND, 0);
  }

  showAll() {
    this.#view = "all";
    this.draw();
  }

  /** Show when the last learner worked, from the fault on. */
  showLearner() {
    const last = this.learners().at(-1);
    if (!last) return;
    const to = (last.end ?? this.now) + AROUND;
    this.#view = {from: Math.min(this.#since(last.start), to - LEAST), to, follows: false};
    this.draw();
  }

  /** Show a part that is `factor` times as long, with the time at a share (0 to 1) of the width kept there. */
  zoom(factor, share = 0.5) {
    const [from, to] = this.window;
    const span = Math.max((to - from) * factor, LEAST);
    const at = from + share * (to - from);
    this.#look(at - share * span, span);
  }

  /** Show what is a share of the width later. */
  pan(share) {
    const [from, to] = this.window;
    this.#look(from + share * (to - from), to - from);
  }

  /** Show the latest rounds, and go on showing them. */
  showLatest() {
    const [from, to] = this.window;
    this.#look(Infinity, to - from);
  }

  #look(from, span) {
    const [, end] = this.#all();
    if (span >= end) return this.showAll();
    const start = Math.min(Math.max(from, 0), end - span);
    this.#view = {from: start, to: start + span, follows: start + span >= this.now + 1 - 1e-9};
    this.draw();
  }

  /** The share of the width (0 to 1) at which a point on the screen is. */
  shareAt(clientX) {
    const box = this.canvas.getBoundingClientRect();
    const {left = 0, right = box.width} = this.#frame ?? {};
    return Math.min(Math.max((clientX - box.left - left) / (right - left), 0), 1);
  }
  #frame = null; // {left, right}

  draw(levels = this.#levels, atWork = this.#atWork) {
    this.#levels = levels;
    this.#atWork = atWork;
    const {context: c, width, height} = prepared(this.canvas);
    if (width < 60 || height < 60) return;
    const colours = scheme();
    const small = width < 460;
    c.font = `${small ? 10 : 11}px ${FONT}`;
    const [from, to] = this.window;
    const [top, bottom] = [24, height - 20];
    const rows = this.#history.between(Math.max(from, 0), to, Math.max(Math.round(width), MOST_DOTS));
    const line = this.#line(rows, from, to);
    const values = [...line.map(([, , , high]) => high), ...rows.flatMap(({whole, best}) => [whole, best]),
      levels.before, levels.fault, levels.best, 1].filter(Number.isFinite);
    const [step, ceiling] = scale(Math.max(...values) * 1.06, Math.max(2, Math.floor((bottom - top) / 34)));
    const left = Math.ceil(c.measureText(amount(ceiling)).width) + 12, right = width - 6;
    this.#frame = {left, right};
    const across = (time) => left + ((time - from) / (to - from)) * (right - left);
    const up = (value) => bottom - (value / ceiling) * (bottom - top);

    this.#axes(c, colours, {left, right, top, bottom, step, ceiling, up, across, from, to});
    c.save();
    c.beginPath();
    c.rect(left, 0, right - left, height);
    c.clip();
    this.#level(c, colours.before, levels.before, [6, 4], {left, right, up});
    this.#level(c, colours.fault, levels.fault, [2, 3], {left, right, up});
    this.#learners(c, colours, {across, top, bottom, from, to});
    this.#marksOf(c, colours, {across, left, right, top, bottom, from, to});
    this.#live(c, colours, line, {across, up, bottom});
    this.#best(c, colours, rows, {across, up});
    this.#rounds(c, colours, rows, {across, up});
    c.restore();
    this.#names(c, colours, levels, {right, up, top, bottom});
  }

  /** The live line: [[time, value, lowest, highest]...], fine where it is recent and not too much. */
  #line(rows, from, to) {
    const now = this.now;
    const points = rows.filter(({live}) => !Number.isNaN(live))
      .map(({time, live, low, high}) => [Math.min(time, now), live, low, high]);
    const fine = this.#samples;
    if (!fine.length || to - from > FINE / 20) return points;
    const start = Math.max(fine.findIndex(([time]) => time >= from) - 1, 0);
    const end = fine.findIndex(([time]) => time > to);
    const recent = fine[fine.length - 1][0] < from ? [] : fine.slice(start, end < 0 ? undefined : end + 1);
    return [...points.filter(([time]) => time < fine[0][0]), ...recent.map(([time, value]) => [time, value, value, value])];
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
      c.fillText(amount(value), left - 5, y);
    }
    c.textBaseline = "alphabetic";
    c.textAlign = "center";
    const wide = c.measureText(count(Math.ceil(to))).width;
    const [stride] = scale(to - from, Math.max(2, Math.floor((right - left) / Math.max(70, wide + 24))));
    const each = Math.max(1, Math.round(stride));
    const end = right - c.measureText("rounds").width - 10;
    for (let time = Math.ceil(Math.max(from, 0) / each) * each; time <= to; time += each) {
      const words = count(time);
      const half = c.measureText(words).width / 2;
      const x = Math.max(across(time), half + 1);
      if (x + half > end) break;
      c.fillText(words, x, bottom + 14);
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

  /** A band from where a learner began to where it ended, however narrow. */
  #learners(c, colours, {across, top, bottom, from, to}) {
    c.fillStyle = colours.best;
    c.globalAlpha = 0.12;
    for (const {start, end = this.#atWork ? this.now : start} of this.learners()) {
      if (end < from || start > to) continue;
      c.fillRect(across(start), top - 4, Math.max(across(end) - across(start), 3), bottom - top + 4);
    }
    c.globalAlpha = 1;
  }

  #marksOf(c, colours, {across, left, right, top, bottom, from, to}) {
    const signs = {fault: ["✕", colours.fault], repair: ["✓", colours.before],
      learner: ["▶", colours.best], end: ["■", colours.best], cell: ["◆", colours.other]};
    const isSeen = (time) => time >= from && time <= to;
    const seen = this.#marks.filter(([time]) => isSeen(time));
    c.lineWidth = 1;
    c.globalAlpha = 0.5;
    for (const [time, kind] of seen) {
      c.strokeStyle = signs[kind]?.[1] ?? colours.quiet;
      c.beginPath();
      c.moveTo(across(time), top - 4);
      c.lineTo(across(time), bottom);
      c.stroke();
    }
    c.globalAlpha = 1;
    c.textAlign = "center";
    c.textBaseline = "middle";
    const taken = []; // signs stay apart; those of learners, and the latest, come first
    const sign = (kind, places) => {
      const x = places.find((place) => place > left + 5 && place < right - 5
        && taken.every((other) => Math.abs(other - place) >= 12));
      if (x === undefined) return;
      taken.push(x);
      [, c.fillStyle] = signs[kind] ?? ["", colours.quiet];
      c.fillText(signs[kind]?.[0] ?? "•", x, top - 12);
    };
    for (const {start, end} of this.learners().reverse()) {
      const x = Math.min(Math.max(across(start), left + 6), right - 18);
      if (isSeen(start)) sign("learner", [x]);
      if (end !== undefined && isSeen(end)) sign("end", [Math.max(across(end), isSeen(start) ? x + 12 : left + 6)]);
    }
    for (const [time, kind] of seen.reverse()) {
      if (kind !== "learner" && kind !== "end") sign(kind, [0, -12, -24].map((aside) => across(time) + aside));
    }
  }

  #live(c, colours, line, {across, up, bottom}) {
    if (line.length < 2) return;
    c.fillStyle = colours.ink;
    c.globalAlpha = 0.25; // between the lowest and the highest, where a point stands for many
    c.beginPath();
    line.forEach(([time, , , high]) => c.lineTo(across(time), up(high)));
    line.toReversed().forEach(([time, , low]) => c.lineTo(across(time), up(low)));
    c.fill();
    c.globalAlpha = 1;
    c.beginPath();
    line.forEach(([time, value]) => c.lineTo(across(time), up(value)));
    c.strokeStyle = colours.ink;
    c.lineWidth = 1.6;
    c.lineJoin = "round";
    c.stroke();
    c.lineTo(across(line.at(-1)[0]), bottom);
    c.lineTo(across(line[0][0]), bottom);
    c.closePath();
    c.globalAlpha = 0.07;
    c.fill();
    c.globalAlpha = 1;
    const [time, value] = line.at(-1);
    c.beginPath();
    c.arc(across(time), up(value), 3.2, 0, 2 * Math.PI);
    c.fill();
  }

  #rounds(c, colours, rows, {across, up}) {
    const whole = rows.filter(({wholes}) => wholes);
    if (whole.length > MOST_DOTS || whole.some(({rounds}) => rounds > this.#history.stride)) return;
    for (const {ended, whole: value, best} of whole) {
      const isTried = !Number.isNaN(best);
      c.beginPath();
      c.arc(across(ended), up(value), 2.6, 0, 2 * Math.PI);
      c.fillStyle = isTried ? colours.best : colours.page;
      c.fill();
      c.strokeStyle = isTried ? colours.best : colours.quiet;
      c.lineWidth = 1.2;
      c.stroke();
    }
  }

  #best(c, colours, rows, {across, up}) {
    c.strokeStyle = colours.best;
    c.lineWidth = 2.4;
    c.beginPath();
    let before = null;
    for (const {ended, best} of rows) {
      if (Number.isNaN(best)) {
        before = null;
        continue;
      }
      if (before === null) c.moveTo(across(ended), up(best));
      else {
        c.lineTo(across(ended), up(before));
        c.lineTo(across(ended), up(best));
      }
      before = best;
    }
    c.stroke();
  }

  /** Words at the right end of the lines, apart from each other. */
  #names(c, colours, levels, {right, up, top, bottom}) {
    const words = [["before", "before"], ["fault", "at the fault"], ["best", "best so far"]]
      .filter(([name]) => Number.isFinite(levels[name]))
      .map(([name, text]) => ({name, text, y: up(levels[name]) - 7}))
      .sort((one, other) => one.y - other.y);
    let last = top - 14;
    for (const word of words) {
      word.y = Math.max(word.y, last + 13);
      last = word.y;
    }
    last = bottom + 5;
    for (const word of words.toReversed()) {
      word.y = Math.min(word.y, last - 13);
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

const count = (value) => Math.round(value).toLocaleString("en");
const amount = (value) => (+value.toFixed(2)).toLocaleString("en");

/** A round step and the ceiling it leads to, for an axis with about so many steps. */
function scale(most, steps) {
  const rough = most / steps;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((digit) => digit * power).find((size) => size >= rough - 1e-12);
  return [step, Math.max(Math.ceil(most / step - 1e-9), 1) * step];
}
