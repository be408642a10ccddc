// One step of a run: its question, the text that is being written, its calls with prompts and results, and why.

import { part, query } from "../api.js";
import { html, useEffect, useRef, useState } from "../html.js";
import { addShortcuts } from "../keys.js";
import { Link } from "../router.js";
import { partWords, stepOf } from "../run_tree.js";
import { useThrottled } from "../throttle.js";
import { duration, money, number, plural } from "../words.js";
import { Command, Placeholder, ProblemBox, Status } from "./basics.js";
import { AnyValue, Content } from "./content.js";
import { Icon } from "./icon.js";
import { Answered, AskedAbove, RunQuestion } from "./run_question.js";
import { EffectCard } from "./step_effect.js";

/** The last steps that are named of those whose results the model was told. */
const MOST_TOLD = 20;

const ABOUT_STEPS = /^(effect|step_|question|fan_started|tool_|thread_|agent_|run_)/;
const SHOWN_STREAM = 20_000;

/** @param {{ store: import("../run_store.js").RunStore, path: string }} props */
export function StepView({ store, path }) {
  const head = /** @type {import("../run_store.js").Head} */ (store.head.value);
  const [after, setAfter] = useState(0);
  useEffect(() => setAfter(0), [path]);
  const known = head.steps.find((step) => step.path === path);
  const found = useThrottled(
    path ? `/runs/${part(head.id)}/steps/${part(path)}${query({ after: after || undefined })}` : null,
    (frame) =>
      frame.data?.run === head.id && ABOUT_STEPS.test(frame.event) &&
      `${frame.data.path ?? path}/`.startsWith(`${path}/`),
  );
  const title = known ? `${known.label} ${known.title}`.trim() : path;
  if (found.problem && !found.data) {
    const { code, detail } = found.problem;
    return html`
      <section class="step" aria-label="Step ${title}">
        <${StepHead} head=${head} step=${known} path=${path} />
        ${code === "run-state"
          ? html`<p class="soft">${detail}.</p>`
          : html`<${ProblemBox} problem=${found.problem} retry=${found.reload} />`}
      </section>
    `;
  }
  const step = found.data;
  return html`
    <section class="step" aria-label="Step ${title}">
      <${StepHead} head=${head} step=${known ?? step} path=${path} detail=${step} />
      ${head.questions.filter((/** @type {any} */ one) => within(one.path, path)).slice(0, 5).map((
        /** @type {any} */ one,
      ) =>
        one === head.questions[0]
          ? html`<${AskedAbove} key=${one.path} question=${one} />`
          : html`<${RunQuestion} key=${one.path} head=${head} question=${one} />`
      )}
      <${Streaming} store=${store} path=${path} step=${known} />
      ${!step && found.slow && html`<${Placeholder} lines=${5} />`}
      ${step && html`<${Detail} key=${path} head=${head} step=${step} more=${setAfter} after=${after} />`}
    </section>
  `;
}

/** @param {string} path @param {string} above */
function within(path, above) {
  return path === above || path.startsWith(`${above}/`);
}

/** @param {{ head: any, step: any, path: string, detail?: any }} props */
function StepHead({ head, step, path, detail }) {
  const commands = detail?.commands;
  const own = stepOf(head.steps, path);
  const inside = own && own.path !== path ? partWords(path, own.path) : "";
  const facts = step && [
    step.elapsed ? duration(step.elapsed) : "",
    step.input_tokens || step.output_tokens ? `${number(step.input_tokens)} in, ${number(step.output_tokens)} out` : "",
    step.cost === null ? "price unknown" : step.cost ? money(step.cost) : "",
    detail?.effects_total > 1 ? plural(detail.effects_total, "call") : "",
  ].filter(Boolean);
  return html`
    <header class="step-head">
      <h2 id="step-title" tabindex="-1"><span class="step-label">${step?.way || path}</span> ${step?.title}${inside &&
        `, ${inside}`}</h2>
      ${step?.status && html`<${Status} status=${step.status} survived=${step.survived} />`}
      <span class="soft number">${facts?.join(" · ")}</span>
      <span class="push actions">
        ${step?.items &&
          html`<${Link} class="button small-button" to="/runs/${head.id}/fans/${part(path)}">${
            step.items.rounds ? "All rounds" : `All ${number(step.items.total)} items`
          }</${Link}>`}
        <${Link} class="button small-button" to="/runs/${head.id}/fork?from=${encodeURIComponent(
          path,
        )}" title=${commands?.fork ?? ""}><${Icon} name="fork" />What if</${Link}>
      </span>
    </header>
    ${step?.survived
      ? html`<p class="step-message survived pre">Failed, and the run continued: ${step.survived}</p>`
      : step?.message && html`<p class="step-message pre">${step.message}</p>`}
  `;
}

/** The text that a model is writing now. @param {{ store: any, path: string, step: any }} props */
function Streaming({ store, path, step }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const atEnd = useRef(true);
  const texts = [...store.streams.value].filter(([at]) => within(at, path));
  const [at, text] = texts[texts.length - 1] ?? ["", ""];
  useEffect(() => {
    if (box.current && atEnd.current) box.current.scrollTop = box.current.scrollHeight;
  }, [text]);
  const [, reading] = [...store.readings.value].find(([at]) => within(at, path)) ?? [];
  if (reading) {
    return html`<p class="soft small"><${Icon} name="running" />The model is reading the prompt ${
      number(reading.processed)
    }/${number(reading.total)}</p>`;
  }
  if (!text) {
    if (step?.status !== "running" || store.head.value.driven_here) return null;
    return html`<p class="soft">Driven by another process; text appears when a step ends.</p>`;
  }
  const more = texts.length > 1 ? ` (one of ${texts.length} replies)` : "";
  return html`
    <div class="streaming">
      <p class="soft small"><${Icon} name="running" />The model is writing${more}</p>
      <p class="visually-hidden" role="status" key=${at}>Step ${step?.label ?? path} is writing its reply.</p>
      <pre ref=${box} class="source" tabindex="0" aria-live="off" onScroll=${(/** @type {any} */ event) => {
        const place = event.currentTarget;
        atEnd.current = place.scrollHeight - place.scrollTop - place.clientHeight < 24;
      }}>${text.length > SHOWN_STREAM ? `…${text.slice(-SHOWN_STREAM)}` : text}</pre>
    </div>
  `;
}

/** @param {{ head: any, step: any, after: number, more: (after: number) => void }} props */
function Detail({ head, step, after, more }) {
  // Decided once: what is open or folded stays so while calls are added.
  const [{ folded, alone }] = useState({
    folded: step.effects_total > 3 || Boolean(step.items),
    alone: step.effects_total === 1,
  });
  const asks = step.effects.filter((/** @type {any} */ one) => one.kind === "ask");
  const models = step.effects.filter((/** @type {any} */ one) => one.kind === "model");
  const ownOutput = step.output !== null && step.output !== undefined && !(models.length === 1 && !asks.length);
  return html`
    ${step.answers.filter((/** @type {any} */ one) => !asks.some((/** @type {any} */ ask) => ask.path === one.path))
      .map((
        /** @type {any} */ one,
      ) => html`<${Answered} key=${one.path} answer=${one} />`)}
    ${step.set.map((/** @type {any} */ values) =>
      html`
        <p class="by-hand"><${Icon} name="edit" />Set by hand at the end of this step: ${Object.keys(values).join(
          ", ",
        )}</p>
      `
    )}
    <${Why} head=${head} step=${step} />
    ${after > 0 && html`<button type="button" class="link" onClick=${() => more(0)}>Back to the first calls</button>`}
    ${step.effects.filter(isTold).map((/** @type {any} */ one) =>
      html`<${EffectCard} key=${one.path} run=${head.id} effect=${one} step=${{
        ...step,
        model: head.model,
      }} alone=${alone} folded=${folded} />`
    )}
    ${step.next && html`<button type="button" class="button" onClick=${() => more(Number(step.next))}>
      ${plural(step.effects_total - Number(step.next), "more call")}</button>`}
    ${!step.effects.length && !step.output &&
      html`<p class="soft">${
        step.status === "pending" ? "This step has not begun." : "This step has recorded nothing of its own."
      }</p>`}
    ${ownOutput && step.output !== "" && html`
      <section class="block">
        <h3>Output</h3>
        <${Content} type=${looksLikeJson(step.output) ? "json" : "markdown"} text=${step.output} html=${step
          .output_html}
          title="Output of the step" cut=${step.output_cut ?? 0} />
      </section>
    `}
    <p class="actions step-commands">
      <${Command} command=${step.commands.why} />
      <${Command} command=${step.commands.prompt} />
    </p>
  `;
}

/** An open question is shown above, with the means to answer it. @param {any} effect */
function isTold(effect) {
  return effect.kind !== "ask" || effect.state !== undefined;
}

/** @param {string} text */
export function looksLikeJson(text) {
  return /^\s*[[{]/.test(text) && /[\]}]\s*$/.test(text) && isJson(text);
}

/** @param {string} text */
function isJson(text) {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** The values that a step read, and who wrote each of them. @param {{ head: any, step: any }} props */
function Why({ head, step }) {
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() =>
    addShortcuts("Why", [{
      keys: "w",
      does: "Why: the values that the step read",
      run: () => {
        const details = place.current?.querySelector("details");
        if (details) details.open = true;
        place.current?.querySelector("summary")?.focus();
      },
    }]), []);
  const [open] = useState(step.values.length <= 6);
  const told = step.told.length;
  if (!step.values.length && !step.told.length) return null;
  return html`
    <section class="why" ref=${place}>
      <details open=${open}>
        <summary>Why: the values that it read</summary>
        <ul>
          ${step.values.map((/** @type {any} */ one) =>
            html`
              <li key=${one.name}><code>${one.name}</code>
                <span class="soft">from ${one.path
                  ? html`<${Link} to="/runs/${head.id}/steps/${part(one.path)}">${one.source}</${Link}>`
                  : one.source}</span>
                <${Short} value=${one.value} cut=${one.cut} />
              </li>
            `
          )}
          ${step.told.length > 0 &&
            html`<li><span class="soft">and the model was told the results of ${
              told > MOST_TOLD ? `${told - MOST_TOLD} earlier steps, ` : ""
            }${
              step.told.slice(-MOST_TOLD).map((/** @type {any} */ one, /** @type {number} */ at) =>
                html`${at ? ", " : ""}${
                  one.path
                    ? html`<${Link} to="/runs/${head.id}/steps/${part(one.path)}">step ${one.label}</${Link}>`
                    : `step ${one.label}`
                }`
              )
            }</span></li>`}
        </ul>
      </details>
    </section>
  `;
}

/** A value in one line that opens to the whole. @param {{ value: unknown, cut?: number }} props */
export function Short({ value, cut }) {
  const text = typeof value === "string" ? value : JSON.stringify(value ?? null);
  if (text.length <= 100 && !text.includes("\n")) return html`<span class="short-value">${text}</span>`;
  return html`
    <details class="short-value">
      <summary>${text.slice(0, 100).replaceAll("\n", " ")}…</summary>
      <${AnyValue} value=${value} cut=${cut} />
    </details>
  `;
}
