"""Places of findings in a text that has changed since."""

from __future__ import annotations

import pytest

from quire.lsp.findings import TextMove
from quire.source import Span

OLD = "one\ntwo here\nthree\ntwo here\nfour\n"


@pytest.mark.parametrize(
    ("new", "old_word", "new_word"),
    [
        (f"# new\n{OLD}", "here", "here"),
        (OLD + "five\n", "here", "here"),
        (OLD.replace("one", "oxne"), "here", "here"),
        (OLD.replace("here", "hexre", 1), "here", "hexre"),
        (OLD.replace("one\n", ""), "here", "here"),
        (f"# new\n{OLD}five\n", "here", "here"),
        (f"# new\n{OLD}five\n", "four", "four"),
        (f"0\n{OLD.replace('three', '3')}5\n", "four", "four"),
        ("# new\nfour\nfive\n", "one", None),
        (OLD, "three", "three"),
        ("", "three", None),
    ],
)
def test_a_place_is_found_again(new: str, old_word: str, new_word: str | None) -> None:
    at = OLD.index(old_word)
    found = TextMove(OLD, new).place(Span(at, at + len(old_word)))
    assert (None if found is None else new[found.start : found.end]) == new_word


def test_equal_lines_keep_their_order() -> None:
    new = f"0\n{OLD}5\n"
    move = TextMove(OLD, new)
    first, second = OLD.index("here"), OLD.rindex("here")
    assert move.place(Span(first, first + 4)) == Span(new.index("here"), new.index("here") + 4)
    found = move.place(Span(second, second + 4))
    assert found == Span(new.rindex("here"), new.rindex("here") + 4)
    assert move.place(Span(first, first + 4)) == Span(new.index("here"), new.index("here") + 4)
