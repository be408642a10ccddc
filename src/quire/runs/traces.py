"""Traces of runs: the spans of what a drive writes, while it is written, and those of stored runs."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING

from quire.engine.records import Event, Status
from quire.errors import CannotStart, QuireError
from quire.installed import add_extra
from quire.runs.workspace_gate import redactor_of
from quire.stores.run_pages import RunFilters, newest_runs
from quire.telemetry import TRACE, endpoint_of
from quire.telemetry.spans import RunSpans
from quire.values import text_or_json
from quire.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from quire.engine.driver.drive import Drive
    from quire.engine.records import RunRow
    from quire.engine.requests import Effect
    from quire.runs.runtime import Runtime
    from quire.telemetry.exporter import Exporter
    from quire.telemetry.spans import Span

_RESTS = ("run_completed", "run_failed", "run_paused")
"""Events that the process of a drive has written last, and sent. A run that waits is cancelled without a process."""


def exporter_of(runtime: Runtime) -> Exporter:
    """Return the exporter of spans. Raises `CannotStart` without an address or its libraries."""
    if (endpoint := endpoint_of(runtime.settings, runtime.environ)) is None:
        raise CannotStart("no receiver of traces: set OTEL_EXPORTER_OTLP_ENDPOINT, or [telemetry] endpoint")
    try:
        from quire.telemetry.exporter import exporter_to

        return exporter_to(endpoint)
    except (ImportError, ValueError) as error:
        raise CannotStart(f"traces are not sent: {error}; they need the extra otel: {add_extra('otel')}") from None


async def trace_drive(runtime: Runtime, row: RunRow, drive: Drive, stack: AsyncExitStack) -> None:
    """Export the spans of a drive, which `stack` ends, while it writes their events; and before them those that may
    not have been sent. A receiver knows them by their ids."""
    try:
        exporter = exporter_of(runtime)
    except CannotStart as error:
        return runtime.notice(f"warning: {error}")
    spans, unsettled = await stored_spans(runtime, row)
    exporter.add(unsettled if row.status in (Status.RUNNING, Status.INTERRUPTED, Status.CANCELLED) else [])
    requests: dict[str, Effect] = {}
    spans.request_of = lambda path: requests.pop(path, None)

    def written(events: Sequence[Event]) -> None:
        with suppress(Exception):  # a run must not fail because of its trace
            exporter.add(span for event in events for span in spans.add(event))

    drive.keep_requests(requests)
    drive.when_written(written)
    stack.callback(TRACE.reset, TRACE.set(spans.trace))
    stack.callback(exporter.tell, runtime.notice)


async def stored_spans(runtime: Runtime, row: RunRow, *, whole: bool = False) -> tuple[RunSpans, list[Span]]:
    """Return what continues the spans of a run, and those that are stored: `whole`, or since it last came to rest."""
    redactor, shows = redactor_of(runtime.settings, runtime.environ), runtime.settings.telemetry.content
    spans = RunSpans(row, (lambda value: redactor.text(text_or_json(value))) if shows else None)
    events, ended = await runtime.store.events(row.id), list["Span"]()
    if not events:
        return spans, ended
    with suppress(QuireError):  # such as the rules of another version
        spans.request_of = (await runtime.view(row.id)).replay.asked.get
    records = {(record.path, record.ended_at): record for record in await runtime.store.journal().records(row.id)}
    for event in events:
        event.record = records.get((event.path, event.at)) if event.type == "effect" else None
        ended += spans.add(event)
        if event.type == "run_forked" or (not whole and event.type in _RESTS):
            ended.clear()
    if row.status is Status.EXPIRED:  # which writes nothing
        ended += spans.add(Event("run_cancelled", row.id, row.expires_at or row.updated_at))
    return spans, ended


async def export_traces(runtime: Runtime, names: Iterable[str], seconds: float | None) -> str:
    """Send the spans of runs again: of the named ones, or of those that were started in the last seconds. Return what
    was done; raise `CannotStart` if it cannot be."""
    exporter, count, lost = exporter_of(runtime), 0, list[str]()
    rows = [await runtime.row(await runtime.find(name)) for name in names]
    if seconds is not None:
        since = RunFilters(since=runtime.clock.now() - seconds)
        rows = [row async for row in newest_runs(runtime.store, since, 1_000_000, 1000)]
    for row in rows:
        _, spans = await stored_spans(runtime, row, whole=True)
        for first in range(0, len(spans), 500):  # fewer than fit into the queue
            exporter.add(spans[first : first + 500])
            await asyncio.to_thread(exporter.flush, lost.append, 30.0)
        count += len(spans)
    if lost:
        raise CannotStart(lost[0])
    return f"sent {counted(count, 'span')} of {counted(len(rows), 'run')}"
