// Prompts: choose a step, give inputs, and see exactly what a model would be told. Nothing is sent to a model.

import { part } from "../api.js";
import { html, useState } from "../html.js";
import { useResource } from "../resource.js";
import { place, setQuery } from "../router.js";
import { number } from "../words.js";
import { Empty, Placeholder, ProblemBox } from "./basics.js";
import { Dialog } from "./dialog.js";
import { firstText, InputField, own, readText, remembered, rememberForm } from "./field.js";
import { Icon } from "./icon.js";
import { usePosted } from "./run_drawer.js";

const PAUSE = 200;

/** @param {{ id: string }} props the step is in the address: `prompt` */
export function PromptDialog({ id }) {
  const { data, problem } = useResource(`/documents/${part(id)}?fields=steps,inputs`);
  return html`
    <${Dialog} title="The prompts of a run" onClose=${() => setQuery({ prompt: undefined })} wide>
      ${problem && html`<${ProblemBox} problem=${problem} />`}
      ${data?.steps && html`<${Prompts} id=${id} data=${data} />`}
    </${Dialog}>
  `;
}

/** @param {{ id: string, data: any }} props */
function Prompts({ id, data }) {
  const asking = data.steps.filter((/** @type {any} */ one) => one.asks_model);
  const properties = data.inputs.properties;
  const names = Object.keys(properties);
  const [texts, setTexts] = useState(() => ({
    ...Object.fromEntries(names.map((name) => [name, firstText(properties[name])])),
    ...remembered(id)?.inputs,
  }));
  const wanted = place.value.query.get("prompt") ?? "";
  const step = asking.find((/** @type {any} */ row) => row.path === wanted || row.label === wanted) ?? asking[0];
  const values = names.map((name) => [name, readText(properties[name], texts[name] ?? "").value]);
  const inputs = Object.fromEntries(values.filter(([, value]) => value !== undefined));
  const shown = usePosted(`/documents/${part(id)}/preview`, step && { step: step.path, inputs }, PAUSE);
  if (!step) return html`<${Empty} title="No step of this document asks a model." icon="question" />`;
  /** @param {string} name @param {string} text */
  const change = (name, text) => {
    const next = { ...texts, [name]: text };
    setTexts(next);
    rememberForm(id, { ...remembered(id), inputs: next });
  };
  return html`
    <div class="form-columns">
      <form class="input-form" aria-label="Step and inputs" onSubmit=${(/** @type {Event} */ event) =>
        event.preventDefault()}>
        <div class="field">
          <label for="step">Step</label>
          <select id="step" value=${step.path} onChange=${(/** @type {any} */ event) =>
            setQuery({ prompt: event.target.value })}>
            ${asking.map((/** @type {any} */ one) =>
              html`<option value=${one.path} selected=${one.path === step.path}>${one.label} ${one.title}</option>`
            )}
          </select>
        </div>
        ${names.map((name) =>
          html`
            <${InputField} key=${name} name=${name} schema=${properties[name]} required=${false} text=${texts[name] ??
              ""}
              problem=${own(shown.data?.inputs, name)} onText=${(/** @type {string} */ text) => change(name, text)} />
          `
        )}
      </form>
      <section class="prompt-shown" aria-label="The prompts of a run" aria-live="polite">
        ${shown.problem && html`<${ProblemBox} problem=${shown.problem} />`}
        ${!shown.data && !shown.problem && html`<${Placeholder} lines=${4} />`}
        ${shown.data && html`<${Prompt} shown=${shown.data} />`}
      </section>
    </div>
  `;
}

/** @param {{ shown: any }} props */
function Prompt({ shown }) {
  const { prompt, notes } = shown;
  const messages = [...(prompt.system ? [{ role: "system", content: prompt.system }] : []), ...prompt.messages];
  const size = messages.reduce((all, one) => all + one.content.length, 0);
  return html`
    <p class="soft small">${number(size)} characters in ${messages.length === 1
      ? "one message"
      : `${messages.length} messages`}.
      Values that only a run can know stand in brackets.</p>
    ${notes.map((/** @type {string} */ one) => html`<p class="hint-row"><${Icon} name="dot" />${one}</p>`)}
    ${messages.map((one, at) =>
      html`
        <article class="prompt-message" key=${at}>
          <h3>${one.role}</h3>
          <pre class="pre">${one.content}</pre>
        </article>
      `
    )}
    ${prompt.tools && html`<p class="small">Tools that are offered: <code>${prompt.tools.join(", ")}</code></p>`}
    ${[["The reply has to fit a schema", prompt.schema], ["It ends with JSON that fits", prompt.closing]]
      .filter(([, schema]) => schema).map(([words, schema]) =>
        html`
          <details class="opens">
            <summary>${words}</summary>
            <pre>${JSON.stringify(schema, null, 2)}</pre>
          </details>
        `
      )}
  `;
}
