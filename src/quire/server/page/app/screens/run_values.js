// The values of a run, each in full.

import { html } from "../html.js";
import { RunFrame } from "../parts/run_frame.js";
import { RunValues } from "../parts/run_values.js";

/** @param {{ run: string }} props */
export function RunValuesScreen({ run }) {
  return html`
    <${RunFrame} run=${run} tab="values">
      ${(/** @type {import("../run_store.js").RunStore} */ store) => html`<${RunValues} store=${store} wide />`}
    </${RunFrame}>
  `;
}
