// Artifacts: what runs have made, by type, and the versions of one document's artifact side by side.

import { download, get, part, query } from "../api.js";
import { html, useEffect, useState } from "../html.js";
import { Age, Chip, Empty, Placeholder, ProblemBox } from "../parts/basics.js";
import { Content } from "../parts/content.js";
import { Icon } from "../parts/icon.js";
import { Markup } from "../parts/markup.js";
import { useResource } from "../resource.js";
import { Link, place, useTitle } from "../router.js";
import { plural } from "../words.js";

export function Artifacts() {
  useTitle(place.value.query.get("document") ? "Versions" : "Artifacts");
  const { query: asked } = place.value;
  const type = asked.get("type") ?? "", document = asked.get("document") ?? "";
  const path = `/artifacts${query({ type, document, limit: document ? 8 : 24 })}`;
  const first = useResource(path, (frame) => frame.event === "runs");
  const [more, setMore] = useState(/** @type {{ path: string, items: any[], next: string | null } | null} */ (null));
  const { data, problem } = first;
  const rest = more?.path === path ? more : null;
  const next = rest ? rest.next : data?.next;
  const readMore = async () => {
    const page = await get(`${path}&after=${encodeURIComponent(next)}`);
    setMore({ path, items: [...(rest?.items ?? []), ...page.items], next: page.next });
  };
  const items = data ? unique([...data.items, ...(rest?.items ?? [])]) : [];
  return html`
    <h1 tabindex="-1">${document ? "Versions" : "Artifacts"}</h1>
    ${problem && html`<${ProblemBox} problem=${problem} retry=${first.reload} />`}
    ${!data && first.slow && html`<${Placeholder} lines=${6} />`}
    ${data && html`
      ${document
        ? html`
          <p class="more-line">
            <${Link} to="/artifacts">All artifacts</${Link}> <span class="soft">of ${document}</span></p>
        `
        : html`<${Types} types=${data.types} type=${type} />`}
      ${!items.length && html`
        <${Empty} title=${type
          ? "No artifact of this type exists."
          : "No run has ended with an artifact yet."} icon="artifacts">
          ${!data.indexed.whole && html`<p>Runs are still being read.</p>`}
        </${Empty}>
      `}
      ${document
        ? html`<div class="versions">${items.map((one) => html`<${Version} key=${one.run} artifact=${one} />`)}</div>`
        : html`<ul class="gallery">${items.map((one) => html`<${Card} key=${one.run} artifact=${one} />`)}</ul>`}
      ${next &&
        html`<p class="more-line"><button type="button" class="button" onClick=${readMore}>Show more</button></p>`}
    `}
  `;
}

/** @param {any[]} items */
function unique(items) {
  return [...new Map(items.map((one) => [one.run, one])).values()];
}

/** @param {{ types: Record<string, number>, type: string }} props */
function Types({ types, type }) {
  const names = Object.keys(types);
  if (names.length < 2 && !type) return null;
  return html`
    <div class="chips" role="group" aria-label="Type">
      ${names.map((name) =>
        html`<${Chip} name="type" value=${name} words=${name.replace("_", " and ")} count=${types[name]} />`
      )}
    </div>
  `;
}

/** @param {{ artifact: any }} props */
function Card({ artifact }) {
  return html`
    <li class="card artifact">
      <header>
        <span class="status tone-quiet">${artifact.type.replace("_", " and ")}</span>
        <span class="soft push"><${Age} at=${artifact.at} /></span>
      </header>
      <h2>
        <${Link} to="/runs/${artifact.run}/artifact">${artifact.title}</${Link}></h2>
      ${artifact.html
        ? html`<${Markup} class="artifact-head markup" html=${artifact.html} />`
        : html`<div class="artifact-head pre mono">${artifact.head}</div>`}
      <div class="below-card">
        <span class="soft small">${plural(artifact.size, "character")}</span>
        ${artifact.versions > 1 && html`
          <${Link} class="small" to="/artifacts${query({ document: artifact.document })}"
            aria-label="Versions of ${artifact.document}">${artifact.versions} versions</${Link}>
        `}
        <span class="push"></span>
        <${DownloadButton} artifact=${artifact} />
      </div>
    </li>
  `;
}

/** @param {{ artifact: any }} props */
function Version({ artifact }) {
  const [data, setData] = useState(/** @type {any} */ (null));
  const [problem, setProblem] = useState(/** @type {any} */ (null));
  useEffect(() => {
    const path = `/runs/${part(artifact.run)}/artifact`;
    Promise.all([get(path), get(`${path}?as=html`)])
      .then(([text, rendered]) => setData({ ...text, html: rendered.html }))
      .catch((error) => setProblem(error.problem));
  }, [artifact.run]);
  return html`
    <article class="card version">
      <header>
        <${Link} to="/runs/${artifact.run}">${artifact.run}</${Link}>
        <span class="soft push"><${Age} at=${artifact.at} /></span>
        <${DownloadButton} artifact=${artifact} />
      </header>
      ${problem && html`<${ProblemBox} problem=${problem} />`}
      ${data
        ? html`
          <${Content} type=${data.type} text=${data.text} html=${data.html} cut=${data
            .cut} title="Artifact of ${artifact.run}" />
        `
        : html`<${Placeholder} />`}
    </article>
  `;
}

/** @param {{ artifact: any }} props */
function DownloadButton({ artifact }) {
  const save = () => download(`/runs/${part(artifact.run)}/artifact?as=download`, fileName(artifact));
  return html`
    <button type="button" class="icon-button" aria-label="Download" title="Download" onClick=${save}>
      <${Icon} name="download" /></button>
  `;
}

/** @type {Record<string, string>} */
const ENDINGS = {
  markdown: "md",
  json: "json",
  mermaid: "mmd",
  chartjs: "json",
  html_css: "html",
  javascript: "js",
  typescript: "ts",
};

/** @param {any} artifact */
function fileName(artifact) {
  return `${artifact.run}.${ENDINGS[artifact.type] ?? "txt"}`;
}
