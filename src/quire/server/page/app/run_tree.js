// The steps of a run as a tree: which step is below which, which rows are in view, and where a key leads. Pure.

/** @typedef {import("./run_store.js").Step} Step */
/** @typedef {{ step: Step, level: number, parent: string, size: number, position: number, children: number, open: boolean }} Row */

const ATTENTION = new Set(["failed", "awaiting_input"]);

/**
 * @param {Step[]} steps in document order
 * @returns {Map<string, string[]>} the paths below each path; those of the top level are below ""
 */
export function childrenOf(steps) {
  const known = new Set(steps.map((step) => step.path));
  /** @type {Map<string, string[]>} */
  const below = new Map([["", []]]);
  for (const { path } of steps) {
    const parent = parentOf(path, known);
    const list = below.get(parent);
    if (list) list.push(path);
    else below.set(parent, [path]);
  }
  return below;
}

/** @param {string} path @param {Set<string>} known */
export function parentOf(path, known) {
  for (let at = path.lastIndexOf("/"); at > 0; at = path.lastIndexOf("/", at - 1)) {
    if (known.has(path.slice(0, at))) return path.slice(0, at);
  }
  return "";
}

/**
 * @param {Step[]} steps
 * @param {Set<string>} closed paths whose rows below are hidden
 * @returns {Row[]} the rows that are not hidden
 */
export function treeRows(steps, closed) {
  const below = childrenOf(steps);
  const byPath = new Map(steps.map((step) => [step.path, step]));
  /** @type {Row[]} */
  const rows = [];
  /** @param {string} parent @param {number} level */
  const add = (parent, level) => {
    const paths = below.get(parent) ?? [];
    paths.forEach((path, at) => {
      const children = below.get(path)?.length ?? 0;
      const open = children > 0 && !closed.has(path);
      const step = /** @type {Step} */ (byPath.get(path));
      rows.push({ step, level, parent, size: paths.length, position: at + 1, children, open });
      if (open) add(path, level + 1);
    });
  };
  add("", 1);
  return rows;
}

/**
 * @param {Step[]} steps
 * @returns {string} the step to look at first: one that needs a person, or that runs, or the last that has ended
 */
export function firstToSee(steps) {
  const urgent = steps.find((step) => step.status === "awaiting_input") ??
    steps.find((step) => step.status === "failed" && !step.survived) ??
    steps.findLast((step) => step.status === "running" || step.status === "paused" || step.status === "interrupted") ??
    steps.findLast((step) => step.status === "completed");
  return (urgent ?? steps[0])?.path ?? "";
}

/**
 * @param {Step[]} steps
 * @param {string} from
 * @param {1 | -1} direction
 * @returns {string | undefined} the next failed or waiting step, around the end if need be
 */
export function nextInTrouble(steps, from, direction) {
  const at = steps.findIndex((step) => step.path === from);
  for (let away = 1; away <= steps.length; away++) {
    const step = steps[(at + direction * away + 2 * steps.length) % steps.length];
    if (step && (ATTENTION.has(step.status) && !step.survived || (step.items?.failed ?? 0) > 0)) return step.path;
  }
}

/**
 * Where a key of the WAI-ARIA tree pattern leads.
 *
 * @param {Row[]} rows
 * @param {number} at the active row
 * @param {string} key
 * @returns {{ at?: number, open?: string, close?: string }}
 */
export function keyInTree(rows, at, key) {
  const row = rows[at];
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
    case "l":
      if (!row?.children) return {};
      return row.open ? { at: at + 1 } : { open: row.step.path };
    case "ArrowLeft":
    case "h":
      if (row?.open) return { close: row.step.path };
      return row?.parent ? { at: rows.findIndex((one) => one.step.path === row.parent) } : {};
    default:
      return {};
  }
}

/**
 * @param {Step[]} steps
 * @param {string} path of a step, an item or a call
 * @returns {Step | undefined} the step that it belongs to
 */
export function stepOf(steps, path) {
  const byPath = new Map(steps.map((step) => [step.path, step]));
  return byPath.get(path) ?? byPath.get(parentOf(path, new Set(byPath.keys())));
}

/** Names of numbered parts of a path. @type {Record<string, string>} */
const NAMES = { retry: "try", for_each: "item", fold: "item", parallel: "branch" };

/**
 * @param {string} path
 * @param {string} above the path of the step that it belongs to
 * @returns {string} which item, try or repair a path stands for, in words
 */
export function partWords(path, above) {
  const words = [];
  for (
    const [, kind, at] of path.slice(above.length).matchAll(
      /\/(try|retry|repair|for_each|fold|parallel|turn|tool)\[([^\]]*)\]/g,
    )
  ) {
    words.push(`${NAMES[kind] ?? kind} ${at}`);
  }
  return words.join(", ");
}
