"""Changes that are offered in playbooks."""

from __future__ import annotations

from typing import Any

import pytest
from tests.lsp.editor import CAPABILITIES, Editor

from quire.cli import main

NAME = "note.playbook.md"
TEXT = """\
# Note

## INPUTS

- `topic` (string): What it is about
- `loud` (boolean: false)

## STEP 1: Sort

Sort {{topic}} and {{unknown}}.

@output(kind: enum, "a", "b")

## STEP 2: Ask

@elicit(select, "Which?", "one", "two")
@output(choice)

## STEP 3: Write

```if kind == "b"```

### STEP 3a: First

Write.

```elif choice != "one"```

### STEP 3b: Second

Write more.

@output(size, extract:"size")

```elif loud == "true"```

### STEP 3c: Third

Write loudly.

```endif```

## STEP 4: Decide

@elicit(confirm, "Go?")

```if __elicit_step_4 == "no"```

### STEP 4a: Stop

Say why.

```else```

### STEP 4b: Go

Go on.

```endif```
"""


def offered(editor: Editor, text: str) -> dict[str, dict[str, Any]]:
    place = editor.open(NAME, text)
    editor.pause()
    spot = {"start": place["position"], "end": place["position"]}
    context: dict[str, Any] = {"diagnostics": []}
    given = {"textDocument": place["textDocument"], "range": spot, "context": context}
    return {one["title"]: one for one in editor.ask("textDocument/codeAction", given)}


def at(word: str, text: str = TEXT) -> str:
    return text.replace(word, f"‸{word}", 1)


def chosen(editor: Editor, text: str, title: str) -> dict[str, str]:
    return editor.edited(editor.chosen(offered(editor, text)[title]))


def test_an_unknown_name_can_be_declared(editor: Editor) -> None:
    found = offered(editor, at("unknown}}"))["Declare the input unknown"]
    assert [one["code"] for one in found["diagnostics"]] == ["PB201"]
    text = editor.edited(found["edit"])[NAME]
    assert "- `loud` (boolean: false)\n- `unknown` (string)\n\n## STEP 1" in text
    editor.replace(NAME, text)
    assert "PB201" not in editor.codes(NAME)


def test_a_section_is_made_for_the_first_input(editor: Editor) -> None:
    text = chosen(editor, "# T\n\n## STEP 1: A\n\nSay {{‸x}}.\n", "Declare the input x")[NAME]
    assert text == "# T\n\n## INPUTS\n\n- `x` (string)\n\n## STEP 1: A\n\nSay {{x}}.\n"


def test_a_known_name_is_not_declared(editor: Editor) -> None:
    assert not [title for title in offered(editor, at("topic}}")) if title.startswith("Declare")]


@pytest.mark.parametrize("word", ['```if kind == "b"', "Write more.", '```elif loud == "true"```'])
def test_an_else_can_be_added(editor: Editor, word: str) -> None:
    text = chosen(editor, at(word), "Add an else branch")[NAME]
    assert "Write loudly.\n\n```else```\n\n### STEP 3d: Otherwise\n\nSay what to do otherwise.\n\n```endif```" in text
    before = editor.codes(NAME)
    editor.replace(NAME, text)
    assert editor.codes(NAME) == before


@pytest.mark.parametrize("word", ["Sort {{topic", "Go on.", "## STEP 3"])
def test_no_else_where_none_is_missing(editor: Editor, word: str) -> None:
    assert "Add an else branch" not in offered(editor, at(word))


def test_a_finding_can_be_allowed(editor: Editor) -> None:
    text = chosen(editor, at("unknown}}"), "Allow PB201 because …")[NAME]
    assert text.startswith('<!-- quire: allow PB201 in step 1 because "say why this is right here" -->\n# Note\n')
    editor.replace(NAME, text)
    assert "PB201" not in editor.codes(NAME)
    assert not [code for code in editor.codes(NAME) if code.startswith("AL")]


def test_a_finding_of_an_input_is_allowed_above_its_line(editor: Editor) -> None:
    text = TEXT.replace("- `loud`", "- `never` (string)\n- `loud`")
    found = offered(editor, at("never", text))
    [title] = [one for one in found if one.startswith("Allow")]
    allowed = editor.edited(found[title]["edit"])[NAME]
    editor.replace(NAME, allowed)
    assert title.split()[1] not in editor.codes(NAME)
    assert "-->\n- `never` (string)" in allowed


def test_an_error_cannot_be_allowed(editor: Editor) -> None:
    text = TEXT.replace("- `loud`", "- `topic` (string)\n- `loud`")
    found = offered(editor, text.replace("- `topic` (string)\n", "- `‸topic` (string)\n"))
    assert not [one for one in found if one.startswith("Allow PB00")]


@pytest.mark.parametrize(
    ("word", "title", "parts"),
    [
        ('```if kind == "b"', "Write a test for this branch", ["step 3: if kind", '"1": "b"', '"3a": "completed"']),
        ("### STEP 3b", "Write a test for this branch", ['"1": "a"', '"2": "two"', '"3b": "completed"']),
        (
            '```elif loud == "true"```',
            "Write a test for this branch",
            ["loud: true", '"2": "one"', '"3c": "completed"'],
        ),
        ('```if __elicit_step_4 == "no"```', "Write a test for this branch", ['"4": "no"', '"4a": "completed"']),
        ("```else```", "Write a test for this branch", ['"4": "yes"', '"4b": "completed"']),
        ("## STEP 1", "Write a test for step 1", ["step 1", 'steps: {"1": "completed"}']),
    ],
)  # fmt: skip
def test_a_test_can_be_written(
    editor: Editor, word: str, title: str, parts: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    edit = editor.chosen(offered(editor, at(word))[title])
    assert edit["documentChanges"][0]["kind"] == "create"
    text = editor.edited(edit)["note.test.yaml"]
    for part in parts:
        assert part in text, text
    (editor.folder / NAME).write_text(TEXT)
    (editor.folder / "note.test.yaml").write_text(text)
    assert main(["test", "note.test.yaml"]) == 0, capsys.readouterr().out


def test_a_case_is_added_to_the_test_that_is_there(editor: Editor) -> None:
    before = "# About\ncases:\n  - name: one\n    expect: {status: completed}\n\ncoverage: {all: 10}\n"
    editor.write("note.test.yaml", before)
    text = chosen(editor, at("### STEP 4a"), "Write a test for this branch")["note.test.yaml"]
    assert text.startswith("# About\ncases:\n  - name: one\n    expect: {status: completed}\n  - name: ")
    assert text.endswith("}}\n\ncoverage: {all: 10}\n")
    from quire.formats.test.parse import parse
    from quire.source import Source

    reading = parse(Source.of(text, "note.test.yaml"))
    assert reading.file is not None, reading.diagnostics
    assert len(reading.file.cases) == 2


def test_a_client_that_makes_no_files_is_not_offered_a_new_test(editor: Editor) -> None:
    able = {**CAPABILITIES, "workspace": {"applyEdit": True, "workspaceEdit": {"documentChanges": True}}}
    other = Editor(editor.folder, able)
    assert not [one for one in offered(other, at("## STEP 1")) if one.startswith("Write a test")]


def test_a_name_that_is_probably_another_can_be_replaced(editor: Editor) -> None:
    found = offered(editor, TEXT.replace("{{unknown}}", "{{‸topicks}} {{unknown}}"))
    title = "Replace topicks with topic (may change the meaning)"
    assert "isPreferred" not in found[title]
    assert "{{topic}} {{unknown}}" in editor.edited(found[title]["edit"])[NAME]
