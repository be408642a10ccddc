"""The outline of a directive: its elements, inputs, outputs, permissions, hooks, and the parts of its instructions."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TYPE_CHECKING

from quire.lsp.answers import Symbol
from quire.plan.vocabulary import PRIMARIES
from quire.source import Span
from quire.wording import cut_line

if TYPE_CHECKING:
    from quire.lsp.answers import NameKind
    from quire.lsp.directive.tags import Scan, Tagged
    from quire.lsp.views import View

_HEADING = re.compile(r"^(#{1,4})[ \t]+(\S[^\n]*)$", re.MULTILINE)
_DETAIL = 60
_BODY = ("process", "step", "success_criteria", "criterion")
_INNER = ("action", "condition", "any", "all", "not", "param", "criterion")
"""Elements that are too small for the outline."""


def outline(view: View, scanned: Scan) -> tuple[Symbol, ...]:
    """Return one symbol for the directive, which has all others in it."""
    text = view.source.text
    if not text.strip():
        return ()
    root = scanned.root
    named = root.attribute("name") if root else None
    title = _HEADING.search(text, 0, scanned.opening.start if scanned.opening else len(text))
    if named is not None and named.value.strip():
        name, selection = named.value.strip(), named.value_span
    elif title is not None:
        name, selection = title[2].strip(), Span(title.start(2), title.end(2))
    else:
        name, selection = "directive", Span(0, 0)
    description = scanned.below("metadata", "description")
    children = [_symbol(one) for one in root.children if one.finished] if root else []
    children += _body(text, scanned)
    detail = cut_line(description.text[0], _DETAIL) if description else ""
    return (Symbol(name, "directive", Span(0, len(text)), selection, detail, tuple(children)),)


def _symbol(tag: Tagged) -> Symbol:
    name, kind, selection, detail = _described(tag)
    children = tuple(_symbol(one) for one in tag.children if one.finished and one.tag not in _INNER)
    return Symbol(name, kind, tag.span, selection, detail, children)


def _described(tag: Tagged) -> tuple[str, NameKind, Span, str]:
    parent = tag.parent.tag if tag.parent else ""
    named = tag.attribute("id" if tag.tag == "hook" else "name")
    text = tag.text[0]
    short = cut_line(text, _DETAIL) if not tag.children else ""
    match tag.tag:
        case "input" | "output" if parent == f"{tag.tag}s" and named is not None and named.value:
            kind: NameKind = "input" if tag.tag == "input" else "output"
            return named.value, kind, named.value_span, tag.value("type") or "string"
        case "hook" if named is not None and named.value:
            return named.value, "hook", named.value_span, tag.value("event")
        case "step" if named is not None and named.value:
            return named.value, "step", named.value_span, ""
        case _ if parent == "outputs" and tag.tag not in ("success", "failure"):
            return tag.tag, "output", tag.name_span, short
        case _ if parent in PRIMARIES and tag.inside("permissions") and text:
            return cut_line(text, _DETAIL), "capability", tag.text[1], f"{parent} {tag.tag}"
        case "limits" | "model":
            given = ", ".join(f"{one.name} {one.value}" for one in tag.attributes)
            return tag.tag, "element", tag.name_span, cut_line(given, _DETAIL)
    return tag.tag, "element", tag.name_span, short


def _body(text: str, scanned: Scan) -> list[Symbol]:
    """Return the parts of the instructions: elements with a meaning, else headings."""
    elements = [one for one in scanned.tags if one.start >= scanned.body_start and one.tag in _BODY and one.finished]
    top = [one for one in elements if not any(above.tag in _BODY for above in one.around())]
    found = [(one.start, _symbol(one)) for one in top]
    starts = [one.start for one in top]
    ends = [len(text)] * 5
    for match in reversed(list(_HEADING.finditer(text, scanned.body_start))):
        level = len(match[1])
        around = bisect_right(starts, match.start()) - 1
        if around >= 0 and match.start() < top[around].end:
            continue
        span = Span(match.start(), ends[level])
        ends[level:] = [match.start()] * (5 - level)
        found.append((match.start(), Symbol(match[2].strip(), "element", span, Span(match.start(2), match.end(2)))))
    return [symbol for _, symbol in sorted(found, key=lambda one: one[0])]
