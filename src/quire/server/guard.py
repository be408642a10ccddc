"""The guard in front of the server: which requests get in, and the headers that every response carries.

Any page in a browser can send requests to a loopback address. Therefore the `Host` must be a name of this server
(against names that are made to resolve to it), an `Origin` must be our own, the API needs the token as a bearer token,
and a request that changes something must be JSON. No cookie is set or read, so a browser adds no authority by itself.

The token of a share opens what the table of operations marks as shared, of exactly its run. Everything else is the same
404 for it, as is a token that is wrong, has expired or was revoked. A stream ends with its token.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders
from starlette.routing import compile_path

from quire.operations import JSON, OPERATIONS
from quire.operations.problems import Problem
from quire.runs.shares import PREFIX
from quire.server.access import Access, Users
from quire.server.assets import COMMON_HEADERS
from quire.server.endpoints import MAX_BODY, problem_response

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

API = "/api/"
OPEN_TO_OTHER_SITES = ("/static/", "/frames/")
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
WRONG_TOKENS = 20
"""Wrong tokens after which an answer is delayed."""
DELAY_SECONDS = 1.0
MOST_DELAYED = 50
"""Delayed answers at a time: each holds a connection."""

HEADERS: Mapping[str, str] = {
    **COMMON_HEADERS,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
NOTHING_RUNS = "default-src 'none'; frame-ancestors 'none'; sandbox"
"""The policy of responses that are not pages: opened in a tab, they run nothing and load nothing."""


CHECK_SECONDS = 0.5
"""The time after which a stream notices that its token was revoked."""
_SHARED = [compile_path(f"/api/v1{op.http.partition(' ')[2]}")[0] for op in OPERATIONS if op.shared]
"""The paths that a share opens. Each has a part `run`."""


class Guard:
    """Passes on the requests that may get in. `hosts` are the names of the server, with the port where it has one."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        token: str,
        users: Users,
        hosts: Collection[str],
        origins: Collection[str],
        base: str = "",
        proxied: bool = False,
    ) -> None:
        """With `proxied` the host that a proxy reports in `X-Forwarded-Host` counts, if it is a name of the server."""
        self._app = app
        self._base = base
        self._token = f"Bearer {token}".encode()
        self._users = users
        self._hosts = frozenset(hosts)
        self._origins = frozenset(origins)
        self._proxied = proxied
        self._wrong = 0
        self._delayed = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        # Proxies pass on the path with or without the part that stands for this server.
        path = scope["path"]
        if self._base and (path == self._base or path.startswith(f"{self._base}/")):
            scope = {**scope, "path": path[len(self._base) :] or "/"}
        if scope["path"] == "/metrics":  # where Prometheus looks by default
            scope = {**scope, "path": f"{API}v1/metrics"}
        send = _with_headers(send)
        try:
            scope = {**scope, "headers": self._headers_of_proxy(scope["headers"])} if self._proxied else scope
            scope = {**scope, "user": await self._check(scope)}
            receive = _limited(receive, Headers(scope=scope))
        except Problem as problem:
            await problem_response(problem, self._base, path)(scope, receive, send)
            return
        is_stream = scope["path"].endswith("/events") and scope["user"] != Access()
        await (self._while_open if is_stream else self._app)(scope, receive, send)

    def _headers_of_proxy(self, headers: Sequence[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        """Return the headers with the host that the client asked for. The host of the proxy's own request must be ours
        as well: it says that the proxy meant this server."""
        forwarded = [value for name, value in headers if name == b"x-forwarded-host"]
        own = [value.decode("latin-1").lower() for name, value in headers if name == b"host"]
        if len(forwarded) != 1 or any(host not in self._hosts for host in own):
            return list(headers)
        return [(name, value) for name, value in headers if name != b"host"] + [(b"host", forwarded[0])]

    async def _check(self, scope: Scope) -> Access:
        headers = Headers(scope=scope)
        path = scope["path"]
        host = headers.getlist("host")
        if len(host) != 1 or host[0].lower() not in self._hosts:
            raise Problem.of("wrong-host", f"this server is not {', '.join(host) or 'without a name'}")
        origin = headers.get("origin")
        open_to_others = scope["method"] in SAFE and (path == "/" or path.startswith(OPEN_TO_OTHER_SITES))
        if origin is not None and origin not in self._origins and not open_to_others:
            raise Problem.of("foreign-origin", f"the request comes from {origin}")
        if headers.get("sec-fetch-site") == "cross-site" and not open_to_others:
            raise Problem.of("foreign-origin", "the request comes from another site")
        access = await self._check_token(scope, headers) if path.startswith(API) else Access()
        if scope["method"] not in SAFE and headers.get("content-type", "").split(";")[0].strip().lower() != JSON:
            raise Problem.of("wrong-media-type", "a request that changes something is sent as application/json")
        if "transfer-encoding" in headers and "content-length" in headers:
            raise Problem.of(
                "two-lengths", "the request has Content-Length and Transfer-Encoding", headers={"Connection": "close"}
            )
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > MAX_BODY:
            raise Problem.of("too-large", f"the body has {length} bytes")
        return access

    def _is_shared(self, scope: Scope, token: str) -> bool:
        """Tell whether the token of a share opens the address of a request."""
        runs = [match["run"] for path in _SHARED if (match := path.fullmatch(scope["path"]))]
        return self._users.shares.opens(token, runs[0] if runs else "") and scope["method"] in ("GET", "HEAD")

    async def _while_open(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send an event stream, and end it when the token that opened it expires or is revoked."""

        async def sending(message: Message) -> None:
            if not message.get("more_body") or self._access(scope):
                await send(message)

        answering = asyncio.ensure_future(self._app(scope, receive, sending))
        try:
            while not answering.done() and self._access(scope):
                await asyncio.wait([answering], timeout=CHECK_SECONDS)
        finally:
            is_cut = answering.cancel()
        await asyncio.gather(answering, return_exceptions=is_cut)
        if is_cut:
            await send({"type": "http.response.body", "body": b""})

    def _access(self, scope: Scope) -> Access | None:
        """Return what the token of a request opens now. Raises `Problem` for a person who may not come."""
        headers = Headers(scope=scope)
        tokens = headers.getlist("authorization")
        if len(tokens) == 1 and hmac.compare_digest(tokens[0].encode("latin-1"), self._token):
            # The proxy adds the token to all requests that it passes on, so it has to name the person as well.
            return self._users.person(headers.getlist(self._users.header)) if self._users.header else Access()
        token = tokens[0].removeprefix("Bearer ") if len(tokens) == 1 and tokens[0].startswith("Bearer ") else ""
        if token.startswith(PREFIX):
            return Access("look") if self._is_shared(scope, token) else None
        return self._users.bearer(token)

    async def _check_token(self, scope: Scope, headers: Headers) -> Access:
        if access := self._access(scope):
            return access
        if headers.get("authorization", "").startswith(f"Bearer {PREFIX}"):
            raise Problem.of("no-such-share", "the link is wrong, has expired or was revoked")
        self._wrong += 1
        if self._wrong > WRONG_TOKENS and self._delayed < MOST_DELAYED:
            self._delayed += 1
            try:
                await asyncio.sleep(DELAY_SECONDS)
            finally:
                self._delayed -= 1
        raise Problem.of(
            "wrong-token",
            "this server needs its token as a bearer token",
            help="`quire serve --url` prints the address with the token",
            exit_code=6,
            headers={"WWW-Authenticate": "Bearer"},
        )


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            headers.setdefault("Content-Security-Policy", NOTHING_RUNS)
            headers.setdefault("Cache-Control", "no-store")
        await send(message)

    return sending


def _limited(receive: Receive, headers: Headers) -> Receive:
    """Stop reading a body without a declared length once it is too large."""
    if "content-length" in headers:
        return receive
    got = 0

    async def receiving() -> Message:
        nonlocal got
        message = await receive()
        got += len(message.get("body", b""))
        if got > MAX_BODY:
            raise Problem.of("too-large", f"the body has more than {MAX_BODY} bytes")
        return message

    return receiving
