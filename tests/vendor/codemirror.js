// The parts of CodeMirror that the page's editor uses. `make vendor` bundles them to vendor/codemirror.js.
export { EditorState, RangeSetBuilder, StateEffect, StateField } from "@codemirror/state";
export {
  Decoration,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  hoverTooltip,
  keymap,
  lineNumbers,
  WidgetType,
} from "@codemirror/view";
export { history, historyKeymap, indentWithTab, standardKeymap } from "@codemirror/commands";
export { lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
export { autocompletion, completionKeymap } from "@codemirror/autocomplete";
export { search, searchKeymap } from "@codemirror/search";
