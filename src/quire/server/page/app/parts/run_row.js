// One run in the list: a row of columns on a wide screen, a card on a phone. The whole row is the link.

import { html } from "../html.js";
import { Link } from "../router.js";
import { duration, money, number } from "../words.js";
import { Age, Status } from "./basics.js";
import { Icon } from "./icon.js";

const LIVE = ["running", "pending"];

/** The names of the columns; the cells name themselves to screen readers. */
export function RunHeader() {
  return html`
    <div class="run-row run-list-head" aria-hidden="true">
      <span></span><span>Status</span><span>Title</span><span>Step</span><span class="end">Started</span>
      <span class="end">Took</span><span class="end">Cost</span><span class="end">Tokens</span>
    </div>
  `;
}

/**
 * @param {{
 *   row: any, selected: boolean, here: boolean, onSelect: (id: string, range: boolean) => void,
 * }} props `here` marks the row that the keys have reached
 */
export function RunRow({ row, selected, here, onSelect }) {
  const live = LIVE.includes(row.status);
  const took = Math.max(0, (live ? Date.now() / 1000 : row.updated_at) - row.created_at);
  const tokens = row.input_tokens + row.output_tokens;
  return html`
    <div class="run-row ${here ? "here" : ""} ${selected ? "selected" : ""}" role="listitem">
      <label class="pick">
        <input type="checkbox" checked=${selected} aria-label="Select ${row.title}, ${row.id}"
          onClick=${(/** @type {MouseEvent} */ event) => onSelect(row.id, event.shiftKey)} />
      </label>
      <span class="run-status"><${Status} status=${row.status} /></span>
      <span class="run-what">
        <${Link} to="/runs/${row.id}" class="run-link">${row.title || row.document}</${Link}>
        <span class="run-more">
          <span class="soft run-document" title=${row.document}>${brief(row.document)}</span>
          ${row.origin && html`
            <span class="soft run-mark" title="Fork of ${row.origin.run}">
              <${Icon} name="fork" />fork of ${row.origin.run}</span>
          `}
          ${row.imported && html`<span class="soft run-mark"><${Icon} name="download" />imported</span>`}
        </span>
      </span>
      <span class="soft run-step">${row.step && html`<span class="spoken">step </span>${row.step}`}</span>
      <span class="soft number end"><span class="visually-hidden">started </span><${Age} at=${row.created_at} /></span>
      <span class="soft number end run-took"><span class="visually-hidden">took </span>${duration(took)}</span>
      <span class="soft number end run-cost"><span class="visually-hidden">cost </span>${price(row.cost)}</span>
      <span class="soft number end run-tokens">${tokens > 0 &&
        html`${number(tokens)}<span class="spoken"> tokens</span>`}</span>
    </div>
  `;
}

/** @param {number | null} cost */
function price(cost) {
  return cost === null ? html`<span title="The price of a call is not known">unknown</span>` : money(cost);
}

/** A path of this machine by its end: the rest says nothing in a list. @param {string} document */
function brief(document) {
  return document.startsWith("/") ? document.split("/").slice(-1)[0] : document;
}
