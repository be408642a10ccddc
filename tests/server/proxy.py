"""A reverse proxy as people put before the page: it serves it below a path, under a name of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import uvicorn
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from quire.loopback import listening, place_of

_METHODS = ["GET", "POST", "PUT", "DELETE"]
_OWN = frozenset({"connection", "transfer-encoding", "content-length", "content-encoding", "date", "server"})


class Proxy:
    def __init__(self, place: str, path: str, keeps_path: bool) -> None:
        self.place = place
        self.target = ""
        """The address of the server behind the proxy."""
        self.client = httpx2.AsyncClient(timeout=30)
        self._path = path
        self._keeps_path = keeps_path

    async def pass_on(self, request: Request) -> Response:
        path = request.url.path if self._keeps_path else request.url.path.removeprefix(self._path) or "/"
        url = f"http://{self.target}{path}" + (f"?{request.url.query}" if request.url.query else "")
        headers = [(name, value) for name, value in request.headers.raw if name != b"accept-encoding"]
        asked = self.client.build_request(request.method, url, headers=headers, content=await request.body())
        answer = await self.client.send(asked, stream=True)
        kept = {name: value for name, value in answer.headers.items() if name not in _OWN}
        return StreamingResponse(
            answer.aiter_bytes(), answer.status_code, kept, background=BackgroundTask(answer.aclose)
        )


@asynccontextmanager
async def proxy(path: str, *, keeps_path: bool) -> AsyncIterator[Proxy]:
    """Pass on everything below `path`, with the path or without it."""
    listener = listening("127.0.0.1", 0)
    one = Proxy(place_of(listener), path, keeps_path)
    app = Starlette(routes=[Route(f"{path}/{{rest:path}}", one.pass_on, methods=_METHODS)])
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off", timeout_graceful_shutdown=2))
    task = asyncio.create_task(server.serve(sockets=[listener]))
    async with one.client:
        try:
            yield one
        finally:
            server.should_exit = True
            await task
