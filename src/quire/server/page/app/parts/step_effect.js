// One call of a step: a model with its prompt as sent and its reply, a tool with arguments and result, a question.

import { get, part } from "../api.js";
import { html, useState } from "../html.js";
import { Link } from "../router.js";
import { partWords } from "../run_tree.js";
import { duration, moment, money, number, plural } from "../words.js";
import { AnyValue, Content } from "./content.js";
import { Icon } from "./icon.js";
import { JsonTree } from "./json_tree.js";
import { who } from "./run_question.js";

const KINDS = /** @type {Record<string, string>} */ ({
  model: "Model call",
  tool: "Tool call",
  ask: "Question",
  break: "Stop",
  load: "Text that was read",
  offer: "Tools on offer",
  prompt: "Prompt that was fetched",
});

/** @param {{ run: string, effect: any, step: any, alone: boolean, folded?: boolean }} props */
export function EffectCard({ run, effect, step, alone, folded = false }) {
  const failed = effect.state === "failed";
  const facts = [
    effect.elapsed !== undefined ? duration(effect.elapsed) : "",
    effect.usage ? `${number(effect.usage.input_tokens)} in, ${number(effect.usage.output_tokens)} out` : "",
    effect.usage ? money(effect.usage.cost) : "",
    effect.delays?.length ? `asked again after ${effect.delays.map(duration).join(", ")}` : "",
  ].filter(Boolean);
  const name = effect.tool ?? (effect.model === step.model ? "" : effect.model) ?? "";
  const head = html`
    <h3>${KINDS[effect.kind] ?? effect.kind}${attempt(effect.path, step.path)}</h3>
    ${name && html`<code class="effect-name">${name}</code>`}
    <span class="soft number" title=${effect.at ? moment(effect.at) : ""}>${facts.join(" · ")}</span>
    ${failed && html`<span class="status tone-bad"><${Icon} name="cross" />failed</span>`}
    ${effect.state === "intent" &&
      html`<span class="status tone-warn"><${Icon} name="warning" />begun, end unknown</span>`}
    ${effect.state === undefined && html`<span class="status tone-live"><${Icon} name="running" />under way</span>`}
  `;
  const place = html`<${Link} class="soft small effect-path" to="/runs/${run}/journal?effect=${
    encodeURIComponent(effect.path)
  }">${effect.path}</${Link}>`;
  if (folded) {
    return html`
      <details class="effect folded ${failed ? "failed" : ""}">
        <summary>${head}</summary>
        <p>${place}</p>
        <${Body} run=${run} effect=${effect} alone=${false} />
      </details>
    `;
  }
  return html`
    <article class="effect ${failed ? "failed" : ""}">
      <header>${head}<span class="push">${place}</span></header>
      <${Body} run=${run} effect=${effect} alone=${alone} />
    </article>
  `;
}

/** @param {{ run: string, effect: any, alone: boolean }} props */
function Body({ run, effect, alone }) {
  return html`
    ${effect.error && html`<p class="step-message pre">${effect.error.message}</p>`}
    ${effect.kind === "model" && html`<${ModelCall} run=${run} effect=${effect} alone=${alone} />`}
    ${effect.kind === "tool" && html`<${ToolCall} run=${run} effect=${effect} />`}
    ${effect.kind === "ask" && html`<${Asked} effect=${effect} />`}
    ${!["model", "tool", "ask"].includes(effect.kind) && html`
      ${effect.request && html`
        <h4>Request</h4>
        <${AnyValue} value=${effect.request.value} cut=${effect.request.cut} />
      `}
      ${effect.answer_value !== undefined && effect.answer_value !== null && html`
        <h4>Result</h4>
        <${AnyValue} value=${effect.answer_value} cut=${effect.answer_cut} />
      `}
    `}
  `;
}

/** @param {string} path @param {string} above */
function attempt(path, above) {
  const words = partWords(path, above);
  return words ? `, ${words}` : "";
}

/** @param {{ run: string, effect: any, alone: boolean }} props */
function ModelCall({ run, effect, alone }) {
  const reply = effect.answer_value;
  const text = typeof reply === "object" && reply ? reply.text : reply;
  const uses = (typeof reply === "object" && reply?.uses) || [];
  return html`
    ${effect.reused &&
      html`<p class="soft">Reused from run <${Link} to="/runs/${effect.reused}">${effect.reused}</${Link}></p>`}
    <details class="sent" open=${alone}>
      <summary>Prompt as sent <span class="soft">${plural(
        effect.messages?.length ?? 0,
        "message",
      )}${effect.tools?.length ? `, ${plural(effect.tools.length, "tool")}` : ""}</span></summary>
      ${effect.system?.value && html`
        <details class="message">
          <summary><span class="role">system</span> <span class="soft">${number(
            effect.system.value.length,
          )} characters</span></summary>
          <pre class="source">${effect.system.value}</pre>
        </details>
      `}
      ${effect.earlier_messages > 0 &&
        html`<p class="soft">${plural(effect.earlier_messages, "earlier message")} not shown</p>`}
      ${effect.messages?.map((/** @type {any} */ message, /** @type {number} */ at) =>
        html`
          <div class="message" key=${at}>
            <p class="role">${message.role}</p>
            <pre class="source">${message.pieces.map((/** @type {any} */ piece) =>
              html`<${Marked} run=${run} piece=${piece} />`
            )}</pre>
            ${message.calls.map((/** @type {any} */ call) =>
              html`
                <p><code>${call.name}</code></p>
                <${JsonTree} value=${call.arguments} open=${false} label="Arguments" />
              `
            )}
          </div>
        `
      )}
      ${effect.schema && html`
        <details class="message">
          <summary><span class="role">schema of the reply</span></summary>
          <${JsonTree} value=${effect.schema} label="Schema" />
        </details>
      `}
    </details>
    ${reply !== undefined && reply !== null && effect.state === "ok" && html`
      <section class="block"><h4>Reply</h4>
        ${text
          ? html`
            <${Content} type="markdown" text=${String(text)} html=${effect
              .html} title="Reply" cut=${effect.answer_cut ?? 0}
              actions=${effect.answer_cut ? html`<${Whole} run=${run} path=${effect.path} />` : null} />
          `
          : !uses.length && html`<p class="soft">The reply is empty.</p>`}
        ${uses.map((/** @type {any} */ use) =>
          html`
            <div class="use">
              <p><${Icon} name="right" />calls <code>${use[1]}</code></p>
              <${JsonTree} value=${use[2]} open=${false} label="Arguments" />
            </div>
          `
        )}
      </section>
    `}
  `;
}

/** A part of a prompt; a value is marked with who wrote it. @param {{ run: string, piece: any }} props */
function Marked({ run, piece }) {
  if (piece.cut) return html`<span class="left-out">… ${number(piece.cut)} more characters</span>`;
  if (!piece.name) return piece.text;
  const from = piece.source ? `from ${piece.source}` : "";
  const title = `${piece.name} ${from}`.trim();
  if (piece.path) {
    return html`
      <${Link} class="mark" to="/runs/${run}/steps/${part(piece.path)}"
        title=${title}><span class="visually-hidden">${title}: </span>${piece.text}</${Link}>
    `;
  }
  return html`<mark title=${title}><span class="visually-hidden">${title}: </span>${piece.text}</mark>`;
}

/** @param {{ run: string, effect: any }} props */
function ToolCall({ run, effect }) {
  return html`
    <h4>Arguments</h4>
    <${AnyValue} value=${effect.arguments?.value} cut=${effect.arguments?.cut} label="Arguments" />
    ${effect.answer_value !== undefined && effect.answer_value !== null && html`
      <h4>Result</h4>
      <${AnyValue} value=${effect.answer_value} cut=${effect.answer_cut} label="Result" />
      ${effect.answer_cut && html`<${Whole} run=${run} path=${effect.path} />`}
    `}
  `;
}

/** @param {{ effect: any }} props */
function Asked({ effect }) {
  return html`
    <p class="prompt pre">${effect.prompt}</p>
    ${effect.options?.length > 0 && html`<p class="soft">${effect.options.join(" · ")}</p>`}
    ${effect.answer_value !== undefined && effect.answer_value !== null
      ? html`<p class="answer-given"><${Icon} name="check" />answered <strong class="pre">${
        String(effect.answer_value)
      }</strong>${effect.by ? ` by ${who(effect.by)}` : ""}</p>`
      : html`<p class="soft">Not answered yet.</p>`}
  `;
}

/** Fetches a text that was cut. @param {{ run: string, path: string }} props */
function Whole({ run, path }) {
  const [whole, setWhole] = useState(/** @type {any} */ (undefined));
  const load = async () => setWhole((await get(`/runs/${part(run)}/effects/${part(path)}`)).value);
  if (whole !== undefined) return html`<${AnyValue} value=${whole} open=${false} />`;
  return html`<button type="button" class="button small-button" onClick=${load}>Show the whole</button>`;
}
