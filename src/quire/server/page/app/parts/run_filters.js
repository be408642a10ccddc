// Filters of the list of runs: one search box, statuses as chips with their numbers, and the rest as fields. All of it
// is in the address.

import { html, useEffect, useMemo, useRef, useState } from "../html.js";
import { useResource } from "../resource.js";
import { place, setQuery } from "../router.js";
import { number, shown } from "../words.js";
import { Icon } from "./icon.js";

/** Statuses in the order of the chips: those that want something from the user first. */
const ORDER = [
  "awaiting_input",
  "running",
  "paused",
  "interrupted",
  "failed",
  "pending",
  "completed",
  "cancelled",
  "expired",
];
/** Ages in the address, in seconds. @type {Record<string, [string, number]>} */
const AGES = {
  "1h": ["in the last hour", 3600],
  "24h": ["in the last 24 hours", 86_400],
  "7d": ["in the last 7 days", 604_800],
  "30d": ["in the last 30 days", 2_592_000],
};
const FORMATS = ["playbook", "pipeline", "directive"];

/** @typedef {{ q: string, statuses: string[], format: string, since: string, document: string, origin: string, asks: boolean }} Filters */

/** @returns {Filters} the filters of the address */
export function filtersHere() {
  const { query } = place.value;
  const statuses = (query.get("status") ?? "").split(",").filter((one) => ORDER.includes(one));
  return {
    q: query.get("q") ?? "",
    statuses,
    format: query.get("format") ?? "",
    since: query.get("since") ?? "",
    document: query.get("document") ?? "",
    origin: query.get("origin") ?? "",
    asks: query.get("asks") === "1",
  };
}

/**
 * @param {Filters} filters
 * @returns {{ list: string, counts: string }} the queries of the API
 */
export function useQueries({ q, statuses, format, since, document, origin, asks }) {
  // The moment stays the same while the filter does: otherwise the list would be read again and again.
  const from = useMemo(
    () => AGES[since] ? Math.floor(Date.now() / 1000) - AGES[since][1] : Number(since) || undefined,
    [since],
  );
  const shared = new URLSearchParams();
  for (const [name, value] of Object.entries({ q: q.trim(), format, since: from, document, origin })) {
    if (value) shared.set(name, String(value));
  }
  const list = new URLSearchParams(shared);
  statuses.forEach((status) => list.append("status", status));
  if (asks) list.set("asks", "true");
  return { list: list.toString(), counts: shared.toString() };
}

/** @param {Filters} filters @returns {boolean} */
export function isFiltered({ q, statuses, format, since, document, origin, asks }) {
  return Boolean(q || statuses.length || format || since || document || origin || asks);
}

export function clearFilters() {
  setQuery({
    q: undefined,
    status: undefined,
    format: undefined,
    since: undefined,
    document: undefined,
    origin: undefined,
    asks: undefined,
  });
}

/** @param {{ filters: Filters, counts: any }} props */
export function RunFilters({ filters, counts }) {
  return html`
    <div class="filters">
      <${SearchBox} q=${filters.q} />
      <${Fields} filters=${filters} />
    </div>
    <${Chips} filters=${filters} counts=${counts} />
  `;
}

/** @param {{ q: string }} props */
function SearchBox({ q }) {
  const [text, setText] = useState(q);
  const timer = useRef(0);
  const typed = useRef(q);
  useEffect(() => {
    if (q !== typed.current) setText(q);
    typed.current = q;
  }, [q]);
  /** @param {string} value */
  const search = (value) => {
    setText(value);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      typed.current = value;
      setQuery({ q: value || undefined });
    }, 200);
  };
  return html`
    <label class="search-box">
      <span class="visually-hidden">Search runs</span>
      <${Icon} name="search" />
      <input type="search" value=${text} placeholder="Words in title, document, inputs, error or id" autocomplete="off"
        spellcheck="false" onInput=${(/** @type {any} */ event) => search(event.target.value)} />
    </label>
  `;
}

/** @param {{ filters: Filters }} props */
function Fields({ filters }) {
  // All documents are read and checked for their list, so it is asked for only when it is wanted.
  const [wanted, setWanted] = useState(false);
  const documents = useResource(wanted ? "/documents" : null, (frame) => frame.event === "documents");
  const names = /** @type {string[]} */ ((documents.data?.items ?? []).map((/** @type {any} */ one) => one.id));
  if (filters.document && !names.includes(filters.document)) names.unshift(filters.document);
  return html`
    <${Field} label="Document" onWant=${() => setWanted(true)} name="document" value=${filters
      .document} any="any document"
      options=${names.map((
        one,
      ) => [one, one])} />
    <${Field} label="Format" name="format" value=${filters.format} any="any format" options=${FORMATS.map((
      one,
    ) => [one, one])} />
    <${Field} label="Started" name="since" value=${filters.since} any="at any time" options=${Object.entries(AGES).map((
      [key, [words]],
    ) => [key, words])} />
  `;
}

/** @param {{ label: string, name: string, value: string, any: string, options: [string, string][], onWant?: () => void }} props */
function Field({ label, name, value, any, options, onWant }) {
  return html`
    <select class=${value
      ? "filter set"
      : "filter"} aria-label=${label} value=${value} onFocus=${onWant} onPointerEnter=${onWant}
      onChange=${(
        /** @type {any} */ event,
      ) => setQuery({ [name]: event.target.value || undefined })}>
      <option value="">${any}</option>
      ${options.map(([key, words]) => html`<option key=${key} value=${key}>${words}</option>`)}
    </select>
  `;
}

/** @param {{ filters: Filters, counts: any }} props */
function Chips({ filters, counts }) {
  const { statuses, asks, origin } = filters;
  const total = counts?.statuses ?? {};
  const more = new Set(counts?.more ?? []);
  const seen = ORDER.filter((status) => total[status] || statuses.includes(status));
  /** @param {string} status */
  const toggle = (status) => {
    const next = statuses.includes(status) ? statuses.filter((one) => one !== status) : [...statuses, status];
    setQuery({ status: next.join(",") || undefined });
  };
  return html`
    <div class="chips" role="group" aria-label="Filters">
      ${seen.map((status) => {
        const { word, icon } = shown(status);
        return html`
          <button type="button" key=${status} class="chip" aria-pressed=${statuses.includes(status)}
            onClick=${() => toggle(status)}>
            <${Icon} name=${icon} />${word}<span class="number">${number(total[status] ?? 0)}${more.has(status)
              ? "+"
              : ""}</span>
          </button>
        `;
      })}
      ${(asks || counts?.asks > 0) && html`
        <button type="button" class="chip" aria-pressed=${asks} onClick=${() =>
          setQuery({ asks: asks ? undefined : "1" })}>
          <${Icon} name="question" />has an open question<span class="number">${number(counts?.asks ?? 0)}</span>
        </button>
      `}
      ${origin && html`
        <button type="button" class="chip" aria-pressed="true" aria-label="Forks of ${origin}: remove this filter"
          onClick=${() => setQuery({ origin: undefined })}>
          <${Icon} name="fork" />forks of ${origin}<${Icon} name="cross" />
        </button>
      `}
      ${isFiltered(filters) &&
        html`<button type="button" class="chip quiet" onClick=${clearFilters}>Clear all</button>`}
    </div>
  `;
}
