"""Codes of tests are stable, say how severe they are, and have pages."""

from __future__ import annotations

import re

import pytest
from tests.formats.test.readings import reading_of

from quire.diagnostics import Code, Severity
from quire.formats import all_codes
from quire.formats.test.codes import codes

NOT_ERRORS = {
    "TS112": Severity.LINT,
    "TS133": Severity.WARNING,
    "TS150": Severity.WARNING,
    "TS151": Severity.NOTE,
    "TS152": Severity.WARNING,
}


def test_ids_and_names_are_unique_and_listed() -> None:
    ours = codes()
    assert [code.id for code in ours] == sorted({code.id for code in ours})
    assert set(ours) <= set(all_codes())
    assert len({code.name for code in all_codes()}) == len({code.id for code in all_codes()}) == len(all_codes())


@pytest.mark.parametrize("code", codes(), ids=lambda code: code.id)
def test_severity_and_page(code: Code) -> None:
    assert re.fullmatch(r"TS[01]\d\d", code.id)
    assert code.severity is NOT_ERRORS.get(code.id, Severity.ERROR)
    assert "Wrong:" in code.explanation and "Right:" in code.explanation


READ = ("TS001", "TS002", "TS004", "TS010", "TS012")
"""Codes that the reader finds; the others need the document, its folder or a run."""


@pytest.mark.parametrize("code", [code for code in codes() if code.id < "TS100"], ids=lambda code: code.id)
def test_examples_of_pages_are_true(code: Code) -> None:
    wrong, right = examples(code)
    found = {one.code.id for one in reading_of(wrong).diagnostics}
    assert (code.id in found) is (code.id in READ) and reading_of(right).diagnostics == ()


def examples(code: Code) -> list[str]:
    pages = code.explanation.split("Wrong:\n\n")[1].split("\n\nRight:\n\n")
    return ["\n".join(line[4:] for line in page.split("\n")) for page in pages]
