// The lists of Now below the questions: stopped runs with what helps, running ones, finished ones, letters, money.

import { ApiProblem, part, post } from "../api.js";
import { html, useState } from "../html.js";
import { Link } from "../router.js";
import { cut, money, plural } from "../words.js";
import { Age, Command, ProblemBox, Status } from "./basics.js";

/** @param {{ rows: any[], more: number }} props */
export function Stopped({ rows, more }) {
  if (!rows.length) return null;
  return html`
    <section aria-labelledby="stopped">
      <h2 id="stopped">Stopped, and can continue</h2>
      <ul class="rows">${rows.map((row) => html`<${StoppedRun} key=${row.id} row=${row} />`)}</ul>
      ${more > 0 && html`
        <p class="more-line">
          <${Link} to="/runs">${plural(more, "more run")}</${Link}></p>
      `}
    </section>
  `;
}

/** @param {{ row: any }} props */
function StoppedRun({ row }) {
  const [state, setState] = useState({ sending: false, problem: /** @type {any} */ (null) });
  const [amount, setAmount] = useState("");
  const { action } = row;
  /** @param {any} body */
  const resume = async (body) => {
    setState({ sending: true, problem: null });
    try {
      await post(`/runs/${part(row.id)}/resume`, body);
      setState({ sending: true, problem: null });
    } catch (error) {
      if (!(error instanceof ApiProblem)) throw error;
      setState({ sending: false, problem: error.problem });
    }
  };
  /** @param {Event} event */
  const withMore = (event) => {
    event.preventDefault();
    const much = Number(amount);
    return resume(action.limit === "budget" ? { budget: much } : { limits: { [action.limit]: much } });
  };
  return html`
    <li class="stopped">
      <div class="stopped-head">
        <${Status} status=${row.status} />
        <${Link} to="/runs/${row.id}" class="row-title">${row.title}</${Link}>
        <span class="soft number">${price(row)}</span>
        <span class="soft number"><${Age} at=${row.updated_at} /></span>
      </div>
      ${action.reason && html`<p class="soft pre reason">${cut(action.reason, 300)}</p>`}
      <div class="below-card">
        ${action.kind === "resume" && html`
          <button type="button" class="button" disabled=${state.sending} onClick=${() => resume({})}>
            ${action.label}</button>
        `}
        ${action.kind === "look" && html`<${Link} class="button" to="/runs/${row.id}">${action.label}</${Link}>`}
        ${action.kind === "more" && html`
          <form class="amount" onSubmit=${withMore}>
            <input inputmode="decimal" aria-label="New ${action.limit} of ${row.title}"
              placeholder=${action.limit === "budget" ? "dollars" : action.limit} value=${amount}
              onInput=${(/** @type {any} */ event) => setAmount(event.target.value)} />
            <button type="submit" class="button" disabled=${state.sending || !(Number(amount) > 0)}>
              ${action.label}</button>
          </form>
        `}
        <${Command} command=${action.command} />
      </div>
      ${state.problem && html`<${ProblemBox} problem=${state.problem} />`}
    </li>
  `;
}

/** What a run has cost, and its budget. @param {any} row */
function price(row) {
  return typeof row.budget === "number" ? `${money(row.cost)} of ${money(row.budget)}` : money(row.cost);
}

/** @param {{ rows: any[] }} props */
export function Running({ rows }) {
  if (!rows.length) return null;
  return html`
    <section aria-labelledby="running">
      <h2 id="running">Running</h2>
      <ul class="rows">
        ${rows.map((row) =>
          html`
            <li key=${row.id}>
              <${Link} to="/runs/${row.id}" class="row">
                <${Status} status=${row.status} />
                <span class="row-title">${row.title}</span>
                <span class="soft number">${place(row)}</span>
                ${row.items && html`
                  <span class="soft number">
                    ${row.items.done + row.items.failed} / ${row.items.total}${row.items.failed > 0 &&
                      html`, <span class="failed-count">${row.items.failed} failed</span>`}
                  </span>
                `}
                ${row.of > 1 &&
                  html`<progress max=${row.of} value=${Math.max(0, row.at - 1)} aria-label="Steps"></progress>`}
                <span class="soft number">${price(row)}</span>
                <span class="soft number"><${Age} at=${row.created_at} /></span>
              </${Link}>
            </li>
          `
        )}
      </ul>
    </section>
  `;
}

/** @param {any} row */
function place(row) {
  if (row.at && row.of) return `step ${row.at} of ${row.of}`;
  return row.step ? `step ${row.step}` : "";
}

/** @param {{ rows: any[] }} props */
export function Finished({ rows }) {
  if (!rows.length) return null;
  return html`
    <section aria-labelledby="finished">
      <h2 id="finished">Lately finished</h2>
      <ul class="rows">
        ${rows.map((row) =>
          html`
            <li key=${row.id}>
              <${Link} to="/runs/${row.id}" class="row">
                <${Status} status=${row.status} />
                <span class="row-title">${row.title}</span>
                <span class="soft number">${money(row.cost)}</span>
                <span class="soft number"><${Age} at=${row.updated_at} /></span>
                </${Link}>
                </li>
          `
        )}
      </ul>
    </section>
  `;
}

/** @param {{ letters: any[] }} props */
export function Letters({ letters }) {
  if (!letters.length) return null;
  return html`
    <section aria-labelledby="letters">
      <h2 id="letters">Letters</h2>
      <ul class="rows">
        ${letters.map((one) =>
          html`
            <li key=${one.run} class="letter">
              <p>
                <${Link} to="/runs/${one.run}">${one.run}</${Link}>
                <span class="soft"> for ${one.recipient}, <${Age} at=${one.at} /></span></p>
              <p class="pre">${cut(one.text, 400)}</p>
            </li>
          `
        )}
      </ul>
    </section>
  `;
}

/** @param {{ spent: any }} props */
export function Spent({ spent }) {
  if (!spent || !spent.week.runs) return null;
  return html`
    <section aria-labelledby="spent">
      <h2 id="spent">Spent</h2>
      <dl class="spent">
        <${Amount} label="Runs started today" amount=${spent.today} />
        <${Amount} label="Runs of the last 7 days" amount=${spent.week} />
      </dl>
    </section>
  `;
}

/** @param {{ label: string, amount: any }} props */
function Amount({ label, amount }) {
  return html`
    <div>
      <dt class="soft">${label}</dt>
      <dd>
        <b class="number">${money(amount.cost)}</b>
        <span class="soft"> for ${plural(amount.runs, "run")}${amount.unknown > 0 &&
          `; the price of ${amount.unknown === amount.runs ? "all" : amount.unknown} is not known`}</span>
      </dd>
    </div>
  `;
}
