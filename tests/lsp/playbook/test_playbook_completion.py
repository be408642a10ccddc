"""Completions of playbooks, in well-formed and in half-typed text."""

from __future__ import annotations

import pytest
from tests.lsp.editor import Editor

TEXT = """\
# Note

## SYSTEM

You write {{x.

## INPUTS

- `topic` (string): What it is about
- `depth` (enum: quick, thorough): How deep
- `draft` (boolean: true)

## STEP 1: Sort

Sort {{topic}}.

@output(kind: enum, "a", "b")

## STEP 2: Ask

@elicit(select, "Which?", "one", "two")
@output(choice)

## STEP 3: Write

HERE

## STEP 4: End

Use {{missing}}.

@output(last)

## ARTIFACTS

type: markdown
"""

NAME = "note.playbook.md"


@pytest.mark.parametrize(
    ("line", "there", "absent"),
    [
        ("Say {{‸", ["topic", "depth", "kind", "choice", "__elicit_step_2"], ["last", "__elicit_step_4"]),
        ("Say {{to‸", ["topic"], []),
        ("Say {{topic:‸", ["string", "number", "enum"], ["json"]),
        ("@‸", ["@output(name)", '@elicit(input, "question")', "@model(NAME)", "@context(none)"], []),
        ("  @out‸", ["@output(name)"], []),
        ("@output(‸", ["missing", "name", 'name: enum, "a", "b"'], ["topic"]),
        ("@output(x: ‸", ["number", "json", 'enum, "a", "b"'], []),
        ("@output(x: nu‸)", ["number"], []),
        ("@output(x, ‸", ['extract:"field"'], []),
        ("@elicit(‸", ["input", "confirm", "select"], []),
        ('@elicit(confirm, "Go?", ‸', ['default:"…"'], []),
        ('@elicit(confirm, "Go?", default:"‸', ["yes", "no"], []),
        ('@elicit(select, "Go?", "left", "right", default:"‸', ["left", "right"], ["yes"]),
        ("@prompt(‸", ["library:", "file:", "mcp:", "{{name}}"], []),
        ("@prompt(library:‸", ["tone"], []),
        ("@prompt(file:‸", ["parts/"], ["note.playbook.md"]),
        ("@prompt(file:parts/‸", ["a.md", "deep/"], []),
        ("@prompt({{‸", ["topic", "kind"], []),
        ("@tool(‸", ["quire", "clock"], []),
        ("@tool(quire, ‸", ["file__read", "sub"], ["note"]),
        ("@tool(clock, ‸", ["tick"], []),
        ("@tool(quire, file__read, ‸", ["{…}"], []),
        ("@tool(quire, file__read, {‸", ["path", "limit"], []),
        ('@tool(quire, file__read, {"‸', ["path", "limit"], []),
        ('@tool(quire, file__read, {"path": "x", "‸', ["limit", "line_ids"], ["path"]),
        ('@tool(quire, file__read, {"path": "{{‸', ["topic"], []),
        ('@tool(quire, file__read, {"path": "x", "line_ids": ‸', ["true", "false"], []),
        ('@tool(quire, http__send, {"method": "‸', ["POST", "DELETE"], []),
        ('@tool(quire, sub, {"‸', ["who"], []),
        ("@context(‸", ["none", "kind", "1", "2"], ["3", "4", "last"]),
        ("@context(kind, ‸", ["1"], ["none"]),
        ("@model(‸", ["reader", "cheap"], ["opus"]),
        ("```‸", ["```if", "```if … else"], []),
        ("```i‸", ["```if"], []),
        ("```if ‸", ["kind", "depth", "__elicit_step_2"], []),
        ("```if depth ‸", ["==", "!="], []),
        ('```if depth == "‸', ["quick", "thorough"], []),
        ('```if kind == "‸"```', ["a", "b"], []),
        ('```elif choice != "‸', ["one", "two"], []),
        ('```if __elicit_step_2 == "‸', ["one", "two"], []),
        ('```if draft == "‸', ["true", "false"], []),
        ("```if depth == ‸", ["quick", "thorough"], []),
        ("#‸", ["## STEP 5: "], ["## INPUTS", "### STEP 3a: ", "## STEP 4: "]),
        ("Some text ‸", [], ["topic", "@output(name)"]),
        ('```if kind == "a"```\n\n##‸', ["### STEP 3a: ", "## STEP 5: "], []),
        ('```if kind == "a"```\n\n### STEP 3a: X\n\nHi.\n\n```‸', ["```elif", "```else", "```endif"], []),
        ("~~~\n@‸\n~~~", [], ["@output(name)"]),
    ],
)
def test_completions_fit_the_line(editor: Editor, line: str, there: list[str], absent: list[str]) -> None:
    editor.write("quire.toml", '[agents.reader]\nmodel = "x:y"\n')
    editor.write(".mcp.json", '{"mcpServers": {"clock": {"command": "clock"}}}')
    editor.write("prompts/tone.md", "Be kind.\n")
    editor.write("parts/a.md", "A.\n")
    editor.write("parts/deep/b.md", "B.\n")
    editor.write("playbooks/other.playbook.md", "# O\n\n## STEP 1: A\n\n@tool(clock, tick)\n")
    editor.write("playbooks/sub.playbook.md", "# S\n\n## INPUTS\n\n- `who` (string)\n\n## STEP 1: A\n\nHi {{who}}.\n")
    found = editor.completions(NAME, TEXT.replace("HERE", line))
    assert [one for one in there if one not in found] == [], list(found)
    assert [one for one in absent if one in found] == []


@pytest.mark.parametrize(
    ("old", "new", "there"),
    [
        ("type: markdown", "type: ‸", ["markdown", "json"]),
        ("type: markdown", "from: ‸", ["kind", "last", "4"]),
        ("type: markdown", "‸", ["type: ", "from: "]),
        ("## STEP 4: End", "## ‸", ["## STEP 4: "]),
        ("## STEP 4: End", "## STEP 4‸", ["## STEP 4: "]),
        ("## STEP 4: End", "## ‸\n\n## STEP 6: End", ["## STEP 4: "]),
        ("## STEP 1: Sort", "## ‸\n\n## STEP 1: Sort", ["## STEP 5: "]),
        ("## ARTIFACTS", "## ‸\n\n## ARTIFACTS", ["## STEP 5: "]),
        ("- `draft` (boolean: true)", "- `draft` (‸", ["boolean", "enum: a, b"]),
        ("- `draft` (boolean: true)", "‸", ["- `name` (string)"]),
        ("# Note", "<‸\n# Note", ["<!-- quire: allow CODE"]),
    ],
)
def test_completions_outside_of_steps(editor: Editor, old: str, new: str, there: list[str]) -> None:
    found = editor.completions(NAME, TEXT.replace(old, new, 1))
    assert [one for one in there if one not in found] == [], list(found)


def test_the_system_prompt_has_no_placeholders(editor: Editor) -> None:
    assert not editor.completions(NAME, TEXT.replace("{{x.", "{{x‸."))


@pytest.mark.parametrize(
    ("line", "label", "expected"),
    [
        ("Say {{to‸", "topic", "Say {{topic}}"),
        ("Say {{to‸}}", "topic", "Say {{topic}}"),
        ('```if depth == "th‸', "thorough", '```if depth == "thorough"```'),
        ('```if depth == "th‸"```', "thorough", '```if depth == "thorough"```'),
        ("```if depth == ‸", "quick", '```if depth == "quick"```'),
        ('@tool(quire, file__read, {"pa‸', "path", '@tool(quire, file__read, {"path": '),
        ('@tool(quire, file__read, {"pa‸"', "path", '@tool(quire, file__read, {"path"'),
        ("@tool(quire, file__read, ‸", "{…}", '@tool(quire, file__read, {"path": "${1:path}"}'),
        ("@prompt(file:par‸", "parts/", "@prompt(file:parts/"),
        ("  @o‸", "@output(name)", "  @output(${1:name})"),
        ("```‸```", "```else", "```else```"),
    ],
)
def test_a_completion_replaces_what_was_typed(editor: Editor, line: str, label: str, expected: str) -> None:
    editor.write("parts/a.md", "A.\n")
    item = editor.completions(NAME, TEXT.replace("HERE", line))[label]
    edit = item["textEdit"]
    text = editor.texts[NAME].split("\n")[edit["range"]["start"]["line"]]
    after = text[: edit["range"]["start"]["character"]] + edit["newText"] + text[edit["range"]["end"]["character"] :]
    assert after == expected


@pytest.mark.parametrize(
    "text", ["{{‸", "@‸", "## STEP 1: A\n\nSay {{‸", "# T\n\n## STEP 1: A\n@output(x)\n## STEP 2: B\n```if ‸"]
)
def test_a_document_that_has_just_begun(editor: Editor, text: str) -> None:
    editor.completions(NAME, text)


def test_captures_are_known_where_a_half_typed_fence_hides_them(editor: Editor) -> None:
    text = "# T\n\n## STEP 1: A\n\nHi.\n\n@output(first)\n\n## STEP 2: B\n\n```if ‸\n\n## STEP 3: C\n\n```\ncode\n```\n"
    assert "first" in editor.completions(NAME, text)


def test_a_tool_is_explained_when_it_is_looked_at(editor: Editor) -> None:
    item = editor.completions(NAME, TEXT.replace("HERE", "@tool(quire, ‸"))["file__write"]
    assert "documentation" not in item
    found = editor.ask("completionItem/resolve", item)
    assert "Writes a text file" in found["documentation"]["value"]
    assert "`path` (string" in found["documentation"]["value"]


def test_names_of_settings_that_cannot_be_read(editor: Editor) -> None:
    editor.write("quire.toml", "[models\n")
    for line in ("@model(‸", "@tool(‸", "@tool(quire, ‸", "@prompt(library:‸", "@prompt(mcp:‸"):
        editor.completions(NAME, TEXT.replace("HERE", line))
