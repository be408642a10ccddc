"""Find the documents that use a knowledge item."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.lsp.directive.grants import permissions
from quire.lsp.directive.item_words import id_of
from quire.trust.capabilities import Grants, capability

if TYPE_CHECKING:
    from quire.lsp.views import View


def used_by(view: View) -> tuple[list[str], list[str]]:
    """Return the ids of the directives that name an item, and of those that may fetch it."""
    item_id = id_of(view.path)
    if not item_id:
        return [], []
    stem = item_id.rpartition("/")[2]
    needed = capability("fetch", "knowledge", item_id)
    naming: list[str] = []
    fetching: list[str] = []
    for other in view.folder.views():
        if other.format != "directive" or other.path == view.path:
            continue
        if stem in other.source.text and any(one.document == view.path for one in other.index.names):
            naming.append(id_of(other.path))
        elif "<fetch>" in other.source.text and Grants.of(one for one, _, _ in permissions(other)).covers(needed):
            fetching.append(id_of(other.path))
    return naming, fetching
