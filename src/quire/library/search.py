"""Search items by words. The same words over the same files always give the same list in the same order."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.errors import CannotStart, QuireError
from quire.library.items import ITEM_TYPES, Entry, Item, ItemType, SpaceName

if TYPE_CHECKING:
    from quire.library.spaces import Spaces

MAX_WORDS = 20
MAX_READ = 50_000_000
MAX_LIMIT = 100
LIMIT = 10

_WORDS = re.compile(r"[^\W_]+")
_HEADING = re.compile(r"^# +(.+)$", re.MULTILINE)
_TITLE = re.compile(r"^title: *(.+)$", re.MULTILINE)
_DESCRIPTION = re.compile(r"<description>\s*([^<]{1,2000})</description>")


class Hit(Struct, frozen=True):
    """A search result. `score` is between 0 and 1."""

    item: Item
    score: float


class SearchScope(Struct, frozen=True):
    """The scope of a search: a type of item, optionally only ids that begin with a category."""

    type: ItemType
    category: str = ""

    @classmethod
    def of(cls, text: str) -> SearchScope:
        """Read a scope, written like `directive`, `directive.rye.core.*` or `directive/rye/core`. Raises
        `CannotStart`."""
        head, _, rest = text.strip().replace(".", "/").partition("/")
        fitting = next((one for one in ITEM_TYPES if head in (one, f"{one}s")), None)
        if fitting is None:
            raise CannotStart(f'scope must name an item_type ({", ".join(ITEM_TYPES)}), not "{text[:100]}"')
        return cls(fitting, rest.removesuffix("*").strip("/"))

    def covers(self, entry: Entry) -> bool:
        return not self.category or entry.id == self.category or entry.id.startswith(f"{self.category}/")


def search(
    spaces: Spaces,
    query: str,
    scope: SearchScope,
    source: SpaceName | None = None,
    limit: int | None = LIMIT,
    may: Callable[[Entry], bool] = lambda entry: True,
) -> list[Hit]:
    """Return the hits, best first; all of them if `limit` is None. A query without words finds everything.

    `may` leaves out items whose existence the caller must not learn.
    """
    words = words_of(query)
    hits: list[Hit] = []
    read = 0
    for entry in spaces.entries(scope.type, source):
        if not scope.covers(entry) or not may(entry):
            continue
        try:
            item = spaces.read(entry)
        except QuireError:
            continue  # A caller that asks for it by id gets the reason.
        read += len(item.text)
        if read > MAX_READ:
            raise CannotStart(f"there is too much to search in {scope.type}; narrow the scope to a category")
        if item.id != entry.id:
            continue  # A link: the item itself is in the list as well.
        score = score_of(item, words)
        if score or not words:
            hits.append(Hit(item, score))
    # Sorting is stable: hits with the same score stay in the order of spaces and ids.
    hits.sort(key=lambda hit: -hit.score)
    return hits if limit is None else hits[: max(1, min(limit, MAX_LIMIT))]


def summary(item: Item) -> str:
    """Return one line about an item, from its own description, title or heading."""
    for pattern in (_DESCRIPTION, _TITLE, _HEADING):
        found = pattern.search(item.text)
        if found:
            return " ".join(found[1].split()).strip("\"'")[:300]
    return ""


def words_of(query: str) -> list[str]:
    return list(dict.fromkeys(_WORDS.findall(query.casefold())))[:MAX_WORDS]


def score_of(item: Item, words: list[str]) -> float:
    if not words:
        return 0.0
    name, whole = item.id.rpartition("/")[2].casefold(), item.id.casefold()
    parts = set(_WORDS.findall(name))
    about, text = summary(item).casefold(), item.text.casefold()
    total = 0.0
    for word in words:
        if word in parts:
            total += 1.0
        elif word in name:
            total += 0.8
        elif word in whole:
            total += 0.6
        elif word in about:
            total += 0.5
        elif word in text:
            total += 0.2
    return round(total / len(words), 3)
