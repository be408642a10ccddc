"""Notes about code fences: what inside of them would have been more than text, and which are never closed.

A fence that begins with the word of a branch marker is a marker that lost its end: no language has such a name.
"""

from __future__ import annotations

from re import Match

from quire.diagnostics import Diagnostic
from quire.formats.playbook.codes import notes
from quire.formats.playbook.directives import looks_like
from quire.formats.playbook.markers import marker_look_alike, marker_word
from quire.formats.playbook.scan import (
    AT,
    CONDITION,
    ELICIT,
    MARKER,
    OUTPUT,
    STEP,
    SUBSTEP,
    Scan,
    is_section,
    line_span,
)
from quire.source import Source

_MEANT = (OUTPUT, ELICIT, SUBSTEP, CONDITION, MARKER)


def note_fences(source: Source, result: Scan, found: list[Diagnostic]) -> None:
    heads = [line for line in result.lines if is_section(line)]
    at = 0
    for (start, _), inside in zip(result.blocks, result.fenced, strict=True):
        while at < len(heads) and heads[at].start() < start:
            at += 1
        in_step = at > 0 and heads[at - 1].lastindex == STEP
        if in_step:
            _warn_of_marker(source.text, start, found)
        meant = [line for line in inside if _means_something(line, in_step)]
        if meant:
            more = f" (and {len(meant) - 1} more like it)" if len(meant) > 1 else ""
            text = meant[0][0].strip()
            shown = text if len(text) <= 60 else f"{text[:60]}…"
            message = f"Inside a code fence, so content: {shown}{more}"
            label = f"the fence begins on line {source.position(start).line}"
            found.append(Diagnostic(notes.FENCED, message, line_span(meant[0]), label))
    for line in result.unclosed:
        message = "This code fence is never closed: read as a line of text"
        found.append(Diagnostic(notes.UNCLOSED_FENCE, message, line_span(line)))


def _warn_of_marker(text: str, start: int, found: list[Diagnostic]) -> None:
    end = text.find("\n", start)
    line = text[start:end]
    opening = line.strip()
    if word := marker_word(opening):
        found.append(marker_look_alike(opening, word, start + len(line) - len(line.lstrip())))


def _means_something(line: Match[str], in_step: bool) -> bool:
    """Whether a line inside a fence would have been more than text outside of it."""
    if is_section(line):
        return True
    if in_step and line.lastindex == AT:
        return looks_like(line[0].strip()) is not None
    return in_step and line.lastindex in _MEANT
