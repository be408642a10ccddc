"""Look up and verify the items that the hooks of a directive name, before the thread starts.

A hook that cannot act is a warning. At `directive_return` hooks judge the outputs: there a missing or untrusted item
prevents the start, since no output could pass. An unsigned item that only a hook names does not make the directive
itself count as unsigned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from quire.engine.interpreter.thread.hooks import is_composed
from quire.errors import BadConfiguration, CannotStart, QuireError, Refused
from quire.library.items import Item, ItemType
from quire.library.verify import VerifiedItems, read_body, read_thread
from quire.plan.templates import is_static
from quire.plan.vocabulary import judges

if TYPE_CHECKING:
    from quire.plan.thread import Hook, HookAction

Find = Callable[[ItemType, str], "Item | None"]
ACTIONS: tuple[tuple[ItemType, tuple[str, ...]], ...] = (
    ("directive", ("execute",)),
    ("knowledge", ("execute", "fetch")),
)


def hook_targets(hooks: Iterable[Hook], items: VerifiedItems, find: Find) -> list[str]:
    """Return warnings about the items. Raises `CannotStart` or `Refused` for an item that would judge the outputs."""
    warnings: dict[str, None] = {}
    for hook in hooks:
        for action in hook.actions:
            if is_composed(hook, action) or not is_static(action.item_id):
                continue
            name = f"hook {hook.id or hook.event}"
            try:
                found = _unusable(action, items, find)
            except BadConfiguration:
                raise
            except CannotStart as error:
                if judges(hook.event):
                    raise CannotStart(f"{name}: {error}, so no outputs could pass this check") from None
                found = str(error)
            except QuireError as error:
                if judges(hook.event):
                    raise Refused(f"{name}: {error}") from None
                found = str(error)
            if found:
                warnings[f"{name}: {found}"] = None
    return list(warnings)


def _unusable(action: HookAction, items: VerifiedItems, find: Find) -> str:
    """Return the verdict that was accepted in warn mode, or the empty text. Raises `CannotStart` for a missing item,
    `QuireError` for one that must not be used."""
    for item_type, primaries in ACTIONS:
        if action.item_type == item_type and action.primary in primaries:
            item = find(item_type, action.item_id)
            if item is None:
                raise CannotStart(f"there is no {item_type} {action.item_id}")
            return _verified(item, items, find)
    return ""


def _verified(item: Item, items: VerifiedItems, find: Find) -> str:
    """Verify the item and, for a directive, its ancestors."""
    let_pass, seen = "", {item.id}
    while True:
        verdict = items.verdict(item)
        if not verdict.ok:
            if items.mode == "require":
                raise Refused(verdict.message)
            let_pass = let_pass or verdict.message
        if item.type == "knowledge":
            read_body(item)
            return let_pass
        wanted = read_thread(item).extends.strip()
        parent = find("directive", wanted) if wanted else None
        if wanted and parent is None:
            raise CannotStart(f"{item.id} extends {wanted}, which is not there")
        if parent is None or parent.id in seen:
            return let_pass
        seen.add(parent.id)
        item = parent
