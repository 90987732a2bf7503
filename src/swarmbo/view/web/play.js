/** The page of `swarmbo play`: it shows what the server tells, and asks for what is clicked. */
import {ArenaView} from "./arena.js";
import {faultSign, useInStyles} from "./colours.js";
import {Connection} from "./connection.js";
import {MapView} from "./map.js";
import {FaultMenu} from "./menu.js";
import {Motion} from "./motion.js";
import {FoodButtons, RobotButtons, TeamTable, expectation, items, say} from "./panels.js";
import {listen} from "./shortcuts.js";
import {TimelineView} from "./timeline.js";

const LABELS = {
  "smbo": ["SMBO", "All robots try the same controller; a Gaussian process with the map as its prior chooses."],
  "smbo-uniform": ["SMBO, uniform prior", "As SMBO, but every cell is expected to be as good as the map's mean."],
  "random": ["Random", "All robots try the same controller, drawn at random."],
  "gradient-ascent": ["Gradient ascent", "All robots try the same controller; it climbs the slope between the last two."],
  "smbo-dec": ["SMBO-Dec", "Each robot tries its own controller; robots with the same faults share a model and keep apart."],
  "smbo-dec-naive": ["SMBO-Dec, naive", "As SMBO-Dec, but robots with the same faults do not keep apart."],
  "smbo-no-sharing": ["SMBO, no sharing", "Each robot has a model of its own and tells nobody."],
  "random-no-sharing": ["Random, no sharing", "Each robot tries controllers at random and tells nobody."],
};
const CONDITIONS = {
  "proximity": "proximity sensors", "ground": "ground sensors", "actuator": "wheels",
  "software-nest": "mad at the nest", "software-food": "stuck on food",
  "software-food-random": "stuck on any food", "food-scarcity": "food is scarce",
};
const STEPS = 30; // of the speed slider for a factor of ten
const CALM = 500; // ms between pictures when the reader likes little motion

const $ = (id) => document.getElementById(id);
let hello = null, world = null, state = null, model = null;
let selected = -1, cell = -1, show = "prior", speedBefore = 20, pace = 0;
let drawnAt = 0, isStale = true;

useInStyles();
const arena = new ArenaView($("arena"), null);
const timeline = new TimelineView($("curve"));
const motion = new Motion();
let map = null;

const connection = new Connection(hear, (words) => {
  $("lost").hidden = false;
  $("lost").firstChild.textContent = words ? `The swarm is gone: ${words}. ` : "The connection to the swarm is lost. ";
  document.body.classList.add("is-lost");
});
const send = (type, fields) => {
  if (type !== "look") $("toast").hidden = true; // what it complained about is over
  connection.send(type, fields);
};

// --- what the server tells ------------------------------------------------------------------------

function hear(message) {
  ({hello: hearHello, world: hearWorld, state: hearState, model: hearModel, frame: hearFrame,
    error: ({message: words}) => toast(words)})[message.type]?.(message);
}

function hearHello(message) {
  hello = message;
  $("lost").hidden = true;
  document.body.classList.remove("is-lost");
  if (!map) {
    map = new MapView($("map"), hello.map);
    fill($("learner"), hello.learners.map(({name}) => [name, LABELS[name]?.[0] ?? name]), "smbo-dec");
    fill($("condition"), Object.keys(hello.conditions).map((kind) => [kind, CONDITIONS[kind] ?? kind]), "proximity");
    say($("map-name"), `${hello.map.name}: ${hello.map.cells.length} controllers`);
    [$("condition").value, $("condition-index").value] = hello.demonstration.split(":");
    about();
    const [across, up, level] = hello.map.names ?? [];
    say($("axes"), level ? `Across: ${across}; up: ${up}; ${level} from square to square. A cell's numbers count along these three.` : "");
  }
}

function fill(select, options, chosen) {
  select.replaceChildren(...options.map(([value, text]) => new Option(text, value, false, value === chosen)));
}

function hearWorld(message) {
  world = message;
  arena.world = world;
  say($("unit"), `items per robot in a round of ${world.round_ticks * world.tick_seconds} s, mean of ${world.trials} trials`);
  timeline.clear();
  if (selected >= world.robots) select(-1);
  fill($("trial"), Array.from({length: world.trials}, (_, k) => [String(k), `${k + 1} of ${world.trials}`]), $("trial").value || "0");
  look();
  const other = world.robots !== hello.map.robots;
  for (const option of $("condition").options) option.disabled = other && hello.only_for_6.includes(option.value);
  if ($("condition").selectedOptions[0]?.disabled) $("condition").value = "proximity";
  const luck = `; the map was evolved with ${hello.map.robots} robots, so that its best controller may do badly here`;
  if (other || isRestarted) announce(`a new swarm of ${world.robots} robots${other ? luck : ""}`);
}
let isRestarted = false;

function hearState(message) {
  state = message;
  isStale = true;
  if (timeline.plan && state.learner) timeline.plan.evaluations = state.learner.evaluations;
  if (state.learner?.at_work && hello.learners.find(({name}) => name === state.learner.name)?.model
      && show === "prior" && !showIsChosen) setShow("prediction");
  schedule();
}

function hearModel(message) {
  model = message;
  isStale = true;
  schedule();
}

function hearFrame(frame) {
  motion.take(frame, performance.now());
  timeline.add(frame);
  pace = frame.pace;
  lastFrame = frame;
  if (frame.samples || frame.ended || frame.marks) isStale = true;
  for (const [, , words] of frame.marks ?? []) announce(words);
  schedule();
}
let lastFrame = null;

// --- drawing --------------------------------------------------------------------------------------

let scheduled = 0;
function schedule() {
  if (!scheduled) scheduled = requestAnimationFrame(draw);
}

function draw(now) {
  scheduled = 0;
  if (!world || !state) return;
  if (motion.calm.matches && now - drawnAt < CALM && !isUrgent) {
    setTimeout(schedule, CALM - (now - drawnAt));
    return;
  }
  isUrgent = false;
  drawnAt = now;
  drawArena(now);
  if (isStale) {
    isStale = false;
    drawWords();
    timeline.draw(state.levels, Boolean(state.learner?.at_work));
    drawCurveWords();
    drawMap();
  }
  if (motion.isMoving(now)) schedule();
}
let isUrgent = false;

/** Draw soon, also for readers who like little motion: they have just done something. */
function refresh() {
  isStale = isUrgent = true;
  schedule();
}

function drawArena(now) {
  const frame = motion.at(now);
  if (!frame) return;
  frame.faults = state.team.map(({fault}) => fault);
  frame.food = state.food.filter(({taken}) => !taken).map(({disc}) => disc);
  const trails = $("trails").checked && !motion.calm.matches ? motion.trails(frame) : undefined;
  arena.draw(frame, {rays: $("rays").checked, selected, trails});
  const share = Math.floor((100 * frame.round_tick) / world.round_ticks);
  say($("clock"), `round ${frame.round + 1}, ${share} % · ${clock(frame.tick * world.tick_seconds)}`);
  say($("pace"), paceWords());
}

function clock(seconds) {
  const whole = Math.floor(seconds);
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const two = (number) => String(number).padStart(2, "0");
  return hours ? `${hours.toLocaleString("en")}:${two(minutes)}:${two(rest)} h` : `${minutes}:${two(rest)} min`;
}

function times(factor) {
  return `${factor >= 100 ? Math.round(factor).toLocaleString("en") : +factor.toPrecision(2)}×`;
}

function paceWords() {
  const {speed, paused} = state;
  if (paused) return speed === null ? "max" : times(speed);
  if (speed === null) return times(+pace.toPrecision(3));
  return pace > 0 && pace < 0.8 * speed ? `${times(pace)} of ${times(speed)}` : times(speed);
}

let toldWorld = "";
function drawWords() {
  const {levels, learner, team} = state;
  pressed($("pause"), state.paused);
  say($("pause").querySelector(".word"), state.paused ? "Go on" : "Pause");
  say($("pause").querySelector(".sign"), state.paused ? "▶" : "❚❚");
  pressed($("max"), state.speed === null);
  if (document.activeElement !== $("speed") || state.speed === null) $("speed").value = place(state.speed);
  $("speed").setAttribute("aria-valuetext", state.speed === null ? "as fast as possible" : `${times(state.speed)} real time`);
  if (toldWorld !== `${state.seed} ${state.robots}`) { // not over what somebody is just choosing
    toldWorld = `${state.seed} ${state.robots}`;
    $("seed").value = state.seed;
    $("robots").value = state.robots;
  }
  $("put-back").checked = state.put_back;
  say($("level-before"), items(levels.before));
  say($("level-fault"), items(levels.fault));
  say($("level-now"), items(timeline.latest));
  say($("level-best"), items(levels.best));
  const broken = team.map(({fault}, k) => [k, fault]).filter(([, fault]) => fault !== "none");
  $("arena").setAttribute("aria-label", `The arena from above with ${team.length} robots; `
    + (broken.length ? broken.map(([k, fault]) => `robot ${k}: ${fault}`).join(", ") : "all work")
    + (selected >= 0 ? `; robot ${selected} is chosen` : ""));
  const taken = state.food.filter((each) => each.taken).length;
  $("repair-all").disabled = !broken.length && !taken && state.food.length === world.food.length;
  say($("food-all"), taken || state.food.length < world.food.length ? "Put all back" : "Take all");
  robotButtons.draw(team, selected, faultSign);
  foodButtons.draw(state.food);
  if (map) teamTable.draw(state, selected, (row) => map.words(row));
  say($("learn"), learner?.at_work ? "Stop" : "Start");
  $("learner").disabled = $("evaluations").disabled = Boolean(learner?.at_work);
  say($("progress"), progressWords(learner));
  say($("verdict"), state.verdict ? `${sentence(state.verdict)}.` : "");
  $("verdict").hidden = !state.verdict;
  if (menu.isOpen) menu.update(team[menu.robot]?.faults);
}

function progressWords(learner) {
  if (!learner) return "";
  const name = LABELS[learner.name]?.[0] ?? learner.name;
  if (learner.at_work) return `${name}: evaluation ${Math.min(learner.done + 1, learner.evaluations)} of ${learner.evaluations}`;
  return learner.done ? `${name} is done after ${learner.done}` : "";
}

function drawMap() {
  if (!map || !model) return;
  const robot = shownRobot();
  const mine = model.tried.filter((each) => each.robot === null || !state.learner || sharesWith(robot, each.robot));
  const has = Boolean(model.prediction);
  for (const input of document.querySelectorAll("input[name=show]")) {
    if (input.value !== "prior") input.disabled = !has;
    input.checked = input.value === (has ? show : "prior");
  }
  const best = mine.length ? mine.reduce((one, other) => (other.outcome >= one.outcome ? other : one)).row : undefined;
  map.draw({
    tried: mine.map(({row}) => row),
    current: [...new Set(state.team.map(({row}) => row).filter((row) => row !== null))],
    best: best === undefined ? [] : [best],
    prediction: model.prediction,
    uncertainty: model.uncertainty,
    show: has ? show : "prior",
    selected: cell,
  });
  say($("whose"), whose(robot, has));
  drawCell();
}

/** The robot whose model is shown. */
function shownRobot() {
  if (selected >= 0 && state.team[selected]?.row !== null) return selected;
  return state.team.findIndex(({row}) => row !== null);
}

function sharesWith(robot, other) {
  return robot === other || state.team[robot]?.shares_with.includes(other);
}

function whose(robot, has) {
  if (!state.learner || !has) return "";
  if (state.learner.centralised) return "the swarm's model";
  const all = [robot, ...(state.team[robot]?.shares_with ?? [])].sort((one, other) => one - other);
  return all.length === 1 ? `model of robot ${all[0]}` : `model of robots ${all.join(", ")}`;
}

function drawCell() {
  const ready = cell >= 0;
  $("run-all").disabled = !ready;
  $("run-one").hidden = !ready || selected < 0 || state.team[selected]?.row === null;
  say($("run-all"), state.learner?.at_work ? "Stop learning and run" : "Run on all");
  say($("run-one"), `Run on robot ${selected}`);
  tellCell(hovered >= 0 ? hovered : cell);
}

/** Say what is known of a cell, in items per robot. */
function tellCell(row) {
  if (row < 0 || !model) return;
  const before = `${items(hello.map.performance[row])} items per robot before the fault`;
  const now = model.prediction
    ? `, now expected ${expectation(model.prediction[row])} ± ${items(model.uncertainty[row])}` : "";
  const tried = model.tried.filter((each) => each.row === row);
  const outcome = tried.length ? `, tried: ${items(tried.at(-1).outcome)}` : "";
  const words = map.words(row);
  say($("cell"), `${words[0].toUpperCase()}${words.slice(1)}: ${before}${now}${outcome}.`);
}

// --- asking ---------------------------------------------------------------------------------------

function pressed(button, is) {
  button.setAttribute("aria-pressed", String(is));
}

/** The place on the slider of a speed, and back. */
function place(speed) {
  return speed === null ? Number($("speed").max) : Math.round(STEPS * Math.log10(speed));
}

function speedAt(value) {
  return value >= Number($("speed").max) ? null : +(10 ** (value / STEPS)).toPrecision(2);
}

function setSpeed(factor) {
  if (factor !== null) speedBefore = factor;
  state.speed = factor;
  send("speed", {factor});
}

function togglePause() {
  send("pause", {paused: !state.paused});
}

function toggleMax() {
  setSpeed(state.speed === null ? speedBefore : null);
}

function select(robot) {
  if (robot === selected) return;
  selected = robot;
  look();
  refresh();
}

function look() {
  send("look", {trial: Number($("trial").value || 0), rays: $("rays").checked, robot: selected < 0 ? null : selected});
}

/** Open the menu of a robot, beside it or beside a point of the screen. */
function openMenu(robot, point = whereIs(robot)) {
  if (!state || robot < 0 || robot >= state.team.length) return;
  select(robot);
  menu.open(robot, state.team[robot].faults, point);
}

function toggleLearner() {
  if (state.learner?.at_work) send("stop");
  else if ($("learn-form").reportValidity()) {
    send("learn", {learner: $("learner").value, evaluations: Number($("evaluations").value)});
  }
}

function runCell(robot = null) {
  if (cell < 0) return;
  send("run", {row: cell, robot});
}

function restart() {
  if ($("restart").reportValidity()) {
    menu.close();
    isRestarted = true;
    send("restart", {seed: Number($("seed").value), robots: Number($("robots").value)});
    model = null;
    cell = -1;
    showIsChosen = false;
    setShow("prior");
    say($("cell"), "Point at a cell to read about it; click it to run its controller on all robots.");
  }
}

let showIsChosen = false;
function setShow(value) {
  show = value;
  refresh();
}

function about() {
  say($("learner-about"), LABELS[$("learner").value]?.[1] ?? "");
}

function announce(words) {
  say($("event"), `${sentence(words)}.`);
}

/** Words that may begin with a learner, as the beginning of a sentence. */
function sentence(words) {
  const [first] = words.split(" ");
  const told = LABELS[first] ? words.replace(first, LABELS[first][0]) : words;
  return `${told[0].toUpperCase()}${told.slice(1)}`;
}

let toastTimer = 0;
function toast(words) {
  const box = $("toast");
  box.textContent = `${words[0].toUpperCase()}${words.slice(1)}.`;
  box.hidden = false;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => (box.hidden = true), 6000);
}

const menu = new FaultMenu($("menu"), {
  change: (robot, part, fault) => {
    state.team[robot].faults[part] = fault; // until the server says so, or not
    send("break", {robot, part, fault});
  },
  repair: (robot) => send("repair", {robot}),
});
const teamTable = new TeamTable($("team").tBodies[0], (robot) => select(robot === selected ? -1 : robot));
const robotButtons = new RobotButtons($("robot-buttons"), (robot, button) => {
  const box = button.getBoundingClientRect();
  openMenu(robot, [box.right, box.bottom]);
});
const foodButtons = new FoodButtons($("food-buttons"),
  (source) => send("takefood", {source, taken: !state.food[source].taken}));

$("pause").addEventListener("click", togglePause);
$("tick").addEventListener("click", () => send("step"));
let speedTimer = 0; // a slider that is dragged tells more than the server wants to hear
$("speed").addEventListener("input", () => {
  clearTimeout(speedTimer);
  speedTimer = setTimeout(() => state && setSpeed(speedAt(Number($("speed").value))), 50);
});
$("max").addEventListener("click", toggleMax);
$("rays").addEventListener("change", () => (look(), refresh()));
$("trails").addEventListener("change", refresh);
$("trial").addEventListener("change", look);
$("put-back").addEventListener("change", () => {
  state.put_back = $("put-back").checked;
  send("putback", {wanted: state.put_back});
});
$("restart").addEventListener("submit", (event) => (event.preventDefault(), restart()));
$("repair-all").addEventListener("click", () => send("repair"));
$("food-all").addEventListener("click", () => send("takefood", {
  source: null, taken: !(state.food.some(({taken}) => taken) || state.food.length < world.food.length)}));
$("condition").addEventListener("change", () => {
  const count = hello.conditions[$("condition").value];
  $("condition-index").max = count - 1;
  if (Number($("condition-index").value) >= count) $("condition-index").value = count - 1;
});
$("condition-form").addEventListener("submit", (event) => {
  event.preventDefault();
  send("condition", {kind: $("condition").value, index: Number($("condition-index").value)});
});
$("learner").addEventListener("change", about);
$("learn-form").addEventListener("submit", (event) => (event.preventDefault(), toggleLearner()));
$("run-all").addEventListener("click", () => runCell());
$("run-one").addEventListener("click", () => runCell(selected));
$("reconnect").addEventListener("click", () => connection.open());
$("help-button").addEventListener("click", () => $("help").showModal());
for (const input of document.querySelectorAll("input[name=show]")) {
  input.addEventListener("change", () => {
    showIsChosen = true;
    setShow(input.value);
  });
}

// The curve: what it shows, and its data.
const ZOOM = 1.5; // of a button or a key

function drawCurveWords() {
  const {levels} = state;
  const [from, to] = timeline.window.map((time) => Math.max(Math.round(time), 0));
  $("curve").setAttribute("aria-label", `Items per robot: before ${items(levels.before)}, at the fault `
    + `${items(levels.fault)}, now ${items(timeline.latest)}, best so far ${items(levels.best)}; `
    + `shown are rounds ${from} to ${to}`);
  pressed($("show-all"), timeline.isWhole);
  $("show-learner").disabled = !timeline.learners().length;
}

/** Change what the curve shows. */
function onCurve(change) {
  if (!state) return;
  change();
  drawCurveWords();
}

/** Save a text as a file. */
function save(name, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], {type: "text/csv"}));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

const curveKeys = {
  "+": () => timeline.zoom(1 / ZOOM), "=": () => timeline.zoom(1 / ZOOM), "-": () => timeline.zoom(ZOOM),
  ArrowLeft: () => timeline.pan(-0.2), ArrowRight: () => timeline.pan(0.2),
  Home: () => timeline.showAll(), End: () => timeline.showLatest(),
};
$("zoom-in").addEventListener("click", () => onCurve(curveKeys["+"]));
$("zoom-out").addEventListener("click", () => onCurve(curveKeys["-"]));
$("show-all").addEventListener("click", () => onCurve(curveKeys.Home));
$("show-learner").addEventListener("click", () => onCurve(() => timeline.showLearner()));
$("save").addEventListener("click", () => save(`swarmbo-play-seed-${state.seed}-robots-${state.robots}.csv`, timeline.csv()));
$("curve").addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || !curveKeys[event.key]) return;
  onCurve(curveKeys[event.key]);
  event.preventDefault();
});
$("curve").addEventListener("wheel", (event) => {
  if (!event.deltaY || (event.deltaY > 0 && timeline.isWhole)) return; // the page may scroll
  event.preventDefault();
  onCurve(() => timeline.zoom(event.deltaY < 0 ? 1 / 1.2 : 1.2, timeline.shareAt(event.clientX)));
}, {passive: false});
let draggedFrom = null; // the share of the curve's width at which the pointer holds it
$("curve").addEventListener("pointerdown", (event) => {
  if (event.button) return;
  draggedFrom = timeline.shareAt(event.clientX);
  $("curve").setPointerCapture(event.pointerId);
  $("curve").classList.add("dragged");
});
$("curve").addEventListener("pointermove", ({clientX}) => {
  if (draggedFrom === null) return;
  const share = timeline.shareAt(clientX);
  if (Math.abs(share - draggedFrom) < 0.003) return; // a click, or a hand that trembles
  onCurve(() => timeline.pan(draggedFrom - share));
  draggedFrom = share;
});
for (const end of ["pointerup", "pointercancel"]) {
  $("curve").addEventListener(end, () => {
    draggedFrom = null;
    $("curve").classList.remove("dragged");
  });
}

// The arena: a robot under the pointer, else food.
function foodAt(clientX, clientY) {
  const {x, y} = arena.pointAt(clientX, clientY);
  return state.food.findIndex(({disc}) => Math.hypot(disc[0] - x, disc[1] - y) <= disc[2]);
}
$("arena").addEventListener("click", ({clientX, clientY}) => {
  if (!state) return;
  const robot = arena.robotAt(clientX, clientY);
  if (robot >= 0) return openMenu(robot, [clientX, clientY]);
  const source = foodAt(clientX, clientY);
  if (source >= 0) return send("takefood", {source, taken: !state.food[source].taken});
  select(-1);
});
$("arena").addEventListener("pointermove", ({clientX, clientY}) => {
  if (!state) return;
  const over = arena.robotAt(clientX, clientY) >= 0 || foodAt(clientX, clientY) >= 0;
  $("arena").classList.toggle("clickable", over);
});
$("arena").addEventListener("keydown", (event) => {
  const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
  if (step) chooseNext(step);
  else if (event.key === "Enter") openMenu(Math.max(selected, 0));
  else return;
  event.preventDefault();
});

/** Where a robot is on the screen: metres are a linear function of pixels. */
function whereIs(robot) {
  const frame = motion.at(performance.now());
  if (!frame || robot >= frame.x.length) return null;
  const [o, a, b] = [arena.pointAt(0, 0), arena.pointAt(1, 0), arena.pointAt(0, 1)];
  const [ax, ay, bx, by] = [a.x - o.x, a.y - o.y, b.x - o.x, b.y - o.y];
  const [dx, dy] = [frame.x[robot] - o.x, frame.y[robot] - o.y];
  const area = ax * by - ay * bx;
  return [(dx * by - dy * bx) / area, (dy * ax - dx * ay) / area];
}

function chooseNext(step) {
  const count = state.team.length;
  select(selected < 0 ? (step > 0 ? 0 : count - 1) : (selected + step + count) % count);
}

// The map: a click runs the controller; while a learner works it only tells about it.
$("map").addEventListener("click", ({clientX, clientY}) => {
  if (!map || !state) return;
  cell = map.cellAt(clientX, clientY);
  if (cell >= 0 && !state.learner?.at_work) runCell();
  refresh();
});
let hovered = -1;
$("map").addEventListener("pointermove", ({clientX, clientY}) => {
  const over = map ? map.cellAt(clientX, clientY) : -1;
  if (over === hovered) return;
  hovered = over;
  tellCell(over >= 0 ? over : cell);
});
$("map").addEventListener("pointerleave", () => {
  hovered = -1;
  tellCell(cell);
});
$("map").addEventListener("keydown", (event) => {
  const [right, down] = {ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1]}[event.key] ?? [0, 0];
  if (right || down) {
    cell = map.step(cell < 0 ? state.team.find(({row}) => row !== null)?.row ?? 0 : cell, right, down);
    refresh();
  } else if (event.key === "Enter" && cell >= 0) {
    if (!state.learner?.at_work) runCell();
  } else return;
  event.preventDefault();
});

const actions = {
  " ": togglePause, ".": () => send("step"), "m": toggleMax,
  "+": () => setSpeed(Math.min((state.speed ?? 5000) * 2, 10000)),
  "=": () => setSpeed(Math.min((state.speed ?? 5000) * 2, 10000)),
  "-": () => setSpeed(Math.max((state.speed ?? 10000) / 2, 1)),
  "n": () => chooseNext(1), "p": () => chooseNext(-1),
  "b": () => openMenu(Math.max(selected, 0)),
  "h": () => send("repair"), "l": toggleLearner, "r": restart,
  "v": () => $("rays").click(),
  "?": () => $("help").showModal(),
};
for (let digit = 0; digit < 10; digit += 1) actions[digit] = () => openMenu(digit);
const guarded = Object.fromEntries(Object.entries(actions).map(([key, action]) => [key, () => state && action()]));
listen(guarded, () => $("keys-on").checked);
