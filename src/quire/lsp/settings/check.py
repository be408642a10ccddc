"""Findings about `quire.toml`, each at its place, in the words that the verbs print."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from quire.diagnostics import Code, Diagnostic
from quire.formats.near_names import word_fix
from quire.lsp.settings.toml_places import TomlKey, TomlTable, tables_of, texts_in
from quire.source import Span
from quire.workspace import codes
from quire.workspace.configuration import problems_in
from quire.workspace.locate import Workspace, user_space
from quire.workspace.setting_keys import below

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quire.diagnostics import Fix
    from quire.lsp.views import View
    from quire.source import Source

_AT_LINE = re.compile(r" \(at line (\d+), column (\d+)\)$")
_IN_TABLE = re.compile(r"\[([^\]]+)\] (?:(\S+?):? )?")
_AT_TOP = re.compile(r'"([^"]+)" ')
_TOLD = {
    " is not a setting; ": codes.UNKNOWN_SETTING,
    " read from the quire.toml of your own space": codes.MISPLACED_SETTING,
    " are read from a workspace's quire.toml": codes.MISPLACED_SETTING,
}


def check(view: View) -> list[Diagnostic]:
    """Return what is wrong with a file of settings."""
    path, source = Path(view.path), view.source
    workspace = Workspace(path.parent, path)
    tables = tables_of(source.text)
    found = [_finding(source, tables, one) for one in _told(path, source, workspace)]
    return sorted([*found, *_grants(view, tables)], key=lambda one: one.span.start)


def _told(path: Path, source: Source, workspace: Workspace) -> list[str]:
    problems = problems_in(path, source.text, workspace, user_space())
    return [problem.removeprefix(f"{path}: ") for problem in problems]


def _finding(source: Source, tables: list[TomlTable], problem: str) -> Diagnostic:
    if problem.startswith("is not TOML"):
        place = _toml_place(source, problem)
        return Diagnostic(codes.NOT_TOML, _AT_LINE.sub("", problem), place)
    code = next((code for words, code in _TOLD.items() if words in problem), codes.WRONG_SETTING)
    path, span = _place(tables, problem)
    message, help = _parted(problem, code)
    return Diagnostic(
        code, message, span, "", help, _fix(source, path, span) if code is codes.UNKNOWN_SETTING else None
    )


def _parted(problem: str, code: Code) -> tuple[str, str]:
    """Return the message and the help of a problem: the advice stands behind a semicolon."""
    if code is not codes.UNKNOWN_SETTING:
        return problem, ""
    message, _, help = problem.partition("; ")
    return message, help


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
    end = text.find("\n", start)
    end = len(text) if end < 0 else end
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
                return key.path, _last(key)
        if table.path and ".".join(table.path) == name:
            return table.path, table.parts[-1].span
    for table in tables:  # a table that is only written as a part of a longer name
        for depth in range(1, len(table.parts)):
            if ".".join(table.path[:depth]) == name:
                return table.path[:depth], table.parts[depth - 1].span
    return (), Span(0, 0)


def _last(key: TomlKey) -> Span:
    return key.parts[-1].span


def _fix(source: Source, path: tuple[str, ...], span: Span) -> Fix | None:
    """Return the edit that corrects a misspelled key, if there is one certain word for it."""
    written = source.text[span.start : span.end]
    return word_fix(written, list(below(path[:-1])), span) if path else None


def _grants(view: View, tables: list[TomlTable]) -> Iterator[Diagnostic]:
    """Yield the entries of `[tools] allow` and `deny` that are not grants."""
    from quire.workspace.grants import allow_problem

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
