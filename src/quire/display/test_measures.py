"""Show the measures of documents beside their cases: coverage, mutants and explored runs.

Each measure is lines for people, JSON for programs, and findings beside the lines of the documents.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, assert_never

from msgspec import Struct
from msgspec.structs import replace

from quire.diagnostics import Severity
from quire.display.diagnostics import Findings, printer
from quire.display.test_report import json_line
from quire.display.text import one_line, table
from quire.display.visible import visible
from quire.testing.coverage.decisions import KINDS
from quire.testing.coverage.report import ALL, uncovered_findings
from quire.values import encode
from quire.wording import pluralize

if TYPE_CHECKING:
    from quire.display.test_report import FormatName
    from quire.testing.coverage.report import DocumentCoverage
    from quire.testing.exploration.explore import DocumentExploration
    from quire.testing.mutation.mutation_run import DocumentMutation
    from quire.values import Value

COLUMNS = (ALL, *KINDS)
NONE = "-"
_DECISIONS = 60
"""Missing decisions that are listed for one document."""
_SURVIVORS = 40
"""Survivors that are listed for one document."""


class Measure(Struct, frozen=True):
    """One measure of some documents."""

    lines: Sequence[str]
    json: Sequence[str]
    """Each with its line end."""
    findings: Sequence[Findings] = ()
    is_remark: bool = True
    """True if TAP has the lines as comments."""

    def text(self, form: FormatName) -> str:
        """Return the measure as a report of that format has it."""
        match form:
            case "full" | "concise":
                return "".join(f"{line}\n" for line in self.lines)
            case "tap":
                return "".join(f"# {line}".rstrip() + "\n" for line in self.lines if self.is_remark)
            case "json":
                return "".join(self.json)
            case "github":
                return printer("github")(self.findings, False)
            case _:
                assert_never(form)


def coverage_measure(coverages: Sequence[DocumentCoverage]) -> Measure:
    """Show the coverage of some documents. GitHub shows the branches that no case takes beside their lines."""
    findings = [Findings(coverage.source, uncovered_findings(coverage)) for coverage in coverages]
    return Measure(coverage_page(coverages), [json_line(coverage_data(coverage)) for coverage in coverages], findings)


def coverage_page(coverages: Sequence[DocumentCoverage]) -> list[str]:
    """Return the lines about some documents: the table, then the missing decisions of each."""
    rows = [
        [coverage.path, *(f"{share.percent}%" if share.total else NONE for share in coverage.shares().values())]
        for coverage in coverages
    ]
    lines = table(rows, ["coverage", *COLUMNS], right=frozenset(range(1, len(COLUMNS) + 1))) if rows else []
    for coverage in coverages:
        missing = coverage.missing()
        places = [
            [f"  {coverage.path}:{coverage.line(decision)}", decision.kind, decision.label]
            for decision in missing[:_DECISIONS]
        ]
        if places:
            lines += [
                "",
                f"not covered in {one_line(coverage.path)}:",
                *table(places),
                *_more(missing, places, "decision"),
            ]
    return lines


def _more(all_of_them: Sequence[object], listed: Sequence[object], word: str) -> Iterable[str]:
    more = len(all_of_them) - len(listed)
    if more > 0:
        yield f"  and {more} more {pluralize(word, more)}: --format json lists all of them"


def coverage_data(coverage: DocumentCoverage) -> dict[str, Value]:
    """Return the coverage of one document as JSON."""
    kinds: dict[str, Value] = {
        kind: {"taken": share.taken, "total": share.total, "percent": share.percent}
        for kind, share in coverage.shares().items()
    }
    missing: list[Value] = [
        {"kind": decision.kind, "id": decision.id, "label": decision.label, "line": coverage.line(decision)}
        for decision in coverage.missing()
    ]
    return {"type": "coverage", "document": coverage.path, "kinds": kinds, "missing": missing}


def mutation_measure(documents: Sequence[DocumentMutation]) -> Measure:
    """Show the mutants of some documents. GitHub has the survivors as warnings beside the lines of the document."""
    findings = [
        Findings(
            document.source,
            tuple(
                replace(finding, code=replace(finding.code, severity=Severity.WARNING))
                for finding in document.findings()
            ),
        )
        for document in documents
    ]
    return Measure(_mutation_page(documents), [json_line(_mutation_data(document)) for document in documents], findings)


def _mutation_page(documents: Sequence[DocumentMutation]) -> list[str]:
    """Return the table, then the survivors of each document with the expectations that would notice them."""
    rows = [
        [each.title, str(each.total), str(len(each.killed)), str(len(each.survivors)), f"{each.percent}%"]
        for each in documents
    ]
    header = ["mutants", "made", "noticed", "survived", "score"]
    lines = table(rows, header, right=frozenset(range(1, 5))) if rows else []
    for document in documents:
        listed = document.survivors[:_SURVIVORS]
        if listed:
            lines += ["", f"not noticed in {one_line(document.title)}:"]
        for survivor in listed:
            lines.append(f"  {one_line(document.source.name)}:{document.line(survivor)}  {one_line(survivor.change)}")
            lines.append(f"    {one_line(survivor.place)}: {one_line(survivor.expectation)}")
        lines += _more(document.survivors, listed, "mutant")
        if document.left_out:
            lines += ["", "not tried:", *(f"  {one_line(reason)}" for reason in document.left_out)]
    return lines


def _mutation_data(document: DocumentMutation) -> dict[str, Value]:
    survivors: list[Value] = [
        {
            "id": survivor.id,
            "operator": survivor.operator,
            "step": survivor.step,
            "line": document.line(survivor),
            "change": survivor.change,
            "test": survivor.test,
            "case": survivor.case,
            "wanted": survivor.new_case,
            "expectation": survivor.expectation,
        }
        for survivor in document.survivors
    ]
    pipeline: dict[str, Value] = {"pipeline": document.pipeline} if document.pipeline else {}
    return {
        "type": "mutation",
        "document": document.source.name,
        **pipeline,
        "mutants": document.total,
        "noticed": len(document.killed),
        "score": document.percent,
        "survivors": survivors,
        "left_out": list(document.left_out),
        "seconds": round(document.seconds, 3),
    }


def exploration_measure(documents: Sequence[DocumentExploration]) -> Measure:
    """Say how often each document was explored, and how its runs ended."""
    lines = [_exploration_line(document) for document in documents]
    return Measure(lines, [f"{encode(_exploration_data(document))}\n" for document in documents], is_remark=False)


def _exploration_data(document: DocumentExploration) -> dict[str, Value]:
    exploration = document.exploration
    return {
        "type": "exploration",
        "document": document.document,
        "seed": document.seed,
        "runs": exploration.runs,
        "ends": dict(exploration.ends),
        "broken": [each.broken.promise for each in exploration.counterexamples],
        "skipped": exploration.skipped or None,
    }


def _exploration_line(document: DocumentExploration) -> str:
    exploration, name = document.exploration, visible(document.document)
    if exploration.skipped:
        return f"{name}: not explored: {exploration.skipped}"
    ends = ", ".join(
        f"{count:,} {status}" for status, count in sorted(exploration.ends.items(), key=lambda end: -end[1])
    )
    refused = exploration.runs - sum(exploration.ends.values())
    ends += f", {refused:,} with inputs that are refused" if refused else ""
    count = len(exploration.counterexamples)
    broken = f"{count} promises broken" if count else "no promise broken"
    return f"{name}: {exploration.runs:,} runs explored from seed {document.seed} ({ends}); {broken}"
