"""The names by which documents call a playbook or a directive whose file is moved.

A name is not always a path: playbooks have one only at the top of a workspace and in `playbooks/`, directives only in
`.ai/directives`, and a pipeline cannot write a slash. A call stays as it is where no name would be found; a test names
the path instead.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from quire.errors import QuireError
from quire.formats.pipeline.syntax import is_name
from quire.library.registered import playbook_name
from quire.lsp.directive.item_words import entries, id_of
from quire.patterns import late_pattern

if TYPE_CHECKING:
    from quire.lsp.answers import Name
    from quire.lsp.folders import Folder
    from quire.lsp.views import View

_UNQUOTED = late_pattern(r"[A-Za-z0-9_.-]++")


def is_called(view: View, name: Name) -> bool:
    """Tell whether a place calls a playbook or a directive by its name, and not by the path of its file."""
    if name.kind == "document":
        return view.format != "test" or not name.text.endswith((".md", ".yaml", ".yml"))
    return name.kind == "directive" and name.role == "reads" and view.format in ("pipeline", "playbook")


def called_name(view: View, name: Name, moves: Mapping[str, str]) -> str:
    """Return the text that a place has to have after the moves; the old one if no name fits."""
    text = view.source.text[name.span.start : name.span.end]
    kind = "directive" if name.kind == "directive" else "playbook"
    before, after = (_id(view.folder, kind, path) for path in (name.document, moves.get(name.document, name.document)))
    if not after or not before:
        return _path(view, name, moves) if view.format == "test" else text
    if "/" in before and text == before.replace("/", "."):
        return after.replace("/", ".")
    ids = _ids_after(view.folder, kind, moves)
    last = after.rpartition("/")[2]
    is_whole = "/" in text or (view.format == "directive" and text == before)
    for one in (after, last) if is_whole else (last, after):
        if _is_found(view.folder, one, after, ids) and _can_be_written(view, name, one):
            return one
    return text


def _path(view: View, name: Name, moves: Mapping[str, str]) -> str:
    """Return the path of a document from its test, which may name it so."""
    beside = Path(moves.get(view.path, view.path)).parent
    return Path(os.path.relpath(moves.get(name.document, name.document), beside)).as_posix()


def _id(folder: Folder, kind: str, path: str) -> str:
    """Return the whole name of a document; empty for a file that has none."""
    return id_of(path) if kind == "directive" else playbook_name(Path(path), folder.path)


def _ids_after(folder: Folder, kind: str, moves: Mapping[str, str]) -> list[str]:
    """Return the whole names of all documents of a kind after the moves."""
    if kind == "directive":
        moved = {id_of(old): id_of(new) for old, new in moves.items()}
        return [moved.get(one, one) for one in entries(folder, "directive")]
    try:
        paths: Iterable[Path] = folder.snapshot.playbooks().paths.values() if folder.snapshot is not None else ()
    except QuireError:
        paths = ()
    return [playbook_name(Path(moves.get(str(path), str(path))), folder.path) for path in paths]


def _is_found(folder: Folder, name: str, wanted: str, ids: list[str]) -> bool:
    """Tell whether a name means a document: its whole name, or a last part that no other one has."""
    try:
        if folder.snapshot is not None and name in folder.snapshot.registry().pipelines:
            return False
    except QuireError:
        return False
    if name in ids:
        return name == wanted and ids.count(name) == 1
    return [one for one in ids if one.rpartition("/")[2] == name] == [wanted]


def _can_be_written(view: View, name: Name, new: str) -> bool:
    """Tell whether a place can hold a name."""
    if view.format == "pipeline":
        return is_name(new)
    quoted = view.source.text[name.span.start - 1 : name.span.start] == '"'
    return view.format != "playbook" or quoted or _UNQUOTED.fullmatch(new) is not None
