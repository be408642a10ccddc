// A run: its steps, the selected step, and the values, side by side; one below the other on a phone.

import { html } from "../html.js";
import { Link } from "../router.js";
import { part } from "../api.js";
import { Status } from "../parts/basics.js";
import { RunFrame } from "../parts/run_frame.js";

/** @param {{ run: string, path?: string }} props */
export function Run({ run, path = "" }) {
  return html`
    <${RunFrame} run=${run} tab="">
      ${(/** @type {import("../run_store.js").RunStore} */ store) =>
        html`
          <ul class="rows">
            ${(store.head.value?.steps ?? []).map((step) =>
              html`
                <li key=${step.path}>
                  <${Link} class="row" to="/runs/${run}/steps/${part(step.path)}"
                    aria-current=${step.path === path ? "true" : undefined}><${Status} status=${step
                      .status} /><span class="row-title">${step.label} ${step.title}</span></${Link}></li>
              `
            )}
          </ul>
        `}
    </${RunFrame}>
  `;
}
