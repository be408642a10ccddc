"""Every kind of finding about a test, with the page that `quire check --explain` prints.

TS0xx are found by reading a test file and its document, TS10x and TS11x by running cases, TS12x in snapshots, TS13x in
cassettes, TS14x by coverage, mutation and exploration, TS15x by live runs. Ids are never reused.
"""

from __future__ import annotations

from quire.diagnostics import Code, codes_in
from quire.formats.test.codes import case, file, measures, recordings
from quire.formats.test.codes.case import (
    ALWAYS,
    ASSERTS_NOTHING,
    CANNOT_START,
    CRASH_DIFFERS,
    EXPECTATION,
    NO_ANSWER,
    NO_REPLY,
    TODO_PASSES,
    UNEXPECTED_WARNING,
    UNFIT_STUB,
    UNSCRIPTED_TOOL,
    UNUSED_ANSWER,
    UNUSED_REPLY,
    UNUSED_TOOL,
)
from quire.formats.test.codes.file import (
    DRAFT,
    DUPLICATE_CASE,
    IMPOSSIBLE_CONTAINS,
    MATCHER,
    NEVER_ASKS,
    NEVER_MADE,
    NO_DOCUMENT,
    ORDER_IN_FAN,
    OUTSIDE,
    ROWS,
    SYNTAX,
    UNKNOWN_KEY,
    UNKNOWN_STEP,
    UNKNOWN_TOOL,
)
from quire.formats.test.codes.measures import (
    BOUND_BROKEN,
    COUNTEREXAMPLE,
    COVERAGE_BELOW,
    FLAKY,
    JUDGE_NOT_CALIBRATED,
    MUTANT_SURVIVES,
    OUTSIDE_ENVELOPE,
    UNDECIDED,
)
from quire.formats.test.codes.recordings import (
    CASSETTE_DRIFT,
    CASSETTE_OLD,
    CASSETTE_ORPHAN,
    CASSETTE_PARTIAL,
    SNAPSHOT_DIFFERS,
    SNAPSHOT_NEW,
    SNAPSHOT_UNREFERENCED,
)

__all__ = [
    "ALWAYS",
    "ASSERTS_NOTHING",
    "BOUND_BROKEN",
    "CANNOT_START",
    "CASSETTE_DRIFT",
    "CASSETTE_OLD",
    "CASSETTE_ORPHAN",
    "CASSETTE_PARTIAL",
    "COUNTEREXAMPLE",
    "COVERAGE_BELOW",
    "CRASH_DIFFERS",
    "DRAFT",
    "DUPLICATE_CASE",
    "EXPECTATION",
    "FLAKY",
    "IMPOSSIBLE_CONTAINS",
    "JUDGE_NOT_CALIBRATED",
    "MATCHER",
    "MUTANT_SURVIVES",
    "NEVER_ASKS",
    "NEVER_MADE",
    "NO_ANSWER",
    "NO_DOCUMENT",
    "NO_REPLY",
    "ORDER_IN_FAN",
    "OUTSIDE",
    "OUTSIDE_ENVELOPE",
    "ROWS",
    "SNAPSHOT_DIFFERS",
    "SNAPSHOT_NEW",
    "SNAPSHOT_UNREFERENCED",
    "SYNTAX",
    "TODO_PASSES",
    "UNDECIDED",
    "UNEXPECTED_WARNING",
    "UNFIT_STUB",
    "UNKNOWN_KEY",
    "UNKNOWN_STEP",
    "UNKNOWN_TOOL",
    "UNSCRIPTED_TOOL",
    "UNUSED_ANSWER",
    "UNUSED_REPLY",
    "UNUSED_TOOL",
    "codes",
]


def codes() -> tuple[Code, ...]:
    """Return all codes, in the order of their ids."""
    return tuple(sorted(codes_in(file, case, recordings, measures), key=lambda code: code.id))
