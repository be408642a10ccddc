// The form before a run goes on: another budget, and at a breakpoint the values to set.

import { part } from "../api.js";
import { html, useState } from "../html.js";
import { useResource } from "../resource.js";
import { money } from "../words.js";
import { Command, ProblemBox } from "./basics.js";
import { fieldSchema, firstText, InputField, readText } from "./field.js";

/** @param {{ head: any, problem: any, resume: (body: any) => void }} props */
export function ResumeForm({ head, problem, resume }) {
  const { data } = useResource(head.settable ? `/runs/${part(head.id)}/values` : null);
  const [texts, setTexts] = useState(/** @type {Record<string, string>} */ ({}));
  const [budget, setBudget] = useState("");
  const values = (data?.values ?? []).filter((/** @type {any} */ one) => !one.name.startsWith("__")).map((
    /** @type {any} */ one,
  ) => {
    const schema = fieldSchema(undefined, one.value);
    const now = firstText(schema);
    const text = Object.hasOwn(texts, one.name) ? texts[one.name] : now;
    return { name: one.name, schema, text, changed: text !== now, ...readText(schema, text) };
  });
  const changed = values.filter((/** @type {any} */ one) => one.changed);
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    const set = Object.fromEntries(changed.map((/** @type {any} */ one) => [one.name, one.value ?? ""]));
    resume({ ...(changed.length ? { set } : {}), ...(budget ? { budget: Number(budget) } : {}) });
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
          ${values.map((/** @type {any} */ one) =>
            html`
              <${InputField} key=${one.name} name=${one.name} schema=${one.schema} required=${false} prefix="set"
                text=${one.text} problem=${one.changed ? one.problem : undefined}
                onText=${(/** @type {string} */ text) => setTexts((now) => ({ ...now, [one.name]: text }))} />
            `
          )}
          ${data && !values.length && html`<p class="soft">No value is set yet.</p>`}
        </fieldset>
      `}
      <${Command} command=${command} />
      ${problem && html`<${ProblemBox} problem=${problem} />`}
      <div class="actions"><button type="submit" class="button primary"
        disabled=${changed.some((/** @type {any} */ one) => one.problem)}>Resume</button></div>
    </form>
  `;
}
