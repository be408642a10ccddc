// A run: its steps, the selected step, and the values, side by side; one below the other on a phone.

import { html, useState } from "../html.js";
import { Empty } from "../parts/basics.js";
import { Guarded } from "../parts/guarded.js";
import { RunFrame } from "../parts/run_frame.js";
import { RunValues } from "../parts/run_values.js";
import { StepTree } from "../parts/step_tree.js";
import { StepView } from "../parts/step_view.js";
import { firstToSee, stepOf } from "../run_tree.js";

/** @param {{ run: string, path?: string }} props */
export function Run({ run, path = "" }) {
  return html`
    <${RunFrame} run=${run} tab="">
      ${(/** @type {import("../run_store.js").RunStore} */ store) =>
        html`<${Columns} key=${run} store=${store} path=${path} />`}
    </${RunFrame}>
  `;
}

/** @param {{ store: import("../run_store.js").RunStore, path: string }} props */
function Columns({ store, path }) {
  const head = /** @type {import("../run_store.js").Head} */ (store.head.value);
  // Chosen once: what a person looks at does not change because the run goes on.
  const [first] = useState(() => firstToSee(head.steps));
  const selected = path || first || firstToSee(head.steps);
  if (head.problem) return null;
  if (!head.steps.length && !selected) {
    return html`
      <${Empty} title="No step has begun." icon="clock">
        <p>The steps appear here while the run continues.</p>
        </${Empty}>
    `;
  }
  return html`
    <div class="run-columns">
      <nav class="column-steps" aria-label="Steps of the run">
        <h2 class="visually-hidden">Steps</h2>
        <${Guarded} what="the steps">
          <${StepTree} run=${head.id} steps=${head.steps} selected=${stepOf(head.steps, selected)?.path ?? ""} />
          </${Guarded}>
          </nav>
          <div class="column-step">
            <${StepView} store=${store} path=${selected} />
          </div>
          <aside class="column-values" aria-label="Values of the run">
            <h2>Values</h2>
            <${Guarded} what="the values">
              <${RunValues} store=${store} />
              </${Guarded}>
              </aside>
              </div>
  `;
}
