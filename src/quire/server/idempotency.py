"""Idempotency keys: a request that starts or changes something is done once, however often it is sent.

A client sends `Idempotency-Key` with a POST. The key, a hash of the request and the reply are kept in the store for a
day: the same request gets the same reply, another request with the same key is refused. A reply that says "try again"
(429, 5xx) is not kept, nor is one that says that nothing could be started (404, 422): its cause may be mended. The
store is shared, so this holds for several servers and after a restart.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, cast

from starlette.responses import Response

from quire.errors import QuireError, StoreError
from quire.operations.problems import Problem, problem_of
from quire.server.endpoints import Endpoint, Reply, json_response, problem_response
from quire.stores.contract import KeptReply, ReplyKeeper
from quire.values import decode, encode

if TYPE_CHECKING:
    from starlette.requests import Request

    from quire.server.site import Site
    from quire.values import Value

HEADER = "idempotency-key"
REPLAYED = {"Idempotency-Replayed": "true"}
NOTHING_DONE = (404, 422)
"""Statuses of requests that did nothing, unless their handler has noted that it has `begun`."""
_KEY = re.compile(r"[\x21-\x7e]{1,200}")

Work = Callable[[], Awaitable["Reply | Response"]]


async def once(site: Site, endpoint: Endpoint, request: Request, work: Work) -> Reply | Response:
    """Do the work of a request, or return the reply that its key has had before. Raises whatever the work raises, and
    `Problem` for a key that belongs to another request or to one that is under way."""
    key = request.headers.get(HEADER)
    store = site.runtime.store
    if key is None or endpoint.method != "POST" or endpoint.cost == "FREE" or not isinstance(store, ReplyKeeper):
        return await work()
    if not _KEY.fullmatch(key):
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
        problem = error if isinstance(error, Problem) else problem_of(error)
        if problem.status not in NOTHING_DONE or getattr(request.state, "begun", False):
            reply = _written(problem_response(problem, site.options.base, request.url.path))
        raise
    finally:
        # The work is done: a reply that cannot be kept must not hide it.
        with contextlib.suppress(StoreError):
            await store.keep_reply(key, claim, reply)


async def _hash(request: Request) -> str:
    """Return the hash of method, address and body."""
    digest = hashlib.sha256(f"{request.method} {request.url.path}?{request.url.query}\n".encode())
    digest.update(await request.body())
    return digest.hexdigest()


async def _earlier(kept: KeptReply, request: Request, key: str) -> Response:
    if kept.request != await _hash(request):
        raise Problem.of("key-reused", f"the idempotency key {key} was sent with another request")
    if kept.reply is None:
        raise Problem.of("in-progress", f"the request with the idempotency key {key} is under way")
    found = cast("Mapping[str, Value]", decode(kept.reply))
    headers = {**cast("Mapping[str, str]", found["headers"]), **REPLAYED}
    return Response(str(found["body"]), int(cast("int", found["status"])), headers, str(found["media"]))


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
