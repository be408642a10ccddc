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
    r"\n[^\S\n]*+(?:-[^\S\n]++`([A-Za-z][A-Za-z0-9_]*+)`[^\S\n]++\(([^)\n]++)\)"
    r"(?:|:[^\S\n]*+(\S.*+))[^\S\n]*+(?![^\n])|([-*+].*+))"
)
_input = quick(InputDeclaration)
_span = quick(Span)


def read_inputs(text: str, start: int, end: int, found: list[Diagnostic]) -> list[InputDeclaration]:
    """The inputs that the lines of a section declare; the end of its heading is at `start`. Prose is fine."""
    declared = []
    for line in _LINE.finditer(text, start, end):
        name, spec, description, other = line.groups()
        if other is not None:
            _complain(other.rstrip(), line.start(4), found)
            continue
        kind, _, value = spec.partition(":")
        resolved = INPUT_TYPES.get(kind.strip().lower(), "string")
        value = value.strip()
        options: tuple[str, ...] = ()
        if resolved == "enum":
            options = tuple([option for part in value.split(",") if (option := part.strip())])
            value = ""
        at = line.start(1)
        declared.append(
            _input(
                name,
                resolved,
                value or None,
                options,
                description.rstrip() if description else "",
                not value,
                _span(text.index("-", line.start()), line.start() + len(line[0].rstrip())),
                _span(at, at + len(name)),
            )
        )
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
