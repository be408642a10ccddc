// The geometry of a timeline: rows within lanes, waits that are collapsed, and the scale of the time. Pure.

/**
 * @typedef {{ path: string[], lane: number[], kind: number[], state: number[], at: number[], elapsed: number[] }} Effects
 * @typedef {{ kind: string, path: string | null, lane: number, at: number, until: number | null }} Wait
 * @typedef {{ path: string, label: string, way: string, title: string, status: string }} Lane
 * @typedef {{ seq: number, start: number, end: number, lanes: Lane[], kinds: string[], states: string[], effects: Effects, waits: Wait[] }} Timeline
 * @typedef {{ from: number, to: number }} Span
 */

/** Rows of one lane: more effects than this at the same time are drawn over each other. */
const MOST_ROWS = 6;
export const ROW = 10;
const AROUND = 7;
const LOWEST = 28;

/**
 * Puts effects that overlap into different rows of their lane.
 *
 * @param {Effects} effects
 * @param {number} lanes
 * @returns {{ row: Uint8Array, rows: number[] }} the row of each effect, and the number of rows of each lane
 */
export function inRows(effects, lanes) {
  const order = effects.at.map((_, at) => at).sort((a, b) => effects.at[a] - effects.at[b]);
  const row = new Uint8Array(order.length);
  /** The end of the last effect in each row of each lane. @type {number[][]} */
  const ends = Array.from({ length: lanes }, () => []);
  for (const one of order) {
    const rows = ends[effects.lane[one]];
    if (!rows) continue;
    const [at, end] = [effects.at[one], effects.at[one] + effects.elapsed[one]];
    let free = rows.findIndex((until) => until <= at);
    if (free < 0) free = rows.length < MOST_ROWS ? rows.length : earliest(rows);
    rows[free] = Math.max(end, rows[free] ?? 0);
    row[one] = free;
  }
  return { row, rows: ends.map((rows) => Math.max(1, rows.length)) };
}

/** @param {number[]} ends */
function earliest(ends) {
  let best = 0;
  for (let at = 1; at < ends.length; at++) if (ends[at] < ends[best]) best = at;
  return best;
}

/**
 * @param {number[]} rows the number of rows of each lane
 * @returns {{ top: number[], height: number[], total: number }} in pixels
 */
export function laneTops(rows) {
  const top = [], height = [];
  let total = 0;
  for (const count of rows) {
    const own = Math.max(LOWEST, count * ROW + 2 * AROUND);
    top.push(total);
    height.push(own);
    total += own;
  }
  return { top, height, total };
}

/**
 * The times in which a run waited and nothing was done.
 *
 * @param {Wait[]} waits
 * @param {Effects} effects
 * @param {number} end the time up to which an open wait reaches
 * @returns {Span[]} in order, not overlapping
 */
export function idle(waits, effects, end) {
  const waiting = united(waits.map((wait) => ({ from: wait.at, to: wait.until ?? end })));
  if (!waiting.length) return [];
  const busy = united(effects.at.map((at, one) => ({ from: at, to: at + effects.elapsed[one] })));
  const found = [];
  let first = 0;
  for (const { from, to } of waiting) {
    let at = from;
    while (first < busy.length && busy[first].to <= from) first++;
    for (let one = first; one < busy.length && busy[one].from < to; one++) {
      if (busy[one].from > at) found.push({ from: at, to: busy[one].from });
      at = Math.max(at, busy[one].to);
    }
    if (at < to) found.push({ from: at, to });
  }
  return found;
}

/** @param {Span[]} spans @returns {Span[]} the same times, in order, without overlaps */
export function united(spans) {
  const found = /** @type {Span[]} */ ([]);
  for (const { from, to } of spans.toSorted((a, b) => a.from - b.from)) {
    const last = found[found.length - 1];
    if (last && from <= last.to) last.to = Math.max(last.to, to);
    else found.push({ from, to });
  }
  return found;
}

/**
 * The waits that are worth collapsing: those that would take more room than all of the work does in a tenth of the width.
 *
 * @param {Span[]} spans
 * @param {number} end
 */
export function worthCollapsing(spans, end) {
  const waited = spans.reduce((sum, { from, to }) => sum + to - from, 0);
  const worked = Math.max(0, end - waited);
  return spans.filter(({ from, to }) => to - from > Math.max(worked * 0.15, 0.05));
}

/**
 * A scale that gives each collapsed time a share of the width, however long it is.
 *
 * `toShown` and `toTime` translate between seconds of the run and seconds of the drawing.
 *
 * @param {number} end
 * @param {Span[]} gaps the collapsed times
 * @param {number} [share] of the width for each gap; all together take at most half of it
 */
export function timeScale(end, gaps, share = 0.08) {
  const waited = gaps.reduce((sum, { from, to }) => sum + to - from, 0);
  const worked = Math.max(end - waited, 1e-6);
  const each = gaps.length ? Math.min(share, 0.5 / gaps.length) : 0;
  const width = worked * each / (1 - each * gaps.length);
  /** Corners of the scale: seconds of the run, and of the drawing. @type {[number, number][]} */
  const corners = [[0, 0]];
  let shift = 0;
  for (const { from, to } of gaps) {
    corners.push([from, from - shift], [to, from - shift + width]);
    shift += to - from - width;
  }
  corners.push([end, end - shift]);
  /** @param {number} value @param {0 | 1} side */
  const translate = (value, side) => {
    const other = side ? 0 : 1;
    let at = 1;
    while (at < corners.length - 1 && corners[at][side] < value) at++;
    const [a, b] = [corners[at - 1], corners[at]];
    const length = b[side] - a[side];
    return length > 0 ? a[other] + (value - a[side]) / length * (b[other] - a[other]) : b[other];
  };
  return {
    total: end - shift,
    /** @param {number} time */
    toShown: (time) => translate(time, 0),
    /** @param {number} shown */
    toTime: (shown) => translate(shown, 1),
  };
}

/** Lengths between marks of an axis, in seconds. */
const NICE = [
  0.0001,
  0.0005,
  0.001,
  0.005,
  0.01,
  0.05,
  0.1,
  0.5,
  1,
  2,
  5,
  10,
  30,
  60,
  120,
  300,
  600,
  1800,
  3600,
  7200,
  21600,
  86400,
  604800,
];

/**
 * Times at which the axis has a mark: none of them within a gap.
 *
 * @param {{ toTime: (shown: number) => number }} scale
 * @param {Span} span the window, in seconds of the drawing
 * @param {Span[]} gaps
 * @param {number} most
 * @returns {{ at: number[], step: number }} the times, and the seconds between them
 */
export function marks(scale, span, gaps, most) {
  const step = NICE.find((one) => (span.to - span.from) / one <= most) ?? NICE[NICE.length - 1];
  const [first, last] = [scale.toTime(span.from), scale.toTime(span.to)];
  const found = [];
  for (let piece = 0; piece <= gaps.length && found.length < 100; piece++) {
    const from = Math.max(first, piece ? gaps[piece - 1].to : 0);
    const to = Math.min(last, piece < gaps.length ? gaps[piece].from : Infinity);
    for (let count = Math.max(0, Math.ceil(from / step - 1e-9)); count * step <= to && found.length < 100; count++) {
      found.push(count * step);
    }
  }
  return { at: found, step };
}

/**
 * A time since the start as clocks show it: `0:05`, `12:30`, `2:11:05`; with decimals if marks are that close.
 *
 * @param {number} seconds
 * @param {number} step
 */
export function clock(seconds, step) {
  const decimals = step < 0.001 ? 4 : step < 0.01 ? 3 : step < 0.1 ? 2 : step < 1 ? 1 : 0;
  if (decimals && seconds < 60) return `${seconds.toFixed(decimals)} s`;
  const whole = decimals ? Math.floor(seconds) : Math.round(seconds);
  const rest = decimals ? (seconds - whole).toFixed(decimals).slice(1) : "";
  const [hours, minutes, left] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const two = (/** @type {number} */ value) => String(value).padStart(2, "0");
  return hours ? `${hours}:${two(minutes)}:${two(left)}${rest}` : `${minutes}:${two(left)}${rest}`;
}

/**
 * Zooms a window of the drawing about a point, and keeps it within the whole.
 *
 * @param {Span} span
 * @param {number} by larger than 1 zooms in
 * @param {number} total
 * @param {number} [about] a share of the window, from 0 to 1
 * @returns {Span}
 */
export function zoomed({ from, to }, by, total, about = 0.5) {
  const length = Math.min(total, Math.max(total / 5000, (to - from) / by));
  return moved(
    { from: from + (to - from - length) * about, to: from + (to - from - length) * about + length },
    0,
    total,
  );
}

/**
 * @param {Span} span
 * @param {number} by
 * @param {number} total
 * @returns {Span}
 */
export function moved({ from, to }, by, total) {
  const length = Math.min(total, to - from);
  const start = Math.max(0, Math.min(total - length, from + by));
  return { from: start, to: start + length };
}
