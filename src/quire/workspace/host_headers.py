"""The headers that the user adds to requests: the tables `[http."HOST"]` of the user's own settings.

A name is `HOST` or `HOST:PORT` and means https, for this machine itself http too. `http://HOST` says that the headers
may go unencrypted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from msgspec import Struct

from quire.loopback import is_loopback_name
from quire.patterns import late_pattern
from quire.workspace.mcp_config import filled_in, variables_in, without_references
from quire.workspace.tables import Table

MOST_HEADERS = 50
LONGEST_HEADER = 8000

HEADER_NAME = late_pattern(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
_OF_HTTP = frozenset(
    {
        *("accept-encoding", "connection", "content-length", "expect", "host", "keep-alive", "proxy-connection"),
        *("te", "trailer", "transfer-encoding", "upgrade"),
    }
)
_PORTS = {"https": 443, "http": 80}


class HostHeaders(Struct, frozen=True):
    """A table `[http."HOST"]`. Its headers may refer to variables of the environment; the values are never held."""

    name: str
    """The host as the user wrote it."""
    schemes: tuple[str, ...]
    host: str
    port: int | None
    """None for the usual port of the scheme."""
    headers: Mapping[str, str]

    def is_for(self, scheme: str, host: str, port: int) -> bool:
        return scheme in self.schemes and host == self.host and port == (self.port or _PORTS[scheme])

    def variables(self) -> dict[str, str | None]:
        """Return the variables that are referred to, with their defaults; None if there is no default."""
        return variables_in(self.headers.values())

    def missing(self, environ: Mapping[str, str]) -> list[str]:
        """Return the variables without a default that are not set, or empty."""
        return [name for name, default in self.variables().items() if default is None and not environ.get(name)]

    def filled(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return the headers with the values of the environment."""
        return {name: filled_in(text, environ) for name, text in self.headers.items()}


def name_problem(name: str) -> str:
    """Return the reason why a header of this name cannot be sent; empty if it can."""
    if not HEADER_NAME.fullmatch(name):
        return f"{name[:100]!r} is not the name of a header"
    return f"the header {name} cannot be set: HTTP itself needs it" if name.lower() in _OF_HTTP else ""


def value_problem(text: str) -> str:
    """Return the reason why a header cannot have this value; empty if it can. The value is not in the reason."""
    if "\r" in text or "\n" in text:
        return "has a line break"
    if any((letter < " " and letter != "\t") or letter == "\x7f" for letter in text):
        return "has control characters"
    if any(letter > "\xff" for letter in text):
        return "has characters that a header cannot hold"
    return f"is longer than {LONGEST_HEADER:,} characters" if len(text) > LONGEST_HEADER else ""


def read_host_headers(name: str, table: Table) -> HostHeaders | None:
    """Read a table `[http."HOST"]`; add errors to its problems."""

    def wrong(problem: str) -> None:
        table.problems.append(f'{table.file}: [http."{name}"] {problem}')

    if "." not in name and any(isinstance(value, Mapping) for key, value in table.data.items() if key != "headers"):
        wrong('is a part of a name: a host is quoted as in [http."api.example.com"]')
        return None
    headers = _texts(table.data.get("headers", {}), wrong)
    Table(table.file, table.name, table.data, table.problems, ["headers"]).end()
    origin = _origin(name)
    if origin is None:
        wrong("is named after a HOST, a HOST:PORT or an address such as http://HOST:PORT, without a path")
    if len(headers) > MOST_HEADERS:
        wrong(f"has {len(headers)} headers; {MOST_HEADERS} are allowed")
    for header, text in headers.items():
        if problem := name_problem(header):
            wrong(f"headers: {problem}")
        elif problem := value_problem(text):
            wrong(f"headers: {header} {problem}")
        elif "${" in without_references(text):
            wrong(f"headers: {header} has a ${{ that does not begin a reference such as ${{NAME}}")
    return HostHeaders(name, *origin, headers) if origin else None


def _texts(headers: object, wrong: Callable[[str], None]) -> dict[str, str]:
    """Return the headers that are texts. The problems do not quote a value, which may be a secret."""
    if not isinstance(headers, Mapping):
        wrong('headers must be a table such as {Authorization = "Bearer ${NAME}"}')
        return {}
    for header, text in headers.items():
        if not isinstance(text, str):
            wrong(f"headers: {header} must be text")
    return {header: text for header, text in headers.items() if isinstance(text, str)}


def _origin(name: str) -> tuple[tuple[str, ...], str, int | None] | None:
    scheme, separator, _ = name.partition("://")
    try:
        parts = urlsplit(name if separator else f"//{name}")
        host, port = parts.hostname or "", parts.port
        host = host.encode("ascii" if ":" in host else "idna").decode()
    except ValueError:
        return None
    rest = (parts.path.strip("/"), parts.query, parts.fragment, parts.username, parts.password)
    if not host or any(rest) or port == 0 or set(name) & set(" *\\"):
        return None
    if separator:
        return ((scheme,), host, port) if scheme in _PORTS else None
    return ("https", "http") if is_loopback_name(host) else ("https",), host, port
