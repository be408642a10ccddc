"""Sockets and names of this machine itself, for servers that only its own programs may reach."""

from __future__ import annotations

import ipaddress
import socket

from quire.errors import CannotStart


def listening(host: str, port: int, *, anywhere: bool = False, option: str = "--host") -> socket.socket:
    """Open a socket on a loopback address; port 0 takes a free one. Raises `CannotStart`.

    With `anywhere` the address may be any address of this machine.
    """
    address = "127.0.0.1" if host == "localhost" else host
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        raise CannotStart(f"{option} {host}: an address such as 127.0.0.1 or ::1 is needed") from None
    if not parsed.is_loopback and not anywhere:
        raise CannotStart(f"{option} {host}: only this machine itself is served (127.0.0.1 or ::1)")
    family = socket.AF_INET6 if parsed.version == 6 else socket.AF_INET
    # asyncio switches off Nagle's algorithm only for sockets that name their protocol; with it each answer that is
    # written in two parts waits 40 ms for the client's acknowledgement.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen()
    except OSError as error:
        listener.close()
        raise CannotStart(f"cannot listen on {host}:{port}: {error.strerror}") from None
    return listener


def is_loopback_name(host: str) -> bool:
    """Tell whether a host is this machine itself by its name alone."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def place_of(listener: socket.socket) -> str:
    """Return the address as it is written in a URL."""
    address, port = listener.getsockname()[:2]
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
