// The tree of a run with its bars: a row for the run itself, then steps, items, turns and calls. Above 200 rows only
// those in view are in the document. The selected row stays where it is on the screen while rows are added.

import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../html.js";
import { addShortcuts } from "../keys.js";
import { keyInTree, nextInTrouble, RUN, shownRows, timeScale } from "../tree_model.js";
import { cut, duration, money } from "../words.js";
import { Icon } from "./icon.js";

/** @typedef {import("../tree_model.js").TreeRow} TreeRow */
/** @typedef {import("../tree_model.js").Tree} Tree */

const ALL = 200;
const BEYOND = 3;
const narrow = matchMedia("(max-width: 800px)");

/** How the state of a row is shown. @type {Record<string, [string, string, string]>} */
export const STATES = {
  pending: ["not begun", "dot", "quiet"],
  running: ["running", "running", "live"],
  waits: ["waits for you", "question", "wait"],
  done: ["done", "check", "good"],
  failed: ["failed", "cross", "bad"],
  stopped: ["stopped, reply not kept", "stop", "quiet"],
  skipped: ["skipped", "skip", "quiet"],
};
/** Kinds that have an icon of their own once they are done. @type {Record<string, string>} */
const KINDS = { turn: "model", call: "model", tool: "tool", group: "items", run: "result" };

/** @param {TreeRow} row @returns {[string, string, string]} word, icon, tone */
export function stateOf(row) {
  if (row.state === "done" && row.failed) return ["done, with failures inside", "warning", "warn"];
  const [word, icon, tone] = STATES[row.state] ?? [row.state, "dot", "quiet"];
  return [word, row.state === "done" ? KINDS[row.kind] ?? icon : icon, tone];
}

/** A row that is one question: what it took is the time that people took. @param {TreeRow} row */
export const waitsOnly = (row) => !row.children && row.waited > row.took;

/** @param {TreeRow} row @param {number} now seconds since the start */
export function tookOf(row, now) {
  if (row.state === "running" && row.kind !== "group") return Math.max(row.took, now - row.from - row.waited);
  return waitsOnly(row) ? row.waited : row.took;
}

/**
 * @param {{
 *   store: import("../run_store.js").RunStore, tree: Tree, first: TreeRow, selected: string,
 *   select: (path: string) => void, enter: () => void,
 * }} props `first` is the row about the run
 */
export function RunTree({ store, tree, first, selected, select, enter }) {
  const head = /** @type {any} */ (store.head.value);
  const [folds, setFolds] = useState(/** @type {Map<string, boolean>} */ (new Map()));
  const now = useSeconds(head.status === "running", tree);
  const rows = useMemo(
    () => [{ row: first, level: 1, size: 1, position: 1, open: false }, ...shownRows(tree, folds)],
    [tree, folds, first.label, first.hint, first.state],
  );
  const scale = useMemo(() => timeScale(tree, now), [tree, now]);
  const at = Math.max(0, rows.findIndex(({ row }) => row.path === selected));
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  const [from, to] = useRowsInView(place, rows.length, at, selected);

  /** Selects a row; the row for more loads them, and the one before it is selected. @param {number} index */
  const pick = (index) => {
    const { row } = rows[index];
    if (row.kind !== "more") return select(row.path);
    store.open(row.parent).catch(() => {});
    select(rows[index - 1].row.path);
  };
  /** @param {string} path @param {boolean} open */
  const fold = (path, open) => {
    setFolds((now) => new Map(now).set(path, open));
    const row = tree.rows.get(path);
    if (open && row?.children && !row.below.length) store.open(path).catch(() => {});
  };
  useEffect(() => {
    /** @param {number} to */
    const move = (to) => rows[to] && pick(to);
    /** @param {1 | -1} direction */
    const trouble = (direction) => {
      const path = nextInTrouble(rows, selected, direction);
      if (path) select(path);
    };
    return addShortcuts("Rows of the run", [
      { keys: "n", does: "Next failed or waiting row", run: () => trouble(1) },
      { keys: "p", does: "Previous failed or waiting row", run: () => trouble(-1) },
      { keys: "j", does: "Next row", run: () => move(at + 1) },
      { keys: "k", does: "Previous row", run: () => move(at - 1) },
    ]);
  }, [rows, at]);

  /** @param {KeyboardEvent} event */
  const onKeyDown = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const leads = keyInTree(rows, at, event.key);
    if (event.key === "Enter") enter();
    else if (leads.at !== undefined) pick(leads.at);
    else if (leads.open !== undefined) fold(leads.open, true);
    else if (leads.close !== undefined) fold(leads.close, false);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return html`
    <div class="tree-head" aria-hidden="true">
      <span>Step${scale.shortened && html`<i class="push">waits shortened</i>`}</span>
      <span class="tree-axis">${scale.ticks.map((tick, index) =>
        html`<span key=${index} style=${{ insetInlineStart: `${index * 25}%` }}>${tick ? duration(tick) : "0"}</span>`
      )}</span>
      <span>Took</span><span class="tree-cost">Cost</span>
    </div>
    <div ref=${place} class="tree" role="tree" aria-label="Steps of the run" tabindex="0"
      aria-activedescendant="tree-row-${at}" onKeyDown=${onKeyDown}>
      <div class="tree-space" role="presentation" style=${{ height: `calc(${from} * var(--row))` }}></div>
      ${rows.slice(from, to).map((shown, index) =>
        html`
          <${Row} key=${shown.row.path} id="tree-row-${from + index}" shown=${shown} selected=${from + index === at}
            scale=${scale} now=${now} pick=${() => pick(from + index)} fold=${fold}
            writing=${store.streams.value.size > 0 && shown.row.state === "running" &&
              store.streams.value.has(shown.row.path)} />
        `
      )}
      <div class="tree-space" role="presentation" style=${{ height: `calc(${rows.length - to} * var(--row))` }}></div>
    </div>
  `;
}

/** @param {any} props */
function Row({ id, shown: { row, level, size, position, open }, selected, scale, now, pick, fold, writing }) {
  const [word, icon, tone] = stateOf(row);
  const took = tookOf(row, now);
  // People know an item by its text.
  const item = row.kind === "item" && row.hint;
  const hint = writing ? "model is writing" : item ? "" : cut(row.hint, 200);
  const number = item ? /\d+$/.exec(row.label)?.[0] : row.kind === "step" ? row.title : "";
  return html`
    <div id=${id} class="tree-row" role="treeitem" aria-level=${level} aria-setsize=${size}
      aria-posinset=${position}
      aria-selected=${selected} aria-expanded=${row.children ? open : undefined}
      aria-label=${[row.label, row.hint, word, took ? duration(took) : ""].filter(Boolean).join(", ")}
      onClick=${pick} onDblClick=${() => row.children && fold(row.path, !open)}>
      <span class="tree-name" style=${{ paddingInlineStart: `${(level - 1) * 14 + (row.children ? 0 : 20)}px` }}>
        ${row.children > 0 && html`
          <span class="fold" onClick=${(/** @type {Event} */ event) => {
            event.stopPropagation();
            fold(row.path, !open);
          }}><${Icon} name=${open ? "down" : "right"} /></span>
        `}
        <span class="tree-state ink-${tone}" title=${word}><${Icon} name=${icon} /></span>
        ${number && html`<span class="tree-step">${number}</span>`}
        <b>${cut(item ? row.hint : row.label, 200)}</b>
        ${hint && html`<span class="tree-hint">${hint}</span>`}
      </span>
      <${Bar} row=${row} scale=${scale} now=${now} tone=${tone} />
      ${took > 0 && html`<span class="number tree-took">${duration(took)}</span>`}
      ${row.cost !== 0 && html`<span class="number tree-cost">${row.cost === null ? "?" : money(row.cost)}</span>`}
    </div>
  `;
}

/** @param {{ row: TreeRow, scale: any, now: number, tone: string }} props */
function Bar({ row, scale, now, tone }) {
  if (!row.effects && row.state !== "running" && row.state !== "waits" || row.path === RUN) {
    return null;
  }
  const start = scale.at(row.from);
  const open = row.state === "running" || row.state === "waits";
  const width = scale.at(open ? now : row.from + row.took + row.waited) - start;
  const kind = waitsOnly(row) || row.state === "waits"
    ? "wait"
    : row.children
    ? "span"
    : row.failed
    ? "bad"
    : row.kind === "tool"
    ? "tool"
    : "";
  const place = { insetInlineStart: `${start * 100}%`, width: `${width * 100}%` };
  return html`
    <span class="tree-bars">
      ${row.buckets?.length
        ? html`
          <svg class="buckets" viewBox="0 0 ${row.buckets.length} 1" preserveAspectRatio="none" aria-hidden="true"
            style=${place}>
            <path class="fill-good" d=${columns(
              row.buckets,
              ([ok, failed]) => [failed / (ok + failed || 1), ok + failed ? 1 : 0.9],
            )} />
            <path class="fill-bad" d=${columns(row.buckets, ([ok, failed]) => [0, failed / (ok + failed || 1)])} />
          </svg>
        `
        : html`<span class="tree-bar bar-${kind || tone}" style=${place}></span>`}
    </span>
  `;
}

/** @param {[number, number][]} buckets @param {(bucket: [number, number]) => number[]} part from and to, from below */
function columns(buckets, part) {
  return buckets.map((bucket, at) => {
    const [from, to] = part(bucket);
    return to > from ? `M${at} ${1 - from}h1V${1 - to}h-1z` : "";
  }).join("");
}

/** @param {boolean} live @param {Tree | null} tree @returns {number} seconds from the start to now, or to the end */
export function useSeconds(live, tree) {
  const [, tick] = useState(0);
  useEffect(() => {
    if (!live) return;
    const timer = setInterval(() => tick((count) => count + 1), 1000);
    return () => clearInterval(timer);
  }, [live]);
  if (!tree) return 0;
  const ends = tree.top.map((path) => tree.rows.get(path)).map((row) => row ? row.from + row.took + row.waited : 0);
  return Math.max(live ? Date.now() / 1000 - tree.start : 0, ...ends, 0.001);
}

/**
 * The first and the last row that are drawn. The selected row keeps its place on the screen when rows come above it, and
 * comes into view when another is selected.
 *
 * @param {{ current: HTMLElement | null }} place
 * @param {number} count
 * @param {number} at
 * @param {string} selected
 */
function useRowsInView(place, count, at, selected) {
  const [view, setView] = useState([0, 60]);
  const before = useRef({ at, selected });
  useEffect(() => {
    const look = () => {
      const box = place.current?.getBoundingClientRect();
      const outer = place.current?.parentElement?.getBoundingClientRect();
      if (!box || !outer) return;
      const row = heightOfRow();
      const top = Math.max(0, outer.top), bottom = Math.min(innerHeight, outer.bottom);
      const next = [
        Math.max(0, Math.floor((top - box.top) / row) - BEYOND),
        Math.ceil((bottom - box.top) / row) + BEYOND,
      ];
      setView((now) => now[0] === next[0] && now[1] === next[1] ? now : next);
    };
    look();
    addEventListener("scroll", look, { capture: true, passive: true });
    addEventListener("resize", look);
    return () => {
      removeEventListener("scroll", look, { capture: true });
      removeEventListener("resize", look);
    };
  }, []);
  useLayoutEffect(() => {
    const last = before.current;
    before.current = { at, selected };
    const tree = place.current;
    const scroller = narrow.matches ? document.scrollingElement : tree?.parentElement;
    if (!tree || !scroller) return;
    const row = heightOfRow();
    if (last.selected === selected) {
      if (at === last.at) return;
      // Where the rows do not fill the panel, room below them lets it scroll.
      const top = narrow.matches ? 0 : scroller.getBoundingClientRect().top;
      const to = scroller.scrollTop + (at - last.at) * row;
      const bottom = tree.getBoundingClientRect().bottom - top + scroller.scrollTop;
      tree.style.marginBottom = `${Math.max(0, to + scroller.clientHeight - bottom)}px`;
      scroller.scrollTop = to;
      return;
    }
    if (narrow.matches) return;
    const top = tree.offsetTop + at * row;
    const head = tree.offsetTop;
    if (top - head < scroller.scrollTop) scroller.scrollTop = top - head;
    else if (top + row > scroller.scrollTop + scroller.clientHeight) {
      scroller.scrollTop = top + row - scroller.clientHeight;
    }
  }, [at, selected, count]);
  if (count <= ALL) return [0, count];
  const from = Math.min(view[0], Math.max(0, count - 1));
  return [from, Math.min(count, Math.max(view[1], from + 1))];
}

/** Rows are taller where fingers use them, as `--row` says. */
function heightOfRow() {
  return narrow.matches ? 40 : 28;
}
