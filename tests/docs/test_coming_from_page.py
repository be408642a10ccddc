"""The page for users of other tools: what stands there for Quire is checked and run; each section is complete."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.docs.pages import Block, blocks, text_of
from tests.examples.command import Desk

PAGE = "docs/guides/coming-from.md"
TOOLS = ("Claude skills", "Conductor", "LangGraph", "goose", "n8n", "promptfoo")
THEIRS = blocks(PAGE, "text")
OURS = sorted((*blocks(PAGE, "markdown"), *blocks(PAGE, "yaml")), key=lambda block: block.line)
PROSE = re.sub(r"^(`{3,}).*?^\1$", "", text_of(PAGE), flags=re.MULTILINE | re.DOTALL)
SECTIONS = re.split(r"^## ", PROSE, flags=re.MULTILINE)[1:]
CAPITAL = "# Capital\n\n## INPUTS\n\n- `country` (string)\n\n## STEP 1: Name\n\nName the capital of {{country}}.\n"


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "work", tmp_path / "home")


def test_each_tool_has_a_complaint_both_examples_and_what_is_lacking() -> None:
    assert tuple(section.partition("\n")[0] for section in SECTIONS) == TOOLS
    assert len(THEIRS) == len(OURS) == len(TOOLS)
    for section in SECTIONS:
        assert section.count("**The complaint**") == section.count("**What Quire lacks**") == 1
    assert "November 2026" in text_of(PAGE)


@pytest.mark.parametrize("block", [*THEIRS, *OURS], ids=str)
def test_an_example_is_short(block: Block) -> None:
    assert len([line for line in block.text.splitlines() if line.strip()]) <= 18


@pytest.mark.parametrize("block", OURS[:-1], ids=str)
def test_our_examples_are_clean(block: Block, desk: Desk) -> None:
    name = "a.playbook.md" if block.language == "markdown" else "a.yaml"
    desk.write(name, block.text)
    done = desk.quire("check", "--strict", name)
    assert done.returncode == 0, done.stdout


def test_a_no_writes_nothing(desk: Desk) -> None:
    """The order of the first example is kept whatever the model says."""
    desk.write("note.playbook.md", OURS[0].text)
    script = desk.script({"default": "I have done all four steps."})
    run = ("run", "note.playbook.md", "-i", "changes=all", "--script", script)
    desk.fine(*run, "--answer", "2=no")
    assert not (desk.folder / "note.md").exists()
    desk.fine(*run, "--answer", "2=yes")
    assert (desk.folder / "note.md").read_text(encoding="utf-8") == "I have done all four steps."


def test_the_test_passes(desk: Desk) -> None:
    desk.write("capital.playbook.md", CAPITAL)
    desk.write("capital.test.yaml", OURS[-1].text)
    assert "2 passed" in desk.quire("test").stderr
