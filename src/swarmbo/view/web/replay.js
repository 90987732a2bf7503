/**
 * The page of a replay: three trials side by side, and the curve and the map in step with them.
 *
 * All that it shows is in this file (swarmbo/view/replay.py has written it): JSON, and in its `blob`
 * the trials and what the learner expected, as described in `decodeTake` and `decodeModels`.
 */
import {ArenaView, between} from "./arena.js";
import {faultSign, onScheme, useInStyles} from "./colours.js";
import {CurveView} from "./curve.js";
import {MapView} from "./map.js";

const TRAIL = 8; // seconds of a robot's path that are drawn behind it
const SKIM = 2.5; // seconds that an evaluation takes while it is watched learning

const $ = (id) => document.getElementById(id);
const data = JSON.parse($("data").textContent);
const count = data.evaluations.length;
const AFTER = count + 1; // the stop of the evaluation slider at which the swarm has recovered
const robots = data.world.robots;
const lone = !Array.isArray(data.evaluations[0].cell);
const moments = data.ticks / data.every + 1;

// --- what is in the file ------------------------------------------------------------------------

async function unpacked(text) {
  if (typeof DecompressionStream === "undefined") {
    document.querySelector("#story").textContent = "This browser is too old for this page; open it in one of 2023 or later.";
  }
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Runs of changes, robot after robot, as values. */
function summed(changes) {
  for (let robot = 0; robot < robots; robot += 1) {
    for (let n = robot * moments + 1; n < (robot + 1) * moments; n += 1) changes[n] += changes[n - 1];
  }
  return changes;
}

/** A trial: x and y in mm as low and high bytes, heading in 1/256 turns, 2 x items + carrying. */
function decodeTake(bytes, number) {
  const size = robots * moments;
  const plane = (k) => bytes.subarray((6 * number + k) * size, (6 * number + k + 1) * size);
  const words = (k) => {
    const high = plane(k + 1);
    return summed(Int16Array.from(plane(k), (low, n) => low | (high[n] << 8)));
  };
  const flags = plane(5);
  return {
    x: words(0),
    y: words(2),
    theta: summed(Uint8Array.from(plane(4))),
    carrying: flags.map((value) => value & 1),
    items: summed(Uint16Array.from(flags, (value) => value >> 1)),
    ...data.takes[number],
  };
}

/** What was expected: after so many evaluations, by a model, of each row; items per robot. */
function decodeModels(bytes, start) {
  const rows = data.map.cells.length, models = data.members.length;
  const layer = models * rows, size = (count + 1) * layer;
  const found = {};
  ["mean", "deviation"].forEach((name, k) => {
    const values = bytes.slice(start + k * size, start + (k + 1) * size);
    for (let n = layer; n < size; n += 1) values[n] += values[n - layer];
    found[name] = (evaluations, model) => Array.from(
      values.subarray(evaluations * layer + model * rows, evaluations * layer + (model + 1) * rows),
      (value) => (value / 255) * data.models[name]);
  });
  return found;
}

/** The frame of a trial at a moment. */
function frameAt(take, moment) {
  const read = (values, change) => Array.from({length: robots}, (_, robot) => change(values[robot * moments + moment]));
  return {
    tick: moment * data.every,
    x: read(take.x, (value) => value / 1000),
    y: read(take.y, (value) => value / 1000),
    theta: read(take.theta, (value) => (value * 2 * Math.PI) / 256),
    carrying: read(take.carrying, Boolean),
    items: read(take.items, Number),
    faults: take.faults,
    food: take.food,
  };
}

function trailsAt(take, moment) {
  const long = Math.round(TRAIL / (data.tick * data.every));
  return Array.from({length: robots}, (_, robot) => {
    const trail = [];
    for (let n = Math.max(0, moment - long); n <= moment; n += 1) {
      trail.push([take.x[robot * moments + n] / 1000, take.y[robot * moments + n] / 1000]);
    }
    return trail;
  });
}

const bytes = await unpacked(data.blob);
const takes = data.takes.map((_, number) => decodeTake(bytes, number));
const models = data.models && decodeModels(bytes, 6 * robots * moments * takes.length);

// --- what is shown ------------------------------------------------------------------------------

useInStyles();
const state = {evaluation: AFTER, tick: 0, speed: 10, playing: false, skimming: false, show: "prior", model: 0};
const figures = ["before", "fault", "now"].map((name) => {
  const figure = document.querySelector(`[data-arena=${name}]`);
  const canvas = figure.querySelector("canvas");
  return {canvas, caption: figure.querySelector("figcaption"), view: new ArenaView(canvas, data.world)};
});
const curve = new CurveView($("curve"));
const map = new MapView($("map"), data.map);
const takeNow = () => (state.evaluation === AFTER ? takes.at(-1) : takes[1 + state.evaluation]);
const names = (list) => list.join(", ");
const who = (members) => `robot${members.length > 1 ? "s" : ""} ${names(members)}`;
const number = (value) => (Number.isFinite(value) ? value.toFixed(2) : "–");

/** The members of `entry[name]`, one per robot, of an evaluation. */
const perRobot = (entry, name) => (lone ? Array(robots).fill(entry[name]) : entry[name]);

function drawArenas() {
  const place = Math.min(state.tick / data.every, moments - 1);
  const moment = Math.floor(place);
  const shown = [takes[0], takes[1], takeNow()];
  figures.forEach(({view, caption}, k) => {
    const frame = frameAt(shown[k], moment);
    const next = moment + 1 < moments ? frameAt(shown[k], moment + 1) : null;
    const trails = trailsAt(shown[k], moment);
    const now = between(frame, next, place - moment);
    trails.forEach((trail, robot) => trail.push([now.x[robot], now.y[robot]]));
    view.draw(now, {trails});
    const total = frame.items.reduce((sum, items) => sum + items, 0);
    caption.querySelector("b").textContent = `${total} item${total === 1 ? "" : "s"}`;
  });
  const seconds = Math.round(state.tick * data.tick);
  $("timeWords").textContent = `${seconds} s of ${Math.round(data.ticks * data.tick)} s`;
  $("time").value = String(Math.round(state.tick));
  $("time").setAttribute("aria-valuetext", `${seconds} seconds`);
}

/** All that changes with the evaluation, not with the time of the trial. */
function drawEvaluation() {
  const at = state.evaluation, after = at === AFTER;
  const entry = after ? null : data.evaluations[at - 1];
  const delivers = [data.before, data.at_fault, after ? data.final : meanOutcome(entry)];
  figures.forEach(({caption, canvas}, k) => {
    caption.innerHTML = "<span></span><span><b></b> so far</span>";
    caption.firstChild.textContent = `${number(delivers[k])} items per robot`;
    const what = ["before the fault", "right after the fault, with the old controller",
      after ? "after recovery" : `evaluation ${at}`][k];
    canvas.setAttribute("aria-label", `The arena ${what}: ${number(delivers[k])} items per robot over ${data.trials} trials.`);
  });
  $("now").textContent = after ? "After recovery" : `Evaluation ${at} of ${count}`;
  $("evaluationWords").textContent = after ? "After recovery" : `Evaluation ${at}`;
  $("evaluation").value = String(at);
  $("evaluation").setAttribute("aria-valuetext", $("now").textContent);
  const done = after ? count : at - 1;
  const levels = {before: data.before, fault: data.at_fault, best: at > 1 ? data.evaluations[done - 1].swarm_best : null};
  if (after) Object.assign(levels, {best: data.best, composed: data.composed, exhaustive: data.exhaustive});
  curve.draw({
    levels,
    evaluations: count,
    unit: "items per robot",
    cursor: done,
    points: data.evaluations.map(({outcome, swarm_best}, k) => ({evaluation: k + 1, performance: outcome, best: swarm_best})),
  });
  $("curve").setAttribute("aria-label", `Items per robot: ${number(data.before)} before the fault, ${number(data.at_fault)} at the fault, `
    + `${number(levels.best ?? data.at_fault)} the best after ${done} of ${count} evaluations.`);
  drawMap();
  drawTable(entry);
}

/** What the swarm delivered in an evaluation, with robots that do not adapt left out. */
function meanOutcome({outcome}) {
  const found = [outcome].flat().filter(Number.isFinite);
  return found.reduce((sum, value) => sum + value, 0) / Math.max(found.length, 1);
}

function drawMap() {
  const at = state.evaluation, after = at === AFTER;
  const members = data.members[state.model];
  const rows = (k) => (lone ? [data.evaluations[k].cell] : members.map((robot) => data.evaluations[k].cell[robot]));
  const tried = Array.from({length: after ? count : at - 1}, (_, k) => rows(k)).flat();
  const current = after ? [] : rows(at - 1);
  const done = after ? count : at - 1;
  map.draw({
    tried,
    current,
    best: after ? members.map((robot) => takes.at(-1).team[robot]) : [],
    show: state.show,
    prediction: models?.mean(done, state.model),
    uncertainty: models?.deviation(done, state.model),
  });
  $("map").setAttribute("aria-label", `The map of ${data.map.cells.length} controllers; ${new Set(tried).size} tried, `
    + (after ? `chosen: ${names([...new Set(members.map((robot) => map.words(takes.at(-1).team[robot])))])}.`
      : `now ${names([...new Set(current.map((row) => map.words(row)))])}.`));
}

function drawTable(entry) {
  const table = $("robots");
  table.replaceChildren();
  const row = (tag, cells) => {
    const line = table.insertRow();
    cells.forEach((content, k) => {
      const cell = document.createElement(tag);
      if (tag === "th") cell.scope = "col";
      if (k > 2) cell.className = "number";
      cell.append(content);
      line.append(cell);
    });
  };
  row("th", ["Robot", "Fault", "Controller", ...(entry ? ["Expected", "Came out"] : ["Items in this trial"])]);
  const last = (moments - 1);
  for (let robot = 0; robot < robots; robot += 1) {
    const lost = faultSign(takes[1].faults[robot]).kind === "lost";
    const cell = lost ? "none of its own" : map.words(takeNow().team[robot]);
    const numbers = entry
      ? ["prediction", "outcome"].map((name) => number(perRobot(entry, name)[robot] ?? NaN))
      : [String(takes.at(-1).items[robot * moments + last])];
    row("td", [String(robot), badge(takes[1].faults[robot]), cell, ...numbers]);
  }
  $("robotsTitle").textContent = entry ? `Robots in evaluation ${state.evaluation}` : "Robots after recovery";
}

function badge(words) {
  const {kind, mark} = faultSign(words);
  const span = document.createElement("span");
  if (mark) {
    const sign = document.createElement("span");
    sign.className = `badge ${kind}`;
    sign.textContent = mark;
    span.append(sign);
  }
  span.append(words === "none" ? "none" : words);
  return span;
}

// --- words that stay ----------------------------------------------------------------------------

function tellStory() {
  const loss = data.before - data.at_fault;
  const won = Math.round((100 * (data.final - data.at_fault)) / loss);
  const share = data.final < data.at_fault ? ", which is less than at the fault" : loss > 0 ? `, which wins back ${won}% of the loss` : "";
  const parts = [
    `${robots} robots carry food to their nest with the best controller of the map ${data.map.name}: `, number(data.before),
    ` items each. Then ${data.disturbance} strikes, and they deliver `, number(data.at_fault),
    `. ${data.learner} tries ${count} controllers${lone ? "" : " per robot"}; after that they deliver `, number(data.final), `${share}.`];
  parts.forEach((part, k) => {
    const element = k % 2 ? document.createElement("b") : document.createTextNode(part);
    if (k % 2) element.textContent = part;
    $("story").append(element);
  });
  const trial = data.continuous ? "Evaluations are stretches of one continuous world."
    : `Trial ${data.trial + 1} of ${data.trials} is shown, numbers per robot are means over all of them.`;
  const device = data.device === "gpu" ? " The recovery was made on a GPU; what is shown was simulated again on a CPU and can differ a little." : "";
  $("footer").textContent = `${trial}${device} Made by swarmbo ${data.version}; seed ${data.seed}.`;
  const groups = new Map();
  takes[1].faults.forEach((words, robot) => groups.set(words, [...(groups.get(words) ?? []), robot]));
  for (const [words, members] of groups) {
    const entry = document.createElement("span");
    entry.append(badge(words === "none" ? "none" : words));
    entry.append(words === "none" ? `${who(members)} work${members.length > 1 ? "" : "s"}` : `: ${who(members)}`);
    if (words === "none") entry.firstChild.remove();
    $("legend").append(entry);
  }
  const carry = document.createElement("span");
  carry.textContent = "● carries an item";
  $("legend").append(carry);
}

function fillChoices() {
  $("evaluation").max = String(AFTER);
  $("time").max = String(data.ticks);
  data.members.forEach((members, k) => {
    const words = lone ? "all robots" : takes[1].faults[members[0]];
    $("model").append(new Option(lone ? words : `${who(members)}: ${words === "none" ? "no fault" : words}`, String(k)));
  });
  const sizes = data.members.map((members) => members.length + (takes[1].faults[members[0]] === "none" ? 0 : 0.5));
  state.model = sizes.indexOf(Math.max(...sizes));
  $("model").value = String(state.model);
  $("model").hidden = data.members.length < 2;
  if (!models) for (const option of [...$("show").options].slice(1)) option.disabled = true;
  if (models) state.show = "prediction";
  $("show").value = state.show;
}

// --- going on -----------------------------------------------------------------------------------

function goTo(evaluation, tick = 0) {
  const changed = evaluation !== state.evaluation;
  state.evaluation = Math.min(Math.max(evaluation, 1), AFTER);
  state.tick = Math.min(Math.max(tick, 0), data.ticks);
  if (changed) drawEvaluation();
  drawArenas();
  if (changed && !state.playing) $("live").textContent = $("now").textContent;
}

function play(playing) {
  if (playing && state.tick >= data.ticks && state.evaluation === AFTER) state.tick = 0;
  state.playing = playing;
  if (!playing) state.skimming = false;
  $("play").setAttribute("aria-label", playing ? "Pause" : "Play");
  if (playing) {
    last = performance.now();
    requestAnimationFrame(step);
  }
}

let last = 0;

function step(now) {
  if (!state.playing) return;
  const seconds = Math.min((now - last) / 1000, 0.2); // a page in the background does not leap
  last = now;
  const speed = state.skimming ? (data.ticks * data.tick) / SKIM : state.speed;
  const tick = state.tick + (seconds * speed) / data.tick;
  if (tick < data.ticks) goTo(state.evaluation, tick);
  else if (state.evaluation < AFTER) {
    goTo(state.evaluation + 1, 0);
    if (state.evaluation === AFTER) state.skimming = false;
  } else {
    goTo(AFTER, data.ticks);
    play(false);
  }
  requestAnimationFrame(step);
}

function chooseShow(show) {
  state.show = show;
  $("show").value = show;
  drawMap();
}

function listen() {
  $("play").addEventListener("click", () => play(!state.playing));
  $("learn").addEventListener("click", () => {
    goTo(1, 0);
    if (!state.playing) play(true);
    state.skimming = true;
  });
  $("back").addEventListener("click", () => goTo(state.evaluation - 1));
  $("on").addEventListener("click", () => goTo(state.evaluation + 1));
  $("evaluation").addEventListener("input", (event) => goTo(Number(event.target.value), state.tick));
  $("time").addEventListener("input", (event) => goTo(state.evaluation, Number(event.target.value)));
  $("speed").addEventListener("change", (event) => {
    state.speed = Number(event.target.value);
    state.skimming = false;
  });
  $("show").addEventListener("change", (event) => chooseShow(event.target.value));
  $("model").addEventListener("change", (event) => {
    state.model = Number(event.target.value);
    drawMap();
  });
  $("curve").addEventListener("click", (event) => goTo(Math.max(curve.evaluationAt(event.clientX), 1)));
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const own = event.target.closest?.("input, select, button");
    const scrolls = ["ArrowUp", "ArrowDown", "Home", "End"].includes(event.key);
    if (scrolls && document.documentElement.scrollHeight > innerHeight && !event.target.closest?.(".controls")) return;
    const shows = ["prior", ...(models ? ["prediction", "uncertainty"] : [])];
    const keys = {
      ArrowLeft: () => goTo(state.evaluation, state.tick - 1 / data.tick),
      ArrowRight: () => goTo(state.evaluation, state.tick + 1 / data.tick),
      ArrowUp: () => goTo(state.evaluation + 1),
      ArrowDown: () => goTo(state.evaluation - 1),
      Home: () => goTo(1),
      End: () => goTo(AFTER),
    };
    if (event.key === " " && own?.tagName !== "BUTTON" && own?.tagName !== "SELECT") play(!state.playing);
    else if (event.key === "m" && own?.tagName !== "SELECT") chooseShow(shows[(shows.indexOf(state.show) + 1) % shows.length]);
    else if (keys[event.key] && own?.tagName !== "INPUT" && own?.tagName !== "SELECT") keys[event.key]();
    else return;
    event.preventDefault();
  });
}

tellStory();
fillChoices();
drawEvaluation();
drawArenas();
listen();
onScheme(() => drawEvaluation());
if (!matchMedia("(prefers-reduced-motion: reduce)").matches) play(true);
document.documentElement.dataset.ready = "yes"; // for those who test the page
