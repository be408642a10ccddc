// One document: what it does, its source with findings, its graph, bounds and permissions, prompts, runs, and the form
// that runs it. The tab is in the address.

import { part } from "../api.js";
import { html, useEffect, useRef } from "../html.js";
import { addShortcuts } from "../keys.js";
import { Command, Empty, Placeholder, ProblemBox, Tabs } from "../parts/basics.js";
import { DocumentBounds } from "../parts/document_bounds.js";
import { DocumentProof } from "../parts/document_proof.js";
import { DocumentPrompts } from "../parts/document_prompts.js";
import { DocumentRuns } from "../parts/document_runs.js";
import { DocumentRead } from "../parts/document_read.js";
import { DocumentSource } from "../parts/document_source.js";
import { DocumentTests } from "../parts/document_tests.js";
import { Findings, Format, SignatureState } from "../parts/document_state.js";
import { Graph } from "../parts/graph.js";
import { Icon } from "../parts/icon.js";
import { RunForm } from "../parts/run_form.js";
import { useResource } from "../resource.js";
import { go, Link, place, useTitle } from "../router.js";

/**
 * Tabs: name in the address, title, parts of the document that it needs, key.
 *
 * @type {[string, string, string, string][]} */
const TABS = [
  ["read", "Read", "outline,diagnostics", "1"],
  ["source", "Source", "source,diagnostics", "2"],
  ["graph", "Graph", "", "3"],
  ["bounds", "Bounds and permissions", "bounds,envelope,signature,outline,proof", "4"],
  ["prompts", "Prompts", "steps,inputs", "5"],
  ["runs", "Runs", "", "6"],
  ["run", "New run", "inputs,steps,bounds", "7"],
  ["tests", "Tests", "source", "8"],
  ["proof", "Proof", "proof,gates,flows,envelope,lock", "9"],
];
/** Tabs that a document which cannot run has nothing for. */
const NEED_A_PLAN = ["graph", "bounds", "prompts", "run", "tests", "proof"];

/** @param {{ id: string }} props */
export function DocumentScreen({ id }) {
  const asked = place.value.query.get("tab") ?? "read";
  const tab = TABS.find(([name]) => name === asked) ?? TABS[0];
  const fields = tab[2] ? `?fields=${tab[2]}` : "";
  const { data, problem, slow, reload } = useResource(
    `/documents/${part(id)}${fields}`,
    (frame) => frame.event === "documents",
  );
  const address = `/documents/${part(id)}`;
  // The head stays while the parts of another tab are fetched.
  const last = useRef(/** @type {any} */ (null));
  if (data) last.current = data;
  const head = data ?? (last.current?.id === id ? last.current : null);
  useEffect(() =>
    addShortcuts("This document", [
      ...TABS.map(([name, title, , key]) => ({ keys: key, does: title, run: () => go(`${address}?tab=${name}`) })),
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
      <p class="document-crumbs small">
        <${Link} to="/documents">Documents</${Link}> <span class="soft mono">/ ${id}</span></p>
      <div class="document-title">
        <h1 tabindex="-1">${head.title}</h1>
        <${Format} format=${head.format} /><${Findings} row=${head} /><${SignatureState} signature=${head.signature} />
        ${head.runnable && tab[0] !== "run" && html`
          <${Link} to="${address}?tab=run" class="button primary push"><${Icon} name="play" />Run</${Link}>
        `}
      </div>
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
      : !data.runnable && NEED_A_PLAN.includes(tab[0])
      ? html`<${CannotRun} data=${data} address=${address} />`
      : html`<${Content} id=${id} tab=${tab[0]} data=${data} reload=${reload} />`}
  `;
}

/** @param {{ id: string, tab: string, data: any, reload: () => void }} props */
function Content({ id, tab, data, reload }) {
  const key = `${id}#${tab}`;
  switch (tab) {
    case "source":
      return html`<${DocumentSource} key=${key} id=${id} data=${data} reload=${reload} />`;
    case "graph":
      return html`<${DocumentGraph} key=${key} id=${id} />`;
    case "bounds":
      return html`<${DocumentBounds} key=${key} data=${data} />`;
    case "proof":
      return html`<${DocumentProof} key=${key} data=${data} />`;
    case "prompts":
      return html`<${DocumentPrompts} key=${key} id=${id} data=${data} />`;
    case "runs":
      return html`<${DocumentRuns} key=${key} id=${id} />`;
    case "run":
      return html`<${RunForm} key=${key} id=${id} data=${data} />`;
    case "tests":
      return html`<${DocumentTests} key=${key} id=${id} data=${data} />`;
    default:
      return html`<${DocumentRead} key=${key} data=${data} />`;
  }
}

/** @param {{ id: string }} props */
function DocumentGraph({ id }) {
  const opened = place.value.query.getAll("open");
  const folds = new URLSearchParams(opened.map((one) => ["open", one])).toString();
  const { data, problem, slow, reload } = useResource(
    `/documents/${part(id)}/graph${folds && `?${folds}`}`,
    (frame) => frame.event === "documents",
  );
  if (problem) return html`<${ProblemBox} problem=${problem} retry=${reload} />`;
  if (!data) return slow && html`<${Placeholder} lines=${6} />`;
  /** @param {string} fold */
  const foldLink = (fold) => {
    const all = new URLSearchParams(place.value.query);
    all.append("open", fold);
    return `/documents/${part(id)}?${all}`;
  };
  return html`<${Graph} chart=${data} label="Flowchart of ${data.title}" foldLink=${foldLink} />`;
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
