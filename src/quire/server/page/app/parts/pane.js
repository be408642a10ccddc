// The selected row of a run: its reply, the prompt as it was sent, the values that it read, and everything as recorded.

import { part, query } from "../api.js";
import { html, useEffect, useRef, useState } from "../html.js";
import { useThrottled } from "../resource.js";
import { Link, place } from "../router.js";
import { above } from "../tree_model.js";
import { duration, money, number, plural } from "../words.js";
import { Command, Placeholder, ProblemBox, Tabs } from "./basics.js";
import { LongText, Raw, ReadFrom, rowLink, Sent, Use } from "./call.js";
import { AnyValue, Content } from "./content.js";
import { Icon } from "./icon.js";
import { Answered, RunQuestion, who } from "./run_question.js";
import { stateOf, tookOf, waitsOnly } from "./tree.js";

const SHOWN_STREAM = 20_000;
const ABOUT_STEPS = /^(effect|step_|question|fan_started|tool_|thread_|agent_|run_)/;

/**
 * @param {{ store: import("../run_store.js").RunStore, row: import("../tree_model.js").TreeRow, tab: string }} props
 */
export function Pane({ store, row: seen, tab }) {
  const head = /** @type {any} */ (store.head.value);
  const [after, setAfter] = useState(0);
  const [path] = seen.path.split("#");
  const details = useThrottled(
    `/runs/${part(head.id)}/steps/${part(path)}${query({ after: after || undefined })}`,
    (frame) =>
      frame.data?.run === head.id && ABOUT_STEPS.test(frame.event) &&
      `${frame.data.path ?? path}/`.startsWith(`${path}/`),
  );
  const step = details.data?.path === path || !details.data ? details.data : null;
  const row = seen.state || !step ? seen : rowOfStep(seen, step);
  const effects = /** @type {any[]} */ (step?.effects ?? []);
  // A row of one call shows that call, a turn its model; a step with several calls shows what it made of them.
  const call = row.kind === "turn"
    ? effects.find((effect) => effect.path === `${path}/model`)
    : row.children || row.kind === "group"
    ? null
    : effects.findLast((effect) => /^(model|tool)$/.test(effect.kind));
  const reads = step ? step.values.length + Math.min(1, step.told.length) : 0;
  /** @type {[string, string, number?][]} */
  const tabs = [["reply", call?.kind === "tool" ? "Result" : "Reply"]];
  if (call) tabs.push(["prompt", call.kind === "tool" ? "Arguments" : "Prompt"]);
  if (reads) tabs.push(["from", "Read from", reads]);
  tabs.push(["raw", "Raw"]);
  const shown = tabs.some(([name]) => name === tab) ? tab : "reply";
  return html`
    <${PaneHead} store=${store} row=${row} step=${step} call=${call} />
    <${PaneTabs} tabs=${tabs} shown=${shown} />
    <div class="pane-body" role="region" aria-label=${tabs.find(([name]) => name === shown)?.[1]} tabindex="0">
      ${details.problem && !details.data &&
        (details.problem.code === "run-state"
          ? html`<p class="soft">${details.problem.detail}.</p>`
          : html`<${ProblemBox} problem=${details.problem} retry=${details.reload} />`)}
      <div class=${call && shown === "reply" ? "pane-columns" : ""}>
        <div>
          ${shown === "reply" && html`<${Reply} key=${path} store=${store} row=${row} step=${step} call=${call} />`}
          ${!step && details.slow && !row.path.includes("#") && html`<${Placeholder} lines=${5} />`}
        </div>
        ${call && /^(reply|prompt)$/.test(shown) && html`
          <section class="pane-prompt" aria-label="As it was sent">
            <${Sent} run=${head.id} effect=${call} />
          </section>
        `}
      </div>
      ${shown === "from" && html`<${ReadFrom} run=${head.id} step=${step} />`}
      ${shown === "raw" && step && html`<${Raw} step=${step} after=${after} more=${setAfter} />`}
    </div>
    <footer class="pane-foot">
      ${step && html`<${Command} command=${step.commands.why} />`}
      ${step && call && html`<${Command} command=${step.commands.prompt} />`}
    </footer>
  `;
}

/** @type {Record<string, string>} */
const STATES_OF_STEPS = { completed: "done", awaiting_input: "waits" };

/** A row that is not in the tree, because what is above it is not opened. @param {any} row @param {any} step */
function rowOfStep(row, step) {
  const item = /for_each\[(\d+)\]$/.exec(row.path)?.[1];
  const label = `${step.title || step.label}, ${item ? `item ${Number(item) + 1}` : /[^/]*$/.exec(row.path)}`;
  const { elapsed: took, cost, input_tokens, output_tokens } = step;
  const state = STATES_OF_STEPS[step.status] ?? step.status;
  return { ...row, label, state, took, cost, in: input_tokens, out: output_tokens };
}

/** Tabs of a row, each a link. @param {{ tabs: [string, string, number?][], shown: string }} props */
export function PaneTabs({ tabs, shown }) {
  const { path, query: asked } = place.value;
  /** @param {string} tab */
  const to = (tab) => `${path}${query({ ...Object.fromEntries(asked), tab })}`;
  return html`
    <${Tabs} label="Parts of this row" link=${Link}
      tabs=${tabs.map(([tab, name, count]) => ({ name, count, to: to(tab), here: tab === shown }))} />
  `;
}

/** @param {any} props */
function PaneHead({ store, row, step, call }) {
  const head = store.head.value;
  const tree = store.tree.value;
  const [word, icon, tone] = stateOf(row);
  const writing = store.streams.value.has(call?.path ?? "") || streamOf(store, row.path);
  const took = tookOf(row, Date.now() / 1000 - tree.start);
  const usage = row.in || row.out ? `${number(row.in)} in, ${number(row.out)} out` : "";
  return html`
    <header class="pane-head">
      <p class="pane-crumbs small">${head.title}${above(tree, row.path).map((parent) =>
        html`
          <span aria-hidden="true"> › </span><${Link} key=${parent.path} to=${rowLink(head.id, parent.path)}>${parent
            .label}</${Link}>
        `
      )}</p>
      <div class="pane-title">
        <h2 id="pane-title" tabindex="-1">${row.label}</h2>
        <span class="status tone-${tone}"><${Icon} name=${icon} />${writing ? "writing" : word}</span>
        <span class="push"></span>
        ${call?.kind === "model" && call.state === "ok" &&
          html`
            <${Link} class="button act-try"
              to="/runs/${part(head.id)}/try/${part(call.path)}"><${Icon} name="edit" />Try it</${Link}>
          `}
        ${row.kind !== "group" && head.actions.some((/** @type {any} */ action) => action.name === "fork") &&
          html`
            <${Link} class="button act-fork" to="/runs/${part(head.id)}/fork?from=${encodeURIComponent(row.path)}"
              title=${step?.commands.fork ?? ""}><${Icon} name="fork" />Fork from here</${Link}>
          `}
      </div>
      <p class="pane-facts soft number">${[
        call?.model ?? row.hint,
        took ? duration(took) : "",
        usage,
        row.cost ? money(row.cost) : "",
        row.effects > 1 ? plural(row.effects, "call") : "",
        row.waited && !waitsOnly(row) ? `waited ${duration(row.waited)}` : "",
      ].filter(Boolean).map((fact) => html`<span>${fact}</span>`)}</p>
    </header>
  `;
}

/** @param {any} store @param {string} path @returns {[string, import("../run_store.js").Stream] | undefined} */
function streamOf(store, path) {
  const texts = [...store.streams.value].filter(([at]) => at === path || at.startsWith(`${path}/`));
  return texts[texts.length - 1];
}

/** What came of a row: a question and its answer, a text that is being written, a reply, the output of a step. @param {any} props */
function Reply({ store, row, step, call }) {
  const head = store.head.value;
  const open = head.questions.filter((/** @type {any} */ question) => within(question.path, row.path)).slice(0, 5);
  const asked = (step?.effects ?? []).filter((/** @type {any} */ ask) => ask.kind === "ask" && ask.state !== undefined);
  const writes = streamOf(store, row.path);
  const answers = (step?.answers ?? []).filter((/** @type {any} */ answer) =>
    !asked.some((/** @type {any} */ ask) => ask.path === answer.path)
  );
  if (row.kind === "group") return html`<${GroupRow} store=${store} row=${row} />`;
  return html`
    ${step?.survived
      ? html`<p class="step-message survived pre">Failed, and the run continued: ${step.survived}</p>`
      : (step?.message || call?.error) && html`<p class="step-message pre">${step.message || call.error.message}</p>`}
    ${open.map((/** @type {any} */ item) => html`<${RunQuestion} key=${item.path} head=${head} question=${item} />`)}
    ${answers.map((/** @type {any} */ answer) => html`<${Answered} key=${answer.path} answer=${answer} />`)}
    ${step?.set.map((/** @type {any} */ values) =>
      html`<p class="by-hand"><${Icon} name="edit" />Set by hand at the end of this step: ${
        Object.keys(values).join(", ")
      }</p>`
    )}
    ${row.children ? "" : asked.map((/** @type {any} */ ask) => html`<${Asked} key=${ask.path} effect=${ask} />`)}
    <${Writing} store=${store} row=${row} writes=${writes} />
    ${step && !writes &&
      html`<${Recorded} run=${head.id} row=${row} step=${step} call=${call} quiet=${asked.length + open.length > 0} />`}
  `;
}

/** @param {string} path @param {string} above */
function within(path, above) {
  return path === above || path.startsWith(`${above}/`);
}

/** @param {any} props */
function Recorded({ run, row, step, call, quiet }) {
  if (row.state === "stopped") return html`<p class="soft">Stopped. The reply was not kept.</p>`;
  if (call) {
    if (call.state === undefined || call.state === "intent") {
      return html`<p class="soft">${
        row.state === "running" ? "It has not answered yet." : "It began, and its end is not known."
      }</p>`;
    }
    const reply = call.answer_value;
    const text = reply && typeof reply === "object" && call.kind === "model" ? reply.text : reply;
    const uses = (call.kind === "model" && reply && typeof reply === "object" && reply.uses) || [];
    const title = call.kind === "tool" ? "Result" : "Reply";
    return html`
      ${call.reused &&
        html`<p class="soft">Reused from run <${Link} to="/runs/${call.reused}">${call.reused}</${Link}></p>`}
      ${call.answer_cut
        ? html`<${LongText} run=${run} path=${call.path} title=${title} />`
        : text
        ? html`<${Any} value=${text} html=${call.html} title=${title} />`
        : call.state === "ok" && !uses.length && html`<p class="soft">The reply is empty.</p>`}
      ${uses.map((/** @type {any} */ use) => html`<${Use} name=${use[1]} value=${use[2]} />`)}
    `;
  }
  if (step.output_cut) return html`<${LongText} run=${run} path=${row.path} title="Output of the step" />`;
  if (step.output) return html`<${Any} value=${step.output} html=${step.output_html} title="Output of the step" />`;
  if (quiet) return null;
  return html`<p class="soft">${
    row.state === "pending"
      ? "This step has not begun."
      : row.state === "skipped"
      ? "This step was skipped."
      : row.children
      ? "The rows below have its parts."
      : "It has recorded nothing of its own."
  }</p>`;
}

/** A text as what it looks like, any other value as a tree. @param {{ value: any, html?: string, title: string }} props */
function Any({ value, html: rendered, title }) {
  if (typeof value !== "string") return html`<${AnyValue} value=${value} label=${title} />`;
  return html`<${Content} type=${isJson(value) ? "json" : "markdown"} text=${value} html=${rendered} title=${title} />`;
}

/** @param {string} text */
function isJson(text) {
  if (!/^\s*[[{]/.test(text)) return false;
  try {
    return Boolean(JSON.parse(text));
  } catch {
    return false;
  }
}

/** The text that a model is writing now. @param {{ store: any, row: any, writes: any }} props */
function Writing({ store, row, writes }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const atEnd = useRef(true);
  const text = writes?.[1].text ?? "";
  useEffect(() => {
    if (box.current && atEnd.current) box.current.scrollTop = box.current.scrollHeight;
  }, [text]);
  const reading = [...store.readings.value].find(([at]) => within(at, row.path))?.[1];
  if (reading) {
    return html`<p class="soft small"><${Icon} name="running" />The model is reading the prompt ${
      number(reading.processed)
    }/${number(reading.total)}</p>`;
  }
  if (!text) {
    if (row.state !== "running" || row.children || store.head.value.driven_here) return null;
    return html`<p class="soft">Written in another process; the text appears when the step ends.</p>`;
  }
  const left = writes[1].from + Math.max(0, text.length - SHOWN_STREAM);
  return html`
    <div class="streaming">
      <p class="visually-hidden" role="status" key=${writes[0]}>${row.label} is writing its reply.</p>
      ${left > 0 && html`<p class="left-out">${number(left)} characters before this are shown when it ends.</p>`}
      <pre ref=${box} class="source" tabindex="0" aria-live="off" aria-label="Text that is being written"
        onScroll=${(/** @type {any} */ event) => {
          const place = event.currentTarget;
          atEnd.current = place.scrollHeight - place.scrollTop - place.clientHeight < 24;
        }}>${text.slice(-SHOWN_STREAM)}</pre>
    </div>
  `;
}

/** @param {{ effect: any }} props */
function Asked({ effect }) {
  const hasAnswer = effect.answer_value !== undefined && effect.answer_value !== null;
  return html`
    <p class="prompt pre">${effect.prompt}</p>
    ${effect.options?.length > 0 && html`<p class="soft">${effect.options.join(" · ")}</p>`}
    ${hasAnswer && html`
      <p class="answer-given"
        role="status"><${Icon} name="check" />answered <strong class="pre">${String(
          effect.answer_value,
        )}</strong>${effect.by ? ` by ${who(effect.by)}` : ""}</p>
    `}
  `;
}

/** Items of one state: the order of their rows. @param {{ store: import("../run_store.js").RunStore, row: any }} props */
function GroupRow({ store, row }) {
  const order = store.opened.get(row.path)?.order || "document";
  return html`
    <p class="soft">${plural(row.children, "item")}. ${row.hint}</p>
    <div class="switch" role="group" aria-label="Order of the items">
      ${[["document", "As in the document"], ["slowest", "Slowest first"], ["first", "First to begin"]].map((
        [name, label],
      ) =>
        html`
          <button key=${name} type="button" aria-pressed=${order === name}
            onClick=${() => store.open(row.path, name)}>${label}</button>
        `
      )}
    </div>
  `;
}
