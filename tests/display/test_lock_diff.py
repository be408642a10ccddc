"""Differences of locks as a table of Markdown that hostile documents cannot leave, and that hides nothing wider."""

from __future__ import annotations

import pytest

from quire.analysis.lock.compare import Change
from quire.display.lock_diff import LONGEST_CELL, MOST_ROWS, diff_data, diff_lines, diff_markdown


def hiding(text: str) -> Change:
    return Change("a.yaml", "allow", "other", "allow", new=f"TA101: {text}")


@pytest.mark.parametrize(
    ("text", "never"),
    [
        ("a | b", "a | b"),
        ("<img src=x>", "<img"),
        ("`x` **b** _i_ [l](u)", "`x` **b**"),
        ("hello @octocat", "@octocat"),
        ("team @org/team", "@org"),
        ("see https://evil.example/x", "https://"),
        ("see HTTP://evil.example/x", "HTTP://"),
        ("see www.evil.example", "www.evil"),
        ("$\\color{white}{x}$", "$"),
        ("issue #12", " #12"),
        ("line\nbreak", "\nbreak"),
        ("\x1b[31m red \u202e", "\x1b"),
    ],
)
def test_texts_of_documents_are_shown_and_do_nothing(text: str, never: str) -> None:
    table = diff_markdown([hiding(text)], {})
    assert never not in table
    assert table.count("\n") == 3
    (line,) = list(diff_lines([hiding(text)], {}))[1:]
    assert "\n" not in line and "\x1b" not in line


def test_wider_differences_come_first_and_the_others_are_counted() -> None:
    flows = [Change("a.yaml", "flow", "narrower", "flow", old=f"{at} {'x' * 90}") for at in range(100)]
    table = diff_markdown([*flows, Change("a.yaml", "gate", "wider", "4 x", "2 confirm", "none")], {})
    row = table.splitlines()[2]
    assert row.startswith("| a.yaml | **+ question before 4 x: 2 confirm → none** · ")
    assert row.endswith("more, none wider** |") and len(row) < LONGEST_CELL + 1_000


def test_one_long_difference_is_cut_and_the_next_is_still_told() -> None:
    changes = [Change("a.yaml", "flow", "wider", "flow", new="x" * 50_000)]
    changes += [Change("a.yaml", "flow", "wider", "flow", new="short")]
    table = diff_markdown(changes, {})
    assert "flow short" in table and len(table) < LONGEST_CELL


def test_documents_that_are_wider_come_before_many_others() -> None:
    other = [Change(f"{at:04}.yaml", "plan", "other", "plan", "a", "b") for at in range(MOST_ROWS + 5)]
    lines = diff_markdown([*other, Change("z.yaml", "asks", "wider", "server", new="s")], {}).splitlines()
    assert lines[2] == "| z.yaml | **+ uses the server s** |"
    assert lines[-1] == "| … | 6 more, none wider |"
    assert diff_data(other, {})["wider"] is False
