/**
 * What a swarm has delivered, round by round, for as long as it runs.
 *
 * One row per length of a round, so that memory grows by 28 bytes a round. Beyond `MOST` rows every two
 * of them become one of twice as many rounds: the rows never take more than 8 MB.
 */
const COLUMNS = ["live", "low", "high", "whole", "wholes", "best", "late"];
export const MOST = 2 ** 18;

export class History {
  #size = 0; // rows that there is memory for
  #columns = {};
  length = 0; // rows
  stride = 1; // rounds per row

  constructor() {
    this.clear();
  }

  clear() {
    this.length = this.#size = 0;
    this.stride = 1;
    for (const name of COLUMNS) this.#columns[name] = new Float32Array(0);
  }

  /** Take samples [[time, value]...] and rounds [[time, value, best or null]...], times in rounds. */
  add(samples, ended) {
    for (const [time, value] of samples) {
      const row = this.#row(time);
      const {live, low, high} = this.#columns;
      live[row] = value; // at the end of the row
      low[row] = Number.isNaN(low[row]) ? value : Math.min(low[row], value);
      high[row] = Number.isNaN(high[row]) ? value : Math.max(high[row], value);
    }
    for (const [time, value, best] of ended) {
      const row = this.#row(time);
      const {whole, wholes, best: bests, late} = this.#columns;
      late[row] = time - row * this.stride; // it need not end when the row does
      wholes[row] += 1;
      whole[row] = wholes[row] === 1 ? value : whole[row] + (value - whole[row]) / wholes[row];
      if (best !== null) bests[row] = best;
    }
  }

  /** The row of a time; those before it are there then. */
  #row(time) {
    const round = Math.max(Math.ceil(time - 1e-6), 1); // row 0 ends at time 1
    while (Math.ceil(round / this.stride) > MOST) this.#halve();
    const row = Math.ceil(round / this.stride) - 1;
    if (row >= this.#size) this.#grow(row + 1);
    this.length = Math.max(this.length, row + 1);
    return row;
  }

  #grow(least) {
    this.#size = Math.min(Math.max(least, 2 * this.#size, 1024), MOST);
    for (const name of COLUMNS) {
      const old = this.#columns[name];
      this.#columns[name] = new Float32Array(this.#size).fill(name === "wholes" ? 0 : NaN);
      this.#columns[name].set(old);
    }
  }

  #halve() {
    const rows = Math.ceil(this.length / 2);
    const old = Array.from({length: rows}, (_, k) => this.merged(2 * k, 2 * k + 2));
    this.length = rows;
    this.stride *= 2;
    for (const name of COLUMNS) {
      const column = this.#columns[name];
      column.fill(name === "wholes" ? 0 : NaN);
      old.forEach((row, k) => (column[k] = name === "late" ? row.ended - k * this.stride : row[name]));
    }
  }

  /** The rows from `first` until before `last` as one; `time` is its end, `ended` that of its last round. */
  merged(first, last) {
    const end = Math.min(last, this.length);
    const {live, low, high, whole, wholes, best, late} = this.#columns;
    const found = {time: end * this.stride, rounds: (end - first) * this.stride,
      live: NaN, low: NaN, high: NaN, whole: NaN, wholes: 0, best: NaN, ended: NaN};
    for (let k = first; k < end; k += 1) {
      if (!Number.isNaN(live[k])) {
        found.live = live[k];
        if (!(found.low <= low[k])) found.low = low[k];
        if (!(found.high >= high[k])) found.high = high[k];
      }
      if (wholes[k]) {
        const all = found.wholes + wholes[k];
        found.whole = found.wholes ? found.whole + (whole[k] - found.whole) * (wholes[k] / all) : whole[k];
        found.wholes = all;
        found.ended = k * this.stride + late[k];
      }
      if (!Number.isNaN(best[k])) found.best = best[k];
    }
    return found;
  }

  /** The rows whose ends lie between two times, as at most `most`, oldest first. */
  between(from, to, most) {
    const first = Math.max(Math.ceil(from / this.stride) - 1, 0);
    const last = Math.min(Math.ceil(to / this.stride), this.length);
    const step = Math.max(Math.ceil((last - first) / most), 1);
    const found = [];
    // Rows are always merged alike, whatever is looked at: else the picture would flicker as it moves.
    for (let k = first - (first % step); k < last; k += step) found.push(this.merged(k, k + step));
    return found;
  }

  /** All of it as CSV; `marks` are [[time, kind, words]...]. */
  csv(marks) {
    const events = new Map();
    for (const [time, kind, words] of marks) {
      const row = Math.min(Math.max(Math.ceil(time / this.stride), 1), this.length);
      events.set(row, [...(events.get(row) ?? []), `${kind}: ${words}`]);
    }
    const number = (value) => (Number.isNaN(value) ? "" : String(+value.toFixed(3)));
    const lines = ["time_in_rounds,rounds,items_per_robot,best_so_far,running,running_lowest,running_highest,events"];
    for (let k = 0; k < this.length; k += 1) {
      const row = this.merged(k, k + 1);
      const words = (events.get(k + 1) ?? []).join("; ").replaceAll('"', '""');
      lines.push([row.time, row.rounds, ...[row.whole, row.best, row.live, row.low, row.high].map(number),
        words && `"${words}"`].join(","));
    }
    return `${lines.join("\n")}\n`;
  }
}
