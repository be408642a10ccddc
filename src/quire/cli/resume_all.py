"""`quire resume --all`: continue all runs that wait for no person, several at a time, as after a crash or a reboot.

Nothing is asked: questions wait for `quire answer`. A run that another process has is left to it, and those of a
cluster are left to its workers.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from quire.cli import INTERRUPTED
from quire.cli.stdio import stdout_aside, tell, write_json
from quire.cli.terminal import Interrupts
from quire.display.text import age, one_line, table
from quire.engine.records import WAITING, RunRow, Status
from quire.errors import CannotStart, Fenced, QuireError, RunBusy
from quire.runs.outcome import exit_of
from quire.runs.scripts import reopened
from quire.stores.occurrences import PREFIX
from quire.stores.run_pages import RunFilters, newest_runs
from quire.units import seconds_of
from quire.wording import counted

if TYPE_CHECKING:
    from quire.cli.drive import SessionOptions
    from quire.runs.runtime import Runtime
    from quire.values import Value

MOST = 10_000
"""Runs that one command continues."""
STARTING_SECONDS = 10.0
"""A run that was created so recently is about to be driven by the process that created it."""


async def wanted_runs(runtime: Runtime, *, status: Status | None, document: str, since: str | None) -> list[RunRow]:
    """Return the runs to continue, the oldest first. Without a status: those that wait for no person."""
    store, now = runtime.store, runtime.clock.now()
    seconds = seconds_of(since) if since is not None else now
    if seconds is None:
        raise CannotStart(f"--since {since}: write a number and s, m, h or d: 2d")
    statuses = (status,) if status else (Status.PENDING, Status.INTERRUPTED)
    filters = RunFilters(statuses, document, since=now - seconds)
    rows = [row async for row in newest_runs(store, filters, MOST, 1000)]
    if status is None:
        rows = [row for row in rows if row.status is not Status.PENDING or abs(now - row.created_at) > STARTING_SECONDS]
        # Of a trigger one may have to wait for another: they begin with it.
        rows = [row for row in rows if row.status is not Status.PENDING or not row.source.startswith(PREFIX)]
        ready = await store.named([*await store.due(now), *await store.answered()])
        waiting = [row for row in ready if row.status in WAITING and row.created_at >= now - seconds]
        rows += [row for row in waiting if not document or f"/{row.document}".endswith(f"/{document}")]
    own = [row for row in rows if not row.pins.get("queue") and not row.pins.get("imported")]
    return sorted(own, key=lambda row: row.created_at)


async def resume_all(
    runtime: Runtime,
    wanted: Callable[[Runtime], Awaitable[list[RunRow]]],
    jobs: int,
    manner: SessionOptions,
    dry_run: bool,
) -> int:
    """Show the runs, continue them, and return the highest exit code."""
    rows, now = await wanted(runtime), runtime.clock.now()
    if dry_run or not (manner.quiet or manner.json):
        for line in table([(row.id, str(row.status), age(now - row.updated_at), row.label) for row in rows]):
            tell(line)
        tell(f"{'would continue' if dry_run else 'continues'} {counted(len(rows), 'run')}")
    results: list[Value] = [{"run": row.id, "status": str(row.status)} for row in rows if dry_run]
    codes, left, interrupts = [0], iter(() if dry_run else rows), Interrupts(tell, lambda: False, goes_on=True)

    async def work() -> None:
        while not interrupts.count and (row := next(left, None)) is not None:
            words, code = await _resumed(runtime, row, manner, interrupts)
            codes.append(code)
            results.append({"run": row.id, "exit_code": code, "detail": words})
            if not manner.json and (code or not manner.quiet):
                tell(one_line(f"{row.id}: {words}"))

    task = asyncio.gather(*(work() for _ in range(jobs)))
    with stdout_aside(), interrupts.watching(task), contextlib.suppress(asyncio.CancelledError):
        await task
    if manner.json:
        write_json(results)
    return INTERRUPTED if interrupts.count else max(codes)


async def _resumed(runtime: Runtime, row: RunRow, manner: SessionOptions, interrupts: Interrupts) -> tuple[str, int]:
    """Drive a run until it rests. Return what became of it, and the exit code."""
    try:
        own = await reopened(runtime, row.id)
        ended = await own.drive(row.id, began=interrupts.began, given=manner.given, after=row.epoch)
    except (RunBusy, Fenced):
        return "left to the process that has it", 0
    except QuireError as error:
        return str(error), error.exit_code
    return ended.status.words + (f": {ended.failure.message}" if ended.failure else ""), exit_of(ended)
