"""A `traceparent` comes in through the HTTP API and through MCP, and `serve` exports what it drives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.given import given
from tests.mcp_server.serving import APPROVE, GREET, Serving, write
from tests.server.served import served
from tests.telemetry.receiver import Receiver, receiving

pytestmark = pytest.mark.asyncio(loop_scope="session")

TRACE, ABOVE = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
HELLO = "pipeline: hello\nsteps:\n- transform: {value: \"'hi ' + ctx.name\"}\n"


def root_of(receiver: Receiver) -> tuple[str, str]:
    span = receiver.by_path()[""]
    return span.trace, span.parent


@pytest.mark.parametrize(("header", "known"), [(f"00-{TRACE}-{ABOVE}-01", True), (f"00-{TRACE}-{ABOVE}", False)])
async def test_the_header_of_a_request_is_the_parent_of_its_run(tmp_path: Path, header: str, known: bool) -> None:
    with receiving() as receiver:
        settings = f'[telemetry]\nendpoint = "{receiver.address}"\n'
        async with served(tmp_path / "team", {"hello.yaml": HELLO}, settings=settings) as server:
            async with server.client() as client:
                body = {"document": "hello.yaml", "inputs": {"name": "a"}}
                answer = await client.post("/runs", json=body, headers={"traceparent": header})
            assert answer.status_code == 201
            run = answer.json()["id"]
            await server.site.runs.ended(run, 30)
            assert (await server.site.runtime.row(run)).pins.get("trace") == (header if known else None)
    trace, above = root_of(receiver)
    assert ((trace, above) == (TRACE, ABOVE)) is known
    assert known or not above


async def test_meta_of_a_call_is_the_parent_of_its_run(tmp_path: Path) -> None:
    folder = write(given({"work/quire.toml": ""}, tmp_path) / "work", greet=GREET, approve=APPROVE)
    meta: Any = {"traceparent": f"00-{TRACE}-{ABOVE}-01"}
    with receiving() as receiver:
        given({"quire.toml": f'[telemetry]\nendpoint = "{receiver.address}"\n'}, tmp_path / "home")
        serving = Serving(folder)
        async with serving.client("auto") as client:
            result = await client.call_tool("pipeline__greet", {"name": "Ann"}, meta=meta)
        await serving.runtime.close()
    assert not result.is_error
    assert root_of(receiver) == (TRACE, ABOVE)
