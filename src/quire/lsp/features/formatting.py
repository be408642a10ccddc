"""Format a document, or a part of it. Prose is never touched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from quire.lsp import wire
from quire.lsp.features.request_places import ask, view_in
from quire.source import Span

if TYPE_CHECKING:
    from quire.diagnostics import Edit
    from quire.lsp.session import Session
    from quire.lsp.views import View


def formatting(session: Session, params: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    view = view_in(session, params)
    return _edits(view, Span(0, len(view.source.text))) if view else None


def part(session: Session, params: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    view = view_in(session, params)
    return _edits(view, view.text.span(params.get("range"))) if view else None


def _edits(view: View, span: Span) -> list[dict[str, Any]]:
    found: list[Edit] = ask(view, "formatting", "format", span) or []
    return [wire.text_edit(view.text, edit) for edit in found]
