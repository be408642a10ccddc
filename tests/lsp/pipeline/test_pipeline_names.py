"""Names of pipelines: definitions, references, the outline, links, and renames that keep all findings."""

from __future__ import annotations

from typing import Any

import pytest
from tests.lsp.editor import Editor
from tests.lsp.pipeline.pipeline_texts import HEAD, LOOK

CALLER = """\
pipeline: caller
steps:
  - transform: {value: "ctx.text", output: doc}
  - call: {pipeline: look‸_at, pass: {doc: ctx.doc}, output: seen}
  - agent: {prompt: "Say {seen} and {ctx.seen}, not seen", output: said}
  - transform: {value: "get(ctx, 'seen') + said"}
"""


def at(editor: Editor, name: str, word: str, inside: int = 1) -> dict[str, Any]:
    """Return the parameters of a request at a word of an open document."""
    return editor.place(name, editor.texts[name].index(word) + inside)


def test_definition_of_a_callee(editor: Editor) -> None:
    path = editor.write("pipelines/look.yaml", LOOK)
    found = editor.ask("textDocument/definition", editor.open("caller.yaml", CALLER))
    assert found[0]["uri"].endswith("pipelines/look.yaml")
    assert found[0]["range"]["start"] == {"line": 0, "character": 10}
    assert path.exists()


def test_definition_and_references_of_a_store(editor: Editor) -> None:
    editor.open("caller.yaml", CALLER)
    place = at(editor, "caller.yaml", "{seen}", 2)
    found = editor.ask("textDocument/definition", place)
    assert editor.words("caller.yaml", [found[0]["range"]]) == ["seen"]
    assert found[0]["range"]["start"]["line"] == 3
    places = editor.ask("textDocument/references", {**place, "context": {"includeDeclaration": True}})
    assert editor.words("caller.yaml", [one["range"] for one in places]) == ["seen"] * 4


def test_an_input_that_is_passed_leads_to_the_callee(editor: Editor) -> None:
    editor.write("pipelines/look.yaml", LOOK)
    editor.open("caller.yaml", CALLER)
    found = editor.ask("textDocument/definition", at(editor, "caller.yaml", "{doc:", 1))
    assert found[0]["uri"].endswith("look.yaml")
    assert found[0]["range"]["start"]["line"] == 3


def test_outline(editor: Editor) -> None:
    editor.open(
        "main.yaml",
        HEAD + "  - parallel:\n      branches: {a: {agent: {prompt: x}}}\n      collect: {transform: {value: a}}\n",
    )
    found = editor.ask("textDocument/documentSymbol", {"textDocument": {"uri": editor.uri("main.yaml")}})
    assert [one["name"] for one in found] == ["Review", "main"]
    assert [one["name"] for one in found[1]["children"]] == ["doc", "readers", "1 agent", "2 parallel"]
    assert [one["name"] for one in found[1]["children"][3]["children"]] == ["a agent", "collect transform"]


def test_a_prompt_file_is_a_link(editor: Editor) -> None:
    editor.write("ask.md", "Ask.\n")
    editor.open("main.yaml", HEAD + "  - agent: {prompt: !file ask.md}\n")
    found = editor.ask("textDocument/documentLink", {"textDocument": {"uri": editor.uri("main.yaml")}})
    assert found[0]["target"].endswith("/ask.md")


def renamed(editor: Editor, place: dict[str, Any], new: str) -> dict[str, str]:
    return editor.edited(editor.ask("textDocument/rename", {**place, "newName": new}))


def codes(editor: Editor, name: str) -> list[str]:
    return sorted(editor.codes(name))


def test_rename_a_store(editor: Editor) -> None:
    editor.write("pipelines/look.yaml", LOOK)
    editor.open("caller.yaml", CALLER)
    before = codes(editor, "caller.yaml")
    texts = renamed(editor, at(editor, "caller.yaml", "output: seen", 9), "looked")
    assert texts["caller.yaml"].count("looked") == 4
    assert "not seen" in texts["caller.yaml"]
    editor.replace("caller.yaml", texts["caller.yaml"])
    assert codes(editor, "caller.yaml") == before


def test_rename_a_pipeline_with_its_callers(editor: Editor) -> None:
    editor.write("pipelines/look.yaml", LOOK)
    editor.write("other.yaml", CALLER.replace("‸", "").replace("pipeline: caller", "pipeline: other"))
    editor.open("caller.yaml", CALLER)
    texts = renamed(editor, at(editor, "caller.yaml", "look_at"), "watch")
    assert set(texts) == {"caller.yaml", "other.yaml", "pipelines/look.yaml"}
    assert all("look_at" not in text and "watch" in text for text in texts.values())


def test_rename_a_schema(editor: Editor) -> None:
    editor.open("main.yaml", HEAD)
    before = codes(editor, "main.yaml")
    texts = renamed(editor, at(editor, "main.yaml", "Review"), "Verdict")
    assert texts["main.yaml"].count("Verdict") == 3
    assert "Review {ctx.doc}" in texts["main.yaml"], "the prompt is not touched"
    editor.replace("main.yaml", texts["main.yaml"])
    assert codes(editor, "main.yaml") == before


def test_rename_an_input_with_its_callers(editor: Editor) -> None:
    editor.write("caller.yaml", CALLER.replace("‸", ""))
    editor.write("pipelines/look.yaml", LOOK)
    editor.open("pipelines/look.yaml", LOOK)
    texts = renamed(editor, at(editor, "pipelines/look.yaml", "doc:"), "paper")
    assert "pass: {paper: ctx.doc}" in texts["caller.yaml"]
    assert 'value: "ctx.paper' in texts["pipelines/look.yaml"]


@pytest.mark.parametrize(
    ("text", "word", "new", "reason"),
    [
        (CALLER, "output: seen", "pipe", "meaning of its own"),
        (CALLER, "output: seen", "a-b", "hyphen"),
        (CALLER, "output: seen", "1x", "cannot be a name"),
        (CALLER, "output: seen", "said", "already"),
        (CALLER.replace("pass: {doc: ctx.doc}", "pass: [doc]"), "output: doc", "paper", "pass: {doc: ctx.doc}"),
    ],
)
def test_names_that_are_not_allowed(editor: Editor, text: str, word: str, new: str, reason: str) -> None:
    editor.write("pipelines/look.yaml", LOOK)
    editor.open("caller.yaml", text)
    place = at(editor, "caller.yaml", word, 9)
    assert reason in editor.refused("textDocument/rename", {**place, "newName": new})["message"]


def test_stores_of_two_pipelines_of_a_file_are_different(editor: Editor) -> None:
    two = "\n---\n".join(
        f'pipeline: p{n}\nsteps:\n  - transform: {{value: "1", output: x}}\n  - transform: {{value: x}}' for n in (1, 2)
    )
    editor.write("pipelines/two.yaml", two)
    editor.open("pipelines/two.yaml", two)
    texts = renamed(editor, at(editor, "pipelines/two.yaml", "output: x", 8), "y")
    assert texts["pipelines/two.yaml"].count("output: y") == 1
    assert texts["pipelines/two.yaml"].count("value: y") == 1
