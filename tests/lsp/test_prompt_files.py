"""Names in prompt files: they are values of the documents that use the file."""

from __future__ import annotations

from typing import Any

import pytest
from tests.lsp.editor import Editor, apply

PLAYBOOK = """\
# Note

## INPUTS

- `topic` (string): The topic.

## STEP 1: Say

@prompt(file:prompts/tone.md)

Say {{topic}}.

@output(said)

## STEP 2: Again

@prompt(library:close)

{{said}}
"""
TONE = "Be kind about {{topic}}, not about {{others}} or topic.\n"
CLOSE = "Close {{said}} and {{said:none}}.\n"
PIPELINE = """\
pipeline: talk
dialect: quire
steps:
  - transform: {value: ctx.topic, output: said}
  - agent:
      prompt: !file ./prompts/line.md
"""
LINE = "Say {ctx.said.loud} and {topic}, {{topic}} and {item}.\n"


@pytest.fixture
def playbook(editor: Editor) -> Editor:
    editor.write("note.playbook.md", PLAYBOOK)
    editor.write("prompts/tone.md", TONE)
    editor.write("prompts/close.md", CLOSE)
    return editor


def places(editor: Editor, method: str, place: dict[str, Any]) -> list[tuple[str, int, int]]:
    found = editor.ask(f"textDocument/{method}", {**place, "context": {"includeDeclaration": True}}) or []
    return sorted(
        (one["uri"].rpartition("/work/")[2], one["range"]["start"]["line"], one["range"]["start"]["character"])
        for one in found
    )


def test_references_of_an_input_and_of_a_result_reach_prompt_files(playbook: Editor) -> None:
    place = playbook.open("note.playbook.md", PLAYBOOK.replace("`topic`", "`to‸pic`"))
    assert ("prompts/tone.md", 0, TONE.index("topic")) in places(playbook, "references", place)
    place = playbook.replace("note.playbook.md", PLAYBOOK.replace("output(said)", "output(sa‸id)"))
    found = places(playbook, "references", place)
    assert [one[2] for one in found if one[0] == "prompts/close.md"] == [8, 21]


def test_the_definition_of_a_name_in_a_prompt_file(playbook: Editor) -> None:
    place = playbook.open("prompts/tone.md", TONE.replace("{{topic", "{{to‸pic"))
    assert places(playbook, "definition", place) == [("note.playbook.md", 4, 3)]
    assert ("note.playbook.md", 10, 6) in places(playbook, "references", place)
    assert len(playbook.ask("textDocument/documentHighlight", place)) == 1
    hover = playbook.ask("textDocument/hover", place)
    assert "input" in hover["contents"]["value"] and "A value of `note.playbook.md`." in hover["contents"]["value"]
    for word in ("others", "or topic"):
        other = playbook.place("prompts/tone.md", TONE.index(word) + 4)
        assert playbook.ask("textDocument/definition", other) is None
        assert playbook.ask("textDocument/hover", other) is None


@pytest.mark.parametrize("inside", [False, True], ids=["from the document", "from the prompt"])
def test_a_rename_follows_into_a_prompt_file_of_one_document(playbook: Editor, inside: bool) -> None:
    place = playbook.open("note.playbook.md", PLAYBOOK.replace("`topic`", "`to‸pic`"))
    if inside:
        place = playbook.open("prompts/tone.md", TONE.replace("{{topic", "{{to‸pic"))
    prepared = playbook.ask("textDocument/prepareRename", place)
    assert prepared["placeholder"] == "topic"
    edited = playbook.edited(playbook.ask("textDocument/rename", {**place, "newName": "theme"}))
    assert edited == {
        "note.playbook.md": PLAYBOOK.replace("topic` ", "theme` ").replace("{{topic}}", "{{theme}}"),
        "prompts/tone.md": "Be kind about {{theme}}, not about {{others}} or topic.\n",
    }


def test_a_rename_keeps_to_the_rules_of_the_document(playbook: Editor) -> None:
    place = playbook.open("prompts/tone.md", TONE.replace("{{topic", "{{to‸pic"))
    assert playbook.refused("textDocument/rename", {**place, "newName": "two words"})["message"]


def test_a_rename_does_not_change_a_prompt_of_several_documents(playbook: Editor) -> None:
    playbook.write("other.playbook.md", PLAYBOOK)
    place = playbook.open("note.playbook.md", PLAYBOOK.replace("`topic`", "`to‸pic`"))
    error = playbook.refused("textDocument/rename", {**place, "newName": "theme"})
    assert error["message"] == (
        "prompts/tone.md names topic too, and is also a prompt of other.playbook.md: rename it there by hand"
    )
    place = playbook.open("prompts/tone.md", TONE.replace("{{topic", "{{to‸pic"))
    assert [one[0] for one in places(playbook, "definition", place)] == ["note.playbook.md", "other.playbook.md"]
    assert playbook.refused("textDocument/rename", {**place, "newName": "theme"})["message"]


def test_a_prompt_that_does_not_name_it_does_not_matter(playbook: Editor) -> None:
    playbook.write("other.playbook.md", PLAYBOOK)
    playbook.write("prompts/tone.md", "Be kind.\n")
    place = playbook.open("note.playbook.md", PLAYBOOK.replace("`topic`", "`to‸pic`"))
    edited = playbook.edited(playbook.ask("textDocument/rename", {**place, "newName": "theme"}))
    assert edited.keys() == {"note.playbook.md"}


def test_a_prompt_of_the_users_own_space_is_not_changed(playbook: Editor) -> None:
    (playbook.folder / "prompts" / "close.md").unlink()
    own = playbook.folder.parent / "home" / "prompts"
    own.mkdir(parents=True)
    (own / "close.md").write_text(CLOSE)
    place = playbook.open("note.playbook.md", PLAYBOOK.replace("output(said)", "output(sa‸id)"))
    assert len(playbook.ask("textDocument/references", {**place, "context": {}})) == 4
    error = playbook.refused("textDocument/rename", {**place, "newName": "spoken"})
    assert error["message"].endswith("is outside of this workspace: rename it there first")


def test_a_prompt_behind_a_link_that_leads_out_is_not_read(playbook: Editor) -> None:
    secret = playbook.folder.parent / "secret.md"
    secret.write_text(TONE)
    (playbook.folder / "prompts" / "tone.md").unlink()
    (playbook.folder / "prompts" / "tone.md").symlink_to(secret)
    place = playbook.open("note.playbook.md", PLAYBOOK.replace("`topic`", "`to‸pic`"))
    assert {one[0] for one in places(playbook, "references", place)} == {"note.playbook.md"}


def test_an_unsaved_prompt_counts(playbook: Editor) -> None:
    playbook.open("prompts/tone.md", "New: {{topic}}\n")
    place = playbook.open("note.playbook.md", PLAYBOOK.replace("`topic`", "`to‸pic`"))
    edited = playbook.edited(playbook.ask("textDocument/rename", {**place, "newName": "theme"}))
    assert edited["prompts/tone.md"] == "New: {{theme}}\n"


def test_stores_and_inputs_of_a_pipeline(editor: Editor) -> None:
    editor.write("talk.yaml", PIPELINE)
    editor.write("prompts/line.md", LINE)
    place = editor.open("talk.yaml", PIPELINE.replace("output: said", "output: sa‸id"))
    edited = editor.edited(editor.ask("textDocument/rename", {**place, "newName": "spoken"}))
    assert edited["prompts/line.md"] == LINE.replace("ctx.said", "ctx.spoken")
    place = editor.open("prompts/line.md", LINE.replace("{topic}, ", "{to‸pic}, "))
    assert places(editor, "definition", place) == [("talk.yaml", 3, 27)]
    edited = editor.edited(editor.ask("textDocument/rename", {**place, "newName": "theme"}))
    assert edited["prompts/line.md"] == LINE.replace("{topic}, ", "{theme}, ")
    assert "value: ctx.theme" in edited["talk.yaml"]
    at = editor.place("prompts/line.md", LINE.index("item") + 1)
    assert editor.ask("textDocument/definition", at) is None


def labels(editor: Editor, name: str, text: str) -> list[str]:
    found = editor.ask("textDocument/completion", editor.open(name, text))
    return [one["label"] for one in found["items"]] if found else []


def completed(editor: Editor, name: str, text: str, label: str) -> str:
    """Return a text after one of its completions is chosen."""
    item = editor.completions(name, text)[label]
    return apply(editor.texts[name], [item["textEdit"]])


def test_the_values_of_a_playbook_are_completed_in_its_prompts(playbook: Editor) -> None:
    assert labels(playbook, "prompts/tone.md", "Be {{‸") == ["topic"]
    assert sorted(labels(playbook, "prompts/close.md", "Close {{‸")) == ["said", "topic"]
    assert completed(playbook, "prompts/close.md", "Close {{sa‸ now", "said") == "Close {{said}} now"
    assert completed(playbook, "prompts/close.md", "Close {{sa‸}} now", "said") == "Close {{said}} now"
    assert "string" in labels(playbook, "prompts/close.md", "Close {{said:‸")


def test_a_prompt_of_several_documents_has_the_values_of_all(playbook: Editor) -> None:
    playbook.write("other.playbook.md", PLAYBOOK.replace("topic", "theme"))
    assert sorted(labels(playbook, "prompts/tone.md", "Be {{‸")) == ["theme", "topic"]


@pytest.mark.parametrize("text", ["Be ‸", "Be {‸", "{{topic}} is ‸", "# ‸", "@‸", "```‸"])
def test_nothing_else_is_completed_in_a_prompt(playbook: Editor, text: str) -> None:
    assert labels(playbook, "prompts/tone.md", text) == []


def test_nothing_is_completed_in_a_file_that_no_document_uses(playbook: Editor) -> None:
    assert labels(playbook, "prompts/other.md", "Be {{‸") == []
    assert labels(playbook, "README.md", "Be {{‸") == []


def test_the_values_of_a_pipeline_are_completed_in_its_prompts(editor: Editor) -> None:
    editor.write("pipelines/talk.yaml", PIPELINE)
    editor.write("pipelines/prompts/line.md", LINE)
    name = "pipelines/prompts/line.md"
    assert {"said", "ctx"} <= set(labels(editor, name, "Say {‸"))
    assert "said" in labels(editor, name, "Say {ctx.‸")
    assert completed(editor, name, "Say {ctx.sa‸ now", "said") == "Say {ctx.said} now"
    assert completed(editor, name, "Say {sa‸}", "said") == "Say {said}"
    assert completed(editor, name, "Say {ct‸", "ctx") == "Say {ctx"
    assert labels(editor, name, "Say {{‸") == []
