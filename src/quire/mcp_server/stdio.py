"""The server on stdin and stdout, for a client that starts it as its own process."""

from __future__ import annotations

import asyncio
import os
import signal

from mcp.server.stdio import stdio_server

from quire.mcp_server.server import Host

INTERRUPTED = 130


async def serve_stdio(host: Host) -> None:
    """Until the client closes stdin. While it serves, whatever else writes to stdout ends up on stderr."""
    loop = asyncio.get_running_loop()
    ending: list[asyncio.Task[None]] = []

    def end() -> None:
        if not ending:
            ending.append(loop.create_task(_end_at_once(host)))

    for number in (signal.SIGINT, signal.SIGTERM):
        try:
            loop.add_signal_handler(number, end)
        except NotImplementedError:
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(end))
    options = host.server.create_initialization_options()
    async with stdio_server() as (incoming, outgoing):
        await host.server.run(incoming, outgoing, options)


async def _end_at_once(host: Host) -> None:
    """Nobody can call back the thread that reads stdin, and it would keep the process: so that ends without it."""
    try:
        await host.calls.stop()
    finally:
        os._exit(INTERRUPTED)
