// Tries of a model call: their receipt, and of each the reply while it is written, then its difference from the recorded
// one, its time and cost.

import { html, useEffect, useRef } from "../html.js";
import { useRun } from "../run_store.js";
import { duration, money, number, plural } from "../words.js";
import { Status } from "./basics.js";
import { Icon } from "./icon.js";
import { TextDiff } from "./diff.js";

const COUNTS = [1, 3, 10];

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
          <button type="button" class="button small-button" data-needs="administer" disabled=${busy}
            aria-label="Keep ${name} as test case"
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
  const notified = useRef(false);
  useEffect(() => {
    if (notified.current || /^(pending|running)$/.test(status)) return;
    notified.current = true;
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

/** @param {any} props */
export function Receipt({ data, changes, change, start, blocked }) {
  const used = data.recorded.used;
  return html`
    <div class="card try-receipt" role="region" aria-label="Receipt">
      <p><strong>${plural(data.calls, "call")}</strong>${data.about
        ? html`, about <strong>${money(data.about)}</strong>`
        : ""}${data.most === null ? ", no price listed" : `, at most ${money(data.most)}`}
        <span class="soft small">${used[0]
          ? `${data.n} × about ${number(used[0])} in, ${number(used[1])} out · `
          : ""}no tool changes anything${data.budget === null ? "" : ` · budget ${money(data.budget)} each`}</span></p>
      <div class="switch" role="group" aria-label="Number of tries">
        ${COUNTS.map((count) =>
          html`<button key=${count} type="button" aria-pressed=${changes.n === count} onClick=${() =>
            change({ n: count })}>${count}</button>`
        )}
      </div>
      <button type="button" class="button primary" disabled=${blocked}
        onClick=${start}><${Icon} name="play" />Run ${changes.n === 1 ? "once" : `${changes.n} times`}</button>
    </div>
  `;
}

/** @param {{ tries: any[], schema: string | null, stop: () => void }} props */
export function Sum({ tries, schema, stop }) {
  if (!tries.length) return null;
  const ended = tries.filter((trial) => !/^(pending|running)$/.test(trial.status));
  const good = ended.filter((trial) => trial.status === "completed");
  const costs = tries.reduce((sum, trial) => sum + (trial.spent ?? 0), 0);
  return html`
    <p
      class="try-sum"><span role="status"><strong>${good.length} of ${ended.length}</strong> ${schema
        ? `fit ${schema}`
        : "completed"}</span><span class="soft">cost so far ${money(costs)}</span>
      ${ended.length < tries.length &&
        html`<button type="button" class="button push" onClick=${stop}><${Icon} name="stop" />Stop</button>`}</p>
  `;
}
