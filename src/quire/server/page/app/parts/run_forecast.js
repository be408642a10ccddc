// Beside the form of a run: what the run does at most, with which model, for how much, and what is not granted yet.

import { html } from "../html.js";
import { money, number } from "../words.js";
import { Command, Placeholder, ProblemBox } from "./basics.js";
import { Icon } from "./icon.js";

/** @param {{ forecast: { data: any, problem: any, busy: boolean }, budget: string }} props */
export function Forecast({ forecast, budget }) {
  const { data, problem, busy } = forecast;
  if (problem && !data) return html`<${ProblemBox} problem=${problem} />`;
  if (!data) {
    return html`
      <div class="card forecast">
        <${Placeholder} lines=${2} />
      </div>
    `;
  }
  const denied = data.envelope.capabilities.filter((/** @type {any} */ one) => !one.granted_by && one.command);
  const limits = Object.entries(data.limits).filter(([name, value]) => typeof value === "number" && name !== "depth");
  return html`
    <div class="card forecast ${busy ? "busy" : ""}">
      <h2>Before it starts</h2>
      <p class="forecast-line" role="status">This run ${data.bounds.sentence}${priceWords(data, budget)}.</p>
      <dl class="about-list">
        ${data.model && html`
          <div>
            <dt>Model</dt>
            <dd><code>${data.model.name}</code> <span class="soft small">${data.model.why.replace(
              "--model",
              "named here",
            )}</span></dd>
          </div>
        `}
        ${data.model && html`
          <div>
            <dt>Price</dt>
            <dd>${data.price.most === null
              ? html`not known <span class="soft small">${data.price.why}</span>`
              : html`at most ${money(data.price.most)} <span class="soft small">${data.price.why}</span>`}</dd>
          </div>
        `}
        ${limits.length > 0 && html`
          <div>
            <dt>Limits</dt>
            <dd>${limits.map(([name, value]) => `${name.replaceAll("_", " ")} ${number(/** @type {number} */ (value))}`)
              .join(", ")}</dd>
          </div>
        `}
      </dl>
      ${problem && html`<p class="input-problem"><${Icon} name="cross" />${problem.detail}</p>`}
      ${data.problems.map((/** @type {string} */ one) =>
        html`<p class="input-problem pre"><${Icon} name="cross" />${one}</p>`
      )}
      ${data.denied.map((/** @type {string} */ one) =>
        html`<p class="input-problem pre"><${Icon} name="cross" />${one}</p>`
      )}
      ${data.warnings.map((/** @type {string} */ one) =>
        html`<p class="hint-row"><${Icon} name="warning" />${one}</p>`
      )}
      ${denied.length > 0 && html`
        <p class="soft small">Not granted yet; the page grants nothing. In a terminal:</p>
        ${denied.map((/** @type {any} */ one) =>
          html`
            <p key=${one.capability}>
              <${Command} command=${one.command} />
            </p>
          `
        )}
      `}
      <p class="soft small">The same in a terminal:</p>
      <p><${Command} command=${data.command} /></p>
    </div>
  `;
}

/** @param {any} data @param {string} budget */
function priceWords(data, budget) {
  if (!data.model) return "";
  const most = data.price.most;
  const limit = budget.trim() && Number(budget) >= 0 ? Number(budget) : null;
  if (most === null) return limit === null ? "; its price is not known" : `, and stops at ${money(limit)}`;
  if (most === 0) return ", and costs nothing with this model";
  return limit !== null && limit < most ? `, and stops at ${money(limit)}` : `, ≤ ${money(most)} with this model`;
}
