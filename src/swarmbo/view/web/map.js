/**
 * A behaviour-performance map: each cell a square, coloured by what its controller delivers.
 *
 * `map`: {kind: "hbd" | "sdbc" | "custom", name,
 *   shape: [16, 16, 16] (one to three sides) or null,
 *   cells: [flat index...] (first dimension slowest), performance: [items per robot...],
 *   names: [words per dimension] (optional), place: [[column, row]...] (needed without a shape)}
 * A grid of three dimensions is drawn level by level along its third, without the empty rims. A map
 * without a shape (around centroids) is drawn as a table by `place`, which puts alike behaviours near
 * each other; without `place` best first.
 *
 * `draw({tried, current, best, prediction, uncertainty, show, selected})`, with *rows* (indices of
 * `cells`): `tried` rows in order of trial (twice is no harm), `current` a row or rows, `best` rows with a
 * diamond, `prediction` and `uncertainty` numbers per row in items per robot, `show` one of "prior",
 * "prediction" and "uncertainty", `selected` a row or -1.
 */
import {FONT, prepared, ramp, redrawing, scheme} from "./colours.js";

const LEGEND = 30; // pixels below the cells
const HEADING = 15; // pixels above a level

export class MapView {
  #map = null;
  #last = null;
  #squares = []; // [x, y] of each row's square, in pixels
  #side = 0;

  constructor(canvas, map) {
    this.canvas = canvas;
    this.map = map;
    redrawing(canvas, () => this.#last && this.draw(this.#last));
  }

  set map(map) {
    this.#map = map && {...map, ...placed(map)};
    if (this.#last) this.draw(this.#last);
  }

  get map() {
    return this.#map;
  }

  draw(given = {}) {
    this.#last = given;
    const {context: c, width, height} = prepared(this.canvas);
    if (!this.#map || width < 60 || height < 60) return;
    const colours = scheme();
    const show = given[given.show] ? given.show : "prior";
    const values = show === "prior" ? this.#map.performance : given[show];
    const name = show === "uncertainty" ? "uncertainty" : "performance";
    const top = Math.max(...values, 1e-9); // a scale of its own: what is best now is bright
    this.#layOut(c, colours, width, height);
    const gap = this.#side > 5 ? 1 : this.#side > 3 ? 0.5 : 0;
    this.#squares.forEach(([x, y], row) => {
      c.fillStyle = ramp(name, Math.max(values[row], 0) / top);
      c.fillRect(x, y, this.#side - gap, this.#side - gap);
    });
    this.#marks(c, colours, given);
    const heading = {prior: "before the fault", prediction: "expected now", uncertainty: "uncertainty"}[show];
    this.#legend(c, colours, width, height, name, top, heading);
  }

  #layOut(c, colours, width, height) {
    const {levels, columns, rows, at} = this.#map;
    const room = height - LEGEND;
    const heading = levels.length > 1 ? HEADING : 0;
    let best = {side: 0};
    for (let across = 1; across <= levels.length; across += 1) {
      const down = Math.ceil(levels.length / across);
      const side = Math.min((width - 8 * (across - 1) - 2) / (across * columns),
        (room - down * heading - 6 * (down - 1)) / (down * rows));
      if (side > best.side) best = {side, across, down};
    }
    const side = (this.#side = best.side > 4 ? Math.floor(best.side) : best.side);
    const wide = columns * side + 8, high = rows * side + heading + 6;
    const left = (width - (best.across * wide - 8)) / 2;
    const corner = (level) => [left + (level % best.across) * wide,
      Math.floor(level / best.across) * high + heading];
    c.font = `10px ${FONT}`;
    c.textAlign = "left";
    c.textBaseline = "alphabetic";
    levels.forEach((words, level) => {
      const [x, y] = corner(level);
      c.fillStyle = colours.empty;
      c.fillRect(x, y, columns * side, rows * side);
      if (words) {
        c.fillStyle = colours.quiet;
        c.fillText(words, x, y - 4);
      }
    });
    this.#squares = at.map(([level, column, row]) => {
      const [x, y] = corner(level);
      return [x + column * side, y + (rows - 1 - row) * side];
    });
  }

  #marks(c, colours, {tried = [], current = [], best = [], selected = -1}) {
    const side = this.#side;
    const centre = (row) => this.#squares[row].map((place) => place + side / 2);
    const is = (row) => Number.isInteger(row) && row >= 0 && row < this.#squares.length;
    c.strokeStyle = colours.markLine;
    c.fillStyle = colours.mark;
    for (const row of new Set([tried].flat().filter(is))) {
      c.lineWidth = 1;
      c.beginPath();
      c.arc(...centre(row), Math.max(side * 0.22, 1.6), 0, 2 * Math.PI);
      c.fill();
      c.stroke();
    }
    for (const row of new Set([best].flat().filter(is))) {
      const [x, y] = centre(row);
      const reach = Math.max(side * 0.5, 4);
      c.lineWidth = 1.4;
      c.beginPath();
      c.moveTo(x, y - reach);
      c.lineTo(x + reach, y);
      c.lineTo(x, y + reach);
      c.lineTo(x - reach, y);
      c.closePath();
      c.fillStyle = colours.mark;
      c.fill();
      c.stroke();
    }
    for (const row of new Set([current].flat().filter(is))) {
      const [x, y] = this.#squares[row];
      const more = Math.max(1, (8 - side) / 2);
      for (const [line, colour] of [[5, colours.mark], [2.6, colours.current]]) {
        c.lineWidth = line;
        c.strokeStyle = colour;
        c.strokeRect(x - more, y - more, side - 1 + 2 * more, side - 1 + 2 * more);
      }
    }
    if (is(selected)) {
      const [x, y] = this.#squares[selected];
      c.lineWidth = 2;
      c.strokeStyle = colours.ink;
      c.setLineDash([3, 2]);
      c.strokeRect(x - 3, y - 3, side + 5, side + 5);
      c.setLineDash([]);
    }
  }

  #legend(c, colours, width, height, name, top, heading) {
    const [left, y, long] = [2, height - 14, Math.min(110, width / 3)];
    for (let x = 0; x < long; x += 1) {
      c.fillStyle = ramp(name, x / long);
      c.fillRect(left + x, y, 1.5, 8);
    }
    c.font = `10px ${FONT}`;
    c.fillStyle = colours.quiet;
    c.textBaseline = "alphabetic";
    c.textAlign = "left";
    c.fillText("0", left, y - 3);
    c.textAlign = "right";
    c.fillText(top.toFixed(2), left + long, y - 3);
    c.textAlign = "left";
    c.fillText(`items per robot, ${heading}`, left + long + 8, y + 8);
  }

  /** The row whose square is at a point on the screen, or -1. */
  cellAt(clientX, clientY) {
    const box = this.canvas.getBoundingClientRect();
    const x = clientX - box.left, y = clientY - box.top;
    return this.#squares.findIndex(
      ([left, top]) => x >= left && x < left + this.#side && y >= top && y < top + this.#side);
  }

  /** The row nearest to another in a direction on the screen, for arrow keys; itself if there is none. */
  step(row, right, down) {
    if (!this.#squares[row]) return this.#squares.length ? 0 : -1;
    const [x, y] = this.#squares[row];
    let found = row, least = Infinity;
    this.#squares.forEach(([left, top], other) => {
      const ahead = (left - x) * right + (top - y) * down;
      const aside = Math.abs((left - x) * down) + Math.abs((top - y) * right);
      const far = ahead + 3 * aside;
      if (ahead > this.#side / 2 && far < least) [found, least] = [other, far];
    });
    return found;
  }

  /** A row in words: its place in the map. */
  words(row) {
    const {shape, cells, kind} = this.#map;
    if (!shape) return `${kind === "sdbc" ? "centroid" : "cell"} ${cells[row]}`;
    return `cell ${unflattened(cells[row], shape).join(" ")}`;
  }
}

/** A flat index as indices along each dimension, first dimension slowest. */
function unflattened(index, shape) {
  const indices = [];
  for (let k = shape.length - 1; k >= 0; k -= 1) {
    indices.unshift(index % shape[k]);
    index = Math.floor(index / shape[k]);
  }
  return indices;
}

/** Where the rows of a map go: {levels: [words...], columns, rows, at: [[level, column, row]...]}. */
function placed(map) {
  if (!map.shape || map.shape.length > 3) return table(map);
  const places = map.cells.map((cell) => {
    const [x = 0, y = 0, level = 0] = unflattened(cell, map.shape);
    return [level, x, y];
  });
  const extent = (k) => [Math.min(...places.map((place) => place[k])), Math.max(...places.map((place) => place[k]))];
  const present = [...new Set(places.map(([level]) => level))].sort((one, other) => one - other);
  const [left, right] = extent(1), [low, high] = extent(2);
  const word = (map.names?.[2] ?? "level").split(",")[0];
  return {
    levels: present.map((level, k) => (present.length < 2 ? "" : k ? (level / 16).toFixed(2) : `${word} ${(level / 16).toFixed(2)}`)),
    columns: right - left + 1,
    rows: high - low + 1,
    at: places.map(([level, x, y]) => [present.indexOf(level), x - left, y - low]),
  };
}

function table(map) {
  if (map.place) {
    const columns = Math.max(...map.place.map(([column]) => column)) + 1;
    const rows = Math.max(...map.place.map(([, row]) => row)) + 1;
    return {levels: [""], columns, rows, at: map.place.map(([column, row]) => [0, column, row])};
  }
  const columns = Math.ceil(Math.sqrt(map.cells.length * 1.6));
  const rows = Math.ceil(map.cells.length / columns);
  const order = map.cells.map((_, row) => row).sort((one, other) => map.performance[other] - map.performance[one]);
  const at = [];
  order.forEach((row, rank) => (at[row] = [0, rank % columns, rows - 1 - Math.floor(rank / columns)]));
  return {levels: [""], columns, rows, at};
}
