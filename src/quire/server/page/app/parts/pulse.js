// The pulse of a workspace: runs, success, cost and waits of today, with a bar for each of the last 14 days.

import { html } from "../html.js";
import { useResource } from "../resource.js";
import { Link } from "../router.js";
import { duration, money, number, plural, span } from "../words.js";

/** @typedef {{ day: string, since: number, until: number, runs: number, completed: number, failed: number, cost: number | null, waited: number | null }} Day */
/** @typedef {(day: Day) => any} OfDay */

/** @param {{ oldest: number }} props the time of the oldest question, 0 without one */
export function Pulse({ oldest }) {
  const { data } = useResource("/pulse", (frame) => frame.event === "runs" || frame.event === "questions");
  if (!data) return html`<div class="pulse" aria-hidden="true"></div>`;
  const days = /** @type {Day[]} */ (data.days);
  const today = days[days.length - 1];
  const names = /** @type {const} */ (["runs", "completed", "failed", "cost"]);
  const all = { ...today, runs: 0, completed: 0, failed: 0, cost: 0 };
  for (const day of days) names.forEach((name) => (all[name] += day[name] ?? 0));
  /** @param {Day} day */
  const success = ({ completed, failed }) =>
    completed + failed ? `${Math.floor(100 * completed / (completed + failed))} %` : "–";
  /** @param {{ waited: number | null }} day */
  const waited = (day) => day.waited === null ? "–" : duration(day.waited);
  /** Name, tone, what is shown of days, parts of a bar, words of a bar. @type {[string, string, OfDay, OfDay, OfDay][]} */
  const cells = [
    ["Runs", "accent", (day) => number(day.runs), (day) => [day.runs], (day) => plural(day.runs, "run")],
    [
      "Succeeded",
      "good",
      success,
      (day) => [day.failed, day.completed],
      (day) => `${day.completed} completed, ${day.failed} failed`,
    ],
    [
      "Cost",
      "quiet",
      (day) => money(day.cost ?? (day.runs ? null : 0)),
      (day) => [day.cost ?? 0],
      (day) => money(day.cost),
    ],
  ];
  return html`
    <section class="pulse" aria-label="The last ${days.length} days">
      ${cells.map(([name, tone, shown, parts, words]) =>
        html`
          <${Cell} key=${name} name=${name} value=${shown(today)} line="today" more="${shown(all)} in ${days.length} d">
            <${Bars} ...${{ days, tone, parts, words }} />
            </${Cell}>
        `
      )}
      <${Cell} name="Waits for people" value=${waited(data)} line="median"
        more=${oldest ? `oldest ${span(Date.now() / 1000 - oldest)}` : "nothing waits"}>
        <${Bars} days=${days} tone="wait" parts=${(/** @type {Day} */ day) => [day.waited ?? 0]} words=${waited} />
      </${Cell}>
    </section>
  `;
}

/** @param {{ name: string, value: string, line: string, more: string, children?: unknown }} props */
function Cell({ name, value, line, more, children }) {
  return html`
    <div class="pulse-cell">
      <p>
        <span class="soft small">${name}</span><b class="number">${value}</b>
        <span class="soft small">${line}<span class="wide-only"> · ${more}</span></span>
      </p>
      ${children}
    </div>
  `;
}

/**
 * A bar for each day, which leads to its runs. Only one of them is a stop of the Tab key; arrows lead to the others.
 *
 * @param {{ days: Day[], tone: string, parts: (day: Day) => number[], words: OfDay }} props
 */
function Bars({ days, tone, parts, words }) {
  const most = Math.max(...days.map((day) => parts(day).reduce((all, part) => all + part, 0))) || 1;
  /** @param {KeyboardEvent} event */
  const onKeyDown = ({ key, target }) => {
    const item = /** @type {any} */ (target).closest("li");
    const next = key === "ArrowLeft" ? item.previousElementSibling : key === "ArrowRight" && item.nextElementSibling;
    if (next) next.firstElementChild.focus();
  };
  return html`
    <ul class="bars bars-${tone}" onKeyDown=${onKeyDown}>
      ${days.map((day, at) => {
        const name = `${day.day}: ${words(day)}`;
        return html`
          <li key=${day.day}>
            <${Link} to="/runs?since=${day.since}&until=${day.until}" title=${name} aria-label=${name}
              tabindex=${at === days.length - 1 ? 0 : -1}>
              ${parts(day).map((part) => html`<i style=${{ height: `${100 * part / most}%` }}></i>`)}
            </${Link}>
          </li>
        `;
      })}
    </ul>
  `;
}
