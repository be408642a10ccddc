"""Decide when each document is checked, and tell the editor.

A check starts at once if the last one was quick, else when the user pauses. Only the newest version is checked. A check
that takes long is made in a process of its own, so that requests are answered meanwhile. A finding about the word that
is being typed waits until the user pauses.
"""

from __future__ import annotations

import hashlib
import json
import pickle
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from quire.lsp import wire
from quire.lsp.desk import uri_of
from quire.lsp.findings import Report, findings_of, is_at, survey
from quire.lsp.jobs import Job

if TYPE_CHECKING:
    from quire.diagnostics import Diagnostic
    from quire.lsp.desk import Desk, OpenDocument
    from quire.lsp.framing import Message
    from quire.lsp.protocol import ClientCapabilities
    from quire.lsp.texts import EditorText

QUICK_SECONDS = 0.010
"""A check that took less is made at once and in this process."""
QUIET_SECONDS = 0.030
CURSOR_SECONDS = 0.300
BESIDE_SECONDS = 0.150
"""Documents beside the one that is edited are checked again after so long."""
SURVEY_SECONDS = 0.5


class Checks:
    """The checks of one session."""

    def __init__(
        self, desk: Desk, send: Callable[[Message], None], clock: Callable[[], float], *, forks: bool = False
    ) -> None:
        self._desk = desk
        self._send = send
        self._clock = clock
        self._forks = forks
        self.client: ClientCapabilities | None = None
        self.log: Callable[[str, Exception], None] = lambda message, error: None
        """Reports a mistake of ours to the editor."""
        self._due: dict[str, float] = {}
        self._shown_at: dict[str, float] = {}
        """When findings that were held back are to be shown."""
        self._changed_at: dict[str, float] = {}
        self._took: dict[str, float] = {}
        self._warm: dict[str, int] = {}
        """How often each document was checked in this process. The first time also loads modules, which says nothing
        about the next one, and which a copy of this process would have to load each time."""
        self._told: dict[str, list[wire.Json]] = {}
        self._asked: dict[str, list[tuple[object, str]]] = {}
        """Requests for the findings of a document that wait for its check, each with the result that it knows."""
        self._job: Job | None = None
        self._checking: EditorText | None = None
        """The text that the job checks."""
        self._survey_at: float | None = None
        self._surveyed: dict[str, list[wire.Json]] = {}
        self._survey_waits: list[tuple[object, dict[str, str]]] = []
        self._survey_done = False

    @property
    def pulls(self) -> bool:
        return self.client is not None and self.client.pulls

    # Changes

    def changed(self, document: OpenDocument, *, typed: bool = True) -> None:
        """Note that a document has a new text."""
        now = self._clock()
        quick = self._took.get(document.uri, 0.0) < QUICK_SECONDS
        self._due[document.uri] = now if quick else now + QUIET_SECONDS
        if typed:
            self._changed_at[document.uri] = now
        self.workspace_changed(except_for=document)

    def workspace_changed(self, except_for: OpenDocument | None = None) -> None:
        """Note that findings about open documents may be old, because something that they read has changed."""
        now = self._clock()
        beside = self._desk.beside(except_for) if except_for else iter(list(self._desk.documents.values()))
        for one in beside:
            self._due[one.uri] = max(self._due.get(one.uri, 0.0), now + BESIDE_SECONDS)

    def closed(self, document: OpenDocument) -> None:
        for table in (self._due, self._shown_at, self._changed_at, self._took, self._warm):
            table.pop(document.uri, None)
        for request, _ in self._asked.pop(document.uri, []):
            self._answer(request, {"kind": "full", "items": []})
        if self._told.pop(document.uri, None) and not self.pulls:
            self._publish(document.uri, None, [])

    def files_changed(self) -> None:
        """Note that files on disk have changed, so the documents that are not open have to be checked again."""
        self._survey_at = self._clock() + SURVEY_SECONDS

    # Time

    @property
    def next_at(self) -> float | None:
        """The time at which something is to be done next; None if nothing waits."""
        times = [*self._due.values(), *self._shown_at.values()]
        if self._survey_at is not None and self._job is None:
            times.append(self._survey_at)
        if self._job is not None:
            times = [at for uri, at in self._due.items() if not self._is_slow(uri)] + [*self._shown_at.values()]
        return min(times, default=None)

    @property
    def is_due(self) -> bool:
        at = self.next_at
        return at is not None and at <= self._clock()

    def work(self) -> Job | None:
        """Do what is due, one thing at a time. Return the work that is to be done in another process, if it is that."""
        now = self._clock()
        for uri, at in sorted(self._shown_at.items(), key=lambda one: one[1]):
            if at <= now:
                self._show_held_back(uri)
                return None
        for uri, at in sorted(self._due.items(), key=lambda one: one[1]):
            if at > now or (self._job is not None and self._is_slow(uri)):
                continue
            document = self._desk.documents.get(uri)
            del self._due[uri]
            if document is None:
                return None
            if self._is_slow(uri):
                self._job, self._checking = self._check_job(document), document.text
                return self._job
            self.check(document)
            return None
        if self._survey_at is not None and self._survey_at <= now and self._job is None:
            self._survey_at = None
            return self._survey_job()
        return None

    def _is_slow(self, uri: str) -> bool:
        return self._forks and self._warm.get(uri, 0) > 1 and self._took.get(uri, 0.0) >= QUICK_SECONDS

    # Checks

    def check(self, document: OpenDocument) -> None:
        """Check a document in this process, and tell the editor."""
        view = self._desk.view(document.uri)
        if view is None:
            return
        began = self._clock()
        try:
            found = findings_of(view)
        except Exception as error:  # a mistake of ours ends one check, never the session: the findings stay as they are
            self.log(f"the check of {document.path} failed", error)
            found = document.findings
        self._took[document.uri] = self._clock() - began
        self._warm[document.uri] = self._warm.get(document.uri, 0) + 1
        self._checked(document, found)

    def _check_job(self, document: OpenDocument) -> Job:
        view, uri, text = self._desk.view(document.uri), document.uri, document.text

        def run() -> bytes:
            began = self._clock()
            found = findings_of(view) if view else ()
            return pickle.dumps((found, self._clock() - began))

        def is_old() -> bool:
            now = self._desk.documents.get(uri)
            return now is None or now.text is not text

        return Job(run, lambda result: self._take_check(uri, text, result), is_old)

    def _survey_job(self) -> Job | None:
        opened = {document.path for document in self._desk.documents.values()}

        def run() -> bytes:
            folders = self._desk.folders()
            paths = [path for one in folders for path in (*one.files, one.settings_file) if path not in opened]
            return pickle.dumps(survey(self._desk, paths))

        job = Job(run, self._take_survey)
        if self._forks:
            self._job = job
            return job
        job.done(job.run())
        return None

    def _take_check(self, uri: str, text: EditorText, result: bytes | None) -> None:
        """Take the findings of another process. Those about an old text are thrown away."""
        self._job = self._checking = None
        document = self._desk.documents.get(uri)
        if document is None:
            return
        if document.text is not text:
            self._due.setdefault(uri, self._clock())
        elif result is None:
            self._took[uri] = 0.0  # the next check is made here, where a mistake can be reported
            self._due.setdefault(uri, self._clock() + QUIET_SECONDS)
        else:
            found, self._took[uri] = pickle.loads(result)  # noqa: S301  # written by our own child
            self._checked(document, found)

    def _checked(self, document: OpenDocument, found: tuple[Diagnostic, ...]) -> None:
        document.findings = found
        document.checked = document.text
        if document.view is not None:
            document.view.findings = found
        self._tell(document, self._without_typed(document, found))

    def _without_typed(self, document: OpenDocument, found: tuple[Diagnostic, ...]) -> tuple[Diagnostic, ...]:
        """Leave out new findings about the word that is being typed, and see to it that they are shown later."""
        changed = self._changed_at.get(document.uri)
        now = self._clock()
        if changed is None or now - changed >= CURSOR_SECONDS:
            return found
        known = {(one["code"], one["message"].partition("\n")[0]) for one in self._told.get(document.uri, ())}
        text = document.text.source.text
        shown = tuple(
            one
            for one in found
            if not is_at(document.edited, one, text) or (one.code.id, one.message.partition("\n")[0]) in known
        )
        if len(shown) < len(found):
            self._shown_at[document.uri] = changed + CURSOR_SECONDS
        return shown

    def _show_held_back(self, uri: str) -> None:
        del self._shown_at[uri]
        document = self._desk.documents.get(uri)
        if document is not None and document.checked is document.text:
            self._tell(document, document.findings, late=True)

    # Telling

    def _tell(self, document: OpenDocument, found: tuple[Diagnostic, ...], *, late: bool = False) -> None:
        items = [wire.diagnostic(document.text, one, self._desk) for one in found]
        before = self._told.get(document.uri)
        self._told[document.uri] = items
        for request, known in self._asked.pop(document.uri, []):
            self._answer(request, report(items, known))
        if not self.pulls:
            self._publish(document.uri, document.version, items)
        elif late and items != before:
            self._refresh()

    def _publish(self, uri: str, version: int | None, items: list[wire.Json]) -> None:
        params: dict[str, object] = {"uri": uri, "diagnostics": items}
        if version is not None:
            params["version"] = version
        self._send({"jsonrpc": "2.0", "method": "textDocument/publishDiagnostics", "params": params})

    def _refresh(self) -> None:
        if self.client and self.client.can("workspace.diagnostics.refreshSupport"):
            self._send({"jsonrpc": "2.0", "id": "quire-refresh", "method": "workspace/diagnostic/refresh"})

    def _answer(self, request: object, result: object) -> None:
        self._send({"jsonrpc": "2.0", "id": request, "result": result})

    # Requests of editors that ask for findings

    def asked(self, request: object, uri: str, known: str) -> None:
        """Answer a request for the findings of a document, now or when its check has ended."""
        document = self._desk.documents.get(uri)
        if document is None:
            self._answer(request, {"kind": "full", "items": self._surveyed.get(uri, [])})
            return
        self._asked.setdefault(uri, []).append((request, known))
        if uri in self._due or document.checked is not document.text:
            if not self._is_slow(uri):
                self._due.pop(uri, None)
                self.check(document)
            elif self._checking is not document.text:
                self._due.setdefault(uri, self._clock())
            return
        for one, last in self._asked.pop(uri):
            self._answer(one, report(self._told.get(uri, []), last))

    def asked_workspace(self, request: object, known: dict[str, str]) -> None:
        """Answer a request for the findings of all documents that are not open. It waits until there are new ones."""
        self._survey_waits.append((request, known))
        if self._survey_done:
            self._answer_survey()
        elif self._survey_at is None and self._job is None:
            self._survey_at = self._clock()

    def cancelled(self, request: object) -> bool:
        """Drop a request that waits. Return False if it does not."""
        for uri, waiting in self._asked.items():
            if any(one == request for one, _ in waiting):
                self._asked[uri] = [(one, known) for one, known in waiting if one != request]
                return True
        if any(one == request for one, _ in self._survey_waits):
            self._survey_waits = [(one, known) for one, known in self._survey_waits if one != request]
            return True
        return False

    def _take_survey(self, result: bytes | None) -> None:
        self._job = None
        self._survey_done = True
        if result is None:
            return
        reports: list[Report] = pickle.loads(result)  # noqa: S301  # written by our own child
        found = {uri_of(path): items for path, items in reports}
        before, self._surveyed = self._surveyed, found
        if self.pulls:
            self._answer_survey()
            return
        for uri in {*found, *before}:
            if uri not in self._desk.documents and found.get(uri, []) != before.get(uri, []):
                self._publish(uri, None, found.get(uri, []))

    def _answer_survey(self) -> None:
        waiting, self._survey_waits = self._survey_waits, []
        for request, known in waiting:
            items: list[dict[str, Any]] = []
            for uri, found in self._surveyed.items():
                if uri not in self._desk.documents:
                    items.append({"uri": uri, "version": None, **report(found, known.get(uri, ""))})
            for uri in known.keys() - self._surveyed.keys() - self._desk.documents.keys():
                items.append({"uri": uri, "version": None, **report([], known[uri])})
            if items and all(one["kind"] == "unchanged" for one in items):
                self._survey_waits.append((request, known))  # nothing is new: it is answered after the next survey
            else:
                self._answer(request, {"items": items})


def report(items: list[wire.Json], known: str) -> dict[str, Any]:
    """Return a report, or only that nothing has changed since the result that the editor knows."""
    result = hashlib.sha256(json.dumps(items).encode()).hexdigest()[:16]
    if known == result:
        return {"kind": "unchanged", "resultId": result}
    return {"kind": "full", "resultId": result, "items": items}
