"""Work that takes long: done in a process of its own, so that the editor is answered meanwhile."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from quire.errors import QuireError

MOST_AT_ONCE = 2


class Job:
    """One piece of work. `run` is called in the other process, `done` here, with the result or None if that died.

    `is_old` tells whether the result would be thrown away; the process is ended then.
    """

    __slots__ = ("done", "is_old", "run")

    def __init__(
        self,
        run: Callable[[], bytes],
        done: Callable[[bytes | None], None],
        is_old: Callable[[], bool] = lambda: False,
    ) -> None:
        self.run = run
        self.done = done
        self.is_old = is_old


def packed(result: object) -> bytes:
    """Return the result of a job as it goes from one process to the other."""
    import pickle  # only documents that take long need it

    return pickle.dumps(result)


def unpacked(result: bytes) -> Any:
    """Return the result of a job that a copy of this process has packed."""
    import pickle

    return pickle.loads(result)  # noqa: S301  # written by our own child


def _as_it_is(result: Any) -> Any:
    return result


class Errands:
    """Requests that are answered by jobs, a few at a time."""

    def __init__(self, answer: Callable[[object, Any], None], fail: Callable[[object, str], None]) -> None:
        self._answer = answer
        self._fail = fail
        self._waiting: deque[tuple[object, Callable[[], Any], Callable[[Any], Any]]] = deque()
        self._cancelled: set[object] = set()
        self._under_way: set[object] = set()

    def add(self, request: object, work: Callable[[], Any], then: Callable[[Any], Any] = _as_it_is) -> None:
        """Answer a request with the result of a function, once it is done. `then` is called in this process: it may
        keep the result, and returns the answer."""
        self._waiting.append((request, work, then))

    @property
    def is_due(self) -> bool:
        return bool(self._waiting) and len(self._under_way) < MOST_AT_ONCE

    def cancelled(self, request: object) -> bool:
        """Drop a request. Return False if it is not one of these."""
        if request in self._under_way:
            self._cancelled.add(request)
            return True
        kept = deque(one for one in self._waiting if one[0] != request)
        known = len(kept) < len(self._waiting)
        self._waiting = kept
        return known

    def next(self) -> Job | None:
        """Return the next job; None if none is due."""
        if not self.is_due:
            return None
        request, work, then = self._waiting.popleft()
        self._under_way.add(request)

        def run() -> bytes:
            try:
                return packed((work(), ""))
            except QuireError as error:
                return packed((None, str(error)))
            except Exception as error:  # told to the editor, like a mistake in this process
                return packed((None, f"{type(error).__name__}: {error}"))

        def done(result: bytes | None) -> None:
            self._under_way.discard(request)
            if request in self._cancelled:
                self._cancelled.discard(request)
                return
            if result is None:
                self._fail(request, "the process that did the work has ended")
                return
            answer, problem = unpacked(result)
            self._fail(request, problem) if problem else self._answer(request, then(answer))

        return Job(run, done, lambda: request in self._cancelled)
