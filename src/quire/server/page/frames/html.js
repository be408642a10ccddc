// Shows HTML and CSS of a model in an inner frame that runs no script, loads nothing and goes nowhere.

import { serve } from "./talk.js";

// The policy lets none of these load anything. Taken out all the same: a link may still look up or connect to a host
// (preconnect, dns-prefetch), and a meta element may switch such lookups on.
const UNWANTED = "link, meta, base, script, object, embed, iframe, frame, frameset, portal";

serve(({ text }, place) => {
  const inner = document.createElement("iframe");
  inner.setAttribute("sandbox", "");
  inner.title = "content";
  inner.srcdoc = clean(text);
  place.replaceChildren(inner);
});

/**
 * The text without unwanted elements. Repeats until a parse finds none, because writing HTML out and reading it again
 * can make new elements.
 *
 * @param {string} text
 */
function clean(text) {
  for (let round = 0; round < 8; round++) {
    const parsed = new DOMParser().parseFromString(text, "text/html");
    if (removeUnwanted(parsed) === 0) return text;
    text = `<!doctype html>${parsed.documentElement.outerHTML}`;
  }
  throw new Error("This HTML changes each time it is read, so it is not shown.");
}

/**
 * @param {ParentNode} tree
 * @returns {number}
 */
function removeUnwanted(tree) {
  const unwanted = [...tree.querySelectorAll(UNWANTED)];
  for (const element of unwanted) element.remove();
  const templates = [...tree.querySelectorAll("template")];
  return templates.reduce((count, template) => count + removeUnwanted(template.content), unwanted.length);
}
