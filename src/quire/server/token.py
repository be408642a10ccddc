"""The token of a workspace's server, and the address of the server that runs, both in the user's space.

The token stays the same after a restart, so that open tabs go on.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from quire.errors import CannotStart
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
    path = _place(settings, ".token")
    if renew:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
    with contextlib.suppress(FileExistsError):
        write_new(path, secrets.token_urlsafe(32))
    return read_private(path, "token", "remove it: `quire serve --new-token` makes another").strip()


def remember_address(settings: Settings, url: str) -> None:
    """Note where the server of a workspace is reached, for `quire serve --url`."""
    forget_address(settings)
    with contextlib.suppress(FileExistsError):
        write_new(_place(settings, ".json"), json.dumps({"url": url, "process": os.getpid()}))


def forget_address(settings: Settings) -> None:
    with contextlib.suppress(OSError):
        _place(settings, ".json").unlink()


def running_address(settings: Settings) -> str:
    """Return the address of the running server, with its token. Raises `CannotStart` if none runs."""
    path = _place(settings, ".json")
    nothing = CannotStart("no server of this workspace runs: quire serve starts one")
    if not path.exists():
        raise nothing
    try:
        noted = json.loads(read_private(path, "address of the server"))
        os.kill(int(noted["process"]), 0)
    except (ValueError, KeyError, TypeError, ProcessLookupError):
        raise nothing from None
    except PermissionError:
        pass  # it runs, as another user
    return f"{noted['url']}#token={token_of(settings)}"


def _place(settings: Settings, suffix: str) -> Path:
    folder = hashlib.sha256(os.fsencode(settings.workspace.folder)).hexdigest()[:24]
    return settings.user / "serve" / f"{folder}{suffix}"
