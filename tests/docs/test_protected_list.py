"""The page shows the list of protected places that the tools have."""

from __future__ import annotations

from pathlib import Path

import pytest

from quire.plan.tool_details import HARMLESS
from quire.tools.builtin.paths import ASKING, CLOSED, DOCUMENT_FOLDERS, Row

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "protected-places.md"


def table(first: str) -> list[str]:
    lines = PAGE.read_text().splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(first)) + 2
    return lines[start : next(number for number in range(start, len(lines)) if not lines[number])]


def shown(row: Row) -> str:
    return f"| {', '.join(f'`{name}`' for name in row.names)} | {row.why} |"


@pytest.mark.parametrize(
    ("first", "rows", "more"), [("| closed |", CLOSED, 4), ("| asks, in every folder |", ASKING, 0)]
)
def test_the_tables_are_those_of_the_code(first: str, rows: tuple[Row, ...], more: int) -> None:
    found = table(first)
    assert found[: len(rows)] == [shown(row) for row in rows]
    assert len(found) == len(rows) + more


def test_folders_of_documents_are_named() -> None:
    page = PAGE.read_text()
    assert all(f"`{name}/`" in page for name in DOCUMENT_FOLDERS)


def test_programs_without_words_in_the_lock_are_named() -> None:
    page = " ".join((PAGE.parents[1] / "guides" / "lock.md").read_text().split())
    listed = page.partition("because they do neither:")[2].partition(". ")[0]
    assert [name.strip("` ") for name in listed.split(",")] == sorted(HARMLESS)
