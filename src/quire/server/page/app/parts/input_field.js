// Fields for the inputs of a document, made from their JSON Schema: choices, numbers, texts of one or many lines, JSON.

import { html, useState } from "../html.js";
import { plural } from "../words.js";
import { Icon } from "./icon.js";

/**
 * @typedef {{
 *   type?: string, enum?: unknown[], items?: InputSchema, default?: unknown, description?: string,
 *   "x-lines"?: boolean, "x-typed"?: boolean,
 * }} InputSchema
 */

const MOST_RADIOS = 5;
const LARGEST_FILE = 1_000_000;

/** @param {InputSchema} schema @returns {"choice" | "check" | "number" | "line" | "lines" | "items" | "json"} */
export function kindOf(schema) {
  // Without a default an empty box could mean no as well as nothing.
  if (schema.type === "boolean" && schema["x-typed"] && typeof schema.default === "boolean") return "check";
  if (schema.enum || schema.type === "boolean") return "choice";
  if (schema.type === "number" || schema.type === "integer") return "number";
  if (schema.type === "string") return schema["x-lines"] ? "lines" : "line";
  return isPlainList(schema) ? "items" : "json";
}

/** A list that can be written with one item on each line. @param {InputSchema} schema */
function isPlainList(schema) {
  const { items } = schema;
  if (!schema["x-typed"] || schema.type !== "array" || !items) return false;
  if (items.type !== "string" && items.type !== "number") return false;
  return !Array.isArray(schema.default) ||
    schema.default.every((one) => String(one) === String(one).trim() && one !== "" && !/[\r\n]/.test(String(one)));
}

/** What is said about an input, if anything is. @param {Record<string, string> | undefined} said @param {string} name */
export function own(said, name) {
  return said && Object.hasOwn(said, name) ? said[name] : undefined;
}

/** The text that a field begins with: a default is a value, not a hint. @param {InputSchema} schema */
export function firstText(schema) {
  const value = schema.default;
  if (value === undefined || (value === null && !schema.enum)) return "";
  if (kindOf(schema) === "items" && Array.isArray(value)) return value.join("\n");
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
  if (schema["x-typed"] && kindOf(schema) !== "json") return readTyped(schema, text);
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

/**
 * The value of the type that a declared input has.
 *
 * @param {InputSchema} schema
 * @param {string} text
 * @returns {{ value?: unknown, problem?: string, words?: string }}
 */
function readTyped(schema, text) {
  switch (kindOf(schema)) {
    case "check":
      return { value: text === "true" };
    case "choice":
      return { value: chosen(valuesOf(schema), text) };
    case "number":
      return readNumber(text);
    case "items": {
      const lines = text.split("\n").map((line) => line.trim()).filter(Boolean);
      const read = lines.map((line) => schema.items?.type === "number" ? readNumber(line) : { value: line });
      const problem = read.find((one) => one.problem)?.problem;
      return { value: read.map((one) => one.value), problem, words: plural(lines.length, "item") };
    }
    default:
      return { value: text };
  }
}

/** @param {string} text @returns {{ value: unknown, problem?: string }} */
function readNumber(text) {
  const value = Number(text);
  if (!Number.isFinite(value)) return { value: text, problem: `${text.trim()} is not a number` };
  if (Math.abs(value) > Number.MAX_SAFE_INTEGER) {
    return { value: text, problem: "this page cannot hold so large a number: use a terminal" };
  }
  return { value };
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
  // What the server says of an empty field comes later: its line is kept free, so that nothing moves under the pointer.
  const mayBeEmpty = schema.default === undefined;
  const after = html`
    ${problem && html`<p class="input-problem" id="${id}-problem"><${Icon} name="cross" />${problem}</p>`}
    ${!problem && (hint || mayBeEmpty) && html`<p class="field-hint">${hint}</p>`}
  `;
  const title = html`<code>${name}</code> <span class="soft small">${words(schema, required)}</span>`;
  if (kind === "check") {
    return html`
      <div class="field ${problem ? "wrong" : ""}">
        <label class="check"><input type="checkbox" ...${shared} checked=${text === "true"}
          onChange=${(/** @type {any} */ event) => (onText(String(event.target.checked)), onTouch?.())} />
          <span>${title}</span></label>${about}${after}
      </div>
    `;
  }
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
  return valuesOf(schema).map(optionText);
}

/** @param {InputSchema} schema @returns {unknown[]} */
function valuesOf(schema) {
  return schema.enum ?? [true, false];
}

/** The option that a text stands for; the text itself if it is none. @param {unknown[]} options @param {string} text */
export function chosen(options, text) {
  const at = options.findIndex((one) => optionText(one) === text);
  return at < 0 ? text : options[at];
}

/** @param {unknown} value */
export function optionText(value) {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** @param {InputSchema} schema @param {boolean} required */
function words(schema, required) {
  const kind = schema.enum
    ? "one of these"
    : kindOf(schema) === "items"
    ? `${schema.items?.type === "number" ? "numbers" : "texts"}, one on each line`
    : schema["x-lines"]
    ? "text"
    : schema["x-typed"] && kindOf(schema) === "json"
    ? `${schema.type === "array" ? "list" : "object"}, as JSON`
    : schema.type ?? "any JSON, or text";
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
