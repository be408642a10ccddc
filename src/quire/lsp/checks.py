"""Decide when and in which process each open document is checked, and tell the editor.

A check has two parts. The quick one needs only the text; the thorough one needs the whole plan and its proof. An editor
is told the quick findings first, and with them the thorough ones of the text before, moved to their places; they are
replaced when the new ones have been found, by a copy of this process where that takes long. Only a thorough part that
takes next to no time is made before the editor is told anything, and one that an editor has asked for.

A check starts at once, unless another change came just before: then when the user pauses. Only the newest version is
checked. A finding about the word that is being typed waits until the user pauses.
"""

from __future__ import annotations

from collections.abc import Callable
from time import process_time
from typing import TYPE_CHECKING

from quire.lsp import wire
from quire.lsp.desk import read_closed
from quire.lsp.findings import (
    Publisher,
    moved_findings,
    problem_of,
    quick_findings,
    report,
    thorough_findings,
    together,
    word_around,
)
from quire.lsp.jobs import Job, packed, unpacked
from quire.lsp.workspace_checks import Survey

if TYPE_CHECKING:
    from quire.diagnostics import Diagnostic
    from quire.library.check import QuickFindings
    from quire.lsp.desk import Desk, OpenDocument
    from quire.lsp.document_text import EditorText
    from quire.lsp.document_view import View
    from quire.lsp.jobs import ProgressBoard


AT_ONCE_SECONDS = 0.001
"""A thorough part that took less is made before the editor is told the quick findings."""
QUICK_SECONDS = 0.010
"""A thorough part that took less is made in this process."""
SLOW_SECONDS = 0.080
"""A quick part that took longer is made in another process, which costs about half of that itself."""
LONG_TEXT = 30_000
"""Number of characters of a text above which its plan and its proof are never made in this process, which would keep
the memory that they take."""
QUIET_SECONDS = 0.030
CURSOR_SECONDS = 0.300
BESIDE_SECONDS = 0.150
"""Documents beside the one that is edited are checked again after so long."""


class Checks:
    """The checks of one session."""

    def __init__(
        self,
        desk: Desk,
        publisher: Publisher,
        clock: Callable[[], float],
        progress: ProgressBoard,
        *,
        forks: bool = False,
    ) -> None:
        self._desk = desk
        self._publisher = publisher
        self._clock = clock
        self._forks = forks
        self.survey = Survey(desk, publisher, clock, progress)
        self._due: dict[str, float] = {}
        self._more_due: dict[str, float] = {}
        """When the thorough part of a check is to be made in another process."""
        self._shown_at: dict[str, float] = {}
        """When findings that were held back are to be shown."""
        self._changed_at: dict[str, float] = {}
        self._took = CheckDurations()
        """Of the quick parts."""
        self._more_took = CheckDurations()
        """Of the thorough parts."""
        self._told: dict[str, list[wire.Json]] = {}
        self._asked: dict[str, list[tuple[object, str]]] = {}
        """Requests for the findings of a document that wait for its check, each with the result that it knows."""
        self._checking: EditorText | None = None
        """The text that another process checks; there is one such process at a time."""

    # Changes

    def changed(self, document: OpenDocument, *, typed: bool = True) -> None:
        """Note that a document has a new text."""
        now = self._clock()
        is_pause = now - self._changed_at.get(document.uri, -QUIET_SECONDS) >= QUIET_SECONDS
        quick = is_pause or (self._took.of(document.uri) or 0.0) < QUICK_SECONDS
        self._due[document.uri] = now if quick else now + QUIET_SECONDS
        self._more_due.pop(document.uri, None)
        if typed:
            self._changed_at[document.uri] = now
        self.workspace_changed(except_for=document)

    def workspace_changed(self, except_for: OpenDocument | None = None) -> None:
        """Note that findings about open documents may be old, because something that they read has changed."""
        now = self._clock()
        beside = self._desk.beside(except_for) if except_for else iter(list(self._desk.documents.values()))
        for document in beside:
            self._due[document.uri] = max(self._due.get(document.uri, 0.0), now + BESIDE_SECONDS)

    def closed(self, document: OpenDocument) -> None:
        """Forget a document that the editor has closed. Findings about changes that were not saved disappear at once;
        those about the file on disk come with the next survey."""
        for table in (self._due, self._more_due, self._shown_at, self._changed_at):
            table.pop(document.uri, None)
        self._took.forget(document.uri)
        self._more_took.forget(document.uri)
        shown = self._told.pop(document.uri, None)
        if shown and not self._publisher.pulls and read_closed(document.path) != document.text.source.text:
            self._publisher.publish(document.uri, None, [])
            shown = []
        self.survey.closed(document, shown)
        for request, result_id in self._asked.pop(document.uri, []):
            self.survey.asked_about(request, document.uri, result_id)

    # Time

    @property
    def _is_busy(self) -> bool:
        """True while another process works for this one."""
        return self._checking is not None or self.survey.is_under_way

    @property
    def next_at(self) -> float | None:
        """The time at which something is to be done next; None if nothing waits."""
        times = [*self._shown_at.values(), *self._possible(self._due, self._is_slow).values()]
        times += self._possible(self._more_due, self._goes_out).values()
        if self.survey.at is not None and not self._is_busy:
            times.append(self.survey.at)
        return min(times, default=None)

    @property
    def is_due(self) -> bool:
        at = self.next_at
        return at is not None and at <= self._clock()

    def _possible(self, due: dict[str, float], needs_process: Callable[[str], bool]) -> dict[str, float]:
        """Return what can be done now: without what needs another process while there is one."""
        return {uri: at for uri, at in due.items() if not needs_process(uri)} if self._is_busy else due

    def work(self) -> Job | None:
        """Do what is due, one thing at a time. Return the work that is to be done in another process, if it is that."""
        now = self._clock()
        if (uri := _first_due(self._shown_at, now)) is not None:
            self._show_held_back(uri)
            return None
        if (uri := _first_due(self._possible(self._due, self._is_slow), now)) is not None:
            del self._due[uri]
            document = self._desk.documents.get(uri)
            if document is not None and self._is_slow(uri):
                return self._job(document, None)
            if document is not None:
                self.check(document)
        elif (uri := _first_due(self._possible(self._more_due, self._goes_out), now)) is not None:
            del self._more_due[uri]
            document = self._desk.documents.get(uri)
            if document is not None and self._goes_out(uri):
                return self._job(document, document.quick)
            if document is not None:
                self._check_more(document)
        elif self.survey.at is not None and self.survey.at <= now and not self._is_busy:
            job = self.survey.job()
            if self._forks:
                return job
            job.done(job.run())
        return None

    def _is_slow(self, uri: str) -> bool:
        return self._forks and self._took.is_long(uri, SLOW_SECONDS)

    # Checks

    def check(self, document: OpenDocument) -> None:
        """Check a document in this process, and tell the editor."""
        view = self._desk.view(document.uri)
        if view is None:
            return
        try:
            self._check(document, view)
        except Exception as error:  # a mistake of ours ends one check, never the session
            document.checked = document.text
            self._publisher.log(problem_of(f"the check of {document.path} failed", error))
            self._answer_asked(document.uri)

    def _check(self, document: OpenDocument, view: View) -> None:
        uri, began = document.uri, process_time()
        quick = quick_findings(view)
        self._took.note(uri, process_time() - began)
        before = moved_thorough(document)
        thorough: tuple[Diagnostic, ...] = ()
        took = self._more_took.of(uri)
        if quick.has_more and (took is None or took >= self._seconds_at_once):
            # The first time, the editor is told the quick findings before the modules of the proof are loaded.
            self._more_due[uri] = self._clock() + (QUIET_SECONDS if self._goes_out(uri) else 0.0)
            thorough = before if quick.can_run else ()
        elif quick.has_more:
            thorough = self._timed_thorough(document, view, quick)
        self._checked(document, view, quick, thorough)

    @property
    def _seconds_at_once(self) -> float:
        """The seconds of a thorough part for which the quick findings wait. An editor that asks wants all of them."""
        return QUICK_SECONDS if self._publisher.pulls else min(AT_ONCE_SECONDS, QUICK_SECONDS)

    def _goes_out(self, uri: str) -> bool:
        """Tell whether the thorough part is made in another process."""
        document = self._desk.documents.get(uri)
        is_long = document is not None and len(document.text.raw) >= LONG_TEXT
        return self._forks and (is_long or self._more_took.is_long(uri, QUICK_SECONDS))

    def _check_more(self, document: OpenDocument) -> None:
        """Make the thorough part of a check in this process, and tell the editor."""
        view, quick = self._desk.view(document.uri), document.quick
        if view is None or quick is None:
            return
        try:
            self._checked(document, view, quick, self._timed_thorough(document, view, quick))
        except Exception as error:  # a mistake of ours ends one check, never the session
            self._publisher.log(problem_of(f"the check of {document.path} failed", error))
            self._answer_asked(document.uri)

    def _timed_thorough(self, document: OpenDocument, view: View, quick: QuickFindings) -> tuple[Diagnostic, ...]:
        began = process_time()
        findings = thorough_findings(view, quick)
        self._more_took.note(document.uri, process_time() - began)
        return findings

    def _job(self, document: OpenDocument, quick: QuickFindings | None) -> Job:
        """Return the work of a check in another process: all of it, or the thorough part after a quick one."""
        view, uri, text = self._desk.view(document.uri), document.uri, document.text
        self._checking = text

        def run() -> bytes:
            try:
                return packed(self._both_parts(document, view, quick))
            except Exception as error:  # told to the editor, like a mistake in this process
                return packed(problem_of(f"the check of {document.path} failed", error))

        def is_old() -> bool:
            now = self._desk.documents.get(uri)
            return now is None or now.text is not text

        return Job(run, lambda result: self._take(uri, text, result), is_old)

    def _both_parts(
        self, document: OpenDocument, view: View | None, quick: QuickFindings | None
    ) -> tuple[QuickFindings, float | None, tuple[Diagnostic, ...], float] | None:
        """Return both parts with the seconds that each took; None instead of those of a part that is known."""
        if view is None:
            return None
        took: float | None = None
        if quick is None:
            began = process_time()
            quick = quick_findings(view)
            took = process_time() - began
        began = process_time()
        thorough = thorough_findings(view, quick) if quick.has_more else ()
        return quick, took, thorough, process_time() - began

    def _take(self, uri: str, text: EditorText, result: bytes | None) -> None:
        """Take the findings of another process. Those about an old text are thrown away."""
        self._checking = None
        document = self._desk.documents.get(uri)
        if document is None:
            return
        if document.text is not text:
            if document.checked is not document.text:
                self._due.setdefault(uri, self._clock())
            return
        parts = unpacked(result) if result is not None else None
        view = self._desk.view(uri)
        if parts is None or isinstance(parts, str) or view is None:
            self._publisher.log(parts or f"the process that checked {document.path} has ended")
            document.checked = document.text
            self._answer_asked(uri)
            return
        quick, took, thorough, more_took = parts
        self._more_took.note(uri, more_took)
        if took is not None:
            self._took.note(uri, took)
        self._checked(document, view, quick, thorough)

    def _checked(
        self, document: OpenDocument, view: View, quick: QuickFindings, thorough: tuple[Diagnostic, ...]
    ) -> None:
        """Keep the findings about a text and tell the editor. The thorough ones may be those of the text before."""
        was_checked = document.checked is document.text
        document.quick = quick
        if quick.can_run and document.uri not in self._more_due:
            document.thorough, document.proven = thorough, document.text
        document.findings = view.findings = together(view, quick, thorough)
        document.checked = document.text
        self._tell(document, self._without_typed(document, document.findings), late=was_checked)

    def _without_typed(self, document: OpenDocument, findings: tuple[Diagnostic, ...]) -> tuple[Diagnostic, ...]:
        """Leave out new findings about the word that is being typed, and see to it that they are shown later."""
        changed = self._changed_at.get(document.uri)
        now = self._clock()
        if changed is None or now - changed >= CURSOR_SECONDS:
            return findings
        word = word_around(document.edited, document.text.source.text)
        about = [finding for finding in findings if word and finding.span.meets(word)]
        if not about:
            return findings
        shown = {(item["code"], item["message"].partition("\n")[0]) for item in self._told.get(document.uri, ())}
        held = {id(finding) for finding in about if (finding.code.id, finding.message.partition("\n")[0]) not in shown}
        if not held:
            return findings
        self._shown_at[document.uri] = changed + CURSOR_SECONDS
        return tuple(finding for finding in findings if id(finding) not in held)

    def _show_held_back(self, uri: str) -> None:
        del self._shown_at[uri]
        document = self._desk.documents.get(uri)
        if document is not None and document.checked is document.text:
            self._tell(document, document.findings, late=True)

    # Telling

    def _tell(self, document: OpenDocument, findings: tuple[Diagnostic, ...], *, late: bool = False) -> None:
        items = [wire.diagnostic(document.text, finding, self._desk) for finding in findings]
        before = self._told.get(document.uri)
        self._told[document.uri] = items
        self._answer_asked(document.uri)
        if not self._publisher.pulls:
            if not late or items != before:
                self._publisher.publish(document.uri, document.version, items)
        elif late and items != before:
            self._publisher.refresh()

    def _answer_asked(self, uri: str) -> None:
        """Answer the requests that wait for a check. Where the editor cannot be told to ask again, they wait for the
        thorough part too."""
        if uri in self._more_due and not self._publisher.can_refresh:
            return
        for request, result_id in self._asked.pop(uri, []):
            self._publisher.answer(request, report(self._told.get(uri, []), result_id))

    # Requests of editors that ask for findings

    def asked(self, request: object, uri: str, result_id: str) -> None:
        """Answer a request for the findings of a document, now or when its check has ended."""
        document = self._desk.documents.get(uri)
        if document is None:
            self.survey.asked_about(request, uri, result_id)
            return
        self._asked.setdefault(uri, []).append((request, result_id))
        if uri in self._due or document.checked is not document.text:
            if not self._is_slow(uri):
                self._due.pop(uri, None)
                self.check(document)
            elif self._checking is not document.text:
                self._due.setdefault(uri, self._clock())
        elif self._publisher.can_refresh or self._checking is not document.text:
            self._answer_asked(uri)

    def cancelled(self, request: object) -> bool:
        """Drop a request that waits. Return False if it does not."""
        for uri, waiting in self._asked.items():
            if any(other == request for other, _ in waiting):
                self._asked[uri] = [(other, result_id) for other, result_id in waiting if other != request]
                return True
        return self.survey.cancelled(request)


def moved_thorough(document: OpenDocument) -> tuple[Diagnostic, ...]:
    """Return the thorough findings of the text before at their places in the text of now."""
    if document.proven is None or not document.thorough:
        return ()
    if document.proven is not document.text:
        document.thorough = moved_findings(document.thorough, document.proven.source, document.text.source)
        document.proven = document.text
    return document.thorough


def _first_due(times: dict[str, float], now: float) -> str | None:
    """Return the address that is due for the longest time; None if nothing is. An address may be empty."""
    return min((uri for uri, at in times.items() if at <= now), key=lambda uri: times[uri], default=None)


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
