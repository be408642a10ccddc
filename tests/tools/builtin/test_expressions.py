"""Patterns that take long on RE2 all the same: refused by their size, or ended when their time is used up."""

from __future__ import annotations

import pytest

from quire.errors import ToolFailed
from quire.tools.builtin import file_search
from quire.tools.builtin.file_search import PathPattern, compile_pattern

pytest.importorskip("re2")


@pytest.mark.parametrize("pattern", ["(?:a?){900}a{900}b", "(.{1,9}){1,100}z"])
@pytest.mark.parametrize("lines", [[b"a" * 1_000_000], [b"a" * 2000] * 500])
def test_a_slow_pattern_is_ended(pattern: str, lines: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_search, "PATTERN_SECONDS", 0.2)
    expression = compile_pattern(pattern)
    with pytest.raises(ToolFailed, match="the pattern takes too long") as failed:
        for line in lines:
            expression.search(line)
    assert failed.value.kind == "timeout"
    # The whole line would take 25 s: not so much as a tenth of it was tried.
    assert expression._searched < 100_000


def test_a_pattern_that_grows_is_refused() -> None:
    with pytest.raises(ToolFailed, match=r"too large: it has [\d,]+ steps, and 20,000 are allowed"):
        compile_pattern(r"\p{L}{300}")


@pytest.mark.parametrize(
    ("pattern", "line", "found"),
    [
        (r"\p{L}{2,10}z$", b"a" * 500_000 + b"z", True),
        (r"^b\p{L}+", b"a" * 5000 + b"b" * 5000, False),
        (r"\p{L}+9\p{L}", "ä".encode() * 4000 + b"9x", True),
    ],
)
def test_pieces_do_not_change_the_result(pattern: str, line: bytes, found: bool) -> None:
    assert (compile_pattern(pattern).search(line) is not None) is found


def test_folders_in_a_row_are_one() -> None:
    """330 of them took 5 ms for each name of a folder."""
    pattern = PathPattern("**/" * 330 + "x")
    assert len(pattern.start) == 2
    assert pattern.is_match(pattern.step(pattern.step(pattern.start, "a"), "x"))
