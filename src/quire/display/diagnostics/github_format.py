"""Print workflow commands, which GitHub shows as annotations of a pull request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from quire.diagnostics import Severity
from quire.display.visible import visible

if TYPE_CHECKING:
    from quire.display.diagnostics import Findings

_LEVELS = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.LINT: "warning",
    Severity.NOTE: "notice",
}


def render(files: Sequence[Findings], colour: bool = False) -> str:
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
