"""The pipes to an MCP server that this process starts: bounded messages, and an end that leaves nothing behind.

The client library reads lines of any length, fails on a byte that is not UTF-8, and does not end the children of a
server that ends by itself. So the pipes are handled here; the library exchanges messages with them.

No process group of a server may outlive this process. Servers are asked to end, and get a moment for it. If no time is
left, at the last of several Ctrl-C, the remaining ones are killed.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:
    import asyncio

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.client._transport import TransportStreams
    from mcp.client.stdio import StdioServerParameters
    from mcp.shared.message import SessionMessage


MAX_MESSAGE_BYTES: Final = 10_000_000
MAX_UNREADABLE: Final = 1_000
"""The number of lines that are not messages which is tolerated: some servers print a greeting on stdout."""

ENDING_SECONDS = 2.0
"""The time for a server to end once its stdin is closed, and again once it was signalled."""

_FLUSH_SECONDS: Final = 0.5
_ORPHAN_SECONDS: Final = 0.5
_STEP_SECONDS: Final = 0.01
_NEAR: Final = 400
_ID = re.compile(rb'"id"\s*:\s*(\d{1,9})\b')


class Pipes:
    """One started server. `problem` states what it did to end the connection, if it did."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.problem = ""
        self.unreadable = ""
        self.group = process.pid
        self._process = process
        self._bad_lines = 0

    async def read(self, incoming: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        import anyio

        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            async with incoming:
                while (line := await self._line()) is not None:
                    message = self._message(line)
                    if message is not None:
                        await incoming.send(message)
                    elif self._bad_lines > MAX_UNREADABLE:
                        self.problem = "sends what is not a message of the protocol"
                        break

    async def write(self, outgoing: MemoryObjectReceiveStream[SessionMessage]) -> None:
        stdin = self._process.stdin
        assert stdin is not None  # noqa: S101
        with suppress(OSError):
            async with outgoing:
                async for message in outgoing:
                    stdin.write(message.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
                    await stdin.drain()

    async def drain(self) -> None:
        """Read and discard output: a server that is blocked in writing does not notice that its stdin is closed."""
        stdout = self._process.stdout
        assert stdout is not None  # noqa: S101
        with suppress(OSError):
            while await stdout.read(1 << 16):
                pass

    async def end(self) -> None:
        """Close stdin and wait, signal the server's whole group to end and wait, then kill the rest."""

        process = self._process
        if process.stdin is not None:
            process.stdin.close()
        if not await self._ended():
            self._signal(signal.SIGTERM)
            await self._ended()
        # Even if the server has ended: its children may hold the pipes, or just continue.
        self._signal(signal.SIGKILL if sys.platform != "win32" else signal.SIGTERM)
        await self._ended()
        transport: asyncio.BaseTransport | None = getattr(process, "_transport", None)
        if transport is not None:
            # It waits for pipes that a process of another group may hold.
            with suppress(PermissionError):
                transport.close()

    async def exited(self) -> None:
        """Return a moment after the process has ended, whether or not its pipes are still held."""
        import asyncio

        if not hasattr(os, "pidfd_open"):
            await asyncio.Event().wait()
        loop, gone = asyncio.get_running_loop(), asyncio.Event()
        try:
            handle = os.pidfd_open(self.group)
        except OSError:
            return
        try:
            loop.add_reader(handle, gone.set)
            await gone.wait()
        finally:
            loop.remove_reader(handle)
            os.close(handle)
        await asyncio.sleep(_ORPHAN_SECONDS)

    async def _ended(self) -> bool:
        import asyncio

        # Not `wait()`, which also waits for pipes that a child of the server may hold.
        for _ in range(max(1, int(ENDING_SECONDS / _STEP_SECONDS))):
            if self._process.returncode is not None:
                return True
            await asyncio.sleep(_STEP_SECONDS)
        return self._process.returncode is not None

    def _signal(self, number: signal.Signals) -> None:
        with suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(self.group, number)
            elif self._process.returncode is None:
                self._process.send_signal(number)

    async def _line(self) -> bytes | None:
        import asyncio

        stdout = self._process.stdout
        assert stdout is not None  # noqa: S101
        try:
            return await stdout.readuntil(b"\n")
        except asyncio.LimitOverrunError:
            self.problem = f"sent a message of more than {MAX_MESSAGE_BYTES:,} bytes"
        except (asyncio.IncompleteReadError, OSError):
            pass
        return None

    def _message(self, line: bytes) -> SessionMessage | None:
        from mcp.shared.message import SessionMessage
        from mcp.types import jsonrpc_message_adapter
        from pydantic import ValidationError

        if not line.strip():
            return None
        try:
            return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
        except ValidationError as error:
            # Without the sent text: the library would cut it, and half a secret is not found.
            reason = error.errors(include_url=False, include_context=False, include_input=False)[0]["msg"]
        try:
            # More tolerant: accepts bytes that are not UTF-8, and some more levels.
            data: object = json.loads(line.decode("utf-8", "replace"))
            return SessionMessage(jsonrpc_message_adapter.validate_python(data, by_name=False))
        except (ValueError, RecursionError):
            self._bad_lines += 1
            self.unreadable = reason
        return self._failing(line)

    def _failing(self, line: bytes) -> SessionMessage | None:
        """Return an error for the request that was answered with an unreadable message, or None if it is not known."""
        from mcp.shared.message import SessionMessage
        from mcp.types import PARSE_ERROR, ErrorData, JSONRPCError

        match = _ID.search(line[:_NEAR]) or _ID.search(line[-_NEAR:])
        if match is None or not line.lstrip().startswith(b"{"):
            return None
        error = ErrorData(code=PARSE_ERROR, message=f"its answer cannot be read: {self.unreadable}")
        return SessionMessage(JSONRPCError(jsonrpc="2.0", id=int(match[1]), error=error))


@asynccontextmanager
async def open_pipes(
    parameters: StdioServerParameters, errors: TextIO
) -> AsyncIterator[tuple[TransportStreams, Pipes]]:
    """Start a server as the leader of its own process group; the whole group ends with the context. Raises
    `OSError`."""
    import asyncio

    import anyio
    from mcp.client.stdio import get_default_environment

    command = parameters.command
    if sys.platform == "win32":
        from mcp.os.win32.utilities import get_windows_executable_command

        command = get_windows_executable_command(command)
    process = await asyncio.create_subprocess_exec(
        command,
        *parameters.args,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=errors,
        env=get_default_environment() | (parameters.env or {}),
        cwd=parameters.cwd,
        limit=MAX_MESSAGE_BYTES,
        start_new_session=True,
    )
    pipes = Pipes(process)
    remember(pipes.group)
    incoming, received = anyio.create_memory_object_stream["SessionMessage | Exception"](0)
    sent, outgoing = anyio.create_memory_object_stream["SessionMessage"](0)
    reading = asyncio.create_task(pipes.read(incoming))
    writing = asyncio.create_task(pipes.write(outgoing))
    watching = asyncio.create_task(pipes.exited())
    watching.add_done_callback(lambda _: reading.cancel())
    reading.add_done_callback(lambda _: incoming.close())
    writing.add_done_callback(lambda _: incoming.close())
    try:
        yield (received, sent), pipes
    finally:
        # A cancelled caller must not leave a server behind; every wait in here is bounded.
        with anyio.CancelScope(shield=True):
            received.close()
            sent.close()
            await asyncio.wait([writing], timeout=_FLUSH_SECONDS)
            reading.cancel()
            draining = asyncio.create_task(pipes.drain())
            await pipes.end()
            for task in (watching, reading, writing, draining):
                task.cancel()
            await asyncio.gather(watching, reading, writing, draining, return_exceptions=True)
            forget(pipes.group)


_groups: set[int] = set()


def remember(group: int) -> None:
    """Remember a group. 0 is not a group: the caller may not know the number of a server."""
    if group > 1:
        _groups.add(group)


def forget(group: int) -> None:
    _groups.discard(group)


def kill(group: int) -> None:
    """Kill a group at once, with everything it has started. A forgotten group is left alone: its number may belong to
    another one now."""
    if group in _groups and hasattr(os, "killpg"):
        with suppress(OSError):
            os.killpg(group, signal.SIGKILL)


def kill_all() -> None:
    for group in tuple(_groups):
        kill(group)
