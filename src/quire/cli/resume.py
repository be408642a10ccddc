"""Continue a run, or stop it: `quire resume` continues one that waits, failed, was cancelled or interrupted, `quire
answer` answers its question first, and `quire runs cancel` stops it, so that it can be resumed."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import click
from msgspec.structs import replace

from quire.cli.drive import DriveOptions, SessionOptions, drive, spawn_detached, with_workspace
from quire.cli.fork import (
    ForkOptions,
    document_option,
    repair_and_drive,
    require_limits_fit,
    tell_edited,
    values_for,
)
from quire.cli.inputs import parse_pairs, stdin_bytes
from quire.cli.options import (
    Unattended,
    budget_of,
    check_exclusive,
    driving_options,
    force_option,
    options_again,
    require_text,
    unattended_option,
)
from quire.cli.output import target_again
from quire.cli.resume_all import resume_all, wanted_runs
from quire.cli.shell_completion import complete_run
from quire.cli.stdio import tell, with_runtime, write_json
from quire.display.text import one_line, visible
from quire.engine.records import Question, RunRow, Status
from quire.errors import CannotStart, QuireError, Refused, RunBusy, RunState
from quire.plan.vocabulary import first_label
from quire.runs.adapters import option_by_number
from quire.runs.outcome import EXIT_REFUSED
from quire.runs.pins import PinnedState
from quire.runs.scripts import with_script
from quire.stores.contract import RESUMABLE
from quire.workspace.locate import account_name

if TYPE_CHECKING:
    from quire.runs.runtime import Runtime


@click.command("resume", cls=Unattended)
@click.argument("runs", metavar="[RUN|last]...", nargs=-1, shell_complete=complete_run, callback=require_text)
@click.option("--set", "sets", metavar="NAME=VALUE", multiple=True, help="Change a value where the run is paused.")
@click.option("--model", metavar="SPEC", callback=require_text, help="Another model for the rest of the run.")
@click.option("--answer", "answers", metavar="STEP=VALUE", multiple=True, help="Answer a step's question beforehand.")
@click.option("--break", "breaks", metavar="STEP", multiple=True, help="Pause after a step.")
@unattended_option("Never ask; use defaults, as in `quire run`.")
@document_option()
@click.option(
    "--from", "step", metavar="STEP", callback=require_text, help="With --document: the first step to do again."
)
@click.option("--allow", metavar="TOOL", multiple=True, callback=require_text, help="With --document: grant a tool.")
@force_option
@click.option("--all", "every", is_flag=True, help="All runs that wait for no person.")
@click.option("--status", type=click.Choice(list(map(str, RESUMABLE))), metavar="STATUS", help="All in a status.")
@click.option("--since", metavar="AGE", help="All that were started since, as in 2d.")
@click.option("-j", "--jobs", type=click.IntRange(1, 1000), default=8, metavar="N", help="How many of all at a time.")
@click.option("--dry-run", is_flag=True, help="Only show which runs would continue, and the most that it costs. FREE.")
@click.option("--detach", is_flag=True, help="Run in the background; print the run's id.")
@click.option("--cluster", is_flag=True, help="Continue on the workers of the run's cluster, and watch it.")
@driving_options
@click.pass_context
def resume_command(context: click.Context, /, **given: object) -> None:
    """Continue a run that waits, was stopped, or failed.

    RUN is an id, the beginning of one, or `last`; without it, on a terminal, the only such run. Completed steps are not
    done again; the options apply to the rest of the run. With --document it continues with the edited document in a new
    run, which keeps each recorded effect that the edited document still asks for. Several runs continue one after
    another, within one --budget, where a resume helps; the exit code is the highest of theirs.

    --all continues runs that lost their process, those whose time to continue has come, and those with an answer that
    was not taken yet. There --document names the document of the runs, as beside --status and --since.
    """
    every, status, since, jobs = map(context.params.pop, ("every", "status", "since", "jobs"))
    runs = context.params.pop("runs")
    options = ForkOptions(**context.params, run=runs[0] if len(runs) == 1 else None)
    overrides, rest, document = parse_pairs(options.sets, "--set"), options.for_the_rest(), options.document
    manner = SessionOptions(options.as_json, options.quiet, options.unattended, given=rest)
    names = {name for name, value in context.params.items() if value not in (None, (), False)}
    if every or status or since:
        if runs or names - (_OF_SEVERAL - {"budget"}) - {"document"}:
            raise click.UsageError("--all, --status and --since do not take RUN, or options for one run")
        wanted = partial(wanted_runs, status=status and Status(status), document=document or "", since=since)
        context.exit(
            with_workspace(lambda runtime, _: resume_all(runtime, wanted, jobs, manner, options.dry_run), ask=False)
        )
    _check_usage(context, names, options.cluster, document is not None)
    if len(runs) > 1 or options.dry_run:
        if others := names - _OF_SEVERAL:
            raise click.UsageError(f"several runs, and --dry-run, do not take: {', '.join(sorted(others))}")
        context.exit(
            with_workspace(lambda runtime, _: _resume_named(runtime, runs, manner, options), ask=manner.interactive)
        )

    async def resume(runtime: Runtime, granted: tuple[str, ...]) -> int:
        run = await _only(runtime, "resume") if options.run is None else await runtime.find(options.run)
        if document is None:
            detached = options_again(context) if options.detach else None
            return await _resume(runtime, run, manner, options, overrides, detached)
        row = await _resumable(runtime, run, manner)
        to = target_again(options.out, row)
        return await repair_and_drive(
            runtime,
            run,
            document,
            options.changes(row, overrides, rest.answers, granted, to),
            SessionOptions(options.as_json, options.quiet, options.unattended, to),
            step=options.step or "",
            instead=True,
            detach=options.detach,
        )

    context.exit(with_workspace(resume, ask=manner.interactive, allow=None if document is None else options.allow))


_OF_SEVERAL = {"budget", "model", "unattended", "says_yes", "quiet", "as_json", "dry_run"}


async def _resume_named(runtime: Runtime, names: tuple[str, ...], manner: SessionOptions, options: ForkOptions) -> int:
    """Resume runs one after another, and return the highest exit code. The receipt is printed first."""
    from quire.display.advice import MOST_RESUMED, resume_receipt

    if len(names) > MOST_RESUMED:
        raise click.UsageError(f"at most {MOST_RESUMED} runs are resumed at once, and these are {len(names)}")
    runs = dict.fromkeys([await runtime.find(name) for name in names or [await _only(runtime, "resume")]])
    views = [await runtime.view(run) for run in runs]
    receipt = resume_receipt(views, budget_of(options.budget), runtime.settings)
    if options.dry_run and options.as_json:
        write_json(receipt)
    elif not manner.quiet or options.dry_run:
        tell(receipt["summary"])
    codes = [0]
    for row in receipt["runs"]:
        if row["problem"]:
            tell(f"quire: {row['run']} ({one_line(row['label'])}) stays as it is: {one_line(row['problem'])}")
            codes.append(RunState.exit_code)
        elif not options.dry_run:
            given = manner.given if options.budget is None else replace(manner.given, budget=row["budget"])
            try:
                codes.append(await drive(runtime, row["run"], replace(manner, given=given)))
            except QuireError as error:
                tell(f"quire: {row['run']}: {visible(str(error))}")
                codes.append(error.exit_code)
            if codes[-1] > EXIT_REFUSED:
                break  # the user has stopped it
    return 0 if options.dry_run else max(codes)


async def _only(runtime: Runtime, verb: Literal["answer", "resume"]) -> str:
    """Return the only run that a verb can mean, and show it first with its inputs; for `answer` its question too.
    Raises `CannotStart` without a terminal: a script has to say what it agrees to."""
    from quire.cli.terminal import question_text, somebody_is_here
    from quire.display.text import one_line, short
    from quire.values import as_texts

    run = await runtime.only(verb)
    if not somebody_is_here():
        raise CannotStart(f"RUN is missing: without a terminal, name the run (quire {verb} {run} …)")
    view = await runtime.view(run)
    tell(f"run {run}: {one_line(view.row.title)}, {view.row.status.words}")
    for name, text in as_texts(view.pins.inputs).items():
        tell(f"  {one_line(name)} = {short(text, 200)}")
    for question in view.questions if verb == "answer" else ():
        tell(question_text(question))
    return run


def _check_usage(context: click.Context, names: set[str], cluster: bool, repairs: bool) -> None:
    check_exclusive(context)
    if cluster and (names & _HERE or repairs):
        raise click.UsageError("--cluster continues the run as it is: other options are for a run in this process")
    if not repairs and names & {"step", "allow", "force"}:
        raise click.UsageError("--from, --allow and --force are for --document: a run continues as it was started")
    if repairs and "breaks" in names:
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
    options: ForkOptions,
    overrides: Mapping[str, str],
    detached: list[str] | None,
) -> int:
    await runtime.store.check_seal(run, whole=False)
    row = await _resumable(runtime, run, manner)
    if row.status is Status.EXPIRED:
        raise RunState(f"run {run} has expired: `quire runs fork {run} --from STEP` continues there in a new run")
    manner = manner.writing_to(target_again(options.out, row))
    if options.cluster:
        from quire.cli.cluster import resume_on_cluster

        return await resume_on_cluster(runtime, row, manner)
    values = values_for(row, overrides)
    if values:
        from quire.runs.drives import checked_overrides

        values = checked_overrides((await runtime.view(run)).document, values, way=row.position)
    if detached is not None:
        return spawn_detached(run, *detached)
    if row.status is Status.FAILED and not manner.quiet:
        await tell_edited(runtime, run)
    return await drive(runtime, run, manner, overrides=values, script=options.script)


MOST_LAUNCHES = 100
"""Runs that launched one another, as far as the one that a client or a user started."""


@click.command("answer")
@click.argument("run", metavar="[RUN|last]", shell_complete=complete_run)
@click.argument("words", metavar="[STEP] VALUE", nargs=-1)
@click.option("--model", metavar="SPEC", callback=require_text, help="Another model for the rest of the run.")
@click.option("--detach", is_flag=True, help="Store the answer; continue in the background.")
@click.option("--hold", is_flag=True, help="Only store the answer; `quire resume` continues.")
@driving_options
@click.pass_context
def answer_command(
    context: click.Context, /, run: str, words: tuple[str, ...], detach: bool, hold: bool, **driving: Any
) -> None:
    """Answer the question of a run, then continue the run.

    VALUE is yes or no, an option or its number, or a text; - reads it from stdin. Without RUN, on a terminal, the only
    question is shown first. STEP is needed if several steps ask; if several items of a step ask, it is the path that
    `quire inbox` shows. A run that another process drives takes the answer there.
    """
    if len(words) > 2:
        raise click.UsageError("too many values: quote an answer of several words")
    if words and not run.strip():
        raise click.UsageError("the argument RUN is empty", context)
    check_exclusive(context)
    step, value = (words[0] if len(words) == 2 else None), words[-1] if words else run
    if value == "-":
        try:
            value = stdin_bytes("the answer").decode("utf-8").removesuffix("\n")
        except UnicodeDecodeError:
            raise CannotStart("the answer on stdin is not UTF-8 text") from None
    options = DriveOptions(**driving)
    manner, script = SessionOptions(options.as_json, options.quiet, given=options.for_the_rest()), options.script
    stored = False

    async def answer(runtime: Runtime, granted: tuple[str, ...]) -> int:
        nonlocal stored
        if not words and (run == "last" or (len(run) > 6 and await runtime.store.find(run))):
            raise click.UsageError("VALUE is missing: give the answer", context)
        row = await runtime.row(await runtime.find(run) if words else await _only(runtime, "answer"))
        await runtime.store.check_seal(row.id, whole=False)
        there = bool(PinnedState.of(row.pins).queue) and script is None
        to = target_again(options.out, row) if options.out or not (there or detach or hold) else None
        if not stored:
            if not there and not hold:
                await _check_drivable(runtime, row, script, manner.given.model)
            await _store(runtime, row, step, value)
            stored = True
        if there:
            from quire.cli.cluster import notify_cluster

            if await notify_cluster(runtime, row):
                tell(f"stored; the cluster continues the run: quire runs {row.id} --follow")
            return 0
        if hold:
            tell(f"stored; to continue: quire resume {row.id}")
            return 0
        if detach and row.status is not Status.RUNNING:
            return spawn_detached(row.id, *options_again(context))
        if not detach:
            with contextlib.suppress(RunBusy):
                return await drive(runtime, row.id, manner.writing_to(to), script=script)
        tell("stored; the run continues in its own process")
        return 0

    context.exit(with_workspace(answer, ask=manner.interactive))


async def _check_drivable(runtime: Runtime, row: RunRow, script: str | None, model: str) -> None:
    """Raise `CannotStart` if the run cannot be driven here. It is called before the answer is stored, so that neither
    happens."""
    if row.status in (Status.RUNNING, Status.EXPIRED):
        return
    view = await runtime.view(row.id)
    if (await with_script(runtime, view, script)) is runtime:
        runtime.check_model(model or view.pins.instead or view.pins.model)


async def _store(runtime: Runtime, row: RunRow, step: str | None, value: str) -> None:
    run = row.id
    if row.status is Status.EXPIRED:
        place = first_label(row.position) or "STEP"
        raise RunState(f"run {run} has expired: `quire runs fork {run} --from {place}` asks again, in a new run")
    named = [question for question in await runtime.store.questions(run) if step is None or question.is_named(step)]
    for question in named:
        value = option_by_number(question.kind, question.options, value)
    by, client = account_name(), await _mcp_client(runtime, row)
    if client and len(named) == 1 and named[0].kind == "confirm":
        await _typed_word(named[0], value, client)
        step, by, client = named[0].path, f"{by} (terminal)", ""
    await runtime.answer(run, step, value, by=by, person=not client)


async def _mcp_client(runtime: Runtime, row: RunRow | None) -> str:
    """Return the MCP client that has started a run, or the run that launched it; empty if there is none."""
    for _ in range(MOST_LAUNCHES):
        launcher = str(row.pins.get("reply_to") or "") if row is not None else ""
        if not launcher or launcher.startswith("mcp:"):
            return launcher.removeprefix("mcp:")
        row = await runtime.store.get(launcher)
    return "a chain of launches"


async def _typed_word(question: Question, value: str, client: str) -> None:
    """Show a question and ask for a word that is printed with it. Raises `Refused` unless the word is typed on the
    terminal of this process: the model of an MCP client may have a shell to start `quire answer` in."""
    from quire.cli.terminal import question_text, somebody_is_here, typed_line
    from quire.display.keyboard import drop_typed
    from quire.display.text import one_line, place

    why = f"run {question.run} was started over MCP, by {one_line(client)}"
    if not somebody_is_here():
        raise Refused(f"{why}: {place(question.way)} asks for a yes or no, which is answered on a terminal")
    word = "".join(secrets.choice(letters) for letters in ("bdfgklmnprst", "aeiou") * 3)
    click.echo(f"{why}.\n{question_text(question)}\nThe answer will be: {one_line(value)}", err=True)
    drop_typed()
    if (await typed_line(f"To give this answer, type {word}: ") or "").strip() != word:
        raise Refused("another word was typed: nothing was answered")


@click.command("cancel")
@click.argument("run", metavar="RUN|last", shell_complete=complete_run, callback=require_text)
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def cancel_command(run: str, as_json: bool) -> None:
    """Stop a run. Its records stay, and `quire resume` continues it.

    If another process drives the run, that process is asked to stop; a tool that changes something finishes first.
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
        tell(f"cancelled {run}")
    else:
        tell(f"asked the process that drives {run} to cancel it")
