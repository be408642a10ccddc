// Starts the page: takes the token, opens the feed, and shows the screen of the address.

import { startFeed } from "./feed.js";
import { html, render, useEffect } from "./html.js";
import { startKeys } from "./keys.js";
import { place } from "./router.js";
import { Screen } from "./screens.js";
import { Login } from "./screens/login.js";
import { ended, takeTokenFromAddress, token } from "./session.js";
import { about, Bare, readAbout, Shell, startTheme } from "./shell.js";

function App() {
  useEffect(() => {
    if (token.value) readAbout().catch(() => {});
  }, [token.value]);
  if (!token.value && !ended.value) return html`<${Login} />`;
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
