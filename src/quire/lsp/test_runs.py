"""Run cases for an editor, in a process of its own, and keep of the results what the editor shows.

It is the machinery of `quire test`: no model is asked, nothing reaches the network, and snapshots are not written.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from quire.display.test_json import case_data, file_data, summary_data
from quire.errors import QuireError
from quire.formats.test import codes
from quire.formats.test.expected import Equal
from quire.formats.test.parse import parse
from quire.lsp.test_results import CaseRecord, CheckMark, DraftedCase, TestRecord
from quire.source import MAX_TEST_BYTES, read_source
from quire.testing.discovery import Selection
from quire.testing.drafts import flow
from quire.testing.expectations import seen_value
from quire.testing.file_run import FileOptions, run_file
from quire.testing.matchers import MISSING, Missing, shown
from quire.testing.results import Outcome, Totals
from quire.testing.snapshots import SnapshotMode
from quire.wording import cut

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quire.formats.test.expected import Check
    from quire.formats.test.syntax import Case, TestReading
    from quire.lsp.progress import Tell
    from quire.testing.matchers import Seen
    from quire.testing.results import CaseResult, FileResult
    from quire.values import Value

LONGEST_VALUE = 400
LONGEST_MESSAGE = 300
LONGEST_LITERAL = 200
MOST_DRAFTED = 5


def run_tests(
    paths: Sequence[tuple[str, str]], cases: Collection[str] = (), tell: Tell = lambda _done, _of: None
) -> tuple[list[Value], list[TestRecord]]:
    """Run test files, each given with the path of its document, or some cases of them, and tell how many are done.
    Return the objects that `quire test --json` prints, and what is kept of the results."""
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
        printed += [case_data(result, one) for one in result.cases]
        records.append(replace(_record(path, document, reading, result), drafts=tuple(_drafts(result))))
        tell(len(records), len(paths))
    totals.seconds = time.perf_counter() - began
    return [*printed, summary_data(totals)], records


def _record(path: str, document: str, reading: TestReading, result: FileResult) -> TestRecord:
    by_line: dict[int, list[CaseResult]] = {}
    for one in result.cases:
        by_line.setdefault(one.line, []).append(one)
    cases = [
        _case(case, found)
        for case in (reading.file.cases if reading.file else ())
        if (found := by_line.get(reading.source.position(case.span.start).line))
    ]
    problems = tuple(_line(one.finding.message) for one in result.problems if one.fails)
    sha256 = result.details.get("document_sha256")
    known = sha256 if isinstance(sha256, str) else ""
    return TestRecord(path, document if known else "", reading.source.sha256, known, tuple(cases), problems)


def _drafts(result: FileResult) -> Iterator[DraftedCase]:
    """Yield cases for the arms and answers that no case has taken. To find them, the document is run on its bench with
    placeholders, as for `quire new test`."""
    coverage = result.coverage
    missing = {
        one.id for one in (coverage.decisions if coverage else ()) if one.kind in ("arms", "answers")
        and coverage is not None and not coverage.count(one)
    }  # fmt: skip
    if not missing:
        return
    from quire.library.document import load
    from quire.testing.document_under_test import bench_for
    from quire.testing.drafts import case_text
    from quire.testing.scaffold import draft_cases

    taken = {case.name for case in result.cases}
    found = 0
    with suppress(QuireError):
        for draft in draft_cases(bench_for(load(result.document)), expects=True):
            new = missing.intersection(draft.takes)
            if new and draft.name not in taken and found < MOST_DRAFTED:
                missing -= new
                found += 1
                yield DraftedCase(draft.name, case_text(draft))


def _case(case: Case, rows: Sequence[CaseResult]) -> CaseRecord:
    passed = sum(row.outcome is Outcome.PASSED for row in rows)
    failed = sum(row.failed for row in rows)
    messages = dict.fromkeys(
        _line(_told(problem.finding.message, problem.value)) for row in rows for problem in row.problems
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


def _told(message: str, value: str) -> str:
    return f"{message}: {value}" if value else message


def _line(text: str) -> str:
    return cut(" ".join(text.split()), LONGEST_MESSAGE)


def _marks(case: Case, rows: Sequence[CaseResult]) -> Iterator[CheckMark]:
    """Yield a verdict for each expectation that was looked at. A case that did not start has none."""
    looked = [row for row in rows if row.observation is not None and not _did_not_start(row)]
    if not looked:
        return
    expected = [*(case.expect.checks if case.expect else ())]
    later = [check for act in case.then if act.expect for check in act.expect.checks]
    for check in (*expected, *later):
        start, end = check.span.start, max(check.span.end, check.matcher.span.end)
        wrong = [one for row in looked for one in row.problems if start <= one.finding.span.start < end]
        # The observation is the last one: after an act, earlier values are not known any more.
        seen = _seen(check, looked) if not case.then else MISSING
        value = "" if isinstance(seen, Missing) else cut(shown(seen), LONGEST_VALUE)
        if wrong:
            told = cut(wrong[0].value or wrong[0].actual or "", LONGEST_VALUE) or value
            yield CheckMark(start, end, False, told, _line(wrong[0].finding.message), _literal(check, seen))
        elif not case.then:
            written = isinstance(check.matcher, Equal) and check.subject != "calls"
            yield CheckMark(start, end, True, "" if written else value)


def _seen(check: Check, rows: Sequence[CaseResult]) -> Seen:
    """Return the value that an expectation has seen; `MISSING` if it differs from row to row."""
    values = [seen_value(check, row.observation) for row in rows if row.observation is not None]
    return values[0] if values and all(one == values[0] for one in values) else MISSING


def _literal(check: Check, seen: Seen) -> str:
    """Return a value as it can be expected; empty for a long one, or if the expectation is more than a value."""
    if isinstance(seen, Missing) or not isinstance(check.matcher, Equal) or check.subject in ("calls", "error"):
        return ""
    text = flow(seen)
    return text if len(text) <= LONGEST_LITERAL else ""


def _did_not_start(row: CaseResult) -> bool:
    return any(problem.finding.code in (codes.CANNOT_START, codes.DRAFT) for problem in row.problems)
