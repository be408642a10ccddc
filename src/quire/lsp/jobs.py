"""Work that takes long, done in a process of its own while the editor is answered, and its progress in the editor.

Work is shown (`window/workDoneProgress` and `$/progress`) once it has taken half a second, so that short work does not
flicker. A request may bring the token under which it is shown; without one, the editor is asked for a place first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from quire.errors import QuireError

if TYPE_CHECKING:
    from quire.lsp.protocol import ClientCapabilities, Message


MOST_AT_ONCE = 2
Key = TypeVar("Key")
Kept = TypeVar("Kept")


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
        """Send how many parts are done, each time the percentage changes."""
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


def keep_newest(table: dict[Key, Kept], key: Key, value: Kept, most: int) -> None:
    """Keep a value in a table of at most `most`, from which the oldest ones are dropped."""
    table.pop(key, None)
    table[key] = value
    while len(table) > most:
        del table[next(iter(table))]


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
        then: Callable[[Any], Any] = lambda result: result,
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
        for waiting_request, _, _, progress in self._waiting:
            if waiting_request == request and progress is not None:
                progress.end()
        left = deque(errand for errand in self._waiting if errand[0] != request)
        was_there = len(left) < len(self._waiting)
        self._waiting = left
        return was_there

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
            died = "the process that did the work has ended"
            answer, problem = unpacked(result) if result is not None else (None, died)
            if not problem:
                answer = then(answer)
            if not isinstance(request, Unasked):
                self._fail(request, problem) if problem else self._answer(request, answer)

        def heard(message: bytes) -> None:
            if progress is not None:
                progress.tell(*unpacked(message))

        job = Job(run, done, lambda: request in self._cancelled, heard)
        return job


SHOWN_AFTER_SECONDS = 0.5
"""Work that takes less is not shown."""
Token = int | str
Tell = Callable[[int, int], None]
"""Notes how many parts of how many are done."""


class Progress:
    """The progress of one piece of work."""

    def __init__(self, board: ProgressBoard, title: str, stop: Callable[[], None], *, asks: bool) -> None:
        self._board = board
        self._title = title
        self._asks = asks
        self.stop = stop
        """Called when the user stops the work."""
        self.tokens: list[Token] = []
        self._began_at = board.clock()
        self.show_at: float | None = None
        """When it is to be shown; None if it is not to be shown, is shown already, or has ended."""
        self._is_shown = False
        self._done = (0, 0)

    def show_later(self, *tokens: Token) -> None:
        """Have it shown under the tokens of requests, or where the editor makes a place, if it takes long."""
        self.tokens += tokens
        if not self._is_shown:
            self.show_at = self._began_at + SHOWN_AFTER_SECONDS
        for token in tokens if self._is_shown else ():
            self._begin(token)

    def show(self) -> None:
        self.show_at, self._is_shown = None, True
        if not self.tokens and self._asks:
            self._board.create(self)
        for token in self.tokens:
            self._begin(token)

    def created(self, token: Token) -> None:
        """Begin, because the editor has made a place. If the work has ended meanwhile, the place is given back."""
        self._begin(token)
        if self._is_shown:
            self.tokens.append(token)
        else:
            self._board.send(token, {"kind": "end"})

    def tell(self, done: int, of: int) -> None:
        """Note how many parts are done."""
        self._done = (done, of)
        for token in self.tokens if self._is_shown else ():
            self._board.send(token, {"kind": "report", **self._words()})

    def end(self) -> None:
        for token in self.tokens if self._is_shown else ():
            self._board.send(token, {"kind": "end"})
        self.tokens = []
        self.show_at, self._is_shown = None, False
        self._board.forget(self)

    def end_under(self, token: Token) -> None:
        """Show it no longer under the token of a request that was cancelled."""
        if token in self.tokens:
            self.tokens.remove(token)
            if self._is_shown:
                self._board.send(token, {"kind": "end"})

    def _begin(self, token: Token) -> None:
        value = {"kind": "begin", "title": self._title, "cancellable": True, "percentage": 0}
        self._board.send(token, {**value, **self._words()})

    def _words(self) -> dict[str, object]:
        done, of = self._done
        return {"message": f"{done:,} of {of:,}", "percentage": 100 * done // of} if of else {}


class ProgressBoard:
    """All work of a session whose progress is shown, or may be."""

    def __init__(self, send: Callable[[Message], None], client: ClientCapabilities, clock: Callable[[], float]) -> None:
        self._send = send
        self._client = client
        self.clock = clock
        self._open: list[Progress] = []
        self._creating: dict[Token, Progress] = {}
        """Places that the editor was asked for, by their tokens, which are the ids of these requests as well."""
        self._number = 0

    def start(self, title: str, stop: Callable[[], None], *tokens: Token, asks: bool = False) -> Progress:
        """Note that work begins. It is shown under the tokens of requests; with `asks` the editor is asked for a place
        if it sent no token and can show progress."""
        asks = asks and self._client.can("window.workDoneProgress")
        progress = Progress(self, title, stop, asks=asks)
        self._open.append(progress)
        if tokens or asks:
            progress.show_later(*tokens)
        return progress

    @property
    def next_at(self) -> float | None:
        """When the next progress is to be shown; None if none waits."""
        return min((progress.show_at for progress in self._open if progress.show_at is not None), default=None)

    def show_due(self) -> bool:
        """Show the work that has taken long enough. Return False if there is none."""
        now = self.clock()
        due = [progress for progress in self._open if progress.show_at is not None and progress.show_at <= now]
        for progress in due:
            progress.show()
        return bool(due)

    def create(self, progress: Progress) -> None:
        self._number += 1
        token = f"quire-progress-{self._number}"
        self._creating[token] = progress
        message = {"id": token, "method": "window/workDoneProgress/create", "params": {"token": token}}
        self._send({"jsonrpc": "2.0", **message})

    def answered(self, request: object, *, well: bool) -> None:
        """Take the editor's answer to a request for a place. Answers to other requests are ignored."""
        progress = self._creating.pop(request, None) if isinstance(request, int | str) else None
        if progress is not None and well and isinstance(request, int | str):
            progress.created(request)

    def stopped(self, token: object) -> None:
        """Stop the work that is shown under a token. A token that is not known is ignored."""
        for progress in [progress for progress in self._open if token in progress.tokens]:
            progress.stop()

    def send(self, token: Token, value: dict[str, object]) -> None:
        self._send({"jsonrpc": "2.0", "method": "$/progress", "params": {"token": token, "value": value}})

    def forget(self, progress: Progress) -> None:
        self._open = [other for other in self._open if other is not progress]
