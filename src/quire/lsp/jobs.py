"""Work that takes long: done in a process of its own, so that the editor is answered meanwhile."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from quire.errors import QuireError

if TYPE_CHECKING:
    from quire.lsp.progress import Progress, Tell

MOST_AT_ONCE = 2


class Job:
    """One piece of work. `run` is called in the other process, `done` here, with the result or None if that died.

    `is_old` tells whether the result would be thrown away; the process is ended then. Meanwhile the other process may
    `send` messages, which are passed to `heard` here.
    """

    __slots__ = ("done", "heard", "is_old", "run", "send")

    def __init__(
        self,
        run: Callable[[], bytes],
        done: Callable[[bytes | None], None],
        is_old: Callable[[], bool] = lambda: False,
        heard: Callable[[bytes], None] = lambda _message: None,
    ) -> None:
        self.run = run
        self.done = done
        self.is_old = is_old
        self.heard = heard
        self.send: Callable[[bytes], None] = lambda _message: None
        """Set in the other process."""

    def tell(self, done: int, of: int) -> None:
        """Send how many parts are done, whenever that is another percentage."""
        if of and 100 * done // of != 100 * (done - 1) // of:
            self.send(packed((done, of)))


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


class Later(Exception):  # not an error: the answer comes later
    """Ends the handling of a request whose answer comes later."""

    def __init__(self, work: Callable[[Tell], Any], then: Callable[[Any], Any], title: str, *, long: bool) -> None:
        super().__init__()
        self.work = work
        self.then = then
        self.title = title
        self.long = long


class Unasked:
    """Stands for the request of work that no request has asked for. Its result is kept, and not sent."""


class Errands:
    """Requests that are answered by jobs, a few at a time."""

    def __init__(self, answer: Callable[[object, Any], None], fail: Callable[[object, str], None]) -> None:
        self._answer = answer
        self._fail = fail
        self._waiting: deque[tuple[object, Callable[[Tell], Any], Callable[[Any], Any], Progress | None]] = deque()
        self._cancelled: set[object] = set()
        self._under_way: set[object] = set()

    def add(
        self,
        request: object,
        work: Callable[[Tell], Any],
        then: Callable[[Any], Any] = _as_it_is,
        progress: Progress | None = None,
    ) -> None:
        """Answer a request with the result of a function, once it is done. The function may tell how far it is. `then`
        is called in this process: it may keep the result, and returns the answer."""
        self._waiting.append((request, work, then, progress))

    @property
    def is_due(self) -> bool:
        return bool(self._waiting) and len(self._under_way) < MOST_AT_ONCE

    def cancelled(self, request: object) -> bool:
        """Drop a request. Return False if it is not one of these."""
        if request in self._under_way:
            self._cancelled.add(request)
            return True
        for one, _, _, progress in self._waiting:
            if one == request and progress is not None:
                progress.end()
        kept = deque(one for one in self._waiting if one[0] != request)
        known = len(kept) < len(self._waiting)
        self._waiting = kept
        return known

    def next(self) -> Job | None:
        """Return the next job; None if none is due."""
        if not self.is_due:
            return None
        request, work, then, progress = self._waiting.popleft()
        self._under_way.add(request)

        def run() -> bytes:
            try:
                return packed((work(job.tell), ""))
            except QuireError as error:
                return packed((None, str(error)))
            except Exception as error:  # told to the editor, like a mistake in this process
                return packed((None, f"{type(error).__name__}: {error}"))

        def done(result: bytes | None) -> None:
            self._under_way.discard(request)
            if progress is not None:
                progress.end()
            if request in self._cancelled:
                self._cancelled.discard(request)
                return
            if isinstance(request, Unasked):
                answer, problem = unpacked(result) if result is not None else (None, "it died")
                if not problem:
                    then(answer)
                return
            if result is None:
                self._fail(request, "the process that did the work has ended")
                return
            answer, problem = unpacked(result)
            self._fail(request, problem) if problem else self._answer(request, then(answer))

        def heard(message: bytes) -> None:
            if progress is not None:
                progress.tell(*unpacked(message))

        job = Job(run, done, lambda: request in self._cancelled, heard)
        return job
