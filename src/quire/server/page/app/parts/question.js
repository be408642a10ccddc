// A question with the means to answer it in place: options as buttons, Yes and No, or a text; and what became of it.

import { get, part } from "../api.js";
import { answerOf, hold, pathOf, undo } from "../held.js";
import { html, useEffect, useRef, useState } from "../html.js";
import { addShortcuts } from "../keys.js";
import { Link } from "../router.js";
import { ago, cut, money, plural, span } from "../words.js";
import { ProblemBox } from "./basics.js";
import { Icon } from "./icon.js";
import { Markup } from "./markup.js";

/** Texts that were typed and not sent yet, by question. @type {Map<string, string>} */
const drafts = new Map();

/** The words of a question. @param {{ question: any }} props */
export function Prompt({ question }) {
  return question.html
    ? html`<${Markup} class="prompt markup" html=${question.html} />`
    : html`<p class="prompt pre">${question.prompt}</p>`;
}

/** @param {{ at: number }} props */
export function Expiry({ at }) {
  const left = at - Date.now() / 1000;
  return html`<span class=${left < 86_400 ? "soon" : ""}>${left > 0 ? `expires in ${span(left)}` : "expired"}</span>`;
}

/**
 * The means to answer a question; what became of the answer once it is given. `gone` is true once the question is not
 * open any more. `reload` reads it again, because it is worded differently.
 *
 * @param {{ question: any, reload?: () => void, gone?: boolean, disabled?: boolean, onward?: string, [name: string]: unknown }} props
 */
export function Answering({ question, reload = () => {}, gone = false, disabled = false, onward = "", ...rest }) {
  const answer = answerOf(question);
  const { state, problem } = answer ?? {};
  useEffect(() => {
    if (state === "answered") drafts.delete(pathOf(question));
    if (problem?.code === "question-changed") reload();
  }, [state, problem]);
  if (answer && state === "held") return html`<${Held} question=${question} answer=${answer} />`;
  if (answer && state === "answered") {
    return html`
      <p class="answered" role="status"><${Icon} name="check" /> Answered <b>${cut(answer.value, 120)}</b>${onward}</p>
    `;
  }
  const isElsewhere = problem?.code === "already-answered";
  if (isElsewhere || (gone && state !== "sending")) {
    return html`<${AnsweredElsewhere} question=${question} answer=${isElsewhere ? problem.answer : null} />`;
  }
  return html`
    <${Answer} ...${rest} question=${question} answer=${(/** @type {string} */ value) => hold([question], value)}
      disabled=${disabled || state === "sending"} />
    ${problem && html`<${ProblemBox} problem=${problem} />`}
  `;
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

/**
 * The means to answer. With `keys`, 1…9, y and n choose an option; they ask first, because an answer costs money. `word`
 * names what a yes does, in red.
 *
 * @param {{ question: any, answer: (value: string) => void, disabled: boolean, keys?: boolean, label?: string, word?: string }} props
 */
export function Answer({ question, answer, disabled, keys = false, label = "Your answer", word = "" }) {
  const options = /** @type {string[]} */ (question.kind === "confirm" ? ["yes", "no"] : question.options);
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    if (!keys || !options.length) return;
    /** @param {number} at */
    const focus = (at) =>
      /** @type {HTMLElement | undefined} */ (place.current?.querySelectorAll("button")[at])?.focus();
    return addShortcuts(
      "This question",
      options.slice(0, 9).map((option, at) => ({
        keys: question.kind === "confirm" ? option[0] : String(at + 1),
        does: `Choose ${option}; Enter answers`,
        run: () => focus(at),
      })),
    );
  }, [question.hash, keys]);
  if (!options.length) return html`<${TextAnswer} ...${{ question, answer, disabled, label }} />`;
  const words = question.kind === "confirm" ? [word ? `Yes, ${word}` : "Yes", "No"] : options;
  return html`
    <div class="options" data-needs="answer" ref=${place} role="group" aria-label=${label}>
      ${options.map((option, at) =>
        html`
          <button type="button" disabled=${disabled} onClick=${() => answer(option)}
            class="button option ${option === question.default ? "usual" : ""} ${word && option === "yes"
              ? "danger"
              : ""}">
            ${keys && at < 9 &&
              html`<kbd aria-hidden="true">${question.kind === "confirm" ? option[0] : at + 1}</kbd>`}
            <span>${words[at]}</span>
          </button>
        `
      )}
    </div>
  `;
}

/** An answer that can still be undone. @param {{ question: any, answer: import("../held.js").Given }} props */
function Held({ question, answer }) {
  const [left, setLeft] = useState(Math.ceil((answer.due - Date.now()) / 1000));
  const button = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    // The button that was clicked is gone; its focus goes to the one that takes it back.
    if (document.activeElement === document.body) button.current?.focus({ preventScroll: true });
    const timer = setInterval(() => setLeft(Math.max(0, Math.ceil((answer.due - Date.now()) / 1000))), 250);
    return () => clearInterval(timer);
  }, [answer.due]);
  return html`
    <p class="held">
      <${Icon} name="running" />
      <span role="status">Answered <b>${cut(answer.value, 60)}</b></span>
      <span class="soft number" aria-hidden="true">sent in ${left} s</span>
      <button type="button" class="button" ref=${button} onClick=${() => undo(question)}>Undo</button>
    </p>
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
    <form class="answer" data-needs="answer" onSubmit=${(
      /** @type {Event} */ event,
    ) => (event.preventDefault(), answer(text))}>
      <textarea rows="3" aria-label=${label} value=${text} onKeyDown=${onKeyDown} onInput=${onInput}></textarea>
      <button type="submit" class="button primary" disabled=${disabled || !text}>Answer</button>
      <span class="soft small wide-only"><kbd>Ctrl</kbd> <kbd>Enter</kbd></span>
    </form>
  `;
}

/** What a yes sets free. @param {{ frees: any }} props */
export function Freed({ frees }) {
  if (!frees) return html`<p class="freed soft">The effects of an answer are not known: answer each by itself.</p>`;
  const { effects, calls, price, red } = frees;
  const changes = effects.filter((/** @type {any} */ effect) => effect.world);
  const most = calls && (calls[1] ? `at most ${plural(calls[1], "model call")}` : "no model call");
  const rest = [most, price && price[1] > 0 && `at most ${money(price[1])}`].filter(Boolean).join(", ");
  if (red) {
    return html`
      <p class="freed red"><${Icon} name="warning" />
        <span><b>Yes runs</b> <code>${changes[0]?.name}</code>${changes.length > 1 &&
          ` and ${plural(changes.length - 1, "other effect")}`} · changes the world${rest && ` · ${rest}`}</span></p>
    `;
  }
  const named = changes.slice(0, 3).map((/** @type {any} */ change) => change.name).join(", ");
  return html`
    <p class="freed soft"><b>Then</b> ${rest ? `${rest}; ` : ""}${changes.length
      ? `later ${named}${changes.length > 3 ? ", …" : ""}`
      : "nothing is changed outside"}</p>
  `;
}

/** The last outputs before a question. @param {{ led: any[], run: string }} props */
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
