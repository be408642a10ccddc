"""The outline of a document, and the search for parts of all documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from quire.lsp import wire
from quire.lsp.features.request_places import view_in

if TYPE_CHECKING:
    from quire.lsp.session import Session

MOST = 1_000


def document(session: Session, params: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Return the parts of a document: as a tree, or as a list for an editor that knows no trees."""
    view = view_in(session, params)
    if view is None:
        return None
    if session.client.can("textDocument.documentSymbol.hierarchicalDocumentSymbolSupport"):
        return [wire.symbol(view.text, one) for one in view.index.symbols]
    uri = wire.uri_at(session.desk, view.path)
    return [
        {
            "name": one.name or "(no name)",
            "kind": wire.symbol_kind(one.kind),
            "location": {"uri": uri, "range": view.text.range(one.span)},
            "containerName": container,
        }
        for one, container in wire.flat_symbols(view.index.symbols)
    ]


def workspace(session: Session, params: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the parts of all documents whose names hold the letters of the query in their order."""
    query = params.get("query")
    wanted = query.lower() if isinstance(query, str) else ""
    found: list[dict[str, Any]] = []
    for folder in session.desk.folders():
        for view in folder.views():
            uri = wire.uri_at(session.desk, view.path)
            for one, container in wire.flat_symbols(view.index.symbols):
                if _has_letters(one.name.lower(), wanted):
                    found.append(
                        {
                            "name": one.name or "(no name)",
                            "kind": wire.symbol_kind(one.kind),
                            "location": {"uri": uri, "range": view.text.range(one.selection)},
                            "containerName": container or view.path.rpartition("/")[2],
                        }
                    )
                    if len(found) >= MOST:
                        return found
    return found


def _has_letters(name: str, wanted: str) -> bool:
    letters = iter(name)
    return all(letter in letters for letter in wanted)
