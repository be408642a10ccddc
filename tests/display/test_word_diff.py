"""Word differences as people read them: marks, colours, folded lines, nothing that a terminal obeys."""

from __future__ import annotations

import click
import pytest

from quire.display.why import word_diff

_LINES = [f"line {number}" for number in range(30)]


@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        ("the same", "the same", []),
        ("Write one line.", "Write two lines.", ["Write [-one line-]{+two lines+}."]),
        ("a\nb", "a b", ["a[-↵-]", "{+ +}b"]),
        ("a b", "a\nb", ["a[- -]{+↵+}", "b"]),
        ("x\n\ny", "x\ny", ["x", "[-↵-]", "y"]),
        ("one\ntwo\nthree", "one\nthree", ["one", "[-two-]", "three"]),
        ("one\nthree", "one\ntwo\nthree", ["one", "{+two+}", "three"]),
        (
            "\n".join(_LINES),
            "\n".join([*_LINES[:10], "LINE TEN", *_LINES[11:]]),
            ["… 9 unchanged lines", "line 9", "[-line 10-]", "{+LINE TEN+}", "line 11", "… 18 unchanged lines"],
        ),
        ("1\n2\n3\n4", "1\n2\n3\n5", ["… 2 unchanged lines", "3", "[-4-]{+5+}"]),
        ("2\n3\n4", "2\n3\n5", ["2", "3", "[-4-]{+5+}"]),
    ],
)
def test_marked_lines(old: str, new: str, shown: list[str]) -> None:
    assert word_diff(old, new) == shown


def test_colours_take_the_place_of_marks() -> None:
    assert word_diff("Say one.", "Say two.", colour=True) == [
        f"Say {click.style('one', fg='red')}{click.style('two', fg='green')}."
    ]
    assert word_diff("a b", "a  b", colour=True) == [f"a{click.style(' ', bg='red')}{click.style('  ', bg='green')}b"]


@pytest.mark.parametrize("colour", [True, False])
def test_nothing_of_the_texts_reaches_the_terminal_unchanged(colour: bool) -> None:
    hostile = "\x1b]0;title\x07 \u202e evil \r over\x9b2J"
    shown = "\n".join(word_diff(f"a {hostile} b", f"a {hostile} {hostile} c", colour=colour))
    plain = click.unstyle(shown)
    assert plain.replace("\n", "").isprintable()
    assert "title" in plain


def test_long_lines_and_long_differences_are_cut() -> None:
    around = "same words " * 100
    (line,) = word_diff(f"{around}old{around}", f"{around}new{around}")
    assert len(line) < 200
    assert "[-" in line and "{+" in line and " … " in line
    (line,) = word_diff("", "new " * 1000)
    assert line.endswith("… (3,600 more characters)+}")
    many = "\n".join(_LINES * 10)
    shown = word_diff("", many, most=5)
    assert (len(shown), shown[-1]) == (5, "… 296 more lines")
