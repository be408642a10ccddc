"""Replies that models write now, so that a listener that comes late can read them from their first letter.

Only runs that this process drives have deltas. A text is dropped when its effect is recorded, begun again when the call
is made again, and loses its beginning where it or its run grows too long.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

if TYPE_CHECKING:
    from quire.engine.records import Event

MOST_OF_CALL = 200_000
"""Characters that are kept of one reply, and of all replies of one run together."""
MOST_OF_RUN = 2_000_000


class OpenReply(Struct):
    """The end of a reply. `first` is the offset of the first character that is kept, `end` that of the next one."""

    delta: Event
    pieces: deque[str] = field(default_factory=deque)
    first: int = 0
    end: int = 0

    @property
    def size(self) -> int:
        return self.end - self.first

    def drop(self, most: int) -> None:
        """Drop the oldest pieces beyond a number of characters."""
        while self.size > most and self.pieces:
            self.first += len(self.pieces.popleft())


class OpenReplies:
    """The replies under way of all runs that this process drives."""

    def __init__(self) -> None:
        self._runs: dict[str, dict[str, OpenReply]] = {}

    def take(self, event: Event) -> Event:
        """Take an event as it happens. Return it; a delta with its offset in the reply."""
        replies = self._runs.get(event.run)
        if event.type == "delta":
            replies = self._runs.setdefault(event.run, {}) if replies is None else replies
            reply = replies.setdefault(event.path, OpenReply(event))
            offset, text = reply.end, str(event.live.get("text", ""))
            reply.pieces.append(text)
            reply.end += len(text)
            reply.drop(MOST_OF_CALL)
            if sum(other.size for other in replies.values()) > MOST_OF_RUN:
                longest = max(replies.values(), key=lambda other: other.size)
                longest.drop(longest.size // 2)
            return replace(event, live={**event.live, "offset": offset})
        if replies is not None and event.type in ("effect", "retry"):
            replies.pop(event.path, None)
        if event.type.startswith("run_"):
            self.forget(event.run)
        return event

    def forget(self, run: str) -> None:
        """Drop the replies of a run that nothing drives any more."""
        self._runs.pop(run, None)

    def text(self, run: str, path: str) -> tuple[int, str] | None:
        """Return the text so far of a reply, after the offset of its first character that is kept."""
        reply = self._runs.get(run, {}).get(path)
        return None if reply is None else (reply.first, "".join(reply.pieces))

    def deltas(self, run: str) -> Iterator[Event]:
        """Yield one delta for each reply under way, with all that is kept of it; `cut` says that its beginning is
        not."""
        for reply in self._runs.get(run, {}).values():
            live = {"text": "".join(reply.pieces), "offset": reply.first}
            yield replace(reply.delta, live={**live, "cut": True} if reply.first else live)
