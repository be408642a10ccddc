"""Try the cases of test files on mutants of their documents, and count the mutants that no case notices.

A case is a function here: it gets a plan, and tells whether one of its expectations fails. It is run by the driver, in
the world of the case; the start of its run is prepared once for all mutants. Cases that fail on the unchanged document
say nothing about mutants and are left out. A mutant survives only if the cases of no test file notice it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from quire.diagnostics import Diagnostic
from quire.errors import CannotStart, QuireError
from quire.formats.test import codes
from quire.source import MAX_TEST_BYTES, NOWHERE, Source, Span, read_source, relative_to_here
from quire.testing.case_run import CaseRun
from quire.testing.file_run import FileOptions, OpenTest, open_test, verdict
from quire.testing.mutation.kills import telling_expectation
from quire.testing.mutation.mutants import OPERATORS, mutants
from quire.testing.snapshots import SnapshotMode
from quire.testing.virtual_loop import Stuck
from quire.testing.worker_processes import in_order

if TYPE_CHECKING:
    from quire.formats.test.syntax import TestReading
    from quire.plan.nodes import Plan
    from quire.testing.case_rows import CaseRow
    from quire.testing.case_run import PreparedStart
    from quire.testing.mutation.mutants import Mutant
    from quire.testing.observation import Observation

MOST_SECONDS = 120.0
"""Time for the mutants of one document. A document that wants more is tested as far as this goes."""
MOST_CASES = 200
"""Cases and rows of one file that mutants are tried on."""
PURE_WORK = 3_000_000
"""Less than a run may use: a changed plan may be a loop without an end."""
_READ_ONLY = SnapshotMode()

Judge: TypeAlias = "Callable[[Plan], bool]"
"""Runs a case on a plan. True if some expectation fails."""


class BaselineCase(Struct, frozen=True):
    """A case that mutants are tried on."""

    name: str
    notices: Judge
    observe: Callable[[Plan], Observation] | None = None
    """Runs the case and returns all that was seen, for the values of expectations."""


class Survivor(Struct, frozen=True):
    """A mutant that no case has noticed, and the expectation that would. It has no plan, so it can be sent from one
    process to another."""

    id: str
    operator: str
    step: str
    span: Span
    """In the document."""
    change: str
    case: str
    """The case that the expectation belongs into, and in which it fails on the mutant. Empty if no case has a run that
    the mutant changes: then it takes a new one."""
    expectation: str
    """One line of YAML below `expect:`."""
    new_case: str = ""
    """The kind of case that it takes, if it takes a new one: `in which step 3 is skipped`."""
    test: str = ""
    """The test file that the expectation belongs into."""

    @property
    def place(self) -> str:
        """The case that the expectation belongs into, in words."""
        return f"{self.test}::{self.case}" if self.case else f"a new case of {self.test} {self.new_case}".rstrip()


class MutationReport(Struct, frozen=True):
    """The mutants of one document, by their end."""

    killed: Mapping[str, str]
    """The first case that noticed it, by the id of the mutant."""
    survivors: tuple[Survivor, ...]
    cases: tuple[str, ...]
    """The names of the cases that mutants were tried on."""
    left_out: tuple[str, ...] = ()
    """Cases that fail on the unchanged document, or do not start it, with the reason."""
    seconds: float = 0.0
    untried: int = 0
    """Mutants that did not run for lack of time."""

    @property
    def total(self) -> int:
        return len(self.killed) + len(self.survivors)

    @property
    def score(self) -> float:
        """The share of mutants that were noticed, from 0 to 1. A document without mutants has them all."""
        return len(self.killed) / self.total if self.total else 1.0


def run_mutants(
    plan: Plan,
    mutants: Sequence[Mutant],
    cases: Sequence[BaselineCase],
    *,
    most_seconds: float = MOST_SECONDS,
    processes: int = 1,
) -> MutationReport:
    """Try every mutant on the cases, in their order, up to the first that notices it."""
    began = time.perf_counter()
    usable = [case for case in cases if not case.notices(plan)]
    left_out = [f"{case.name}: it fails on the unchanged document" for case in cases if case not in usable]
    observations: dict[str, Observation] = {}
    killed: dict[str, str] = {}
    survivors: list[Survivor] = []

    def tried(mutant: Mutant) -> str | Survivor:
        """Return the case that notices a mutant, or the survivor. Plans stay in their process."""
        noticing = next((case.name for case in usable if case.notices(mutant.plan)), None)
        return noticing if noticing is not None else _survivor(mutant, usable, plan, observations)

    results = in_order(mutants, tried, processes)
    for mutant in mutants:
        if time.perf_counter() - began > most_seconds:
            break
        result = next(results)
        if isinstance(result, Survivor):
            survivors.append(result)
        else:
            killed[mutant.id] = result
    return MutationReport(
        killed,
        tuple(survivors),
        tuple(case.name for case in usable),
        tuple(left_out),
        time.perf_counter() - began,
        len(mutants) - len(killed) - len(survivors),
    )


def _survivor(
    mutant: Mutant, cases: Sequence[BaselineCase], plan: Plan, observations: dict[str, Observation]
) -> Survivor:
    """Return a survivor with the expectation for a case in which it changes something; else for a case of its own.

    `observations` are those of the unchanged plan, each made once.
    """
    head = mutant.id, mutant.operator, mutant.step, mutant.span, mutant.change
    for case in cases:
        if case.observe is not None:
            if case.name not in observations:
                observations[case.name] = case.observe(plan)
            observation = case.observe(mutant.plan)
            expectation = telling_expectation(observations[case.name], observation, mutant.kill.subject)
            if expectation is not None:
                return Survivor(*head, case.name, expectation)
    place = {"": "the document", "thread": "the thread"}.get(mutant.step, f"step {mutant.step}")
    return Survivor(*head, "", mutant.kill.expectation(), OPERATORS[mutant.operator].case.format(step=place))


class _DrivenCase(Struct, frozen=True):
    """One case, or one row of it, whose run has been started, to be driven on the plan of each mutant."""

    test: OpenTest
    row: CaseRow
    start: PreparedStart

    def notices(self, plan: Plan) -> bool:
        """Tell whether some expectation of the case fails on a plan."""
        test, row = self.test, self.row
        case = replace(row, case=replace(row.case, crash_everywhere=False))
        snapshots = test.stored.of(row.name, _READ_ONLY)
        return bool(verdict(case, test.file, test.bench, snapshots, self.start.with_plan(plan))[0])

    def observe(self, plan: Plan) -> Observation:
        """Return the observation of the first rest of the run."""
        case = replace(self.row.case, then=())
        return CaseRun(self.test.bench, case, start=self.start.with_plan(plan)).play()[0].observation


def opened(reading: TestReading) -> OpenTest:
    """Return a test file with its document. Raises `CannotStart` for a file that cannot be run."""
    test = open_test(reading, FileOptions())
    if not isinstance(test, OpenTest):
        raise CannotStart(f"{reading.source.name} cannot be run: quire test says why")
    settings = test.bench.settings
    settings = replace(settings, runs=replace(settings.runs, pure_work=PURE_WORK))
    return replace(test, bench=replace(test.bench, settings=settings, coverage=None))


def mutate_opened(test: OpenTest, *, processes: int = 1) -> MutationReport:
    """Try the cases of a test file that was opened."""
    document = test.bench.document
    plan = document.runnable()
    cases, left_out = baseline_cases(test)
    report = run_mutants(plan, mutants(plan, document.source), cases, processes=processes)
    return replace(report, left_out=(*left_out, *report.left_out))


def baseline_cases(test: OpenTest) -> tuple[list[BaselineCase], list[str]]:
    """Return the cases that start their document, and the others with the reason."""
    cases: list[BaselineCase] = []
    left_out: list[str] = []
    usable = [row for row in test.rows if not (row.case.skip or row.case.todo or row.case.draft)]
    for row in usable[:MOST_CASES]:
        try:
            start = CaseRun(test.bench, row.case).prepare()
        except (QuireError, Stuck) as error:
            left_out.append(f"{row.name}: {error}")
            continue
        if start is None:
            left_out.append(f"{row.name}: the case {row.name!r} does not start its document")
            continue
        case = _DrivenCase(test, row, start.for_changed_plans(test.bench.settings))
        cases.append(BaselineCase(row.name, case.notices, case.observe))
    return cases, left_out


class DocumentMutation(Struct, frozen=True):
    """The mutants of one document."""

    source: Source
    """Its name is the path of the file, relative to the folder in which the tests run."""
    killed: frozenset[str]
    survivors: tuple[Survivor, ...]
    left_out: tuple[str, ...] = ()
    """Cases that were not used, with the reason."""
    seconds: float = 0.0
    pipeline: str = ""
    """The name of the pipeline, in a file of several."""

    @property
    def title(self) -> str:
        return f"{self.source.name} {self.pipeline}" if self.pipeline else self.source.name

    @property
    def total(self) -> int:
        return len(self.killed) + len(self.survivors)

    @property
    def percent(self) -> int:
        """The score, rounded down, so that 100 means all of them. A document without mutants has 100 too."""
        return len(self.killed) * 100 // self.total if self.total else 100

    def reaches(self, least: float) -> bool:
        return len(self.killed) * 100 >= least * self.total

    def line(self, survivor: Survivor) -> int:
        return self.source.position(survivor.span.start).line

    def findings(self) -> tuple[Diagnostic, ...]:
        """Return the survivors as findings about the document."""
        return tuple(
            Diagnostic(
                codes.MUTANT_SURVIVES,
                f"no case notices a document that {survivor.change}",
                survivor.span,
                "",
                advice(survivor),
            )
            for survivor in self.survivors
        )


def advice(survivor: Survivor) -> str:
    """Say where an expectation goes."""
    return f"add to {survivor.place}: `{survivor.expectation}`"


def mutate_files(paths: Sequence[str], processes: int) -> list[DocumentMutation]:
    """Try the mutants of the documents of all test files; those of a single file are shared among the processes."""
    alone = len(paths) == 1
    parts = in_order(paths, partial(mutate_file, processes=processes if alone else 1), 1 if alone else processes)
    return merged(part for part in parts if part is not None)


def mutate_file(path: str, processes: int = 1) -> DocumentMutation | None:
    """Try the cases of a test file on the mutants of its document; None for a file that cannot be used.

    Running the file reports why it cannot.
    """
    from quire.formats.test.parse import parse

    try:
        test = opened(parse(read_source(Path(path), limit=MAX_TEST_BYTES)))
        report = mutate_opened(test, processes=processes)
    except QuireError:
        return None
    document = test.bench.document
    source = document.source
    named, name = Source(_shown(source.name), source.text, source.stored), _shown(path)
    survivors = tuple(replace(survivor, test=name) for survivor in report.survivors)
    left_out = [f"{name}: {reason}" for reason in report.left_out]
    if report.untried:
        left_out.append(f"{name}: no time was left for {report.untried:,} more mutants")
    return DocumentMutation(
        named, frozenset(report.killed), survivors, tuple(left_out), report.seconds, document.declared
    )


def _shown(path: str) -> str:
    return Path(relative_to_here(path) or path).as_posix()


def merged(parts: Iterable[DocumentMutation]) -> list[DocumentMutation]:
    """Return one entry for each document, in the order in which the documents come first."""
    groups: dict[str, list[DocumentMutation]] = {}
    for part in parts:
        groups.setdefault(part.title, []).append(part)
    return [_joined(group) for group in groups.values()]


def _joined(parts: list[DocumentMutation]) -> DocumentMutation:
    """Return the mutants of one document. The expectation of the first file that has a case for it is offered."""
    killed = frozenset().union(*(part.killed for part in parts))
    survivors: dict[str, Survivor] = {}
    for mutant in (survivor for part in parts for survivor in part.survivors):
        if mutant.id not in killed and (mutant.id not in survivors or (mutant.case and not survivors[mutant.id].case)):
            survivors[mutant.id] = mutant
    left_out = tuple(reason for part in parts for reason in part.left_out)
    seconds = sum(part.seconds for part in parts)
    first = parts[0]
    return DocumentMutation(first.source, killed, tuple(survivors.values()), left_out, seconds, first.pipeline)


def below(document: DocumentMutation, least: float) -> Diagnostic | None:
    """Return the finding about a score that is too low; None if it is high enough."""
    if document.reaches(least):
        return None
    noticed = f"{len(document.killed)} of {document.total} mutants are noticed, {document.percent} %"
    listed = "; ".join(survivor.change for survivor in document.survivors[:3])
    return Diagnostic(
        codes.MUTANT_SURVIVES, f"{noticed}, and {least:g} % is asked for", NOWHERE, "", f"not noticed: {listed}"
    )
