// Documents: all of the workspace in one virtual list, with filters in the address. Broken files are in it.

import { get, part, query } from "../api.js";
import { html, useEffect, useRef, useState } from "../html.js";
import { addShortcuts } from "../keys.js";
import { Age, Chip, Command, Empty, Placeholder, ProblemBox, Status } from "../parts/basics.js";
import { Findings, Format, SignatureState } from "../parts/document_state.js";
import { useRowHeight, VirtualList } from "../parts/virtual_list.js";
import { useResource } from "../resource.js";
import { go, Link, place, setQuery, useTitle } from "../router.js";
import { cut, number, plural } from "../words.js";

const ROW = 56;
const CARD = 104;
const NARROW = matchMedia("(max-width: 760px)");

/** @type {[string, string][]} */
const FORMATS = [["playbook", "Playbooks"], ["pipeline", "Pipelines"], ["directive", "Directives"], [
  "knowledge",
  "Knowledge",
]];
/** @type {[string, string][]} */
const FINDINGS = [["error", "With errors"], ["warning", "With warnings"], ["none", "Without findings"]];

export function Documents() {
  useTitle("Documents");
  const asked = place.value.query;
  const filters = {
    q: asked.get("q") ?? "",
    format: asked.get("format") ?? "",
    folder: asked.get("folder") ?? "",
    finding: asked.get("finding") ?? "",
  };
  const path = `/documents${query(filters)}`;
  const first = useResource(path, (frame) => frame.event === "documents" || frame.event === "runs");
  const more = useMore(path, first.data);
  const rowHeight = useRowHeight(NARROW, CARD, ROW);
  const [at, setAt] = useState(-1);
  const rows = [...(first.data?.items ?? []), ...more.rows];
  useEffect(() => setAt(-1), [path]);
  const count = useRef(0);
  count.current = rows.length;
  useEffect(() => {
    /** @param {number} by */
    const move = (by) => setAt((now) => Math.max(0, Math.min(now + by, count.current - 1)));
    return addShortcuts("Documents", [
      { keys: "j", does: "Next document; Enter opens it", run: () => move(1) },
      { keys: "k", does: "Previous document", run: () => move(-1) },
    ]);
  }, []);
  useEffect(() => {
    const link = document.querySelector(".document-row.here .document-link");
    if (link instanceof HTMLElement) link.focus({ preventScroll: true });
  }, [at]);

  return html`
    <h1 tabindex="-1">Documents</h1>
    ${first.data?.counts.all > 0 && html`<${Filters} filters=${filters} counts=${first.data.counts} />`}
    ${first.problem && html`<${ProblemBox} problem=${first.problem} retry=${first.reload} />`}
    ${!first.data && !first.problem && first.slow && html`<${Placeholder} lines=${8} />`}
    ${first.data && first.data.counts.all === 0 && html`<${FirstSteps} />`}
    ${first.data && first.data.counts.all > 0 && html`
      <p class="soft small documents-total" role="status">
        ${first.data.total === first.data.counts.all
          ? plural(first.data.total, "document")
          : `${number(first.data.total)} of ${plural(first.data.counts.all, "document")}`}
      </p>
      ${rows.length
        ? html`
          <${VirtualList} class="document-list" label="Documents" count=${rows
            .length} rowHeight=${rowHeight} shows=${at}
            onEnd=${more.load}
            row=${(/** @type {number} */ one) =>
              html`<${DocumentRow} key=${rows[one].id} row=${rows[one]} here=${one === at} />`} />
        `
        : html`
          <${Empty} title="No document fits these filters." icon="documents">
            <button type="button" class="button" onClick=${() => go("/documents")}>Show all documents</button>
            </${Empty}>
        `}
    `}
  `;
}

/**
 * The pages after the first: fetched when the reader comes to the end.
 *
 * @param {string} path
 * @param {any} first
 */
function useMore(path, first) {
  const [state, setState] = useState({
    path,
    rows: /** @type {any[]} */ ([]),
    next: /** @type {string | null} */ (null),
  });
  useEffect(() => setState({ path, rows: [], next: first?.next ?? null }), [path, first]);
  const [busy, setBusy] = useState(false);
  const load = async () => {
    if (busy || state.path !== path || !state.next) return;
    setBusy(true);
    try {
      const found = await get(`${path}${path.includes("?") ? "&" : "?"}after=${encodeURIComponent(state.next)}`);
      setState((now) => now.path === path ? { path, rows: [...now.rows, ...found.items], next: found.next } : now);
    } catch {
      // The bar of the shell says that the server is away; scrolling again asks again.
    } finally {
      setBusy(false);
    }
  };
  return { rows: state.path === path ? state.rows : [], load };
}

/** @param {{ filters: Record<string, string>, counts: any }} props */
function Filters({ filters, counts }) {
  /** @param {string} name @param {[string, string][]} all @param {Record<string, number>} known */
  const chips = (name, all, known) =>
    all.filter(([value]) => known[value] || filters[name] === value).map(([value, words]) =>
      html`<${Chip} name=${name} value=${value} words=${words} count=${known[value] ?? 0} />`
    );
  const folders = Object.keys(counts.folders);
  return html`
    <div class="document-filters" role="search">
      <input type="search" aria-label="Search in titles and paths" placeholder="Search in titles and paths"
        value=${filters.q} onInput=${(/** @type {any} */ event) => setQuery({ q: event.target.value || undefined })} />
      ${folders.length > 0 && html`
        <select aria-label="Folder" value=${filters.folder}
          onChange=${(/** @type {any} */ event) => setQuery({ folder: event.target.value || undefined })}>
          <option value="">All folders</option>
          ${folders.map((folder) =>
            html`<option value=${folder} selected=${folder === filters.folder}>${folder}</option>`
          )}
        </select>
      `}
    </div>
    <div class="chips">
      ${chips("format", FORMATS, counts.formats)} ${chips("finding", FINDINGS, counts.findings)}
    </div>
  `;
}

/** @param {{ row: any, here: boolean }} props */
function DocumentRow({ row, here }) {
  const last = row.last_run;
  return html`
    <div class="document-row ${here ? "here" : ""}" role="listitem">
      <div class="document-name">
        <${Link} to="/documents/${part(row.id)}" class="document-link">${cut(row.title, 120)}</${Link}>
        <span class="soft small mono" title=${row.id}>${row.id}</span>
      </div>
      <span class="document-format"><${Format} format=${row.format} /></span>
      <span class="document-findings"><${Findings} row=${row} />
        ${!row.error && html`<${SignatureState} signature=${row.signature} quiet />`}</span>
      <span class="document-bound soft small">${row.bound ?? ""}</span>
      <span class="document-last">
        ${last && html`
          <${Link} to="/runs/${part(last.id)}" title="The last run">
            <${Status} status=${last.status} />
            </${Link}>
            <span class="soft small"><${Age} at=${last.updated_at} /></span>
        `}
      </span>
    </div>
  `;
}

/** A workspace without documents: how to get the first one. */
export function FirstSteps() {
  return html`
    <${Empty} title="This workspace has no documents yet." icon="documents">
      <p>A document is a Markdown or YAML file. Make one in a terminal, and it appears here:</p>
      <ul class="first-steps">
        <li><${Command} command="quire new playbook hello" /> <span>a chain of prompts, in Markdown</span></li>
        <li><${Command} command="quire new pipeline triage" /> <span>fixed steps over data, in YAML</span></li>
        <li><${Command} command="quire new directive review" /> <span>an agent under permissions</span></li>
      </ul>
      <p class="soft">The folder <code>examples</code> of Quire has documents to copy.</p>
      </${Empty}>
  `;
}
