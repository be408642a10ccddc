"""Gates of coverage: the least percentages that a test file or the command line asks for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from quire.diagnostics import Diagnostic
from quire.errors import CannotStart
from quire.formats.test.codes import measures
from quire.formats.test.syntax import COVERAGE_KINDS
from quire.testing.results import Problem
from quire.wording import did_you_mean, nearest

if TYPE_CHECKING:
    from quire.source import Span
    from quire.testing.coverage.report import DocumentCoverage, Share

ALL = "all"
_LISTED = 5
"""Missing decisions that a finding names."""


def read_gates(texts: Iterable[str], under: float | None = None) -> dict[str, float]:
    """Read gates of the command line, `arms=100`; `under` is the least share of all. Raises `CannotStart`."""
    gates: dict[str, float] = {} if under is None else {ALL: _percentage(str(under))}
    for text in texts:
        kind, _, least = (part.strip() for part in text.partition("="))
        if kind not in COVERAGE_KINDS:
            hint = did_you_mean(nearest(kind, COVERAGE_KINDS), f"the kinds are {', '.join(COVERAGE_KINDS)}")
            raise CannotStart(f"{kind!r} is not a kind of coverage: {hint}")
        gates[kind] = _percentage(least)
    return gates


def _percentage(text: str) -> float:
    try:
        least = float(text)
    except ValueError:
        least = -1.0
    if not 0 <= least <= 100:
        raise CannotStart(f"{text!r} is not a percentage: write a number from 0 to 100, such as arms=100")
    return least


def gate_problems(coverage: DocumentCoverage, gates: Mapping[str, float], span: Span) -> tuple[Problem, ...]:
    """Return a problem for each gate that the coverage of a document does not reach. `span` is in the test file."""
    return tuple(
        Problem(_below(coverage, kind, share, least, span))
        for kind, least in gates.items()
        if not (share := coverage.share(kind)).reaches(least)
    )


def _below(coverage: DocumentCoverage, kind: str, share: Share, least: float, span: Span) -> Diagnostic:
    missing = coverage.missing(*(() if kind == ALL else (kind,)))
    places = [f"{coverage.path}:{coverage.line(one)} {one.label}" for one in missing[:_LISTED]]
    more = len(missing) - len(places)
    what = "decisions" if kind == ALL else kind
    message = f"{share.taken} of {share.total} {what} are covered, {share.percent} %, and {least:g} % is asked for"
    listed = "; ".join([*places, *([f"and {more} more"] if more > 0 else [])])
    return Diagnostic(measures.COVERAGE_BELOW, message, span, "", f"not covered: {listed}")
