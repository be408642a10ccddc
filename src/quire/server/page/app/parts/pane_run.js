// The first row of a run: its result or its error, its inputs, its values, and the document that it carries out.

import { download, part } from "../api.js";
import { html } from "../html.js";
import { useResource, useThrottled } from "../resource.js";
import { Link } from "../router.js";
import { rowWith, RUN } from "../tree_model.js";
import { number } from "../words.js";
import { Command, Placeholder, ProblemBox } from "./basics.js";
import { rowLink } from "./call.js";
import { AnyValue, Content } from "./content.js";
import { Icon } from "./icon.js";
import { PaneTabs } from "./pane.js";
import { statusWords } from "./run_head.js";
import { wordDiff } from "./diff.js";

const RENDERED = ["markdown", "text", "javascript", "typescript"];
const WRITES = /^(step_completed|step_skipped|named|store|run_)/;

/** The tabs of the first row: name in the address, words. @type {[string, string][]} */
export const RUN_TABS = [["result", "Result"], ["inputs", "Inputs"], ["values", "Values"], ["document", "Document"]];

/** @type {Record<string, string>} */
const STATES = { completed: "done", awaiting_input: "waits", running: "running", failed: "failed", pending: "pending" };

/** @param {any} head @returns {import("../tree_model.js").TreeRow} the first row of a run */
export function firstRow(head) {
  const label = head.finished ? "Result" : head.status === "failed" ? "Error" : "The run";
  const hint = head.finished ? "" : head.status === "failed" ? head.error?.message ?? "" : statusWords(head);
  return rowWith({ path: RUN, kind: "run", label, hint, state: STATES[head.status] ?? "stopped" });
}

/** @param {{ store: import("../run_store.js").RunStore, tab: string }} props */
export function RunPane({ store, tab }) {
  const head = /** @type {any} */ (store.head.value);
  const shown = RUN_TABS.some(([name]) => name === tab) ? tab : "result";
  const { label } = firstRow(head);
  const tabs = RUN_TABS.map((
    [name, words],
  ) => /** @type {[string, string]} */ ([name, name === "result" ? label : words]));
  return html`
    <header class="pane-head">
      <div class="pane-title">
        <h2 id="pane-title" tabindex="-1">${label}</h2>
      </div>
    </header>
    <${PaneTabs} tabs=${tabs} shown=${shown} />
    <div class="pane-body" role="region" aria-label=${tabs.find(([name]) => name === shown)?.[1]} tabindex="0">
      ${shown === "result" && (head.finished ? html`<${Artifact} head=${head} />` : html`<${State} head=${head} />`)}
      ${shown === "inputs" && html`<${Values} store=${store} inputs />`}
      ${shown === "values" && html`<${Values} store=${store} />`}
      ${shown === "document" && html`<${Pinned} run=${head.id} />`}
    </div>
    <footer class="pane-foot">
      <${Command} command="quire runs ${head.id}${head.finished ? " --output" : ""}" />
    </footer>
  `;
}

/** Why a run has not ended well, and what helps. @param {{ head: any }} props */
export function State({ head }) {
  const { next } = head;
  return html`
    <p class=${head.status === "failed" ? "step-message pre" : "pre"}>${statusWords(head)}</p>
    ${head.seal_problem && html`<p class="step-message pre" role="status">${head.seal_problem}</p>`}
    ${head.problem && html`<p class="step-message pre">Its steps cannot be shown here: ${head.problem}</p>`}
    ${next?.why && html`<p class="pre">${next.why}</p>`}
    ${next?.command && html`
      <p>
        <${Command} command=${next.command} />
      </p>
    `}
    ${head.advice?.length > 0 &&
      html`<ul class="advice">${
        head.advice.map((/** @type {string} */ line) => html`<li class="pre">${line}</li>`)
      }</ul>`}
  `;
}

/** @param {{ head: any }} props */
export function Artifact({ head }) {
  const at = `/runs/${part(head.id)}/artifact`;
  const reply = useResource(at);
  const rendered = useResource(
    reply.data && RENDERED.includes(reply.data.type) && !reply.data.cut ? `${at}?as=html` : null,
  );
  if (reply.problem) return html`<${ProblemBox} problem=${reply.problem} retry=${reply.reload} />`;
  if (!reply.data) return reply.slow ? html`<${Placeholder} lines=${6} />` : null;
  const { type, text, cut, size, file } = reply.data;
  const save = html`
    <button type="button" class="button small-button" onClick=${() => download(`${at}?as=download`, file)}>
      <${Icon} name="download" />Download <span class="soft">${number(size)} characters</span></button>
  `;
  return html`
    <${Content} type=${type} text=${text} html=${rendered.data?.html} title="Result of ${head.title}" cut=${cut}
      actions=${save} />
  `;
}

/** The inputs of a run, or its results and stores as they are now. @param {{ store: any, inputs?: boolean }} props */
function Values({ store, inputs = false }) {
  const { id } = store.head.value;
  const reply = useThrottled(
    `/runs/${part(id)}/values`,
    (frame) => (frame.data?.run === id && WRITES.test(frame.event)) || frame.event === "runs",
  );
  if (reply.problem && !reply.data) return html`<${ProblemBox} problem=${reply.problem} retry=${reply.reload} />`;
  if (!reply.data) return reply.slow ? html`<${Placeholder} lines=${4} />` : null;
  const values = reply.data.values.filter((/** @type {any} */ value) => (value.kind === "input") === inputs);
  if (!values.length) return html`<p class="soft">${inputs ? "It has no inputs." : "No value is set yet."}</p>`;
  return html`
    <dl class="values">
      ${values.map((/** @type {any} */ value) =>
        html`
          <div key=${value.name}>
            <dt><code>${value.name}</code> <span class="soft small">${value.path
              ? html`<${Link} to=${rowLink(id, value.path)}>${value.source}</${Link}>`
              : inputs
              ? ""
              : value.source}</span>${value.by_hand && html`<span class="status tone-warn">by hand</span>`}</dt>
            <dd>
              <${AnyValue} value=${value.value} cut=${value.cut} label=${value.name} />
            </dd>
          </div>
        `
      )}
    </dl>
  `;
}

/** The document of a run as it was pinned, against its file as it is now. @param {{ run: string }} props */
function Pinned({ run }) {
  const reply = useResource(`/runs/${part(run)}/document`, (frame) => frame.event === "documents");
  if (reply.problem) return html`<${ProblemBox} problem=${reply.problem} retry=${reply.reload} />`;
  if (!reply.data) return reply.slow ? html`<${Placeholder} lines=${6} />` : null;
  const { id, pinned, now, changed } = reply.data;
  const words = now === null
    ? "The file is gone. The run continues with the text that it has."
    : changed
    ? "The file has changed since the run began. The run continues with the text that it has."
    : "The file has the text that the run has.";
  return html`
    <p class="pinned">${words} ${id && now !== null &&
      html`<${Link} to="/documents/${part(id)}">Open the document</${Link}>`}</p>
    <pre class="source diff" tabindex="0">${now === null || !changed
      ? pinned
      : wordDiff(pinned, now).map((piece) =>
        piece.kind === "same"
          ? piece.text
          : piece.kind === "old"
          ? html`<del>${piece.text}</del>`
          : html`<ins>${piece.text}</ins>`
      )}</pre>
  `;
}
