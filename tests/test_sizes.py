"""Sizes as people write them."""

from __future__ import annotations

import pytest

from quire.units import MOST, Size, size_of


@pytest.mark.parametrize(
    ("written", "size"),
    [
        (20, Size(20)),
        (0, Size(0)),
        ("20", Size(20)),
        (" 2.5 M ", Size(2_500_000)),
        ("3k", Size(3_000)),
        ("40 KB", Size(40_960, is_text=True)),
        ("40kb", Size(40_960, is_text=True)),
        ("1.0001 KB", Size(1_025, is_text=True)),
        ("0.1", Size(1)),
        ("1 GB", Size(2**30, is_text=True)),
        (MOST, Size(MOST)),
        (MOST + 1, None),
        ("999999999999999 G", None),
        (-1, None),
        ("-1", None),
        (1.5, None),
        (True, None),
        ("", None),
        ("KB", None),
        ("1e9", None),
        ("40 TB", None),
        ("40 K B", None),
        ("٣", None),
        ("1" * 10_000, None),
        (None, None),
        ([], None),
    ],
)
def test_sizes(written: object, size: Size | None) -> None:
    assert size_of(written) == size


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (Size(40_960, is_text=True), "40 KB"),
        (Size(2**21, is_text=True), "2 MB"),
        (Size(41_000, is_text=True), "41,000"),
        (Size(2**20), "1,048,576"),
        (Size(0, is_text=True), "0"),
    ],
)
def test_a_size_is_shown_as_it_was_written(size: Size, text: str) -> None:
    assert str(size) == text
