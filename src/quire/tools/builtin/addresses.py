"""Which addresses a tool may speak to: those of the public internet, and hosts that the user named.

A name is looked up once, all its addresses are checked, and the connection goes to one that was checked: a
second look-up could give another answer. The tables are written out because what Python calls global differs
between its releases.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from quire.errors import Denied, ToolFailed

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str, int], Sequence[str]]

_NOT_PUBLIC_4 = tuple(
    ipaddress.IPv4Network(network)
    for network in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/3",
    )
)
_PUBLIC_6 = ipaddress.IPv6Network("2000::/3")
# Tunnels to IPv4 (Teredo, 6to4) are in here: what they wrap may be any address.
_NOT_PUBLIC_6 = tuple(
    ipaddress.IPv6Network(network) for network in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
)


def is_public(text: str) -> bool:
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv4Address):
        return not any(address in network for network in _NOT_PUBLIC_4)
    # Everything else, IPv4 in IPv6 included, is not in 2000::/3.
    return address in _PUBLIC_6 and not any(address in network for network in _NOT_PUBLIC_6)


def look_up(host: str, port: int) -> Sequence[str]:
    """All addresses of a host. The system also understands `127.1` and `2130706433` here, as it would later."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[4][0]) for address in found))


@dataclass(frozen=True, slots=True)
class Hosts:
    """`granted` are `name` or `name:port`; without `anywhere` they are the only ones there are."""

    granted: frozenset[str]
    anywhere: bool
    resolve: Resolve = look_up

    def addresses(self, host: str, port: int) -> Sequence[str]:
        """Where to connect to for a host. Raises `Denied` for one that is off limits, `ToolFailed` for none."""
        name = host.lower().rstrip(".")
        spelled = f"[{name}]" if ":" in name else name
        by_name = bool({name, spelled, f"{spelled}:{port}"} & self.granted)
        if not by_name and not self.anywhere:
            raise Denied(
                f"permission denied: http__get may not speak to {spelled}; "
                f"grant it with --allow http__get={spelled}, or with --allow http__get for all public hosts"
            )
        try:
            found = self.resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise ToolFailed(f"{spelled} cannot be found: {error}", kind="network") from None
        if not found:
            raise ToolFailed(f"{spelled} has no address", kind="network")
        inside = [address for address in found if not is_public(address)]
        if inside and not by_name:
            raise Denied(
                f"permission denied: {spelled} is at {inside[0]}, which is not a public address; "
                f"grant it with --allow http__get={spelled}:{port}"
            )
        return found
