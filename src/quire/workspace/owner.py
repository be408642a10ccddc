"""Refuse a workspace that belongs to another account, as git does (`safe.directory`).

On a machine with several users, any of them can put a `quire.toml` into `/tmp` or a shared folder: its commands would
run for all users who work below it. In the user's own space the user can list folders of other accounts as safe.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from quire.errors import Refused
from quire.source import read_bytes

KEY = "safe_folders"
EVERY = "*"


def require_own(folder: Path, paths: Iterable[str], user_space: Callable[[], Path], environ: Mapping[str, str]) -> None:
    """Raise `Refused` if one of the paths belongs to another account and the folder is not listed as safe."""
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
        user = user_space()
        if folder in _safe_folders(user):
            return
        raise Refused(
            f"{path} belongs to {_account(owner)}, not to you: what is set there would act in your name\n"
            f"if you trust that account, write this into {user / 'quire.toml'}:\n"
            f'[trust]\n{KEY} = ["{folder}"]'
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
        listed = [str(name) for name in table.get(KEY, [])]
    except (OSError, ValueError, RecursionError, AttributeError, TypeError):
        return frozenset()
    if EVERY in listed:
        return _Everywhere()
    found = set()
    for name in listed:
        path = Path(name).expanduser()
        if path.is_absolute():
            found.add(Path(os.path.realpath(path)))
    return frozenset(found)


def account_name() -> str:
    """Return the name of the account of this process, under which its user's answers are recorded."""
    try:
        return _login(os.getuid()) if hasattr(os, "getuid") else os.getlogin()
    except (KeyError, OSError, ImportError):
        return f"account {os.getuid()}" if hasattr(os, "getuid") else "somebody"


def _login(account: int) -> str:
    import pwd

    return pwd.getpwuid(account).pw_name


def _account(owner: int) -> str:
    try:
        return f"the account {_login(owner)}"
    except (ImportError, KeyError):
        return f"the account with the number {owner}"
