"""No sentence of the charter without its test."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "internals/guarantees.md").read_text(encoding="utf-8")
ROWS = [
    line
    for line in PAGE.splitlines()
    if line.startswith("| ") and not line.startswith(("| ---", "| what", "| promise"))
]
NAMED = sorted(set(re.findall(r"`(tests/[\w/.]+)::(\w+)`", PAGE)))


def test_every_sentence_has_a_test() -> None:
    assert len(ROWS) > 20
    assert [row for row in ROWS if "::test_" not in row] == []


@pytest.mark.parametrize(("file", "test"), NAMED)
def test_every_test_that_is_named_exists(file: str, test: str) -> None:
    found = ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8")))
    assert test in {one.name for one in found if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)}
