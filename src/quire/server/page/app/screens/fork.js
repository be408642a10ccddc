// Fork: choose the step, the values, the model and the budget. What the fork keeps and does again is said before the
// click; the old run stays as it is.

import { ApiProblem, part, post } from "../api.js";
import { lostSince } from "../feed.js";
import { html, useState } from "../html.js";
import { Placeholder, ProblemBox } from "../parts/basics.js";
import { ForkReceipt } from "../parts/fork_receipt.js";
import { Icon } from "../parts/icon.js";
import { fieldSchema, firstText, InputField, readText } from "../parts/field.js";
import { usePosted } from "../parts/run_drawer.js";
import { useResource } from "../resource.js";
import { go, Link, place, setQuery, useTitle } from "../router.js";
import { cut, money, shown } from "../words.js";

/** @param {{ run: string }} props */
export function Fork({ run }) {
  const { data: form, problem, slow, reload } = useResource(`/runs/${part(run)}/fork`);
  useTitle(`Fork ${form ? `“${cut(form.label, 60)}”` : "a run"}`);
  return html`
    <div class="head">
      <p class="crumbs">
        <${Link} to="/runs/${part(run)}"><${Icon} name="left" />${form?.label ?? run}</${Link}></p>
      <h1 tabindex="-1">Fork ${form ? `“${cut(form.label, 60)}”` : "a run"}</h1>
      <p class="soft">Starts a new run in the middle of this one. The old run stays as it is.</p>
    </div>
    ${problem && html`<${ProblemBox} problem=${problem} retry=${reload} />`}
    ${!form && !problem && slow && html`<${Placeholder} lines=${6} />`}
    ${form && html`<${ForkForm} key=${form.id} form=${form} />`}
  `;
}

/** @param {{ form: any }} props */
function ForkForm({ form }) {
  const asked = place.value.query.get("from") ?? "";
  const reached = form.steps.filter((/** @type {any} */ step) => step.reached);
  const step = form.steps.find((/** @type {any} */ one) => one.path === asked || one.label === asked) ??
    form.steps.findLast((/** @type {any} */ one) => asked.startsWith(`${one.path}/`)) ??
    reached.at(-1) ?? form.steps[0];
  const [texts, setTexts] = useState(/** @type {Record<string, string>} */ ({}));
  const [model, setModel] = useState("");
  const [budget, setBudget] = useState("");
  const [goesOn, setGoesOn] = useState(false);
  const [state, setState] = useState({ sending: false, problem: /** @type {any} */ (null) });
  const fields = fieldsOf(form, step);
  const read = fields.filter((one) => Object.hasOwn(texts, one.name)).map((one) => ({
    ...one,
    ...readField(one.schema, texts[one.name]),
  }));
  const wrong = read.some((one) => one.problem) || (budget !== "" && !(Number(budget) >= 0));
  const body = {
    from: step.path,
    ...(read.length ? { set: Object.fromEntries(read.map(({ name, value }) => [name, value])) } : {}),
    ...(model.trim() ? { model: model.trim() } : {}),
    ...(budget ? { budget: Number(budget) } : {}),
  };
  const receipt = usePosted(`/runs/${part(form.id)}/fork/preview`, wrong ? null : body, 200, true);
  /** @param {Event} event */
  const submit = async (event) => {
    event.preventDefault();
    setState({ sending: true, problem: null });
    try {
      const row = await post(`/runs/${part(form.id)}/fork`, { ...body, goes_on: goesOn });
      go(`/runs/${part(row.id)}`);
    } catch (error) {
      if (!(error instanceof ApiProblem)) throw error;
      setState({ sending: false, problem: error.problem });
    }
  };
  const away = lostSince.value > 0;
  return html`
    <form class="fork" onSubmit=${submit}>
      <div class="fork-form">
        <${Steps} steps=${form.steps} step=${step} />
        <${Values} step=${step} fields=${fields} texts=${texts} setTexts=${setTexts} form=${form} />
        <fieldset>
          <legend>Model and budget</legend>
          <label for="fork-model">Another model <span class="soft">for every call from there on</span></label>
          <input id="fork-model" value=${model} placeholder=${form.model ||
            "the default model"} autocomplete="off" spellcheck="false"
            onInput=${(/** @type {any} */ event) => setModel(event.target.value)} />
          <label for="fork-budget">Budget in dollars <span class="soft">for the whole new run</span></label>
          <input id="fork-budget" inputmode="decimal" value=${budget} placeholder=${form.budget === null
            ? "none"
            : `${money(form.budget)}, as before`}
            onInput=${(/** @type {any} */ event) => setBudget(event.target.value.trim())} />
          <label class="check"><input type="checkbox" checked=${goesOn}
            onChange=${(/** @type {any} */ event) =>
              setGoesOn(event.target.checked)} />Continues after the server ends</label>
        </fieldset>
      </div>
      <div class="fork-side">
        <${ForkReceipt} receipt=${receipt.data} problem=${receipt.problem} stale=${receipt.busy} />
        ${state.problem && html`<${ProblemBox} problem=${state.problem} />`}
        <button type="submit" class="button primary" data-needs="run" disabled=${away || state.sending || wrong ||
          receipt.busy ||
          !receipt.data || receipt.problem}
          title=${away ? "The server cannot be reached" : undefined}>
          <${Icon} name="fork" />Start the fork</button>
      </div>
    </form>
  `;
}

/** @param {{ steps: any[], step: any }} props */
function Steps({ steps, step }) {
  const word = (/** @type {any} */ row) => row.reached ? shown(row.status).word : "not reached";
  const depth = (/** @type {any} */ row) => "\u2003".repeat(row.path.split("/case[").length - 1);
  return html`
    <fieldset>
      <legend><label for="fork-step">The first step that is new</label></legend>
      <select id="fork-step" value=${step.path} onChange=${(/** @type {any} */ event) =>
        setQuery({ from: event.target.value })}>
        ${steps.map((row) =>
          html`<option key=${row.path} value=${row.path} disabled=${!row.reached} selected=${row.path === step.path}>
            ${depth(row)}${row.label} ${cut(row.title, 80)} · ${word(row)}</option>`
        )}
      </select>
    </fieldset>
  `;
}

/** @param {any} form @param {any} step @returns {{ name: string, schema: any, now: string }[]} */
function fieldsOf(form, step) {
  if (!step.settable) return [];
  const schemas = form.inputs.properties ?? {};
  // Results of the step itself and of later ones are made anew.
  const results = step.names.filter((/** @type {string} */ name) => Object.hasOwn(form.named, name));
  const names = [...new Set([...Object.keys({ ...schemas, ...form.values }), ...results])];
  return names.filter((name) => !name.startsWith("__")).map((name) => {
    const named = results.includes(name);
    const value = named ? form.named[name] : Object.hasOwn(form.values, name) ? form.values[name] : undefined;
    const schema = fieldSchema(Object.hasOwn(schemas, name) ? schemas[name] : undefined, value);
    return { name, schema, now: firstText(schema) };
  });
}

/** @param {{ step: any, fields: ReturnType<typeof fieldsOf>, texts: Record<string, string>, setTexts: (change: any) => void, form: any }} props */
function Values({ step, fields, texts, setTexts, form }) {
  const words = step.first
    ? "The inputs of the new run."
    : form.format === "directive"
    ? "The model is told about the values that you change."
    : "Values hold from this step on; inputs and results of earlier steps.";
  return html`
    <fieldset>
      <legend>Values</legend>
      <p class="soft">${step.settable
        ? words
        : "This step is the first of its branch: no value can be set here. Fork the step around it."}</p>
      ${fields.map(({ name, schema, now }) => {
        const typed = Object.hasOwn(texts, name) ? texts[name] : undefined;
        const changed = typed !== undefined && typed !== now;
        const set = (/** @type {string} */ text) =>
          setTexts((/** @type {any} */ old) => text === now ? without(old, name) : { ...old, [name]: text });
        return html`
          <div key=${name} class=${changed ? "typed-field changed" : "typed-field"}>
            <${InputField} name=${name} schema=${schema} required=${false} prefix="field" text=${typed ?? now}
              problem=${changed ? readField(schema, typed).problem : undefined} onText=${set} />
            ${changed && html`
              <button type="button" class="link" onClick=${() => set(now)} aria-label="Leave ${name} as it is">leave as
                it is</button>
            `}
          </div>
        `;
      })}
    </fieldset>
  `;
}

/** A text that is emptied is an empty text; every other value is needed. @param {any} schema @param {string} text */
function readField(schema, text) {
  if (text.trim()) return readText(schema, text);
  return schema.type === "string" ? { value: text } : { problem: "A value is needed." };
}

/** @param {Record<string, string>} texts @param {string} name */
function without(texts, name) {
  const { [name]: _, ...rest } = texts;
  return rest;
}
