// The tree of a run: rows that the server sends as columns, changed by events until it is asked again. Pure: no element,
// no request. tests/server/tree_cases.json has the rules that runs/tree.py shares.

/**
 * @typedef {{
 *   path: string, parent: string, kind: string, label: string, title: string, hint: string, state: string, from: number,
 *   took: number, waited: number, cost: number | null, in: number, out: number, effects: number, failed: number,
 *   children: number, buckets: [number, number][] | null, below: string[], next: string | null,
 * }} TreeRow
 */
/** @typedef {{ rows: Map<string, TreeRow>, top: string[], start: number, end: number | null, partial: boolean,
 *   asked: Map<string, number>, told: Map<string, any> }} Tree `asked` has times of questions, `told` effects since then */
/** @typedef {{ row: TreeRow, level: number, size: number, position: number, open: boolean }} Shown */

/** Seconds in which nothing ran that are drawn as they are. */
const SHORTEST_GAP = 2;
/** The row about the whole run: no path of a document is like it. */
export const RUN = "=";
const NUMBERS = ["from", "took", "waited", "in", "out", "effects", "failed", "children"];
const TEXTS = ["kind", "label", "title", "hint", "state"];

/** @returns {Tree} that of a run of which nothing is known */
export function nothing() {
  return { rows: new Map(), top: [], start: 0, end: 0, partial: false, asked: new Map(), told: new Map() };
}

/** @param {any} answer of the server @returns {Tree} */
export function treeOf(answer) {
  const { start, end, partial } = answer;
  return withPage({ ...nothing(), start, end, partial }, "", answer);
}

/**
 * Adds a page of rows below a row; the rows that are there keep what is below them.
 *
 * @param {Tree} tree
 * @param {string} under
 * @param {any} answer
 * @returns {Tree}
 */
export function withPage(tree, under, answer) {
  const { path: paths, parent: above, cost, buckets } = answer.rows;
  const seen = new Set(under ? tree.rows.get(under)?.below : tree.top);
  paths.forEach((/** @type {string} */ path, /** @type {number} */ at) => {
    const parent = above[at] < 0 ? under : paths[above[at]];
    /** @type {any} */
    const row = { path, parent, cost: cost[at], buckets: buckets?.[at] ?? null, below: [], next: null };
    for (const name of NUMBERS) row[name] = answer.rows[name][at] ?? 0;
    for (const name of TEXTS) row[name] = answer.rows[name][at] ?? "";
    tree.rows.set(path, { ...row, below: tree.rows.get(path)?.below ?? [] });
    if (seen.has(path)) return;
    seen.add(path);
    (parent ? tree.rows.get(parent)?.below : tree.top)?.push(path);
  });
  const owner = tree.rows.get(under);
  if (owner) tree.rows.set(under, { ...owner, next: answer.next });
  return { ...tree };
}

/**
 * @param {Tree} tree
 * @param {Map<string, boolean>} folds rows that the user has opened or closed
 * @returns {Shown[]} the rows that are not hidden, in their order
 */
export function shownRows(tree, folds) {
  /** @type {Shown[]} */
  const rows = [];
  /** @param {string[]} paths @param {number} level */
  const add = (paths, level) =>
    paths.forEach((path, at) => {
      const row = /** @type {TreeRow} */ (tree.rows.get(path));
      const open = folds.get(path) ?? row.below.length > 0;
      rows.push({ row, level, size: paths.length, position: at + 1, open: open && row.children > 0 });
      if (open) add(row.below, level + 1);
      if (open && row.next) {
        const more = rowWith({ path: `${path}~more`, parent: path, kind: "more", label: "More", state: "pending" });
        rows.push({
          row: more,
          level: level + 1,
          size: row.below.length + 1,
          position: row.below.length + 1,
          open: false,
        });
      }
    });
  add(tree.top, 1);
  return rows;
}

/** @param {Tree} tree @param {(row: TreeRow) => boolean} fits @returns {TreeRow[]} rows without such rows below them */
function deepest(tree, fits) {
  const all = [...tree.rows.values()].filter(fits);
  const above = new Set(all.map((row) => row.parent));
  return all.filter((row) => !above.has(row.path));
}

/** @param {Tree} tree @returns {string} the row that began last of those that are under way, or else the last that began */
export function newest(tree) {
  const running = deepest(tree, (row) => row.state === "running" && row.kind !== "group");
  const begun = running.length ? running : deepest(tree, (row) => row.effects > 0 && row.kind !== "group");
  return begun.reduce((last, row) => row.from >= (last?.from ?? 0) ? row : last, begun[0])?.path ?? RUN;
}

/** @param {Tree} tree @param {string} status of the run @returns {string} the row to look at first */
export function firstToSee(tree, status) {
  if (status === "awaiting_input") return deepest(tree, (row) => row.state === "waits")[0]?.path ?? RUN;
  return status === "running" ? newest(tree) : RUN;
}

/** @param {Shown[]} rows @param {string} from @param {1 | -1} direction @returns {string | undefined} */
export function nextInTrouble(rows, from, direction) {
  const at = rows.findIndex(({ row }) => row.path === from);
  for (let away = 1; away <= rows.length; away++) {
    const { row } = rows[(at + direction * away + 2 * rows.length) % rows.length];
    if (row.path !== RUN && (row.state === "waits" || row.state === "failed")) return row.path;
  }
}

/** @param {Tree} tree @param {string} path @returns {TreeRow[]} the rows above a row, the outermost first */
export function above(tree, path) {
  const rows = [];
  for (let row = tree.rows.get(tree.rows.get(path)?.parent ?? ""); row; row = tree.rows.get(row.parent)) {
    rows.unshift(row);
  }
  return rows;
}

/** @param {Tree} tree @param {string} path @returns {string} the row of a path that may be inside of it, or "" */
export function rowOf(tree, path) {
  for (let at = path; at; at = at.slice(0, Math.max(0, at.lastIndexOf("/")))) if (tree.rows.has(at)) return at;
  return "";
}

/** The parts of a row that nothing is known of. */
const EMPTY = { hint: "", from: 0, took: 0, waited: 0, cost: 0, in: 0, out: 0, effects: 0, failed: 0, children: 0 };

/**
 * @param {Partial<TreeRow> & { path: string, kind: string, label: string, state: string }} fields
 * @returns {TreeRow} a row that the server did not send: about the run, or inside of a row that is not opened
 */
export function rowWith(fields) {
  return { parent: "", title: fields.label, ...EMPTY, buckets: null, below: [], next: null, ...fields };
}

/**
 * Where a key of the WAI-ARIA tree pattern leads.
 *
 * @param {Shown[]} rows
 * @param {number} at the selected row
 * @param {string} key
 * @returns {{ at?: number, open?: string, close?: string }}
 */
export function keyInTree(rows, at, key) {
  const shown = rows[at];
  switch (key) {
    case "ArrowDown":
    case "j":
      return { at: Math.min(at + 1, rows.length - 1) };
    case "ArrowUp":
    case "k":
      return { at: Math.max(at - 1, 0) };
    case "Home":
      return { at: 0 };
    case "End":
      return { at: rows.length - 1 };
    case "ArrowRight":
      if (!shown?.row.children) return {};
      return shown.open ? { at: at + 1 } : { open: shown.row.path };
    case "ArrowLeft": {
      if (shown?.open) return { close: shown.row.path };
      const parent = rows.findIndex(({ row }) => row.path === shown?.row.parent);
      return parent < 0 ? {} : { at: parent };
    }
    default:
      return {};
  }
}

/**
 * The axis of the bars. Times in which no step did anything, such as waits for people, are drawn short and not counted.
 *
 * @param {Tree} tree
 * @param {number} end seconds since the start
 * @returns {{ at: (seconds: number) => number, ticks: number[], shortened: boolean }} `at` is a part of the whole
 */
export function timeScale(tree, end) {
  const spans = [...tree.rows.values()].filter((row) =>
    row.effects && (row.buckets || !row.below.length) && row.kind !== "group" && row.waited <= row.took
  )
    .map((row) => [row.from, row.state === "running" ? end : row.from + row.took + row.waited])
    .sort((span, other) => span[0] - other[0]);
  /** Busy times that do not overlap. @type {number[][]} */
  const busy = [];
  for (const [from, until] of spans) {
    const last = busy.at(-1);
    if (last && from <= last[1]) last[1] = Math.max(last[1], until);
    else busy.push([from, until]);
  }
  const work = busy.reduce((sum, [from, until]) => sum + until - from, 0) || end || 1;
  /** Corners of the axis: seconds, width until there, seconds that count until there. @type {number[][]} */
  const corners = [[0, 0, 0]];
  let shortened = false;
  for (const [until, waits] of [...busy.flatMap(([from, to]) => [[from, 1], [to, 0]]), [end, 1]]) {
    const [from, width, counted] = corners[corners.length - 1];
    const long = Boolean(waits) && until - from > Math.max(SHORTEST_GAP, work * 0.15);
    shortened ||= long;
    if (until > from) {
      corners.push([until, width + (long ? work * 0.06 : until - from), counted + (long ? 0 : until - from)]);
    }
  }
  const whole = corners[corners.length - 1][1] || 1;
  /** @param {number} value @param {number} by the column to look in @param {number} to the column to return */
  const along = (value, by, to) => {
    const next = Math.max(1, corners.findIndex((corner) => corner[by] >= value));
    const [low, high] = [corners[next - 1], corners[next] ?? corners[next - 1]];
    const part = high[by] > low[by] ? (value - low[by]) / (high[by] - low[by]) : 0;
    return low[to] + Math.min(1, Math.max(0, part)) * (high[to] - low[to]);
  };
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((at) => along(at * whole, 1, 2));
  return { at: (seconds) => along(Math.min(seconds, end), 0, 1) / whole, ticks, shortened };
}

/** What an event says about the state of its own row. @type {Record<string, string>} */
const STATES = { step_started: "running", step_completed: "done", step_skipped: "skipped", step_failed: "failed" };
/** Events of work that is under way. */
const OPENS = /^(delta|reading|retry|queued|agent_called|tool_called|question)$/;

/**
 * Changes the rows that an event is about, until the server is asked again, which also knows rows that are new.
 *
 * @param {Tree} tree
 * @param {any[]} events
 * @returns {Tree}
 */
export function applied(tree, events) {
  const rows = new Map(tree.rows);
  for (const event of events) {
    for (let row = rows.get(rowOf({ ...tree, rows }, itemOf(rows, event))); row; row = rows.get(row.parent)) {
      rows.set(row.path, changed(row, event, tree, rows));
    }
    if (event.type === "question") tree.asked.set(event.path, event.at);
    if (event.type === "effect") tree.told.set(event.path, event);
  }
  return { ...tree, rows };
}

/** @param {Map<string, TreeRow>} rows @param {any} event @returns {string} its path; of the end of an item that of the item */
function itemOf(rows, event) {
  if (event.type !== "fan_item") return event.path ?? "";
  const names = [
    `for_each[${event.index}]`,
    `fold[${event.index}]`,
    `repeat[${event.index + 1}]`,
    `parallel[${event.name}]`,
  ];
  return names.map((name) => `${event.path}/${name}`).find((path) => rows.has(path)) ?? "";
}

/** @param {TreeRow} row @param {any} event @param {Tree} tree @param {Map<string, TreeRow>} rows @returns {TreeRow} */
function changed(row, event, tree, rows) {
  const own = { ...row };
  const at = event.at - tree.start;
  if (row.path === event.path && STATES[event.type]) own.state = STATES[event.type];
  if (event.type === "fan_item" && row.kind === "item") own.state = event.state === "failed" ? "failed" : "done";
  if (OPENS.test(event.type)) {
    own.state = event.type === "question" ? "waits" : "running";
    if (row.state === "pending" && !row.effects) own.from = at;
  }
  if (event.type !== "effect") return own;
  const before = tree.told.get(event.path);
  const asked = event.kind === "ask" ? tree.asked.get(event.path) : undefined;
  const began = asked === undefined ? at - (event.elapsed ?? 0) : asked - tree.start;
  const isNew = !row.effects && row.state === "pending";
  const until = Math.max(at, isNew ? 0 : row.from + row.took + row.waited);
  own.from = isNew ? began : Math.min(row.from, began);
  if (asked !== undefined) own.waited += at - began;
  own.took = until - own.from - own.waited;
  own.effects += before ? 0 : 1;
  own.failed += Number(event.state === "failed") - Number(before?.state === "failed");
  own.in += (event.input_tokens ?? 0) - (before?.input_tokens ?? 0);
  own.out += (event.output_tokens ?? 0) - (before?.output_tokens ?? 0);
  if (event.cost === null) own.cost = null;
  else if (own.cost !== null) own.cost += (event.cost ?? 0) - (before?.cost ?? 0);
  const goesOn = /^(step|turn)$/.test(row.kind) && /^(running|waits)$/.test(row.state) ||
    row.below.some((path) => rows.get(path)?.state === "running");
  own.state = goesOn ? "running" : event.state === "failed" ? "failed" : "done";
  return own;
}
