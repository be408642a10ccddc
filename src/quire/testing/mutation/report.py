"""Mutants of documents over several test files: a mutant survives only if the cases of no file notice it.

These values have no plans in them, so they can be sent from one process to another.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.diagnostics import Diagnostic
from quire.errors import QuireError
from quire.formats.test.codes import measures
from quire.source import MAX_TEST_BYTES, NOWHERE, Source, Span, read_source, relative_to_here

if TYPE_CHECKING:
    from quire.testing.mutation.run import MutationReport


class SurvivingMutant(Struct, frozen=True):
    """A mutant that no case has noticed."""

    id: str
    operator: str
    step: str
    span: Span
    """In the document."""
    change: str
    test: str
    """The test file that the expectation belongs into."""
    case: str
    """The case; empty if it takes a new one."""
    expectation: str
    wanted: str = ""
    """The kind of new case that it takes: `in which step 3 is skipped`."""

    @property
    def place(self) -> str:
        """The case that the expectation belongs into, in words."""
        return f"{self.test}::{self.case}" if self.case else f"a new case of {self.test} {self.wanted}".rstrip()


class DocumentMutation(Struct, frozen=True):
    """The mutants of one document."""

    source: Source
    """Its name is the path of the file, relative to the folder in which the tests run."""
    killed: frozenset[str]
    survivors: tuple[SurvivingMutant, ...]
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

    def line(self, survivor: SurvivingMutant) -> int:
        return self.source.position(survivor.span.start).line

    def findings(self) -> tuple[Diagnostic, ...]:
        """Return the survivors as findings about the document."""
        return tuple(
            Diagnostic(
                measures.MUTANT_SURVIVES, f"no case notices a document that {one.change}", one.span, "", advice(one)
            )
            for one in self.survivors
        )


def advice(survivor: SurvivingMutant) -> str:
    """Say where an expectation goes."""
    return f"add to {survivor.place}: `{survivor.expectation}`"


def mutate_file(path: str) -> DocumentMutation | None:
    """Try the cases of a test file on the mutants of its document; None for a file that cannot be used.

    Running the file reports why it cannot.
    """
    from quire.formats.test.parse import parse
    from quire.testing.mutation.document_tests import mutate_opened, opened

    try:
        test = opened(parse(read_source(Path(path), limit=MAX_TEST_BYTES)))
        report = mutate_opened(test)
    except QuireError:
        return None
    document = test.bench.document
    source = document.source
    named = Source(_shown(source.name), source.text, source.stored)
    return _summary(report, named, _shown(path), document.declared)


def _shown(path: str) -> str:
    return Path(relative_to_here(path) or path).as_posix()


def _summary(report: MutationReport, source: Source, test: str, pipeline: str) -> DocumentMutation:
    survivors = tuple(
        SurvivingMutant(
            one.mutant.id,
            one.mutant.operator,
            one.mutant.step,
            one.mutant.span,
            one.mutant.change,
            test,
            one.case,
            one.expectation,
            one.wanted,
        )
        for one in report.survivors
    )
    killed = frozenset(one.mutant.id for one in report.killed)
    left_out = tuple(f"{test}: {one}" for one in report.left_out)
    if report.untried:
        left_out = (*left_out, f"{test}: there was no time for {report.untried:,} more mutants")
    return DocumentMutation(source, killed, survivors, left_out, report.seconds, pipeline)


def merged(parts: Iterable[DocumentMutation]) -> list[DocumentMutation]:
    """Return one entry for each document, in the order in which the documents come first."""
    groups: dict[str, list[DocumentMutation]] = {}
    for part in parts:
        groups.setdefault(part.title, []).append(part)
    return [_joined(group) for group in groups.values()]


def _joined(parts: list[DocumentMutation]) -> DocumentMutation:
    """Return the mutants of one document. The expectation of the first file that has a case for it is offered."""
    killed = frozenset().union(*(part.killed for part in parts))
    survivors: dict[str, SurvivingMutant] = {}
    for one in (one for part in parts for one in part.survivors):
        if one.id not in killed and (one.id not in survivors or (one.case and not survivors[one.id].case)):
            survivors[one.id] = one
    left_out = tuple(one for part in parts for one in part.left_out)
    seconds = sum(part.seconds for part in parts)
    first = parts[0]
    return DocumentMutation(first.source, killed, tuple(survivors.values()), left_out, seconds, first.pipeline)


def below(document: DocumentMutation, least: float) -> Diagnostic | None:
    """Return the finding about a score that is too low; None if it is high enough."""
    if document.reaches(least):
        return None
    noticed = f"{len(document.killed)} of {document.total} mutants are noticed, {document.percent} %"
    listed = "; ".join(one.change for one in document.survivors[:3])
    return Diagnostic(
        measures.MUTANT_SURVIVES, f"{noticed}, and {least:g} % is asked for", NOWHERE, "", f"not noticed: {listed}"
    )
