// Trust: keys, signatures, and what the workspace asks for. Read only: a page must not be able to grant anything.

import { part } from "../api.js";
import { html } from "../html.js";
import { Command, Empty, Mark, Placeholder, ProblemBox } from "../parts/basics.js";
import { useResource } from "../resource.js";
import { Link, useTitle } from "../router.js";
import { plural } from "../words.js";

export function Trust() {
  useTitle("Trust");
  const trust = useResource("/trust", (frame) => frame.event === "documents");
  const { data, problem } = trust;
  return html`
    <h1 tabindex="-1">Trust</h1>
    <p class="soft lead">This page shows what is trusted. Trust is given and taken back in a terminal, with the commands
      beside each entry.</p>
    ${problem && html`<${ProblemBox} problem=${problem} retry=${trust.reload} />`}
    ${!data && trust.slow && html`<${Placeholder} lines=${6} />`}
    ${data && html`
      <${Requests} trust=${data} />
      <${Tools} trust=${data} />
      <${Keys} trust=${data} />
      <${Signatures} trust=${data} />
    `}
  `;
}

/** @param {{ trust: any }} props */
function Requests({ trust }) {
  return html`
    <section aria-labelledby="asks">
      <h2 id="asks">Requests of this workspace</h2>
      ${trust.requests.length
        ? html`
          <div class="card">
            <header>
              ${trust.trusted
                ? html`<${Mark} tone="good" icon="check" word="you agreed" />`
                : html`<${Mark} tone="warn" icon="warning" word="not agreed" />`}
              <span class="push"></span>
              <${Command} command=${trust.trusted ? trust.revoke_command : trust.command} />
            </header>
            <ul class="plain">${trust.requests.map((/** @type {string} */ line) => html`<li>${line}</li>`)}</ul>
            ${trust.changes.length > 0 && html`
              <h3>Changed since you agreed</h3>
              <ul class="plain">${trust.changes.map((/** @type {string} */ line) => html`<li>${line}</li>`)}</ul>
            `}
          </div>
        `
        : html`<${Empty} title="The workspace asks for nothing that needs your trust." />`}
    </section>
  `;
}

/** @param {{ trust: any }} props */
function Tools({ trust }) {
  if (!trust.granted.length && !trust.denied.length) return null;
  return html`
    <section aria-labelledby="tools">
      <h2 id="tools">Tools of your own settings</h2>
      <ul class="rows">
        ${trust.granted.map((/** @type {string} */ tool) =>
          html`<li class="row"><${Mark} tone="good" icon="check" word="granted" /><code>${tool}</code></li>`
        )}
        ${trust.denied.map((/** @type {string} */ tool) =>
          html`<li class="row"><${Mark} tone="bad" icon="cross" word="denied" /><code>${tool}</code></li>`
        )}
      </ul>
    </section>
  `;
}

/** @type {Record<string, [string, string, string]>} */
const STATES = {
  own: ["good", "check", "your own"],
  trusted: ["good", "check", "trusted"],
  requested: ["warn", "question", "asked for"],
  revoked: ["bad", "cross", "revoked"],
};

/** @param {{ trust: any }} props */
function Keys({ trust }) {
  return html`
    <section aria-labelledby="keys">
      <h2 id="keys">Keys</h2>
      ${trust.keys.length
        ? html`
          <ul class="rows">
            ${trust.keys.map((/** @type {any} */ key) => {
              const [tone, icon, word] = STATES[key.state] ?? ["quiet", "dot", key.state];
              return html`
                <li class="row" key=${key.key_id}>
                  <${Mark} tone=${tone} icon=${icon} word=${word} />
                  <span class="row-title">${key.name || "without a name"}</span>
                  <code class="soft">${key.key_id}</code>
                  ${key.command && html`<${Command} command=${key.command} />`}
                </li>
              `;
            })}
          </ul>
        `
        : html`
          <${Empty} title="No key is trusted." icon="trust">
            <p>
              <${Command} command=${trust.new_key_command} />
            </p>
            </${Empty}>
        `}
    </section>
  `;
}

/** @param {{ trust: any }} props */
function Signatures({ trust }) {
  const bad = trust.signatures.filter((/** @type {any} */ one) => !one.ok).length;
  return html`
    <section aria-labelledby="signatures">
      <h2 id="signatures">Signatures</h2>
      <p class="soft more-line">${trust.mode === "warn"
        ? "Directives without a signature run, with a warning."
        : "Directives run only with a signature of a trusted key."}
        ${trust.documents ? " Playbooks and pipelines need one too." : ""}
        ${bad > 0 ? ` ${plural(bad, "document has", "documents have")} none that holds.` : ""}</p>
      ${trust.signatures.length > 0 && html`
        <ul class="rows">
          ${trust.signatures.map((/** @type {any} */ one) =>
            html`
              <li class="row" key=${one.id}>
                ${one.ok
                  ? html`<${Mark} tone="good" icon="check" word="holds" />`
                  : html`<${Mark} tone=${one.required ? "bad" : "warn"} icon="warning" word=${
                    one.outcome ?? "unknown"
                  } />`}
                <${Link} class="row-title" to="/documents/${part(one.id)}">${one.title}</${Link}>
                <span class="soft">${one.ok ? one.by || one.key_id : ""}</span>
                <${Command} command=${one.command} />
                ${one.message && html`<p class="soft small wide">${one.message}</p>`}
              </li>
            `
          )}
        </ul>
      `}
    </section>
  `;
}
