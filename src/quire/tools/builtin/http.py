"""One request over HTTP, to the public internet and to hosts that the user granted, with limits on everything.

A name is looked up once, all its addresses are checked, and the connection goes to a checked address: a second look-up
could give another answer. Redirects are checked again before they are followed. Proxies of the environment are not
used, because they would make the check of the address meaningless. The address tables are written out here, because
Python's own idea of a global address differs between releases.

Everything in the response is untrusted text.
"""

from __future__ import annotations

import http.client
import ipaddress
import socket
import ssl
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from urllib.parse import SplitResult, urljoin, urlsplit

from msgspec import Struct, field

from quire import __version__
from quire.errors import Denied, ToolFailed
from quire.trust.secrets import looks_secret
from quire.values import InvalidValue, Value, decode

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

    def addresses(self, host: str, port: int) -> Sequence[str]:
        """Return the addresses to connect to. Raises `Denied` for a host that is not allowed, `ToolFailed` for an
        unknown one."""
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


MAX_BODY = 1_000_000
MAX_REDIRECTS = 5
MAX_URL = 8000
SECONDS = 30.0

SHOWN = ("content-type", "content-language", "etag", "last-modified", "date", "retry-after", "link")
_REFUSED = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-length",
        "expect",
        "host",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_HARMLESS = frozenset({"accept", "accept-language", "user-agent"})
_REDIRECTS = (301, 302, 303, 307, 308)

Dial = Callable[[str, int, float], socket.socket]


def dial(address: str, port: int, timeout: float) -> socket.socket:
    return socket.create_connection((address, port), timeout)


class HttpFetch(Struct):
    """One call of the tool. `stop` may be called from another thread and ends it at once."""

    hosts: Hosts
    dial: Dial = dial
    _socket: socket.socket | None = None
    _stopped: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, arguments: Mapping[str, Value]) -> Value:
        """Perform the request and its redirects. Raises `ToolFailed` or `Denied`."""
        url, headers = str(arguments["url"]), _headers(arguments.get("headers"))
        for _ in range(MAX_REDIRECTS + 1):
            parts = _parts(url)
            with self._answer(parts, headers) as answer:
                target = answer.getheader("Location")
                if answer.status not in _REDIRECTS or not target:
                    return _value(url, answer)
            after = urljoin(url, target)
            _check_redirect(parts, _parts(after))
            if _origin(parts) != _origin(_parts(after)):
                headers = {name: text for name, text in headers.items() if name.lower() in _HARMLESS}
            url = after
        raise ToolFailed(f"more than {MAX_REDIRECTS} redirects, the last one to {url[:200]}", kind="network")

    def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, str]:
        """Send a body, and return the status and the header `Retry-After`. Redirects are not followed, and the content
        of the answer is not read. Raises `ToolFailed` or `Denied`."""
        sent = {"User-Agent": f"quire/{__version__}", "Connection": "close", **headers}
        with self._answer(_parts(url), sent, body) as answer:
            return answer.status, answer.getheader("Retry-After") or ""

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            if self._socket is not None:
                with suppress(OSError):
                    self._socket.shutdown(socket.SHUT_RDWR)

    @contextmanager
    def _answer(
        self, parts: SplitResult, headers: Mapping[str, str], body: bytes | None = None
    ) -> Iterator[http.client.HTTPResponse]:
        host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
        addresses = self.hosts.addresses(host, port)
        connection = http.client.HTTPConnection(host, port, timeout=SECONDS)
        # The Host header leaves this port out.
        connection.default_port = 443 if parts.scheme == "https" else 80
        try:
            connection.sock = self._connect(addresses, host, port, parts.scheme == "https")
            # It must not open a connection of its own, to an unchecked address.
            connection.auto_open = 0
            target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            connection.request("GET" if body is None else "POST", target, body, dict(headers))
            yield connection.getresponse()
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = "stopped" if self._stopped else f"{type(error).__name__}: {error}"
            raise ToolFailed(f"{parts.scheme}://{parts.netloc}: {reason}", kind="network") from None
        finally:
            connection.close()

    def _connect(self, addresses: Sequence[str], host: str, port: int, secure: bool) -> socket.socket:
        failure = OSError("no address answers")
        for address in addresses:
            try:
                plain = self.dial(address, port, SECONDS)
            except OSError as error:
                failure = error
                continue
            try:
                found = ssl.create_default_context().wrap_socket(plain, server_hostname=host) if secure else plain
            except BaseException:
                plain.close()
                raise
            with self._lock:
                self._socket = found
                if self._stopped:
                    found.close()
                    raise OSError("stopped")
            return found
        raise failure


def _parts(url: str) -> SplitResult:
    """Split a URL. Raises `ToolFailed` if it is not a plain http or https address."""
    if len(url) > MAX_URL or any(letter <= " " or letter == "\x7f" for letter in url):
        raise ToolFailed("the url has spaces or control characters, or is too long", kind="url")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ToolFailed(f"the url cannot be read: {error}", kind="url") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise ToolFailed(f"{url[:200]} is not an http or https address", kind="url")
    if parts.username is not None or parts.password is not None:
        raise ToolFailed("a url must not hold a user or a password", kind="url")
    try:
        host = parts.hostname.encode("ascii" if ":" in parts.hostname else "idna").decode()
        ascii_path = _quoted(parts.path), _quoted(parts.query)
    except UnicodeError:
        raise ToolFailed(f"{parts.hostname[:200]} is not a name of a host", kind="url") from None
    spelled = f"[{host}]" if ":" in host else host
    return SplitResult(parts.scheme, spelled + (f":{port}" if port else ""), *ascii_path, "")


def _quoted(text: str) -> str:
    return "".join(
        letter if letter.isascii() else "".join(f"%{byte:02X}" for byte in letter.encode()) for letter in text
    )


def _origin(parts: SplitResult) -> tuple[str, str | None, int | None]:
    return parts.scheme, parts.hostname, parts.port


def _check_redirect(before: SplitResult, after: SplitResult) -> None:
    if before.scheme == "https" and after.scheme == "http":
        raise ToolFailed(f"{before.netloc} redirects from https to http; that is not followed", kind="network")


def header_problem(name: str) -> str:
    """Return the reason why a document cannot set a header; empty if it can. Secrets are refused, because they would
    end up in documents and journals."""
    if looks_secret(name):
        way = "use an MCP server with headers in .mcp.json, or a Python function"
        return f"the header {name[:100]} cannot be set, because http__get sends no secrets: {way}"
    return f"the header {name[:100]} cannot be set" if name.lower() in _REFUSED else ""


def _headers(given: Value) -> dict[str, str]:
    headers = {"User-Agent": f"quire/{__version__}", "Accept": "*/*"}
    for name, text in given.items() if isinstance(given, Mapping) else ():
        if problem := header_problem(name):
            raise ToolFailed(problem, kind="arguments")
        for usual in [one for one in headers if one.lower() == name.lower()]:
            del headers[usual]
        headers[name] = str(text)
    return {**headers, "Accept-Encoding": "gzip", "Connection": "close"}


def _value(url: str, answer: http.client.HTTPResponse) -> Value:
    kind = answer.headers.get_content_type()
    text = _text(_body(answer), answer.headers.get_content_charset() or "utf-8", kind)
    shown: dict[str, Value] = {name: answer.headers[name] for name in SHOWN if name in answer.headers}
    value: dict[str, Value] = {"status": answer.status, "url": url, "headers": shown}
    if kind == "application/json" or kind.endswith("+json"):
        with suppress(InvalidValue):
            return {**value, "json": decode(text)}
    return {**value, "text": text}


def _body(answer: http.client.HTTPResponse) -> bytes:
    """Return the body, decompressed piece by piece, so that a small one cannot become too large in memory."""
    packing = (answer.getheader("Content-Encoding") or "identity").strip().lower()
    if packing not in ("identity", "gzip", "x-gzip", "deflate", ""):
        raise ToolFailed(f"the answer is packed as {packing[:40]}, which is not known", kind="network")
    unpack = zlib.decompressobj(zlib.MAX_WBITS | 32) if packing not in ("identity", "") else None
    body = bytearray()
    while piece := answer.read(16_384):
        try:
            body += unpack.decompress(piece, MAX_BODY + 1 - len(body)) if unpack else piece
        except zlib.error as error:
            raise ToolFailed(f"the answer cannot be unpacked: {error}", kind="network") from None
        if len(body) > MAX_BODY:
            raise ToolFailed(f"the answer has more than {MAX_BODY:,} bytes", kind="too_large")
    return bytes(body)


def _text(body: bytes, charset: str, kind: str) -> str:
    if b"\0" in body and not charset.lower().startswith(("utf-16", "utf-32", "utf16", "utf32")):
        raise ToolFailed(f"the answer is not text but {kind}", kind="binary")
    try:
        return body.decode(charset, "replace")
    except LookupError:
        return body.decode("utf-8", "replace")
