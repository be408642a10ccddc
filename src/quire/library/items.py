"""Items: directives, knowledge files, pipelines and playbooks, each with an id in one of three spaces.

An id is a path without its ending, `category/name`. It comes from documents and models, so it is checked before a path
is made from it. A found item has the id of the file that is really read, not of a link that led there.

Items that come with Quire are verified by hashes in the package. They carry no signature, so users do not have to trust
a key of Quire's. A file that was changed after the installation no longer matches its hash and is refused like any
other modified item.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from msgspec import Struct

from quire.errors import Refused
from quire.trust.signature_line import digest_of

ItemType: TypeAlias = Literal["directive", "knowledge", "tool", "pipeline", "playbook"]
SpaceName: TypeAlias = Literal["project", "user", "system"]

ITEM_TYPES: tuple[ItemType, ...] = get_args(ItemType)
SPACES: tuple[SpaceName, ...] = get_args(SpaceName)
"""In the order in which an item is looked up; the first hit wins."""

FOLDERS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "directive": ("directives", (".md",)),
    "knowledge": ("knowledge", (".md", ".yaml")),
}
"""The types that live in spaces: their folder, and the endings of their files."""

BUILT_IN_FOLDER = Path(__file__).resolve().parent.parent / "space"

HASHES: Mapping[str, str] = {
    "directives/rye/agent/core/base.md": "b6c47cfbe405cf826903bb6bce9b1306cb55b78a6c2f754ad086935e2812a68c",
    "directives/rye/core/create_directive.md": "30829c00175cff33eb0d3075b9cd16e680f94d28959d445ca93c90f3ba3f2568",
    "directives/rye/core/create_threaded_directive.md": "a2376ebf406db876b65921d7a7def73e7493807a91a36db6ed51f9d19044ca8c",  # noqa: E501
    "knowledge/rye/agent/core/Behavior.md": "b1f31ba46ae2f44cd79dda529e431e28db2410fd869ba283766a7ab81de04452",
    "knowledge/rye/agent/core/Identity.md": "2df8d4844b3b1094db6090829d70b58843ae63c37a64a04a142e81b439f9dfe2",
}
"""The sha256 of each built-in file, by its path in the folder. `tests/library/test_built_in.py` prints the expected
value."""

MAX_ID = 500

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_PLAIN_ID = re.compile(r"\w[\w-]*(?:/\w[\w-]*)*", re.ASCII)
"""The form of nearly all ids, so that checking thousands of names is quick."""


class Entry(Struct, frozen=True):
    """An existing item whose text has not been read."""

    id: str
    type: ItemType
    space: SpaceName
    path: Path

    @property
    def name(self) -> str:
        return self.id.rpartition("/")[2]


class Item(Struct, frozen=True):
    """An item with its text: `text` is normalised like every document; `stored` is the text in the file, which is what
    is signed."""

    id: str
    type: ItemType
    space: SpaceName
    path: Path
    text: str
    stored: str


def checked_id(item_id: str) -> tuple[str, ...]:
    """Return the parts of an id. Raises `Refused` for one that could mean anything but a file in a space."""
    if _PLAIN_ID.fullmatch(item_id) and len(item_id) <= MAX_ID:
        return tuple(item_id.split("/"))
    shown = _CONTROL.sub("?", item_id)[:200]
    if not item_id or len(item_id) > MAX_ID:
        raise Refused(f"an item's id has 1 to {MAX_ID} characters")
    if "\\" in item_id or _CONTROL.search(item_id):
        raise Refused(f"{shown} is not an item's id: write category/name, with / between the parts")
    parts = tuple(item_id.split("/"))
    if item_id.startswith("/") or re.match(r"[A-Za-z]:", item_id):
        raise Refused(f"{shown} is not an item's id: an id is category/name, never an absolute path")
    if any(part.startswith(".") for part in parts):
        raise Refused(f"{shown} is not an item's id: no part of it may begin with a dot")
    if not all(parts):
        raise Refused(f"{shown} is not an item's id: a part of it is empty")
    return parts


def is_genuine(path: Path, text: str) -> bool:
    """Tell whether a file of the built-in folder is the one that was shipped. `text` is the normalised text."""
    try:
        name = path.relative_to(BUILT_IN_FOLDER).as_posix()
    except ValueError:
        return False
    return HASHES.get(name) == digest_of(text)
