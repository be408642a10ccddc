"""Check the documents that are not open, in the background, and tell the editor."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from quire.lsp import wire
from quire.lsp.desk import uri_of
from quire.lsp.findings import findings_of
from quire.lsp.jobs import Job, packed, unpacked
from quire.lsp.publisher import problem_of, report

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quire.lsp.desk import Desk
    from quire.lsp.publisher import Publisher

SURVEY_SECONDS = 0.5
"""The files are looked at so long after the last of them has changed."""


class Survey:
    """The findings about documents that are not open, and the requests that wait for them."""

    def __init__(self, desk: Desk, publisher: Publisher, clock: Callable[[], float]) -> None:
        self._desk = desk
        self._publisher = publisher
        self._clock = clock
        self.at: float | None = None
        """When the next survey is due."""
        self.is_under_way = False
        self._is_done = False
        self._found: dict[str, list[wire.Json]] = {}
        self._waiting: list[tuple[object, dict[str, str]]] = []

    def files_changed(self) -> None:
        self.at = self._clock() + SURVEY_SECONDS

    def of(self, uri: str) -> list[wire.Json]:
        """Return the findings about one document that is not open."""
        return self._found.get(uri, [])

    def job(self) -> Job:
        """Return the work of a survey, which is then no longer due."""
        self.at, self.is_under_way = None, True
        opened = {document.path for document in self._desk.documents.values()}

        def run() -> bytes:
            folders = self._desk.folders()
            paths = [path for one in folders for path in (*one.files, one.settings_file) if path not in opened]
            return packed(surveyed(self._desk, paths))

        return Job(run, self._take)

    def asked(self, request: object, known: dict[str, str]) -> None:
        """Answer a request for the findings about all documents that are not open. It waits until there are new
        ones."""
        self._waiting.append((request, known))
        if self._is_done:
            self._answer()
        elif self.at is None and not self.is_under_way:
            self.at = self._clock()

    def cancelled(self, request: object) -> bool:
        """Drop a request that waits. Return False if it does not."""
        kept = [(one, known) for one, known in self._waiting if one != request]
        was_there = len(kept) < len(self._waiting)
        self._waiting = kept
        return was_there

    def _take(self, result: bytes | None) -> None:
        self.is_under_way = False
        self._is_done = True
        if result is None:
            self._publisher.log("the process that checked the documents that are not open has ended")
            return
        reports, problems = unpacked(result)
        for problem in problems:
            self._publisher.log(problem)
        found = {uri_of(path): items for path, items in reports}
        before, self._found = self._found, found
        if self._publisher.pulls:
            self._answer()
            return
        for uri in {*found, *before}:
            if uri not in self._desk.documents and found.get(uri, []) != before.get(uri, []):
                self._publisher.publish(uri, None, found.get(uri, []))

    def _answer(self) -> None:
        waiting, self._waiting = self._waiting, []
        for request, known in waiting:
            items: list[dict[str, Any]] = []
            for uri, found in self._found.items():
                if uri not in self._desk.documents:
                    items.append({"uri": uri, "version": None, **report(found, known.get(uri, ""))})
            for uri in known.keys() - self._found.keys() - self._desk.documents.keys():
                items.append({"uri": uri, "version": None, **report([], known[uri])})
            if items and all(one["kind"] == "unchanged" for one in items):
                self._waiting.append((request, known))  # nothing is new: it is answered after the next survey
            else:
                self._publisher.answer(request, {"items": items})


def surveyed(
    desk: Desk, paths: Sequence[str], seconds: float = 60.0
) -> tuple[list[tuple[str, list[wire.Json]]], list[str]]:
    """Check documents that are not open, as long as there is time. Return their findings by path, and the mistakes of
    checks: one must not hide the findings about the other documents."""
    until = time.monotonic() + seconds
    reports: list[tuple[str, list[wire.Json]]] = []
    problems: list[str] = []
    for path in paths:
        view = desk.view_of(path)
        if view is None:
            continue
        try:
            reports.append((path, [wire.diagnostic(view.text, one, desk) for one in findings_of(view)]))
        except Exception as error:  # reported to the editor
            problems.append(problem_of(f"the check of {path} failed", error))
        if time.monotonic() > until:
            break
    return reports, problems
