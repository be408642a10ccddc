// Draws a text of a model in a sandboxed frame: `html`, `mermaid` or `chart`. The frame answers with a size or an error.

import { h } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

/**
 * @typedef {"html" | "mermaid" | "chart"} Kind
 * @typedef {{ height: number } | { problem: string }} Outcome
 */

const LONGEST_TEXT = 2_000_000;
const TALLEST = 1200;
const PATIENCE_MS = 20_000;
const TOO_LARGE = "This is too large to be drawn.";
const TOO_SLOW = "Drawing this took too long.";

/**
 * HTML runs no script and cannot be measured: its height is that of the style sheet.
 *
 * @param {{ kind: Kind, text: string, title: string }} props `title` is what screen readers say of the frame.
 */
export function Frame({ kind, text, title }) {
  const place = useRef(/** @type {HTMLIFrameElement | null} */ (null));
  const guest = useRef(/** @type {Guest | null} */ (null));
  const [outcome, setOutcome] = useState(/** @type {Outcome | null} */ (null));
  useEffect(() => {
    const started = guest.current = new Guest(/** @type {HTMLIFrameElement} */ (place.current), kind, setOutcome);
    return () => started.stop();
  }, [kind]);
  useEffect(() => {
    if (text.length > LONGEST_TEXT) return setOutcome({ problem: TOO_LARGE });
    setOutcome(null);
    guest.current?.draw(text);
  }, [kind, text]);
  const problem = outcome && "problem" in outcome ? outcome.problem : "";
  const height = outcome && "height" in outcome && kind !== "html" ? Math.min(outcome.height, TALLEST) : null;
  useEffect(() => {
    // A frame that is not displayed cannot measure the next drawing: make it flat instead.
    if (place.current && problem) place.current.style.height = "0";
    else if (place.current && outcome) place.current.style.height = height === null ? "" : `${height}px`;
  }, [outcome]);
  return h(
    "div",
    { class: `frame frame-${kind}`, "data-state": problem ? "failed" : outcome ? "drawn" : "drawing" },
    problem && h("p", { class: "frame-problem", role: "status" }, problem),
    h("iframe", {
      key: kind,
      ref: place,
      title,
      sandbox: "allow-scripts",
      referrerpolicy: "no-referrer",
      "aria-hidden": problem ? "true" : null,
      tabindex: problem ? -1 : null,
    }),
  );
}

/** The document in a frame: gets the newest text when it is ready, and again when the theme changes. */
class Guest {
  /**
   * @param {HTMLIFrameElement} frame
   * @param {Kind} kind
   * @param {(outcome: Outcome) => void} report
   */
  constructor(frame, kind, report) {
    this.frame = frame;
    this.address = new URL(`frames/${kind}`, document.baseURI).href;
    this.report = report;
    this.ready = false;
    this.turn = 0;
    /** @type {string | null} */
    this.text = null;
    this.timer = 0;
    this.stopping = new AbortController();
    const { signal } = this.stopping;
    addEventListener("message", (event) => this.receive(event), { signal });
    dark.addEventListener("change", () => this.send(), { signal });
    this.themes = new MutationObserver(() => this.send());
    this.themes.observe(document.documentElement, { attributeFilter: ["data-theme"] });
  }

  /** @param {string} text */
  draw(text) {
    this.text = text;
    if (this.ready) return this.send();
    this.wait();
    if (!this.frame.src) this.frame.src = this.address;
  }

  send() {
    if (!this.ready || this.text === null) return;
    this.turn += 1;
    this.wait();
    // The origin of a sandboxed frame is opaque: "*" is the only way to address it. `frame-src 'self'` keeps it ours.
    this.frame.contentWindow?.postMessage({ turn: this.turn, text: this.text, theme: currentTheme() }, "*");
  }

  /** @param {MessageEvent} event */
  receive(event) {
    if (event.source !== this.frame.contentWindow || event.origin !== "null") return;
    const { type, turn, height, message } = event.data ?? {};
    if (type === "ready") {
      this.ready = true;
      return this.send();
    }
    if (turn !== this.turn) return;
    clearTimeout(this.timer);
    if (type === "size" && typeof height === "number") this.report({ height });
    if (type === "error") this.report({ problem: String(message).slice(0, 2000) });
  }

  wait() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.report({ problem: TOO_SLOW });
      this.ready = false;
      this.frame.removeAttribute("src");
    }, PATIENCE_MS);
  }

  stop() {
    clearTimeout(this.timer);
    this.stopping.abort();
    this.themes.disconnect();
  }
}

const dark = matchMedia("(prefers-color-scheme: dark)");

/** @returns {"light" | "dark"} The theme of the page: `data-theme` of the root, or else what the system prefers. */
function currentTheme() {
  const chosen = document.documentElement.dataset.theme;
  if (chosen === "light" || chosen === "dark") return chosen;
  return dark.matches ? "dark" : "light";
}
