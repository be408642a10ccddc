// The graph of a run: the flowchart of its pinned document, coloured by the states of its steps.

import { part, query } from "../api.js";
import { runStates } from "../chart_states.js";
import { html } from "../html.js";
import { Placeholder, ProblemBox } from "../parts/basics.js";
import { Graph } from "../parts/graph.js";
import { RunFrame } from "../parts/run_frame.js";
import { useResource } from "../resource.js";
import { place } from "../router.js";

/** @param {{ run: string }} props */
export function RunGraph({ run }) {
  return html`
    <${RunFrame} run=${run} tab="graph">
      ${(/** @type {import("../run_store.js").RunStore} */ store) => html`<${RunChart} store=${store} />`}
    </${RunFrame}>
  `;
}

/** @param {{ store: import("../run_store.js").RunStore }} props */
function RunChart({ store }) {
  const head = /** @type {import("../run_store.js").Head} */ (store.head.value);
  const { query: asked } = place.value;
  const opened = asked.getAll("open");
  const selected = asked.get("step") ?? "";
  const { data: chart, problem, slow, reload } = useResource(`/runs/${part(head.id)}/graph${query({ open: opened })}`);
  if (problem) return html`<${ProblemBox} problem=${problem} retry=${reload} />`;
  if (!chart) return slow && html`<${Placeholder} lines=${8} />`;
  const here = `/runs/${part(head.id)}`;
  const goesOn = ["running", "awaiting_input"].includes(head.status);
  const active = goesOn && head.steps.findLast((step) => ["running", "awaiting_input"].includes(step.status));
  // The one node of a directive stands for all of its turns.
  const stepLink = (/** @type {string} */ path) =>
    head.format === "directive" ? `${here}/transcript` : `${here}/steps/${part(path)}`;
  return html`
    <${Graph}
      chart=${chart}
      label="Graph of ${head.title}"
      states=${runStates(head.steps, head.status)}
      paths=${head.steps.map((step) => step.path)}
      selected=${selected}
      active=${active ? active.path : ""}
      stepLink=${stepLink}
      foldLink=${(/** @type {string} */ fold) => `${here}/graph${query({ open: [...opened, fold] })}`}
      fanLink=${(/** @type {string} */ path) => `${here}/fans/${part(path)}`}
    />
  `;
}
