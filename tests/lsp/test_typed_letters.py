"""Letters that were typed, and the completions that an editor keeps."""

from __future__ import annotations

import pytest

from quire.lsp.answers import fits_typed


@pytest.mark.parametrize(
    ("typed", "label", "is_kept"),
    [
        ("", "anything", True),
        ("sum", "summary", True),
        ("SUM", "summary", True),
        ("smy", "summary", True),
        ("sy", "summary of\nyears", True),
        ("mus", "summary", False),
        ("summaryx", "summary", False),
        ("a.b", "a.b", True),
        ("a.b", "axb", False),
        ("]^-\\", "a]b^c-d\\", True),
        ("aa", "a", False),
    ],
)
def test_letters_are_kept_in_their_order(typed: str, label: str, is_kept: bool) -> None:
    assert bool(fits_typed(typed)(label)) is is_kept


def test_many_letters_take_linear_time() -> None:
    assert not fits_typed("a" * 60 + "b")("a" * 20_000)
