"""Locate the workspace around a document, and the user folder; refuse a workspace of another account."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from quire.errors import CannotStart, Refused
from quire.patterns import late_pattern
from quire.source import read_bytes

GONE = "the current folder does not exist any more: change to another one"
SAFE_FOLDERS = "safe_folders"
MCP_FILE = ".mcp.json"
MARKERS = ("quire.toml", "pyproject.toml", ".ai", MCP_FILE, ".git")

_TABLE_NAME = b"tool.quire"
_TABLE = late_pattern(rb"^\s*\[+\s*tool\.quire\b", re.MULTILINE)


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


def workspace_of(folder: Path) -> Workspace:
    """Return the workspace that a run of a document of the folder would have. If no folder around it is marked, that is
    the current folder."""
    workspace = find_workspace(folder)
    if workspace.marker is None and workspace.folder.is_relative_to(current := Path.cwd().resolve()):
        return find_workspace(current)
    return workspace


def _owned(workspace: Workspace, environ: Mapping[str, str] | None) -> Workspace:
    """Return the workspace if it belongs to this account. A folder without a marker sets nothing, so it may belong to
    any account, but the store in it may not."""
    folder = str(workspace.folder)
    names = (".quire",) if workspace.marker is None else (workspace.marker.name, "", *MARKERS, ".quire")
    paths = [os.path.join(folder, name) if name else folder for name in names]  # noqa: PTH118  # for every run
    _require_own(workspace.folder, paths, os.environ if environ is None else environ)
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
    if sys.platform == "linux":  # The same answer as below, without what it costs every command to load.
        folder = os.environ.get("XDG_CONFIG_HOME", "")
        return Path(folder if os.path.isabs(folder) else os.path.expanduser("~/.config"), "quire")  # noqa: PTH111, PTH117
    import platformdirs

    return platformdirs.user_config_path("quire", appauthor=False)


SHELF_FOLDERS = ("playbooks", "pipelines")
"""Folders of the user folder whose documents have a name in every workspace (`quire.library.registered`)."""


def is_on_shelf(file: str | Path, user: Path) -> bool:
    """Tell whether a file is in the document list of a user folder: by its path, or behind the links of its folders."""
    folders = [f"{user}{os.sep}{name}" for name in SHELF_FOLDERS]
    lexical, shelf = os.path.abspath(file), os.path.abspath(user).rstrip(os.sep)  # noqa: PTH100
    if lexical.startswith(tuple(f"{shelf}{os.sep}{name}{os.sep}" for name in SHELF_FOLDERS)):
        return True
    # Most users have no shelf, and a link takes many looks at the disk to follow.
    there = [folder for folder in folders if os.path.exists(folder)]  # noqa: PTH110
    real = os.path.realpath(file) if there else ""
    return any(real.startswith(os.path.realpath(folder) + os.sep) for folder in there)


def has_table(pyproject: Path) -> bool:
    """Tell whether a `pyproject.toml` has a table for Quire, without parsing it: most do not."""
    try:
        text = read_bytes(pyproject)
    except OSError:
        return False
    return _TABLE_NAME in text and _TABLE.search(text) is not None


def _marks(path: Path) -> bool:
    if path.name == "pyproject.toml":
        return has_table(path)
    if path.name == ".ai":
        return path.is_dir()
    # `.git` is a file in a worktree.
    return path.exists() if path.name == ".git" else path.is_file()


def _require_own(folder: Path, paths: Iterable[str], environ: Mapping[str, str]) -> None:
    """Raise `Refused` if one of the paths belongs to another account and the folder is not listed as safe.

    On a machine with several users, any of them can put a `quire.toml` into `/tmp` or a shared folder: its commands
    would run for all users who work below it. So it is refused, as by git (`safe.directory`), unless the user lists it.
    """
    if not hasattr(os, "geteuid"):
        return
    mine = _own_accounts(environ)
    for path in paths:
        try:
            owner = os.lstat(path).st_uid
        except OSError:
            continue
        if owner in mine:
            continue
        user = user_space(environ)
        if folder in _safe_folders(user):
            return
        raise Refused(
            f"{path} belongs to {_account(owner)}, not to you: its settings would act in your name\n"
            f"if you trust that account, write this into {user / 'quire.toml'}:\n"
            f'[trust]\n{SAFE_FOLDERS} = ["{folder}"]'
        )


def _own_accounts(environ: Mapping[str, str]) -> set[int]:
    """Return the accounts that count as the user's own. Under sudo this includes the calling account, whose folders are
    usually the current ones."""
    account = os.geteuid()
    caller = environ.get("SUDO_UID", "")
    return {account, int(caller)} if account == 0 and caller.isdecimal() and len(caller) < 11 else {account}


class _Everywhere:
    def __contains__(self, folder: object) -> bool:
        return True


def _safe_folders(user: Path) -> frozenset[Path] | _Everywhere:
    """Return the folders that are listed as safe. An unreadable file lists none: loading the settings reports the error
    later."""
    import tomllib

    try:
        table = tomllib.loads(read_bytes(user / "quire.toml").decode()).get("trust", {})
        listed = [str(name) for name in table.get(SAFE_FOLDERS, [])]
    except (OSError, ValueError, RecursionError, AttributeError, TypeError):
        return frozenset()
    if "*" in listed:
        return _Everywhere()
    paths = set()
    for name in listed:
        path = Path(name).expanduser()
        if path.is_absolute():
            paths.add(Path(os.path.realpath(path)))
    return frozenset(paths)


def account_name() -> str:
    """Return the name of the account of this process, under which its user's answers are recorded."""
    try:
        return _login(os.getuid()) if hasattr(os, "getuid") else os.getlogin()
    except (KeyError, OSError, ImportError):
        return f"account {os.getuid()}" if hasattr(os, "getuid") else "an unknown account"


def _login(account: int) -> str:
    import pwd

    return pwd.getpwuid(account).pw_name


def _account(owner: int) -> str:
    try:
        return f"the account {_login(owner)}"
    except (ImportError, KeyError):
        return f"the account with the number {owner}"
