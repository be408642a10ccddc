"""The results of tests that were run in this session, with the texts that they belong to.

Cases run in a process of their own; only these records come back. They are shown as lenses, hints and hovers, and count
as old once the test or its document has another text.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

if TYPE_CHECKING:
    from quire.lsp.views import View

MOST_KEPT = 500
"""Test files whose results are kept."""


class CheckMark(Struct, frozen=True):
    """The verdict about one expectation."""

    start: int
    """Where its name begins."""
    end: int
    """Where its value ends."""
    holds: bool
    value: str = ""
    """The value that was seen, as text; empty if there is nothing to show."""
    message: str = ""
    """Why it does not hold."""
    literal: str = ""
    """The value that was seen as YAML on one line, if it can be expected instead; else empty."""


class CaseRecord(Struct, frozen=True):
    """The result of one case, with all of its rows."""

    name: str
    passed: int = 0
    failed: int = 0
    others: int = 0
    """Rows that were skipped, or failed as they were expected to."""
    seconds: float = 0.0
    messages: tuple[str, ...] = ()
    """The problems, each as one line."""
    marks: tuple[CheckMark, ...] = ()
    reason: str = ""
    """Why it is skipped, to do or flaky."""


class DraftedCase(Struct, frozen=True):
    """A case that takes arms or answers that no case has taken."""

    name: str
    text: str
    """Its lines, indented by two, with placeholders."""


class TestRecord(Struct, frozen=True):
    """The results of one test file."""

    __test__ = False
    path: str
    document: str
    """The absolute path of its document; empty if it was not found."""
    sha256: str
    """Of the text of the test."""
    document_sha256: str
    cases: tuple[CaseRecord, ...] = ()
    problems: tuple[str, ...] = ()
    """Problems of the file itself."""
    drafts: tuple[DraftedCase, ...] = ()
    """Cases that are missing, if all cases were run."""

    @property
    def passed(self) -> int:
        return sum(case.passed for case in self.cases)

    @property
    def failed(self) -> int:
        return sum(case.failed for case in self.cases) or len(self.problems)


class TestMemory:
    """The last results of each test file."""

    __test__ = False

    def __init__(self) -> None:
        self._records: dict[str, TestRecord] = {}

    def keep(self, records: Iterable[TestRecord]) -> None:
        """Keep results. Cases that did not run this time keep their results if the texts are the same."""
        for record in records:
            known = self._records.pop(record.path, None)
            if known is not None and _texts(known) == _texts(record):
                ran = {case.name for case in record.cases}
                cases = (*(one for one in known.cases if one.name not in ran), *record.cases)
                record = replace(record, cases=cases, drafts=record.drafts or known.drafts)
            self._records[record.path] = record
            while len(self._records) > MOST_KEPT:
                del self._records[next(iter(self._records))]

    def of_test(self, view: View) -> TestRecord | None:
        """Return the results of a test file; None if there are none, or if they are old."""
        record = self._records.get(view.path)
        return record if record is not None and self._is_fresh(view, record) else None

    def title(self, view: View, title: str) -> str:
        """Return the title of a lens with the numbers of the last results in its brackets: `Test (5 ✓ 1 ✗)`."""
        found = [one for one in self._records.values() if view.path in (one.path, one.document)]
        passed, failed = sum(one.passed for one in found), sum(one.failed for one in found)
        if not passed and not failed:
            return title
        told = " ".join([*([f"{passed} ✓"] if passed else []), *([f"{failed} ✗"] if failed else [])])
        old = "" if all(self._is_fresh(view, one) for one in found) else ", before the last change"
        return f"{title.partition(' (')[0]} ({told}{old})"

    def _is_fresh(self, view: View, record: TestRecord) -> bool:
        test = view if view.path == record.path else view.folder.view(record.path)
        document = view if view.path == record.document else view.folder.view(record.document)
        same_test = test is not None and test.source.sha256 == record.sha256
        return same_test and (document.source.sha256 if document else "") == record.document_sha256


def _texts(record: TestRecord) -> tuple[str, str]:
    return record.sha256, record.document_sha256
