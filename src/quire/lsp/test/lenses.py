"""Lines above a test file and its cases: run all, run one, update snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.lsp.answers import Lens
from quire.lsp.desk import uri_of
from quire.source import Span

if TYPE_CHECKING:
    from quire.lsp.views import View

UPDATE = "quire.updateSnapshots"
"""Done by the client in a terminal (`quire test --update PATH::CASE`), because it writes a file."""
_SNAPSHOT = "!snapshot"


def lenses(view: View) -> list[Lens]:
    """Return the lenses. Running costs nothing; the numbers of the last results are added to the first one."""
    symbols = view.index.symbols
    if not symbols:
        return []
    uri = uri_of(view.path)
    found = [Lens(Span(0, 0), "Run all", "quire.test", (uri,))]
    record = view.folder.test_memory.of_test(view)
    failed = {case.name for case in record.cases if case.failed} if record else set()
    passed = {case.name for case in record.cases if case.passed and not case.failed} if record else set()
    text = view.source.text
    for symbol in symbols:
        if not symbol.name:
            continue
        sign = " ✗" if symbol.name in failed else " ✓" if symbol.name in passed else ""
        found.append(Lens(symbol.selection, f"Run case{sign}", "quire.test", (uri, symbol.name)))
        if text.find(_SNAPSHOT, symbol.span.start, symbol.span.end) >= 0:
            found.append(Lens(symbol.selection, "Update snapshot", UPDATE, (uri, symbol.name)))
    return found
