// A document in words, beside its graph: what it does, what it needs, and its steps in order.

import { part } from "../api.js";
import { html, useState } from "../html.js";
import { useResource } from "../resource.js";
import { Link, place } from "../router.js";
import { cut, plural } from "../words.js";
import { Command, Fact, Placeholder, ProblemBox } from "./basics.js";
import { Graph } from "./graph.js";
import { Icon } from "./icon.js";

const MOST_STEPS = 120;

/** @param {{ data: any }} props */
export function DocumentRead({ data }) {
  const outline = data.outline;
  const problem = data.problems?.outline;
  const words = html`
    <div class="document-read">
      ${paragraphs(data.description ?? "").map((text) => html`<p class="prose">${text}</p>`)}
      ${!outline && html`
        <div class="problem" role="alert">
          <${Icon} name="warning" />
          <div>
            <p><strong>${problem ? "The document cannot be composed" : "The document has errors"}</strong></p>
            ${problem && html`<p class="pre">${problem}</p>`}
            <p><${Link} to="${place.value.path}?tab=source">See the source with its findings</${Link}></p>
          </div>
        </div>
      `}
      ${outline && html`<${Outline} outline=${outline} />`}
      <p class="actions"><${Command} command=${data.commands.show} /><${Command} command=${data.commands.check} /></p>
    </div>
  `;
  if (!data.runnable) return words;
  return html`<div class="read-columns">${words}<${DocumentGraph} id=${data.id} /></div>`;
}

/** @param {{ id: string, selected?: string }} props `selected` is the path of a step */
export function DocumentGraph({ id, selected = "" }) {
  const query = place.value.query;
  const folds = new URLSearchParams(query.getAll("open").map((fold) => ["open", fold])).toString();
  const { data, problem, slow, reload } = useResource(
    `/documents/${part(id)}/graph${folds && `?${folds}`}`,
    (frame) => frame.event === "documents",
  );
  if (problem) return html`<${ProblemBox} problem=${problem} retry=${reload} />`;
  if (!data) return slow && html`<${Placeholder} lines=${6} />`;
  /** @param {string} fold */
  const foldLink = (fold) => {
    const all = new URLSearchParams(query);
    all.append("open", fold);
    return `/documents/${part(id)}?${all}`;
  };
  return html`
    <${Graph} chart=${data} label="Flowchart of ${data.title}" foldLink=${foldLink} selected=${selected} />
  `;
}

/** @param {{ outline: any }} props */
function Outline({ outline }) {
  const steps = outline.steps ?? [];
  return html`
    ${outline.inputs?.length > 0 && html`
      <section aria-labelledby="inputs-title">
        <h2 id="inputs-title">Inputs</h2>
        <dl class="about-list inputs-list">
          ${outline.inputs.map((/** @type {any} */ one) =>
            html`
              <div>
                <dt><code>${one.name}</code></dt>
                <dd>${one.description || html`<span class="soft">no description</span>`}
                  <span class="soft small"> ${inputWords(one)}</span></dd>
              </div>
            `
          )}
        </dl>
      </section>
    `}
    ${outline.system && html`
      <section>
        <h2>System prompt</h2>
        <details class="opens">
          <summary>${cut(outline.system.split("\n")[0], 120)}</summary>
          <pre>${outline
            .system}</pre>
        </details>
      </section>
    `}
    ${outline.format === "directive" && html`<${DirectiveParts} outline=${outline} />`}
    ${steps.length > 0 && html`
      <section aria-labelledby="steps-title">
        <h2 id="steps-title">Steps</h2>
        <${Steps} steps=${steps} />
      </section>
    `}
    ${outline.artifact && html`
      <section>
        <h2>Artifact</h2>
        <p>The last result is kept as <code>${outline.artifact}</code>.</p>
      </section>
    `}
  `;
}

/** @param {any} one */
function inputWords(one) {
  const words = [one.type];
  if (one.options?.length) words.push(`one of ${one.options.join(", ")}`);
  if (one.default !== null && one.default !== undefined && one.default !== "") words.push(`default ${one.default}`);
  else words.push(one.required ? "required" : "optional");
  return words.filter(Boolean).join(" · ");
}

/** @param {{ steps: any[] }} props */
function Steps({ steps }) {
  const [most, setMost] = useState(MOST_STEPS);
  return html`
    <ol class="outline-steps">
      ${steps.slice(0, most).map((step, at) => html`<${Step} key=${at} step=${step} />`)}
    </ol>
    ${steps.length > most && html`
      <button type="button" class="button" onClick=${() => setMost(most + MOST_STEPS)}>
        ${plural(Math.min(MOST_STEPS, steps.length - most), "more step", "more steps")} of ${steps.length}
      </button>
    `}
  `;
}

/** @param {{ step: any }} props */
function Step({ step }) {
  return html`
    <li class="outline-step">
      <p class="outline-title"><span class="step-tag">${step.label}</span> <strong>${step.title ||
        step.kind}</strong>
        ${step.model &&
          html`<${Link} class="small" to=${`${place.value.path}?prompt=${
            encodeURIComponent(step.label)
          }`}>Prompt</${Link}>`}</p>
      ${words(step).map((line) => html`<p class="outline-does"><${Icon} name=${line[0]} /><span>${line[1]}</span></p>`)}
      ${(step.branches ?? []).map((/** @type {any} */ branch, /** @type {number} */ at) =>
        html`
          <div class="outline-branch">
            <p class="soft small">${branch.if ? `${at ? "else if" : "if"} ${branch.if}` : "else"}</p>
            <ol class="outline-steps">
              ${branch.steps.map((/** @type {any} */ one, /** @type {number} */ at) =>
                html`<${Step} key=${at} step=${one} />`
              )}
            </ol>
          </div>
        `
      )}
      ${Object.entries(step.steps ?? {}).map(([name, held]) =>
        html`
          <div class="outline-branch">
            <p class="soft small">${name}</p>
            <ol class="outline-steps">
              <${Step} step=${held} />
            </ol>
          </div>
        `
      )}
    </li>
  `;
}

/**
 * What a step does, a line each: an icon and a sentence.
 *
 * @param {any} step
 * @returns {[string, string][]}
 */
function words(step) {
  /** @type {[string, string][]} */
  const lines = [];
  const { asks, model, tool, keeps, does } = step;
  if (asks) {
    const options = asks.options.length ? ` (${asks.options.join(" | ")})` : "";
    lines.push([
      "question",
      `asks a person: ${cut(asks.prompt, 200)}${options}${asks.default ? `, else ${asks.default}` : ""}`,
    ]);
  }
  if (model) {
    lines.push(["model", `asks the model${model.text ? `: ${cut(model.text, 240)}` : ""}`]);
    if (model.prompt) lines.push(["documents", `with the prompt ${model.prompt} before it`]);
  }
  if (tool) {
    lines.push(["terminal", `calls the tool ${typeof tool === "string" ? tool : `${tool.connection}/${tool.tool}`}`]);
  }
  if (keeps) {
    lines.push(["down", `keeps ${keeps.field ? `the field "${keeps.field}"` : "the result"} as ${keeps.name}`]);
  }
  for (const line of does ?? []) lines.push(["dot", cut(line, 240)]);
  if (step.output) lines.push(["down", `keeps the result as ${step.output}`]);
  return lines;
}

/** @param {{ outline: any }} props */
function DirectiveParts({ outline }) {
  const { model, outputs, extends: chain, limits, hooks, context, warnings } = outline;
  const set = Object.entries(limits?.effective ?? {}).filter(([, value]) => value !== null && value !== undefined);
  /** @param {any[] | undefined} list @param {(item: any) => string} words @param {string} [sign] */
  const all = (list, words, sign = ", ") => (list ?? []).map(words).join(sign);
  const rows = [
    ["Model", `${model?.resolves_to || "none yet"} ${model?.why ?? ""}`],
    ["Extends", all(chain?.slice(1), (parent) => parent.id, " → ")],
    ["Reads", all(context, (item) => item.item_id)],
    ["Gives", all(outputs, (output) => `${output.name} (${output.type})`)],
    ["Limits", all(set, ([name, value]) => `${name} ${value}`)],
    ["Hooks", all(hooks, (hook) => `${hook.id || hook.event} at ${hook.event}`)],
  ];
  return html`
    <section aria-labelledby="made-of">
      <h2 id="made-of">Its parts</h2>
      <dl class="about-list">
        ${rows.filter(([, words]) => words).map(([name, words]) => html`<${Fact} name=${name}>${words}</${Fact}>`)}
      </dl>
      ${(warnings ?? []).map((/** @type {string} */ one) =>
        html`<p class="hint-row"><${Icon} name="warning" />${one}</p>`
      )}
    </section>
  `;
}

/** The lines of a document end where its author's editor ended them; only an empty line ends a paragraph. @param {string} text */
function paragraphs(text) {
  return text.split(/\n\s*\n/).map((one) => one.trim()).filter(Boolean);
}
