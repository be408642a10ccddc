// Asks for the token, and names the command that prints it.

import { html, useState } from "../html.js";
import { Command } from "../parts/basics.js";
import { useTitle } from "../router.js";
import { keepToken } from "../session.js";

export function Login() {
  useTitle("");
  const [text, setText] = useState("");
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    const pasted = /#token=([A-Za-z0-9_-]+)/.exec(text);
    keepToken(pasted ? pasted[1] : text.trim());
  };
  return html`
    <main class="login">
      <h1>Quire</h1>
      <p>This page needs the token of its server. The command below prints the address with the token.</p>
      <p>
        <${Command} command="quire serve --url" />
      </p>
      <form onSubmit=${submit}>
        <label for="token">Token, or the whole address</label>
        <input id="token" autocomplete="off" value=${text} onInput=${(/** @type {any} */ event) =>
          setText(event.target.value)} />
        <button type="submit" class="button primary" disabled=${!text.trim()}>Open</button>
      </form>
    </main>
  `;
}
