"""The three actions of directives as tools: fetch, execute and sign an item. Their answers have a form in common: an
action that cannot be done is answered with an error too, which the caller reads and continues."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.library.items import BUILT_IN_FOLDER, ITEM_TYPES, SPACES, Item, ItemType, SpaceName

if TYPE_CHECKING:
    from quire.trust.capabilities import Grants, Primary
    from quire.values import Value
    from quire.workspace.settings import Settings


def error(message: str, **more: Value) -> dict[str, Value]:
    return {"status": "error", "error": message, **more}


def item_type_of(value: Value) -> ItemType | None:
    return next((item_type for item_type in ITEM_TYPES if item_type == value), None)


def unknown_type(value: Value) -> dict[str, Value]:
    return error(f"unknown item type {value!r}; it is one of {', '.join(ITEM_TYPES)}")


def space_of(value: Value) -> SpaceName | None:
    """Return the space; None means all of them."""
    return next((space for space in SPACES if space == value), None)


def missing(grants: Grants, primary: Primary, item_type: ItemType, item_id: str, source: Value) -> dict[str, Value]:
    """Return the answer about a missing item. Raises `Denied` if the caller may not ask for it, so that it does not
    learn that the item is missing."""
    grants.require(primary, item_type, item_id)
    every = {"project": "the project folder", "user": "the user folder", "system": "the built-in items"}
    where = every[space] if (space := space_of(source)) else "the project folder, the user folder or the built-in items"
    return error(f"{item_type} not found: {item_id} is not in {where}", item_type=item_type, item_id=item_id)


def path_in_home(item: Item, settings: Settings) -> str | None:
    """Return the path of an item from the folder that contains its space; None for one that is elsewhere, by a link or
    a setting."""
    homes = {"project": settings.workspace.folder, "user": settings.user, "system": BUILT_IN_FOLDER}
    home = homes[item.space].resolve()
    return item.path.relative_to(home).as_posix() if item.path.is_relative_to(home) else None


def shown_path(item: Item, settings: Settings) -> str:
    """Return the place of an item, without revealing the folders of the machine."""
    prefixes = {"project": "", "user": "user:", "system": "built-in:"}
    return prefixes[item.space] + (path_in_home(item, settings) or item.path.name)
