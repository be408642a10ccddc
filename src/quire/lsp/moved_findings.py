"""Move findings about a text to their places in the text that it was changed to.

So findings that take long to find stay where they belong until they have been found again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from quire.source import Span
from quire.text_diff import common_prefix, common_suffix

if TYPE_CHECKING:
    from collections.abc import Iterable

    from quire.diagnostics import Diagnostic
    from quire.source import Source


class TextMove:
    """Finds the places of one text in the text that it was changed to."""

    def __init__(self, old: str, new: str) -> None:
        most = min(len(old), len(new))
        self._start = common_prefix(old, new, most)
        behind = common_suffix(old, new, most - self._start)
        self._old, self._new = old, new
        self._old_end, self._new_end = len(old) - behind, len(new) - behind
        self._is_in_line = "\n" not in old[self._start : self._old_end] + new[self._start : self._new_end]
        self._last = -1, new.rfind("\n", 0, self._start) + 1
        """Where the line that was last looked for begins in both texts: equal lines keep their order."""

    def place(self, span: Span) -> Span | None:
        """Return where a place is now; None if its line is not there any more."""
        by = self._new_end - self._old_end
        if span.end <= self._start:
            return span
        if span.start >= self._old_end:
            return Span(span.start + by, span.end + by)
        if self._is_in_line:
            # Something was typed in it, or beside it.
            end = span.end + by if span.end >= self._old_end else self._new_end
            return Span(min(span.start, self._start), end)
        return self._in_same_line(span)

    def _in_same_line(self, span: Span) -> Span | None:
        """Look for the line of a place where several lines have changed."""
        start = self._old.rfind("\n", 0, span.start) + 1
        line, (known, at) = _line(self._old, start), self._last
        if start < known:
            known, at = -1, self._new.rfind("\n", 0, self._start) + 1
        if start > known >= 0:
            at = self._new.find("\n", at) + 1 or -1
        while 0 <= at < self._new_end and _line(self._new, at) != line:
            at = self._new.find(f"\n{line}", at) + 1 or -1
        if not 0 <= at < self._new_end or span.end > start + len(line):
            return None
        self._last = start, at
        return Span(at + span.start - start, at + span.end - start)


def moved_findings(found: Iterable[Diagnostic], old: Source, new: Source) -> tuple[Diagnostic, ...]:
    """Return findings about a text at their places in a new one, without those whose line is not there any more."""
    move = TextMove(old.text, new.text)
    return tuple([moved for one in found if (moved := _moved(one, move, new.name)) is not None])


def _moved(found: Diagnostic, move: TextMove, name: str) -> Diagnostic | None:
    span = move.place(found.span)
    if span is None:
        return None
    related = tuple(
        replace(one, span=place)
        for one in found.related
        if (place := one.span if one.source is not None and one.source.name != name else move.place(one.span))
    )
    # A fix says itself which text it replaces, so it is offered only where that text is still there.
    edits = [(one, place) for one in (found.fix.edits if found.fix else ()) if (place := move.place(one.span))]
    fix = found.fix and replace(found.fix, edits=tuple(replace(one, span=place) for one, place in edits))
    return replace(
        found, span=span, related=related, fix=fix if found.fix and len(edits) == len(found.fix.edits) else None
    )


def _line(text: str, start: int) -> str:
    end = text.find("\n", start)
    return text[start : end if end >= 0 else len(text)]
