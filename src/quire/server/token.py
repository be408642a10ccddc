"""The token of a workspace's server, and the address of the server that is running, both in the user's space.

The token stays the same after a restart, so that open tabs go on.
"""

from __future__ import annotations

import contextlib
import hashlib
import html
import json
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from quire.errors import CannotStart, Refused
from quire.trust.private_files import read_private, write_new

if TYPE_CHECKING:
    from quire.workspace.settings import Settings

VARIABLE = "QUIRE_SERVE_TOKEN"
SHORTEST = 16


def token_of(settings: Settings, *, renew: bool = False) -> str:
    """Return the token: of the environment, else of the user's space, else a new one that is kept there.

    The variable is removed from the environment, so that no tool of a run can see it.
    """
    given = os.environ.pop(VARIABLE, "")
    if given:
        if len(given) < SHORTEST or not given.isascii() or not given.isprintable() or " " in given:
            raise CannotStart(f"{VARIABLE} must have at least {SHORTEST} characters, ASCII, without blanks")
        return given
    path = file_of(settings, ".token")
    if renew:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
    with contextlib.suppress(FileExistsError):
        write_new(path, secrets.token_urlsafe(32))
    return read_private(path, "token", "remove it: `quire serve --new-token` makes another").strip()


def remember_address(settings: Settings, url: str, token: str) -> None:
    """Note where the server of a workspace is reached, for `quire serve --url`. The last server that started counts."""
    path = file_of(settings, ".json")
    path.unlink(missing_ok=True)
    noted = {"url": url, "process": os.getpid(), "token": _hash(token)}
    with contextlib.suppress(FileExistsError):  # another server starts at the same moment
        write_new(path, json.dumps(noted))


def forget_address(settings: Settings) -> None:
    """Remove the note of this process, but not that of a server that started later."""
    with contextlib.suppress(OSError, CannotStart, Refused):
        if _noted(settings).get("process") == os.getpid():
            file_of(settings, ".json").unlink()
            file_of(settings, ".html").unlink(missing_ok=True)


def running_address(settings: Settings) -> str:
    """Return the address of the running server, with its token. Raises `CannotStart` if none runs."""
    nothing = CannotStart("no server of this workspace runs: quire serve starts one")
    if not file_of(settings, ".json").exists():
        raise nothing
    noted = _noted(settings)
    process, url = noted.get("process"), noted.get("url")
    if not isinstance(process, int) or not isinstance(url, str) or not _is_alive(process):
        raise nothing
    token = token_of(settings)
    if noted.get("token") != _hash(token):
        raise CannotStart(f"the server at {url} has another token: that of {VARIABLE} when it was started")
    return f"{url}#token={token}"


def opener_of(settings: Settings, address: str) -> Path:
    """Write a file that leads a browser to the page, and return it.

    The arguments of a browser can be read by all users of a machine, so the token must not be among them.
    """
    path = file_of(settings, ".html")
    path.unlink(missing_ok=True)
    place = html.escape(address)
    write_new(
        path,
        f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={place}">'
        f'<title>Quire</title><p><a href="{place}">Open Quire</a></p>\n',
    )
    return path


def _noted(settings: Settings) -> dict[str, object]:
    try:
        noted = json.loads(read_private(file_of(settings, ".json"), "address of the server", "remove it"))
    except ValueError:
        return {}
    return noted if isinstance(noted, dict) else {}


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # as another user
    return True


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def file_of(settings: Settings, suffix: str) -> Path:
    """Return a file of a workspace's server in the user's space."""
    folder = hashlib.sha256(os.fsencode(settings.workspace.folder)).hexdigest()[:24]
    return settings.user / "serve" / f"{folder}{suffix}"
