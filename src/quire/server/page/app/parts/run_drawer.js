// The drawer that runs a document: its inputs, the options of the run, and the receipt of what the run would do at most.
// What is wrong is said under its field before anything is started.

import { ApiProblem, part, post, tryTo } from "../api.js";
import { html, useEffect, useState } from "../html.js";
import { useResource } from "../resource.js";
import { go } from "../router.js";
import { Empty, Placeholder, ProblemBox } from "./basics.js";
import { Dialog } from "./dialog.js";
import { firstText, InputField, own, readText, remembered, rememberForm } from "./field.js";
import { Icon } from "./icon.js";
import { Forecast, ForecastLine } from "./run_forecast.js";
import { emptyOptions, optionsBody, RunOptions } from "./run_options.js";

const PAUSE = 250;
const MORE = "more inputs";
const MORE_SCHEMA = { type: "object", description: "A JSON object with further inputs." };
const KNOWLEDGE = "This is knowledge: directives read it, and it does not run.";
const BROKEN = "The document has errors, so it cannot run.";
const REDACTED = /\[redacted:/;

/**
 * @param {{ document: string, like?: string, onClose: () => void }} props `document` is an id, `like` a run whose inputs
 *   and options are taken
 */
export function RunDrawer({ document: id, like, onClose }) {
  const { data, problem, slow, reload } = useResource(`/documents/${part(id)}?fields=inputs,steps,bounds`);
  const earlier = useResource(like ? `/runs/${part(like)}/fork` : null);
  const isReady = data && (!like || earlier.data);
  const failed = problem ?? earlier.problem;
  return html`
    <${Dialog} title=${like ? "Run again" : data ? `Run ${data.title}` : "Run"} onClose=${onClose} drawer>
      ${failed
        ? html`<${ProblemBox} problem=${failed} retry=${problem ? reload : earlier.reload} />`
        : !isReady
        ? slow && html`<${Placeholder} lines=${6} />`
        : data.runnable
        ? html`<${RunForm} key=${`${id} ${like ?? ""}`} id=${id} data=${data} like=${earlier.data} />`
        : html`<${Empty} title=${data.format === "knowledge" ? KNOWLEDGE : BROKEN} icon="cross" />`}
    </${Dialog}>
  `;
}

/** @param {{ id: string, data: any, like?: any }} props */
function RunForm({ id, data, like }) {
  const properties = data.inputs.properties;
  const names = Object.keys(properties);
  const first = () => Object.fromEntries(names.map((name) => [name, firstText(properties[name])]));
  const kept = like ? likeRun(properties, like) : remembered(id);
  const [texts, setTexts] = useState(() => ({ ...first(), ...kept?.inputs }));
  const [options, setOptions] = useState(() => ({ ...emptyOptions(), ...kept?.options }));
  const [touched, setTouched] = useState(() => new Set(/** @type {string[]} */ ([])));
  const [tried, setTried] = useState(false);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState(/** @type {import("../api.js").Problem | null} */ (null));

  const { inputs, wrong, words } = readAll(properties, data.inputs.additionalProperties, texts);
  for (const name of kept?.redacted ?? []) {
    if (!Object.hasOwn(inputs, name)) wrong[names.includes(name) ? name : MORE] = `${name} was redacted: give it again`;
  }
  const body = { inputs, ...optionsBody(options, data.format) };
  const forecast = usePosted(`/documents/${part(id)}/preflight`, body, PAUSE, true);
  useEffect(() => {
    if (touched.size && !like) rememberForm(id, { inputs: texts, options });
  }, [texts, options]);

  /** @param {string} name */
  const touch = (name) => setTouched((now) => now.has(name) ? now : new Set([...now, name]));
  /** @param {string} name @param {string} text */
  const change = (name, text) => (setTexts((/** @type {any} */ now) => ({ ...now, [name]: text })), touch(name));
  const clear = () => {
    rememberForm(id, null);
    setTexts(first());
    setOptions(emptyOptions());
    setTouched(new Set());
    setTried(false);
  };
  /** @param {string} name @returns {string | undefined} */
  const problemOf = (name) => {
    const said = wrong[name] ?? own(forecast.data?.inputs, name);
    // A field that nobody has come to yet is not wrong for being empty.
    return said && (wrong[name] || tried || touched.has(name) || (texts[name] ?? "").trim()) ? said : undefined;
  };
  const open = Object.keys(wrong).length + Object.keys(forecast.data?.inputs ?? {}).length;

  /** @param {Event} event */
  const start = async (event) => {
    event.preventDefault();
    setTried(true);
    setProblem(null);
    if (busy) return;
    // A forecast that is still asked for is about an earlier text: then the server says what is wrong.
    const named = names.find((name) => wrong[name] || (!forecast.busy && own(forecast.data?.inputs, name)));
    if (named) return focusOn(named);
    const tell = (/** @type {any} */ problem) => (setProblem(problem), setBusy(!problem));
    await tryTo(tell, async () => {
      const row = await post("/runs", { document: id, ...body, goes_on: options.goesOn });
      go(`/runs/${part(row.id)}`);
    });
  };

  return html`
    <form class="run-form" onSubmit=${start} novalidate>
      <div class="input-form">
        <div class="form-head">
          <h3>Inputs</h3>
          ${!like && (touched.size > 0 || kept) && html`
            <button type="button" class="link small" onClick=${clear}>Clear, and forget the last values</button>
          `}
        </div>
        ${!names.length && !data.inputs.additionalProperties && html`<p class="soft">It takes no inputs.</p>`}
        ${names.map((name) =>
          html`
            <${InputField} key=${name} name=${name} schema=${properties[name]} text=${texts[name] ?? ""}
              required=${(data.inputs.required ?? []).includes(name)} problem=${problemOf(name)}
              hint=${forecast.data?.missing.includes(name)
                ? "nothing is given: a step that reads it fails"
                : words[name]} onText=${(/** @type {string} */ text) => change(name, text)}
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
      <div class="form-side">
        <${Forecast} forecast=${forecast} />
        ${problem && html`<${ProblemBox} problem=${problem} />`}
      </div>
      <div class="start">
        <${ForecastLine} forecast=${forecast} budget=${options.budget} />
        ${tried && open > 0 && html`<p class="input-problem" role="alert"><${Icon} name="cross" />
          Nothing was started: see what is said under the fields.</p>`}
        <button type="submit" class="button primary" data-needs="run" disabled=${busy}>
          <${Icon} name="play" />${busy ? "Starting …" : "Start the run"}</button>
      </div>
    </form>
  `;
}

/** The form filled as a run was. A redacted value has to be typed again. @param {Record<string, any>} properties @param {any} run */
function likeRun(properties, run) {
  const { values = {}, options = {} } = run;
  const entries = Object.entries(values).filter(([, value]) => !REDACTED.test(JSON.stringify(value)));
  const named = entries.filter(([name]) => Object.hasOwn(properties, name));
  const more = Object.fromEntries(entries.filter(([name]) => !Object.hasOwn(properties, name)));
  const { model, budget, breakpoints, answers, limits, unattended } = options;
  const set = { model, budget: budget === undefined ? budget : `${budget}`, breakpoints, answers, unattended };
  return {
    inputs: {
      ...Object.fromEntries(named.map(([name, value]) => [name, firstText(properties[name], value)])),
      ...(Object.keys(more).length ? { [MORE]: JSON.stringify(more, null, 2) } : {}),
    },
    options: {
      ...Object.fromEntries(Object.entries(set).filter(([, value]) => value !== undefined)),
      ...(limits
        ? { limits: Object.fromEntries(Object.entries(limits).map(([name, value]) => [name, `${value}`])) }
        : {}),
    },
    redacted: Object.keys(values).filter((name) => REDACTED.test(JSON.stringify(values[name]))),
  };
}

/**
 * @param {Record<string, import("./field.js").InputSchema>} properties
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

/** @param {string} name */
function focusOn(name) {
  const field = document.getElementById(`input-${name}`) ??
    document.querySelector(`[name="${CSS.escape(`input-${name}`)}"]`);
  if (field instanceof HTMLElement) field.focus();
}

/**
 * The answer to a POST that changes nothing, asked for again shortly after the last change of its body.
 *
 * @param {string} path
 * @param {any} body null asks nothing
 * @param {number} pause
 * @param {boolean} [keeps] the last answer stays beside a problem
 */
export function usePosted(path, body, pause, keeps = false) {
  const [state, setState] = useState(
    /** @type {{ data: any, problem: any, busy: boolean }} */ ({ data: null, problem: null, busy: true }),
  );
  useEffect(() => {
    if (!body) return;
    let gone = false;
    setState((now) => ({ ...now, busy: true }));
    const timer = setTimeout(async () => {
      try {
        const data = await post(path, body);
        if (!gone) setState({ data, problem: null, busy: false });
      } catch (error) {
        if (!(error instanceof ApiProblem)) throw error;
        if (!gone) setState((now) => ({ data: keeps ? now.data : null, problem: error.problem, busy: false }));
      }
    }, state.data ? pause : 0);
    return () => {
      gone = true;
      clearTimeout(timer);
    };
  }, [path, JSON.stringify(body)]);
  return state;
}
