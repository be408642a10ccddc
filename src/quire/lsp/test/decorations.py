"""Marks of a test file: lines above it and its cases, and the results of the last run inside of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.lsp.answers import Hint, Lens, fenced
from quire.lsp.desk import uri_of
from quire.lsp.test.hover import case_text
from quire.source import Span, line_end
from quire.wording import cut_line

if TYPE_CHECKING:
    from quire.lsp.document_tests import CaseRecord, CheckMark
    from quire.lsp.document_view import View

UPDATE = "quire.updateSnapshots"
"""Done by the client in a terminal (`quire test --update PATH::CASE`), because it writes a file."""
_SNAPSHOT = "!snapshot"


def lenses(view: View) -> list[Lens]:
    """Return the lenses. Running costs nothing; the numbers of the last results are added to the first one."""
    symbols = view.index.symbols
    if not symbols:
        return []
    uri = uri_of(view.path)
    lenses = [Lens(Span(0, 0), "Run all", "quire.test", (uri,))]
    record = view.folder.test_memory.of_test(view)
    failed = {case.name for case in record.cases if case.failed} if record else set()
    passed = {case.name for case in record.cases if case.passed and not case.failed} if record else set()
    text = view.source.text
    for symbol in symbols:
        if not symbol.name:
            continue
        sign = " ✗" if symbol.name in failed else " ✓" if symbol.name in passed else ""
        lenses.append(Lens(symbol.selection, f"Run case{sign}", "quire.test", (uri, symbol.name)))
        if text.find(_SNAPSHOT, symbol.span.start, symbol.span.end) >= 0:
            lenses.append(Lens(symbol.selection, "Update snapshot", UPDATE, (uri, symbol.name)))
    return lenses


LONGEST_VALUE = 40


def hints(view: View, span: Span) -> list[Hint]:
    """Return the results of cases that were run with this text and with the document as it is now."""
    record = view.folder.test_memory.of_test(view)
    if record is None:
        return []
    hints: list[Hint] = []
    cases = {case.name: case for case in record.cases}
    for symbol in view.index.symbols:
        case = cases.get(symbol.name)
        if case is None or symbol.span.start > span.end or symbol.span.end < span.start:
            continue
        hints.append(
            Hint(line_end(view.source.text, symbol.selection.end), _result_label(case), tooltip=case_text(case))
        )
        hints += [_check_hint(view, mark) for mark in case.marks]
    return hints


def _result_label(case: CaseRecord) -> str:
    if case.failed:
        rows = case.passed + case.failed
        return "✗" if rows == 1 else f"✗ {case.failed} of {rows} rows"
    if case.others and not case.passed:
        return "skipped" if not case.messages else "✗ as expected"
    return f"✓ {case.seconds * 1000:.0f} ms"


def _check_hint(view: View, mark: CheckMark) -> Hint:
    value = cut_line(" ".join(mark.value.split()), LONGEST_VALUE)
    if mark.holds and value != mark.value:
        value = ""  # a long text, such as a prompt, that is as it should be
    tooltip = mark.message if not mark.holds else ""
    if value != mark.value:
        tooltip = f"{tooltip}\n\n{fenced(mark.value)}".strip()
    sign = "✓" if mark.holds else "✗"
    return Hint(min(mark.end, line_end(view.source.text, mark.start)), f"{sign} {value}".rstrip(), tooltip=tooltip)
