// A JSON value as a tree whose rows are made when they are opened. Every value is text; long texts are cut.

import { html, useState } from "../html.js";
import { plural } from "../words.js";
import { copyText } from "./basics.js";
import { Icon } from "./icon.js";

const LONGEST = 2000;
const PAGE = 100;

/**
 * @param {{ value: unknown, name?: string, open?: boolean, label?: string }} props
 */
export function JsonTree({ value, name = "", open = true, label = "JSON" }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await copyText(JSON.stringify(value, null, 2));
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return html`
    <div class="json" role="group" aria-label=${label}>
      <button type="button" class="icon-button json-copy" aria-label="Copy as JSON" title="Copy as JSON"
        onClick=${copy}>
        <${Icon} name=${copied ? "check" : "copy"} />
      </button>
      <${Entry} value=${value} name=${name} open=${open} />
    </div>
  `;
}

/** @param {{ value: any, name: string, open: boolean }} props */
function Entry({ value, name, open }) {
  const [isOpen, setOpen] = useState(open);
  const [shown, setShown] = useState(PAGE);
  const key = name && html`<span class="json-key">${name}: </span>`;
  if (value === null || typeof value !== "object") {
    return html`<div class="json-row">${key}<${Leaf} value=${value} /></div>`;
  }
  const many = Array.isArray(value);
  const entries = many ? value.length : Object.keys(value).length;
  if (!entries) return html`<div class="json-row">${key}<span class="soft">${many ? "[]" : "{}"}</span></div>`;
  return html`
    <div class="json-row">
      <button type="button" class="json-toggle" aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}>
        <${Icon} name=${isOpen ? "down" : "right"} />${key}
        <span class="soft">${many ? plural(entries, "item") : brief(value)}</span>
      </button>
      ${isOpen && html`
        <div class="json-below">
          ${pairs(value, shown).map(([at, one]) => html`<${Entry} key=${at} name=${at} value=${one} open=${false} />`)}
          ${entries > shown && html`
            <button type="button" class="link" onClick=${() => setShown(shown + PAGE)}>
              ${plural(Math.min(PAGE, entries - shown), "more", "more")} of ${entries - shown}
            </button>
          `}
        </div>
      `}
    </div>
  `;
}

/**
 * @param {any} value
 * @param {number} most
 * @returns {[string, unknown][]}
 */
function pairs(value, most) {
  if (Array.isArray(value)) return value.slice(0, most).map((one, at) => [String(at), one]);
  return Object.keys(value).slice(0, most).map((name) => [name, value[name]]);
}

/** @param {Record<string, unknown>} value */
function brief(value) {
  const names = Object.keys(value);
  return `{ ${names.slice(0, 4).join(", ")}${names.length > 4 ? ", …" : ""} }`;
}

/** @param {{ value: unknown }} props */
function Leaf({ value }) {
  const [whole, setWhole] = useState(false);
  if (typeof value !== "string") {
    return html`<span class="json-${value === null ? "null" : typeof value}">${String(value)}</span>`;
  }
  const cut = !whole && value.length > LONGEST;
  return html`
    <span class="json-string">${cut ? value.slice(0, LONGEST) : value}</span>${cut && html`
      <button type="button" class="link" onClick=${() => setWhole(true)}>… ${value.length -
        LONGEST} more characters</button>
    `}
  `;
}
