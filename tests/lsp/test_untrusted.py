"""Folders that the user does not trust, and mistakes of ours: neither ends the session."""

from __future__ import annotations

import os

import pytest
from tests.lsp.editor import CAPABILITIES, PULLING, Editor

BAD = "# Note\n\n## STEP 1: Say\n\nSay {{name}}.\n"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("name", ["quire.toml", ".quire", ""])
def test_a_workspace_of_another_account_is_not_read(editor: Editor, name: str) -> None:
    """The documents are checked as if they stood alone, and nothing of the workspace is believed."""
    (editor.folder / ".quire").mkdir()
    (editor.folder / "quire.toml").write_text('[models]\ndefault = "http://example.org/x"\n')
    editor.write("other.playbook.md", BAD)
    os.chown(editor.folder / name, 12345, 12345)
    fresh = Editor(editor.folder)
    place = fresh.open("a.playbook.md", BAD)
    assert fresh.codes("a.playbook.md") == ["PB201"]
    assert fresh.ask("textDocument/codeLens", {"textDocument": place["textDocument"]})
    assert fresh.ask("textDocument/documentSymbol", {"textDocument": place["textDocument"]})
    assert "example.org" not in str(fresh.ask("textDocument/hover", fresh.place("a.playbook.md", BAD.index("STEP"))))
    view = fresh.session.desk.view(fresh.uri("a.playbook.md"))
    assert view is not None and view.folder.settings is None
    assert [one for one in fresh.messages if one["method"] == "window/logMessage"] == []


@pytest.mark.parametrize("capabilities", [CAPABILITIES, PULLING], ids=["told", "asked"])
def test_a_check_that_fails_does_not_end_the_session(
    editor: Editor, monkeypatch: pytest.MonkeyPatch, capabilities: dict[str, object]
) -> None:
    fresh = Editor(editor.folder, capabilities)
    where = {"textDocument": fresh.open("a.playbook.md", BAD)["textDocument"]}
    fresh.pause()

    def fail(view: object) -> None:
        raise ZeroDivisionError("a mistake of a rule")

    with monkeypatch.context() as patch:
        patch.setattr("quire.lsp.checks.quick_findings", fail)
        fresh.type("a.playbook.md", len(BAD), "More.\n")
        if capabilities is PULLING:
            assert fresh.ask("textDocument/diagnostic", where)["kind"] == "full"
        fresh.pause()
    told = [one["params"]["message"] for one in fresh.messages if one["method"] == "window/logMessage"]
    assert len(told) == 1 and "ZeroDivisionError: a mistake of a rule" in told[0]
    fresh.type("a.playbook.md", 0, "\n")
    if capabilities is PULLING:
        assert [one["code"] for one in fresh.ask("textDocument/diagnostic", where)["items"]] == ["PB201"]
    else:
        assert fresh.codes("a.playbook.md") == ["PB201"]
