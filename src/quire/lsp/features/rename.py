"""Rename a thing everywhere, and let the documents that name a file follow when it is renamed. Prose is not touched.

The name of a document is not always a path: playbooks have one only at the top of a workspace and in `playbooks/`,
directives only in `.ai/directives`, and a pipeline cannot write a slash. A call stays as it is where no name would be
found; a test names the path instead.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from quire.diagnostics import Edit
from quire.errors import QuireError
from quire.formats import TEST_SUFFIX
from quire.library.registered import playbook_name
from quire.lsp import wire
from quire.lsp.answers import DOCUMENTS, FileEdit
from quire.lsp.desk import path_of, uri_of
from quire.lsp.directive.item_words import entries, id_of
from quire.lsp.features import ask, names_at, place_in, workspace_edit
from quire.lsp.name_targets import places_of
from quire.lsp.prompts import files_of, sharing_problem
from quire.lsp.protocol import RequestFailed
from quire.patterns import late_pattern

if TYPE_CHECKING:
    from quire.lsp.answers import Name
    from quire.lsp.desk import Folder
    from quire.lsp.document_view import View
    from quire.lsp.session import Session
    from quire.source import Span


def is_called(view: View, name: Name) -> bool:
    """Tell whether a place calls a playbook or a directive by its name, and not by the path of its file."""
    if name.kind == "document":
        return view.format != "test" or not name.text.endswith((".md", ".yaml", ".yml"))
    return name.kind == "directive" and name.role == "reads" and view.format in ("pipeline", "playbook")


def called_name(view: View, name: Name, moves: Mapping[str, str]) -> str:
    """Return the text that a place has to have after the moves; the old one if no name fits."""
    text = name.span.of(view.source.text)
    kind = "directive" if name.kind == "directive" else "playbook"
    paths = name.document, moves.get(name.document, name.document)
    home = view.folder.path
    before, after = (id_of(path) if kind == "directive" else playbook_name(Path(path), home) for path in paths)
    if not after or not before:
        if view.format != "test":
            return text
        beside = Path(moves.get(view.path, view.path)).parent  # a test may name a path
        return Path(os.path.relpath(paths[1], beside)).as_posix()
    if "/" in before and text == before.replace("/", "."):
        return after.replace("/", ".")
    ids = _ids_after(view.folder, kind, moves)
    last = after.rpartition("/")[2]
    is_whole = "/" in text or (view.format == "directive" and text == before)
    for candidate in (after, last) if is_whole else (last, after):
        can_stand = ask(view, "naming", "can_stand", name, candidate) is not False
        if can_stand and _is_found(view.folder, candidate, after, ids):
            return candidate
    return text


def _ids_after(folder: Folder, kind: str, moves: Mapping[str, str]) -> list[str]:
    """Return the whole names of all documents of a kind after the moves."""
    if kind == "directive":
        moved = {id_of(old): id_of(new) for old, new in moves.items()}
        return [moved.get(entry, entry) for entry in entries(folder, "directive")]
    try:
        paths: Iterable[Path] = folder.snapshot.playbooks().paths.values() if folder.snapshot is not None else ()
    except QuireError:
        paths = ()
    return [playbook_name(Path(moves.get(str(path), str(path))), folder.path) for path in paths]


def _is_found(folder: Folder, name: str, id: str, ids: list[str]) -> bool:
    """Tell whether a name means a document: its whole name, or a last part that no other one has."""
    try:
        if folder.snapshot is not None and name in folder.snapshot.registry().pipelines:
            return False
    except QuireError:
        return False
    if name in ids:
        return name == id and ids.count(name) == 1
    return [other for other in ids if other.rpartition("/")[2] == name] == [id]


SNAPSHOT_SUFFIX = ".test.snap.yaml"
_LIBRARY_ID = late_pattern(r"[A-Za-z0-9-]++")
_ENDINGS = (".playbook.md", ".markdown", ".md", ".yaml", ".yml")


def will_rename(session: Session, params: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the edits that keep the references to the renamed files, and those from them to others. A folder stands
    for all documents in it, and for all other files in it that documents name."""
    files = params.get("files")
    moves: dict[str, str] = {}
    for file in files if isinstance(files, list) else []:
        if isinstance(file, Mapping) and isinstance(file.get("oldUri"), str) and isinstance(file.get("newUri"), str):
            old, new = (path_of(file[key], session.desk.roots) for key in ("oldUri", "newUri"))
            moves = _moved(session, old, new) | moves
    by_path: dict[str, dict[Span, Edit]] = {}
    for folder in {session.desk.folder_of(old).path: session.desk.folder_of(old) for old in moves}.values():
        for view in folder.views():
            for edit in _followed(view, folder.path, moves):
                by_path.setdefault(view.path, {}).setdefault(edit.span, edit)
    can_rename = "rename" in (session.client.value("workspace.workspaceEdit.resourceOperations") or [])
    tests = _tests(session, moves) if can_rename else []
    if not by_path and not tests:
        return None
    edits = [
        FileEdit(path, tuple(sorted(some.values(), key=lambda edit: edit.span.start))) for path, some in by_path.items()
    ]
    written = workspace_edit(session, edits)
    if written is not None and "documentChanges" in written:
        written["documentChanges"] += tests
    return written


def _tests(session: Session, moves: Mapping[str, str]) -> list[wire.Json]:
    """Return the renames of tests that find their document by having its name, with their snapshots."""
    renames: list[wire.Json] = []
    for old, new in moves.items():
        before, after = _bare(old), _bare(new)
        test = session.desk.view_of(before + TEST_SUFFIX) if before != after and before != old else None
        file = test.reading.file if test is not None and test.format == "test" else None
        if test is None or test.path in moves or (file is not None and file.document is not None):
            continue
        for ending in (TEST_SUFFIX, SNAPSHOT_SUFFIX):
            if Path(before + ending).is_file() and not Path(after + ending).exists():
                uris = {"oldUri": wire.uri_at(session.desk, before + ending), "newUri": uri_of(after + ending)}
                renames.append({"kind": "rename", **uris})
    return renames


def _moved(session: Session, old: str, new: str) -> dict[str, str]:
    """Return the old and new paths of the files that a rename moves, as far as documents name them."""
    if not os.path.isdir(old):  # noqa: PTH112  # a name that is too long: False, not an exception
        return {old: new}
    inside = f"{old}{os.sep}"
    folder = session.desk.folder_of(str(Path(old) / "x"))
    named = (name.document for view in folder.views() for name in view.index.names if name.kind in DOCUMENTS)
    return {path: new + path[len(old) :] for path in chain(folder.files, named) if path.startswith(inside)}


def _followed(view: View, workspace: Path, moves: Mapping[str, str]) -> Iterator[Edit]:
    """Yield the edits of one document, which may be moved itself."""
    here, there = Path(view.path).parent, Path(moves.get(view.path, view.path)).parent
    for name in view.index.names:
        old = name.document
        if name.kind not in DOCUMENTS or not old or name.scope or (old not in moves and here == there):
            continue
        text = name.span.of(view.source.text)
        if is_called(view, name):
            written = called_name(view, name, moves)
        elif name.kind == "prompt" and view.format == "playbook":
            written = _library_id(view, moves.get(old, old))
        else:
            before, after = _forms(old, here, workspace), _forms(moves.get(old, old), there, workspace)
            written = next((later for form, later in zip(before, after, strict=True) if form == text), "")
            if written.startswith("../") and name.kind in ("prompt", "file") and view.format != "test":
                written = ""  # a prompt is a file below the folder of its document
        if written and written != text:
            yield Edit(name.span, text, written)
    if view.path in moves:
        yield from ask(view, "file_moves", "moved", moves[view.path]) or ()
    yield from ask(view, "file_moves", "followed", moves) or ()


def _library_id(view: View, path: str) -> str:
    """Return the id by which `@prompt(library:ID)` names a file; empty for a file that is not in the library."""
    from quire.lsp.playbook.tools import prompt_folders

    id = Path(path).name.removesuffix(".md")
    is_id = path.endswith(".md") and _LIBRARY_ID.fullmatch(id) is not None
    return id if is_id and Path(path).parent in prompt_folders(view) else ""


def _forms(path: str, beside: Path, workspace: Path) -> list[str]:
    """Return the ways in which documents name a file: its path from the document, from the workspace, below the folder
    of its kind, each with and without its ending, its bare name, and its id with dots."""
    relative = PurePosixPath(Path(os.path.relpath(path, beside)).as_posix())
    inside = PurePosixPath(Path(os.path.relpath(path, workspace)).as_posix())
    below = _below_kind(inside)
    ways = [str(relative), f"./{relative}", str(inside), str(below), inside.name]
    return [*ways, *map(_bare, ways), _bare(str(below)).replace("/", ".")]


def _below_kind(inside: PurePosixPath) -> PurePosixPath:
    parts = inside.parts
    if parts[:1] == (".ai",) and len(parts) > 2:
        return PurePosixPath(*parts[2:])
    return PurePosixPath(*parts[1:]) if parts[0] in ("playbooks", "pipelines", "prompts") and parts[1:] else inside


def _bare(path: str) -> str:
    return next((path.removesuffix(ending) for ending in _ENDINGS if path.endswith(ending)), path)


def prepare(session: Session, params: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the text that can be renamed. Raises `RequestFailed` with the reason if it cannot."""
    named = names_at(session, params)
    if not named:
        return None
    view, name = named[0]
    _require_renamable(view, name)
    text = name.span.of(view.source.text)
    return {"range": view.text.range(name.span), "placeholder": text}


def rename(session: Session, params: Mapping[str, Any]) -> dict[str, Any] | None:
    named = names_at(session, params)
    new = params.get("newName")
    if not named or not isinstance(new, str):
        raise RequestFailed("nothing here can be renamed")
    view, name = named[0]
    _require_renamable(view, name)
    # In a prompt file the name is one of the document that uses the file, and so are the rules for names. A pipeline
    # has the rules of pipelines at all its calls.
    elsewhere = not view.format or (name.kind == "pipeline" and name.document)
    home = view.folder.view(name.document) if elsewhere else view
    problem = ask(home, "naming", "name_problem", name, new) if home is not None else ""
    if problem:
        raise RequestFailed(problem)
    places: dict[str, tuple[View, list[Name]]] = {}
    owner = view.folder.view(name.document) if name.document else view
    prompts = files_of(owner) if owner is not None else []
    for where, place in places_of(view, name):
        if place.renames:
            if owner and where.path in prompts and (problem := sharing_problem(owner, where, place)):
                raise RequestFailed(problem)
            places.setdefault(where.path, (where, []))[1].append(place)
    files = [FileEdit(path, _edits(where, names, new)) for path, (where, names) in places.items()]
    return workspace_edit(session, files)


def _edits(view: View, names: list[Name], new: str) -> tuple[Edit, ...]:
    """Return the edits of one document, in order. Raises `RequestFailed` if a place cannot be written."""
    edits = ask(view, "naming", "place_edits", names, new)
    if isinstance(edits, str):
        raise RequestFailed(edits)
    if edits is None:
        spans = dict.fromkeys(name.span for name in names)
        edits = [Edit(span, span.of(view.source.text), new) for span in spans]
    return tuple(sorted(edits, key=lambda edit: edit.span.start))


def linked(session: Session, params: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the places that change while one of them is typed: the names of an opening and a closing tag."""
    place = place_in(session, params)
    if place is None:
        return None
    view, offset = place
    for pair in view.index.pairs:
        if any(span.holds(offset) for span in pair):
            return {"ranges": [view.text.range(span) for span in pair]}
    return None


def _require_renamable(view: View, name: Name) -> None:
    if name.renames:
        return
    if name.kind in DOCUMENTS:
        raise RequestFailed("this is the name of a file: rename the file, and the documents that name it follow")
    raise RequestFailed(f"{name.text} cannot be renamed here")
