"""Let a knowledge file follow its own place: the category is the folder that it lies in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.lsp.directive.file_moves import followed_category
from quire.lsp.knowledge.metadata import metadata

if TYPE_CHECKING:
    from quire.diagnostics import Edit
    from quire.lsp.views import View


def moved(view: View, new: str) -> list[Edit]:
    """Return the edit of the category. One that did not fit the old place stays as it is."""
    category = metadata(view).value("category")
    return followed_category(view.path, new, *category) if category else []
