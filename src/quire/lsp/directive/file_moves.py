"""Let a directive or a knowledge file follow its own place: the category is the folder that it lies in.

The name follows as well, because it is indexed as a name of the file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.diagnostics import Edit
from quire.lsp.directive.item_files import id_of
from quire.lsp.directive.tags import scan

if TYPE_CHECKING:
    from quire.lsp.views import View
    from quire.source import Span


def moved(view: View, new: str) -> list[Edit]:
    """Return the edit of the category. One that did not fit the old place stays as it is."""
    tag = scan(view.source.text).below("metadata", "category")
    return followed_category(view.path, new, *tag.text) if tag is not None and tag.closing is not None else []


def followed_category(old: str, new: str, text: str, span: Span) -> list[Edit]:
    before, after = (id_of(path).rpartition("/")[0] for path in (old, new))
    return [Edit(span, text, after)] if text.strip("/") == before != after and id_of(new) else []
