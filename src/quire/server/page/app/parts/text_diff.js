// The difference between two values, word by word. Long parts that are the same are folded until they are opened.

import { html, useMemo, useState } from "../html.js";
import { number } from "../words.js";
import { wordDiff } from "./word_diff.js";

const KEPT = 160;
const MOST = 400_000;

/** @param {{ a: unknown, b: unknown }} props null for a value that one side does not have */
export function TextDiff({ a, b }) {
  const [of_a, of_b] = [asText(a), asText(b)];
  const tooLong = of_a.length + of_b.length > MOST;
  const pieces = useMemo(() => tooLong ? [] : wordDiff(of_a, of_b), [of_a, of_b]);
  if (tooLong) {
    return html`<p class="soft">Too long to compare in the page: ${number(of_a.length)} and ${
      number(of_b.length)
    } characters.</p>`;
  }
  return html`
    <div class="text-diff" tabindex="0" role="group" aria-label="Difference">
      ${pieces.map(({ kind, text }, at) =>
        kind === "same"
          ? html`<${Same} key=${at} text=${text} first=${at === 0} last=${at === pieces.length - 1} />`
          : kind === "old"
          ? html`<del key=${at}>${text}</del>`
          : html`<ins key=${at}>${text}</ins>`
      )}
    </div>
  `;
}

/** @param {{ text: string, first: boolean, last: boolean }} props */
function Same({ text, first, last }) {
  const [open, setOpen] = useState(false);
  const head = first ? 0 : KEPT;
  const tail = last ? 0 : KEPT;
  const hidden = text.length - head - tail;
  if (open || hidden < KEPT) return html`<span>${text}</span>`;
  return html`
    <span>${text.slice(0, head)}</span>
    <button type="button" class="link diff-fold" onClick=${() => setOpen(true)}>… ${number(
      hidden,
    )} characters the same …</button>
    <span>${tail ? text.slice(-tail) : ""}</span>
  `;
}

/** @param {unknown} value */
function asText(value) {
  if (value === null || value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}
