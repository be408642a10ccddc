"""`quire answer`: answer the question of a waiting run, and drive the run on."""

from __future__ import annotations

import click

from quire.cli.completion import complete_run
from quire.cli.detach import leave_to_itself
from quire.cli.inputs import stdin_bytes
from quire.cli.options import NO_BUDGET, driving_options, filled
from quire.cli.output import target_again
from quire.cli.scripts import with_script
from quire.cli.session import SessionOptions, drive, given_now
from quire.cli.trust_prompt import with_trust
from quire.engine.records import Status
from quire.errors import CannotStart, RunBusy, RunState
from quire.plan.ways import first_label
from quire.runs.adapters import option_by_number
from quire.runs.pins import PinnedState
from quire.runs.runtime import Runtime
from quire.workspace.locate import account_name


@click.command("answer")
@click.argument("run", metavar="RUN|last", shell_complete=complete_run, callback=filled)
@click.argument("words", metavar="[STEP] VALUE", nargs=-1, required=True)
@click.option("--detach", is_flag=True, help="Store the answer, and leave the run to a process of its own.")
@click.option("--hold", is_flag=True, help="Only store the answer; `quire resume` goes on.")
@driving_options
@click.pass_context
def command(
    context: click.Context,
    run: str,
    words: tuple[str, ...],
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

    VALUE is yes or no, an option or its number, or a text; `-` reads it from stdin. STEP is needed if several steps
    ask ('3>1' for step 1 of the document that step 3 calls); if several items of one step ask, it is the path that
    `quire inbox` shows. If another process drives the run, that process takes the answer; a run of a cluster goes on
    there.
    """
    if len(words) > 2:
        raise click.UsageError("too many values: quote an answer of several words")
    step, value = (words[0] if len(words) == 2 else None), words[-1]
    if value == "-":
        value = _from_stdin()
    manner = SessionOptions(as_json, quiet, given=given_now(limits, budget))
    stored = False

    async def answer() -> int:
        nonlocal stored
        runtime = Runtime.open()
        try:
            found = await runtime.find(run)
            row = await runtime.row(found)
            await runtime.store.check_seal(found, whole=False)
            there = PinnedState.of(row.pins).queue and script is None
            to = target_again(out, row) if out or not (there or detach or hold) else None
            if not stored:
                if row.status is Status.EXPIRED:
                    place = first_label(row.position) or "STEP"
                    raise RunState(
                        f"run {found} has expired: `quire fork {found} --from {place}` asks again, in a new run"
                    )
                if not there and not hold and row.status is not Status.RUNNING:
                    await _check_drivable(runtime, found, script)
                await _store(runtime, found, step, value)
                stored = True
            if there:
                from quire.cli.cluster import speak_of

                if await speak_of(runtime, row):
                    click.echo(f"stored; the cluster goes on with it: quire runs {found} --follow", err=True)
                return 0
            if hold:
                click.echo(f"stored; to go on: quire resume {found}", err=True)
                return 0
            if detach:
                if row.status is Status.RUNNING:
                    click.echo("stored; the run goes on in its own process", err=True)
                    return 0
                return leave_to_itself(found, *_options(script, budget, limits))
            try:
                return await drive(runtime, found, manner.writing_to(to), script=script)
            except RunBusy:
                click.echo("stored; the run goes on in its own process", err=True)
                return 0
        finally:
            await runtime.close()

    def work() -> int:
        import asyncio

        return asyncio.run(answer())

    context.exit(with_trust(work, ask=manner.interactive))


def _options(script: str | None, budget: float | None, limits: tuple[str, ...]) -> list[str]:
    """Return the options in the form that `quire resume` takes them."""
    given = ["--script", script] if script else []
    if budget is not None:
        given += ["--budget", "none" if budget == NO_BUDGET else str(budget)]
    return [*given, *(part for limit in limits for part in ("--limit", limit))]


async def _check_drivable(runtime: Runtime, run: str, script: str | None) -> None:
    """Raise `CannotStart` if the run cannot be driven here. It is called before the answer is stored, so that neither
    happens."""
    known = await runtime.view(run)
    if (await with_script(runtime, known, script)) is runtime:
        runtime.check_model(known.pins.instead or known.pins.model)


async def _store(runtime: Runtime, run: str, step: str | None, value: str) -> None:
    for question in await runtime.store.questions(run):
        if step is None or question.is_named(step):
            value = option_by_number(question.kind, question.options, value)
    await runtime.answer(run, step, value, by=account_name())


def _from_stdin() -> str:
    try:
        return stdin_bytes("the answer").decode("utf-8").removesuffix("\n")
    except UnicodeDecodeError:
        raise CannotStart("the answer on stdin is not UTF-8 text") from None
