// One step of two runs: folded, with what differs in a few words; opened, with the differences word by word.

import { ApiProblem, get, part, query } from "../api.js";
import { html, useEffect, useState } from "../html.js";
import { Link } from "../router.js";
import { duration, money, number, plural } from "../words.js";
import { Placeholder, ProblemBox } from "./basics.js";
import { Icon } from "./icon.js";
import { TextDiff } from "./text_diff.js";

const PAGE = 20;
/** @type {Record<string, { word: string, icon: string, tone: string }>} */
const STATES = {
  changed: { word: "changed", icon: "edit", tone: "warn" },
  only_in_a: { word: "only in A", icon: "left", tone: "live" },
  only_in_b: { word: "only in B", icon: "right", tone: "wait" },
  same: { word: "same", icon: "check", tone: "quiet" },
};

/** @param {{ a: string, b: string, step: any, open: boolean, onToggle: () => void }} props */
export function StepDiff({ a, b, step, open, onToggle }) {
  const { word, icon, tone } = STATES[step.state];
  const id = `diff-${step.path}`;
  return html`
    <article class="step-diff" id=${id}>
      <h2><button type="button" class="step-toggle" aria-expanded=${open} onClick=${onToggle}>
        <${Icon} name=${open ? "down" : "right"} />
        <span class="number step-label">${step.step}</span>
        <span class="step-title">${step.title}</span>
        <span class="soft kinds">${step.kinds.join(", ")}</span>
        <${Deltas} spent=${step.spent} />
        <span class="status tone-${tone}"><${Icon} name=${icon} />${word}</span>
      </button></h2>
      ${open && html`<${Details} a=${a} b=${b} step=${step} />`}
    </article>
  `;
}

/** What the second run took more or less than the first. @param {{ spent: any }} props */
function Deltas({ spent: { a, b } }) {
  if (!a || !b) return html`<span class="deltas"></span>`;
  const time = b.elapsed - a.elapsed;
  const cost = a.cost === null || b.cost === null ? 0 : b.cost - a.cost;
  return html`
    <span class="deltas number soft">
      ${Math.abs(cost) >= 5e-5 &&
        html`<span title="Cost: ${money(a.cost)} in A, ${money(b.cost)} in B">${signed(cost, money)}</span>`}
      ${Math.abs(time) >= 0.05 &&
        html`<span title="Time: ${duration(a.elapsed)} in A, ${duration(b.elapsed)} in B">${
          signed(time, duration)
        }</span>`}
    </span>
  `;
}

/** @param {number} value @param {(value: number) => string} words */
export function signed(value, words) {
  return `${value < 0 ? "−" : "+"}${words(Math.abs(value))}`;
}

/** @param {{ a: string, b: string, step: any }} props */
function Details({ a, b, step }) {
  const [changes, setChanges] = useState(/** @type {any[] | null} */ (null));
  const [problem, setProblem] = useState(/** @type {any} */ (null));
  const load = async () => {
    try {
      const known = changes ?? [];
      const path = `/runs/${part(a)}/diff/${part(b)}${
        query({ step: step.path, after: known.length || undefined, limit: PAGE })
      }`;
      const { steps } = await get(path);
      setChanges([...known, ...steps[0].changes]);
    } catch (error) {
      if (!(error instanceof ApiProblem)) throw error;
      setProblem(error.problem);
    }
  };
  useEffect(() => {
    load();
  }, [a, b, step.path]);
  const left = step.changes_total - (changes?.length ?? 0);
  return html`
    <div class="step-details">
      ${problem && html`<${ProblemBox} problem=${problem} retry=${load} />`}
      ${!changes && !problem && html`<${Placeholder} lines=${2} />`}
      ${changes?.map((change) => html`<${Change} key=${change.what + change.where} change=${change} step=${step} />`)}
      ${changes && left > 0 && html`
        <button type="button" class="button" onClick=${load}>${plural(
          Math.min(left, PAGE),
          "more change",
        )} of ${left}</button>
      `}
      <p class="small">
        ${step.spent.a && html`<${Link} to="/runs/${part(a)}/steps/${part(step.path)}">The step in A</${Link}>`}
        ${step.spent.a && step.spent.b && " · "}
        ${step.spent.b && html`<${Link} to="/runs/${part(b)}/steps/${part(step.path)}">The step in B</${Link}>`}
      </p>
    </div>
  `;
}

/** @param {{ change: any, step?: any }} props */
export function Change({ change, step }) {
  const { what, where, a, b, sizes } = change;
  return html`
    <div class="change">
      <h3>${what} ${where && where !== step?.path && html`<code>${where}</code>`}</h3>
      ${sizes
        ? html`<p class="soft">Too long to show here: ${number(sizes[0])} and ${number(sizes[1])} characters.</p>`
        : what === "cost"
        ? html`<p>${spent(a)} → ${spent(b)}</p>`
        : html`<${TextDiff} a=${a} b=${b} />`}
    </div>
  `;
}

/** @param {any} value */
function spent(value) {
  return `${money(value.cost)}, ${value.input_tokens} + ${value.output_tokens} tokens`;
}
