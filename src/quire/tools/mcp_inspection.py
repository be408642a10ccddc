"""Inspect the messages of an MCP server before the client library handles them.

The library accepts a listing as a whole or not at all, checks results with a validator that a schema can keep busy for
ever, and starts a task for each request of a server. Here an invalid tool is dropped alone, output schemas are kept for
a check with limits, and a server that sends requests without end is cut off.
"""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field

from quire.schema_limits import problem_of

if TYPE_CHECKING:
    from mcp.client._transport import ReadStream, WriteStream
    from mcp.shared.message import SessionMessage

MAX_ASKED: Final = 100
"""The number of requests of a server that may wait for an answer."""

LONGEST_NAME: Final = 128
LONGEST_DESCRIPTION: Final = 20_000


class Inspection(Struct):
    """The findings about a server. `problem` ended the connection; the others concern the tools listed last, by name.

    The library does not get the schemas, unless they state which arguments go into headers.
    """

    problem: str = ""
    problems: dict[str, str] = field(default_factory=dict)
    schemas: dict[str, dict[str, Any]] = field(default_factory=dict)
    outputs: dict[str, object] = field(default_factory=dict)
    _asked: int = 0

    def begin_listing(self) -> None:
        self.problems, self.schemas, self.outputs = {}, {}, {}

    def stop(self, problem: str) -> None:
        self.problem = problem

    def asked(self) -> bool:
        """Count a request of the server; return False if there are too many."""
        self._asked += 1
        if self._asked > MAX_ASKED:
            self.problem = f"asks for more than {MAX_ASKED} things at once"
        return not self.problem

    def answered(self) -> None:
        self._asked -= 1

    def look_at(self, result: dict[str, Any]) -> None:
        """Keep the tools of a listing that have a usable name, and record their problems."""
        tools = result.get("tools")
        if isinstance(tools, list):
            result["tools"] = [one for tool in tools if (one := self._tool(tool)) is not None]

    def _tool(self, tool: object) -> dict[str, Any] | None:
        if not isinstance(tool, dict):
            return None
        name, schema = tool.get("name"), tool.get("inputSchema")
        if not isinstance(name, str) or not name or len(name) > LONGEST_NAME or not name.isprintable():
            # It cannot be called by name, and showing it would do harm.
            return None
        kept: dict[str, Any] = {"name": name, "inputSchema": {"type": "object"}}
        if name in self.schemas:
            self.problems[name] = "its name is listed twice"
        elif not isinstance(schema, dict):
            self.problems[name] = "its schema is not an object"
        elif schema.get("type", "object") != "object":
            self.problems[name] = "its schema does not describe an object"
        self.schemas[name] = schema if isinstance(schema, dict) else {}
        if _has_headers(self.schemas[name]) and not problem_of(schema):
            kept["inputSchema"] = {**self.schemas[name], "type": "object"}
        description, hints = tool.get("description"), tool.get("annotations")
        if isinstance(description, str):
            kept["description"] = description[:LONGEST_DESCRIPTION]
        if isinstance(hints, dict):
            kept["annotations"] = {key: one for key, one in hints.items() if isinstance(one, bool)}
        if (output := tool.get("outputSchema")) is not None:
            self.outputs[name] = output
        return kept


def _has_headers(schema: dict[str, Any], levels: int = 8) -> bool:
    fields = schema.get("properties")
    if not isinstance(fields, dict) or not levels:
        return False
    below = [one for one in fields.values() if isinstance(one, dict)]
    return any("x-mcp-header" in one or _has_headers(one, levels - 1) for one in below)


class Incoming:
    """The messages of a server, inspected."""

    def __init__(self, stream: ReadStream[SessionMessage | Exception], inspection: Inspection) -> None:
        self._stream = stream
        self._inspection = inspection

    @property
    def last_context(self) -> object:
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        from anyio import EndOfStream
        from mcp.types import (
            CONNECTION_CLOSED,
            INTERNAL_ERROR,
            REQUEST_TIMEOUT,
            JSONRPCError,
            JSONRPCRequest,
            JSONRPCResponse,
        )

        item = await self._stream.receive()
        message = None if isinstance(item, Exception) else item.message
        if isinstance(message, JSONRPCResponse):
            self._inspection.look_at(message.result)
        elif isinstance(message, JSONRPCError) and message.error.code in (CONNECTION_CLOSED, REQUEST_TIMEOUT):
            # The library uses these codes for a closed connection and a timeout. From a server they are errors of its
            # own.
            message.error.code = INTERNAL_ERROR
        elif isinstance(message, JSONRPCRequest) and not self._inspection.asked():
            raise EndOfStream
        return item

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> Incoming:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        from anyio import EndOfStream

        try:
            return await self.receive()
        except EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Incoming:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class Outgoing:
    """The messages to a server; answers to its requests are counted."""

    def __init__(self, stream: WriteStream[SessionMessage], inspection: Inspection) -> None:
        self._stream = stream
        self._inspection = inspection

    async def send(self, item: SessionMessage, /) -> None:
        from mcp.types import JSONRPCError, JSONRPCResponse

        await self._stream.send(item)
        if isinstance(item.message, JSONRPCResponse | JSONRPCError):
            self._inspection.answered()

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aenter__(self) -> Outgoing:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
