"""Print one line for each finding: `file:line:column: CODE severity: message`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from quire.display.visible import visible

if TYPE_CHECKING:
    from quire.display.diagnostics import Findings


def render(files: Sequence[Findings], colour: bool = False) -> str:
    lines = []
    for file in files:
        name = visible(file.source.name)
        for found in file.diagnostics:
            at = file.source.position(found.span.start)
            lines.append(
                f"{name}:{at.line}:{at.column}: {found.code.id} {found.severity.value}: {visible(found.message)}\n"
            )
    return "".join(lines)
