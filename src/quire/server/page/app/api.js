// Requests to the server. A failed request is an ApiProblem with the sentence that the command line would print.

import { dropToken, token } from "./session.js";

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

/**
 * @param {string} method
 * @param {string} path below /api/v1
 * @param {{ body?: unknown, headers?: Record<string, string>, signal?: AbortSignal }} [options]
 * @returns {Promise<Response>}
 */
export async function send(method, path, { body, headers = {}, signal } = {}) {
  /** @type {Record<string, string>} */
  const all = { Authorization: `Bearer ${token.value}`, ...headers };
  if (method !== "GET") {
    all["Content-Type"] = "application/json";
    all["Idempotency-Key"] ??= crypto.randomUUID?.() ?? String(Math.random()).slice(2) + Date.now();
  }
  let response;
  try {
    const text = method === "GET" ? undefined : JSON.stringify(body ?? {});
    response = await fetch(BASE + path, { method, headers: all, body: text, signal, cache: "no-store" });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiProblem(unreachable());
  }
  if (response.ok || response.status === 304) return response;
  if (response.status === 401) dropToken();
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
