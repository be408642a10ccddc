// The state of each node of a flowchart, from the steps of a run. Pure: no element, no request.

import { number, plural, shown } from "./words.js";

/** Counts of a fan; of a loop if `rounds`, whose `total` is the most that there may be. @typedef {{ total: number, done: number, failed: number, rounds?: boolean }} Items */
/** @typedef {{ path: string, status: string, items?: Items, message?: string, survived?: string, elapsed?: number }} Step */
/** @typedef {{ status: string, word: string, icon: string, tone: string, note?: string }} NodeState */

/** How two runs differ at a step, for a chart that compares them. @type {Record<string, { word: string, icon: string, tone: string }>} */
const DIFFERENCES = {
  same: { word: "same", icon: "check", tone: "quiet" },
  changed: { word: "changed", icon: "edit", tone: "warn" },
  only_a: { word: "only in A", icon: "left", tone: "live" },
  only_b: { word: "only in B", icon: "right", tone: "wait" },
};

/** Work of a step that has items, in a few words: `934 / 1,000, 3 failed`, `2 rounds`, `round 1 of ≤ 9`. @param {Items} items */
export function counts({ total, done, failed, rounds }) {
  if (rounds) {
    return done === total ? plural(done, "round") : `round ${number(Math.min(done + 1, total))} of ≤ ${number(total)}`;
  }
  return `${number(done + failed)} / ${number(total)}${failed ? `, ${number(failed)} failed` : ""}`;
}

/**
 * @param {string} status
 * @param {Step} [step]
 * @returns {NodeState}
 */
export function stateOf(status, step) {
  const known = DIFFERENCES[status] ?? shown(status, step?.survived);
  if (!step?.items) return { status, ...known };
  const failed = step.items.failed > 0 && status === "completed" ? { icon: "warning", tone: "warn" } : {};
  return { status, ...known, ...failed, note: counts(step.items) };
}

/**
 * The states of all places of a run's document, by path.
 *
 * A step of a called document or of an item of a fan has no state of its own in the head of a run: such a place has the
 * state of the step that it belongs to. The run of a directive has turns instead of steps: its one node has the state of
 * the run.
 *
 * @param {Step[]} steps
 * @param {string} [status] of the run
 * @returns {(path: string) => NodeState | null}
 */
export function runStates(steps, status = "") {
  const byPath = new Map(steps.map((step) => [step.path, step]));
  return (path) => {
    for (let at = path; at; at = at.slice(0, Math.max(0, at.lastIndexOf("/")))) {
      const step = byPath.get(at);
      if (step) return at === path ? stateOf(step.status, step) : inside(step);
    }
    return status ? stateOf(status) : null;
  };
}

/** The state of work inside of a step: the failure of one item is not the failure of the place. @param {Step} step */
function inside(step) {
  const status = step.status === "completed" && step.items && step.items.failed === step.items.total && step.items.total
    ? "failed"
    : step.status;
  return stateOf(status);
}

/**
 * The state of several steps that are drawn as one: the most urgent one speaks for all.
 *
 * @param {NodeState[]} states
 * @returns {NodeState | null}
 */
export function together(states) {
  const order = ["failed", "awaiting_input", "paused", "interrupted", "running", "changed", "only_a", "only_b"];
  for (const status of order) {
    const found = states.filter((one) => one.status === status);
    if (found.length) return { ...found[0], note: found.length > 1 ? plural(found.length, "step") : "" };
  }
  const done = states.filter((one) => one.status === "completed" || one.status === "same");
  if (done.length && done.length < states.length) {
    return { ...done[0], word: `${number(done.length)} of ${number(states.length)}` };
  }
  return states[0] ?? null;
}

/**
 * The steps that a folded node stands for, in the order of the document.
 *
 * @param {{ path: string | null, until?: string }} node
 * @param {string[]} paths of all steps, in the order of the document
 */
export function folded(node, paths) {
  if (!node.path) return [];
  const last = node.until || node.path;
  const first = paths.indexOf(node.path);
  if (first < 0) return [];
  let end = first;
  for (let at = first; at < paths.length; at++) {
    if (paths[at] === last || paths[at].startsWith(`${last}/`)) end = at;
  }
  return paths.slice(first, end + 1);
}
