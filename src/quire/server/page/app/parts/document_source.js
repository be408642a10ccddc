// The source of a document in the editor, and beside it its picture, its findings, its cost and the button that saves.
// It is saved only over the version that was read, and a conflict shows both texts.

import { ApiProblem, get, part, send } from "../api.js";
import { html, useEffect, useRef, useState } from "../html.js";
import { useResource } from "../resource.js";
import { place } from "../router.js";
import { about } from "../shell.js";
import { plural } from "../words.js";
import { Command, Empty, Fact, Placeholder, ProblemBox } from "./basics.js";
import { Dialog } from "./dialog.js";
import { TextDiff } from "./diff.js";
import { DocumentGraph } from "./document_read.js";
import { openEditor } from "./editor.js";
import { Icon } from "./icon.js";

const MOST_SHOWN = 40;
const TONES = /** @type {Record<string, [string, string]>} */ ({
  error: ["bad", "cross"],
  warning: ["warn", "warning"],
  info: ["live", "dot"],
  hint: ["quiet", "dot"],
});
/** Texts that are not saved, with the hash of the version that they began with, by document. @type {Map<string, { text: string, sha256: string }>} */
const drafts = new Map();

addEventListener("beforeunload", (event) => drafts.size > 0 && event.preventDefault());

/** @param {{ id: string, data: any, reload: () => void, lenses: Record<string, (args: string[]) => void> }} props */
export function DocumentSource({ id, data, reload, lenses }) {
  const host = useRef(/** @type {HTMLElement | null} */ (null));
  const editor = useRef(/** @type {import("./editor.js").Editor | null} */ (null));
  const kept = drafts.get(id);
  const [text, setText] = useState(kept?.text ?? data.source?.text ?? "");
  const [base, setBase] = useState(kept?.sha256 ?? data.source?.sha256 ?? "");
  const [notes, setNotes] = useState(/** @type {import("./editor.js").Note[] | null} */ (null));
  const [step, setStep] = useState("");
  const [state, setState] = useState({ busy: false, saved: false, problem: /** @type {any} */ (null) });
  const [theirs, setTheirs] = useState(/** @type {any} */ (null));
  const [explained, setExplained] = useState("");
  const edits = data.editable;
  const changed = edits && (text !== data.source?.text || base !== data.source?.sha256);
  const line = Number(place.value.query.get("line") ?? 0);

  /** @param {string} sha256 the version to save over */
  const save = async (sha256) => {
    setState({ busy: true, saved: false, problem: null });
    try {
      const headers = { "If-Match": `"${sha256.slice(0, 32)}"` };
      const now = await (await send("PUT", `/documents/${part(id)}`, { body: { text }, headers })).json();
      setBase(now.source.sha256);
      setTheirs(null);
      setState({ busy: false, saved: true, problem: null });
      reload();
    } catch (error) {
      if (!(error instanceof ApiProblem)) throw error;
      const isStale = error.problem.status === 412;
      if (isStale) setTheirs((await get(`/documents/${part(id)}?fields=source`)).source);
      setState({ busy: false, saved: false, problem: isStale ? null : error.problem });
    }
  };
  /** @param {{ text: string, sha256: string }} version */
  const take = (version) => {
    editor.current?.replace(version.text);
    setText(version.text);
    setBase(version.sha256);
    setTheirs(null);
  };
  const saving = useRef(() => {});
  saving.current = () => changed && !state.busy && !theirs && save(base);

  useEffect(() => {
    if (!host.current) return;
    let gone = false;
    openEditor(host.current, {
      ...{ text, label: "Text of the document", readOnly: !edits, language: { document: id, edits } },
      ...{ onFindings: setNotes, onStep: setStep, lenses, onSave: () => saving.current() },
      onChange: (next) => (setText(next), setState((now) => ({ ...now, saved: false }))),
    }).then((made) => {
      if (gone) return made.close();
      editor.current = made;
      if (line) made.jump(line);
    });
    return () => {
      gone = true;
      editor.current?.close();
    };
  }, [id, edits]);
  const read = useRef(data.source);
  useEffect(() => {
    // Another program has written the file: a text without changes follows it.
    if (data.source && data.source.sha256 !== base && text === read.current?.text) take(data.source);
    read.current = data.source;
  }, [data.source?.sha256]);
  useEffect(() => {
    if (changed) drafts.set(id, { text, sha256: base });
    else drafts.delete(id);
  }, [text, base, changed]);

  if (!data.source) return html`<${Empty} title="It has no text." icon="documents" />`;
  const words = theirs ? "not saved" : changed ? "changed, not saved" : state.saved ? "saved" : "as in the file";
  return html`
    ${state.problem && html`<${ProblemBox} problem=${state.problem} />`}
    ${theirs && html`
      <div class="problem conflict" role="alert">
        <${Icon} name="warning" />
        <div>
          <p><strong>The file has changed since you read it.</strong> Nothing is saved yet.</p>
          <p class="soft">Your changes to the text as it is now:</p>
          <${TextDiff} a=${theirs.text} b=${text} />
          <p class="actions">
            <button type="button" class="button danger" onClick=${() => save(theirs.sha256)}>Save mine over it</button>
            <button type="button" class="button" onClick=${() => take(theirs)}>Take the file as it is</button>
          </p>
        </div>
      </div>
    `}
    <div class="source-columns">
      <div class="editor" ref=${host}></div>
      <aside class="source-side" aria-label="About the source">
        ${data.runnable && html`
          <section aria-labelledby="picture-title">
            <h2 id="picture-title">Picture</h2>
            <${DocumentGraph} id=${id} selected=${data.steps?.find((/** @type {any} */ row) => row.label === step)
              ?.path} />
          </section>
        `}
        <section aria-labelledby="findings-title">
          <h2 id="findings-title">Findings</h2>
          <p class="soft small" role="status">${!notes
            ? "checking …"
            : notes.length
            ? plural(notes.length, "finding")
            : "no findings"}</p>
          ${notes?.slice(0, MOST_SHOWN).map((note, at) =>
            html`
              <${Finding} key=${at} note=${note} onJump=${() => editor.current?.jump(note.line)}
                onExplain=${() => setExplained(note.code)} />
            `
          )}
          <p><${Command} command=${data.commands.check} /></p>
        </section>
        <${Cost} proof=${data.proof} />
        ${edits
          ? html`
            <div class="source-save">
              <button type="button" class="button primary" disabled=${state.busy || !changed || Boolean(theirs)}
                onClick=${() => save(base)}><${Icon} name="check" />Save</button>
              <span class="soft small"><span role="status">${words}</span> · <kbd>Ctrl S</kbd></span>
              ${changed &&
                html`<button type="button" class="link small" onClick=${() => take(data.source)}>Discard</button>`}
            </div>
          `
          : about.value?.features && html`
            <p class="soft small">To edit here: <code>quire serve --edit</code></p>
          `}
      </aside>
    </div>
    ${explained && html`<${Explanation} code=${explained} onClose=${() => setExplained("")} />`}
  `;
}

/** @param {{ note: import("./editor.js").Note, onJump: () => void, onExplain: () => void }} props */
function Finding({ note, onJump, onExplain }) {
  const [tone, icon] = TONES[note.severity];
  const [message, help] = note.message.split("\nhelp: ");
  return html`
    <div class="doc-finding doc-finding-${tone}" role="note">
      <${Icon} name=${icon} label=${note.severity} />
      <div>
        <p><button type="button" class="link" onClick=${onJump}>line ${note.line}</button> ${message}
          <button type="button" class="link mono" title="What does this code mean?" onClick=${onExplain}>${note
            .code} ${note.name}</button></p>
        ${help && html`<p class="soft">${help}</p>`}
        ${note.fixes.map((fix) =>
          html`<button type="button" class="button small" key=${fix.title} onClick=${fix.apply}>${fix.title}</button>`
        )}
      </div>
    </div>
  `;
}

/** What a run has cost, before what it may cost at most. @param {{ proof: any }} props */
function Cost({ proof }) {
  if (!proof) return null;
  const { model_calls: calls, money, time } = proof.numbers;
  const parts = (/** @type {string} */ name) =>
    [money?.[name], calls?.[name] && `${calls.title} ${calls[name]}`, name !== "words" && time?.[name]].filter(Boolean)
      .join(" · ");
  return html`
    <section aria-labelledby="cost-title">
      <h2 id="cost-title">One run costs</h2>
      <dl class="about-list">
        ${proof.seen_runs > 0 &&
          html`<${Fact} name="seen in ${plural(proof.seen_runs, "run")}">${parts("seen")}</${Fact}>`}
        ${proof.assumed_words && html`<${Fact} name="assumed">${parts("assumed")}</${Fact}>`}
        <div class="soft"><dt>at most</dt><dd>${parts("words")}</dd></div>
      </dl>
    </section>
  `;
}

/** The page of a code. @param {{ code: string, onClose: () => void }} props */
function Explanation({ code, onClose }) {
  const { data, problem } = useResource(`/codes/${code}`);
  return html`
    <${Dialog} title=${data ? `${data.id} ${data.name}` : code} onClose=${onClose} wide>
      ${problem && html`<${ProblemBox} problem=${problem} />`}
      ${!data && !problem && html`<${Placeholder} lines=${3} />`}
      ${data && html`
        <pre class="explanation">${data.explanation}</pre>
        <p>
          <${Command} command=${data.command} />
        </p>
      `}
      </${Dialog}>
  `;
}
