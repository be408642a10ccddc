"""Find where a name is introduced and where it is used, in all documents of the workspace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from quire.lsp import wire
from quire.lsp.features.request_places import names_at, view_in
from quire.lsp.name_targets import definitions_of, places_of

if TYPE_CHECKING:
    from quire.lsp.session import Session

_READ, _WRITE = 2, 3


def definition(session: Session, params: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Return where the name under the cursor is introduced: another document for a callee, else a place of this one."""
    places = dict.fromkeys(place for found in names_at(session, params) for place in definitions_of(*found))
    return [wire.location(session.desk, path, span) for path, span in places] or None


def references(session: Session, params: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    context = params.get("context")
    declared = not isinstance(context, Mapping) or context.get("includeDeclaration") is not False
    places = dict.fromkeys(
        (where.path, one.span)
        for found in names_at(session, params)
        for where, one in places_of(*found)
        if declared or one.role != "declares"
    )
    return [wire.location(session.desk, path, span) for path, span in places] or None


def highlight(session: Session, params: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Return all places of a name in this document."""
    found = names_at(session, params)
    if not found:
        return None
    view, name = found[0]
    kinds = {"declares": _WRITE, "writes": _WRITE, "reads": _READ}
    same = (
        view.index.same(name)
        if view.format
        else [one for where, one in places_of(view, name) if where.path == view.path]
    )
    return [{"range": view.text.range(one.span), "kind": kinds[one.role]} for one in same]


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
