// One run as the page holds it: its head, its tree and the texts that models write now, kept current by the feed. All
// parts of the page that show a run share one store. Events change the tree at once; the server's own soon follows.

import { ApiProblem, get, part, query, send } from "./api.js";
import { follow, listen, lostSince, reread } from "./feed.js";
import { signal, useEffect } from "./html.js";
import { applied, nothing, treeOf, withPage } from "./tree_model.js";

/** @typedef {{ [name: string]: any, id: string, status: string, seq: number }} Head */
/** A text that is being written, from this character on. @typedef {{ text: string, from: number }} Stream */
/** @typedef {import("./tree_model.js").Tree} Tree */

const SHORTEST_PAUSE = 400;
const LINGER = 5000;
const LONGEST_STREAM = 200_000;
const PAGE = 200;

/** @type {Map<string, RunStore>} */
const stores = new Map();

/**
 * Follows a run while a component shows it. Reading `head.value` in a component draws it again when the run changes.
 *
 * @param {string} id
 * @returns {RunStore}
 */
export function useRun(id) {
  const store = stores.get(id) ?? new RunStore(id);
  stores.set(id, store);
  useEffect(() => store.hold(), [store]);
  return store;
}

export class RunStore {
  /** @param {string} id */
  constructor(id) {
    this.id = id;
    /** The head of the run; null until it is known. */
    this.head = signal(/** @type {Head | null} */ (null));
    this.tree = signal(/** @type {Tree | null} */ (null));
    this.problem = signal(/** @type {import("./api.js").Problem | null} */ (null));
    /** True once the first answer takes long enough to show a placeholder. */
    this.slow = signal(false);
    /** Texts that models are writing now, by the path of the call. */
    this.streams = signal(/** @type {Map<string, Stream>} */ (new Map()));
    /** How far models have read their prompts, by the path of the call. */
    this.readings = signal(/** @type {Map<string, { processed: number, total: number }>} */ (new Map()));
    /** Pages that the user has opened below rows. @type {Map<string, { order: string, answers: any[] }>} */
    this.opened = new Map();
    this.holders = 0;
    this.follows = false;
    /** @type {Record<string, string>} */
    this.etags = {};
    this.seen = 0;
    /** Events that are not applied yet. @type {any[]} */
    this.waiting = [];
    /** Events since the last request began. @type {any[]} */
    this.recent = [];
    /** Provisional events that are applied; they come again when they are written. @type {Set<string>} */
    this.guessed = new Set();
    this.loading = false;
    this.due = false;
    this.took = 0;
    this.timer = 0;
    this.drawing = 0;
    /** @type {(() => void)[]} */
    this.stops = [];
  }

  /** @returns {() => void} lets go of the store */
  hold() {
    if (this.holders++ === 0 && !this.stops.length) this.start();
    return () => {
      this.holders--;
      setTimeout(() => this.holders || this.close(), LINGER);
    };
  }

  start() {
    stores.set(this.id, this);
    const slow = setTimeout(() => (this.slow.value = !this.head.value), 150);
    let lost = lostSince.value;
    const back = lostSince.subscribe((now) => {
      if (lost && !now) this.load();
      lost = now;
    });
    this.stops = [listen((frame) => this.receive(frame)), back, () => clearTimeout(slow)];
    this.load();
  }

  close() {
    this.stops.forEach((stop) => stop());
    this.stops = [];
    this.follows = false;
    clearTimeout(this.timer);
    if (stores.get(this.id) === this) stores.delete(this.id);
  }

  /** Reads head and tree again, soon; several calls are one request of each. */
  reload() {
    this.due = true;
    if (this.loading || this.timer) return;
    this.timer = setTimeout(() => {
      this.timer = 0;
      this.load();
    }, Math.max(SHORTEST_PAUSE, 4 * this.took));
  }

  async load() {
    if (this.loading) return;
    this.loading = true;
    this.due = false;
    this.recent = [];
    const began = performance.now();
    // The tree does not wait for the head, which the server may have to replay.
    const tree = this.read("/tree", (answer) => this.takeTree(answer))
      .catch(() => (this.tree.value ??= nothing()));
    try {
      await this.read("", (head) => this.take(head));
      this.problem.value = null;
    } catch (error) {
      if (!(error instanceof ApiProblem)) throw error;
      if (error.problem.status !== 0 || !this.head.value) this.problem.value = error.problem;
    } finally {
      this.slow.value = false;
      await tree;
      this.took = performance.now() - began;
      this.loading = false;
      if (this.due && this.stops.length) this.reload();
    }
  }

  /** @param {string} end of the address @param {(answer: any) => void} take */
  async read(end, take) {
    const headers = /** @type {any} */ (this.etags[end] ? { "If-None-Match": this.etags[end] } : {});
    const response = await send("GET", `/runs/${part(this.id)}${end}`, { headers });
    if (response.status === 304) return;
    this.etags[end] = response.headers.get("ETag") ?? "";
    take(await response.json());
  }

  /** @param {Head} head */
  take(head) {
    if (!this.follows && this.stops.length) {
      this.follows = true;
      this.stops.push(follow(head.id, head.seq));
    }
    this.seen = Math.max(this.seen, head.seq);
    this.show(head);
  }

  /** @param {Head} head */
  show(head) {
    this.head.value = head;
    if (head.status === "running") return;
    if (this.streams.value.size) this.streams.value = new Map();
    if (this.readings.value.size) this.readings.value = new Map();
  }

  /** @param {any} answer */
  takeTree(answer) {
    let tree = treeOf(answer);
    for (const [path, { answers }] of this.opened) {
      for (const page of answers) if (tree.rows.has(path)) tree = withPage(tree, path, page);
    }
    this.tree.value = applied(tree, this.recent.filter((event) => event.seq > (answer.seq ?? event.seq)));
    if (answer.partial) this.reload();
    for (const [path, { order, answers }] of this.opened) if (tree.end === null) this.open(path, order, answers.length);
  }

  /**
   * Reads what is below a row.
   *
   * @param {string} path of a row
   * @param {string} [order]
   * @param {number} [pages] how many from the first on; without it the next one
   */
  async open(path, order = this.opened.get(path)?.order ?? "", pages) {
    const kept = this.opened.get(path);
    const answers = pages || order !== kept?.order ? [] : [...kept.answers];
    for (let left = pages ?? 1; left > 0; left--) {
      const after = answers.at(-1)?.next;
      if (answers.length && !after) break;
      answers.push(await get(`/runs/${part(this.id)}/tree${query({ under: path, order, after, limit: PAGE })}`));
    }
    this.opened.set(path, { order, answers });
    const tree = this.tree.value;
    const row = tree?.rows.get(path);
    if (!tree || !row) return;
    tree.rows.set(path, { ...row, below: [] });
    this.tree.value = answers.reduce((now, answer) => withPage(now, path, answer), tree);
  }

  /** @param {import("./feed.js").Frame} frame */
  receive({ event, data }) {
    const head = this.head.value;
    if (!head) return;
    if (event === "runs") {
      const row = data.rows.find((/** @type {any} */ row) => row.id === head.id);
      if (row) this.show({ ...head, ...row });
      if (row || data.more || data.gone.includes(head.id)) this.reload();
    } else if (event === "questions") this.reload();
    else if (data?.run === head.id) {
      if (event === "reset") {
        this.seen = 0;
        this.etags = {};
        this.guessed.clear();
        return this.reload();
      }
      if (data.seq && data.seq <= this.seen) return;
      const name = `${data.type} ${data.path} ${data.at}`;
      if (data.provisional) this.guessed.add(name);
      if (data.seq) {
        this.seen = data.seq;
        this.recent.push(data);
      }
      this.waiting.push(data.seq && this.guessed.delete(name) ? { type: "written", seq: data.seq } : data);
      // A hidden tab draws nothing, but must not let events pile up.
      if (!this.drawing) {
        this.drawing = document.hidden
          ? setTimeout(() => this.flush(), 250)
          : requestAnimationFrame(() => this.flush());
      }
    }
  }

  flush() {
    this.drawing = 0;
    const events = this.waiting;
    this.waiting = [];
    if (!events.length) return;
    const changes = events.filter((event) => event.path && !/^(delta|reading|written)$/.test(event.type));
    if (changes.length && this.tree.value) this.tree.value = applied(this.tree.value, changes);
    this.stream(events);
    if (events.some((event) => !/^(delta|reading)$/.test(event.type))) this.reload();
  }

  /** @param {any[]} events */
  stream(events) {
    const streams = new Map(this.streams.value), readings = new Map(this.readings.value);
    for (const one of events) {
      if (one.type === "reading" && one.processed < one.total) readings.set(one.path, one);
      else if (/^(delta|effect|reading)$/.test(one.type)) readings.delete(one.path);
      if (one.type === "effect") streams.delete(one.path);
      if (one.type !== "delta") continue;
      const next = joined(streams.get(one.path), one);
      if (next) streams.set(one.path, next);
      else reread();
    }
    if (streams.size || this.streams.value.size) this.streams.value = streams;
    if (readings.size || this.readings.value.size) this.readings.value = readings;
  }
}

/**
 * Adds a piece of a text where it belongs.
 *
 * @param {Stream | undefined} stream
 * @param {{ text: string, offset?: number, cut?: boolean }} delta
 * @returns {Stream | null} null if a piece before this one is missing
 */
export function joined(stream, { text, offset, cut }) {
  const end = stream ? stream.from + stream.text.length : 0;
  const at = offset ?? end;
  if (cut) return { text, from: at };
  if (at > end || (stream && at < stream.from)) return at > end ? null : { text, from: at };
  const whole = (stream?.text.slice(0, at - stream.from) ?? "") + text;
  return { text: whole.slice(-LONGEST_STREAM), from: (stream?.from ?? 0) + Math.max(0, whole.length - LONGEST_STREAM) };
}
