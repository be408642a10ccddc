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
    ],
)
def test_names_that_are_not_allowed(editor: Editor, text: str, word: str, new: str, reason: str) -> None:
    editor.write("pipelines/look.yaml", LOOK)
    editor.open("caller.yaml", text)
    place = at(editor, "caller.yaml", word, 9)
    assert reason in editor.refused("textDocument/rename", {**place, "newName": new})["message"]


SUB = """\
# Sub

## INPUTS

- `topic` (string): What it is about
- `tone` (string: kind): How it sounds

## STEP 1: Write

Write about {{topic}} in a {{tone}} tone.
"""
LISTED = """\
pipeline: p2
steps:
  - transform: {value: "'tea'", output: topic}
  - transform: {value: "'kind'", output: tone}
  - call: {pipeline: sub, pass: %s}
"""
BLOCK = """
      # both
      - tone  # how
      -   "topic"
  - transform: {value: topic}"""


def listed(editor: Editor, passed: str) -> None:
    """Open a pipeline that passes names to a playbook in a list."""
    text = LISTED % passed
    if passed.startswith("\n"):
        text = text.replace("call: {pipeline: sub, pass: ", "call:\n      pipeline: sub\n      pass:").replace(
            "topic}}", "topic}"
        )
    editor.open("p2.yaml", text)


@pytest.mark.parametrize(
    ("passed", "after"),
    [
        ("[topic]", "pass: {subject: ctx.topic}"),
        ("[ 'topic',  # a\n      tone, ]", "pass: { 'subject': ctx.topic,  # a\n      tone: ctx.tone, }"),
        (BLOCK, '\n        tone: ctx.tone  # how\n        "subject": ctx.topic\n'),
        ("{topic: ctx.tone}", "pass: {subject: ctx.tone}"),
    ],
)
def test_callers_that_pass_a_list_follow_a_new_name_of_an_input(editor: Editor, passed: str, after: str) -> None:
    editor.write("sub.playbook.md", SUB)
    listed(editor, passed)
    before = codes(editor, "p2.yaml")
    editor.open("sub.playbook.md", SUB)
    texts = renamed(editor, at(editor, "sub.playbook.md", "topic"), "subject")
    assert after in texts["p2.yaml"]
    for name, text in texts.items():
        editor.replace(name, text)
    assert codes(editor, "p2.yaml") == before
    assert "PL114" not in before


def test_callers_that_pass_a_list_to_a_pipeline_follow(editor: Editor) -> None:
    editor.write("pipelines/look.yaml", LOOK)
    editor.write("caller.yaml", CALLER.replace("‸", "").replace("pass: {doc: ctx.doc}", "pass: [doc]"))
    editor.open("pipelines/look.yaml", LOOK)
    texts = renamed(editor, at(editor, "pipelines/look.yaml", "doc:"), "paper")
    assert "pass: {paper: ctx.doc}" in texts["caller.yaml"]


@pytest.mark.parametrize(
    ("passed", "after"), [("[topic]", "pass: {topic: ctx.subject}"), (BLOCK, '"topic": ctx.subject\n')]
)
def test_a_store_that_is_passed_in_a_list_gets_another_name(editor: Editor, passed: str, after: str) -> None:
    editor.write("sub.playbook.md", SUB)
    listed(editor, passed)
    before = codes(editor, "p2.yaml")
    texts = renamed(editor, at(editor, "p2.yaml", "output: topic", 9), "subject")
    assert after in texts["p2.yaml"]
    assert set(texts) == {"p2.yaml"}
    editor.replace("p2.yaml", texts["p2.yaml"])
    assert codes(editor, "p2.yaml") == before
    assert "PL114" not in before


@pytest.mark.parametrize(
    ("passed", "reason"),
    [
        ("[topic, to-ne]", "ctx.to-ne is not an expression"),
        ("[topic, subject]", "it would have subject twice"),
        ("&all [topic]", "its anchor may be used at other places"),
    ],
)
def test_a_list_that_cannot_become_a_mapping(editor: Editor, passed: str, reason: str) -> None:
    listed(editor, passed)
    editor.write("sub.playbook.md", SUB)
    editor.open("sub.playbook.md", SUB)
    place = at(editor, "sub.playbook.md", "topic")
    said = editor.refused("textDocument/rename", {**place, "newName": "subject"})["message"]
    assert said == f"line 5 of p2.yaml passes topic in a list, which cannot become a mapping: {reason}"


def test_stores_of_two_pipelines_of_a_file_are_different(editor: Editor) -> None:
    two = "\n---\n".join(
        f'pipeline: p{n}\nsteps:\n  - transform: {{value: "1", output: x}}\n  - transform: {{value: x}}' for n in (1, 2)
    )
    editor.write("pipelines/two.yaml", two)
    editor.open("pipelines/two.yaml", two)
    texts = renamed(editor, at(editor, "pipelines/two.yaml", "output: x", 8), "y")
    assert texts["pipelines/two.yaml"].count("output: y") == 1
    assert texts["pipelines/two.yaml"].count("value: y") == 1
