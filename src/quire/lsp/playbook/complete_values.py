"""Complete the names of values in playbooks, and the texts that they can be."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from quire.formats.playbook.syntax import INPUT_TYPES
from quire.lsp.answers import Completion
from quire.lsp.playbook.layout import ASKED, HOW_WORDS, layout_of
from quire.lsp.playbook.outline import input_words
from quire.patterns import late_pattern
from quire.source import Span

if TYPE_CHECKING:
    from quire.lsp.views import View

MOST = 200
"""Names that are offered. The nearest captures come first."""
_FIRST, _SECOND, _THIRD, _LAST = 1, 2, 3, 8
_CAPTURED = late_pattern(r"@output\(([A-Za-z0-9_]++)")


def readable_names(view: View, offset: int, *, own: bool = False) -> Iterator[tuple[str, str, str, int]]:
    """Yield the names that can be read at a place, with their type, who gives them, and their order. A text that is not
    well-formed gives at least the names of captures that it has."""
    layout = layout_of(view)
    seen: set[str] = set()
    for declared in layout.inputs.values():
        seen.add(declared.name)
        yield declared.name, input_words(declared), declared.description, _SECOND
    for capture in islice(layout.readable(offset, own=own), MOST):
        if capture.name not in seen:
            seen.add(capture.name)
            about = f"step {capture.label} keeps {HOW_WORDS[capture.how]}"
            order = _THIRD if capture.name.startswith(ASKED) else _FIRST
            yield capture.name, capture.type_words, about, order
    if layout.part_at(offset) is None or layout.scan.blocks:
        for found in islice(_CAPTURED.finditer(view.source.text, 0, offset), MOST):
            if found[1] not in seen:
                seen.add(found[1])
                yield found[1], "", "kept before", _LAST


def placeholder_names(view: View, start: int, offset: int, reads: tuple[View, int] | None = None) -> list[Completion]:
    """Return the names for `{{`. The closing braces are added unless they are there. `reads` is the place that reads
    the names, if that is in another document: the one that uses a prompt file."""
    rest = view.source.text[offset : offset + 2]
    closing = "" if rest == "}}" else "}" if rest[:1] == "}" else "}}"
    return [
        Completion(
            name, "variable", name + closing, detail=type, documentation=about, order=order, span=Span(start, offset)
        )
        for name, type, about, order in readable_names(*(reads or (view, offset)))
    ]


def placeholder_types(start: int, offset: int) -> list[Completion]:
    return [Completion(one, "keyword", span=Span(start, offset)) for one in dict.fromkeys(INPUT_TYPES.values())]


def condition_names(view: View, start: int, offset: int) -> list[Completion]:
    """Return the names for a condition, which may read the result of its own step."""
    return [
        Completion(name, "variable", detail=type, documentation=about, order=order, span=Span(start, offset))
        for name, type, about, order in readable_names(view, offset, own=True)
    ]


def values_of(view: View, name: str) -> tuple[str, ...]:
    """Return the only texts that a name can have in a condition; empty if they are not known."""
    layout = layout_of(view)
    if (declared := layout.inputs.get(name)) is not None:
        return declared.options or (("true", "false") if declared.type == "boolean" else ())
    found: dict[str, None] = {}
    for capture in layout.captures:
        if capture.name == name:
            if not capture.options:
                return ("true", "false") if capture.type == "boolean" else ()
            found |= dict.fromkeys(capture.options)
    return tuple(found)


def condition_values(view: View, name: str, span: Span, opening: str, closing: str) -> list[Completion]:
    """Return the texts that a name can be compared with."""
    return [
        Completion(one, "enum", opening + one + closing, detail=f"value of {name}", order=1, span=span)
        for one in values_of(view, name)
    ]


def result_names(view: View, offset: int, span: Span) -> list[Completion]:
    """Return the names of earlier results, for `@context` and `from:`: outputs, and labels of steps."""
    layout = layout_of(view)
    found: dict[str, Completion] = {}
    for capture in islice(layout.readable(offset), MOST):
        about = f"step {capture.label} keeps {HOW_WORDS[capture.how]}"
        found.setdefault(capture.name, Completion(capture.name, "variable", detail=about, order=_FIRST, span=span))
    here = layout.part_at(offset)
    for part in layout.parts:
        is_before = part.start < offset and (here is None or part.top is not here.top or part is here.parent)
        if is_before and part.label not in found:
            found[part.label] = Completion(part.label, "reference", detail=part.title, order=_SECOND, span=span)
    return list(found.values())
