"""The tables and names of `quire.toml`, the findings about it at their places, and the rules for new names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from quire.diagnostics import Diagnostic
from quire.formats.near_names import word_fix
from quire.lsp.answers import Index, Link, Name, NameKind, Symbol
from quire.lsp.settings.toml_places import TomlKey, TomlPart, TomlTable, tables_of, texts_in
from quire.source import Span, line_end
from quire.workspace import codes
from quire.workspace.configuration import problems_in
from quire.workspace.grants import allow_problem
from quire.workspace.locate import Workspace, user_space
from quire.workspace.setting_keys import below, key_at

if TYPE_CHECKING:
    from quire.lsp.document_view import View
    from quire.source import Source


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
                    written = link.span.of(text)
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
    names: set[tuple[str, str]] = set()
    for path, part in written:
        kind = _NAMED.get(path)
        if kind is not None:
            again = (kind, part.text) in names
            names.add((kind, part.text))
            yield Name(kind, part.text, part.span, "writes" if again else "declares")


def _read(text: str, key: TomlKey, declared: set[tuple[NameKind, str]]) -> Iterator[Name]:
    """Yield the tiers and agents that a value names. A model that is not a tier is not a name of this file."""
    setting = key_at(key.path)
    if setting is None or setting.names not in ("model", "agent"):
        return
    kinds: tuple[NameKind, ...] = ("agent",) if setting.names == "agent" else ("model", "agent")
    for written, span in texts_in(text, key.value):
        kind = next((kind for kind in kinds if (kind, written) in declared), None)
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
    """Yield the files and folders that a value names, if they exist."""
    setting = key_at(key.path)
    if setting is None or setting.names not in ("folder", "pipeline"):
        return
    for written, span in texts_in(view.source.text, key.value):
        path = os.path.abspath(Path(view.path).parent / Path(written).expanduser())  # noqa: PTH100
        if written and os.path.exists(path):  # noqa: PTH110
            yield Link(span, path, setting.text)


def _symbol(text: str, table: TomlTable) -> Symbol:
    end = table.span.start + len(table.span.of(text).rstrip())
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


_AT_LINE = re.compile(r" \(at line (\d+), column (\d+)\)$")
_IN_TABLE = re.compile(r"\[([^\]]+)\] (?:(\S+?):? )?")
_AT_TOP = re.compile(r'"([^"]+)" ')
_TOLD = {
    " is not a setting; ": codes.UNKNOWN_SETTING,
    " read from the quire.toml of your user folder": codes.MISPLACED_SETTING,
    " are read from a workspace's quire.toml": codes.MISPLACED_SETTING,
}


def check(view: View) -> list[Diagnostic]:
    """Return what is wrong with a file of settings."""
    path, source = Path(view.path), view.source
    workspace = Workspace(path.parent, path)
    tables = tables_of(source.text)
    problems = problems_in(path, source.text, workspace, user_space())
    findings = [_finding(source, tables, problem.removeprefix(f"{path}: ")) for problem in problems]
    return sorted([*findings, *_grants(view, tables)], key=lambda finding: finding.span.start)


def _finding(source: Source, tables: list[TomlTable], problem: str) -> Diagnostic:
    if problem.startswith("is not TOML"):
        place = _toml_place(source, problem)
        return Diagnostic(codes.NOT_TOML, _AT_LINE.sub("", problem), place)
    code = next((code for words, code in _TOLD.items() if words in problem), codes.WRONG_SETTING)
    path, span = _place(tables, problem)
    if code is not codes.UNKNOWN_SETTING:
        return Diagnostic(code, problem, span)
    message, _, help = problem.partition("; ")  # the advice stands behind a semicolon
    fix = word_fix(span.of(source.text), list(below(path[:-1])), span) if path else None
    return Diagnostic(code, message, span, "", help, fix)


def _toml_place(source: Source, problem: str) -> Span:
    """Return the place that the reader of TOML has named; the end of the text if it has none."""
    at = _AT_LINE.search(problem)
    text = source.text
    if at is None:
        end = len(text.rstrip())
        return Span(max(0, end - 1), end)
    starts = source.starts()
    line = min(int(at[1]), len(starts)) - 1
    start = min(starts[line] + int(at[2]) - 1, len(text))
    end = line_end(text, start)
    return Span(start, end) if end > start else Span(starts[line], max(end, starts[line]))


def _place(tables: list[TomlTable], problem: str) -> tuple[tuple[str, ...], Span]:
    """Return the key that a problem names, and its place: `[runs] expiry must be …`, `"run" is not a setting; …`."""
    if top := _AT_TOP.match(problem):
        return place_of(tables, top[1])
    inside = _IN_TABLE.match(problem)
    if inside is None:
        return (), Span(0, 0)
    name, key = inside[1], inside[2] or ""
    path, span = place_of(tables, f"{name}.{key}")
    return (path, span) if path else place_of(tables, name)


def place_of(tables: list[TomlTable], name: str) -> tuple[tuple[str, ...], Span]:
    """Return the path and the place of a dotted name. Names of tables may have dots of their own, so only the joined
    text is compared."""
    for table in tables:
        for key in table.keys:
            if ".".join(key.path) == name:
                return key.path, key.parts[-1].span
        if table.path and ".".join(table.path) == name:
            return table.path, table.parts[-1].span
    for table in tables:  # a table that is only written as a part of a longer name
        for depth in range(1, len(table.parts)):
            if ".".join(table.path[:depth]) == name:
                return table.path[:depth], table.parts[depth - 1].span
    return (), Span(0, 0)


def _grants(view: View, tables: list[TomlTable]) -> Iterator[Diagnostic]:
    """Yield the entries of `[tools] allow` and `deny` that are not grants."""
    settings = view.folder.settings
    if settings is None:
        return
    for table in tables:
        for key in table.keys:
            if ".".join(key.path) in ("tools.allow", "tools.deny"):
                for text, span in texts_in(view.source.text, key.value):
                    problem = allow_problem(settings, text, denies=key.path[-1] == "deny")
                    if problem:
                        yield Diagnostic(codes.CANNOT_ALLOW, problem, span)


_BARE = re.compile(r"[A-Za-z0-9_-]+")


def name_problem(view: View, name: Name, new: str) -> str:
    """Return why a name must not become another one; empty if it may."""
    if not _BARE.fullmatch(new):
        return f"{new} would need quotes: use letters, digits, _ and -"
    taken = {other.text for other in view.index.names if other.kind == name.kind and other.role == "declares"}
    return f"there is a {'tier' if name.kind == 'model' else name.kind} {new} already" if new in taken else ""
