// The page of the API, made from its own description.

import { html } from "../html.js";
import { Command, Placeholder, ProblemBox } from "../parts/basics.js";
import { useResource } from "../resource.js";
import { place, setQuery, useTitle } from "../router.js";

/** @type {Record<string, [string, string]>} */
const COSTS = {
  FREE: ["quiet", "reads only"],
  PAID: ["warn", "may call a model"],
  WRITES: ["live", "changes the store or files"],
};

export function ApiDocs() {
  useTitle("The HTTP API");
  const api = useResource("/openapi.json");
  const { data, problem } = api;
  const filter = place.value.query.get("q") ?? "";
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const all = data ? endpoints(data) : [];
  const shown = all.filter((one) =>
    words.every((word) => `${one.method} ${one.path} ${one.operation.summary}`.toLowerCase().includes(word))
  );
  return html`
    <h1 tabindex="-1">The HTTP API</h1>
    <p class="soft lead">All paths are below <code>${data?.servers[0].url}</code>. Every request needs the header
      <code>Authorization: Bearer TOKEN</code>; <code>quire serve --url</code> prints the token. Errors are problems as
      RFC 9457 describes them.</p>
    ${problem && html`<${ProblemBox} problem=${problem} retry=${api.reload} />`}
    ${!data && api.slow && html`<${Placeholder} lines=${8} />`}
    ${data && html`
      <input type="search" class="api-filter" aria-label="Filter" placeholder="Filter" value=${filter}
        onInput=${(/** @type {any} */ event) => setQuery({ q: event.target.value || undefined })} />
      <ul class="rows api-list">${shown.map((one) =>
        html`<${Endpoint} key=${one.method + one.path} ...${one} base=${data.servers[0].url} />`
      )}</ul>
    `}
  `;
}

/**
 * @param {any} description
 * @returns {{ method: string, path: string, operation: any }[]}
 */
function endpoints(description) {
  return Object.entries(description.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation }))
  );
}

/** @param {{ method: string, path: string, operation: any, base: string }} props */
function Endpoint({ method, path, operation, base }) {
  const [tone, meaning] = COSTS[operation["x-cost"]] ?? ["quiet", ""];
  const body = operation.requestBody?.content["application/json"]?.schema;
  const send = method === "GET" ? "" : ` -X ${method} -H 'Content-Type: application/json' -d '{}'`;
  return html`
    <li>
      <details>
        <summary class="row">
          <code class="api-method">${method}</code><code class="api-path">${path}</code>
          <span class="soft api-summary">${operation.summary}</span>
          <span class="status tone-${tone}" title=${meaning}>${operation["x-cost"]}</span>
        </summary>
        <div class="api-more">
          <p>${operation.summary} <span class="soft">${meaning}.</span></p>
          ${operation.parameters.length > 0 && html`
            <dl class="api-parameters">
              ${operation.parameters.map((/** @type {any} */ one) =>
                html`
                  <div>
                    <dt><code>${one.in === "path" ? `{${one.name}}` : `?${one.name}=`}</code></dt>
                    <dd class="soft">${one.description ?? "a part of the path"}</dd>
                  </div>
                `
              )}
            </dl>
          `}
          ${body && html`
            <p class="soft">Body</p>
            <pre class="api-body" tabindex="0" aria-label="Schema of the body">${JSON.stringify(body, null, 2)}</pre>
          `}
          <${Command} command=${`curl -H "Authorization: Bearer $TOKEN"${send} ${location.origin}${base}${path}`} />
        </div>
      </details>
    </li>
  `;
}
