// The runs of a document: how they went over time, and the last ones as a list.

import { part } from "../api.js";
import { html } from "../html.js";
import { useResource } from "../resource.js";
import { Link } from "../router.js";
import { duration, money } from "../words.js";
import { Age, Command, Empty, Placeholder, ProblemBox, Status } from "./basics.js";
import { History } from "./history.js";

const MOST = 60;
const LISTED = 20;

/** @param {{ id: string }} props */
export function DocumentRuns({ id }) {
  const { data, problem, slow, reload } = useResource(
    `/documents/${part(id)}/history?limit=${MOST}`,
    (frame) => frame.event === "runs",
  );
  if (problem) return html`<${ProblemBox} problem=${problem} retry=${reload} />`;
  if (!data) return slow && html`<${Placeholder} lines=${3} />`;
  if (!data.items.length) return html`<${Empty} title="This document has not been run yet." icon="runs" />`;
  return html`
    <section aria-labelledby="last-runs">
      <h2 id="last-runs">Runs</h2>
      <${History} runs=${data.items.toReversed()} />
      <ul class="rows">
        ${data.items.slice(0, LISTED).map((/** @type {any} */ row) =>
          html`
            <li key=${row.id}>
              <${Link} to="/runs/${part(row.id)}" class="row">
                <${Status} status=${row.status} />
                <span class="row-title">${row.label}</span>
                <span class="soft number">${duration(row.elapsed)}</span>
                <span class="soft number">${money(row.cost)}</span>
                <span class="soft number"><${Age} at=${row.updated_at} /></span>
                </${Link}>
                </li>
          `
        )}
      </ul>
      <p class="actions below-rows">
        <${Link} to="/runs?document=${encodeURIComponent(id)}" class="button">All runs of this document</${Link}>
        <${Command} command="quire runs" />
      </p>
    </section>
  `;
}
