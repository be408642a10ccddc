// The journal of a run as columns: read once, then kept current by events. Pure, so that it can be tested by itself.

/** @typedef {{ path: string, kind: string, state: string, at: number, elapsed: number, tokens: number | null, cost: number | null | undefined, size: number | null, error: string | null }} Entry */

export class Journal {
  constructor() {
    /** @type {Record<string, any[]>} */
    this.columns = {};
    for (const name of COLUMNS) this.columns[name] = [];
    /** @type {Map<string, number>} */
    this.places = new Map();
  }

  get length() {
    return this.columns.path.length;
  }

  /** Adds a page of the server. @param {Record<string, any[]>} columns */
  add(columns) {
    for (let at = 0; at < columns.path.length; at++) {
      const place = this.placeOf(columns.path[at]);
      for (const name of COLUMNS) this.columns[name][place] = columns[name][at];
    }
  }

  /** Takes an `effect` event. @param {any} event */
  take(event) {
    const place = this.placeOf(event.path);
    const entry = {
      path: event.path,
      kind: event.kind,
      state: event.state,
      at: event.at - (event.elapsed ?? 0),
      elapsed: event.elapsed ?? 0,
      input_tokens: event.input_tokens ?? null,
      output_tokens: event.output_tokens ?? null,
      cost: event.cost ?? null,
      value_size: null,
      error: event.message ?? null,
    };
    for (const name of COLUMNS) this.columns[name][place] = Reflect.get(entry, name);
  }

  /** @param {string} path */
  placeOf(path) {
    const known = this.places.get(path);
    if (known !== undefined) return known;
    this.places.set(path, this.length);
    this.columns.path.push(path);
    return this.length - 1;
  }

  /** @param {number} at @returns {Entry} */
  entry(at) {
    const { path, kind, state, at: times, elapsed, input_tokens, output_tokens, cost, value_size, error } =
      this.columns;
    const used = input_tokens[at] === null ? null : input_tokens[at] + output_tokens[at];
    return {
      path: path[at],
      kind: kind[at],
      state: state[at],
      at: times[at],
      elapsed: elapsed[at],
      tokens: used,
      cost: used === null ? undefined : cost[at],
      size: value_size[at],
      error: error[at],
    };
  }

  /**
   * @param {{ kind: string, state: string, path: string }} filters empty texts fit everything
   * @returns {number[]} the places of the effects that fit
   */
  fitting({ kind, state, path }) {
    const wanted = path.toLowerCase();
    const found = [];
    const { path: paths, kind: kinds, state: states } = this.columns;
    for (let at = 0; at < paths.length; at++) {
      if (kind && kinds[at] !== kind) continue;
      if (state && states[at] !== state) continue;
      if (wanted && !paths[at].toLowerCase().includes(wanted)) continue;
      found.push(at);
    }
    return found;
  }

  /** @returns {string[]} */
  kinds() {
    return [...new Set(this.columns.kind)].sort();
  }
}

const COLUMNS = [
  "path",
  "kind",
  "state",
  "at",
  "elapsed",
  "input_tokens",
  "output_tokens",
  "cost",
  "value_size",
  "error",
];
