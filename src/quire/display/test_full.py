"""Print failing cases for people: the place in the test file, the value that was seen, the values inside a failing
expression, the difference of texts, and the command that runs only this case again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from quire.display.diagnostics import finding_lines
from quire.display.test_report import again, case_id
from quire.display.text import one_line, visible
from quire.testing.results import Outcome
from quire.wording import cut

if TYPE_CHECKING:
    from quire.source import Source
    from quire.testing.results import CaseResult, FileResult, Problem, Totals

MOST_LINES = 20
"""Lines of one value that are shown."""
_LONGEST_LINE = 400
_LONGEST_PART = 200
_SHORT = 60
"""Texts up to this length are shown as a value: the expected one stands in the marked line."""
_HEADS = {
    Outcome.FAILED: ("FAILED", "\x1b[1;31m"),
    Outcome.FLAKY: ("FLAKY", "\x1b[1;33m"),
}
_WARNING = ("WARNING", "\x1b[1;33m")
_BOLD, _OFF = "\x1b[1m", "\x1b[0m"


class FullPrinter:
    """Prints nothing about a case that passed without a warning."""

    def __init__(self, colour: bool = False) -> None:
        self.colour = colour

    def begin(self) -> str:
        return ""

    def file(self, result: FileResult) -> str:
        blocks = [problem_text(result.source, problem, self.colour) for problem in result.problems]
        if any(problem.fails for problem in result.problems):
            blocks.append(f"again: {again(result.path)}\n")
        blocks += [case_text(result, case, self.colour) for case in result.cases if _is_shown(case)]
        return "".join(f"{block}\n" for block in blocks)

    def end(self, totals: Totals) -> str:
        return ""


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


def _is_shown(case: CaseResult) -> bool:
    if case.outcome in (Outcome.SKIPPED, Outcome.TODO):
        return False
    return bool(case.problems) or case.outcome in _HEADS


def _notes(problem: Problem, colour: bool) -> Iterator[tuple[str, str]]:
    differences = _differences(problem, colour)
    said = len(problem.value) <= _SHORT and problem.value in problem.finding.message
    # A difference of whole texts shows the value; that of a part and the line nearest to it does not.
    whole = problem.value == problem.actual or "\n" in (problem.expected or "")
    if problem.value and not said and not (differences and whole):
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
    short = max(len(expected), len(actual)) <= _SHORT and "\n" not in expected + actual
    if short and problem.value:
        return []
    from quire.display.word_diff import word_diff  # only a test that fails needs it

    return word_diff(expected, actual, colour=colour)


def shortened(text: str) -> str:
    """Return a text that is safe for a terminal and not longer than a screen."""
    lines = visible(text.rstrip("\n")).split("\n")
    shown = [cut(line, _LONGEST_LINE) for line in lines[:MOST_LINES]]
    more = len(lines) - len(shown)
    return "\n".join([*shown, *([f"… {more:,} more lines"] if more else [])])
