"""Read a lock that is exactly as `quire lock` writes it, without a reader of YAML, which takes long to load.

The lines are taken apart by their indentation. The result counts only if each line is written as `file.py` does it, in
the same order; every other text is left to the strict reader, which says what is wrong with it.

A check of one document does not need the entries of the others: `excerpt` cuts them out before anything is read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from quire.analysis.lock.file import (
    ASKED,
    CLASSES,
    COUNTS,
    FACTS,
    HEADER,
    NO_DOCUMENTS,
    PARTS,
    TIERS,
    VERSION,
    Lock,
    LockedCapability,
    LockedDocument,
    LockedTool,
    are_plain_keys,
    capability_line,
    is_bound,
    is_digest,
    is_pin,
    is_price,
    key_line,
    scalar_line,
)
from quire.analysis.lock.read import LONGEST, MOST_FACTS
from quire.units import size_of

_MOST_DEPTH = 6
_NOTHING = "{}"
_DOCUMENTS, _TOOLS = "\ndocuments:\n", "\ntools:\n"
_FIRST_FACT = ":\n    plan: "
"""Between the key of a document and the digest of its plan."""


def read_plain(text: str) -> Lock | None:
    """Return the lock, or None if the text is not one in exactly the form that is written."""
    lines = text.split("\n")
    if len(lines) > MOST_FACTS or max(map(len, lines)) > LONGEST or lines[0] != HEADER or lines[-1]:
        return None
    try:
        lock = _lock(_tree(lines[1:-1]))
    except (ValueError, LookupError):
        return None
    return lock if _is_sound(lock) else None


def excerpt(text: str, is_wanted: Callable[[str], bool]) -> str | None:
    """Return the text of a lock with the entries of some documents only, or None if it cannot be cut.

    All keys have to be in order, and all lines between them have to be indented. Other entries are not looked into.
    """
    head, _, rest = text.partition(_DOCUMENTS)
    end = rest.find(_TOOLS)
    body, tail = rest[:end], rest[end:]
    *before, last = f"\n{body}".split(_FIRST_FACT)
    count = body.count("\n") + 1
    if not before or body.count("\n    ") != count - len(before) or count > MOST_FACTS:
        return None
    first, *ends = [part.rpartition("\n") for part in before]
    entries = [*(facts for facts, _, _ in ends), last]
    try:
        _require(first[:2] == ("", "\n"), first)
        keys = _keys([first[2], *(line for _, _, line in ends)])
        _sorted(keys)
    except (ValueError, LookupError):
        return None
    pairs = zip(keys, entries, strict=True)
    left = [f"  {key_line(key)}{_FIRST_FACT}{facts}" for key, facts in pairs if is_wanted(key)]
    listed = _DOCUMENTS + "\n".join(left) if left else f"\n{NO_DOCUMENTS}"
    return f"{head}{listed}{tail}"


def _keys(lines: list[str]) -> list[str]:
    """Return the keys of entries from their first lines, without the colons at the end. Raises `ValueError` for a line
    that is not the first one of an entry."""
    keys = [line[2:] for line in lines]
    _require(all(line.startswith("  ") for line in lines), lines)
    return keys if are_plain_keys(keys) else [_key(key) for key in keys]


def _key(text: str) -> str:
    key, value = _taken_apart(f"{text}:")
    if key is None or value is not None:
        raise ValueError(text)
    return key


_Tree = dict[str, "_Tree | list[str] | str | None"]
"""A mapping. None is a value that begins on the next line, until that is read."""


def _is_sound(lock: Lock) -> bool:
    """Tell whether digests, bounds, prices and sizes are such. Everything else is a text."""
    return (
        all(is_digest(document.plan) for document in lock.documents.values())
        and all(is_bound(name, bound) for document in lock.documents.values() for name, bound in document.most.items())
        and all(map(is_pin, lock.tools.values()))
        and all(map(is_price, lock.prices.values()))
        and all(size_of(size.replace(",", "")) for size in lock.assumed.values())
    )


def _tree(lines: list[str]) -> _Tree:
    """Return the mappings and lists of a text. Raises `ValueError` for a line that is not understood, or that would be
    written differently."""
    top: _Tree = {}
    open_parts: list[tuple[_Tree, str]] = []
    """The mapping at each level of indentation, and its last key, whose value begins on the next line."""
    taken_apart: dict[str, tuple[str | None, str | None]] = {}
    """Lines with their parts. Most documents of a lock have the same lines."""
    for line in lines:
        content = line.lstrip(" ")
        depth, odd = divmod(len(line) - len(content), 2)
        if odd or depth > _MOST_DEPTH or depth > len(open_parts):
            raise ValueError(line)
        if depth < len(open_parts):
            del open_parts[depth:]
        if content not in taken_apart:
            taken_apart[content] = _taken_apart(content)
        key, value = taken_apart[content]
        if key is None:
            _listed(open_parts[-1]).append(value or "")
            continue
        parent = _opened(open_parts[-1]) if depth else top
        if key in parent:
            raise ValueError(line)
        parent[key] = value
        open_parts.append((parent, key))
    return top


def _opened(part: tuple[_Tree, str]) -> _Tree:
    mapping, key = part
    if mapping[key] is None:
        mapping[key] = {}
    return _mapping(mapping[key])


def _listed(part: tuple[_Tree, str]) -> list[str]:
    mapping, key = part
    if mapping[key] is None:
        mapping[key] = []
    return _listing(mapping[key])


def _taken_apart(content: str) -> tuple[str | None, str | None]:
    """Return the key of a line and the value behind it. An item of a list has no key; a value that begins on the next
    line is None. Raises `ValueError` for a line that would be written differently."""
    if content[:2] == "- ":
        item = _value(content[2:])
        _require(content == f"- {scalar_line(item)}", content)
        return None, item
    if content == NO_DOCUMENTS:
        return "documents", _NOTHING
    key, value = _pair(content)
    _require(content == (f"{key_line(key)}:" if value is None else f"{key_line(key)}: {scalar_line(value)}"), content)
    return key, value


def _require(holds: bool, what: object) -> None:
    if not holds:
        raise ValueError(str(what)[:100])


def _pair(content: str) -> tuple[str, str | None]:
    if content[0] == '"':
        import json  # most keys are written without quotes

        key, end = json.JSONDecoder().raw_decode(content)
        rest = content[end:]
        _require(rest == ":" or rest.startswith(": "), content)
        return str(key), _value(rest[2:]) if rest != ":" else None
    if content[-1] == ":":
        return content[:-1], None
    key, colon, value = content.partition(": ")
    _require(bool(colon), content)
    return key, _value(value)


def _value(text: str) -> str:
    if text[:1] != '"':
        return text
    import json

    return str(json.loads(text))


def _lock(tree: _Tree) -> Lock:
    _in_order(tree, PARTS)
    _require(tree["quire"] == str(VERSION), "quire")
    prices = _mapping(tree.get("prices", {}))
    _in_order(prices, ("source", "models"))
    _require("models" in prices or "prices" not in tree, "prices")
    documents = {} if tree["documents"] == _NOTHING else _mapping(tree["documents"])
    _sorted(documents)
    return Lock(
        {key: _document(_mapping(entry)) for key, entry in documents.items()},
        {key: _tool(pin) for key, pin in _texts(tree, "tools").items()},
        _texts(prices, "models"),
        _text(prices, "source"),
        _texts(tree, "assume"),
    )


def _document(entry: _Tree) -> LockedDocument:
    _in_order(entry, FACTS)
    asks = _mapping(entry.get("asks", {}))
    _in_order(asks, ASKED)
    most = _mapping(entry.get("most", {}))
    _in_order(most, COUNTS)
    return LockedDocument(
        plan=_text(entry, "plan"),
        may=tuple(map(_capability, _items(entry, "may"))),
        unknown=_items(entry, "unknown"),
        models=_items(asks, "models"),
        servers=_items(asks, "servers"),
        variables=_items(asks, "variables"),
        most={name: _text(most, name) for name in most},
        gates=_texts(entry, "gates"),
        flows=_items(entry, "flows"),
        allows=_items(entry, "allows"),
    )


def _in_order(mapping: _Tree, names: tuple[str, ...]) -> None:
    """Require that a mapping has only these keys, in this order."""
    _require(list(mapping) == [name for name in names if name in mapping], names)


def _sorted(values: Collection[str]) -> None:
    """Require that keys or items are in the order in which they are written, each once."""
    _require(len(values) < 2 or list(values) == sorted(set(values)), "order")


def _capability(line: str) -> LockedCapability:
    words, _, steps = line.partition(" steps=")
    capability, tier, effect, *details = words.split(" ")
    _require(bool(capability) and all("=" in detail for detail in details), line)
    _require(tier in (f"tier={name}" for name in TIERS) and effect in (f"class={name}" for name in CLASSES), line)
    need = LockedCapability(
        capability,
        "" if tier == "tier=none" else tier[5:],
        effect[6:],
        tuple(details),
        tuple(steps.split(", ")) if steps else (),
    )
    _require(capability_line(need) == line, line)
    return need


def _tool(line: str) -> LockedTool:
    digest, mark, effect = line.rpartition(" class=")
    _require(bool(mark), line)
    return LockedTool(digest, effect)


def _mapping(value: object) -> _Tree:
    if not isinstance(value, dict):
        raise ValueError(str(value)[:100])
    return value


def _listing(value: object) -> list[str]:
    if not isinstance(value, list):
        raise ValueError(str(value)[:100])
    return value


def _text(mapping: _Tree, key: str) -> str:
    text = mapping.get(key, "")
    if not isinstance(text, str):
        raise ValueError(key)
    return text


def _texts(mapping: _Tree, key: str) -> dict[str, str]:
    if key not in mapping:
        return {}
    texts = _mapping(mapping[key])
    _sorted(texts)
    return {name: _text(texts, name) for name in texts}


def _items(mapping: _Tree, key: str) -> tuple[str, ...]:
    items = _listing(mapping.get(key, []))
    _sorted(items)
    return tuple(items)
