"""Printers of diagnostics. Each takes the findings of all files and returns the whole text for standard output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from msgspec import Struct

from quire.diagnostics import Diagnostic, Edit, Severity, edits_of
from quire.display.visible import escaped, visible, width
from quire.source import NOWHERE, Source

FORMATS = ("full", "concise", "json", "github", "sarif")
FormatName = Literal["full", "concise", "json", "github", "sarif"]

_COLOURS = {
    Severity.ERROR: "\x1b[1;31m",
    Severity.WARNING: "\x1b[1;33m",
    Severity.LINT: "\x1b[1;36m",
    Severity.NOTE: "\x1b[1;32m",
}
_DIM, _BOLD, _OFF = "\x1b[34m", "\x1b[1m", "\x1b[0m"
_BEFORE, _LINE = 40, 100
_TAB = "    "
_LEVELS = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.LINT: "warning",
    Severity.NOTE: "notice",
}


class Findings(Struct, frozen=True):
    """The findings of one document."""

    source: Source
    diagnostics: tuple[Diagnostic, ...]


Printer = Callable[[Sequence[Findings], bool], str]


def printer(name: FormatName) -> Printer:
    """Return the printer of that name. Its second argument turns colours on, which most printers ignore."""
    if name == "sarif":
        from quire.display.sarif import render

        return render
    return {"full": _full, "concise": _concise, "json": _json, "github": _github}[name]


def _full(files: Sequence[Findings], colour: bool = False) -> str:
    """Print findings for people: the message, the place, the line with the characters marked, and what to do."""
    return "".join(
        "\n".join(finding_lines(file.source, found, colour)) + "\n\n" for file in files for found in file.diagnostics
    )


def finding_lines(source: Source, found: Diagnostic, colour: bool, notes: Sequence[tuple[str, str]] = ()) -> list[str]:
    """Return the lines of one finding for people. Notes, each with its name, follow the help; those with several lines
    are indented below their name. They are safe for a terminal already."""

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
    for name, text in ([("help", visible(found.help))] if found.help else []) + list(notes):
        first, *rest = text.split("\n")
        shown = f": {first}" if not rest else ":"
        lines.append(f"{gutter} {paint(_DIM, '=')} {paint(_BOLD, name)}{shown}")
        lines += [f"{gutter}     {line}".rstrip(" ") for line in (([first] if first else []) + rest if rest else [])]
    return lines


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


def _concise(files: Sequence[Findings], colour: bool = False) -> str:
    """Print one line for each finding: `file:line:column: CODE severity: message`."""
    lines = []
    for file in files:
        name = visible(file.source.name)
        for found in file.diagnostics:
            at = file.source.position(found.span.start)
            lines.append(
                f"{name}:{at.line}:{at.column}: {found.code.id} {found.severity.value}: {visible(found.message)}\n"
            )
    return "".join(lines)


def _github(files: Sequence[Findings], colour: bool = False) -> str:
    """Print workflow commands, which GitHub shows as annotations of a pull request."""
    lines = []
    for file in files:
        for found in file.diagnostics:
            start, end = file.source.position(found.span.start), file.source.position(found.span.end)
            place = {"file": file.source.name, "line": str(start.line), "col": str(start.column)}
            if end.line == start.line and end.column > start.column:
                place["endColumn"] = str(end.column)
            place["title"] = f"{found.code.id} {found.code.name}"
            properties = ",".join(f"{key}={_property(value)}" for key, value in place.items())
            text = f"{found.message} ({found.help})" if found.help else found.message
            lines.append(f"::{_LEVELS[found.severity]} {properties}::{_data(text)}\n")
    return "".join(lines)


def _data(text: str) -> str:
    """Percent-encode the characters that a message must not contain; a line end would begin another command."""
    escaped = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return visible(escaped)


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _json(files: Sequence[Findings], colour: bool = False) -> str:
    """Print findings as a list of objects, for programs."""
    import json  # not for other formats: it takes a while to load

    from quire.values import clean

    objects = [finding_data(file.source, found) for file in files for found in file.diagnostics]
    return escaped(clean(json.dumps(objects, indent=2, ensure_ascii=False))) + "\n"


def finding_data(source: Source, found: Diagnostic) -> dict[str, str | int | list[dict[str, str | int]]]:
    """Return a finding as JSON has it. All keys are defined here."""
    start, end = source.position(found.span.start), source.position(found.span.end)
    return {
        "file": source.name,
        "line": start.line,
        "column": start.column,
        "end_line": end.line,
        "end_column": end.column,
        "code": found.code.id,
        "name": found.code.name,
        "severity": found.severity.value,
        "message": found.message,
        "label": found.label,
        "help": found.help,
        "fix": [_edit(source, edit) for edit in edits_of(source, found)],
    }


def _edit(source: Source, edit: Edit) -> dict[str, str | int]:
    at = source.position(edit.span.start)
    return {"line": at.line, "column": at.column, "old": edit.old, "new": edit.new}
