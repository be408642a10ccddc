// Canvases in the colours of the page: sharp on every screen, drawn again when the size or the theme changes.

import { html, useEffect, useLayoutEffect, useRef } from "../html.js";

/** The design tokens that canvases are drawn with. */
const TOKENS = [
  "paper",
  "surface",
  "sunken",
  "line",
  "line-strong",
  "text",
  "soft",
  "faint",
  "accent",
  "accent-tint",
  "good",
  "good-tint",
  "warn",
  "warn-tint",
  "bad",
  "bad-tint",
  "wait",
  "wait-tint",
  "live",
  "live-tint",
];

/** @typedef {Record<string, string>} Colours by the name of the token, with `font` for texts */
/** @typedef {(context: CanvasRenderingContext2D, width: number, height: number, colours: Colours) => void} Draw */

/** @type {Colours | null} */
let known = null;
/** @type {Set<() => void>} */
const listeners = new Set();

function changed() {
  known = null;
  listeners.forEach((listener) => listener());
}

for (const query of ["(prefers-color-scheme: dark)", "(forced-colors: active)", "(prefers-contrast: more)"]) {
  matchMedia(query).addEventListener("change", changed);
}
new MutationObserver(changed).observe(document.documentElement, { attributeFilter: ["data-theme"] });

/** The colours of the theme that the page shows now. @returns {Colours} */
export function colours() {
  if (known) return known;
  const style = getComputedStyle(document.documentElement);
  known = Object.fromEntries(TOKENS.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  known.font = style.getPropertyValue("--sans").trim();
  return known;
}

/**
 * A canvas as wide as its place. `draw` is called again for every change of itself, of the size and of the theme, at
 * most once a frame. All other properties go to the canvas.
 *
 * @param {{ draw: Draw, height: number, class?: string, canvas?: { current: HTMLCanvasElement | null }, [name: string]: unknown }} props
 */
export function Canvas({ draw, height, class: name = "", canvas, ...rest }) {
  const own = useRef(/** @type {HTMLCanvasElement | null} */ (null));
  const element = canvas ?? own;
  const latest = useRef({ draw, height });
  latest.current = { draw, height };
  const frame = useRef(0);
  const paint = () => {
    frame.current ||= requestAnimationFrame(() => {
      frame.current = 0;
      if (element.current) painted(element.current, latest.current.height, latest.current.draw);
    });
  };
  useLayoutEffect(() => {
    if (element.current) painted(element.current, height, draw);
  }, [draw, height]);
  useEffect(() => {
    const observer = new ResizeObserver(paint);
    if (element.current) observer.observe(element.current);
    listeners.add(paint);
    return () => {
      observer.disconnect();
      listeners.delete(paint);
      cancelAnimationFrame(frame.current);
      frame.current = 0;
    };
  }, []);
  return html`<canvas ...${rest} ref=${element} class="canvas ${name}"></canvas>`;
}

/**
 * @param {HTMLCanvasElement} canvas
 * @param {number} height
 * @param {Draw} draw
 */
function painted(canvas, height, draw) {
  const dots = devicePixelRatio || 1;
  const width = canvas.clientWidth;
  canvas.style.height = `${height}px`;
  if (!width) return;
  const [across, down] = [Math.round(width * dots), Math.round(height * dots)];
  if (canvas.width !== across) canvas.width = across;
  if (canvas.height !== down) canvas.height = down;
  const context = canvas.getContext("2d");
  if (!context) return;
  context.setTransform(dots, 0, 0, dots, 0, 0);
  context.clearRect(0, 0, width, height);
  draw(context, width, height, colours());
}

/**
 * Fills a place with slanted lines: the sign of waiting.
 *
 * @param {CanvasRenderingContext2D} context
 * @param {number} x
 * @param {number} y
 * @param {number} width
 * @param {number} height
 * @param {string} colour
 * @param {string} ground
 */
export function hatch(context, x, y, width, height, colour, ground) {
  context.save();
  context.beginPath();
  context.rect(x, y, width, height);
  context.clip();
  context.fillStyle = ground;
  context.fillRect(x, y, width, height);
  context.strokeStyle = colour;
  context.lineWidth = 1;
  context.globalAlpha = 0.55;
  context.beginPath();
  // The lines of neighbouring places meet: they begin at the same points of the canvas.
  const first = Math.floor((x - height) / 7) * 7;
  for (let at = first; at < x + width; at += 7) {
    context.moveTo(at, y + height);
    context.lineTo(at + height, y);
  }
  context.stroke();
  context.restore();
}
