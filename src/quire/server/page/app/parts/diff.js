// Differences: of two texts word by word, of two values, and of one step of two runs.

import { part, query } from "../api.js";
import { h, html, useMemo, useRef, useState } from "../html.js";
import { useResource } from "../resource.js";
import { Link } from "../router.js";
import { duration, money, number, plural } from "../words.js";
import { Placeholder, ProblemBox } from "./basics.js";
import { Icon } from "./icon.js";

/** @typedef {{ kind: "same" | "old" | "new", text: string }} Piece */

const [MOST_WORDS, MOST_PAIRS, MOST, KEPT, PAGE] = [3000, 9_000_000, 400_000, 160, 20];

/** The pieces of both texts in order: the same and the old ones are `a`, the same and the new ones are `b`. @param {string} a @param {string} b @returns {Piece[]} */
export function wordDiff(a, b) {
  const [of_a, of_b] = [words(a), words(b)];
  const least = Math.min(of_a.length, of_b.length);
  let head = 0, tail = 0;
  while (head < least && of_a[head] === of_b[head]) head++;
  while (tail < least - head && of_a.at(-1 - tail) === of_b.at(-1 - tail)) tail++;
  return joined([
    { kind: "same", text: of_a.slice(0, head).join("") },
    ...edits(of_a.slice(head, of_a.length - tail), of_b.slice(head, of_b.length - tail)),
    { kind: "same", text: of_a.slice(of_a.length - tail).join("") },
  ]);
}

/** Words, spaces and signs; lines if there are too many words. @param {string} text @returns {string[]} */
function words(text) {
  const pieces = text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? [];
  return pieces.length > MOST_WORDS ? text.match(/[^\n]*\n|[^\n]+$/g) ?? [] : pieces;
}

/** The longest row of words that both have. Too long texts are not aligned. @param {string[]} a @param {string[]} b @returns {Piece[]} */
function edits(a, b) {
  const wide = b.length + 1;
  if (a.length * wide > MOST_PAIRS) return [{ kind: "old", text: a.join("") }, { kind: "new", text: b.join("") }];
  const longest = new Uint16Array((a.length + 1) * wide);
  for (let x = a.length - 1; x >= 0; x--) {
    for (let y = b.length - 1; y >= 0; y--) {
      const [down, across] = [longest[(x + 1) * wide + y], longest[x * wide + y + 1]];
      longest[x * wide + y] = a[x] === b[y] ? longest[(x + 1) * wide + y + 1] + 1 : Math.max(down, across);
    }
  }
  /** @type {Piece[]} */
  const pieces = [];
  for (let x = 0, y = 0; x < a.length || y < b.length;) {
    const isOld = x < a.length && (y === b.length || longest[(x + 1) * wide + y] >= longest[x * wide + y + 1]);
    if (x < a.length && a[x] === b[y]) pieces.push({ kind: "same", text: a[x++] }), y++;
    else pieces.push(isOld ? { kind: "old", text: a[x++] } : { kind: "new", text: b[y++] });
  }
  return pieces;
}

/** Neighbours of a kind as one piece, the old before the new. @param {Piece[]} pieces */
function joined(pieces) {
  /** @type {Piece[]} */
  const groups = [];
  let old = "", fresh = "";
  const flush = () => {
    if (old) groups.push({ kind: "old", text: old });
    if (fresh) groups.push({ kind: "new", text: fresh });
    old = fresh = "";
  };
  for (const { kind, text } of pieces) {
    // A single space between two changes is part of the change: the pieces stay readable.
    const isGap = kind === "same" && (old || fresh) && /^[ \t]$/.test(text);
    if (kind === "same" && text && !isGap) {
      flush();
      const last = groups.at(-1);
      if (last?.kind === "same") last.text += text;
      else groups.push({ kind, text });
    }
    if (kind === "old" || isGap) old += text;
    if (kind === "new" || isGap) fresh += text;
  }
  flush();
  return groups;
}

/** @param {{ a: unknown, b: unknown }} props null for a value that one side does not have */
export function TextDiff({ a, b }) {
  const [of_a, of_b] = [asText(a), asText(b)];
  const tooLong = of_a.length + of_b.length > MOST;
  const pieces = useMemo(() => tooLong ? [] : wordDiff(of_a, of_b), [of_a, of_b]);
  if (tooLong) return html`<${TooLong} sizes=${[of_a.length, of_b.length]} />`;
  const last = pieces.length - 1;
  return html`
    <div class="text-diff" tabindex="0" role="group" aria-label="Difference">
      ${pieces.map(({ kind, text }, key) => {
        if (kind === "same") return html`<${Same} key=${key} text=${text} first=${key === 0} last=${key === last} />`;
        return h(kind === "old" ? "del" : "ins", { key }, text);
      })}
    </div>
  `;
}

/** @param {{ text: string, first: boolean, last: boolean }} props */
function Same({ text, first, last }) {
  const [open, setOpen] = useState(false);
  const [head, tail] = [first ? 0 : KEPT, last ? 0 : KEPT];
  const hidden = text.length - head - tail;
  if (open || hidden < KEPT) return html`<span>${text}</span>`;
  return html`
    <span>${text.slice(0, head)}</span>
    <button type="button" class="link diff-fold" onClick=${() => setOpen(true)}>
      … ${number(hidden)} characters the same …</button>
    <span>${tail ? text.slice(-tail) : ""}</span>
  `;
}

/** @param {{ sizes: number[] }} props */
const TooLong = ({ sizes }) =>
  html`<p class="soft">Too long to show: ${sizes.map(number).join(" and ")} characters.</p>`;

/** @param {unknown} value */
function asText(value) {
  return typeof value === "string" ? value : JSON.stringify(value ?? undefined, null, 2) ?? "";
}

/** @type {Record<string, [string, string, string]>} */
const STATES = {
  ...{ changed: ["changed", "edit", "warn"], same: ["same", "check", "quiet"] },
  ...{ only_in_a: ["only in A", "left", "live"], only_in_b: ["only in B", "right", "wait"] },
};

/** @param {{ a: string, b: string, step: any, open: boolean, onToggle: () => void }} props */
export function StepDiff({ a, b, step, open, onToggle }) {
  const [word, icon, tone] = STATES[step.state];
  const [from, to] = [step.spent.a, step.spent.b];
  const time = from && to ? to.elapsed - from.elapsed : 0;
  const cost = typeof from?.cost === "number" && typeof to?.cost === "number" ? to.cost - from.cost : 0;
  return html`
    <article class="step-diff" id="diff-${step.path}">
      <h2><button type="button" class="step-toggle" aria-expanded=${open} onClick=${onToggle}>
        <${Icon} name=${open ? "down" : "right"} />
        <span class="number step-label">${step.step}</span>
        <span class="step-title">${step.title}</span>
        <span class="soft kinds">${step.kinds.join(", ")}</span>
        <span class="deltas number soft" title="B against A">
          ${Math.abs(cost) >= 5e-5 && html`<span>${signed(cost, money)}</span>`}
          ${Math.abs(time) >= 0.05 && html`<span>${signed(time, duration)}</span>`}
        </span>
        <span class="status tone-${tone}"><${Icon} name=${icon} />${word}</span>
      </button></h2>
      ${open && html`<${Details} a=${a} b=${b} step=${step} />`}
    </article>
  `;
}

/** @param {number} value @param {(value: number) => string} words */
export function signed(value, words) {
  return `${value < 0 ? "−" : "+"}${words(Math.abs(value))}`;
}

/** @param {{ a: string, b: string, step: any }} props */
function Details({ a, b, step }) {
  const [most, setMost] = useState(PAGE);
  const path = `/runs/${part(a)}/diff/${part(b)}${query({ step: step.path, limit: most })}`;
  const { data, problem, reload } = useResource(path);
  const last = useRef(/** @type {any} */ (null));
  const changes = last.current = data?.steps[0].changes ?? last.current;
  const left = step.changes_total - (changes?.length ?? 0);
  return html`
    <div class="step-details">
      ${problem && html`<${ProblemBox} problem=${problem} retry=${reload} />`}
      ${!changes && !problem && html`<${Placeholder} lines=${2} />`}
      ${changes?.map((/** @type {any} */ change) =>
        html`<${Change} key=${change.what + change.where} change=${change} step=${step} />`
      )}
      ${changes && left > 0 && html`<button type="button" class="button" onClick=${() => setMost(most + PAGE)}>
        ${plural(Math.min(left, PAGE), "more change")} of ${left}</button>`}
      <p class="actions">
        ${[["A", a, step.spent.a], ["B", b, step.spent.b]].filter(([, , spent]) => spent).map(([name, run]) =>
          html`<${Link} class="button plain" to="/runs/${part(run)}/steps/${
            part(step.path)
          }">The step in ${name}</${Link}>`
        )}
      </p>
    </div>
  `;
}

/** @param {{ change: any, step?: any }} props */
export function Change({ change, step }) {
  const { what, where, a, b, sizes } = change;
  const spent = (/** @type {any} */ side) => `${money(side.cost)}, ${side.input_tokens} + ${side.output_tokens} tokens`;
  return html`
    <div class="change">
      <h3>${what} ${where && where !== step?.path && html`<code>${where}</code>`}</h3>
      ${sizes
        ? html`<${TooLong} sizes=${sizes} />`
        : what === "cost"
        ? html`<p>${spent(a)} → ${spent(b)}</p>`
        : html`<${TextDiff} a=${a} b=${b} />`}
    </div>
  `;
}
