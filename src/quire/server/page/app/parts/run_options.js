// Options of a new run: model, budget, limits, breakpoints, answers beforehand, replies to reuse, and who attends.

import { html } from "../html.js";
import { useResource } from "../resource.js";
import { cut } from "../words.js";

const MOST_TICKS = 30;
const LIMITS = ["turns", "tokens", "spend", "spawns", "depth", "duration_seconds"];

/** @typedef {{ model: string, budget: string, limits: Record<string, string>, breakpoints: string[], answers: Record<string, string>, unattended: boolean, force: boolean, reuses: boolean, goesOn: boolean }} Options */

/** @type {["unattended" | "force" | "reuses" | "goesOn", string][]} */
const TICKS = [
  ["unattended", "Unattended: ask no questions, take the defaults"],
  ["force", "Start although the check finds near misses"],
  ["reuses", "Reuse the replies of the last run where the same is asked"],
  ["goesOn", "Continues after the server ends, in a process of its own"],
];

/** @returns {Options} */
export function emptyOptions() {
  const ticks = { unattended: false, force: false, reuses: false, goesOn: false };
  return { model: "", budget: "", limits: {}, breakpoints: [], answers: {}, ...ticks };
}

/**
 * The options as the API takes them. What does not fit is passed on: the server says what is wrong with it.
 *
 * @param {Options} options
 * @param {string} format
 */
export function optionsBody(options, format) {
  const given = (/** @type {Record<string, string>} */ all) =>
    Object.fromEntries(Object.entries(all).filter(([, value]) => value.trim()));
  const budget = Number(options.budget);
  return {
    ...(options.model.trim() ? { model: options.model.trim() } : {}),
    ...(options.budget.trim() && budget >= 0 ? { budget } : {}),
    ...(format === "directive" ? { limits: given(options.limits) } : {}),
    ...(options.breakpoints.length ? { breakpoints: options.breakpoints } : {}),
    answers: given(options.answers),
    unattended: options.unattended,
    ...(options.force ? { force: true } : {}),
    ...(options.reuses ? { reuse: "last" } : {}),
  };
}

/** @param {{ data: any, options: Options, limits?: any, onChange: (changes: Partial<Options>) => void }} props */
export function RunOptions({ data, options, limits, onChange }) {
  const models = useResource("/models");
  const stops = data.steps.filter((/** @type {any} */ one) => one.stops);
  const asking = data.steps.filter((/** @type {any} */ one) => one.question);
  const wrongBudget = options.budget.trim() && !(Number(options.budget) >= 0);
  return html`
    <section aria-labelledby="options-title" class="run-options">
      <h2 id="options-title">Options</h2>
      <div class="option-pair">
        <div class="field">
          <label for="model">Model</label>
          <input id="model" type="text" list="models" value=${options
            .model} placeholder=${models.data?.default?.model ?? "the one of the workspace"}
            autocomplete="off" onInput=${(/** @type {any} */ event) => onChange({ model: event.target.value })} />
          <datalist id="models">${namesOf(models.data).map((name) => html`<option value=${name}></option>`)}</datalist>
        </div>
        <div class="field ${wrongBudget ? "wrong" : ""}">
          <label for="budget">Budget in dollars</label>
          <input id="budget" type="text" inputmode="decimal" class="short" value=${options.budget} placeholder="none"
            onInput=${(/** @type {any} */ event) => onChange({ budget: event.target.value })} />
          ${wrongBudget && html`<p class="input-problem">a budget is an amount in dollars, 0 or more</p>`}
        </div>
      </div>
      ${data.format === "directive" && html`<${Limits} options=${options} limits=${limits} onChange=${onChange} />`}
      ${stops.length > 0 && html`<${Breakpoints} stops=${stops} chosen=${options.breakpoints} onChange=${onChange} />`}
      ${asking.length > 0 && html`<${Answers} asking=${asking} answers=${options.answers} onChange=${onChange} />`}
      ${TICKS.map(([name, words]) =>
        html`
          <label class="check" key=${name}><input type="checkbox" checked=${options[name]}
            onChange=${(/** @type {any} */ event) => onChange({ [name]: event.target.checked })} />
            <span>${words}</span></label>
        `
      )}
    </section>
  `;
}

/** The models that can be named: tiers, and those on this machine. @param {any} data @returns {string[]} */
function namesOf(data) {
  if (!data) return [];
  const local = data.local.map((/** @type {any} */ one) => one.model);
  return [...new Set([data.default?.model, ...Object.keys(data.tiers), ...local])].filter(Boolean);
}

/** @param {{ options: Options, limits?: any, onChange: (changes: Partial<Options>) => void }} props */
function Limits({ options, limits, onChange }) {
  return html`
    <details class="opens" open=${Object.values(options.limits).some(Boolean)}>
      <summary>Limits</summary>
      <div class="limits">
        ${LIMITS.map((name) =>
          html`
            <div class="field">
              <label for="limit-${name}">${name.replaceAll("_", " ")}</label>
              <input id="limit-${name}" type="text" class="short" value=${options.limits[name] ?? ""}
                placeholder=${limits?.[name] ?? "none"}
                onInput=${(/** @type {any} */ event) =>
                  onChange({ limits: { ...options.limits, [name]: event.target.value } })} />
            </div>
          `
        )}
      </div>
    </details>
  `;
}

/** @param {{ stops: any[], chosen: string[], onChange: (changes: Partial<Options>) => void }} props */
function Breakpoints({ stops, chosen, onChange }) {
  /** @param {string} label @param {boolean} on */
  const set = (label, on) => onChange({ breakpoints: on ? [...chosen, label] : chosen.filter((one) => one !== label) });
  return html`
    <details class="opens" open=${chosen.length > 0}>
      <summary>Breakpoints${chosen.length > 0 && ` (${chosen.join(", ")})`}</summary>
      <p class="soft small">The run pauses after these steps, and values can be changed.</p>
      ${stops.length <= MOST_TICKS
        ? stops.map((step) =>
          html`
            <label class="check" key=${step.path}><input type="checkbox" checked=${chosen.includes(step.label)}
              onChange=${(/** @type {any} */ event) => set(step.label, event.target.checked)} />
              <span><span class="step-tag">${step.label}</span> ${cut(step.title, 100)}</span></label>
          `
        )
        : html`
          <label for="breaks" class="small">Labels of steps, with commas between them</label>
          <input id="breaks" type="text" value=${chosen.join(", ")} onChange=${(/** @type {any} */ event) =>
            onChange({
              breakpoints: event.target.value.split(",").map((/** @type {string} */ one) => one.trim()).filter(Boolean),
            })} />
        `}
    </details>
  `;
}

/** @param {{ asking: any[], answers: Record<string, string>, onChange: (changes: Partial<Options>) => void }} props */
function Answers({ asking, answers, onChange }) {
  const given = Object.values(answers).filter(Boolean).length;
  return html`
    <details class="opens" open=${given > 0}>
      <summary>Answers beforehand${given > 0 && ` (${given})`}</summary>
      ${asking.slice(0, MOST_TICKS).map((step) => {
        const { prompt, kind, options } = step.question;
        const id = `answer-${step.path}`;
        const choices = kind === "confirm" ? ["yes", "no"] : options;
        const value = answers[step.label] ?? "";
        const set = (/** @type {any} */ event) =>
          onChange({ answers: { ...answers, [step.label]: event.target.value } });
        return html`
          <div class="field" key=${step.path}>
            <label for=${id}><span class="step-tag">${step.label}</span> ${cut(prompt || step.title, 160)}</label>
            ${choices.length
              ? html`
                <select id=${id} value=${value} onChange=${set}>
                  <option value="">ask me</option>
                  ${choices.map((/** @type {string} */ one) =>
                    html`<option value=${one} selected=${one === value}>${one}</option>`
                  )}
                </select>
              `
              : html`<input id=${id} type="text" value=${value} placeholder="ask me" onInput=${set} />`}
          </div>
        `;
      })}
    </details>
  `;
}
