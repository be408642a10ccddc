"""The language operation: findings, hovers, completions and fixes for the page's editor, from sessions of `quire lsp`.

A session belongs to one tab and one document. It works in a thread of its own with its own open texts, so no unsaved
text is ever read by a run, and a slow document keeps neither other requests nor the event loop waiting.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import unquote

from msgspec import Meta

from quire.lsp.desk import uri_of
from quire.lsp.session import Session
from quire.operations.documents import OfDocument
from quire.operations.field_types import Object, operation, shape
from quire.operations.problems import Problem
from quire.source import MAX_DOCUMENT_BYTES

if TYPE_CHECKING:
    from quire.server.routes import RequestHost
    from quire.values import Value

MOST_SESSIONS = 8
IDLE_SECONDS = 600.0
MOST_WAITING = 8
"""Requests that one session has not begun yet."""
ANSWER_SECONDS = 2.0
"""A request waits so long. Later answers are returned to the next request of the session."""
QUIET_SECONDS = 0.5
"""Work that is due later than this does not keep an answer waiting."""
READS = frozenset({"textDocument/didOpen", "textDocument/hover", "textDocument/semanticTokens/full"})
EDITS = READS | {f"textDocument/{name}" for name in ("didChange", "completion", "codeAction", "codeLens", "definition")}
"""Allowed methods, without and with `--edit`."""
NOTIFICATIONS = frozenset({"textDocument/didOpen", "textDocument/didChange"})
_PARAMETERS = ("position", "range", "context", "contentChanges")
_CLIENT = {"textDocument": {"hover": {"contentFormat": ["markdown"]}}}


class LanguageSession(threading.Thread):
    """One session in a thread, which ends when it is told to or when nothing has come for ten minutes."""

    def __init__(self, uri: str) -> None:
        super().__init__(name="language", daemon=True)
        self.uri = uri
        self.used_at = time.monotonic()
        self.is_ended = False
        self._loop = asyncio.get_running_loop()
        self._arrived: SimpleQueue[list[dict[str, Any]]] = SimpleQueue()
        self._moved = asyncio.Condition()
        self._put = self._done = 0
        """How many lists of messages came, and how many of them have no work left."""
        self._sent: list[dict[str, Any]] = []

    async def exchange(self, messages: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], bool]:
        """Pass messages on. Return those for the editor once all requests are answered, or without requests once no
        work is left, or when time is up; and whether no work is left."""
        if self._arrived.qsize() >= MOST_WAITING:
            raise Problem.of("too-many", "the language session still works on earlier messages")
        self.used_at = time.monotonic()
        self._put += 1
        self._arrived.put(messages)
        asked = {message["id"] for message in messages if "id" in message}

        def is_enough() -> bool:
            return self._done == self._put or bool(asked and asked <= {message.get("id") for message in self._sent})

        async with self._moved:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._moved.wait_for(is_enough), ANSWER_SECONDS)
        sent, self._sent = self._sent, []
        return sent, self._done == self._put

    def end(self) -> None:
        self.is_ended = True
        self._arrived.put([])

    def run(self) -> None:
        session, taken = Session(), 0
        session.take({"id": "begin", "method": "initialize", "params": {"capabilities": _CLIENT}})
        session.work()
        session.sent()
        while not self.is_ended:
            wait = session.wait
            try:
                for message in self._arrived.get(timeout=IDLE_SECONDS if wait is None else wait):
                    session.take(message)
                taken += 1
            except Empty:
                self.is_ended = time.monotonic() - self.used_at >= IDLE_SECONDS
            while session.wait == 0 and not self.is_ended:
                session.work()
                self._tell(session.sent(), 0)
            document = session.desk.documents.get(self.uri)
            self.is_ended |= document is not None and len(document.text.raw) > MAX_DOCUMENT_BYTES
            self._tell(session.sent(), taken if (session.wait or IDLE_SECONDS) > QUIET_SECONDS else 0)

    def _tell(self, messages: list[dict[str, Any]], done: int) -> None:
        with contextlib.suppress(RuntimeError):  # the server has ended
            asyncio.run_coroutine_threadsafe(self._hear(messages, done), self._loop)

    async def _hear(self, messages: list[dict[str, Any]], done: int) -> None:
        async with self._moved:
            self._sent += messages
            self._done = max(self._done, done)
            self._moved.notify_all()


class LanguageSessions:
    """The sessions of a server: at most eight, of which the one that was idle the longest makes room."""

    def __init__(self) -> None:
        self._sessions: dict[tuple[str, str], LanguageSession] = {}
        self._threads: list[LanguageSession] = []

    def of(self, tab: str, id: str, uri: str, *, opens: bool) -> LanguageSession:
        """Return the session of a tab and a document. Raises `Problem` if there is none and the first message does not
        open the document."""
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        alive = {key: session for key, session in self._sessions.items() if session.is_alive() and not session.is_ended}
        self._sessions = alive
        session = self._sessions.get((tab, id))
        if session is not None:
            return session
        if not opens:
            raise Problem.of("no-session", f"{id} is not open in this session")
        if len(self._threads) >= 2 * MOST_SESSIONS:  # they were ended, and still work
            raise Problem.of("too-many", "earlier language sessions have not ended yet")
        if len(self._sessions) >= MOST_SESSIONS:
            self._sessions.pop(min(self._sessions, key=lambda key: self._sessions[key].used_at)).end()
        session = self._sessions[tab, id] = LanguageSession(uri)
        self._threads.append(session)
        session.start()
        return session

    def close(self) -> None:
        for session in self._threads:
            session.end()


class Language(OfDocument, frozen=True, kw_only=True):
    session: Annotated[str, Meta(min_length=1, max_length=64, description="A random text of the client for one tab.")]
    messages: Annotated[tuple[Object, ...], Meta(max_length=100, description="Messages of LSP, without its frames.")]


@operation(
    "Findings, hover, completion, colours and fixes of one document, as messages of the Language Server Protocol.",
    Language,
    shape(messages=list[Object], quiet=bool),
)
async def language(host: RequestHost, given: Language) -> Value:
    state = await asyncio.to_thread(host.shelf.one, given.id)
    if state.source is None:
        raise Problem.of("cannot-start", state.error)
    uri, edits = uri_of(str(state.path)), host.caller.edits
    messages = [_allowed(message, uri, None if edits else state.source.text) for message in given.messages]
    opens = bool(messages) and messages[0]["method"] == "textDocument/didOpen"
    session = host.site.languages.of(given.session, given.id, uri, opens=opens)
    sent, is_quiet = await session.exchange(messages)
    folder = uri_of(str(host.folder)) + "/"
    return {"messages": [_with_ids(one, folder) for one in sent if _is_wanted(one, uri)], "quiet": is_quiet}


def _allowed(message: Object, uri: str, text: str | None) -> dict[str, Any]:
    """Return a message with what a session may get, about this document alone. `text` is that of a document that must
    not be changed. Raises `Problem`."""
    method, id, parameters = message.get("method"), message.get("id"), message.get("params")
    document = parameters.get("textDocument") if isinstance(parameters, dict) else None
    if not isinstance(method, str) or method not in (EDITS if text is None else READS):
        raise Problem.of("unfit-body", f"the method {method!r} is not allowed here")
    if not isinstance(parameters, dict) or not isinstance(document, dict) or not isinstance(id, int | str | None):
        raise Problem.of("unfit-body", f"{method} needs params with a textDocument, and its id is a number or a text")
    if (method in NOTIFICATIONS) != (id is None):
        raise Problem.of("unfit-body", f"{method} has an id if it is a request, and none if it is a notification")
    own: dict[str, Any] = {"uri": uri, "version": document.get("version")}
    if method == "textDocument/didOpen":
        own["text"] = document.get("text") if text is None else text
        if not isinstance(own["text"], str) or len(own["text"]) > MAX_DOCUMENT_BYTES:
            raise Problem.of("unfit-body", f"a document has a text of at most {MAX_DOCUMENT_BYTES:,} characters")
    passed = {name: parameters[name] for name in _PARAMETERS if name in parameters}
    return {"method": method, "params": {**passed, "textDocument": own}, **({} if id is None else {"id": id})}


def _is_wanted(message: dict[str, Any], uri: str) -> bool:
    """Tell whether a message is an answer, or has the findings about this document."""
    return "method" not in message or message["params"].get("uri") == uri


def _with_ids(value: Any, folder: str) -> Any:
    """Return a message with ids of documents instead of the addresses of their files."""
    if isinstance(value, dict):
        return {_with_ids(key, folder): _with_ids(item, folder) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_with_ids(item, folder) for item in value]
    return unquote(value.removeprefix(folder)) if isinstance(value, str) and value.startswith(folder) else value
