"""Find what is wrong with a document: all at once, or first what is found quickly and then the rest.

The two parts together are always the findings of the whole check.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from quire.errors import QuireError, Unreadable
from quire.source import Span

if TYPE_CHECKING:
    from quire.diagnostics import Diagnostic
    from quire.library.check import QuickFindings
    from quire.lsp.views import View


_in_order = attrgetter("span.start", "span.end", "code.id", "message")


def findings_of(view: View) -> tuple[Diagnostic, ...]:
    """Return all findings about a document in its workspace. A workspace whose settings cannot be read is reported at
    its settings; the document is then checked alone."""
    quick = quick_findings(view)
    return together(view, quick, thorough_findings(view, quick) if quick.has_more else ())


def quick_findings(view: View) -> QuickFindings:
    """Return the findings that need neither a plan nor a proof."""
    from quire.library.check import QuickFindings

    alone = _checked_alone(view)
    if alone is not None:
        return QuickFindings(alone, False, False)
    try:
        return view.folder.check.quick(view.source)
    except QuireError:
        from quire import formats

        return QuickFindings(formats.check(view.source), False, False)


def thorough_findings(view: View, quick: QuickFindings) -> tuple[Diagnostic, ...]:
    """Return the findings that the quick ones leave out."""
    try:
        return view.folder.check.thorough(view.source, can_run=quick.can_run)
    except QuireError:
        return ()


def together(view: View, quick: QuickFindings, thorough: tuple[Diagnostic, ...]) -> tuple[Diagnostic, ...]:
    """Return both parts as they are shown: in one order, and without those that comments of the document hide."""
    found = (*quick.diagnostics, *thorough)
    if view.format not in ("", "settings"):
        found = view.folder.check.shown(view.source, found)
    return tuple(sorted(found, key=_in_order))


def _checked_alone(view: View) -> tuple[Diagnostic, ...] | None:
    """Return the findings about what is not a document; None for a document."""
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
    return None


def word_around(cursor: Span | None, text: str) -> Span | None:
    """Return the word that is being typed; None if nothing is."""
    if cursor is None:
        return None
    start, end = cursor.start, cursor.end
    while start > 0 and not text[start - 1].isspace():
        start -= 1
    while end < len(text) and not text[end].isspace():
        end += 1
    return Span(start, end)
