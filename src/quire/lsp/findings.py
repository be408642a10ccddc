"""Find what is wrong with a document that an editor has open, or with one that it does not."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

from quire.errors import QuireError, Unreadable
from quire.lsp import wire

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quire.diagnostics import Diagnostic
    from quire.lsp.desk import Desk
    from quire.lsp.views import View
    from quire.source import Span

Report = tuple[str, list[wire.Json]]
"""The path of a document and its findings as JSON."""


def findings_of(view: View) -> tuple[Diagnostic, ...]:
    """Return all findings about a document in its workspace. A workspace whose settings cannot be read is reported at
    its settings; the document is then checked alone."""
    from quire import formats
    from quire.lsp.languages import function

    if view.format == "settings":
        check = function("settings", "check", "check")
        return tuple(check(view)) if check else ()
    if not view.format:
        return ()
    if not view.source.text.strip():
        reading = formats.unread(Unreadable(view.path, "is empty", "empty"))  # type: ignore[arg-type]
        return reading.diagnostics if reading else ()
    try:
        return view.folder.check.of(view.source)
    except QuireError:
        return formats.check(view.source)


def is_at(cursor: Span | None, found: Diagnostic, text: str) -> bool:
    """Tell whether a finding is about the word that is being typed."""
    if cursor is None:
        return False
    start, end = cursor.start, cursor.end
    while start > 0 and not text[start - 1].isspace():
        start -= 1
    while end < len(text) and not text[end].isspace():
        end += 1
    return found.span.start <= end and start <= found.span.end


def survey(desk: Desk, paths: Sequence[str], seconds: float = 60.0) -> list[Report]:
    """Check documents that are not open, as long as there is time."""
    until = time.monotonic() + seconds
    reports: list[Report] = []
    for path in paths:
        view = desk.view_of(path)
        if view is None:
            continue
        # A mistake of a rule must not hide the findings about the other documents.
        with contextlib.suppress(Exception):
            reports.append((path, [wire.diagnostic(view.text, one, desk) for one in findings_of(view)]))
        if time.monotonic() > until:
            break
    return reports
