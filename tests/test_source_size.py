"""The size of a source is that of its stored bytes, however much normalising takes away."""

from __future__ import annotations

import pytest

from quire.source import Source


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("", 0),
        ("abc\n", 4),
        ("ä€😀", 9),
        ("\ufeffa", 4),
        ("a\r\nb\r", 5),
        ("ä\r\n", 4),
        ("\ud800", 3),
    ],
)
def test_size_and_limit(text: str, size: int) -> None:
    source = Source.of(text)
    assert source.size == size == len(text.encode("utf-8", "surrogatepass"))
    assert not source.exceeds(size)
    assert source.exceeds(size - 1)
