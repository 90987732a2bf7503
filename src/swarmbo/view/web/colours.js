/**
 * The colours of all pages, pictures and films, in a light and a dark scheme.
 *
 * They are of the Okabe-Ito family, which people with any kind of colour vision
 * can tell apart; still nothing is told by colour alone: robots have numbers,
 * faults have marks, lines have words at their ends.
 *
 * PALETTE is strict JSON, because Python reads it too (swarmbo/view/scene.py).
 */
export const PALETTE = {
  "light": {
    "page": "#ffffff",
    "card": "#f6f7f9",
    "ink": "#1d2630",
    "quiet": "#5a6672",
    "line": "#d5dae0",
    "accent": "#0072b2",
    "floor": "#fbfaf7",
    "grid": "#eeece6",
    "wall": "#59636e",
    "nest": "#f9e6bd",
    "nestLine": "#e3bd66",
    "food": "#bfe5d6",
    "foodLine": "#009e73",
    "item": "#00835f",
    "healthy": "#2f7fb8",
    "faulty": "#d55e00",
    "lost": "#4a4f55",
    "onRobot": "#ffffff",
    "halo": "#ffffff",
    "ray": "#b0681f",
    "before": "#007a58",
    "fault": "#b54800",
    "best": "#0072b2",
    "other": "#8a5a83",
    "empty": "#e9ecef",
    "mark": "#ffffff",
    "markLine": "#14181c",
    "current": "#d55e00"
  },
  "dark": {
    "page": "#10151b",
    "card": "#1a212a",
    "ink": "#e8edf2",
    "quiet": "#a3afbb",
    "line": "#36414d",
    "accent": "#63bdf0",
    "floor": "#1b222b",
    "grid": "#242d37",
    "wall": "#93a0ad",
    "nest": "#4a3d1d",
    "nestLine": "#a88231",
    "food": "#17463a",
    "foodLine": "#2bbd92",
    "item": "#4fe0b5",
    "healthy": "#56b4e9",
    "faulty": "#ff8a3d",
    "lost": "#c3cad1",
    "onRobot": "#0d1217",
    "halo": "#10151b",
    "ray": "#f0b45e",
    "before": "#3fd0a4",
    "fault": "#ff8a3d",
    "best": "#63bdf0",
    "other": "#d79fcf",
    "empty": "#29323c",
    "mark": "#ffffff",
    "markLine": "#14181c",
    "current": "#ff8a3d"
  },
  "performance": ["#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c", "#28ae80", "#5ec962",
                  "#addc30", "#fde725"],
  "uncertainty": ["#221150", "#5f187f", "#982d80", "#d3436e", "#f8765c", "#febb81", "#fcfdbf"]
};

const darkness = matchMedia("(prefers-color-scheme: dark)");

/** The name of the scheme in force: what <html data-scheme="..."> says, else what the reader likes. */
export function schemeName() {
  const chosen = document.documentElement.dataset.scheme;
  if (chosen === "light" || chosen === "dark") return chosen;
  return darkness.matches ? "dark" : "light";
}

/** The colours in force, by name. */
export function scheme() {
  return PALETTE[schemeName()];
}

/** Call back when the scheme changes, by the reader's system or by data-scheme. */
export function onScheme(callback) {
  darkness.addEventListener("change", callback);
  const watcher = new MutationObserver(callback);
  watcher.observe(document.documentElement, {attributes: true, attributeFilter: ["data-scheme"]});
}

/** Give the colours in force to the style sheet, as variables: --page, --ink and so on. */
export function useInStyles() {
  const apply = () => {
    for (const [name, colour] of Object.entries(scheme())) {
      document.documentElement.style.setProperty(`--${name}`, colour);
    }
  };
  apply();
  onScheme(apply);
}

function parts(colour) {
  return [1, 3, 5].map((start) => parseInt(colour.slice(start, start + 2), 16));
}

/** The colour at a share (0 to 1) of a ramp: "performance" or "uncertainty". */
export function ramp(name, share) {
  const stops = PALETTE[name];
  const place = Math.min(Math.max(share || 0, 0), 1) * (stops.length - 1);
  const below = Math.min(Math.floor(place), stops.length - 2);
  const [low, high] = [parts(stops[below]), parts(stops[below + 1])];
  const mixed = low.map((value, k) => Math.round(value + (high[k] - value) * (place - below)));
  return `rgb(${mixed.join(" ")})`;
}

/** What a fault is, by its words: {kind, mark}; the mark is a sign to draw beside the robot. */
export function faultSign(words) {
  if (!words || words === "none" || words === "no fault") return {kind: "healthy", mark: ""};
  const marks = [["mad", "M"], ["stuck", "S"], ["software", "S"], ["no controller", "S"],
    ["proximity min", "P−"], ["proximity max", "P+"], ["proximity random", "P?"],
    ["ground min", "G−"], ["ground max", "G+"], ["ground random", "G?"],
    ["proximity", "P"], ["ground", "G"], ["wheels left", "WL"], ["wheels right", "WR"],
    ["wheels both", "WB"], ["wheels", "W"], ["actuator", "W"]];
  const found = marks.filter(([name]) => words.includes(name)).map(([, mark]) => mark);
  const kept = found.filter((mark) => !found.some((other) => other !== mark && other.startsWith(mark)));
  const lost = kept.some((mark) => mark === "M" || mark === "S");
  return {kind: lost ? "lost" : "faulty", mark: [...new Set(kept)].join("") || "!"};
}

/** Fit a canvas to its box on the page and to the screen's pixels; gives {context, width, height}. */
export function prepared(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth, height = canvas.clientHeight;
  const [across, down] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== across || canvas.height !== down) {
    canvas.width = across;
    canvas.height = down;
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return {context, width, height};
}

/** Draw again, with what was drawn last, when a canvas changes its size or the scheme changes. */
export function redrawing(canvas, redraw) {
  new ResizeObserver(redraw).observe(canvas);
  onScheme(redraw);
}

export const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', sans-serif";
