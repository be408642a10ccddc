// The token of this browser: taken from the address once, kept for this origin, sent with every request.

import { signal } from "./html.js";

/** True where the link of a share has led: its token opens one run, and stays in this tab. */
export const guest = /\/s\/[^/]+$/.test(location.pathname);
const KEY = guest ? `quire-share ${location.pathname}` : "quire-token";

/** @returns {Storage} */
const storage = () => guest ? sessionStorage : localStorage;

/** The token, or an empty text until the user has given one. */
export const token = signal(read());
/** True once the server has ended whose token this tab had. */
export const ended = signal(false);

/** @returns {string} */
function read() {
  try {
    return storage().getItem(KEY) ?? "";
  } catch {
    return "";
  }
}

/** Takes `#token=…` out of the address bar, so that it is not kept in the history. */
export function takeTokenFromAddress() {
  const match = (guest ? /^#(share-[\w-]+)/ : /^#token=([A-Za-z0-9_-]+)/).exec(location.hash);
  if (!match) return;
  keepToken(match[1]);
  history.replaceState(history.state, "", location.pathname + location.search);
}

/** @param {string} text */
export function keepToken(text) {
  take(text);
  try {
    storage().setItem(KEY, text);
  } catch {
    // A browser that keeps nothing: the token lives as long as the tab.
  }
}

/** @param {string} text */
function take(text) {
  token.value = text;
  ended.value = false;
}

// A tab that was opened with the token of a new server hands it to the older tabs of its origin.
addEventListener("storage", ({ key, newValue }) => {
  if (key === KEY && newValue) take(newValue);
});

/**
 * Fetches with the token. A server that refuses the token, or is gone, is not sent it again: the next program that takes
 * its port may belong to another account.
 *
 * @param {string} url
 * @param {RequestInit & { headers?: Record<string, string> }} options
 */
export async function fetchWithToken(url, { headers, ...options }) {
  const sent = token.value;
  const all = { Authorization: `Bearer ${sent}`, ...headers };
  let response;
  try {
    if (!sent) throw new TypeError("the token is missing");
    response = await fetch(url, { ...options, headers: all, cache: "no-store" });
  } catch (error) {
    if (sent && !options.signal?.aborted && !(await isThere())) endSession(sent);
    throw error;
  }
  if (response.status === 401 && token.value === sent) dropToken();
  return response;
}

/** Asks without the token whether a server answers: a change of networks breaks off requests to a server that is there. */
async function isThere() {
  try {
    await fetch(new URL("problems/wrong-token", document.baseURI), { cache: "no-store" });
    return true;
  } catch {
    return location.protocol === "https:"; // There a certificate proves who answers next.
  }
}

/** Stops sending the token, because its server has ended. @param {string} sent */
export function endSession(sent) {
  if (token.value !== sent || location.protocol === "https:") return;
  ended.value = true;
  token.value = "";
}

/** Forgets the token, because the server refused it. */
function dropToken() {
  token.value = "";
  try {
    storage().removeItem(KEY);
  } catch {
    // Nothing was kept.
  }
}
