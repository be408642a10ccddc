// A run: its tree with bars on the left, the selected row on the right; one above the other on a phone. The address
// says which row and tab is shown; addresses of earlier versions lead to the same things.

import { part, query } from "../api.js";
import { html, useEffect, useState } from "../html.js";
import { addShortcuts } from "../keys.js";
import { Placeholder, ProblemBox } from "../parts/basics.js";
import { Guarded } from "../parts/guarded.js";
import { Icon } from "../parts/icon.js";
import { Pane } from "../parts/pane.js";
import { firstRow, RUN_TABS, RunPane } from "../parts/pane_run.js";
import { RunHead } from "../parts/run_head.js";
import { focusAnswer } from "../parts/run_question.js";
import { RunTree } from "../parts/tree.js";
import { useRun } from "../run_store.js";
import { go, place, setQuery, useTitle } from "../router.js";
import { firstToSee, newest, rowOf, rowWith, RUN } from "../tree_model.js";
import { number } from "../words.js";

/** @param {{ run: string, old?: string }} props `old` is the end of an address of an earlier version */
export function Run({ run, old }) {
  const store = useRun(run);
  const head = store.head.value;
  useTitle(head?.label ?? `Run ${run}`);
  useEffect(() => {
    if (old) go(`/runs/${part(run)}${moved(old, place.value.query)}`, { replace: true });
  }, [old]);
  if (!head) {
    return html`
      <h1 tabindex="-1">Run ${run}</h1>
      ${store.problem.value
        ? html`<${ProblemBox} problem=${store.problem.value} retry=${() => store.load()} />`
        : store.slow.value && html`<${Placeholder} lines=${6} />`}
    `;
  }
  return html`<${Sides} key=${run} store=${store} />`;
}

/** @param {string} old @param {URLSearchParams} asked @returns {string} the query that shows the same today */
export function moved(old, asked) {
  const [, first, rest] = /^([^/]*)\/?(.*)$/.exec(old) ?? [];
  switch (first) {
    case "steps":
    case "fans":
      return query({ step: asked.get("item") === null ? rest : `${rest}/for_each[${asked.get("item")}]` });
    case "journal":
      return query({ step: asked.get("effect"), tab: asked.get("effect") ? "raw" : "" });
    case "graph":
      return query({ view: "graph", step: asked.get("step"), open: asked.getAll("open") });
    case "values":
    case "document":
      return query({ tab: first });
    case "artifact":
      return query({ tab: "result" });
    default:
      return "";
  }
}

/** @param {import("../tree_model.js").Tree | null} tree @param {string} path @returns {string} the row that shows a path */
function rowFor(tree, path) {
  const row = tree?.rows.get(rowOf(tree, path));
  return row && !row.children ? row.path : path;
}

/** @param {{ store: import("../run_store.js").RunStore }} props */
function Sides({ store }) {
  const head = /** @type {any} */ (store.head.value);
  const tree = store.tree.value;
  const asked = place.value.query;
  const [follows, setFollows] = useState(head.status === "running" && !asked.get("step") && !asked.get("tab"));
  const [first, setFirst] = useState("");
  const tab = asked.get("tab") ?? "";
  const step = asked.get("step");
  const chosen = step ? rowFor(tree, step) : RUN_TABS.some(([name]) => name === tab) ? RUN : "";
  const live = head.status === "running" || head.status === "pending";
  // Chosen once: what a person looks at does not change because the run continues.
  useEffect(() => {
    if (tree && !first) setFirst(firstToSee(tree, head.status));
  }, [tree]);
  const selected = chosen || (follows && tree ? (live ? newest(tree) : firstToSee(tree, head.status)) : first || RUN);
  const row = tree?.rows.get(selected) ??
    (step && tree ? rowWith({ path: step, kind: "other", label: step, state: "" }) : null);

  /** @param {string} path */
  const select = (path) => {
    setFollows(false);
    setQuery({
      step: path === RUN ? undefined : path,
      tab: path === RUN ? "result" : asked.get("step") ? tab : undefined,
    });
  };
  const follow = () => {
    setFollows(true);
    setQuery({ step: undefined, tab: undefined });
  };
  useEffect(() =>
    addShortcuts("A run", [
      { keys: "f", does: "Follow the run", run: follow },
      {
        keys: "g",
        does: "Tree or graph",
        run: () => setQuery({ view: place.value.query.get("view") ? undefined : "graph" }),
      },
    ]), []);
  const graph = asked.get("view") === "graph";
  const [Chart, setChart] = useState(/** @type {any} */ (null));
  useEffect(() => {
    // Most runs are looked at as a tree: the modules of the graph come when they are asked for.
    if (graph) import("../parts/graph.js").then((module) => setChart(() => module.RunChart));
  }, [graph]);
  const failed = tree
    ? [...tree.rows.values()].filter((row) => !row.parent).reduce((sum, row) => sum + row.failed, 0)
    : 0;
  const enter = () => document.getElementById("pane-title")?.focus();
  const answer = (/** @type {string} */ path) => {
    select((tree && rowOf(tree, path)) || path);
    setTimeout(focusAnswer, 300);
  };
  return html`
    <div class="run">
      <${RunHead} store=${store} answer=${answer} />
      <div class="run-sides">
        <section class="run-left" aria-label="Steps">
          <div class="run-tools">
            <div class="switch" role="group" aria-label="How to show the steps">
              <button type="button" aria-pressed=${!graph} onClick=${() => setQuery({ view: undefined })}>Tree</button>
              <button type="button" aria-pressed=${graph} onClick=${() => setQuery({ view: "graph" })}>Graph</button>
            </div>
            ${failed > 0 && html`
              <button type="button" class="chip" title="Next failed row (n)"
                onClick=${() =>
                  dispatchEvent(new KeyboardEvent("keydown", { key: "n" }))}>Failed <span class="number">${number(
                    failed,
                  )}</span></button>
            `}
            ${live && html`
              <button type="button" class="chip" aria-pressed=${follows} title="Follow (f)"
                onClick=${() => follows ? setFollows(false) : follow()}><${Icon} name="down" />Follow</button>
            `}
          </div>
          <${Guarded} key=${graph} what="the steps">
            ${graph ? Chart && html`<${Chart} store=${store} />` : html`
              <div class="tree-panel" onWheel=${() => setFollows(false)} onTouchMove=${() => setFollows(false)}>
                ${tree
                  ? html`
                    <${RunTree} store=${store} tree=${tree} first=${firstRow(head)} selected=${tree.rows.has(selected)
                      ? selected
                      : rowOf(tree, selected) || RUN} select=${select}
                      enter=${enter} />
                  `
                  : html`<${Placeholder} lines=${8} />`}
              </div>
            `}
          </${Guarded}>
        </section>
        <section class="pane" aria-label="Selected row">
          <${Guarded} key=${selected} what="this row">
            ${row && selected !== RUN
              ? html`<${Pane} key=${selected} store=${store} row=${row} tab=${tab} />`
              : html`<${RunPane} store=${store} tab=${tab} />`}
          </${Guarded}>
        </section>
      </div>
    </div>
  `;
}
