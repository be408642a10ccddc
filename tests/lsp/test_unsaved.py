"""Which documents are found beside the open one: those that were never saved too, and never those of a whole disk."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.lsp.editor import Editor

from quire.lsp.desk import uri_of

CALLEE = """\
# Note

## INPUTS

- `topic` (string): The topic.

## STEP 1: Say

Say {{topic}}.
"""
CALLER = '# Caller\n\n## STEP 1: Call\n\n@tool(quire, note, {"topic": "x"})\n'
TEST = "document: note.playbook.md\ncases:\n  - name: one\n    inputs: {topic: x}\n    expect: {status: completed}\n"


def test_a_rename_reaches_a_caller_that_was_never_saved(editor: Editor) -> None:
    editor.write("playbooks/note.playbook.md", CALLEE)
    editor.open("caller.playbook.md", CALLER)
    place = editor.open("playbooks/note.playbook.md", CALLEE.replace("{{topic}}", "{{to‸pic}}"))
    edited = editor.edited(editor.ask("textDocument/rename", {**place, "newName": "theme"}))
    assert '{"theme": "x"}' in edited["caller.playbook.md"]
    uris = {one["uri"] for one in editor.ask("textDocument/references", {**place, "context": {}})}
    assert editor.uri("caller.playbook.md") in uris


def test_a_rename_reaches_a_test_that_was_never_saved(editor: Editor) -> None:
    editor.write("note.playbook.md", CALLEE)
    editor.open("note.test.yaml", TEST)
    place = editor.open("note.playbook.md", CALLEE.replace("{{topic}}", "{{to‸pic}}"))
    edited = editor.edited(editor.ask("textDocument/rename", {**place, "newName": "theme"}))
    assert "inputs: {theme: x}" in edited["note.test.yaml"]


def test_a_prompt_file_that_was_never_saved_is_not_missing(editor: Editor) -> None:
    editor.open("note.playbook.md", "# Note\n\n## STEP 1: Say\n\n@prompt(file:parts/tone.md)\n\nSay it.\n")
    assert editor.codes("note.playbook.md") == ["PB223"]
    editor.open("parts/tone.md", "Speak plainly.\n")
    editor.pause()
    assert editor.codes("note.playbook.md") == []
    editor.tell("textDocument/didClose", {"textDocument": {"uri": editor.uri("parts/tone.md")}})
    editor.pause()
    assert editor.codes("note.playbook.md") == ["PB223"]


def test_the_parts_of_an_unsaved_document_are_found_once(editor: Editor) -> None:
    editor.open("note.playbook.md", CALLEE)
    assert [one["name"] for one in editor.ask("workspace/symbol", {"query": "Say"})] == ["STEP 1: Say"]
    editor.write("note.playbook.md", CALLEE)
    editor.tell("textDocument/didSave", {"textDocument": {"uri": editor.uri("note.playbook.md")}})
    assert [one["name"] for one in editor.ask("workspace/symbol", {"query": "Say"})] == ["STEP 1: Say"]


def test_a_file_that_is_not_a_document_is_not_among_them(editor: Editor) -> None:
    editor.open("README.md", "Say {{topic}}.\n")
    place = editor.open("note.playbook.md", CALLEE.replace("{{topic}}", "{{to‸pic}}"))
    edited = editor.edited(editor.ask("textDocument/rename", {**place, "newName": "theme"}))
    assert edited.keys() == {"note.playbook.md"}


def test_a_folder_that_is_not_a_workspace_is_not_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A document that is opened alone may stand in a home, or at the top of a disk."""
    monkeypatch.setenv("QUIRE_HOME", str(tmp_path / "home"))
    alone, root = tmp_path / "alone", tmp_path / "root"
    for folder in (alone, root):
        (folder / "below").mkdir(parents=True)
        (folder / "below" / "other.playbook.md").write_text(CALLEE)
    editor = Editor(root)
    editor.open("note.playbook.md", CALLEE)
    item = {"uri": uri_of(str(alone / "a.playbook.md")), "languageId": "", "version": 1, "text": CALLEE}
    editor.tell("textDocument/didOpen", {"textDocument": item})
    found = [one["location"]["uri"] for one in editor.ask("workspace/symbol", {"query": "Say"})]
    assert sorted(uri.removeprefix(uri_of(str(tmp_path))) for uri in found) == [
        *("/alone/a.playbook.md", "/root/below/other.playbook.md", "/root/note.playbook.md"),
    ]
    monkeypatch.setattr(Path, "home", lambda: root)
    editor.type("note.playbook.md", len(CALLEE), "\n")
    found = [one["location"]["uri"] for one in editor.ask("workspace/symbol", {"query": "Say"})]
    assert not any("below" in uri for uri in found)


PIPELINE = """\
pipeline: note
dialect: quire
input: {topic: {type: string}}
steps:
  - agent: {prompt: 'Say {topic}.'}
"""
DIRECTIVE = """\
# Note

```xml
<directive name="note" version="1.0.0">
  <metadata><description>x</description></metadata>
  <inputs><input name="topic" type="string" required="true">x</input></inputs>
</directive>
```

Say {input:topic}.
"""
CALLEES = {
    "playbook": ("note.playbook.md", CALLEE),
    "playbook in its folder": ("playbooks/note.playbook.md", CALLEE),
    "pipeline": ("pipelines/note.yaml", PIPELINE),
    "directive": (".ai/directives/note.md", DIRECTIVE),
}


@pytest.mark.parametrize("name, text", CALLEES.values(), ids=CALLEES)
def test_a_callee_that_was_never_saved_is_called(editor: Editor, name: str, text: str) -> None:
    editor.write("quire.toml", "")
    place = editor.open("caller.playbook.md", CALLER.replace("note", "no‸te"))
    assert editor.codes("caller.playbook.md") == ["PB225"]
    editor.open(name, text)
    assert editor.codes("caller.playbook.md") == []
    assert [one["uri"] for one in editor.ask("textDocument/definition", place)] == [editor.uri(name)]
    editor.replace(name, text.replace("topic", "theme"))
    assert editor.codes("caller.playbook.md")
    editor.tell("textDocument/didClose", {"textDocument": {"uri": editor.uri(name)}})
    assert editor.codes("caller.playbook.md") == ["PB225"]


@pytest.mark.parametrize("name, text", CALLEES.values(), ids=CALLEES)
def test_a_callee_that_was_never_saved_is_offered(editor: Editor, name: str, text: str) -> None:
    editor.write("quire.toml", "")
    editor.open(name, text)
    assert "note" in editor.completions("caller.playbook.md", "# C\n\n## STEP 1: A\n\n@tool(quire, ‸\n")


def test_a_callee_that_was_never_saved_is_found_once(editor: Editor) -> None:
    """The same file, saved and still open, does not claim its name twice."""
    editor.write("quire.toml", "")
    for name, text in (CALLEES["pipeline"], CALLEES["directive"]):
        editor.open("caller.playbook.md", CALLER)
        editor.open(name, text)
        editor.write(name, text)
        editor.tell("textDocument/didSave", {"textDocument": {"uri": editor.uri(name)}})
        assert editor.codes("caller.playbook.md") == []
        (editor.folder / name).unlink()
        editor.tell("textDocument/didClose", {"textDocument": {"uri": editor.uri(name)}})


def test_a_hidden_file_that_was_never_saved_is_not_called(editor: Editor) -> None:
    editor.write("quire.toml", "")
    editor.open("caller.playbook.md", CALLER)
    editor.open("playbooks/.drafts/note.playbook.md", CALLEE)
    assert editor.codes("caller.playbook.md") == ["PB225"]
