// Edits a document in a text field. The server checks while one types; it saves only over the version that was read, and
// a conflict shows both texts.

import { ApiProblem, get, part, post, send } from "../api.js";
import { html, useEffect, useMemo, useRef, useState } from "../html.js";
import { setQuery } from "../router.js";
import { plural } from "../words.js";
import { Command, ProblemBox } from "./basics.js";
import { Note } from "./document_source.js";
import { Icon } from "./icon.js";
import { wordDiff } from "./word_diff.js";

const PAUSE = 250;
/** Texts that are not saved, with the hash of the version that they began with, by document. @type {Map<string, { text: string, sha256: string }>} */
const drafts = new Map();

/** @param {{ id: string, data: any, reload: () => void, onExplain: (code: string) => void }} props */
export function DocumentEdit({ id, data, reload, onExplain }) {
  const kept = drafts.get(id);
  const [text, setText] = useState(kept?.text ?? data.source.text);
  const [base, setBase] = useState(kept?.sha256 ?? data.source.sha256);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState(/** @type {import("../api.js").Problem | null} */ (null));
  const [theirs, setTheirs] = useState(/** @type {any} */ (null));
  const [saved, setSaved] = useState(false);
  const field = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  const checked = useChecked(id, text);
  const changed = text !== data.source.text || base !== data.source.sha256;

  useEffect(() => {
    if (changed) drafts.set(id, { text, sha256: base });
    else drafts.delete(id);
  }, [text, base, changed]);
  useEffect(() => {
    /** @param {BeforeUnloadEvent} event */
    const warn = (event) => drafts.size > 0 && event.preventDefault();
    addEventListener("beforeunload", warn);
    return () => removeEventListener("beforeunload", warn);
  }, []);

  /** @param {string} sha256 the version to save over */
  const save = async (sha256) => {
    setBusy(true);
    setProblem(null);
    try {
      const headers = { "If-Match": `"${sha256.slice(0, 32)}"` };
      const now = await (await send("PUT", `/documents/${part(id)}`, { body: { text }, headers })).json();
      setBase(now.source.sha256);
      setTheirs(null);
      setSaved(true);
      drafts.delete(id);
      reload();
    } catch (error) {
      if (!(error instanceof ApiProblem)) throw error;
      if (error.problem.status === 412) setTheirs((await get(`/documents/${part(id)}?fields=source`)).source);
      else setProblem(error.problem);
    } finally {
      setBusy(false);
    }
  };
  /** @param {KeyboardEvent} event */
  const onKeyDown = (event) => {
    if (event.key === "s" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      if (changed && !busy) save(base);
    }
  };
  const take = () => {
    setText(theirs.text);
    setBase(theirs.sha256);
    setTheirs(null);
    reload();
  };
  return html`
    <div class="source-head">
      <p class="soft small" role="status">${theirs
        ? "not saved"
        : changed
        ? "changed, not saved"
        : saved
        ? "saved"
        : "as in the file"}</p>
      <div class="actions push">
        <button type="button" class="button" onClick=${() => (drafts.delete(id), setQuery({ edit: undefined }))}>
          ${changed ? "Discard" : "Done"}</button>
        <button type="button" class="button primary" disabled=${busy || !changed || Boolean(theirs)} onClick=${() =>
          save(base)}>
          Save</button>
        <span class="soft small hint">Ctrl-S</span>
      </div>
    </div>
    ${problem && html`<${ProblemBox} problem=${problem} />`}
    ${theirs &&
      html`<${Conflict} mine=${text} theirs=${theirs.text} onMine=${() => save(theirs.sha256)} onTheirs=${take} />`}
    <div class="edit-columns">
      <textarea ref=${field} class="edit-text" aria-label="Text of the document" spellcheck="false" value=${text}
        onKeyDown=${onKeyDown} onInput=${(
          /** @type {any} */ event,
        ) => (setText(event.target.value), setSaved(false))}></textarea>
      <aside class="edit-findings" aria-label="Findings">
        <p class="soft small" role="status">${checked.words}</p>
        ${checked.findings.slice(0, 40).map((one, at) =>
          html`
            <div key=${at}>
              <button type="button" class="link small" onClick=${() => jump(field.current, one.line)}>line ${one
                .line}</button>
              <${Note} finding=${one} onExplain=${onExplain} />
            </div>
          `
        )}
        <p><${Command} command=${data.commands.check} /></p>
      </aside>
    </div>
  `;
}

/**
 * What the checker says about a text, asked again shortly after the last key.
 *
 * @param {string} id
 * @param {string} text
 */
function useChecked(id, text) {
  const [state, setState] = useState({ findings: /** @type {any[]} */ ([]), words: "checking …" });
  useEffect(() => {
    let gone = false;
    const timer = setTimeout(async () => {
      try {
        const found = await post("/documents/check", { text, path: id });
        const count = found.diagnostics.length;
        const bound = found.bounds ? ` · ${found.bounds.sentence}` : "";
        if (!gone) {
          setState({
            findings: found.diagnostics,
            words: `${count ? plural(count, "finding") : "no findings"}${bound}`,
          });
        }
      } catch (error) {
        if (!(error instanceof ApiProblem)) throw error;
        const problem = error.problem;
        if (!gone) setState((now) => ({ ...now, words: `not checked: ${problem.detail}` }));
      }
    }, PAUSE);
    return () => {
      gone = true;
      clearTimeout(timer);
    };
  }, [id, text]);
  return state;
}

/** @param {HTMLTextAreaElement | null} field @param {number} line */
function jump(field, line) {
  if (!field) return;
  const lines = field.value.split("\n");
  const start = lines.slice(0, line - 1).reduce((all, one) => all + one.length + 1, 0);
  field.focus();
  field.setSelectionRange(start, start + (lines[line - 1]?.length ?? 0));
}

/** @param {{ mine: string, theirs: string, onMine: () => void, onTheirs: () => void }} props */
function Conflict({ mine, theirs, onMine, onTheirs }) {
  const pieces = useMemo(() => wordDiff(theirs, mine), [mine, theirs]);
  return html`
    <div class="problem conflict" role="alert">
      <${Icon} name="warning" />
      <div>
        <p><strong>The file has changed since you read it.</strong> Nothing is saved yet.</p>
        <p class="soft">Your changes to the text as it is now:</p>
        <pre class="edit-diff" tabindex="0" role="region" aria-label="Difference">${pieces.map(({ kind, text }) =>
          kind === "same" ? shortened(text) : kind === "old" ? html`<del>${text}</del>` : html`<ins>${text}</ins>`
        )}</pre>
        <p class="actions">
          <button type="button" class="button danger" onClick=${onMine}>Save mine over it</button>
          <button type="button" class="button" onClick=${onTheirs}>Take the file as it is</button>
        </p>
      </div>
    </div>
  `;
}

/** Leaves out the middle of a long text that both have. @param {string} text */
function shortened(text) {
  const lines = text.split("\n");
  return lines.length > 8
    ? [...lines.slice(0, 3), `… ${lines.length - 6} lines …`, ...lines.slice(-3)].join("\n")
    : text;
}
