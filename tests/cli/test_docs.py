"""`quire docs`: the pages that come with the package."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.docs.pages import ROOT

from quire.cli import docs, main
from quire.library.check import all_codes


def test_without_an_argument_all_pages_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs"]) == 0
    listed = {line.split()[0] for line in capsys.readouterr().out.splitlines()}
    assert {"index", "reference/test-files", "start/which-format"} <= listed
    assert len(listed) == len(list((ROOT / "docs").rglob("*.md")))


@pytest.mark.parametrize("name", ["test-files", "reference/test-files", "reference/test-files.md"])
def test_a_page_is_printed(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert main(["docs", name]) == 0
    assert capsys.readouterr().out == (ROOT / "docs/reference/test-files.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["PB106", "pb106", "TS150", "RC101"])
def test_the_entry_of_a_code_is_printed(capsys: pytest.CaptureFixture[str], name: str) -> None:
    code = next(code for code in all_codes() if code.id == name.upper())
    assert main(["docs", name]) == 0
    assert capsys.readouterr().out == f"### {code.id} {code.name}\n\n{code.explanation}\n"


def test_a_page_of_codes_is_printed_by_its_prefix(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs", "PB"]) == 0
    assert capsys.readouterr().out == (ROOT / "docs/reference/codes/PB.md").read_text(encoding="utf-8")


def test_words_are_searched_in_paragraphs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.md").write_text("# A page\n\nTea is hot.\n\n## Deep\n\nHot\nCOCOA too.\n", encoding="utf-8")
    monkeypatch.setattr(docs, "docs_folder", lambda: tmp_path)
    assert main(["docs", "hot", "cocoa"]) == 0
    assert capsys.readouterr().out == "a · Deep: Hot COCOA too.\n"


def test_a_near_name_is_offered(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs", "test-fils"]) == 2
    assert capsys.readouterr().err == "quire: no page has 'test-fils'; did you mean quire docs test-files?\n"


@pytest.mark.parametrize("name", ["/etc/passwd", "../../pyproject.toml"])
def test_only_pages_are_read(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert main(["docs", name]) == 2
    assert capsys.readouterr().out == ""


def test_without_pages_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(docs, "docs_folder", lambda: tmp_path)
    assert main(["docs"]) == 2
    assert "not installed" in capsys.readouterr().err
