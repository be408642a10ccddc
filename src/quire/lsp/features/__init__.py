"""The place that a request is about, and the edits that answer it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from quire.lsp import wire
from quire.lsp.languages import function
from quire.lsp.prompts import names_at as prompt_names_at
from quire.lsp.protocol import uri_in

if TYPE_CHECKING:
    from quire.lsp.answers import FileEdit, Name
    from quire.lsp.document_view import View
    from quire.lsp.session import Session


def view_in(session: Session, params: Mapping[str, Any]) -> View | None:
    """Return the document of a request; None for one that is not open or that Quire does not know."""
    view = session.desk.view(uri_in(params))
    return view if view is not None and view.format else None


def place_in(session: Session, params: Mapping[str, Any]) -> tuple[View, int] | None:
    """Return the document and the offset of a request."""
    view = view_in(session, params)
    return (view, view.text.offset(params.get("position"))) if view is not None else None


def names_at(session: Session, params: Mapping[str, Any]) -> list[tuple[View, Name]]:
    """Return the name under the cursor with its document; in a prompt file one for each document that uses it."""
    view = session.desk.view(uri_in(params))
    if view is None:
        return []
    offset = view.text.offset(params.get("position"))
    name = view.index.at(offset) if view.format else None
    if name is not None:
        return [(view, name)]
    return [(view, name) for name in prompt_names_at(view, offset)]


def workspace_edit(session: Session, files: Sequence[FileEdit], *, creates: bool = False) -> wire.Json | None:
    """Write the edits of several files for the editor. None if one has to be made and the editor cannot, or if it must
    not be made."""
    versioned = session.client.can("workspace.workspaceEdit.documentChanges")
    creates = creates and "create" in (session.client.value("workspace.workspaceEdit.resourceOperations") or [])
    return wire.workspace_edit(session.desk, files, versioned=versioned, creates=creates)


def ask(view: View, module: str, name: str, *arguments: object) -> Any:
    """Call a function of the document's format; None if the format does not have it."""
    answer = function(view.format, module, name)
    return answer(view, *arguments) if answer else None
