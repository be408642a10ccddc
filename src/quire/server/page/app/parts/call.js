// Parts of a recorded call: the prompt as it was sent with who wrote each value, a text in slices to its end, the values
// that were read, and everything as it is recorded.

import { get, part, query, tryTo } from "../api.js";
import { html, useEffect, useState } from "../html.js";
import { Link } from "../router.js";
import { number, plural } from "../words.js";
import { Placeholder, ProblemBox } from "./basics.js";
import { AnyValue, Content } from "./content.js";
import { Icon } from "./icon.js";
import { JsonTree } from "./json_tree.js";

/** The last steps that are named of those whose results the model was told. */
const MOST_TOLD = 20;

/** @param {string} run @param {string} path @param {string} [tab] */
export function rowLink(run, path, tab) {
  return `/runs/${part(run)}${query({ step: path, tab })}`;
}

/** What was sent: messages to a model, arguments of a tool. @param {{ run: string, effect: any }} props */
export function Sent({ run, effect }) {
  if (effect.kind === "tool") {
    return html`<${AnyValue} value=${effect.arguments?.value} cut=${effect.arguments?.cut} label="Arguments" />`;
  }
  return html`
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
          <pre class="source" tabindex="0">${message.pieces.map((/** @type {any} */ piece) =>
            html`<${Marked} run=${run} piece=${piece} />`
          )}</pre>
          ${message.calls.map((/** @type {any} */ call) => html`<${Use} name=${call.name} value=${call.arguments} />`)}
        </div>
      `
    )}
    ${effect.tools?.length > 0 && html`<p class="soft small">Tools: ${effect.tools.join(", ")}</p>`}
    ${effect.schema && html`
      <details class="message">
        <summary><span class="role">schema of the reply</span></summary>
        <${JsonTree} value=${effect.schema} label="Schema" />
      </details>
    `}
  `;
}

/** A part of a prompt; a value is marked with who wrote it. @param {{ run: string, piece: any }} props */
function Marked({ run, piece }) {
  if (piece.cut) return html`<span class="left-out">… ${number(piece.cut)} more characters</span>`;
  if (!piece.name) return piece.text;
  const title = `${piece.name} ${piece.source ? `from ${piece.source}` : ""}`.trim();
  const inside = html`<span class="visually-hidden">${title}: </span>${piece.text}`;
  return piece.path
    ? html`<${Link} class="mark" to=${rowLink(run, piece.path)} title=${title}>${inside}</${Link}>`
    : html`<mark title=${title}>${inside}</mark>`;
}

/** A tool that a model asks for. @param {{ name: string, value: unknown }} props */
export function Use({ name, value }) {
  return html`
    <div class="use">
      <p><${Icon} name="right" />calls <code>${name}</code></p>
      <${JsonTree} value=${value} open=${false} label="Arguments" />
    </div>
  `;
}

/**
 * The text of a call or a step, in slices: the first at once, the next when they are asked for.
 *
 * @param {{ run: string, path: string, title: string }} props
 */
export function LongText({ run, path, title }) {
  const [slices, setSlices] = useState(/** @type {any[]} */ ([]));
  const [problem, setProblem] = useState(/** @type {any} */ (null));
  const [busy, setBusy] = useState(false);
  const last = slices[slices.length - 1];
  /** @param {boolean} whole reads to the end */
  const more = async (whole) => {
    setBusy(true);
    let pieces = slices;
    await tryTo(setProblem, async () => {
      do {
        const after = pieces.at(-1)?.next ?? 0;
        const slice = await get(`/runs/${part(run)}/text/${part(path)}${query({ after: after || undefined })}`);
        pieces = [...pieces, slice];
        setSlices(pieces);
      } while (whole && pieces.at(-1).next !== null);
    });
    setBusy(false);
  };
  useEffect(() => {
    more(false);
  }, []);
  return html`
    ${!last && !problem && html`<${Placeholder} lines=${4} />`}
    ${slices.map((slice) =>
      slice.total === 0 ? html`<p class="soft">It is empty.</p>` : html`
        <${Content} key=${slice.after} type=${slice.kind === "json" && slice.total === slice.text.length
          ? "json"
          : slice.html
          ? "markdown"
          : ""} text=${slice.text} html=${slice.html} title=${title} />
      `
    )}
    ${problem && html`<${ProblemBox} problem=${problem} retry=${() => more(false)} />`}
    ${last && last.next !== null && html`
      <p class="actions more-text">
        <span class="soft number">${number(last.next)} of ${number(last.total)} characters</span>
        <button type="button" class="button" disabled=${busy} onClick=${() => more(false)}>Read on</button>
        <button type="button" class="button" disabled=${busy} onClick=${() => more(true)}>To the end</button>
      </p>
    `}
  `;
}

/** The values that a step read, and who wrote each of them. @param {{ run: string, step: any }} props */
export function ReadFrom({ run, step }) {
  if (!step) return null;
  const count = step.told.length;
  return html`
    <dl class="values">
      ${step.values.map((/** @type {any} */ value) =>
        html`
          <div key=${value.name}>
            <dt><code>${value.name}</code> <span class="soft">from ${value.path
              ? html`<${Link} to=${rowLink(run, value.path)}>${value.source}</${Link}>`
              : value.source}</span></dt>
            <dd>
              <${AnyValue} value=${value.value} cut=${value.cut} label=${value.name} open=${false} />
            </dd>
          </div>
        `
      )}
    </dl>
    ${count > 0 &&
      html`<p class="soft">The model was told the results of ${
        count > MOST_TOLD ? `${count - MOST_TOLD} earlier steps, ` : ""
      }${
        step.told.slice(-MOST_TOLD).map((/** @type {any} */ row, /** @type {number} */ at) =>
          html`${at ? ", " : ""}${
            row.path ? html`<${Link} to=${rowLink(run, row.path)}>step ${row.label}</${Link}>` : `step ${row.label}`
          }`
        )
      }.</p>`}
  `;
}

/** Everything as it is recorded. @param {{ step: any, after: number, more: (after: number) => void }} props */
export function Raw({ step, after, more }) {
  return html`
    ${after > 0 && html`<button type="button" class="link" onClick=${() => more(0)}>Back to the first</button>`}
    ${step.effects.map((/** @type {any} */ effect) => {
      const { html: _, ...recorded } = effect;
      return html`
        <details key=${effect.path} class="message" open=${step.effects.length === 1}>
          <summary><code>${effect.path}</code> <span class="soft">${effect.kind}${effect.state
            ? `, ${effect.state}`
            : ", open"}</span></summary>
          <${JsonTree} value=${recorded} label=${effect.path} />
        </details>
      `;
    })}
    ${step.effects_total === 0 && html`<p class="soft">No call is recorded.</p>`}
    ${step.next &&
      html`<button type="button" class="button" onClick=${() => more(Number(step.next))}>${
        plural(step.effects_total - Number(step.next), "more call")
      }</button>`}
  `;
}
