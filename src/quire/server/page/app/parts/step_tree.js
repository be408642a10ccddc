// The steps of a run as a tree: states, durations, costs; fan-outs as one row, threads with their turns.

import { part } from "../api.js";
import { counts } from "../chart_states.js";
import { html, useEffect, useMemo, useRef, useState } from "../html.js";
import { addShortcuts } from "../keys.js";
import { go, Link } from "../router.js";
import { keyInTree, nextInTrouble, treeRows } from "../run_tree.js";
import { duration, money, number, shown } from "../words.js";
import { Icon } from "./icon.js";
import { VirtualList } from "./virtual_list.js";

const ROW = 32;

/** @param {{ run: string, steps: import("../run_store.js").Step[], selected: string }} props */
export function StepTree({ run, steps, selected }) {
  const [closed, setClosed] = useState(/** @type {Set<string>} */ (new Set()));
  const [active, setActive] = useState(selected);
  const typed = useRef({ text: "", at: 0 });
  const rows = useMemo(() => treeRows(steps, closed), [steps, closed]);
  const at = Math.max(0, rows.findIndex((row) => row.step.path === active));
  useEffect(() => setActive(selected), [selected]);

  /** @param {string} path */
  const open = (path) => go(`/runs/${run}/steps/${part(path)}`);
  /** @param {string} path @param {boolean} shut */
  const fold = (path, shut) =>
    setClosed((now) => {
      const next = new Set(now);
      if (shut) next.add(path);
      else next.delete(path);
      return next;
    });
  useEffect(() => {
    /** @param {1 | -1} direction */
    const trouble = (direction) => {
      const found = nextInTrouble(steps, selected, direction);
      if (found) open(found);
    };
    /** @param {number} by */
    const move = (by) => {
      const here = rows.findIndex((row) => row.step.path === selected);
      const next = rows[Math.max(0, Math.min(rows.length - 1, here + by))];
      if (next) open(next.step.path);
    };
    return addShortcuts("Steps", [
      { keys: "n", does: "Next failed or waiting step", run: () => trouble(1) },
      { keys: "p", does: "Previous failed or waiting step", run: () => trouble(-1) },
      { keys: "j", does: "Next step", run: () => move(1) },
      { keys: "k", does: "Previous step", run: () => move(-1) },
    ]);
  }, [rows, selected]);

  /** @param {KeyboardEvent} event */
  const onKeyDown = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      return open(rows[at]?.step.path ?? "");
    }
    const leads = keyInTree(rows, at, event.key);
    if (leads.at !== undefined) setActive(rows[leads.at]?.step.path ?? active);
    else if (leads.open !== undefined) fold(leads.open, false);
    else if (leads.close !== undefined) fold(leads.close, true);
    else if (!/^[0-9a-z]$/i.test(event.key) || /^[npsgtvwfc]$/.test(event.key)) return;
    else {
      const now = event.timeStamp;
      typed.current = { text: now - typed.current.at < 700 ? typed.current.text + event.key : event.key, at: now };
      const wanted = typed.current.text.toLowerCase();
      const found = rows.find(({ step }) => `${step.label} ${step.title}`.toLowerCase().startsWith(wanted)) ??
        rows.find(({ step }) => step.title.toLowerCase().startsWith(wanted));
      if (found) setActive(found.step.path);
    }
    event.preventDefault();
    event.stopPropagation();
  };
  return html`
    <${VirtualList} pane class="step-tree" role="tree" label="Steps" count=${rows.length} rowHeight=${ROW} shows=${at}
      aria-activedescendant=${rows.length ? `step-row-${at}` : undefined} onKeyDown=${onKeyDown}
      row=${(/** @type {number} */ index) => {
        const row = rows[index];
        return html`
          <${TreeRow} key=${row.step.path} id="step-row-${index}" run=${run} row=${row} active=${index === at}
            selected=${row.step.path === selected} fold=${fold} />
        `;
      }} />
  `;
}

/**
 * @param {{ id: string, run: string, row: import("../run_tree.js").Row, active: boolean, selected: boolean,
 *   fold: (path: string, shut: boolean) => void }} props
 */
function TreeRow({ id, run, row, active, selected, fold }) {
  const { step } = row;
  const { word, icon, tone } = shown(step.status, step.survived);
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    place.current?.style.setProperty("--level", String(row.level - 1));
  }, [row.level]);
  const items = step.items;
  return html`
    <div ref=${place} id=${id} class="tree-row ${active ? "active" : ""}" role="treeitem" aria-level=${row.level}
      aria-setsize=${row.size} aria-posinset=${row.position} aria-selected=${selected}
      aria-expanded=${row.children ? row.open : undefined}>
      ${row.children
        ? html`
          <button type="button" class="fold" tabindex="-1" aria-hidden="true"
            onClick=${() => fold(step.path, row.open)}><${Icon} name=${row.open ? "down" : "right"} /></button>
        `
        : html`<span class="fold"></span>`}
      <${Link} to="/runs/${run}/steps/${part(step.path)}" class="tree-link" tabindex="-1" title="${step.way} ${step
        .title}: ${word}">
        <span class="tree-state tone-${tone}"><${Icon} name=${icon} /><span class="visually-hidden">${word}</span></span>
        <span class="tree-label">${step.label}</span>
        <span class="tree-title">${step.title}</span>
        ${items &&
          html`<span class="tree-items">${
            items.rounds ? counts(items) : `${number(items.done + items.failed)} / ${number(items.total)}`
          }${items.failed ? html`, <b>${number(items.failed)} failed</b>` : ""}</span>`}
        ${!items &&
          html`<span class="tree-facts number">${step.elapsed ? duration(step.elapsed) : ""}${
            step.cost ? html`<span> ${money(step.cost)}</span>` : ""
          }</span>`}
      </${Link}>
    </div>
  `;
}
