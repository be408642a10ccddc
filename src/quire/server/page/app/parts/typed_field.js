// A field for one value, by its JSON Schema: a list for choices and booleans, a number, a text, or JSON with a check.

import { html } from "../html.js";
import { chosen, optionText } from "./input_field.js";

/** @typedef {Record<string, any>} Schema */
/** @typedef {"choice" | "boolean" | "number" | "text" | "json"} Kind */

/**
 * @param {Schema | undefined} schema
 * @param {unknown} value the value now, which decides where the schema says nothing
 * @returns {Kind}
 */
export function kindOf(schema, value) {
  if (Array.isArray(schema?.enum)) return "choice";
  const type = schema?.type ?? (value === null || value === undefined ? "" : typeof value);
  if (type === "boolean") return "boolean";
  if (type === "number" || type === "integer") return "number";
  return type === "string" ? "text" : "json";
}

/** @param {unknown} value @param {Kind} kind @returns {string} the value as the field shows it */
export function written(value, kind) {
  if (value === undefined || (value === null && kind !== "choice")) return "";
  if (kind === "choice") return optionText(value);
  return kind === "json" || typeof value === "object" ? JSON.stringify(value, null, 2) : String(value);
}

/**
 * @param {string} text
 * @param {Kind} kind
 * @param {Schema} [schema]
 * @returns {{ value?: unknown, problem?: string }}
 */
export function readField(text, kind, schema) {
  switch (kind) {
    case "choice":
      return { value: chosen(schema?.enum ?? [], text) };
    case "boolean":
      return { value: text === "true" };
    case "number":
      return text.trim() && Number.isFinite(Number(text))
        ? { value: Number(text) }
        : { problem: "This is not a number." };
    case "json":
      try {
        return { value: JSON.parse(text) };
      } catch {
        return { problem: "This is not JSON." };
      }
    default:
      return { value: text };
  }
}

/**
 * @param {{
 *   name: string, schema?: Schema, kind: Kind, text: string, changed: boolean, problem?: string,
 *   onText: (text: string) => void, onReset: () => void,
 * }} props
 */
export function TypedField({ name, schema, kind, text, changed, problem, onText, onReset }) {
  const id = `field-${name}`;
  /** @param {any} event */
  const input = (event) => onText(event.target.value);
  const shared = {
    id,
    value: text,
    "aria-invalid": Boolean(problem),
    "aria-describedby": problem ? `${id}-problem` : undefined,
  };
  const choices = kind === "choice" ? schema?.enum.map(optionText) : ["true", "false"];
  return html`
    <div class=${changed ? "typed-field changed" : "typed-field"}>
      <label for=${id}><code>${name}</code> <span class="soft">${kind === "json" ? "JSON" : kind}${changed
        ? ", changed"
        : ""}</span></label>
      ${changed &&
        html`<button type="button" class="link" onClick=${onReset} aria-label="Leave ${name} as it is">leave as it is</button>`}
      ${schema?.description && html`<p class="soft small">${schema.description}</p>`}
      ${kind === "choice" || kind === "boolean"
        ? html`<select ...${shared} onChange=${input}>${
          choices.map((/** @type {string} */ one) => html`<option key=${one} value=${one}>${one}</option>`)
        }</select>`
        : kind === "number"
        ? html`<input ...${shared} inputmode="decimal" onInput=${input} />`
        : html`
          <textarea ...${shared} rows=${Math.min(8, text.split("\n").length + (text.length > 90 ? 1 : 0))}
            spellcheck=${kind === "text"} onInput=${input}></textarea>
        `}
      ${problem && html`<p id="${id}-problem" class="field-problem">${problem}</p>`}
    </div>
  `;
}
