// Shows a text by its type: Markdown and code as HTML of the server, JSON as a tree, diagrams, charts and HTML in a
// sandboxed frame. JavaScript is shown and never run. A large or unknown text is shown as text.

import { html, useState } from "../html.js";
import { copyText } from "./basics.js";
import { Frame } from "./frame.js";
import { Icon } from "./icon.js";
import { JsonTree } from "./json_tree.js";
import { Markup } from "./markup.js";

/** How each type is drawn, besides its source. @type {Record<string, string>} */
const DRAWN = {
  markdown: "Rendered",
  text: "Rendered",
  json: "Tree",
  mermaid: "Diagram",
  chartjs: "Chart",
  html_css: "Page",
  javascript: "Highlighted",
  typescript: "Highlighted",
};

/**
 * `html` is the server's HTML of the text, if there is one. `cut` is the number of characters that the text lacks.
 *
 * @param {{ type: string, text: string, html?: string | null, title: string, cut?: number | boolean, actions?: unknown }} props
 */
export function Content({ type, text, html: rendered, title, cut = 0, actions }) {
  const way = DRAWN[type];
  const [raw, setRaw] = useState(false);
  const drawn = way && !cut ? draw(type, text, rendered, title) : null;
  return html`
    <div class="content content-${type}">
      <div class="content-tools">
        ${drawn && html`
          <div class="switch" role="group" aria-label="How to show it">
            <button type="button" aria-pressed=${!raw} onClick=${() => setRaw(false)}>${way}</button>
            <button type="button" aria-pressed=${raw} onClick=${() => setRaw(true)}>Source</button>
          </div>
        `}
        <span class="soft small">${type === "text" || !type ? "" : type.replace("_", " and ")}</span>
        <span class="push"></span>
        ${actions}
        <${CopyText} text=${text} />
      </div>
      ${drawn && !raw ? drawn : html`<pre class="source" tabindex="0">${text}</pre>`}
      ${cut
        ? html`<p class="left-out">${
          typeof cut === "number" ? `${cut.toLocaleString("en")} more characters` : "The rest"
        } is not shown here. Download the whole.</p>`
        : ""}
    </div>
  `;
}

/**
 * @param {string} type
 * @param {string} text
 * @param {string | null | undefined} rendered
 * @param {string} title
 */
function draw(type, text, rendered, title) {
  switch (type) {
    case "json": {
      const value = parsed(text);
      return value === undefined ? null : html`<${JsonTree} value=${value} label=${title} />`;
    }
    case "mermaid":
      return html`<${Frame} kind="mermaid" text=${unfenced(text)} title=${title} />`;
    case "chartjs":
      return html`<${Chart} text=${unfenced(text)} title=${title} />`;
    case "html_css":
      return html`<${Frame} kind="html" text=${unfenced(text)} title=${title} />`;
    default:
      return rendered ? html`<${Markup} html=${rendered} />` : null;
  }
}

/** @param {{ text: string, title: string }} props */
function Chart({ text, title }) {
  const value = parsed(text);
  if (value === undefined) {
    return html`
      <p class="soft">This chart is not JSON: it is JavaScript, which this page does not run.</p>
      <pre class="source">${text}</pre>
    `;
  }
  const sets = value?.data?.datasets;
  const labels = value?.data?.labels;
  return html`
    <${Frame} kind="chart" text=${text} title=${title} />
    ${Array.isArray(sets) && Array.isArray(labels) && html`
      <details class="chart-table">
        <summary>The data as a table</summary>
        <table>
          <thead>
            <tr><th></th>${sets.slice(0, 20).map((one, at) =>
              html`<th scope="col">${String(one?.label ?? at + 1)}</th>`
            )}</tr>
          </thead>
          <tbody>${labels.slice(0, 200).map((label, at) =>
            html`<tr><th scope="row">${String(label)}</th>${
              sets.slice(0, 20).map((one) => html`<td>${plain(one?.data?.[at])}</td>`)
            }</tr>`
          )}</tbody>
        </table>
      </details>
    `}
  `;
}

/** @param {unknown} value */
function plain(value) {
  return value === null || value === undefined ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** @param {string} text */
function parsed(text) {
  try {
    return JSON.parse(unfenced(text));
  } catch {
    return undefined;
  }
}

/** @param {string} text a text that a model may have put between fences */
function unfenced(text) {
  const found = /^\s*```[^\n]*\n([\s\S]*?)\n?```\s*$/.exec(text);
  return found ? found[1] : text;
}

/** @param {{ text: string, label?: string }} props */
export function CopyText({ text, label = "Copy" }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await copyText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return html`
    <button type="button" class="icon-button" aria-label=${label} title=${label} onClick=${copy}>
      <${Icon} name=${copied ? "check" : "copy"} />
      <span class="visually-hidden" role="status">${copied ? "copied" : ""}</span>
    </button>
  `;
}

/**
 * A value of any kind: JSON as a tree, a text as it is.
 *
 * @param {{ value: unknown, cut?: number, label?: string, open?: boolean }} props
 */
export function AnyValue({ value, cut = 0, label = "Value", open = true }) {
  if (value === null || value === undefined) return html`<p class="soft">none</p>`;
  if (typeof value === "object" && !cut) return html`<${JsonTree} value=${value} label=${label} open=${open} />`;
  return html`
    <pre class="source" tabindex="0">${String(value)}</pre>
    ${cut ? html`<p class="left-out">${cut.toLocaleString("en")} more characters are not shown here.</p>` : ""}
  `;
}
