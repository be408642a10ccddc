"""Proven bounds of the examples are close to what can happen: at most 1.5 times the worst run that is found."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.analysis.worst_cases import EXAMPLES, opened, worst_run

CLOSE = 1.5
FILES = sorted(EXAMPLES.rglob("*.test.yaml"))


@pytest.mark.parametrize("path", FILES, ids=[path.name.removesuffix(".test.yaml") for path in FILES])
def test_the_worst_run_comes_close_to_what_is_proven(path: Path) -> None:
    found = opened(path)
    assert found is not None, "it has no case, or its document cannot be read"
    worst = worst_run(*found, seeds=6, enough=CLOSE)
    if worst.proven.as_number is None:
        return  # a size is left, or nothing bounds it
    assert worst.ratio is not None
    assert 1.0 <= worst.ratio <= CLOSE, f"{worst.proven} model calls are proven, and {worst.seen} are the most seen"


def test_examples_of_all_formats_are_among_them() -> None:
    assert len(FILES) > 35
