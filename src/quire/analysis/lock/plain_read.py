"""Read a lock that is exactly as `quire lock` writes it, without a reader of YAML, which takes long to load.

The lines are taken apart by their indentation. The result counts only if writing it again gives the same text;
every other text is left to the strict reader, which says what is wrong with it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from quire.analysis.lock.file import (
    Lock,
    LockedCapability,
    LockedDocument,
    LockedTool,
    is_bound,
    is_digest,
    is_pin,
    is_price,
)
from quire.analysis.lock.read import LONGEST, MOST_FACTS
from quire.analysis.lock.write import written
from quire.sizes import size_of

_MOST_DEPTH = 6


def read_plain(text: str) -> Lock | None:
    """Return the lock, or None if the text is not one in exactly the form that is written."""
    lines = text.splitlines()
    if len(lines) > MOST_FACTS or max(map(len, lines), default=0) > LONGEST:
        return None
    try:
        lock = _lock(_tree(lines))
    except (ValueError, LookupError):
        return None
    return lock if written(lock) == text and _is_sound(lock) else None


_Tree = dict[str, "_Tree | list[str] | str"]


def _is_sound(lock: Lock) -> bool:
    """Tell whether digests, bounds, prices and sizes are such. Everything else is a text."""
    return (
        all(is_digest(one.plan) for one in lock.documents.values())
        and all(is_bound(name, bound) for one in lock.documents.values() for name, bound in one.most.items())
        and all(map(is_pin, lock.tools.values()))
        and all(map(is_price, lock.prices.values()))
        and all(size_of(size.replace(",", "")) for size in lock.assumed.values())
    )


def _tree(lines: list[str]) -> _Tree:
    """Return the mappings and lists of a text. Raises `ValueError` for a line that is not understood."""
    top: _Tree = {}
    open_parts: list[tuple[_Tree, str]] = []
    """The mapping at each level of indentation, and its last key, whose value begins on the next line."""
    for line in lines:
        if line.startswith("#"):
            continue
        content = line.lstrip(" ")
        depth, odd = divmod(len(line) - len(content), 2)
        if odd or depth > _MOST_DEPTH or depth > len(open_parts):
            raise ValueError(line)
        if depth < len(open_parts):
            del open_parts[depth:]
        if content[:2] == "- ":
            _listed(open_parts[-1]).append(_scalar(content[2:]))
            continue
        parent = _opened(open_parts[-1]) if depth else top
        key, value = _pair(content)
        parent[key] = value
        open_parts.append((parent, key))
    return top


def _opened(part: tuple[_Tree, str]) -> _Tree:
    mapping, key = part
    if mapping[key] == "":
        mapping[key] = {}
    found = mapping[key]
    return found if isinstance(found, dict) else {}


def _listed(part: tuple[_Tree, str]) -> list[str]:
    mapping, key = part
    if mapping[key] in ("", {}):
        mapping[key] = []
    found = mapping[key]
    if not isinstance(found, list):
        raise ValueError(key)
    return found


def _pair(content: str) -> tuple[str, str]:
    """Return the key of a line, and the value behind it; empty if the value begins on the next line."""
    if content[0] == '"':
        key, end = json.JSONDecoder().raw_decode(content)
        rest = content[end:]
        if rest == ":":
            return str(key), ""
        if not rest.startswith(": "):
            raise ValueError(content)
        return str(key), _scalar(rest[2:])
    if content[-1] == ":":
        return content[:-1], ""
    key, found, value = content.partition(": ")
    if not found:
        raise ValueError(content)
    return key, _scalar(value)


def _scalar(text: str) -> str:
    return str(json.loads(text)) if text[:1] == '"' else text


def _lock(tree: _Tree) -> Lock:
    prices = _mapping(tree.get("prices", {}))
    documents = {} if tree["documents"] == "{}" else _mapping(tree["documents"])
    return Lock(
        {key: _document(_mapping(entry)) for key, entry in documents.items()},
        {key: _tool(str(pin)) for key, pin in _mapping(tree.get("tools", {})).items()},
        _texts(prices.get("models", {})),
        str(prices.get("source", "")),
        _texts(tree.get("assume", {})),
    )


def _document(entry: _Tree) -> LockedDocument:
    asks = _mapping(entry.get("asks", {}))
    return LockedDocument(
        plan=str(entry["plan"]),
        may=tuple(map(_capability, _items(entry, "may"))),
        unknown=tuple(_items(entry, "unknown")),
        models=tuple(_items(asks, "models")),
        servers=tuple(_items(asks, "servers")),
        variables=tuple(_items(asks, "variables")),
        most=_texts(entry.get("most", {})),
        gates=_texts(entry.get("gates", {})),
        flows=tuple(_items(entry, "flows")),
        allows=tuple(_items(entry, "allows")),
    )


def _capability(line: str) -> LockedCapability:
    words, _, steps = line.partition(" steps=")
    capability, tier, effect, *details = words.split(" ")
    named = tier.startswith("tier=") and effect.startswith("class=") and bool(capability)
    if not named or not all("=" in detail for detail in details):
        raise ValueError(line)
    return LockedCapability(
        capability,
        "" if tier == "tier=none" else tier[5:],
        effect[6:],
        tuple(details),
        tuple(steps.split(", ")) if steps else (),
    )


def _tool(line: str) -> LockedTool:
    digest, found, effect = line.rpartition(" class=")
    if not found:
        raise ValueError(line)
    return LockedTool(digest, effect)


def _mapping(value: object) -> _Tree:
    if not isinstance(value, dict):
        raise ValueError(str(value)[:100])
    return value


def _texts(value: object) -> dict[str, str]:
    return {key: text for key, text in _mapping(value).items() if isinstance(text, str)}


def _items(entry: _Tree, key: str) -> Iterator[str]:
    found = entry.get(key, [])
    if not isinstance(found, list):
        raise ValueError(key)
    return iter(found)
