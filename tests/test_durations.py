"""Durations as people write them."""

from __future__ import annotations

import pytest

from quire.units import seconds_of


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("20ms", 0.02),
        ("30s", 30),
        ("30m", 1800),
        (" 48 h ", 172_800),
        ("7d", 604_800),
        ("0s", None),
        ("", None),
        ("10", None),
        ("1w", None),
        ("-1s", None),
        ("1h30m", None),
        ("999999999d", None),
        ("٣s", None),
    ],
)
def test_durations(text: str, seconds: float | None) -> None:
    assert seconds_of(text) == seconds
