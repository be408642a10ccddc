"""The lines of `## INPUTS`."""

from __future__ import annotations

import re

from quire.diagnostics import Diagnostic
from quire.formats.playbook.codes import warnings
from quire.formats.playbook.making import quick
from quire.formats.playbook.syntax import InputDeclaration
from quire.formats.playbook.types import INPUT_TYPES
from quire.source import Span

_INPUT = re.compile(r"-\s++`([A-Za-z][A-Za-z0-9_]*+)`\s++\(([^)]++)\)(?::\s*+(\S.*+))?", re.DOTALL)
_BULLETS = frozenset("-*+")
_input = quick(InputDeclaration)
_span = quick(Span)


def read_input(text: str, at: int, found: list[Diagnostic]) -> InputDeclaration | None:
    """Reads a line without the space around it, which stands at `at`. Prose between the list items is fine."""
    if not text or text[0] not in _BULLETS:
        return None
    span = _span(at, at + len(text))
    match = _INPUT.fullmatch(text)
    if not match:
        # A rule (`---`) and bold text (`**`) begin like list items and are none.
        if not text.startswith("**") and text.strip("-*+ \t"):
            found.append(
                Diagnostic(
                    warnings.MALFORMED_INPUT,
                    f'Malformed input line: "{text}"',
                    span,
                    "declares nothing",
                    "the form is - `name` (type): description",
                )
            )
        return None
    name, spec, description = match.groups()
    kind, _, value = spec.partition(":")
    resolved = INPUT_TYPES.get(kind.strip().lower(), "string")
    value = value.strip()
    options: tuple[str, ...] = ()
    default = value or None
    if resolved == "enum":
        options = tuple(option for part in value.split(",") if (option := part.strip()))
        default = None
    return _input(
        name,
        resolved,
        default,
        options,
        description or "",
        default is None,
        span,
        _span(at + match.start(1), at + match.end(1)),
    )
