"""Reads a playbook: text in, a syntax tree and diagnostics out. Never raises for what a document says.

The work is linear in the length of the text, whatever it is: each line is looked at a fixed number of times, by
patterns that cannot go back.
"""

from __future__ import annotations

from operator import attrgetter

from quire.diagnostics import Diagnostic, Severity
from quire.formats.playbook.body import read_body
from quire.formats.playbook.codes import errors, notes
from quire.formats.playbook.fenced import note_fences
from quire.formats.playbook.reading import Reading
from quire.formats.playbook.scan import Scan, line_span, scan
from quire.source import MAX_DOCUMENT_BYTES, NOWHERE, Source, Span

NO_TITLE = "No title found: document must contain a level-1 heading (# Title)"

_in_order = attrgetter("span.start")


def parse(source: Source) -> Reading:
    text = source.text
    if source.exceeds(MAX_DOCUMENT_BYTES):
        return Reading(source, None, (_too_large(f"{source.size:,} bytes"),))
    if not text or text.isspace():
        return Reading(source, None, (_EMPTY,))
    result = scan(text)
    found: list[Diagnostic] = []
    if not result.title or result.title.start():
        _check_title(text, result, found)
    playbook = read_body(source, result, found)
    if result.blocks or result.unclosed:
        note_fences(source, result, found)
    if not found:
        return Reading(source, playbook, ())
    found.sort(key=_in_order)
    wrong = any(one.severity is Severity.ERROR for one in found)
    return Reading(source, None if wrong else playbook, tuple(found))


def unread(name: str, kind: str) -> Reading:
    """The reading of a file that `read_source` gave up as `empty` or `too_large` before there was a text."""
    return Reading(Source.of("", name), None, (_EMPTY if kind == "empty" else _too_large("more than 200,000 bytes"),))


_EMPTY = Diagnostic(errors.EMPTY, "Document is empty", NOWHERE)


def _too_large(size: str) -> Diagnostic:
    help = f"it has {size}; 200,000 is the limit"
    return Diagnostic(errors.TOO_LARGE, "Document exceeds 200KB size limit", NOWHERE, "", help)


def _check_title(text: str, result: Scan, found: list[Diagnostic]) -> None:
    if result.title:
        before = text[: result.title.start()]
        if result.fenced_title:
            note = "The title stands inside a code fence, which is read as text"
            found.append(Diagnostic(notes.FENCED_TITLE, note, line_span(result.title)))
        elif not before.isspace():
            start = len(before) - len(before.lstrip())
            stop = before.index("\n", start)
            note = "Text before the title is not part of the playbook"
            found.append(Diagnostic(notes.BEFORE_TITLE, note, Span(start, stop)))
    elif result.late_title:
        span, help = line_span(result.late_title), "move this heading above the first ## section"
        found.append(Diagnostic(errors.NO_TITLE, NO_TITLE, span, "comes after a ## section", help))
    else:
        help = "begin the document with # and its title"
        found.append(Diagnostic(errors.NO_TITLE, NO_TITLE, NOWHERE, "", help))
