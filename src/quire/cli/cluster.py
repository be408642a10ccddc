"""Runs of a cluster: hand them over, signal the cluster about them, watch them from here; and `quire worker`, a process
that drives them."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import asdict, replace

from quire.cli import INTERRUPTED
from quire.cli.app import say
from quire.cli.drive import SessionOptions, choose_view, say_warnings
from quire.cli.options import Amount, log_option, require_text
from quire.cli.run_end import RunReport, finish
from quire.cli.stdio import look_at_runs, tell, with_runtime, write_json, write_lines
from quire.cluster.client import Cluster, connect, require_cluster
from quire.cluster.dispatch import follow
from quire.display.visible import visible
from quire.engine.progress import Progress
from quire.engine.records import Event, RunRow, Status
from quire.errors import CannotStart, RunState, Untrusted
from quire.installed import add_extra
from quire.loopback import listening
from quire.python_process import become_module
from quire.runs.pins import PinnedState
from quire.runs.why import permissions_of
from quire.stores.run_pages import RunFilters, newest_runs
from quire.wording import counted

if TYPE_CHECKING:
    from quire.library.document import Document
    from quire.models.choose import Choice
    from quire.runs.options import RunOptions
    from quire.runs.runtime import Runtime
    from quire.runs.stored import StoredRuns
    from quire.values import Value
    from quire.workspace.locate import Workspace
    from quire.workspace.settings import ClusterSettings, Settings, TemporalAccess


UNSEEN_SECONDS = 5.0
MOST_LOOKED_AT = 10_000


def cluster_of(row: RunRow) -> str:
    """Return the task queue of the cluster that owns a run; empty if none does."""
    return PinnedState.of(row.pins).queue


async def run_on_cluster(
    runtime: Runtime,
    read: Document,
    inputs: dict[str, Value],
    options: RunOptions,
    choice: Choice | None,
    manner: SessionOptions,
    detach: bool,
) -> int:
    """Create a run and hand it over to the cluster. Nothing is written if Temporal cannot be reached."""
    where = require_cluster(runtime.settings)
    client = await connect(where)
    runtime.queue = where.task_queue
    run = await runtime.start(read, inputs, options, choice)
    await notify_cluster(runtime, await runtime.row(run), Cluster(client, where.task_queue, where.heartbeat))
    if detach:
        if not manner.quiet:
            await say_warnings(runtime, run)
        click.echo(run)
        tell(f"to see it: quire runs {run} --follow")
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
        tell(f"quire: {visible(str(error).splitlines()[0])}")
        tell("it is stored all the same: a worker finds it when it looks around next")
        return False
    return True


async def watch(runtime: Runtime, run: str, manner: SessionOptions, *, resumed: RunRow | None = None) -> int:
    """Show a run until it rests, report its state and return the exit code. Ctrl-C only stops the watching."""
    stored = await runtime.view(run)
    progress = Progress.of(stored.document.runnable())
    view = choose_view(progress, manner)
    is_told = False

    def show(event: Event) -> None:
        progress.apply(event)
        view.show(event)

    async def pause(seconds: float) -> None:
        nonlocal is_told
        await asyncio.sleep(seconds)
        late = runtime.clock.now() - stored.row.created_at > UNSEEN_SECONDS
        if not is_told and late and cluster_of(stored.row) and (await runtime.row(run)).status is Status.PENDING:
            is_told = True
            view.note(f"no worker has taken it yet (task queue {cluster_of(stored.row)})")

    view.start()
    try:
        row = await follow(runtime, run, show, resumed=resumed, pause=pause)
    except asyncio.CancelledError:
        view.stop()
        where = " in the cluster" if cluster_of(stored.row) else ""
        tell(f"the run continues{where}: quire runs {run} --follow (quire runs cancel {run} ends it)")
        return INTERRUPTED
    finally:
        view.stop()
    replayed = await runtime.view(run)
    if row.status is Status.EXPIRED:
        tell("no answer came in time: the run has expired")
    questions = await runtime.store.questions(run)
    permissions = permissions_of(stored, runtime.settings)
    end = RunReport(row, replayed.progress, replayed.rest, questions, permissions=permissions)
    return finish(end, view, manner)


SLOTS = 20


@click.group("worker", invoke_without_command=True)
@click.option(
    "--database", metavar="URL", callback=require_text, help="The shared store, as postgresql://…  [[store] url]"
)
@click.option(
    "--temporal", metavar="HOST:PORT", callback=require_text, help="The Temporal server.  [[cluster] temporal]"
)
@click.option("--namespace", metavar="NAME", callback=require_text, help="Its namespace.  [[cluster] namespace]")
@click.option(
    "--task-queue", metavar="NAME", callback=require_text, help="Whose runs to drive.  [[cluster] task_queue]"
)
@click.option("--tls", is_flag=True, help="Encrypt, with the CAs of the system.  [[cluster] tls]")
@click.option(
    "--tls-ca", metavar="FILE", callback=require_text, help="Whose certificates to believe.  [[cluster] tls_ca]"
)
@click.option(
    "--tls-cert", metavar="FILE", callback=require_text, help="The certificate to show.  [[cluster] tls_cert]"
)
@click.option("--tls-key", metavar="FILE", callback=require_text, help="Its private key.  [[cluster] tls_key]")
@click.option(
    "--api-key-env", metavar="NAME", callback=require_text, help="The variable with the API key.  [[cluster] …]"
)
@click.option("--api-key-file", metavar="FILE", callback=require_text, help="The file with the API key.  [[cluster] …]")
@click.option("--concurrency", type=click.IntRange(1, 10_000), default=SLOTS, show_default=True, help="Runs at a time.")
@click.option("--grace", type=Amount(min=0), default=30.0, show_default=True, help="Seconds to park runs in.")
@click.option("--sweep", type=Amount(min=0.1), default=30.0, show_default=True, help="Seconds between sweeps.")
@click.option("--metrics", metavar="HOST:PORT", help="Serve /metrics, /live and /ready there, as 127.0.0.1:9464.")
@log_option
@click.pass_context
def worker_command(
    context: click.Context,
    database: str | None,
    temporal: str | None,
    namespace: str | None,
    task_queue: str | None,
    tls: bool,
    tls_ca: str | None,
    tls_cert: str | None,
    tls_key: str | None,
    api_key_env: str | None,
    api_key_file: str | None,
    concurrency: int,
    grace: float,
    sweep: float,
    metrics: str | None,
) -> None:
    """Run the documents of a cluster, until stopped.

    Start any number, on any hosts, each in a project folder: keys, tools and trust are those of the worker. Ctrl-C or
    SIGTERM leaves its runs to the other workers. With --temporal, give the keys and certificates of that server too.
    """
    if context.invoked_subcommand is not None:
        return
    if find_spec("temporalio") is None:
        raise CannotStart(f"quire worker needs the package temporalio: {add_extra('cluster')}")
    from quire.runs.runtime import Runtime
    from quire.stores import open_store
    from quire.trust.seal import user_seal
    from quire.workspace.locate import current_folder, find_workspace
    from quire.workspace.settings import TemporalAccess

    access = TemporalAccess(
        tls or None, _path(tls_ca), _path(tls_cert), _path(tls_key), None, api_key_env, _path(api_key_file)
    )
    start = current_folder()
    workspace = find_workspace(start)

    chosen = {"temporal": temporal, "namespace": namespace, "task_queue": task_queue}
    read_workspace = partial(_read_workspace, start, workspace, chosen, access, database)
    settings, where, url, *_ = read_workspace()
    host, _, port = (metrics or ":0").rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise CannotStart(f"--metrics {metrics}: write HOST:PORT, such as 127.0.0.1:9464")
    host = host.strip("[]") or "127.0.0.1"
    listener = listening(host, int(port), anywhere=True, option="--metrics") if metrics else None
    store = open_store(url, durability=settings.runs.durability, seal=user_seal(settings.user))
    runtime = Runtime(settings, store, queue=where.task_queue, notice=say)

    from quire.cluster.worker import ClusterWorker  # not before the options are checked: it loads Temporal
    from quire.runs.scripts import reopened
    from quire.telemetry.metrics import Metrics, answer_probe

    async def work(runtime: Runtime) -> bool:
        worker = ClusterWorker(
            runtime,
            where,
            say,
            reopen=reopened,
            ground=read_workspace,
            concurrency=concurrency,
            sweep_seconds=sweep,
            grace=grace,
        )
        if listener is None:
            return await worker.run()
        answer = partial(answer_probe, Metrics(store, settings.workspace.folder), lambda: worker.ticker.process)
        async with await asyncio.start_server(answer, sock=listener):
            return await worker.run()

    if with_runtime(work, runtime):
        # Modules that are loaded stay as they were: only a new process has the code of now.
        os.chdir(start)
        become_module("quire", *sys.argv[1:])


@worker_command.command("list")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def worker_list(as_json: bool) -> None:
    """List servers and workers, and their runs. FREE.

    They report themselves to the store every five seconds. Ends with the number of runs that none of them drives yet.
    """
    from quire.display.text import age, table

    data = look_at_runs(process_data)
    if as_json:
        write_json(data)
        return
    rows = [("process", "version", "state", "driving", "queue or folder", "seen", "runs")] if data["processes"] else []
    for one in data["processes"]:
        state, seen = ": ".join(filter(None, (one["state"], one["reason"]))), f"{age(one['seen'])} ago"
        name, driving = f"{one['kind']} {one['pid']}@{one['host']}", f"{one['driving']} of {one['slots']}"
        rows.append((name, one["version"], state, driving, one["queue"], seen, " ".join(one["runs"])))
    write_lines(table(rows))
    oldest = f", the oldest for {age(data['oldest'])}" if data["pending"] else ""
    tell(f"{'' if rows else 'no server and no worker; '}{counted(data['pending'], 'pending run')}{oldest}")


async def process_data(runs: StoredRuns) -> dict[str, Any]:
    """Return the processes that report themselves to a store, and its pending runs, as JSON."""
    now, filters = time.time(), RunFilters((Status.PENDING, Status.RUNNING), tries=True)
    rows = [row async for row in newest_runs(runs.store, filters, MOST_LOOKED_AT, 1000)]
    pending = [row.created_at for row in rows if row.status is Status.PENDING and not row.process]
    processes = [
        {
            **asdict(process),
            "state": process.state if process.is_recent(now) else "gone",
            "seen": max(0.0, now - process.seen_at),
            "runs": [row.id for row in rows if row.process == process.id],
        }
        for process in await runs.store.processes()
    ]
    return {"processes": processes, "pending": len(pending), "oldest": now - min(pending) if pending else None}


def _read_workspace(
    start: Path, workspace: Workspace, chosen: Mapping[str, str | None], access: TemporalAccess, database: str | None
) -> tuple[Settings, ClusterSettings, str, Mapping[str, str], list[Mapping[str, str]]]:
    """Return the settings, Temporal, the store, and the hashes of the code of tools and servers. Options of the command
    line win. Raises `QuireError` if no run could begin."""
    from quire.workspace.configuration import load_settings
    from quire.workspace.consent import require_trusted
    from quire.workspace.locate import find_workspace

    if find_workspace(start) != workspace:
        raise CannotStart(f"{workspace.folder} is not the workspace that it was")
    settings = load_settings(workspace)
    # A worker has no user to ask later.
    code = require_trusted(settings)
    options = {name: value for name, value in chosen.items() if value}
    where = replace(with_access(settings.cluster, chosen["temporal"], access), **options)
    if not where.temporal:
        raise CannotStart("which Temporal server? --temporal HOST:PORT, or temporal in the table [cluster]")
    url = database or settings.store_url
    if not url:
        raise CannotStart("which store? --database postgresql://…, or url in the table [store]")
    return settings, where, url, code.module_files, [server.files for server in code.servers.values()]


def with_access(configured: ClusterSettings, temporal: str | None, options: TemporalAccess) -> ClusterSettings:
    """Combine the options with the configured access; options win. The configured access counts only for the
    configured server.

    Raises `CannotStart`.
    """
    from quire.workspace.settings import TemporalAccess
    from quire.workspace.tables import problems_of

    base = configured.access if temporal in (None, configured.temporal) else TemporalAccess()
    if options.api_key_env or options.api_key_file:
        base = replace(base, api_key_env=None, api_key_file=None)
    access = replace(base, **{name: value for name, value in asdict(options).items() if value is not None})
    if problems := problems_of(access):
        raise CannotStart("; ".join(problems))
    return replace(configured, access=access)


def _path(text: str | None) -> Path | None:
    return Path(text) if text else None
