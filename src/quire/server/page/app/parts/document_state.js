// Small signs of a document: its format, its findings in numbers, its signature. Each by icon, word and colour.

import { html } from "../html.js";
import { plural } from "../words.js";
import { Icon } from "./icon.js";

/** @param {{ format: string | null }} props */
export function Format({ format }) {
  return html`<span class="format">${format ?? "unreadable"}</span>`;
}

/** @param {{ row: any }} props */
export function Findings({ row }) {
  if (row.error) {
    return html`<span class="status tone-bad" title=${row.error}><${Icon} name="cross" />cannot be read</span>`;
  }
  const { errors, warnings, hints } = row;
  if (errors) return html`<span class="status tone-bad"><${Icon} name="cross" />${plural(errors, "error")}</span>`;
  if (warnings) {
    return html`<span class="status tone-warn"><${Icon} name="warning" />${plural(warnings, "warning")}</span>`;
  }
  if (hints) return html`<span class="status tone-quiet"><${Icon} name="dot" />${plural(hints, "hint")}</span>`;
  return html`<span class="fine soft small"><${Icon} name="check" />no findings</span>`;
}

/** Words for the outcomes of verifying. @type {Record<string, [string, string, string]>} */
const SIGNED = {
  signed: ["signed", "check", "good"],
  unsigned: ["unsigned", "dot", "quiet"],
  unknown: ["not verified", "question", "warn"],
  malformed: ["broken signature", "cross", "bad"],
  stacked: ["two signatures", "cross", "bad"],
  modified: ["changed since signed", "cross", "bad"],
  revoked: ["key revoked", "cross", "bad"],
  untrusted: ["key not trusted", "warning", "warn"],
  bad_signature: ["forged signature", "cross", "bad"],
  misplaced: ["signed for another place", "cross", "bad"],
};

/**
 * @param {{ signature: any, quiet?: boolean }} props `quiet` leaves out what is ordinary: no signature where none is
 *   needed
 */
export function SignatureState({ signature, quiet = false }) {
  if (quiet && signature.state === "unsigned" && !signature.required) return null;
  const [word, icon, tone] = SIGNED[signature.state] ?? [signature.state, "question", "warn"];
  const isAmiss = signature.refused && tone === "quiet";
  return html`
    <span class="status tone-${isAmiss ? "warn" : tone}" title=${signature.message ?? ""}>
      <${Icon} name=${isAmiss ? "warning" : icon} />${word}${signature.by ? ` by ${signature.by}` : ""}
    </span>
  `;
}
