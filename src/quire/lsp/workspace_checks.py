"""Check the documents that are not open, in the background, and tell the editor."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from quire.lsp import wire
from quire.lsp.desk import uri_of
from quire.lsp.findings import findings_of, problem_of, report
from quire.lsp.jobs import Job, packed, unpacked

if TYPE_CHECKING:
    from quire.lsp.desk import Desk, OpenDocument
    from quire.lsp.findings import Publisher
    from quire.lsp.jobs import Progress, ProgressBoard, Tell, Token


SURVEY_SECONDS = 0.5
"""The files are looked at so long after the last of them has changed."""


class _Waiting(Struct, frozen=True):
    """A request for the findings about all documents that are not open."""

    request: object
    result_ids: dict[str, str]
    """The results that the editor knows, by the address of their document."""
    token: Token | None = None
    """Under which it wants to see the progress of a survey."""
    is_shown: bool = False
    """True if a survey has used the token, which can be done once."""


class Survey:
    """The findings about documents that are not open, and the requests that wait for them."""

    def __init__(self, desk: Desk, publisher: Publisher, clock: Callable[[], float], progress: ProgressBoard) -> None:
        self._desk = desk
        self._publisher = publisher
        self._clock = clock
        self._board = progress
        self._progress: Progress | None = None
        """Of the survey that is under way."""
        self._is_stopped = False
        """True if the user has stopped the survey that is under way."""
        self.at: float | None = None
        """When the next survey is due."""
        self.is_under_way = False
        self._is_done = False
        self._found: dict[str, list[wire.Json]] = {}
        self._told: dict[str, list[wire.Json]] = {}
        """The findings that an editor shows, which does not ask for them."""
        self._uris: dict[str, str] = {}
        """The addresses that the editor has used, by path: it may write one in another way."""
        self._unsurveyed: set[str] = set()
        """Documents that were closed after the last survey had begun."""
        self._waiting: list[_Waiting] = []
        self._waiting_about: list[tuple[object, str, str]] = []
        """Requests for the findings of one document, with its address and the result that the editor knows."""

    def files_changed(self) -> None:
        self.at = self._clock() + SURVEY_SECONDS

    def closed(self, document: OpenDocument, shown: list[wire.Json] | None) -> None:
        """Note that a document is not open any more, and the findings about it that the editor shows; None if it was
        not told any while the document was open."""
        self._uris[document.path] = document.uri
        self._unsurveyed.add(document.uri)
        if shown is not None:
            self._told[document.uri] = shown

    def job(self) -> Job:
        """Return the work of a survey, which is then no longer due."""
        self.at, self.is_under_way = None, True
        opened = {document.path for document in self._desk.documents.values()}
        uris = set(self._desk.documents)
        tokens = [waiting.token for waiting in self._waiting if waiting.token is not None and not waiting.is_shown]
        self._waiting = [replace(waiting, is_shown=True) for waiting in self._waiting]
        progress = self._progress = self._board.start("Quire: check documents", self._stop, *tokens, asks=True)
        self._is_stopped = False

        def run() -> bytes:
            folders = self._desk.folders()
            paths = [path for folder in folders for path in (*folder.files, folder.settings_file) if path not in opened]
            return packed(surveyed(self._desk, paths, tell=job.tell))

        job = Job(
            run,
            lambda result: self._take(result, uris),
            lambda: self._is_stopped,
            lambda message: progress.tell(*unpacked(message)),
        )
        return job

    def _stop(self) -> None:
        """Stop the survey that is under way, because the user does not want it. The next one begins after a change."""
        self._is_stopped = True

    def asked_about(self, request: object, uri: str, result_id: str) -> None:
        """Answer a request for the findings about one document that is not open. One about a document that was just
        closed waits for the next survey."""
        if uri in self._unsurveyed and uri not in self._desk.documents:
            self._waiting_about.append((request, uri, result_id))
        else:
            self._publisher.answer(request, report(self._found.get(uri, []), result_id))

    def asked(self, request: object, result_ids: dict[str, str], token: Token | None = None) -> None:
        """Answer a request for the findings about all documents that are not open. It waits until there are new
        ones. The progress of a survey for which it waits is shown under its token."""
        waits_for = None if self._is_done else self._progress
        self._waiting.append(_Waiting(request, result_ids, token, waits_for is not None))
        if waits_for is not None and token is not None:
            waits_for.show_later(token)
        if self._is_done:
            self._answer()
        elif self.at is None and not self.is_under_way:
            self.at = self._clock()

    def cancelled(self, request: object) -> bool:
        """Drop a request that waits. Return False if it does not."""
        waitings = [waiting for waiting in self._waiting if waiting.request != request]
        for waiting in self._waiting:
            if waiting.request == request and waiting.token is not None and self._progress is not None:
                self._progress.end_under(waiting.token)
        kept_about = [about for about in self._waiting_about if about[0] != request]
        was_there = len(waitings) < len(self._waiting) or len(kept_about) < len(self._waiting_about)
        self._waiting, self._waiting_about = waitings, kept_about
        return was_there

    def _take(self, result: bytes | None, opened: set[str]) -> None:
        """Take the findings of a survey. `opened` are the documents that were open when it began."""
        self.is_under_way = False
        self._is_done = True
        self._unsurveyed &= opened
        if self._progress is not None:
            self._progress.end()
            self._progress = None
        if result is None:
            if not self._is_stopped:
                self._publisher.log("the process that checked the documents that are not open has ended")
            self._answer_about()
            return
        reports, problems = unpacked(result)
        for problem in problems:
            self._publisher.log(problem)
        findings = self._found = {self._uris.get(path) or uri_of(path): items for path, items in reports}
        if self._publisher.pulls:
            self._answer()
            self._answer_about()
            return
        for uri in {*findings, *self._told}:
            items = findings.get(uri, [])
            if self._is_surveyed(uri) and items != self._told.get(uri, []):
                self._publisher.publish(uri, None, items)
                self._told[uri] = items

    def _is_surveyed(self, uri: str) -> bool:
        """Tell whether the last survey can say something about a document: it is not open, and was not then."""
        return uri not in self._desk.documents and uri not in self._unsurveyed

    def _answer_about(self) -> None:
        waiting, self._waiting_about = self._waiting_about, []
        for request, uri, result_id in waiting:
            self.asked_about(request, uri, result_id)

    def _answer(self) -> None:
        waiting, self._waiting = self._waiting, []
        for waiting_request in waiting:
            result_ids = waiting_request.result_ids
            items: list[dict[str, Any]] = []
            for uri, items_found in self._found.items():
                if self._is_surveyed(uri):
                    items.append({"uri": uri, "version": None, **report(items_found, result_ids.get(uri, ""))})
            for uri in filter(self._is_surveyed, result_ids.keys() - self._found.keys()):
                items.append({"uri": uri, "version": None, **report([], result_ids[uri])})
            if items and all(item["kind"] == "unchanged" for item in items):
                self._waiting.append(waiting_request)  # nothing is new: it is answered after the next survey
            else:
                self._publisher.answer(waiting_request.request, {"items": items})


def surveyed(
    desk: Desk, paths: Sequence[str], seconds: float = 60.0, tell: Tell = lambda _done, _of: None
) -> tuple[list[tuple[str, list[wire.Json]]], list[str]]:
    """Check documents that are not open, as long as there is time, and tell how many are done. Return their findings by
    path, and the mistakes of checks: one must not hide the findings about the other documents."""
    until = time.monotonic() + seconds
    reports: list[tuple[str, list[wire.Json]]] = []
    problems: list[str] = []
    for number, path in enumerate(paths, 1):
        tell(number - 1, len(paths))
        view = desk.view_of(path)
        if view is None:
            continue
        try:
            reports.append((path, [wire.diagnostic(view.text, finding, desk) for finding in findings_of(view)]))
        except Exception as error:  # reported to the editor
            problems.append(problem_of(f"the check of {path} failed", error))
        if time.monotonic() > until:
            break
    return reports, problems
