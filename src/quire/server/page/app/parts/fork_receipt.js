// The receipt of a fork: what it keeps, what it does again, how much at most. And what comes after the click.

import { part } from "../api.js";
import { html } from "../html.js";
import { useResource } from "../resource.js";
import { Link } from "../router.js";
import { money, number, plural } from "../words.js";
import { Command, Placeholder, ProblemBox, Status } from "./basics.js";
import { Icon } from "./icon.js";

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
        ${receipt.model && html`
          <div>
            <dt>Model</dt>
            <dd>${receipt.model}</dd>
          </div>
        `}
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

/** @param {{ origin: string, made: string }} props */
export function ForkResult({ origin, made }) {
  const mine = (/** @type {import("../feed.js").Frame} */ frame) =>
    frame.event === "runs" && frame.data.rows.some((/** @type {any} */ row) => row.id === made);
  const { data: head, problem } = useResource(`/runs/${part(made)}`, mine);
  return html`
    <section class="card fork-made" aria-label="The fork">
      <p><${Icon} name="check" /><strong>The fork is ${head
        ? html`<${Status} status=${head.status} />`
        : "started"}</strong></p>
      <p class="soft">Run <code>${made}</code>, from step ${head?.origin?.step} of <code>${origin}</code>.</p>
      ${problem && html`<${ProblemBox} problem=${problem} />`}
      <div class="actions">
        <${Link} class="button primary" to="/runs/${part(made)}">Open the fork</${Link}>
        <${Link} class="button" to="/compare/${part(origin)}/${part(
          made,
        )}"><${Icon} name="compare" />Compare with its origin</${Link}>
        <${Link} class="button plain" to="/runs/${part(origin)}/fork">Fork once more</${Link}>
      </div>
    </section>
  `;
}
