// The form before a run goes on: what it costs, another budget, and at a breakpoint the values to set, typed as JSON.

import { html, useState } from "../html.js";
import { Command, ProblemBox } from "./basics.js";
import { useResource } from "../resource.js";
import { part } from "../api.js";
import { money } from "../words.js";

/** @typedef {{ name: string, value: unknown, kind?: string, source?: string }} Named */

/** @param {{ head: any, problem: any, resume: (body: any) => void }} props */
export function ResumeForm({ head, problem, resume }) {
  const values = useResource(head.settable ? `/runs/${part(head.id)}/values` : null);
  const [sets, setSets] = useState(/** @type {Record<string, string>} */ ({}));
  const [budget, setBudget] = useState("");
  const known = /** @type {Named[]} */ (values.data?.values ?? []);
  const wrong = Object.entries(sets).filter(([name, text]) => !fits(text, known.find((one) => one.name === name)));
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    const set = Object.fromEntries(
      Object.entries(sets).map(([name, text]) => [name, read(text, known.find((one) => one.name === name))]),
    );
    resume({ ...(Object.keys(set).length ? { set } : {}), ...(budget ? { budget: Number(budget) } : {}) });
  };
  const command = head.actions.find((/** @type {any} */ one) => one.name === "resume")?.command ?? "";
  return html`
    <form class="resume" onSubmit=${submit}>
      <p>Continues where it stopped. Steps that are done are not done again; the steps to come may cost money.</p>
      <label for="resume-budget">Budget in dollars <span class="soft">(${head.budget
        ? `now ${money(head.budget)}`
        : "none is set"})</span></label>
      <input id="resume-budget" inputmode="decimal" pattern="[0-9]*[.]?[0-9]*" value=${budget} placeholder="as it is"
        onInput=${(/** @type {any} */ event) => setBudget(event.target.value)} />
      ${head.settable && html`
        <fieldset>
          <legend>Values to set before it continues</legend>
          ${known.length
            ? known.map((one) =>
              html`
                <${ValueField} key=${one.name} named=${one} text=${sets[one.name]} change=${(
                  /** @type {string | null} */ text,
                ) =>
                  setSets((now) => {
                    const next = { ...now };
                    if (text === null) delete next[one.name];
                    else next[one.name] = text;
                    return next;
                  })} />
              `
            )
            : html`<p class="soft">No value is set yet.</p>`}
        </fieldset>
      `}
      <${Command} command=${command} />
      ${problem && html`<${ProblemBox} problem=${problem} />`}
      <div class="actions"><button type="submit" class="button primary" disabled=${wrong.length >
        0}>Resume</button></div>
    </form>
  `;
}

/** @param {{ named: Named, text: string | undefined, change: (text: string | null) => void }} props */
function ValueField({ named, text, change }) {
  const now = written(named.value);
  const id = `set-${named.name}`;
  const bad = text !== undefined && !fits(text, named);
  return html`
    <div class="value-field">
      <label for=${id}><code>${named.name}</code> <span class="soft">${typeof named.value === "string"
        ? "text"
        : "JSON"}${text !== undefined && text !== now ? ", changed" : ""}</span></label>
      <textarea id=${id} rows=${Math.min(6, now.split("\n").length)} value=${text ?? now} aria-invalid=${bad}
        onInput=${(/** @type {any} */ event) =>
          change(event.target.value === now ? null : event.target.value)}></textarea>
      ${bad && html`<p class="field-problem">This is not JSON.</p>`}
    </div>
  `;
}

/** @param {unknown} value */
function written(value) {
  return typeof value === "string" ? value : JSON.stringify(value ?? null, null, 2);
}

/** @param {string} text @param {Named | undefined} named */
function fits(text, named) {
  if (!named || typeof named.value === "string") return true;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** @param {string} text @param {Named | undefined} named */
function read(text, named) {
  return !named || typeof named.value === "string" ? text : JSON.parse(text);
}
