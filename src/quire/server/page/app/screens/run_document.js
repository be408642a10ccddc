// The document of a run as it was pinned, against its file as it is now.

import { part } from "../api.js";
import { html } from "../html.js";
import { Placeholder, ProblemBox } from "../parts/basics.js";
import { RunFrame } from "../parts/run_frame.js";
import { wordDiff } from "../parts/diff.js";
import { useResource } from "../resource.js";
import { Link } from "../router.js";

/** @param {{ run: string }} props */
export function RunDocument({ run }) {
  return html`
    <${RunFrame} run=${run} tab="document">
      <${Pinned} run=${run} />
      </${RunFrame}>
  `;
}

/** @param {{ run: string }} props */
function Pinned({ run }) {
  const found = useResource(`/runs/${part(run)}/document`, (frame) => frame.event === "documents");
  if (found.problem) return html`<${ProblemBox} problem=${found.problem} retry=${found.reload} />`;
  if (!found.data) return found.slow ? html`<${Placeholder} lines=${6} />` : null;
  const { id, pinned, now, changed } = found.data;
  const words = now === null
    ? "The file is gone. The run continues with the text that it has."
    : changed
    ? "The file has changed since the run began. The run continues with the text that it has."
    : "The file has the text that the run has.";
  return html`
    <h2>Document of the run</h2>
    <p class="pinned">${words} ${id && now !== null &&
      html`<${Link} to="/documents/${part(id)}">Open the document</${Link}>`}</p>
    <pre class="source diff" tabindex="0">${now === null || !changed
      ? pinned
      : wordDiff(pinned, now).map((piece) =>
        piece.kind === "same"
          ? piece.text
          : piece.kind === "old"
          ? html`<del>${piece.text}</del>`
          : html`<ins>${piece.text}</ins>`
      )}</pre>
  `;
}
