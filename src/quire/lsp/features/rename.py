"""Rename a thing everywhere: in its document, in those that call it, and in their tests. Prose is not touched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from quire.diagnostics import Edit
from quire.lsp.answers import DOCUMENTS, FileEdit
from quire.lsp.features.request_places import ask, names_at, place_in, workspace_edit
from quire.lsp.name_targets import places_of
from quire.lsp.prompt_files import files_of, sharing_problem
from quire.lsp.protocol import RequestFailed

if TYPE_CHECKING:
    from quire.lsp.answers import Name
    from quire.lsp.session import Session
    from quire.lsp.views import View


def prepare(session: Session, params: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the text that can be renamed. Raises `RequestFailed` with the reason if it cannot."""
    found = names_at(session, params)
    if not found:
        return None
    view, name = found[0]
    _require_renamable(view, name)
    text = view.source.text[name.span.start : name.span.end]
    return {"range": view.text.range(name.span), "placeholder": text}


def rename(session: Session, params: Mapping[str, Any]) -> dict[str, Any] | None:
    found = names_at(session, params)
    new = params.get("newName")
    if not found or not isinstance(new, str):
        raise RequestFailed("there is nothing here that can be renamed")
    view, name = found[0]
    _require_renamable(view, name)
    # In a prompt file the name is one of the document that uses the file, and so are the rules for names. A pipeline
    # has the rules of pipelines, wherever it is called.
    elsewhere = not view.format or (name.kind == "pipeline" and name.document)
    home = view.folder.view(name.document) if elsewhere else view
    problem = ask(home, "naming", "name_problem", name, new) if home is not None else ""
    if problem:
        raise RequestFailed(problem)
    places: dict[str, tuple[View, list[Name]]] = {}
    owner = view.folder.view(name.document) if name.document else view
    prompts = files_of(owner) if owner is not None else []
    for where, one in places_of(view, name):
        if one.renames:
            if owner and where.path in prompts and (problem := sharing_problem(owner, where, one)):
                raise RequestFailed(problem)
            places.setdefault(where.path, (where, []))[1].append(one)
    files = [FileEdit(path, _edits(where, names, new)) for path, (where, names) in places.items()]
    return workspace_edit(session, files)


def _edits(view: View, names: list[Name], new: str) -> tuple[Edit, ...]:
    """Return the edits of one document, in order. Raises `RequestFailed` if a place cannot be written."""
    edits = ask(view, "naming", "place_edits", names, new)
    if isinstance(edits, str):
        raise RequestFailed(edits)
    if edits is None:
        spans = dict.fromkeys(one.span for one in names)
        edits = [Edit(span, view.source.text[span.start : span.end], new) for span in spans]
    return tuple(sorted(edits, key=lambda edit: edit.span.start))


def linked(session: Session, params: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the places that change while one of them is typed: the names of an opening and a closing tag."""
    place = place_in(session, params)
    if place is None:
        return None
    view, offset = place
    for pair in view.index.pairs:
        if any(span.start <= offset <= span.end for span in pair):
            return {"ranges": [view.text.range(span) for span in pair]}
    return None


def _require_renamable(view: View, name: Name) -> None:
    if name.renames:
        return
    if name.kind in DOCUMENTS:
        raise RequestFailed("this is the name of a file: rename the file, and the documents that name it follow")
    raise RequestFailed(f"{name.text} cannot be renamed here")
