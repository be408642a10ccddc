// The receipt of a fork: what it keeps, what it does again, how much at most.

import { html } from "../html.js";
import { money, number, plural } from "../words.js";
import { Command, Fact, Placeholder, ProblemBox } from "./basics.js";

const MOST_NAMED = 8;

/** @param {{ receipt: any, problem: any, stale: boolean }} props */
export function ForkReceipt({ receipt, problem, stale }) {
  if (problem) return html`<${ProblemBox} problem=${problem} />`;
  if (!receipt) return html`<${Placeholder} lines=${4} />`;
  const { kept, again, later, bounds } = receipt;
  const named = again.slice(0, MOST_NAMED).map((/** @type {any} */ step) => step.label);
  return html`
    <section class="card receipt" aria-label="Receipt" aria-busy=${stale}>
      <h2>Steps of the fork</h2>
      <p class="receipt-line" role="status">${receipt.summary[0].toUpperCase()}${receipt.summary.slice(1)}.</p>
      <dl class="receipt-parts">
        <div><dt>Keeps</dt><dd>${plural(kept.effects, "recorded effect")}${kept.effects > 0 &&
          `, ${kept.cost === null ? "price unknown" : money(kept.cost)} and ${
            number(kept.input_tokens + kept.output_tokens)
          } tokens that are not paid again`}</dd></div>
        <div><dt>Again</dt><dd>${again.length
          ? `${plural(again.length, "step")}: ${named.join(", ")}${again.length > MOST_NAMED ? ", …" : ""}`
          : "nothing"}${later > 0 ? `, then up to ${plural(later, "more step")}` : ""}</dd></div>
        <div><dt>Model calls</dt><dd>${range(bounds.model_calls)}</dd></div>
        <div><dt>Tool calls</dt><dd>${range(bounds.tool_calls)}</dd></div>
        <div><dt>Questions</dt><dd>${range(bounds.questions)}</dd></div>
        ${receipt.model && html`<${Fact} name="Model">${receipt.model}</${Fact}>`}
        <div><dt>Budget</dt><dd>${receipt.budget === null ? "none" : money(receipt.budget)}</dd></div>
      </dl>
      <${Command} command=${receipt.command} />
    </section>
  `;
}

/** @param {{ least: number, most: number | null }} count */
function range({ least, most }) {
  if (most === null) return least ? `${number(least)} or more` : "any number";
  return least === most ? number(most) : `${number(least)} to ${number(most)}`;
}
