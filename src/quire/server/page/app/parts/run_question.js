// An open question of a run, and what became of it: answered here, or by another person meanwhile.

import { lostSince } from "../feed.js";
import { pathOf } from "../held.js";
import { html } from "../html.js";
import { useResource } from "../resource.js";
import { cut } from "../words.js";
import { Age, Command } from "./basics.js";
import { Icon } from "./icon.js";
import { Answering, Freed, Prompt } from "./question.js";

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
  const { data } = useResource(pathOf(question));
  const red = data?.frees?.red;
  const command = head.actions.find((/** @type {any} */ one) => one.name === "answer")?.command;
  return html`
    <article class="question-open">
      <header>
        <${Icon} name="question" />
        <span>Step ${question.way}${question.step_title && `: ${question.step_title}`}</span>
        <span class="soft">asked <${Age} at=${question.asked_at} /></span>
        ${command && html`<span class="push"><${Command} command=${command} /></span>`}
      </header>
      <${Prompt} question=${data?.hash === question.hash ? data : question} />
      ${red && html`<${Freed} frees=${data.frees} />`}
      <${Answering} question=${question} disabled=${lostSince.value > 0} word=${red ? data.frees.word : ""} />
    </article>
  `;
}

/** Brings the open question into view, with the focus on its first answer. */
export function focusAnswer() {
  const question = document.querySelector(".question-open");
  question?.scrollIntoView({ block: "nearest" });
  const field = question?.querySelector(".option, textarea");
  if (field instanceof HTMLElement) field.focus();
}
