// The shapes of a flowchart as SVG elements: nodes, lines, boxes around steps, and badges with the state of a step.

import { html } from "../html.js";
import { Icon } from "./icon.js";

/**
 * @typedef {{
 *   id: string, path: string | null, kind: string, label: string, what: string, lines: string[], titles: number,
 *   x: number, y: number, w: number, h: number, fold?: string, until?: string, steps?: number,
 *   marks?: { kind: string, text: string }[],
 * }} ChartNode
 * @typedef {{ kind: string, from: string, to: string, label: string, label_at: [number, number], route: string, end: [number, number] }} ChartWay
 * @typedef {{ from: string, to: string, label: string, label_at: [number, number], points: [number, number][], route: string, back: boolean }} ChartEdge
 * @typedef {{ id: string, path: string, label: string, what: string, lines: string[], x: number, y: number, w: number, h: number }} ChartGroup
 * @typedef {{ title?: string, command?: string, width: number, height: number, folded: boolean, nodes: ChartNode[], edges: ChartEdge[], groups: ChartGroup[], ways?: ChartWay[] }} Chart
 * @typedef {import("../chart_states.js").NodeState} NodeState
 */

const LINE = 18;
/** Badges are this high, and sit on the lower edge of a node. */
const BADGE = 18;

/** @type {CanvasRenderingContext2D | null} */
let ruler = null;
/** Widths of the words of badges, which are few. @type {Map<string, number>} */
const widths = new Map();

/** @param {string} text */
function widthOf(text) {
  if (!ruler) {
    ruler = document.createElement("canvas").getContext("2d");
    if (ruler) ruler.font = `600 11px ${getComputedStyle(document.body).fontFamily}`;
  }
  const width = widths.get(text) ?? ruler?.measureText(text).width ?? text.length * 7;
  if (widths.size < 1000) widths.set(text, width);
  return width;
}

/** What a screen reader says of a node. @param {ChartNode | ChartGroup} node @param {NodeState | null} state */
export function spoken(node, state) {
  const what = "kind" in node && node.kind === "fold" ? `${node.what}, opens` : node.what;
  const marks = "marks" in node ? (node.marks ?? []).map((mark) => mark.text) : [];
  return [node.label, what, ...marks, state?.word, state?.note].filter(Boolean).join(", ");
}

/** @param {{ node: ChartNode, state: NodeState | null }} props */
export function NodeShape({ node, state }) {
  const { x, y, w, h, kind } = node;
  const right = x + w, bottom = y + h;
  return html`
    ${outline(node)}
    ${kind === "tool" && html`<path class="shape edge" d="M${x + 6} ${y}V${bottom}M${right - 6} ${y}V${bottom}" />`}
    ${kind === "call" && html`<path class="shape edge" d="M${x + 6} ${y}V${bottom}" />`}
    ${node.lines.map((line, at) =>
      html`<text class=${at < node.titles ? "words" : "words what"} x=${x + w / 2} y=${
        y + 23 + at * LINE
      }>${line}</text>`
    )}
    ${node.marks?.map((mark, at) =>
      html`<text class="mark mark-${mark.kind}" x=${x + w / 2} y=${
        y + 23 + (node.lines.length + at) * LINE
      }>${mark.text}</text>`
    )}
    ${state && state.status !== "pending" &&
      html`<${Badge} state=${state} right=${right - 6} middle=${bottom} />`}
  `;
}

/** @param {ChartNode} node */
function outline({ x, y, w, h, kind }) {
  const right = x + w, bottom = y + h, middle = y + h / 2;
  switch (kind) {
    case "choice":
      return html`
        <path class="shape"
          d="M${x} ${middle}L${x + 18} ${y}H${right - 18}L${right} ${middle}L${right - 18} ${bottom}H${x + 18}z" />
      `;
    case "ask":
      return html`<path class="shape" d="M${x + 10} ${y}H${right}L${right - 10} ${bottom}H${x}z" />`;
    case "end":
      return html`<rect class="shape" x=${x} y=${y} width=${w} height=${h} rx=${h / 2} />`;
    case "fold":
      return html`
        <rect class="shape behind" x=${x + 5} y=${y + 5} width=${w} height=${h} rx="6" />
        <rect class="shape" x=${x} y=${y} width=${w} height=${h} rx="6" />
      `;
    default:
      return html`<rect class="shape" x=${x} y=${y} width=${w} height=${h} rx=${kind === "pure" ? 14 : 6} />`;
  }
}

/** @param {{ state: NodeState, right: number, middle: number }} props */
function Badge({ state, right, middle }) {
  const text = state.note || state.word;
  const width = widthOf(text) + 32;
  const x = right - width;
  return html`
    <g class="badge">
      <rect x=${x} y=${middle - BADGE / 2} width=${width} height=${BADGE} rx=${BADGE / 2} />
      <svg x=${x + 6} y=${middle - 6} width="12" height="12" viewBox="0 0 16 16">
        <${Icon} name=${state.icon} />
      </svg>
      <text x=${x + 22} y=${middle + 4}>${text}</text>
    </g>
  `;
}

/** @param {{ edge: ChartEdge }} props */
export function EdgeLine({ edge }) {
  const [x, y] = edge.points[edge.points.length - 1];
  return html`
    <path class=${edge.back ? "line back" : "line"} d=${edge.route} />
    <path class="tip" d="M${x - 4} ${y - 7}L${x} ${y}L${x + 4} ${y - 7}z" />
  `;
}

/** A line beside the nodes, which enters its node from the right. @param {{ way: ChartWay }} props */
export function WayLine({ way }) {
  const [x, y] = way.end;
  return html`
    <path class="way way-${way.kind}" d=${way.route} />
    <path class="way-tip way-${way.kind}" d="M${x + 8} ${y - 4}L${x} ${y}L${x + 8} ${y + 4}z" />
  `;
}

/** @param {{ way: ChartWay }} props */
export function WayLabel({ way }) {
  return html`<text class="way-label way-${way.kind}" x=${way.label_at[0]} y=${way.label_at[1]}>${way.label}</text>`;
}

/** @param {{ edge: ChartEdge }} props */
export function EdgeLabel({ edge }) {
  return html`<text class="label" x=${edge.label_at[0]} y=${edge.label_at[1]}>${edge.label}</text>`;
}

/** @param {{ group: ChartGroup }} props */
export function GroupBox({ group }) {
  return html`<rect class="box" x=${group.x} y=${group.y} width=${group.w} height=${group.h} rx="8" />`;
}

/** @param {{ group: ChartGroup, state: NodeState | null }} props */
export function GroupTitle({ group, state }) {
  return html`
    ${group.lines.map((line, at) =>
      html`<text class="title" x=${group.x + 10} y=${group.y + 18 + at * LINE}>${line}</text>`
    )}
    ${state && state.status !== "pending" &&
      html`<${Badge} state=${state} right=${group.x + group.w - 10} middle=${group.y} />`}
  `;
}
