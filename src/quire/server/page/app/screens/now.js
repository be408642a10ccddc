// Now: what waits for the user, what has stopped and can go on, what runs, and what has just ended.

import { html } from "../html.js";
import { Age, Empty, Placeholder, ProblemBox, Status } from "../parts/basics.js";
import { QuestionCard } from "../parts/question.js";
import { useResource } from "../resource.js";
import { Link } from "../router.js";
import { money } from "../words.js";

const STOPPED = ["paused", "interrupted", "failed"];

export function Now() {
  const questions = useResource("/questions?limit=50", (frame) => frame.event === "questions");
  const runs = useResource("/runs?limit=100", (frame) => frame.event === "runs");
  const problem = questions.problem ?? runs.problem;
  if (problem) {
    return html`
      <h1 tabindex="-1">Now</h1>
      <${ProblemBox} problem=${problem} retry=${runs.reload} />
    `;
  }
  if (!questions.data || !runs.data) {
    return html`<h1 tabindex="-1">Now</h1>${runs.slow && html`<${Placeholder} lines=${6} />`}`;
  }
  const rows = runs.data.items;
  const day = Date.now() / 1000 - 86_400;
  const stopped = rows.filter((/** @type {any} */ row) => STOPPED.includes(row.status) && row.updated_at > day);
  const running = rows.filter((/** @type {any} */ row) => row.status === "running");
  const ended = rows.filter((/** @type {any} */ row) => row.status === "completed").slice(0, 8);
  return html`
    <h1 tabindex="-1">Now</h1>
    <section aria-labelledby="waits">
      <h2 id="waits">Questions</h2>
      ${questions.data.items.length
        ? questions.data.items.map((/** @type {any} */ one) =>
          html`<${QuestionCard} key=${one.run + one.path} question=${one} />`
        )
        : html`<${Empty} title="Nothing waits for you." />`}
    </section>
    <${RunList} title="Stopped, and can go on" rows=${stopped} />
    <${RunList} title="Running" rows=${running} />
    <${RunList} title="Lately finished" rows=${ended} />
  `;
}

/** @param {{ title: string, rows: any[] }} props */
function RunList({ title, rows }) {
  if (!rows.length) return null;
  return html`
    <section>
      <h2>${title}</h2>
      <ul class="rows">
        ${rows.map((row) =>
          html`
            <li key=${row.id}>
              <${Link} to="/runs/${row.id}" class="row">
                <${Status} status=${row.status} />
                <span class="row-title">${row.title}</span>
                <span class="soft">${row.step && `step ${row.step}`}</span>
                <span class="soft number">${money(row.cost)}</span>
                <span class="soft number"><${Age} at=${row.updated_at} /></span>
                </${Link}>
                </li>
          `
        )}
      </ul>
    </section>
  `;
}
