"""`quire answer`: answer the question of a waiting run, and drive the run on."""

from __future__ import annotations

import contextlib
import secrets
from typing import TYPE_CHECKING

import click

from quire.cli.completion import complete_run
from quire.cli.inputs import stdin_bytes
from quire.cli.options import check_exclusive, driving_options, options_again, require_text
from quire.cli.output import target_again
from quire.cli.session import SessionOptions, drive, given_now, spawn_detached, with_workspace
from quire.engine.records import Question, RunRow, Status
from quire.errors import CannotStart, Refused, RunBusy, RunState
from quire.plan.ways import first_label
from quire.runs.adapters import option_by_number
from quire.runs.pins import PinnedState
from quire.runs.scripts import with_script
from quire.workspace.locate import account_name

if TYPE_CHECKING:
    from quire.runs.runtime import Runtime

MOST_LAUNCHES = 100
"""Runs that launched one another, as far as the one that a client or a user started."""


@click.command("answer")
@click.argument("run", metavar="[RUN|last]", shell_complete=complete_run)
@click.argument("words", metavar="[STEP] VALUE", nargs=-1)
@click.option("--model", metavar="SPEC", callback=require_text, help="Another model, for every call from here on.")
@click.option("--detach", is_flag=True, help="Store the answer, and leave the run to a process of its own.")
@click.option("--hold", is_flag=True, help="Only store the answer; `quire resume` goes on.")
@driving_options
@click.pass_context
def command(
    context: click.Context,
    run: str,
    words: tuple[str, ...],
    model: str | None,
    detach: bool,
    hold: bool,
    script: str | None,
    budget: float | None,
    limits: tuple[str, ...],
    out: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Answer the question of a run, then go on with it. PAID: may call a model; WRITES the run's journal.

    Without RUN, the question is that of the only run that asks one. VALUE is yes or no, an option or its number, or a
    text; `-` reads it from stdin. STEP is needed if several steps ask ('3>1' for step 1 of the document that step 3
    calls); if several items of one step ask, it is the path that `quire inbox` shows. If another process drives the
    run, that process takes the answer; a run of a cluster goes on there.
    """
    if len(words) > 2:
        raise click.UsageError("too many values: quote an answer of several words")
    if words and not run.strip():
        raise click.UsageError("the argument RUN is empty", context)
    check_exclusive(context)
    step, value = (words[0] if len(words) == 2 else None), words[-1] if words else run
    if value == "-":
        value = _from_stdin()
    manner = SessionOptions(as_json, quiet, given=given_now(limits, budget, model=model))
    stored = False

    async def answer(runtime: Runtime, granted: tuple[str, ...]) -> int:
        nonlocal stored
        if not words and (run == "last" or (len(run) > 6 and await runtime.store.find(run))):
            raise click.UsageError("there is no VALUE: say what the answer is", context)
        found = await runtime.find(run) if words else await runtime.only("answer")
        row = await runtime.row(found)
        await runtime.store.check_seal(found, whole=False)
        there = bool(PinnedState.of(row.pins).queue) and script is None
        to = target_again(out, row) if out or not (there or detach or hold) else None
        if not stored:
            if not there and not hold:
                await _check_drivable(runtime, row, script, manner.given.model)
            await _store(runtime, row, step, value)
            stored = True
        if there:
            return await _tell_cluster(runtime, row)
        if hold:
            click.echo(f"stored; to go on: quire resume {found}", err=True)
            return 0
        if detach and row.status is not Status.RUNNING:
            return spawn_detached(found, *options_again(context))
        if not detach:
            with contextlib.suppress(RunBusy):
                return await drive(runtime, found, manner.writing_to(to), script=script)
        click.echo("stored; the run goes on in its own process", err=True)
        return 0

    context.exit(with_workspace(answer, ask=manner.interactive))


async def _check_drivable(runtime: Runtime, row: RunRow, script: str | None, model: str) -> None:
    """Raise `CannotStart` if the run cannot be driven here. It is called before the answer is stored, so that neither
    happens."""
    if row.status in (Status.RUNNING, Status.EXPIRED):
        return
    known = await runtime.view(row.id)
    if (await with_script(runtime, known, script)) is runtime:
        runtime.check_model(model or known.pins.instead or known.pins.model)


async def _store(runtime: Runtime, row: RunRow, step: str | None, value: str) -> None:
    run = row.id
    if row.status is Status.EXPIRED:
        place = first_label(row.position) or "STEP"
        raise RunState(f"run {run} has expired: `quire fork {run} --from {place}` asks again, in a new run")
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
    from quire.cli.terminal import question_text, typed_line
    from quire.cli.trust_prompt import somebody_is_here
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


async def _tell_cluster(runtime: Runtime, row: RunRow) -> int:
    from quire.cli.cluster import notify_cluster

    if await notify_cluster(runtime, row):
        click.echo(f"stored; the cluster goes on with it: quire runs {row.id} --follow", err=True)
    return 0


def _from_stdin() -> str:
    try:
        return stdin_bytes("the answer").decode("utf-8").removesuffix("\n")
    except UnicodeDecodeError:
        raise CannotStart("the answer on stdin is not UTF-8 text") from None
