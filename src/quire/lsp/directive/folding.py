"""The parts of a directive that can be folded besides its outline: the fence, small elements, and comments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.lsp.answers import Fold
from quire.lsp.directive.tags import scan

if TYPE_CHECKING:
    from quire.lsp.views import View


def folds(view: View) -> list[Fold]:
    source, scanned = view.source, scan(view.source.text)
    found: list[Fold] = []
    if scanned.fence is not None and scanned.opening is not None:
        found.append(Fold(source.position(scanned.opening.start).line, source.position(scanned.fence.end).line))
    for tag in scanned.tags:
        if tag.closing is not None and scanned.holds(tag.start):
            found.append(Fold(source.position(tag.start).line, source.position(tag.end).line))
    for comment in scanned.comments:
        first, last = source.position(comment.start).line, source.position(comment.end).line
        found.append(Fold(first, last, "comment"))
    return [one for one in found if one.last > one.first]
