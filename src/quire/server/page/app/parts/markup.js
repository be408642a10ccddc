// Shows HTML that the server made of a text of a model. The only module that may hand HTML to the browser.

import { h } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

/** @typedef {{ createHTML: (html: string) => string }} Policy */

/** @type {{ createPolicy: (name: string, rules: Policy) => Policy } | undefined} */
const trustedTypes = Reflect.get(globalThis, "trustedTypes");

/** @type {Policy} */
const rules = { createHTML: (html) => html };
const policy = trustedTypes?.createPolicy("quire", rules) ?? rules;

/**
 * The HTML of `render_markdown` or `highlight` of the server, and of nothing else.
 *
 * @param {{ html: string, class?: string }} props
 */
export function Markup({ html, class: name = "markup" }) {
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  useLayoutEffect(() => {
    if (place.current) place.current.innerHTML = policy.createHTML(html);
  }, [html]);
  return h("div", { class: name, ref: place });
}
