"""The server over HTTP, on loopback: the official client in both generations, and those who are turned away."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as types
import pytest
import uvicorn
from mcp import Client
from mcp.client.session import ClientRequestContext
from mcp.client.streamable_http import streamable_http_client
from tests.mcp_server.serving import MODES, THINK, Gated, Serving, text, write

from quire.engine.records import Status
from quire.errors import CannotStart
from quire.loopback import listening, place_of
from quire.mcp_server.http_server import PATH, application

Serve = Callable[..., Serving]
TOKEN = "a-token-of-some-length"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
ACCEPT = {"Accept": "application/json, text/event-stream"}


@contextlib.asynccontextmanager
async def listening_to(serving: Serving) -> AsyncIterator[str]:
    """The library's server without its signal handlers: the process is the test's."""
    listener = listening("127.0.0.1", 0)
    app = application(serving.host, place_of(listener), TOKEN)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="on"))
    serve = asyncio.create_task(server._serve(sockets=[listener]))
    try:
        yield f"http://{place_of(listener)}{PATH}"
    finally:
        server.should_exit = True
        await serve
        listener.close()


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_with_the_token_calls_and_is_asked(serve: Serve, mode: str) -> None:
    async def answer(context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
        assert isinstance(params, types.ElicitRequestFormParams)
        first = params.requested_schema["properties"]["answer"]["enum"][0]
        return types.ElicitResult(action="accept", content={"answer": first})

    heard: list[str | None] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(message)

    async with listening_to(serve()) as url, httpx2.AsyncClient(headers=BEARER) as http:
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport, mode=mode, elicitation_callback=answer) as client:
            assert text(await client.call_tool("pipeline__greet", {"name": "Ann"}, progress_callback=hear)) == (
                "Hello, Ann!"
            )
            assert text(await client.call_tool("pipeline__approve", {})) == "yes a"
    assert heard[-1] == "step 2 (said) completed" and len(heard) == 4


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": TOKEN}, 401),
        ({**BEARER, "Host": "evil.example"}, 421),
        ({**BEARER, "Host": "127.0.0.1:1"}, 421),
        ({**BEARER, "Origin": "http://evil.example"}, 403),
        ({**BEARER, "Origin": "null"}, 403),
    ],
)
async def test_others_are_turned_away(serve: Serve, headers: Mapping[str, str], expected: int) -> None:
    async with listening_to(serve()) as url, httpx2.AsyncClient() as http:
        answer = await http.post(url, json=PING, headers={**ACCEPT, **headers})
        elsewhere = await http.get(url.removesuffix(PATH) + "/", headers=dict(headers))
    assert answer.status_code == expected
    assert elsewhere.status_code == (401 if expected == 401 else 404)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org", ""])
def test_only_loopback_is_served(host: str) -> None:
    with pytest.raises(CannotStart, match="--host"):
        listening(host, 0)


def test_a_port_that_is_taken_is_said() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(CannotStart, match=r"cannot listen on 127\.0\.0\.1"):
            listening("127.0.0.1", taken.getsockname()[1])


async def test_the_app_has_no_other_doors(serve: Serve) -> None:
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    app = application(serve().host, "127.0.0.1:1", TOKEN)
    await app({"type": "websocket", "headers": [], "path": PATH}, receive, send)
    assert sent == []


@pytest.mark.parametrize("mode", MODES)
async def test_a_call_that_is_cancelled_stops_its_run(serve: Serve, folder: Path, mode: str) -> None:
    """The older generation says so; in the newer one the client closes the stream of the answer."""
    write(folder, think=THINK)
    model = Gated()
    serving = serve(model=model)
    async with (
        listening_to(serving) as url,
        httpx2.AsyncClient(headers=BEARER) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        calling = asyncio.create_task(client.call_tool("pipeline__think", {}))
        await asyncio.wait_for(model.asked.wait(), 30)
        (attached,) = serving.host.calls._waited_for.values()
        calling.cancel()
        await asyncio.wait_for(attached.left.wait(), 30)
        model.go.set()
    (row,) = await serving.runtime.store.list()
    assert (row.status, len(model.calls)) == (Status.PAUSED, 1)
