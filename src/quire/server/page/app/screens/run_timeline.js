// The timeline of a run: when each step did what, and how long the run waited for people.

import { part } from "../api.js";
import { listen } from "../feed.js";
import { html, useEffect, useMemo, useRef, useState } from "../html.js";
import { Empty, Placeholder, ProblemBox } from "../parts/basics.js";
import { RunFrame } from "../parts/run_frame.js";
import { Timeline } from "../parts/timeline.js";
import { useResource } from "../resource.js";
import { go, Link, place, setQuery } from "../router.js";
import { stepOf, withEvents } from "../timeline_live.js";
import { duration, moment, number, plural } from "../words.js";

const MOST_ROWS = 500;

/** @param {{ run: string }} props */
export function RunTimeline({ run }) {
  return html`
    <${RunFrame} run=${run} tab="timeline">
      ${(/** @type {import("../run_store.js").RunStore} */ store) => html`<${RunTimes} store=${store} />`}
    </${RunFrame}>
  `;
}

/** @param {{ store: import("../run_store.js").RunStore }} props */
function RunTimes({ store }) {
  const head = /** @type {import("../run_store.js").Head} */ (store.head.value);
  const { data, problem, slow, reload } = useTimeline(head);
  if (problem) return html`<${ProblemBox} problem=${problem} retry=${reload} />`;
  if (!data) return slow && html`<${Placeholder} lines=${8} />`;
  if (!data.effects.at.length && !data.waits.length) {
    return html`
      <${Empty} title="Nothing has happened yet." icon="clock">
        <p>Effects appear here as the run makes them.</p>
        </${Empty}>
    `;
  }
  const { query } = place.value;
  const selected = query.get("effect") ?? "";
  const here = `/runs/${part(head.id)}`;
  /** @param {string} path */
  const open = (path) => go(`${here}/steps/${part(stepOf(path, head.steps) || path)}`);
  return html`
    <${Timeline} data=${data} label="Timeline of ${head.title}" collapsed=${query.get("waits") !== "open"}
      onCollapse=${(/** @type {boolean} */ collapsed) => setQuery({ waits: collapsed ? undefined : "open" })}
      selected=${selected} onSelect=${(/** @type {string} */ path) =>
        setQuery({ effect: path || undefined })} onOpen=${open}>
      ${selected && html`<p class="timeline-chosen"><code>${selected}</code>
        <${Link} class="button" to="${here}/steps/${
        part(stepOf(selected, head.steps) || selected)
      }">Open the step</${Link}>
        <${Link} class="button" to="${here}/journal?effect=${
        encodeURIComponent(selected)
      }">Show in the journal</${Link}></p>`}
      <${AsTable} data=${data} here=${here} />
      </${Timeline}>
  `;
}

/** @param {import("../run_store.js").Head} head */
function useTimeline(head) {
  const fetched = useResource(`/runs/${part(head.id)}/timeline`);
  const events = useRef(/** @type {any[]} */ ([]));
  const [count, setCount] = useState(0);
  useEffect(() => {
    let drawing = 0;
    events.current = [];
    const stop = listen(({ data }) => {
      if (data?.run !== head.id || !data.seq) return;
      events.current.push(data);
      drawing ||= setTimeout(() => {
        drawing = 0;
        setCount(events.current.length);
      }, 200);
    });
    return () => {
      stop();
      clearTimeout(drawing);
    };
  }, [head.id]);
  const status = useRef(head.status);
  useEffect(() => {
    // Pauses and ends are known to the server: it is asked again when the run has come to rest.
    if (status.current !== head.status && head.status !== "running") fetched.reload();
    status.current = head.status;
  }, [head.status]);
  const data = useMemo(
    () => fetched.data && withEvents(fetched.data, events.current, head.steps),
    [fetched.data, count],
  );
  return { ...fetched, data };
}

/** @param {{ data: import("../timeline_geometry.js").Timeline, here: string }} props */
function AsTable({ data, here }) {
  const [open, setOpen] = useState(false);
  const rows = useMemo(() => open ? byLane(data) : [], [open, data]);
  return html`
    <details class="as-table" onToggle=${(/** @type {any} */ event) => setOpen(event.currentTarget.open)}>
      <summary>The same as a table</summary>
      ${open && html`
        <div class="table-box" tabindex="0" role="region" aria-label="Steps in time">
          <table>
            <thead>
              <tr>
                <th scope="col">Step</th>
                <th scope="col" class="right">Began after</th>
                <th scope="col" class="right">Took</th>
                <th scope="col" class="right">Effects</th>
                <th scope="col" class="right">Failed</th>
                <th scope="col" class="right">Waited for a person</th>
              </tr>
            </thead>
            <tbody>
              ${rows.slice(0, MOST_ROWS).map(({ lane, began, took, count, failed, waited }) =>
                html`
                  <tr key=${lane.path}>
                    <td>
                      <${Link} to="${here}/steps/${part(lane.path)}">${lane.label} ${lane.title}</${Link}></td>
                    <td class="number right">${began === Infinity ? "" : duration(began)}</td>
                    <td class="number right">${duration(took)}</td>
                    <td class="number right">${number(count)}</td>
                    <td class="number right">${failed ? number(failed) : ""}</td>
                    <td class="number right">${waited ? duration(waited) : ""}</td>
                  </tr>
                `
              )}
            </tbody>
          </table>
        </div>
        ${rows.length > MOST_ROWS && html`<p class="soft">and ${plural(rows.length - MOST_ROWS, "more step")}</p>`}
        <ul class="small soft">
          ${data.waits.map((wait) =>
            html`<li>${WAITS[wait.kind] ?? wait.kind} from ${moment(data.start + wait.at)}
              ${wait.until === null ? "until now" : `for ${duration(wait.until - wait.at)}`}</li>`
          )}
        </ul>
      `}
    </details>
  `;
}

/** @type {Record<string, string>} */
const WAITS = {
  question: "Waited for an answer",
  paused: "Paused",
  failed: "Stopped after a failure",
  cancelled: "Cancelled",
  interrupted: "Interrupted",
  forked: "Rested before it was forked",
};

/** @param {import("../timeline_geometry.js").Timeline} data */
function byLane({ lanes, effects, states, waits }) {
  const rows = lanes.map((lane) => ({ lane, began: Infinity, took: 0, count: 0, failed: 0, waited: 0 }));
  const bad = states.indexOf("failed");
  effects.lane.forEach((lane, at) => {
    const row = rows[lane];
    if (!row) return;
    row.began = Math.min(row.began, effects.at[at]);
    row.took += effects.elapsed[at];
    row.count++;
    if (effects.state[at] === bad) row.failed++;
  });
  for (const wait of waits) if (rows[wait.lane] && wait.until !== null) rows[wait.lane].waited += wait.until - wait.at;
  return rows;
}
