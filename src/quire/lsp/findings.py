"""Find what is wrong with a document, keep findings at their places while it is typed, and send them to the editor.

The quick and the thorough part together are always the findings of the whole check.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from quire import formats
from quire.errors import QuireError, Unreadable
from quire.lsp.protocol import ClientCapabilities, Outbox, framed
from quire.source import Span, line_end, line_start
from quire.text_diff import common_prefix, common_suffix

if TYPE_CHECKING:
    from quire.diagnostics import Diagnostic
    from quire.library.check import QuickFindings
    from quire.lsp.document_view import View
    from quire.lsp.wire import Json
    from quire.source import Source


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
        return QuickFindings(formats.check(view.source), False, False)


def thorough_findings(view: View, quick: QuickFindings) -> tuple[Diagnostic, ...]:
    """Return the findings that the quick ones leave out."""
    try:
        return view.folder.check.thorough(view.source, can_run=quick.can_run)
    except QuireError:
        return ()


def together(view: View, quick: QuickFindings, thorough: tuple[Diagnostic, ...]) -> tuple[Diagnostic, ...]:
    """Return both parts as they are shown: in one order, and without those that comments of the document hide."""
    findings = (*quick.diagnostics, *thorough)
    if view.format not in ("", "settings"):
        findings = view.folder.check.shown(view.source, findings)
    return tuple(sorted(findings, key=_in_order))


def _checked_alone(view: View) -> tuple[Diagnostic, ...] | None:
    """Return the findings about what is not a document; None for a document."""
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


class TextMove:
    """Finds the places of one text in the text that it was changed to."""

    def __init__(self, old: str, new: str) -> None:
        most = min(len(old), len(new))
        self._start = common_prefix(old, new, most)
        behind = common_suffix(old, new, most - self._start)
        self._old, self._new = old, new
        self._old_end, self._new_end = len(old) - behind, len(new) - behind
        self._is_in_line = "\n" not in old[self._start : self._old_end] + new[self._start : self._new_end]
        self._last = -1, line_start(new, self._start)
        """Where the line that was last looked for begins in both texts: equal lines keep their order."""

    def place(self, span: Span) -> Span | None:
        """Return where a place is now; None if its line is gone."""
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
        start = line_start(self._old, span.start)
        line, (before, at) = _line(self._old, start), self._last
        if start < before:
            before, at = -1, line_start(self._new, self._start)
        if start > before >= 0:
            at = self._new.find("\n", at) + 1 or -1
        while 0 <= at < self._new_end and _line(self._new, at) != line:
            at = self._new.find(f"\n{line}", at) + 1 or -1
        if not 0 <= at < self._new_end or span.end > start + len(line):
            return None
        self._last = start, at
        return Span(at + span.start - start, at + span.end - start)


def moved_findings(findings: Iterable[Diagnostic], old: Source, new: Source) -> tuple[Diagnostic, ...]:
    """Return findings about a text at their places in a new one, without those whose line is gone."""
    move = TextMove(old.text, new.text)
    return tuple([moved for finding in findings if (moved := _moved(finding, move, new.name)) is not None])


def _moved(finding: Diagnostic, move: TextMove, name: str) -> Diagnostic | None:
    span = move.place(finding.span)
    if span is None:
        return None
    related = tuple(
        replace(near, span=place)
        for near in finding.related
        if (place := near.span if near.source is not None and near.source.name != name else move.place(near.span))
    )
    # A fix says itself which text it replaces, so it is offered only where that text still exists.
    edits = [(edit, place) for edit in (finding.fix.edits if finding.fix else ()) if (place := move.place(edit.span))]
    fix = finding.fix and replace(finding.fix, edits=tuple(replace(edit, span=place) for edit, place in edits))
    return replace(
        finding, span=span, related=related, fix=fix if finding.fix and len(edits) == len(finding.fix.edits) else None
    )


def _line(text: str, start: int) -> str:
    return text[start : line_end(text, start)]


class Publisher:
    """Sends findings to one editor."""

    def __init__(self, outbox: Outbox, client: ClientCapabilities) -> None:
        self._outbox = outbox
        self.client = client
        self.answer = outbox.answer

    @property
    def pulls(self) -> bool:
        """True if the editor asks for findings itself."""
        return self.client.pulls

    @property
    def can_refresh(self) -> bool:
        """True if an editor that asks can be told to ask again."""
        return self.client.can("workspace.diagnostics.refreshSupport")

    def publish(self, uri: str, version: int | None, items: list[Json]) -> None:
        params: dict[str, object] = {"uri": uri, "diagnostics": items}
        if version is not None:
            params["version"] = version
        self._outbox.notify("textDocument/publishDiagnostics", params)

    def refresh(self) -> None:
        if self.can_refresh:
            self._outbox.send({"jsonrpc": "2.0", "id": "quire-refresh", "method": "workspace/diagnostic/refresh"})

    def log(self, problem: str) -> None:
        """Report a mistake of the server itself."""
        self._outbox.notify("window/logMessage", {"type": 1, "message": problem})


def report(items: list[Json], known_id: str) -> dict[str, Any]:
    """Return a report, or only that nothing has changed since the result that the editor knows."""
    import hashlib  # only editors that ask need it

    result = hashlib.sha256(framed({"items": items})).hexdigest()[:16]
    if known_id == result:
        return {"kind": "unchanged", "resultId": result}
    return {"kind": "full", "resultId": result, "items": items}


def problem_of(doing: str, error: BaseException) -> str:
    """Describe a mistake of the server itself in one line, with its place."""
    import traceback

    places = traceback.extract_tb(error.__traceback__)
    place = f" ({places[-1].filename.rpartition('/')[2]}:{places[-1].lineno})" if places else ""
    return f"{doing}: {type(error).__name__}: {error}{place}"
