// One document in a session of the server's language operation: messages of the Language Server Protocol by POST.

import { ApiProblem, part, post } from "../api.js";

/** The session of this tab. */
const SESSION = crypto.randomUUID?.() ?? String(Math.random()).slice(2);
/** Requests without messages until the findings of a change are there: two seconds each at most. */
const MOST_POLLS = 30;

/** @typedef {{ line: number, character: number }} Position */
/** @typedef {{ start: Position, end: Position }} Range */
/** @typedef {{ range: Range, severity: number, code: string, message: string, data: { name: string, fix: boolean } }} Finding */
/** @typedef {ReturnType<typeof connect>} Connection */

/**
 * @param {string} id of the document
 * @param {() => string} text the text as it is now
 * @param {(findings: Finding[]) => void} onFindings
 * @param {(problem: import("../api.js").Problem) => void} onProblem
 */
export function connect(id, text, onFindings, onProblem) {
  const path = `/documents/${part(id)}/language`;
  /** @type {Map<number, (result: any) => void>} */
  const waiting = new Map();
  let [next, version, opened, gone, polling] = [0, 0, false, false, false];
  /** @type {object[]} */
  const queue = [];
  /** Messages go one list after the other, so that a change is never overtaken. */
  let turn = Promise.resolve();

  /** @param {string} method @param {object} [params] @param {object} [document] */
  const message = (method, params = {}, document = {}) => ({
    method: `textDocument/${method}`,
    params: { textDocument: { version, ...document }, ...params },
  });

  /** @param {object[]} messages @returns {Promise<boolean>} whether the session has no work left */
  async function exchange(messages) {
    const answer = await post(path, { session: SESSION, messages });
    for (const { method, id, params, result } of gone ? [] : answer.messages) {
      if (method) onFindings(params.diagnostics);
      else waiting.get(id)?.(result ?? null);
      waiting.delete(id);
    }
    return answer.quiet;
  }

  /** @param {object[]} messages */
  async function attempt(messages) {
    if (gone) return;
    try {
      await exchange(opened ? messages : [message("didOpen", {}, { text: text() }), ...messages]);
      opened = true;
    } catch (error) {
      if (!(error instanceof ApiProblem)) throw error;
      const isOld = opened && error.problem.code === "no-session";
      opened = false; // a change may be lost: the next message opens the text again
      if (isOld) return await attempt(messages.filter((request) => "id" in request));
      for (const answer of waiting.values()) answer(null);
      waiting.clear();
      onProblem(error.problem);
    }
  }

  /** What is sent in one moment goes in one request. @param {object[]} messages */
  function send(messages) {
    queue.push(...messages);
    return turn = turn.then(() => queue.length ? attempt(queue.splice(0)) : undefined);
  }

  return {
    changed() {
      version++;
      if (opened) send([message("didChange", { contentChanges: [{ text: text() }] })]);
    },
    /** @param {string} method @param {object} [params] @returns {Promise<any>} null without an answer */
    ask(method, params) {
      const id = ++next;
      const answer = new Promise((resolve) => waiting.set(id, resolve));
      send([{ id, ...message(method, params) }]).then(() => waiting.has(id) ? this.settle() : undefined);
      return answer;
    },
    /** Waits for the findings about the last change. */
    async settle() {
      if (polling) return;
      polling = true;
      try {
        await turn;
        for (let count = 0; opened && !gone && count < MOST_POLLS && !await exchange([]); count++);
      } catch (error) {
        if (!(error instanceof ApiProblem)) throw error;
      }
      polling = false;
    },
    close() {
      gone = true;
    },
  };
}
