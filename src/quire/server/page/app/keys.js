// Single-letter keys. They are off in text fields, and can be switched off altogether.

import { signal } from "./html.js";

/** @typedef {{ keys: string, does: string, run: () => void }} Shortcut */

const STORED = "quire-keys";

/** False if the user has switched single letters off. */
export const lettersOn = signal(localStorage.getItem(STORED) !== "off");

/** Shortcuts that hold now, by the part of the page that gave them. @type {Map<string, Shortcut[]>} */
const given = new Map();
let prefix = "";
let prefixTimer = 0;

/** @param {boolean} on */
export function switchLetters(on) {
  lettersOn.value = on;
  localStorage.setItem(STORED, on ? "on" : "off");
}

/**
 * Adds shortcuts such as `g n` or `j`.
 *
 * @param {string} part
 * @param {Shortcut[]} shortcuts
 * @returns {() => void} takes them away again
 */
export function addShortcuts(part, shortcuts) {
  given.set(part, shortcuts);
  return () => {
    if (given.get(part) === shortcuts) given.delete(part);
  };
}

/** @returns {[string, Shortcut[]][]} */
export function allShortcuts() {
  return [...given];
}

/** @param {EventTarget | null} target */
function isField(target) {
  return target instanceof HTMLElement &&
    (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

/** @param {KeyboardEvent} event */
function press(event) {
  if (event.defaultPrevented || event.altKey) return;
  const withControl = event.ctrlKey || event.metaKey;
  if (withControl && event.key.toLowerCase() !== "k") return;
  if (!withControl && (isField(event.composedPath()[0]) || document.querySelector("dialog[open]"))) return;
  const name = withControl ? "Ctrl-K" : event.key;
  if (!withControl && name.length === 1 && !lettersOn.value && name !== "?") return;
  const whole = prefix ? `${prefix} ${name}` : name;
  clearTimeout(prefixTimer);
  prefix = "";
  const all = [...given.values()].reverse().flat();
  const found = all.find((one) => one.keys.split(" or ").includes(whole));
  const begins = all.some((one) => one.keys.startsWith(`${whole} `));
  if (found) event.preventDefault();
  if (found && !begins) found.run();
  else if (begins) {
    prefix = whole;
    // A key that is a shortcut by itself and begins a longer one waits a moment for the next key.
    prefixTimer = setTimeout(() => {
      prefix = "";
      found?.run();
    }, found ? 500 : 1200);
  }
}

/** Begins to listen for keys. Called once. */
export function startKeys() {
  addEventListener("keydown", press);
}
