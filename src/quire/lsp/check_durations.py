"""How long the checks of documents take, by which it is decided where and when they are made."""

from __future__ import annotations


class CheckDurations:
    """How long a part of the check of each document takes: the shorter one of its last two times. One alone says
    little, because it may have loaded modules, or waited for other work of the machine.

    Times are seconds of the processor. A copy of this process takes longer than this one, so a document whose check has
    gone there by mistake would never come back.
    """

    def __init__(self) -> None:
        self._last_two: dict[str, tuple[float, ...]] = {}

    def note(self, uri: str, seconds: float) -> None:
        self._last_two[uri] = (*self._last_two.get(uri, ())[-1:], seconds)

    def of(self, uri: str) -> float | None:
        """Return the seconds; None if it was never measured."""
        return min(self._last_two.get(uri, ()), default=None)

    def is_long(self, uri: str, seconds: float) -> bool:
        """Tell whether it took so long both times."""
        times = self._last_two.get(uri, ())
        return len(times) == 2 and min(times) >= seconds

    def forget(self, uri: str) -> None:
        self._last_two.pop(uri, None)
