// Pages of the list of runs: loaded as one scrolls, kept current by the feed, never moved by runs that are new.

import { ApiProblem, get } from "./api.js";
import { listen, lostSince } from "./feed.js";
import { useEffect, useMemo, useState } from "./html.js";

const PAGE = 100;
const LOOK_MS = 400;
const RESULT_MS = 1500;

/** @typedef {import("./api.js").Problem} Problem */
/**
 * `fresh` counts the runs that came since the list was read; `more` says that there are even more than that.
 *
 * @typedef {{
 *   rows: any[], next: string | null, fresh: number, more: boolean, problem: Problem | null, slow: boolean, known: boolean,
 * }} Pages
 */

/** @type {Pages} */
const NOTHING = { rows: [], next: null, fresh: 0, more: false, problem: null, slow: false, known: false };

/** The list of one set of filters. `query` is that of the API, without a question mark. */
class RunPages {
  /** @param {string} query @param {(pages: Pages) => void} show */
  constructor(query, show) {
    this.query = query;
    this.show = show;
    this.state = NOTHING;
    this.gone = false;
    this.loading = false;
    this.timer = 0;
    /** Runs whose result was looked for once more. @type {Set<string>} */
    this.awaited = new Set();
  }

  /** @param {Partial<Pages>} changes */
  set(changes) {
    this.state = { ...this.state, ...changes };
    if (!this.gone) this.show(this.state);
  }

  /** @param {string} [after] */
  async read(after) {
    return await get(`/runs?${this.query}${this.query && "&"}limit=${PAGE}${after ? `&after=${after}` : ""}`);
  }

  /** Reads the list from the top. */
  async load() {
    if (this.loading) return;
    this.loading = true;
    const timer = setTimeout(() => !this.state.known && this.set({ slow: true }), 150);
    try {
      const { items, next } = await this.read();
      this.set({ rows: items, next, fresh: 0, more: false, problem: null, slow: false, known: true });
    } catch (error) {
      this.fail(error);
    } finally {
      clearTimeout(timer);
      this.loading = false;
    }
  }

  /** Reads the next page. */
  async loadMore() {
    if (this.loading || !this.state.next) return;
    this.loading = true;
    try {
      const { items, next } = await this.read(this.state.next);
      const known = new Set(this.state.rows.map((row) => row.id));
      this.set({ rows: [...this.state.rows, ...items.filter((/** @type {any} */ row) => !known.has(row.id))], next });
    } catch (error) {
      this.fail(error);
    } finally {
      this.loading = false;
    }
  }

  /** @param {unknown} error */
  fail(error) {
    if (!(error instanceof ApiProblem)) throw error;
    // A server that is away takes nothing from the screen: the bar above says so.
    if (error.problem.status !== 0 || !this.state.known) this.set({ problem: error.problem, slow: false });
  }

  /** Takes changes of runs: known ones change in their place, new ones are counted. @param {any} data */
  hear({ rows, gone }) {
    const changed = new Map(rows.map((/** @type {any} */ row) => [row.id, row]));
    const lost = new Set(gone);
    const shown = this.state.rows.filter((row) => !lost.has(row.id));
    this.set({ rows: shown.map((row) => ({ ...row, ...changed.get(row.id) })) });
    this.lookSoon();
  }

  lookSoon(after = LOOK_MS) {
    this.timer ||= setTimeout(() => {
      this.timer = 0;
      this.look().catch(() => {});
    }, after);
  }

  /** Reads the first page again: it counts the runs that the list does not show yet, and has the results of the others. */
  async look() {
    const { items } = await this.read();
    const rows = this.state.rows;
    const ids = new Set(rows.map((row) => row.id));
    const newest = rows.reduce((most, row) => Math.max(most, row.created_at), 0);
    const fresh = items.filter((/** @type {any} */ row) => !ids.has(row.id) && row.created_at >= newest);
    if (!rows.length && fresh.length) return this.load();
    const now = new Map(items.map((/** @type {any} */ row) => [row.id, row]));
    this.set({ rows: rows.map((row) => now.get(row.id) ?? row), fresh: fresh.length, more: fresh.length === PAGE });
    // The server reads the result of a run a moment after its end.
    const due = items.filter((/** @type {any} */ row) => row.status === "completed" && !row.result);
    if (due.some((/** @type {any} */ row) => ids.has(row.id) && !this.awaited.has(row.id))) {
      due.forEach((/** @type {any} */ row) => this.awaited.add(row.id));
      this.lookSoon(RESULT_MS);
    }
  }

  /** @returns {() => void} stops it */
  start() {
    this.load();
    const stop = listen((frame) => {
      if (frame.event === "runs") this.hear(frame.data);
    });
    let lost = lostSince.value;
    const back = lostSince.subscribe((now) => {
      if (lost && !now) this.lookSoon();
      lost = now;
    });
    return () => {
      this.gone = true;
      clearTimeout(this.timer);
      stop();
      back();
    };
  }
}

/**
 * @param {string} query
 * @returns {Pages & { reload: () => void, loadMore: () => void }}
 */
export function useRunPages(query) {
  const [state, setState] = useState({ query, pages: NOTHING });
  const store = useMemo(() => new RunPages(query, (pages) => setState({ query, pages })), [query]);
  useEffect(() => store.start(), [store]);
  const pages = state.query === query ? state.pages : NOTHING;
  return { ...pages, reload: () => store.load(), loadMore: () => store.loadMore() };
}
