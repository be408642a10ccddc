"""Print results of document tests as JSON lines: an object for each case and each file with problems, then a summary.

All keys are defined here and listed in docs/testing.md.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from quire.display.diagnostics import finding_data
from quire.display.visible import escaped
from quire.testing.results import Outcome
from quire.values import clean

if TYPE_CHECKING:
    from quire.source import Source
    from quire.testing.results import CaseResult, FileResult, Problem, Totals
    from quire.values import Value


class JsonPrinter:
    """Prints one object a line."""

    def begin(self) -> str:
        return ""

    def file(self, result: FileResult) -> str:
        lines = [json_line(file_data(result))] if result.problems or result.details else []
        return "".join([*lines, *(json_line(case_data(result, case)) for case in result.cases)])

    def end(self, totals: Totals) -> str:
        return json_line(summary_data(totals))


def json_line(value: Value) -> str:
    """Encode a value on one line in which a terminal finds nothing to obey."""
    return escaped(clean(json.dumps(value, ensure_ascii=False))) + "\n"


def file_data(result: FileResult) -> dict[str, Value]:
    """Return a file with the problems that are not those of a case."""
    return {
        "type": "file",
        "file": result.path,
        "document": result.document,
        "problems": [problem_data(result.source, problem) for problem in result.problems],
        "details": dict(result.details),
    }


def case_data(result: FileResult, case: CaseResult) -> dict[str, Value]:
    return {
        "type": "case",
        "file": result.path,
        "line": case.line,
        "case": case.name,
        "document": result.document,
        "outcome": case.outcome.value,
        "reason": case.reason,
        "tags": list(case.tags),
        "seconds": round(case.seconds, 6),
        "used": case.used.as_value() if case.used else None,
        "problems": [problem_data(result.source, problem) for problem in case.problems],
    }


def problem_data(source: Source, problem: Problem) -> dict[str, Value]:
    """Return the finding as `quire check --json` has it, and the values that were seen."""
    return {
        **finding_data(source, problem.finding),
        "value": problem.value,
        "parts": [{"path": path, "value": value} for path, value in problem.parts],
        "expected": problem.expected,
        "actual": problem.actual,
    }


def summary_data(totals: Totals) -> dict[str, Value]:
    counts: dict[str, Value] = {outcome.value: totals.outcomes[outcome] for outcome in Outcome}
    return {
        "type": "summary",
        "files": totals.files,
        "failed_files": totals.broken,
        "cases": totals.cases,
        **counts,
        "seconds": round(totals.seconds, 6),
    }
