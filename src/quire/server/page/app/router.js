// Where the user is: every state of the page is its address, and every link is a real link.

import { html, signal, useLayoutEffect } from "./html.js";

const ROOT = new URL(document.baseURI).pathname.replace(/\/$/, "");

/** @typedef {{ path: string, query: URLSearchParams }} Place */

/** @returns {Place} */
function here() {
  const path = location.pathname.startsWith(ROOT) ? location.pathname.slice(ROOT.length) : location.pathname;
  return { path: path || "/", query: new URLSearchParams(location.search) };
}

/** The place that the page shows. */
export const place = signal(here());

addEventListener("popstate", () => (place.value = here()));

/** The title of the screen that is shown; empty for Now. */
export const title = signal("");

/** Sets the title while a screen is shown. @param {string} text */
export function useTitle(text) {
  useLayoutEffect(() => {
    title.value = text;
  }, [text]);
}

/**
 * @param {string} to a path of the page such as `/runs?status=failed`
 * @param {{ replace?: boolean }} [options] `replace` for a change that Back should not undo
 */
export function go(to, { replace = false } = {}) {
  if (replace) history.replaceState(null, "", ROOT + to);
  else history.pushState(null, "", ROOT + to);
  const before = place.value.path;
  place.value = here();
  if (!replace && place.value.path !== before) scrollTo(0, 0);
}

/**
 * Changes parts of the query and stays on the page.
 *
 * @param {Record<string, string | undefined>} changes
 */
export function setQuery(changes) {
  const query = new URLSearchParams(place.value.query);
  for (const [name, value] of Object.entries(changes)) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  const text = query.toString();
  go(place.value.path + (text ? `?${text}` : ""), { replace: true });
}

/**
 * A link within the page. A click with a modifier key opens a tab, as for any link.
 *
 * @param {{ to: string, children?: unknown, [name: string]: unknown }} props
 */
export function Link({ to, children, ...rest }) {
  /** @param {MouseEvent} event */
  const onClick = (event) => {
    if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) {
      return;
    }
    event.preventDefault();
    go(to);
  };
  return html`<a href=${ROOT + to} onClick=${onClick} ...${rest}>${children}</a>`;
}

/**
 * @param {string} pattern such as `/runs/:run/steps/*path`
 * @param {string} path
 * @returns {Record<string, string> | null} the named parts, decoded
 */
export function match(pattern, path) {
  const names = /** @type {string[]} */ ([]);
  const source = pattern.replace(/[:*](\w+)/g, (found, name) => {
    names.push(name);
    return found[0] === "*" ? "(.+)" : "([^/]+)";
  });
  const found = new RegExp(`^${source}/?$`).exec(path);
  if (!found) return null;
  try {
    return Object.fromEntries(names.map((name, at) => [name, decodeURIComponent(found[at + 1])]));
  } catch {
    return null;
  }
}
