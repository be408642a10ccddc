// The conversations of a run's threads: messages, calls with results, hooks, and the threads that calls started.

import { part } from "../api.js";
import { html, useState } from "../html.js";
import { Command, Empty, Placeholder, ProblemBox } from "../parts/basics.js";
import { AnyValue } from "../parts/content.js";
import { Icon } from "../parts/icon.js";
import { JsonTree } from "../parts/json_tree.js";
import { hasThread, RunFrame } from "../parts/run_frame.js";
import { Link } from "../router.js";
import { useThrottled } from "../throttle.js";
import { number, plural } from "../words.js";

const SHOWN = 40;

/** @param {{ run: string }} props */
export function RunTranscript({ run }) {
  return html`
    <${RunFrame} run=${run} tab="transcript">
      ${(/** @type {import("../run_store.js").RunStore} */ store) => html`<${Threads} store=${store} />`}
    </${RunFrame}>
  `;
}

/** @param {{ store: import("../run_store.js").RunStore }} props */
function Threads({ store }) {
  const head = /** @type {import("../run_store.js").Head} */ (store.head.value);
  const found = useThrottled(
    hasThread(head) ? `/runs/${part(head.id)}/transcript` : null,
    (frame) => frame.data?.run === head.id && /^(effect|thread_|tool_told|run_)/.test(frame.event),
  );
  if (!hasThread(head)) {
    return html`
      <${Empty} title="This run has no thread." icon="documents">
        <p>A transcript is of directives. The journal has every call.</p>
        </${Empty}>
    `;
  }
  if (found.problem && !found.data) return html`<${ProblemBox} problem=${found.problem} retry=${found.reload} />`;
  if (!found.data) return found.slow ? html`<${Placeholder} lines=${6} />` : null;
  return html`
    <h2 class="visually-hidden">Transcript</h2>
    ${found.data.threads.map((/** @type {any} */ thread) =>
      html`<${Thread} key=${thread.path} run=${head.id} thread=${thread} />`
    )}
    <p class="actions">
      <${Command} command="quire runs ${head.id} --transcript" />
    </p>
  `;
}

/** @param {{ run: string, thread: any }} props */
function Thread({ run, thread }) {
  const [shown, setShown] = useState(SHOWN);
  const hidden = Math.max(0, thread.turns.length - shown);
  return html`
    <section class="thread">
      <h3><${Icon} name="documents" />${thread.thread || thread.path}<span class="soft"> ${plural(
        thread.turns.length,
        "turn",
      )}</span></h3>
      ${thread.tools.length > 0 && html`<p class="soft small">Tools: ${thread.tools.join(", ")}</p>`}
      <${Said} role="system" text=${thread.system} folded />
      <${Said} role="user" text=${thread.message} />
      ${hidden > 0 &&
        html`<button type="button" class="button small-button" onClick=${() => setShown(shown + 4 * SHOWN)}>${
          plural(hidden, "earlier turn")
        }</button>`}
      ${thread.turns.slice(hidden).map((/** @type {any} */ turn) =>
        html`
          <div class="turn" key=${turn.turn}>
            ${turn.told.map((/** @type {string} */ text) => html`<${Said} role="user" text=${text} />`)}
            <p class="turn-label"><${Link} to="/runs/${run}/steps/${part(
              `${thread.path}/turn[${turn.turn}]`,
            )}">Turn ${turn.turn}</${Link}></p>
            <${Said} role="assistant" text=${turn.text} />
            ${turn.calls.map((/** @type {any} */ call, /** @type {number} */ at) =>
              html`<${Call} key=${at} run=${run} call=${call} />`
            )}
            ${turn.hooks.map((/** @type {any} */ hook) =>
              html`<p class="soft small">hook ${
                hook.hook || "without a name"
              } on ${hook.event}: <code>${hook.item_id}</code></p>`
            )}
            ${turn.threads.map((/** @type {any} */ one) =>
              html`<${Thread} key=${one.path} run=${run} thread=${one} />`
            )}
          </div>
        `
      )}
      ${thread.ended
        ? html`<p class="soft">Ended: ${thread.ended.status}${thread.ended.error ? `, ${thread.ended.error}` : ""}</p>`
        : html`<p class="soft">It has not ended.</p>`}
    </section>
  `;
}

/** @param {{ role: string, text: string, folded?: boolean }} props */
function Said({ role, text, folded = false }) {
  if (!text) return null;
  const body = html`<pre class="source">${text}</pre>`;
  return html`
    <div class="said said-${role}">
      ${folded
        ? html`<details><summary><span class="role">${role}</span> <span class="soft small">${
          number(text.length)
        } characters</span></summary>${body}</details>`
        : html`<p class="role">${role}</p>${body}`}
    </div>
  `;
}

/** @param {{ run: string, call: any }} props */
function Call({ run, call }) {
  return html`
    <div class="said said-tool">
      <p><${Icon} name="terminal" /> calls <code>${call.name}</code>${call.error && html`
        <span class="status tone-bad">${call.error === "denied" ? "denied" : "failed"}</span>
      `}</p>
      <${JsonTree} value=${call.arguments} open=${false} label="Arguments" />
      ${call.threads.map((/** @type {any} */ one) => html`<${Thread} key=${one.path} run=${run} thread=${one} />`)}
      ${call.result !== null && html`
        <details open=${call.result.length < 400}>
          <summary class="role">result</summary>
          <${AnyValue} value=${parsed(call.result)} label="Result" />
        </details>
      `}
    </div>
  `;
}

/** @param {string} text */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
