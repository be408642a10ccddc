"""Where a part of a scalar's text stands in the source: what an expression's own errors point at.

Exact for text on one line, with or without quotes and escapes, and for literal blocks. Folded text has no simple way
back: there the whole scalar is the answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from quire.formats.yaml.nodes import Scalar, Style
from quire.source import Source, Span

_ESCAPE = re.compile(r"\\(?:x..|u.{4}|U.{8}|.)|.", re.DOTALL)
_DOUBLED = re.compile(r"''|.", re.DOTALL)


def place(source: Source, scalar: Scalar, part: Span) -> Span:
    """The span in the source of a span in `scalar.text`."""
    at = _offsets(source.text, scalar)
    if at is None or not 0 <= part.start <= part.end < len(at):
        return scalar.body
    if part.start == part.end:
        return Span(at[part.start], at[part.start])
    # A part that ends with a line of a block does not reach into the indentation of the next one.
    end = at[part.end - 1] + 1 if scalar.style is Style.LITERAL else at[part.end]
    return Span(at[part.start], end)


def _offsets(text: str, scalar: Scalar) -> list[int] | None:
    """For each character of the scalar's text its offset, and one more for the end of it."""
    body = text[scalar.body.start : scalar.body.end]
    start = scalar.body.start
    if scalar.style is Style.LITERAL:
        return _literal_block(body, scalar.text, start)
    if "\n" in body or scalar.style is Style.FOLDED:
        return None
    if scalar.style is Style.PLAIN:
        return list(range(start, start + len(body) + 1)) if body == scalar.text else None
    pattern = _ESCAPE if scalar.style is Style.DOUBLE else _DOUBLED
    at = [start + 1 + match.start() for match in pattern.finditer(body[1:-1])]
    return [*at, scalar.body.end - 1] if len(at) == len(scalar.text) else None


def _literal_block(body: str, text: str, start: int) -> list[int] | None:
    at: list[int] = []
    wanted = text.split("\n")
    for line, (begin, written) in zip(wanted, _lines(body, start), strict=False):
        if not written.endswith(line):
            return None
        begin += len(written) - len(line)
        at.extend(range(begin, begin + len(line) + 1))
    return at if len(at) >= len(text) + 1 else [*at, *([start + len(body)] * (len(text) + 1 - len(at)))]


def _lines(body: str, start: int) -> Iterator[tuple[int, str]]:
    """The lines below the header, with their offsets."""
    at = body.find("\n") + 1
    while 0 < at <= len(body):
        end = body.find("\n", at)
        end = len(body) if end < 0 else end
        yield start + at, body[at:end]
        at = end + 1
