"""The page on testing is followed to the letter: its files are written, its commands run, its outputs compared."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from tests.docs.pages import blocks, text_of
from tests.given import given

from quire.cli import main
from quire.display.test_report import summary_data
from quire.testing.case_results import Totals

PAGE = "docs/guides/testing.md"
DOCUMENT = blocks(PAGE, "markdown")[0].text
FIRST, PROMPTS, SECOND, ASKED = (block.text for block in blocks(PAGE, "yaml"))


@pytest.fixture
def folder(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("CI", raising=False)
    return given({"tea.playbook.md": DOCUMENT}, here)


def test_the_page_is_followed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document, test = folder / "tea.playbook.md", folder / "tea.test.yaml"
    shown = [block.text for block in blocks(PAGE, "console") if not block.text.startswith("$ quire test   ")]

    def next_command(code: int) -> None:
        line, _, expected = shown.pop(0).partition("\n")
        assert main(shlex.split(line.removeprefix("$ "))[1:]) == code
        said = capsys.readouterr()
        assert _timeless(said.out + said.err) == _timeless(expected)

    assert main(["check", "--strict", "tea.playbook.md"]) == 0  # it cannot see the mistake
    capsys.readouterr()
    test.write_text(FIRST)
    next_command(0)
    test.write_text(FIRST + PROMPTS)
    next_command(1)
    document.write_text(DOCUMENT.replace("three words: {{kind}}", "three words: {{praise}}"))
    next_command(0)
    next_command(0)
    test.write_text(FIRST + PROMPTS + SECOND)
    next_command(0)
    test.write_text(FIRST + ASKED + PROMPTS + SECOND)
    next_command(0)
    assert shown == ["$ pytest examples/\n"]


def _timeless(text: str) -> str:
    return re.sub(r"\(\d+\.\d\d s\)", "(… s)", text).rstrip("\n")


@pytest.mark.parametrize(
    "command",
    [line[2:].split("  #")[0] for line in blocks(PAGE, "console")[-2].text.splitlines() if "--watch" not in line],
)
def test_the_commands_run(folder: Path, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "tea.playbook.md").write_text(DOCUMENT.replace("three words: {{kind}}", "three words: {{praise}}"))
    tagged = SECOND.replace("    answers", "    tags: [slow]\n    answers")
    (folder / "tea.test.yaml").write_text(FIRST + PROMPTS + tagged)
    assert main(shlex.split(command)[1:]) == 0


def test_the_keys_of_json_are_those_of_the_page(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "tea.test.yaml").write_text(FIRST + PROMPTS)
    main(["test", "--json"])
    listed = {
        kind: set(re.findall(r"`(\w+)`", keys))
        for kind, keys in re.findall(r"^\| `(file|case|summary)` \| (.*) \|$", text_of(PAGE), re.MULTILINE)
    }
    objects = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {one["type"]: set(one) - {"type"} for one in objects} == listed
    assert set(summary_data(Totals())) - {"type"} == listed["summary"]
