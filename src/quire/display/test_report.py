"""Reports of document tests: failing cases for people, one line for each problem, or JSON lines; the lines on standard
error, and the command for one case.

A printer gets one file after the other, in the order of the suite, so that failures appear while others still run.
People see the place in the test file, the value that was seen, the values inside a failing expression, the difference
of texts, and the command that runs only this case again. All keys of JSON are listed in docs/guides/testing.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, assert_never

from msgspec.structs import replace

from quire.diagnostics import Diagnostic, Severity
from quire.display.diagnostics import Findings, finding_data, finding_lines, printer
from quire.display.text import one_line, visible
from quire.display.visible import escaped
from quire.display.visible import visible as visible_name
from quire.testing.case_results import Outcome
from quire.values import clean
from quire.wording import cut, pluralize

if TYPE_CHECKING:
    from quire.source import Source
    from quire.testing.case_results import CaseResult, FileResult, Problem, Totals
    from quire.values import Value

FormatName = Literal["full", "concise", "json", "github", "tap"]
FORMATS: tuple[FormatName, ...] = ("full", "concise", "json", "github", "tap")

_WORDS = {
    Outcome.FAILED: "failed",
    Outcome.PASSED: "passed",
    Outcome.SKIPPED: "skipped",
    Outcome.TODO: "to do",
    Outcome.FLAKY: "flaky",
}
_COLOURS = {Outcome.FAILED: "\x1b[1;31m", Outcome.PASSED: "\x1b[1;32m"}
_OTHER, _OFF = "\x1b[1;33m", "\x1b[0m"
_LONGEST_NAME = 60


class ReportPrinter:
    """Returns the text for standard output, piece by piece: nothing before and after the files, unless overridden."""

    def begin(self) -> str:
        return ""

    def file(self, result: FileResult) -> str:
        raise NotImplementedError

    def end(self, totals: Totals) -> str:
        return ""


def report_printer(name: FormatName, colour: bool = False) -> ReportPrinter:
    """Return the printer of that name. Only `full` has colours."""
    match name:
        case "full":
            return FullPrinter(colour)
        case "concise" | "github":
            return LinePrinter(name)
        case "json":
            return JsonPrinter()
        case "tap":
            from quire.display.report_formats import TapPrinter

            return TapPrinter()
        case _:
            assert_never(name)


def summary(totals: Totals, colour: bool = False) -> str:
    """Return the last line: `2 failed, 10 passed, 1 skipped in 3 files (0.21 s)`."""
    parts = [
        _painted(f"{totals.outcomes[outcome]:,} {_WORDS[outcome]}", outcome, colour)
        for outcome in _WORDS
        if totals.outcomes[outcome]
    ]
    if totals.broken:
        errors = f"{totals.broken:,} {pluralize('file error', totals.broken)}"
        parts.insert(0, _painted(errors, Outcome.FAILED, colour))
    files = f"{totals.files:,} {pluralize('file', totals.files)}"
    return f"{', '.join(parts) or 'no case was run'} in {files} ({totals.seconds:.2f} s)"


def progress(totals: Totals, file: str = "") -> str:
    """Return a line that shows how far the tests are. It replaces the one before."""
    parts = [f"{totals.cases:,} {pluralize('case', totals.cases)}"]
    if failed := totals.outcomes[Outcome.FAILED] + totals.broken:
        parts.append(f"{failed:,} failed")
    if file:
        parts.append(cut(one_line(file), _LONGEST_NAME))
    return " · ".join(parts)


def case_id(file: str, name: str) -> str:
    """Return the name of one case as the command takes it."""
    return f"{file}::{name}"


def again(file: str, name: str = "") -> str:
    """Return the command that runs a file, or one case of it, again."""
    from quire.display.shell_commands import shell_line

    words = [case_id(file, name) if name else file]
    return shell_line("test", *(["--", *words] if file.startswith("-") else words))


def _painted(text: str, outcome: Outcome, colour: bool) -> str:
    return f"{_COLOURS.get(outcome, _OTHER)}{text}{_OFF}" if colour else text


class LinePrinter(ReportPrinter):
    """Prints one line for each problem: `file:line:column: CODE severity: case: message`, or a workflow command. No
    message can begin another command: its line ends are encoded."""

    def __init__(self, form: Literal["concise", "github"]) -> None:
        self.form = form

    def file(self, result: FileResult) -> str:
        return printer(self.form)([Findings(result.source, tuple(_findings(result)))], False)


def _findings(result: FileResult) -> Iterator[Diagnostic]:
    """Yield the findings with the names of their cases. A problem of a flaky case is a warning; those of a case that is
    to do or skipped are left out."""
    for problem in result.problems:
        yield problem.finding
    for case in result.cases:
        if case.outcome in (Outcome.TODO, Outcome.SKIPPED):
            continue
        for problem in case.problems:
            finding = problem.finding
            code = finding.code
            if case.outcome is Outcome.FLAKY and problem.fails:
                code = replace(code, severity=Severity.WARNING)
            value = f" ({problem.value})" if problem.value and len(problem.value) <= _SHORT_LINE else ""
            yield replace(finding, code=code, message=f"{case.name}: {finding.message}{value}")


_SHORT_LINE = 100
MOST_LINES = 20
"""Lines of one value that are shown."""
_LONGEST_LINE = 400
_LONGEST_PART = 200
_SHORT_VALUE = 60
"""Texts up to this length are shown as a value: the expected one stands in the marked line."""
_HEADS = {
    Outcome.FAILED: ("FAILED", "\x1b[1;31m"),
    Outcome.FLAKY: ("FLAKY", "\x1b[1;33m"),
}
_WARNING = ("WARNING", "\x1b[1;33m")
_BOLD = "\x1b[1m"


class FullPrinter(ReportPrinter):
    """Prints nothing about a case that passed without a warning."""

    def __init__(self, colour: bool = False) -> None:
        self.colour = colour

    def file(self, result: FileResult) -> str:
        blocks = [problem_text(result.source, problem, self.colour) for problem in result.problems]
        if any(problem.fails for problem in result.problems):
            blocks.append(f"again: {again(result.path)}\n")
        blocks += [
            case_text(result, case, self.colour)
            for case in result.cases
            if case.outcome in _HEADS or (case.problems and case.outcome is Outcome.PASSED)
        ]
        return "".join(f"{block}\n" for block in blocks)


def case_text(result: FileResult, case: CaseResult, colour: bool = False) -> str:
    """Return everything that is wrong with one case; ends with a line end."""
    word, code = _HEADS.get(case.outcome, _WARNING)
    head = f"{code}{word}{_OFF}{_BOLD}" if colour else word
    name = one_line(case_id(result.path, case.name))
    lines = [f"{head} {name}{_OFF if colour else ''}"]
    if case.outcome is Outcome.FLAKY and case.reason:
        lines.append(f"it may fail: {one_line(case.reason)}")
    blocks = ["\n".join(lines) + "\n", *(problem_text(result.source, problem, colour) for problem in case.problems)]
    if case.outcome in _HEADS:
        blocks.append(f"again: {again(result.path, case.name)}\n")
    return "\n".join(blocks)


def problem_text(source: Source, problem: Problem, colour: bool = False) -> str:
    """Return the lines of one problem; ends with a line end."""
    return "\n".join(finding_lines(source, problem.finding, colour, list(_notes(problem, colour)))) + "\n"


def _notes(problem: Problem, colour: bool) -> Iterator[tuple[str, str]]:
    differences = _differences(problem, colour)
    quoted = len(problem.value) <= _SHORT_VALUE and problem.value in problem.finding.message
    # A difference of whole texts shows the value; that of a part and the line nearest to it does not.
    whole = problem.value == problem.actual or "\n" in (problem.expected or "")
    if problem.value and not quoted and not (differences and whole):
        yield "value", shortened(problem.value)
    for path, value in problem.parts:
        yield cut(one_line(path), _LONGEST_PART), cut(one_line(value), _LONGEST_PART)
    if differences:
        # A line end in front puts the first line below the name as well.
        marks = "" if colour else " [-expected-] {+seen+}"
        yield f"difference{marks}", "\n".join(["", *differences]) if len(differences) == 1 else "\n".join(differences)


def _differences(problem: Problem, colour: bool) -> list[str]:
    expected, actual = problem.expected, problem.actual
    if expected is None or actual is None:
        return []
    short = max(len(expected), len(actual)) <= _SHORT_VALUE and "\n" not in expected + actual
    if short and problem.value:
        return []
    from quire.display.why import word_diff  # only a test that fails needs it

    return word_diff(expected, actual, colour=colour)


def shortened(text: str) -> str:
    """Return a text that is safe for a terminal and not longer than a screen."""
    lines = visible(text.rstrip("\n")).split("\n")
    shown = [cut(line, _LONGEST_LINE) for line in lines[:MOST_LINES]]
    more = len(lines) - len(shown)
    return "\n".join([*shown, *([f"… {more:,} more lines"] if more else [])])


def snapshot_lines(result: FileResult, *, colour: bool) -> Iterator[str]:
    """Yield lines for standard error: the number of new snapshots, and each change with its difference."""
    from quire.display.why import word_diff  # only a test whose snapshots change needs it

    new = sum(change.before is None for change in result.snapshots)
    if new:
        yield f"{visible_name(result.path)}: {new} new {pluralize('snapshot', new)} written"
    for change in result.snapshots:
        if change.before is None:
            continue
        verb = "removed" if change.after is None else "changed"
        yield f"{visible_name(result.path)}: {visible_name(change.place)} of {visible_name(change.case)} {verb}"
        if change.after is not None:
            yield from (f"  {line}" for line in word_diff(change.before, change.after, colour=colour))


class JsonPrinter(ReportPrinter):
    """Prints one object a line."""

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
