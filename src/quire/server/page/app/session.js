// The token of this browser: taken from the address once, kept for this origin, sent with every request.

import { signal } from "./html.js";

const KEY = "quire-token";

/** The token, or an empty text until the user has given one. */
export const token = signal(read());

/** @returns {string} */
function read() {
  try {
    return localStorage.getItem(KEY) ?? "";
  } catch {
    return "";
  }
}

/** Takes `#token=…` out of the address bar, so that it is not kept in the history. */
export function takeTokenFromAddress() {
  const found = /^#token=([A-Za-z0-9_-]+)/.exec(location.hash);
  if (!found) return;
  keepToken(found[1]);
  history.replaceState(history.state, "", location.pathname + location.search);
}

/** @param {string} text */
export function keepToken(text) {
  token.value = text;
  try {
    localStorage.setItem(KEY, text);
  } catch {
    // A browser that keeps nothing: the token lives as long as the tab.
  }
}

/** Forgets the token, because the server refused it. */
export function dropToken() {
  token.value = "";
  try {
    localStorage.removeItem(KEY);
  } catch {
    // Nothing was kept.
  }
}
