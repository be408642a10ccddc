// All screens by the pattern of their address. A screen is loaded when it is first shown; the server reads this table
// too, so that the browser is told at once which modules the screen of its address needs.

import { html, useEffect, useState } from "./html.js";
import { Empty, Placeholder } from "./parts/basics.js";
import { match, place, useTitle } from "./router.js";
import { NotFound } from "./screens/not_found.js";

/** The first pattern that fits counts: pattern, module, name of the component. @type {[string, () => Promise<any>, string][]} */
const SCREENS = [
  ["/", () => import("./screens/now.js"), "Now"],
  ["/q/:run/*path", () => import("./screens/question.js"), "Question"],
  ["/s/:run", () => import("./screens/shared.js"), "SharedRun"],
  ["/artifacts", () => import("./screens/artifacts.js"), "Artifacts"],
  ["/search", () => import("./screens/search.js"), "Search"],
  ["/runs", () => import("./screens/runs.js"), "Runs"],
  ["/compare/:a/:b", () => import("./screens/compare.js"), "Compare"],
  ["/runs/:run/try/*path", () => import("./screens/try.js"), "Try"],
  ["/runs/:run/fork", () => import("./screens/fork.js"), "Fork"],
  ["/triggers", () => import("./screens/triggers.js"), "Triggers"],
  ["/triggers/:name", () => import("./screens/triggers.js"), "Trigger"],
  ["/trust", () => import("./screens/trust.js"), "Trust"],
  ["/health", () => import("./screens/health.js"), "Health"],
  ["/api", () => import("./screens/api_docs.js"), "ApiDocs"],
  ["/documents", () => import("./screens/documents.js"), "Documents"],
  ["/documents/*id", () => import("./screens/document.js"), "DocumentScreen"],
  ["/runs/:run", () => import("./screens/run.js"), "Run"],
  ["/runs/:run/*old", () => import("./screens/run.js"), "Run"],
];

/** Components that are loaded, by name. @type {Map<string, any>} */
const loaded = new Map();

/** The screen of the address. */
export function Screen() {
  const path = place.value.path;
  for (const [pattern, load, name] of SCREENS) {
    const props = match(pattern, path);
    // Two addresses of one screen are one screen: what is open in it stays open.
    if (props) return html`<${Loaded} key=${name} load=${load} name=${name} props=${props} />`;
  }
  return html`<${NotFound} path=${path} />`;
}

/** @param {{ load: () => Promise<any>, name: string, props: Record<string, string> }} given */
function Loaded({ load, name, props }) {
  const [state, setState] = useState(loaded.has(name) ? "shown" : "loading");
  useEffect(() => {
    if (loaded.has(name)) return;
    const timer = setTimeout(() => setState((now) => now === "loading" ? "slow" : now), 150);
    load().then((module) => {
      loaded.set(name, module[name]);
      setState("shown");
    }, () => setState("failed"));
    return () => clearTimeout(timer);
  }, [name]);
  if (state === "failed") return html`<${CannotLoad} />`;
  if (state !== "shown") return state === "slow" ? html`<${Placeholder} lines=${6} />` : null;
  return html`<${loaded.get(name)} ...${props} />`;
}

/** A server of another version has other modules; one that is away has none. */
function CannotLoad() {
  useTitle("This screen cannot be loaded");
  return html`
    <h1 tabindex="-1">This screen cannot be loaded</h1>
    <${Empty} title="The server is away, or it has another version than this tab." icon="warning">
      <p><button type="button" class="button" onClick=${() => location.reload()}>Load the page again</button></p>
      </${Empty}>
  `;
}
