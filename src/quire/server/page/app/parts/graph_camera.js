// The camera of a flowchart: zoom, drag, and the way of the keys from node to node. It moves only when it is asked to.

/** @typedef {import("./graph_shapes.js").Chart} Chart */
/** @typedef {import("./graph_shapes.js").ChartNode} ChartNode */

const STEPS = [0.25, 0.35, 0.5, 0.7, 0.85, 1, 1.25, 1.6, 2];
/** A press that moves further than this is a drag and not a click. */
const CLICK = 4;

/** @typedef {ReturnType<typeof camera>} Camera */

/** @param {{ current: HTMLElement | null }} box the element that scrolls */
export function camera(box) {
  let zoom = 1;
  /** @type {Chart | null} */
  let chart = null;

  const self = {
    /** @param {number} _zoom */
    onZoom(_zoom) {},
    onDrag() {},

    /**
     * Shows a chart: the first as wide as there is room, a later one with what was in view where it was.
     *
     * @param {Chart} next
     * @param {string} path of the step to bring into view
     */
    show(next, path) {
      const element = box.current;
      if (!element || chart === next) return;
      const before = chart;
      chart = next;
      if (before) return keepPlace(element, before, next);
      self.scale(Math.max(0.5, Math.min(1, element.clientWidth / next.width)), { x: 0, y: 0 });
      element.scrollLeft = (next.width * zoom - element.clientWidth) / 2;
      if (path) self.bring(path);
    },

    /**
     * @param {number} next
     * @param {{ x: number, y: number }} [at] the point of the view that stays where it is
     */
    scale(next, at) {
      const element = box.current;
      if (!element) return;
      const { x, y } = at ?? { x: element.clientWidth / 2, y: element.clientHeight / 2 };
      const left = (element.scrollLeft + x) / zoom, top = (element.scrollTop + y) / zoom;
      zoom = Math.max(STEPS[0], Math.min(STEPS[STEPS.length - 1], next));
      const svg = element.querySelector("svg");
      if (svg && chart) {
        svg.setAttribute("width", String(chart.width * zoom));
        svg.setAttribute("height", String(chart.height * zoom));
      }
      element.scrollLeft = left * zoom - x;
      element.scrollTop = top * zoom - y;
      self.onZoom(zoom);
    },

    /** @param {1 | -1} direction */
    step(direction) {
      const next = direction > 0 ? STEPS.find((one) => one > zoom + 0.01) : STEPS.findLast((one) => one < zoom - 0.01);
      if (next) self.scale(next);
    },

    fit() {
      const element = box.current;
      if (!element || !chart) return;
      self.scale(Math.min(element.clientWidth / chart.width, element.clientHeight / chart.height, 1));
    },

    /** Brings a step into view, if it is not. @param {string} path */
    bring(path) {
      const node = chart?.nodes.find((one) => one.path === path) ??
        chart?.nodes.findLast((one) => one.path && path.startsWith(`${one.path}/`));
      if (node) self.bringNode(node);
    },

    /** @param {ChartNode} node */
    bringNode(node) {
      const element = box.current;
      if (!element) return;
      const [left, top] = [node.x * zoom, node.y * zoom];
      const [right, bottom] = [(node.x + node.w) * zoom, (node.y + node.h) * zoom];
      const inX = left >= element.scrollLeft && right <= element.scrollLeft + element.clientWidth;
      const inY = top >= element.scrollTop && bottom <= element.scrollTop + element.clientHeight;
      if (!inX) element.scrollLeft = (left + right - element.clientWidth) / 2;
      if (!inY) element.scrollTop = (top + bottom - element.clientHeight) / 2;
    },

    /** @param {ChartNode} node */
    focus(node) {
      const element = box.current?.querySelector(`[data-id="${CSS.escape(node.id)}"]`);
      if (element instanceof SVGElement) element.focus({ preventScroll: true });
      self.bringNode(node);
    },

    /**
     * Answers a key: zooms, or returns the node that it leads to.
     *
     * @param {KeyboardEvent} event
     * @param {ChartNode[]} links
     * @param {ChartNode | undefined} from
     */
    key(event, links, from) {
      if (event.ctrlKey || event.metaKey || event.altKey) return null;
      if (["+", "=", "-", "0"].includes(event.key)) {
        if (event.key === "0") self.scale(1);
        else self.step(event.key === "-" ? -1 : 1);
        event.preventDefault();
        return null;
      }
      if (!from) return null;
      if (event.key === "Home") return links[0];
      if (event.key === "End") return links[links.length - 1];
      return nearest(links, from, event.key);
    },

    /** Begins to listen to the pointer and the wheel. @returns {() => void} */
    listen() {
      const element = box.current;
      if (!element) return () => {};
      const stopping = new AbortController();
      const { signal } = stopping;
      /** @type {{ x: number, y: number, left: number, top: number } | null} */
      let held = null;
      let moved = false;
      element.addEventListener("pointerdown", (event) => {
        if (event.button || event.pointerType !== "mouse") return;
        held = { x: event.clientX, y: event.clientY, left: element.scrollLeft, top: element.scrollTop };
        moved = false;
      }, { signal });
      addEventListener("pointermove", (event) => {
        if (!held) return;
        const [byX, byY] = [event.clientX - held.x, event.clientY - held.y];
        if (!moved && Math.hypot(byX, byY) < CLICK) return;
        moved = true;
        element.classList.add("dragged");
        element.scrollLeft = held.left - byX;
        element.scrollTop = held.top - byY;
        self.onDrag();
      }, { signal });
      addEventListener("pointerup", () => {
        held = null;
        element.classList.remove("dragged");
      }, { signal });
      element.addEventListener("click", (event) => {
        if (!moved) return;
        moved = false;
        event.preventDefault();
        event.stopPropagation();
      }, { signal, capture: true });
      element.addEventListener("touchmove", () => self.onDrag(), { signal, passive: true });
      element.addEventListener("wheel", (event) => {
        self.onDrag();
        if (!event.ctrlKey && !event.metaKey) return;
        event.preventDefault();
        const place = element.getBoundingClientRect();
        const at = { x: event.clientX - place.left, y: event.clientY - place.top };
        self.scale(zoom * Math.exp(-event.deltaY / 300), at);
      }, { signal, passive: false });
      return () => stopping.abort();
    },
  };

  /**
   * Keeps the step that was clicked, or else one in the middle of the view, where it was on the screen.
   *
   * @param {HTMLElement} element
   * @param {Chart} before
   * @param {Chart} after
   */
  function keepPlace(element, before, after) {
    const top = element.scrollTop / zoom, height = element.clientHeight / zoom;
    const focused = document.activeElement?.getAttribute("data-id");
    const seen = before.nodes.filter((node) => node.y + node.h > top && node.y < top + height);
    const anchor = [before.nodes.find((node) => node.id === focused), ...seen].find((node) =>
      node && after.nodes.some((other) => other.path === node.path)
    );
    const now = after.nodes.find((node) => node.path === anchor?.path);
    if (!anchor || !now) return;
    element.scrollLeft += (now.x + now.w / 2 - anchor.x - anchor.w / 2) * zoom;
    element.scrollTop += (now.y - anchor.y) * zoom;
  }

  return self;
}

/** The direction that each arrow key leads to. @type {Record<string, [number, number]>} */
const ARROWS = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };

/**
 * The nearest node in the direction of an arrow key: the way across counts three times.
 *
 * @param {ChartNode[]} nodes
 * @param {ChartNode} from
 * @param {string} key
 */
export function nearest(nodes, from, key) {
  const direction = ARROWS[key];
  if (!direction) return null;
  const [dx, dy] = direction;
  let best = null, least = Infinity;
  for (const node of nodes) {
    const byX = node.x + node.w / 2 - from.x - from.w / 2, byY = node.y + node.h / 2 - from.y - from.h / 2;
    const along = byX * dx + byY * dy, across = Math.abs(byX * dy) + Math.abs(byY * dx);
    if (node === from || along <= 1) continue;
    const way = along + 3 * across;
    if (way < least) [best, least] = [node, way];
  }
  return best;
}
