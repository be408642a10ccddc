"""The output of a run as a terminal shows it."""

from __future__ import annotations

import re

import pytest

from quire.display.text import rendered

ANSI = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.parametrize("kind", ["markdown", ""])
def test_markdown_is_rendered(kind: str) -> None:
    shown = ANSI.sub("", rendered("# Title\n\nSome **bold** words.\n\n- one\n- two\n", kind, 40))
    assert "Title" in shown and "# Title" not in shown
    assert "Some bold words." in shown and "**" not in shown and "• one" in shown


def test_other_texts_are_broken_between_words() -> None:
    assert rendered("a poem\nin lines\n\nand more", "", 40) == "a poem\nin lines\n\nand more"
    shown = rendered("word " * 30, "", 22)
    assert all(set(line.split(" ")) <= {"word"} for line in shown.split("\n"))
    assert rendered("x * 2 = *y", "text", 40) == "x * 2 = *y"


def test_data_stays_as_it_is() -> None:
    line = '{"a": "' + "x " * 50 + '"}'
    assert rendered(line, "json", 20) == line


def test_no_text_drives_the_terminal() -> None:
    shown = rendered("# T\n\n\x1b]0;owned\x07\x1b[2J [red]x[/red]", "markdown", 60)
    assert "\x1b]0" not in shown and "\x1b[2J" not in shown and "[red]x[/red]" in shown
