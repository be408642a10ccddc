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
  const values = (data?.values ?? []).filter((/** @type {any} */ item) => !item.name.startsWith("__")).map((
    /** @type {any} */ item,
  ) => {
    const schema = fieldSchema(undefined, item.value);
    const now = firstText(schema);
    const text = Object.hasOwn(texts, item.name) ? texts[item.name] : now;
    return { name: item.name, schema, text, changed: text !== now, ...readText(schema, text) };
  });
  const changed = values.filter((/** @type {any} */ field) => field.changed);
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    const set = Object.fromEntries(changed.map((/** @type {any} */ field) => [field.name, field.value ?? ""]));
    resume({ ...(changed.length ? { set } : {}), ...(budget ? { budget: Number(budget) } : {}) });
  };
  const command = head.actions.find((/** @type {any} */ action) => action.name === "resume")?.command ?? "";
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
          ${values.map((/** @type {any} */ field) =>
            html`
              <${InputField} key=${field.name} name=${field.name} schema=${field.schema} required=${false} prefix="set"
                text=${field.text} problem=${field.changed ? field.problem : undefined}
                onText=${(/** @type {string} */ text) => setTexts((now) => ({ ...now, [field.name]: text }))} />
            `
          )}
          ${data && !values.length && html`<p class="soft">No value is set yet.</p>`}
        </fieldset>
      `}
      <${Command} command=${command} />
      ${problem && html`<${ProblemBox} problem=${problem} />`}
      <div class="actions"><button type="submit" class="button primary"
        disabled=${changed.some((/** @type {any} */ field) => field.problem)}>Resume</button></div>
    </form>
  `;
}
