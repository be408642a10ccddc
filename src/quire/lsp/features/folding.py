"""The parts of a document that can be folded, and those around the cursor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from quire.lsp.features.request_places import ask, view_in

if TYPE_CHECKING:
    from quire.lsp.answers import Fold, Symbol
    from quire.lsp.session import Session


def folding(session: Session, params: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Return the lines that can be folded: the parts of the outline, and what the format adds."""
    view = view_in(session, params)
    if view is None:
        return None
    source = view.source
    found: dict[tuple[int, int], dict[str, Any]] = {}
    for one in _all(view.index.symbols):
        text = source.text[one.span.start : one.span.end].rstrip()
        first = source.position(one.span.start).line
        last = source.position(one.span.start + len(text)).line
        if last > first:
            found[first, last] = {"startLine": first - 1, "endLine": last - 1}
    more: list[Fold] = ask(view, "folding", "folds") or []
    for fold in more:
        if fold.last > fold.first:
            found[fold.first, fold.last] = {"startLine": fold.first - 1, "endLine": fold.last - 1, "kind": fold.kind}
    return [found[key] for key in sorted(found)]


def _all(symbols: Sequence[Symbol]) -> Iterator[Symbol]:
    for one in symbols:
        yield one
        yield from _all(one.children)
