"""Let the documents that name a file follow when it is renamed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from quire.diagnostics import Edit
from quire.lsp import wire
from quire.lsp.answers import DOCUMENTS, FileEdit
from quire.lsp.desk import path_of

if TYPE_CHECKING:
    from quire.lsp.session import Session
    from quire.lsp.views import View

_ENDINGS = (".playbook.md", ".markdown", ".md", ".yaml", ".yml")


def will_rename(session: Session, params: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the edits that keep the references to the renamed files."""
    files = params.get("files")
    moves = [
        (path_of(one["oldUri"], session.desk.roots), path_of(one["newUri"], session.desk.roots))
        for one in (files if isinstance(files, list) else [])
        if isinstance(one, Mapping) and isinstance(one.get("oldUri"), str) and isinstance(one.get("newUri"), str)
    ]
    edits: dict[str, list[Edit]] = {}
    for old, new in moves:
        for view, edit in _followed(session, old, new):
            edits.setdefault(view.path, []).append(edit)
    if not edits:
        return None
    found = [FileEdit(path, tuple(sorted(some, key=lambda edit: edit.span.start))) for path, some in edits.items()]
    versioned = session.client.can("workspace.workspaceEdit.documentChanges")
    return wire.workspace_edit(session.desk, found, versioned=versioned, creates=False)


def _followed(session: Session, old: str, new: str) -> Iterator[tuple[View, Edit]]:
    folder = session.desk.folder_of(old)
    for view in folder.views():
        for name in view.index.names:
            if name.kind not in DOCUMENTS or name.document != old or name.scope:
                continue
            text = view.source.text[name.span.start : name.span.end]
            written = _written(text, Path(view.path).parent, folder.path, old, new)
            if written and written != text:
                yield view, Edit(name.span, text, written)


def _written(text: str, beside: Path, workspace: Path, old: str, new: str) -> str:
    """Return a reference as it is written after the move; empty for one that does not depend on the path."""
    before, after = _forms(old, beside, workspace), _forms(new, beside, workspace)
    return next((new_form for old_form, new_form in zip(before, after, strict=True) if old_form == text), "")


def _forms(path: str, beside: Path, workspace: Path) -> list[str]:
    """Return the ways in which documents name a file: its path from the document, from the workspace, below the folder
    of its kind, each with and without its ending, and its bare name."""
    relative = PurePosixPath(Path(os.path.relpath(path, beside)).as_posix())
    inside = PurePosixPath(Path(os.path.relpath(path, workspace)).as_posix())
    below = _below_kind(inside)
    ways = [str(relative), f"./{relative}", str(inside), str(below), inside.name]
    return [*ways, *map(_bare, ways)]


def _below_kind(inside: PurePosixPath) -> PurePosixPath:
    parts = inside.parts
    if parts[:1] == (".ai",) and len(parts) > 2:
        return PurePosixPath(*parts[2:])
    return PurePosixPath(*parts[1:]) if parts[0] in ("playbooks", "pipelines", "prompts") and parts[1:] else inside


def _bare(path: str) -> str:
    return next((path.removesuffix(ending) for ending in _ENDINGS if path.endswith(ending)), path)
