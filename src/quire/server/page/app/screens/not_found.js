// A page for an address that does not exist.

import { html } from "../html.js";
import { Empty } from "../parts/basics.js";
import { Link, useTitle } from "../router.js";

/** @param {{ path: string }} props */
export function NotFound({ path }) {
  useTitle("This page does not exist");
  return html`
    <h1 tabindex="-1">This page does not exist</h1>
    <${Empty} title="The page has no ${path}." icon="question">
      <p>
        <${Link} to="/">Go to Now</${Link}></p>
    </${Empty}>
  `;
}
