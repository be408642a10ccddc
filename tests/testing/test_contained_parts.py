"""A part that a text does not contain is shown beside the lines that are nearest to it."""

from __future__ import annotations

import pytest

from quire.formats.test.expected import Contains
from quire.testing.matchers import MOST_LINES, Scope, mismatch

PROMPT = "Results of the earlier steps:\n\nIt is green.\n\nShorten this to three words: green tea"


@pytest.mark.parametrize(
    ("seen", "part", "message", "nearest"),
    [
        ("Bread.", "Cake", '"Bread." does not contain "Cake"', None),
        (PROMPT, "three words: It is", 'it does not contain "three words: It is"', "three words: green tea"),
        (
            PROMPT,
            "the earlier steps:\n\nIt was",
            "it does not contain",
            "Results of the earlier steps:\n\nIt is green.",
        ),
        (PROMPT, "nowhere", 'it does not contain "nowhere"', None),
        ("x " * 100, "y", 'it does not contain "y"', None),
        ("a b\n" * (MOST_LINES + 1), "a c", 'it does not contain "a c"', "a b"),
    ],
)
def test_the_nearest_lines(seen: str, part: str, message: str, nearest: str | None) -> None:
    wrong = mismatch(Contains((part,)), seen, Scope({}))
    assert wrong is not None and wrong.message.startswith(message)
    assert wrong.expected == (part if nearest else None)
    assert (wrong.actual or "").endswith(nearest) if nearest else wrong.actual is None


def test_a_part_that_may_not_be_there_has_no_nearest_lines() -> None:
    wrong = mismatch(Contains(("green tea",), negated=True), PROMPT, Scope({}))
    assert wrong is not None and (wrong.message, wrong.actual) == ('it contains "green tea"', None)
