// The timeline of a run: one lane for each step, waits for people hatched and collapsible. Drawn on canvases.
//
// Everything that a drag does, buttons and keys do as well: zoom, move, choose an effect. A table stands below.

import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../html.js";
import { moved, zoomed } from "../timeline_geometry.js";
import { duration, plural } from "../words.js";
import { Canvas } from "./canvas.js";
import { Icon } from "./icon.js";
import { AXIS, drawAxis, drawLanes, drawOverview, KINDS, OVERVIEW, placing } from "./timeline_drawing.js";
import { modelOf } from "./timeline_model.js";

/** @typedef {import("../timeline_geometry.js").Timeline} Timeline */
/** @typedef {import("../timeline_geometry.js").Span} Span */

const MOST_HEIGHT = 560;
const ARROWS = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End"];

/**
 * @param {{
 *   data: Timeline, label: string, collapsed: boolean, onCollapse: (collapsed: boolean) => void,
 *   selected: string, onSelect: (path: string) => void, onOpen: (path: string) => void, children?: unknown,
 * }} props `selected` is the path of an effect; `onOpen` follows Enter
 */
export function Timeline({ data, label, collapsed, onCollapse, selected, onSelect, onOpen, children }) {
  const now = Date.now() / 1000 - data.start;
  const model = useMemo(() => modelOf(data, collapsed, now), [data, collapsed]);
  const [asked, setSpan] = useState(/** @type {Span | null} */ (null));
  const [brush, setBrush] = useState(/** @type {Span | null} */ (null));
  const [pointed, setPointed] = useState(-1);
  const [scroll, setScroll] = useState(0);
  const [wide, setWide] = useState(1000);
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const whole = useRef(/** @type {HTMLElement | null} */ (null));

  const total = model.scale.total;
  const span = asked ? moved(asked, 0, total) : { from: 0, to: total };
  const labels = wide < 560 ? 92 : 200;
  const height = Math.min(MOST_HEIGHT, Math.max(28, model.tops.total));
  const at = useMemo(() => data.effects.path.indexOf(selected), [data, selected]);
  const look = { model, span, labels, selected: at, pointed };
  useLayoutEffect(() => {
    if (whole.current) whole.current.style.height = `${model.tops.total}px`;
    if (box.current) setWide(box.current.clientWidth);
  }, [model]);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(() => box.current && setWide(box.current.clientWidth));
    if (box.current) observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  useEffect(() => setSpan(null), [collapsed]);

  /** @param {number} by @param {number} [about] */
  const zoom = (by, about) => setSpan(zoomed(span, by, total, about));
  /** @param {number} share of the window */
  const move = (share) => setSpan(moved(span, share * (span.to - span.from), total));
  useWheel(box, labels, zoom, move);

  /** Brings an effect into the window. @param {number} one */
  const show = (one) => {
    const [from, to] = [model.scale.toShown(data.effects.at[one]), span.to - span.from];
    if (asked && (from < span.from || from > span.to)) {
      setSpan(moved({ from: from - to / 2, to: from + to / 2 }, 0, total));
    }
    const element = box.current, lane = data.effects.lane[one];
    if (!element || lane < 0) return;
    const top = model.tops.top[lane], bottom = top + model.tops.height[lane];
    if (top < element.scrollTop) element.scrollTop = top;
    else if (bottom > element.scrollTop + element.clientHeight) element.scrollTop = bottom - element.clientHeight;
  };
  /** @param {KeyboardEvent} event */
  const onKeyDown = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter" && at >= 0) onOpen(selected);
    else if (event.key === "Escape" && at >= 0) onSelect("");
    else if (["+", "="].includes(event.key)) zoom(1.6);
    else if (event.key === "-") zoom(1 / 1.6);
    else if (event.key === "0") setSpan(null);
    else if (event.shiftKey && event.key === "ArrowLeft") move(-0.2);
    else if (event.shiftKey && event.key === "ArrowRight") move(0.2);
    else if (ARROWS.includes(event.key)) {
      const next = model.beside(at, event.key);
      if (next >= 0) {
        onSelect(data.effects.path[next]);
        show(next);
      }
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
  /** @param {any} event */
  const effectUnder = (event) => {
    const place = event.currentTarget.getBoundingClientRect();
    const [x, y] = [event.clientX - place.left, event.clientY - place.top + scroll];
    return x < labels ? -1 : model.effectAt(x, y, placing(look, wide));
  };
  const words = pointed >= 0 ? model.words(pointed) : at >= 0 ? model.words(at) : hint(model);
  return html`
    <div class="timeline">
      <${Tools} zoom=${zoom} move=${move} all=${() => setSpan(null)} isAll=${!asked} collapsed=${collapsed}
        waited=${model.waited} onCollapse=${onCollapse} />
      <div class="timeline-frame">
        <${Overview} look=${look} brush=${brush} setBrush=${setBrush} setSpan=${setSpan} span=${span} />
        <${Canvas} class="timeline-axis" height=${model.gaps.length ? AXIS : AXIS - 18} aria-hidden="true"
          draw=${(/** @type {any[]} */ ...given) => drawAxis(.../** @type {[any, any, any, any]} */ (given), look)} />
        <div class="timeline-view" ref=${box} role="application" tabindex="0" aria-label=${label}
          aria-describedby="timeline-words" onKeyDown=${onKeyDown}
          onScroll=${(/** @type {any} */ event) => setScroll(event.currentTarget.scrollTop)}>
          <div class="timeline-all" ref=${whole}>
            <${Canvas} class="timeline-lanes" height=${height} aria-hidden="true"
              draw=${(/** @type {any[]} */ ...given) =>
                drawLanes(.../** @type {[any, any, any, any]} */ (given), look, scroll)}
              onPointerMove=${(/** @type {any} */ event) => setPointed(effectUnder(event))}
              onPointerLeave=${() => setPointed(-1)}
              onClick=${(/** @type {any} */ event) => {
                const one = effectUnder(event);
                onSelect(one < 0 ? "" : data.effects.path[one]);
              }} />
          </div>
        </div>
      </div>
      <p id="timeline-words" class="timeline-words" role="status">${words}</p>
      <${Legend} data=${data} />
      ${children}
    </div>
  `;
}

/** @param {import("./timeline_model.js").Model} model */
function hint(model) {
  const { effects, lanes } = model.data;
  return `${plural(effects.at.length, "effect")} in ${plural(lanes.length, "step")}, ${duration(model.end)}${
    model.waited > 0.05 ? `, of which ${duration(model.waited)} waiting` : ""
  }. Arrow keys choose an effect, + and - zoom.`;
}

/**
 * Ctrl and the wheel zoom about the pointer; a wheel that turns sideways moves.
 *
 * @param {{ current: HTMLElement | null }} box
 * @param {number} labels
 * @param {(by: number, about?: number) => void} zoom
 * @param {(share: number) => void} move
 */
function useWheel(box, labels, zoom, move) {
  const latest = useRef({ labels, zoom, move });
  latest.current = { labels, zoom, move };
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    /** @param {WheelEvent} event */
    const onWheel = (event) => {
      const place = element.getBoundingClientRect();
      const wide = place.width - latest.current.labels;
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        const about = Math.max(0, Math.min(1, (event.clientX - place.left - latest.current.labels) / wide));
        latest.current.zoom(Math.exp(-event.deltaY / 300), about);
      } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        event.preventDefault();
        latest.current.move(event.deltaX / wide);
      }
    };
    element.addEventListener("wheel", onWheel, { passive: false });
    return () => element.removeEventListener("wheel", onWheel);
  }, []);
}

/** @param {any} props */
function Overview({ look, brush, setBrush, setSpan, span }) {
  const held = useRef(0);
  /** @param {any} event */
  const momentAt = (event) => {
    const place = event.currentTarget.getBoundingClientRect();
    const share = (event.clientX - place.left - look.labels) / (place.width - look.labels);
    return Math.max(0, Math.min(1, share)) * look.model.scale.total;
  };
  /** @param {any} event */
  const onPointerDown = (event) => {
    event.currentTarget.setPointerCapture(event.pointerId);
    held.current = momentAt(event);
    setBrush({ from: held.current, to: held.current });
  };
  /** @param {any} event */
  const onPointerMove = (event) => {
    const to = momentAt(event);
    if (brush) setBrush({ from: Math.min(held.current, to), to: Math.max(held.current, to) });
  };
  const onPointerUp = () => {
    if (!brush) return;
    const total = look.model.scale.total, length = span.to - span.from;
    const isClick = brush.to - brush.from < total / 200;
    setSpan(isClick ? moved({ from: brush.from - length / 2, to: brush.from + length / 2 }, 0, total) : brush);
    setBrush(null);
  };
  return html`
    <${Canvas} class="timeline-overview" height=${OVERVIEW} aria-hidden="true"
      draw=${(/** @type {any[]} */ ...given) =>
        drawOverview(.../** @type {[any, any, any, any]} */ (given), look, brush)}
      onPointerDown=${onPointerDown} onPointerMove=${onPointerMove} onPointerUp=${onPointerUp} />
  `;
}

/** @param {any} props */
function Tools({ zoom, move, all, isAll, collapsed, waited, onCollapse }) {
  return html`
    <div class="timeline-tools" role="toolbar" aria-label="View">
      <button type="button" class="icon-button" aria-label="Zoom out" title="Zoom out (-)"
        onClick=${() => zoom(1 / 1.6)}><${Icon} name="minus" /></button>
      <button type="button" class="icon-button" aria-label="Zoom in" title="Zoom in (+)"
        onClick=${() => zoom(1.6)}><${Icon} name="plus" /></button>
      <button type="button" class="icon-button" aria-label="Earlier" title="Earlier (Shift-←)" disabled=${isAll}
        onClick=${() => move(-0.5)}><${Icon} name="left" /></button>
      <button type="button" class="icon-button" aria-label="Later" title="Later (Shift-→)" disabled=${isAll}
        onClick=${() => move(0.5)}><${Icon} name="right" /></button>
      <button type="button" class="button" disabled=${isAll} onClick=${all}>Show all</button>
      ${waited > 0.05 && html`
        <label class="check push">
          <input type="checkbox" checked=${collapsed}
            onChange=${(/** @type {any} */ event) => onCollapse(event.target.checked)} />
          Collapse ${duration(waited)} of waiting
        </label>
      `}
    </div>
  `;
}

/** @param {{ data: Timeline }} props */
function Legend({ data: { kinds, states, effects, waits } }) {
  const failed = effects.state.includes(states.indexOf("failed"));
  const coloured = kinds.filter((kind) => kind in KINDS), others = kinds.filter((kind) => !(kind in KINDS));
  return html`
    <ul class="legend">
      ${coloured.map((kind) =>
        html`<li key=${kind}><span class="swatch kind-${kind}" aria-hidden="true"></span>${kind}</li>`
      )}
      ${others.length > 0 && html`<li><span class="swatch" aria-hidden="true"></span>${others.join(", ")}</li>`}
      ${failed && html`<li><span class="swatch failed" aria-hidden="true"></span>failed, drawn taller</li>`}
      ${waits.length > 0 && html`<li><span class="swatch waiting" aria-hidden="true"></span>waits for a person</li>`}
    </ul>
  `;
}
