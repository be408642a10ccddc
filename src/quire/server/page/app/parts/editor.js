// The editor of documents and prompts: CodeMirror in a shadow root, because the policy of the page refuses its styles in
// the document. Colours, findings, completion, hovers and fixes come from the server.

import { element, layer, THEME, written } from "./editor_look.js";
import { connect } from "./language.js";

/** @typedef {import("./language.js").Finding} Finding */
/** @typedef {import("./language.js").Range} Range */
/** @typedef {{ line: number, severity: string, code: string, name: string, message: string, fixes: { title: string, apply: () => void }[] }} Note */
/** @typedef {Awaited<ReturnType<typeof openEditor>>} Editor */

const FILE = "../../vendor/codemirror.js";
const PAUSE = 150;
const MOST_FIXED = 20;
const SEVERITIES = ["error", "error", "warning", "info", "hint"];
/** The kinds of tokens, in the order of `TOKEN_TYPES` of quire/lsp/protocol.py. */
export const TOKENS = [
  ...["keyword", "variable", "parameter", "property", "function", "method", "type", "enumMember", "string", "number"],
  ...["operator", "comment", "macro", "decorator", "namespace"],
];
const UNRESOLVED = 4;

/**
 * @param {HTMLElement} host an empty element, which gives the editor its size
 * @param {{
 *   text: string, label?: string, readOnly?: boolean, language?: { document: string, edits: boolean } | null,
 *   onChange?: (text: string) => void, onFindings?: (notes: Note[]) => void, onSave?: () => void,
 *   onStep?: (label: string) => void, lenses?: Record<string, (args: string[]) => void>, paint?: Record<number, string>,
 * }} options `lenses` says which commands can be carried out; `onStep` gets the label of the step at the cursor; `paint`
 *   gives lines a class
 */
export async function openEditor(host, options) {
  const { text, label = "Text", readOnly = false, language = null, onChange, onFindings, onSave } = options;
  const cm = await import(FILE);
  const [tokens, lenses, paint] = [layer(cm), layer(cm), layer(cm)];
  let unsent = false, version = 0, timer = 0;
  /** @type {{ line: number, label: string }[]} */
  let steps = [];

  /** @param {any} update */
  const updated = (update) => {
    if (update.docChanged) {
      onChange?.(view.state.doc.toString());
      unsent = true;
      version++;
      clearTimeout(timer);
      timer = setTimeout(refresh, PAUSE);
    }
    if (update.selectionSet || update.docChanged) tellStep();
  };
  const root = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  const view = new cm.EditorView({
    root,
    parent: root,
    doc: text,
    extensions: [
      cm.lineNumbers(),
      cm.history(),
      cm.highlightActiveLine(),
      cm.search({ top: true }),
      cm.EditorView.lineWrapping,
      cm.EditorView.theme(THEME),
      cm.EditorState.readOnly.of(readOnly),
      cm.EditorView.contentAttributes.of({ "aria-label": label, "aria-readonly": `${readOnly}`, tabindex: "0" }),
      cm.EditorView.updateListener.of(updated),
      ...[tokens, lenses, paint].map(({ field }) => field),
      ...(language ? [cm.lintGutter(), cm.hoverTooltip(hover)] : []),
      ...(language?.edits ? [cm.autocompletion({ override: [complete], icons: false })] : []),
      cm.keymap.of([
        { key: "Mod-s", run: () => (onSave?.(), true) },
        { key: "Mod-.", run: fixHere },
        // Esc, then Tab leaves the editor; without Esc, Tab indents.
        ...[...cm.completionKeymap, ...cm.searchKeymap, ...cm.lintKeymap, ...cm.historyKeymap, ...cm.standardKeymap],
        ...(readOnly ? [] : [cm.indentWithTab]),
      ]),
    ],
  });
  const server = language &&
    connect(language.document, () => view.state.doc.toString(), (items) => unsent || showFindings(items), () => {});

  /** @param {{ line: number, character: number }} place */
  function offset({ line, character }) {
    const { from, to } = view.state.doc.line(Math.min(line + 1, view.state.doc.lines));
    return Math.min(from + character, to);
  }
  /** @param {number} at */
  function position(at) {
    const line = view.state.doc.lineAt(at);
    return { line: line.number - 1, character: at - line.from };
  }
  /** @param {Range} range */
  const span = (range) => ({ from: offset(range.start), to: offset(range.end) });

  function flush() {
    if (unsent) server?.changed();
    unsent = false;
  }
  async function refresh() {
    flush();
    if (!server) return;
    const now = version;
    const colours = await server.ask("semanticTokens/full");
    if (version !== now) return;
    if (colours) view.dispatch({ effects: tokens.set.of(coloured(cm, view.state.doc, colours.data)) });
    await server.settle();
    const replies = language?.edits ? await server.ask("codeLens") : null;
    if (version === now && replies) showLenses(replies);
  }

  /** @param {Finding[]} findings */
  async function showFindings(findings) {
    const doc = view.state.doc;
    const fixed = language?.edits ? findings.filter((finding) => finding.data.fix).slice(0, MOST_FIXED) : [];
    show(findings, []);
    if (!fixed.length) return;
    const offers = await Promise.all(fixed.map(({ range }) => server?.ask("codeAction", { range, context: {} })));
    if (view.state.doc.eq(doc)) show(findings, offers.flat().filter(Boolean));
  }
  /** @param {Finding[]} findings @param {any[]} offers */
  function show(findings, offers) {
    const diagnostics = findings.map((finding) => {
      const own = offers.filter(({ kind, edit, diagnostics }) =>
        kind === "quickfix" && edit && Object.keys(edit.changes).join() === language?.document &&
        diagnostics?.some((/** @type {Finding} */ other) => same(finding, other))
      );
      const fixes = [
        ...new Map(own.map((offer) => [offer.title, { title: offer.title, apply: () => apply(offer) }])).values(),
      ];
      return { ...finding, ...span(finding.range), source: finding.code, fixes };
    });
    view.dispatch(cm.setDiagnostics(
      view.state,
      diagnostics.map(({ from, to, severity, code, message, fixes }) => ({
        ...{ from, to, message, source: code, severity: SEVERITIES[severity] },
        actions: fixes.map((fix) => ({ name: fix.title, apply: fix.apply })),
      })),
    ));
    onFindings?.(diagnostics.map(({ range, severity, code, data, message, fixes }) => ({
      ...{ line: range.start.line + 1, severity: SEVERITIES[severity], code, name: data.name, message, fixes },
    })));
  }
  /** @param {{ edit: { changes: Record<string, { range: Range, newText: string }[]> } }} offer */
  function apply({ edit }) {
    const [edits] = Object.values(edit.changes);
    view.dispatch({
      changes: edits.map(({ range, newText }) => ({ ...span(range), insert: newText })),
      userEvent: "input",
    });
    view.focus();
  }
  function fixHere() {
    const { from } = view.state.selection.main;
    server?.ask("codeAction", { range: { start: position(from), end: position(from) }, context: {} }).then((offers) => {
      const offer = offers?.find((/** @type {any} */ action) => action.isPreferred) ?? offers?.[0];
      if (offer?.kind === "quickfix" && Object.keys(offer.edit?.changes ?? {}).join() === language?.document) {
        apply(offer);
      }
    });
    return true;
  }

  /** @param {any[]} replies */
  function showLenses(replies) {
    steps = replies.filter(({ command }) => command.command === "quire.showPrompt")
      .map(({ range, command }) => ({ line: range.start.line + 1, label: command.arguments[1] }));
    /** @type {Map<number, any[]>} */
    const byLine = new Map();
    for (const { range, command } of replies) {
      if (!options.lenses?.[command.command]) continue;
      const { from } = view.state.doc.lineAt(offset(range.start));
      byLine.set(from, [...(byLine.get(from) ?? []), command]);
    }
    const rows = [...byLine].sort(([a], [b]) => a - b).map(([from, commands]) => lens(from, commands));
    view.dispatch({ effects: lenses.set.of(cm.Decoration.set(rows)) });
    tellStep();
  }
  /** @param {number} from @param {any[]} commands */
  function lens(from, commands) {
    const widget = new (class extends cm.WidgetType {
      toDOM() {
        const row = element("div", "cm-lens");
        for (const { title, command, arguments: args } of commands) {
          const button = row.appendChild(element("button", "", title));
          button.addEventListener("click", () => options.lenses?.[command]?.(args));
        }
        return row;
      }
    })();
    return cm.Decoration.widget({ widget, block: true, side: -1 }).range(from);
  }
  function tellStep() {
    const line = view.state.doc.lineAt(view.state.selection.main.head).number;
    options.onStep?.(steps.findLast((step) => step.line <= line)?.label ?? "");
  }

  /** @param {any} context */
  async function complete(context) {
    if (!context.explicit && !context.matchBefore(/[\w{@."</(:!-]$/)) return null;
    flush();
    const answer = await server?.ask("completion", { position: position(context.pos) });
    if (!answer?.items.length || context.aborted) return null;
    const from = Math.min(...answer.items.map((/** @type {any} */ item) => offset(item.textEdit.range.start)));
    return {
      from,
      validFor: /^[\w-]*$/,
      options: answer.items.map((/** @type {any} */ item) => ({
        label: item.label,
        detail: item.detail,
        info: item.documentation && (() => written(item.documentation.value)),
        /** @param {any} _view @param {any} _item @param {number} _from @param {number} to */
        apply: (_view, _item, _from, to) => {
          const start = offset(item.textEdit.range.start);
          const insert = item.textEdit.newText;
          view.dispatch({ changes: { from: start, to, insert }, selection: { anchor: start + insert.length } });
        },
      })),
    };
  }
  /** @param {any} _view @param {number} at */
  async function hover(_view, at) {
    flush();
    const answer = await server?.ask("hover", { position: position(at) });
    if (!answer) return null;
    const { from, to } = answer.range ? span(answer.range) : { from: at, to: at };
    return { pos: from, end: to, create: () => ({ dom: written(answer.contents.value) }) };
  }

  const colours = Object.entries(options.paint ?? {}).filter(([line]) => Number(line) <= view.state.doc.lines)
    .map(([line, name]) => cm.Decoration.line({ class: name }).range(view.state.doc.line(Number(line)).from));
  view.dispatch({ effects: paint.set.of(cm.Decoration.set(colours, true)) });
  refresh();
  return {
    /** @param {string} next */
    replace: (next) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: next } }),
    /** @param {number} line */
    jump(line) {
      const { from } = view.state.doc.line(Math.max(1, Math.min(line, view.state.doc.lines)));
      view.dispatch({ selection: { anchor: from }, effects: cm.EditorView.scrollIntoView(from, { y: "center" }) });
      view.focus();
    },
    close() {
      clearTimeout(timer);
      server?.close();
      view.destroy();
    },
  };
}

/** Whether two findings are one: a fix names those that it mends. @param {Finding} finding @param {Finding} other */
function same(finding, other) {
  return finding.code === other.code && JSON.stringify(finding.range) === JSON.stringify(other.range);
}

/** The colours of tokens, of which each says how far it is from the one before. @param {any} cm @param {any} doc @param {number[]} data */
function coloured(cm, doc, data) {
  const builder = new cm.RangeSetBuilder();
  let line = 0, character = 0;
  for (let at = 0; at + 4 < data.length; at += 5) {
    const [lines, ahead, length, kind, marks] = data.slice(at, at + 5);
    [line, character] = lines ? [line + lines, ahead] : [line, character + ahead];
    if (line >= doc.lines) break;
    const { from, to } = doc.line(line + 1);
    const end = Math.min(from + character + length, to);
    const name = marks & UNRESOLVED ? "unresolved" : TOKENS[kind];
    if (from + character < end) builder.add(from + character, end, cm.Decoration.mark({ class: `tok-${name}` }));
  }
  return builder.finish();
}
