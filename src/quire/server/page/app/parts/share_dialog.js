// Sharing a run: links that show it to another person until they expire, and the file that needs no server.

import { download, part, post, send, tryTo } from "../api.js";
import { html, useState } from "../html.js";
import { useResource } from "../resource.js";
import { moment } from "../words.js";
import { copyText, ProblemBox } from "./basics.js";
import { Dialog } from "./dialog.js";
import { Icon } from "./icon.js";

/** True if the address of the page is one of this machine alone. */
const ALONE = /^(localhost|127\.|\[::1\])/.test(location.hostname);

/** @param {{ head: any, onClose: () => void }} props */
export function ShareDialog({ head, onClose }) {
  const at = `/runs/${part(head.id)}`;
  const shares = useResource(`${at}/shares`);
  const [made, setMade] = useState(/** @type {any} */ (null));
  const [problem, setProblem] = useState(/** @type {any} */ (null));
  /** @param {() => Promise<unknown>} work */
  const attempt = (work) =>
    tryTo(setProblem, async () => {
      await work();
      shares.reload();
    });
  /** @param {any} event */
  const make = (event) => {
    event.preventDefault();
    const days = Number(event.target.elements.days.value);
    attempt(async () => setMade(await post(`${at}/shares`, { days })));
  };
  const link = made && new URL(made.path, document.baseURI).href;
  const items = shares.data?.items ?? [];
  return html`
    <${Dialog} title="Share this run" onClose=${onClose}>
      <p>A link shows this run and nothing else: its steps, replies and result, without prompts. Nothing can be changed through it.</p>
      <form class="actions share-form" onSubmit=${make}>
        <label for="share-days">Days</label>
        <input id="share-days" name="days" type="number" min="1" max="90" value="7" required />
        <button type="submit" class="button primary"><${Icon} name="share" />Make a link</button>
      </form>
      ${made && html`
        <p class="actions" role="status">
          <input class="share-link" readonly aria-label="Link" value=${link} onFocus=${(/** @type {any} */ event) =>
            event.target.select()} />
          <button type="button" class="button" onClick=${() => copyText(link)}><${Icon} name="copy" />Copy</button>
        </p>
        <p class="soft">It is shown only now, and works until ${moment(made.expires_at)}. ${ALONE &&
          html`
            <strong>Only this machine can open this address. Send the file instead.</strong>
          `}</p>
      `}
      ${problem && html`<${ProblemBox} problem=${problem} />`}
      <p class="actions">
        <button type="button" class="button" onClick=${() =>
          attempt(() =>
            download(`${at}/export?as=html`, `${head.id}.html`)
          )}><${Icon} name="download" />HTML file</button>
        <span class="soft">opens without Quire, a network or scripts</span>
      </p>
      ${items.length > 0 && html`
        <h3>Links that work</h3>
        <ul class="shares">${items.map((/** @type {any} */ share) =>
          html`
            <li key=${share.id} class="actions"><span>until ${moment(share.expires_at)}, by ${share.by}</span>
              <button type="button" class="button small-button" onClick=${() =>
                attempt(() => send("DELETE", `/shares/${part(share.id)}`))}>Revoke</button></li>
          `
        )}</ul>
      `}
      </${Dialog}>
  `;
}
