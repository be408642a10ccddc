// Starts the page: takes the token, opens the feed, and shows the screen of the address.

import { startFeed } from "./feed.js";
import { html, render, useEffect } from "./html.js";
import { startKeys } from "./keys.js";
import { place } from "./router.js";
import { Screen } from "./screens.js";
import { Login } from "./screens/login.js";
import { ended, guest, takeTokenFromAddress, token } from "./session.js";
import { about, Bare, readAbout, Shell, startTheme } from "./shell.js";

function App() {
  useEffect(() => {
    if (token.value && !guest) readAbout().catch(() => {});
  }, [token.value]);
  if (guest) {
    return html`
      <main id="main" class="guest">
        <${Screen} />
      </main>
    `;
  }
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
if (!guest) startFeed();
render(html`<${App} />`, /** @type {Element} */ (document.getElementById("app")));
