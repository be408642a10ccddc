// Fields for the inputs of a document, made from their JSON Schema: choices, numbers, texts of one or many lines, JSON.

import { html, useState } from "../html.js";
import { plural } from "../words.js";
import { Icon } from "./icon.js";

/** @typedef {{ type?: string, enum?: string[], default?: unknown, description?: string, "x-lines"?: boolean }} InputSchema */

const MOST_RADIOS = 5;
const LARGEST_FILE = 1_000_000;

/** @param {InputSchema} schema @returns {"choice" | "number" | "line" | "lines" | "json"} */
export function kindOf(schema) {
  if (schema.enum || schema.type === "boolean") return "choice";
  if (schema.type === "number" || schema.type === "integer") return "number";
  if (schema.type === "string") return schema["x-lines"] ? "lines" : "line";
  return "json";
}

/** The text that a field begins with: a default is a value, not a hint. @param {InputSchema} schema */
export function firstText(schema) {
  const value = schema.default;
  if (value === undefined || value === null) return "";
  return typeof value === "string" ? value : JSON.stringify(value, null, typeof value === "object" ? 2 : 0);
}

/**
 * The value that a text of a field stands for.
 *
 * @param {InputSchema} schema
 * @param {string} text
 * @returns {{ value?: unknown, problem?: string, words?: string }} no value for a field that is left empty
 */
export function readText(schema, text) {
  if (!text.trim()) return {};
  if (kindOf(schema) !== "json") return { value: text };
  try {
    const value = JSON.parse(text);
    return { value, words: `read as ${nameOf(value)}` };
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    if (/^\s*[[{"]/.test(text) || schema.type) return { value: text, problem: `this is not JSON: ${problem}` };
    return { value: text, words: "read as text" };
  }
}

/** @param {unknown} value */
function nameOf(value) {
  if (Array.isArray(value)) return `a list of ${plural(value.length, "item")}`;
  if (value === null) return "null";
  return typeof value === "object" ? `an object with ${plural(Object.keys(value).length, "key")}` : `a ${typeof value}`;
}

/**
 * @param {{
 *   name: string, schema: InputSchema, required: boolean, text: string, problem?: string, hint?: string,
 *   onText: (text: string) => void, onTouch?: () => void,
 * }} props
 */
export function InputField({ name, schema, required, text, problem, hint, onText, onTouch }) {
  const id = `input-${name}`;
  const notes = [schema.description && `${id}-about`, problem && `${id}-problem`].filter(Boolean).join(" ");
  const shared = {
    id,
    "aria-describedby": notes || undefined,
    "aria-invalid": problem ? "true" : undefined,
    onBlur: onTouch,
  };
  const kind = kindOf(schema);
  const isGroup = kind === "choice" && optionsOf(schema).length <= MOST_RADIOS;
  const about = html`
    ${schema.description && html`<p class="field-about" id="${id}-about">${schema.description}</p>`}
  `;
  const after = html`
    ${problem && html`<p class="input-problem" id="${id}-problem"><${Icon} name="cross" />${problem}</p>`}
    ${!problem && hint && html`<p class="field-hint">${hint}</p>`}
  `;
  const title = html`<code>${name}</code> <span class="soft small">${words(schema, required)}</span>`;
  if (isGroup) {
    return html`
      <fieldset class="field ${problem ? "wrong" : ""}" aria-describedby=${notes || undefined}>
        <legend>${title}</legend>${about}
        <div class="radios">
          ${optionsOf(schema).map((option) =>
            html`
              <label class="radio-choice"><input type="radio" name=${id} value=${option} checked=${text === option}
                onChange=${() => (onText(option), onTouch?.())} /><span>${option}</span></label>
            `
          )}
          ${!required && text && schema.default === undefined &&
            html`<button type="button" class="link small" onClick=${() => onText("")}>none</button>`}
        </div>
        ${after}
      </fieldset>
    `;
  }
  return html`
    <div class="field ${problem ? "wrong" : ""}">
      <label for=${id}>${title}</label>${about}
      ${kind === "choice"
        ? html`
          <select ...${shared} value=${text} onChange=${(
            /** @type {any} */ event,
          ) => (onText(event.target.value), onTouch?.())}>
            <option value="">choose …</option>
            ${optionsOf(schema).map((option) =>
              html`<option value=${option} selected=${option === text}>${option}</option>`
            )}
          </select>
        `
        : kind === "line" || kind === "number"
        ? html`
          <input type="text" ...${shared} value=${text} inputmode=${kind === "number" ? "decimal" : undefined}
            class=${kind === "number" ? "short" : ""} onInput=${(/** @type {any} */ event) =>
              onText(event.target.value)} />
        `
        : html`<${LongText} shared=${shared} kind=${kind} text=${text} onText=${onText} />`}
      ${after}
    </div>
  `;
}

/** @param {InputSchema} schema */
function optionsOf(schema) {
  return schema.enum ?? ["true", "false"];
}

/** @param {InputSchema} schema @param {boolean} required */
function words(schema, required) {
  const kind = schema.enum ? "one of these" : schema["x-lines"] ? "text" : schema.type ?? "any JSON, or text";
  return `${kind}${required ? ", required" : ""}`;
}

/** A text of many lines, or JSON. A file that is dropped on it becomes its text. @param {{ shared: any, kind: string, text: string, onText: (text: string) => void }} props */
function LongText({ shared, kind, text, onText }) {
  const [over, setOver] = useState(false);
  const [refused, setRefused] = useState("");
  /** @param {File | undefined} file */
  const take = async (file) => {
    setOver(false);
    if (!file) return;
    if (file.size > LARGEST_FILE) return setRefused(`${file.name} is larger than 1 MB`);
    const found = await file.text();
    if (found.includes("\0") || found.includes("\ufffd")) return setRefused(`${file.name} is not a text`);
    setRefused("");
    onText(found);
  };
  return html`
    <div class="drop ${over ? "over" : ""}"
      onDragOver=${(/** @type {DragEvent} */ event) => (event.preventDefault(), setOver(true))}
      onDragLeave=${() => setOver(false)}
      onDrop=${(/** @type {DragEvent} */ event) => (event.preventDefault(), take(event.dataTransfer?.files[0]))}>
      <textarea ...${shared} rows=${Math.min(14, Math.max(3, text.split("\n").length))} class=${kind === "json"
        ? "mono"
        : ""}
        spellcheck=${kind !== "json"} value=${text} onInput=${(/** @type {any} */ event) =>
          onText(event.target.value)}></textarea>
      <label class="file-pick small"><${Icon} name="download" />Take a file, or drop one here
        <input type="file" class="visually-hidden" onChange=${(/** @type {any} */ event) =>
          take(event.target.files?.[0])} /></label>
      ${refused && html`<p class="input-problem"><${Icon} name="cross" />${refused}</p>`}
    </div>
  `;
}
