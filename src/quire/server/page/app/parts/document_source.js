// The source of a document with its findings below the lines that they belong to. Only the lines near the window are in
// the page: a document of 200 KB is as light as one of 2 KB.

import { get } from "../api.js";
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../html.js";
import { Link, place, setQuery } from "../router.js";
import { plural } from "../words.js";
import { Command, Empty, Placeholder, ProblemBox } from "./basics.js";
import { Dialog } from "./dialog.js";
import { DocumentEdit } from "./document_edit.js";
import { Icon } from "./icon.js";
import { about } from "../shell.js";

/** @typedef {[string, string][] | string} Line */

const CHUNK = 40;
const LINE = 20;
const NOTE = 72;
const TONES = /** @type {Record<string, [string, string]>} */ ({
  error: ["bad", "cross"],
  warning: ["warn", "warning"],
  lint: ["live", "dot"],
  note: ["quiet", "dot"],
});

/** @param {{ id: string, data: any, reload: () => void }} props */
export function DocumentSource({ id, data, reload }) {
  const [explained, setExplained] = useState("");
  if (!data.source) return html`<${Empty} title="It has no text." icon="documents" />`;
  if (data.editable && place.value.query.get("edit")) {
    return html`<${DocumentEdit} id=${id} data=${data} reload=${reload} onExplain=${setExplained} />
      ${explained && html`<${Explanation} code=${explained} onClose=${() => setExplained("")} />`}`;
  }
  return html`
    <${Summary} data=${data} />
    <${Lines} lines=${data.source.lines} findings=${data.diagnostics} onExplain=${setExplained} />
    ${explained && html`<${Explanation} code=${explained} onClose=${() => setExplained("")} />`}
  `;
}

/** @param {{ data: any }} props */
function Summary({ data }) {
  const found = data.diagnostics;
  return html`
    <div class="source-head">
      <p class="soft small">
        ${plural(data.source.lines.length, "line")} · ${found.length ? plural(found.length, "finding") : "no findings"}
      </p>
      ${found.length > 0 && html`
        <p class="source-jumps">
          ${found.slice(0, 12).map((/** @type {any} */ one) =>
            html`
              <${Link} to="${place.value.path}?tab=source&line=${one.line}" class="status tone-${tone(
                one,
              )[0]}" title=${one.message}>
                <${Icon} name=${tone(one)[1]} />${one.code} line ${one.line}
                </${Link}>
            `
          )}
          ${found.length > 12 && html`<span class="soft small">and ${found.length - 12} more</span>`}
        </p>
      `}
      <div class="actions push">
        <${Command} command=${data.commands.check} />
        ${data.editable
          ? html`<button type="button" class="button" onClick=${() =>
            setQuery({ edit: "1" })}><${Icon} name="edit" />Edit</button>`
          : about.value?.features &&
            html`<span class="soft small">To edit here: <code>quire serve --edit</code></span>`}
      </div>
    </div>
  `;
}

/** @param {any} finding */
function tone(finding) {
  return TONES[finding.severity] ?? TONES.note;
}

/**
 * The lines of a source with notes below them. `paint` gives lines a class by their number.
 *
 * @param {{ lines: Line[], findings: any[], onExplain?: (code: string) => void, paint?: Record<string, string> }} props
 */
export function Lines({ lines, findings, onExplain, paint = {} }) {
  const wanted = Number(place.value.query.get("line") ?? 0);
  const byLine = useMemo(() => {
    /** @type {Map<number, any[]>} */
    const found = new Map();
    for (const one of findings) found.set(one.line, [...(found.get(one.line) ?? []), one]);
    return found;
  }, [findings]);
  const chunks = Math.ceil(lines.length / CHUNK);
  return html`
    <div class="document-source" role="region" aria-label="Source">
      ${Array.from({ length: chunks }, (_, at) =>
        html`
          <${Chunk} key=${at} first=${at * CHUNK} lines=${lines.slice(at * CHUNK, (at + 1) * CHUNK)} byLine=${byLine}
            wanted=${wanted} onExplain=${onExplain} paint=${paint} />
        `)}
    </div>
  `;
}

/**
 * Some lines: drawn while they are near the window, otherwise as high as they would be.
 *
 * @param {{ first: number, lines: Line[], byLine: Map<number, any[]>, wanted: number,
 *   onExplain?: (code: string) => void, paint: Record<string, string> }} props
 */
function Chunk({ first, lines, byLine, wanted, onExplain, paint }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const isWanted = wanted > first && wanted <= first + lines.length;
  const [near, setNear] = useState(isWanted || first < 2 * CHUNK);
  const height = useRef(estimate(first, lines, byLine));

  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    if (near) height.current = element.offsetHeight;
    else element.style.height = `${height.current}px`;
    if (near) element.style.height = "";
  });
  useEffect(() => {
    const observer = new IntersectionObserver(([entry]) => {
      if (!entry.isIntersecting && box.current && near) height.current = box.current.offsetHeight;
      setNear(entry.isIntersecting);
    }, { rootMargin: "800px 0px" });
    if (box.current) observer.observe(box.current);
    return () => observer.disconnect();
  }, [near]);
  useEffect(() => {
    if (!isWanted) return;
    setNear(true);
    const frame = requestAnimationFrame(() => {
      document.getElementById(`L${wanted}`)?.scrollIntoView({ block: "center" });
    });
    return () => cancelAnimationFrame(frame);
  }, [wanted]);

  return html`
    <div class="source-chunk" ref=${box}>
      ${near && lines.map((line, at) => {
        const number = first + at + 1;
        const found = byLine.get(number) ?? [];
        return html`
          <${SourceLine} key=${number} number=${number} line=${line} found=${found} here=${number === wanted}
            paint=${paint[number] ?? ""} />
          ${found.map((one, at) => html`<${Note} key="${number}.${at}" finding=${one} onExplain=${onExplain} />`)}
        `;
      })}
    </div>
  `;
}

/** @param {number} first @param {Line[]} lines @param {Map<number, any[]>} byLine */
function estimate(first, lines, byLine) {
  let height = 0;
  lines.forEach((line, at) => {
    const length = typeof line === "string" ? line.length : line.reduce((all, [, text]) => all + text.length, 0);
    height += LINE * Math.max(1, Math.ceil(length / 110)) + NOTE * (byLine.get(first + at + 1)?.length ?? 0);
  });
  return height;
}

/** @param {{ number: number, line: Line, found: any[], here: boolean, paint: string }} props */
function SourceLine({ number, line, found, here, paint }) {
  const pieces = typeof line === "string" ? /** @type {[string, string][]} */ ([["", line]]) : line;
  const marked = found.length ? underlined(pieces, found) : pieces.map(([kind, text]) => ({ kind, text, tone: "" }));
  return html`
    <div class="source-line ${here ? "here" : ""} ${paint}" id="L${number}">
      <span class="line-number" aria-hidden="true">${number}</span>
      <code>${marked.map(({ kind, text, tone }) =>
        kind || tone ? html`<span class="${kind && `k-${kind}`} ${tone && `under-${tone}`}">${text}</span>` : text
      )}</code>
    </div>
  `;
}

/**
 * Cuts the pieces of a line where a finding begins or ends. Columns count characters, as the checker does.
 *
 * @param {[string, string][]} pieces
 * @param {any[]} found
 */
function underlined(pieces, found) {
  /** @type {{ kind: string, text: string, tone: string }[]} */
  const all = [];
  let column = 1;
  for (const [kind, text] of pieces) {
    for (const sign of text) {
      const finding = found.find((one) =>
        column >= one.column && (one.end_line > one.line || column < Math.max(one.end_column, one.column + 1))
      );
      const under = finding ? tone(finding)[0] : "";
      const last = all.at(-1);
      if (last && last.kind === kind && last.tone === under) last.text += sign;
      else all.push({ kind, text: sign, tone: under });
      column++;
    }
  }
  return all;
}

/** A finding, below the line that it is about. @param {{ finding: any, onExplain?: (code: string) => void }} props */
export function Note({ finding, onExplain }) {
  const [colour, icon] = tone(finding);
  const path = (finding.related ?? []).map((/** @type {any} */ one) => one.node).filter(Boolean).join(" → ");
  return html`
    <div class="doc-finding doc-finding-${colour}" role="note">
      <${Icon} name=${icon} />
      <div>
        <p><strong>${finding.severity}</strong>: ${finding.message}${finding.confidence === "possible"
          ? " (possible)"
          : ""}${finding.label && ` — ${finding.label}`}
          ${onExplain
            ? html`
              <button type="button" class="link mono" title="What does this code mean?"
                onClick=${() => onExplain(finding.code)}>${finding.code} ${finding.name}</button>
            `
            : html`
              <span class="soft mono small">${finding.code}</span>
            `}</p>
        ${path && html`<p class="soft">path: ${path}</p>`}
        ${finding.help && html`<p class="soft">${finding.help}</p>`}
      </div>
    </div>
  `;
}

/** The page of a code. @param {{ code: string, onClose: () => void }} props */
export function Explanation({ code, onClose }) {
  const [state, setState] = useState(/** @type {any} */ ({}));
  useEffect(() => {
    let gone = false;
    get(`/codes/${code}`).then(
      (data) => !gone && setState({ data }),
      (error) => !gone && setState({ problem: error.problem }),
    );
    return () => {
      gone = true;
    };
  }, [code]);
  const { data, problem } = state;
  return html`
    <${Dialog} title=${data ? `${data.id} ${data.name}` : code} onClose=${onClose} wide>
      ${problem && html`<${ProblemBox} problem=${problem} />`}
      ${!data && !problem && html`<${Placeholder} lines=${3} />`}
      ${data && html`
        <pre class="explanation">${data.explanation}</pre>
        <p>
          <${Command} command=${data.command} />
        </p>
      `}
      </${Dialog}>
  `;
}
