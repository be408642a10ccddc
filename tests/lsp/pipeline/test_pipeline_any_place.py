"""No feature fails at any place of a pipeline, whole or cut off, and all places are inside of the text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.depth import depth
from tests.lsp.editor import Editor

from quire.lsp.answers import Symbol
from quire.lsp.document_view import View
from quire.lsp.languages import function
from quire.lsp.pipeline.completion import resolve
from quire.source import Span

MIXED = """\
schema: Review
fields:
  passed: {type: bool}
  notes: {type: string, required: false}
---
pipeline: mixed
dialect: quire
input: {doc: {type: string}, readers: {type: list, of: {type: ref, schema: Review}}}
steps:
  # A comment.
  - agent:
      prompt: |
        Review {ctx.doc}
        and {readers}
      schema: Review
      output: review
  - for_each:
      over: ctx.readers
      on_error: retry(2)
      do: {steps: [{transform: {value: "item.notes + 'ä'", output: n}}, {agent: {prompt: "x {n}"}}]}
      collect: {transform: {value: "map(pipe, p -> p)"}}
      output: all
  - parallel:
      branches: {a: {agent: {prompt: "{review.passed}"}}, b: {shell: {command: !expr "['ls', ctx.doc]"}}}
      collect: {transform: {value: "{a: a, b: b, e: errors}"}}
  - match:
      on: review.passed
      cases:
        "True": {pipeline: mixed, pass: [doc]}
        "False": {steps: [{tool: {name: file__write, args: {path: x, content: !expr "get(ctx, 'doc')"}}}]}
      default: "null"
  - repeat: {init: "0", do: {transform: {value: "acc + round"}}, until: "acc > 3", max: 4}
  - stop: {when: "review.passed == true"}
"""
EXAMPLES = sorted(Path(__file__).parents[3].glob("examples/**/*.yaml"))
PIPELINES = [one for one in EXAMPLES if "\nsteps:" in one.read_text() and ".test." not in one.name]


def spans_of(symbols: tuple[Symbol, ...]) -> Iterator[Span]:
    for one in symbols:
        yield from (one.span, one.selection)
        assert one.span.start <= one.selection.start <= one.selection.end <= one.span.end
        yield from spans_of(one.children)


def spans_at(view: View, offset: int) -> Iterator[Span]:
    """Ask every feature that has a place, and yield the spans of the answers."""

    def ask(module: str, name: str, *given: Any) -> Any:
        asked = function("pipeline", module, name)
        assert asked is not None, module
        return asked(view, *given)

    hover = ask("hover", "hover", offset)
    if hover is not None:
        assert hover.markdown
        yield hover.span
    for one in ask("completion", "complete", offset):
        assert one.label
        yield one.span or view.word(offset)
        if one.resolve:
            resolve(view, one.resolve)
    signature = ask("signatures", "signature", offset)
    if signature is not None:
        assert all(label in signature.label for label, _ in signature.parameters)
    for action in ask("actions", "actions", Span(offset, offset), view.findings):
        yield from (edit.span for file in action.edits if file.path == view.path for edit in file.edits)


def spans_of_all(view: View) -> Iterator[Span]:
    """Ask every feature that is about the whole document."""
    whole = Span(0, len(view.source.text))
    index = view.index
    yield from (one.span for one in index.names)
    yield from (one.span for one in index.links)
    yield from spans_of(index.symbols)
    for module, name, given in (
        ("decorations", "tokens", ()),
        ("decorations", "lenses", ()),
        ("formatting", "format", (whole,)),
    ):
        asked = function("pipeline", module, name)
        assert asked is not None, module
        yield from (one.span for one in asked(view, *given))
    hints = function("pipeline", "decorations", "hints")
    assert hints is not None
    yield from (Span(one.offset, one.offset) for one in hints(view, whole))


def view_of(editor: Editor, text: str) -> View:
    name = "any.yaml"
    if name in editor.texts:
        editor.replace(name, text)
    else:
        editor.open(name, text)
    view = editor.session.desk.view(editor.uri(name))
    assert view is not None
    return view


def check(view: View, spans: Iterator[Span]) -> None:
    for span in spans:
        assert 0 <= span.start <= span.end <= len(view.source.text), span


def test_every_place_of_a_whole_text(editor: Editor) -> None:
    view = view_of(editor, MIXED)
    assert view.format == "pipeline"
    check(view, spans_of_all(view))
    for offset in range(0, len(MIXED) + 1, depth(3, 1)):
        check(view, spans_at(view, offset))


def test_every_place_where_a_text_can_end(editor: Editor) -> None:
    for end in range(30, len(MIXED) + 1, depth(7, 1)):
        view = view_of(editor, MIXED[:end])
        if view.format == "pipeline":
            check(view, spans_of_all(view))
            check(view, spans_at(view, len(view.source.text)))


@pytest.mark.parametrize("path", PIPELINES, ids=lambda path: path.name)
def test_examples(editor: Editor, path: Path) -> None:
    text = path.read_text()
    view = view_of(editor, text)
    assert view.format == "pipeline"
    check(view, spans_of_all(view))
    for offset in range(0, len(text) + 1, depth(61, 5)):
        check(view, spans_at(view, offset))
