"""Print findings for people: the message, the place, the line with the characters marked, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from quire.diagnostics import Diagnostic, Severity
from quire.display.visible import visible, width
from quire.source import NOWHERE, Source

if TYPE_CHECKING:
    from quire.display.diagnostics import Findings

_COLOURS = {
    Severity.ERROR: "\x1b[1;31m",
    Severity.WARNING: "\x1b[1;33m",
    Severity.LINT: "\x1b[1;36m",
    Severity.NOTE: "\x1b[1;32m",
}
_DIM, _BOLD, _OFF = "\x1b[34m", "\x1b[1m", "\x1b[0m"
_BEFORE, _LINE = 40, 100
_TAB = "    "


def render(files: Sequence[Findings], colour: bool = False) -> str:
    return "".join(_entry(file.source, found, colour) for file in files for found in file.diagnostics)


def _entry(source: Source, found: Diagnostic, colour: bool) -> str:
    def paint(code: str, text: str) -> str:
        return f"{code}{text}{_OFF}" if colour else text

    at = source.position(found.span.start)
    mark = _COLOURS[found.severity]
    gutter = " " * len(str(at.line))
    bar = paint(_DIM, "|")
    head = f"{found.severity.value}[{found.code.id}]"
    lines = [
        f"{paint(mark, head)}{paint(_BOLD, ': ' + visible(found.message))}",
        f"{gutter}{paint(_DIM, '-->')} {visible(source.name)}:{at.line}:{at.column}",
    ]
    # A span may be empty, such as the end of an expression; only NOWHERE has no line to show.
    if found.span != NOWHERE:
        text, column, length = _excerpt(source.line(at.line), at.column - 1, found.span.end - found.span.start)
        under = " " * column + paint(mark, "^" * length + (f" {visible(found.label)}" if found.label else ""))
        lines += [
            f"{gutter} {bar}",
            f"{paint(_DIM, str(at.line))} {bar} {text}",
            f"{gutter} {bar} {under}",
        ]
    if found.help:
        lines.append(f"{gutter} {paint(_DIM, '=')} {paint(_BOLD, 'help')}: {visible(found.help)}")
    return "\n".join(lines) + "\n\n"


def _excerpt(line: str, start: int, length: int) -> tuple[str, int, int]:
    """Return the part of a line around a span, with the column and the length of the span in it.

    A span that continues after its line is marked up to the end of the line.
    """
    end = min(start + length, len(line))
    first = max(0, start - _BEFORE) if len(line) > _LINE else 0
    last = min(len(line), first + _LINE)
    end = min(end, last)
    before, marked, after = (_show(line[a:b]) for a, b in ((first, start), (start, end), (end, last)))
    opening, closing = "…" if first else "", "…" if last < len(line) else ""
    return f"{opening}{before}{marked}{after}{closing}", len(opening) + width(before), max(1, width(marked))


def _show(text: str) -> str:
    return visible(text.replace("\t", _TAB))
