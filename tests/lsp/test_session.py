"""The life of a session, its texts, and its findings."""

from __future__ import annotations

from tests.lsp.editor import Editor

GOOD = "# Note\n\n## STEP 1: Say\n\nSay something.\n"


def test_findings_come_and_go_with_the_text(editor: Editor) -> None:
    editor.open("note.playbook.md", GOOD.replace("something", "{{name}}"))
    assert editor.codes("note.playbook.md") != []
    editor.replace("note.playbook.md", GOOD)
    assert editor.codes("note.playbook.md") == []
