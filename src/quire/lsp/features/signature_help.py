"""Show the parameters of a call that is being typed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from quire.lsp.features.request_places import ask, place_in

if TYPE_CHECKING:
    from quire.lsp.answers import Signature
    from quire.lsp.session import Session


def signature_help(session: Session, params: Mapping[str, Any]) -> dict[str, Any] | None:
    place = place_in(session, params)
    found: Signature | None = ask(place[0], "signatures", "signature", place[1]) if place else None
    if found is None:
        return None
    parameters = [
        {"label": label, **({"documentation": {"kind": "markdown", "value": meaning}} if meaning else {})}
        for label, meaning in found.parameters
    ]
    active = max(0, min(found.active, len(parameters) - 1)) if parameters else 0
    signature: dict[str, Any] = {"label": found.label, "parameters": parameters, "activeParameter": active}
    if found.documentation:
        signature["documentation"] = {"kind": "markdown", "value": found.documentation}
    return {"signatures": [signature], "activeSignature": 0, "activeParameter": active}
