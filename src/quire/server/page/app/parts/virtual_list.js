// A list of any length. Up to 200 rows are all in the document, so that the browser's own search finds them; of a longer
// one only the rows in view. It scrolls with the window, or by itself as a `pane`. All rows have the same height.

import { html, useEffect, useLayoutEffect, useRef, useState } from "../html.js";

const BEYOND = 8;
const MOST_WHOLE = 200;

/**
 * `row` draws one row by its number. The place of the reader stays where it is while rows are added or change. A change
 * of `shows` brings that row into view.
 *
 * @param {{
 *   count: number, rowHeight: number, row: (at: number) => unknown, label: string, role?: string, shows?: number,
 *   onEnd?: () => void, class?: string, focusable?: boolean, pane?: boolean, [name: string]: unknown,
 * }} props
 */
export function VirtualList(props) {
  const { count, rowHeight, row, label, role = "list", shows, onEnd, class: name = "", pane = false, ...rest } = props;
  const { focusable = pane, ...others } = rest;
  const element = useRef(/** @type {HTMLElement | null} */ (null));
  const [view, setView] = useState({ top: 0, height: 600 });

  useLayoutEffect(() => {
    const box = element.current;
    if (!box) return;
    const measure = () => {
      const top = pane ? box.scrollTop : -box.getBoundingClientRect().top;
      setView({ top, height: pane ? box.clientHeight : innerHeight });
    };
    measure();
    const scrolled = pane ? box : globalThis;
    const observer = new ResizeObserver(measure);
    observer.observe(pane ? box : document.documentElement);
    scrolled.addEventListener("scroll", measure, { passive: true });
    return () => {
      observer.disconnect();
      scrolled.removeEventListener("scroll", measure);
    };
  }, [pane]);

  useEffect(() => {
    const box = element.current;
    if (!box || shows === undefined || shows < 0) return;
    const top = shows * rowHeight - (pane ? box.scrollTop : -box.getBoundingClientRect().top);
    const beyond = Math.max(0, top + rowHeight - (pane ? box.clientHeight : innerHeight));
    (pane ? box : globalThis).scrollBy(0, Math.min(top, 0) || beyond);
  }, [shows, rowHeight]);

  const isWhole = count <= MOST_WHOLE && !pane;
  const end = Math.min(count, Math.ceil((view.top + view.height) / rowHeight) + BEYOND);
  const first = isWhole ? 0 : Math.max(0, Math.min(Math.floor(view.top / rowHeight) - BEYOND, count - 1));
  const last = isWhole ? count : end;
  useEffect(() => {
    if (onEnd && end >= count) onEnd();
  }, [end >= count, count]);

  const rows = [];
  for (let at = first; at < last; at++) rows.push(row(at));
  return html`
    <div ...${others} ref=${element} class="virtual ${pane ? "scrolls" : ""} ${name}" role=${role} aria-label=${label}
      tabindex=${focusable ? 0 : undefined}>
      ${isWhole ? rows : html`
        <div class="virtual-all" role="presentation" style=${{ height: `${count * rowHeight}px` }}>
          <div class="virtual-part" role="presentation" style=${{ transform: `translateY(${first * rowHeight}px)` }}>
            ${rows}
          </div>
        </div>
      `}
    </div>
  `;
}

/**
 * @param {MediaQueryList} narrow screens on which rows become cards
 * @param {number} card
 * @param {number} row
 * @returns {number} the height of a row on this screen
 */
export function useRowHeight(narrow, card, row) {
  const [isNarrow, setNarrow] = useState(narrow.matches);
  useEffect(() => {
    const change = () => setNarrow(narrow.matches);
    narrow.addEventListener("change", change);
    return () => narrow.removeEventListener("change", change);
  }, []);
  return isNarrow ? card : row;
}
