// A question with the means to answer it in place: options as buttons, Yes and No, or a text.

import { ApiProblem, part, post } from "../api.js";
import { html, useState } from "../html.js";
import { Link } from "../router.js";
import { Age, ProblemBox } from "./basics.js";
import { Icon } from "./icon.js";

/** @param {{ question: any }} props */
export function QuestionCard({ question }) {
  const [state, setState] = useState({ sending: false, answered: "", problem: /** @type {any} */ (null) });
  /** @param {string} value */
  const answer = async (value) => {
    setState({ sending: true, answered: "", problem: null });
    try {
      await post(`/questions/${part(question.run)}/${part(question.path)}/answer`, { value, hash: question.hash });
      setState({ sending: false, answered: value, problem: null });
    } catch (error) {
      if (!(error instanceof ApiProblem)) throw error;
      setState({ sending: false, answered: "", problem: error.problem });
    }
  };
  return html`
    <article class="card question">
      <header>
        <${Icon} name="question" />
        <${Link} to="/runs/${question.run}">${question.title}</${Link}>
        <span class="soft">step ${question.way}${question.step_title ? `: ${question.step_title}` : ""}</span>
        <span class="soft push"><${Age} at=${question.asked_at} /></span>
      </header>
      <p class="prompt pre">${question.prompt}</p>
      ${state.answered
        ? html`<p role="status"><${Icon} name="check" /> Answered: ${state.answered}</p>`
        : html`<${Answer} question=${question} answer=${answer} disabled=${state.sending} />`}
      ${state.problem && html`<${ProblemBox} problem=${state.problem} />`}
    </article>
  `;
}

/** @param {{ question: any, answer: (value: string) => void, disabled: boolean }} props */
export function Answer({ question, answer, disabled }) {
  const [text, setText] = useState(question.default ?? "");
  const options = question.kind === "confirm" ? ["yes", "no"] : question.options;
  if (options.length) {
    return html`
      <div class="options">
        ${options.map((/** @type {string} */ option) =>
          html`<button type="button" class="button option" disabled=${disabled} onClick=${() =>
            answer(option)}>${option}</button>`
        )}
      </div>
    `;
  }
  /** @param {KeyboardEvent} event */
  const onKeyDown = (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) answer(text);
  };
  return html`
    <form class="answer" onSubmit=${(/** @type {Event} */ event) => (event.preventDefault(), answer(text))}>
      <textarea rows="3" aria-label="Your answer" value=${text} onKeyDown=${onKeyDown} onInput=${(
        /** @type {any} */ event,
      ) => setText(event.target.value)}></textarea>
      <button type="submit" class="button primary" disabled=${disabled || !text}>Answer</button>
      <span class="soft hint">Ctrl-Enter</span>
    </form>
  `;
}
