"""Server-sent events: the bytes of one event, and a response that sends them until the client leaves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

from msgspec import Struct
from starlette.responses import StreamingResponse

from quire.values import encode

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from quire.values import Value

MEDIA_TYPE = "text/event-stream"
RETRY_MILLISECONDS = 2000
COMMENT_SECONDS = 15.0
"""A comment is sent after so much silence, so that proxies and clients see that the connection lives."""


class Frame(Struct, frozen=True):
    """One event on its way to a client. An event without an `id` is not repeated after a reconnect."""

    event: str
    data: Value
    id: str = ""

    def encode(self) -> bytes:
        # JSON of one line: a line break would end the field.
        head = f"id: {self.id}\n" if self.id else ""
        return f"{head}event: {self.event}\ndata: {encode(self.data)}\n\n".encode()


class EventStream(StreamingResponse):
    """The response that sends these frames. It ends when they end or the client leaves; then `leave` is called, even if
    nothing was sent."""

    def __init__(self, frames: AsyncIterator[Frame], leave: Callable[[], None]) -> None:
        headers = {"X-Accel-Buffering": "no", "Cache-Control": "no-store"}
        super().__init__(_bytes(frames), media_type=MEDIA_TYPE, headers=headers)
        self._leave = leave

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._leave()


async def _bytes(frames: AsyncIterator[Frame]) -> AsyncIterator[bytes]:
    yield f"retry: {RETRY_MILLISECONDS}\n\n".encode()
    following = asyncio.ensure_future(anext(frames, None))
    try:
        while True:
            done, _ = await asyncio.wait([following], timeout=COMMENT_SECONDS)
            if not done:
                yield b": still here\n\n"
                continue
            frame = following.result()
            if frame is None:
                return
            yield frame.encode()
            following = asyncio.ensure_future(anext(frames, None))
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        if hasattr(frames, "aclose"):
            await frames.aclose()
