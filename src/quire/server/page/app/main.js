// Starts the page: takes the token, opens the feed, and shows the screen of the address.

import { startFeed } from "./feed.js";
import { html, render, useEffect } from "./html.js";
import { startKeys } from "./keys.js";
import { PLACES } from "./places.js";
import { match, place } from "./router.js";
import { Login } from "./screens/login.js";
import { NotFound } from "./screens/not_found.js";
import { Run } from "./screens/run.js";
import { RunFan } from "./screens/run_fan.js";
import { RunGraph } from "./screens/run_graph.js";
import { RunTimeline } from "./screens/run_timeline.js";
import { takeTokenFromAddress, token } from "./session.js";
import { about, Bare, readAbout, Shell, startTheme } from "./shell.js";

/** Screens by the pattern of their address; the first that fits is shown. @type {[string, any][]} */
const SCREENS = [
  ...PLACES,
  ["/runs/:run", Run],
  ["/runs/:run/steps/*path", Run],
  ["/runs/:run/graph", RunGraph],
  ["/runs/:run/timeline", RunTimeline],
  ["/runs/:run/fans/*path", RunFan],
];

function Screen() {
  const path = place.value.path;
  for (const [pattern, Component] of SCREENS) {
    const found = match(pattern, path);
    if (found) return html`<${Component} key=${pattern} ...${found} />`;
  }
  return html`<${NotFound} path=${path} />`;
}

function App() {
  useEffect(() => {
    if (token.value) readAbout().catch(() => {});
  }, [token.value]);
  if (!token.value) return html`<${Login} />`;
  if (place.value.path.startsWith("/q/")) {
    return html`
      <${Bare}>
        <${Screen} />
        </${Bare}>
    `;
  }
  return html`
    <${Shell} workspace=${about.value?.workspace ?? ""}>
      <${Screen} />
      </${Shell}>
  `;
}

takeTokenFromAddress();
startTheme();
startKeys();
startFeed();
render(html`<${App} />`, /** @type {Element} */ (document.getElementById("app")));
