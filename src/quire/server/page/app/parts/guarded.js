// A part of the page that fails by itself: it says so and can be copied for a report, and the rest goes on.

import { html, useErrorBoundary } from "../html.js";
import { place } from "../router.js";
import { CopyText } from "./content.js";

/** @param {{ what: string, children?: any }} props `what` names the part in a sentence */
export function Guarded({ what, children }) {
  const [error, again] = useErrorBoundary();
  if (!error) return children;
  const trace = error instanceof Error ? `${error}\n${error.stack ?? ""}` : String(error);
  return html`
    <div class="problem" role="alert">
      <div>
        <p><strong>The page made a mistake in showing ${what}.</strong></p>
        <p class="soft">The run is not affected. The rest of the page still works.</p>
        <p class="actions">
          <button type="button" class="button" onClick=${again}>Show it again</button>
          <${CopyText} text=${`${place.value.path}\n${trace}`} label="Copy report" />
        </p>
      </div>
    </div>
  `;
}
