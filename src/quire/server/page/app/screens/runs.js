// Runs: all of them in one list or in groups, filters in the address, several at once by selection.

import { part } from "../api.js";
import { html, useEffect, useState } from "../html.js";
import { addShortcuts } from "../keys.js";
import { Age, Command, Empty, Placeholder, ProblemBox } from "../parts/basics.js";
import { Icon } from "../parts/icon.js";
import { clearFilters, RunFilters, RunViews, useKept, useQueries } from "../parts/run_filters.js";
import { ImportButton } from "../parts/run_import.js";
import { COLUMNS, RunHeader, RunRow } from "../parts/run_row.js";
import { Confirm, SelectionBar } from "../parts/run_selection.js";
import { StartButton } from "../parts/start_run.js";
import { useRowHeight, VirtualList } from "../parts/virtual_list.js";
import { useResource } from "../resource.js";
import { Link, place, setQuery, useTitle } from "../router.js";
import { useRunPages } from "../run_pages.js";
import { cut, money, plural, shown } from "../words.js";

const ROW = 46;
const CARD = 104;
const NARROW = matchMedia("(max-width: 640px)");
const MOST_SELECTED = 500;
const ofRuns = (/** @type {import("../feed.js").Frame} */ frame) => frame.event === "runs";

export function Runs() {
  useTitle("Runs");
  const queries = useQueries();
  const all = useResource("/runs/counts", ofRuns);
  const counts = useResource(queries.counts ? `/runs/counts?${queries.counts}` : "/runs/counts", ofRuns);
  const [ids, setIds] = useState(/** @type {string[]} */ ([place.value.query.get("compare")].filter(Boolean)));
  const [kept, setColumns] = useKept("columns");
  const columns = kept.filter((name) => Object.hasOwn(COLUMNS, name));
  const { query } = place.value;
  const [by, compare] = [query.get("group") ?? "", query.get("compare")];
  const clear = () => setIds([]);
  return html`
    <div class="head runs-head">
      <h1 tabindex="-1">Runs</h1>
      <div class="actions push">
        <${ImportButton} />
        <${StartButton} />
      </div>
    </div>
    <${RunViews} counts=${all.data} />
    ${compare && html`
      <div class="bar quiet-bar" role="status">
        <${Icon} name="compare" />Select a run to compare with <${Link} to="/runs/${part(
          compare,
        )}">${compare}</${Link}>.
        <button type="button" class="link" onClick=${() => (clear(), setQuery({ compare: undefined }))}>Leave</button>
      </div>
    `}
    <${RunFilters} counts=${counts.data} columns=${columns} setColumns=${setColumns} />
    ${["document", "error"].includes(by)
      ? html`<${Groups} by=${by} queries=${queries} select=${setIds} />`
      : html`<${RunList} queries=${queries} columns=${columns} ids=${ids} setIds=${setIds} />`}
    <${SelectionBar} selected=${ids} clear=${clear} />
  `;
}

/** @param {{ queries: import("../parts/run_filters.js").Queries, columns: string[], ids: string[], setIds: (change: any) => void }} props */
function RunList({ queries, columns, ids, setIds }) {
  const pages = useRunPages(queries.list);
  const { rows } = pages;
  const rowHeight = useRowHeight(NARROW, CARD, ROW);
  const [at, setAt] = useState(-1);
  const [last, setLast] = useState("");
  useEffect(() => setAt(-1), [queries.list]);
  useEffect(() => {
    const link = document.querySelector(".run-row.here .run-link");
    if (link instanceof HTMLElement) link.focus({ preventScroll: true });
  }, [at]);
  /** @param {string} id @param {boolean} range with Shift, all runs between the last one and this one */
  const toggle = (id, range) => {
    const [from, to] = [last, id].map((run) => rows.findIndex((row) => row.id === run)).sort((a, b) => a - b);
    const between = range && from >= 0 ? rows.slice(from, to + 1).map((row) => row.id) : [id];
    setLast(id);
    setIds((/** @type {string[]} */ now) =>
      between.length === 1 && now.includes(id)
        ? now.filter((run) => run !== id)
        : [...new Set([...now, ...between])].slice(-MOST_SELECTED)
    );
  };
  useEffect(() =>
    addShortcuts("Runs", [
      { keys: "j", does: "Next run", run: () => setAt(Math.min(rows.length - 1, at + 1)) },
      { keys: "k", does: "Previous run", run: () => setAt(Math.max(0, at - 1)) },
      { keys: "x", does: "Select the run", run: () => rows[at] && toggle(rows[at].id, false) },
      { keys: "Escape", does: "Clear the selection", run: () => setIds([]) },
    ])
  );
  const listed = rows.slice(0, MOST_SELECTED).map((row) => row.id);
  return html`
    ${pages.problem && html`<${ProblemBox} problem=${pages.problem} retry=${pages.reload} />`}
    ${!pages.known && !pages.problem && pages.slow && html`<${Placeholder} lines=${8} />`}
    ${pages.known && rows.length === 0 && html`<${NoRuns} filtered=${queries.is} />`}
    ${rows.length > 0 && html`
      <div class="run-list" style=${{ "--more": columns.map((name) => COLUMNS[name][1]).join(" ") }}>
        <${RunHeader} columns=${columns} chosen=${listed.every((id) => ids.includes(id))}
          choose=${(/** @type {boolean} */ every) => setIds(every ? listed : [])} />
        <div role="status" class="new-runs">
          ${pages.fresh > 0 && html`
            <button type="button" class="button" onClick=${pages.reload}>
              ${plural(pages.fresh, "new run")}${pages.more ? " or more" : ""}</button>
          `}
        </div>
        <${VirtualList} class="run-rows" label="Runs" count=${rows.length} rowHeight=${rowHeight} shows=${at}
          onEnd=${pages.loadMore} row=${(/** @type {number} */ number) => {
            const row = rows[number];
            return html`
              <${RunRow} key=${row.id} row=${row} columns=${columns} here=${number === at}
                selected=${ids.includes(row.id)} onSelect=${toggle} />
            `;
          }} />
      </div>
    `}
  `;
}

/** Runs by document, or failed ones by error. @param {{ by: string, queries: import("../parts/run_filters.js").Queries, select: (ids: string[]) => void }} props */
function Groups({ by, queries, select }) {
  const { data, problem, reload } = useResource(
    `/runs/groups?by=${by}${queries.list && `&${queries.list.replace(/&?sort=\w+/, "")}`}`,
    ofRuns,
  );
  const [again, setAgain] = useState(/** @type {string[]} */ ([]));
  if (problem) return html`<${ProblemBox} problem=${problem} retry=${reload} />`;
  if (!data) return html`<${Placeholder} lines=${4} />`;
  if (!data.groups.length) return html`<${NoRuns} filtered />`;
  return html`
    <ul class="rows run-groups" aria-label=${by === "error" ? "Errors" : "Documents"}>
      ${data.groups.map((/** @type {any} */ group) => {
        const { word, icon, tone } = shown(by === "error" ? "failed" : group.latest?.status ?? "");
        const title = by === "error" ? cut(group.message, 300) : group.title || group.document;
        return html`
          <li key=${group.key} class="run-group">
            <span class="sign tone-${tone}" title=${word}><${Icon} name=${icon} label=${word} /></span>
            <span class="run-what">
              <button type="button" class="link run-name" onClick=${() =>
                setQuery({
                  group: undefined,
                  document: group.document,
                  ...(by === "error" ? { status: "failed" } : {}),
                })}>
                ${title}</button>
              <span class="run-more soft"><span class="run-document">${by === "error"
                ? group.title
                : group.document}</span>
                ${group.latest && html`<span>last <${Age} at=${group.latest.updated_at} /></span>`}</span>
            </span>
            <span class="soft">${by === "error"
              ? plural(group.count, "run")
              : Object.entries(group.statuses).map(([status, count]) => `${count} ${shown(status).word}`).join(
                ", ",
              )}</span>
            <span class="number soft">${money(group.cost)}</span>
            <button type="button" class="button" onClick=${() => select(group.runs)}>Select ${group.runs
              .length}</button>
            ${by === "error" &&
              html`<button type="button" class="button" data-needs="run" onClick=${() => setAgain(group.runs)}>
              <${Icon} name="again" />Try again</button>`}
          </li>
        `;
      })}
    </ul>
    ${data.more > 0 && html`<p class="soft">${plural(data.more, "more group")}: filter to see them.</p>`}
    ${again.length > 0 && html`
      <${Confirm} action="resume" selected=${again} close=${() => setAgain([])} done=${() => setAgain([])} />
    `}
  `;
}

/** @param {{ filtered: boolean }} props */
function NoRuns({ filtered }) {
  if (filtered) {
    return html`
      <${Empty} title="No run fits these filters." icon="search">
        <button type="button" class="button" onClick=${clearFilters}>Clear all filters</button>
        </${Empty}>
    `;
  }
  return html`
    <${Empty} title="No runs yet." icon="runs">
      <p>Choose a document and run it, here or in a terminal.</p>
      <div class="actions">
        <${Link} to="/documents" class="button primary">Documents</${Link}>
        <${Command} command="quire run DOCUMENT" />
      </div>
    </${Empty}>
  `;
}
