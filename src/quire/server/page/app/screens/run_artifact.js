// The artifact of a run: the result, drawn by its type, to be copied or saved.

import { download, part } from "../api.js";
import { html } from "../html.js";
import { Command, Empty, Placeholder, ProblemBox } from "../parts/basics.js";
import { Content } from "../parts/content.js";
import { Icon } from "../parts/icon.js";
import { RunFrame } from "../parts/run_frame.js";
import { useResource } from "../resource.js";
import { number } from "../words.js";

/** @param {{ run: string }} props */
export function RunArtifact({ run }) {
  return html`
    <${RunFrame} run=${run} tab="artifact">
      ${(/** @type {import("../run_store.js").RunStore} */ store) => html`<${Artifact} store=${store} />`}
    </${RunFrame}>
  `;
}

const RENDERED = ["markdown", "text", "javascript", "typescript"];

/** @param {{ store: import("../run_store.js").RunStore }} props */
function Artifact({ store }) {
  const head = /** @type {import("../run_store.js").Head} */ (store.head.value);
  const at = `/runs/${part(head.id)}/artifact`;
  const found = useResource(head.finished ? at : null);
  const rendered = useResource(
    found.data && RENDERED.includes(found.data.type) && !found.data.cut ? `${at}?as=html` : null,
  );
  if (!head.finished) {
    return html`
      <${Empty} title="No artifact yet." icon="artifacts">
        <p>It appears here when the run is completed.</p>
        </${Empty}>
    `;
  }
  if (found.problem) return html`<${ProblemBox} problem=${found.problem} retry=${found.reload} />`;
  if (!found.data) return found.slow ? html`<${Placeholder} lines=${6} />` : null;
  const { type, text, cut, size, file } = found.data;
  const save = html`
    <button type="button" class="button small-button" onClick=${() => download(`${at}?as=download`, file)}>
      <${Icon} name="download" />Download <span class="soft">${number(size)} characters</span></button>
  `;
  return html`
    <h2 class="visually-hidden">Artifact</h2>
    <${Content} type=${type} text=${text} html=${rendered.data?.html} title="Artifact of ${head.title}" cut=${cut}
      actions=${save} />
    <p class="actions">
      <${Command} command="quire runs ${head.id} --output" />
    </p>
  `;
}
