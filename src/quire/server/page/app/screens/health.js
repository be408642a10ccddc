// Health: the server, its store and cluster, the models, what quire doctor finds, and the last lines of the log.

import { part, post } from "../api.js";
import { html } from "../html.js";
import { Age, Command, Fact, Placeholder, ProblemBox } from "../parts/basics.js";
import { Icon } from "../parts/icon.js";
import { useResource } from "../resource.js";
import { Link, useTitle } from "../router.js";
import { about } from "../shell.js";
import { duration, number, plural } from "../words.js";

export function Health() {
  useTitle("Health");
  const health = useResource("/health", (frame) => frame.event === "runs" || frame.event === "store");
  const models = useResource("/models");
  const doctor = useResource("/doctor");
  const hooks = useResource(about.value?.features?.webhooks ? "/webhooks" : null);
  const { data, problem } = health;
  return html`
    <h1 tabindex="-1">Health</h1>
    ${problem && html`<${ProblemBox} problem=${problem} retry=${health.reload} />`}
    ${!data && health.slow && html`<${Placeholder} lines=${6} />`}
    ${data && html`<${Server} health=${data} />`}
    ${models.data && html`<${Models} models=${models.data} />`}
    ${doctor.data && html`<${Doctor} findings=${doctor.data.items} command=${doctor.data.command} />`}
    ${doctor.problem && html`<${ProblemBox} problem=${doctor.problem} retry=${doctor.reload} />`}
    ${hooks.data && html`<${Webhooks} hooks=${hooks.data.items} reload=${hooks.reload} />`}
    ${data && html`<${Log} lines=${data.log} />`}
    <p class="more-line">
      <${Link} to="/api">The HTTP API of this server</${Link}></p>
  `;
}

/** @param {{ health: any }} props */
function Server({ health }) {
  const { store, cluster } = health;
  return html`
    <section aria-label="Server" class="health-facts">
      <dl class="card">
        <${Fact} name="Quire">${health.version}, Python ${health.python}, process ${health.process}</${Fact}>
        <${Fact} name="Started"><${Age} at=${health.started_at} /></${Fact}>
        <${Fact} name="Drives">${plural(health.driving, "run")}</${Fact}>
        <${Fact} name="Listening">${plural(health.listeners, "browser")}</${Fact}>
        <${Fact} name="Folder"><span class="mono">${health.folder}</span></${Fact}>
      </dl>
      <dl class="card">
        <${Fact} name="Store">${store.kind}${store.seconds !== undefined &&
          `, answers in ${duration(store.seconds)}`}</${Fact}>
        <${Fact} name="Place"><span class="mono">${store.place}</span></${Fact}>
        <${Fact} name="Survives">${store.durability === "power"
          ? "a loss of power"
          : "the death of a process, not a loss of power"}</${Fact}>
        ${store.runs !== undefined &&
          html`<${Fact} name="Holds">${plural(store.runs, "run")}, ${
            plural(store.questions, "open question")
          }</${Fact}>`}
        ${store.problem && html`<${Fact} name="Problem"><span class="bad">${store.problem}</span></${Fact}>`}
      </dl>
      ${cluster && html`
        <dl class="card">
          <${Fact} name="Cluster">${cluster.temporal}, ${cluster.namespace}, queue ${cluster.task_queue}</${Fact}>
          ${cluster.problem && html`<${Fact} name="Problem"><span class="bad">${cluster.problem}</span></${Fact}>`}
          ${cluster.workers && html`<${Fact} name="Workers">
            ${cluster.workers.length ? "" : html`none asks for work: <${Command} command="quire worker" />`}
            <ul class="plain">${
            cluster.workers.map((/** @type {any} */ one) =>
              html`<li><span class="mono">${one.identity}</span>, <${Age} at=${one.seen_at} />${
                one.reason &&
                html`, <span class="bad">unfit: ${one.reason}</span>`
              }</li>`
            )
          }</ul>
          </${Fact}>`}
        </dl>
      `}
    </section>
  `;
}

/** @param {{ models: any }} props */
function Models({ models }) {
  const tiers = Object.entries(models.tiers);
  return html`
    <section aria-labelledby="models">
      <h2 id="models">Models</h2>
      <dl class="card health-one">
        <${Fact} name="A run uses">${models.default
          ? html`<code>${models.default.model}</code> <span class="soft">(${models.default.reason})</span>`
          : html`<span class="pre">${models.problem}</span>`}</${Fact}>
        ${tiers.length > 0 && html`<${Fact} name="Tiers">${
          tiers.map(([tier, model]) =>
            html`
              <span class="pair">${tier} <code>${model}</code></span>
            `
          )
        }</${Fact}>`}
        ${models.providers.length > 0 &&
          html`<${Fact} name="Providers">${
            models.providers.map((/** @type {any} */ one) =>
              html`
                <span class="pair">${one.name} <span class="soft">at ${one.host}${one.has_key
                  ? ""
                  : `, ${one.key} is not set`}</span></span>
              `
            )
          }</${Fact}>`}
        ${models.keys.length > 0 && html`<${Fact} name="Keys">${models.keys.join(", ")}</${Fact}>`}
        <${Fact} name="On this machine">${models.local.length
          ? models.local.map((/** @type {any} */ one) =>
            html`
              <span class="pair"><code>${one.model}</code> <span class="soft">${number(
                Math.round(one.size / 1e6),
              )} MB</span></span>
            `
          )
          : html`<${Command} command="quire model pull ${models.can_pull[0]}" />`}</${Fact}>
      </dl>
    </section>
  `;
}

/** @type {Record<string, [string, string]>} */
const STATES = { ok: ["good", "check"], missing: ["warn", "warning"], problem: ["bad", "cross"] };

/** @param {{ findings: any[], command: string }} props */
function Doctor({ findings, command }) {
  const order = ["problem", "missing", "ok"];
  const sorted = [...findings].sort((a, b) => order.indexOf(a.state) - order.indexOf(b.state));
  return html`
    <section aria-labelledby="doctor">
      <div
        class="head now-head"><h2 id="doctor">Checks of this machine</h2><span class="push"></span><${Command} command=${command} /></div>
      <ul class="rows">
        ${sorted.map((one) => {
          const [tone, icon] = STATES[one.state];
          return html`
            <li class="row finding">
              <span class="status tone-${tone}"><${Icon} name=${icon} />${one.state}</span>
              <span class="finding-what">${one.what}</span>
              <span class="soft finding-detail">${one.detail}</span>
            </li>
          `;
        })}
      </ul>
    </section>
  `;
}

/** @param {{ hooks: any[], reload: () => void }} props */
function Webhooks({ hooks, reload }) {
  /** @param {string} name */
  const test = async (name) => {
    await post(`/webhooks/${part(name)}/test`).catch(() => {});
    setTimeout(reload, 1500);
  };
  return html`
    <section aria-labelledby="hooks">
      <h2 id="hooks">Webhooks</h2>
      <ul class="rows">
        ${hooks.map((one) =>
          html`
            <li class="row" key=${one.name}>
              <span class="status tone-${one.last_error ? "warn" : "good"}">
                <${Icon} name=${one.last_error ? "warning" : "check"} />${one.last_error ? "failing" : "ok"}</span>
              <span class="row-title">${one.name} <span class="soft">at ${one.host}</span></span>
              <span class="soft number">${number(one.arrived)} arrived, ${number(one.waiting)} wait</span>
              <button type="button" class="button" data-needs="administer" onClick=${() =>
                test(one.name)}>Send a test</button>
              ${one.last_error && html`<p class="soft small wide">${one.last_error}</p>`}
            </li>
          `
        )}
      </ul>
    </section>
  `;
}

/** @param {{ lines: any[] }} props */
function Log({ lines }) {
  return html`
    <section aria-labelledby="log">
      <h2 id="log">Log of the server</h2>
      ${lines.length
        ? html`<ol class="log card" tabindex="0" aria-label="Lines of the log">${
          [...lines].reverse().map((one) =>
            html`<li><span class="soft"><${Age} at=${one.at} /></span> <span class="pre mono">${one.text}</span></li>`
          )
        }</ol>`
        : html`<p class="soft">Nothing went wrong since the server was started.</p>`}
    </section>
  `;
}
