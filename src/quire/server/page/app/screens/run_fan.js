// The items of a fan-out: a strip of all of them, and a list that begins with those that failed.

import { get, part, query } from "../api.js";
import { withItems } from "../fan_live.js";
import { listen } from "../feed.js";
import { html, useEffect, useMemo, useRef, useState } from "../html.js";
import { Empty, Placeholder, ProblemBox } from "../parts/basics.js";
import { FanStrip, LETTERS } from "../parts/fan_strip.js";
import { Icon } from "../parts/icon.js";
import { RunFrame } from "../parts/run_frame.js";
import { VirtualList } from "../parts/virtual_list.js";
import { useResource } from "../resource.js";
import { go, Link, place, setQuery } from "../router.js";
import { duration, money, number, plural } from "../words.js";

const PAGE = 100;
/** Texts of items are fetched so many at a time when the pointer or the keys reach them. */
const CHUNK = 50;
/** Milliseconds between two fetches while the run goes on. */
const PAUSE = 1500;

/** @param {{ run: string, path: string }} props */
export function RunFan({ run, path }) {
  return html`
    <${RunFrame} run=${run} tab="fans">
      ${(/** @type {import("../run_store.js").RunStore} */ store) => html`<${Fan} store=${store} path=${path} />`}
    </${RunFrame}>
  `;
}

/** @param {{ store: import("../run_store.js").RunStore, path: string }} props */
function Fan({ store, path }) {
  const head = /** @type {import("../run_store.js").Head} */ (store.head.value);
  const asked = place.value.query;
  const filter = { q: asked.get("q") ?? "", state: asked.get("state") ?? "" };
  const address = `/runs/${part(head.id)}/fans/${part(path)}`;
  const fan = useResource(address + query({ ...filter, limit: PAGE }));
  const events = useEvents(head.id, fan);
  const more = useMore(address, filter, fan.data);
  const texts = useTexts(address, fan.data);
  const selected = asked.get("item") === null ? -1 : Number(asked.get("item"));
  if (fan.problem) return html`<${ProblemBox} problem=${fan.problem} retry=${fan.reload} />`;
  if (!fan.data) return fan.slow && html`<${Placeholder} lines=${8} />`;
  const { counts, label, title, total, fitting, rounds } = fan.data;
  const thing = rounds ? "round" : "item";
  const letters = withItems(fan.data.letters, path, events);
  const here = `/runs/${part(head.id)}`;
  /** @param {number} at */
  const words = (at) => {
    const item = texts.of(at);
    const said = item ? [item.name ?? item.text, item.message].filter(Boolean).join(" · ") : "…";
    return `${number(at + 1)} of ${number(total)}, ${LETTERS[letters[at]]?.word}: ${said}`;
  };
  /** @param {number} at */
  const open = (at) => {
    const item = texts.of(at);
    if (item) go(`${here}/steps/${part(item.path)}`);
  };
  return html`
    <section class="fan" aria-labelledby="fan-title">
      <h2 id="fan-title">
        <${Link} to="${here}/steps/${part(path)}">Step ${label}</${Link}> ${title}: ${plural(total, thing)}</h2>
      ${total === 0
        ? html`
          <${Empty} title="There are no ${thing}s yet." icon="clock">
            <p>They appear when the step begins.</p>
            </${Empty}>
        `
        : html`
          <${FanStrip} letters=${letters} label="${rounds
            ? "Rounds"
            : "Items"} of step ${label}" selected=${selected} words=${words}
            onSelect=${(/** @type {number} */ at) => (texts.want(at), setQuery({ item: String(at) }))}
            onPoint=${(/** @type {number} */ at) => at >= 0 && texts.want(at)} onOpen=${open} />
          <${Filters} filter=${filter} counts=${counts} total=${total} />
          ${fitting === 0
            ? html`<${Empty} title="No item fits." icon="search" />`
            : html`<${Items} items=${more.items} count=${fitting} here=${here} onEnd=${more.load} selected=${selected} />`}
        `}
    </section>
  `;
}

/** @param {{ filter: { q: string, state: string }, counts: Record<string, number>, total: number }} props */
function Filters({ filter, counts, total }) {
  const [text, setText] = useState(filter.q);
  const timer = useRef(0);
  /** @param {any} event */
  const onInput = (event) => {
    setText(event.target.value);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setQuery({ q: event.target.value.trim() || undefined }), 200);
  };
  return html`
    <div class="fan-filters">
      <input type="search" aria-label="Words of the item" placeholder="Words of the item" value=${text}
        onInput=${onInput} />
      <div class="chips" role="group" aria-label="States">
        <button type="button" class="chip" aria-pressed=${!filter.state} onClick=${() =>
          setQuery({ state: undefined })}>
          All <span class="number">${number(total)}</span></button>
        ${Object.values(LETTERS).filter(({ state }) => counts[state] || filter.state === state).map((
          { state, word, icon },
        ) =>
          html`
            <button type="button" class="chip" aria-pressed=${filter.state === state} onClick=${() =>
              setQuery({ state: filter.state === state ? undefined : state })}>
              <${Icon} name=${icon} />${word} <span class="number">${number(counts[state])}</span></button>
          `
        )}
      </div>
    </div>
  `;
}

/** @param {{ items: any[], count: number, here: string, onEnd: () => void, selected: number }} props */
function Items({ items, count, here, onEnd, selected }) {
  const shows = items.findIndex((item) => item.index === selected);
  return html`
    <${VirtualList} pane class="fan-items" label="Items, the failed ones first" count=${items.length} rowHeight=${52}
      shows=${shows < 0 ? undefined : shows} onEnd=${items.length < count ? onEnd : undefined} focusable=${false}
      row=${(/** @type {number} */ at) =>
        html`
          <${Row} key=${items[at].index} item=${items[at]} here=${here}
            selected=${items[at].index === selected} />
        `} />
    ${items.length < count &&
      html`<p class="soft small">${number(items.length)} of ${number(count)}; more as you scroll</p>`}
  `;
}

/** @param {{ item: any, here: string, selected: boolean }} props */
function Row({ item, here, selected }) {
  const shown = Object.values(LETTERS).find(({ state }) => state === item.state) ?? LETTERS.p;
  return html`
    <div role="listitem" class=${selected ? "fan-row selected" : "fan-row"}>
      <${Link} to="${here}/steps/${part(item.path)}" class="fan-link">
        <span class="status tone-${shown.tone}"><${Icon} name=${shown.icon} />${shown.word}</span>
        <span class="soft number fan-number">${number(item.index + 1)}</span>
        <span class="fan-text">
          <span class="fan-line">${item.name ?? item.text}</span>
          ${item.message && html`<span class="fan-line fan-message">${item.message}</span>`}
        </span>
        <span class="soft number fan-cost">${item.effects
          ? `${duration(item.elapsed)} · ${money(item.cost)}`
          : ""}</span>
        </${Link}>
        </div>
  `;
}

/**
 * The events of a run since the items were fetched. The items are fetched again while it goes on, but not often.
 *
 * @param {string} run
 * @param {import("../resource.js").Resource} fan
 * @returns {any[]}
 */
function useEvents(run, fan) {
  const events = useRef(/** @type {{ of: any, all: any[] }} */ ({ of: null, all: [] }));
  const [, tick] = useState(0);
  const reload = useRef(fan.reload);
  reload.current = fan.reload;
  if (events.current.of !== fan.data) events.current = { of: fan.data, all: [] };
  useEffect(() => {
    let drawing = 0, fetching = 0;
    const stop = listen(({ data }) => {
      if (data?.run !== run || data.type === "delta") return;
      events.current.all.push(data);
      drawing ||= requestAnimationFrame(() => {
        drawing = 0;
        tick((count) => count + 1);
      });
      fetching ||= setTimeout(() => {
        fetching = 0;
        reload.current();
      }, PAUSE);
    });
    return () => {
      stop();
      cancelAnimationFrame(drawing);
      clearTimeout(fetching);
    };
  }, [run]);
  return events.current.all;
}

/**
 * The pages after the first. They are dropped when the first one changes, because states have moved.
 *
 * @param {string} address
 * @param {{ q: string, state: string }} filter
 * @param {any} first
 */
function useMore(address, filter, first) {
  const [later, setLater] = useState(
    /** @type {{ of: any, items: any[], next: string | null }} */ ({ of: null, items: [], next: null }),
  );
  const current = later.of === first ? later : { of: first, items: first?.items ?? [], next: first?.next ?? null };
  const loading = useRef(false);
  const load = async () => {
    if (!current.next || loading.current) return;
    loading.current = true;
    try {
      const page = await get(address + query({ ...filter, limit: PAGE, after: current.next }));
      setLater({ of: first, items: [...current.items, ...page.items], next: page.next });
    } finally {
      loading.current = false;
    }
  };
  return { items: current.items, load };
}

/**
 * Items by their number, fetched when they are wanted.
 *
 * @param {string} address
 * @param {any} fan
 */
function useTexts(address, fan) {
  const [, tick] = useState(0);
  const kept = useMemo(() => ({ items: /** @type {Map<number, any>} */ (new Map()), asked: new Set() }), [address]);
  for (const item of fan?.items ?? []) kept.items.set(item.index, item);
  /** @param {number} at */
  const want = async (at) => {
    const chunk = Math.floor(at / CHUNK) * CHUNK;
    if (kept.items.has(at) || kept.asked.has(chunk)) return;
    kept.asked.add(chunk);
    const page = await get(address + query({ order: "document", after: chunk ? `0.${chunk - 1}` : "", limit: CHUNK }));
    for (const item of page.items) kept.items.set(item.index, item);
    tick((count) => count + 1);
  };
  const chosen = Number(place.value.query.get("item") ?? -1);
  useEffect(() => {
    if (chosen >= 0 && fan) want(chosen);
  }, [chosen, fan?.path]);
  return { of: (/** @type {number} */ at) => kept.items.get(at), want };
}
