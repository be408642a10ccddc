"""Show the coverage of documents: a table with one row for each document, the missing decisions, and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, assert_never

from quire.display.diagnostics import Findings, printer
from quire.display.tables import table
from quire.display.test_json import json_line
from quire.display.text import one_line
from quire.testing.coverage.decisions import KINDS
from quire.testing.coverage.report import ALL, uncovered_findings
from quire.wording import pluralize

if TYPE_CHECKING:
    from quire.display.test_report import FormatName
    from quire.testing.coverage.report import DocumentCoverage, Share
    from quire.values import Value

COLUMNS = (ALL, *KINDS)
NONE = "-"
_LISTED = 60
"""Missing decisions that are listed for one document."""


def coverage_page(coverages: Sequence[DocumentCoverage]) -> list[str]:
    """Return the lines about some documents: the table, then the missing decisions of each."""
    if not coverages:
        return []
    rows = [[one.path, *(_cell(share) for share in one.shares().values())] for one in coverages]
    right = frozenset(range(1, len(COLUMNS) + 1))
    lines = table(rows, ["coverage", *COLUMNS], right=right)
    for coverage in coverages:
        lines += _missing(coverage)
    return lines


def _cell(share: Share) -> str:
    return f"{share.percent}%" if share.total else NONE


def _missing(coverage: DocumentCoverage) -> list[str]:
    missing = coverage.missing()
    if not missing:
        return []
    places = [[f"  {coverage.path}:{coverage.line(one)}", one.kind, one.label] for one in missing[:_LISTED]]
    more = len(missing) - len(places)
    rest = [f"  and {more} more {pluralize('decision', more)}: --format json lists all of them"] if more > 0 else []
    return ["", f"not covered in {one_line(coverage.path)}:", *table(places), *rest]


def coverage_data(coverage: DocumentCoverage) -> dict[str, Value]:
    """Return the coverage of one document as JSON."""
    kinds: dict[str, Value] = {
        kind: {"taken": share.taken, "total": share.total, "percent": share.percent}
        for kind, share in coverage.shares().items()
    }
    missing: list[Value] = [
        {"kind": one.kind, "id": one.id, "label": one.label, "line": coverage.line(one)} for one in coverage.missing()
    ]
    return {"type": "coverage", "document": coverage.path, "kinds": kinds, "missing": missing}


def coverage_annotations(coverages: Sequence[DocumentCoverage]) -> str:
    """Return commands that GitHub shows beside the lines of arms that no case takes."""
    findings = [Findings(one.source, uncovered_findings(one)) for one in coverages]
    return printer("github")(findings, False)


def coverage_text(coverages: Sequence[DocumentCoverage], form: FormatName) -> str:
    """Return the coverage of some documents as a report of that format has it."""
    match form:
        case "full" | "concise":
            return "".join(f"{line}\n" for line in coverage_page(coverages))
        case "tap":
            return "".join(f"# {line}".rstrip() + "\n" for line in coverage_page(coverages))
        case "json":
            return "".join(json_line(coverage_data(coverage)) for coverage in coverages)
        case "github":
            return coverage_annotations(coverages)
        case _:
            assert_never(form)
