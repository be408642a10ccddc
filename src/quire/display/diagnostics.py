"""Printers of diagnostics. Each takes the findings of all files and returns the whole text for standard output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from quire.diagnostics import Diagnostic, Fix, Related, Severity, fix_of
from quire.display.visible import escaped, visible, width
from quire.source import NOWHERE, Source, Span, relative_to_here

if TYPE_CHECKING:
    from quire.values import Value

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
_MOST_PLACES = 20
"""Most related places of a finding that are printed for people."""
_MOST_NODES = 12
"""Most nodes of a path that are printed; of a longer one the first and the last are."""
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
    hidden: tuple[tuple[Diagnostic, str], ...] = ()
    """Findings that a comment hides, each with its reason."""


Printer = Callable[[Sequence[Findings], bool], str]


def printer(name: FormatName) -> Printer:
    """Return the printer of that name. Its second argument turns colours on, which most printers ignore."""
    if name == "sarif":
        from quire.display.report_formats import render

        return render
    return {"full": _full, "concise": _concise, "json": _json, "github": _github}[name]


def _full(files: Sequence[Findings], colour: bool = False) -> str:
    """Print findings for people: the message, the place, the line with the characters marked, and what to do."""
    return "".join(
        "\n".join(finding_lines(file.source, diagnostic, colour)) + "\n\n"
        for file in files
        for diagnostic in file.diagnostics
    )


def finding_lines(
    source: Source, finding: Diagnostic, colour: bool, notes: Sequence[tuple[str, str]] = ()
) -> list[str]:
    """Return the lines of one finding for people. Notes, each with its name, follow the help; those with several lines
    are indented below their name. They are safe for a terminal already."""

    def paint(code: str, text: str) -> str:
        return f"{code}{text}{_OFF}" if colour else text

    mark = _COLOURS[finding.severity]
    places = _places(source, finding)[:_MOST_PLACES]
    numbers = [file.position(span.start).line for file, span, _ in ((source, finding.span, ""), *places)]
    gutter = " " * len(str(max(numbers)))
    bar = paint(_DIM, "|")

    def excerpt(of: Source, span: Span, arrow: str, label: str, sign: str) -> list[str]:
        at = of.position(span.start)
        lines = [f"{gutter}{paint(_DIM, arrow)} {visible(_name(of, source))}:{at.line}:{at.column}"]
        # A span may be empty, such as the end of an expression; only NOWHERE has no line to show.
        if span == NOWHERE:
            return lines if sign == "^" else [f"{lines[0]}: {label}"]
        text, column, length = _excerpt(of.line(at.line), at.column - 1, span.end - span.start)
        under = " " * column + paint(mark if sign == "^" else _DIM, sign * length + (f" {label}" if label else ""))
        number = str(at.line).rjust(len(gutter))
        return [*lines, f"{gutter} {bar}", f"{paint(_DIM, number)} {bar} {text}", f"{gutter} {bar} {under}"]

    doubt = " (possible)" if finding.confidence == "possible" else ""
    head = f"{finding.severity.value}[{finding.code.id}]"
    lines = [f"{paint(mark, head)}{paint(_BOLD, ': ' + visible(finding.message) + doubt)}"]
    lines += excerpt(source, finding.span, "-->", visible(finding.label), "^")
    for of, span, label in places:
        lines += excerpt(of, span, ":::", label, "-")
    for name, text in (*_own_notes(source, finding), *notes):
        first, *rest = text.split("\n")
        shown = f": {first}" if not rest else ":"
        lines.append(f"{gutter} {paint(_DIM, '=')} {paint(_BOLD, name)}{shown}")
        lines += [f"{gutter}     {line}".rstrip(" ") for line in (([first] if first else []) + rest if rest else [])]
    return lines


def _own_notes(source: Source, finding: Diagnostic) -> list[tuple[str, str]]:
    """Return the notes of a finding itself, each with its name."""
    notes = []
    if (more := len(_places(source, finding)) - _MOST_PLACES) > 0:
        notes.append(("more", f"{more:,} places are not shown"))
    if path := path_text(finding):
        notes.append(("path", visible(path)))
    if finding.help:
        notes.append(("help", visible(finding.help)))
    if fix := fix_of(source, finding):
        notes.append(("fix", f"{visible(fix.title)}  (quire check --fix{'' if fix.safe else ' --unsafe'})"))
    return notes


def path_text(finding: Diagnostic) -> str:
    """Return the path of a flow in one line: `1 http__get → page → 5 shell argv[2]`. Empty without a path."""
    nodes = [place.node for place in finding.flow]
    if len(nodes) > _MOST_NODES:
        half = _MOST_NODES // 2
        nodes = [*nodes[:half], "…", *nodes[-half:]]
    return " → ".join(nodes)


def _places(source: Source, finding: Diagnostic) -> list[tuple[Source, Span, str]]:
    """Return the related places with their texts. Neighbours at one place are one; the place of the finding itself is
    left out, because its line is printed already."""
    places = []
    for (of, span), group in groupby(finding.related, lambda place: (place.source or source, place.span)):
        several = list(group)
        if of is source and span == finding.span:
            continue
        nodes = " → ".join(place.node for place in several if place.node)
        places.append((of, span, visible(": ".join(text for text in (nodes, several[0].message) if text))))
    return places


def _name(of: Source, source: Source) -> str:
    """Return the name of a document: of the checked one as it is, of others as people type it here."""
    return of.name if of is source else relative_to_here(of.name) or of.name


def _excerpt(line: str, start: int, length: int) -> tuple[str, int, int]:
    """Return the part of a line around a span, with the column and the length of the span in it.

    A span that continues after its line is marked up to the end of the line.
    """
    end = min(start + length, len(line))
    first = max(0, start - _BEFORE) if len(line) > _LINE else 0
    last = min(len(line), first + _LINE)
    end = min(end, last)
    parts = (line[first:start], line[start:end], line[end:last])
    before, marked, after = (visible(part.replace("\t", _TAB)) for part in parts)
    opening, closing = "…" if first else "", "…" if last < len(line) else ""
    return f"{opening}{before}{marked}{after}{closing}", len(opening) + width(before), max(1, width(marked))


def _concise(files: Sequence[Findings], colour: bool = False) -> str:
    """Print one line for each finding: `file:line:column: CODE severity: message`."""
    lines = []
    for file in files:
        name = visible(file.source.name)
        for diagnostic in file.diagnostics:
            at = file.source.position(diagnostic.span.start)
            place, kind = f"{name}:{at.line}:{at.column}", f"{diagnostic.code.id} {diagnostic.severity.value}"
            lines.append(f"{place}: {kind}: {visible(_one_line(diagnostic))}\n")
    return "".join(lines)


def _one_line(finding: Diagnostic) -> str:
    """Return the message with the confidence and the path."""
    doubt = " (possible)" if finding.confidence == "possible" else ""
    path = path_text(finding)
    return f"{finding.message}{doubt}" + (f" [{path}]" if path else "")


def _github(files: Sequence[Findings], colour: bool = False) -> str:
    """Print workflow commands, which GitHub shows as annotations of a pull request."""
    lines = []
    for file in files:
        for diagnostic in file.diagnostics:
            start, end = file.source.position(diagnostic.span.start), file.source.position(diagnostic.span.end)
            place = {"file": file.source.name, "line": str(start.line), "col": str(start.column)}
            if end.line == start.line and end.column > start.column:
                place["endColumn"] = str(end.column)
            place["title"] = f"{diagnostic.code.id} {diagnostic.code.name}"
            values = {key: _data(value).replace(":", "%3A").replace(",", "%2C") for key, value in place.items()}
            properties = ",".join(f"{key}={value}" for key, value in values.items())
            text = f"{_one_line(diagnostic)} ({diagnostic.help})" if diagnostic.help else _one_line(diagnostic)
            lines.append(f"::{_LEVELS[diagnostic.severity]} {properties}::{_data(text)}\n")
    return "".join(lines)


def _data(text: str) -> str:
    """Percent-encode the characters that a message must not contain; a line end would begin another command."""
    escaped = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return visible(escaped)


def _json(files: Sequence[Findings], colour: bool = False) -> str:
    """Print findings as a list of objects, for programs."""
    import json  # not for other formats: it takes a while to load

    from quire.values import clean

    objects = [finding_data(file.source, diagnostic) for file in files for diagnostic in file.diagnostics]
    return escaped(clean(json.dumps(objects, indent=2, ensure_ascii=False))) + "\n"


def finding_data(source: Source, finding: Diagnostic, file: str = "") -> dict[str, Value]:
    """Return a finding as JSON has it; `file` is the name of its document, if that is not the name of the source. All
    keys are defined here."""
    name = file or source.name
    fix = fix_of(source, finding)
    return {
        "file": name,
        **_range(source, finding.span),
        "code": finding.code.id,
        "name": finding.code.name,
        "severity": finding.severity.value,
        "confidence": finding.confidence,
        **({"stops": True} if finding.stops else {}),
        "message": finding.message,
        "label": finding.label,
        "help": finding.help,
        "fix": _edits(source, fix) if fix and fix.safe else [],
        "fixes": [{"title": fix.title, "safe": fix.safe, "edits": _edits(source, fix)}] if fix else [],
        "related": [_related(source, place, name) for place in finding.related],
    }


def _range(source: Source, span: Span) -> dict[str, Value]:
    start, end = source.position(span.start), source.position(span.end)
    return {"line": start.line, "column": start.column, "end_line": end.line, "end_column": end.column}


def _related(source: Source, place: Related, name: str) -> dict[str, Value]:
    of = place.source or source
    file = name if of is source else _name(of, source)
    return {"file": file, **_range(of, place.span), "message": place.message, "node": place.node}


def _edits(source: Source, fix: Fix) -> list[Value]:
    places = [(source.position(edit.span.start), edit) for edit in fix.edits]
    return [{"line": at.line, "column": at.column, "old": edit.old, "new": edit.new} for at, edit in places]
