"""Limits on replies of services over HTTP: bytes in a line, in a body, and in a stream of events.

Client libraries collect a line, and a body, whole. An endless one would take all memory, and a few compressed bytes may
expand to gigabytes: so compression is neither requested nor accepted.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    import httpx2


class TooMuch(Exception):
    """A service sent more than it may, or sent it compressed; the message says what it did."""


class NotEvents(Exception):
    """A service sent something else instead of a stream of events, mostly a page of a proxy."""


class Limits(Struct, frozen=True):
    """Limits in bytes. `line` and `stream` are for streams of events, `body` for everything else."""

    line: int
    body: int
    stream: int


_HEAD = 4096
_DATA = re.compile(rb"^data:(?! ?\[DONE\])", re.MULTILINE)
"""An event. Some services end a stream with a mark that is not an event."""


def limit_responses(
    client: httpx2.AsyncClient,
    limits: Limits,
    report: Callable[[str], None] = lambda problem: None,
    *,
    needs_events: bool = False,
) -> None:
    """Count the bytes of every response of a client, with event hooks: a transport of our own would bypass proxies.

    `report` gets the problem, for libraries that swallow the exception. With `needs_events`, a stream of events that
    ends before its first one is a broken connection, and a successful response that is not a stream of events raises
    `NotEvents`: some libraries would take it for an empty reply.
    """
    import httpx2

    def too_much(problem: str) -> TooMuch:
        report(problem)
        return TooMuch(problem)

    class Counted(httpx2.AsyncByteStream):
        def __init__(self, stream: httpx2.AsyncByteStream, kind: str, *, good: bool) -> None:
            self._stream = stream
            self._kind = kind
            self._events = kind == "text/event-stream"
            self._needs_events = needs_events and good

        async def __aiter__(self) -> AsyncIterator[bytes]:
            total = line = 0
            head = b""
            most = limits.stream if self._events else limits.body
            async for chunk in self._stream:
                total += len(chunk)
                head += chunk[: _HEAD - len(head)]
                end = chunk.rfind(b"\n")
                line = line + len(chunk) if end < 0 else len(chunk) - end - 1
                if self._events and line > limits.line:
                    raise too_much(f"sent a line of more than {limits.line:,} bytes")
                if total > most:
                    raise too_much(f"sent more than {most:,} bytes")
                yield chunk
            if not self._needs_events or _DATA.search(head):
                return
            # Some services do not declare that they send events.
            if not self._events:
                raise NotEvents(self._kind)
            if total <= _HEAD:
                raise httpx2.RemoteProtocolError("the stream ended before its first event")

        async def aclose(self) -> None:
            await self._stream.aclose()

    async def ask_plainly(request: httpx2.Request) -> None:
        request.headers["accept-encoding"] = "identity"

    async def count(response: httpx2.Response) -> None:
        encoding = response.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("", "identity"):
            await response.aclose()
            raise too_much(f"sent its answer compressed ({encoding[:40]}), though it was asked not to")
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if needs_events and response.is_success and kind == "text/html":
            await response.aclose()
            raise NotEvents(kind)
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = Counted(response.stream, kind, good=response.is_success)

    client.event_hooks["request"].append(ask_plainly)
    client.event_hooks["response"].append(count)


def cause_of(error: BaseException) -> TooMuch | NotEvents | None:
    """Return the error of a response that a library wrapped in its own exception, or None."""
    return next((cause for cause in with_causes(error) if isinstance(cause, TooMuch | NotEvents)), None)


def with_causes(error: BaseException) -> list[BaseException]:
    """Return the error and all its causes: the libraries wrap it several times."""
    chain: list[BaseException] = []
    below: BaseException | None = error
    while below is not None and below not in chain:
        chain.append(below)
        below = below.__cause__ or below.__context__
    return chain
