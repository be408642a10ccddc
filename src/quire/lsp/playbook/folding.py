"""The lines of a playbook that can be folded besides the parts of its outline: code fences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.lsp.answers import Fold
from quire.lsp.playbook.layout import layout_of

if TYPE_CHECKING:
    from quire.lsp.views import View


def folds(view: View) -> list[Fold]:
    """Return the code fences."""
    source = view.source
    return [
        Fold(source.position(start).line, source.position(max(start, end - 1)).line)
        for start, end in layout_of(view).scan.blocks
    ]
