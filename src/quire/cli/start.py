"""Start a document from the command line and drive it until it ends or waits."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from quire.cli.drive import DriveOptions, SessionOptions, drive, say_warnings, spawn_detached, with_workspace
from quire.cli.inputs import (
    ask_for_missing,
    given_limits,
    parse_pairs,
    read_inputs,
    warn_of_missing,
    warn_of_unread,
)
from quire.cli.options import budget_of, require_known
from quire.cli.output import target
from quire.cli.stdio import tell, wants_colour, with_runtime
from quire.cli.terminal import accepted_misses, starting, with_trust
from quire.diagnostics import Diagnostic, Severity
from quire.display.text import one_line, pasted
from quire.errors import BadDocument, NearMisses, NoModel, QuireError
from quire.library.lookup import document_of, tree_of
from quire.runs.options import RunOptions
from quire.runs.pins import starts_now
from quire.runs.runtime import Runtime
from quire.wording import counted
from quire.workspace.locate import is_on_shelf

if TYPE_CHECKING:
    from quire.library.document import Document
    from quire.models.choose import Choice
    from quire.runs.again import EarlierStart
    from quire.values import Value


class Order(DriveOptions, frozen=True, kw_only=True):
    """The arguments and options of `quire run`, as they were given."""

    document: str | None
    text: tuple[str, ...]
    inputs: tuple[str, ...]
    inputs_file: str | None
    reuse: str | None
    like: str | None
    key: str | None


def run_document(order: Order) -> int:
    """Run a document as ordered, and return the exit code."""
    earlier = _earlier(order) if order.like else None
    read = earlier.document if earlier else document_of(order.document or "")
    _show_findings(read, order.quiet)
    to = target(order.out, read.name) if order.out else None
    options = RunOptions(
        model=order.spec,
        breakpoints=order.breaks,
        answers=parse_pairs(order.answers, "--answer"),
        unattended=order.unattended,
        says_yes=order.says_yes,
        allow=order.allow,
        budget=budget_of(order.budget),
        limits=given_limits(order.limits, read.format),
        reuse=order.reuse or "",
        force=order.force,
        out=to.kept if to else "",
        key=order.key or "",
        trace=os.environ.get("TRACEPARENT", ""),
    )
    plan = read.runnable()
    inputs = _given_inputs(read, order)
    if earlier:
        unnamed = earlier.unnamed(options, budget=order.budget is None)
        inputs, options = earlier.completed(inputs), replace(options, **unnamed)
        order = replace(order, allow=options.allow, unattended=options.unattended)
    manner = SessionOptions(order.as_json, order.quiet, order.unattended, to=to)
    ask = manner.interactive and not order.detach

    def opened() -> tuple[Runtime, Choice | None]:
        return with_trust(lambda: _open(read, options, order.script is not None, order.cluster), ask=ask)

    try:
        runtime, choice = opened()
    except NoModel as error:
        from quire.cli.model import offer_models

        if not ask or order.cluster or not offer_models():
            raise NoModel("\n".join([str(error), *_missing(read, inputs)])) from None
        runtime, choice = opened()
    require_known(order.allow, runtime.settings)
    if not order.force:
        options = replace(options, accepted=_accepted(runtime, read, ask))
    if plan.infers_inputs:
        _warn_of_inputs(read, inputs)
    elif ask and (choice is not None or plan.declared is not None):
        inputs = _completed(runtime, read, choice, inputs, order.cluster)

    async def work(runtime: Runtime, granted: tuple[str, ...]) -> int:
        chosen = replace(options, allow=granted)
        return await _run(runtime, read, inputs, chosen, choice, manner, order.detach, order.cluster)

    return with_workspace(work, ask=ask, allow=order.allow, runtime=runtime)


def _earlier(order: Order) -> EarlierStart:
    from quire.runs.again import earlier_start

    def opened() -> EarlierStart:
        return with_runtime(lambda runtime: earlier_start(runtime, order.like or ""))

    earlier = with_trust(opened, ask=SessionOptions(order.as_json, order.quiet, order.unattended).interactive)
    if earlier.notice and not order.quiet:
        tell(one_line(earlier.notice))
    return earlier


def _given_inputs(read: Document, order: Order) -> dict[str, Value]:
    """Return the inputs that were given by name or file, and as TEXT."""
    plan = read.runnable()
    if not order.text:
        return read_inputs(order.inputs, order.inputs_file, plan)
    from quire.cli.declared_inputs import checked_text, text_input

    text = checked_text(order.text, order.inputs, order.inputs_file)
    inputs = read_inputs(order.inputs, order.inputs_file, plan)
    return inputs | text_input(read, text, inputs)


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


def _missing(read: Document, inputs: dict[str, Value]) -> list[str]:
    """Return the inputs that are missing too, so that they are reported together with the missing model."""
    plan = read.runnable()
    if plan.declared is not None:
        from quire.engine.declared_inputs import describe_field, missing_fields

        return [f"missing input {describe_field(field)}" for field in missing_fields(plan, inputs)]
    if plan.infers_inputs:
        from quire.formats.pipeline.inputs import inferred_inputs

        return [warning for warning in [warn_of_missing(inferred_inputs(tree_of(read)), inputs)] if warning]
    if plan.thread:
        from quire.engine.inputs import missing_parameters

        return missing_parameters(plan.thread.inputs, inputs)
    from quire.engine.inputs import describe, missing_inputs

    return [f"missing input {describe(input)}" for input in missing_inputs(plan, inputs)]


def _asks_a_model(runtime: Runtime, read: Document) -> bool:
    from quire.plan.uses import asks_a_model

    plan = read.runnable()
    callees = runtime.callees(shelf=is_on_shelf(read.name, runtime.settings.user)).reachable(plan)
    return asks_a_model((plan, *(callee.plan for callee in callees.values())))


def _accepted(runtime: Runtime, read: Document, ask: bool) -> tuple[str, ...]:
    """Return the codes of the near misses that the user accepts, who must not type inputs for a run that is then
    refused."""
    from quire.runs.start import require_meant

    callees = runtime.callees(shelf=is_on_shelf(read.name, runtime.settings.user)).reachable(read.runnable())
    written = [(callee.source, callee.plan.format, callee.declared) for callee in callees.values()]
    try:
        return require_meant([(read.source, read.format, read.declared), *written], force=False)
    except NearMisses as stopped:
        return accepted_misses(stopped, ask=ask)


def _warn_of_inputs(read: Document, inputs: dict[str, Value]) -> None:
    from quire.formats.pipeline.inputs import inferred_inputs, optional_inputs, unread_inputs

    tree = tree_of(read)
    needed = inferred_inputs(tree)
    others = [name for name in (*needed, *optional_inputs(tree)) if name not in inputs]
    for warning in (warn_of_missing(needed, inputs), *warn_of_unread(unread_inputs(tree, inputs), others)):
        if warning:
            tell(warning)


def _completed(
    runtime: Runtime, read: Document, choice: Choice | None, inputs: dict[str, Value], cluster: bool
) -> dict[str, Value]:
    """Ask the user for missing inputs, after checking that the model can be opened: the user must not type inputs for
    a run that cannot start. With `--cluster` the model is not checked here, because the workers open it."""
    from quire.engine.declared_inputs import missing_fields
    from quire.engine.inputs import missing_inputs
    from quire.models.open import open_model

    plan = read.runnable()
    if (missing_inputs(plan, inputs) or missing_fields(plan, inputs)) and choice is not None and not cluster:
        open_model(choice.spec, runtime.settings.models)
    if plan.declared is None:
        return ask_for_missing(plan, inputs)
    from quire.cli.declared_inputs import ask_for_fields

    return ask_for_fields(plan, inputs)


async def _run(
    runtime: Runtime,
    read: Document,
    inputs: dict[str, Value],
    options: RunOptions,
    choice: Choice | None,
    manner: SessionOptions,
    detach: bool,
    cluster: bool,
) -> int:
    if cluster:
        from quire.cli.cluster import run_on_cluster

        return await run_on_cluster(runtime, read, inputs, options, choice, manner, detach)
    if not manner.quiet:
        runtime.notice = lambda line: tell(one_line(line))
        runtime.tells_bounds = not manner.json
    run = await starting(runtime.start(read, inputs, options, choice))
    if options.key and not starts_now(await runtime.row(run)):
        if detach:
            click.echo(run)
            return 0
        from quire.cli.cluster import watch

        return await watch(runtime, run, manner)
    if detach:
        if not manner.quiet:
            await say_warnings(runtime, run)
        return spawn_detached(run)
    return await drive(runtime, run, manner, why=choice.reason if choice else "", most=_most(runtime, manner))


def _most(runtime: Runtime, manner: SessionOptions) -> str:
    """Return the most that the run can do, for people; empty if it is not shown, or the run only computes and looks."""
    bounds = runtime.bounds
    if bounds is None or manner.quiet or manner.json:
        return ""
    if bounds.envelope is None and all(
        bounds.proven.as_value().get(kind) == 0 for kind in ("model_calls", "questions")
    ):
        return ""
    from quire.display.preflight_line import preflight_line

    return preflight_line(bounds.quantities, bounds.sizes, bounds.envelope)


def _show_findings(read: Document, quiet: bool) -> None:
    if read.plan is None:
        _print_diagnostics(read)
        raise BadDocument(f"{read.name} cannot run: {counted(len(read.errors), 'error')}")
    if quiet:
        return
    warnings = sum(finding.severity is Severity.WARNING for finding in _findings(read))
    if warnings:
        tell(f"{counted(warnings, 'warning')}: quire check {pasted(read.name)}")
    if read.format == "playbook" and not read.name.endswith(".playbook.md"):
        _note_extensions(read)


def _note_extensions(read: Document) -> None:
    """Say once what only Quire reads in a document that may be written for other implementations."""
    from quire.formats.playbook.scan import may_be_quire_only

    if not may_be_quire_only(read.source.text):
        return
    from quire.formats.playbook.extensions import quire_only
    from quire.library.document import parse_playbook, unnamed

    playbook = parse_playbook(unnamed(read.source), True)[0].playbook
    messages = [note.message for note in quire_only(playbook)] if playbook else []
    uses = ", ".join(dict.fromkeys(message.partition(" is Quire")[0].lower() for message in messages))
    if uses:
        tell(f"note: Quire's own: {uses} (quire check --portable {pasted(read.name)})")


def _findings(read: Document) -> tuple[Diagnostic, ...]:
    """Return the findings of `quire check`. Most findings of a pipeline, and some of a directive, need the
    workspace."""
    is_commented = "quire:" in read.source.text
    if read.format == "playbook" and not is_commented:
        return read.diagnostics
    from quire.library.check import DocumentCheck

    try:
        check = DocumentCheck()
        if is_commented:
            return check.of(read.source)
        return check.directive(read.source) if read.format == "directive" else check.pipeline(read.source)
    except QuireError:
        return read.diagnostics


def _print_diagnostics(read: Document) -> None:
    from quire.display.diagnostics import Findings, printer

    colour = wants_colour(sys.stderr)
    findings = tuple(
        diagnostic for diagnostic in read.diagnostics if diagnostic.severity in (Severity.ERROR, Severity.WARNING)
    )
    click.echo(printer("full")([Findings(read.source, findings)], colour), nl=False, err=True, color=colour)
