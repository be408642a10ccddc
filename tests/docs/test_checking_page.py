"""The page about checking: its example prints what it shows, its comment hides, and its tables are complete."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.docs.pages import blocks, text_of

from quire.cli.check import command
from quire.display.diagnostics import FORMATS
from quire.library.check import all_codes

PAGE = "docs/guides/checking.md"


@pytest.fixture
def document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("quire.toml").touch()
    Path("digest.yaml").write_text(blocks(PAGE, "yaml")[0].text)
    return Path("digest.yaml")


def test_the_example_prints_what_the_page_shows(document: Path) -> None:
    printed = CliRunner().invoke(command, ["digest.yaml"]).stdout
    (shown,) = (block.text for block in blocks(PAGE, "console") if block.text.startswith("$ quire check digest.yaml\n"))
    assert printed.rstrip("\n") == shown.partition("\n")[2].rstrip("\n")


def test_the_comment_of_the_page_hides_the_finding(document: Path) -> None:
    whole, noted = (block.text for block in blocks(PAGE, "yaml"))
    step = noted.partition("\n")[2]
    assert step in whole
    document.write_text(whole.replace(step, noted))
    output = CliRunner().invoke(command, ["digest.yaml", "--json"])
    assert json.loads(output.stdout) == []
    assert "(1 allowed by comments)" in output.stderr


def test_the_codes_of_the_page_exist() -> None:
    anchors = set(re.findall(r"codes/AL\.md#([a-z0-9-]+)", text_of(PAGE)))
    assert anchors == {f"{code.id}-{code.name}".lower() for code in all_codes() if code.id.startswith("AL")}


def test_the_tables_are_complete(document: Path) -> None:
    rows = [re.findall(r"`(\w+)`", row) for row in re.findall(r"^\| (`[^|]*) \|", text_of(PAGE), re.MULTILINE)]
    words = [word for row in rows for word in row]
    (found,) = json.loads(CliRunner().invoke(command, ["digest.yaml", "--json"]).stdout)
    assert set(found) <= set(words)
    assert set(FORMATS) <= set(words)
