"""The steps of a run as notifications: progress for clients that gave a token, and a log message for each event."""

from __future__ import annotations

import asyncio
import contextlib
import warnings
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from mcp.shared.exceptions import MCPDeprecationWarning

if TYPE_CHECKING:
    import mcp_types as types
    from mcp.server.session import ServerSession

    from quire.engine.events import Listener
    from quire.engine.records import Event
    from quire.values import Value

LOGGER = "quire"
_STEPS = {"step_started": "pipeline_step_started", "step_completed": "pipeline_step_completed"}


@contextlib.asynccontextmanager
async def reporting(session: ServerSession, request: types.RequestId | None, *, log: bool) -> AsyncIterator[Listener]:
    """Yield a listener for a drive; all its notifications have been sent when the context ends.

    Only steps of the document itself are reported, and no replayed ones.
    """
    heard: asyncio.Queue[Event | None] = asyncio.Queue()

    def listen(event: Event) -> None:
        if event.type in _STEPS and event.path.isdecimal() and not event.replayed:
            heard.put_nowait(event)

    async def send() -> None:
        while (event := await heard.get()) is not None:
            # A client that is gone misses its notifications; that does not affect the run.
            with contextlib.suppress(Exception):
                await _send(session, request, event, log)

    sending = asyncio.create_task(send())
    try:
        yield listen
    finally:
        heard.put_nowait(None)
        await asyncio.gather(sending, return_exceptions=True)


async def _send(session: ServerSession, request: types.RequestId | None, event: Event, log: bool) -> None:
    number, started = int(event.path), event.type == "step_started"
    total = event.data.get("total")
    title = str(event.data.get("title", ""))
    # Progress has to grow with each notification: a step that has started counts half.
    done = number - 0.5 if started else float(number)
    text = f"step {event.label} ({title}) {'started' if started else 'completed'}"
    await session.report_progress(done, float(total) if isinstance(total, int) else None, text)
    if not log:
        return
    data: dict[str, Value] = {
        "event": _STEPS[event.type],
        "run_id": event.run,
        "step": event.label,
        "title": title,
        "total": total,
    }
    with warnings.catch_warnings():
        # Logging is deprecated in the newest protocol and still how older clients show what happens.
        warnings.simplefilter("ignore", MCPDeprecationWarning)
        message = session.send_log_message("info", data, LOGGER, related_request_id=request)
    await message
