"""Formatting of playbooks: the meaning stays, prose stays, and formatting twice changes nothing more."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.depth import depth
from tests.lsp.editor import Editor, apply

from quire.formats.playbook.parse import parse
from quire.formats.playbook.write import as_vector
from quire.lsp.document_text import EditorText, edited
from quire.lsp.document_view import View
from quire.lsp.playbook.formatting import format
from quire.source import Source, Span

ROOT = Path(__file__).parents[3]
SHARED = ROOT.parent / "shared" / "conformance"
DOCUMENTS = [*sorted(ROOT.glob("examples/**/*.playbook.md")), *sorted(SHARED.glob("**/playbook/**/*.md"))]

NAME = "note.playbook.md"
MESSY = """\
#   Note\x20\x20

Some   prose.

##  system

  Be   kind.  {{x}}

##   Inputs

  -  `topic`  (string:Tea):   What  it  is  about
- `depth` ( Enum: quick,thorough , )
* not an input

##  STEP  01:   Sort

Sort   {{topic}}.
   @output(kind:ENUM,"a","b" )
  @output(kind:ENUM,"a","b")

##\tSTEP 2: Ask
  @elicit(CONFIRM,"Is it   right?"  ,default:"no")
@context(kind,1)

  ```if   kind=="a"  ```
  ### STEP  2a:  First

@tool( quire ,"now" ,  {"zone":"x"}  )
```else```
   @model(cheap)
    Text.
```endif```   \n
~~~
  @output(no)
##  STEP  9: no
~~~

## Artifacts

  type:   JSON
from:kind
"""
NEAT = """\
# Note

Some   prose.

## SYSTEM

  Be   kind.  {{x}}

## INPUTS

- `topic` (string: Tea): What  it  is  about
- `depth` (Enum: quick, thorough)
* not an input

## STEP 1: Sort

Sort   {{topic}}.
   @output(kind:ENUM,"a","b" )
@output(kind: enum, "a", "b")

## STEP 2: Ask
@elicit(confirm, "Is it   right?", default:"no")
@context(kind, 1)

```if kind == "a"```
### STEP 2a: First

@tool(quire, "now", {"zone":"x"})
```else```
@model(cheap)
    Text.
```endif```

~~~
  @output(no)
##  STEP  9: no
~~~

## ARTIFACTS

type: json
from: kind
"""


def view_of(text: str) -> View:
    path = "/nowhere/note.playbook.md"
    return View(path, EditorText(text, "utf-32", path), None, ())  # type: ignore[arg-type]  # it asks for no workspace


def formatted(text: str) -> str:
    view = view_of(text)
    edits = format(view, Span(0, len(view.source.text)))
    spans = sorted((one.span.start, one.span.end) for one in edits)
    assert all(first[1] <= second[0] for first, second in pairwise(spans))
    assert all(view.source.text[one.span.start : one.span.end] == one.old for one in edits)
    return edited(view.source.text, edits)


def tree(text: str) -> object:
    return as_vector(parse(Source.of(text)))["definition"]


def check(text: str) -> None:
    once = formatted(text)
    assert tree(once) == tree(text)
    assert formatted(once) == once


def test_a_messy_document_becomes_neat(editor: Editor) -> None:
    editor.open(NAME, MESSY)
    edits = editor.ask("textDocument/formatting", {"textDocument": {"uri": editor.uri(NAME)}, "options": {}})
    assert apply(editor.texts[NAME], edits) == NEAT
    assert tree(MESSY) == tree(NEAT)


def test_a_range_is_formatted_alone(editor: Editor) -> None:
    editor.open(NAME, MESSY)
    line = MESSY[: MESSY.index("##\tSTEP 2")].count("\n")
    part = {"start": {"line": line, "character": 0}, "end": {"line": line, "character": 99}}
    given = {"textDocument": {"uri": editor.uri(NAME)}, "range": part, "options": {}}
    edits = editor.ask("textDocument/rangeFormatting", given)
    assert apply(editor.texts[NAME], edits) == MESSY.replace("##\tSTEP 2: Ask", "## STEP 2: Ask")


def test_lines_of_crlf_stay_so(editor: Editor) -> None:
    text = "# T\r\n\r\n##  STEP 1: A\r\n\r\nHi.\r\n"
    editor.open(NAME, text)
    [edit] = editor.ask("textDocument/formatting", {"textDocument": {"uri": editor.uri(NAME)}, "options": {}})
    assert edit["newText"] == "## STEP 1: A"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.stem)
def test_documents_keep_their_meaning(path: Path) -> None:
    try:
        check(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        pytest.skip("not a text")


def test_the_examples_are_formatted_already() -> None:
    for path in sorted(ROOT.glob("examples/**/*.playbook.md")):
        text = path.read_text(encoding="utf-8")
        assert formatted(text) == text, path


LINES = st.sampled_from(
    [line for line in MESSY.split("\n") if line]
    + [
        "",
        "text",
        "```",
        '```if x=="1"```',
        "  ```endif```",
        "   ```else```  ",
        "### STEP 2b:  B",
        "@output( z )",
        "  @prompt(library:a)",
    ]
    + [
        '@elicit( input ,"a" )',
        '  @elicit(select,"a\\"b","c\\nd","e")',
        "@tool(one)",
        "  - `m` (number: 3)   :  x",
        "## STEP 3:  C",
    ]
)


@settings(max_examples=depth(150, 2_000), deadline=None)
@given(st.lists(LINES, max_size=30).map("\n".join))
def test_any_document_keeps_its_meaning(text: str) -> None:
    check("# T\n\n## STEP 1: A\n\n" + text)


def test_a_document_with_errors_is_left_alone() -> None:
    text = "##  STEP  1:  A\n\nHi.\n"
    assert formatted(text) == text
