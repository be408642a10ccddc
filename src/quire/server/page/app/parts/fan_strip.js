// The items of a fan-out as a strip of cells, in the order of the document: one canvas, however many items there are.
//
// A state has a sign besides its colour: done is full, failed is crossed, waiting has a dot, running is half full,
// and what has not begun is empty.

import { html, useLayoutEffect, useMemo, useRef, useState } from "../html.js";
import { Canvas } from "./canvas.js";

/** How the letter of a state is shown. @type {Record<string, { state: string, word: string, icon: string, tone: string }>} */
export const LETTERS = {
  f: { state: "failed", word: "failed", icon: "cross", tone: "bad" },
  w: { state: "waiting", word: "waits for you", icon: "question", tone: "wait" },
  r: { state: "running", word: "running", icon: "running", tone: "live" },
  p: { state: "pending", word: "not begun", icon: "dot", tone: "quiet" },
  d: { state: "done", word: "done", icon: "check", tone: "good" },
};

const SIZES = [22, 18, 15, 12, 10, 8, 6, 5, 4];
const TALLEST = 216;
/** The space around the cells, as in the style sheet. */
const AROUND = 3;
const COLOURS = /** @type {Record<string, string>} */ ({ f: "bad", w: "wait", r: "live", p: "line-strong", d: "good" });

/**
 * The size of the cells, and how many are in a row.
 *
 * @param {number} count
 * @param {number} width
 * @returns {{ size: number, across: number, height: number }}
 */
export function cells(count, width) {
  for (const size of SIZES) {
    const across = Math.max(1, Math.floor(width / size));
    const height = Math.ceil(count / across) * size;
    if (height <= TALLEST || size === SIZES[SIZES.length - 1]) return { size, across, height: Math.max(size, height) };
  }
  return { size: 4, across: 1, height: 4 };
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {import("./canvas.js").Colours} colours
 * @param {string} letters a letter for the state of each item
 * @param {{ size: number, across: number }} grid
 * @param {number} selected
 * @param {number} pointed
 */
export function drawCells(context, colours, letters, { size, across }, selected, pointed) {
  const gap = size > 8 ? 2 : 1, inner = size - gap;
  for (const letter of "pdrwf") {
    context.fillStyle = context.strokeStyle = colours[COLOURS[letter]];
    context.lineWidth = 1;
    // What is done is the most, and should not be the loudest.
    context.globalAlpha = letter === "d" ? 0.6 : 1;
    for (let at = letters.indexOf(letter); at >= 0; at = letters.indexOf(letter, at + 1)) {
      const x = at % across * size, y = Math.floor(at / across) * size;
      if (letter === "p" && inner > 3) context.strokeRect(x + 0.5, y + 0.5, inner - 1, inner - 1);
      else if (letter === "r") {
        context.strokeRect(x + 0.5, y + 0.5, inner - 1, inner - 1);
        context.fillRect(x, y + inner / 2, inner, inner / 2);
      } else context.fillRect(x, y, inner, inner);
    }
    if (inner < 6 || !"wf".includes(letter)) continue;
    context.strokeStyle = context.fillStyle = colours.surface;
    context.lineWidth = inner > 9 ? 1.5 : 1;
    context.beginPath();
    for (let at = letters.indexOf(letter); at >= 0; at = letters.indexOf(letter, at + 1)) {
      const x = at % across * size, y = Math.floor(at / across) * size, pad = inner * 0.27;
      if (letter === "f") {
        context.moveTo(x + pad, y + pad);
        context.lineTo(x + inner - pad, y + inner - pad);
        context.moveTo(x + inner - pad, y + pad);
        context.lineTo(x + pad, y + inner - pad);
      } else context.fillRect(x + inner * 0.35, y + inner * 0.35, inner * 0.3, inner * 0.3);
    }
    context.stroke();
  }
  for (const [at, colour] of /** @type {[number, string][]} */ ([[pointed, "text"], [selected, "accent"]])) {
    if (at < 0 || at >= letters.length) continue;
    context.strokeStyle = colours[colour];
    context.lineWidth = 2;
    context.strokeRect(at % across * size - 1, Math.floor(at / across) * size - 1, inner + 2, inner + 2);
  }
}

/**
 * @param {{
 *   letters: string, label: string, selected: number, words: (at: number) => string,
 *   onSelect: (at: number) => void, onPoint?: (at: number) => void, onOpen: (at: number) => void,
 * }} props `words` says one item for people; `onPoint` is told the item under the pointer, or -1
 */
export function FanStrip({ letters, label, selected, words, onSelect, onPoint = () => {}, onOpen }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const [width, setWidth] = useState(0);
  const [pointed, setPointed] = useState(-1);
  useLayoutEffect(() => {
    const measure = () => box.current && setWidth(box.current.clientWidth - 2 * AROUND);
    measure();
    const observer = new ResizeObserver(measure);
    if (box.current) observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  const grid = useMemo(() => cells(letters.length, width || 600), [letters.length, width]);

  /** @param {any} event */
  const itemUnder = (event) => {
    const place = event.currentTarget.getBoundingClientRect();
    const column = Math.floor((event.clientX - place.left) / grid.size);
    const at = Math.floor((event.clientY - place.top) / grid.size) * grid.across + column;
    return column < grid.across && at >= 0 && at < letters.length ? at : -1;
  };
  /** @param {number} at */
  const point = (at) => {
    if (at === pointed) return;
    setPointed(at);
    onPoint(at);
  };
  /** @param {KeyboardEvent} event */
  const onKeyDown = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const ways = /** @type {Record<string, number>} */ ({
      ArrowLeft: selected - 1,
      ArrowRight: selected + 1,
      ArrowUp: selected - grid.across,
      ArrowDown: selected < 0 ? 0 : selected + grid.across,
      Home: 0,
      End: letters.length - 1,
    });
    if (event.key === "Enter" && selected >= 0) onOpen(selected);
    else if (event.key in ways) {
      const to = ways[event.key];
      if (to >= 0 && to < letters.length) onSelect(to);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const said = pointed >= 0 ? words(pointed) : selected >= 0 ? words(selected) : "";
  return html`
    <div class="fan-strip" ref=${box} role="application" tabindex="0" aria-label=${label}
      aria-describedby="fan-words"
      onKeyDown=${onKeyDown}>
      <${Canvas} height=${grid.height + 2} aria-hidden="true"
        draw=${(
          /** @type {CanvasRenderingContext2D} */ context,
          /** @type {number} */ _width,
          /** @type {number} */ _height,
          /** @type {any} */ colours,
        ) => drawCells(context, colours, letters, grid, selected, pointed)}
        onPointerMove=${(/** @type {any} */ event) => point(itemUnder(event))}
        onPointerLeave=${() => point(-1)}
        onClick=${(/** @type {any} */ event) => {
          const at = itemUnder(event);
          if (at >= 0) onSelect(at);
        }} />
    </div>
    <p id="fan-words" class="fan-words" role="status">${said || "Arrow keys go from item to item, Enter opens one."}</p>
  `;
}
