"""Names and addresses by which a server is reached, from the options of `quire serve`.

Only requests to one of these names get in: a name of another owner may resolve to a loopback address.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from msgspec import Struct

from quire.errors import CannotStart

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
    name = f"{parts.hostname or ''}{f':{port}' if port else ''}"
    if ":" in (parts.hostname or ""):
        name = f"[{parts.hostname}]{f':{port}' if port else ''}"
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
