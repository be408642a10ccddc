// The form that runs a document: its inputs, the options of the run, and beside them what the run would do at most. What
// is wrong is said under its field before anything is started.

import { ApiProblem, part, post } from "../api.js";
import { forgetForm, remembered, rememberForm } from "../form_memory.js";
import { html, useEffect, useState } from "../html.js";
import { go } from "../router.js";
import { ProblemBox } from "./basics.js";
import { Icon } from "./icon.js";
import { firstText, InputField, own, readText } from "./input_field.js";
import { Forecast } from "./run_forecast.js";
import { emptyOptions, optionsBody, RunOptions } from "./run_options.js";

const PAUSE = 250;
const MORE = "more inputs";
const MORE_SCHEMA = { type: "object", description: "A JSON object with further inputs." };

/** @param {{ id: string, data: any }} props */
export function RunForm({ id, data }) {
  const properties = data.inputs.properties;
  const first = () => Object.fromEntries(Object.keys(properties).map((name) => [name, firstText(properties[name])]));
  const kept = remembered(id);
  const [texts, setTexts] = useState(() => ({ ...first(), ...kept?.inputs }));
  const [options, setOptions] = useState(() => ({ ...emptyOptions(), ...kept?.options }));
  const [touched, setTouched] = useState(() => new Set(/** @type {string[]} */ ([])));
  const [tried, setTried] = useState(false);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState(/** @type {import("../api.js").Problem | null} */ (null));

  const { inputs, wrong, words } = readAll(properties, data.inputs.additionalProperties, texts);
  const body = { inputs, ...optionsBody(options, data.format) };
  const forecast = useForecast(id, body);
  useEffect(() => {
    if (touched.size) rememberForm(id, { inputs: texts, options });
  }, [texts, options]);

  /** @param {string} name */
  const touch = (name) => setTouched((now) => now.has(name) ? now : new Set([...now, name]));
  /** @param {string} name @param {string} text */
  const change = (name, text) => {
    setTexts((/** @type {Record<string, string>} */ now) => ({ ...now, [name]: text }));
    touch(name);
  };
  const clear = () => {
    forgetForm(id);
    setTexts(first());
    setOptions(emptyOptions());
    setTouched(new Set());
    setTried(false);
  };
  /** @param {string} name @returns {string | undefined} */
  const problemOf = (name) => {
    if (wrong[name]) return wrong[name];
    const said = own(forecast.data?.inputs, name);
    // A field that nobody has come to yet is not wrong for being empty.
    return said && (tried || touched.has(name) || (texts[name] ?? "").trim()) ? said : undefined;
  };
  const open = Object.keys(wrong).length + Object.keys(forecast.data?.inputs ?? {}).length;

  /** @param {Event} event */
  const start = async (event) => {
    event.preventDefault();
    setTried(true);
    setProblem(null);
    if (busy) return;
    const named = Object.keys(properties).find((name) => wrong[name] || own(forecast.data?.inputs, name));
    if (named) return focusOn(named);
    setBusy(true);
    try {
      const row = await post("/runs", { document: id, ...body, goes_on: options.goesOn });
      go(`/runs/${part(row.id)}`);
    } catch (error) {
      if (!(error instanceof ApiProblem)) throw error;
      setProblem(error.problem);
      setBusy(false);
    }
  };

  const names = Object.keys(properties);
  return html`
    <form class="form-columns" onSubmit=${start} novalidate>
      <div class="input-form">
        <div class="form-head">
          <h2>Inputs</h2>
          ${(touched.size > 0 || kept) && html`
            <button type="button" class="link small" onClick=${clear}>Clear, and forget the last values</button>
          `}
        </div>
        ${names.length === 0 && !data.inputs.additionalProperties &&
          html`<p class="soft">This document takes no inputs.</p>`}
        ${names.map((name) =>
          html`
            <${InputField} key=${name} name=${name} schema=${properties[name]} text=${texts[name] ?? ""}
              required=${(data.inputs.required ?? []).includes(name)} problem=${problemOf(name)}
              hint=${hintOf(name, words, forecast.data)} onText=${(/** @type {string} */ text) => change(name, text)}
              onTouch=${() => touch(name)} />
          `
        )}
        ${data.inputs.additionalProperties && html`
          <details class="opens" open=${Boolean(texts[MORE])}>
            <summary>More inputs</summary>
            <${InputField} name=${MORE} schema=${MORE_SCHEMA} required=${false} text=${texts[MORE] ?? ""}
              problem=${wrong[MORE]} onText=${(/** @type {string} */ text) => change(MORE, text)} />
          </details>
        `}
        <${RunOptions} data=${data} options=${options} limits=${forecast.data?.limits}
          onChange=${(
            /** @type {any} */ changes,
          ) => (setOptions((/** @type {any} */ now) => ({ ...now, ...changes })), touch(""))} />
      </div>
      <aside class="form-side">
        <${Forecast} forecast=${forecast} budget=${options.budget} />
        ${problem && html`<${ProblemBox} problem=${problem} />`}
        ${tried && open > 0 && html`<p class="input-problem" role="alert"><${Icon} name="cross" />
          Nothing was started: see what is said under the fields.</p>`}
        <button type="submit" class="button primary start" disabled=${busy}>
          <${Icon} name="play" />${busy ? "Starting …" : "Start the run"}</button>
      </aside>
    </form>
  `;
}

/**
 * @param {Record<string, import("./input_field.js").InputSchema>} properties
 * @param {boolean} more
 * @param {Record<string, string>} texts
 */
function readAll(properties, more, texts) {
  // An input may be named like a part of every object, such as constructor.
  /** @type {Record<string, unknown>} */
  let inputs = Object.create(null);
  /** @type {Record<string, string>} */
  const wrong = Object.create(null);
  /** @type {Record<string, string | undefined>} */
  const words = Object.create(null);
  for (const [name, schema] of Object.entries(properties)) {
    const read = readText(schema, texts[name] ?? "");
    if (read.value !== undefined) inputs[name] = read.value;
    if (read.problem) wrong[name] = read.problem;
    words[name] = read.words;
  }
  if (more && texts[MORE]?.trim()) {
    const read = readText(MORE_SCHEMA, texts[MORE]);
    const isObject = typeof read.value === "object" && read.value !== null && !Array.isArray(read.value);
    if (isObject) inputs = { .../** @type {object} */ (read.value), ...inputs };
    else wrong[MORE] = read.problem ?? "this is not a JSON object";
  }
  return { inputs, wrong, words };
}

/** @param {string} name @param {Record<string, string | undefined>} words @param {any} forecast */
function hintOf(name, words, forecast) {
  if (forecast?.missing.includes(name)) return "nothing is given: a step that reads it fails";
  return words[name];
}

/** @param {string} name */
function focusOn(name) {
  const field = document.getElementById(`input-${name}`) ??
    document.querySelector(`[name="${CSS.escape(`input-${name}`)}"]`);
  if (field instanceof HTMLElement) field.focus();
}

/**
 * What the server says about the run as it is now, asked again shortly after the last change.
 *
 * @param {string} id
 * @param {any} body
 */
function useForecast(id, body) {
  const [state, setState] = useState(
    /** @type {{ data: any, problem: any, busy: boolean }} */ ({ data: null, problem: null, busy: true }),
  );
  const key = JSON.stringify(body);
  useEffect(() => {
    let gone = false;
    setState((now) => ({ ...now, busy: true }));
    const timer = setTimeout(async () => {
      try {
        const data = await post(`/documents/${part(id)}/preflight`, body);
        if (!gone) setState({ data, problem: null, busy: false });
      } catch (error) {
        if (!(error instanceof ApiProblem)) throw error;
        if (!gone) setState((now) => ({ data: now.data, problem: error.problem, busy: false }));
      }
    }, state.data ? PAUSE : 0);
    return () => {
      gone = true;
      clearTimeout(timer);
    };
  }, [id, key]);
  return state;
}
