"""The tests of a document for its editor: find them, run them, keep their results, and write new cases.

Cases run in a process of their own, with the machinery of `quire test`: no model is asked, nothing reaches the network,
and snapshots are not written. Their records count as old once the test or its document has another text. Drafting a
case runs the document with placeholders, as `quire new test` does, so it is a command as well.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from quire.display.test_report import case_data, file_data, summary_data
from quire.errors import QuireError
from quire.formats import TEST_SUFFIX
from quire.formats.test import codes
from quire.formats.test.expected import Equal
from quire.formats.test.parse import parse
from quire.library.document import load
from quire.lsp.answers import Action, FileEdit, insertion
from quire.lsp.jobs import keep_newest
from quire.source import MAX_TEST_BYTES, read_source
from quire.testing.case_results import Outcome, Totals
from quire.testing.discovery import Selection, bench_for, own_test
from quire.testing.drafts import added_text, case_text, file_text, flow, takes_cases
from quire.testing.expectations import seen_value
from quire.testing.file_run import FileOptions, run_file
from quire.testing.matchers import MISSING, Missing, shown
from quire.testing.snapshots import SnapshotMode
from quire.wording import cut, free_name

if TYPE_CHECKING:
    from quire.formats.test.expected import Check
    from quire.formats.test.syntax import Case, TestFile, TestReading
    from quire.lsp.document_view import View
    from quire.lsp.jobs import Tell
    from quire.testing.case_results import CaseResult, FileResult
    from quire.testing.drafts import Draft
    from quire.testing.matchers import Seen
    from quire.values import Value


def tests_of(view: View) -> Iterator[View]:
    """Yield the tests of a document: those that name it, and one that has its name and names none."""
    from quire.lsp.test.tested import tested

    for path in view.folder.files:
        test = view.folder.view(path) if path.endswith(TEST_SUFFIX) else None
        if test is not None and test.format == "test" and _may_mean(test, view) and tested(test).path == view.path:
            yield test


def count_cases(view: View) -> int:
    """Return how many cases the tests of a document have. Tests with errors are left out."""
    files: list[TestFile | None] = [test.reading.file for test in tests_of(view)]
    return sum(len(file.cases) for file in files if file is not None)


def _may_mean(test: View, view: View) -> bool:
    """Tell whether a test can be about a document. Finding its document reads that from the disk."""
    file: TestFile | None = test.reading.file
    if file is None:
        return True
    named = file.document.text if file.document else PurePath(test.path).name.removesuffix(TEST_SUFFIX)
    own, last = PurePath(view.path).name, PurePath(named).name
    return last in (own, own.partition(".")[0]) or (view.format == "pipeline" and named in view.source.text)


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
    """The value that was seen, as text; empty without one."""
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
            before = self._records.get(record.path)
            if before is not None and _texts(before) == _texts(record):
                ran = {case.name for case in record.cases}
                cases = (*(case for case in before.cases if case.name not in ran), *record.cases)
                record = replace(record, cases=cases, drafts=record.drafts or before.drafts)
            keep_newest(self._records, record.path, record, MOST_KEPT)

    def of_test(self, view: View) -> TestRecord | None:
        """Return the results of a test file; None if there are none, or if they are old."""
        record = self._records.get(view.path)
        return record if record is not None and self._is_fresh(view, record) else None

    def title(self, view: View, title: str) -> str:
        """Return the title of a lens with the numbers of the last results in its brackets: `Test (5 ✓ 1 ✗)`."""
        records = [record for record in self._records.values() if view.path in (record.path, record.document)]
        passed, failed = sum(record.passed for record in records), sum(record.failed for record in records)
        if not passed and not failed:
            return title
        counts = " ".join([*([f"{passed} ✓"] if passed else []), *([f"{failed} ✗"] if failed else [])])
        old = "" if all(self._is_fresh(view, record) for record in records) else ", before the last change"
        return f"{title.partition(' (')[0]} ({counts}{old})"

    def _is_fresh(self, view: View, record: TestRecord) -> bool:
        test = view if view.path == record.path else view.folder.view(record.path)
        document = view if view.path == record.document else view.folder.view(record.document)
        same_test = test is not None and test.source.sha256 == record.sha256
        return same_test and (document.source.sha256 if document else "") == record.document_sha256


def _texts(record: TestRecord) -> tuple[str, str]:
    return record.sha256, record.document_sha256


WRITE_TEST = "quire.writeTest"


def test_action(view: View, decision: str, title: str) -> Action | None:
    """Return the action that writes a case for a decision, given by its id; empty for a first case. None if the
    document cannot run, or has a test that no case can be added to."""
    if view.plan is None:
        return None
    path = own_test(view.path)
    existing = view.folder.view(path)
    if existing is not None and not takes_cases(existing.source.text):
        return None
    return Action(title, "refactor", (FileEdit(path, (), creates=True),), command=WRITE_TEST, arguments=(decision,))


def draft_case(view: View, decision: str) -> Draft:
    """Return a case that takes a decision. Raises `QuireError` if none was found, or if it cannot be added."""
    from quire.testing.scaffold import draft_for

    draft = draft_for(bench_for(view.document), decision) if view.document is not None else None
    if draft is None:
        raise QuireError("no inputs, replies and answers were found that lead there; write the case by hand")
    added_case(view, draft)
    return draft


def added_case(view: View, draft: Draft) -> FileEdit:
    """Return the edit that makes the test of a document, or adds a case to it. Raises `QuireError` for a test that is
    written in another way."""
    path = own_test(view.path)
    existing = view.folder.view(path)
    if existing is None:
        edit = insertion(0, file_text(Path(view.path).name, [draft]))
        return FileEdit(path, (edit,), creates=True)
    file = existing.reading.file if existing.format == "test" else None
    draft.name = free_name(draft.name, {case.name for case in file.cases} if file else (), "{} ({})")
    try:
        return FileEdit(path, (insertion(*added_text(existing.source.text, draft)),))
    except QuireError as error:
        raise QuireError(f"{Path(path).name}: {error}") from None


LONGEST_VALUE = 400
LONGEST_MESSAGE = 300
LONGEST_LITERAL = 200
MOST_DRAFTED = 5


def run_tests(
    paths: Sequence[tuple[str, str]], cases: Collection[str] = (), tell: Tell = lambda _done, _of: None
) -> tuple[list[Value], list[TestRecord]]:
    """Run test files, each given with the path of its document, or some cases of them, and tell how many are done.
    Return the objects that `quire test --json` prints, and the parts of the results to keep."""
    began = time.perf_counter()
    names = frozenset(cases) or None
    options = FileOptions(
        Selection(names=names), observations=True, snapshots=SnapshotMode(ci=True), coverage=not cases
    )
    printed: list[Value] = []
    records: list[TestRecord] = []
    totals = Totals()
    for path, document in paths:
        reading = parse(read_source(Path(path), limit=MAX_TEST_BYTES))
        result = run_file(reading, options)
        totals.add(result)
        if result.problems or result.details:
            printed.append(file_data(result))
        printed += [case_data(result, case) for case in result.cases]
        records.append(replace(_record(path, document, reading, result), drafts=tuple(_drafts(result))))
        tell(len(records), len(paths))
    totals.seconds = time.perf_counter() - began
    return [*printed, summary_data(totals)], records


def _record(path: str, document: str, reading: TestReading, result: FileResult) -> TestRecord:
    by_line: dict[int, list[CaseResult]] = {}
    for row in result.cases:
        by_line.setdefault(row.line, []).append(row)
    cases = [
        _case(case, results)
        for case in (reading.file.cases if reading.file else ())
        if (results := by_line.get(reading.source.position(case.span.start).line))
    ]
    problems = tuple(_line(problem.finding.message) for problem in result.problems if problem.fails)
    sha256 = str(result.details.get("document_sha256") or "")
    return TestRecord(path, document if sha256 else "", reading.source.sha256, sha256, tuple(cases), problems)


def _drafts(result: FileResult) -> Iterator[DraftedCase]:
    """Yield cases for the arms and answers that no case has taken. To find them, the document is run on its bench with
    placeholders, as for `quire new test`."""
    coverage = result.coverage
    missing = {
        decision.id for decision in (coverage.decisions if coverage else ()) if decision.kind in ("arms", "answers")
        and coverage is not None and not coverage.count(decision)
    }  # fmt: skip
    if not missing:
        return
    from quire.testing.scaffold import draft_cases

    taken = {case.name for case in result.cases}
    count = 0
    with suppress(QuireError):
        for draft in draft_cases(bench_for(load(result.document)), expects=True):
            new = missing.intersection(draft.takes)
            if new and draft.name not in taken and count < MOST_DRAFTED:
                missing -= new
                count += 1
                yield DraftedCase(draft.name, case_text(draft))


def _case(case: Case, rows: Sequence[CaseResult]) -> CaseRecord:
    passed = sum(row.outcome is Outcome.PASSED for row in rows)
    failed = sum(row.failed for row in rows)
    messages = dict.fromkeys(
        _line(f"{problem.finding.message}: {problem.value}" if problem.value else problem.finding.message)
        for row in rows
        for problem in row.problems
    )
    return CaseRecord(
        case.name,
        passed,
        failed,
        len(rows) - passed - failed,
        sum(row.seconds for row in rows),
        tuple(messages),
        tuple(_marks(case, rows)),
        next((row.reason for row in rows if row.reason), ""),
    )


def _line(text: str) -> str:
    return cut(" ".join(text.split()), LONGEST_MESSAGE)


def _marks(case: Case, rows: Sequence[CaseResult]) -> Iterator[CheckMark]:
    """Yield a verdict for each expectation that was looked at. A case that did not start has none."""
    unstarted = {codes.CANNOT_START, codes.DRAFT}
    looked = [row for row in rows if row.observation is not None]
    looked = [row for row in looked if unstarted.isdisjoint(problem.finding.code for problem in row.problems)]
    if not looked:
        return
    expected = (case.expect, *(act.expect for act in case.then))
    for check in (check for part in expected if part for check in part.checks):
        start, end = check.span.start, max(check.span.end, check.matcher.span.end)
        wrong = [problem for row in looked for problem in row.problems if start <= problem.finding.span.start < end]
        # The observation is the last one: after an act, earlier values are not known any more.
        value_seen = _seen(check, looked) if not case.then else MISSING
        value = "" if isinstance(value_seen, Missing) else cut(shown(value_seen), LONGEST_VALUE)
        if wrong:
            text = cut(wrong[0].value or wrong[0].actual or "", LONGEST_VALUE) or value
            yield CheckMark(start, end, False, text, _line(wrong[0].finding.message), _literal(check, value_seen))
        elif not case.then:
            written = isinstance(check.matcher, Equal) and check.subject != "calls"
            yield CheckMark(start, end, True, "" if written else value)


def _seen(check: Check, rows: Sequence[CaseResult]) -> Seen:
    """Return the value that an expectation has seen; `MISSING` if it differs from row to row."""
    values = [seen_value(check, row.observation) for row in rows if row.observation is not None]
    return values[0] if values and all(value == values[0] for value in values) else MISSING


def _literal(check: Check, value: Seen) -> str:
    """Return a value as it can be expected; empty for a long one, or if the expectation is more than a value."""
    if isinstance(value, Missing) or not isinstance(check.matcher, Equal) or check.subject in ("calls", "error"):
        return ""
    text = flow(value)
    return text if len(text) <= LONGEST_LITERAL else ""
