"""Write `max_items` into a fan of a pipeline, below the line with its list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.diagnostics import Edit, Fix
from quire.source import Span

if TYPE_CHECKING:
    from quire.source import Source


def add_max_items(source: Source, over: Span, most: int) -> Fix | None:
    """Return the fix that adds a limit below `over: LIST`; None if the list is not alone on the line of its key."""
    text = source.text
    start = text.rfind("\n", 0, over.start) + 1
    end = text.find("\n", over.end) + 1
    line = text[start:end]
    before = text[start : over.start]
    indent = before[: len(before) - len(before.lstrip(" "))]
    if before != f"{indent}over: " or end == 0 or "\n" in text[over.start : over.end]:
        return None
    # The whole line is in the edit, so that a changed text is noticed.
    edit = Edit(Span(start, end), line, f"{line}{indent}max_items: {most}\n")
    return Fix(f"add max_items: {most}", (edit,), safe=False)
