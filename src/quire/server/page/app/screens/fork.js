// Fork: choose the step, the values, the model and the budget. What the fork keeps and does again is said before the
// click; the old run stays as it is.

import { ApiProblem, part, post } from "../api.js";
import { lostSince } from "../feed.js";
import { html, useEffect, useState } from "../html.js";
import { Placeholder, ProblemBox } from "../parts/basics.js";
import { ForkReceipt, ForkResult } from "../parts/fork_receipt.js";
import { Icon } from "../parts/icon.js";
import { fieldSchema, firstText, InputField, readText } from "../parts/field.js";
import { useResource } from "../resource.js";
import { Link, place, setQuery, useTitle } from "../router.js";
import { cut, money, shown } from "../words.js";

/** @param {{ run: string }} props */
export function Fork({ run }) {
  const { data: form, problem, slow, reload } = useResource(`/runs/${part(run)}/fork`);
  const made = place.value.query.get("made");
  useTitle(`Fork ${form ? `“${cut(form.label ?? form.title, 60)}”` : "a run"}`);
  return html`
    <div class="head">
      <p class="crumbs">
        <${Link} to="/runs/${part(run)}"><${Icon} name="left" />${form?.title ?? run}</${Link}></p>
      <h1 tabindex="-1">Fork ${form ? `“${cut(form.title, 60)}”` : "a run"}</h1>
      <p class="soft">Starts a new run in the middle of this one. The old run stays as it is.</p>
    </div>
    ${problem && html`<${ProblemBox} problem=${problem} retry=${reload} />`}
    ${!form && !problem && slow && html`<${Placeholder} lines=${6} />`}
    ${made && html`<${ForkResult} origin=${run} made=${made} />`}
    ${form && !made && html`<${ForkForm} key=${form.id} form=${form} />`}
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
  const receipt = useReceipt(form.id, wrong ? null : body);
  /** @param {Event} event */
  const submit = async (event) => {
    event.preventDefault();
    setState({ sending: true, problem: null });
    try {
      const row = await post(`/runs/${part(form.id)}/fork`, { ...body, goes_on: goesOn });
      setQuery({ made: row.id });
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
        <${ForkReceipt} receipt=${receipt.data} problem=${receipt.problem} stale=${receipt.stale} />
        ${state.problem && html`<${ProblemBox} problem=${state.problem} />`}
        <button type="submit" class="button primary" disabled=${away || state.sending || wrong || receipt.stale ||
          !receipt.data}
          title=${away ? "The server cannot be reached" : undefined}>
          <${Icon} name="fork" />Start the fork</button>
      </div>
    </form>
  `;
}

/** @param {{ steps: any[], step: any }} props */
function Steps({ steps, step }) {
  const choose = (/** @type {string} */ path) => setQuery({ from: path });
  if (steps.length > 60) {
    return html`
      <fieldset>
        <legend>The first step that is new</legend>
        <select aria-label="The first step that is new" value=${step.path} onChange=${(/** @type {any} */ event) =>
          choose(event.target.value)}>
          ${steps.map((one) =>
            html`<option key=${one.path} value=${one.path} disabled=${!one.reached}>${one.label} ${
              cut(one.title, 80)
            }</option>`
          )}
        </select>
      </fieldset>
    `;
  }
  return html`
    <fieldset>
      <legend>The first step that is new</legend>
      <div class="fork-steps">
        ${steps.map((one) => {
          const { icon, word, tone } = shown(one.status);
          const depth = Math.min(4, one.path.split("/case[").length - 1);
          return html`
            <label key=${one.path} class="fork-step depth-${depth}">
              <input type="radio" name="from" value=${one.path} checked=${one.path === step.path} disabled=${!one
                .reached}
                onChange=${() => choose(one.path)} />
              <span class="number step-label">${one.label}</span><span class="fork-title">${one.title}</span>
              <span class="status tone-${tone}"><${Icon} name=${icon} />${one.reached ? word : "not reached"}</span>
            </label>
          `;
        })}
      </div>
    </fieldset>
  `;
}

/** @param {any} form @param {any} step @returns {{ name: string, schema: any, now: string }[]} */
function fieldsOf(form, step) {
  if (!step.settable) return [];
  const schemas = form.inputs.properties ?? {};
  const names = Object.keys({ ...schemas, ...form.values, ...(step.first ? {} : form.named) });
  return names.map((name) => {
    const named = !step.first && Object.hasOwn(form.named, name);
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

/**
 * The receipt of a fork, asked for again a moment after each change.
 *
 * @param {string} run
 * @param {any} body null while a field is wrong
 */
function useReceipt(run, body) {
  const [state, setState] = useState({ key: "", data: /** @type {any} */ (null), problem: /** @type {any} */ (null) });
  const key = body && JSON.stringify(body);
  useEffect(() => {
    if (!key) return;
    let gone = false;
    const timer = setTimeout(async () => {
      try {
        const data = await post(`/runs/${part(run)}/fork/preview`, JSON.parse(key));
        if (!gone) setState({ key, data, problem: null });
      } catch (error) {
        if (!(error instanceof ApiProblem)) throw error;
        const { problem } = error;
        if (!gone) setState({ key, data: null, problem });
      }
    }, 200);
    return () => {
      gone = true;
      clearTimeout(timer);
    };
  }, [run, key]);
  return { data: state.data, problem: state.problem, stale: state.key !== key };
}
