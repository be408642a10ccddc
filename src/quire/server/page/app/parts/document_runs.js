// The runs of a document: how they went over time, and the last ones as a list.

import { part } from "../api.js";
import { html } from "../html.js";
import { useResource } from "../resource.js";
import { Link } from "../router.js";
import { duration, money } from "../words.js";
import { Age, Command, Status } from "./basics.js";
import { History } from "./history.js";

const MOST = 60;

/** @param {{ id: string }} props */
export function DocumentRuns({ id }) {
  // The same address as that of the pictures: it is fetched once.
  const { data } = useResource(
    `/documents/${part(id)}/history?limit=${MOST}`,
    (frame) => frame.event === "runs",
  );
  const rows = data?.items ?? [];
  return html`
    <${History} document=${id} most=${MOST} />
    ${rows.length > 0 && html`
      <section aria-labelledby="last-runs">
        <h2 id="last-runs">The last runs</h2>
        <ul class="rows">
          ${rows.slice(0, 20).map((/** @type {any} */ row) =>
            html`
              <li key=${row.id}>
                <${Link} to="/runs/${part(row.id)}" class="row">
                  <${Status} status=${row.status} />
                  <span class="row-title mono">${row.id}</span>
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
    `}
  `;
}
