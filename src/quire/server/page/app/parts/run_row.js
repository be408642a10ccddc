// One run in the list: a row of columns on a wide screen, a card on a phone. The whole row is the link.

import { html } from "../html.js";
import { Link, place, setQuery } from "../router.js";
import { cut, duration, money, number, shown } from "../words.js";
import { Age } from "./basics.js";
import { Icon } from "./icon.js";

const LIVE = ["running", "pending"];
const MOST_SEGMENTS = 8;

/** Columns that the user adds: title, width, and the text of a run. @type {Record<string, [string, string, (row: any) => string]>} */
export const COLUMNS = {
  tokens: ["Tokens", "76px", (row) => number(row.input_tokens + row.output_tokens)],
  model: ["Model", "minmax(80px, 140px)", (row) => row.model ?? ""],
  id: ["Id", "112px", (row) => row.id],
  note: ["Note", "minmax(80px, 200px)", (row) => row.note ?? ""],
};
/** The orders of the list, with the title of their column. @type {Record<string, string>} */
export const SORTS = { subject: "Subject", took: "Took", cost: "Cost", started: "Started" };

/** @param {{ columns: string[], chosen: boolean, choose: (all: boolean) => void }} props `chosen`: all rows are selected */
export function RunHeader({ columns, chosen, choose }) {
  const now = place.value.query.get("sort") ?? "started";
  const sort = (/** @type {string} */ name) =>
    html`
      <button type="button" class="sort ${name === "subject" ? "" : "end"}" aria-pressed=${name === now}
        title="Sort by ${SORTS[name].toLowerCase()}" onClick=${() =>
          setQuery({ sort: name === "started" ? undefined : name })}>
        ${name === now && html`<${Icon} name="down" />`}${SORTS[name]}</button>
    `;
  return html`
    <div class="run-row run-list-head">
      <label class="pick"><input type="checkbox" checked=${chosen} aria-label="Select all runs that are listed"
        onChange=${(/** @type {any} */ event) => choose(event.target.checked)} /></label>
      <span></span>${sort("subject")}<span>Result or error</span><span>Steps</span>
      ${["took", "cost", "started"].map(sort)}
      ${columns.map((name) => html`<span key=${name}>${COLUMNS[name][0]}</span>`)}
    </div>
  `;
}

/**
 * @param {{
 *   row: any, columns: string[], selected: boolean, here: boolean, onSelect: (id: string, range: boolean) => void,
 * }} props `here` marks the row that the keys have reached
 */
export function RunRow({ row, columns, selected, here, onSelect }) {
  const { word, icon, tone } = shown(row.status);
  const took = LIVE.includes(row.status) ? Date.now() / 1000 - row.created_at : row.took ?? 0;
  const result = row.status === "failed" ? row.error?.message : row.result;
  const ends = row.status === "awaiting_input" && result ? `asks: ${result}` : result;
  return html`
    <div class="run-row ${here ? "here" : ""} ${selected ? "selected" : ""}" role="listitem">
      <label class="pick">
        <input type="checkbox" checked=${selected} aria-label="Select ${row.label}, ${row.id}"
          onClick=${(/** @type {MouseEvent} */ event) => onSelect(row.id, event.shiftKey)} />
      </label>
      <span class="sign tone-${tone}" title=${word}><${Icon} name=${icon} label=${word} /></span>
      <span class="run-what">
        <${Link} to="/runs/${row.id}" class="run-link" title=${row.label}>${row.label}</${Link}>
        <span class="run-more soft">
          <span class="run-document" title=${row.document}>${row.title || brief(row.document)}${row.name
            ? ` · ${row.subject}`
            : ""}</span>
          ${row.origin &&
            html`<span class="run-mark" title="Fork of ${row.origin.run}"><${Icon} name="fork" />fork</span>`}
          ${row.imported && html`<span class="run-mark"><${Icon} name="download" />imported</span>`}
        </span>
      </span>
      <span class="run-result ${row.status === "failed" ? "bad" : "soft"}" title=${ends}>${ends &&
        cut(ends, 200)}</span>
      <span class="run-steps"><${Steps} steps=${row.steps} tone=${tone} /></span>
      <span class="soft number end run-took"><span class="visually-hidden">took </span>${duration(
        Math.max(0, took),
      )}</span>
      <span class="soft number end run-cost"><span class="visually-hidden">cost </span>${row.cost === null
        ? html`<span title="The price of a call is not known">unknown</span>`
        : money(row.cost)}</span>
      <span class="soft number end"><span class="visually-hidden">started </span><${Age} at=${row.created_at} /></span>
      ${columns.map((name) => {
        const text = COLUMNS[name][2](row);
        return html`<span key=${name} class="soft run-extra" title=${text}>${text}</span>`;
      })}
    </div>
  `;
}

/** How far the run has come among the steps of its document. @param {{ steps: { at: number, of: number } | null, tone: string }} props */
function Steps({ steps, tone }) {
  if (!steps) return null;
  const { at, of } = steps;
  const label = `step ${at} of ${of}`;
  if (of > MOST_SEGMENTS) return html`<span class="soft number" title=${label}>${at} of ${of}</span>`;
  return html`
    <span class="segments" role="img" aria-label=${label} title=${label}>${Array.from(
      { length: of },
      (_, step) => html`<i class=${step + 1 < at ? "done" : step + 1 === at ? `run-at tone-${tone}` : ""}></i>`,
    )}</span>
  `;
}

/** A path of this machine by its end: the rest says nothing in a list. @param {string} document */
function brief(document) {
  return document.startsWith("/") ? document.split("/").slice(-1)[0] : document;
}
