// Questions that items of one fan-out ask together: one card with a list, answered one by one or all alike.

import { ApiProblem, get, post, query } from "../api.js";
import { html, useState } from "../html.js";
import { plural } from "../words.js";
import { ProblemBox } from "./basics.js";
import { Dialog } from "./dialog.js";
import { Icon } from "./icon.js";
import { Answer, AnsweredElsewhere, pathOf, QuestionHead, useAnswer } from "./question.js";

const PAGE = 20;

/** @param {{ group: any, gone: Set<string>, reload: () => void }} props */
export function QuestionGroup({ group, gone, reload }) {
  const [all, setAll] = useState(false);
  const [more, setMore] = useState(/** @type {any[]} */ ([]));
  const [shown, setShown] = useState(PAGE);
  const [told, setTold] = useState("");
  const items = [...group.items, ...more];
  const first = group.items[0];
  const showMore = async () => {
    if (items.length < shown + PAGE && items.length < group.count) {
      const known = new Set(items.map((one) => one.path));
      setMore([...more, ...(await alike(group)).filter((/** @type {any} */ one) => !known.has(one.path))]);
    }
    setShown(shown + PAGE);
  };
  return html`
    <article class="card question" aria-label="Questions of ${group.title}">
      <${QuestionHead} question=${first} count=${group.open} />
      <ul class="rows asked">
        ${items.slice(0, shown).map((one) =>
          html`<${OneOfMany} key=${one.path} question=${one} gone=${gone.has(pathOf(one))} reload=${reload} />`
        )}
      </ul>
      <div class="below-card">
        ${group.count > shown &&
          html`<button type="button" class="button" onClick=${showMore}>Show more of ${group.count}</button>`}
        ${group.open > 1 &&
          html`<button type="button" class="button primary" onClick=${() => setAll(true)}>Answer all alike …</button>`}
        <span class="soft" role="status">${told}</span>
      </div>
      ${all && html`<${AnswerAll} group=${group} onClose=${() => setAll(false)} onDone=${setTold} />`}
    </article>
  `;
}

/** @param {{ question: any, gone: boolean, reload: () => void }} props */
function OneOfMany({ question, gone, reload }) {
  const { state, answer } = useAnswer(question, { onChanged: reload });
  const item = /\[(\d+)\]/.exec(question.path)?.[1];
  return html`
    <li class="asked-one">
      <p class="pre">${item !== undefined && html`<span class="soft number">${Number(item) + 1}. </span>`}${question
        .prompt}</p>
      ${state.answered
        ? html`<p class="answered" role="status"><${Icon} name="check" /> Answered <b>${state.answered}</b></p>`
        : state.elsewhere || gone
        ? html`<${AnsweredElsewhere} question=${question} answer=${state.elsewhere} />`
        : html`<${Answer} question=${question} answer=${answer} disabled=${state.sending} label="Answer ${question.prompt}" />`}
      ${state.problem && !state.elsewhere && html`<${ProblemBox} problem=${state.problem} />`}
    </li>
  `;
}

/** @param {{ group: any, onClose: () => void, onDone: (told: string) => void }} props */
function AnswerAll({ group, onClose, onDone }) {
  const [sending, setSending] = useState(false);
  const [problem, setProblem] = useState(/** @type {any} */ (null));
  /** @param {string} value */
  const answer = async (value) => {
    setSending(true);
    try {
      const open = await alike(group);
      let answered = 0;
      for (let at = 0; at < open.length; at += 500) {
        const answers = open.slice(at, at + 500).map(({ run, path, hash }) => ({ run, path, hash, value }));
        answered += (await post("/questions/answers", { answers })).answered;
      }
      onDone(
        `${plural(answered, "question")} answered ${value}` +
          (answered < open.length ? `, ${open.length - answered} were not open any more or did not take it` : ""),
      );
      onClose();
    } catch (error) {
      if (!(error instanceof ApiProblem)) throw error;
      setSending(false);
      setProblem(error.problem);
    }
  };
  return html`
    <${Dialog} title="Answer ${plural(group.open, "question")} alike" onClose=${onClose}>
      <p>Every open question of step ${group
        .way} gets the same answer. Those that were answered meanwhile keep theirs.</p>
      <p class="prompt pre">${group.items[0].prompt}</p>
      <${Answer} question=${{
        ...group.items[0],
        path: `${group.items[0].path}#all`,
      }} answer=${answer} disabled=${sending} label="One answer for all" />
      ${problem && html`<${ProblemBox} problem=${problem} />`}
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
  const shape = shapeOf(group.items[0]);
  const found = [];
  let after = "";
  do {
    const page = await get(`/questions${query({ run: group.run, limit: 500, after })}`);
    found.push(...page.items.filter((/** @type {any} */ one) => shapeOf(one) === shape));
    after = page.next ?? "";
  } while (after);
  return found;
}

/** @param {any} question */
function shapeOf(question) {
  return question.path.replace(/\[\d+\]/g, "[]");
}
