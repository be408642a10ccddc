"""`quire cancel`: stop a run. A cancelled run can be resumed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from quire.cli.completion import complete_run
from quire.cli.options import require_text
from quire.cli.stdio import with_runtime, write_json
from quire.runs.pins import PinnedState

if TYPE_CHECKING:
    from quire.runs.runtime import Runtime


@click.command("cancel")
@click.argument("run", metavar="RUN|last", shell_complete=complete_run, callback=require_text)
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def command(run: str, as_json: bool) -> None:
    """Cancel a run. Everything it has done stays recorded, and `quire resume` can go on from there.

    If another process drives the run, that process is asked to stop: it does so within a second or so, and lets a tool
    that changes something finish first. WRITES the store only; FREE.
    """
    with_runtime(lambda runtime: _cancel(runtime, run, as_json))


async def _cancel(runtime: Runtime, name: str, as_json: bool) -> None:
    run = await runtime.find(name)
    now = await runtime.store.request_cancel(run)
    row = await runtime.row(run)
    if PinnedState.of(row.pins).queue:
        from quire.cli.cluster import notify_cluster

        await notify_cluster(runtime, row)
    if as_json:
        write_json({"run": run, "cancelled": now, "asked_owner": not now})
    elif now:
        click.echo(f"cancelled {run}", err=True)
    else:
        click.echo(f"asked the process that drives {run} to cancel it", err=True)
