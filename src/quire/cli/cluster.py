"""Hand runs over to a cluster, signal the cluster about them, and watch them from here."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from quire.cli import INTERRUPTED
from quire.cli.report import RunReport, finish
from quire.cli.session import SessionOptions, choose_view, say_warnings
from quire.cluster.client import Cluster, connect, require_cluster
from quire.cluster.dispatch import follow
from quire.display.visible import visible
from quire.engine.progress import Progress
from quire.engine.records import Event, RunRow, Status
from quire.errors import CannotStart, RunState, Untrusted
from quire.runs.pins import PinnedState
from quire.runs.provenance import permissions_of

if TYPE_CHECKING:
    from quire.library.document import Document
    from quire.models.choose import Choice
    from quire.runs.options import RunOptions
    from quire.runs.runtime import Runtime
    from quire.values import Value

UNSEEN_SECONDS = 5.0


def cluster_of(row: RunRow) -> str:
    """Return the task queue of the cluster that owns a run; empty if none does."""
    return PinnedState.of(row.pins).queue


async def run_on_cluster(
    runtime: Runtime,
    read: Document,
    given: dict[str, Value],
    options: RunOptions,
    choice: Choice | None,
    manner: SessionOptions,
    detach: bool,
) -> int:
    """Create a run and hand it over to the cluster. Nothing is written if Temporal cannot be reached."""
    where = require_cluster(runtime.settings)
    client = await connect(where)
    runtime.queue = where.task_queue
    run = await runtime.start(read, given, options, choice)
    await notify_cluster(runtime, await runtime.row(run), Cluster(client, where.task_queue, where.heartbeat))
    if detach:
        if not manner.quiet:
            await say_warnings(runtime, run)
        click.echo(run)
        click.echo(f"to see it: quire runs {run} --follow", err=True)
        return 0
    return await watch(runtime, run, manner)


async def resume_on_cluster(runtime: Runtime, row: RunRow, manner: SessionOptions) -> int:
    """Ask the cluster to resume a run and watch it. Raises `RunState` for a run that was not started with
    `--cluster`."""
    if not cluster_of(row):
        raise RunState(f"run {row.id} was not started with --cluster: `quire resume {row.id}` drives it here")
    await notify_cluster(runtime, row, resume=True)
    moves = row.status in (Status.PENDING, Status.RUNNING, Status.INTERRUPTED)
    return await watch(runtime, row.id, manner, resumed=None if moves else row)


async def notify_cluster(
    runtime: Runtime, row: RunRow, cluster: Cluster | None = None, *, resume: bool = False
) -> bool:
    """Signal the cluster to look at a run. Return False if Temporal cannot be reached; the workers' sweep finds the
    run later anyway. With `resume` the failure is raised instead."""
    try:
        if cluster is None:
            where = require_cluster(runtime.settings)
            cluster = Cluster(await connect(where), cluster_of(row), where.heartbeat)
        await cluster.look(row.id, resume=resume)
    except (CannotStart, Untrusted) as error:
        if resume:
            raise
        click.echo(f"quire: {visible(str(error).splitlines()[0])}", err=True)
        click.echo("it is stored all the same: a worker finds it when it looks around next", err=True)
        return False
    return True


async def watch(runtime: Runtime, run: str, manner: SessionOptions, *, resumed: RunRow | None = None) -> int:
    """Show a run until it rests, report its state and return the exit code. Ctrl-C only stops the watching."""
    known = await runtime.view(run)
    progress = Progress.of(known.document.runnable())
    view = choose_view(progress, manner)
    told = False

    def show(event: Event) -> None:
        progress.apply(event)
        view.show(event)

    async def pause(seconds: float) -> None:
        nonlocal told
        await asyncio.sleep(seconds)
        late = runtime.clock.now() - known.row.created_at > UNSEEN_SECONDS
        if not told and late and (await runtime.row(run)).status is Status.PENDING:
            told = True
            view.note(f"no worker has taken it yet (task queue {cluster_of(known.row)})")

    view.start()
    try:
        row = await follow(runtime, run, show, resumed=resumed, pause=pause)
    except asyncio.CancelledError:
        view.stop()
        click.echo(f"the run goes on without you: quire runs {run} --follow (quire cancel {run} ends it)", err=True)
        return INTERRUPTED
    finally:
        view.stop()
    replayed = await runtime.view(run)
    if row.status is Status.EXPIRED:
        click.echo("no answer came in time: the run has expired", err=True)
    questions = await runtime.store.questions(run)
    permissions = permissions_of(known, runtime.settings)
    end = RunReport(row, replayed.progress, replayed.rest, questions, permissions=permissions)
    return finish(end, view, manner)
