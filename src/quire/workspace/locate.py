"""Locate the workspace around a document, and the user's own space."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from quire.errors import CannotStart
from quire.source import read_bytes

GONE = "the current folder is not there any more: go to another one"
MARKERS = ("quire.toml", "pyproject.toml", ".ai", ".mcp.json", ".git")

_TABLE = re.compile(rb"^\s*\[+\s*tool\.quire\b", re.MULTILINE)


class Workspace(Struct, frozen=True):
    """A folder, and the file or folder in it that makes it a workspace; None if there is none."""

    folder: Path
    marker: Path | None = None


def find_workspace(start: Path, environ: Mapping[str, str] | None = None) -> Workspace:
    """Return the nearest folder upward that has a marker, else the start itself. A file stands for its folder.

    Raises `CannotStart` for a start that does not exist, because a store would be created in it, and `Refused` for a
    workspace of another account.
    """
    try:
        start = start.resolve(strict=True)
    except FileNotFoundError:
        raise CannotStart(f"{start} cannot be the workspace: it does not exist") from None
    except (OSError, RuntimeError, ValueError) as error:
        # A circle of links raises RuntimeError, a zero byte ValueError.
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise CannotStart(f"{start} cannot be the workspace: {reason}") from None
    if start.is_file():
        start = start.parent
    for folder in (start, *start.parents):
        for name in MARKERS:
            if _marks(folder / name):
                return _owned(Workspace(folder, folder / name), environ)
    return _owned(Workspace(start), environ)


def _owned(workspace: Workspace, environ: Mapping[str, str] | None) -> Workspace:
    """Return the workspace if it belongs to this account. A folder without a marker sets nothing, so it may belong to
    any account, but the store in it may not."""
    from quire.workspace.owner import require_own

    folder = str(workspace.folder)
    names = (".quire",) if workspace.marker is None else (workspace.marker.name, "", *MARKERS, ".quire")
    paths = [os.path.join(folder, name) if name else folder for name in names]  # noqa: PTH118  # for every run
    require_own(workspace.folder, paths, lambda: user_space(environ), os.environ if environ is None else environ)
    return workspace


def current_folder() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise CannotStart(GONE) from None


def user_space(environ: Mapping[str, str] | None = None) -> Path:
    """Return the user's own folder: settings, grants, prompts, trust. `QUIRE_HOME` moves it."""
    home = (os.environ if environ is None else environ).get("QUIRE_HOME")
    if home:
        return Path(home).expanduser()
    import platformdirs

    return platformdirs.user_config_path("quire", appauthor=False)


def has_table(pyproject: Path) -> bool:
    """Tell whether a `pyproject.toml` has a table for Quire, without parsing it: most do not."""
    try:
        return _TABLE.search(read_bytes(pyproject)) is not None
    except OSError:
        return False


def _marks(path: Path) -> bool:
    if path.name == "pyproject.toml":
        return has_table(path)
    if path.name == ".ai":
        return path.is_dir()
    # `.git` is a file in a worktree.
    return path.exists() if path.name == ".git" else path.is_file()
