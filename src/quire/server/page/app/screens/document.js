// One document in four tabs: read beside its graph, its source, what is proven of it, its runs and tests; and the drawer
// that runs it. The tab is in the address.

import { part } from "../api.js";
import { html, useEffect, useRef } from "../html.js";
import { addShortcuts } from "../keys.js";
import { Command, Empty, Placeholder, ProblemBox, Tabs } from "../parts/basics.js";
import { PromptDialog } from "../parts/document_prompts.js";
import { DocumentProof } from "../parts/document_proof.js";
import { DocumentRead } from "../parts/document_read.js";
import { DocumentRuns } from "../parts/document_runs.js";
import { DocumentSource } from "../parts/document_source.js";
import { Findings, Format, SignatureState } from "../parts/document_state.js";
import { DocumentTests } from "../parts/document_tests.js";
import { Icon } from "../parts/icon.js";
import { RunDrawer } from "../parts/run_drawer.js";
import { useResource } from "../resource.js";
import { go, Link, place, setQuery, useTitle } from "../router.js";

/** Tabs: name in the address, title, parts of the document that it needs. @type {[string, string, string][]} */
const TABS = [
  ["read", "Read", "outline,diagnostics"],
  ["source", "Source", "source,diagnostics,steps,proof"],
  ["proof", "Proof", "proof,gates,flows,envelope,lock,signature,outline"],
  ["runs", "Runs & tests", "source"],
];
/** Where the tabs of older addresses are now. @type {Record<string, Record<string, string | undefined>>} */
const MOVED = {
  graph: { tab: "read" },
  bounds: { tab: "proof" },
  prompts: { tab: "read", prompt: "first" },
  tests: { tab: "runs" },
  run: { tab: undefined, run: "1" },
};

/** @param {{ id: string }} props */
export function DocumentScreen({ id }) {
  const query = place.value.query;
  const asked = query.get("tab") ?? "read";
  const moved = MOVED[asked];
  const tab = TABS.find(([name]) => name === (moved?.tab ?? asked)) ?? TABS[0];
  const { data, problem, slow, reload } = useResource(
    `/documents/${part(id)}?fields=${tab[2]}`,
    (frame) => frame.event === "documents",
  );
  const address = `/documents/${part(id)}`;
  // The head stays while the parts of another tab are fetched.
  const last = useRef(/** @type {any} */ (null));
  if (data) last.current = data;
  const head = data ?? (last.current?.id === id ? last.current : null);
  useEffect(() => {
    if (moved) setQuery(moved);
  }, [asked]);
  useEffect(() =>
    addShortcuts("This document", [
      ...TABS.map(([name, title], at) => ({
        keys: String(at + 1),
        does: title,
        run: () => go(`${address}?tab=${name}`),
      })),
      { keys: "x", does: "Run it", run: () => setQuery({ run: "1" }) },
      {
        keys: "c",
        does: "Copy the command that checks it",
        run: () => navigator.clipboard?.writeText(`quire check ${id}`),
      },
    ]), [id]);

  useEffect(() => {
    // On a narrow screen the tabs scroll: the one that is shown stays in view.
    document.querySelector(".tabs [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [tab[0], Boolean(data)]);

  useTitle(head?.title ?? id);
  if (!head) {
    return html`
      <h1 tabindex="-1">${id}</h1>
      ${problem?.code === "no-such-document" && html`<${Missing} id=${id} help=${problem.help} />`}
      ${problem && problem.code !== "no-such-document" && html`<${ProblemBox} problem=${problem} retry=${reload} />`}
      ${!problem && slow && html`<${Placeholder} lines=${6} />`}
    `;
  }
  return html`
    <header class="document-head">
      <div class="document-title">
        <h1 tabindex="-1">${head.title}</h1>
        <${Format} format=${head.format} /><${Findings} row=${head} /><${SignatureState} signature=${head.signature} />
        ${head.runnable && html`
          <button type="button" class="button primary push" data-needs="run" onClick=${() => setQuery({ run: "1" })}>
            <${Icon} name="play" />Run</button>
        `}
      </div>
      <p class="document-crumbs small">
        <${Link} to="/documents">Documents</${Link}> <span class="soft mono">/ ${id}</span></p>
    </header>
    ${problem?.code === "no-such-document" && html`
      <div class="bar" role="status"><${Icon} name="warning" />
        The file was deleted or renamed. This is the last that is known of it.
      </div>
    `}
    ${problem && problem.code !== "no-such-document" && html`<${ProblemBox} problem=${problem} retry=${reload} />`}
    <${Tabs} label="Parts of the document" link=${Link} tabs=${TABS.map(([name, title]) => ({
      name: title,
      to: `${address}?tab=${name}`,
      here: name === tab[0],
      count: name === "source" ? head.errors + head.warnings : undefined,
    }))} />
    ${!data
      ? slow && html`<${Placeholder} lines=${6} />`
      : data.error
      ? html`<${Unreadable} data=${data} />`
      : html`<${Content} key=${`${id}#${tab[0]}`} tab=${tab[0]} data=${data} reload=${reload} address=${address} />`}
    ${query.get("run") && html`<${RunDrawer} document=${id} onClose=${() => setQuery({ run: undefined })} />`}
    ${query.get("prompt") && head.runnable && html`<${PromptDialog} id=${id} />`}
  `;
}

/** @param {{ tab: string, data: any, reload: () => void, address: string }} props */
function Content({ tab, data, reload, address }) {
  if (tab === "source") {
    const lenses = {
      "quire.run": () => setQuery({ run: "1" }),
      "quire.test": () => go(`${address}?tab=runs`),
      "quire.showProof": () => go(`${address}?tab=proof`),
      "quire.showPrompt": (/** @type {string[]} */ [, step]) => setQuery({ prompt: step }),
    };
    return html`<${DocumentSource} id=${data.id} data=${data} reload=${reload} lenses=${lenses} />`;
  }
  if (tab === "read") return html`<${DocumentRead} data=${data} />`;
  if (!data.runnable) return html`<${CannotRun} data=${data} address=${address} />`;
  if (tab === "proof") return html`<${DocumentProof} data=${data} />`;
  return html`
    <div class="runs-and-tests">
      <${DocumentRuns} id=${data.id} />
      <${DocumentTests} id=${data.id} data=${data} />
    </div>
  `;
}

/** @param {{ data: any }} props */
function Unreadable({ data }) {
  return html`
    <div class="problem" role="alert">
      <${Icon} name="cross" />
      <div>
        <p><strong>This file cannot be read</strong></p>
        <p class="pre">${data.error}</p>
        <p>
          <${Command} command=${data.commands.check} />
        </p>
      </div>
    </div>
  `;
}

/** @param {{ data: any, address: string }} props */
function CannotRun({ data, address }) {
  if (data.format === "knowledge") {
    return html`<${Empty} title="This is knowledge: directives read it, and it does not run." icon="documents" />`;
  }
  return html`
    <${Empty} title="The document has errors, so it cannot run." icon="cross">
      <p>
        <${Link} to="${address}?tab=source" class="button">See what is wrong</${Link}></p>
      <p><${Command} command=${data.commands.check} /></p>
      </${Empty}>
  `;
}

/** @param {{ id: string, help?: string }} props */
function Missing({ id, help }) {
  const close = /did you mean ([^?]+)\?/.exec(help ?? "")?.[1];
  return html`
    <${Empty} title="Unknown document ${id}." icon="documents">
      ${close && html`<p>Did you mean <${Link} to="/documents/${part(close)}">${close}</${Link}>?</p>`}
      <p><${Link} to="/documents" class="button">All documents</${Link}></p>
      </${Empty}>
  `;
}
