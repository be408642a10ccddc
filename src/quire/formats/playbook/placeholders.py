"""Where the placeholders of a document are, by the grammar that rendering uses."""

from __future__ import annotations

from quire.formats.playbook.making import quick
from quire.formats.playbook.syntax import Placeholder
from quire.plan.template import PLACEHOLDER
from quire.source import Span

_placeholder = quick(Placeholder)
_span = quick(Span)
_find = PLACEHOLDER.finditer


def placeholders(text: str, start: int, end: int) -> tuple[Placeholder, ...]:
    """Those of a stretch of the text, in order."""
    found = _find(text, start, end)
    return tuple([_placeholder(match[1], match[2], match[3], _span(*match.span())) for match in found])
