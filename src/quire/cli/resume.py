"""`quire resume`: continue a run that waits, failed, was cancelled or was interrupted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from quire.cli.completion import complete_run
from quire.cli.inputs import parse_pairs
from quire.cli.options import (
    Unattended,
    check_exclusive,
    driving_options,
    force_option,
    options_again,
    require_text,
    unattended_option,
)
from quire.cli.output import target_again
from quire.cli.repair import NewRunOptions, document_option, repair_and_drive, require_limits_fit, values_for
from quire.cli.session import SessionOptions, drive, given_now, spawn_detached, with_workspace
from quire.display.commands import resume_command
from quire.display.visible import visible
from quire.engine.records import RunRow, Status
from quire.errors import RunState

if TYPE_CHECKING:
    from quire.runs.runtime import Runtime


@click.command("resume", cls=Unattended)
@click.argument("run", metavar="[RUN|last]", required=False, shell_complete=complete_run, callback=require_text)
@click.option("--set", "sets", metavar="NAME=VALUE", multiple=True, help="Change a value where the run is paused.")
@click.option("--model", metavar="SPEC", callback=require_text, help="Another model, for every call from here on.")
@click.option("--answer", "answers", metavar="STEP=VALUE", multiple=True, help="Answer a step's question beforehand.")
@click.option("--break", "breaks", metavar="STEP", multiple=True, help="Pause after a step.")
@unattended_option("Ask no questions from here on: defaults, as for `quire run`.")
@document_option
@click.option(
    "--from", "step", metavar="STEP", callback=require_text, help="With --document: the first step that is new."
)
@click.option("--allow", metavar="TOOL", multiple=True, callback=require_text, help="With --document: grant a tool.")
@force_option
@click.option("--detach", is_flag=True, help="Leave the run to a process of its own; print its id.")
@click.option("--cluster", is_flag=True, help="Have the workers of the run's cluster go on with it, and watch.")
@driving_options
@click.pass_context
def command(
    context: click.Context,
    run: str | None,
    sets: tuple[str, ...],
    model: str | None,
    answers: tuple[str, ...],
    breaks: tuple[str, ...],
    unattended: bool,
    says_yes: bool,
    document: str | None,
    step: str | None,
    allow: tuple[str, ...],
    force: bool,
    detach: bool,
    cluster: bool,
    script: str | None,
    budget: float | None,
    limits: tuple[str, ...],
    out: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Go on with a run. PAID: calls a model; WRITES the run's journal.

    Completed steps are not done again. RUN is an id, the beginning of one, or `last`; without it, the only run that
    waits, failed, was cancelled or interrupted goes on. A script is the script of the whole run: entries that were used
    are skipped. --model, --answer, --break, --unattended, --limit and --budget apply to the rest of the run;
    `--budget none` removes its budget.

    A run keeps the document that it was started with. With --document it goes on with the edited one, in a new run:
    every recorded effect that the edited document still asks for is kept; the first effect that differs is named, and
    it is done again together with all effects after it.
    """
    overrides = parse_pairs(sets, "--set")
    given = given_now(
        limits, budget, model=model, answers=answers, unattended=unattended, says_yes=says_yes, breaks=breaks
    )
    _check_usage(context, cluster, document is not None)
    manner = SessionOptions(as_json, quiet, unattended, given=given)
    changed = NewRunOptions(overrides, model, script, given.answers, unattended, budget, limits, force, says_yes)

    async def resume(runtime: Runtime, granted: tuple[str, ...]) -> int:
        found = await runtime.only("resume") if run is None else await runtime.find(run)
        if document is None:
            options = options_again(context) if detach else None
            return await _resume(runtime, found, manner, out, overrides, script, cluster, options)
        row = await _resumable(runtime, found, manner)
        to = target_again(out, row)
        own = SessionOptions(as_json, quiet, unattended, to)
        changes = changed.changes(row, granted, to)
        return await repair_and_drive(
            runtime, found, document, changes, own, step=step or "", instead=True, detach=detach
        )

    context.exit(with_workspace(resume, ask=manner.interactive, allow=None if document is None else allow))


def _check_usage(context: click.Context, cluster: bool, repairs: bool) -> None:
    given = {name for name, value in context.params.items() if value not in (None, (), False)}
    check_exclusive(context)
    if cluster and (given & _HERE or repairs):
        raise click.UsageError("--cluster goes on as the run is: other options are for a run that is driven here")
    if not repairs and given & {"step", "allow", "force"}:
        raise click.UsageError("--from, --allow and --force are for --document: a run goes on as it was started")
    if repairs and "breaks" in given:
        raise click.UsageError("--break and --document exclude each other: resume the new run with --break")


_HERE = {"sets", "script", "limits", "budget", "model", "answers", "breaks", "unattended", "says_yes", "detach"}
"""Parameters that apply only to a run driven by this process."""


async def _resumable(runtime: Runtime, run: str, manner: SessionOptions) -> RunRow:
    row = await runtime.row(run)
    if row.status is Status.COMPLETED:
        raise RunState(f"run {run} is completed: `quire runs {run} --output` prints its result")
    require_limits_fit(row, manner.given.limits)
    return row


async def _resume(
    runtime: Runtime,
    run: str,
    manner: SessionOptions,
    out: str | None,
    overrides: Mapping[str, str],
    script: str | None,
    cluster: bool,
    detached: list[str] | None,
) -> int:
    await runtime.store.check_seal(run, whole=False)
    row = await _resumable(runtime, run, manner)
    if row.status is Status.EXPIRED:
        raise RunState(f"run {run} has expired: `quire fork {run} --from STEP` goes on from there in a new run")
    manner = manner.writing_to(target_again(out, row))
    if cluster:
        from quire.cli.cluster import resume_on_cluster

        return await resume_on_cluster(runtime, row, manner)
    values = values_for(row, overrides)
    if values:
        from quire.runs.resume import checked_overrides

        values = checked_overrides((await runtime.view(run)).document, values, way=row.position)
    if detached is not None:
        return spawn_detached(run, *detached)
    if row.status is Status.FAILED and not manner.quiet:
        from quire.runs.repair import edited_file

        if edited := await edited_file(runtime, run):
            again = resume_command(run, document=True)
            click.echo(f"{visible(str(edited))} was edited since; to go on with the edited text: {again}", err=True)
    return await drive(runtime, run, manner, overrides=values, script=script)
