// The frame of every screen of a run: its head in words and numbers, the actions that are legal now, the open question,
// and the tabs. A screen passes its own content as children; `useRun` gives the same run to the parts inside.

import { part } from "../api.js";
import { html, useEffect, useState } from "../html.js";
import { addShortcuts } from "../keys.js";
import { useRun } from "../run_store.js";
import { go, Link, useTitle } from "../router.js";
import { ago, duration, money, number, plural, shown, span } from "../words.js";
import { Age, copyText, Placeholder, ProblemBox, Status, Tabs } from "./basics.js";
import { Guarded } from "./guarded.js";
import { Icon } from "./icon.js";
import { RunActions } from "./run_actions.js";
import { QuestionBar } from "./run_question.js";

/** Tabs of a run: name, end of the address, key. @type {[string, string, string][]} */
const TABS = [
  ["Steps", "", "s"],
  ["Graph", "graph", "g"],
  ["Timeline", "timeline", "t"],
  ["Journal", "journal", ""],
  ["Values", "values", "v"],
  ["Transcript", "transcript", ""],
  ["Artifact", "artifact", ""],
];

/**
 * `tab` is the end of the address: "" for the steps, "graph", "timeline" and so on. `children` are drawn once the head
 * is known; a function gets the store of the run.
 *
 * @param {{ run: string, tab: string, children?: any }} props
 */
export function RunFrame({ run, tab, children }) {
  const store = useRun(run);
  const head = store.head.value;
  useRunKeys(run, head);
  useTitle(head?.label ?? `Run ${run}`);
  if (!head) {
    return html`
      <h1 tabindex="-1">Run ${run}</h1>
      ${store.problem.value
        ? html`<${ProblemBox} problem=${store.problem.value} retry=${() => store.load()} />`
        : store.slow.value && html`<${Placeholder} lines=${6} />`}
    `;
  }
  const to = `/runs/${head.id}`;
  const tabs = TABS.filter(([, end]) => end !== "transcript" || hasThread(head) || tab === end).map(([name, end]) => ({
    name,
    to: end ? `${to}/${end}` : to,
    here: end === tab,
    count: end === "journal" ? head.effects_total : undefined,
  }));
  return html`
    <header class="run-head">
      <div class="run-title">
        <h1 tabindex="-1">${head.title || head.document}</h1>
        <${Status} status=${head.status} />
        <button type="button" class="run-id" title="Copy the id of the run"
          onClick=${() => copyText(head.id)}><code>${head.id}</code><${Icon} name="copy" /></button>
      </div>
      <p class="run-words" role="status">${statusWords(head)}</p>
      <${Facts} head=${head} />
      <${RunActions} head=${head} store=${store} />
    </header>
    ${head.seal_problem
      ? html`<p class="step-message pre" role="status"><${Icon} name="warning" /> ${head.seal_problem}</p>`
      : html`<${QuestionBar} head=${head} />`}
    <${Tabs} label="Views of the run" tabs=${tabs} link=${Link} />
    ${head.problem ? html`<p class="step-message pre">Its steps cannot be shown here: ${head.problem}</p>` : null}
    <${Guarded} key=${tab} what="this view">${typeof children === "function" ? children(store) : children}</${Guarded}>
  `;
}

/** @param {any} head */
export function hasThread(head) {
  return head.format === "directive" || head.steps.some((/** @type {any} */ step) => step.thread);
}

/** @param {any} head @returns {string} the state of a run as a sentence */
export function statusWords(head) {
  const where = head.way ? `step ${head.way}` : "";
  const expires = head.expires_at ? `, expires in ${span(head.expires_at - Date.now() / 1000)}` : "";
  switch (head.status) {
    case "awaiting_input": {
      const asked = head.questions[0]?.asked_at ?? head.updated_at;
      const many = head.questions.length > 1 ? `${head.questions.length} answers` : "an answer";
      return `Waits for ${many} since ${span(Date.now() / 1000 - asked)}${expires}.`;
    }
    case "paused":
      return `Paused${where && ` after ${where}`}${expires}. Resume continues there.`;
    case "running":
      return `Running${where && `: ${where}`}.`;
    case "interrupted":
      return `Interrupted${where && ` at ${where}`}: the process that drove it is gone. Resume continues there.`;
    case "failed":
      return `Failed${where && ` at ${where}`}: ${head.error?.message ?? "no reason is recorded"}`;
    case "completed":
      return `Completed ${ago(head.updated_at)}.`;
    case "pending":
      return "Not begun yet.";
    default: {
      const word = shown(head.status).word;
      return `${word[0].toUpperCase()}${word.slice(1)}${where && ` at ${where}`}.`;
    }
  }
}

/** @param {{ head: any }} props */
function Facts({ head }) {
  const tokens = head.input_tokens + head.output_tokens;
  return html`
    <dl class="facts">
      <div>
        <dt>Document</dt>
        <dd>
          <${Link} to="/documents/${part(head.document_id ?? head.document)}">${head.document_id ??
            head.document}</${Link}>${head.document_changed &&
            html`<${Link} class="changed" to="/runs/${head.id}/document">the file has changed since</${Link}>`}</dd></div>
      ${head.model && html`
        <div>
          <dt>Model</dt>
          <dd>${head.model}</dd>
        </div>
      `}
      <div><dt>Started</dt><dd><${Age} at=${head.created_at} /></dd></div>
      <div><dt>Elapsed</dt><dd class="number"><${Elapsed} head=${head} /></dd></div>
      <div><dt>Cost</dt><dd class="number"><${Cost} head=${head} /></dd></div>
      <div><dt>Tokens</dt><dd class="number" title="${number(head.input_tokens)} in, ${number(
        head.output_tokens,
      )} out">${number(tokens)}</dd></div>
      <div><dt>Driven by</dt><dd>${driver(head)}</dd></div>
      ${head.origin && html`
        <div>
          <dt>Fork of</dt>
          <dd>
            <${Link} to="/runs/${head.origin.run}">${head.origin.run}</${Link}> at step ${head.origin.step}</dd></div>
      `}
      ${head.reused && html`
        <div>
          <dt>Reused</dt>
          <dd>${plural(head.reused.replies, "reply", "replies")} of <${Link} to="/runs/${head.reused.run}">${head.reused
            .run}</${Link}>${head.reused.saved.cost ? `, saved ${money(head.reused.saved.cost)}` : ""}</dd></div>
      `}
    </dl>
    ${head.warnings.length > 0 && html`
      <details class="warnings">
        <summary><${Icon} name="warning" />${plural(head.warnings.length, "warning")}</summary>
        <ul>${head.warnings.map((/** @type {any} */ one) =>
          html`<li>${one.way && `step ${one.way}: `}${one.message}</li>`
        )}</ul>
      </details>
    `}
  `;
}

/** @param {any} head */
function driver(head) {
  if (head.driven_here) return "this server";
  return head.status === "running" ? "another process; text appears when a step ends" : "no process";
}

/** @param {{ head: any }} props */
function Elapsed({ head }) {
  const live = head.status === "running";
  const [, tick] = useState(0);
  useEffect(() => {
    if (!live) return;
    const timer = setInterval(() => tick((count) => count + 1), 1000);
    return () => clearInterval(timer);
  }, [live]);
  return html`${duration(Math.max(0, (live ? Date.now() / 1000 : head.updated_at) - head.created_at))}`;
}

/** @param {{ head: any }} props */
function Cost({ head }) {
  if (!head.budget) return html`${money(head.cost)}`;
  const spent = head.cost ?? 0;
  return html`
    <meter min="0" max=${head.budget} value=${Math.min(spent, head.budget)} high=${head.budget * 0.8}
      aria-label="Cost of the budget"></meter> ${money(head.cost)} of ${money(head.budget)}
  `;
}

/**
 * @param {string} run
 * @param {any} head
 */
function useRunKeys(run, head) {
  useEffect(() => {
    const shortcuts = TABS.filter(([, , key]) => key).map(([name, end, key]) => ({
      keys: key,
      does: `Show ${name.toLowerCase()}`,
      run: () => go(`/runs/${run}${end && `/${end}`}`),
    }));
    const copy = () =>
      copyText(head?.actions.find((/** @type {any} */ one) => one.command)?.command ?? `quire runs ${run}`);
    return addShortcuts("A run", [
      ...shortcuts,
      { keys: "f", does: "Fork", run: () => go(`/runs/${run}/fork`) },
      { keys: "c", does: "Copy the first action as a command", run: copy },
    ]);
  }, [run, head?.status]);
}
