// The journal of a run: every recorded effect, to be filtered and opened. Only the rows in view are in the page.

import { ApiProblem, get, part, query } from "../api.js";
import { listen } from "../feed.js";
import { html, useEffect, useMemo, useRef, useState } from "../html.js";
import { Journal } from "../journal.js";
import { Command, Empty, Placeholder, ProblemBox } from "../parts/basics.js";
import { AnyValue, CopyText } from "../parts/content.js";
import { Icon } from "../parts/icon.js";
import { RunFrame } from "../parts/run_frame.js";
import { who } from "../parts/run_question.js";
import { VirtualList } from "../parts/virtual_list.js";
import { useResource } from "../resource.js";
import { Link, place, setQuery } from "../router.js";
import { duration, moment, money, number } from "../words.js";

const PAGE = 20_000;
const STATES = /** @type {Record<string, [string, string]>} */ ({
  ok: ["check", "good"],
  failed: ["cross", "bad"],
  intent: ["warning", "warn"],
});

/** @param {{ run: string }} props */
export function RunJournal({ run }) {
  return html`
    <${RunFrame} run=${run} tab="journal">
      ${(/** @type {import("../run_store.js").RunStore} */ store) => html`<${JournalView} key=${run} store=${store} />`}
    </${RunFrame}>
  `;
}

/**
 * @param {string} id
 * @returns {{ journal: Journal, version: number, problem: any, loaded: boolean }}
 */
function useJournal(id) {
  const journal = useRef(new Journal());
  const [state, setState] = useState({ version: 0, problem: /** @type {any} */ (null), loaded: false });
  useEffect(() => {
    let gone = false;
    let drawing = 0;
    /** @type {any[]} */
    let early = [];
    let loaded = false;
    const draw = () => {
      drawing = 0;
      if (!gone) setState((now) => ({ ...now, version: now.version + 1 }));
    };
    const stop = listen(({ event, data }) => {
      if (event !== "effect" || data.run !== id) return;
      if (loaded) journal.current.take(data);
      else early.push(data);
      drawing ||= setTimeout(draw, 100);
    });
    const load = async () => {
      try {
        for (let after = "0"; after && !gone;) {
          const page = await get(`/runs/${part(id)}/effects${query({ columns: 1, limit: PAGE, after })}`);
          journal.current.add(page.columns);
          after = page.next;
        }
        loaded = true;
        early.forEach((event) => journal.current.take(event));
        early = [];
        if (!gone) setState((now) => ({ version: now.version + 1, problem: null, loaded: true }));
      } catch (error) {
        if (!(error instanceof ApiProblem)) throw error;
        if (!gone) setState((now) => ({ ...now, problem: error.problem }));
      }
    };
    load();
    return () => {
      gone = true;
      clearTimeout(drawing);
      stop();
    };
  }, [id]);
  return { journal: journal.current, ...state };
}

/** @param {{ store: import("../run_store.js").RunStore }} props */
function JournalView({ store }) {
  const id = store.head.value?.id ?? "";
  const { journal, version, problem, loaded } = useJournal(id);
  const asked = place.value.query;
  const filters = { kind: asked.get("kind") ?? "", state: asked.get("state") ?? "", path: asked.get("path") ?? "" };
  const open = asked.get("effect") ?? "";
  const rows = useMemo(() => journal.fitting(filters), [version, filters.kind, filters.state, filters.path]);
  if (problem) return html`<${ProblemBox} problem=${problem} />`;
  if (!loaded) return html`<${Placeholder} lines=${6} />`;
  const at = open ? rows.indexOf(journal.places.get(open) ?? -1) : -1;
  return html`
    <h2 class="visually-hidden">Journal</h2>
    <div class="journal-filters">
      <label>Kind <select value=${filters.kind} onChange=${(/** @type {any} */ event) =>
        setQuery({ kind: event.target.value })}>
        <option value="">all</option>${journal.kinds().map((kind) => html`<option value=${kind}>${kind}</option>`)}
      </select></label>
      <label>State <select value=${filters.state} onChange=${(/** @type {any} */ event) =>
        setQuery({ state: event.target.value })}>
        <option value="">all</option>${Object.keys(STATES).map((state) =>
          html`<option value=${state}>${state}</option>`
        )}
      </select></label>
      <label
        class="grow">Path <input type="search" value=${filters.path} placeholder="part of a path" onInput=${(
          /** @type {any} */ event,
        ) => setQuery({ path: event.target.value })} /></label>
      <span class="soft number" role="status">${number(rows.length)} of ${number(journal.length)}</span>
      <${Command} command="quire runs ${id} --journal" />
    </div>
    ${rows.length
      ? html`
        <div class="journal ${open ? "with-effect" : ""}">
          <div class="journal-list">
            <div class="journal-row journal-head" aria-hidden="true"><span>State</span><span>Path</span><span>Kind</span><span>Began</span><span>Took</span><span>Tokens</span><span>Cost</span><span>Size</span></div>
            <${VirtualList} pane class="journal-rows" label="Effects" count=${rows
              .length} rowHeight=${32} shows=${at} row=${(/** @type {number} */ index) =>
              html`<${JournalRow} key=${rows[index]} entry=${journal.entry(rows[index])} open=${open} />`} />
          </div>
          ${open && html`<${Effect} key=${open} run=${id} path=${open} />`}
        </div>
      `
      : html`<${Empty} title=${
        journal.length ? "Nothing fits these filters." : "Nothing is recorded yet."
      } icon="search" />`}
  `;
}

/** @param {{ entry: import("../journal.js").Entry, open: string }} props */
function JournalRow({ entry, open }) {
  const [icon, tone] = STATES[entry.state] ?? ["dot", "quiet"];
  const asked = new URLSearchParams(place.value.query);
  asked.set("effect", entry.path);
  return html`
    <div role="listitem" class="journal-item">
      <${Link} class="journal-row" to="${place.value.path}?${asked}" aria-current=${entry.path === open
        ? "true"
        : undefined} title=${entry.error ?? ""}>
        <span class="status tone-${tone}"><${Icon} name=${icon} />${entry.state}</span>
        <span class="mono journal-path">${entry.path}</span>
        <span>${entry.kind}</span>
        <span class="number soft" title=${moment(entry.at)}>${moment(entry.at).slice(-8)}</span>
        <span class="number">${duration(entry.elapsed)}</span>
        <span class="number">${entry.tokens === null ? "" : number(entry.tokens)}</span>
        <span class="number">${entry.cost === undefined
          ? ""
          : entry.cost === null
          ? "unknown"
          : money(entry.cost)}</span>
        <span class="number soft">${entry.size === null ? "" : bytes(entry.size)}</span>
        </${Link}>
        </div>
  `;
}

/** @param {number} count */
function bytes(count) {
  return count < 1000
    ? `${count} B`
    : count < 1_000_000
    ? `${(count / 1000).toFixed(1)} kB`
    : `${(count / 1e6).toFixed(1)} MB`;
}

/** @param {{ run: string, path: string }} props */
function Effect({ run, path }) {
  const found = useResource(`/runs/${part(run)}/effects/${part(path)}`);
  const close = () => setQuery({ effect: undefined });
  const effect = found.data;
  return html`
    <section class="journal-effect" aria-label="Effect ${path}">
      <header>
        <h3 class="mono">${path}</h3>
        <span class="push actions">
          ${effect && html`<${CopyText} text=${JSON.stringify(effect, null, 2)} label="Copy as JSON" />`}
          <${Link} class="button small-button" to="/runs/${run}/steps/${part(path)}">Open</${Link}>
          <button type="button" class="icon-button" aria-label="Close" onClick=${close}><${Icon} name="cross" /></button>
        </span>
      </header>
      ${found.problem && html`<${ProblemBox} problem=${found.problem} retry=${found.reload} />`}
      ${effect && html`
        <dl class="facts">
          <div><dt>Kind</dt><dd>${effect.kind}</dd></div>
          <div><dt>Began</dt><dd>${moment(effect.at)}</dd></div>
          <div><dt>Took</dt><dd>${duration(effect.elapsed)}</dd></div>
          ${effect.usage && html`
            <div>
              <dt>Used</dt>
              <dd>${number(effect.usage.input_tokens)} in, ${number(effect.usage.output_tokens)} out, ${money(
                effect.usage.cost,
              )}</dd>
            </div>
          `}
          ${effect.by && html`
            <div>
              <dt>Answered by</dt>
              <dd>${who(effect.by)}</dd>
            </div>
          `}
        </dl>
        ${effect.error && html`<p class="step-message pre">${effect.error.kind}: ${effect.error.message}</p>`}
        <h4>Value</h4>
        <${AnyValue} value=${effect.value} />
        <p class="soft small mono">request ${effect.request || "none"}</p>
      `}
    </section>
  `;
}
