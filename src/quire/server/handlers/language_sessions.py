"""The language operation: findings, hovers, completions and fixes for the page's editor, from sessions of `quire lsp`.

A session belongs to one tab and one document. It works in a thread of its own with its own open texts, so no unsaved
text is ever read by a run, and a slow document keeps neither other requests nor the event loop waiting.
"""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
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
_PARAMETERS = ("position", "range", "context", "contentChanges")
_BEGIN: Object = {
    "id": "begin",
    "method": "initialize",
    "params": {"capabilities": {"textDocument": {"hover": {"contentFormat": ["markdown"]}}}},
}


class LanguageSession:
    """One session and its thread. It ends when nothing has come for ten minutes."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self._session = Session()
        self._session.take(_BEGIN)
        self._thread = ThreadPoolExecutor(1, "language")
        self._work: list[asyncio.Future[tuple[list[Object], bool]]] = []
        """Work whose messages are not returned yet."""
        self._turn = 0
        self._timer: asyncio.TimerHandle | None = None
        self.is_ended = False
        self.used_at = 0.0

    @property
    def is_busy(self) -> bool:
        return not all(work.done() for work in self._work)

    async def exchange(self, messages: list[Object]) -> tuple[list[Object], bool]:
        """Pass messages on. Return those for the editor once all requests are answered, or without requests once no
        work is left, or when time is up; and whether no work is left."""
        if len(self._work) >= MOST_WAITING:
            raise Problem.of("too-many", "the language session still works on earlier messages")
        loop, self.used_at, self._turn = asyncio.get_running_loop(), time.monotonic(), self._turn + 1
        if self._timer is not None:
            self._timer.cancel()
        self._timer = loop.call_later(IDLE_SECONDS, self.end)
        work = loop.run_in_executor(self._thread, self._do, messages, self._turn)
        self._work.append(work)
        await asyncio.wait([work], timeout=ANSWER_SECONDS)
        done = [work for work in self._work if work.done()]
        self._work = [work for work in self._work if work not in done]
        return [message for work in done for message in work.result()[0]], work in done and work.result()[1]

    def end(self) -> None:
        self.is_ended = True
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _do(self, messages: list[Object], turn: int) -> tuple[list[Object], bool]:
        session, sent, until = self._session, list[Object](), time.monotonic() + ANSWER_SECONDS
        for message in messages:
            session.take(message)
        asked = {message["id"] for message in messages if "id" in message}
        while (wait := session.wait) is not None and wait <= QUIET_SECONDS and not self.is_ended:
            # Work without a waiting request makes room for the next request.
            if time.monotonic() > until or (not asked and self._turn > turn):
                return sent, False
            session.work() if wait == 0 else time.sleep(wait)
            sent += session.sent()
            if asked and asked <= {message.get("id") for message in sent}:
                return sent, False
        document = session.desk.documents.get(self._uri)
        self.is_ended |= document is not None and len(document.text.raw) > MAX_DOCUMENT_BYTES
        return sent, True


class LanguageSessions:
    """The sessions of a server: at most eight, of which the one that was idle the longest makes room."""

    def __init__(self) -> None:
        self._sessions: dict[tuple[str, str], LanguageSession] = {}

    def of(self, key: tuple[str, str], uri: str, *, opens: bool) -> LanguageSession:
        """Return the session of a tab and a document. Raises `Problem` if there is none and the first message does not
        open the document."""
        self._sessions = {key: session for key, session in self._sessions.items() if not session.is_ended}
        if key not in self._sessions:
            if not opens:
                raise Problem.of("no-session", f"{key[1]} is not open in this session")
            if len(self._sessions) >= MOST_SESSIONS:
                idle = {session.used_at: key for key, session in self._sessions.items() if not session.is_busy}
                if not idle:
                    raise Problem.of("too-many", f"{MOST_SESSIONS} documents are checked already")
                self._sessions.pop(idle[min(idle)]).end()
            self._sessions[key] = LanguageSession(uri)
        return self._sessions[key]

    def close(self) -> None:
        for session in self._sessions.values():
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
    uri, folder = uri_of(str(state.path)), uri_of(str(host.folder)) + "/"
    messages = [_allowed(message, uri, None if host.caller.edits else state.source.text) for message in given.messages]
    opens = bool(messages) and messages[0]["method"] == "textDocument/didOpen"
    sent, is_quiet = await host.site.languages.of((given.session, given.id), uri, opens=opens).exchange(messages)
    wanted = [message for message in sent if "id" in message or message["params"].get("uri") == uri]
    return {"messages": _with_ids(wanted, folder), "quiet": is_quiet}


def _allowed(message: Object, uri: str, text: str | None) -> Object:
    """Return a message with what a session may get, about this document alone. `text` is that of a document that must
    not be changed. Raises `Problem`."""
    method, id, parameters = message.get("method"), message.get("id"), message.get("params")
    document = parameters.get("textDocument") if isinstance(parameters, dict) else None
    if not isinstance(method, str) or method not in (EDITS if text is None else READS):
        raise Problem.of("unfit-body", f"the method {method!r} is not allowed here")
    fits = isinstance(id, type(None) if "/did" in method else int | str)
    if not fits or not isinstance(parameters, dict) or not isinstance(document, dict):
        raise Problem.of("unfit-body", f"{method} needs params with a textDocument; requests alone have an id")
    own: Object = {"uri": uri, "version": document.get("version")}
    if method == "textDocument/didOpen":
        own["text"] = document.get("text") if text is None else text
        if not isinstance(own["text"], str) or len(own["text"]) > MAX_DOCUMENT_BYTES:
            raise Problem.of("unfit-body", f"a document has a text of at most {MAX_DOCUMENT_BYTES:,} characters")
    passed = {name: parameters[name] for name in _PARAMETERS if name in parameters}
    return {"method": method, "params": {**passed, "textDocument": own}, **({} if id is None else {"id": id})}


def _with_ids(value: Any, folder: str) -> Any:
    """Return a message with ids of documents instead of the addresses of their files."""
    if isinstance(value, dict):
        return {_with_ids(key, folder): _with_ids(item, folder) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_with_ids(item, folder) for item in value]
    return unquote(value.removeprefix(folder)) if isinstance(value, str) and value.startswith(folder) else value
