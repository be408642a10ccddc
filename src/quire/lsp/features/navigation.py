"""Find where a name is introduced and where it is used, in all documents of the workspace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from quire.lsp import wire
from quire.lsp.features.request_places import place_in, view_in
from quire.lsp.name_targets import definitions_of, places_of

if TYPE_CHECKING:
    from quire.lsp.answers import Name
    from quire.lsp.session import Session
    from quire.lsp.views import View

_READ, _WRITE = 2, 3


def definition(session: Session, params: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Return where the name under the cursor is introduced: another document for a callee, else a place of this one."""
    found = name_at(session, params)
    if found is None:
        return None
    return [wire.location(session.desk, path, span) for path, span in definitions_of(*found)] or None


def references(session: Session, params: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    found = name_at(session, params)
    if found is None:
        return None
    context = params.get("context")
    declared = not isinstance(context, Mapping) or context.get("includeDeclaration") is not False
    view, name = found
    places = [
        {"uri": wire.uri_at(session.desk, where.path), "range": where.text.range(one.span)}
        for where, one in places_of(view, name)
        if declared or one.role != "declares"
    ]
    return places or None


def highlight(session: Session, params: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Return all places of a name in this document."""
    found = name_at(session, params)
    if found is None:
        return None
    view, name = found
    kinds = {"declares": _WRITE, "writes": _WRITE, "reads": _READ}
    return [{"range": view.text.range(one.span), "kind": kinds[one.role]} for one in view.index.same(name)]


def links(session: Session, params: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Return the texts of a document that name a file."""
    view = view_in(session, params)
    if view is None:
        return None
    return [
        {
            "range": view.text.range(link.span),
            "target": wire.uri_at(session.desk, link.path),
            **({"tooltip": link.tooltip} if link.tooltip else {}),
        }
        for link in view.index.links
    ]


def name_at(session: Session, params: Mapping[str, Any]) -> tuple[View, Name] | None:
    """Return the name under the cursor, with its document."""
    place = place_in(session, params)
    name = place[0].index.at(place[1]) if place else None
    return (place[0], name) if place and name else None
