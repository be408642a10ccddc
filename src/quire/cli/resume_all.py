"""`quire resume --all`: continue all runs that wait for no person, several at a time, as after a crash or a reboot.

Nothing is asked: questions wait for `quire answer`. A run that another process drives, or has taken meanwhile, is left
to it, and those of a cluster are left to its workers.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, TextIO

import click
from msgspec import Struct

from quire.cli import INTERRUPTED
from quire.cli.stdio import stdout_aside, tell, write_json
from quire.display.text import age, one_line, table
from quire.display.visible import escaped
from quire.engine.records import WAITING, RunRow, Status
from quire.errors import Fenced, QuireError, RunBusy
from quire.python_process import EndingSignals
from quire.runs.outcome import exit_of
from quire.runs.scripts import reopened
from quire.stores.run_pages import RunFilters, newest_runs
from quire.units import seconds_of
from quire.wording import counted

if TYPE_CHECKING:
    from quire.cli.drive import SessionOptions
    from quire.cli.fork import ForkOptions
    from quire.engine.driver.drive import Drive
    from quire.runs.runtime import Runtime

DEFAULT_JOBS = 8
MOST = 10_000
"""Runs that one command continues."""
STARTING_SECONDS = 10.0
"""A run that was created so recently is about to be driven by the process that created it."""
_OPTIONS = {"document", "model", "unattended", "says_yes", "quiet", "as_json", "dry_run"}


def read_age(context: click.Context, parameter: click.Parameter, text: str | None) -> float | None:
    """Return an age in seconds."""
    seconds = None if text is None else seconds_of(text)
    if text is not None and seconds is None:
        raise click.UsageError(f"--since {text}: write a number and s, m, h or d: 2d", context)
    return seconds


class RunChoice(Struct, frozen=True):
    """The options that say which runs continue, apart from `--document`."""

    every: bool
    status: str | None
    since: float | None
    jobs: int | None

    @property
    def is_made(self) -> bool:
        return self.every or self.status is not None or self.since is not None or self.jobs is not None

    def check_usage(self, context: click.Context, runs: tuple[str, ...]) -> None:
        names = {name for name, value in context.params.items() if value not in (None, (), False)}
        if runs or names - _OPTIONS:
            others = ["RUN"] if runs else sorted(names - _OPTIONS)
            raise click.UsageError(f"--all, --status, --since and --jobs do not take: {', '.join(others)}", context)
        if self.every and self.status is not None:
            raise click.UsageError("--all and --status exclude each other", context)


async def resume_all(runtime: Runtime, choice: RunChoice, options: ForkOptions, manner: SessionOptions) -> int:
    """Show the runs, continue them, and return the highest exit code."""
    rows = await _chosen(runtime, choice, options.document or "")
    if options.dry_run and manner.json:
        write_json([{"run": row.id, "status": str(row.status), "document": row.document} for row in rows])
    elif not manner.quiet or options.dry_run:
        now = runtime.clock.now()
        for line in table([(row.id, str(row.status), age(now - row.updated_at), row.label) for row in rows]):
            tell(line)
        tell(f"{'would continue' if options.dry_run else 'continues'} {counted(len(rows), 'run')}")
    if options.dry_run or not rows:
        return 0
    with stdout_aside() as stdout:
        return await _Drives(runtime, manner, stdout).drive(iter(rows), choice.jobs or DEFAULT_JOBS)


async def _chosen(runtime: Runtime, choice: RunChoice, document: str) -> list[RunRow]:
    """Return the runs to continue, the oldest first."""
    store, now = runtime.store, runtime.clock.now()
    since = None if choice.since is None else now - choice.since
    statuses = (Status(choice.status),) if choice.status else (Status.PENDING, Status.INTERRUPTED)
    filters = RunFilters(statuses, document, since=since)
    rows = [row async for row in newest_runs(store, filters, MOST, 1000)]
    if not choice.status:
        rows = [row for row in rows if row.status is not Status.PENDING or abs(now - row.created_at) > STARTING_SECONDS]
        due = await store.named([*await store.due(now), *await store.answered()])
        rows += [
            row
            for row in due
            if row.status in WAITING
            and row.created_at >= (since or 0.0)
            and f"/{row.document}".endswith(f"/{document}" if document else "")
        ]
    own = [row for row in rows if not row.pins.get("queue") and not row.pins.get("imported")]
    return sorted(own, key=lambda row: row.created_at)


class _Drives:
    """The drives of several runs. The first interrupt lets each rest after its step, the second stops them at once."""

    def __init__(self, runtime: Runtime, manner: SessionOptions, stdout: TextIO) -> None:
        self._stdout = stdout
        self._runtime = runtime
        self._manner = manner
        self._drives: dict[str, Drive] = {}
        self._interrupts = 0
        self._tasks: list[asyncio.Task[int]] = []

    async def drive(self, rows: Iterator[RunRow], jobs: int) -> int:
        with EndingSignals(asyncio.get_running_loop(), self._interrupt):
            self._tasks = [asyncio.create_task(self._work(rows)) for _ in range(jobs)]
            codes = await asyncio.gather(*self._tasks, return_exceptions=True)
        for code in codes:
            if isinstance(code, Exception):
                raise code
        return INTERRUPTED if self._interrupts else max(code for code in codes if isinstance(code, int))

    def _interrupt(self) -> None:
        self._interrupts += 1
        for drive in self._drives.values():
            drive.stop()
        for task in self._tasks if self._interrupts > 1 else ():
            task.cancel()

    async def _work(self, rows: Iterator[RunRow]) -> int:
        """Drive one run after another; the next of all that are left."""
        worst = 0
        for row in rows:
            if self._interrupts:
                break
            worst = max(worst, await self._drive(row))
        return worst

    async def _drive(self, row: RunRow) -> int:
        def began(drive: Drive) -> None:
            self._drives[row.id] = drive

        try:
            runtime = await reopened(self._runtime, row.id)
            ended = await runtime.drive(row.id, began=began, given=self._manner.given, after=row.epoch)
            words, code = ended.status.words, exit_of(ended)
            words += f": {ended.failure.message}" if ended.failure else ""
        except (RunBusy, Fenced):
            words, code = "is left to the process that drives it", 0
        except QuireError as error:
            words, code = str(error), error.exit_code
        finally:
            self._drives.pop(row.id, None)
        if self._manner.json:
            line = {"run": row.id, "exit_code": code, "detail": words}
            click.echo(escaped(json.dumps(line, ensure_ascii=False)), file=self._stdout)
        elif code or not self._manner.quiet:
            tell(one_line(f"{row.id}: {words}"))
        return code
