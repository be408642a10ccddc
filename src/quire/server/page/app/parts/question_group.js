// Questions that are alike, as one card: their text once, what a yes sets free, and a row for each run or item that
// asks. All of them are answered at once, unless a yes changes the world.

import { get, query } from "../api.js";
import { answerOf, hold, pathOf } from "../held.js";
import { html, useState } from "../html.js";
import { Link } from "../router.js";
import { plural, span } from "../words.js";
import { Age, Command } from "./basics.js";
import { Dialog } from "./dialog.js";
import { Icon } from "./icon.js";
import { Answer, Answering, Expiry, Freed, Led, Prompt } from "./question.js";

const PAGE = 20;
/** Seconds before the end of a question in which a list says so. */
const SOON = 7 * 86_400;

/** @param {{ group: any, gone: Set<string>, reload: () => void }} props */
export function QuestionGroup({ group, gone, reload }) {
  const [asking, setAsking] = useState(false);
  const [more, setMore] = useState(/** @type {any[]} */ ([]));
  const [shown, setShown] = useState(PAGE);
  const items = [...group.items, ...more];
  const first = items[0];
  const red = group.frees?.red;
  const showMore = async () => {
    if (items.length < Math.min(shown + PAGE, group.count)) {
      const drawn = new Set(items.map(pathOf));
      setMore([...more, ...(await alike(group)).filter((question) => !drawn.has(pathOf(question)))]);
    }
    setShown(shown + PAGE);
  };
  const isText = first.kind !== "confirm" && !first.options.length;
  return html`
    <article class="card question" aria-label="Questions of ${group.title}">
      <header>
        <${Icon} name="question" />
        <${Link} to="/runs?document=${encodeURIComponent(group.document)}" class="row-link"><b>${group
          .title}</b></${Link}>
        <span class="soft">step ${group.way}${first.step_title ? `: ${first.step_title}` : ""}</span>
        ${group.count > 1 && html`<span class="count">${group.open} alike</span>`}
        <span class="soft push">${asked(items)}${first.expires_at - Date.now() / 1000 < SOON && first.expires_at
          ? html`, <${Expiry} at=${first.expires_at} />`
          : ""}</span>
      </header>
      ${group.same && html`<${Prompt} question=${first} />`}
      ${red && html`<${Freed} frees=${group.frees} />`}
      <ul class="asked">
        ${items.slice(0, shown).map((question) =>
          html`
            <li key=${pathOf(question)} class=${isText ? "asked-text" : ""}>
              <${AskedBy} question=${question} group=${group} />
              <${Answering} question=${question} gone=${gone.has(pathOf(question))} reload=${reload}
                word=${red ? group.frees.word : ""} label=${group.count > 1
                  ? `Answer of ${question.subject}`
                  : "Your answer"} />
              ${group.count === 1 && html`<${LedHere} question=${question} />`}
            </li>
          `
        )}
      </ul>
      ${(!red || group.count > shown) && html`
        <footer>
          ${!red && html`<${Freed} frees=${group.frees} />`}
          ${group.count > shown &&
            html`<button type="button" class="button" onClick=${showMore}>Show more of ${group.count}</button>`}
          ${group.open > 1 && !group.alone && html`
            <button type="button" class="button" data-needs="answer" onClick=${() => setAsking(true)}>
              Answer all ${group.open} …</button>
          `}
        </footer>
      `}
      ${asking && html`<${AnswerAll} group=${group} onClose=${() => setAsking(false)} />`}
    </article>
  `;
}

/** When they were asked: `asked 3 min – 2 h ago`. @param {any[]} items */
function asked(items) {
  const ages = items.map((question) => Date.now() / 1000 - question.asked_at);
  const [least, most] = [span(Math.min(...ages)), span(Math.max(...ages))];
  return `asked ${least === most ? "" : `${least} – `}${most} ago`;
}

/** The run or the item that asks. @param {{ question: any, group: any }} props */
function AskedBy({ question, group }) {
  const item = group.fan ? /\[(\d+)\](?!.*\[\d+\])/.exec(question.path)?.[1] : undefined;
  const number = item === undefined ? "" : `${Number(item) + 1}. `;
  return html`
    <div class="asked-by">
      ${group.same
        ? html`<${Link} to="/runs/${question.run}" class="subject">${number}${question.subject}</${Link}>`
        : html`<p class="subject pre">${number}${question.prompt}</p>`}
      ${!group.fan && html`
        <span class="soft small">${question.differing || `run ${question.run}`}${group.count > 1 &&
          html`, <${Age} at=${question.asked_at} />`}</span>
      `}
    </div>
  `;
}

/** The last outputs before the question, read when they are opened. @param {{ question: any }} props */
function LedHere({ question }) {
  const [led, setLed] = useState(/** @type {any[] | null} */ (null));
  /** @param {any} event */
  const onToggle = async (event) => {
    if (!event.target.open || led) return;
    setLed((await get(pathOf(question)).catch(() => ({ led: [] }))).led);
  };
  return html`
    <details class="led" onToggle=${onToggle}>
      <summary>What led here</summary>
      ${led && html`
        <${Led} led=${led} run=${question.run} />
        <${Command} command=${question.command} />
      `}
    </details>
  `;
}

/** @param {{ group: any, onClose: () => void }} props */
function AnswerAll({ group, onClose }) {
  /** @param {string} value */
  const answer = async (value) => {
    const open = group.items.length < group.count ? await alike(group).catch(() => group.items) : group.items;
    hold(open.filter((/** @type {any} */ question) => !question.alone && !answerOf(question)), value);
    onClose();
  };
  const first = { ...group.items[0], path: `${group.items[0].path}#all` };
  return html`
    <${Dialog} title="Answer ${plural(group.open, "question")} alike" onClose=${onClose}>
      <p>Every open question of step ${group
        .way} gets the same answer. Those that were answered meanwhile keep theirs.</p>
      <p class="prompt pre">${first.prompt}</p>
      <${Answer} question=${first} answer=${answer} disabled=${false} label="One answer for all" />
      </${Dialog}>
  `;
}

/**
 * All open questions of a group, as they are now.
 *
 * @param {any} group
 * @returns {Promise<any[]>}
 */
async function alike(group) {
  const all = [];
  let after = "";
  do {
    const page = await get(`/questions${query({ limit: 500, after })}`);
    all.push(...page.items.filter((/** @type {any} */ question) => question.group === group.key));
    after = page.next ?? "";
  } while (after);
  return all;
}
