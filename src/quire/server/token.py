"""The token of a server, and the note in the user's space about the server of a workspace that is running.

Each start makes a new token. A tab may send its token to the next program that takes the port of a server that has
ended, such as one of another account: by then the token opens nothing.
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


def token_of(*, fixed: bool) -> tuple[str, bool]:
    """Return the token of a server that starts, and whether it is that of the environment instead of a new one.

    Raises `CannotStart` for one of the environment unless the server may have a `fixed` token: it is behind a Unix
    socket or a proxy, so no other account can take its place. The variable is removed from the environment, so that no
    tool of a run can see it.
    """
    token = os.environ.pop(VARIABLE, "")
    if not token:
        return secrets.token_urlsafe(32), False
    if len(token) < SHORTEST or not token.isascii() or not token.isprintable() or " " in token:
        raise CannotStart(f"{VARIABLE} must have at least {SHORTEST} characters, ASCII, without blanks")
    if not fixed:
        raise CannotStart(
            f"{VARIABLE} needs --uds or --proxy: another account that takes the port of a stopped server would be sent"
            " a token that still works"
        )
    return token, True


def remember_address(settings: Settings, url: str, token: str) -> None:
    """Note where the server of a workspace is reached, for `quire serve --url`. The last server that started counts.
    `token` is empty for a token of the environment."""
    path = file_of(settings, ".json")
    path.unlink(missing_ok=True)
    note = {"url": url, "process": os.getpid(), "token": token}
    with contextlib.suppress(FileExistsError):  # another server starts at the same moment
        write_new(path, json.dumps(note))


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
    token = noted.get("token")
    if not token:
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


def file_of(settings: Settings, suffix: str) -> Path:
    """Return a file of a workspace's server in the user's space."""
    folder = hashlib.sha256(os.fsencode(settings.workspace.folder)).hexdigest()[:24]
    return settings.user / "serve" / f"{folder}{suffix}"
