// Try it: one model call with another prompt, model, temperature or values, beside the recorded reply. What it costs is
// said before the click; nothing of the run changes.

import { ApiProblem, part, post, send, tryTo } from "../api.js";
import { lostSince } from "../feed.js";
import { html, useEffect, useState } from "../html.js";
import { Command, Placeholder, ProblemBox } from "../parts/basics.js";
import { Icon } from "../parts/icon.js";
import { TextDiff } from "../parts/diff.js";
import { Receipt, Sum, TryCard } from "../parts/try_card.js";
import { Link } from "../router.js";
import { cut, number } from "../words.js";

const PAUSE = 300;

/** @typedef {{ prompt?: string, model?: string, temperature?: number, set?: Record<string, unknown>, n: number }} Changes */

/** @param {{ run: string, path: string }} props */
export function Try({ run, path }) {
  const [changes, setChanges] = useState(/** @type {Changes} */ ({ n: 3 }));
  const receipt = useReceipt(run, path, changes);
  const [said, setSaid] = useState("");
  const [problem, setProblem] = useState(/** @type {any} */ (null));
  const [busy, setBusy] = useState(false);
  const [plain, setPlain] = useState(false);
  const [drafted, setDrafted] = useState(/** @type {any} */ (null));
  const { data, tries } = receipt;
  /** @param {Partial<Changes>} more */
  const change = (more) => {
    setChanges((now) => ({ ...now, ...more }));
    setSaid("");
  };
  /** @param {() => Promise<void>} work */
  const attempt = async (work) => {
    setBusy(true);
    await tryTo(setProblem, work);
    setBusy(false);
  };
  const start = () =>
    attempt(async () => {
      const made = await post(`/runs/${part(run)}/tries`, { path, ...changes });
      receipt.add(made.tries);
    });
  const write = () =>
    attempt(async () => {
      const { id, etag, text } = data.document;
      await send("PUT", `/documents/${part(id)}`, { body: { text }, headers: { "If-Match": etag } });
      setSaid(`Written into ${id}.`);
      receipt.reload();
    });
  /** @param {any} tried */
  const keep = (tried) =>
    attempt(async () => {
      const made = await post(`/runs/${part(tried.id)}/test`, { write: data.editable });
      setDrafted(made);
      setSaid(made.written ? `Added to ${made.file}.` : `${made.file} is not written: the server has no --edit.`);
    });
  const stop = () =>
    attempt(async () => {
      const live = tries.filter((/** @type {any} */ trial) => /^(pending|running)$/.test(trial.status));
      await Promise.all(live.map((/** @type {any} */ trial) => post(`/runs/${part(trial.id)}/cancel`)));
    });
  if (!data) {
    return html`
      <h1 tabindex="-1">Try it</h1>
      ${receipt.problem
        ? html`
          <p class="crumbs">
            <${Link} to="/runs/${part(run)}"><${Icon} name="left" />The run</${Link}></p>
          <${ProblemBox} problem=${receipt.problem} />
        `
        : html`<${Placeholder} lines=${6} />`}
    `;
  }
  const changed = changes.prompt !== undefined && changes.prompt !== data.prompt;
  return html`
    <div class="try">
      <header class="run-head">
        <${Link} class="icon-button" to=${`/runs/${part(run)}?step=${encodeURIComponent(data.path)}`}
          aria-label="Back to the run"><${Icon} name="left" /></${Link}>
        <div class="run-names">
          <div class="run-title">
            <h1 tabindex="-1">Try it: ${data.step} ${data.title}</h1>
            <span class="status tone-quiet">nothing of the run changes</span>
          </div>
          <p class="run-facts"><span>${data.recorded.label}</span><span>${data.recorded.title}</span></p>
        </div>
        <div class="run-actions">
          <${Command} command=${data.command} />
          ${changed && html`
            <button type="button" class="button" onClick=${write} disabled=${busy || receipt.stale || !data.editable ||
              !data.document}
              title=${!data.editable
                ? "This server was started without --edit"
                : !data.document
                ? "The file has another prompt at this step now"
                : undefined}><${Icon} name="edit" />Write into the document</button>
          `}
        </div>
      </header>
      <p class="try-said" role="status">${said}</p>
      ${problem && html`<${ProblemBox} problem=${problem} />`}
      ${drafted && html`
        <details class="card try-case">
          <summary>${drafted.case}</summary>
          <pre class="source" tabindex="0">${drafted.text}</pre>
          <p>
            <${Command} command=${drafted.command} />
          </p>
        </details>
      `}
      <div class="try-sides">
        <section aria-label="The call">
          <${Prompt} data=${data} changes=${changes} change=${change} changed=${changed} />
          <${Model} data=${data} changes=${changes} change=${change} />
          <${Values} values=${data.values} set=${changes.set ?? {}} change=${change} />
          ${receipt.problem && html`<${ProblemBox} problem=${receipt.problem} />`}
          <${Receipt} data=${data} changes=${changes} change=${change} start=${start}
            blocked=${busy || receipt.stale || Boolean(receipt.problem) || lostSince.value > 0} />
        </section>
        <section aria-label="Replies">
          <div class="try-title">
            <h2>Replies</h2>
            <div class="switch push" role="group" aria-label="How to show them">
              <button type="button" aria-pressed=${!plain} onClick=${() => setPlain(false)}>Difference</button>
              <button type="button" aria-pressed=${plain} onClick=${() => setPlain(true)}>Plain</button>
            </div>
          </div>
          <${TryCard} tried=${data.recorded} schema=${data.schema} recorded="" name="Recorded" plain=${true} />
          ${tries.map((/** @type {any} */ trial, /** @type {number} */ at) =>
            html`
              <${TryCard} key=${trial.id} tried=${trial} schema=${data.schema} recorded=${data.recorded.reply ?? ""}
                name=${`Try ${at + 1}`} plain=${plain} done=${receipt.reload} keep=${keep} busy=${busy} />
            `
          )}
          <${Sum} tries=${tries} schema=${data.schema} stop=${stop} />
        </section>
      </div>
    </div>
  `;
}

/** @param {any} props */
function Prompt({ data, changes, change, changed }) {
  const text = changes.prompt ?? data.prompt ?? "";
  return html`
    <div class="try-title">
      <h2><label for="try-prompt">Prompt</label></h2>
      ${changed && html`<span class="status tone-good">changed</span>`}
      ${changed &&
        html`<button type="button" class="link push" onClick=${() =>
          change({ prompt: undefined })}>Back to the recorded one</button>`}
    </div>
    ${data.prompt === null ? html`<p class="soft">${data.why}</p>` : html`
      <textarea id="try-prompt" class="edit-text try-prompt" spellcheck="false" value=${text}
        onInput=${(/** @type {any} */ event) => change({ prompt: event.target.value })}></textarea>
    `}
    ${changed && html`
      <details>
        <summary>Changes of the prompt</summary>
        <${TextDiff} a=${data.prompt} b=${text} />
      </details>
    `}
  `;
}

/** @param {any} props */
function Model({ data, changes, change }) {
  return html`
    <div class="try-model">
      <label>Model <input value=${changes.model ?? ""} placeholder=${`${data.model} (as recorded)`}
        autocomplete="off" spellcheck="false"
        onChange=${(/** @type {any} */ event) => change({ model: event.target.value.trim() || undefined })} /></label>
      <label>Temperature <input inputmode="decimal" value=${changes.temperature ?? ""}
        placeholder=${data.temperature ?? "as recorded"}
        onChange=${(/** @type {any} */ event) => {
          const text = event.target.value.trim();
          change({ temperature: text && Number(text) >= 0 && Number(text) <= 2 ? Number(text) : undefined });
        }} /></label>
    </div>
  `;
}

/** @param {{ values: any[], set: Record<string, unknown>, change: (more: any) => void }} props */
function Values({ values, set, change }) {
  if (!values.length) return null;
  return html`
    <div
      class="try-title"><h2>Values</h2><span class="soft small">as the step read them; change one to try another case</span></div>
    <div class="try-values">
      ${values.map((value) => html`<${Value} key=${value.name} value=${value} set=${set} change=${change} />`)}
    </div>
  `;
}

/** @param {any} props */
function Value({ value, set, change }) {
  const [wrong, setWrong] = useState(false);
  const isText = typeof value.value === "string";
  const now = Object.hasOwn(set, value.name) ? set[value.name] : value.value;
  const text = isText && typeof now === "string" ? now : JSON.stringify(now);
  /** @param {any} event */
  const onChange = (event) => {
    const { [value.name]: _, ...rest } = set;
    try {
      const typed = isText ? event.target.value : JSON.parse(event.target.value);
      setWrong(false);
      const same = JSON.stringify(typed) === JSON.stringify(value.value);
      const all = same ? rest : { ...rest, [value.name]: typed };
      change({ set: Object.keys(all).length ? all : undefined });
    } catch {
      setWrong(true);
    }
  };
  return html`
    <label><code>${value.name}</code>
      <textarea rows="1" spellcheck="false" value=${text} aria-invalid=${wrong} onChange=${onChange}></textarea>
      <span class="soft small">${wrong
        ? "not JSON"
        : `${cut(value.source, 40)}${text.length > 200 ? ` · ${number(text.length)} chars` : ""}`}</span>
    </label>
  `;
}

/**
 * The receipt of the next tries, asked for again a moment after each change, and the tries so far.
 *
 * @param {string} run
 * @param {string} path
 * @param {Changes} changes
 */
function useReceipt(run, path, changes) {
  const [state, setState] = useState({ key: "", data: /** @type {any} */ (null), problem: /** @type {any} */ (null) });
  const [tries, setTries] = useState(/** @type {any[]} */ ([]));
  const [again, setAgain] = useState(0);
  const key = JSON.stringify({ path, ...changes, dry_run: true });
  useEffect(() => {
    let gone = false;
    const timer = setTimeout(async () => {
      try {
        const headers = { "Idempotency-Key": `${Math.random()}${Date.now()}` };
        const answer = await post(`/runs/${part(run)}/tries`, JSON.parse(key), headers);
        if (gone) return;
        setState({ key, data: answer.receipt, problem: null });
        setTries(answer.tries);
      } catch (error) {
        if (!(error instanceof ApiProblem)) throw error;
        const { problem } = error;
        if (!gone) setState((now) => ({ key, data: now.data, problem }));
      }
    }, state.data ? PAUSE : 0);
    return () => {
      gone = true;
      clearTimeout(timer);
    };
  }, [run, key, again]);
  return {
    ...state,
    tries,
    stale: state.key !== key,
    reload: () => setAgain((count) => count + 1),
    add: (/** @type {any[]} */ more) => setTries((now) => [...now, ...more]),
  };
}
