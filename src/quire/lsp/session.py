"""The conversation with an editor, without input and output: messages go in, messages come out.

`take` queues a message, `work` does one thing, `wait` says for how long nothing is to be done. So a request that is
cancelled while it waits in the queue is never begun, and a test needs neither processes nor time.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from quire.errors import QuireError
from quire.lsp.jobs import Errands, Later
from quire.lsp.protocol import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    NOT_INITIALIZED,
    PARSE_ERROR,
    REQUEST_CANCELLED,
    REQUEST_FAILED,
    ClientCapabilities,
    Malformed,
    Message,
    Outbox,
    RequestFailed,
    folders_in,
    known_results,
    process_in,
    roots_in,
    tokens_in,
    uri_in,
    version_in,
)

if TYPE_CHECKING:
    from quire.lsp.checks import Checks
    from quire.lsp.desk import Desk
    from quire.lsp.document_text import Encoding
    from quire.lsp.jobs import Job, Progress, ProgressBoard, Tell
    from quire.lsp.languages import ModuleLoads
    from quire.models.choose import ModelSettings

MOST_QUEUED = 10_000
LOAD_SECONDS = 0.25
"""The modules of the first hover and completion are loaded so long after the last change, before they are asked for."""
REFRESH_SECONDS = 0.5
"""Hints, lenses and colours of other documents are asked for again so long after the last change."""


class Session:
    """One session, from `initialize` to `exit`."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic, forks: bool = False) -> None:
        self._clock = clock
        self._forks = forks
        self._queue: deque[Message] = deque()
        self._queued: dict[object, int] = {}
        """How many requests of the queue have each id. A cancellation must not search the queue: an editor may send
        thousands of both."""
        self._cancelled: set[object] = set()
        self.outbox = Outbox()
        self.client = ClientCapabilities({})
        self._state = "new"
        self.encoding: Encoding = "utf-16"
        self._opened: Mapping[str, Any] = {}
        self.ended: int | None = None
        """The exit code, once the session is over."""
        self.process: int | None = None
        """The process of the editor; the session ends with it."""
        self.errands = Errands(
            self.outbox.answer, lambda request, reason: self.outbox.fail(request, REQUEST_FAILED, reason)
        )
        self._desk: Desk | None = None
        self._checks: Checks | None = None
        self._refresh_at: float | None = None
        self._load_at: float | None = None
        self._loads: ModuleLoads | None = None
        self._progress: ProgressBoard | None = None

    @property
    def progress(self) -> ProgressBoard:
        if self._progress is None:
            from quire.lsp.jobs import ProgressBoard

            self._progress = ProgressBoard(self.outbox.send, self.client, self._clock)
        return self._progress

    @property
    def desk(self) -> Desk:
        if self._desk is None:
            from quire.lsp.desk import Desk

            self._desk = Desk()
            self._desk.prices.on_change = lambda: self.refresh("codeLens")
        return self._desk

    @property
    def checks(self) -> Checks:
        if self._checks is None:
            from quire.lsp.checks import Checks
            from quire.lsp.findings import Publisher

            publisher = Publisher(self.outbox, self.client)
            self._checks = Checks(self.desk, publisher, self._clock, self.progress, forks=self._forks)
        return self._checks

    # Messages

    def take(self, message: Message | Malformed) -> None:
        """Queue a message. A cancellation takes effect at once."""
        if isinstance(message, Malformed):
            self.outbox.fail(None, PARSE_ERROR, message.reason)
            return
        if message.get("method") == "$/cancelRequest":
            params = message.get("params")
            request = params.get("id") if isinstance(params, Mapping) else None
            if isinstance(request, int | str):
                self._cancel(request)
            return
        if "id" in message and not isinstance(message["id"], int | float | str | None):
            self.outbox.fail(None, INVALID_REQUEST, "the id of a message is a number or a text")
            return
        if len(self._queue) >= MOST_QUEUED:
            if "id" in message and "method" in message:
                self.outbox.fail(message["id"], REQUEST_FAILED, "too many messages wait")
            return
        self._queue.append(message)
        if "id" in message and "method" in message:
            self._queued[message["id"]] = self._queued.get(message["id"], 0) + 1

    def work(self) -> Job | None:
        """Handle the next message, or check a document. Return work for another process, if there is some."""
        if self._queue:
            self._handle(self._next_message())
            return None
        if self._progress is not None and self._progress.show_due():
            return None
        if self.errands.is_due:
            return self.errands.next()
        if self._refresh_at is not None and self._refresh_at <= self._clock():
            self._refresh_at = None
            self.refresh("inlayHint", "codeLens", "semanticTokens")
            return None
        if self._reads_more and (self._checks is None or not self._checks.is_due):
            return self.desk.last_runs.next() or self.desk.prices.next()
        try:
            if self._load_at is not None and self._load_at <= self._clock() and not self.checks.is_due:
                self._load_next(self._load_at)
                return None
            return self.checks.work() if self._checks is not None else None
        except Exception as error:  # a mistake of ours ends one check, never the session
            self.outbox.log("a check failed", error)
            return None

    def finish(self, job: Job, result: bytes | None) -> None:
        """Take the result of a job that another process has done; None if that process died."""
        try:
            job.done(result)
        except Exception as error:  # as above
            self.outbox.log("the result of a check cannot be shown", error)

    def hear(self, job: Job, message: bytes) -> None:
        """Take a message of another process, which continues with its job."""
        try:
            job.heard(message)
        except Exception as error:  # as above
            self.outbox.log("a message of a job cannot be shown", error)

    @property
    def _reads_more(self) -> bool:
        """True if runs or prices are to be read for hovers and lenses."""
        return self._desk is not None and (self._desk.last_runs.is_due or self._desk.prices.is_due)

    def later(
        self,
        work: Callable[[Tell], Any],
        then: Callable[[Any], Any] = lambda result: result,
        *,
        title: str = "",
        long: bool = False,
    ) -> NoReturn:
        """Answer the request that is being handled with the result of a function, in a process of its own. `then` is
        called here with the result: it may keep it, and returns the answer. The progress is shown under a title if the
        request has a token for it; of work that may be long, also without one."""
        raise Later(work, then, title, long=long)

    def refresh(self, *parts: str) -> None:
        """Ask the editor to ask again for `codeLens`, `inlayHint` or `semanticTokens`, if it can."""
        self.outbox.refresh(self.client, *parts)

    @property
    def wait(self) -> float | None:
        """The seconds until something is to be done: 0 for now, None for nothing."""
        if self._queue or self.errands.is_due or self._reads_more:
            return 0.0
        times = (
            self._refresh_at,
            self._load_at,
            self._checks.next_at if self._checks is not None else None,
            self._progress.next_at if self._progress is not None else None,
        )
        at = min((time for time in times if time is not None), default=None)
        return None if at is None else max(0.0, at - self._clock())

    def sent(self) -> list[Message]:
        """Return the messages for the editor since the last call."""
        return self.outbox.take()

    def _cancel(self, request: int | str) -> None:
        if request in self._queued:
            self._cancelled.add(request)
        elif self.errands.cancelled(request) or (self._checks is not None and self._checks.cancelled(request)):
            self.outbox.fail(request, REQUEST_CANCELLED, "cancelled")

    def _next_message(self) -> Message:
        message = self._queue.popleft()
        if "id" in message and "method" in message:
            left = self._queued.pop(message["id"]) - 1
            if left:
                self._queued[message["id"]] = left
        return message

    def _handle(self, message: Message) -> None:
        method, request = message.get("method"), message.get("id")
        if not isinstance(method, str):
            if "result" not in message and "error" not in message:
                self.outbox.fail(request, INVALID_REQUEST, "a message needs a method")
            elif self._progress is not None:
                self._progress.answered(request, well="error" not in message)
            return
        params = message.get("params")
        params = params if isinstance(params, Mapping) else {}
        if "id" not in message:
            self._notified(method, params)
            return
        if request in self._cancelled:
            self._cancelled.discard(request)
            self.outbox.fail(request, REQUEST_CANCELLED, "cancelled")
            return
        try:
            self._requested(request, method, params)
        except Later as later:
            self.errands.add(request, later.work, later.then, self._progress_of(request, params, later))
        except RequestFailed as error:
            self.outbox.fail(request, error.number, str(error))
        except QuireError as error:
            self.outbox.fail(request, REQUEST_FAILED, str(error))
        except Exception as error:  # a mistake of ours ends one request, never the session
            self.outbox.fail(request, INTERNAL_ERROR, f"{type(error).__name__}: {error}")
            self.outbox.log(f"{method} failed", error)

    def _progress_of(self, request: object, params: Mapping[str, Any], later: Later) -> Progress | None:
        """Return the progress of work that answers a request; None for a request that shows none."""
        if not later.title or not isinstance(request, int | str):
            return None
        tokens = tokens_in(params)
        return self.progress.start(later.title, lambda: self._cancel(request), *tokens, asks=later.long)

    # Requests

    def _requested(self, request: object, method: str, params: Mapping[str, Any]) -> None:
        if method == "initialize":
            if self._state != "new":
                raise RequestFailed("the session is initialized already", INVALID_REQUEST)
            self.outbox.answer(request, self._initialize(params))
            return
        if self._state == "new":
            raise RequestFailed("initialize comes first", NOT_INITIALIZED)
        if self._state == "shut":
            raise RequestFailed("the session is shut down", INVALID_REQUEST)
        if method == "shutdown":
            self._state = "shut"
            self.outbox.answer(request, None)
        elif method == "textDocument/diagnostic":
            result_id = params.get("previousResultId")
            self.checks.asked(request, uri_in(params), result_id if isinstance(result_id, str) else "")
        elif method == "workspace/diagnostic":
            known_ids = known_results(params.get("previousResultIds"))
            self.checks.survey.asked(request, known_ids, *tokens_in(params))
        else:
            from quire.lsp.languages import SEARCHES, handler

            answer = handler(method)
            if answer is None:
                raise RequestFailed(f"{method} is not known", METHOD_NOT_FOUND)
            if self._forks and method in SEARCHES:
                self.later(lambda _tell: (answer(self, params), self.desk.prices.wanted), self._searched)
            self.outbox.answer(request, answer(self, params))

    def _searched(self, result: tuple[Any, Mapping[str, ModelSettings]]) -> Any:
        """Return the answer of a copy of this process, and have the prices read that it has asked for there."""
        answer, settings = result
        self.desk.prices.want(settings)
        return answer

    def _initialize(self, params: Mapping[str, Any]) -> dict[str, object]:
        from quire.lsp.languages import SERVER_INFO, server_capabilities

        self.client = ClientCapabilities(params.get("capabilities"))
        self.process = process_in(params)
        self.encoding = self.client.encoding
        self._opened = params
        self._state = "ready"
        return {
            "capabilities": server_capabilities(self.encoding, pulls=self.client.pulls),
            "serverInfo": SERVER_INFO,
        }

    # Notifications

    def _notified(self, method: str, params: Mapping[str, Any]) -> None:
        if method == "exit":
            self.ended = 0 if self._state == "shut" else 1
            return
        if self._state != "ready":
            return
        try:
            self._changed(method, params)
        except Exception as error:  # a mistake of ours must not end the session
            self.outbox.log(f"{method} failed", error)

    def _changed(self, method: str, params: Mapping[str, Any]) -> None:
        match method:
            case "initialized":
                self._begin()
            case "textDocument/didOpen":
                document = params.get("textDocument")
                if isinstance(document, Mapping) and isinstance(document.get("text"), str):
                    opened = self.desk.open(uri_in(params), version_in(document), document["text"])
                    if opened is not None:
                        self.checks.changed(opened, typed=False)
                        self.desk.read_last_run(opened)
                        self._load_later(opened.format)
            case "textDocument/didChange":
                changes = params.get("contentChanges")
                document = params.get("textDocument")
                changed = self.desk.change(
                    uri_in(params), version_in(document), changes if isinstance(changes, list) else []
                )
                if changed is not None:
                    self.checks.changed(changed)
                    self._load_later(changed.format)
                    if any(self.desk.beside(changed)):
                        self._refresh_later()
            case "textDocument/didClose":
                closed = self.desk.close(uri_in(params))
                if closed is not None:
                    self.checks.closed(closed)
                    self.checks.workspace_changed()
                    self.checks.survey.files_changed()
            case "textDocument/didSave" | "workspace/didChangeWatchedFiles":
                if method == "textDocument/didSave":
                    self.desk.saved(uri_in(params))
                self.desk.forget_places()
                self.checks.workspace_changed()
                self.checks.survey.files_changed()
                self._refresh_later()
            case "quire/didRunTests":
                from quire.lsp.features.commands import tests_ran

                tests_ran(self, params)
            case "window/workDoneProgress/cancel":
                self.progress.stopped(params.get("token"))
            case "workspace/didChangeWorkspaceFolders":
                event = params.get("event")
                event = event if isinstance(event, Mapping) else {}
                self._move_roots(event.get("added"), event.get("removed"))

    def _refresh_later(self) -> None:
        """Have hints of open documents asked for again, because something that they read has changed. Each further
        change puts it off, so that it does not happen while a word is typed."""
        self._refresh_at = self._clock() + REFRESH_SECONDS

    def _load_later(self, format: str) -> None:
        """Have the modules loaded that answer about a place of a document, when the user pauses."""
        if self._loads is None:
            from quire.lsp.languages import ModuleLoads

            self._loads = ModuleLoads()
        if self._loads.want(format):
            self._load_at = self._clock() + LOAD_SECONDS

    def _load_next(self, at: float) -> None:
        self._load_at = None  # also if a module cannot be loaded
        if self._loads is not None and self._loads.next():
            self._load_at = at

    def _begin(self) -> None:
        desk = self.desk
        desk.encoding = self.encoding
        ways = ("textDocument.publishDiagnostics", "textDocument.diagnostic")
        desk.links_codes = any(self.client.can(f"{way}.codeDescriptionSupport") for way in ways)
        desk.roots = roots_in(self._opened)
        self.checks.survey.files_changed()
        self.outbox.watch_files(self.client)

    def _move_roots(self, added: object, removed: object) -> None:
        self.desk.move_roots(folders_in(added), folders_in(removed))
        self.checks.workspace_changed()
        self.checks.survey.files_changed()
