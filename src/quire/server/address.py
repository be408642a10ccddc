"""The place of a server: names and addresses from the options of `quire serve`, its token, and the note in the user's
space about the running server of a workspace.

Only requests to one of these names get in: a name of another owner may resolve to a loopback address. Each start makes
a new token. A tab may send its token to the next program that takes the port of a server that has ended, such as one of
another account: by then the token opens nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import html
import json
import os
import re
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from msgspec import Struct

from quire.errors import CannotStart, Refused
from quire.python_process import is_alive
from quire.trust.private_files import read_private, write_new

if TYPE_CHECKING:
    from quire.workspace.settings import Settings

_NAME = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,251}[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
_BASE = re.compile(r"(?:/(?!\.\.?(?:/|$))[A-Za-z0-9._~-]+)+")
_ANYWHERE = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}  # noqa: S104  # and the address of this machine itself
_STANDARD = {"http": ":80", "https": ":443"}


class Names(Struct, frozen=True):
    """Where a server is reached. `hosts` are in lower case and have the port where the address has one."""

    hosts: tuple[str, ...]
    origins: tuple[str, ...]
    base: str
    url: str
    """The address of the page, without the token."""


def names_of(place: str | None, allowed: Sequence[str], base: str, proxy: str, *, localhost: bool = False) -> Names:
    """Return the names of a server that listens at `place`, or on a Unix socket without one.

    `localhost` says that it holds both addresses of that name: if it holds one, another account may listen on the
    other, and browsers would send the token there.

    `allowed` are the values of `--allow-host`: a name without a port is the name of a proxy or of this machine itself.
    `proxy` is the address of a proxy in front of the server, empty without one. Raises `CannotStart`.
    """
    base = checked_base(base)
    address, _, port = place.rpartition(":") if place else ("", "", "")
    own = [f"{_ANYWHERE.get(address, address)}:{port}"] if place else ["localhost"]
    if localhost:
        own.append(f"localhost:{port}")
    for name in map(checked_name, allowed):
        own += [name] if not port or re.search(r":[0-9]+$", name) else [name, f"{name}:{port}"]
    origins = [f"{scheme}://{_without_standard_port(scheme, host)}" for host in own for scheme in ("http", "https")]
    if proxy:
        outside = _proxy(proxy)
        if base and base != outside.base:
            raise CannotStart(f"--base-path {base} and the path of --proxy {proxy} differ")
        return Names((*own, *outside.hosts), (*origins, *outside.origins), outside.base, outside.url)
    first = own[-1 if address in _ANYWHERE else 0]
    return Names(tuple(own), tuple(origins), base, f"http://{first}{base}/")


def checked_base(base: str) -> str:
    """Return the base path without a slash at its end. Raises `CannotStart` for one that is not a path."""
    base = base.rstrip("/")
    if base and not _BASE.fullmatch(base):
        raise CannotStart(f"--base-path {base}: write a path such as /quire")
    return base


def checked_name(name: str) -> str:
    """Return a name of `--allow-host` in lower case. Raises `CannotStart` for anything but a name or NAME:PORT."""
    if not _NAME.fullmatch(name):
        raise CannotStart(f"--allow-host {name}: write a name such as quire.example.org, or NAME:PORT")
    return name.lower()


def _proxy(url: str) -> Names:
    wrong = CannotStart(f"--proxy {url}: write the address of the page, such as https://example.org/quire")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise wrong from None
    host = parts.hostname or ""
    name = (f"[{host}]" if ":" in host else host) + (f":{port}" if port else "")
    if (
        parts.scheme not in _STANDARD
        or parts.query
        or parts.fragment
        or "@" in parts.netloc
        or not _NAME.fullmatch(name)
    ):
        raise wrong
    host, base = _without_standard_port(parts.scheme, name.lower()), parts.path.rstrip("/")
    if base and not _BASE.fullmatch(base):
        raise wrong
    return Names((host,), (f"{parts.scheme}://{host}",), base, f"{parts.scheme}://{host}{base}/")


def _without_standard_port(scheme: str, host: str) -> str:
    """Browsers leave out the standard port of a scheme, in `Host` and in `Origin`."""
    return host.removesuffix(_STANDARD[scheme])


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


def running_url(settings: Settings) -> str:
    """Return the address of the running server, without its token. Raises `CannotStart` if none runs."""
    return _running(settings)[0]


def running_address(settings: Settings) -> str:
    """Return the address of the running server, with its token. Raises `CannotStart` if none runs."""
    url, token = _running(settings)
    if not token:
        raise CannotStart(f"the server at {url} has another token: that of {VARIABLE} when it was started")
    return f"{url}#token={token}"


def _running(settings: Settings) -> tuple[str, object]:
    noted = _noted(settings) if file_of(settings, ".json").exists() else {}
    process, url = noted.get("process"), noted.get("url")
    if not isinstance(process, int) or not isinstance(url, str) or not is_alive(process):
        raise CannotStart("no server of this workspace runs: quire serve starts one")
    return url, noted.get("token")


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


def file_of(settings: Settings, suffix: str) -> Path:
    """Return a file of a workspace's server in the user folder."""
    folder = hashlib.sha256(os.fsencode(settings.workspace.folder)).hexdigest()[:24]
    return settings.user / "serve" / f"{folder}{suffix}"
