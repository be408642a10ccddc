"""Print results of document tests as TAP, version 14: a test point for each case, with diagnostics in YAML.

Every value of the diagnostics is written as JSON in ASCII, which YAML reads, so a text from outside cannot end the
block or add a key.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from quire.display.text import one_line
from quire.testing.results import CaseResult, FileResult, Outcome, Problem, Totals
from quire.values import clean

if TYPE_CHECKING:
    from quire.source import Source
    from quire.values import Value


class TapPrinter:
    """Prints the plan last, when the number of cases is known."""

    def __init__(self) -> None:
        self.count = 0

    def begin(self) -> str:
        return "TAP version 14\n"

    def file(self, result: FileResult) -> str:
        lines: list[str] = []
        failing = [problem for problem in result.problems if problem.fails]
        if failing:
            lines += [self._point(False, result.path), *_block(result.source, failing)]
        for case in result.cases:
            ok = case.outcome in (Outcome.PASSED, Outcome.SKIPPED)
            lines.append(self._point(ok, f"{result.path} :: {case.name}", _directive(case)))
            lines += _block(result.source, case.problems)
        return "".join(f"{line}\n" for line in lines)

    def end(self, totals: Totals) -> str:
        return f"1..{self.count}\n"

    def _point(self, ok: bool, description: str, directive: str = "") -> str:
        self.count += 1
        return f"{'ok' if ok else 'not ok'} {self.count} - {_escaped(description)}{directive}"


def _directive(case: CaseResult) -> str:
    match case.outcome:
        case Outcome.SKIPPED:
            return f" # SKIP {_escaped(case.reason)}".rstrip()
        case Outcome.TODO:
            return f" # TODO {_escaped(case.reason)}".rstrip()
        case Outcome.FLAKY:
            return f" # TODO flaky: {_escaped(case.reason)}".rstrip()
        case Outcome.PASSED | Outcome.FAILED:
            return ""


def _escaped(text: str) -> str:
    return one_line(clean(text)).replace("\\", "\\\\").replace("#", "\\#")


def _block(source: Source, problems: tuple[Problem, ...] | list[Problem]) -> Iterator[str]:
    if not problems:
        return
    yield "  ---"
    first = problems[0]
    yield f"  message: {_quoted(first.finding.message)}"
    yield f"  severity: {'fail' if first.fails else 'comment'}"
    yield "  findings:"
    for problem in problems:
        place = source.position(problem.finding.span.start)
        fields: dict[str, Value] = {
            "code": problem.finding.code.id,
            "message": problem.finding.message,
            "file": source.name,
            "line": place.line,
            "column": place.column,
            "help": problem.finding.help,
            "got": problem.value if problem.actual is None else problem.actual,
            "expected": problem.expected,
            "values": dict(problem.parts),
        }
        mark = "-"
        for name, value in fields.items():
            if value not in ("", None, {}):
                yield f"    {mark} {name}: {_quoted(value)}"
                mark = " "
    yield "  ..."


def _quoted(value: Value) -> str:
    """Write a value as JSON in ASCII. YAML takes neither a lone surrogate nor half of a pair as an escape."""
    encoded = json.dumps(_plain(value), ensure_ascii=False)
    return "".join(one if " " <= one <= "~" else _escape(one) for one in encoded)


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _plain(value: Value) -> Value:
    if isinstance(value, str):
        return clean(value)
    return {clean(str(name)): _plain(one) for name, one in value.items()} if isinstance(value, dict) else value
