"""Hints, lenses and colours that depend on another document: they are asked for again once it has changed."""

from __future__ import annotations

import pytest
from tests.lsp.editor import CAPABILITIES, Editor
from tests.lsp.test.test_test_results import labels as hints

PARTS = ("inlayHint", "codeLens", "semanticTokens")
REFRESHING = {
    **CAPABILITIES,
    "workspace": {**CAPABILITIES["workspace"], **{part: {"refreshSupport": True} for part in PARTS}},
}
CALLEE = """\
pipeline: callee
dialect: quire
input:
  text: {type: string}
steps:
  - transform: {value: "ctx.text", output: said}
"""
CALLER = "pipeline: caller\nsteps:\n  - call: {pipeline: callee, pass: [text], output: best}\n"


@pytest.fixture
def refreshing(editor: Editor) -> Editor:
    fresh = Editor(editor.folder, REFRESHING)
    for name, text in (("callee", CALLEE), ("caller", CALLER)):
        fresh.write(f"pipelines/{name}.yaml", text)
        fresh.open(f"pipelines/{name}.yaml", text)
    fresh.pause()
    return fresh


def asked(editor: Editor) -> list[str]:
    return [one["method"] for one in editor.messages if one["method"].endswith("/refresh")]


def test_a_change_of_a_callee_refreshes_the_hints_of_its_callers(refreshing: Editor) -> None:
    assert ": string" in hints(refreshing, "pipelines/caller.yaml")
    refreshing.type("pipelines/callee.yaml", CALLEE.index("string"), "bool", len("string"))
    assert asked(refreshing) == []
    refreshing.pause()
    assert asked(refreshing) == [f"workspace/{part}/refresh" for part in PARTS]
    assert ": bool" in hints(refreshing, "pipelines/caller.yaml")


def test_it_waits_until_the_user_pauses(refreshing: Editor) -> None:
    for _ in range(5):
        refreshing.type("pipelines/callee.yaml", 0, "#\n")
        refreshing.pause(0.3)
    assert asked(refreshing) == []
    refreshing.pause()
    assert len(asked(refreshing)) == len(PARTS)
    refreshing.pause()
    assert len(asked(refreshing)) == len(PARTS)


def test_a_file_on_disk_counts_too(refreshing: Editor) -> None:
    refreshing.tell("workspace/didChangeWatchedFiles", {"changes": []})
    refreshing.pause()
    assert len(asked(refreshing)) == len(PARTS)


def test_a_document_alone_and_an_editor_that_cannot_are_not_asked(editor: Editor, refreshing: Editor) -> None:
    refreshing.tell("textDocument/didClose", {"textDocument": {"uri": refreshing.uri("pipelines/caller.yaml")}})
    refreshing.type("pipelines/callee.yaml", 0, "#\n")
    refreshing.pause()
    assert asked(refreshing) == []
    for name in ("a", "b"):
        editor.open(f"pipelines/{name}.yaml", CALLEE)
    editor.type("pipelines/a.yaml", 0, "#\n")
    editor.pause()
    assert asked(editor) == []
