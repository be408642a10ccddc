// Requests to the server. A failed request is an ApiProblem with the sentence that the command line would print.

import { fetchWithToken } from "./session.js";

const BASE = new URL("api/v1", document.baseURI).pathname;

/** @typedef {{ status: number, code: string, title: string, detail: string, help?: string, [name: string]: unknown }} Problem */

/** A request that the server refused, or that did not reach it (`status` 0). */
export class ApiProblem extends Error {
  /** @param {Problem} problem */
  constructor(problem) {
    super(problem.detail);
    this.problem = problem;
  }
}

/** @returns {Problem} */
function unreachable() {
  return {
    status: 0,
    code: "unreachable",
    title: "The server cannot be reached",
    detail: "The server cannot be reached.",
    help: "Start it again with: quire serve",
  };
}

/** A second click that comes so soon means the same as the first. */
const CLICK_MS = 1000;
/** The keys of the last clicks, by request. @type {Map<string, { key: string, at: number }>} */
const clicks = new Map();
/** Requests that are under way. @type {Map<string, Promise<Response>>} */
const underWay = new Map();

/**
 * The key of a click: the same request gets the same key within a second, so a double click is done once.
 *
 * @param {string} request
 */
function keyOf(request) {
  const now = Date.now();
  for (const [other, { at }] of clicks) if (now - at > CLICK_MS) clicks.delete(other);
  const known = clicks.get(request);
  const key = known?.key ?? crypto.randomUUID?.() ?? String(Math.random()).slice(2) + now;
  clicks.set(request, { key, at: now });
  return key;
}

/**
 * Sends a request. The same request that is under way already is not sent again: both callers get its answer.
 *
 * @param {string} method
 * @param {string} path below /api/v1
 * @param {{ body?: unknown, headers?: Record<string, string>, signal?: AbortSignal, keepalive?: boolean }} [options]
 *   with `keepalive` it arrives even if the page is closed meanwhile
 * @returns {Promise<Response>}
 */
export async function send(method, path, { body, headers = {}, signal, keepalive } = {}) {
  if (method === "GET") return await attempt(method, path, { headers, signal });
  const text = JSON.stringify(body ?? {});
  const request = `${method} ${path} ${text}`;
  let answer = underWay.get(request);
  if (!answer) {
    const own = { "Content-Type": "application/json", "Idempotency-Key": keyOf(request), ...headers };
    answer = attempt(method, path, { body: text, headers: own, signal, keepalive }).finally(() =>
      underWay.delete(request)
    );
    underWay.set(request, answer);
  }
  return (await answer).clone();
}

/**
 * @param {string} method
 * @param {string} path
 * @param {RequestInit & { headers?: Record<string, string> }} options
 */
async function attempt(method, path, options) {
  let response;
  try {
    response = await fetchWithToken(BASE + path, { method, ...options });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new ApiProblem(unreachable());
  }
  if (response.ok || response.status === 304) return response;
  throw new ApiProblem(await problemOf(response));
}

/**
 * @param {Response} response
 * @returns {Promise<Problem>}
 */
async function problemOf(response) {
  try {
    return await response.json();
  } catch {
    return { ...unreachable(), status: response.status, detail: `The server answered ${response.status}.` };
  }
}

/**
 * @param {string} path
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
export async function get(path, signal) {
  return await (await send("GET", path, { signal })).json();
}

/**
 * @param {string} path
 * @param {unknown} [body]
 * @param {Record<string, string>} [headers]
 * @returns {Promise<any>}
 */
export async function post(path, body, headers) {
  return await (await send("POST", path, { body, headers })).json();
}

/**
 * Does work, and tells of the problem if the server refuses a part of it; before that of none.
 *
 * @param {(problem: Problem | null) => void} tell
 * @param {() => Promise<unknown>} work
 */
export async function tryTo(tell, work) {
  tell(null);
  try {
    await work();
  } catch (error) {
    if (!(error instanceof ApiProblem)) throw error;
    tell(error.problem);
  }
}

/**
 * Continues runs one by one.
 *
 * @param {string[]} runs
 * @param {(at: number) => void} [progress]
 * @returns {Promise<{ run: string, detail: string }[]>} the runs for which it did not work
 */
export async function resumeAll(runs, progress = () => {}) {
  const wrong = [];
  for (const [at, run] of runs.entries()) {
    progress(at);
    try {
      await post(`/runs/${part(run)}/resume`);
    } catch (error) {
      if (!(error instanceof ApiProblem)) throw error;
      wrong.push({ run, detail: error.problem.detail });
    }
  }
  return wrong;
}

/**
 * Saves what the server sends as a file of the user.
 *
 * @param {string} path
 * @param {string} name
 */
export async function download(path, name) {
  const blob = await (await send("GET", path)).blob();
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/**
 * @param {Record<string, string | number | boolean | undefined | null | string[]>} parameters
 * @returns {string} the query, with its question mark, without what is empty
 */
export function query(parameters) {
  const all = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value === undefined || value === null || value === "" || value === false) continue;
    if (Array.isArray(value)) value.forEach((one) => all.append(name, one));
    else all.set(name, String(value));
  }
  const text = all.toString();
  return text ? `?${text}` : "";
}

/** @param {string} part a run, a path or an id, as a part of a path */
export function part(part) {
  return part.split("/").map(encodeURIComponent).join("/");
}
