"""Write the headings, directives, markers and inputs of a playbook in one way. Prose is never touched.

The meaning stays the same: the tree before and after is compared, and a change that would alter it is not made.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from quire.diagnostics import Edit
from quire.formats.playbook.parse import parse
from quire.formats.playbook.scan import (
    AT,
    CONDITION,
    DEFAULT,
    ELICIT,
    FIELD,
    KIND,
    MARKER,
    NAME,
    OPERATOR,
    OPTIONS,
    OUTPUT,
    SECTION,
    STEP,
    SUBSTEP,
    TEXTS,
    TITLE,
    TYPE,
    VALUE,
    VARIABLE,
    line_span,
)
from quire.formats.playbook.syntax import ARTIFACT_TYPES, ELICIT_KINDS, OUTPUT_TYPES
from quire.lsp.document_text import safe_edits
from quire.lsp.playbook.layout import directives_of, layout_of, steps_of
from quire.lsp.playbook.tools import read_tool
from quire.patterns import late_pattern
from quire.source import Source, Span

if TYPE_CHECKING:
    from re import Match

    from quire.formats.playbook.syntax import InputDeclaration, Playbook
    from quire.lsp.document_view import View

_WORD = late_pattern(r"[A-Za-z0-9_]++")
_INPUT = late_pattern(r"-[^\S\n]++`[^`\n]++`[^\S\n]++\(([^):\n]*+)(?::([^)\n]*+))?\)(:?+)")
_ARTIFACT = late_pattern(r"^([^\S\n]*+)(type|from):[^\S\n]*+(\S++)[^\S\n]*+$")


def format(view: View, span: Span) -> list[Edit]:
    """Return the edits of a part of the document. Nothing is done in a document that cannot be read."""
    tree = view.reading.playbook
    if tree is None:
        return []
    edits = safe_edits(view.source.text, list(_edits(view, tree)), lambda text: _means_same(view.source, text))
    return [edit for edit in edits if span.start <= edit.span.start and edit.span.end <= span.end]


def _edits(view: View, tree: Playbook) -> Iterator[Edit]:
    """Yield an edit for each line that is written otherwise."""
    source, layout = view.source, layout_of(view)
    text = source.text
    ours = {directive.start for step in steps_of(tree) for directive in directives_of(step)}
    parts = {part.start: part for part in layout.parts}
    starts = {step.start for step in steps_of(tree)}
    for kind, line in zip(layout.scan.kinds, layout.scan.lines, strict=True):
        place = line_span(line)
        part = parts.get(line.start())
        if kind in (STEP, SUBSTEP):
            is_step = part is not None and place.start in starts
            new = f"{'###' if part.parent else '##'} STEP {part.label}: {part.title}" if part and is_step else ""
        elif kind == SECTION:
            name = " ".join(line[SECTION].split()).upper()
            new = f"## {name}" if name in ("SYSTEM", "SYSTEM PROMPT", "INPUTS", "ARTIFACTS", "OUTPUT") else ""
        elif kind == TITLE:
            new = f"# {tree.title}" if line is layout.scan.title else ""
        elif kind in (MARKER, CONDITION):
            has_condition = line.lastindex == CONDITION
            condition = f' {line[VARIABLE]} {line[OPERATOR]} "{line[VALUE]}"' if has_condition else ""
            new = f"```{line[MARKER]}{condition}```" if layout.part_at(place.start) else ""
        elif place.start in ours:
            new = _directive(text, kind, line, place)
        else:
            continue
        yield from _line(source, place, new)
    for declared in tree.inputs:
        yield from _line(source, declared.span, _input(text, declared))
    for section in layout.sections:
        if section.kind == "artifacts":
            yield from _artifact(source, section.heading.end, section.end)


def _line(source: Source, place: Span, new: str) -> Iterator[Edit]:
    """Yield the edit that makes a line consist of a text; none if it does already."""
    if not new:
        return
    line = source.line_span(source.position(place.start).line)
    old = line.of(source.text)
    if old != new:
        yield Edit(line, old, new)


def _directive(text: str, kind: int, line: Match[str], place: Span) -> str:
    if kind == OUTPUT:
        return _output(line)
    if kind == ELICIT:
        return _elicit(line)
    written = place.of(text)
    if kind != AT:
        return ""
    if written.startswith("@tool("):
        return _tool(text, place)
    if written.startswith("@context("):
        return f"@context({', '.join(_WORD.findall(written, len('@context(')))})"
    return written


def _output(line: Match[str]) -> str:
    name, type, quoted, field = line.group(NAME, TYPE, OPTIONS, FIELD)
    kind = f": {type.lower() if type.lower() in OUTPUT_TYPES else type}" if type else ""
    options = "".join(f', "{option}"' for option in quoted.split('"')[1::2]) if quoted else ""
    return f"@output({name}{kind}{options}" + (f', extract:"{field}")' if field else ")")


def _elicit(line: Match[str]) -> str:
    kind, quoted, default = line.group(KIND, TEXTS, DEFAULT)
    kind = kind.lower() if kind.lower() in ELICIT_KINDS else kind
    texts = "".join(f', "{text}"' for text in (quoted or "").split('"')[1::2])
    return f"@elicit({kind}{texts}" + (f', default:"{default}")' if default is not None else ")")


def _tool(text: str, place: Span) -> str:
    call = read_tool(text, place.start, place.end - 1)
    if call is None or call.tool_span is None:
        return ""
    names = []
    for span in (call.connection_span, call.tool_span):
        sign = '"' if text[span.start - 1] == '"' else ""
        names.append(f"{sign}{span.of(text)}{sign}")
    arguments = text[call.arguments : place.end - 1].strip() if call.arguments is not None else ""
    return f"@tool({', '.join([*names, arguments] if arguments else names)})"


def _input(text: str, declared: InputDeclaration) -> str:
    """Return the line of an input. Its description is prose, and stays as it is."""
    match = _INPUT.match(text, declared.start, declared.end + 1)
    if not match:
        return ""
    kind = " ".join(match[1].split()) or declared.type
    value = match[2].strip() if match[2] else ""
    if declared.options:
        value = ", ".join(declared.options)
    about = f": {declared.description}" if declared.description else ""
    return f"- `{declared.name}` ({kind}{f': {value}' if value else ''}){about}"


def _artifact(source: Source, start: int, end: int) -> Iterator[Edit]:
    """Yield edits of the lines `type:` and `from:`."""
    first, last = source.position(start).line, source.position(end).line
    for number in range(first + 1, last + 1):
        line = source.line(number)
        match = _ARTIFACT.match(line)
        if match:
            value = match[3].lower() if match[2] == "type" and match[3].lower() in ARTIFACT_TYPES else match[3]
            yield from _line(source, source.line_span(number), f"{match[2]}: {value}")


def _means_same(source: Source, text: str) -> bool:
    """Tell whether a text has the same tree as a document."""
    from quire.formats.playbook.write import as_vector

    before = as_vector(parse(source))["definition"]
    after = as_vector(parse(Source.of(text, source.name)))["definition"]
    return before == after
