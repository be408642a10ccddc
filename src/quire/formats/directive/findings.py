"""Collect the findings of a reading, with a limited number of suggestions."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from quire.diagnostics import Code, Diagnostic, Edit, Fix
from quire.formats.directive.codes import warnings
from quire.formats.near_names import word_fix
from quire.source import Source, Span
from quire.wording import nearest

if TYPE_CHECKING:
    from quire.formats.directive.xml import Element

_LONGEST = 60
_SUGGESTIONS = 50
_CHOICES = 200


class Suggestions:
    """A limited number of `did you mean`: comparing names is slow, and a hostile file has thousands of them."""

    def __init__(self) -> None:
        self._left = _SUGGESTIONS

    def meant(self, name: str, known: Collection[str]) -> str | None:
        """Return the known name that this one is probably a misspelling of."""
        if len(name) > _LONGEST or len(known) > _CHOICES or self._left <= 0:
            return None
        self._left -= 1
        return nearest(name, [one for one in known if len(one) <= _LONGEST])


class Findings:
    """The source and the findings of one reading."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.diagnostics: list[Diagnostic] = []
        self._suggestions = Suggestions()

    def report(self, code: Code, message: str, span: Span, help: str = "", fix: Fix = ()) -> None:
        self.diagnostics.append(Diagnostic(code, message, span, "", help, fix))

    def meant(self, name: str, known: Collection[str]) -> str | None:
        return self._suggestions.meant(name, known)

    def stray(self, element: Element, parent: str, known: Collection[str]) -> None:
        """Report an element in a place where it has no meaning."""
        meant = self.meant(element.tag, known)
        help = f"did you mean <{meant}>?" if meant else f"known there: {', '.join(known)}"
        message = f"<{shown(element.tag)}> has no meaning in <{parent}>"
        self.report(warnings.STRAY, message, element.opening, help, self.tag_fix(element, known) if meant else ())

    def tag_fix(self, element: Element, known: Collection[str]) -> Fix:
        """Return edits that correct both tags of an element."""
        start = element.start + 1
        fix = word_fix(element.tag, known, Span(start, start + len(element.tag)))
        if fix and self.source.text.startswith("</", element.inner_end):
            end = element.inner_end + 2
            fix = (*fix, Edit(Span(end, end + len(element.tag)), element.tag, fix[0].new))
        return fix

    def truth(self, element: Element, name: str) -> bool:
        """Read an attribute that is true or false; false if it is missing."""
        text = element.attributes.get(name, "").strip().lower()
        if text not in ("", "true", "false"):
            message = f'{name}="{shown(text)}" counts as false: it is neither true nor false'
            self.report(warnings.TRUTH, message, element.attribute_span(self.source, name), f'write {name}="true"')
        return text == "true"


def shown(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
