// Compare: two runs step by step in the order of the document, with everything that differs word by word.

import { part } from "../api.js";
import { stateOf } from "../chart_states.js";
import { html, useEffect, useState } from "../html.js";
import { addShortcuts } from "../keys.js";
import { Age, Command, Empty, Placeholder, ProblemBox, Status, Tabs } from "../parts/basics.js";
import { Graph } from "../parts/graph.js";
import { Icon } from "../parts/icon.js";
import { Change, signed, StepDiff } from "../parts/diff.js";
import { useResource } from "../resource.js";
import { Link, place, setQuery, useTitle } from "../router.js";
import { duration, money, number, plural } from "../words.js";

const OPENED = 3;
const MOST = 200;
/** @type {Record<string, string>} */
const CHART = { same: "same", changed: "changed", only_in_a: "only_a", only_in_b: "only_b" };

/** @param {{ a: string, b: string }} props */
export function Compare({ a, b }) {
  useTitle("Compare");
  const touches = (/** @type {import("../feed.js").Frame} */ frame) =>
    frame.event === "runs" && frame.data.rows.some((/** @type {any} */ row) => row.id === a || row.id === b);
  const { data: diff, problem, slow, reload } = useResource(`/runs/${part(a)}/diff/${part(b)}?brief=true`, touches);
  const asked = place.value.query.get("view") ?? "";
  if (problem) {
    return html`
      <h1 tabindex="-1">Compare</h1>
      <${ProblemBox} problem=${problem} retry=${reload} />
    `;
  }
  if (!diff) return html`<h1 tabindex="-1">Compare</h1>${slow && html`<${Placeholder} lines=${8} />`}`;
  const here = `/compare/${part(a)}/${part(b)}`;
  const tabs = [
    { name: "Steps", to: here, here: asked !== "graph" },
    { name: "Graph", to: `${here}?view=graph`, here: asked === "graph" },
  ];
  return html`
    <div class="head runs-head">
      <h1 tabindex="-1">Compare</h1>
      <div class="actions push">
        <${Link} class="button" to="/compare/${part(b)}/${part(a)}"><${Icon} name="compare" />Swap</${Link}>
        <${Command} command=${diff.command} />
      </div>
    </div>
    <${Heads} rows=${diff.rows} />
    <${About} about=${diff.about} rows=${diff.rows} />
    <${Tabs} label="Views of the comparison" tabs=${tabs} link=${Link} />
    ${asked === "graph"
      ? html`<${CompareGraph} diff=${diff} here=${here} />`
      : html`<${Steps} key=${here} diff=${diff} />`}
  `;
}

/** @param {{ rows: { a: any, b: any } }} props */
function Heads({ rows }) {
  const { a, b } = rows;
  const took = (/** @type {any} */ row) => Math.max(0, row.updated_at - row.created_at);
  const tokens = (/** @type {any} */ row) => row.input_tokens + row.output_tokens;
  const cost = a.cost === null || b.cost === null ? "" : signed(b.cost - a.cost, money);
  return html`
    <div class="compare-heads">
      ${[["A", a], ["B", b]].map(([name, row]) =>
        html`
          <section class="card" key=${name} aria-label="Run ${name}">
            <p class="compare-name"><b>${name}</b><${Status} status=${row.status} />
              <${Link} to="/runs/${part(row.id)}">${row.title || row.document}</${Link}></p>
            <p class="soft small"><code>${row.id}</code> · <${Age} at=${row.created_at} />${row.origin &&
              html`
                ${" · "}fork of <code>${row.origin.run}</code> at step ${row.origin.step}
              `}</p>
            <p class="number">${money(row.cost)} · ${duration(took(row))} · ${number(tokens(row))} tokens</p>
          </section>
        `
      )}
    </div>
    <p class="compare-delta soft number">B against A: ${cost && `${cost}, `}${signed(
      took(b) - took(a),
      duration,
    )}, ${signed(tokens(b) - tokens(a), number)} tokens</p>
  `;
}

/** @param {{ about: any[], rows: { a: any, b: any } }} props */
function About({ about, rows }) {
  const shown = about.filter((change) => change.what !== "status" && change.what !== "document");
  const edited = about.some((change) => change.what === "document");
  if (!shown.length && !edited) {
    return html`<p class="about-same soft"><${Icon} name="check" />Same document, model and inputs.</p>`;
  }
  return html`
    <section class="card about" aria-label="Differences of the runs as a whole">
      <h2>The runs as a whole</h2>
      ${edited &&
        html`<p><${Icon} name="edit" />${
          rows.a.document === rows.b.document
            ? "The document was edited between the two runs; steps are matched by their place."
            : `Different documents: ${rows.a.document} and ${rows.b.document}; steps are matched by their place.`
        }</p>`}
      ${shown.map((change) => html`<${Change} key=${change.what + change.where} change=${change} />`)}
    </section>
  `;
}

/** @param {{ diff: any }} props */
function Steps({ diff }) {
  const different = diff.steps.filter((/** @type {any} */ step) => step.state !== "same");
  const changed = different.filter((/** @type {any} */ step) => step.state === "changed");
  const asked = place.value.query.get("step");
  const first = asked ? [asked] : changed.slice(0, OPENED).map((/** @type {any} */ step) => step.path);
  const [open, setOpen] = useState(/** @type {Set<string>} */ (new Set(first)));
  const [most, setMost] = useState(MOST);
  /** @param {string} path */
  const toggle = (path) =>
    setOpen((now) => {
      const next = new Set(now);
      if (!next.delete(path)) next.add(path);
      return next;
    });
  useEffect(() => {
    if (!asked) return;
    setOpen((now) => new Set([...now, asked]));
    document.getElementById(`diff-${asked}`)?.scrollIntoView({ block: "nearest" });
  }, [asked]);
  useDifferenceKeys(different.map((/** @type {any} */ step) => step.path), asked ?? "");
  if (!different.length) return html`<${Empty} title="All ${number(diff.steps.length)} steps are the same." />`;
  const groups = grouped(diff.steps);
  return html`
    <p class="soft compare-sum" role="status">${summary(diff.steps)}</p>
    <div class="step-diffs">
      ${groups.slice(0, most).map((group) =>
        Array.isArray(group) ? html`<${SameSteps} key=${`same-${group[0].path}`} steps=${group} />` : html`
          <${StepDiff} key=${group.path} a=${diff.a} b=${diff.b} step=${group} open=${open.has(group.path)}
            onToggle=${() => toggle(group.path)} />
        `
      )}
      ${groups.length > most && html`
        <button type="button" class="button" onClick=${() => setMost(most + MOST)}>${number(
          groups.length - most,
        )} more</button>
      `}
    </div>
  `;
}

/** @param {any[]} steps @returns {string} */
function summary(steps) {
  const count = (/** @type {string} */ state) => steps.filter((step) => step.state === state).length;
  const words = [
    [count("changed"), "changed"],
    [count("only_in_a"), "only in A"],
    [count("only_in_b"), "only in B"],
    [count("same"), "the same"],
  ];
  return `${plural(steps.length, "step")}: ${
    words.filter(([many]) => many).map(([many, word]) => `${many} ${word}`).join(", ")
  }.`;
}

/** Neighbours that are the same stand together. @param {any[]} steps @returns {(any | any[])[]} */
function grouped(steps) {
  /** @type {(any | any[])[]} */
  const groups = [];
  for (const step of steps) {
    const last = groups.at(-1);
    if (step.state !== "same") groups.push(step);
    else if (Array.isArray(last)) last.push(step);
    else groups.push([step]);
  }
  return groups;
}

/** @param {{ steps: any[] }} props */
function SameSteps({ steps }) {
  const [open, setOpen] = useState(false);
  return html`
    <div class="same-steps">
      <button type="button" class="step-toggle" aria-expanded=${open} onClick=${() => setOpen(!open)}>
        <${Icon} name=${open ? "down" : "right"} />${plural(steps.length, "step")} the same</button>
      ${open &&
        html`<ul>${
          steps.slice(0, MOST).map((step) =>
            html`<li key=${step.path}><span class="number step-label">${step.step}</span>${step.title}</li>`
          )
        }</ul>`}
    </div>
  `;
}

/** @param {{ diff: any, here: string }} props */
function CompareGraph({ diff, here }) {
  const { data: chart, problem, slow, reload } = useResource(`/runs/${part(diff.b)}/graph`);
  if (problem) return html`<${ProblemBox} problem=${problem} retry=${reload} />`;
  if (!chart) return slow && html`<${Placeholder} lines=${8} />`;
  const states = new Map(diff.steps.map((/** @type {any} */ step) => [step.path, stateOf(CHART[step.state])]));
  return html`
    <${Graph} chart=${chart} label="Differences on the graph of B" paths=${[...states.keys()]}
      states=${(/** @type {string} */ path) => states.get(path) ?? null}
      stepLink=${(/** @type {string} */ path) => `${here}?step=${encodeURIComponent(path)}`} />
  `;
}

/** @param {string[]} paths of the steps that differ @param {string} at */
function useDifferenceKeys(paths, at) {
  useEffect(() => {
    const move = (/** @type {number} */ by) => {
      const next = paths[Math.max(0, Math.min(paths.length - 1, paths.indexOf(at) + by))];
      if (next) setQuery({ step: next });
    };
    return addShortcuts("Compare", [
      { keys: "n", does: "Next difference", run: () => move(1) },
      { keys: "p", does: "Previous difference", run: () => move(-1) },
    ]);
  });
}
