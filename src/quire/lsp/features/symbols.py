"""The outline of a document, the search for parts of all documents, and features made from the parts: folds,
selections, and formatting.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from quire.lsp import wire
from quire.lsp.features import ask, view_in
from quire.source import Span

if TYPE_CHECKING:
    from quire.diagnostics import Edit
    from quire.lsp.answers import Fold, Symbol
    from quire.lsp.document_view import View
    from quire.lsp.session import Session


def folding(session: Session, params: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Return the lines that can be folded: the parts of the outline, and additions of the format."""
    view = view_in(session, params)
    if view is None:
        return None
    source = view.source
    folds: dict[tuple[int, int], dict[str, Any]] = {}
    for symbol, _ in wire.flat_symbols(view.index.symbols):
        text = symbol.span.of(source.text).rstrip()
        first = source.position(symbol.span.start).line
        last = source.position(symbol.span.start + len(text)).line
        if last > first:
            folds[first, last] = {"startLine": first - 1, "endLine": last - 1}
    more: list[Fold] = ask(view, "decorations", "folds") or []
    for fold in more:
        if fold.last > fold.first:
            folds[fold.first, fold.last] = {"startLine": fold.first - 1, "endLine": fold.last - 1, "kind": fold.kind}
    return [folds[key] for key in sorted(folds)]


def selection(session: Session, params: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    view = view_in(session, params)
    positions = params.get("positions")
    if view is None or not isinstance(positions, list):
        return None
    return [_nested(view, view.text.offset(position)) for position in positions]


def _nested(view: View, offset: int) -> dict[str, Any]:
    spans = sorted(set(_around(view, offset)), key=lambda span: span.end - span.start)
    result: dict[str, Any] | None = None
    nested = [spans[0]] if spans else [Span(offset, offset)]
    for span in spans[1:]:
        if span.start <= nested[-1].start and nested[-1].end <= span.end:
            nested.append(span)
    for span in reversed(nested):
        result = {"range": view.text.range(span), **({"parent": result} if result else {})}
    assert result is not None  # noqa: S101  # there is at least one span
    return result


def _around(view: View, offset: int) -> Iterator[Span]:
    source = view.source
    word = view.word(offset)
    yield word
    line = source.line_span(source.position(offset).line)
    text = line.of(source.text)
    yield line
    stripped = Span(line.start + len(text) - len(text.lstrip()), line.start + len(text.rstrip()))
    if stripped.holds(offset):
        yield stripped
    if name := view.index.at(offset):
        yield name.span
    yield from _parts(view.index.symbols, offset)
    yield Span(0, len(source.text))


def _parts(symbols: Sequence[Symbol], offset: int) -> Iterator[Span]:
    for symbol in symbols:
        if symbol.span.holds(offset):
            yield symbol.span
            yield from _parts(symbol.children, offset)


def formatting(session: Session, params: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    view = view_in(session, params)
    return _edits(view, Span(0, len(view.source.text))) if view else None


def format_part(session: Session, params: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    view = view_in(session, params)
    return _edits(view, view.text.span(params.get("range"))) if view else None


def _edits(view: View, span: Span) -> list[dict[str, Any]]:
    edits: list[Edit] = ask(view, "formatting", "format", span) or []
    return [wire.text_edit(view.text, edit) for edit in edits]


MOST = 1_000


def document(session: Session, params: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Return the parts of a document: as a tree, or as a list for an editor that knows no trees."""
    view = view_in(session, params)
    if view is None:
        return None
    if session.client.can("textDocument.documentSymbol.hierarchicalDocumentSymbolSupport"):
        return [wire.symbol(view.text, symbol) for symbol in view.index.symbols]
    uri = wire.uri_at(session.desk, view.path)
    return [
        wire.flat_symbol(symbol, uri, view.text.range(symbol.span), container)
        for symbol, container in wire.flat_symbols(view.index.symbols)
    ]


def workspace(session: Session, params: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the parts of all documents whose names hold the letters of the query in their order."""
    query = params.get("query")
    letters = query.lower() if isinstance(query, str) else ""
    symbols: list[dict[str, Any]] = []
    for folder in session.desk.folders():
        for view in folder.views():
            uri = wire.uri_at(session.desk, view.path)
            for symbol, container in wire.flat_symbols(view.index.symbols):
                rest = iter(symbol.name.lower())
                if all(letter in rest for letter in letters):
                    around = container or view.path.rpartition("/")[2]
                    symbols.append(wire.flat_symbol(symbol, uri, view.text.range(symbol.selection), around))
                    if len(symbols) >= MOST:
                        return symbols
    return symbols
