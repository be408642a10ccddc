"""Where a document is: in which workspace, on the user's shelf or in a space, and its path without links."""

from __future__ import annotations

import os
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from quire.source import real_path
from quire.workspace.locate import is_on_shelf, user_space, workspace_of

if TYPE_CHECKING:
    from quire.source import Source
    from quire.workspace.locate import Workspace


class Places:
    """Where documents are. Several checks may share it, as long as no file or link comes or goes between them."""

    def __init__(self) -> None:
        self._workspaces: dict[str, Workspace | None] = {}
        self._real: dict[str, Path] = {}

    def workspace(self, source: Source) -> Workspace | None:
        """Return the workspace that a run of a document would have; None for one on the user's shelf."""
        folder = os.path.dirname(source.name)  # noqa: PTH120
        if folder not in self._workspaces:
            on_shelf = is_on_shelf(source.name, user_space())
            self._workspaces[folder] = None if on_shelf else workspace_of(Path(source.name).parent)
        return self._workspaces[folder]

    def real(self, path: str) -> Path:
        """Return a path without its links."""
        if path not in self._real:
            self._real[path] = real_path(Path(path))
        return self._real[path]


def place_of(path: Path, folder: str) -> tuple[Path, PurePath] | None:
    """Return the folder that contains the file's space, and the file's path in it; None for a file that is not in a
    space.

    Links are not followed: the path at which an item is found is its name.
    """
    parts = Path(os.path.abspath(path)).parts  # noqa: PTH100
    at = max((at for at, part in enumerate(parts) if part == ".ai"), default=-1)
    if at < 0 or len(parts) <= at + 2 or parts[at + 1] != folder:
        return None
    return Path(*parts[:at]), PurePath(*parts[at + 2 :])
