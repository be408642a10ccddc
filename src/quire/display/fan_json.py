"""JSON of the items of a fan-out: the state of every item as one letter, and pages of items with their texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from quire.values import encode
from quire.wording import cut

if TYPE_CHECKING:
    from quire.runs.fan_items import Item
    from quire.values import Value

LETTERS = {"pending": "p", "running": "r", "waiting": "w", "done": "d", "failed": "f"}
FIRST = ("failed", "waiting", "running", "pending", "done")
"""The order of a list that begins with what needs a person."""
LONGEST = 500


def item_text(item: Item) -> str:
    """Return an item as people know it: the name of a branch, a text itself, or the values of an object."""
    return item.name or _text(item.value)


def _text(value: Value) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, Mapping):
        return " · ".join(_text(one) for one in value.values() if one not in (None, "", [], {}))
    return encode(value)


def counts(items: Sequence[Item]) -> dict[str, Value]:
    """Return how many items are in each state."""
    return {state: sum(item.state == state for item in items) for state in LETTERS}


def letters(items: Sequence[Item]) -> str:
    """Return the states of all items in the order of the document, a letter each."""
    return "".join(LETTERS[item.state] for item in items)


def item_data(item: Item) -> dict[str, Value]:
    """Return one item. Its text is cut: the whole is in the effects of its path."""
    text = item_text(item)
    return {
        "index": item.index,
        "name": item.name or None,
        "path": item.path,
        "state": item.state,
        "message": item.message[:LONGEST],
        "text": cut(text, LONGEST),
        "elapsed": round(item.elapsed, 3),
        "cost": item.cost,
        "effects": item.effects,
    }


def rank(item: Item) -> tuple[int, int]:
    """Return the place of an item in a list that begins with the failed ones."""
    return FIRST.index(item.state), item.index
