// Now: what waits for the user on the left; what runs, has failed, can continue or has just ended on the right.

import { html, useRef } from "../html.js";
import { pathOf } from "../held.js";
import { Command, Empty, Placeholder, ProblemBox } from "../parts/basics.js";
import { Bell } from "../parts/bell.js";
import { Ended, Failed, Letters, Stopped, UnderWay } from "../parts/now_lists.js";
import { Pulse } from "../parts/pulse.js";
import { QuestionGroup } from "../parts/question_group.js";
import { StartButton } from "../parts/start_run.js";
import { useResource } from "../resource.js";
import { Link, useTitle } from "../router.js";
import { part } from "../api.js";
import { upTo } from "../words.js";

const NEWS = ["runs", "questions", "documents"];

export function Now() {
  useTitle("");
  const now = useResource("/now", (frame) => NEWS.includes(frame.event));
  const { data, problem } = now;
  if (problem && !data) {
    return html`
      <${Head} />
      <${ProblemBox} problem=${problem} retry=${now.reload} />
    `;
  }
  if (!data) return html`<${Head} />${now.slow && html`<${Placeholder} lines=${6} />`}`;
  const { stopped, failed, running, finished, letters } = data;
  const nothing = !data.questions.total && ![stopped, failed, running, finished].some((rows) => rows.length);
  return html`
    <${Head} />
    ${!nothing && html`<${Pulse} oldest=${data.questions.groups[0]?.items[0].asked_at ?? 0} />`}
    <div class=${nothing ? "" : "now"}>
      <${Questions} questions=${data.questions} reload=${now.reload}>
        ${nothing && data.documents === 0
          ? html`<${FirstVisit} />`
          : html`<${Quiet} suggested=${running.length ? [] : data.suggested} />`}
      </${Questions}>
      <div>
        <${UnderWay} rows=${running} />
        <${Failed} groups=${failed} reload=${now.reload} />
        <${Stopped} rows=${stopped} more=${data.stopped_more} reload=${now.reload} />
        <${Ended} rows=${finished} />
        <${Letters} letters=${letters} />
      </div>
    </div>
  `;
}

function Head() {
  return html`
    <div class="head now-head">
      <h1 tabindex="-1">Now</h1>
      <${Bell} />
      <${StartButton} />
    </div>
  `;
}

/**
 * The questions. A card that is on the screen stays where it is when its questions are answered, here or elsewhere.
 *
 * @param {{ questions: any, reload: () => void, children?: unknown }} props
 */
function Questions({ questions, reload, children }) {
  const seen = useRef(/** @type {Map<string, any>} */ (new Map()));
  for (const [key, group] of seen.current) seen.current.set(key, { ...group, open: 0 });
  for (const group of questions.groups) {
    const before = seen.current.get(group.key);
    seen.current.set(group.key, { ...(before ? grown(before, group) : group), open: group.count });
  }
  const open = new Set(questions.groups.flatMap((/** @type {any} */ group) => group.items.map(pathOf)));
  const groups = [...seen.current.values()];
  const gone = new Set(groups.flatMap((group) => group.items.map(pathOf)).filter((path) => !open.has(path)));
  const hidden = questions.total -
    questions.groups.reduce((/** @type {number} */ sum, /** @type {any} */ group) => sum + group.count, 0);
  return html`
    <section aria-labelledby="waits">
      <h2 id="waits">Waits for you${questions.total > 0 && html`
        <span class="count tone-wait">${upTo(questions.total)}</span>
      `}</h2>
      ${groups.map((group) => html`<${QuestionGroup} key=${group.key} group=${group} gone=${gone} reload=${reload} />`)}
      ${hidden > 0 &&
        html`<p class="soft more-line">${
          questions.total > 1000 ? "More" : `${hidden} more`
        } questions wait. They follow when these are answered.</p>`}
      ${!questions.total && children}
    </section>
  `;
}

/** A group with its new questions; those that are on the screen keep their place. @param {any} before @param {any} group */
function grown(before, group) {
  const items = new Map([...before.items, ...group.items].map((item) => [pathOf(item), item]));
  return { ...group, count: Math.max(group.count, before.count), items: [...items.values()] };
}

/** @param {{ suggested: any[] }} props */
function Quiet({ suggested }) {
  return html`
    <${Empty} title="Nothing waits for you.">
      ${suggested.length > 0 && html`
        <p data-needs="run">Run a document:</p>
        <ul class="suggested" data-needs="run">
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
        ${["playbook", "pipeline", "directive"].map((format) =>
          html`
            <li>
              <${Command} command="quire new ${format} first" />
            </li>
          `
        )}
      </ul>
      <p>It appears here as soon as it is saved.</p>
      </${Empty}>
  `;
}
