// One try of a model call: its reply while it is written, then its difference from the recorded one, time and cost.

import { html, useEffect, useRef } from "../html.js";
import { useRun } from "../run_store.js";
import { duration, money, number } from "../words.js";
import { Status } from "./basics.js";
import { Icon } from "./icon.js";
import { TextDiff } from "./diff.js";

/**
 * @param {{ tried: any, schema: string | null, recorded: string, name: string, plain: boolean, busy?: boolean,
 *   done?: () => void, keep?: (tried: any) => void }} props
 */
export function TryCard({ tried, schema, recorded, name, plain, busy, done, keep }) {
  const live = done && /^(pending|running)$/.test(tried.status);
  const fits = tried.try && schema && /^(completed|failed)$/.test(tried.status)
    ? tried.status === "completed" ? ["good", `fits ${schema}`] : ["bad", `does not fit ${schema}`]
    : null;
  const facts = [
    tried.calls ? duration(tried.took) : "",
    tried.used[1] ? `${number(tried.used[1])} out` : "",
    tried.calls ? money(tried.spent) : "",
  ];
  return html`
    <article class="card try-card" aria-label=${name}>
      <header>
        <strong>${name}</strong>
        ${live
          ? html`<${Live} run=${tried.id} done=${done} />`
          : tried.try && html`<${Status} status=${tried.status} />`}
        ${fits && html`<span class="ink-${fits[0]}">${fits[1]}</span>`}
        <span class="push soft number">${facts.filter(Boolean).join(" · ")}</span>
        ${keep && tried.status === "completed" && html`
          <button type="button" class="button small-button" disabled=${busy} aria-label="Keep ${name} as test case"
            onClick=${() => keep(tried)}><${Icon} name="check" />Keep as test case</button>
        `}
      </header>
      ${live
        ? html`<${Writing} run=${tried.id} name=${name} />`
        : !tried.reply
        ? html`<p class="soft">It has no reply.</p>`
        : plain
        ? html`<pre class="source try-reply" tabindex="0">${tried.reply}</pre>`
        : html`<${TextDiff} a=${recorded} b=${tried.reply} />`}
      ${tried.error && tried.try && html`<p class="step-message pre">${tried.error.message}</p>`}
    </article>
  `;
}

/** The state of a try that is driven now. @param {{ run: string, done: () => void }} props */
function Live({ run, done }) {
  const store = useRun(run);
  const status = store.head.value?.status ?? "pending";
  const told = useRef(false);
  useEffect(() => {
    if (told.current || /^(pending|running)$/.test(status)) return;
    told.current = true;
    done();
  }, [status]);
  return html`<span class="status tone-live"><${Icon} name="running" />${
    store.streams.value.size ? "writing" : "asks"
  }</span>`;
}

/** @param {{ run: string, name: string }} props */
function Writing({ run, name }) {
  const text = [...useRun(run).streams.value.values()].at(-1)?.text ?? "";
  return html`<pre class="source try-reply" tabindex="0" aria-label="Text of ${name}">${text}</pre>`;
}
