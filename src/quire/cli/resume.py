"""`quire resume`: go on with a run that waits, failed, was cancelled or was interrupted."""

from __future__ import annotations

from collections.abc import Mapping

import click

from quire.cli.completion import complete_run
from quire.cli.driving import Manner, drive, driving_options
from quire.cli.filled import filled
from quire.cli.inputs import given_limits, split_pairs
from quire.cli.out import target_again
from quire.cli.trusting import with_trust
from quire.engine.records import Status
from quire.errors import RunState
from quire.runtime import Runtime
from quire.values import Value, value_of


@click.command("resume")
@click.argument("run", metavar="RUN|last", shell_complete=complete_run, callback=filled)
@click.option("--set", "sets", metavar="NAME=VALUE", multiple=True, help="Change a value where the run is paused.")
@click.option("--cluster", is_flag=True, help="Have the workers of the run's cluster go on with it, and watch.")
@driving_options
@click.pass_context
def command(
    context: click.Context,
    run: str,
    sets: tuple[str, ...],
    cluster: bool,
    script: str | None,
    budget: float | None,
    limits: tuple[str, ...],
    out: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Go on with a run. PAID: calls a model; WRITES the run's journal.

    Steps that are done are not done again. RUN is an id, the beginning of one, or `last`. A script is the script of the
    whole run: entries that were used are passed over. A --limit and a --budget hold for the rest of the run.
    """
    overrides = split_pairs(sets, "--set")
    if cluster and (overrides or script or limits or budget is not None):
        raise click.UsageError("--set, --script, --limit and --budget are for a run that is driven here, not --cluster")
    manner = Manner(as_json, quiet, budget=budget, limits=given_limits(limits))

    def work() -> int:
        import asyncio

        return asyncio.run(_resume(run, manner, out, overrides, script, cluster))

    context.exit(with_trust(work, ask=manner.interactive))


async def _resume(
    asked: str, manner: Manner, out: str | None, overrides: Mapping[str, str], script: str | None, cluster: bool
) -> int:
    runtime = Runtime.open()
    try:
        run = await runtime.find(asked)
        row = await runtime.row(run)
        await runtime.store.check_seal(run, whole=False)
        if row.status is Status.COMPLETED:
            raise RunState(f"run {run} is completed: `quire runs {run} --output` prints its result")
        if row.status is Status.EXPIRED:
            raise RunState(f"run {run} has expired: `quire fork {run} --from STEP` goes on from there in a new run")
        manner = manner.writing_to(target_again(out, row))
        if cluster:
            from quire.cli.clustered import resume_there

            return await resume_there(runtime, row, manner)
        if manner.limits and row.format != "directive":
            raise RunState(f"--limit is for directives, and run {run} is of a {row.format}")
        values = _values(overrides) if row.format == "pipeline" else overrides
        if values:
            from quire.runtime.overrides import checked_overrides

            values = checked_overrides((await runtime.view(run)).document, values)
        return await drive(runtime, run, manner, overrides=values, script=script)
    finally:
        await runtime.close()


def _values(texts: Mapping[str, str]) -> Mapping[str, Value]:
    """As `-i` of a pipeline has it: what is JSON is that value."""
    return {name: value_of(text) for name, text in texts.items()}
