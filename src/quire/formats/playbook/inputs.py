"""The lines of `## INPUTS`."""

from __future__ import annotations

import re

from quire.diagnostics import Diagnostic
from quire.formats.playbook.codes import warnings
from quire.formats.playbook.making import quick
from quire.formats.playbook.syntax import InputDeclaration
from quire.formats.playbook.types import INPUT_TYPES
from quire.source import Span

_LINE = re.compile(
    r"\n[^\S\n]*+(?:(-)[^\S\n]++`([A-Za-z][A-Za-z0-9_]*+)`[^\S\n]++\((?!\))([^):\n]*+)(?::([^)\n]*+))?\)"
    r"(?:|:[^\S\n]*+(\S.*+))[^\S\n]*+(?![^\n])|([-*+].*+))"
)
_input = quick(InputDeclaration)
_span = quick(Span)


def read_inputs(text: str, start: int, end: int, found: list[Diagnostic]) -> list[InputDeclaration]:
    """The inputs that the lines of a section declare; the end of its heading is at `start`. Prose is fine."""
    declared = []
    for line in _LINE.finditer(text, start, end):
        dash, name, kind, value, description, other = line.groups()
        if dash is None:
            _complain(other.rstrip(), line.start(6), found)
            continue
        resolved = INPUT_TYPES.get(kind) or INPUT_TYPES.get(kind.strip().lower(), "string")
        value = value.strip() if value else ""
        options: tuple[str, ...] = ()
        if value and resolved == "enum":
            options = tuple([option for part in value.split(",") if (option := part.strip())])
            value = ""
        if description:
            description = description.rstrip()
            stop = line.start(5) + len(description)
        else:
            stop = line.start() + len(line[0].rstrip())
        at = line.start(2)
        spans = _span(line.start(1), stop), _span(at, at + len(name))
        declared.append(_input(name, resolved, value or None, options, description or "", not value, *spans))
    return declared


def _complain(text: str, at: int, found: list[Diagnostic]) -> None:
    # A rule (`---`) and bold text (`**`) begin like list items and are none.
    if not text.startswith("**") and text.strip("-*+ \t"):
        found.append(
            Diagnostic(
                warnings.MALFORMED_INPUT,
                f'Malformed input line: "{text}"',
                Span(at, at + len(text)),
                "declares nothing",
                "the form is - `name` (type): description",
            )
        )
