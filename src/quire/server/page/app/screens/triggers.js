// Triggers: documents that start by themselves. The list of all, and one with its bounds, its check and its last fires.

import { part, post, query, tryTo } from "../api.js";
import { html, useEffect, useState } from "../html.js";
import { Age, Chip, Command, Empty, Fact, Mark, Placeholder, ProblemBox, Status } from "../parts/basics.js";
import { Dialog } from "../parts/dialog.js";
import { Envelope } from "../parts/document_proof.js";
import { Icon } from "../parts/icon.js";
import { useResource } from "../resource.js";
import { go, Link, place, useTitle } from "../router.js";
import { duration, moment, money, span } from "../words.js";

/** The stream tells nothing of times that were skipped and of changed settings. */
const READ_AGAIN = 15_000;
const interval = (/** @type {number} */ seconds) => duration(seconds).replace(/ 0 \w+$/, "");
/** Settings that are no text. @type {Record<string, (value: any) => string>} */
const UNITS = { budget: money, day_budget: money, window: interval };
/** Settings that are shown in words of their own. */
const SHOWN = ["run", "cron", "zone", "every", "webhook", "files", "model"];
const EXAMPLE = `[triggers.nightly]\nrun = "report"\ncron = "0 6 * * 1-5"\nzone = "Europe/Berlin"\nbudget = 2.00`;
/** What became of an occurrence: tone and icon. @type {Record<string, [string, string]>} */
const STATES = {
  started: ["good", "check"],
  skipped: ["quiet", "skip"],
  missed: ["warn", "clock"],
  refused: ["bad", "cross"],
};

/** @param {string} path */
function useFresh(path) {
  const resource = useResource(path, (frame) => frame.event === "runs");
  useEffect(() => {
    const timer = setInterval(resource.reload, READ_AGAIN);
    return () => clearInterval(timer);
  }, [path]);
  return resource;
}

export function Triggers() {
  useTitle("Triggers");
  const { data, problem, slow, reload } = useFresh("/triggers");
  return html`
    <h1 tabindex="-1">Triggers</h1>
    <p class="soft lead">A trigger starts a document by itself: at times, for a webhook or for new files. It is written
      in quire.toml, and starts nothing until it is enabled.</p>
    ${problem && html`<${ProblemBox} problem=${problem} retry=${reload} />`}
    ${!data && slow && html`<${Placeholder} lines=${4} />`}
    ${data && !data.triggers.length && html`
      <${Empty} title="No trigger is written yet." icon="clock">
        <p>Write one in quire.toml; it appears here, with everything that would stop it.</p>
        <pre class="first-steps card">${EXAMPLE}</pre>
        </${Empty}>
    `}
    <ul class=${data?.triggers.length ? "rows" : ""}>
      ${data?.triggers.map((/** @type {any} */ one) =>
        html`
          <li class="row" key=${one.name}>
            <${OnOff} trigger=${one} />
            <${Link} class="row-title" to="/triggers/${part(one.name)}">${one.name}</${Link}>
            ${one.next[0] && html`<span class="soft number" title=${one.next[0]}>next ${soon(one.next[0])}</span>`}
            ${one.last &&
              html`<${State} fire=${one.last} /><span class="soft number"><${Age} at=${one.last.at} /></span>`}
            <p class="soft wide">${one.settings && `${one.settings.run}: ${sourceWords(one)}`}${one.settings &&
              one.reason && "; "}${one.reason}</p>
          </li>
        `
      )}
    </ul>
  `;
}

/** @param {{ trigger: any }} props */
function OnOff({ trigger: { enabled, reason } }) {
  if (enabled) return html`<${Mark} tone="good" icon="check" word="on" />`;
  const isNew = reason === "it is not enabled";
  return html`<${Mark} tone=${isNew ? "quiet" : "warn"} icon=${isNew ? "pause" : "warning"} word="off" />`;
}

/** The state of a fire, or its run with the status of that. @param {{ fire: any }} props */
function State({ fire: { state, run, status } }) {
  const [tone, icon] = STATES[state];
  if (!status) return html`<${Mark} tone=${tone} icon=${icon} word=${state} />`;
  return html`
    <${Link} to="/runs/${part(run)}" title="Run ${run}">
      <${Status} status=${status} />
      </${Link}>
  `;
}

/** @param {string} time */
function soon(time) {
  return `in ${span((Date.parse(time) - Date.now()) / 1000)}`;
}

/** A value of the settings. @param {any} value @returns {string} */
function written(value) {
  if (Object(value) !== value) return String(value);
  if (Array.isArray(value)) return value.map(written).join(", ");
  return Object.entries(value).map(([name, one]) => `${name} = ${one.expr ?? JSON.stringify(one)}`).join(", ");
}

/** @param {any} trigger */
function sourceWords({ name, settings: { cron, zone = "UTC", every, webhook, files } }) {
  if (cron) return `cron ${cron}, ${zone}`;
  if (every) return `every ${interval(every)}`;
  if (!webhook) return `files ${written(files)}`;
  return `webhook POST /hooks/${name}, ${webhook.map(Object.values).map(written).join(" or ")}`;
}

/** @param {{ name: string }} props */
export function Trigger({ name }) {
  useTitle(name);
  const at = `/triggers/${part(name)}`, state = place.value.query.get("state") ?? "";
  const list = useFresh(`/triggers${query({ name })}`), fires = useFresh(`/fires${query({ name, state })}`);
  const [check, setCheck] = useState(/** @type {any} */ (null));
  const [asks, setAsks] = useState(false);
  const [failure, setFailure] = useState(/** @type {any} */ (null));
  const trigger = list.data?.triggers[0];
  /** @param {string} verb @param {(answer: any) => void} [then] @param {any} [body] */
  const act = async (verb, then = () => {}, body = {}) => {
    await tryTo(setFailure, async () => then(await post(`${at}/${verb}`, body)));
    if (place.value.path !== at) return;
    list.reload();
    fires.reload();
  };
  const look = () => act("check", setCheck);
  const started = (/** @type {any} */ fire) =>
    fire.run ? go(`/runs/${part(fire.run)}`) : setFailure({ title: `No run: ${fire.state}`, detail: fire.reason });
  useEffect(() => {
    if (trigger?.settings && !asks) look(); // an open dialog changes only when the user asks for it
  }, [JSON.stringify(trigger?.settings), asks]);
  /** @param {string} word @param {() => void} onClick */
  const button = (word, onClick) =>
    html`<button type="button" class="button" data-needs="administer" onClick=${onClick}>${word}</button>`;
  const accepts = new Set(check?.problems.join(" ").match(/--accept \S+/g));
  const problem = failure && html`<${ProblemBox} problem=${failure} retry=${asks ? look : undefined} />`;
  const facts = trigger?.settings && html`<${Facts} trigger=${trigger} check=${check} />`;
  return html`
    <p class="document-crumbs">
      <${Link} to="/triggers">Triggers</${Link}></p>
    <div class="document-title document-head">
      <h1 tabindex="-1">${name}</h1>
      ${trigger && html`<${OnOff} trigger=${trigger} /><span class="soft">${trigger.reason}</span>`}
      <span class="push"></span>
      ${trigger?.enabled && button("Fire now", () => act("fire", started))}
      ${trigger && (trigger.enabled || !trigger.settings) &&
        button("Disable", () => act("disable", () => trigger.settings || go("/triggers")))}
      ${trigger?.settings && !trigger.enabled && button("Enable", () => (look(), setAsks(true)))}
    </div>
    ${list.problem && html`<${ProblemBox} problem=${list.problem} retry=${list.reload} />`}
    ${!asks && problem} ${facts}
    ${fires.data && html`<${Fires} fires=${fires.data.fires} name=${name} state=${state} />`}
    ${asks && html`
      <${Dialog} title="Let ${name} start runs by itself?" wide onClose=${() => setAsks(false)}>
        ${problem} ${facts}
        <p class="actions">
          <button type="button" class="button primary" disabled=${!check?.digest || check.problems.length > 0}
            onClick=${() => act("enable", () => setAsks(false), { digest: check.digest })}>Enable</button>
          <${Command} command=${["quire triggers enable", name, ...accepts].join(" ")} />
        </p>
      </${Dialog}>
    `}
  `;
}

/** Settings, bounds and permissions as a check has seen them. @param {{ trigger: any, check: any }} props */
function Facts({ trigger, check }) {
  const settings = check?.settings ?? trigger.settings;
  const others = Object.entries(settings).filter(([name]) => !SHOWN.includes(name));
  const { problems = [], next = [], document, needs, model, most } = check ?? {};
  const times = (next.length ? next : trigger.next).map((/** @type {string} */ time) =>
    html`<span class="pair number" title=${time}>${moment(Date.parse(time) / 1000)}</span>`
  );
  const sides = [[
    ["Document", document ? html`<${Link} to="/documents/${part(document)}">${document}</${Link}>` : settings.run],
    ["Starts", sourceWords({ ...trigger, settings })],
    ...others.map((
      [name, value],
    ) => [name[0].toUpperCase() + name.slice(1).replaceAll("_", " "), (UNITS[name] ?? written)(value)]),
  ], [
    ["Next", times],
    ["Model", model || settings.model],
    ["A run costs", model && (most === null ? "not known" : most ? `at most ${money(most)}, proven` : "nothing")],
  ]];
  return html`
    ${problems.length > 0 && html`
      <section class="card" aria-label="Problems">
        <h2>${trigger.enabled ? "A new check finds problems" : "It cannot be enabled"}</h2>
        <ul class="plain">${problems.map((/** @type {string} */ text) =>
          html`<li class="hint-row"><${Icon} name="warning" /><span class="pre">${text}</span></li>`
        )}</ul>
      </section>
    `}
    <section aria-label="Settings" class="health-facts">${sides.map((facts) =>
      html`
        <dl class="card">${facts.map(([name, words]) =>
          words && words.length !== 0 && html`<${Fact} name=${name}>${words}</${Fact}>`
        )}</dl>
      `
    )}</section>
    ${document && html`
      <section aria-label="Permissions">
        <h2>Permissions that it needs</h2>
        <${Envelope} envelope=${{ capabilities: needs, unknown: [] }} isOfRun=${false} />
      </section>
    `}
  `;
}

/** @param {{ fires: any[], name: string, state: string }} props */
function Fires({ fires, name, state }) {
  return html`
    <section aria-labelledby="fires">
      <h2 id="fires">Last fires</h2>
      <div class="chips" role="group" aria-label="State">
        ${Object.keys(STATES).map((state) => html`<${Chip} name="state" value=${state} />`)}
      </div>
      ${!fires.length && html`<p class="soft">${state ? `None was ${state}.` : "It has not fired yet."}</p>`}
      <ul class=${fires.length ? "rows" : ""}>
        ${fires.map((one) =>
          html`
            <li class="row" key=${one.key}>
              <${State} fire=${{ state: one.state }} />
              <span class="row-title" title=${one.key}>${moment(one.due)}</span>
              ${one.status && html`<${State} fire=${one} />`}
              <span class="soft number">${one.key.startsWith("by hand") && "by hand, "}<${Age} at=${one.at} /></span>
              ${one.reason && html`<p class="soft pre wide">${one.reason}</p>`}
            </li>
          `
        )}
      </ul>
      <p class="more-line"><${Command} command="quire triggers fires ${name}" /></p>
    </section>
  `;
}
