"""Lines above the parts of a document that can be run, tested or looked at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from quire.lsp.bounds import with_price
from quire.lsp.features.request_places import ask, view_in

if TYPE_CHECKING:
    from quire.lsp.answers import Lens
    from quire.lsp.session import Session
    from quire.lsp.views import View


def code_lenses(session: Session, params: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    view = view_in(session, params)
    if view is None:
        return None
    found: list[Lens] = ask(view, "lenses", "lenses") or []
    return [
        {
            "range": view.text.range(one.span),
            "command": {"title": _title(view, one), "command": one.command, "arguments": list(one.arguments)},
        }
        for one in found
    ]


def _title(view: View, lens: Lens) -> str:
    """Return the title of a lens. One that runs all tests of a document has the numbers of their last results, one with
    the bound the most that a run costs."""
    if lens.command == "quire.test" and len(lens.arguments) == 1:
        return view.folder.test_memory.title(view, lens.title)
    return with_price(view, lens.title) if lens.command == "quire.showProof" else lens.title
