"""An MCP server for the tests: over stdio, or over streamable HTTP on a socket that it inherits."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import (
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    TextContent,
    ToolAnnotations,
)

server = MCPServer("served")
READ = ToolAnnotations(read_only_hint=True)


@server.tool(annotations=READ)
def environment(name: str) -> str:
    return os.environ.get(name, "not set")


@server.tool(annotations=ToolAnnotations(idempotent_hint=True), structured_output=False)
def effect_id(ctx: Context[Any, Any]) -> str:
    meta: dict[str, Any] = dict(ctx.request_context.meta or {})
    return str(meta.get("quire/effect-id"))


@server.tool(annotations=READ, structured_output=False)
def traceparent(ctx: Context[Any, Any]) -> str:
    meta: dict[str, Any] = dict(ctx.request_context.meta or {})
    return str(meta.get("traceparent"))


@server.tool(structured_output=False)
def fail(key: str) -> str:
    raise ToolError(f"the key {key} is not good")


@server.tool()
def only_structured() -> CallToolResult:
    return CallToolResult(content=[], structured_content={"a": [1, 2]})


@server.tool(structured_output=False)
def large() -> str:
    return "x" * 2_000_000


@server.tool(annotations=READ, structured_output=False)
async def slow() -> str:
    await anyio.sleep_forever()
    return "never"


@server.tool(annotations=READ, structured_output=False)
def dies_unless(marker: str) -> str:
    """Dies the first time, and leaves something behind for the second."""
    if Path(marker).exists():
        return f"alive {os.getpid()}"
    Path(marker).touch()
    print("I am going down", file=sys.stderr, flush=True)
    os._exit(1)


@server.tool(structured_output=False)
def dies() -> str:
    print(f"my key is {os.environ.get('SERVED_TOKEN')}", file=sys.stderr, flush=True)
    os._exit(1)


@server.tool()
def asks(ctx: Context[Any, Any]) -> CallToolResult | InputRequiredResult:
    answer = (ctx.input_responses or {}).get("who")
    if isinstance(answer, ElicitResult):
        return CallToolResult(content=[TextContent(text=f"the answer was: {answer.action}")])
    form = ElicitRequestFormParams(message="Who?", requested_schema={"type": "object", "properties": {}})
    return InputRequiredResult(input_requests={"who": ElicitRequest(params=form)})


@server.tool(name="odd.name/*", structured_output=False)
def odd() -> str:
    return "odd"


@server.tool(structured_output=False)
def header(ctx: Context[Any, Any], name: str) -> str:
    request: Any = ctx.request_context.request
    return str(request.headers.get(name)) if request else "no request"


@server.prompt()
def hello() -> str:
    return f"Say hello to {os.environ.get('SERVED_TOKEN')}."


if __name__ == "__main__":
    if len(sys.argv) > 1:
        import socket

        import uvicorn

        listening = socket.socket(fileno=int(sys.argv[1]))
        uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="error")).run([listening])
    else:
        server.run("stdio")
