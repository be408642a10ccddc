"""Find the places of a directive that read inputs and outputs: `{input:x}`, `${inputs.x}`, and paths of conditions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from quire.patterns import late_pattern
from quire.source import Span

if TYPE_CHECKING:
    from quire.lsp.directive.tags import Scan

# A reference without its brace matches too, and is passed over: so its line is not searched again for the next one.
_REFERENCE = late_pattern(r"\{input:(\w++)(\?|[:|][^}\n]*+)?(\})?|\$\{([^{}\n]*+)\}")
_VALUE = late_pattern(r"(?<![\w.])(inputs|outputs)\.(\w++)")


class ValueReference(Struct, frozen=True):
    """A place that reads an input or an output."""

    kind: Literal["input", "output"]
    name: str
    span: Span
    """The characters of the name."""
    whole: Span
    """The reference with its braces, or the path."""
    optional: bool = False
    """True if it has a default, or may stay empty."""


def value_references(text: str, scanned: Scan) -> Iterator[ValueReference]:
    """Yield the references in the fence and in the instructions."""
    parts = [Span(scanned.body_start, len(text))]
    if scanned.fence is not None:
        parts.insert(0, scanned.fence)
    for part in parts:
        for match in _REFERENCE.finditer(text, part.start, part.end):
            whole = Span(match.start(), match.end())
            if match[3]:
                optional = match[2] is not None
                yield ValueReference("input", match[1], Span(match.start(1), match.end(1)), whole, optional)
            elif match[4]:
                in_fence = part is scanned.fence
                yield from _in_path(text, Span(match.start(4), match.end(4)), whole, outputs=in_fence)
    for tag in scanned.tags:
        if tag.tag == "condition" and (path := tag.attribute("path")) is not None:
            yield from _in_path(text, path.value_span, path.value_span, outputs=True)


def _in_path(text: str, span: Span, whole: Span, *, outputs: bool) -> Iterator[ValueReference]:
    for match in _VALUE.finditer(text, span.start, span.end):
        if match[1] == "inputs":
            yield ValueReference("input", match[2], Span(match.start(2), match.end(2)), whole, optional=True)
        elif outputs:
            yield ValueReference("output", match[2], Span(match.start(2), match.end(2)), whole, optional=True)
