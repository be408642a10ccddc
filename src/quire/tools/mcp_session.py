"""One open session with an MCP server, held by its own task until it is told to stop. Its messages are inspected before
the client library handles them.

The library accepts a listing as a whole or not at all, checks results with a validator that a schema can keep busy for
ever, and starts a task for each request of a server. Here an invalid tool is dropped alone, output schemas are kept for
a check with limits, and a server that sends requests without end is cut off.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TextIO, TypeVar
from weakref import WeakKeyDictionary

from msgspec import Struct, field

from quire import __version__
from quire.engine.premises import MCP_START_SECONDS
from quire.models.http_limits import Limits, limit_responses
from quire.schema_limits import problem_of
from quire.tools import confirmed_imports, server_process
from quire.tools.server_process import MAX_MESSAGE_BYTES, Pipes, open_pipes

if TYPE_CHECKING:
    import asyncio

    from mcp import Client
    from mcp.client._transport import ReadStream, TransportStreams, WriteStream
    from mcp.client.stdio import StdioServerParameters
    from mcp.shared.message import SessionMessage
    from mcp.types import CallToolResult

    from quire.workspace.mcp_config import McpServer
    from quire.workspace.server_code import ServerCode


SHOWN = 4_096
KEPT = 65_536
"""More than is shown: secrets are removed before the cut, and a secret that is cut in two would not be found."""


class Tail:
    """A pipe for a child process and the last bytes that came through it, kept in memory only.

    A server may write secrets there, so nothing of it goes to a file.
    """

    def __init__(self) -> None:
        self._read, write = os.pipe()
        self.stream: TextIO = os.fdopen(write, "w", encoding="utf-8")
        self._kept = b""
        # A daemon: a grandchild may hold the pipe open long after the server is gone.
        self._thread = threading.Thread(target=self._collect, name="mcp-stderr", daemon=True)
        self._thread.start()

    def started(self) -> None:
        """Close this end: the child has its own copy now, and this one would keep the pipe from ending."""
        self.stream.close()

    def text(self, redact: Callable[[str], str] = lambda text: text, wait: float = 0.2) -> str:
        """Return the last lines, redacted. Those of a dead server are complete after a moment."""
        self._thread.join(wait)
        return redact(self._kept.decode("utf-8", "replace"))[-SHOWN:].strip()

    def _collect(self) -> None:
        with os.fdopen(self._read, "rb", buffering=0) as pipe:
            while chunk := pipe.read(KEPT):
                self._kept = (self._kept + chunk)[-KEPT:]


CLOSE_SECONDS = 15.0
KILLED_SECONDS: Final = 5.0
KEEP_SECONDS: Final = 60.0
"""How long a session waits for the run that is about to start."""
STREAM_BYTES: Final = 64_000_000
"""The size limit of one answer over HTTP, including the messages before it."""


class Stopped(Exception):
    """The connection is gone; it is unknown whether a call under way arrived."""


class CannotOpen(Exception):
    """A session could not be opened; the text says why."""


class Session:
    """One session. `client` is set once `open` has returned."""

    client: Client

    def __init__(self, server: McpServer, folder: Path, code: ServerCode) -> None:
        """`code` describes how a stdio server is started, as it was confirmed."""
        self._server = server
        self._folder = folder
        self._code = code
        self._tail: Tail | None = None
        self._task: asyncio.Task[None] | None = None
        self._stop: asyncio.Event | None = None
        self._pipes: Pipes | None = None
        self.inspection = Inspection()
        self.opened = False
        self.ending: asyncio.Task[None] | None = None

    def stderr(self, redact: Callable[[str], str]) -> str:
        return self._tail.text(redact) if self._tail else ""

    @property
    def is_alive(self) -> bool:
        return self.opened and self._task is not None and not self._task.done()

    @property
    def problem(self) -> str:
        """The misbehaviour of the server that ended the session; empty if it just ended."""
        return self.inspection.problem or (self._pipes.problem if self._pipes else "")

    @property
    def unreadable(self) -> str:
        """The error in the last message that could not be read."""
        return self._pipes.unreadable if self._pipes else ""

    async def open(self, mode: str) -> None:
        """Open the session. Raises `Stopped` if the server ends at once, `CannotOpen` for every other failure."""
        import asyncio

        # Without a handler of its own the package's warnings would go to the terminal.
        logging.getLogger("mcp").addHandler(logging.NullHandler())
        self._stop = asyncio.Event()
        ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._hold(mode, ready, self._stop), name=f"mcp:{self._server.name}")
        try:
            async with asyncio.timeout(MCP_START_SECONDS):
                self.client = await asyncio.shield(ready)
                self.opened = True
        except TimeoutError:
            await self._kill()
            raise CannotOpen(f"no answer within {MCP_START_SECONDS:g} s") from None
        except asyncio.CancelledError:
            await self._kill()
            raise

    async def close(self) -> None:
        if self._task is not None and self._stop is not None:
            self._stop.set()
            await self._gone(self._task, CLOSE_SECONDS)

    async def _kill(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await self._gone(self._task, CLOSE_SECONDS)

    async def _gone(self, task: asyncio.Task[None], seconds: float) -> None:
        """Wait until the session has ended. The server gets some seconds to end by itself, unless the caller is
        cancelled. The task is not cancelled before its server is killed, since it would leave the server behind."""
        import asyncio

        try:
            await asyncio.wait([task], timeout=seconds)
        except asyncio.CancelledError:
            self._kill_group()
            await asyncio.wait([task], timeout=KILLED_SECONDS)
            raise
        if not task.done():
            self._kill_group()
            task.cancel()
            await asyncio.wait([task], timeout=KILLED_SECONDS)
        if task.done() and not task.cancelled():
            task.exception()

    def _kill_group(self) -> None:
        if self._pipes is not None:
            server_process.kill(self._pipes.group)

    async def _hold(self, mode: str, ready: asyncio.Future[Client], stop: asyncio.Event) -> None:
        from mcp import Client, MCPError
        from mcp.types import CONNECTION_CLOSED, Implementation

        try:
            async with Client(
                self._inspected(),
                mode=mode,
                client_info=Implementation(name="quire", version=__version__),
                cache=None,
            ) as client:
                # The library's own check can be kept busy for ever by a schema; Quire's check is in
                # `McpConnection.call`.
                client.session.validate_tool_result = _unchecked  # type: ignore[method-assign]
                if not ready.done():
                    ready.set_result(client)
                await stop.wait()
        except Exception as error:
            # After the start no caller waits here: the next call finds the connection closed.
            if not ready.done():
                leaf = _leaf(error)
                gone = isinstance(leaf, MCPError) and leaf.code == CONNECTION_CLOSED
                ready.set_exception(Stopped() if gone else CannotOpen(reason(leaf)))

    @asynccontextmanager
    async def _inspected(self) -> AsyncIterator[TransportStreams]:
        async with self._transport() as (incoming, outgoing):
            yield Incoming(incoming, self.inspection), Outgoing(outgoing, self.inspection)

    @asynccontextmanager
    async def _transport(self) -> AsyncIterator[TransportStreams]:
        server = self._server
        if server.url:
            import httpx2
            from mcp.client.streamable_http import streamable_http_client

            # A server may hold the answer of a call open for as long as the call may take.
            limits = httpx2.Timeout(30.0, read=max(300.0, server.timeout))
            http = httpx2.AsyncClient(headers=dict(server.headers), timeout=limits)
            sizes = Limits(line=MAX_MESSAGE_BYTES, body=MAX_MESSAGE_BYTES, stream=STREAM_BYTES)
            limit_responses(http, sizes, self.inspection.stop)
            async with (
                http,
                streamable_http_client(server.url, http_client=http, max_sse_event_size=MAX_MESSAGE_BYTES) as streams,
            ):
                yield streams
            return
        self._tail = tail = Tail()
        with _start_folder(self._code) as start:
            parameters = _parameters(self._code, self._folder, start)
            try:
                async with open_pipes(parameters, tail.stream) as (streams, self._pipes):
                    tail.started()
                    yield streams
            finally:
                tail.started()


_kept: WeakKeyDictionary[asyncio.AbstractEventLoop, list[Session]] = WeakKeyDictionary()
"""Sessions that the look before a start has opened, for the run that starts."""


def keep_session(session: Session) -> None:
    """Keep a session for a run that starts soon."""
    import asyncio

    loop = asyncio.get_running_loop()
    waiting = _kept.setdefault(loop, [])
    waiting.append(session)

    def end() -> None:
        if session in waiting:
            waiting.remove(session)
            session.ending = loop.create_task(session.close())

    loop.call_later(KEEP_SECONDS, end)


async def take_session(server: McpServer, folder: Path, code: ServerCode) -> Session | None:
    """Return a session that is kept for this server, if it still runs."""
    import asyncio

    waiting = _kept.get(asyncio.get_running_loop(), [])
    for session in [
        candidate
        for candidate in waiting
        if (candidate._server, candidate._folder, candidate._code) == (server, folder, code)
    ]:
        waiting.remove(session)
        if session.is_alive:
            return session
        await session.close()
    return None


async def end_kept_sessions() -> None:
    """End the sessions that no run has taken."""
    import asyncio

    try:
        waiting = _kept.get(asyncio.get_running_loop(), [])
    except RuntimeError:  # only rows were read, without a loop
        return
    while waiting:
        await waiting.pop().close()


@contextmanager
def _start_folder(code: ServerCode) -> Iterator[Path]:
    """Yield the folder that is confirmed for a server, else an empty one. It is not among the temporary files of all
    accounts, because programs also look for code and settings in the folders above."""
    if code.folder is not None:
        yield code.folder
        return
    import tempfile

    import platformdirs

    above = platformdirs.user_cache_path("quire", appauthor=False) / "servers"
    above.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=above, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def _parameters(code: ServerCode, workspace: Path, start: Path) -> StdioServerParameters:
    """Return the start parameters of a server; they are built only here."""
    from mcp.client.stdio import StdioServerParameters

    command, *arguments = code.command(confirmed_imports.__file__)
    env = dict(code.env)
    if order := code.order(workspace):
        env[confirmed_imports.VARIABLE] = json.dumps(order)
    return StdioServerParameters(command=command, args=arguments, env=env, cwd=start)


def reason(error: BaseException) -> str:
    """Return one line about the innermost error of the client library."""
    leaf = _leaf(error)
    if isinstance(leaf, OSError) and leaf.strerror:
        return f"{leaf.strerror}: {leaf.filename}" if leaf.filename else leaf.strerror
    text = _violation(leaf) or " ".join(str(leaf).split())
    return f"{type(leaf).__name__}: {text}" if text else type(leaf).__name__


def _violation(error: BaseException) -> str:
    """Return the first error that pydantic reports about a message."""
    from pydantic import ValidationError

    if not isinstance(error, ValidationError):
        return ""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = ".".join(map(str, first["loc"]))
    return f"the server broke the protocol: {place}: {first['msg']}"


def _leaf(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


async def _unchecked(name: str, result: CallToolResult) -> None:
    return None


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
            result["tools"] = [usable for tool in tools if (usable := self._tool(tool)) is not None]

    def _tool(self, tool: object) -> dict[str, Any] | None:
        if not isinstance(tool, dict):
            return None
        name, schema = tool.get("name"), tool.get("inputSchema")
        if not isinstance(name, str) or not name or len(name) > LONGEST_NAME or not name.isprintable():
            # It cannot be called by name, and showing it would do harm.
            return None
        listed: dict[str, Any] = {"name": name, "inputSchema": {"type": "object"}}
        if name in self.schemas:
            self.problems[name] = "its name is listed twice"
        elif not isinstance(schema, dict):
            self.problems[name] = "its schema is not an object"
        elif schema.get("type", "object") != "object":
            self.problems[name] = "its schema does not describe an object"
        self.schemas[name] = schema if isinstance(schema, dict) else {}
        if _has_headers(self.schemas[name]) and not problem_of(schema):
            listed["inputSchema"] = {**self.schemas[name], "type": "object"}
        description, hints = tool.get("description"), tool.get("annotations")
        if isinstance(description, str):
            listed["description"] = description[:LONGEST_DESCRIPTION]
        if isinstance(hints, dict):
            listed["annotations"] = {key: hint for key, hint in hints.items() if isinstance(hint, bool)}
        if (output := tool.get("outputSchema")) is not None:
            self.outputs[name] = output
        return listed


def _has_headers(schema: dict[str, Any], levels: int = 8) -> bool:
    fields = schema.get("properties")
    if not isinstance(fields, dict) or not levels:
        return False
    below = [field for field in fields.values() if isinstance(field, dict)]
    return any("x-mcp-header" in field or _has_headers(field, levels - 1) for field in below)


Stream = TypeVar("Stream", bound="ReadStream[Any] | WriteStream[Any]")


class _Inspected(Generic[Stream]):
    """A stream whose messages are inspected. It is closed with its block."""

    def __init__(self, stream: Stream, inspection: Inspection) -> None:
        self._stream = stream
        self._inspection = inspection

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class Incoming(_Inspected["ReadStream[SessionMessage | Exception]"]):
    """The messages of a server."""

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

    def __aiter__(self) -> Incoming:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        from anyio import EndOfStream

        try:
            return await self.receive()
        except EndOfStream:
            raise StopAsyncIteration from None


class Outgoing(_Inspected["WriteStream[SessionMessage]"]):
    """The messages to a server; answers to its requests are counted."""

    async def send(self, item: SessionMessage, /) -> None:
        from mcp.types import JSONRPCError, JSONRPCResponse

        await self._stream.send(item)
        if isinstance(item.message, JSONRPCResponse | JSONRPCError):
            self._inspection.answered()
