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
    """All placeholders of a text, found in one go: a search for each stretch would cost more than the stretch."""

    def __init__(self, text: str) -> None:
        self._found = list(PLACEHOLDER.finditer(text)) if "{{" in text else []
        self._starts = [match.start() for match in self._found]

    def between(self, start: int, end: int) -> tuple[Placeholder, ...]:
        """Those of a stretch of the text, in order."""
        starts = self._starts
        first = bisect_left(starts, start)
        last = bisect_left(starts, end, first)
        if first == last:
            return ()
        return tuple(
            [_placeholder(match[1], match[2], match[3], _span(*match.span())) for match in self._found[first:last]]
        )
