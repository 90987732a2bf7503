/**
 * Smooth motion between the frames that arrive: what to draw at any moment, and the robots' trails.
 *
 * The picture is one frame late, so that it always knows where the robots are going.
 */
import {between} from "./arena.js";

const LONGEST = 60; // ticks between two frames over which motion is still smooth to the eye
const TRAIL = 70; // ticks that a trail is long, at most
const POINTS = 60; // of a trail

export class Motion {
  #from = null;
  #to = null;
  #arrived = 0; // ms, of the last frame
  #interval = 200; // ms between frames
  #trails = [];

  constructor() {
    this.calm = matchMedia("(prefers-reduced-motion: reduce)");
  }

  /** Take a frame that has arrived at `now` (ms). */
  take(frame, now) {
    const last = this.#to;
    const goesOn = last && last.round === frame.round && last.x.length === frame.x.length
      && frame.tick >= last.tick && frame.tick - last.tick <= LONGEST;
    if (goesOn && frame.tick > last.tick) {
      const gap = Math.min(Math.max(now - this.#arrived, 20), 400);
      this.#interval += 0.2 * (gap - this.#interval);
    }
    this.#from = goesOn ? this.at(now) : frame;
    this.#to = frame;
    this.#arrived = now;
    this.#follow(frame, goesOn);
  }

  #follow(frame, goesOn) {
    if (!goesOn) this.#trails = frame.x.map(() => []);
    const step = TRAIL / POINTS;
    if (goesOn && this.lastPoint !== undefined && frame.tick - this.lastPoint < step) return;
    this.lastPoint = frame.tick;
    this.#trails.forEach((trail, robot) => {
      trail.push([frame.x[robot], frame.y[robot], frame.tick]);
      while (trail.length > POINTS || frame.tick - trail[0][2] > TRAIL) trail.shift();
    });
  }

  /** The frame to draw at `now`, or null before the first. */
  at(now) {
    if (!this.#to || this.#from === this.#to || this.calm.matches) return this.#to;
    const share = Math.min((now - this.#arrived) / this.#interval, 1);
    const mixed = between(this.#from, this.#to, share);
    return {...this.#to, x: mixed.x, y: mixed.y, theta: mixed.theta};
  }

  /** Whether the picture at `now` differs from a later one. */
  isMoving(now) {
    return this.#to !== null && !this.calm.matches && now - this.#arrived <= this.#interval + 50;
  }

  /** Where each robot has been, ending where it is drawn. */
  trails(shown) {
    return this.#trails.map((trail, robot) => [
      ...trail.slice(0, -1).map(([x, y]) => [x, y]), [shown.x[robot], shown.y[robot]]]);
  }
}
