/**
 * The arena from above, to scale.
 *
 * `world`: {width, height (m), nest: {depth}, food: [[x, y, radius]...],
 *   robot: {outline: [[x, y]...], radius, sensors: [{x, y, angle, range}...]}, robots: N}
 * `frame`: {tick, x: [], y: [] (m), theta: [] (rad), carrying: [], items: [],
 *   proximity: [[7 values]...] (optional), faults: ["none" | "proximity min" | ...],
 *   food (if it differs from that of the world)}, one entry per robot.
 * Options of `draw`: {rays: all robots' sensor rays | "selected", selected: index or -1,
 *   labels: numbers on the robots (default true), trails: [[[x, y]...] per robot], oldest first}.
 *
 * x of the arena points to the right and y up, so that the nest is at the left; where the canvas
 * is wider than high and the arena higher than wide, it is turned: the nest is at the top then.
 */
import {FONT, faultSign, prepared, redrawing, scheme} from "./colours.js";

const MARGIN = 5; // pixels around the arena
const INSIDE = 17; // pixels of a robot's radius from which its number stands on it, not beside it
const TOUCH = 20; // pixels around a robot's centre that belong to it, at least

/** The frame at a share (0 to 1) of the way from one frame to the next. */
export function between(first, second, share) {
  if (!second || share <= 0) return first;
  const mix = (name) => first[name].map((value, k) => value + (second[name][k] - value) * share);
  const theta = first.theta.map((value, k) => {
    const turn = second.theta[k] - value;
    return value + Math.atan2(Math.sin(turn), Math.cos(turn)) * share;
  });
  return {...first, tick: first.tick + (second.tick - first.tick) * share, x: mix("x"), y: mix("y"), theta};
}

export class ArenaView {
  #world;
  #last = null;

  constructor(canvas, world) {
    this.canvas = canvas;
    this.#world = world;
    redrawing(canvas, () => this.#last && this.draw(...this.#last));
  }

  set world(world) {
    this.#world = world;
    if (this.#last) this.draw(...this.#last);
  }

  get world() {
    return this.#world;
  }

  /** How metres become pixels on a canvas of this size. */
  #fit(width, height) {
    const world = this.#world;
    const turned = world.height > world.width && width > height;
    const [across, up] = turned ? [world.height, world.width] : [world.width, world.height];
    const scale = Math.max(Math.min((width - 2 * MARGIN) / across, (height - 2 * MARGIN) / up), 1e-3);
    const left = (width - scale * across) / 2, top = (height - scale * up) / 2;
    const place = turned
      ? (x, y) => [left + scale * y, top + scale * x]
      : (x, y) => [left + scale * x, top + scale * (world.height - y)];
    const metres = turned
      ? (px, py) => ({x: (py - top) / scale, y: (px - left) / scale})
      : (px, py) => ({x: (px - left) / scale, y: world.height - (py - top) / scale});
    return {turned, scale, place, metres, box: [left, top, scale * across, scale * up]};
  }

  draw(frame, options = {}) {
    this.#last = [frame, options];
    const {context: c, width, height} = prepared(this.canvas);
    if (!this.#world || width < 20 || height < 20) return;
    const colours = scheme();
    const fit = this.#fit(width, height);
    this.#floor(c, fit, colours, frame);
    if (options.trails) this.#trails(c, fit, colours, frame, options.trails);
    const all = frame.x.map((_, k) => k);
    const shown = options.rays === "selected" ? [options.selected] : options.rays ? all : [];
    for (const k of shown) if (k >= 0 && k < all.length) this.#rays(c, fit, colours, frame, k);
    for (const k of all) this.#robot(c, fit, colours, frame, k, options);
    for (const k of all) this.#badge(c, fit, colours, frame, k, options);
  }

  #floor(c, {place, scale, box}, colours, frame) {
    const world = this.#world;
    c.save();
    c.beginPath();
    c.rect(...box);
    c.fillStyle = colours.floor;
    c.fill();
    c.clip();
    c.strokeStyle = colours.grid;
    c.lineWidth = 1;
    c.beginPath();
    for (let x = 0.5; x < world.width; x += 0.5) this.#segment(c, place(x, 0), place(x, world.height));
    for (let y = 0.5; y < world.height; y += 0.5) this.#segment(c, place(0, y), place(world.width, y));
    c.stroke();
    const food = frame.food ?? world.food;
    const there = new Set(food.map((disc) => disc.join()));
    for (const [x, y, radius] of world.food.filter((disc) => !there.has(disc.join()))) {
      c.beginPath();
      c.arc(...place(x, y), scale * radius, 0, 2 * Math.PI);
      c.setLineDash([3, 4]);
      c.strokeStyle = colours.line;
      c.lineWidth = 1.2;
      c.stroke();
      c.setLineDash([]);
    }
    for (const [x, y, radius] of food) {
      c.beginPath();
      c.arc(...place(x, y), scale * radius, 0, 2 * Math.PI);
      c.fillStyle = colours.food;
      c.fill();
      c.strokeStyle = colours.foodLine;
      c.lineWidth = 1.2;
      c.stroke();
    }
    this.#nest(c, place, scale, colours);
    c.restore();
    c.strokeStyle = colours.wall;
    c.lineWidth = 2;
    c.strokeRect(...box);
  }

  /** The nest lies over the food, as for the robots' ground sensors; hatched. */
  #nest(c, place, scale, colours) {
    const world = this.#world, depth = world.nest.depth;
    const [ax, ay] = place(0, 0), [bx, by] = place(depth, world.height);
    c.save();
    c.beginPath();
    c.rect(Math.min(ax, bx), Math.min(ay, by), Math.abs(bx - ax), Math.abs(by - ay));
    c.fillStyle = colours.nest;
    c.fill();
    c.clip();
    c.strokeStyle = colours.nestLine;
    c.globalAlpha = 0.45;
    c.lineWidth = 1;
    c.beginPath();
    const long = world.height + depth;
    const step = Math.max(0.1, 9 / scale);
    for (let s = -depth; s < long; s += step) this.#segment(c, place(0, s), place(depth, s + depth));
    c.stroke();
    c.restore();
    c.beginPath();
    this.#segment(c, place(depth, 0), place(depth, world.height));
    c.strokeStyle = colours.nestLine;
    c.lineWidth = 1.2;
    c.stroke();
  }

  #segment(c, from, to) {
    c.moveTo(...from);
    c.lineTo(...to);
  }

  #trails(c, {place}, colours, frame, trails) {
    c.save();
    c.lineJoin = "round";
    trails.forEach((trail, k) => {
      c.strokeStyle = colours[faultSign(frame.faults?.[k]).kind];
      const pieces = 6;
      for (let piece = 0; piece < pieces; piece += 1) {
        const first = Math.floor((piece * trail.length) / pieces);
        const last = Math.min(Math.floor(((piece + 1) * trail.length) / pieces) + 1, trail.length);
        if (last - first < 2) continue;
        c.globalAlpha = 0.08 + (0.42 * (piece + 1)) / pieces;
        c.lineWidth = 0.8 + (1.6 * (piece + 1)) / pieces;
        c.beginPath();
        for (let n = first; n < last; n += 1) c.lineTo(...place(...trail[n]));
        c.stroke();
      }
    });
    c.restore();
  }

  /** The way to draw in the robot's own frame: x ahead, y to its left. */
  #own(fit, frame, k) {
    const [sin, cos] = [Math.sin(frame.theta[k]), Math.cos(frame.theta[k])];
    return (x, y) => fit.place(frame.x[k] + cos * x - sin * y, frame.y[k] + sin * x + cos * y);
  }

  #rays(c, fit, colours, frame, k) {
    const own = this.#own(fit, frame, k);
    this.#world.robot.sensors.forEach(({x, y, angle, range}, n) => {
      const value = frame.proximity?.[k]?.[n] ?? 0;
      // The response is 1 + (d - d^2) / 110 with the distance d in cm, 0 beyond the range.
      const d = value > 0 ? (1 + Math.sqrt(1 + 440 * (1 - Math.min(value, 1)))) / 2 : 11;
      const end = (share) => own(x + share * range * Math.cos(angle), y + share * range * Math.sin(angle));
      c.strokeStyle = colours.ray;
      c.globalAlpha = 0.35;
      c.lineWidth = 1;
      c.beginPath();
      this.#segment(c, end(0), end(1));
      c.stroke();
      c.globalAlpha = 1;
      if (value > 0) {
        c.lineWidth = 1.8;
        c.beginPath();
        this.#segment(c, end(0), end(d / 11));
        c.stroke();
        c.fillStyle = colours.ray;
        c.beginPath();
        c.arc(...end(d / 11), 2, 0, 2 * Math.PI);
        c.fill();
      }
    });
  }

  #robot(c, fit, colours, frame, k, {selected = -1, labels = true}) {
    const own = this.#own(fit, frame, k);
    const {kind} = faultSign(frame.faults?.[k]);
    const {outline, radius} = this.#world.robot;
    const reach = fit.scale * (radius ?? 0.076);
    const [px, py] = fit.place(frame.x[k], frame.y[k]);
    if (k === selected) {
      c.beginPath();
      c.arc(px, py, reach * 1.5 + 3, 0, 2 * Math.PI);
      c.strokeStyle = colours.ink;
      c.lineWidth = 1.6;
      c.setLineDash([4, 3]);
      c.stroke();
      c.setLineDash([]);
    }
    c.beginPath();
    outline.forEach(([x, y], n) => (n ? c.lineTo(...own(x, y)) : c.moveTo(...own(x, y))));
    c.closePath();
    c.fillStyle = colours[kind];
    c.fill();
    c.strokeStyle = colours.halo;
    c.lineWidth = 1;
    c.stroke();
    const wide = Math.max(...outline.map(([, y]) => Math.abs(y)));
    const front = Math.max(...outline.map(([x]) => x));
    const inside = labels && reach >= INSIDE;
    const back = inside ? 0.35 : -0.35;
    c.beginPath(); // the heading: a bright nose
    c.moveTo(...own(front * 0.85, 0));
    c.lineTo(...own(front * back, wide * 0.6));
    c.lineTo(...own(front * back, -wide * 0.6));
    c.closePath();
    c.fillStyle = colours.onRobot;
    c.fill();
    if (inside) {
      c.fillStyle = colours.onRobot;
      c.font = `700 ${Math.round(reach * 0.8)}px ${FONT}`;
      c.textAlign = "center";
      c.textBaseline = "middle";
      c.fillText(String(k), ...own(-front * 0.25, 0));
    }
    if (frame.carrying?.[k]) {
      const [x, y] = own(-front * 1.15, 0);
      c.beginPath();
      c.arc(x, y, Math.max(reach * 0.42, 3), 0, 2 * Math.PI);
      c.fillStyle = colours.item;
      c.fill();
      c.strokeStyle = colours.halo;
      c.lineWidth = 1.4;
      c.stroke();
    }
  }

  /** Broken robots have a ring and a sign: P- is a proximity sensor that reads 0. All have numbers. */
  #badge(c, fit, colours, frame, k, {labels = true}) {
    const {kind, mark} = faultSign(frame.faults?.[k]);
    const [px, py] = fit.place(frame.x[k], frame.y[k]);
    const reach = fit.scale * (this.#world.robot.radius ?? 0.076);
    if (mark) {
      c.beginPath();
      c.arc(px, py, reach * 1.3 + 1, 0, 2 * Math.PI);
      c.strokeStyle = colours[kind];
      c.lineWidth = 1.5;
      c.stroke();
    }
    const number = labels && reach < INSIDE ? String(k) : "";
    const words = [number, reach >= 8 ? mark : ""].filter(Boolean).join(" ");
    if (!words || reach < 5) return;
    c.font = `600 9.5px ${FONT}`;
    const wide = c.measureText(words).width + 6;
    const [left, top, across] = fit.box;
    const beyond = px + reach * 0.8 + wide > left + across;
    const x = beyond ? px - reach * 0.8 - wide : px + reach * 0.8;
    const y = Math.max(py - reach * 1.25 - 4, top + 7);
    c.textAlign = "center";
    c.textBaseline = "middle";
    if (mark) {
      c.beginPath();
      c.roundRect(x, y - 7, wide, 14, 4);
      c.fillStyle = colours.page;
      c.fill();
      c.lineWidth = 1;
      c.stroke();
    } else {
      c.strokeStyle = colours.floor;
      c.lineWidth = 3;
      c.lineJoin = "round";
      c.strokeText(words, x + wide / 2, y + 0.5);
    }
    c.fillStyle = colours[kind];
    c.fillText(words, x + wide / 2, y + 0.5);
  }

  /** Metres of a point on the screen, as in mouse events. */
  pointAt(clientX, clientY) {
    const box = this.canvas.getBoundingClientRect();
    const fit = this.#fit(this.canvas.clientWidth, this.canvas.clientHeight);
    return fit.metres(clientX - box.left, clientY - box.top);
  }

  /** The robot at a point on the screen, or -1; near is enough, for fingers. */
  robotAt(clientX, clientY) {
    if (!this.#last) return -1;
    const [frame] = this.#last;
    const {x, y} = this.pointAt(clientX, clientY);
    const {scale} = this.#fit(this.canvas.clientWidth, this.canvas.clientHeight);
    const distances = frame.x.map((there, k) => Math.hypot(there - x, frame.y[k] - y));
    const nearest = distances.indexOf(Math.min(...distances));
    const reach = Math.max(1.3 * (this.#world.robot.radius ?? 0.076), TOUCH / scale);
    return nearest >= 0 && distances[nearest] <= reach ? nearest : -1;
  }
}
