"""Names, parts and links of playbooks: go to definition, references, highlights, outline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.lsp.editor import Editor, offset

TEXT = """\
<!-- quire: allow PB211 in step 2 because "it is short" -->
# Note

## INPUTS

- `topic` (string): What it is about
- `depth` (enum: quick, thorough): How deep

## STEP 1: Sort

Sort {{topic}}.

@output(kind: enum, "a", "b")

## STEP 2: Ask

@elicit(confirm, "Is {{kind}} right?")

## STEP 3: Write

@context(kind, 2)

```if kind == "a"```

### STEP 3a: First

Write about {{topic}} and {{__elicit_step_2}}.

@output(text)

```else```

Write little.

```endif```

## ARTIFACTS

type: markdown
from: text
"""


def places(editor: Editor, word: str, nth: int = 0, method: str = "references") -> list[tuple[int, str]]:
    """Return lines and words of an answer about the nth place of a word."""
    at = -1
    for _ in range(nth + 1):
        at = TEXT.index(word, at + 1)
    found = editor.ask(f"textDocument/{method}", editor.place("note.playbook.md", at + 1)) or []
    words = editor.words("note.playbook.md", [one["range"] for one in found])
    return [(one["range"]["start"]["line"] + 1, word) for one, word in zip(found, words, strict=True)]


@pytest.fixture
def opened(editor: Editor) -> Editor:
    editor.open("note.playbook.md", TEXT)
    return editor


@pytest.mark.parametrize(
    ("word", "nth", "expected"),
    [
        ("topic", 0, [(6, "topic"), (11, "topic"), (27, "topic")]),
        ("topic}}", 1, [(6, "topic"), (11, "topic"), (27, "topic")]),
        ("kind", 0, [(13, "kind"), (17, "kind"), (21, "kind"), (23, "kind")]),
        ("text)", 0, [(29, "text"), (40, "text")]),
        ("2: Ask", 0, [(1, "2"), (15, "2"), (21, "2"), (27, "2")]),
        ("3a", 0, [(25, "3a")]),
    ],
)
def test_references_are_all_places_of_a_name(
    opened: Editor, word: str, nth: int, expected: list[tuple[int, str]]
) -> None:
    assert sorted(places(opened, word, nth)) == expected


@pytest.mark.parametrize(
    ("word", "nth", "expected"),
    [
        ("topic}}", 0, [(6, "topic")]),
        ("kind}}", 0, [(13, "kind")]),
        ("__elicit_step_2", 0, [(17, "elicit")]),
        ("2}}", 0, [(15, "2")]),
        ("text\n", 0, [(29, "text")]),
    ],
)
def test_a_definition_is_the_place_that_introduces_a_name(
    opened: Editor, word: str, nth: int, expected: list[tuple[int, str]]
) -> None:
    at = places(opened, word, nth, "definition")
    assert at == expected


def test_the_outline_has_sections_steps_arms_and_sub_steps(opened: Editor) -> None:
    found = opened.ask("textDocument/documentSymbol", {"textDocument": {"uri": opened.uri("note.playbook.md")}})

    def names(symbols: list[dict[str, Any]]) -> list[Any]:
        return [(one["name"], names(one["children"])) if one.get("children") else one["name"] for one in symbols]

    assert names(found) == [
        ("INPUTS", ["topic", "depth"]),
        "STEP 1: Sort",
        "STEP 2: Ask",
        ("STEP 3: Write", [('if kind == "a"', ["STEP 3a: First"]), ("else", ["STEP 3b"])]),
        "ARTIFACTS",
    ]
    arm = found[3]["children"][0]
    text = TEXT[offset(TEXT, arm["range"]["start"]) : offset(TEXT, arm["range"]["end"])]
    assert text.startswith('```if kind == "a"```') and text.rstrip().endswith("@output(text)")
    assert [one.get("detail") for one in found[1:4]] == ["asks a model → kind", "asks a person", None]


def test_names_of_other_documents_have_their_paths(editor: Editor) -> None:
    editor.write("prompts/tone.md", "Be kind.\n")
    editor.write("playbooks/sub.playbook.md", "# Sub\n\n## INPUTS\n\n- `who` (string)\n\n## STEP 1: A\n\nHi {{who}}.\n")
    editor.write("parts/a.md", "Text.\n")
    text = (
        "# Main\n\n## STEP 1: A\n\n@prompt(library:tone)\n\n## STEP 2: B\n\n@prompt(file:parts/a.md)\n\n"
        '## STEP 3: C\n\n@tool(quire, sub, {"who": "me"})\n'
    )
    editor.open("main.playbook.md", text)
    links = editor.ask("textDocument/documentLink", {"textDocument": {"uri": editor.uri("main.playbook.md")}})
    assert [one["target"] for one in links] == [
        editor.uri("prompts/tone.md"),
        editor.uri("parts/a.md"),
        editor.uri("playbooks/sub.playbook.md"),
    ]
    key = editor.place("main.playbook.md", text.index("who") + 1)
    [found] = editor.ask("textDocument/definition", key)
    assert found["uri"] == editor.uri("playbooks/sub.playbook.md")
    assert found["range"]["start"] == {"line": 4, "character": 3}
    assert Path(editor.folder / "playbooks/sub.playbook.md").exists()


def test_an_agent_belongs_to_the_settings(editor: Editor) -> None:
    editor.write("quire.toml", '[agents.reader]\nmodel = "scripted:x"\n')
    text = "# T\n\n## STEP 1: A\n\n@model(reader)\n\nHi.\n\n## STEP 2: B\n\n@model(cheap)\n\nHo.\n"
    editor.open("t.playbook.md", text)
    found = editor.session.desk.view(editor.uri("t.playbook.md"))
    assert found is not None
    names = [(one.kind, one.text, one.document, one.renames) for one in found.index.names if one.kind != "step"]
    toml = str(editor.folder / "quire.toml")
    assert names == [("agent", "reader", toml, True), ("model", "cheap", "", False)]
