"""Renaming inputs, outputs and steps of playbooks, with their callers."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.lsp.editor import Editor

NAME = "playbooks/note.playbook.md"
TEXT = """\
<!-- quire: allow PB211 in step 2 because "topic is short" -->
# Note on the topic

The topic is kind.

## INPUTS

- `topic` (string): The topic
- `depth` (enum: quick, thorough): How deep

## STEP 1: Sort

Sort the topic {{topic}} of {{topic:string:x}}.

@output(kind: enum, "a", "b")

## STEP 2: Ask about topic

@elicit(confirm, "Is {{kind}} kind?")

## STEP 3: Write

@context(kind, 2)

```if kind == "a"```

### STEP 3a: First

Write about {{topic}} {{__elicit_step_2}} {{depth}}.

```endif```

## STEP 4: Keep

@tool(quire, file__write, {"path": "topic/{{kind}}.md", "content": "{{topic}}"})
"""
CALLER = '# Main\n\n## STEP 1: A\n\n@tool(quire, note, {"topic": "tea", "depth": "topic"})\n'


@pytest.fixture(autouse=True)
def written(editor: Editor) -> None:
    """The file of the document, because only files are searched for references."""
    editor.write(NAME, TEXT)


def renamed(editor: Editor, text: str, new: str) -> dict[str, str]:
    place = editor.open(NAME, text)
    edit = editor.ask("textDocument/rename", {**place, "newName": new})
    return editor.edited(edit)


def at(before: str, word: str) -> str:
    start = TEXT.index(word, TEXT.index(before))
    return TEXT[:start] + "‸" + TEXT[start:]


def codes(editor: Editor, name: str, text: str) -> list[tuple[str, int]]:
    if name in editor.versions:
        editor.replace(name, text)
    else:
        editor.open(name, text)
    return [(one["code"], one["range"]["start"]["line"]) for one in editor.findings(name)]


@pytest.mark.parametrize(
    ("before", "word", "new", "old_texts", "new_texts"),
    [
        (
            "`topic`",
            "topic",
            "subject",
            ["{{topic}}", "`topic`"],
            ["`subject` (string): The topic", "topic {{subject}}"],
        ),
        ("{{topic}} of", "topic", "subject", ["{{topic"], ["{{subject:string:x}}", '"topic/{{kind}}.md"']),
        (
            "```if kind",
            "kind",
            "sort",
            ["{{kind}}", "@output(kind", "@context(kind"],
            ["is kind.", '"Is {{sort}} kind?"'],
        ),
        ("@context(", "kind", "sort", ["if kind =="], ['```if sort == "a"```']),
        (
            "STEP 2",
            "2",
            "7",
            ["{{__elicit_step_2}}", "STEP 2:"],
            ["in step 7 because", "@context(kind, 7)", "__elicit_step_7"],
        ),
        ("STEP 3a", "3a", "3c", ["3a"], ["### STEP 3c: First"]),
    ],
)
def test_a_rename_changes_all_places_and_no_prose(
    editor: Editor, before: str, word: str, new: str, old_texts: list[str], new_texts: list[str]
) -> None:
    text = renamed(editor, at(before, word), new)[NAME]
    for one in old_texts:
        assert one not in text
    for one in new_texts:
        assert one in text
    assert "The topic is kind." in text
    assert "STEP 2: Ask about topic" in text or word == "2"


@pytest.mark.parametrize(("word", "new"), [("topic", "subject"), ("depth", "how_deep"), ("kind", "sort")])
def test_the_findings_stay_the_same(editor: Editor, word: str, new: str) -> None:
    before = codes(editor, NAME, TEXT)
    place = editor.place(NAME, TEXT.index(f"{{{{{word}}}}}") + 3)
    text = editor.edited(editor.ask("textDocument/rename", {**place, "newName": new}))[NAME]
    assert codes(editor, NAME, text) == before
    back = editor.ask("textDocument/rename", {**editor.place(NAME, text.index(f"{{{{{new}}}}}") + 3), "newName": word})
    assert editor.edited(back)[NAME] == TEXT


def test_callers_follow_an_input(editor: Editor) -> None:
    editor.write("main.playbook.md", CALLER)
    found = renamed(editor, at("`topic`", "topic"), "subject")
    assert found["main.playbook.md"] == CALLER.replace('{"topic":', '{"subject":')


def test_an_input_of_a_callee_is_renamed_from_its_caller(editor: Editor) -> None:
    editor.write("main.playbook.md", CALLER)
    place = editor.open("main.playbook.md", CALLER.replace('"topic":', '"‸topic":'))
    found = editor.edited(editor.ask("textDocument/rename", {**place, "newName": "subject"}))
    assert '{"subject": "tea"' in found["main.playbook.md"]
    assert "`subject` (string)" in found[NAME]
    error = editor.refused("textDocument/rename", {**place, "newName": "depth"})
    assert "an input is named depth already" in error["message"]


@pytest.mark.parametrize(
    ("before", "word", "new", "reason"),
    [
        ("`topic`", "topic", "my-topic", "is not a name"),
        ("`topic`", "topic", "2nd", "begin with a letter"),
        ("`topic`", "topic", "__elicit_step_9", "begin with a letter"),
        ("`topic`", "topic", "depth", "an input is named depth already"),
        ("`topic`", "topic", "kind", "an output is named kind already"),
        ("@output(kind", "kind", "topic", "an input is named topic already"),
        ("STEP 2", "2", "3", "there is a step 3 already"),
        ("STEP 2", "2", "two", "is not the number of a step"),
        ("STEP 3:", "3", "9", "its sub-steps begin with its number"),
        ("STEP 3a", "3a", "4a", "a sub-step of step 3"),
    ],
)
def test_a_name_that_cannot_be_is_refused(editor: Editor, before: str, word: str, new: str, reason: str) -> None:
    place = editor.open(NAME, at(before, word))
    assert reason in editor.refused("textDocument/rename", {**place, "newName": new})["message"]


@pytest.mark.parametrize(
    ("before", "word"), [("@tool(", "file__write"), ("{{__elicit", "elicit"), ("@elicit(", "elicit")]
)
def test_names_of_the_format_cannot_be_renamed(editor: Editor, before: str, word: str) -> None:
    place = editor.open(NAME, at(before, word))
    assert "cannot be renamed" in editor.refused("textDocument/prepareRename", place)["message"]


def test_a_file_that_is_renamed_is_followed(editor: Editor) -> None:
    editor.write("prompts/tone.md", "Be kind.\n")
    text = CALLER + "\n## STEP 2: B\n\n@prompt(library:tone)\n"
    editor.write("main.playbook.md", text)
    editor.open("main.playbook.md", text)
    moves = [
        {"oldUri": editor.uri("prompts/tone.md"), "newUri": editor.uri("prompts/voice.md")},
        {"oldUri": editor.uri(NAME), "newUri": editor.uri("playbooks/letter.playbook.md")},
    ]
    found = editor.edited(editor.ask("workspace/willRenameFiles", {"files": moves}))["main.playbook.md"]
    assert "@prompt(library:voice)" in found
    assert "@tool(quire, letter, {" in found
    assert Path(editor.folder / NAME).exists()
