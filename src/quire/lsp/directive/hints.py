"""Show inside of the lines of a directive: the tier of each permission, the model, and limits that are not set."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from quire.lsp.answers import Hint
from quire.lsp.directive.grants import permissions, tier
from quire.lsp.directive.item_words import path_of_item
from quire.lsp.directive.limit_words import amount, effective_limits, model_words
from quire.lsp.directive.tags import scan
from quire.plan.vocabulary import LIMITS

if TYPE_CHECKING:
    from quire.lsp.directive.tags import Scan
    from quire.lsp.views import View
    from quire.source import Span


def hints(view: View, span: Span) -> list[Hint]:
    scanned = scan(view.source.text)
    if scanned.fence is None or scanned.fence.end < span.start or scanned.fence.start > span.end:
        return []
    found = [*_tiers(view), *_model(view, scanned), *_limits(view, scanned), *_inherited(view, scanned)]
    return [one for one in found if span.start <= one.offset <= span.end]


def _tiers(view: View) -> Iterator[Hint]:
    for pattern, where, _ in permissions(view):
        risk = tier(view, pattern)
        if risk is not None:
            yield Hint(where.end, risk.value, tooltip=f"`{pattern}` {risk.meaning}")


def _model(view: View, scanned: Scan) -> Iterator[Hint]:
    tag = scanned.below("metadata", "model")
    if tag is None or not tag.finished:
        return
    name, reason = model_words(view, tag)
    yield Hint(tag.end, f"→ {name}" if name else "→ not known before it runs", tooltip=reason)


def _limits(view: View, scanned: Scan) -> Iterator[Hint]:
    """Say which limits count although the directive does not set them. Limits of parents are not inherited."""
    metadata = scanned.below("metadata")
    if metadata is None or not metadata.finished:
        return
    effective, own = effective_limits(view)
    missing = [name for name in LIMITS if name not in own and name != "spend_currency"]
    if not missing:
        return
    tag = metadata.child("limits") or metadata.child("cost")
    words = ", ".join(f"{name} {amount(name, effective[name])}" for name in missing)
    at = tag.end if tag is not None and tag.finished else metadata.inner_start
    yield Hint(at, f"limits by default: {words}" if tag is None else f"by default: {words}")


def _inherited(view: View, scanned: Scan) -> Iterator[Hint]:
    """Say whose permissions count if the directive has none itself."""
    root = scanned.root
    if root is None or scanned.below("metadata", "permissions") is not None:
        return
    wanted, seen = root.value("extends"), {view.path}
    extends = root.attribute("extends")
    while wanted and extends is not None:
        path = path_of_item(view.folder, "directive", wanted)
        home = view.folder.view(path) if path and path not in seen else None
        if home is None:
            return
        seen.add(path)
        found = list(permissions(home))
        if scan(home.source.text).below("metadata", "permissions") is not None:
            listed = "\n".join(f"- `{pattern}`" for pattern, _, _ in found)
            label = f"{len(found)} permissions of {wanted}" if len(found) != 1 else f"1 permission of {wanted}"
            yield Hint(extends.value_span.end + 1, label, tooltip=listed)
            return
        above = scan(home.source.text).root
        wanted = above.value("extends") if above else ""
