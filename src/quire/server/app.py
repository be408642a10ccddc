"""The ASGI application: the API from the route table, the page, and the guard around both. Answers of the API are
compressed for clients that accept it, but for streams and small ones.

A request that starts or changes something is done once, however often it is sent: a client sends `Idempotency-Key` with
a POST. The key, a hash of the request and the reply are kept in the store for a day: the same request gets the same
reply, another request with the same key is refused. A reply that says "try again" (429, 5xx) is not kept, nor is one
that says that nothing could be started (404, 422): its cause may be mended. The store is shared, so this holds for
several servers and after a restart.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import hashlib
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Match, Route

from quire.display.visible import visible
from quire.errors import QuireError, StoreError
from quire.operations.problems import KINDS, Problem, problem_of
from quire.runs.options import KEY
from quire.server.access import Users
from quire.server.assets import Assets
from quire.server.endpoints import KEY_HEADER, Endpoint, Reply, json_response, problem_response
from quire.server.guard import Guard
from quire.server.hooks import Hooks
from quire.server.routes import ENDPOINTS
from quire.stores.contract import KeptReply
from quire.values import decode, encode

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from quire.server.site import Site
    from quire.values import Value

SMALLEST = 4_000
IN_THREAD = 200_000
"""Bytes from which on a body is compressed in a thread."""
LEVEL = 5
"""Level 9 takes four times as long for a tenth less."""


async def compressed(response: Response, request: Request) -> Response:
    """Return the response, compressed if that is worth it."""
    body = b"" if isinstance(response, StreamingResponse) else bytes(response.body)
    if len(body) < SMALLEST or "content-encoding" in response.headers:
        return response
    response.headers["Vary"] = "Accept-Encoding"
    if "gzip" not in request.headers.get("accept-encoding", "").lower():
        return response
    if len(body) < IN_THREAD:
        packed = gzip.compress(body, LEVEL, mtime=0)
    else:
        packed = await asyncio.to_thread(gzip.compress, body, LEVEL, mtime=0)
    response.body = packed
    response.headers["Content-Encoding"] = "gzip"
    response.headers["Content-Length"] = str(len(packed))
    return response


REPLAYED = {"Idempotency-Replayed": "true"}
NOTHING_DONE = (404, 422)
"""Statuses of requests that did nothing, unless their handler has noted that it has `begun`."""

Work = Callable[[], Awaitable["Reply | Response"]]


async def once(site: Site, endpoint: Endpoint, request: Request, work: Work) -> Reply | Response:
    """Do the work of a request, or return the reply that its key has had before. Raises the errors of the work, and
    `Problem` for a key that belongs to another request or to one that is under way."""
    key = request.headers.get(KEY_HEADER)
    store = site.runtime.store
    if key is None or endpoint.method != "POST" or endpoint.cost == "FREE":
        return await work()
    if not KEY.fullmatch(key):
        raise Problem.of("unfit-parameters", "an Idempotency-Key has 1 to 200 characters of ASCII without spaces")
    claim = await store.claim_key(key, await _hash(request))
    if isinstance(claim, KeptReply):
        return await _earlier(claim, request, key)
    reply: str | None = None
    try:
        answer = await work()
        reply = _written(answer)
        return answer
    except (Problem, QuireError) as error:
        problem = problem_of(error)
        if problem.status not in NOTHING_DONE or getattr(request.state, "begun", False):
            reply = _written(problem_response(problem, site.options.base, request.url.path))
        raise
    finally:
        # The work is done: a reply that cannot be kept must not hide it.
        with contextlib.suppress(StoreError):
            await store.keep_reply(key, claim, reply)


async def _hash(request: Request) -> str:
    """Return the hash of user, method, address and body."""
    digest = hashlib.sha256(f"{request.user.source}{request.method} {request.url.path}?{request.url.query}\n".encode())
    digest.update(await request.body())
    return digest.hexdigest()


async def _earlier(reply: KeptReply, request: Request, key: str) -> Response:
    if reply.request != await _hash(request):
        raise Problem.of("key-reused", f"the idempotency key {key} was sent with another request")
    if reply.reply is None:
        raise Problem.of("in-progress", f"the request with the idempotency key {key} is under way")
    earlier = cast("Mapping[str, Any]", decode(reply.reply))
    return Response(earlier["body"], earlier["status"], {**earlier["headers"], **REPLAYED}, earlier["media"])


def _written(answer: Reply | Response) -> str | None:
    """Return a reply as it is kept; None for one that is not: a stream, or the advice to try again."""
    response = json_response(answer) if isinstance(answer, Reply) else answer
    status = response.status_code
    if type(response) is not Response or status >= 500 or status == 429:
        return None
    headers: dict[str, Value] = {
        name: value for name, value in response.headers.items() if name not in ("content-length", "content-type")
    }
    body = bytes(response.body).decode()
    return encode({"status": status, "headers": headers, "media": response.media_type, "body": body})


API = "/api/v1"
MOST_REQUESTS = 200
"""Requests that are handled at once, besides those of listeners."""


def application(
    site: Site,
    *,
    token: str,
    hosts: Collection[str],
    origins: Collection[str],
    proxied: bool = False,
    users: Users | None = None,
    report: Callable[[str], None] = lambda text: None,
) -> ASGIApp:
    """Return the application that serves a site to clients with the token. `proxied` is true behind a proxy."""
    assets = Assets(site.options.base)

    async def shell(request: Request) -> Response:
        return assets.shell(request.scope["path"])

    async def file(request: Request) -> Response:
        return assets.file(request)

    async def frame(request: Request) -> Response:
        return assets.frame(request)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with site.open():
            yield

    groups: dict[str, list[Endpoint]] = {}
    for endpoint in ENDPOINTS:
        groups.setdefault(endpoint.path, []).append(endpoint)
    # Paths with a fixed end come before those that take any path.
    paths = sorted(groups, key=lambda path: path.endswith(":path}"))
    endpoints = [_route(site, f"{API}{path}", groups[path], report) for path in paths]
    hooks = Endpoint("POST", "/hooks/{name}", "deliver", "", "FREE", Hooks().receive)

    async def unknown(request: Request) -> Response:
        return problem_response(_unknown(endpoints, request), site.options.base, request.url.path)

    routes = [
        *endpoints,
        Route(f"{API}/{{rest:path}}", unknown, methods=["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"]),
        _route(site, hooks.path, [hooks], report),
        Route("/static/{version}/{file:path}", file),
        Route("/frames/{kind}", frame),
        Route("/problems/{code}", _problem_page),
        Route("/{rest:path}", shell),
    ]

    async def http_problem(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)  # noqa: S101  # registered for it
        code = "wrong-method" if error.status_code == 405 else "unknown-path"
        problem = Problem(error.status_code, code, str(error.detail), headers=error.headers)
        return problem_response(problem, site.options.base, request.url.path)

    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers={HTTPException: http_problem})
    guarded = Guard(
        Crowd(app, site),
        token=token,
        users=users or Users(site.runtime.settings, has_tokens=False),
        hosts=hosts,
        origins=origins,
        base=site.options.base,
        proxied=proxied,
    )
    return Log(guarded, report) if site.options.debug else guarded


def _route(site: Site, path: str, group: list[Endpoint], report: Callable[[str], None]) -> Route:
    by_method = {endpoint.method: endpoint for endpoint in group}

    async def serve(request: Request) -> Response:
        endpoint = by_method["GET" if request.method == "HEAD" else request.method]
        try:
            call = await request.user.call_of(site, endpoint, request)
            answer = await once(site, endpoint, request, lambda: endpoint.handler(site, call))
        except (Problem, QuireError) as error:
            return problem_response(problem_of(error), site.options.base, request.url.path)
        except ClientDisconnect:
            return Response(status_code=499)
        except Exception as error:
            site.note(f"{request.method} {request.url.path}: {type(error).__name__}, see the terminal of the server")
            report(f"{request.method} {request.url.path}: {error!r}\n{traceback.format_exc()}")
            # A traceback can hold any value, so only `--debug` sends it.
            more: dict[str, Value] = {"traceback": traceback.format_exc()} if site.options.debug else {}
            detail = f"{type(error).__name__}: see the terminal of the server"
            problem = Problem.of("bug", detail, exit_code=1, more=more)
            return problem_response(problem, site.options.base, request.url.path)
        return await compressed(json_response(answer) if isinstance(answer, Reply) else answer, request)

    return Route(path, serve, methods=list(by_method))


class Crowd:
    """Answers requests beyond the most that are handled at once with a problem."""

    def __init__(self, app: ASGIApp, site: Site) -> None:
        self._app = app
        self._base = site.options.base
        self._most = MOST_REQUESTS + site.runtime.settings.serve.listeners
        self._under_way = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if self._under_way >= self._most:
            problem = Problem.of("too-many", f"{self._under_way} requests are under way")
            await problem_response(problem, self._base, scope["path"])(scope, receive, send)
            return
        self._under_way += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._under_way -= 1


class Log:
    """Reports each request: method, path without the query, status and time. Tokens are in headers, which are not
    reported."""

    def __init__(self, app: ASGIApp, report: Callable[[str], None]) -> None:
        self._app = app
        self._report = report

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), 0

        async def sending(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self._app(scope, receive, sending)
        finally:
            took = (time.perf_counter() - began) * 1000
            self._report(f"{scope['method']} {visible(scope['path'])} {status} {took:.1f} ms")


def _unknown(endpoints: Iterable[Route], request: Request) -> Problem:
    """Return the problem of a path that has no endpoint, or of a method that its endpoints do not have."""
    methods = {
        method
        for route in endpoints
        if route.matches(request.scope)[0] is Match.PARTIAL
        for method in sorted(route.methods or ())
    }
    if methods:
        allowed = ", ".join(sorted(methods))
        detail = f"{request.url.path} has no method {request.method}: it has {allowed}"
        return Problem.of("wrong-method", detail, headers={"Allow": allowed})
    return Problem.of("unknown-path", f"nothing exists at {request.url.path}")


async def _problem_page(request: Request) -> Response:
    """Explain one kind of problem in plain text: its address is the `type` of a problem."""
    code = request.path_params["code"]
    kind = KINDS.get(code)
    if kind is None:
        return PlainTextResponse(f"unknown problem {code}\n", 404)
    return PlainTextResponse(f"{code}\n\n{kind.title}. (status {kind.status})\n{kind.meaning}\n")
