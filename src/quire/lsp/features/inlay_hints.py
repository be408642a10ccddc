"""Show types, bounds and resolved names inside of lines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from quire.lsp.features.request_places import ask, view_in

if TYPE_CHECKING:
    from quire.lsp.answers import Hint
    from quire.lsp.session import Session

_KINDS = {"type": 1, "parameter": 2}


def inlay_hints(session: Session, params: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    view = view_in(session, params)
    if view is None:
        return None
    span = view.text.span(params.get("range"))
    found: list[Hint] = ask(view, "hints", "hints", span) or []
    return [
        {
            "position": view.text.position(one.offset),
            "label": one.label,
            "kind": _KINDS[one.kind],
            "paddingLeft": not one.before,
            "paddingRight": one.before,
            **({"tooltip": {"kind": "markdown", "value": one.tooltip}} if one.tooltip else {}),
        }
        for one in found
        if span.start <= one.offset <= span.end
    ]
