"""Widen a selection: the word, the name, the line, then each part of the document around it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from quire.lsp.features.request_places import view_in
from quire.source import Span

if TYPE_CHECKING:
    from quire.lsp.answers import Symbol
    from quire.lsp.session import Session
    from quire.lsp.views import View


def selection(session: Session, params: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    view = view_in(session, params)
    positions = params.get("positions")
    if view is None or not isinstance(positions, list):
        return None
    return [_nested(view, view.text.offset(position)) for position in positions]


def _nested(view: View, offset: int) -> dict[str, Any]:
    spans = sorted(set(_around(view, offset)), key=lambda span: span.end - span.start)
    result: dict[str, Any] | None = None
    kept = [spans[0]] if spans else [Span(offset, offset)]
    for span in spans[1:]:
        if span.start <= kept[-1].start and kept[-1].end <= span.end:
            kept.append(span)
    for span in reversed(kept):
        result = {"range": view.text.range(span), **({"parent": result} if result else {})}
    assert result is not None  # noqa: S101  # there is at least one span
    return result


def _around(view: View, offset: int) -> Iterator[Span]:
    source = view.source
    word = view.word(offset)
    yield word
    line = source.line_span(source.position(offset).line)
    text = source.text[line.start : line.end]
    yield line
    stripped = Span(line.start + len(text) - len(text.lstrip()), line.start + len(text.rstrip()))
    if stripped.start <= offset <= stripped.end:
        yield stripped
    if name := view.index.at(offset):
        yield name.span
    yield from _parts(view.index.symbols, offset)
    yield Span(0, len(source.text))


def _parts(symbols: Sequence[Symbol], offset: int) -> Iterator[Span]:
    for one in symbols:
        if one.span.start <= offset <= one.span.end:
            yield one.span
            yield from _parts(one.children, offset)
