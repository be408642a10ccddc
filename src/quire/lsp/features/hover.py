"""Show what stands under the cursor: what the format says of it, the value in the last run, the page of a finding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from quire.lsp.features.request_places import ask, place_in

if TYPE_CHECKING:
    from quire.lsp.answers import Hover
    from quire.lsp.session import Session

LONGEST = 20_000
"""Characters of a hover. A longer one is cut, because editors show it in a small window."""


def hover(session: Session, params: Mapping[str, Any]) -> dict[str, Any] | None:
    place = place_in(session, params)
    if place is None:
        return None
    view, offset = place
    found: Hover | None = ask(view, "hover", "hover", offset)
    if found is None:
        return None
    text = found.markdown if len(found.markdown) <= LONGEST else found.markdown[:LONGEST] + "\n\n…"
    if found.value and (last := session.desk.last_runs.markdown(view, found.value, found.part)):
        text += f"\n\n{last}"
    if "markdown" not in (session.client.value("textDocument.hover.contentFormat") or ["markdown"]):
        return {"contents": {"kind": "plaintext", "value": text}, "range": view.text.range(found.span)}
    return {"contents": {"kind": "markdown", "value": text}, "range": view.text.range(found.span)}
