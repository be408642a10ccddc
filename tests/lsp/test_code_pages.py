"""The page about a code, which editors open when the code of a finding is clicked."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from tests.lsp.editor import CAPABILITIES, PULLING, Editor

from quire.library.check import all_codes
from quire.lsp import wire
from quire.lsp.wire import code_address

BAD = "# Note\n\n## STEP 1: Say\n\nSay {{name}}.\n"
LINKING = {**CAPABILITIES, "textDocument": {"publishDiagnostics": {"codeDescriptionSupport": True}}}


def test_every_code_has_a_line_on_a_page_that_comes_with_the_package() -> None:
    for code in all_codes():
        address = urlsplit(code_address(code.id))
        assert address.scheme == "file"
        lines = Path(unquote(address.path)).read_text().split("\n")
        assert lines[int(address.fragment.removeprefix("L")) - 1] == f"### {code.id} {code.name}"
    assert code_address("PB999") == ""


def test_a_finding_has_the_address_of_its_code(editor: Editor) -> None:
    linking = Editor(editor.folder, LINKING)
    linking.open("a.playbook.md", BAD)
    (finding,) = linking.findings("a.playbook.md")
    assert finding["codeDescription"] == {"href": code_address(finding["code"])}


def test_a_finding_that_is_asked_for_has_it_too(editor: Editor) -> None:
    said = {**PULLING["textDocument"], "publishDiagnostics": {"codeDescriptionSupport": True}}
    pulling = Editor(editor.folder, {**PULLING, "textDocument": said})
    where = pulling.open("a.playbook.md", BAD)["textDocument"]
    (finding,) = pulling.ask("textDocument/diagnostic", {"textDocument": where})["items"]
    assert finding["codeDescription"] == {"href": code_address(finding["code"])}


def test_an_editor_that_does_not_know_it_gets_none(editor: Editor) -> None:
    editor.open("a.playbook.md", BAD)
    (finding,) = editor.findings("a.playbook.md")
    assert "codeDescription" not in finding


def test_without_the_page_a_finding_has_no_address(
    editor: Editor, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(wire, "CODES", tmp_path / "codes")
    wire._page.cache_clear()
    linking = Editor(editor.folder, LINKING)
    linking.open("a.playbook.md", BAD)
    (finding,) = linking.findings("a.playbook.md")
    wire._page.cache_clear()
    assert finding["code"] and "codeDescription" not in finding
