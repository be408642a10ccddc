// The frame of every screen: the rail, the bar about a lost server, the overview of keys, and the title of the tab.

import { get } from "./api.js";
import { lostSince, storeTrouble } from "./feed.js";
import { html, signal, useEffect, useRef, useState } from "./html.js";
import { addShortcuts, allShortcuts, lettersOn, switchLetters } from "./keys.js";
import { ring } from "./parts/bell.js";
import { Dialog } from "./parts/dialog.js";
import { Icon } from "./parts/icon.js";
import { useResource } from "./resource.js";
import { go, Link, place, title } from "./router.js";
import { ended } from "./session.js";
import { upTo } from "./words.js";

/** Dialogs of the shell. @type {import("@preact/signals").Signal<"" | "keys" | "more">} */
const open = signal("");
const THEME = "quire-theme";
/** Screens that need the width: a run, and a try of one of its steps. */
const SLIM = /^\/runs\/[^/]/;

/** The screens of the rail, in order: path, name, icon, key. @type {[string, string, string, string][]} */
const RAIL = [
  ["/", "Now", "now", "n"],
  ["/documents", "Documents", "documents", "d"],
  ["/runs", "Runs", "runs", "r"],
  ["/artifacts", "Artifacts", "artifacts", "a"],
  ["/search", "Search", "search", "s"],
];
/** @type {[string, string, string, string][]} */
const BELOW = [
  ["/triggers", "Triggers", "clock", "e"],
  ["/trust", "Trust", "trust", "t"],
  ["/health", "Health", "health", "h"],
];

/** @param {{ children?: unknown, workspace: string }} props */
export function Shell({ children, workspace }) {
  const questions = useResource("/questions?limit=1", (frame) => frame.event === "questions");
  const waiting = questions.data?.total ?? 0;
  const main = useRef(/** @type {HTMLElement | null} */ (null));
  const path = place.value.path;

  const slim = useNarrow(SLIM.test(path) ? 1599 : 1000);

  useTabTitle(waiting);
  useEffect(() => {
    if (!questions.data) return;
    showWaiting(waiting);
    ring(waiting).catch(() => {});
  }, [waiting, !questions.data]);
  useEffect(() => focusHeading(main.current), [path]);
  useEffect(() => {
    const jumps = [...RAIL, ...BELOW].map(([to, name, , key]) => ({
      keys: `g ${key}`,
      does: `Go to ${name}`,
      run: () => go(to),
    }));
    return addShortcuts("Everywhere", [
      ...jumps,
      { keys: "/ or Ctrl-K", does: "Search", run: () => go("/search") },
      { keys: "?", does: "Show the keys", run: () => (open.value = "keys") },
    ]);
  }, []);

  return html`
    <a class="skip" href="#main">Skip to the content</a>
    <div class="shell ${slim ? "slim" : ""}">
      <${Rail} path=${path} waiting=${waiting} workspace=${workspace} />
      <main id="main" ref=${main} tabindex="-1">
        <${LostBar} />
        ${children}
      </main>
    </div>
    ${open.value === "keys" && html`<${KeyOverview} />`}
  `;
}

/** Puts the title of the screen, and the number of questions that wait, on the tab. */
function useTabTitle(waiting = 0) {
  const name = title.value;
  useEffect(() => {
    document.title = `${waiting ? `(${upTo(waiting)}) ` : ""}${name ? `${name} · ` : ""}Quire`;
  }, [name, waiting]);
}

/** Tells whether the window is not wider, now and after each change. @param {number} width */
function useNarrow(width) {
  const media = matchMedia(`(max-width: ${width}px)`);
  const [, changed] = useState(media.matches);
  useEffect(() => {
    const change = () => changed(media.matches);
    media.addEventListener("change", change);
    return () => media.removeEventListener("change", change);
  }, [width]);
  return media.matches;
}

/** The frame of a screen that is one thing only: a way home, and the bar about a lost server. */
/** @param {{ children?: unknown }} props */
export function Bare({ children }) {
  useTabTitle();
  useEffect(
    () =>
      addShortcuts("Everywhere", [
        { keys: "g n", does: "Go to Now", run: () => go("/") },
        { keys: "?", does: "Show the keys", run: () => (open.value = "keys") },
      ]),
    [],
  );
  return html`
    <div class="bare">
      <nav aria-label="Screens">
        <${Link} class="brand" to="/"><span class="mark" aria-hidden="true"></span>Quire</${Link}></nav>
      <main id="main" tabindex="-1"><${LostBar} />${children}</main>
    </div>
    ${open.value === "keys" && html`<${KeyOverview} />`}
  `;
}

/**
 * Gives the focus to the heading of a new screen, once it is there: a screen may be loaded first. A focus that the user
 * has put elsewhere stays.
 *
 * @param {HTMLElement | null} main
 * @returns {(() => void) | undefined}
 */
function focusHeading(main) {
  const before = document.activeElement;
  if (!main || (before !== document.body && !before?.closest(".rail"))) return;
  const heading = main.querySelector("h1");
  if (heading) {
    heading.focus({ preventScroll: true });
    return;
  }
  const watch = new MutationObserver(() => {
    const shown = main.querySelector("h1");
    if (shown && document.activeElement === before) shown.focus({ preventScroll: true });
    if (shown) watch.disconnect();
  });
  watch.observe(main, { childList: true, subtree: true });
  return () => watch.disconnect();
}

/** Puts a dot on the icon of the tab while questions wait. @param {number} waiting */
function showWaiting(waiting) {
  const icon = document.querySelector('link[rel="icon"]');
  const plain = icon?.getAttribute("href")?.replace("icon-waiting.svg", "icon.svg") ?? "";
  icon?.setAttribute("href", waiting ? plain.replace("icon.svg", "icon-waiting.svg") : plain);
}

/** @param {{ path: string, waiting: number, workspace: string }} props */
function Rail({ path, waiting, workspace }) {
  /** @param {[string, string, string, string]} entry */
  const link = ([to, name, icon]) => {
    const here = to === "/" ? path === "/" : path === to || path.startsWith(`${to}/`);
    return html`
      <li>
        <${Link} to=${to} class="rail-link" title=${name} aria-current=${here ? "page" : undefined}>
          <${Icon} name=${icon} /><span>${name}</span>
          ${to === "/" && waiting > 0 &&
            html`<b class="count" aria-label="${upTo(waiting)} open questions">${upTo(waiting)}</b>`}
        </${Link}>
      </li>
    `;
  };
  return html`
    <nav class="rail" aria-label="Screens">
      <p class="brand" title=${workspace}><span class="mark" aria-hidden="true"></span><span>${workspace ||
        "Quire"}</span></p>
      <ul>
        ${RAIL.map(link)}
        <li class="phone-only">
          <button type="button" class="rail-link" onClick=${() => (open.value = "more")}>
            <${Icon} name="more" /><span>More</span></button>
        </li>
      </ul>
      <ul class="below">${BELOW.map(link)}</ul>
      ${open.value === "more" && html`<${More} links=${BELOW.map(link)} />`}
      <p class="rail-tools">
        <${ThemeSwitch} />
        <button type="button" class="icon-button" aria-label="Keys" title="Keys (?)" onClick=${() => (open.value =
          "keys")}>
          <${Icon} name="keyboard" />
        </button>
      </p>
    </nav>
  `;
}

/** What the search offers to do: screens to go to, and the tools of the rail. */
export function commands() {
  const jumps = [...RAIL, ...BELOW].map(([to, name, icon]) => ({ name: `Go to ${name}`, icon, to }));
  return [
    ...jumps,
    { name: "Go to the page of the API", icon: "terminal", to: "/api" },
    { name: "Switch between light and dark", icon: "moon", run: switchTheme },
    { name: "Show the keys", icon: "keyboard", run: () => (open.value = "keys") },
  ];
}

/** The theme: of the system until the user chooses. */
const theme = signal(localStorage.getItem(THEME) ?? "");

export function startTheme() {
  if (theme.value) document.documentElement.dataset.theme = theme.value;
}

function isDark() {
  return theme.value ? theme.value === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function switchTheme() {
  theme.value = isDark() ? "light" : "dark";
  document.documentElement.dataset.theme = theme.value;
  localStorage.setItem(THEME, theme.value);
}

function ThemeSwitch() {
  const dark = isDark();
  const label = dark ? "Light theme" : "Dark theme";
  return html`
    <button type="button" class="icon-button" aria-label=${label} title=${label} onClick=${switchTheme}>
      <${Icon} name=${dark ? "sun" : "moon"} />
    </button>
  `;
}

function LostBar() {
  if (!lostSince.value && storeTrouble.value) {
    return html`<div class="bar" role="status"><${Icon} name="warning" />${storeTrouble.value}</div>`;
  }
  if (!lostSince.value) return null;
  const since = new Date(lostSince.value).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  return html`
    <div class="bar" role="status">
      <${Icon} name="warning" />
      ${ended.value
        ? `The server has ended (${since}). Start it again with quire serve, and open its new address: this tab continues then.`
        : `Server not reachable since ${since}; trying again.`} What you see is the last that is known.
    </div>
  `;
}

/** What the bar of a phone has no place for. @param {{ links: unknown }} props */
function More({ links }) {
  return html`
    <${Dialog} title="More" onClose=${closeDialog}>
      <ul onClick=${closeDialog}>${links}</ul>
      <p class="actions">
        <${ThemeSwitch} />
      </p>
      </${Dialog}>
  `;
}

function closeDialog() {
  open.value = "";
}

function KeyOverview() {
  return html`
    <${Dialog} title="Keys" onClose=${closeDialog}>
      <label class="check">
        <input type="checkbox" checked=${lettersOn.value} onChange=${(/** @type {any} */ event) =>
          switchLetters(event.target.checked)} />
        Single letters are shortcuts
      </label>
      ${allShortcuts().map(([part, shortcuts]) =>
        html`
          <h3>${part}</h3>
          <dl class="keys">
            ${shortcuts.map(({ keys, does }) =>
              html`
                <div>
                  <dt>${keys.split(" ").map((key) => key === "or" ? " or " : html`<kbd>${key}</kbd>`)}</dt>
                  <dd>${does}</dd>
                </div>
              `
            )}
          </dl>
        `
      )}
    </${Dialog}>
  `;
}

/** What the server says about itself: version, workspace, features. */
export const about = signal(/** @type {any} */ (null));

export async function readAbout() {
  about.value = await get("/");
  document.documentElement.dataset.role = about.value.role; // The style hides buttons for other roles.
}
