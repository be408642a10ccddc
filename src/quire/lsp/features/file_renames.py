"""Let the documents that name a file follow when it is renamed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from quire.diagnostics import Edit
from quire.formats import TEST_SUFFIX
from quire.lsp import wire
from quire.lsp.answers import DOCUMENTS, FileEdit
from quire.lsp.desk import path_of, uri_of
from quire.lsp.features.moved_callees import called_name, is_called
from quire.lsp.features.request_places import ask, workspace_edit
from quire.patterns import late_pattern

if TYPE_CHECKING:
    from quire.lsp.session import Session
    from quire.lsp.views import View
    from quire.source import Span

SNAPSHOT_SUFFIX = ".test.snap.yaml"
_LIBRARY_ID = late_pattern(r"[A-Za-z0-9-]++")
_ENDINGS = (".playbook.md", ".markdown", ".md", ".yaml", ".yml")


def will_rename(session: Session, params: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the edits that keep the references to the renamed files, and those from them to others. A folder stands
    for all documents in it, and for all other files in it that documents name."""
    files = params.get("files")
    moves: dict[str, str] = {}
    for one in files if isinstance(files, list) else []:
        if isinstance(one, Mapping) and isinstance(one.get("oldUri"), str) and isinstance(one.get("newUri"), str):
            old, new = (path_of(one[key], session.desk.roots) for key in ("oldUri", "newUri"))
            moves = _moved(session, old, new) | moves
    found: dict[str, dict[Span, Edit]] = {}
    for folder in {session.desk.folder_of(old).path: session.desk.folder_of(old) for old in moves}.values():
        for view in folder.views():
            for edit in _followed(view, folder.path, moves):
                found.setdefault(view.path, {}).setdefault(edit.span, edit)
    tests = _tests(session, moves) if _can_rename(session) else []
    if not found and not tests:
        return None
    edits = [
        FileEdit(path, tuple(sorted(some.values(), key=lambda edit: edit.span.start))) for path, some in found.items()
    ]
    written = workspace_edit(session, edits)
    if written is not None and "documentChanges" in written:
        written["documentChanges"] += tests
    return written


def _can_rename(session: Session) -> bool:
    return "rename" in (session.client.value("workspace.workspaceEdit.resourceOperations") or [])


def _tests(session: Session, moves: Mapping[str, str]) -> list[wire.Json]:
    """Return the renames of tests that find their document by having its name, with their snapshots."""
    found: list[wire.Json] = []
    for old, new in moves.items():
        before, after = _bare(old), _bare(new)
        test = session.desk.view_of(before + TEST_SUFFIX) if before != after and before != old else None
        file = test.reading.file if test is not None and test.format == "test" else None
        if test is None or test.path in moves or (file is not None and file.document is not None):
            continue
        for ending in (TEST_SUFFIX, SNAPSHOT_SUFFIX):
            if Path(before + ending).is_file() and not Path(after + ending).exists():
                uris = {"oldUri": wire.uri_at(session.desk, before + ending), "newUri": uri_of(after + ending)}
                found.append({"kind": "rename", **uris})
    return found


def _moved(session: Session, old: str, new: str) -> dict[str, str]:
    """Return the old and new paths of the files that a rename moves, as far as documents name them."""
    if not os.path.isdir(old):  # noqa: PTH112  # a name that is too long: False, not an exception
        return {old: new}
    inside = f"{old}{os.sep}"
    folder = session.desk.folder_of(str(Path(old) / "x"))
    named = (one.document for view in folder.views() for one in view.index.names if one.kind in DOCUMENTS)
    return {path: new + path[len(old) :] for path in chain(folder.files, named) if path.startswith(inside)}


def _followed(view: View, workspace: Path, moves: Mapping[str, str]) -> Iterator[Edit]:
    """Yield the edits of one document, which may be moved itself."""
    here, there = Path(view.path).parent, Path(moves.get(view.path, view.path)).parent
    for name in view.index.names:
        old = name.document
        if name.kind not in DOCUMENTS or not old or name.scope or (old not in moves and here == there):
            continue
        text = view.source.text[name.span.start : name.span.end]
        if is_called(view, name):
            written = called_name(view, name, moves)
            if written != text:
                yield Edit(name.span, text, written)
            continue
        if name.kind == "prompt" and view.format == "playbook":
            written = _library_id(view, moves.get(old, old)) or text
            if written != text:
                yield Edit(name.span, text, written)
            continue
        before, after = _forms(old, here, workspace), _forms(moves.get(old, old), there, workspace)
        written = next((later for form, later in zip(before, after, strict=True) if form == text), "")
        leaves = written.startswith("../") and name.kind in ("prompt", "file") and view.format != "test"
        if written and written != text and not leaves:  # a prompt is a file below the folder of its document
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
