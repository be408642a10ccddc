// Fields for values, made from their JSON Schema: choices, numbers, texts of one or many lines, JSON. And the last values
// of a form, kept by this browser for each document until the user clears them.

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

/** @param {string} document */
const place = (document) => `quire-form:${document}`;

/** @param {string} document @returns {any} */
export function remembered(document) {
  try {
    return JSON.parse(localStorage.getItem(place(document)) ?? "null");
  } catch {
    return null;
  }
}

/** @param {string} document @param {unknown} values null forgets them */
export function rememberForm(document, values) {
  try {
    if (values === null) localStorage.removeItem(place(document));
    else localStorage.setItem(place(document), JSON.stringify(values));
  } catch {
    // A browser that keeps nothing, or a text that is too long for it.
  }
}

/** The schema of a value that a run has: the value decides where the schema says nothing. @param {InputSchema | undefined} schema @param {unknown} value @returns {InputSchema} */
export function fieldSchema(schema, value) {
  const own = value === undefined || value === null ? undefined : Array.isArray(value) ? "array" : typeof value;
  const type = schema?.type ?? own;
  return { ...schema, type, default: value, "x-typed": true, "x-lines": type === "string" };
}

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
function isPlainList({ items, type, default: value, "x-typed": typed }) {
  if (!typed || type !== "array" || (items?.type !== "string" && items?.type !== "number")) return false;
  return !Array.isArray(value) ||
    value.every((item) => String(item) === String(item).trim() && item !== "" && !/[\r\n]/.test(String(item)));
}

/** What is said about an input, if anything is. @param {Record<string, string> | undefined} said @param {string} name */
export function own(said, name) {
  return said && Object.hasOwn(said, name) ? said[name] : undefined;
}

/** The text that a field begins with: a default is a value, not a hint. @param {InputSchema} schema @param {unknown} [value] */
export function firstText(schema, value = schema.default) {
  if (value === undefined || (value === null && !schema.enum)) return "";
  if (kindOf(schema) === "items" && Array.isArray(value)) return value.join("\n");
  return typeof value === "string" ? value : JSON.stringify(value, null, typeof value === "object" ? 2 : 0);
}

/**
 * The value that a text of a field stands for: of the type that a declared input has.
 *
 * @param {InputSchema} schema
 * @param {string} text
 * @returns {{ value?: unknown, problem?: string, words?: string }} no value for a field that is left empty
 */
export function readText(schema, text) {
  const kind = kindOf(schema);
  if (!text.trim()) return {};
  if (!schema["x-typed"] && kind !== "json") return { value: text };
  switch (kind) {
    case "check":
      return { value: text === "true" };
    case "choice":
      return { value: valuesOf(schema).find((option) => optionText(option) === text) ?? text };
    case "number":
      return readNumber(text);
    case "items": {
      const lines = text.split("\n").map((line) => line.trim()).filter(Boolean);
      const read = lines.map((line) => schema.items?.type === "number" ? readNumber(line) : { value: line });
      const problem = read.find((item) => "problem" in item)?.problem;
      return { value: read.map((item) => item.value), problem, words: plural(lines.length, "item") };
    }
    case "json":
      return readJson(schema, text);
    default:
      return { value: text };
  }
}

/** @param {InputSchema} schema @param {string} text @returns {{ value: unknown, problem?: string, words?: string }} */
function readJson(schema, text) {
  try {
    const value = JSON.parse(text);
    return { value, words: `read as ${nameOf(value)}` };
  } catch (error) {
    const problem = `this is not JSON: ${error instanceof Error ? error.message : error}`;
    return /^\s*[[{"]/.test(text) || schema.type ? { value: text, problem } : { value: text, words: "read as text" };
  }
}

/** @param {string} text @returns {{ value: unknown, problem?: string }} */
function readNumber(text) {
  const value = Number(text);
  if (!Number.isFinite(value)) return { value: text, problem: `${text.trim()} is not a number` };
  const isSafe = Math.abs(value) <= Number.MAX_SAFE_INTEGER;
  return isSafe ? { value } : { value: text, problem: "this page cannot hold so large a number: use a terminal" };
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
 *   onText: (text: string) => void, onTouch?: () => void, prefix?: string,
 * }} props `prefix` begins the id of the field
 */
export function InputField({ name, schema, required, text, problem, hint, onText, onTouch, prefix = "input" }) {
  const id = `${prefix}-${name}`;
  const notes = [schema.description && `${id}-about`, problem && `${id}-problem`].filter(Boolean).join(" ") ||
    undefined;
  const shared = { id, "aria-describedby": notes, "aria-invalid": problem ? "true" : undefined, onBlur: onTouch };
  const kind = kindOf(schema);
  const options = valuesOf(schema).map(optionText);
  /** @param {any} event */
  const onInput = (event) => onText(event.target.value);
  /** @param {string} value */
  const choose = (value) => (onText(value), onTouch?.());
  const about = schema.description && html`<p class="field-about" id="${id}-about">${schema.description}</p>`;
  // What the server says of an empty field comes later: its line is kept free, so that nothing moves under the pointer.
  const mayBeEmpty = schema.default === undefined;
  const after = problem
    ? html`<p class="input-problem" id="${id}-problem"><${Icon} name="cross" />${problem}</p>`
    : (hint || mayBeEmpty) && html`<p class="field-hint">${hint}</p>`;
  const title = html`<code>${name}</code> <span class="soft small">${words(schema, required)}</span>`;
  if (kind === "choice" && options.length <= MOST_RADIOS) {
    return html`
      <fieldset class="field ${problem ? "wrong" : ""}" aria-describedby=${notes}>
        <legend>${title}</legend>${about}
        <div class="radios">
          ${options.map((option) =>
            html`
              <label class="radio-choice"><input type="radio" name=${id} value=${option} checked=${text === option}
                onChange=${() => choose(option)} /><span>${option}</span></label>
            `
          )}
          ${!required && text && mayBeEmpty &&
            html`<button type="button" class="link small" onClick=${() => onText("")}>none</button>`}
        </div>
        ${after}
      </fieldset>
    `;
  }
  const control = kind === "check"
    ? html`
      <label class="check"><input type="checkbox" ...${shared} checked=${text === "true"}
        onChange=${(/** @type {any} */ event) => choose(String(event.target.checked))} /><span>${title}</span></label>
    `
    : kind === "choice"
    ? html`
      <select ...${shared} value=${text} onChange=${(/** @type {any} */ event) => choose(event.target.value)}>
        <option value="">choose …</option>
        ${options.map((option) => html`<option value=${option} selected=${option === text}>${option}</option>`)}
      </select>
    `
    : kind === "line" || kind === "number"
    ? html`
      <input type="text" ...${shared} value=${text} inputmode=${kind === "number" ? "decimal" : undefined}
        class=${kind === "number" ? "short" : ""} onInput=${onInput} />
    `
    : html`<${LongText} shared=${shared} kind=${kind} text=${text} onText=${onText} />`;
  return html`
    <div class="field ${problem ? "wrong" : ""}">
      ${kind !== "check" && html`<label for=${id}>${title}</label>`}${kind !== "check" && about}${control}
      ${kind === "check" && about}${after}
    </div>
  `;
}

/** @param {InputSchema} schema @returns {unknown[]} */
function valuesOf(schema) {
  return schema.enum ?? [true, false];
}

/** @param {unknown} value */
function optionText(value) {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** @param {InputSchema} schema @param {boolean} required */
function words(schema, required) {
  const kind = kindOf(schema);
  const type = schema.enum
    ? "one of these"
    : kind === "items"
    ? `${schema.items?.type === "number" ? "numbers" : "texts"}, one on each line`
    : schema["x-lines"]
    ? "text"
    : schema["x-typed"] && kind === "json"
    ? `${schema.type === "array" ? "list" : "object"}, as JSON`
    : schema.type ?? "any JSON, or text";
  return `${type}${required ? ", required" : ""}`;
}

/** A text of many lines, or JSON. A file that is dropped on it becomes its text. @param {{ shared: any, kind: string, text: string, onText: (text: string) => void }} props */
function LongText({ shared, kind, text, onText }) {
  const [over, setOver] = useState(false);
  const [refused, setRefused] = useState("");
  /** @param {File | undefined} file */
  const take = async (file) => {
    setOver(false);
    if (!file) return;
    const content = file.size > LARGEST_FILE ? null : await file.text();
    const isText = content !== null && !/[\0\ufffd]/.test(content);
    setRefused(isText ? "" : `${file.name} is ${content === null ? "larger than 1 MB" : "not a text"}`);
    if (isText) onText(content);
  };
  /** @param {DragEvent} event @param {boolean} isOver */
  const drag = (event, isOver) => (event.preventDefault(), setOver(isOver));
  return html`
    <div class="drop ${over ? "over" : ""}" onDragOver=${(/** @type {DragEvent} */ event) => drag(event, true)}
      onDragLeave=${() => setOver(false)}
      onDrop=${(/** @type {DragEvent} */ event) => (drag(event, false), take(event.dataTransfer?.files[0]))}>
      <textarea ...${shared} rows=${Math.min(14, Math.max(3, text.split("\n").length))}
        class=${kind === "json" ? "mono" : ""} spellcheck=${kind !== "json"} value=${text}
        onInput=${(/** @type {any} */ event) => onText(event.target.value)}></textarea>
      <label class="file-pick small"><${Icon} name="download" />Take a file, or drop one here
        <input type="file" class="visually-hidden" onChange=${(/** @type {any} */ event) =>
          take(event.target.files?.[0])} /></label>
      ${refused && html`<p class="input-problem"><${Icon} name="cross" />${refused}</p>`}
    </div>
  `;
}
