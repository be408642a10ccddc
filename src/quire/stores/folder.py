"""The folder `.quire` of a workspace: readable by this account only, and never a link to another place.

It holds the inputs and results of runs. A cloned repository can contain the folder as a link to any place that the user
may write; in that case nothing is opened.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from quire.errors import StoreError

NAME = ".quire"
_SIDES = ("", "-wal", "-shm", "-journal")


def require_folder(folder: Path) -> None:
    """Raise `StoreError` if `.quire` is a link or not a folder."""
    if folder.name != NAME:
        return
    try:
        mode = os.lstat(folder).st_mode
    except OSError:
        return
    if not stat.S_ISDIR(mode):
        kind = "a link" if stat.S_ISLNK(mode) else "a file"
        raise StoreError(f"{folder} is {kind}, not a folder: remove it, so that runs are kept in a folder of their own")


def prepare_folder(database: Path) -> None:
    """Create the folder of a database.

    A folder named `.quire` is kept out of version control and closed to other accounts; permissions that an older
    version left open are tightened.
    """
    folder = database.parent
    require_folder(folder)
    made = not folder.exists()
    if folder.name != NAME:
        folder.mkdir(parents=True, exist_ok=True)
        if made:
            _ignore(folder, 0o666)
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    _ignore(folder, 0o600)
    tighten(folder, 0o700)
    _require_file(database)
    with contextlib.suppress(FileExistsError, PermissionError):
        os.close(os.open(database, os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_CLOEXEC", 0), 0o600))
    # SQLite gives the files beside a database the mode of the database.
    for side in _SIDES:
        tighten(folder / f"{database.name}{side}", 0o600)
    tighten(folder / ".gitignore", 0o600)


def tighten(path: Path, mode: int) -> None:
    """Remove the permissions of other accounts on a file. Errors are ignored, so a file that belongs to another account
    stays as it is."""
    with contextlib.suppress(OSError, NotImplementedError):
        found = os.lstat(path)
        if found.st_mode & 0o077 and not stat.S_ISLNK(found.st_mode):
            os.chmod(path, stat.S_IMODE(found.st_mode) & mode)  # noqa: PTH101


def _require_file(database: Path) -> None:
    for name in (*(database.name + side for side in _SIDES), "locks"):
        path = database.with_name(name)
        if path.is_symlink():
            raise StoreError(f"{path} is a link: remove it, so that runs are kept in the folder {NAME} itself")


def _ignore(folder: Path, mode: int) -> None:
    with contextlib.suppress(OSError):
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0)
        with os.fdopen(os.open(folder / ".gitignore", flags, mode), "w", encoding="utf-8") as file:
            file.write("*\n")
