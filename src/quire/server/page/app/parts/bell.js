// Notifications of the browser about new questions: off until the user clicks the bell.

import { get } from "../api.js";
import { html, signal } from "../html.js";
import { cut, upTo } from "../words.js";
import { Icon } from "./icon.js";

const STORED = "quire-bell";
const isKnown = typeof Notification === "function";

/** True if this browser tells the user about new questions. */
const on = signal(isKnown && Notification.permission === "granted" && localStorage.getItem(STORED) === "on");
const refused = signal("");
let before = -1;

/**
 * Tells the user about new questions while the page is not looked at.
 *
 * @param {number} waiting the number of open questions now
 */
export async function ring(waiting) {
  const isNew = before >= 0 && waiting > before;
  before = waiting;
  if (!isNew || !on.value || !document.hidden) return;
  const { items } = await get("/questions?limit=500");
  const last = items.at(-1);
  if (!last) return;
  // All tabs use one tag, so that a browser shows one notification.
  const told = new Notification(`${waiting > 1 ? `${upTo(waiting)} questions wait` : "1 question waits"} for you`, {
    body: cut(`${last.subject}: ${last.prompt}`, 160),
    tag: "quire-questions",
  });
  told.onclick = () => {
    focus();
    told.close();
  };
}

export function Bell() {
  if (!isKnown) return null;
  const click = async () => {
    if (on.value) {
      on.value = false;
      localStorage.setItem(STORED, "off");
      return;
    }
    const answer = await Notification.requestPermission();
    on.value = answer === "granted";
    refused.value = on.value ? "" : "The browser does not allow notifications of this page.";
    localStorage.setItem(STORED, on.value ? "on" : "off");
  };
  return html`
    <button type="button" class="button bell" aria-pressed=${on.value} onClick=${click}>
      <${Icon} name="bell" />${on.value ? "Tells you about questions" : "Tell me about questions"}
    </button>
    <span class="soft small" role="status">${refused.value}</span>
  `;
}
