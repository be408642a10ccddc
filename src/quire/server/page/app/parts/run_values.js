// The values of a run as they are now: inputs, named results, stores; who wrote each; what was set by hand.

import { part } from "../api.js";
import { html, useEffect, useRef } from "../html.js";
import { Link } from "../router.js";
import { useThrottled } from "../throttle.js";
import { Placeholder, ProblemBox } from "./basics.js";
import { AnyValue } from "./content.js";
import { Short } from "./step_view.js";

const PARTS = /** @type {[string, string][]} */ ([["input", "Inputs"], ["result", "Results"], ["store", "Stores"]]);
const WRITES = /^(step_completed|step_skipped|named|store|run_)/;

/** @param {{ store: import("../run_store.js").RunStore, wide?: boolean }} props */
export function RunValues({ store, wide = false }) {
  const head = /** @type {import("../run_store.js").Head} */ (store.head.value);
  const found = useThrottled(
    `/runs/${part(head.id)}/values`,
    (frame) => frame.data?.run === head.id && WRITES.test(frame.event),
  );
  const status = useRef(head.status);
  useEffect(() => {
    if (status.current !== head.status) found.reload();
    status.current = head.status;
  }, [head.status]);
  if (found.problem && !found.data) return html`<${ProblemBox} problem=${found.problem} retry=${found.reload} />`;
  if (!found.data) return found.slow ? html`<${Placeholder} lines=${4} />` : null;
  const values = found.data.values;
  if (!values.length) return html`<p class="soft">No value is set yet.</p>`;
  return html`
    <div class=${wide ? "values wide" : "values"}>
      ${PARTS.map(([kind, title]) => {
        const ones = values.filter((/** @type {any} */ one) => one.kind === kind);
        return ones.length > 0 && html`
          <section key=${kind}>
            ${wide ? html`<h2>${title}</h2>` : html`<h3>${title}</h3>`}
            <dl>
              ${ones.map((/** @type {any} */ one) =>
                html`
                  <div key=${one.name}>
                    <dt><code>${one.name}</code> <span class="soft small">${one.path
                      ? html`<${Link} to="/runs/${head.id}/steps/${part(one.path)}">${one.source}</${Link}>`
                      : one.source === "input"
                      ? ""
                      : one.source}</span>${one.by_hand && html`<span class="status tone-warn">by hand</span>`}</dt>
                    <dd>${wide
                      ? html`<${AnyValue} value=${one.value} cut=${one.cut} label=${one.name} />`
                      : html`<${Short} value=${one.value} cut=${one.cut} />`}</dd>
                  </div>
                `
              )}
            </dl>
          </section>
        `;
      })}
    </div>
  `;
}
