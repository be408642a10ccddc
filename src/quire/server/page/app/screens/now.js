// Now: what waits for the user, what has stopped and can go on, what runs, what has just ended, what it has cost.

import { html, useRef } from "../html.js";
import { Command, Empty, Placeholder, ProblemBox } from "../parts/basics.js";
import { Bell } from "../parts/bell.js";
import { Finished, Letters, Running, Spent, Stopped } from "../parts/now_lists.js";
import { pathOf, QuestionCard } from "../parts/question.js";
import { QuestionGroup } from "../parts/question_group.js";
import { useResource } from "../resource.js";
import { Link } from "../router.js";
import { part } from "../api.js";

const NEWS = ["runs", "questions", "documents"];

export function Now() {
  const now = useResource("/now", (frame) => NEWS.includes(frame.event));
  const { data, problem } = now;
  if (problem && !data) {
    return html`
      <${Head} />
      <${ProblemBox} problem=${problem} retry=${now.reload} />
    `;
  }
  if (!data) return html`<${Head} />${now.slow && html`<${Placeholder} lines=${6} />`}`;
  const nothing = !data.questions.total && !data.stopped.length && !data.running.length && !data.finished.length;
  return html`
    <${Head} />
    <${Questions} questions=${data.questions} reload=${now.reload}>
      ${nothing && data.documents === 0
        ? html`<${FirstVisit} />`
        : html`<${Quiet} suggested=${data.running.length ? [] : data.suggested} />`}
    </${Questions}>
    <${Stopped} rows=${data.stopped} more=${data.stopped_more} />
    <${Running} rows=${data.running} />
    <${Finished} rows=${data.finished} />
    <${Letters} letters=${data.letters} />
    <${Spent} spent=${data.spent} />
  `;
}

function Head() {
  return html`
    <div class="head now-head">
      <h1 tabindex="-1">Now</h1>
      <${Bell} />
    </div>
  `;
}

/**
 * The questions. A card that is on the screen stays where it is when its question is answered, here or elsewhere.
 *
 * @param {{ questions: any, reload: () => void, children?: unknown }} props
 */
function Questions({ questions, reload, children }) {
  const seen = useRef(/** @type {Map<string, any>} */ (new Map()));
  const open = new Set();
  const asked = new Set();
  for (const group of questions.groups) {
    for (const one of group.items) open.add(pathOf(one));
    const key = groupKey(group);
    const before = seen.current.get(key);
    seen.current.set(key, { ...(before ? grown(before, group) : group), open: group.count });
    asked.add(key);
  }
  for (const [key, group] of seen.current) if (!asked.has(key)) seen.current.set(key, { ...group, open: 0 });
  const groups = [...seen.current.values()];
  const gone = new Set(groups.flatMap((group) => group.items.map(pathOf)).filter((path) => !open.has(path)));
  const hidden = questions.total -
    questions.groups.reduce((/** @type {number} */ sum, /** @type {any} */ group) => sum + group.count, 0);
  return html`
    <section aria-labelledby="waits">
      <h2 id="waits">Questions${questions.total > 1 && html`
        <span class="count">${questions.total}</span>
      `}</h2>
      ${groups.map((group) =>
        group.count > 1
          ? html`<${QuestionGroup} key=${groupKey(group)} group=${group} gone=${gone} reload=${reload} />`
          : html`
            <${QuestionCard} key=${groupKey(group)} question=${group.items[0]}
              gone=${gone.has(pathOf(group.items[0]))} reload=${reload} />
          `
      )}
      ${hidden > 0 &&
        html`<p class="soft more-line">${hidden} more questions wait. They follow when these are answered.</p>`}
      ${!questions.total && children}
    </section>
  `;
}

/** @param {any} group */
function groupKey(group) {
  return `${group.run} ${group.items[0].path.replace(/\[\d+\]/g, "[]")}`;
}

/**
 * A group with its new questions; those that are on the screen keep their place.
 *
 * @param {any} before
 * @param {any} group
 */
function grown(before, group) {
  const now = new Map(group.items.map((/** @type {any} */ one) => [one.path, one]));
  const kept = before.items.map((/** @type {any} */ one) => now.get(one.path) ?? one);
  const known = new Set(kept.map((/** @type {any} */ one) => one.path));
  return {
    ...group,
    count: Math.max(group.count, before.count),
    items: [...kept, ...group.items.filter((/** @type {any} */ one) => !known.has(one.path))],
  };
}

/** @param {{ suggested: any[] }} props */
function Quiet({ suggested }) {
  return html`
    <${Empty} title="Nothing waits for you.">
      ${suggested.length > 0 && html`
        <p>Run a document:</p>
        <ul class="suggested">
          ${suggested.map((one) =>
            html`
              <li>
                <${Link} class="button" to="/documents/${part(one.id)}?tab=run">${one.title}</${Link}></li>
            `
          )}
        </ul>
      `}
    </${Empty}>
  `;
}

function FirstVisit() {
  return html`
    <${Empty} title="This workspace has no documents yet." icon="documents">
      <p>A document is a Markdown or YAML file. These commands write one that runs as it is:</p>
      <ul class="suggested">
        <li>
          <${Command} command="quire new playbook first" />
        </li>
        <li>
          <${Command} command="quire new pipeline first" />
        </li>
        <li>
          <${Command} command="quire new directive first" />
        </li>
      </ul>
      <p>It appears here as soon as it is saved.</p>
      </${Empty}>
  `;
}
