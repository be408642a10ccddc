"""`quire run`: start a document and drive it until it ends or waits."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from quire.cli.completers import complete_document, complete_input, complete_model
from quire.cli.detach import leave_to_itself, say_warnings
from quire.cli.inputs import (
    ask_for_missing,
    given_inputs,
    given_limits,
    split_pairs,
    warn_of_missing,
    warn_of_unread,
)
from quire.cli.interrupts import starting
from quire.cli.options import budget_of, filled
from quire.cli.output import target
from quire.cli.scripts import pinned_spec
from quire.cli.session import Manner, drive, driving_options
from quire.cli.trust_prompt import with_grants, with_trust
from quire.diagnostics import Diagnostic, Severity
from quire.display.text import one_line, pasted
from quire.errors import BadDocument, NoModel, QuireError
from quire.library.document import Document
from quire.library.lookup import document_of, tree_of
from quire.runs import RunOptions, Runtime
from quire.values import Value

if TYPE_CHECKING:
    from quire.models.choose import Choice


@click.command("run")
@click.argument("document", metavar="DOC", callback=filled, shell_complete=complete_document)
@click.option(
    "-i",
    "--input",
    "inputs",
    metavar="NAME=VALUE",
    multiple=True,
    shell_complete=complete_input,
    help="An input; NAME=@FILE reads a file.",
)
@click.option("--inputs", "inputs_file", metavar="FILE", help="Inputs from a JSON object.")
@click.option(
    "--model", metavar="SPEC", callback=filled, shell_complete=complete_model, help="The model, as PROVIDER:NAME."
)
@click.option("--answer", "answers", metavar="STEP=VALUE", multiple=True, help="Answer a step's question beforehand.")
@click.option("--break", "breaks", metavar="STEP", multiple=True, help="Pause after a step.")
@click.option("--allow", metavar="TOOL", multiple=True, callback=filled, help="Grant a tool to this run.")
@click.option("--unattended", is_flag=True, help="Ask nobody: defaults, else yes, the first option, nothing.")
@click.option("--detach", is_flag=True, help="Leave the run to a process of its own; print its id.")
@click.option("--cluster", is_flag=True, help="Hand the run to the workers of a cluster, and watch it.")
@driving_options
@click.pass_context
def command(
    context: click.Context,
    document: str,
    inputs: tuple[str, ...],
    inputs_file: str | None,
    model: str | None,
    answers: tuple[str, ...],
    breaks: tuple[str, ...],
    allow: tuple[str, ...],
    unattended: bool,
    detach: bool,
    cluster: bool,
    script: str | None,
    budget: float | None,
    limits: tuple[str, ...],
    out: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Run a document. PAID: calls a model (free with --script or a local one); WRITES the run's journal.

    DOC is a file, or the name of a registered pipeline, a playbook or a directive. The final output goes to stdout,
    everything else to stderr. NAME=@FILE reads an input from a file, NAME=@- from stdin, NAME=@@x is the text @x. For
    a pipeline, an input that is JSON becomes that value: -i n=5 is a number, -i n='"5"' a text. Ctrl-C pauses the run,
    `quire resume` goes on. The limits of a directive are turns, tokens, spend, spawns, depth and duration_seconds.
    STEP is a label, or the way into a callee: '3>1' is step 1 of the document that step 3 calls.
    """
    if model and script:
        raise click.UsageError("--model and --script exclude each other")
    if detach and (out or as_json):
        raise click.UsageError("--detach has no output of its own: see `quire runs RUN --output`")
    read = document_of(document)
    _show_findings(read, quiet)
    to = target(out, read.name) if out else None
    manner = Manner(as_json, quiet, unattended, to=to)
    asked = f"script:{script}" if script else model
    options = RunOptions(
        model=pinned_spec(asked) if asked else None,
        breakpoints=breaks,
        answers=split_pairs(answers, "--answer"),
        unattended=unattended,
        allow=allow,
        budget=budget_of(budget),
        limits=given_limits(limits, read.format),
        out=to.kept if to else "",
    )
    is_pipeline = read.format == "pipeline"
    given = given_inputs(inputs, inputs_file, as_json=is_pipeline)
    ask = manner.interactive and not detach
    try:
        runtime, choice = with_trust(lambda: _open(read, options, script is not None, cluster), ask=ask)
    except NoModel as error:
        raise NoModel("\n".join([str(error), *_missing(read, given)])) from None
    if allow:
        _require_known(allow, runtime)
    if is_pipeline:
        _warn_of_inputs(read, given)
    elif ask and choice is not None:
        given = _completed(runtime, read, choice, given, cluster)

    def work(granted: tuple[str, ...]) -> int:
        import asyncio

        chosen = replace(options, allow=granted)
        return asyncio.run(_run(Runtime.open(), read, given, chosen, choice, manner, detach, cluster))

    context.exit(with_trust(lambda: with_grants(work, allow, ask=ask), ask=ask))


def _open(read: Document, options: RunOptions, scripted: bool, cluster: bool) -> tuple[Runtime, Choice | None]:
    """Open the workspace and choose the model of the run; None for the model if no step can ask one."""
    runtime = Runtime.open()
    if cluster:
        from quire.cluster.client import require_cluster

        require_cluster(runtime.settings)
    if not _asks_a_model(runtime, read):
        return runtime, None
    choice = runtime.choose_model(options.model, read.runnable())
    return runtime, replace(choice, reason="--script") if scripted else choice


def _missing(read: Document, given: dict[str, Value]) -> list[str]:
    """Return the inputs that are missing too, so that they are reported together with the missing model."""
    plan = read.runnable()
    if plan.format == "pipeline":
        from quire.formats.pipeline.inputs import inferred_inputs

        return [warning for warning in [warn_of_missing(inferred_inputs(tree_of(read)), given)] if warning]
    if plan.format == "directive":
        from quire.engine.inputs import missing_parameters
        from quire.plan.thread import Thread

        threads = [step.work for _, step in plan.steps() if isinstance(step.work, Thread)]
        return [problem for thread in threads for problem in missing_parameters(thread.inputs, given)]
    from quire.engine.inputs import describe, missing_inputs

    return [f"missing input {describe(one)}" for one in missing_inputs(plan, given)]


def _asks_a_model(runtime: Runtime, read: Document) -> bool:
    from quire.plan.uses import asks_a_model

    plan = read.runnable()
    callees = runtime.callees().reachable(plan)
    return asks_a_model((plan, *(callee.plan for callee in callees.values())))


def _require_known(allow: tuple[str, ...], runtime: Runtime) -> None:
    from quire.cli.allow import require_known

    require_known(allow, runtime.settings)


def _warn_of_inputs(read: Document, given: dict[str, Value]) -> None:
    from quire.formats.pipeline.inputs import inferred_inputs, optional_inputs, unread_inputs

    tree = tree_of(read)
    needed = inferred_inputs(tree)
    known = [name for name in (*needed, *optional_inputs(tree)) if name not in given]
    for warning in (warn_of_missing(needed, given), *warn_of_unread(unread_inputs(tree, given), known)):
        if warning:
            click.echo(warning, err=True)


def _completed(
    runtime: Runtime, read: Document, choice: Choice, given: dict[str, Value], cluster: bool
) -> dict[str, Value]:
    """Ask the user for missing inputs, after checking that the model can be opened: the user must not type inputs for
    a run that cannot start. With `--cluster` the model is not checked here, because the workers open it."""
    from quire.engine.inputs import missing_inputs
    from quire.models.open import open_model

    plan = read.runnable()
    if missing_inputs(plan, given) and not cluster:
        open_model(choice.spec, runtime.settings.models)
    return ask_for_missing(plan, given)


async def _run(
    runtime: Runtime,
    read: Document,
    given: dict[str, Value],
    options: RunOptions,
    choice: Choice | None,
    manner: Manner,
    detach: bool,
    cluster: bool,
) -> int:
    try:
        if cluster:
            from quire.cli.cluster import run_there

            return await run_there(runtime, read, given, options, choice, manner, detach)
        if not manner.quiet:
            runtime.notice = lambda line: click.echo(one_line(line), err=True)
        run = await starting(runtime.start(read, given, options, choice))
        if detach:
            if not manner.quiet:
                await say_warnings(runtime, run)
            return leave_to_itself(run)
        return await drive(runtime, run, manner, why=choice.reason if choice else "")
    finally:
        await runtime.close()


def _show_findings(read: Document, quiet: bool) -> None:
    if read.plan is None:
        _print_diagnostics(read)
        raise BadDocument(f"{read.name} cannot run: {_counted(len(read.errors), 'error')}")
    if quiet:
        return
    warnings = sum(found.severity is Severity.WARNING for found in _findings(read))
    if warnings:
        click.echo(f"{_counted(warnings, 'warning')}: quire check {pasted(read.name)}", err=True)


def _findings(read: Document) -> tuple[Diagnostic, ...]:
    """Return the findings of `quire check`. Most findings of a pipeline, and some of a directive, need the
    workspace."""
    try:
        if read.format == "directive":
            from quire.library.check_items import ItemCheck

            return ItemCheck().directive(read.source)
        if read.format == "pipeline":
            from quire.library.check import DocumentCheck

            return DocumentCheck().pipeline(read.source)
        return read.diagnostics
    except QuireError:
        return read.diagnostics


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _print_diagnostics(read: Document) -> None:
    from quire.display.diagnostics import Findings, printer

    colour = sys.stderr.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    found = tuple(one for one in read.diagnostics if one.severity in (Severity.ERROR, Severity.WARNING))
    click.echo(printer("full")([Findings(read.source, found)], colour), nl=False, err=True, color=colour)
