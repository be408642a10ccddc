// A list of any length, which scrolls with the window. Up to 200 rows are all in the document, so that the browser's own
// search finds them; of a longer list only the rows in view. All rows have the same height.

import { html, useEffect, useLayoutEffect, useRef, useState } from "../html.js";

const BEYOND = 8;
const MOST_WHOLE = 200;

/**
 * `row` draws one row by its number. The place of the reader stays where it is while rows are added or change. A change
 * of `shows` brings that row into view.
 *
 * @param {{
 *   count: number, rowHeight: number, row: (at: number) => unknown, label: string, shows?: number, onEnd?: () => void,
 *   class?: string,
 * }} props
 */
export function VirtualList({ count, rowHeight, row, label, shows, onEnd, class: name = "" }) {
  const element = useRef(/** @type {HTMLElement | null} */ (null));
  const [view, setView] = useState({ top: 0, height: 600 });
  const above = () => -(element.current?.getBoundingClientRect().top ?? 0);

  useLayoutEffect(() => {
    const measure = () => setView({ top: above(), height: innerHeight });
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(document.documentElement);
    addEventListener("scroll", measure, { passive: true });
    return () => {
      observer.disconnect();
      removeEventListener("scroll", measure);
    };
  }, []);

  useEffect(() => {
    if (shows === undefined || shows < 0) return;
    const top = shows * rowHeight - above();
    scrollBy(0, Math.min(top, 0) || Math.max(0, top + rowHeight - innerHeight));
  }, [shows, rowHeight]);

  const end = Math.min(count, Math.ceil((view.top + view.height) / rowHeight) + BEYOND);
  useEffect(() => {
    if (onEnd && end >= count) onEnd();
  }, [end >= count, count]);

  const isWhole = count <= MOST_WHOLE;
  const first = isWhole ? 0 : Math.max(0, Math.min(Math.floor(view.top / rowHeight) - BEYOND, count - 1));
  const rows = [];
  for (let at = first; at < (isWhole ? count : end); at++) rows.push(row(at));
  return html`
    <div ref=${element} class="virtual ${name}" role="list" aria-label=${label}>
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
