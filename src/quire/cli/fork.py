"""`quire fork`: start a new run from the middle of another one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from quire.cli.completion import complete_run
from quire.cli.inputs import parse_pairs
from quire.cli.options import (
    Unattended,
    check_exclusive,
    driving_options,
    force_option,
    require_text,
    unattended_option,
)
from quire.cli.output import target
from quire.cli.repair import NewRunOptions, document_option, repair_and_drive
from quire.cli.session import SessionOptions, drive, spawn_detached, with_workspace
from quire.display.text import one_line, place
from quire.wording import pluralize

if TYPE_CHECKING:
    from quire.runs.fork import Changes
    from quire.runs.runtime import Runtime


@click.command("fork", cls=Unattended)
@click.argument("run", metavar="RUN|last", shell_complete=complete_run, callback=require_text)
@click.option("--from", "step", metavar="STEP", callback=require_text, help="The first step that is new.")
@document_option
@click.option("--set", "sets", metavar="NAME=VALUE", multiple=True, help="A value from that step on.")
@click.option("--model", metavar="SPEC", callback=require_text, help="Another model, for every call from there on.")
@click.option("--allow", metavar="TOOL", multiple=True, callback=require_text, help="Grant a tool to the new run.")
@click.option("--answer", "answers", metavar="STEP=VALUE", multiple=True, help="Answer a step's question beforehand.")
@unattended_option("Ask no questions: defaults, as for `quire run`.")
@force_option
@click.option("--dry-run", is_flag=True, help="Only say what the fork keeps and does again. FREE.")
@click.option("--detach", is_flag=True, help="Leave the new run to a process of its own; print its id.")
@driving_options
@click.pass_context
def command(
    context: click.Context,
    run: str,
    step: str | None,
    document: str | None,
    sets: tuple[str, ...],
    model: str | None,
    allow: tuple[str, ...],
    answers: tuple[str, ...],
    unattended: bool,
    says_yes: bool,
    force: bool,
    dry_run: bool,
    detach: bool,
    script: str | None,
    budget: float | None,
    limits: tuple[str, ...],
    out: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Make a new run with everything that another run recorded before a step, and drive it. PAID: calls a model;
    WRITES the new run's journal, and nothing of the other.

    RUN is an id, the beginning of one, or `last`; it may have completed, failed, expired or been imported. STEP is a
    step of a playbook (sub-steps too), a step at the top of a pipeline, or a turn of a directive: --from "turn 3".
    Effects that are taken over are not paid again. A value that is set for the first step is an input; for a later
    turn of a directive the model is told about it. A script is the script of the whole run.

    With --document the new run has the edited document: every recorded effect that it still asks for is kept; the
    first effect that differs is named, and it is done again together with all effects after it. --from keeps less.
    """
    if step is None and document is None:
        raise click.UsageError("say what is new: --from STEP, or --document for an edited document")
    if dry_run and document is not None:
        raise click.UsageError("--dry-run is for --from STEP: an edited document is compared when the fork is made")
    check_exclusive(context)
    given, beforehand = parse_pairs(sets, "--set"), parse_pairs(answers, "--answer")
    changed = NewRunOptions(given, model, script, beforehand, unattended, budget, limits, force, says_yes)
    manner = SessionOptions(as_json, quiet, unattended)

    async def fork(runtime: Runtime, granted: tuple[str, ...]) -> int:
        if allow:
            from quire.runs.allowed_names import require_known

            require_known(allow, runtime.settings)
        found = await runtime.find(run)
        row = await runtime.row(found)
        to = target(out, row.document) if out else None
        changes, own = changed.changes(row, granted, to), manner.writing_to(to)
        if dry_run:
            return await _say_receipt(runtime, found, step or "", changes, as_json)
        if document is not None:
            return await repair_and_drive(runtime, found, document, changes, own, step=step or "", detach=detach)
        return await _fork(runtime, found, step or "", changes, own, detach)

    context.exit(with_workspace(fork, ask=manner.interactive and not detach, allow=allow))


async def _say_receipt(runtime: Runtime, run: str, step: str, changes: Changes, as_json: bool) -> int:
    from quire.cli.stdio import write_json, write_text
    from quire.display.fork_json import receipt_data, receipt_line
    from quire.runs.fork_receipt import receipt

    found = await receipt(runtime, run, step, changes)
    write_json(receipt_data(found, changes)) if as_json else write_text(receipt_line(found))
    return 0


async def _fork(runtime: Runtime, run: str, step: str, changes: Changes, manner: SessionOptions, detach: bool) -> int:
    from quire.runs.fork import fork

    made = await fork(runtime, run, step, changes)
    if detach:
        return spawn_detached(made.run)
    if not manner.quiet and not manner.json:
        effects = f"{made.kept} recorded {pluralize('effect', made.kept)}"
        click.echo(f"run {made.run}: from {one_line(place(made.label))} of {run}, with {effects} of it", err=True)
    return await drive(runtime, made.run, manner, why=made.reason)
