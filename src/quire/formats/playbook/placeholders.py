"""Where the placeholders of a document are, by the grammar that rendering uses.

The pattern is that of `quire.plan.template`, which a test holds to it: `quire check` makes no plan, and importing the
plan would be a tenth of its time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from quire.source import Span

# Every repetition is over a class that excludes what follows it, so matching is linear.
PLACEHOLDER = re.compile(r"\{\{([A-Za-z0-9_]+)(?::([A-Za-z0-9_]+)(?::([^{}\n]*))?)?\}\}")


@dataclass(slots=True, unsafe_hash=True)
class Placeholder:
    """A `{{name}}`, `{{name:type}}` or `{{name:type:default}}` in any text that is rendered."""

    name: str
    type: str | None
    default: str | None
    start: int
    end: int

    @property
    def span(self) -> Span:
        return Span(self.start, self.end)


def find(text: str, places: Sequence[tuple[int, int]]) -> tuple[Placeholder, ...]:
    """The placeholders in these stretches of the text, in order."""
    return tuple(
        [
            Placeholder(found[1], found[2], found[3], found.start(), found.end())
            for start, end in places
            for found in PLACEHOLDER.finditer(text, start, end)
        ]
    )
