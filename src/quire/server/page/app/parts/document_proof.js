// What is known of a document before it runs: what a run takes, the permissions that it needs, the questions before its
// effects, the ways of text from outside, its lock and its signature. Every text comes from the server as a text.

import { h, html } from "../html.js";
import { number, plural } from "../words.js";
import { Command, Empty, Mark } from "./basics.js";
import { SignatureState } from "./document_state.js";
import { Icon } from "./icon.js";

const NEEDS = ["Permission", "How far", "Class and risk", "Steps", "Granted by"];
/** Rows of one list: more cannot be read, and the terminal has them all. */
const MOST = 100;

/** @param {{ data: any }} props */
export function DocumentProof({ data }) {
  const { proof, gates, flows, envelope, lock, problems } = data;
  /** @param {string} id @param {string} title @param {unknown} content */
  const section = (id, title, content) =>
    html`<section aria-labelledby="proof-${id}"><h2 id="proof-${id}">${title}</h2>${content}</section>`;
  return html`
    <div class="proof">
      ${proof
        ? section(
          "bounds",
          "Usage of a run",
          html`
            <${Bounds} proof=${proof} />
            <p class="actions">
              <${Command} command="${data.commands.show} --why" label="See the arithmetic" />
            </p>
          `,
        )
        : html`
          <${Empty} title="Nothing could be proven." icon="question">
            ${problems?.proof && html`<p class="pre">${problems.proof}</p>`}
          </${Empty}>
        `}
      ${section("envelope", "Permissions that it needs", html`<${Envelope} envelope=${envelope} />`)}
      ${proof && section("gates", "Questions before effects", html`<${Gates} gates=${gates ?? []} />`)}
      ${proof &&
        section("flows", "Text from outside, and private values", html`<${Flows} flows=${flows ?? []} />`)}
      <${Lock} lock=${lock} problem=${problems?.lock} />
      ${section(
        "signature",
        "Signature",
        html`<${Signatures} signature=${data.signature} outline=${data.outline} command=${data.commands.sign} />`,
      )}
    </div>
  `;
}

/** What was seen and what is assumed comes first: the proven ceiling is seldom reached. @param {{ proof: any }} props */
function Bounds({ proof }) {
  const rows = Object.values(proof.numbers).filter((/** @type {any} */ one) =>
    one.title !== "threads" || one.most !== 0
  );
  /** Notes share a number with equal ones. @type {Map<string, number>} */
  const notes = new Map();
  for (const row of rows) for (const note of row.notes) if (!notes.has(note)) notes.set(note, notes.size + 1);
  const seen = proof.seen_runs > 0;
  const said = [
    seen && `Seen in ${plural(proof.seen_runs, "run")} (95 of 100)`,
    proof.assumed_words && `Assumed ${proof.assumed_words}`,
  ];
  return html`
    <${TableBox} label="Table of bounds" class="proof-bounds" heads=${["Counted", ...said, "Proven"]}>
      ${rows.map((row) =>
        html`
          <tr key=${row.title}>
            <th scope="row">${row.title}</th>
            ${seen && html`<td class="formula">${row.seen}</td>`}
            ${proof.assumed_words && html`<td class="formula">${row.assumed}</td>`}
            <td class=${seen || proof.assumed_words ? "soft small" : ""}><span class="formula">${row.words}</span>
              ${row.notes.map((/** @type {string} */ note) =>
                html`
                  <a class="note-mark" href="#proof-note-${notes.get(note)}" aria-label="Note ${notes.get(note)}"
                    onClick=${toNote}>[${notes.get(note)}]</a>
                `
              )}</td>
          </tr>
        `
      )}
    </${TableBox}>
    ${notes.size > 0 && html`
      <ol class="proof-notes small soft">
        ${[...notes].map(([note, at]) => html`<li key=${at} id="proof-note-${at}" tabindex="-1">${note}</li>`)}
      </ol>
    `}
    ${proof.unknown.length > 0 && html`
      <p class="hint-row"><${Icon} name="warning" />${proof.unknown.join(", ")}: not found, so it can do anything</p>
    `}
    <p class="soft small">≤ is proven: the engine enforces every premise. ~ is an estimate. ∞ has no bound, and its note
      says why.</p>
  `;
}

/** @param {{ label: string, heads: (string | false | null)[], children?: unknown, class?: string }} props */
function TableBox({ label, heads, children, class: name = "" }) {
  return html`
    <div class=${name ? "table-box" : "permission-box"} tabindex="0" role="region" aria-label=${label}>
      <table class="plain-table ${name}">
        <thead>
          <tr>${heads.filter(Boolean).map((head) => html`<th scope="col">${head}</th>`)}</tr>
        </thead>
        <tbody>${children}</tbody>
      </table>
    </div>
  `;
}

/** The address of the page stays as it is: it names the tab. @param {Event} event */
function toNote(event) {
  event.preventDefault();
  const link = /** @type {HTMLAnchorElement} */ (event.currentTarget);
  const note = document.getElementById(link.hash.slice(1));
  note?.scrollIntoView({ block: "nearest" });
  note?.focus();
}

/** How a verdict is shown: never by colour alone. @type {Record<string, [string, string]>} */
const VERDICTS = {
  gated: ["check", "good"],
  ignored: ["warning", "bad"],
  open: ["warning", "warn"],
  never: ["skip", "quiet"],
};

/** @param {{ gates: any[] }} props */
function Gates({ gates }) {
  if (!gates.length) return html`<p>It changes nothing, so no question has to stand before it.</p>`;
  return html`
    <${TableBox} label="Table of approvals" heads=${["Step", "Effect", "Question"]}>
      ${gates.slice(0, MOST).map((gate) => {
        const [icon, tone] = VERDICTS[gate.verdict] ?? ["question", "quiet"];
        return html`
          <tr key=${`${gate.effect} ${gate.words}`}>
            <td><span class="step-tag">${gate.step}</span></td>
            <td><code>${gate.tool}</code> <span class="soft small">${gate.words}</span></td>
            <td><span class="status tone-${tone}"><${Icon} name=${icon} />${gate.gate}</span>
              ${gate.shown.length > 0 && html`<span class="soft small"> shown: ${gate.shown.join(", ")}</span>`}</td>
          </tr>
        `;
      })}
    </${TableBox}>
    <${More} count=${gates.length} />
  `;
}

/** @param {{ flows: any[] }} props */
function Flows({ flows }) {
  if (!flows.length) return html`<p>No text from outside reaches a tool or a model, and nothing private leaves.</p>`;
  return html`
    <ul class="proof-flows">
      ${flows.slice(0, MOST).map((one) =>
        html`
          <li key=${one.text}>
            <span class="status tone-${one.acts ? "warn" : "quiet"}">
              <${Icon} name=${one.acts ? "warning" : "model"} />${flowWords(one)}</span>
            <span class="flow-way">
              ${one.places.map((/** @type {any} */ place) =>
                html`<span>${place.document && html`<span class="soft">${place.document} </span>`}${
                  place.step && html`
                    <span class="step-tag">${place.step}</span>
                  `
                }${place.what} <span aria-hidden="true">→</span><span class="visually-hidden">, then</span> </span>`
              )}
              <strong><span class="step-tag">${one.step}</span> ${one.sink}</strong>
            </span>
          </li>
        `
      )}
    </ul>
    <${More} count=${flows.length} />
  `;
}

/** @param {any} flow */
function flowWords(flow) {
  if (flow.kind === "private") return "private, leaves";
  return flow.acts ? "acts on it" : "only reads it";
}

/** @param {{ envelope: any, isOfRun?: boolean }} props with `isOfRun` it says who grants each to the runs of the page */
export function Envelope({ envelope, isOfRun = true }) {
  const needs = envelope?.capabilities ?? [];
  if (!needs.length && !envelope?.unknown.length) return html`<p>None: it uses no tools.</p>`;
  return html`
    <${TableBox} label="Table of permissions" heads=${NEEDS.slice(0, isOfRun ? 5 : 4)}>
      ${needs.slice(0, MOST).map((/** @type {any} */ need) =>
        html`
          <tr key=${`${need.capability} ${need.details}`}>
            <td><code>${need.capability}</code></td>
            <td>${need.details.map((/** @type {string} */ detail) => [h("code", { key: detail }, detail), " "])}</td>
            <td>${need.class ?? need.effect}, ${need.tier ? `${need.tier} risk` : "in no tier"}</td>
            <td><span class="narrow-label">Steps: </span>${need.steps.length > 6
              ? plural(need.steps.length, "step")
              : need.steps.join(", ")}</td>
            ${isOfRun &&
              html`<td>${
                need.granted_by ? html`<${Mark} tone="good" icon="check" word=${need.granted_by} />` : html`
                  <${Mark} tone="warn" icon="warning" word="not granted" />
                  ${need.command && html`<${Command} command=${need.command} label="Grant it in a terminal" />`}
                `
              }</td>`}
          </tr>
        `
      )}
    </${TableBox}>
    <${More} count=${needs.length} />
    ${envelope.unknown.length > 0 && html`
      <p class="hint-row"><${Icon} name="warning" />and what ${envelope.unknown.join(", ")} needs, which is not known
        here</p>
    `}
    <p class="soft small">The page grants nothing: permissions are given in a terminal.</p>
  `;
}

/** @param {{ signature: any, outline: any, command: string }} props */
function Signatures({ signature, outline, command }) {
  const files = outline?.signatures ?? [];
  const isFree = signature.state === "unsigned" && !signature.required;
  const words = isFree ? "No signature is needed to run this document." : signature.message ?? "The signature holds.";
  return html`
    <p><${SignatureState} signature=${signature} />
      ${signature.key && html`<span class="soft small"> key <code>${signature.key}</code></span>`}</p>
    <p class="signature-words">${words}</p>
    ${signature.refused && html`
      <p class="hint-row"><${Icon} name="warning" />A run is refused as long as the signature does not hold.</p>
    `}
    ${signature.state !== "signed" && html`
      <p>
        <${Command} command=${command} />
      </p>
    `}
    ${files.length > 1 && html`
      <${TableBox} label="Signatures of its parts" heads=${["Made of", "Space", "Verdict"]}>
        ${files.map((/** @type {any} */ file) =>
          html`
            <tr>
              <td>${file.type} <code>${file.id}</code></td>
              <td>${file.space}</td>
              <td>${file.verdict}</td>
            </tr>
          `
        )}
      </${TableBox}>
    `}
  `;
}

/** @type {Record<string, [string, string]>} */
const STANDINGS = {
  none: ["dot", "quiet"],
  unreadable: ["cross", "bad"],
  new: ["warning", "warn"],
  equal: ["check", "good"],
  stale: ["clock", "quiet"],
  wider: ["warning", "bad"],
};
/** @type {Record<string, [string, string]>} */
const DIRECTIONS = { wider: ["plus", "more"], narrower: ["minus", "less"], other: ["edit", "other"] };

/** @param {{ lock: any, problem?: string }} props */
function Lock({ lock, problem }) {
  if (!lock) return problem ? html`<p class="hint-row"><${Icon} name="warning" />${problem}</p>` : null;
  const [icon, tone] = STANDINGS[lock.standing] ?? ["question", "quiet"];
  return html`
    <section class="card proof-lock" aria-labelledby="proof-lock">
      <h2 id="proof-lock">Lock</h2>
      <p><span class="status tone-${tone}"><${Icon} name=${icon} />${lock.words}</span></p>
      ${lock.problem && html`<p class="pre">${lock.problem}</p>`}
      ${lock.changes.length > 0 && html`
        <ul class="lock-changes">
          ${lock.changes.slice(0, MOST).map((/** @type {any} */ one, /** @type {number} */ at) => {
            const [sign, word] = DIRECTIONS[one.direction] ?? ["dot", one.direction];
            return html`
              <li key=${at} class="lock-${one.direction}"><${Icon} name=${sign} label=${word} />
                <span>${one.words}</span> <span class="soft small mono">${one.code}</span></li>
            `;
          })}
        </ul>
        <${More} count=${lock.changes.length} />
      `}
      ${lock.standing !== "equal" && html`
        <p class="soft small">The page writes no lock. After a review, in a terminal:</p>
        <p>
          <${Command} command="quire lock" />
        </p>
      `}
    </section>
  `;
}

/** @param {{ count: number }} props */
function More({ count }) {
  return count > MOST ? html`<p class="soft small">and ${number(count - MOST)} more</p>` : null;
}
