// Small parts that many screens use: status, problem, empty state, placeholder, command to copy, age.

import { html, useEffect, useRef, useState } from "../html.js";
import { place, setQuery } from "../router.js";
import { ago, moment, number, shown } from "../words.js";
import { Icon } from "./icon.js";

/** @param {{ status: string, word?: string, survived?: string }} props */
export function Status({ status, word, survived }) {
  const usual = shown(status, survived);
  return html`<${Mark} ...${usual} word=${word ?? usual.word} />`;
}

/** A state by icon, word and colour. @param {{ tone: string, icon: string, word: string }} props */
export function Mark({ tone, icon, word }) {
  return html`<span class="status tone-${tone}"><${Icon} name=${icon} />${word}</span>`;
}

/** A fact in a list of them. @param {{ name: string, children?: unknown }} props */
export function Fact({ name, children }) {
  return html`
    <div>
      <dt class="soft">${name}</dt>
      <dd>${children}</dd>
    </div>
  `;
}

/** A filter of the address that is on or off. @param {{ name: string, value: string, words?: string, count?: number }} props */
export function Chip({ name, value, words = value, count }) {
  const isOn = place.value.query.get(name) === value;
  return html`
    <button type="button" class="chip" aria-pressed=${isOn} onClick=${() =>
      setQuery({ [name]: isOn ? undefined : value })}>
      ${words} ${count !== undefined && html`<span class="number">${number(count)}</span>`}</button>
  `;
}

/** @param {{ problem: import("../api.js").Problem, retry?: () => void }} props */
export function ProblemBox({ problem, retry }) {
  return html`
    <div class="problem" role="alert">
      <${Icon} name="warning" />
      <div>
        <p><strong>${problem.title}</strong></p>
        <p class="pre">${problem.detail}</p>
        ${problem.help && html`<p class="soft">${problem.help}</p>`}
        ${retry && html`<button type="button" class="button" onClick=${retry}>Try again</button>`}
      </div>
    </div>
  `;
}

/** @param {{ title: string, icon?: string, children?: unknown }} props */
export function Empty({ title, icon = "check", children }) {
  return html`<div class="empty"><${Icon} name=${icon} /><p><strong>${title}</strong></p>${children}</div>`;
}

/** @param {{ lines?: number }} props */
export function Placeholder({ lines = 3 }) {
  return html`<div class="placeholder" aria-hidden="true">${
    Array.from({ length: lines }, () => html`<span></span>`)
  }</div>`;
}

/** A time that stays true while the page is open. @param {{ at: number }} props seconds since 1970 */
export function Age({ at }) {
  const [, tick] = useState(0);
  useEffect(() => {
    const age = Date.now() / 1000 - at;
    const timer = setInterval(() => tick((count) => count + 1), age < 3600 ? 10_000 : 300_000);
    return () => clearInterval(timer);
  }, [at]);
  return html`<time dateTime=${new Date(at * 1000).toISOString()} title=${moment(at)}>${ago(at)}</time>`;
}

/**
 * The shell command that does the same as the button beside it.
 *
 * @param {{ command: string, label?: string }} props
 */
export function Command({ command, label = "Copy as command" }) {
  const [copied, setCopied] = useState(false);
  const timer = useRef(0);
  const copy = async () => {
    await copyText(command);
    setCopied(true);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setCopied(false), 1500);
  };
  return html`
    <button type="button" class="command" title=${command} aria-label="${label}: ${command}" onClick=${copy}>
      <${Icon} name=${copied ? "check" : "terminal"} /><code>${command}</code>
      <span class="visually-hidden" role="status">${copied ? "copied" : ""}</span>
    </button>
  `;
}

/** @param {string} text */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const field = document.createElement("textarea");
    field.value = text;
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
}

/**
 * Tabs whose state is in the address: each tab is a link.
 *
 * @param {{ label: string, tabs: { name: string, to: string, here: boolean, count?: number }[], link: any }} props
 */
export function Tabs({ label, tabs, link: Link }) {
  return html`
    <nav class="tabs" aria-label=${label}>
      ${tabs.map(({ name, to, here, count }) =>
        html`
          <${Link} to=${to} aria-current=${here ? "page" : undefined}>
            ${name}${count ? html`<span class="count">${count}</span>` : ""}
          </${Link}>
        `
      )}
    </nav>
  `;
}
