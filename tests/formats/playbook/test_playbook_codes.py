"""Codes are stable, explained, listed in the docs, and all of them can really be found."""

from __future__ import annotations

import re
from pathlib import Path

from tests.docs.codes_page import codes_pages

from quire.diagnostics import Severity
from quire.formats import all_codes
from quire.formats.playbook.codes import codes

ROOT = Path(__file__).parents[3]
FIRST = {Severity.ERROR: "PB0", Severity.WARNING: "PB1", Severity.LINT: "PB2", Severity.NOTE: "PB3"}


def test_ids_and_names_are_unique_and_say_how_severe() -> None:
    found = codes()
    assert len({code.id for code in found}) == len({code.name for code in found}) == len(found) == 71
    wrong = [code.id for code in found if not code.id.startswith(FIRST[code.severity])]
    assert wrong == ["PB233"]  # a lint that became an error (newcomer M12); ids do not change
    assert all(re.fullmatch(r"PB[0-3]\d\d", code.id) for code in found)
    assert set(found) <= set(all_codes())


def test_every_page_has_the_wrong_and_the_right() -> None:
    for code in codes():
        what, why, *_ = code.explanation.split("\n\n")
        assert what.endswith(".") and why.endswith("."), code.id
        assert "\n\nWrong:\n\n    " in code.explanation and "\n\nRight:\n\n    " in code.explanation, code.id


def test_the_docs_are_made_of_the_code() -> None:
    pages = codes_pages()
    assert {path: (ROOT / path).read_text() for path in pages} == pages, "python -m tests.docs.codes_page"
    assert {path.name for path in (ROOT / "docs/reference/codes").iterdir()} == {
        path.rpartition("/")[2] for path in pages if "/codes/" in path
    }


def test_every_code_is_expected_by_some_test() -> None:
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("test_playbook_*.py"))
    assert [code.id for code in codes() if f'"{code.id}"' not in tests] == []
