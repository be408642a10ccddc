// The past runs of a document as small multiples: how long each took, what it cost, and how it ended. The list below it
// says the same in words.

import { html, useLayoutEffect, useRef, useState } from "../html.js";
import { Link } from "../router.js";
import { duration, moment, money, number, plural, shown } from "../words.js";
import { Icon } from "./icon.js";

/** @typedef {{ id: string, status: string, created_at: number, updated_at: number, elapsed: number, cost: number | null, input_tokens: number, output_tokens: number }} PastRun */

const BAND = 44;
const GAP = 10;
const SIGNS = 20;
const WIDEST = 26;
const NARROWEST = 5;

/** The place of the bars: as wide as there is room, the newest at the right. @param {number} count @param {number} width */
export function columns(count, width) {
  const each = Math.max(NARROWEST, Math.min(WIDEST, Math.floor(width / Math.max(1, count))));
  const shown = Math.min(count, Math.max(1, Math.floor(width / each)));
  return { each, shown };
}

/** @param {{ runs: PastRun[] }} props the oldest first */
export function History({ runs: all }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const [width, setWidth] = useState(600);
  const [pointed, setPointed] = useState(-1);
  const [tabbed, setTabbed] = useState(-1);
  useLayoutEffect(() => {
    const measure = () => box.current && setWidth(box.current.clientWidth);
    measure();
    const observer = new ResizeObserver(measure);
    if (box.current) observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  const { each, shown: fitting } = columns(all.length, width);
  const runs = all.slice(-fitting);
  const longest = Math.max(0.001, ...runs.map((run) => run.elapsed));
  const dearest = Math.max(0, ...runs.map((run) => run.cost ?? 0));
  const reached = tabbed >= 0 && tabbed < runs.length ? tabbed : runs.length - 1;
  /** @param {KeyboardEvent} event */
  const onKeyDown = (event) => {
    const ways = /** @type {Record<string, number>} */ ({
      ...{ ArrowLeft: reached - 1, ArrowRight: reached + 1, Home: 0, End: runs.length - 1 },
    });
    const to = ways[event.key];
    if (to === undefined || to < 0 || to >= runs.length) return;
    event.preventDefault();
    setTabbed(to);
    const link = box.current?.querySelectorAll("a")[to];
    if (link instanceof SVGElement) link.focus();
  };
  const height = 2 * BAND + 2 * GAP + SIGNS;
  const said = runs[pointed];
  return html`
    <figure class="history">
      <div class="history-labels" aria-hidden="true">
        <span>Duration<small>up to ${duration(longest)}</small></span>
        <span>Cost<small>up to ${money(dearest)}</small></span>
        <span>Outcome</span>
      </div>
      <div class="history-bars" ref=${box} onKeyDown=${onKeyDown} onPointerLeave=${() => setPointed(-1)}>
        <svg width=${each * runs.length} height=${height} role="group" aria-label="The last ${plural(
          runs.length,
          "run",
        )}, the newest at the right">
          <path class="ground" d="M0 ${BAND + 0.5}H${each * runs.length}M0 ${2 * BAND + GAP + 0.5}H${each *
            runs.length}" />
          ${runs.map((run, at) =>
            html`
              <${Bars} key=${run.id} run=${run} x=${at * each} each=${each} longest=${longest} dearest=${dearest}
                tabbed=${at === reached} onPoint=${() =>
                  setPointed(at)} onFocus=${() => (setTabbed(at), setPointed(at))} />
            `
          )}
        </svg>
      </div>
      <figcaption class="soft">
        <p role="status">${said ? words(said) : summary(runs)}</p>
      </figcaption>
    </figure>
  `;
}

/** @param {any} props */
function Bars({ run, x, each, longest, dearest, tabbed, onPoint, onFocus }) {
  const { tone, icon } = shown(run.status);
  const wide = Math.max(3, each - (each > 8 ? 3 : 1));
  const tall = Math.max(2, run.elapsed / longest * BAND);
  const dear = run.cost ? Math.max(2, run.cost / dearest * BAND) : 0;
  const under = BAND + GAP, signs = 2 * (BAND + GAP);
  return html`
    <${Link} to="/runs/${run.id}" class="history-run on-${tone}" tabindex=${tabbed ? 0 : -1} aria-label=${words(run)}
      onPointerEnter=${onPoint} onFocus=${onFocus}>
      <rect class="reach" x=${x} y="0" width=${each} height=${signs + SIGNS} />
      <rect class="column" x=${x} y=${BAND - tall} width=${wide} height=${tall} rx="1" />
      ${run.cost === null
        ? html`<text x=${x + wide / 2} y=${under + BAND - 4}>?</text>`
        : html`<rect class="column" x=${x} y=${under + BAND - dear} width=${wide} height=${dear} rx="1" />`}
      ${each >= 12
        ? html`
          <svg x=${x + wide / 2 - 6} y=${signs + 4} width="12" height="12" viewBox="0 0 16 16">
            <${Icon} name=${icon} />
          </svg>
        `
        : html`<rect class="column" x=${x} y=${signs + (tone === "bad" ? 2 : 8)} width=${wide} height=${
          tone === "bad" ? 16 : 8
        } />`}
    </${Link}>
  `;
}

/** @param {PastRun} run */
function words(run) {
  return `${moment(run.created_at)}: ${shown(run.status).word}, ${duration(run.elapsed)}, ${money(run.cost)}`;
}

/** @param {PastRun[]} runs */
function summary(runs) {
  const done = runs.filter((run) => run.status === "completed");
  const failed = runs.filter((run) => run.status === "failed").length;
  const middle = done.map((run) => run.elapsed).sort((a, b) => a - b)[Math.floor(done.length / 2)];
  return [
    `${plural(runs.length, "run")}, ${number(done.length)} completed`,
    failed && `${number(failed)} failed`,
    middle !== undefined && `half of the completed ones took less than ${duration(middle)}`,
  ].filter(Boolean).join(", ");
}
