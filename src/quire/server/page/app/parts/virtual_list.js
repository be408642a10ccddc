// A list of any length: only the rows in view are in the document. All rows have the same height.

import { html, useEffect, useLayoutEffect, useRef, useState } from "../html.js";

const BEYOND = 8;

/**
 * `row` draws one row by its number. The place of the reader stays where it is while rows are added or change. A change
 * of `shows` brings that row into view.
 *
 * @param {{
 *   count: number, rowHeight: number, row: (at: number) => unknown, label: string, role?: string, shows?: number,
 *   onEnd?: () => void, class?: string, focusable?: boolean, [name: string]: unknown,
 * }} props
 */
export function VirtualList(props) {
  const { count, rowHeight, row, label, role = "list", shows, onEnd, class: name = "", focusable = true, ...rest } =
    props;
  const element = useRef(/** @type {HTMLElement | null} */ (null));
  const [view, setView] = useState({ top: 0, height: 600 });

  useLayoutEffect(() => {
    const box = element.current;
    if (!box) return;
    const measure = () => setView({ top: box.scrollTop, height: box.clientHeight });
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(box);
    return () => observer.disconnect();
  }, []);

  useEffect(() => {
    const box = element.current;
    if (!box || shows === undefined || shows < 0) return;
    const top = shows * rowHeight;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + rowHeight > box.scrollTop + box.clientHeight) box.scrollTop = top + rowHeight - box.clientHeight;
  }, [shows, rowHeight]);

  const first = Math.max(0, Math.min(Math.floor(view.top / rowHeight) - BEYOND, count - 1));
  const last = Math.min(count, Math.ceil((view.top + view.height) / rowHeight) + BEYOND);
  useEffect(() => {
    if (onEnd && last >= count) onEnd();
  }, [last >= count, count]);

  const rows = [];
  for (let at = first; at < last; at++) rows.push(row(at));
  return html`
    <div
      ...${rest}
      ref=${element}
      class="virtual ${name}"
      role=${role}
      aria-label=${label}
      tabindex=${focusable ? 0 : undefined}
      onScroll=${(/** @type {any} */ event) =>
        setView({ top: event.currentTarget.scrollTop, height: event.currentTarget.clientHeight })}
    >
      <div class="virtual-all" role="presentation" style=${{ height: `${count * rowHeight}px` }}>
        <div class="virtual-part" role="presentation" style=${{ transform: `translateY(${first * rowHeight}px)` }}>
          ${rows}
        </div>
      </div>
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
