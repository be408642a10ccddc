"""Complete what is being typed in a playbook. The line before the cursor decides, so that broken text is no problem."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.lsp.playbook.complete_directives import complete_directive, directive_names
from quire.lsp.playbook.complete_lines import artifact_lines, comments, headings, input_lines, markers
from quire.lsp.playbook.complete_references import tool_page
from quire.lsp.playbook.complete_values import placeholder_names, placeholder_types
from quire.lsp.playbook.layout import layout_of
from quire.patterns import late_pattern

if TYPE_CHECKING:
    from quire.lsp.answers import Completion
    from quire.lsp.views import View

_PLACEHOLDER = late_pattern(r"\{\{([A-Za-z0-9_]*+)$")
_PLACEHOLDER_TYPE = late_pattern(r"\{\{[A-Za-z0-9_]++:([A-Za-z0-9_]*+)$")
_AT = late_pattern(r"[^\S\n]*+(@[a-z]*+)$")
_DIRECTIVE = late_pattern(r"[^\S\n]*+@(output|elicit|prompt|tool|context|model)\(")
_TICKS = late_pattern(r"[^\S\n]*+`{1,3}+")
_HASH = late_pattern(r"[^\S\n]*+#{1,3}+")
_COMMENT = late_pattern(r"[^\S\n]*+<")


def complete(view: View, offset: int) -> list[Completion]:
    """Return the texts that can stand at an offset."""
    before = view.line_before(offset)
    start = offset - len(before)
    layout = layout_of(view)
    section = layout.section_at(offset)
    in_step = layout.part_at(offset) is not None or not layout.parts
    if section is not None and section.kind == "system":
        return headings(view, start, offset) if _HASH.match(before) else []
    if found := _PLACEHOLDER.search(before):
        return placeholder_names(view, offset - len(found[1]), offset) if in_step or section else []
    if found := _PLACEHOLDER_TYPE.search(before):
        return placeholder_types(offset - len(found[1]), offset)
    if _HASH.match(before):
        return [] if _is_fenced(view, start) else headings(view, start, offset)
    if section is not None:
        return _in_section(view, section.kind, start, offset)
    if layout.scan.title is None or start < layout.scan.title.start():
        return comments(view, start, offset) if _COMMENT.match(before) else []
    if not in_step or _is_fenced(view, start):
        return []
    if found := _AT.match(before):
        return directive_names(view, start + found.start(1), offset)
    if found := _DIRECTIVE.match(before):
        return complete_directive(view, found[1], start, offset)
    return markers(view, start, offset) if _TICKS.match(before) else []


def resolve(view: View, what: str) -> str:
    """Return the page of a completion that is looked at."""
    kind, _, name = what.partition(":")
    return tool_page(view, name) if kind == "tool" else ""


def _in_section(view: View, kind: str, start: int, offset: int) -> list[Completion]:
    if kind == "inputs":
        return input_lines(view, start, offset)
    return artifact_lines(view, start, offset) if kind == "artifacts" else []


def _is_fenced(view: View, start: int) -> bool:
    """Tell whether a line is inside of a code fence. A line that is being typed may have opened it itself."""
    return any(first < start < last for first, last in layout_of(view).scan.blocks)
