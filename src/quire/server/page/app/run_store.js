// One run as the page holds it: its head with the steps, kept current by the feed. All parts of the page that show a run
// share one store. Events change the steps at once; the server's own head follows soon, and is always right.

import { ApiProblem, part, send } from "./api.js";
import { follow, listen, lostSince } from "./feed.js";
import { signal, useEffect } from "./html.js";
import { change } from "./step_changes.js";

/**
 * @typedef {{
 *   path: string, label: string, way: string, title: string, status: string, message: string, elapsed: number,
 *   input_tokens: number, output_tokens: number, cost: number | null, thread?: string, calls?: { name: string }[],
 *   items?: Items, started_at?: number, survived?: string,
 * }} Step
 */
/** Counts of a fan; of a loop if `rounds`, whose `total` is the most that there may be. @typedef {{ total: number, done: number, failed: number, rounds?: boolean }} Items */
/** @typedef {{ [name: string]: any, id: string, status: string, seq: number, steps: Step[] }} Head */

const SHORTEST_PAUSE = 400;
const LINGER = 5000;
const LONGEST_STREAM = 200_000;

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
    this.problem = signal(/** @type {import("./api.js").Problem | null} */ (null));
    /** True once the first answer takes long enough to show a placeholder. */
    this.slow = signal(false);
    /** Texts that models are writing now, by the path of the call. */
    this.streams = signal(/** @type {Map<string, string>} */ (new Map()));
    /** How far models have read their prompts, by the path of the call. */
    this.readings = signal(/** @type {Map<string, { processed: number, total: number }>} */ (new Map()));
    /** Counts the changes of the journal, for parts that read it again. */
    this.changes = signal(0);
    this.holders = 0;
    this.follows = false;
    this.etag = "";
    this.seen = 0;
    /** Events that are not applied yet. @type {any[]} */
    this.waiting = [];
    /** Events since the last request for the head began. @type {any[]} */
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
    if (this.holders++ === 0 && !this.stops.length) this.open();
    return () => {
      this.holders--;
      setTimeout(() => this.holders || this.close(), LINGER);
    };
  }

  open() {
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

  /** Reads the head again, soon; several calls are one request. */
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
    try {
      const headers = this.etag ? { "If-None-Match": this.etag } : {};
      const response = await send("GET", `/runs/${part(this.id)}`, { headers: /** @type {any} */ (headers) });
      if (response.status !== 304) {
        this.etag = response.headers.get("ETag") ?? "";
        this.take(await response.json());
      }
      this.problem.value = null;
    } catch (error) {
      if (!(error instanceof ApiProblem)) throw error;
      if (error.problem.status !== 0 || !this.head.value) this.problem.value = error.problem;
    } finally {
      this.slow.value = false;
      this.took = performance.now() - began;
      this.loading = false;
      if (this.due && this.stops.length) this.reload();
    }
  }

  /** @param {Head} head */
  take(head) {
    if (!this.follows && this.stops.length) {
      this.follows = true;
      this.stops.push(follow(head.id, head.seq));
    }
    const later = this.recent.filter((event) => event.seq > head.seq);
    this.seen = Math.max(this.seen, head.seq);
    this.head.value = later.length ? applied(head, later).head : head;
    this.changes.value++;
  }

  /** @param {import("./feed.js").Frame} frame */
  receive({ event, data }) {
    const head = this.head.value;
    if (!head) return;
    if (event === "runs") {
      const row = data.rows.find((/** @type {any} */ row) => row.id === head.id);
      if (row) {
        this.head.value = { ...head, ...row };
        this.reload();
      } else if (data.more || data.gone.includes(head.id)) this.reload();
    } else if (event === "questions") this.reload();
    else if (data?.run === head.id) {
      if (event === "reset") {
        this.seen = 0;
        this.etag = "";
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
    const head = this.head.value;
    if (!head || !events.length) return;
    const { head: next, unsure } = applied(
      head,
      events.filter((one) => one.seq || one.provisional || TOLD.test(one.type)),
    );
    this.head.value = next;
    this.stream(events);
    if (events.some((one) => one.seq)) this.changes.value++;
    if (unsure) this.reload();
  }

  /** @param {any[]} events */
  stream(events) {
    if (
      !events.some((one) => /^(delta|reading)$/.test(one.type) || this.streams.value.size || this.readings.value.size)
    ) {
      return;
    }
    const streams = new Map(this.streams.value), readings = new Map(this.readings.value);
    for (const one of events) {
      if (one.type === "reading" && one.processed < one.total) readings.set(one.path, one);
      else if (/^(delta|effect|reading)$/.test(one.type)) readings.delete(one.path);
      if (one.type === "delta") {
        streams.set(one.path, ((streams.get(one.path) ?? "") + one.text).slice(-LONGEST_STREAM));
      } else if (one.type === "effect") streams.delete(one.path);
    }
    this.streams.value = streams;
    this.readings.value = readings;
  }
}

/** Events that are not kept, but change the head: the ends of items, and the steps of blocks. */
const TOLD = /^(fan_item|step_)/;

/** Events after which the server has to be asked: the page cannot know all of what they change. */
const UNSURE = /^(question|thread_|tool_|agent_|hook_|warning|bound_|run_|named|store|step_)/;

/**
 * @param {Head} head
 * @param {any[]} events
 * @returns {{ head: Head, unsure: boolean }} the head after these events; `unsure` if it is only a good guess
 */
export function applied(head, events) {
  const at = new Map(head.steps.map((step, index) => [step.path, index]));
  const next = /** @type {Head} */ ({ ...head, steps: head.steps.slice() });
  const own = new Set();
  let unsure = false;
  /** @param {string} path @returns {Step | undefined} a step that may be changed */
  const stepOf = (path) => {
    for (
      let place = path.replaceAll(/\/try\[\d+\](?!.*\/turn\[)/g, "");
      place;
      place = place.slice(0, Math.max(0, place.lastIndexOf("/")))
    ) {
      const index = at.get(place);
      if (index === undefined) continue;
      if (!own.has(index)) {
        own.add(index);
        const step = next.steps[index];
        next.steps[index] = { ...step, items: step.items && { ...step.items } };
      }
      return next.steps[index];
    }
  };
  for (const event of events) {
    next.seq = Math.max(next.seq, event.seq ?? 0);
    unsure ||= UNSURE.test(event.type);
    const step = event.path ? stepOf(event.path) : undefined;
    // The ends of items are told only by the process that drives the run.
    if (step?.items && event.type === "effect") unsure = true;
    if (step) change(step, event, step.path === event.path);
    else if (event.path) unsure = true;
    // Tokens and cost of the run come with its row, in a message of their own: added here, they would count twice.
    if (event.type === "effect") next.effects_total = (next.effects_total ?? 0) + 1;
  }
  return { head: next, unsure };
}
