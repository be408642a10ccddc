// A flowchart that the server has placed. It is never placed anew while a run goes on: only its colours change.
//
// The picture scrolls and zooms in itself. Every node is a link, one of them can be reached by Tab, and the arrow keys
// go from node to node. A table of the same steps stands below it.

import { part, query } from "../api.js";
import { folded, runStates, together } from "../chart_states.js";
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../html.js";
import { useResource } from "../resource.js";
import { Link, place } from "../router.js";
import { Command, Placeholder, ProblemBox, Status } from "./basics.js";
import { camera } from "./graph_camera.js";
import { EdgeLabel, EdgeLine, GroupBox, GroupTitle, NodeShape, spoken, WayLabel, WayLine } from "./graph_shapes.js";
import { Icon } from "./icon.js";

/** @typedef {import("./graph_shapes.js").Chart} Chart */
/** @typedef {import("./graph_shapes.js").ChartNode} ChartNode */
/** @typedef {import("../chart_states.js").NodeState} NodeState */

/**
 * `stepLink` and `foldLink` say where a click leads; without a link a node is only shown. `active` is the path of the
 * step that the run has reached: "Follow" keeps it in view.
 *
 * @param {{
 *   chart: Chart, label: string, states?: (path: string) => NodeState | null, paths?: string[], selected?: string,
 *   active?: string, stepLink?: (path: string) => string, foldLink?: (fold: string) => string,
 *   fanLink?: (path: string) => string,
 * }} props `paths` are those of all steps, for the state of folded ones
 */
export function Graph(props) {
  const { chart, label, states, paths = [], selected = "", active = "" } = props;
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const view = useMemo(() => camera(box), []);
  const [zoom, setZoom] = useState(1);
  const [follows, setFollows] = useState(false);
  const [focused, setFocused] = useState("");
  view.onZoom = setZoom;
  view.onDrag = () => setFollows(false);

  useLayoutEffect(() => view.show(chart, selected || active), [chart]);
  useEffect(() => view.listen(), []);
  useEffect(() => view.bring(selected), [selected]);
  useEffect(() => {
    if (follows && active) view.bring(active);
  }, [follows, active]);

  const links = chart.nodes.filter((node) => linkOf(node, props));
  const tabbed = links.find((node) => node.id === focused) ?? links.find((node) => node.path === selected) ?? links[0];
  /** @param {KeyboardEvent} event */
  const onKeyDown = (event) => {
    const to = view.key(event, links, tabbed);
    if (!to) return;
    event.preventDefault();
    setFocused(to.id);
    view.focus(to);
  };
  return html`
    <div class="graph">
      <${Tools} view=${view} zoom=${zoom} follows=${follows}
        onFollow=${states && active ? () => setFollows(!follows) : undefined} />
      <div class="graph-view" ref=${box} role="region" aria-label=${label} tabindex=${links.length ? undefined : 0}
        onKeyDown=${onKeyDown}>
        <svg class=${states ? "chart with-states" : "chart"} width=${chart.width * zoom} height=${chart.height * zoom}
          viewBox="0 0 ${chart.width} ${chart.height}" role="group" aria-label=${label}>
          ${chart.groups.map((group) => html`<${GroupBox} key=${group.id} group=${group} />`)}
          ${chart.edges.map((edge) => html`<${EdgeLine} key=${`${edge.from} ${edge.to}`} edge=${edge} />`)}
          ${chart.ways?.map((way) => html`<${WayLine} key=${wayKey(way)} way=${way} />`)}
          ${chart.groups.map((group) => html`<${Group} key=${group.id} group=${group} ...${props} />`)}
          ${chart.nodes.map((node) =>
            html`
              <${Node} key=${node.id} node=${node} ...${props} state=${nodeState(node, states, paths)}
                selected=${node.path !== null && node.path === selected} tabbed=${node === tabbed} />
            `
          )}
          ${labels(chart).map((edge) => html`<${EdgeLabel} key=${edge.label_at.join()} edge=${edge} />`)}
          ${chart.ways?.map((way) => html`<${WayLabel} key=${wayKey(way)} way=${way} />`)}
        </svg>
      </div>
      ${chart.ways && html`<${Legend} ways=${chart.ways} />`}
      <div class="graph-below">
        <${AsTable} chart=${chart} states=${states} paths=${paths} ...${props} />
        ${chart.command && html`<${Command} command=${chart.command} label="Draw in the terminal" />`}
      </div>
    </div>
  `;
}

/**
 * @param {ChartNode} node
 * @param {{ stepLink?: (path: string) => string, foldLink?: (fold: string) => string }} props
 */
function linkOf(node, { stepLink, foldLink }) {
  if (node.fold) return foldLink?.(node.fold) ?? "";
  return node.path ? stepLink?.(node.path) ?? "" : "";
}

/**
 * @param {ChartNode} node
 * @param {((path: string) => NodeState | null) | undefined} states
 * @param {string[]} paths
 */
function nodeState(node, states, paths) {
  if (!states || !node.path) return null;
  if (!node.fold) return states(node.path);
  const all = folded(node, paths).map(states).filter((one) => one !== null);
  return all.length ? together(all) : states(node.path);
}

/** Lines that meet share one label, which is written once. @param {Chart} chart */
function labels(chart) {
  const seen = new Set();
  return chart.edges.filter(({ label, label_at: [x, y] }) => {
    const key = `${label} ${x} ${y}`;
    return label && !seen.has(key) && seen.add(key);
  });
}

/** @param {any} props */
function Node({ node, state, selected, tabbed, ...rest }) {
  const to = linkOf(node, rest);
  const name = `node kind-${node.kind}${state ? ` on-${state.tone}` : ""}${selected ? " selected" : ""}${
    state?.status === "pending" || state?.status === "skipped" ? " pale" : ""
  }`;
  const shape = html`<${NodeShape} node=${node} state=${state} />`;
  if (!to) return html`<g class=${name} data-path=${node.path ?? ""}>${shape}</g>`;
  return html`
    <${Link} to=${to} class=${name} data-id=${node.id} data-path=${node.path} tabindex=${tabbed ? 0 : -1}
      aria-label=${spoken(node, state)} aria-current=${selected
        ? "step"
        : undefined} draggable="false">${shape}</${Link}>
  `;
}

/** @param {any} props */
function Group({ group, states, fanLink }) {
  const state = states?.(group.path) ?? null;
  const title = html`<${GroupTitle} group=${group} state=${state} />`;
  const name = `group${state ? ` on-${state.tone}` : ""}`;
  const to = state?.note && fanLink?.(group.path);
  if (!to) return html`<g class=${name}>${title}</g>`;
  return html`
    <${Link} to=${to} class=${name} aria-label="Items: ${spoken(group, state)}"
      draggable="false">${title}</${Link}>
  `;
}

/** @param {{ view: import("./graph_camera.js").Camera, zoom: number, follows: boolean, onFollow?: () => void }} props */
function Tools({ view, zoom, follows, onFollow }) {
  return html`
    <div class="graph-tools" role="toolbar" aria-label="View">
      <button type="button" class="icon-button" aria-label="Smaller" title="Smaller (-)" onClick=${() =>
        view.step(-1)}><${Icon} name="minus" /></button>
      <button type="button" class="graph-zoom number" aria-label="Zoom ${Math.round(zoom * 100)} %: show in full size"
        title="Full size (0)" onClick=${() => view.scale(1)}>${Math.round(zoom * 100)} %</button>
      <button type="button" class="icon-button" aria-label="Larger" title="Larger (+)" onClick=${() =>
        view.step(1)}><${Icon} name="plus" /></button>
      <button type="button" class="button" onClick=${() => view.fit()}>Fit</button>
      ${onFollow &&
        html`<button type="button" class="button" aria-pressed=${follows} onClick=${onFollow}>Follow</button>`}
    </div>
  `;
}

/** @param {import("./graph_shapes.js").ChartWay} way */
function wayKey(way) {
  return `${way.kind} ${way.from} ${way.to} ${way.label}`;
}

/** @type {Record<string, string>} */
const LEGEND = {
  guard: "from a question to the effect that only happens after a yes",
  flow: "on the way of text from outside, or of private values",
};

/** @param {{ ways: import("./graph_shapes.js").ChartWay[] }} props */
function Legend({ ways }) {
  const kinds = [...new Set(ways.map((way) => way.kind))];
  return html`
    <ul class="graph-legend small soft">
      ${kinds.map((kind) =>
        html`
          <li key=${kind}>
            <svg width="44" height="8" aria-hidden="true"><path class="way way-${kind}" d="M0 4H44" /></svg>
            ${LEGEND[kind]}
          </li>
        `
      )}
    </ul>
  `;
}

/** @param {any} props */
function AsTable({ chart, states, paths, ...rest }) {
  const [open, setOpen] = useState(false);
  const rows = open ? chart.nodes.filter((/** @type {ChartNode} */ node) => node.path) : [];
  const marked = rows.some((/** @type {ChartNode} */ node) => node.marks);
  /** @param {string} id */
  const label = (id) => chart.nodes.find((/** @type {ChartNode} */ node) => node.id === id)?.label ?? id;
  return html`
    <details class="as-table" onToggle=${(/** @type {any} */ event) => setOpen(event.currentTarget.open)}>
      <summary>The same as a table</summary>
      ${open && html`
        <div class="table-box" tabindex="0" role="region" aria-label="Steps of the chart">
          <table>
            <thead>
              <tr><th scope="col">Step</th><th scope="col">Does</th>${marked &&
                html`<th scope="col">Proven</th>`}${states && html`<th scope="col">State</th>`}</tr>
            </thead>
            <tbody>
              ${rows.map((/** @type {ChartNode} */ node) => {
                const state = nodeState(node, states, paths);
                const to = linkOf(node, rest);
                return html`
                  <tr key=${node.id}>
                    <td>${to ? html`<${Link} to=${to}>${node.label}</${Link}>` : node.label}</td>
                    <td class="soft">${node.what}</td>
                    ${marked && html`<td>${(node.marks ?? []).map((mark) => mark.text).join("; ")}</td>`}
                    ${states &&
                      html`<td>${
                        state && html`<${Status} status=${state.status} word=${state.note || state.word} />`
                      }</td>`}
                  </tr>
                `;
              })}
            </tbody>
          </table>
          ${chart.ways && html`
            <ul class="ways-list">
              ${chart.ways.map((/** @type {import("./graph_shapes.js").ChartWay} */ way) =>
                html`<li key=${wayKey(way)}>${label(way.from)} to ${label(way.to)}: ${way.label}</li>`
              )}
            </ul>
          `}
        </div>
      `}
    </details>
  `;
}

/** The flowchart of a run's pinned document, coloured by the states of its steps. @param {{ store: any }} props */
export function RunChart({ store }) {
  const head = store.head.value;
  const { query: asked } = place.value;
  const opened = asked.getAll("open");
  const { data: chart, problem, slow, reload } = useResource(`/runs/${part(head.id)}/graph${query({ open: opened })}`);
  if (problem) return html`<${ProblemBox} problem=${problem} retry=${reload} />`;
  if (!chart) return slow && html`<${Placeholder} lines=${8} />`;
  const steps = /** @type {any[]} */ (head.steps);
  const active = steps.findLast((step) => ["running", "awaiting_input"].includes(step.status))?.path ?? "";
  const trouble = steps.find((step) => step.status === "failed")?.path ?? "";
  const link = (/** @type {Record<string, any>} */ changes) =>
    `/runs/${part(head.id)}${query({ view: "graph", step: asked.get("step"), open: opened, ...changes })}`;
  return html`
    <${Graph}
      chart=${chart}
      label="Graph of ${head.title}"
      states=${runStates(steps, head.status)}
      paths=${steps.map((step) => step.path)}
      selected=${asked.get("step") ?? ""}
      active=${active || trouble}
      stepLink=${(/** @type {string} */ path) => link({ step: head.format === "directive" ? undefined : path })}
      foldLink=${(/** @type {string} */ fold) => link({ open: [...opened, fold] })}
      fanLink=${(/** @type {string} */ path) => link({ step: path })}
    />
  `;
}
