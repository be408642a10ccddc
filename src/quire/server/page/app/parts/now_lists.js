// The lists of Now beside the questions: runs under way, failures by error, stopped runs, ended ones, letters.

import { part, resumeAll, send, tryTo } from "../api.js";
import { html, useState } from "../html.js";
import { Link } from "../router.js";
import { cut, duration, plural, shown } from "../words.js";
import { Age, Command } from "./basics.js";
import { Icon } from "./icon.js";

const MOST_SEGMENTS = 12;

/** @param {{ id: string, name: string, count?: number, tone?: string, children?: unknown }} props */
function List({ id, name, count, tone = "quiet", children }) {
  return html`
    <section aria-labelledby=${id}>
      <h2 id=${id}>${name}${count && html`
        <span class="count tone-${tone}">${count}</span>
      `}</h2>
      <ul class="rows">${children}</ul>
    </section>
  `;
}

/** The sign of a status in a circle. @param {{ status: string }} props */
function Sign({ status }) {
  const { word, icon, tone } = shown(status);
  return html`<span class="sign tone-${tone}"><${Icon} name=${icon} label=${word} /></span>`;
}

/** A run as a link: its label, and a line below. @param {{ row: any, line: any, children?: unknown }} props */
function RunRow({ row, line, children }) {
  return html`
    <li key=${row.id}>
      <${Link} to="/runs/${row.id}" class="row">
        <${Sign} status=${row.status} />
        <span class="row-lines"><b class="subject">${row.label}</b><span class="soft small">${line}</span></span>
        ${children}
      </${Link}>
    </li>
  `;
}

/** @param {{ rows: any[] }} props */
export function UnderWay({ rows }) {
  if (!rows.length) return null;
  return html`
    <${List} id="running" name="Under way" count=${rows.length}>
      ${rows.map((row) =>
        html`
          <${RunRow} key=${row.id} row=${row} line=${[row.title, ...placeOf(row)].join(" · ")}>
            ${row.of > 1 && html`<${Segments} at=${row.at} of=${row.of} />`}
          </${RunRow}>
        `
      )}
    </${List}>
  `;
}

/** The step and the items that a run has reached. @param {any} row */
function placeOf(row) {
  const { items } = row;
  const place = row.at ? `step ${row.at} of ${row.of}` : row.step && `step ${row.step}`;
  const failed = items?.failed ? `, ${items.failed} failed` : "";
  const done = items && `${items.done + items.failed} of ${items.total}${failed}`;
  return [place, done || duration(Date.now() / 1000 - row.created_at)].filter(Boolean);
}

/** @param {{ at: number, of: number }} props */
function Segments({ at, of }) {
  if (of > MOST_SEGMENTS) return html`<progress max=${of} value=${Math.max(0, at - 1)} aria-label="Steps"></progress>`;
  return html`
    <span class="segments" aria-hidden="true">${Array.from(
      { length: of },
      (_, step) => html`<i class=${step + 1 < at ? "done" : step + 1 === at ? "now" : ""}></i>`,
    )}</span>
  `;
}

/** @param {{ groups: any[], reload: () => void }} props */
export function Failed({ groups, reload }) {
  if (!groups.length) return null;
  const count = groups.reduce((sum, group) => sum + group.count, 0);
  return html`
    <${List} id="failed" name="Failed" count=${count} tone="bad">
      ${groups.map((group) => html`<${Halted} key=${group.key} group=${group} reload=${reload} failed />`)}
    </${List}>
  `;
}

/**
 * Runs that have stopped for the same reason, with what helps. Several are tried again after a look at what that does.
 *
 * @param {{ group: any, reload: () => void, failed?: boolean }} props
 */
function Halted({ group, reload, failed = false }) {
  const [confirm, setConfirm] = useState(/** @type {any} */ (null));
  const [problem, setProblem] = useState("");
  const { latest, count, runs } = group;
  const { action } = latest;
  const resume = async () => {
    if (count > 1) return setConfirm(await import("./run_selection.js"));
    setProblem((await resumeAll(runs))[0]?.detail ?? "");
  };
  const seen = async () => {
    await tryTo((problem) => setProblem(problem?.detail ?? ""), async () => {
      for (const run of runs) await send("PATCH", `/runs/${part(run)}`, { body: { seen: true } });
    });
    reload();
  };
  return html`
    <li class="halted">
      <${Sign} status=${latest.status} />
      <div class="row-lines">
        <${Link} to="/runs/${latest.id}" class="subject">${failed ? cut(action.reason, 200) : latest.label}</${Link}>
        <span class="soft small">${latest.title}${failed
          ? `${latest.way && `, step ${latest.way}`} · ${count > 1 ? plural(count, "run") : latest.label}`
          : ` · ${action.reason}`}, <${Age} at=${latest.updated_at} /></span>
        <div class="actions">
          ${action.kind === "resume"
            ? html`
              <button type="button" class="button" data-needs="run" onClick=${resume}><${Icon} name=${failed
                ? "again"
                : "play"} />
                ${count > 2 ? `Try all ${count} again` : count > 1 ? "Try both again" : action.label}</button>
            `
            : html`<${Link} class="button" to="/runs/${latest.id}">${action.label}</${Link}>`}
          ${count === 1 && html`<${Command} command=${action.command} />`}
          ${failed && html`
            <button type="button" class="link push" data-needs="run" onClick=${seen}
              aria-label="Seen: ${latest.label}">Seen</button>
          `}
        </div>
        ${problem && html`<p class="field-problem" role="alert">${problem}</p>`}
      </div>
      ${confirm && html`
        <${confirm.Confirm} action="resume" selected=${runs} close=${() => setConfirm(null)}
          done=${() => setConfirm(null)} />
      `}
    </li>
  `;
}

/** @param {{ rows: any[], more: number, reload: () => void }} props */
export function Stopped({ rows, more, reload }) {
  if (!rows.length) return null;
  return html`
    <${List} id="stopped" name="Stopped, and can continue" count=${rows.length + more} tone="warn">
      ${rows.map((row) =>
        html`<${Halted} key=${row.id} group=${{ latest: row, count: 1, runs: [row.id] }} reload=${reload} />`
      )}
    </${List}>
    ${more > 0 && html`
      <p class="more-line">
        <${Link} to="/runs?status=paused,interrupted">${plural(more, "more run")}</${Link}></p>
    `}
  `;
}

/** @param {{ rows: any[] }} props */
export function Ended({ rows }) {
  if (!rows.length) return null;
  return html`
    <${List} id="finished" name="Ended">
      ${rows.map((row) =>
        html`
          <${RunRow} key=${row.id} row=${row} line=${row.result ? `${row.title} · “${row.result}”` : row.title}>
            <span class="soft small number"><${Age} at=${row.updated_at} /></span>
            </${RunRow}>
        `
      )}
    </${List}>
  `;
}

/** @param {{ letters: any[] }} props */
export function Letters({ letters }) {
  if (!letters.length) return null;
  return html`
    <${List} id="letters" name="Letters">
      ${letters.map((letter) =>
        html`
          <li key=${letter.run} class="letter">
            <p>
              <${Link} to="/runs/${letter.run}">${letter.run}</${Link}>
              <span class="soft"> for ${letter.recipient}, <${Age} at=${letter.at} /></span></p>
            <p class="pre">${cut(letter.text, 400)}</p>
          </li>
        `
      )}
    </${List}>
  `;
}
