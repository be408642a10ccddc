// A question with the means to answer it in place: options as buttons, Yes and No, or a text.

import { ApiProblem, get, part, post } from "../api.js";
import { html, useEffect, useRef, useState } from "../html.js";
import { addShortcuts } from "../keys.js";
import { Link } from "../router.js";
import { ago, plural, span } from "../words.js";
import { Age, Command, ProblemBox } from "./basics.js";
import { Icon } from "./icon.js";
import { Markup } from "./markup.js";

/** Texts that were typed and not sent yet, by question. @type {Map<string, string>} */
const drafts = new Map();

/** @param {any} question */
export function pathOf(question) {
  return `/questions/${part(question.run)}/${part(question.path)}`;
}

/** @typedef {{ sending: boolean, answered: string, elsewhere: any, problem: any }} Sent */

/**
 * Sends answers to one question and keeps what came of it.
 *
 * @param {any} question
 * @param {{ onChanged?: () => void }} [options] `onChanged` reads the question again, because it is worded differently
 * @returns {{ state: Sent, answer: (value: string) => Promise<void> }}
 */
export function useAnswer(question, { onChanged = () => {} } = {}) {
  const nothing = { sending: false, answered: "", elsewhere: null, problem: null };
  const [state, setState] = useState(/** @type {Sent} */ (nothing));
  /** @param {string} value */
  const answer = async (value) => {
    setState({ ...nothing, sending: true });
    try {
      await post(`${pathOf(question)}/answer`, { value, hash: question.hash });
      drafts.delete(pathOf(question));
      setState({ ...nothing, answered: value });
    } catch (error) {
      if (!(error instanceof ApiProblem)) throw error;
      const { problem } = error;
      setState({ ...nothing, elsewhere: problem.code === "already-answered" ? problem.answer : null, problem });
      if (problem.code === "question-changed") onChanged();
    }
  };
  return { state, answer };
}

/**
 * One question as a card. `gone` is true once it is no longer open: then the card says how it was answered, and stays
 * where it is.
 *
 * @param {{ question: any, gone?: boolean, reload?: () => void }} props
 */
export function QuestionCard({ question, gone = false, reload = () => {} }) {
  const { state, answer } = useAnswer(question, { onChanged: reload });
  return html`
    <article class="card question" aria-label="Question of ${question.title}">
      <${QuestionHead} question=${question} />
      <${Prompt} question=${question} />
      ${state.answered
        ? html`<p class="answered" role="status"><${Icon} name="check" /> Answered <b>${state.answered}</b></p>`
        : state.elsewhere || gone
        ? html`<${AnsweredElsewhere} question=${question} answer=${state.elsewhere} />`
        : html`
          <${Answer} question=${question} answer=${answer} disabled=${state.sending} />
          ${state.problem && html`<${ProblemBox} problem=${state.problem} />`}
          <${LedHere} question=${question} />
        `}
    </article>
  `;
}

/** The words of a question. @param {{ question: any }} props */
export function Prompt({ question }) {
  return question.html
    ? html`<${Markup} class="prompt markup" html=${question.html} />`
    : html`<p class="prompt pre">${question.prompt}</p>`;
}

/** @param {{ question: any, count?: number }} props */
export function QuestionHead({ question, count = 1 }) {
  return html`
    <header>
      <${Icon} name="question" />
      <${Link} to="/runs/${question.run}">${question.title || question.run}</${Link}>
      <span class="soft">step ${question.way}${question.step_title ? `: ${question.step_title}` : ""}</span>
      ${count > 1 && html`<span class="count">${plural(count, "item asks", "items ask")}</span>`}
      <span class="soft push">
        <${Age} at=${question.asked_at} />${question.expires_at ? html`, <${Expiry} at=${question.expires_at} />` : ""}
      </span>
    </header>
  `;
}

/** @param {{ at: number }} props */
export function Expiry({ at }) {
  const left = at - Date.now() / 1000;
  return html`<span class=${left < 86_400 ? "soon" : ""}>${left > 0 ? `expires in ${span(left)}` : "expired"}</span>`;
}

/** Says who answered a question in the meantime, and what. @param {{ question: any, answer?: any }} props */
export function AnsweredElsewhere({ question, answer = null }) {
  const [given, setGiven] = useState(answer);
  useEffect(() => {
    if (given) return;
    get(pathOf(question)).then((now) => setGiven(now.answer ?? { words: "" })).catch(() => setGiven({ words: "" }));
  }, []);
  if (given && given.value === undefined) {
    return html`<p class="answered soft" role="status">This question is closed.</p>`;
  }
  return html`
    <p class="answered" role="status">
      <${Icon} name="check" />${given
        ? html`<span>Answered <b>${given.value}</b> ${given.words}${given.at ? `, ${ago(given.at)}` : ""}</span>`
        : "Answered"}
    </p>
  `;
}

/** @param {any} question */
export function choices(question) {
  return question.kind === "confirm" ? ["yes", "no"] : question.options;
}

/**
 * The means to answer. With `keys`, 1…9, y and n choose an option; they ask first, because an answer costs money.
 *
 * @param {{ question: any, answer: (value: string) => void, disabled: boolean, keys?: boolean, label?: string }} props
 */
export function Answer({ question, answer, disabled, keys = false, label = "Your answer" }) {
  const options = /** @type {string[]} */ (choices(question));
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    if (!keys || !options.length) return;
    /** @param {number} at */
    const focus = (at) =>
      /** @type {HTMLElement | undefined} */ (place.current?.querySelectorAll("button")[at])?.focus();
    const named = question.kind === "confirm"
      ? [["y", 0, "Choose yes"], ["n", 1, "Choose no"]]
      : options.slice(0, 9).map((option, at) => [String(at + 1), at, `Choose ${option}`]);
    return addShortcuts(
      "This question",
      named.map(([key, at, does]) => ({
        keys: String(key),
        does: `${does}; Enter answers`,
        run: () => focus(Number(at)),
      })),
    );
  }, [question.hash, keys]);
  if (!options.length) return html`<${TextAnswer} ...${{ question, answer, disabled, label }} />`;
  return html`
    <div class="options" ref=${place} role="group" aria-label=${label}>
      ${options.map((option, at) =>
        html`
          <button type="button" class="button option ${option === question.default ? "usual" : ""}" disabled=${disabled}
            onClick=${() => answer(option)}>
            ${keys && at < 9 &&
              html`<kbd aria-hidden="true">${question.kind === "confirm" ? option[0] : at + 1}</kbd>`}
            <span>${question.kind === "confirm" ? (option === "yes" ? "Yes" : "No") : option}</span>
          </button>
        `
      )}
    </div>
  `;
}

/** @param {{ question: any, answer: (value: string) => void, disabled: boolean, label: string }} props */
function TextAnswer({ question, answer, disabled, label }) {
  const [text, setText] = useState(drafts.get(pathOf(question)) ?? question.default ?? "");
  /** @param {any} event */
  const onInput = (event) => {
    setText(event.target.value);
    drafts.set(pathOf(question), event.target.value);
  };
  /** @param {KeyboardEvent} event */
  const onKeyDown = (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && text && !disabled) answer(text);
  };
  return html`
    <form class="answer" onSubmit=${(/** @type {Event} */ event) => (event.preventDefault(), answer(text))}>
      <textarea rows="3" aria-label=${label} value=${text} onKeyDown=${onKeyDown} onInput=${onInput}></textarea>
      <button type="submit" class="button primary" disabled=${disabled || !text}>Answer</button>
      <span class="soft small wide-only"><kbd>Ctrl</kbd> <kbd>Enter</kbd></span>
    </form>
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
    <div class="below-card">
      <details class="led" onToggle=${onToggle}>
        <summary>What led here</summary>
        ${led && html`<${Led} led=${led} run=${question.run} />`}
      </details>
      <${Command} command=${question.command} />
    </div>
  `;
}

/** @param {{ led: any[], run: string }} props */
export function Led({ led, run }) {
  if (!led.length) return html`<p class="soft">It is the first thing that this run does.</p>`;
  return html`
    <ol class="led-steps">
      ${led.map((step, at) =>
        html`
          <li key=${step.path}>
            <details class="led" open=${at === led.length - 1}>
              <summary>Step ${step.way}${step.title && `: ${step.title}`}</summary>
              <div class="led-output" tabindex="0" role="region" aria-label="Output of step ${step.way}">
                ${step.html ? html`<${Markup} html=${step.html} />` : html`<div class="pre">${step.output}</div>`}
                ${step.cut ? html`<p class="soft">… and more</p>` : ""}
              </div>
              <p class="small">
                <${Link} to="/runs/${run}/steps/${part(step.path)}">Open the step</${Link}></p>
            </details>
          </li>
        `
      )}
    </ol>
  `;
}
