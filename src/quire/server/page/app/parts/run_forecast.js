// Beside the form of a run: what the run does at most, with which model, for how much, and what is not granted yet.

import { html } from "../html.js";
import { money, number, plural } from "../words.js";
import { Command, Fact, Placeholder, ProblemBox } from "./basics.js";
import { Icon } from "./icon.js";

const MOST_EFFECTS = 3;

/** @param {{ forecast: { data: any, problem: any, busy: boolean } }} props */
export function Forecast({ forecast }) {
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
  const unasked = (data.gates ?? []).filter((/** @type {any} */ one) =>
    one.verdict === "open" || one.verdict === "ignored"
  );
  const limits = Object.entries(data.limits).filter(([name, value]) => typeof value === "number" && name !== "depth");
  const why = data.model?.why.replace("--model", "named here");
  const sizes = Object.entries(data.proof?.sizes ?? {}).map(([name, count]) => sizeWords(name, count)).join(", ");
  const most = limits.map(([name, value]) => `${name.replaceAll("_", " ")} ${number(/** @type {number} */ (value))}`);
  /** @type {any[]} */
  const rows = [
    data.model && ["Model", html`<code>${data.model.name}</code> <span class="soft small">${why}</span>`],
    data.model && ["Price", html`<${Price} data=${data} />`],
    sizes && ["Sizes", sizes],
    limits.length > 0 && ["Limits", most.join(", ")],
  ];
  return html`
    <div class="card forecast ${busy ? "busy" : ""}">
      <h3>Before it starts</h3>
      <dl class="about-list">
        ${rows.filter(Boolean).map(([name, words]) => html`<${Fact} key=${name} name=${name}>${words}</${Fact}>`)}
      </dl>
      ${problem && html`<p class="input-problem"><${Icon} name="cross" />${problem.detail}</p>`}
      ${[...data.problems, ...data.denied].map((message) =>
        html`<p class="input-problem pre"><${Icon} name="cross" />${message}</p>`
      )}
      ${data.warnings.map((/** @type {string} */ one) =>
        html`<p class="hint-row"><${Icon} name="warning" />${one}</p>`
      )}
      ${unasked.length > 0 && html`
        <p class="hint-row"><${Icon} name="warning" />No person is asked before ${unasked.slice(0, MOST_EFFECTS).map((
          /** @type {any} */ one,
        ) => `step ${one.step} (${one.tool})`).join(", ")}${unasked.length > MOST_EFFECTS
          ? ` and ${number(unasked.length - MOST_EFFECTS)} more`
          : ""}.</p>
      `}
      ${(data.lock?.standing === "wider" || data.lock?.standing === "unreadable") && html`
        <p class="hint-row"><${Icon} name="warning" />${data.lock.words}</p>
      `}
      ${data.proof && Object.keys(data.proof.formulas).length > 0 && html`<${Formulas} proof=${data.proof} />`}
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

/** What the run does at most, in one line. @param {{ forecast: { data: any }, budget: string }} props */
export function ForecastLine({ forecast: { data }, budget }) {
  return html`
    <p class="forecast-line" role="status">${data &&
      (data.line ? `This run: ${data.line}${budgetWords(data, budget)}.` : `This run ${data.bounds.sentence}.`)}</p>
  `;
}

/** The proven price of this run; where it is not known, why. @param {{ data: any }} props */
function Price({ data }) {
  const proven = data.proof?.numbers.money;
  if (proven && !proven.unpriced && proven.most !== null) {
    return html`${proven.most === 0 ? "free" : proven.words} <span class="soft small">${
      proven.notes.join("; ")
    }</span>`;
  }
  const why = proven?.unpriced?.join("; ") ?? data.price.why;
  return data.price.most === null
    ? html`not known <span class="soft small">${why}</span>`
    : html`at most ${money(data.price.most)} <span class="soft small">${data.price.why}</span>`;
}

/** @param {any} data @param {string} budget */
function budgetWords(data, budget) {
  const limit = budget.trim() && Number(budget) >= 0 ? Number(budget) : null;
  const most = data.proof?.numbers.money?.most ?? null;
  return data.model && limit !== null && (most === null || limit < most) ? `. It stops at ${money(limit)}` : "";
}

/** A size as an author knows it: `readers 20 items`. @param {string} name @param {unknown} count */
function sizeWords(name, count) {
  const unit = name.startsWith("|") ? "item" : "byte";
  return `${name.replaceAll(/[|‖]/g, "")} ${plural(/** @type {number} */ (count), unit)}`;
}

/** @param {{ proof: any }} props */
function Formulas({ proof }) {
  return html`
    <details class="opens">
      <summary>Formulas</summary>
      <dl class="about-list small">
        ${Object.entries(proof.formulas).map(([name, formula]) =>
          html`<${Fact} key=${name} name=${
            proof.numbers[name]?.title ?? name
          }><span class="formula">${formula}</span></${Fact}>`
        )}
      </dl>
    </details>
  `;
}
