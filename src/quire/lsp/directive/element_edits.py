"""Edits that put elements into the fence of a directive, with the indentation of their place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from quire.diagnostics import Edit
from quire.source import Span

if TYPE_CHECKING:
    from quire.lsp.directive.tags import Scan, Tagged

_STEP = "  "


def indent_of(text: str, offset: int) -> str:
    """Return the white space at the start of the line of an offset."""
    start = text.rfind("\n", 0, offset) + 1
    line = text[start:offset]
    return line[: len(line) - len(line.lstrip())] if line.strip() else line


def begins_line(text: str, offset: int) -> bool:
    return not text[text.rfind("\n", 0, offset) + 1 : offset].strip()


def with_child(text: str, parent: Tagged, *children: str) -> Edit | None:
    """Return the edit that puts elements at the end of another one; None if that is not whole."""
    indent = indent_of(text, parent.start)
    inner = "".join(f"{indent}{_STEP}{line}\n" for child in children for line in child.split("\n"))
    if parent.empty:
        start = parent.start
        old = text[start : parent.end]
        opening = old[:-2].rstrip() + ">"
        return Edit(Span(start, parent.end), old, f"{opening}\n{inner}{indent}</{parent.tag}>")
    if parent.closing is None:
        return None
    at = parent.inner_end
    if begins_line(text, at):
        line = text.rfind("\n", 0, at) + 1
        return Edit(Span(line, line), "", inner)
    return Edit(Span(at, at), "", f"\n{inner}{indent}")


def with_grant(text: str, scanned: Scan, primary: str, element: str) -> Edit | None:
    """Return the edit that adds a permission; the elements around it are made if they are not there."""
    permissions = scanned.below("metadata", "permissions")
    if permissions is None:
        metadata = scanned.below("metadata")
        block = f"<permissions>\n{_STEP}<{primary}>\n{_STEP * 2}{element}\n{_STEP}</{primary}>\n</permissions>"
        return with_child(text, metadata, block) if metadata else None
    above = permissions.child(primary)
    if above is None or not above.finished:
        return with_child(text, permissions, f"<{primary}>\n{_STEP}{element}\n</{primary}>")
    return with_child(text, above, element)


def replaced(text: str, tag: Tagged, elements: Sequence[str]) -> Edit:
    """Return the edit that replaces an element with others; without any, its line is taken away."""
    if elements:
        indent = indent_of(text, tag.start)
        return Edit(tag.span, text[tag.start : tag.end], f"\n{indent}".join(elements))
    start, end = tag.start, tag.end
    if begins_line(text, start):
        start = text.rfind("\n", 0, start) + 1
        rest = text.find("\n", end)
        end = rest + 1 if rest >= 0 and not text[end:rest].strip() else end
    return Edit(Span(start, end), text[start:end], "")
