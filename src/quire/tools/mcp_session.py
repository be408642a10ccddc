"""One open session with an MCP server, held by its own task until it is told to stop.

The end of the server's standard error is kept in memory, away from the terminal, and shown if the server fails.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO
from weakref import WeakKeyDictionary

from quire import __version__
from quire.engine.premises import MCP_START_SECONDS
from quire.models.http_limits import Limits, limit_responses
from quire.tools import confirmed_imports, process_groups
from quire.tools.mcp_inspection import Incoming, Inspection, Outgoing
from quire.tools.server_process import MAX_MESSAGE_BYTES, Pipes, open_pipes

if TYPE_CHECKING:
    import asyncio

    from mcp import Client
    from mcp.client._transport import TransportStreams
    from mcp.client.stdio import StdioServerParameters
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
            process_groups.kill(self._pipes.group)

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
    for session in [kept for kept in waiting if (kept._server, kept._folder, kept._code) == (server, folder, code)]:
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
