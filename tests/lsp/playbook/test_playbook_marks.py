"""Signatures, semantic tokens, inlay hints, lenses and folds of playbooks."""

from __future__ import annotations

from typing import Any

import pytest
from tests.lsp.editor import Editor, offset

from quire.lsp.protocol import TOKEN_MARKS, TOKEN_TYPES

NAME = "note.playbook.md"
TEXT = """\
<!-- quire: allow PB211 because "short" -->
# Note

## INPUTS

- `topic` (string: Tea): What it is about
- `depth` (enum: quick, thorough): How deep

## STEP 1: Sort

@model(cheap)
@context(none)

Sort {{topic}} and {{nothing}} and {{other:string:x}}.

@output(kind: enum, "a", "b")

## STEP 2: Ask

@elicit(select, "Which {{kind}}?", "one", "two")
@output(choice)

## STEP 3: Write

```if kind == "a"```

### STEP 3a: First

@prompt(library:tone)

```
code
```

@output(text)

```elif gone != "b"```

Hm.

```endif```

## STEP 4: Look

@tool(quire, file__read, {"path": "{{choice}}.md", "limit": 3})

## ARTIFACTS

type: json
from: text
"""


@pytest.mark.parametrize(
    ("line", "label", "active"),
    [
        ("@output(‸", "@output(name)", "name"),
        ("@output(x: ‸", "@output(name: type)", "type"),
        ("@output(x: enum, ‸", '@output(name: enum, "a", "b")', '"a", "b"'),
        ("@output(x, ‸", '@output(name, extract:"field")', 'extract:"field"'),
        ("@output(x: number, ex‸)", '@output(name: type, extract:"field")', 'extract:"field"'),
        ("@elicit(‸", '@elicit(input, "question")', "input"),
        ("@elicit(confirm, ‸", '@elicit(confirm, "question", default:"no")', '"question"'),
        ('@elicit(select, "a, b", "c", ‸', '@elicit(select, "question", "a", "b", default:"a")', '"a", "b"'),
        ('@elicit(confirm, "a", default:‸', '@elicit(confirm, "question", default:"no")', 'default:"no"'),
        ("@prompt(‸", "@prompt(library:ID)", "library:ID"),
        ("@prompt(file:‸", "@prompt(file:PATH)", "file:PATH"),
        ("@tool(‸", '@tool(connection, tool, {"key": "value"})', "connection"),
        ("@tool(x, ‸", '@tool(connection, tool, {"key": "value"})', "tool"),
        ("@tool(x, y, ‸", '@tool(connection, tool, {"key": "value"})', '{"key": "value"}'),
        (
            '@tool(quire, state__get, {"name": ‸',
            '@tool(quire, state__get, {"name": string, "default"?: any value})',
            '"name": string',
        ),
        ("@model(‸", "@model(NAME)", "NAME"),
        ("@context(a, ‸", "@context(name, 2, 3a)", "name, 2, 3a"),
    ],
)
def test_the_signature_fits_what_is_typed(editor: Editor, line: str, label: str, active: str) -> None:
    text = TEXT.replace("Hm.", line)
    found = editor.ask("textDocument/signatureHelp", editor.open(NAME, text))
    [signature] = found["signatures"]
    assert signature["label"] == label
    assert signature["parameters"][found["activeParameter"]]["label"] == active


@pytest.mark.parametrize("line", ["@output(x)‸", "Hello (‸", "output(‸"])
def test_there_is_no_signature_outside_of_a_directive(editor: Editor, line: str) -> None:
    assert editor.ask("textDocument/signatureHelp", editor.open(NAME, TEXT.replace("Hm.", line))) is None


def tokens(editor: Editor, text: str) -> list[tuple[str, str]]:
    editor.open(NAME, text)
    data = editor.ask("textDocument/semanticTokens/full", {"textDocument": {"uri": editor.uri(NAME)}})["data"]
    lines = text.split("\n")
    found, line, column = [], 0, 0
    for at in range(0, len(data), 5):
        ahead, start, length, kind, marks = data[at : at + 5]
        line, column = line + ahead, (column if not ahead else 0) + start
        word = TOKEN_TYPES[kind] + "".join(f" {one}" for bit, one in enumerate(TOKEN_MARKS) if marks & 1 << bit)
        found.append((lines[line][column : column + length], word))
    return found


def test_tokens_tell_the_parts_of_the_language_apart(editor: Editor) -> None:
    found = tokens(editor, TEXT)
    for expected in [
        ('<!-- quire: allow PB211 because "short" -->', "comment"),
        ("INPUTS", "keyword"),
        ("topic", "parameter declaration"),
        ("string", "type"),
        ("STEP", "keyword"),
        ("1", "number declaration"),
        ("@model", "decorator"),
        ("none", "keyword"),
        ("topic", "parameter readonly"),
        ("nothing", "variable deprecated"),
        ("other", "variable"),
        ("kind", "variable declaration"),
        ("enum", "type"),
        ('"a"', "string"),
        ("select", "enumMember"),
        ('"Which ', "string"),
        ("kind", "variable"),
        ("if", "keyword"),
        ("==", "operator"),
        ("gone", "variable deprecated"),
        ("endif", "keyword"),
        ("3a", "number declaration"),
        ("library", "keyword"),
        ("quire", "namespace"),
        ("file__read", "function"),
        ("3", "number"),
        ("choice", "variable"),
        ("json", "enumMember"),
        ("text", "variable"),
    ]:
        assert expected in found, expected
    assert not any(word == "code" for word, _ in found)


def test_a_document_with_errors_has_tokens(editor: Editor) -> None:
    assert ("STEP", "keyword") in tokens(editor, "## STEP 1: A\n\nSay {{x}}.\n")


def hinted(editor: Editor, text: str) -> str:
    """Return a document with its hints in brackets."""
    editor.open(NAME, text)
    everything = {"start": {"line": 0, "character": 0}, "end": {"line": text.count("\n") + 1, "character": 0}}
    found = editor.ask("textDocument/inlayHint", {"textDocument": {"uri": editor.uri(NAME)}, "range": everything})
    for one in reversed(found):
        at = offset(text, one["position"])
        text = f"{text[:at]}[{one['label']}]{text[at:]}"
    return text


def test_hints_have_types_models_arms_and_the_bound(editor: Editor) -> None:
    editor.write("quire.toml", '[models.tiers]\ncheap = "openai:mini"\n')
    found = hinted(editor, TEXT)
    for part in [
        "# Note[≤ 2 calls, 1 question]",
        "@model(cheap)[→ openai:mini]",
        '@output(choice[: "one" | "two"])',
        '```if kind == "a"```[→ 3a]',
        "@output(text[: text])",
        '```elif gone != "b"```[→ 3b]',
        "```endif```[otherwise no branch]",
    ]:
        assert part in found, found
    assert 'kind: enum, "a", "b")' in found


def test_hints_are_those_of_the_range(editor: Editor) -> None:
    editor.open(NAME, TEXT)
    line = TEXT[: TEXT.index("@output(choice")].count("\n")
    part = {"start": {"line": line, "character": 0}, "end": {"line": line, "character": 20}}
    found = editor.ask("textDocument/inlayHint", {"textDocument": {"uri": editor.uri(NAME)}, "range": part})
    assert [one["label"] for one in found] == [': "one" | "two"']


def lenses(editor: Editor, text: str) -> list[tuple[str, str, Any]]:
    editor.open(NAME, text)
    found = editor.ask("textDocument/codeLens", {"textDocument": {"uri": editor.uri(NAME)}})
    return [(one["command"]["title"], one["command"]["command"], one["command"]["arguments"]) for one in found]


def test_lenses_run_test_show_and_sign(editor: Editor) -> None:
    editor.write(
        "note.test.yaml",
        "cases:\n  - name: one\n    expect: {status: completed}\n  - name: two\n    expect: {status: completed}\n",
    )
    editor.write(
        "other.test.yaml", "document: else.playbook.md\ncases:\n  - name: x\n    expect: {status: completed}\n"
    )
    uri = editor.uri(NAME)
    assert lenses(editor, TEXT) == [
        ("Run", "quire.run", [uri]),
        ("Test (2 cases)", "quire.test", [uri]),
        ("≤ 2 calls, 1 question, unpriced", "quire.showProof", [uri]),
        ("Sign", "quire.sign", [uri]),
        ("Prompt", "quire.showPrompt", [uri, "1"]),
        ("Prompt", "quire.showPrompt", [uri, "3a"]),
    ]


def test_the_prompt_of_a_lens_can_be_shown(editor: Editor) -> None:
    for title, command, arguments in lenses(editor, TEXT):
        if title == "Prompt":
            assert editor.ask("workspace/executeCommand", {"command": command, "arguments": arguments})


def test_a_document_without_tests_and_with_errors_has_lenses(editor: Editor) -> None:
    assert [title for title, _, _ in lenses(editor, "## STEP 1: A\n\nHi.\n")] == ["Run", "Sign", "Prompt"]


def test_steps_arms_and_fences_fold(editor: Editor) -> None:
    editor.open(NAME, TEXT)
    found = editor.ask("textDocument/foldingRange", {"textDocument": {"uri": editor.uri(NAME)}})
    lines = TEXT.split("\n")
    first = [lines[one["startLine"]] for one in found]
    assert '```if kind == "a"```' in first
    assert "### STEP 3a: First" in first
    assert "```" in first
