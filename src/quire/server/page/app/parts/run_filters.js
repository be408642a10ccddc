// Filters of the list of runs, all of them in the address, and views: addresses that this browser keeps by a name.

import { html, useEffect, useMemo, useRef, useState } from "../html.js";
import { useResource } from "../resource.js";
import { go, Link, place, setQuery } from "../router.js";
import { moment, number, shown, STATUSES } from "../words.js";
import { Dialog } from "./dialog.js";
import { Icon } from "./icon.js";
import { COLUMNS, SORTS } from "./run_row.js";

/** Ages in the address, in seconds. @type {Record<string, [string, number]>} */
const AGES = {
  "1h": ["last hour", 3600],
  "24h": ["last 24 hours", 86_400],
  "7d": ["last 7 days", 604_800],
  "14d": ["last 14 days", 1_209_600],
  "30d": ["last 30 days", 2_592_000],
};
const COSTS = ["0.01", "0.1", "0.5", "1", "10"];
/** @type {[string, string][]} */
const TIMES = [["10", "10 s"], ["60", "1 min"], ["600", "10 min"], ["3600", "1 h"]];
/** Filters that the API takes as they are in the address, under its names. */
const NAMES = { q: "q", document: "document", format: "format", origin: "origin", min_cost: "cost", min_took: "took" };
const KEPT = { views: "quire-views", columns: "quire-columns" };
const MOST_VIEWS = 20;
const MOST_NAME = 60;

/** @typedef {{ list: string, counts: string, is: boolean }} Queries `is` tells whether anything is filtered */

/** @returns {Queries} the queries of the API for the filters of the address */
export function useQueries() {
  const { query } = place.value;
  const since = query.get("since") ?? "";
  // The moment stays the same while the filter does: otherwise the list would be read again and again.
  const from = useMemo(() => AGES[since] ? Math.floor(Date.now() / 1000) - AGES[since][1] : Number(since), [since]);
  const shared = new URLSearchParams();
  for (const [name, key] of Object.entries(NAMES)) {
    const value = query.get(key)?.trim();
    if (value && (!name.startsWith("min") || Number(value) >= 0)) shared.set(name, value);
  }
  if (from) shared.set("since", String(from));
  if (Number(query.get("until"))) shared.set("until", query.get("until") ?? "");
  const list = new URLSearchParams(shared);
  statusesHere().forEach((status) => list.append("status", status));
  if (query.get("asks") === "1") list.set("asks", "true");
  const is = list.size > 0;
  const sort = query.get("sort") ?? "";
  if (Object.hasOwn(SORTS, sort)) list.set("sort", sort);
  return { list: list.toString(), counts: shared.toString(), is };
}

function statusesHere() {
  return (place.value.query.get("status") ?? "").split(",").filter((status) => Object.hasOwn(STATUSES, status));
}

export function clearFilters() {
  const names = [...Object.values(NAMES), "since", "until", "status", "asks"];
  setQuery(Object.fromEntries(names.map((name) => [name, undefined])));
}

/** @param {{ counts: any, columns: string[], setColumns: (columns: string[]) => void }} props */
export function RunFilters({ counts, columns, setColumns }) {
  // All documents are read and checked for their list, so it is asked for only when it is wanted.
  const [wanted, setWanted] = useState(false);
  const documents = useResource(wanted ? "/documents" : null, (frame) => frame.event === "documents");
  const { query } = place.value;
  const total = counts?.statuses ?? {};
  const statuses = statusesHere();
  const several = statuses.length > 1
    ? [[statuses.join(","), statuses.map((status) => shown(status).word).join(" or ")]]
    : [];
  const seen = Object.keys(STATUSES).filter((status) => total[status] || statuses.includes(status));
  const day = Number(query.get("since")) ? [[query.get("since"), moment(Number(query.get("since"))).slice(0, 11)]] : [];
  const [origin, format] = [query.get("origin"), query.get("format")];
  return html`
    <div class="filters" role="group" aria-label="Filters">
      <${SearchBox} q=${query.get("q") ?? ""} />
      <${Choice} label="Document" name="document" onWant=${() => setWanted(true)}
        options=${(documents.data?.items ?? []).map((/** @type {any} */ item) => [item.id, item.id])} />
      <${Choice} label="Status" name="status" options=${[
        ...several,
        ...seen.map((status) => [status, `${shown(status).word} (${number(total[status] ?? 0)})`]),
      ]} />
      <${Choice} label="Started" name="since" options=${[
        ...day,
        ...Object.entries(AGES).map(([key, [words]]) => [key, words]),
      ]} more=${{ until: undefined }} />
      <${Choice} label="Cost" name="cost" options=${COSTS.map((cost) => [cost, `$${cost} or more`])} />
      <${Choice} label="Took" name="took" options=${TIMES.map(([key, words]) => [key, `${words} or longer`])} />
      <${Choice} label="Group" name="group" options=${[["document", "by document"], ["error", "by error"]]} />
      <span class="phone-only"><${Choice} label="Sort" name="sort" options=${Object.entries(SORTS).slice(
        0,
        3,
      )} /></span>
      <details class="menu columns">
        <summary class="button"><${Icon} name="items" />Columns</summary>
        <ul>${Object.entries(COLUMNS).map(([name, [title]]) =>
          html`
            <li key=${name}><label class="check"><input type="checkbox" checked=${columns.includes(name)}
              onChange=${() =>
                setColumns(
                  Object.keys(COLUMNS).filter((column) => columns.includes(column) !== (column === name)),
                )} />${title}</label>
            </li>
          `
        )}</ul>
      </details>
      ${[["origin", origin && `forks of ${origin}`], ["format", format]].map(([name, words]) =>
        words && html`
          <button type="button" key=${name} class="chip" aria-pressed="true" aria-label="${words}: remove this filter"
            onClick=${() => setQuery({ [name ?? ""]: undefined })}>${words}<${Icon} name="cross" /></button>
        `
      )}
    </div>
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
      <input type="search" value=${text} placeholder="Words of subject, inputs, error, name or note" autocomplete="off"
        spellcheck="false" onInput=${(/** @type {any} */ event) => search(event.target.value)} />
    </label>
  `;
}

/** One filter. A value of the address that is not among the options is one more. @param {{ label: string, name: string, options: string[][], more?: Record<string, undefined>, onWant?: () => void }} props */
function Choice({ label, name, options, more = {}, onWant }) {
  const value = place.value.query.get(name) ?? "";
  const all = !value || options.some(([key]) => key === value) ? options : [[value, value], ...options];
  return html`
    <select class=${value ? "filter set" : "filter"} aria-label=${label} value=${value} onFocus=${onWant}
      onPointerEnter=${onWant} onChange=${(/** @type {any} */ event) =>
        setQuery({ ...more, [name]: event.target.value || undefined })}>
      <option value="">${label}</option>
      ${all.map(([key, words]) => html`<option key=${key} value=${key}>${words}</option>`)}
    </select>
  `;
}

/** A value that this browser keeps. @param {"views" | "columns"} name @returns {[any[], (value: any[]) => void]} */
export function useKept(name) {
  const read = () => {
    try {
      const value = JSON.parse(localStorage.getItem(KEPT[name]) ?? "[]");
      return Array.isArray(value) ? value : [];
    } catch {
      return [];
    }
  };
  const [value, setValue] = useState(read);
  return [value, (now) => {
    setValue(now);
    try {
      localStorage.setItem(KEPT[name], JSON.stringify(now));
    } catch {
      // A browser that keeps nothing: it holds as long as the page is open.
    }
  }];
}

/** Views as tabs: all runs, those that wait, and the saved ones. @param {{ counts: any }} props */
export function RunViews({ counts }) {
  const [kept, setViews] = useKept("views");
  const [naming, setNaming] = useState(false);
  const views = kept.filter((view) => typeof view?.name === "string" && typeof view?.query === "string");
  const here = place.value.query.toString();
  const saved = views.find((view) => view.query === here);
  /** @type {{ name: string, query: string, count?: number }[]} */
  const tabs = [{ name: "All", query: "", count: counts?.total }, {
    name: "Waits for you",
    query: "asks=1",
    count: counts?.asks,
  }];
  /** @param {any} event */
  const save = (event) => {
    event.preventDefault();
    const name = new FormData(event.target).get("name")?.toString().trim();
    if (!name) return;
    setViews([...views.filter((view) => view.name !== name), { name, query: here }].slice(-MOST_VIEWS));
    setNaming(false);
  };
  return html`
    <nav class="tabs run-views" aria-label="Views">
      ${[...tabs, ...views].map(({ name, query, count }) =>
        html`
          <${Link} key=${name} to="/runs${query && `?${query}`}" aria-current=${query === here ? "page" : undefined}>
            ${name}${count ? html`<span class="count">${number(count)}</span>` : ""}</${Link}>
        `
      )}
      ${saved
        ? html`<button type="button" class="link" onClick=${() => (setViews(views.filter((view) => view !== saved)),
          go("/runs"))}>
          Remove this view</button>`
        : here && !tabs.some((tab) => tab.query === here) &&
          html`<button type="button" class="link" onClick=${() => setNaming(true)}>Save this view</button>`}
    </nav>
    ${naming && html`
      <${Dialog} title="Save this view" onClose=${() => setNaming(false)}>
        <form class="save-view" onSubmit=${save}>
          <label for="view-name">Name <span class="soft">kept in this browser; the address is what one shares</span></label>
          <input id="view-name" name="name" maxlength=${MOST_NAME} required autocomplete="off" />
          <div class="actions"><button type="submit" class="button primary">Save</button></div>
        </form>
        </${Dialog}>
    `}
  `;
}
