"""Run the cases of one test file, in this process, and give each its verdict.

With `crash: everywhere` a case is repeated with a process that dies at each moment in turn, and the ends are compared.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from quire.diagnostics import Diagnostic, Severity
from quire.engine.proven_bounds import BROKEN
from quire.errors import BadDocument, CannotStart, QuireError
from quire.formats.test import codes
from quire.library.document import Document, near_misses
from quire.library.library import Library
from quire.library.tested_document import compare
from quire.testing.case_results import CaseResult, FileResult, Outcome, Problem
from quire.testing.case_rows import BadRows, CaseRow, expand
from quire.testing.case_run import Bench, CaseRun, Stage
from quire.testing.cassettes.cassette import CassettePlayer, Cassettes
from quire.testing.discovery import Selection, open_document
from quire.testing.expectations import Judging, always, judge, leftovers
from quire.testing.matchers import same
from quire.testing.snapshots import SnapshotFile, SnapshotMode, unused_finding
from quire.testing.virtual_loop import Stuck
from quire.values import encode
from quire.wording import cut

if TYPE_CHECKING:
    from quire.formats.test.syntax import Case, TestFile, TestReading
    from quire.plan.nodes import Plan
    from quire.source import Span
    from quire.testing.case_results import SnapshotChange
    from quire.testing.case_run import PreparedStart
    from quire.testing.matchers import Snapshots
    from quire.testing.observation import Observation
    from quire.values import Value

MOST_MOMENTS = 2_000
MOST_PROBLEMS = 3
_COMPARED = ("status", "output", "artifact", "named", "stores", "outputs", "files")


def crash_everywhere(bench: Bench, case: Case, run: CaseRun, whole: Observation) -> list[Problem]:
    """Return the moments at which a death changes the end of a case. `run` is the undisturbed one."""
    problems: list[Problem] = []
    plan = bench.document.runnable()
    for moment in range(1, min(run.process.moments, MOST_MOMENTS) + 1):
        died = CaseRun(bench, case, dies_at=moment)
        observation = died.play()[-1].observation
        if (difference := _difference(whole, observation, plan)) and not _is_uncertain(observation):
            message = f"after a crash at moment {moment} of {run.process.moments}, {difference}"
            problems.append(Problem(Diagnostic(codes.CRASH_DIFFERS, message, case.span)))
            if len(problems) == MOST_PROBLEMS:
                break
    return problems


def _difference(whole: Observation, observation: Observation, plan: Plan) -> str:
    """Describe the differences after a crash; empty without any."""
    made, repeated = Counter(call.path for call in whole.calls), Counter(call.path for call in observation.calls)
    again = {call.way for call in observation.calls if repeated[call.path] > made[call.path]}
    # A call that is made again may have another result: a file that it has written exists by then.
    left_out = {step.capture.name for _, step in plan.steps() if step.capture is not None and step.label in again}
    for name in _COMPARED:
        before, after = getattr(whole, name), getattr(observation, name)
        if same(before, after):
            continue
        if not isinstance(before, Mapping) or not isinstance(after, Mapping) or name == "output":
            why = f" ({observation.error['message']})" if observation.error and name == "status" else ""
            return f"{name} is {_shown(after)}, not {_shown(before)}{why}"
        for key in dict.fromkeys([*before, *after]):
            if key not in left_out and not same(before.get(key), after.get(key)):
                return f"{name}.{key} is {_shown(after.get(key))}, not {_shown(before.get(key))}"
    twice = next((path for path, times in repeated.items() if times > made[path] + 1), None)
    return f"the call {twice} was made {repeated[twice]} times" if twice else ""


def _shown(value: Value) -> str:
    return cut(encode(value), 80)


def _is_uncertain(observation: Observation) -> bool:
    """Tell whether the run stopped because `on_uncertain` says so: it is not known whether a call was finished."""
    asks = any(question.path.endswith("/uncertain") and question.answer is None for question in observation.asked)
    return asks or (observation.error is not None and observation.error.get("kind") == "uncertain")


class FileOptions(Struct, frozen=True):
    """The options with which the cases of a file are run."""

    selection: Selection = Selection()
    stop_at_failure: bool = False
    shell: bool = False
    """True if commands may run for real."""
    observations: bool = False
    """True to keep the observations in the results."""
    snapshots: SnapshotMode = SnapshotMode()
    keep_replies: bool = False
    """True to continue with a recorded reply although its prompt has changed."""
    coverage: bool = False
    """True to measure the coverage of every document. A file that asks for some is measured always."""


EVERYTHING = FileOptions()


class OpenTest(Struct, frozen=True):
    """A test file with its document, ready to run."""

    reading: TestReading
    file: TestFile
    bench: Bench
    stored: SnapshotFile
    options: FileOptions
    rows: tuple[CaseRow, ...]
    """The cases and rows that the options select."""
    problems: tuple[Problem, ...]

    def run(self, case_row: CaseRow) -> CaseResult:
        """Run one case, or one row of it, and give it its verdict."""
        case = case_row.case
        line = self.reading.source.position(case.span.start).line
        head = CaseResult(case_row.name, line, Outcome.PASSED, tags=case.tags)
        if case.skip is not None:
            return replace(head, outcome=Outcome.SKIPPED, reason=case.skip)
        if case.draft:
            help = "write what the document must do: output, prompts, asked, calls …"
            finding = Diagnostic(codes.DRAFT, f"the case {case.name!r} has no expectations yet", case.span, "", help)
            return replace(head, outcome=Outcome.FAILED, problems=(Problem(finding),))
        began = time.perf_counter()
        snapshots = self.stored.of(case_row.name, self.options.snapshots)
        problems, observation = verdict(case_row, self.file, self.bench, snapshots)
        head = replace(
            head,
            problems=tuple(problems),
            seconds=time.perf_counter() - began,
            used=observation.used if observation else None,
            observation=observation if self.options.observations else None,
            snapshots=snapshots.seen,
        )
        return _with_outcome(head, case)

    def result(self, cases: Sequence[CaseResult]) -> FileResult:
        """Return the result of the file, after snapshots were written. Gates of coverage hold, and snapshots can be
        unused, only if all of its cases ran."""
        source, bench, file = self.reading.source, self.bench, self.file
        problems = list(self.problems)
        complete = self.options.selection.is_whole and len(cases) == len(self.rows)
        coverage = bench.coverage.result() if bench.coverage is not None else None
        if coverage is not None and complete:
            from quire.testing.coverage.report import gate_problems

            problems += gate_problems(coverage, file.coverage, file.coverage_span)
        changes, unsettled = self._settled(cases, complete)
        return FileResult(
            source.name,
            source,
            bench.document.name,
            tuple(cases),
            (*problems, *unsettled),
            {"document_sha256": bench.document.sha256, **_near_misses(bench.document)},
            coverage,
            changes,
        )

    def _settled(self, cases: Sequence[CaseResult], complete: bool) -> tuple[tuple[SnapshotChange, ...], list[Problem]]:
        """Write the snapshots of the cases; return the changes, and the problems of the file."""
        where, mode = self.file.cases[0].span, self.options.snapshots
        unused = self.stored.unused(cases) if complete and not mode.update else []
        problems = [Problem(unused_finding(name, place, self.stored.path, where)) for name, place in unused]
        try:
            return tuple(self.stored.settle(cases, mode, complete=complete)), problems
        except CannotStart as error:
            return (), [*problems, _cannot_start(error, where)]


def _near_misses(document: Document) -> dict[str, Value]:
    """Return the findings that would stop a run of the document, which its cases ignore."""
    source, findings = document.source, near_misses(document.source, document.format, document.declared)
    lines = [
        f"line {source.position(finding.span.start).line}: {finding.code.id} {finding.message}" for finding in findings
    ]
    return {"near_misses": [*lines]} if lines else {}


def run_file(reading: TestReading, options: FileOptions = EVERYTHING) -> FileResult:
    """Run the wanted cases of a file that was read. Problems of the file itself are part of the result."""
    opened = open_test(reading, options)
    if isinstance(opened, FileResult):
        return opened
    results: list[CaseResult] = []
    for row in opened.rows:
        results.append(opened.run(row))
        if options.stop_at_failure and results[-1].failed:
            break
    return opened.result(results)


def open_test(reading: TestReading, options: FileOptions = EVERYTHING) -> OpenTest | FileResult:
    """Return the test with its document, or the result of a file that cannot be run, which has only problems."""
    file, source = reading.file, reading.source
    wrong = tuple(Problem(diagnostic) for diagnostic in reading.diagnostics if diagnostic.severity is Severity.ERROR)
    if file is None or wrong:
        return FileResult(source.name, source, problems=wrong)
    try:
        bench = open_document(source, file, shell=options.shell)
    except QuireError as error:
        where = file.document.span if file.document else file.cases[0].span
        finding = Problem(Diagnostic(codes.NO_DOCUMENT, str(error), where))
        problem = _cannot_start(error, where) if isinstance(error, BadDocument) else finding
        return FileResult(source.name, source, problems=(problem,))
    cases, problems = _wanted(file, bench, options.selection, source.name)
    problems += [Problem(finding) for finding in compare(file, bench.document, Library(bench.settings))]
    try:
        stored = SnapshotFile.beside(source.name)
    except CannotStart as error:
        return FileResult(source.name, source, problems=(_cannot_start(error, file.cases[0].span),))
    if options.coverage or file.coverage:
        from quire.testing.coverage.report import CoverageMeter

        bench = replace(bench, coverage=CoverageMeter(bench.document))
    if any(case.setting.cassette for case in file.cases):
        bench = replace(bench, cassettes=Cassettes(source.name, keep=options.keep_replies))
        problems += _cassette_problems(file, bench, options.selection)
    return OpenTest(reading, file, bench, stored, options, tuple(cases), tuple(problems))


def _cassette_problems(file: TestFile, bench: Bench, selection: Selection) -> list[Problem]:
    """Return the problems of the cassettes as files: cases that the test no longer has, and old recordings."""
    if bench.cassettes is None or not selection.is_everything or not selection.takes(0):
        return []
    by_cassette: dict[str, set[str]] = {}
    for case in file.cases:
        if case.setting.cassette:
            name = case.setting.cassette if isinstance(case.setting.cassette, str) else ""
            with suppress(BadRows):
                by_cassette.setdefault(name, set()).update(row.name for row in expand(case, bench.folder, ()))
    where = next(case.span for case in file.cases if case.setting.cassette)
    try:
        orphans = bench.cassettes.orphans(by_cassette, where)
        return [*orphans, *(Problem(finding) for finding in bench.cassettes.old(where))]
    except CannotStart as error:
        return [_cannot_start(error, where)]


def _wanted(file: TestFile, bench: Bench, selection: Selection, name: str) -> tuple[list[CaseRow], list[Problem]]:
    """Return the cases and rows that are wanted here, and the problems of those whose rows cannot be read."""
    plan = bench.document.plan
    inputs = [field.name for field in plan.inputs] if plan else []
    selected: list[CaseRow] = []
    problems: list[Problem] = []
    number = 0
    for case in file.cases:
        try:
            rows = expand(case, bench.folder, inputs)
        except BadRows as error:
            where = case.rows.span if case.rows else case.span
            problems += [Problem(Diagnostic(codes.ROWS, sentence, where)) for sentence in str(error).split("\n")]
            continue
        for row in rows:
            if selection.wants(case, row.name, name):
                if selection.takes(number):
                    selected.append(row)
                number += 1
    return selected, problems


def verdict(
    case_row: CaseRow,
    file: TestFile,
    bench: Bench,
    snapshots: Snapshots | None = None,
    start: PreparedStart | None = None,
) -> tuple[list[Problem], Observation | None]:
    """Play a case, and return its problems and its last observation. With a `start`, its run begins there."""
    case, row = case_row.case, case_row.row
    run = CaseRun(bench, case, start=start)
    try:
        stages = run.play()
    except Stuck as stuck:
        return [Problem(Diagnostic(codes.EXPECTATION, f"the run gets nowhere: {stuck}", case.span))], None
    except (CannotStart, QuireError) as error:
        return [_cannot_start(error, case.span)], None
    problems: list[Problem] = []
    for stage in stages:
        problems += _judged(stage, case, row, snapshots)
        if bench.coverage is not None:
            bench.coverage.look(stage.expect(case), stage.observation)
    last = stages[-1].observation
    # Each once: a run that is resumed compares its bounds again.
    broken = dict.fromkeys(str(event.data.get("message", "")) for event in run.world.events if event.type == BROKEN)
    problems += [Problem(Diagnostic(codes.BOUND_BROKEN, message, case.span)) for message in broken]
    if file.always:
        problems += always(file.always, Judging(last, case.span, row))
    if bench.cassettes is not None and isinstance(run.world.model, CassettePlayer):
        problems = bench.cassettes.problems(run.world.model, case.span, problems)
    problems = leftovers(run.world, case, problems, complete=len(stages) == len(case.then) + 1)
    if not problems and case.crash_everywhere:
        problems = crash_everywhere(replace(bench, coverage=None), case, run, last)
    return problems, last


def _judged(stage: Stage, case: Case, row: Mapping[str, Value], snapshots: Snapshots | None) -> list[Problem]:
    expect = stage.expect(case)
    if stage.act is not None and expect is None and not stage.refusal:
        return []
    where: Span = case.span if stage.act is None else stage.act.span
    expected = expect is not None and any(check.subject in ("error", "exit") for check in expect.checks)
    if stage.refusal and not expected:
        return [Problem(Diagnostic(codes.CANNOT_START, "this cannot be done", where), stage.refusal)]
    return judge(expect, Judging(stage.observation, where, row, snapshots))


def _with_outcome(result: CaseResult, case: Case) -> CaseResult:
    """Return the result as the case's own words have it: a failure may be known."""
    if not result.problems:
        if case.todo is None:
            return result
        message = f"the case passes, and its todo says that it fails: {case.todo}"
        problem = Problem(Diagnostic(codes.TODO_PASSES, message, case.span, "", "remove the todo"))
        return replace(result, outcome=Outcome.FAILED, problems=(problem,))
    if case.todo is not None:
        return replace(result, outcome=Outcome.TODO, reason=case.todo)
    if case.flaky is not None:
        return replace(result, outcome=Outcome.FLAKY, reason=case.flaky)
    return replace(result, outcome=Outcome.FAILED)


def _cannot_start(error: QuireError, where: Span) -> Problem:
    first, _, rest = str(error).partition("\n")
    return Problem(Diagnostic(codes.CANNOT_START, first, where), rest)
