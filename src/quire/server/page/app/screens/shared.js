// A run as the link of a share shows it: head, tree and texts, without anything to do.

import { html, useEffect, useState } from "../html.js";
import { Age, Empty, Placeholder, Status } from "../parts/basics.js";
import { LongText } from "../parts/call.js";
import { Artifact, firstRow, State } from "../parts/pane_run.js";
import { RunTree } from "../parts/tree.js";
import { useRun } from "../run_store.js";
import { token } from "../session.js";
import { RUN } from "../tree_model.js";
import { money } from "../words.js";

const PAUSE = 3000;

/** @param {{ run: string }} props */
export function SharedRun({ run }) {
  const store = useRun(run);
  const [selected, select] = useState(RUN);
  const head = /** @type {any} */ (store.head.value);
  const tree = store.tree.value;
  useEffect(() => {
    document.title = `${head ? `${head.label} · ` : ""}Quire`;
  });
  useEffect(() => {
    // The stream of the page tells of the whole workspace, so a guest asks again instead.
    const timer = setInterval(() => store.head.value?.status === "running" && store.load(), PAUSE);
    return () => clearInterval(timer);
  }, [store]);
  if (!head) {
    if (token.value && !store.problem.value) return html`<${Placeholder} lines=${6} />`;
    return html`
      <h1 tabindex="-1">This link shows nothing</h1>
      <${Empty} title="It is not whole, has expired or was revoked." icon="warning" />
    `;
  }
  const row = tree?.rows.get(selected);
  return html`
    <div class="run">
      <header class="run-head">
        <div class="run-names">
          <div class="run-title">
            <h1 tabindex="-1">${head.label}</h1>
            <${Status} status=${head.status} />
          </div>
          <p class="run-facts number"><span>${head.title}</span> <span>${money(head.cost)}</span>
            <span><${Age} at=${head.updated_at} /></span> <span>shared, read-only</span></p>
        </div>
      </header>
      <div class="run-sides">
        <section class="run-left" aria-label="Steps">
          <div class="tree-panel">${tree && html`
            <${RunTree} store=${store} tree=${tree} first=${firstRow(head)} selected=${row ? selected : RUN}
              select=${select} enter=${() => document.getElementById("pane-title")?.focus()} />
          `}</div>
        </section>
        <section class="pane" aria-label="Selected row">
          <header class="pane-head">
            <div class="pane-title">
              <h2 id="pane-title" tabindex="-1">${row?.label ?? firstRow(head).label}</h2>
            </div>
          </header>
          <div class="pane-body" role="region" aria-label="Text" tabindex="0" key=${selected}>
            ${row && selected !== RUN
              ? row.effects || row.state === "done"
                ? html`<${LongText} run=${run} path=${row.path.split("#")[0]} title=${row.label} />`
                : ""
              : head.finished
              ? html`<${Artifact} head=${head} />`
              : html`<${State} head=${{ ...head, advice: [], next: null }} />`}
          </div>
        </section>
      </div>
    </div>
  `;
}
