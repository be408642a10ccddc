// Draws a timeline on a canvas: lanes with effects, hatched waits, the axis of the time, and an overview of the whole.

import { clock, ROW } from "../timeline_geometry.js";
import { cut, duration, span as timeSpan } from "../words.js";
import { hatch } from "./canvas.js";

/** @typedef {import("./canvas.js").Colours} Colours */
/** @typedef {import("../timeline_geometry.js").Span} Span */
/** @typedef {import("./timeline_model.js").Model} Model */
/** @typedef {{ model: Model, span: Span, labels: number, selected: number, pointed: number }} Look */

export const AXIS = 46;
export const OVERVIEW = 30;

/** The colours of the kinds of effects that have one. @type {Record<string, string>} */
export const KINDS = { model: "live", tool: "warn", ask: "wait", break: "wait" };

/**
 * The place of a moment on the canvas.
 *
 * @param {Look} look
 * @param {number} width
 * @returns {(time: number) => number}
 */
export function placing({ model, span, labels }, width) {
  const perSecond = (width - labels) / (span.to - span.from);
  return (time) => labels + (model.scale.toShown(time) - span.from) * perSecond;
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {number} width
 * @param {number} height
 * @param {Colours} colours
 * @param {Look} look
 * @param {number} scroll the pixels that are scrolled away at the top
 */
export function drawLanes(context, width, height, colours, look, scroll) {
  const { model, labels, selected, pointed } = look;
  const { data, tops, gaps } = model;
  const x = placing(look, width);
  const first = model.laneAt(scroll), last = model.laneAt(scroll + height);
  for (let lane = first; lane <= last; lane++) {
    const y = tops.top[lane] - scroll;
    if (lane % 2) {
      context.fillStyle = colours.sunken;
      context.fillRect(0, y, width, tops.height[lane]);
    }
  }
  context.save();
  context.beginPath();
  context.rect(labels, 0, width - labels, height);
  context.clip();
  for (const mark of model.marks(look, width).at) line(context, x(mark), 0, height, colours.line);
  for (const { from, to } of gaps) {
    hatch(context, x(from), 0, x(to) - x(from), height, colours.wait, colours["wait-tint"]);
  }
  for (const wait of model.waits) {
    const [left, right] = [x(wait.at), x(wait.until)];
    if (right < labels || left > width) continue;
    const [y, tall] = wait.lane < 0 ? [0, height] : [tops.top[wait.lane] - scroll + 4, tops.height[wait.lane] - 8];
    hatch(context, left, y, Math.max(3, right - left), tall, colours.wait, colours["wait-tint"]);
  }
  drawEffects(context, width, colours, look, scroll, first, last);
  for (const at of new Set([pointed, selected])) {
    if (at >= 0) drawChosen(context, at === selected ? colours.accent : colours.text, look, x, scroll, at);
  }
  context.restore();
  context.font = `12px ${colours.font}`;
  context.textBaseline = "middle";
  const letters = Math.floor((labels - 20) / 7.1);
  for (let lane = first; lane <= last; lane++) {
    const { label, title } = data.lanes[lane];
    context.fillStyle = colours.text;
    context.fillText(cut(`${label}  ${title}`, letters), 10, tops.top[lane] - scroll + tops.height[lane] / 2);
  }
  line(context, labels, 0, height, colours.line);
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {number} width
 * @param {Colours} colours
 * @param {Look} look
 * @param {number} scroll
 * @param {number} first
 * @param {number} last
 */
function drawEffects(context, width, colours, look, scroll, first, last) {
  const { model, labels } = look;
  const { effects, kinds, states } = model.data;
  const x = placing(look, width);
  const failed = states.indexOf("failed");
  /** The last pixel that is covered in each row of each lane: effects of less than a pixel are drawn once. */
  const covered = new Map();
  // Failed ones come last, so that none of them is hidden.
  for (const turn of [false, true]) {
    for (let at = 0; at < effects.at.length; at++) {
      const lane = effects.lane[at];
      if (lane < first || lane > last || (effects.state[at] === failed) !== turn) continue;
      const left = x(effects.at[at]), right = Math.max(left + 2, x(effects.at[at] + effects.elapsed[at]));
      if (right < labels || left > width) continue;
      const place = lane * 8 + model.row[at];
      if (!turn && Math.floor(right) <= (covered.get(place) ?? -1)) continue;
      covered.set(place, Math.floor(right));
      context.fillStyle = turn ? colours.bad : colours[KINDS[kinds[effects.kind[at]]] ?? "faint"];
      const y = model.rowTop(lane, model.row[at]) - scroll;
      // A failed effect is taller as well: it is not known by its colour alone.
      if (turn) context.fillRect(left, y - 2, right - left, ROW + 3);
      else context.fillRect(left, y, right - left, ROW - 2);
    }
  }
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {string} colour
 * @param {Look} look
 * @param {(time: number) => number} x
 * @param {number} scroll
 * @param {number} at
 */
function drawChosen(context, colour, { model }, x, scroll, at) {
  const { effects } = model.data;
  const left = x(effects.at[at]), right = Math.max(left + 2, x(effects.at[at] + effects.elapsed[at]));
  context.strokeStyle = colour;
  context.lineWidth = 2;
  context.strokeRect(left - 3, model.rowTop(effects.lane[at], model.row[at]) - scroll - 4, right - left + 6, ROW + 6);
}

/**
 * The axis: times above the lanes, and how long each collapsed wait is.
 *
 * @param {CanvasRenderingContext2D} context
 * @param {number} width
 * @param {number} height
 * @param {Colours} colours
 * @param {Look} look
 */
export function drawAxis(context, width, height, colours, look) {
  const { model, labels } = look;
  const x = placing(look, width);
  context.save();
  context.beginPath();
  context.rect(labels, 0, width - labels, height);
  context.clip();
  context.font = `11px ${colours.font}`;
  context.textBaseline = "middle";
  let free = 0;
  const { at: marked, step } = model.marks(look, width);
  for (const mark of marked) {
    const place = x(mark);
    if (place < free) continue;
    line(context, place, height - 6, height, colours["line-strong"]);
    const text = clock(mark, step), long = context.measureText(text).width;
    context.fillStyle = colours.soft;
    if (place + 3 + long <= width) context.fillText(text, place + 3, height - 12);
    free = place + long + 14;
  }
  context.textAlign = "center";
  let taken = labels;
  for (const gap of model.gaps) {
    const [left, right] = [x(gap.from), x(gap.to)];
    if (right < labels || left > width) continue;
    hatch(context, left, height - 6, right - left, 6, colours.wait, colours["wait-tint"]);
    const seconds = gap.to - gap.from;
    for (const text of [`${duration(seconds)} waiting`, duration(seconds), timeSpan(seconds)]) {
      const half = context.measureText(text).width / 2;
      const middle = Math.min(width - half - 2, Math.max(labels + half + 2, (left + right) / 2));
      if (middle - half < taken || half * 2 > Math.max(right - left + 40, 70)) continue;
      context.fillStyle = colours.wait;
      context.fillText(text, middle, 10);
      taken = middle + half + 8;
      break;
    }
  }
  context.restore();
}

/**
 * The whole run in a strip, with the window that the lanes show.
 *
 * @param {CanvasRenderingContext2D} context
 * @param {number} width
 * @param {number} height
 * @param {Colours} colours
 * @param {Look} look
 * @param {Span | null} brush a window that is being drawn
 */
export function drawOverview(context, width, height, colours, look, brush) {
  const { model, labels } = look;
  const whole = { ...look, span: { from: 0, to: model.scale.total } };
  const x = placing(whole, width);
  const columns = model.density(Math.max(1, Math.floor(width - labels)));
  context.fillStyle = colours.sunken;
  context.fillRect(labels, 0, width - labels, height);
  for (const { from, to } of model.gaps) {
    hatch(context, x(from), 0, x(to) - x(from), height, colours.wait, colours["wait-tint"]);
  }
  const most = Math.max(1, ...columns.all);
  for (let at = 0; at < columns.all.length; at++) {
    if (!columns.all[at]) continue;
    const tall = Math.max(3, columns.all[at] / most * (height - 4));
    context.fillStyle = columns.failed[at] ? colours.bad : colours.faint;
    context.fillRect(labels + at, height - tall, 1, tall);
  }
  const { from, to } = brush ?? look.span;
  const perSecond = (width - labels) / model.scale.total;
  const [left, right] = [labels + from * perSecond, labels + to * perSecond];
  context.fillStyle = colours.accent;
  context.globalAlpha = 0.14;
  context.fillRect(left, 0, right - left, height);
  context.globalAlpha = 1;
  context.strokeStyle = colours.accent;
  context.lineWidth = 1.5;
  context.strokeRect(left + 0.75, 0.75, Math.max(2, right - left - 1.5), height - 1.5);
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {number} x
 * @param {number} top
 * @param {number} bottom
 * @param {string} colour
 */
function line(context, x, top, bottom, colour) {
  context.fillStyle = colour;
  context.fillRect(Math.round(x), top, 1, bottom - top);
}
