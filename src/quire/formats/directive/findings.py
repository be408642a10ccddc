"""Collect the findings of a reading, with a limited number of suggestions."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from quire.diagnostics import Edit, Findings, Fix
from quire.formats.directive.codes import warnings
from quire.formats.near_names import word_fix
from quire.source import Source, Span
from quire.wording import LONGEST_QUOTED, cut, did_you_mean

if TYPE_CHECKING:
    from quire.formats.directive.xml import Element


class DirectiveFindings(Findings):
    """The source and the findings of one reading."""

    def __init__(self, source: Source) -> None:
        super().__init__()
        self.source = source

    def known_children(self, element: Element, known: Collection[str]) -> Iterator[Element]:
        """Yield the children that have a meaning in an element; the others are reported."""
        for child in element.children:
            if child.tag in known:
                yield child
            else:
                self.stray(child, element.tag, known)

    def stray(self, element: Element, parent: str, known: Collection[str]) -> None:
        """Report an element in a place where it has no meaning."""
        meant = self.suggestions.nearest(element.tag, known)
        help = did_you_mean(meant, f"known there: {', '.join(known)}", form="<{}>")
        message = f"<{shown(element.tag)}> has no meaning in <{parent}>"
        self.report(warnings.STRAY, message, element.opening, help, self.tag_fix(element, known) if meant else None)

    def tag_fix(self, element: Element, known: Collection[str]) -> Fix | None:
        """Return edits that correct both tags of an element."""
        start = element.start + 1
        fix = word_fix(element.tag, known, Span(start, start + len(element.tag)))
        if fix and self.source.text.startswith("</", element.inner_end):
            end = element.inner_end + 2
            closing = Edit(Span(end, end + len(element.tag)), element.tag, fix.edits[0].new)
            fix = Fix(fix.title, (*fix.edits, closing))
        return fix

    def truth(self, element: Element, name: str) -> bool:
        """Read an attribute that is true or false; false if it is missing."""
        text = element.attributes.get(name, "").strip().lower()
        if text not in ("", "true", "false"):
            message = f'{name}="{shown(text)}" counts as false: it is neither true nor false'
            self.report(warnings.TRUTH, message, element.attribute_span(self.source, name), f'write {name}="true"')
        return text == "true"


def shown(text: str) -> str:
    return cut(text, LONGEST_QUOTED)
