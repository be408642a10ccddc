// A timeline made ready to be drawn: where every lane, row and wait is, and what lies at a point. Pure.

import { idle, inRows, laneTops, marks, ROW, timeScale, worthCollapsing } from "../timeline_geometry.js";
import { duration } from "../words.js";

/** @typedef {import("../timeline_geometry.js").Timeline} Timeline */
/** @typedef {import("../timeline_geometry.js").Span} Span */
/** @typedef {ReturnType<typeof modelOf>} Model */

const SLACK = 4;

/**
 * @param {Timeline} data
 * @param {boolean} collapsed true if waits are drawn as gaps
 * @param {number} now seconds since the start, for waits that are open
 */
export function modelOf(data, collapsed, now) {
  const { effects } = data;
  const open = data.waits.some((wait) => wait.until === null);
  const end = Math.max(data.end, open ? now : 0, 1e-3);
  const { row, rows } = inRows(effects, data.lanes.length);
  const tops = laneTops(rows);
  const silent = idle(data.waits, effects, end);
  const gaps = collapsed ? worthCollapsing(silent, end) : [];
  const scale = timeScale(end, gaps);
  const order = effects.at.map((_, at) => at).sort((a, b) => effects.at[a] - effects.at[b] || a - b);

  /** @param {number} lane @param {number} row */
  const rowTop = (lane, row) => tops.top[lane] + (tops.height[lane] - rows[lane] * ROW) / 2 + row * ROW + 1;

  return {
    data,
    end,
    row,
    tops,
    gaps,
    scale,
    order,
    rowTop,
    waits: data.waits.map((wait) => ({ ...wait, until: wait.until ?? end })),
    /** The time in which nothing was done, because a person was waited for. */
    waited: silent.reduce((sum, { from, to }) => sum + to - from, 0),

    /** @param {number} y */
    laneAt(y) {
      const { top } = tops;
      let [low, high] = [0, top.length - 1];
      while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (top[middle] <= y) low = middle;
        else high = middle - 1;
      }
      return Math.max(0, low);
    },

    /** @param {{ span: Span, labels: number }} look @param {number} width */
    marks({ span, labels }, width) {
      return marks(scale, span, gaps, (width - labels) / 90);
    },

    /**
     * @param {number} x
     * @param {number} y with what is scrolled away
     * @param {(time: number) => number} place
     * @returns {number} the effect at a point, or -1
     */
    effectAt(x, y, place) {
      const lane = this.laneAt(y);
      let best = -1, least = Infinity;
      for (let at = 0; at < effects.at.length; at++) {
        if (effects.lane[at] !== lane) continue;
        const left = place(effects.at[at]), right = place(effects.at[at] + effects.elapsed[at]);
        const across = x < left ? left - x : x > right ? x - right : 0;
        if (across > SLACK) continue;
        const way = across + Math.abs(rowTop(lane, row[at]) + ROW / 2 - y);
        if (way < least) [best, least] = [at, way];
      }
      return best;
    },

    /**
     * The effect that an arrow key leads to: sideways the next in time, up and down the nearest of another lane.
     *
     * @param {number} from
     * @param {string} key
     */
    beside(from, key) {
      if (!order.length) return -1;
      if (from < 0 || key === "Home") return order[0];
      if (key === "End") return order[order.length - 1];
      const at = order.indexOf(from);
      if (key === "ArrowRight") return order[Math.min(order.length - 1, at + 1)];
      if (key === "ArrowLeft") return order[Math.max(0, at - 1)];
      const step = key === "ArrowDown" ? 1 : -1;
      for (let lane = effects.lane[from] + step; lane >= 0 && lane < data.lanes.length; lane += step) {
        let best = -1, least = Infinity;
        for (const one of order) {
          const way = Math.abs(effects.at[one] - effects.at[from]);
          if (effects.lane[one] === lane && way < least) [best, least] = [one, way];
        }
        if (best >= 0) return best;
      }
      return from;
    },

    /** @param {number} at */
    words(at) {
      const lane = data.lanes[effects.lane[at]];
      const state = data.states[effects.state[at]];
      const word = { ok: "done", failed: "failed", intent: "begun, its end is not known" }[state] ?? state;
      const step = lane ? `Step ${lane.way}${lane.title && `, ${lane.title}`}` : "Outside of the steps";
      return `${step}: ${data.kinds[effects.kind[at]]}, ${word}, began after ${duration(effects.at[at])}, took ${
        duration(effects.elapsed[at])
      }`;
    },

    /** How many effects begin in each pixel of the overview. @param {number} columns */
    density(columns) {
      const all = new Uint16Array(columns), failed = new Uint8Array(columns);
      const bad = data.states.indexOf("failed");
      for (let at = 0; at < effects.at.length; at++) {
        const from = Math.floor(scale.toShown(effects.at[at]) / scale.total * columns);
        const to = Math.floor(scale.toShown(effects.at[at] + effects.elapsed[at]) / scale.total * columns);
        for (let column = Math.max(0, from); column <= Math.min(to, columns - 1); column++) {
          all[column]++;
          if (effects.state[at] === bad) failed[column] = 1;
        }
      }
      return { all, failed };
    },
  };
}
