"""Where the placeholders of a document are, by the grammar that rendering uses.

The pattern is that of `quire.plan.template`, which a test holds to it: `quire check` makes no plan, and importing the
plan would be a tenth of its time.
"""

from __future__ import annotations

import re
from bisect import bisect_left

from quire.formats.playbook.making import quick
from quire.formats.playbook.syntax import Placeholder
from quire.source import Span

# Every repetition is over a class that excludes what follows it, so matching is linear.
PLACEHOLDER = re.compile(r"\{\{([A-Za-z0-9_]+)(?::([A-Za-z0-9_]+)(?::([^{}\n]*))?)?\}\}")
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
            [
                _placeholder(match[1], match[2], match[3], _span(match.start(), match.end()))
                for match in self._found[first:last]
            ]
        )
