// The open question of a run in a bar above everything, and what became of it: answered here, or by somebody else
// meanwhile.

import { part } from "../api.js";
import { lostSince } from "../feed.js";
import { html, useRef } from "../html.js";
import { Link } from "../router.js";
import { cut } from "../words.js";
import { Age, Command } from "./basics.js";
import { Icon } from "./icon.js";
import { Answering } from "./question.js";

/** @param {{ head: any }} props */
export function QuestionBar({ head }) {
  const asked = useRef(/** @type {Map<string, any>} */ (new Map()));
  const open = head.questions;
  for (const one of open) asked.current.set(one.path, one);
  const answered = head.answers.filter((/** @type {any} */ one) =>
    asked.current.has(one.path) && !open.some((/** @type {any} */ question) => question.path === one.path)
  );
  if (!open.length && !answered.length) return null;
  return html`
    <section class="question-bar" aria-label="Question">
      ${answered.slice(-1).map((/** @type {any} */ one) => html`<${Answered} key=${one.path} answer=${one} />`)}
      ${open.slice(0, 1).map((/** @type {any} */ one) =>
        html`<${RunQuestion} key=${one.path} head=${head} question=${one} />`
      )}
      ${open.length > 1 &&
        html`<p class="soft">${open.length - 1} more wait: ${
          open.slice(1, 6).map((/** @type {any} */ one) =>
            html`
              <${Link} to="/runs/${head.id}/steps/${part(one.path)}">step ${one.way}</${Link}>
            `
          )
        }</p>`}
    </section>
  `;
}

/** @param {{ answer: any }} props */
export function Answered({ answer }) {
  return html`
    <p class="answer-given" role="status"><${Icon} name="check" />
      Step ${answer.way}: answered <strong>${cut(String(answer.answer), 120)}</strong>${answer.by
        ? ` by ${who(answer.by)}`
        : ""}, <${Age} at=${answer.at} /></p>
  `;
}

/** @param {string} by the author as it is recorded */
export function who(by) {
  if (by === "web") return "this page";
  if (by.startsWith("mcp:")) return `${by.slice(4)} over MCP`;
  if (by === "--answer") return "an answer given beforehand";
  return by === "unattended"
    ? "no person: the default was used"
    : by === "python"
    ? "a program"
    : `${by}, in the terminal`;
}

/** @param {{ head: any, question: any }} props */
export function RunQuestion({ head, question }) {
  const command = head.actions.find((/** @type {any} */ one) => one.name === "answer")?.command;
  return html`
    <article class="question-open">
      <header>
        <${Icon} name="question" />
        <${Link} to="/runs/${head.id}/steps/${part(question.path.replace(/\/ask$/, ""))}">Step ${question
          .way}${question.step_title && `: ${question.step_title}`}</${Link}>
        <span class="soft">asked <${Age} at=${question.asked_at} /></span>
        ${command && html`<span class="push"><${Command} command=${command} /></span>`}
      </header>
      <p class="prompt pre">${question.prompt}</p>
      <${Answering} question=${question} disabled=${lostSince.value > 0} />
    </article>
  `;
}

/** The question that the bar above shows, at the step that asks it. @param {{ question: any }} props */
export function AskedAbove({ question }) {
  return html`
    <div class="question-open">
      <p class="prompt pre">${question.prompt}</p>
      <p><button type="button" class="button" onClick=${focusAnswer}><${Icon} name="question" />Answer above</button></p>
    </div>
  `;
}

/** Brings the bar into view, with the focus on its first answer. */
export function focusAnswer() {
  const bar = document.querySelector(".question-bar");
  bar?.scrollIntoView({ block: "nearest" });
  const field = bar?.querySelector(".option, textarea, .question-open button");
  if (field instanceof HTMLElement) field.focus();
}
