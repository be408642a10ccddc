"""The hosts that a tool may contact: public ones, and those that the user granted by name.

A name is looked up once, all its addresses are checked, and the connection goes to a checked address: a second look-up
could give another answer. The address tables are written out here, because Python's own idea of a global address
differs between releases.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Sequence

from msgspec import Struct

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
# Tunnels to IPv4 (Teredo, 6to4) are included: they may wrap any address.
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
    """Return all addresses of a host. The system also accepts `127.1` and `2130706433` here, as it would when
    connecting."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[4][0]) for address in found))


class Hosts(Struct, frozen=True):
    """The hosts that may be contacted. `granted` are `name` or `name:port`; without `anywhere` only these are
    allowed."""

    granted: frozenset[str]
    anywhere: bool
    resolve: Resolve = look_up
    tool: str = "http__get"
    """The tool that the grants are for."""

    def has(self, host: str, port: int) -> bool:
        """Tell whether the host is granted by its name."""
        name, spelled = _spelled(host)
        return bool({name, spelled, f"{spelled}:{port}"} & self.granted)

    def require(self, host: str, port: int) -> None:
        """Raise `Denied` for a host that is not allowed at any address."""
        if self.anywhere or self.has(host, port):
            return
        spelled = _spelled(host)[1]
        message = (
            f"permission denied: {self.tool} may not speak to {spelled}; grant it with --allow {self.tool}={spelled}"
        )
        if self.tool == "http__get":
            raise Denied(f"{message}, or with --allow http__get for all public hosts")
        raise Denied(message if port in (80, 443) else f"{message}:{port}")

    def addresses(self, host: str, port: int) -> Sequence[str]:
        """Return the addresses to connect to. Raises `Denied` for a host that is not allowed, `ToolFailed` for an
        unknown one."""
        self.require(host, port)
        spelled = _spelled(host)[1]
        try:
            found = self.resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise ToolFailed(f"{spelled} cannot be found: {error}", kind="network") from None
        if not found:
            raise ToolFailed(f"{spelled} has no address", kind="network")
        inside = [address for address in found if not is_public(address)]
        if inside and not self.has(host, port):
            raise Denied(
                f"permission denied: {spelled} is at {inside[0]}, which is not a public address; "
                f"grant it with --allow {self.tool}={spelled}:{port}"
            )
        return found


def _spelled(host: str) -> tuple[str, str]:
    """Return the name of a host, and the name as an address has it."""
    name = host.lower().rstrip(".")
    return name, f"[{name}]" if ":" in name else name
