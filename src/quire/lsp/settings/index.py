"""The tables of `quire.toml` as an outline, the agents and tiers that documents name, and the files that it names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from quire.lsp.answers import Index, Link, Name, NameKind, Symbol
from quire.lsp.settings.toml_places import TomlKey, TomlPart, TomlTable, tables_of, texts_in
from quire.source import Span
from quire.workspace.setting_keys import key_at

if TYPE_CHECKING:
    from quire.lsp.views import View

_NAMED: Final[dict[tuple[str, ...], NameKind]] = {
    ("agents",): "agent",
    ("models", "tiers"): "model",
    ("servers",): "server",
}
"""Tables whose keys are names that documents can use."""
_ENTRIES: Final = ("pipelines", "entries")


def index(view: View) -> Index:
    """Return the names and tables of a file of settings."""
    text = view.source.text
    tables = tables_of(text)
    declared = {(name.kind, name.text) for table in tables for name in _declared(table)}
    names: dict[Span, Name] = {}
    links: list[Link] = []
    for table in tables:
        for name in _declared(table):
            names.setdefault(name.span, name)
        for key in table.keys:
            for name in _read(text, key, declared):
                names.setdefault(name.span, name)
            for link in _links(view, key):
                links.append(link)
                if key.path[:2] == _ENTRIES:
                    written = text[link.span.start : link.span.end]
                    names.setdefault(
                        link.span, Name("file", written, link.span, "reads", document=link.path, renames=False)
                    )
        for name in _registered(view, table):
            names.setdefault(name.span, name)
    symbols = tuple(_symbol(text, table) for table in tables if table.parts)
    return Index(tuple(names.values()), symbols, tuple(links))


def _declared(table: TomlTable) -> Iterator[Name]:
    """Yield the agents, tiers and servers that a table introduces, by its name or by its keys."""
    written: list[tuple[tuple[str, ...], TomlPart]] = []
    for depth, part in enumerate(table.parts):
        written.append((table.path[:depth], part))
    for key in table.keys:
        above = len(key.path) - len(key.parts)
        written += [(key.path[: above + depth], part) for depth, part in enumerate(key.parts)]
    seen: set[tuple[str, str]] = set()
    for path, part in written:
        kind = _NAMED.get(path)
        if kind is not None:
            again = (kind, part.text) in seen
            seen.add((kind, part.text))
            yield Name(kind, part.text, part.span, "writes" if again else "declares")


def _read(text: str, key: TomlKey, declared: set[tuple[NameKind, str]]) -> Iterator[Name]:
    """Yield the tiers and agents that a value names. A model that is not a tier is not a name of this file."""
    known = key_at(key.path)
    if known is None or known.names not in ("model", "agent"):
        return
    kinds: tuple[NameKind, ...] = ("agent",) if known.names == "agent" else ("model", "agent")
    for written, span in texts_in(text, key.value):
        kind = next((one for one in kinds if (one, written) in declared), None)
        if kind is not None:
            yield Name(kind, written, span, "reads")


def _registered(view: View, table: TomlTable) -> Iterator[Name]:
    """Yield the name under which a table registers a pipeline: it means the file."""
    if table.path[:-1] != _ENTRIES:
        return
    for key in table.keys:
        if key.path[-1] == "path":
            for link in _links(view, key):
                part = table.parts[-1]
                yield Name("pipeline", part.text, part.span, "reads", document=link.path, renames=False)


def _links(view: View, key: TomlKey) -> Iterator[Link]:
    """Yield the files and folders that a value names, if they are there."""
    known = key_at(key.path)
    if known is None or known.names not in ("folder", "pipeline"):
        return
    for written, span in texts_in(view.source.text, key.value):
        path = os.path.abspath(Path(view.path).parent / Path(written).expanduser())  # noqa: PTH100
        if written and os.path.exists(path):  # noqa: PTH110
            yield Link(span, path, known.text)


def _symbol(text: str, table: TomlTable) -> Symbol:
    end = table.span.start + len(text[table.span.start : table.span.end].rstrip())
    whole = Span(table.span.start, max(end, table.header.end))
    children = tuple(
        Symbol(
            ".".join(part.text for part in key.parts),
            "field",
            Span(key.parts[0].span.start, max(key.parts[-1].span.end, key.value.end)),
            key.parts[-1].span,
        )
        for key in table.keys
    )
    kind: NameKind = _NAMED.get(table.path[:-1], "pipeline" if table.path[:-1] == _ENTRIES else "element")
    return Symbol(".".join(table.path), kind, whole, table.header, children=children)
