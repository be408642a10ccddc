// Runs: all of them in one virtual list, filters in the address, several at once by selection.

import { part } from "../api.js";
import { html, useEffect, useState } from "../html.js";
import { addShortcuts } from "../keys.js";
import { Command, Empty, Placeholder, ProblemBox } from "../parts/basics.js";
import { Icon } from "../parts/icon.js";
import { clearFilters, filtersHere, isFiltered, RunFilters, useQueries } from "../parts/run_filters.js";
import { ImportButton } from "../parts/run_import.js";
import { RunHeader, RunRow } from "../parts/run_row.js";
import { SelectionBar } from "../parts/run_selection.js";
import { useRowHeight, VirtualList } from "../parts/virtual_list.js";
import { useResource } from "../resource.js";
import { Link, place, setQuery, useTitle } from "../router.js";
import { useRunPages } from "../run_pages.js";
import { plural } from "../words.js";

const ROW = 52;
const CARD = 92;
const NARROW = matchMedia("(max-width: 640px)");

export function Runs() {
  useTitle("Runs");
  const filters = filtersHere();
  const queries = useQueries(filters);
  const pages = useRunPages(queries.list);
  const counts = useResource(
    `/runs/counts${queries.counts && `?${queries.counts}`}`,
    (frame) => frame.event === "runs",
  );
  const selection = useSelection(pages.rows);
  const rowHeight = useRowHeight(NARROW, CARD, ROW);
  const [at, setAt] = useState(-1);
  useEffect(() => setAt(-1), [queries.list]);
  useEffect(() => {
    const link = document.querySelector(".run-row.here .run-link");
    if (link instanceof HTMLElement) link.focus({ preventScroll: true });
  }, [at]);
  useRunKeys(pages.rows, at, setAt, selection);
  const compare = place.value.query.get("compare");
  return html`
    <div class="head runs-head">
      <h1 tabindex="-1">Runs</h1>
      <div class="actions push">
        <${ImportButton} />
      </div>
    </div>
    ${compare && html`
      <div class="bar quiet-bar" role="status">
        <${Icon} name="compare" />Select a run to compare with <${Link} to="/runs/${part(
          compare,
        )}">${compare}</${Link}>.
        <button type="button" class="link" onClick=${() => (selection.clear(), setQuery({ compare: undefined }))}>
          Leave</button>
      </div>
    `}
    <${RunFilters} filters=${filters} counts=${counts.data} />
    ${pages.problem && html`<${ProblemBox} problem=${pages.problem} retry=${pages.reload} />`}
    ${!pages.known && !pages.problem && pages.slow && html`<${Placeholder} lines=${8} />`}
    ${pages.known && pages.rows.length === 0 && html`<${NoRuns} filtered=${isFiltered(filters)} />`}
    ${pages.rows.length > 0 && html`
      <div class="run-list">
        <${RunHeader} />
        <${NewRuns} pages=${pages} />
        <${VirtualList} class="run-rows" label="Runs" count=${pages.rows.length} rowHeight=${rowHeight} shows=${at}
          onEnd=${pages.loadMore} row=${(/** @type {number} */ number) => {
            const row = pages.rows[number];
            return html`
              <${RunRow} key=${row.id} row=${row} here=${number === at} selected=${selection.has(row.id)}
                onSelect=${selection.toggle} />
            `;
          }} />
      </div>
    `}
    <${SelectionBar} selected=${selection.ids} clear=${selection.clear} done=${selection.clear} />
  `;
}

/** @param {{ pages: ReturnType<typeof useRunPages> }} props */
function NewRuns({ pages }) {
  return html`
    <div role="status" class="new-runs">
      ${pages.fresh > 0 && html`
        <button type="button" class="button" onClick=${pages.reload}>
          ${plural(pages.fresh, "new run")}${pages.more ? " or more" : ""}</button>
      `}
    </div>
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

/** @typedef {{ ids: string[], has: (id: string) => boolean, toggle: (id: string, range: boolean) => void, clear: () => void }} Selection */

/** @param {any[]} rows @returns {Selection} the selected runs, in the order of their selection */
function useSelection(rows) {
  const first = place.value.query.get("compare");
  const [ids, setIds] = useState(/** @type {string[]} */ (first ? [first] : []));
  const [last, setLast] = useState("");
  /** @param {string} id @param {boolean} range with Shift, all runs between the last one and this one */
  const toggle = (id, range) => {
    const [from, to] = [last, id].map((one) => rows.findIndex((row) => row.id === one)).sort((a, b) => a - b);
    setLast(id);
    if (range && from >= 0 && from !== to) {
      const between = rows.slice(from, to + 1).map((row) => row.id);
      setIds((now) => [...new Set([...now, ...between])].slice(0, 500));
    } else setIds((now) => (now.includes(id) ? now.filter((one) => one !== id) : [...now, id].slice(-500)));
  };
  return { ids, has: (id) => ids.includes(id), toggle, clear: () => setIds([]) };
}

/**
 * @param {any[]} rows
 * @param {number} at
 * @param {(at: number) => void} setAt
 * @param {Selection} selection
 */
function useRunKeys(rows, at, setAt, selection) {
  useEffect(() =>
    addShortcuts("Runs", [
      { keys: "j", does: "Next run", run: () => setAt(Math.min(rows.length - 1, at + 1)) },
      { keys: "k", does: "Previous run", run: () => setAt(Math.max(0, at - 1)) },
      { keys: "x", does: "Select the run", run: () => rows[at] && selection.toggle(rows[at].id, false) },
      { keys: "Escape", does: "Clear the selection", run: selection.clear },
    ])
  );
}
