"""Show the mutants of documents: a table with one row for each document, the survivors with the expectations that would
notice them, and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, assert_never

from msgspec.structs import replace

from quire.diagnostics import Severity
from quire.display.diagnostics import Findings, printer
from quire.display.tables import table
from quire.display.test_json import json_line
from quire.display.text import one_line
from quire.wording import pluralize

if TYPE_CHECKING:
    from quire.display.test_report import FormatName
    from quire.testing.mutation.run import DocumentMutation
    from quire.values import Value

_LISTED = 40
"""Survivors that are listed for one document."""


def mutation_text(documents: Sequence[DocumentMutation], form: FormatName) -> str:
    """Return the mutants of some documents as a report of that format has them."""
    match form:
        case "full" | "concise":
            return "".join(f"{line}\n" for line in mutation_page(documents))
        case "tap":
            return "".join(f"# {line}".rstrip() + "\n" for line in mutation_page(documents))
        case "json":
            return "".join(json_line(mutation_data(one)) for one in documents)
        case "github":
            return printer("github")([_annotations(one) for one in documents], False)
        case _:
            assert_never(form)


def mutation_page(documents: Sequence[DocumentMutation]) -> list[str]:
    """Return the lines about some documents: the table, then the survivors of each."""
    if not documents:
        return []
    rows = [
        [one.title, str(one.total), str(len(one.killed)), str(len(one.survivors)), f"{one.percent}%"]
        for one in documents
    ]
    lines = table(rows, ["mutants", "made", "noticed", "survived", "score"], right=frozenset(range(1, 5)))
    for one in documents:
        lines += _survivors(one)
    return lines


def _survivors(document: DocumentMutation) -> list[str]:
    lines: list[str] = []
    if document.survivors:
        lines += ["", f"not noticed in {one_line(document.title)}:"]
        for one in document.survivors[:_LISTED]:
            lines.append(f"  {one_line(document.source.name)}:{document.line(one)}  {one_line(one.change)}")
            lines.append(f"    {one_line(one.place)}: {one_line(one.expectation)}")
        more = len(document.survivors) - _LISTED
        if more > 0:
            lines.append(f"  and {more} more {pluralize('mutant', more)}: --format json lists all of them")
    if document.left_out:
        lines += ["", "not tried:"]
        lines += [f"  {one_line(reason)}" for reason in document.left_out]
    return lines


def mutation_data(document: DocumentMutation) -> dict[str, Value]:
    """Return the mutants of one document as JSON."""
    survivors: list[Value] = [
        {
            "id": one.id,
            "operator": one.operator,
            "step": one.step,
            "line": document.line(one),
            "change": one.change,
            "test": one.test,
            "case": one.case,
            "wanted": one.wanted,
            "expectation": one.expectation,
        }
        for one in document.survivors
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


def _annotations(document: DocumentMutation) -> Findings:
    """Return the survivors as warnings beside the lines of the document."""
    found = tuple(replace(one, code=replace(one.code, severity=Severity.WARNING)) for one in document.findings())
    return Findings(document.source, found)
