// Bounds and permissions of a document: how much it can do, what it has to be allowed, who grants that, and who signed.

import { html } from "../html.js";
import { number, plural } from "../words.js";
import { Command, Empty } from "./basics.js";
import { SignatureState } from "./document_state.js";
import { Icon } from "./icon.js";

/** @type {[string, string][]} */
const COUNTED = [["model_calls", "Model calls"], ["tool_calls", "Tool calls"], ["questions", "Questions"], [
  "threads",
  "Threads",
]];

/** @param {{ data: any }} props */
export function DocumentBounds({ data }) {
  const { bounds, envelope, signature, outline, proof } = data;
  if (!bounds) return html`<${Empty} title="Bounds are not known." icon="question" />`;
  return html`
    <section aria-labelledby="bounds-title">
      <h2 id="bounds-title">${COUNTED.some(([name]) => bounds[name].most === null)
        ? "Bounds"
        : `A run ${bounds.sentence}`}</h2>
      <table class="plain-table bounds-table">
        <thead><tr><th scope="col">Counted</th><th scope="col">At least</th><th scope="col">At most</th></tr></thead>
        <tbody>
          ${COUNTED.map(([name, title]) =>
            html`
              <tr>
                <th scope="row">${title}</th>
                <td class="number">${number(bounds[name].least)}</td>
                <td class="number">${mostWords(bounds[name], proof?.numbers[name])}</td>
              </tr>
            `
          )}
        </tbody>
      </table>
      <p class="soft small">Holds for every run that is not resumed. At least is for runs that complete. A call that is
        tried again because a provider has trouble counts once.</p>
      ${bounds.unknown.length > 0 && html`
        <p class="hint-row"><${Icon} name="warning" />${bounds.unknown.join(
          ", ",
        )}: not found, so it can do anything</p>
      `}
    </section>
    <section aria-labelledby="needs-title">
      <h2 id="needs-title">Permissions that it needs</h2>
      <${Needs} envelope=${envelope} risks=${risks(outline)} />
    </section>
    <section aria-labelledby="signature-title">
      <h2 id="signature-title">Signature</h2>
      <${Signatures} signature=${signature} outline=${outline} command=${data.commands.sign} />
    </section>
  `;
}

/** A number; where it depends on the inputs, the formula that is proven. @param {any} bound @param {any} proven */
function mostWords(bound, proven) {
  if (bound.most !== null) return number(bound.most);
  if (proven?.formula) return proven.formula;
  return proven && proven.most !== null ? number(proven.most) : "no bound";
}

/** @param {any} outline @returns {Map<string, any>} */
function risks(outline) {
  return new Map((outline?.capabilities ?? []).map((/** @type {any} */ one) => [one.capability, one]));
}

/** @param {{ envelope: any, risks: Map<string, any> }} props */
function Needs({ envelope, risks }) {
  const needs = envelope?.capabilities ?? [];
  if (!needs.length && !envelope?.unknown.length) return html`<p>None: it uses no tools.</p>`;
  return html`
    <div class="permission-box" tabindex="0" role="region" aria-label="Permissions">
      <table class="plain-table">
        <thead>
          <tr>
            <th scope="col">Permission</th>
            <th scope="col">Needed by</th>
            <th scope="col">Granted by</th>
          </tr>
        </thead>
        <tbody>
          ${needs.map((/** @type {any} */ one) =>
            html`
              <tr>
                <td><code>${one.capability}</code>${risks.get(one.capability)?.risk && html`
                  <span class="soft small"> ${risks.get(one.capability).risk} risk</span>
                `}</td>
                <td>${one.steps.length > 6 ? plural(one.steps.length, "step") : one.steps.join(", ")}</td>
                <td>${one.granted_by
                  ? html`<span class="status tone-good"><${Icon} name="check" />${one.granted_by}</span>`
                  : html`
                    <span class="status tone-warn"><${Icon} name="warning" />not granted</span>
                    ${one.command && html`<${Command} command=${one.command} label="Grant it in a terminal" />`}
                  `}</td>
              </tr>
            `
          )}
        </tbody>
      </table>
    </div>
    ${envelope.unknown.length > 0 && html`
      <p class="hint-row"><${Icon} name="warning" />and what ${envelope.unknown.join(
        ", ",
      )} needs, which is not known here</p>
    `}
    <p class="soft small">The page grants nothing: permissions are given in a terminal.</p>
  `;
}

/** @param {any} signature */
function signatureWords(signature) {
  if (signature.state === "unsigned" && !signature.required) return "No signature is needed to run this document.";
  return signature.message ?? "The signature holds.";
}

/** @param {{ signature: any, outline: any, command: string }} props */
function Signatures({ signature, outline, command }) {
  const files = outline?.signatures ?? [];
  return html`
    <p><${SignatureState} signature=${signature} />
      ${signature.key && html`<span class="soft small"> key <code>${signature.key}</code></span>`}</p>
    <p class="signature-words">${signatureWords(signature)}</p>
    ${signature.refused && html`
      <p class="hint-row"><${Icon} name="warning" />A run is refused as long as the signature does not hold.</p>
    `}
    ${signature.state !== "signed" && html`
      <p>
        <${Command} command=${command} />
      </p>
    `}
    ${files.length > 1 && html`
      <table class="plain-table">
        <thead>
          <tr>
            <th scope="col">Made of</th>
            <th scope="col">Space</th>
            <th scope="col">Verdict</th>
          </tr>
        </thead>
        <tbody>${files.map((/** @type {any} */ one) =>
          html`
            <tr>
              <td>${one.type} <code>${one.id}</code></td>
              <td>${one.space}</td>
              <td>${one.verdict}</td>
            </tr>
          `
        )}</tbody>
      </table>
    `}
  `;
}
