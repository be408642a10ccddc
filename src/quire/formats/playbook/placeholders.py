"""Where the placeholders of a document are, by the grammar that rendering uses."""

from __future__ import annotations

from bisect import bisect_left

from quire.formats.playbook.making import quick
from quire.formats.playbook.syntax import Placeholder
from quire.plan.template import PLACEHOLDER
from quire.source import Span

_placeholder = quick(Placeholder)
_span = quick(Span)


class Placeholders:
    """All placeholders of a text, found once; `between` picks those of a stretch of it."""

    def __init__(self, text: str) -> None:
        self._found: list[Placeholder] = []
        if "{{" in text:
            self._found = [
                _placeholder(match[1], match[2], match[3], _span(match.start(), match.end()))
                for match in PLACEHOLDER.finditer(text)
            ]
        self._starts = [found.span.start for found in self._found]

    def __bool__(self) -> bool:
        return bool(self._found)

    def between(self, start: int, end: int) -> tuple[Placeholder, ...]:
        starts = self._starts
        first = bisect_left(starts, start)
        return tuple(self._found[first : bisect_left(starts, end, first)])
