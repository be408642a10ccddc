"""The lines of `## INPUTS`."""

from __future__ import annotations

import re

from quire.diagnostics import Diagnostic
from quire.formats.playbook.codes import errors, warnings
from quire.formats.playbook.syntax import InputDeclaration
from quire.formats.playbook.types import INPUT_TYPES
from quire.source import Source, Span

_LINE = re.compile(
    r"\n[^\S\n]*+(?:(-)[^\S\n]++`([A-Za-z][A-Za-z0-9_]*+)`[^\S\n]++\(([^):\n]*+)(?::([^)\n]*+))?(\))"
    r"(?::[^\S\n]*+(\S.*+)?|[^\S\n]*+)(?![^\n])|([-*+].*+|[0-9]{1,9}+[.)][^\S\n].*+))"
)
_DASH, _NAME, _TYPE, _VALUE, _CLOSE, _DESCRIPTION, _OTHER = range(1, 8)


def read_inputs(
    source: Source, start: int, end: int, declared: dict[str, InputDeclaration], found: list[Diagnostic]
) -> None:
    """Adds the inputs that the lines of a section declare; the end of its heading is at `start`. Prose is fine."""
    for line in _LINE.finditer(source.text, start, end):
        name = line[_NAME]
        if name is None:
            _complain(line[_OTHER].rstrip(), line.start(_OTHER), found)
            continue
        kind, value, description = line[_TYPE], line[_VALUE], line[_DESCRIPTION]
        resolved = INPUT_TYPES.get(kind) or INPUT_TYPES.get(kind.strip().lower(), "string")
        default: str | None = None
        options: tuple[str, ...] = ()
        if value and (value := value.strip()):
            if resolved == "enum":
                options = tuple([option for part in value.split(",") if (option := part.strip())])
            else:
                default = value
        if description:
            description = description.rstrip()
            stop = line.start(_DESCRIPTION) + len(description)
        else:
            description, stop = "", line.end(_CLOSE)
        this = InputDeclaration(
            name, resolved, default, options, description, default is None, line.start(_DASH), stop, line.start(_NAME)
        )
        twin = declared.setdefault(name, this)
        if twin is not this:
            found.append(
                Diagnostic(
                    errors.DUPLICATE_INPUT,
                    f'Duplicate input name: "{name}"',
                    this.name_span,
                    "declared again here",
                    f"it is declared on line {source.position(twin.start).line} already",
                )
            )


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
