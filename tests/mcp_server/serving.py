"""A workspace with some documents, a server over it in this process, and a client of either generation."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp import Client
from mcp.client.session import ClientRequestContext

from quire.engine.ports import Model, ModelCall, ModelReply
from quire.engine.records import Usage
from quire.mcp_server.server import Host, Offer
from quire.runs.runtime import Runtime

MODES = ("legacy", "auto")
NAME = "tester"

GREET = """
pipeline: greet
description: Greets somebody.
steps:
  - transform: {value: "'Hello, ' + ctx.name", output: text}
  - transform: {value: "text + get(ctx, 'mark', '!')", output: said}
"""
APPROVE = """
pipeline: approve
steps:
  - tool: {name: ask, args: {prompt: "Go?", type: confirm}, output: go}
  - tool: {name: ask, args: {prompt: "Which?", type: select, options: [a, b]}, output: which}
  - transform: {value: "go + ' ' + which"}
"""
THINK = """
pipeline: think
steps:
  - agent: {prompt: "one", output: first}
  - agent: {prompt: "two", output: second}
"""
TOPIC = """# Topic

Talks about it.

## INPUTS

- `topic` (string): what about
- `length` (number: 3)

## STEP 1: Say

@elicit(input, "More about {{topic}}?")
"""

Answer = Callable[[str, Mapping[str, Any]], "str | None"]


class Gated:
    """A model that answers when it is let: `asked` is set by the first call, `go` lets all of them through."""

    name = "gated"

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.go = asyncio.Event()
        self.calls: list[str] = []

    async def complete(self, call: ModelCall, on_delta: Callable[[str], None]) -> ModelReply:
        self.calls.append(call.label)
        self.asked.set()
        await self.go.wait()
        return ModelReply("done", self.name, Usage())


def write(folder: Path, **documents: str) -> Path:
    (folder / "quire.toml").touch()
    (folder / "pipelines").mkdir(exist_ok=True)
    for name, text in documents.items():
        (folder / "pipelines" / f"{name}.yaml").write_text(text, encoding="utf-8")
    return folder


class Serving:
    """A server over a folder; `reports` is what it said to people, `handed_over` the runs that it left to others."""

    def __init__(self, folder: Path, model: Model | None = None, **offer: Any) -> None:
        self.reports: list[str] = []
        self.handed_over: list[str] = []
        environ = {"QUIRE_HOME": str(folder.parent / "home")}
        self.runtime = Runtime.open(folder, environ=environ, model=model)
        self.host = Host(self.runtime, Offer(report=self.reports.append, **offer), hand_over=self.handed_over.append)

    @contextlib.asynccontextmanager
    async def client(self, mode: str, answer: Answer | None = None, **options: Any) -> AsyncIterator[Client]:
        """`answer` gets the message and the field of each form; without it the client cannot show forms."""

        async def elicit(context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
            assert answer is not None and isinstance(params, types.ElicitRequestFormParams)
            given = answer(params.message, params.requested_schema["properties"]["answer"])
            if given is None:
                return types.ElicitResult(action="decline")
            return types.ElicitResult(action="accept", content={"answer": given})

        info = types.Implementation(name=NAME, version="1")
        callback = elicit if answer else None
        async with Client(
            self.host.server, mode=mode, elicitation_callback=callback, client_info=info, **options
        ) as client:
            yield client


def envelope(result: types.CallToolResult) -> dict[str, Any]:
    assert isinstance(result.structured_content, dict)
    return result.structured_content


def text(result: types.CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, types.TextContent)
    return content.text
