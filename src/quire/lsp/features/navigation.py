"""Find where a name is introduced and where it is used, and which documents call which."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quire.lsp import wire
from quire.lsp.answers import Name
from quire.lsp.features import names_at, place_in, view_in
from quire.lsp.name_targets import definitions_of, places_of
from quire.source import NOWHERE, Span

if TYPE_CHECKING:
    from quire.lsp.document_view import View
    from quire.lsp.session import Session

CALLABLE = frozenset({"pipeline", "document", "directive", "knowledge"})
"""Kinds of names that mean a document which another one calls, or uses."""
_MODULE = 2


def prepare_calls(session: Session, params: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Return the document under the cursor: a called document that is named there, else the document itself."""
    place = place_in(session, params)
    if place is None:
        return None
    view, offset = place
    name = view.index.at(offset)
    if name is not None and name.kind in CALLABLE and name.document:
        return [_item(session, name.document, name.scope, name.text)]
    return [_item(session, view.path, *_pipeline_at(view, offset))]


def incoming_calls(session: Session, params: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Return the documents that call one, with the places of the calls."""
    target = _target(session, params)
    if target is None:
        return None
    view, name = target
    calls: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for caller, call in places_of(view, name):
        if call.role == "reads" and call.kind in CALLABLE:
            key = (caller.path, *_pipeline_at(caller, call.span.start))
            calls.setdefault(key, []).append(caller.text.range(call.span))
    return [{"from": _item(session, *key), "fromRanges": ranges} for key, ranges in calls.items()]


def outgoing_calls(session: Session, params: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Return the documents that one calls, with the places of the calls."""
    target = _target(session, params)
    if target is None:
        return None
    view = target[0]
    calls: dict[tuple[str, str], list[dict[str, Any]]] = {}
    names: dict[tuple[str, str], str] = {}
    for name in view.index.names:
        # The part of `KEY.NAME` before the dot is a file; settings name nothing but files.
        is_file = name.kind == "pipeline" and not name.scope and view.format != "settings"
        if name.role == "reads" and name.kind in CALLABLE and name.document and not is_file:
            calls.setdefault((name.document, name.scope), []).append(view.text.range(name.span))
            names[name.document, name.scope] = name.text
    return [{"to": _item(session, *key, names[key]), "fromRanges": ranges} for key, ranges in calls.items()]


def _pipeline_at(view: View, offset: int) -> tuple[str, str]:
    """Return the scope and the name of the pipeline around an offset; empty for a document of another format."""
    declared = [name for name in view.index.names if name.kind == "pipeline" and name.role == "declares"]
    before = [name for name in declared if name.span.start <= offset] or declared[:1]
    return (before[-1].scope, before[-1].text) if before else ("", "")


def _target(session: Session, params: Mapping[str, Any]) -> tuple[View, Name] | None:
    item = params.get("item")
    data = item.get("data") if isinstance(item, Mapping) else None
    if not isinstance(data, Mapping) or not isinstance(path := data.get("path"), str):
        return None
    view = session.desk.view_of(path)
    scope = data.get("scope")
    name = Name("document", "", Span(0, 0), "reads", scope if isinstance(scope, str) else "", path)
    return (view, name) if view is not None else None


def _item(session: Session, path: str, scope: str, text: str) -> dict[str, Any]:
    view = session.desk.view_of(path)
    places = definitions_of(view, Name("document", text, NOWHERE, "reads", scope, path)) if view else []
    return {
        "name": text or Path(path).name,
        "kind": _MODULE,
        "detail": Path(path).name,
        "uri": wire.uri_at(session.desk, path),
        "range": view.text.whole if view else wire.START,
        "selectionRange": view.text.range(places[0][1]) if view and places else wire.START,
        "data": {"path": path, "scope": scope},
    }


_READ, _WRITE = 2, 3


def definition(session: Session, params: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Return where the name under the cursor is introduced: a called document, or else a place of this one."""
    places = dict.fromkeys(place for named in names_at(session, params) for place in definitions_of(*named))
    return [wire.location(session.desk, path, span) for path, span in places] or None


def references(session: Session, params: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    context = params.get("context")
    declared = not isinstance(context, Mapping) or context.get("includeDeclaration") is not False
    places = dict.fromkeys(
        (where.path, name.span)
        for named in names_at(session, params)
        for where, name in places_of(*named)
        if declared or name.role != "declares"
    )
    return [wire.location(session.desk, path, span) for path, span in places] or None


def highlight(session: Session, params: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Return all places of a name in this document."""
    named = names_at(session, params)
    if not named:
        return None
    view, name = named[0]
    kinds = {"declares": _WRITE, "writes": _WRITE, "reads": _READ}
    same = (
        view.index.same(name)
        if view.format
        else [place for where, place in places_of(view, name) if where.path == view.path]
    )
    return [{"range": view.text.range(place.span), "kind": kinds[place.role]} for place in same]


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
