"""Find a file of the workspace without ever leaving it.

A path is walked name by name, each folder opened from the one before it and links resolved by hand: the checked file is
the one that is opened, even if another process replaces a folder by a link meanwhile. The result is an open folder and
a plain name in it.
"""

from __future__ import annotations

import errno
import os
import stat
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from msgspec import Struct

from quire.errors import Denied, ToolFailed
from quire.source import NO_LINK, NO_WAIT
from quire.tools.builtin.protected import EDIT, GIT_MARKS, GIT_STORES, NO_GRANT, Protection, fold, printable_path
from quire.wording import cut

MAX_PATH = 4096
MAX_LINKS = 40
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


class Place(Struct, frozen=True):
    """`name` in the open folder `folder`; "." for the folder itself. `parts` are the real names from the workspace
    on."""

    folder: int
    name: str
    parts: tuple[str, ...]

    @property
    def path(self) -> str:
        return "/".join(self.parts) or "."

    def status(self) -> os.stat_result | None:
        try:
            return os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)
        except FileNotFoundError:
            return None


class Places:
    """The files below one folder. `private` are folders in it that no tool may even read."""

    def __init__(self, root: Path, private: Sequence[Path] = ()) -> None:
        self.root = root.resolve()
        self.private = tuple(folder.resolve() for folder in private)

    @contextmanager
    def locate(self, path: str, *, to_write: Protection | None = None) -> Iterator[Place]:
        """Open the place of a path, whether or not a file exists there.

        With `to_write` the place must be writable for tools, and missing folders above it are created. Raises
        `ToolFailed` or `Denied`; an `OSError` inside the block becomes a `ToolFailed` too.
        """
        try:
            with ExitStack() as opened:
                yield self._walk(path, to_write, opened)
        except OSError as error:
            raise ToolFailed(f"{_shown(path)}: {_reason(error)}", kind="file") from None

    def open_folder(self, name: str, at: int) -> int:
        """Open a folder in a folder, never through a link. Raises `OSError`, or `Denied` for a private one."""
        found = os.open(name, _FOLDER, dir_fd=at)
        try:
            self._check_private(os.fstat(found))
        except BaseException:
            os.close(found)
            raise
        return found

    def _walk(self, path: str, to_write: Protection | None, opened: ExitStack) -> Place:
        pending = deque(self._parts(path))
        folders: list[tuple[str, int]] = [("", self._root(opened))]
        links = 0
        while pending:
            part = pending.popleft()
            at = folders[-1][1]
            if part == "..":
                # Only a link can contain it: `_parts` refuses it in the requested path.
                if len(folders) == 1:
                    raise self._outside(path)
                folders.pop()
                continue
            if to_write:
                self._require_no_repository([*(name for name, _ in folders[1:]), part], at, last=not pending)
            found = self._status(part, at)
            if found is not None and stat.S_ISLNK(found.st_mode):
                links += 1
                if links > MAX_LINKS:
                    raise ToolFailed(f"{_shown(path)}: too many links", kind="file")
                target = os.readlink(part, dir_fd=at)
                if target.startswith("/"):
                    del folders[1:]
                    target = self._inside(target, path)
                pending.extendleft(reversed([name for name in target.split("/") if name not in ("", ".")]))
                continue
            if not pending:
                if found is not None:
                    self._check_private(found)
                parts = (*(name for name, _ in folders[1:]), part)
                if to_write:
                    to_write.require(parts)
                return Place(at, part, parts)
            if found is None and to_write and ".." not in pending:
                # Below a missing folder there are no links: these are the real names of all the rest.
                to_write.require((*(name for name, _ in folders[1:]), part, *pending))
                self._make(part, at)
            below = self.open_folder(part, at)
            opened.callback(os.close, below)
            folders.append((part, below))
        return Place(folders[-1][1], ".", tuple(name for name, _ in folders[1:]))

    def _require_no_repository(self, parts: list[str], at: int, *, last: bool) -> None:
        """Raise `Denied` if a name would make its folder a repository. Git needs files for marks, not folders."""
        name = fold(parts[-1])
        is_mark, is_store = last and name in map(fold, GIT_MARKS), name in GIT_STORES
        for other in GIT_STORES if is_mark else GIT_MARKS if is_store else ():
            beside = self._status(other, at)
            if beside is not None and (is_mark or not stat.S_ISDIR(beside.st_mode)):
                raise Denied(
                    f"permission denied: {printable_path('/'.join(parts))} is protected (beside {other} it makes the "
                    f"folder a git repository); no tool may write it, and {NO_GRANT}: {EDIT}"
                )

    def _root(self, opened: ExitStack) -> int:
        if os.open not in os.supports_dir_fd:
            raise ToolFailed("the file tools need a system that opens files relative to folders", kind="file")
        root = os.open(self.root, _FOLDER)
        opened.callback(os.close, root)
        return root

    def _parts(self, path: str) -> list[str]:
        if "\0" in path or len(path) > MAX_PATH:
            raise ToolFailed(f"{_shown(path)} is not a path", kind="file")
        if path.startswith("/"):
            path = self._inside(path, path)
        parts = [part for part in path.split("/") if part not in ("", ".")]
        if ".." in parts:
            raise ToolFailed(f"{_shown(path)}: a path must not contain ..", kind="file")
        return parts

    def _inside(self, target: str, path: str) -> str:
        """Return an absolute path relative to the workspace. Compares names only; the walk checks the rest."""
        root = str(self.root).rstrip("/")
        if target != root and not target.startswith(root + "/"):
            raise self._outside(path)
        return target[len(root) :]

    def _outside(self, path: str) -> ToolFailed:
        return ToolFailed(f"{_shown(path)} is outside of the workspace", kind="outside")

    def _status(self, name: str, at: int) -> os.stat_result | None:
        try:
            return os.stat(name, dir_fd=at, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def _make(self, name: str, at: int) -> None:
        try:
            os.mkdir(name, dir_fd=at)
        except FileExistsError:
            return

    def _check_private(self, found: os.stat_result) -> None:
        for folder in self.private:
            try:
                if os.path.samestat(found, folder.stat()):
                    raise Denied("permission denied: no tool may use your own space")
            except OSError:
                continue


def open_file(place: Place) -> int:
    """Open the regular file at a place for reading. Never blocks: a pipe or a device is refused."""
    flags = os.O_RDONLY | NO_WAIT | NO_LINK
    found = place.status()
    if found is not None:
        require_regular(found, place.path)
    opened = os.open(place.name, flags, dir_fd=place.folder)
    try:
        require_regular(os.fstat(opened), place.path)
    except BaseException:
        os.close(opened)
        raise
    return opened


def require_regular(found: os.stat_result, path: str) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise ToolFailed(f"{path} is a folder", kind="file")
    if not stat.S_ISREG(found.st_mode):
        raise ToolFailed(f"{path} is not a regular file", kind="file")


def _shown(path: str) -> str:
    text = printable_path(path)
    return cut(text, 200, 200)


def _reason(error: OSError) -> str:
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return "a part of the path is not a folder"
    return (error.strerror or type(error).__name__).lower()
