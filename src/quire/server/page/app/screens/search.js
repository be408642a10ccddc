// Search: documents, steps, runs, codes, commands, and the texts of runs, as the user types.

import { part, query } from "../api.js";
import { html, useEffect, useRef, useState } from "../html.js";
import { Command, Empty, Placeholder, ProblemBox, Status } from "../parts/basics.js";
import { Icon } from "../parts/icon.js";
import { useResource } from "../resource.js";
import { Link, place, setQuery, useTitle } from "../router.js";
import { commands as shellCommands } from "../shell.js";
import { number, plural } from "../words.js";

const PAUSE = 150;

export function Search() {
  useTitle("Search");
  const asked = place.value.query.get("q") ?? "";
  const [text, setText] = useState(asked);
  const [qr, setQr] = useState(/** @type {any} */ (null));
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  const results = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => field.current?.focus(), []);
  useEffect(() => {
    const timer = setTimeout(() => setQuery({ q: text.trim() || undefined }), PAUSE);
    return () => clearTimeout(timer);
  }, [text]);
  const found = useResource(asked ? `/search${query({ q: asked })}` : null);
  // The results of the words before stay until those of the new words are there.
  const last = useRef(/** @type {any} */ (null));
  if (found.data) last.current = found.data;
  const data = asked ? last.current : null;
  const commands = commandsFor(asked, async () => setQr(await import("../parts/qr_dialog.js")));
  /** @param {KeyboardEvent} event */
  const onKeyDown = (event) => {
    if (event.key === "Escape" && !text) return history.back();
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    const all = /** @type {HTMLElement[]} */ ([...(results.current?.querySelectorAll("a.row, button.row") ?? [])]);
    const at = all.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    const next = event.key === "ArrowDown" ? all[at + 1] : all[at - 1] ?? field.current;
    if (!next) return;
    event.preventDefault();
    next.focus();
  };
  return html`
    <div class="search" onKeyDown=${onKeyDown}>
      <h1 tabindex="-1" class="visually-hidden">Search</h1>
      <div class="search-field">
        <${Icon} name="search" />
        <input ref=${field} type="search" aria-label="Search" autocomplete="off" spellcheck=${false} maxlength="300"
          placeholder="Documents, runs, steps, codes, and everything that was said in a run" value=${text}
          onInput=${(/** @type {any} */ event) => setText(event.target.value)} />
      </div>
      <div ref=${results}>
        ${found.problem && html`<${ProblemBox} problem=${found.problem} retry=${found.reload} />`}
        <${Results} data=${data} commands=${commands} />
        ${asked && !data && found.slow && html`<${Placeholder} lines=${4} />`}
        ${data?.q === asked && !commands.length && isEmpty(data) && html`
          <${Empty} title="Nothing holds all of these words." icon="search">
            <p>${indexed(data)}</p>
            </${Empty}>
        `}
        ${data && !isEmpty(data) && html`<p class="soft small more-line">${indexed(data)}</p>`}
      </div>
      ${qr && html`<${qr.QrDialog} onClose=${() => setQr(null)} />`}
    </div>
  `;
}

/** @param {any} data */
function isEmpty(data) {
  return Object.values(data.found).every((items) => !items.length);
}

/** @param {any} data */
function indexed(data) {
  const { runs, whole, problem } = data.indexed;
  if (problem) return problem;
  return whole
    ? `Texts of ${number(runs)} runs were searched.`
    : `Texts of ${number(runs)} runs were searched so far; the others are still being read.`;
}

/**
 * @param {string} asked
 * @param {() => void} showQr
 * @returns {{ name: string, icon: string, to?: string, run?: () => void }[]}
 */
function commandsFor(asked, showQr) {
  const words = asked.toLowerCase().split(/\s+/).filter(Boolean);
  const all = [...shellCommands(), { name: "Open on another device (QR code)", icon: "qr", run: showQr }];
  return all.filter(({ name }) => words.every((word) => name.toLowerCase().includes(word)));
}

/** @param {{ data: any, commands: any[] }} props */
function Results({ data, commands }) {
  const found = data?.found ?? {};
  return html`
    <${Group} title="Documents" items=${found.documents} row=${(/** @type {any} */ one) =>
      html`
        <${Link} class="row" to="/documents/${part(one.id)}">
          <${Icon} name="documents" /><span class="row-title">${one.title}</span><span class="soft">${one.id}</span>
        </${Link}>
      `} />
    <${Group} title="Steps" items=${found.steps} row=${(/** @type {any} */ one) =>
      html`
        <${Link} class="row" to="/documents/${part(one.document)}?tab=graph">
          <${Icon} name="right" /><span class="row-title">${one.label}: ${one.title}</span>
          <span class="soft">${one.document}</span>
        </${Link}>
      `} />
    <${Group} title="Runs" items=${found.runs} row=${(/** @type {any} */ one) =>
      html`
        <${Link} class="row" to="/runs/${one.id}">
          <${Status} status=${one.status} /><span class="row-title">${one.title}</span>
          <span class="soft mono">${one.id}</span>
        </${Link}>
      `} />
    <${Group} title="Texts of runs" items=${found.texts} row=${(/** @type {any} */ one) =>
      html`
        <${Link} class="row text-hit" to=${stepOf(one)}>
          <span class="hit-kind soft">${one.kind}</span>
          <span class="hit-text">${one.parts.map((/** @type {any} */ piece) =>
            piece.found ? html`<mark>${piece.text}</mark>` : piece.text
          )}</span>
          <span class="soft">${one.title}${one.also.length ? ` and ${plural(one.also.length, "other run")}` : ""}</span>
          </${Link}>
      `} />
    <${Group} title="Codes" items=${found.codes} row=${(/** @type {any} */ one) =>
      html`
        <details class="code-hit">
          <summary class="row"><b class="mono">${one.id}</b><span class="row-title">${one.name}</span>
            <span class="soft">${one.severity}</span></summary>
          <div class="code-page">
            <p class="pre">${one.explanation}</p>
            <${Command} command=${one.command} />
          </div>
        </details>
      `} />
    <${Group} title="Commands" items=${commands} row=${(/** @type {any} */ one) =>
      one.to
        ? html`
          <${Link} class="row"
            to=${one.to}><${Icon} name=${one.icon} /><span class="row-title">${one.name}</span></${Link}>
        `
        : html`
          <button type="button" class="row row-button" onClick=${one.run}>
            <${Icon} name=${one.icon} /><span class="row-title">${one.name}</span></button>
        `} />
  `;
}

/** The step that a text belongs to. @param {any} hit */
function stepOf(hit) {
  const step = hit.path.replace(/\/[a-z_]+(\[\d+\])?$/, "");
  return step && step !== hit.path ? `/runs/${hit.run}/steps/${part(step)}` : `/runs/${hit.run}`;
}

/** @param {{ title: string, items: any[] | undefined, row: (item: any) => unknown }} props */
function Group({ title, items, row }) {
  if (!items?.length) return null;
  return html`
    <section class="found">
      <h2>${title}</h2>
      <ul class="rows">${items.map((one) => html`<li>${row(one)}</li>`)}</ul>
    </section>
  `;
}
