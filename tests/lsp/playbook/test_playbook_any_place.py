"""Every feature at every place of a playbook, whole and cut off: no exception, and only places inside of the text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.depth import depth
from tests.lsp.editor import Editor

from quire.diagnostics import Diagnostic
from quire.formats import check
from quire.lsp.answers import Symbol
from quire.lsp.document_view import View
from quire.lsp.features.semantic_tokens import flat_tokens
from quire.lsp.playbook.actions import actions
from quire.lsp.playbook.completion import complete, resolve
from quire.lsp.playbook.decorations import folds, hints, lenses, tokens
from quire.lsp.playbook.directive_forms import signature
from quire.lsp.playbook.formatting import format
from quire.lsp.playbook.hover import hover
from quire.lsp.playbook.index import name_problem
from quire.source import Span

ROOT = Path(__file__).parents[3]
EXAMPLES = ["letter-desk", "rfc-review", "incident-report"]
NAME = "note.playbook.md"
EVERYTHING = """\
<!-- quire: allow PB211 in step 2 because "x" -->
# Nöte 🙂

About.

## SYSTEM

Be {{kind}}.

## INPUTS

- `topic` (string: Tea): What
- `depth` (enum: quick, thorough)

## STEP 1: Sört

@model(cheap)
@context(none)
Sort {{topic}} and {{nothing}} {{x:number:3}}.
@output(kind: enum, "a", "b")

## STEP 2: Ask
@elicit(select, "Which \\"one\\"?\\nNow {{kind}}?", "one", "two", default:"one")
@output(choice)

## STEP 3: Write
@tool(quire, file__read, {"path": "{{choice}}", "limit": {{depth}}})

```if kind == "a"```
@prompt(file:parts/{{kind}}.md)
### STEP 3a: First
@prompt(library:tone)
@context(kind, 2)
Hi {{__elicit_step_2}}.
~~~
@output(no)
~~~
```elif gone != ""```
```else```
### STEP 3b: Second
Ho.
```endif```

## STEP 4: Call
@tool(quire, sub, {"who": "me", "x": [1, {"y": "z"}]})

## ARTIFACTS
type: {{depth}}
from: choice
"""


def symbols(found: tuple[Symbol, ...]) -> Iterator[Symbol]:
    for one in found:
        yield one
        yield from symbols(one.children)


def spans(view: View, offset: int, found: tuple[Diagnostic, ...]) -> Iterator[Span]:
    """Yield all places of the answers at an offset."""
    for one in complete(view, offset):
        if one.span is not None:
            assert one.span.start <= offset
            yield one.span
        if one.resolve:
            resolve(view, one.resolve)
    if (shown := hover(view, offset)) is not None:
        assert shown.markdown
        yield shown.span
    if (call := signature(view, offset)) is not None:
        assert 0 <= call.active < max(1, len(call.parameters))
    for action in actions(view, Span(offset, offset), found):
        for file in action.edits:
            for edit in file.edits:
                if file.path == view.path:
                    assert view.source.text[edit.span.start : edit.span.end] == edit.old
                    yield edit.span
    if (name := view.index.at(offset)) is not None:
        name_problem(view, name, "other")


def whole(view: View) -> Iterator[Span]:
    """Yield all places of the answers about a document."""
    everything = Span(0, len(view.source.text))
    yield from (one.span for one in view.index.names)
    yield from (one.span for one in view.index.links)
    for symbol in symbols(view.index.symbols):
        assert symbol.span.start <= symbol.selection.start <= symbol.selection.end <= symbol.span.end
        yield symbol.span
    last = 0
    for token in flat_tokens(view.source.text, tokens(view)):
        assert last <= token.span.start < token.span.end
        assert "\n" not in view.source.text[token.span.start : token.span.end]
        last = token.span.end
        yield token.span
    yield from (Span(one.offset, one.offset) for one in hints(view, everything))
    yield from (one.span for one in lenses(view))
    yield from (one.span for one in format(view, everything))
    assert all(1 <= one.first <= one.last for one in folds(view))


def look(editor: Editor, text: str, offsets: Iterator[int] | range) -> None:
    editor.open(NAME, text)
    view = editor.session.desk.view(editor.uri(NAME))
    assert view is not None
    if view.format != "playbook":
        return
    size = len(view.source.text)
    found = check(view.source)
    for span in whole(view):
        assert 0 <= span.start <= span.end <= size
    for offset in offsets:
        for span in spans(view, min(offset, size), found):
            assert 0 <= span.start <= span.end <= size


@pytest.fixture
def ready(editor: Editor) -> Editor:
    editor.write("prompts/tone.md", "Be kind.\n")
    editor.write("playbooks/sub.playbook.md", "# S\n\n## INPUTS\n\n- `who` (string)\n\n## STEP 1: A\n\nHi {{who}}.\n")
    editor.write(NAME, EVERYTHING)
    return editor


def test_every_feature_answers_at_every_place(ready: Editor) -> None:
    look(ready, EVERYTHING, range(0, len(EVERYTHING) + 1, depth(2, 1)))


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_feature_answers_in_the_examples(ready: Editor, example: str) -> None:
    text = (ROOT / "examples" / example / f"{example}.playbook.md").read_text(encoding="utf-8")
    look(ready, text, range(0, len(text) + 1, 3))


def test_every_feature_answers_at_the_end_of_every_beginning(ready: Editor) -> None:
    for end in range(0, len(EVERYTHING), depth(9, 1)):
        look(ready, EVERYTHING[:end], range(end, end + 1))


def test_every_feature_answers_in_text_with_a_hole(ready: Editor) -> None:
    for at in range(0, len(EVERYTHING), depth(11, 2)):
        look(ready, EVERYTHING[:at] + EVERYTHING[at + 7 :], range(at, at + 1))


PIECES = st.sampled_from(
    [
        *EVERYTHING.split("\n"),
        "```",
        "@tool(",
        "{{",
        '@elicit(select, "a',
        "## STEP 0: Z",
        "### STEP 9z: Y",
        "\r",
        "\x00",
    ]
)


@example(["## STEP 1: Sört", "### STEP 9z: Y"], 16)
@settings(max_examples=depth(30, 400), deadline=None)
@given(st.lists(PIECES, max_size=25), st.integers(0, 400))
def test_every_feature_answers_in_any_text(lines: list[str], offset: int) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "quire.toml").write_text("")
        look(Editor(Path(folder)), "\n".join(lines), range(offset, offset + 1))


def test_nothing_is_known_where_the_settings_are_broken(ready: Editor) -> None:
    ready.write("quire.toml", "[models\n")
    look(ready, EVERYTHING, range(0, len(EVERYTHING), 2))
