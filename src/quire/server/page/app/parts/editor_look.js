// How the editor looks: its colours from the tokens of the page, which go through to a shadow root, and Markdown of the
// server as elements. Every text is a text node.

/** The classes of tokens, by kind: those that are left out have the colour of text. @type {Record<string, string>} */
const COLOURS = {
  keyword: "--accent",
  property: "--live",
  parameter: "--wait",
  variable: "--wait",
  function: "--wait",
  method: "--wait",
  type: "--warn",
  enumMember: "--warn",
  number: "--warn",
  string: "--good",
  comment: "--faint",
  macro: "--accent",
  decorator: "--accent",
  namespace: "--live",
};
const field = {
  ...{ font: "inherit", color: "var(--text)", backgroundColor: "var(--surface)", backgroundImage: "none" },
  ...{ border: "1px solid var(--line-strong)", borderRadius: "var(--round)", minHeight: "28px", padding: "0 8px" },
};
const floating = {
  ...{ color: "var(--text)", backgroundColor: "var(--surface)", border: "1px solid var(--line)" },
  ...{ borderRadius: "var(--round-large)", boxShadow: "var(--shadow)", maxWidth: "min(520px, 90vw)" },
};
const quiet = {
  background: "none",
  border: "0",
  color: "var(--soft)",
  font: "500 12px var(--sans)",
  cursor: "pointer",
};

export const THEME = {
  "&": { height: "100%", color: "var(--text)", backgroundColor: "var(--surface)", fontSize: "var(--small)" },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "-2px" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "20px", overflow: "auto" },
  ".cm-content": { caretColor: "var(--text)", padding: "8px 0" },
  ".cm-gutters": { color: "var(--faint)", backgroundColor: "var(--surface)", border: "0" },
  ".cm-lineNumbers .cm-gutterElement": { padding: "0 12px 0 8px", minWidth: "28px" },
  ".cm-activeLine": { backgroundColor: "var(--accent-tint)" },
  "&:not(.cm-focused) .cm-activeLine": { backgroundColor: "transparent" },
  ".cm-content ::selection": { backgroundColor: "var(--line-strong)" },
  ".cm-tooltip": floating,
  ".cm-tooltip-hover > *": { padding: "8px 12px", overflow: "auto", maxHeight: "320px", whiteSpace: "pre-wrap" },
  ".cm-tooltip pre, .cm-tooltip code": { fontFamily: "var(--mono)", whiteSpace: "pre-wrap", margin: "4px 0" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)", maxHeight: "260px" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li": { padding: "4px 12px" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { color: "var(--on-accent)", backgroundColor: "var(--accent)" },
  ".cm-completionDetail": { marginLeft: "12px", fontStyle: "normal", opacity: "0.8" },
  ".cm-completionInfo": { padding: "8px 12px", whiteSpace: "pre-wrap" },
  ".cm-diagnostic": { padding: "8px 12px", borderLeft: "3px solid var(--line-strong)", fontFamily: "var(--sans)" },
  ".cm-diagnostic-error": { borderLeftColor: "var(--bad)" },
  ".cm-diagnostic-warning": { borderLeftColor: "var(--warn)" },
  ".cm-diagnosticSource": { color: "var(--soft)", opacity: "1" },
  ".cm-diagnosticAction": {
    ...field,
    color: "var(--on-accent)",
    backgroundColor: "var(--accent)",
    margin: "0 8px 0 0",
  },
  ".cm-gutter-lint": { width: "12px" },
  ".cm-lint-marker": {
    content: "normal",
    width: "8px",
    height: "8px",
    borderRadius: "50%",
    backgroundColor: "var(--live)",
  },
  ".cm-lint-marker-error": { backgroundColor: "var(--bad)" },
  ".cm-lint-marker-warning": { backgroundColor: "var(--warn)" },
  ".cm-lintRange": { backgroundImage: "none", textDecoration: "underline wavy", textUnderlineOffset: "3px" },
  ".cm-lintRange-error": { textDecorationColor: "var(--bad)" },
  ".cm-lintRange-warning": { textDecorationColor: "var(--warn)" },
  ".cm-lintRange-info, .cm-lintRange-hint": { textDecorationColor: "var(--live)" },
  ".cm-panels": { color: "var(--text)", backgroundColor: "var(--sunken)", borderColor: "var(--line)" },
  ".cm-panel": { fontFamily: "var(--sans)" },
  ".cm-textfield, .cm-button": field,
  ".cm-panel.cm-search label": { fontSize: "var(--small)" },
  ".cm-panel.cm-search [name=close]": { ...quiet, fontSize: "18px", minWidth: "28px", minHeight: "28px" },
  ".cm-searchMatch": { backgroundColor: "var(--warn-tint)", outline: "1px solid var(--warn)" },
  ".cm-searchMatch-selected": { backgroundColor: "var(--accent-tint)", outlineColor: "var(--accent)" },
  ".cm-lens": { display: "flex", flexWrap: "wrap", gap: "0 12px", padding: "0 6px" },
  ".cm-lens button": { ...quiet, padding: "0", minHeight: "24px", minWidth: "28px", textAlign: "start" },
  ".cm-lens button:hover": { color: "var(--accent)", textDecoration: "underline" },
  ".covered-all": { boxShadow: "inset 3px 0 0 var(--good)" },
  ".covered-some": { boxShadow: "inset 3px 0 0 var(--warn)" },
  ".covered-none": { boxShadow: "inset 3px 0 0 var(--bad)" },
  ".tok-unresolved": { color: "var(--bad)" },
  ...Object.fromEntries(Object.entries(COLOURS).map(([kind, colour]) => [`.tok-${kind}`, { color: `var(${colour})` }])),
};

/** Decorations that an effect replaces and that keep their places when the text changes. @param {any} cm */
export function layer(cm) {
  const set = cm.StateEffect.define();
  const field = cm.StateField.define({
    create: () => cm.Decoration.none,
    /** @param {any} now @param {any} transaction */
    update: (now, { changes, effects }) =>
      effects.findLast((/** @type {any} */ effect) => effect.is(set))?.value ?? now.map(changes),
    provide: (/** @type {any} */ own) => cm.EditorView.decorations.from(own),
  });
  return { set, field };
}

/** @param {string} tag @param {string} name @param {string} [text] */
export function element(tag, name, text = "") {
  const made = document.createElement(tag);
  made.className = name;
  made.textContent = text;
  return made;
}

/** Markdown with its code as elements; its other signs stay as they are. @param {string} text */
export function written(text) {
  const made = element("div", "");
  for (const [at, part] of text.replace(/(?<!\\)\*\*/g, "").split(/```\w*\n?|((?<!\\)`[^`\n]+`)/).entries()) {
    if (part?.startsWith("`")) made.append(element("code", "", part.slice(1, -1)));
    else if (part) made.append(part.replace(/^#+ /gm, "").replace(/\\([^\w\s])/g, "$1"));
    else if (part === undefined && at) made.append("\n");
  }
  return made;
}
