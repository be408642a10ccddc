"""One request over HTTP, to the public internet and to hosts that the user granted, with limits on everything.

Redirects are checked again before they are followed, and the secret headers of the user stay with the origin that they
are for: a redirect to another host, scheme or port goes without them. Proxies of the environment are not used, because
they would make the check of the address meaningless. Everything in the response is untrusted text.

A name is looked up once, all its addresses are checked, and the connection goes to a checked address: a second look-up
could give another answer. The address tables are written out here, because Python's own idea of a global address
differs between releases.
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
from quire.engine.premises import HTTP_SECONDS
from quire.errors import Denied, ToolFailed
from quire.tools.builtin.paths import printable_path
from quire.trust.secrets import looks_secret
from quire.values import InvalidValue, Value, decode, encode
from quire.workspace.host_headers import HostHeaders, name_problem, value_problem


class OriginHeaders(Struct, frozen=True):
    """The user's headers by origin, with the environment that their variables come from.

    A document cannot set a secret header, because it would end up in documents and journals. The user names it in the
    `quire.toml` of the user folder, under `[http."HOST"]`; it is read here, below the gate, and not above.
    """

    tables: Sequence[HostHeaders] = ()
    environ: Mapping[str, str] = field(default_factory=dict)

    def of(self, scheme: str, host: str, port: int) -> dict[str, str]:
        """Return the headers for an origin. Raises `ToolFailed` if a variable is not set or cannot be sent."""
        headers: dict[str, str] = {}
        for table in self.tables:
            if not table.is_for(scheme, host, port):
                continue
            if missing := table.missing(self.environ):
                listed = ", ".join(missing)
                raise ToolFailed(
                    f"the headers for {table.name} need {listed}, which is not set; nothing was sent", kind="arguments"
                )
            for name, text in table.filled(self.environ).items():
                if problem := value_problem(text):
                    # Not the value: it is a secret.
                    raise ToolFailed(
                        f"the header {name} for {table.name} {problem}; nothing was sent", kind="arguments"
                    )
                headers[name] = text
        return headers


def header_problem(name: str, value: object = "") -> str:
    """Return the reason why a document cannot set a header; empty if it can."""
    if problem := name_problem(name):
        return problem
    if looks_secret(name):
        way = 'put it under [http."HOST"] headers in the quire.toml of your user folder'
        return f"the header {name} cannot be set by a document, which would hold a secret: {way}"
    problem = value_problem(str(value))
    return f"the header {name} cannot be set: it {problem}" if problem else ""


def sent_headers(usual: Mapping[str, str], others: Value, *, checked: bool = False) -> dict[str, str]:
    """Return headers with others in their place. Names are compared without case. Raises `ToolFailed`.

    `checked` headers are those of the user.
    """
    headers = dict(usual)
    for name, value in others.items() if isinstance(others, Mapping) else ():
        text = str(value)
        if not checked and (problem := header_problem(name, text)):
            raise ToolFailed(problem, kind="arguments")
        for other in [header for header in headers if header.lower() == name.lower()]:
            del headers[other]
        headers[name] = text
    return headers


MAX_BODY = 1_000_000
MAX_REDIRECTS = 5
MAX_URL = 8000

SHOWN = ("content-type", "content-language", "etag", "last-modified", "date", "retry-after", "link", "location")
_HARMLESS = frozenset({"accept", "accept-encoding", "accept-language", "connection", "content-type", "user-agent"})
_REDIRECTS = (301, 302, 303, 307, 308)

_OF_BODIES = frozenset({"content-type", "idempotency-key"})
_AGENT = f"quire/{__version__}"
_PLAIN = {"Accept-Encoding": "gzip", "Connection": "close"}

Dial = Callable[[str, int, float], socket.socket]


def dial(address: str, port: int, timeout: float) -> socket.socket:
    return socket.create_connection((address, port), timeout)


class HttpFetch(Struct):
    """One call of the tool. `stop` may be called from another thread and ends it at once."""

    hosts: Hosts
    dial: Dial = dial
    own: OriginHeaders = OriginHeaders()
    """The headers that the user adds to requests."""
    sent: bool = False
    """True once a request may have reached a service."""
    _socket: socket.socket | None = None
    _stopped: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, arguments: Mapping[str, Value]) -> Value:
        """Perform the request and its redirects. Raises `ToolFailed` or `Denied`."""
        headers = {"User-Agent": _AGENT, "Accept": "*/*", **_PLAIN}
        return self._follow("GET", str(arguments["url"]), sent_headers(headers, arguments.get("headers")))

    def send(self, arguments: Mapping[str, Value], effect_id: str = "") -> Value:
        """Perform a request that changes something, and its redirects. Raises `ToolFailed` or `Denied`.

        `effect_id` lets a service recognize a request that is made again after a crash.
        """
        method, headers = str(arguments["method"]), {"User-Agent": _AGENT, "Accept": "*/*", **_PLAIN}
        body, kind = payload_of(arguments)
        if body is not None:
            headers["Content-Type"] = kind
        if effect_id and method in ("POST", "PATCH"):
            headers["Idempotency-Key"] = effect_id
        return self._follow(method, str(arguments["url"]), sent_headers(headers, arguments.get("headers")), body)

    def _follow(self, method: str, url: str, headers: dict[str, str], body: bytes | None = None) -> Value:
        own = self._own(parts_of(url))
        for _ in range(MAX_REDIRECTS + 1):
            parts = parts_of(url)
            with self._answer(parts, sent_headers(headers, own, checked=True), body, method) as answer:
                target = answer.getheader("Location")
                if answer.status not in _REDIRECTS or not target:
                    return _value(url, answer)
            after = urljoin(url, target)
            if parts.scheme == "https" and parts_of(after).scheme == "http":
                raise ToolFailed(f"{parts.netloc} redirects from https to http; that is not followed", kind="network")
            if answer.status == 303 or (answer.status in (301, 302) and method == "POST"):
                method, body = "GET", None
                headers = {name: text for name, text in headers.items() if name.lower() not in _OF_BODIES}
            if origin_of(parts) != origin_of(parts_of(after)):
                # Not even where the user has headers for the other origin: a server chooses where it redirects to.
                own, headers = {}, {name: text for name, text in headers.items() if name.lower() in _HARMLESS}
            url = after
        raise ToolFailed(f"more than {MAX_REDIRECTS} redirects, the last one to {url[:200]}", kind="network")

    def prepare(self, arguments: Mapping[str, Value]) -> None:
        """Check a request as far as that is possible without looking a host up. Raises `ToolFailed` or `Denied`."""
        if "url" in arguments:
            self._own(parts_of(str(arguments["url"])))
        payload_of(arguments)

    def _own(self, parts: SplitResult) -> Mapping[str, str]:
        """Return the user's headers for a request. Only a grant that names the host makes them available: a document
        that may read all public hosts does not act in the name of the user."""
        scheme, host, port = origin_of(parts)
        self.hosts.require(host, port)
        return self.own.of(scheme, host, port) if self.hosts.has(host, port) else {}

    def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, str]:
        """Send a body, and return the status and the header `Retry-After`. Redirects are not followed, and the content
        of the answer is not read. Raises `ToolFailed` or `Denied`."""
        sent = {"User-Agent": _AGENT, "Connection": "close", **headers}
        with self._answer(parts_of(url), sent, body, "POST") as answer:
            return answer.status, answer.getheader("Retry-After") or ""

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            if self._socket is not None:
                with suppress(OSError):
                    self._socket.shutdown(socket.SHUT_RDWR)

    @contextmanager
    def _answer(
        self, parts: SplitResult, headers: Mapping[str, str], body: bytes | None, method: str
    ) -> Iterator[http.client.HTTPResponse]:
        _, host, port = origin_of(parts)
        addresses = self.hosts.addresses(host, port)
        connection = http.client.HTTPConnection(host, port, timeout=HTTP_SECONDS)
        # The Host header leaves this port out.
        connection.default_port = 443 if parts.scheme == "https" else 80
        try:
            connection.sock = self._connect(addresses, host, port, parts.scheme == "https")
            # It must not open a connection of its own, to an unchecked address.
            connection.auto_open = 0
            target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            self.sent = True
            connection.request(method, target, body, dict(headers))
            yield connection.getresponse()
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = "stopped" if self._stopped else f"{type(error).__name__}: {printable_path(str(error))}"
            raise ToolFailed(f"{parts.scheme}://{parts.netloc}: {reason}", kind="network") from None
        finally:
            connection.close()

    def _connect(self, addresses: Sequence[str], host: str, port: int, secure: bool) -> socket.socket:
        failure = OSError("no address answers")
        for address in addresses:
            try:
                plain = self.dial(address, port, HTTP_SECONDS)
            except OSError as error:
                failure = error
                continue
            try:
                connected = ssl.create_default_context().wrap_socket(plain, server_hostname=host) if secure else plain
            except BaseException:
                plain.close()
                raise
            with self._lock:
                self._socket = connected
                if self._stopped:
                    connected.close()
                    raise OSError("stopped")
            return connected
        raise failure


def parts_of(url: str) -> SplitResult:
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


def origin_of(parts: SplitResult) -> tuple[str, str, int]:
    return parts.scheme, parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)


def payload_of(arguments: Mapping[str, Value]) -> tuple[bytes | None, str]:
    """Return the body of a request and its type; None if there is none. Raises `ToolFailed`."""
    if "body" in arguments and "json" in arguments:
        raise ToolFailed("body and json are both given: a request has one of them", kind="arguments")
    if "json" in arguments:
        body, kind = encode(arguments["json"]).encode(), "application/json"
    elif "body" in arguments:
        body, kind = str(arguments["body"]).encode(), "text/plain; charset=utf-8"
    else:
        return None, ""
    if len(body) > MAX_BODY:
        raise ToolFailed(f"the body has {len(body):,} bytes; {MAX_BODY:,} are allowed", kind="too_large")
    return body, kind


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
    if answer.length:
        # Reading in pieces, `http.client` takes a closed connection for the end.
        raise ToolFailed(f"the answer ended {answer.length:,} bytes too early", kind="network")
    return bytes(body)


def _text(body: bytes, charset: str, kind: str) -> str:
    if b"\0" in body and not charset.lower().startswith(("utf-16", "utf-32", "utf16", "utf32")):
        raise ToolFailed(f"the answer is not text but {kind}", kind="binary")
    try:
        return body.decode(charset, "replace")
    except LookupError:
        return body.decode("utf-8", "replace")


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
    rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[4][0]) for address in rows))


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
            addresses = self.resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise ToolFailed(f"{spelled} cannot be found: {error}", kind="network") from None
        if not addresses:
            raise ToolFailed(f"{spelled} has no address", kind="network")
        inside = [address for address in addresses if not is_public(address)]
        if inside and not self.has(host, port):
            raise Denied(
                f"permission denied: {spelled} is at {inside[0]}, which is not a public address; "
                f"grant it with --allow {self.tool}={spelled}:{port}"
            )
        return addresses


def _spelled(host: str) -> tuple[str, str]:
    """Return the name of a host, and the name as an address has it."""
    name = host.lower().rstrip(".")
    return name, f"[{name}]" if ":" in name else name
