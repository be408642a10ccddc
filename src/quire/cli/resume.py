"""`quire resume`: go on with a run that waits, failed, was cancelled or was interrupted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import click

from quire.cli.completion import complete_run
from quire.cli.driving import Manner, drive, driving_options
from quire.cli.inputs import given_limits, json_or_text, split_pairs
from quire.cli.out import target_again
from quire.cli.trusting import with_trust
from quire.diagnostics import nearest
from quire.engine.records import Status
from quire.errors import BadInputs, RunState
from quire.runtime import Runtime
from quire.values import Value


@click.command("resume")
@click.argument("run", metavar="RUN|last", shell_complete=complete_run)
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
        if overrides:
            _check_names(overrides, row.format, (await runtime.view(run)).document.source.text)
        return await drive(
            runtime,
            run,
            manner,
            overrides=_values(overrides) if row.format == "pipeline" else overrides,
            script=script,
        )
    finally:
        await runtime.close()


def _check_names(names: Iterable[str], format: str, text: str) -> None:
    """A name that the document never mentions can change nothing: it is misspelt. Raises `BadInputs`."""
    from quire.runtime.fork import mentioned, reads_any

    if reads_any(format, text):
        return
    words = mentioned(text)
    problems = []
    for name in names:
        if name not in words:
            close = nearest(name, words)
            hint = f" (did you mean {close}?)" if close else ""
            problems.append(f"--set {name}: the document never mentions {name}{hint}")
    if problems:
        raise BadInputs(problems)


def _values(texts: Mapping[str, str]) -> dict[str, Value]:
    """As `-i` of a pipeline has it: what is JSON is that value."""
    return {name: json_or_text(text) for name, text in texts.items()}
