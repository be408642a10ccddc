// Answers of this page. Each is held for some seconds, in which it can be undone, and is then sent; it is sent at once
// when the tab is closed. Leaving the screen changes nothing: an answer belongs to the page.

import { ApiProblem, part, send } from "./api.js";
import { signal } from "./html.js";

const HOLD_MS = 5000;
/** The second click of a double click falls on the button that takes the answer back. */
const DOUBLE_CLICK_MS = 400;
/** A request that outlives its tab may carry 64 KB. */
const MOST_AT_ONCE = 200;

/** @typedef {{ run: string, path: string, hash: string }} Asked */
/**
 * An answer: `held` until `due`, then `sending`, then `answered`; or it did not work, for the reason in `problem`.
 *
 * @typedef {{ value: string, state: "held" | "sending" | "answered" | "problem", due: number, problem?: any }} Given
 */

/** The answers by question. @type {import("@preact/signals").Signal<ReadonlyMap<string, Given>>} */
export const answers = signal(new Map());
/** Answers that are held, by their timer: one question, or several with the same answer. @type {Map<number, Asked[]>} */
const waiting = new Map();

/** @param {{ run: string, path: string }} question */
export function pathOf(question) {
  return `/questions/${part(question.run)}/${part(question.path)}`;
}

/** A question that is worded anew is another one. @param {Asked} question */
function keyOf({ run, path, hash }) {
  return `${run} ${path} ${hash}`;
}

/** @param {Asked} question */
export function answerOf(question) {
  return answers.value.get(keyOf(question));
}

/** @param {Asked[]} asked @param {(question: Asked) => Given | undefined} next */
function change(asked, next) {
  const all = new Map(answers.value);
  for (const question of asked) {
    const answer = next(question);
    if (answer) all.set(keyOf(question), answer);
    else all.delete(keyOf(question));
  }
  answers.value = all;
}

/**
 * Holds one answer to questions. A question that is answered already keeps its answer.
 *
 * @param {Asked[]} questions
 * @param {string} value
 */
export function hold(questions, value) {
  const free = questions.filter((question) => (answerOf(question)?.state ?? "problem") === "problem");
  if (!free.length) return;
  const due = Date.now() + HOLD_MS;
  change(free, () => ({ value, state: "held", due }));
  const timer = setTimeout(() => release(timer), HOLD_MS);
  waiting.set(timer, free);
}

/** Takes a held answer back. @param {Asked} question */
export function undo(question) {
  const answer = answerOf(question);
  if (answer?.state !== "held" || answer.due - Date.now() > HOLD_MS - DOUBLE_CLICK_MS) return;
  for (const [timer, asked] of waiting) {
    waiting.set(timer, asked.filter((other) => keyOf(other) !== keyOf(question)));
  }
  change([question], () => undefined);
}

/** Sends the answers of a timer, each once. @param {number} timer @param {boolean} [closing] nothing comes later */
async function release(timer, closing = false) {
  const asked = waiting.get(timer) ?? [];
  waiting.delete(timer);
  clearTimeout(timer);
  for (let at = 0; at < asked.length; at += MOST_AT_ONCE) {
    const sent = sendNow(asked.slice(at, at + MOST_AT_ONCE));
    if (!closing) await sent;
  }
}

/** @param {Asked[]} asked */
async function sendNow(asked) {
  const value = answerOf(asked[0])?.value ?? "";
  change(asked, () => ({ value, state: "sending", due: 0 }));
  const body = { answers: asked.map(({ run, path, hash }) => ({ run, path, hash, value })) };
  try {
    const { items } = await (await send("POST", "/questions/answers", { body, keepalive: true })).json();
    const results = new Map(items.map((/** @type {any} */ item) => [pathOf(item), item]));
    change(asked, (question) => {
      const { answered, problem } = results.get(pathOf(question));
      return answered
        ? { value, state: "answered", due: 0 }
        : { value, state: "problem", due: 0, problem: { title: "This answer was not taken", ...problem } };
    });
  } catch (error) {
    if (!(error instanceof ApiProblem)) throw error;
    const { problem } = error;
    change(asked, () => ({ value, state: "problem", due: 0, problem }));
  }
}

addEventListener("pagehide", () => [...waiting.keys()].forEach((timer) => release(timer, true)));
