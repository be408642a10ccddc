// The tests of a document: its cases with their last results, a button that runs them, and the coverage of its lines.
// No model is asked.

import { part, post, tryTo } from "../api.js";
import { html, useEffect, useRef, useState } from "../html.js";
import { useResource } from "../resource.js";
import { plural } from "../words.js";
import { Age, Command, Empty, Placeholder, ProblemBox } from "./basics.js";
import { TextDiff } from "./diff.js";
import { openEditor } from "./editor.js";
import { Icon } from "./icon.js";

const OUTCOMES = /** @type {Record<string, [string, string, string]>} */ ({
  passed: ["good", "check", "passed"],
  failed: ["bad", "cross", "failed"],
  skipped: ["quiet", "dot", "skipped"],
  todo: ["warn", "warning", "to do"],
  flaky: ["warn", "warning", "flaky"],
});

/** @param {{ id: string, data: any }} props */
export function DocumentTests({ id, data }) {
  const address = `/documents/${part(id)}/tests`;
  const { data: found, problem, slow, reload } = useResource(address, (frame) => frame.event === "documents");
  const [fresh, setFresh] = useState(/** @type {any} */ (null));
  const [running, setRunning] = useState(false);
  const [failure, setFailure] = useState(/** @type {any} */ (null));
  // A result of this page counts until the document or the test changes: then the server says that it is old.
  const tests = found && fresh && fresh.at >= (found.at ?? 0) && !found.old ? fresh : found;
  const run = async () => {
    setRunning(true);
    await tryTo(setFailure, async () => {
      setFresh(await post(address, {}));
      reload();
    });
    setRunning(false);
  };
  if (problem) return html`<${ProblemBox} problem=${problem} retry=${reload} />`;
  if (!tests) return slow && html`<${Placeholder} lines=${6} />`;
  if (!tests.file) {
    return html`
      <section aria-labelledby="tests-title">
        <h2 id="tests-title">Tests</h2>
        <${Empty} title="This document has no tests yet." icon="documents">
          <p class="soft">They stand beside it, in <code>${tests.make}</code>.</p>
          <p>
            <${Command} command="quire new test ${id}" />
          </p>
          </${Empty}>
          </section>
    `;
  }
  return html`
    <h2>Tests</h2>
    <div class="source-head">
      <p aria-live="polite">${running ? "Running …" : summary(tests)}
        ${tests.at && html`<span class="soft small"> · <${Age} at=${tests.at} /></span>`}
        ${tests.old && html`<span class="status tone-warn"><${Icon} name="warning" />changed since</span>`}
      </p>
      <div class="actions push">
        <${Command} command="quire test ${tests.file} --cov" />
        <button type="button" class="button primary" data-needs="run" disabled=${running} onClick=${run}>
          <${Icon} name="play" />Run the tests</button>
      </div>
    </div>
    ${failure && html`<${ProblemBox} problem=${failure} />`}
    ${tests.problems.map((/** @type {any} */ one, /** @type {number} */ at) =>
      html`<${Mistake} key=${at} mistake=${one} file=${tests.file} />`
    )}
    <ul class="rows" aria-label="Cases">
      ${tests.cases.map((/** @type {any} */ row) => html`<${Case} key=${row.case} test=${row} file=${tests.file} />`)}
    </ul>
    ${tests.coverage && html`<${Coverage} coverage=${tests.coverage} text=${data.source?.text ?? ""} />`}
  `;
}

/** @param {any} tests */
function summary(tests) {
  if (tests.at === null) return `${plural(tests.cases.length, "case")} in ${tests.file}, not run here yet`;
  const counts = Object.entries(OUTCOMES)
    .map((
      [outcome, [, , word]],
    ) => [tests.cases.filter((/** @type {any} */ one) => one.outcome === outcome).length, word])
    .filter(([count]) => count);
  return counts.map(([count, word]) => `${count} ${word}`).join(", ") || "no cases";
}

/** @param {{ test: any, file: string }} props */
function Case({ test, file }) {
  const [tone, icon, word] = OUTCOMES[test.outcome] ?? ["quiet", "dot", "not run"];
  return html`
    <li>
      <div class="row">
        <span class="status tone-${tone}"><${Icon} name=${icon} />${word}</span>
        <span class="row-title">${test.case}</span>
        ${test.reason && html`<span class="soft small">${test.reason}</span>`}
        <span class="soft small mono">line ${test.line}</span>
      </div>
      ${test.problems.map((/** @type {any} */ each, /** @type {number} */ at) =>
        html`<${Mistake} key=${at} mistake=${each} file=${file} />`
      )}
    </li>
  `;
}

/** @param {{ mistake: any, file: string }} props */
function Mistake({ mistake, file }) {
  return html`
    <div class="doc-finding doc-finding-bad" role="note">
      <${Icon} name="cross" />
      <div>
        <p>${mistake.message} <span class="soft mono small">${mistake.code} ${file}:${mistake.line}</span></p>
        ${mistake.help && html`<p class="soft">${mistake.help}</p>`}
        ${mistake.expected !== null && mistake.actual !== null
          ? html`<${TextDiff} a=${mistake.expected} b=${mistake.actual} />`
          : mistake.value && html`<pre class="pre">${mistake.value}</pre>`}
        ${mistake.parts.length > 0 && html`
          <ul class="small">${mistake.parts.map((/** @type {any} */ one) =>
            html`<li key=${one.path}><code>${one.path}</code> is <code>${one.value}</code></li>`
          )}</ul>
        `}
      </div>
    </div>
  `;
}

/** @param {{ coverage: any, text: string }} props */
function Coverage({ coverage, text }) {
  const host = useRef(/** @type {HTMLElement | null} */ (null));
  const kinds = Object.entries(coverage.kinds).filter(([, share]) => /** @type {any} */ (share).total > 0);
  useEffect(() => {
    if (!host.current) return;
    const paint = Object.fromEntries(Object.entries(coverage.lines).map(([line, how]) => [line, `covered-${how}`]));
    const opened = openEditor(host.current, { text, label: "Source with its coverage", readOnly: true, paint });
    return () => opened.then((editor) => editor.close());
  }, [coverage, text]);
  return html`
    <section aria-labelledby="coverage">
      <h2 id="coverage">Coverage of its decisions</h2>
      <div class="table-scroll" tabindex="0" role="region" aria-label="Coverage by kind">
        <table class="coverage-kinds">
          <thead>
            <tr>${kinds.map(([kind]) => html`<th key=${kind} scope="col">${kind}</th>`)}</tr>
          </thead>
          <tbody>
            <tr>${kinds.map(([kind, share]) => {
              const { taken, total, percent } = /** @type {any} */ (share);
              return html`<td key=${kind} class="number">${percent} % <span class="soft">(${taken}/${total})</span></td>`;
            })}</tr>
          </tbody>
        </table>
      </div>
      <ul class="not-covered">${coverage.missing.map((/** @type {any} */ gap, /** @type {number} */ at) =>
        html`<li key=${at}><span class="soft mono small">line ${gap.line}</span> not covered: ${gap.label}</li>`
      )}</ul>
      <div class="editor" ref=${host}></div>
    </section>
  `;
}
