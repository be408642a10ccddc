// The head of a run in two lines: what it is called, its state, what it took and cost, and what can be done with it.

import { part, send, tryTo } from "../api.js";
import { html, useState } from "../html.js";
import { Link } from "../router.js";
import { ago, duration, money, number, plural, shown, span } from "../words.js";
import { Age, copyText, Fact, ProblemBox, Status } from "./basics.js";
import { Dialog } from "./dialog.js";
import { Icon } from "./icon.js";
import { RunActions } from "./run_actions.js";
import { useSeconds } from "./tree.js";

/** @param {{ store: import("../run_store.js").RunStore, answer: (path: string) => void }} props */
export function RunHead({ store, answer }) {
  const head = /** @type {any} */ (store.head.value);
  const [open, setOpen] = useState("");
  const top = [...(store.tree.value?.rows.values() ?? [])].filter((row) => !row.parent);
  const waited = top.reduce((sum, row) => sum + row.waited, 0);
  const now = useSeconds(head.status === "running", store.tree.value);
  const name = head.label ?? head.title ?? head.document;
  return html`
    <header class="run-head">
      <${Link} class="icon-button" to="/runs" aria-label="All runs"><${Icon} name="left" /></${Link}>
      <div class="run-names">
        <div class="run-title">
          <h1 tabindex="-1">${name}</h1>
          <${Status} status=${head.status} />
          <button type="button" class="icon-button" aria-label="Name and note" data-needs="run" title=${head.note ||
            "Name and note"}
            onClick=${() => setOpen("name")}><${Icon} name="edit" /></button>
        </div>
        <p class="run-facts number">
          <span>${head.title}</span> <code>${head.id}</code>
          <span><b>${duration(Math.max(0, now - waited))}</b>${waited >= 1 &&
            ` + ${span(waited)} waiting`}</span>
          <span><b>${money(head.cost)}</b>${head.budget ? ` of ≤ ${money(head.budget)}` : ""}</span>
          <span>${head.status === "running"
            ? html`started <${Age} at=${head.created_at} />`
            : html`${
              /^(completed|failed|cancelled|expired)$/.test(head.status) ? "ended" : "since"
            } <${Age} at=${head.updated_at} />`}</span>
          ${head.status === "running" && !head.driven_here && html`<span>driven by another process</span>`}
          <button type="button" class="link" onClick=${() => setOpen("details")}>Details</button>
          ${head.warnings.length > 0 && html`<span class="ink-warn">${plural(head.warnings.length, "warning")}</span>`}
        </p>
        <p class="run-words visually-hidden" role="status">${statusWords(head)}</p>
      </div>
      <${RunActions} head=${head} store=${store} answer=${answer} />
    </header>
    ${open === "name" && html`<${Naming} head=${head} store=${store} close=${() => setOpen("")} />`}
    ${open === "details" && html`
      <${Dialog} title="Details of the run" onClose=${() => setOpen("")}>
        <${Details} head=${head} />
        </${Dialog}>
    `}
  `;
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
      if (head.waits) return `Waits ${head.waits}${where && ` (${where})`}. Resume continues at once.`;
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
function Details({ head }) {
  const driver = head.driven_here
    ? "this server"
    : head.status === "running"
    ? "another process; text appears when a step ends"
    : "no process";
  return html`
    <dl class="facts">
      <${Fact}
        name="Run"><code>${head.id}</code> <button type="button" class="link" onClick=${() =>
          copyText(head.id)}>Copy</button></${Fact}>
      <${Fact} name="Document">
        <${Link} to="/documents/${part(head.document_id ?? head.document)}">${head.document_id ??
          head.document}</${Link}>
        ${head.document_changed &&
          html`, <${Link} class="changed" to="/runs/${head.id}?tab=document">the file has changed since</${Link}>`}</${Fact}>
      ${head.note && html`<${Fact} name="Note"><span class="pre">${head.note}</span></${Fact}>`}
      ${head.model && html`<${Fact} name="Model">${head.model}</${Fact}>`}
      <div><dt>Started</dt><dd><${Age} at=${head.created_at} /></dd></div>
      <div><dt>Tokens</dt><dd class="number">${number(head.input_tokens)} in, ${number(
        head.output_tokens,
      )} out</dd></div>
      <div><dt>Driven by</dt><dd>${driver}</dd></div>
      ${head.origin && html`
        <${Fact} name="Fork of">
          <${Link} to="/runs/${head.origin.run}">${head.origin.run}</${Link}> at step ${head.origin.step}</${Fact}>
      `}
      ${head.reused && html`
        <${Fact} name="Reused">${plural(head.reused.replies, "reply", "replies")} of <${Link}
          to="/runs/${head.reused.run}">${head.reused.run}</${Link}>${head.reused.saved.cost
            ? `, saved ${money(head.reused.saved.cost)}`
            : ""}</${Fact}>
      `}
    </dl>
    ${head.warnings.length > 0 && html`
      <h3>Warnings</h3>
      <ul class="advice">${head.warnings.map((/** @type {any} */ warning) =>
        html`<li class="pre">${warning.way && `step ${warning.way}: `}${warning.message}</li>`
      )}</ul>
    `}
  `;
}

/** A name and a note of the user for a run. @param {{ head: any, store: any, close: () => void }} props */
function Naming({ head, store, close }) {
  const [problem, setProblem] = useState(/** @type {any} */ (null));
  /** @param {any} event */
  const save = async (event) => {
    event.preventDefault();
    const { name, note } = event.target.elements;
    await tryTo(setProblem, async () => {
      const body = { name: name.value.trim() || null, note: note.value.trim() || null };
      const row = await (await send("PATCH", `/runs/${part(head.id)}`, { body })).json();
      store.show({ ...head, ...row });
      close();
    });
  };
  return html`
    <${Dialog} title="Name and note" onClose=${close}>
      <form class="resume" onSubmit=${save}>
        <label for="run-name">Name <span class="soft">instead of “${head.subject ?? head.title}”</span></label>
        <input id="run-name" name="name" maxlength="80" value=${head.name ?? ""} />
        <label for="run-note">Note</label>
        <textarea id="run-note" name="note" rows="5" maxlength="2000">${head.note ?? ""}</textarea>
        ${problem && html`<${ProblemBox} problem=${problem} />`}
        <div class="actions"><button type="submit" class="button primary">Save</button></div>
      </form>
      </${Dialog}>
  `;
}
