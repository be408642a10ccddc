"""The files behind the ids of items: directives, knowledge, pipelines and playbooks of all spaces.

The folders are listed once for each state of the workspace. Nothing is verified here.
"""

from __future__ import annotations

import os
from pathlib import PurePath
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from quire.errors import QuireError
from quire.patterns import late_pattern

if TYPE_CHECKING:
    from quire.library.items import Entry, ItemType
    from quire.library.registered import Registered
    from quire.lsp.answers import NameKind
    from quire.lsp.folders import Folder

KINDS: dict[str, NameKind] = {
    "directive": "directive",
    "knowledge": "knowledge",
    "pipeline": "pipeline",
    "playbook": "document",
}
"""The kind of name for each type of item that is a file."""

_OPEN = late_pattern(r"[{}$<>*?\[\]]|\.\.\.|…")
_LISTED: WeakKeyDictionary[Folder, dict[str, dict[str, Entry]]] = WeakKeyDictionary()


def entries(folder: Folder, item_type: str) -> dict[str, Entry]:
    """Return the items of a type by their ids; empty if the workspace cannot be read."""
    listed = _LISTED.setdefault(folder, {})
    if item_type not in listed:
        listed[item_type] = _read(folder, item_type)
    return listed[item_type]


def _read(folder: Folder, item_type: str) -> dict[str, Entry]:
    if item_type not in KINDS or folder.library is None:
        return {}
    kind: ItemType = item_type  # type: ignore[assignment]  # one of the keys of KINDS
    try:
        return {entry.id: entry for entry in folder.library.spaces.entries(kind)}
    except (QuireError, OSError):
        return {}


def entry_of(folder: Folder, item_type: str, item_id: str) -> Entry | None:
    """Return the item that an id means: by its whole id, else by a bare name that only one item has. Pipelines have no
    bare names."""
    item_id = item_id.strip()
    if not item_id or item_type not in KINDS or not is_static(item_id):
        return None
    known = entries(folder, item_type)
    if item_id in known:
        return known[item_id]
    if "/" in item_id or item_type == "pipeline":
        return None
    named = [entry for entry in known.values() if entry.name == item_id]
    return named[0] if len(named) == 1 else None


def path_of_item(folder: Folder, item_type: str, item_id: str) -> str:
    """Return the absolute path of the file of an item; empty if there is none."""
    found = entry_of(folder, item_type, item_id)
    return os.path.abspath(found.path) if found else ""  # noqa: PTH100


def pipeline_called(folder: Folder, item_id: str) -> Registered | None:
    """Return the registered pipeline that an id means; None if there is none."""
    try:
        return folder.snapshot.registry().pipelines.get(item_id.strip()) if folder.snapshot is not None else None
    except QuireError:
        return None


def permitted_pipeline(folder: Folder, pattern: str) -> str:
    """Return the id of the pipeline that a permission means, in which dots may stand for slashes; empty if it means
    none, or more than one by a wildcard."""
    known = entries(folder, "pipeline") if is_static(pattern) else {}
    dotted = pattern.replace("/", ".")
    return pattern if pattern in known else next((one for one in known if one.replace("/", ".") == dotted), "")


def is_static(item_id: str) -> bool:
    """Tell whether an id is spelled out: it has no reference and no wildcard in it."""
    return bool(item_id) and not _OPEN.search(item_id)


def id_of(path: str) -> str:
    """Return the id of a file below `.ai/directives` or `.ai/knowledge`; empty for another file."""
    parts = PurePath(path).with_suffix("").parts if PurePath(path).name else ()
    at = max((at for at, part in enumerate(parts) if part == ".ai"), default=-1)
    return "/".join(parts[at + 2 :]) if at >= 0 and len(parts) > at + 2 else ""
