// Opens the file of an exported run: the server verifies it, the user reads the verdict, and only then it is taken in.

import { part, post, tryTo } from "../api.js";
import { lostSince } from "../feed.js";
import { html, useRef, useState } from "../html.js";
import { go } from "../router.js";
import { moment, number, plural } from "../words.js";
import { Command, Fact, Placeholder, ProblemBox, Status } from "./basics.js";
import { Dialog } from "./dialog.js";
import { Icon } from "./icon.js";

const MOST_BYTES = 8_000_000;

/** @typedef {{ name: string, text: string }} Opened */

export function ImportButton() {
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  const [file, setFile] = useState(/** @type {Opened | null} */ (null));
  const [verdict, setVerdict] = useState(/** @type {any} */ (null));
  const [problem, setProblem] = useState(/** @type {any} */ (null));
  /** @param {File | undefined} chosen */
  const open = async (chosen) => {
    if (!chosen) return;
    setVerdict(null);
    setProblem(null);
    const opened = { name: chosen.name, text: chosen.size > MOST_BYTES ? "" : await chosen.text() };
    setFile(opened);
    if (chosen.size > MOST_BYTES) return setProblem(tooLarge(chosen));
    await tryTo(setProblem, async () => setVerdict(await post("/runs/verify", opened)));
  };
  const close = () => {
    setFile(null);
    if (field.current) field.current.value = "";
  };
  const away = lostSince.value > 0;
  return html`
    <button type="button" class="button" disabled=${away} data-needs="administer" title=${away
      ? "The server cannot be reached"
      : "quire runs import FILE"}
      onClick=${() => field.current?.click()}><${Icon} name="documents" />Open an exported run</button>
    <input ref=${field} type="file" hidden aria-label="File of an exported run"
      accept=".jsonl,.json"
      onChange=${(/** @type {any} */ event) => open(event.target.files[0])} />
    ${file && html`<${Verdict} file=${file} verdict=${verdict} problem=${problem} close=${close} />`}
  `;
}

/** @param {{ file: Opened, verdict: any, problem: any, close: () => void }} props */
function Verdict({ file, verdict, problem, close }) {
  const [state, setState] = useState({ sending: false, problem: /** @type {any} */ (null) });
  const take = () =>
    tryTo((problem) => setState({ sending: !problem, problem }), async () => {
      const { run } = await post("/runs/import", file);
      go(`/runs/${part(run)}`);
    });
  return html`
    <${Dialog} title=${file.name} onClose=${close}>
      ${!verdict && !problem && html`<${Placeholder} lines=${3} />`}
      ${problem && html`<${ProblemBox} problem=${problem} />`}
      ${verdict && html`
        <p class="verdict ${verdict.ok ? "good" : "bad"}" role="status">
          <${Icon} name=${verdict.ok ? "check" : "cross"} />
          ${verdict.ok
            ? "Verified: every line has its hash, and the replay gives the result that the file states."
            : "Not as it was written."}</p>
        ${verdict.problem && html`<p class="pre">${verdict.problem}</p>`}
        ${verdict.row && html`
          <dl class="receipt-parts">
            <${Fact} name="Run"><code>${verdict.run}</code></${Fact}>
            <${Fact} name="Title">${verdict.row.title}</${Fact}>
            <${Fact} name="Status"><${Status} status=${verdict.row.status} /></${Fact}>
            <${Fact} name="Started">${moment(verdict.row.created_at)}</${Fact}>
            <${Fact} name="Holds">${plural(verdict.effects, "effect")}, ${number(verdict.lines)} lines</${Fact}>
            <${Fact} name="Head"><code class="hash">${verdict.head}</code></${Fact}>
          </dl>
        `}
        ${verdict.ok && html`
          <p
            class="soft">A forger can make a whole new file: compare the head with one that you have from elsewhere. The run can be
            looked at, compared and forked; it brings no permissions, and it cannot be resumed.</p>
          <${Command} command=${verdict.command} />
        `}
        ${state.problem && html`<${ProblemBox} problem=${state.problem} />`}
        <div class="actions">
          ${verdict.ok && !verdict.known && html`
            <button type="button" class="button primary" disabled=${state
              .sending} onClick=${take}>Import the run</button>
          `}
          ${verdict.known && html`
            <button type="button" class="button primary" onClick=${() => go(`/runs/${part(verdict.run)}`)}>
              Open the run of this id</button>
            <span class="soft">It is in this workspace already.</span>
          `}
          <button type="button" class="button" onClick=${close}>Close</button>
        </div>
      `}
    </${Dialog}>
  `;
}

/** @param {File} file @returns {import("../api.js").Problem} */
function tooLarge(file) {
  return {
    status: 413,
    code: "too-large",
    title: "The file is too large for the page",
    detail: `It has ${number(file.size)} bytes; the page takes ${number(MOST_BYTES)}.`,
    help: "In a terminal: quire runs import FILE",
  };
}
