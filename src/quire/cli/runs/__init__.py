"""`quire runs`: list the runs of this workspace, or show one of them in detail, and dispatch to the verbs below it.

A first word that is not a verb (`quire runs why …`) is taken as a run. The module of a verb is imported only when that
verb is invoked.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from quire.cli.app import with_help
from quire.cli.options import require_text
from quire.cli.shell_completion import complete_run
from quire.cli.stdio import columns, look_at_runs, perform, tell, with_runtime, write_json, write_lines, write_text
from quire.cli.verbs import RUNS
from quire.engine.records import WAITING, Status
from quire.errors import JournalMismatch, NoSuchRun, RunState
from quire.wording import did_you_mean, nearest

if TYPE_CHECKING:
    from quire.engine.records import Event, RunRow
    from quire.runs.outcome import RunView
    from quire.runs.runtime import Runtime
    from quire.runs.stored import StoredRuns


_LIST = ""


class _Unnamed(click.Context):
    """Context of the list, which is `quire runs` itself and adds no word to the command path."""

    @property
    def command_path(self) -> str:
        return self.parent.command_path if self.parent else super().command_path


class Listing(click.Command):
    context_class = _Unnamed

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        verbs = [] if ctx.params.get("run") else [name for name in RUNS if incomplete and name.startswith(incomplete)]
        return [*(CompletionItem(name) for name in verbs), *super().shell_complete(ctx, incomplete)]


class RunsGroup(click.Group):
    def __init__(self, name: str, listing: click.Command) -> None:
        super().__init__(name)
        self.listing = with_help(listing)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # The group has no options of its own, and without any argument click would print the help.
        return super().parse_args(ctx, ["--", *(args if args and args[0] in RUNS else [_LIST, *args])])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] in RUNS:
            return args[0], self.get_command(ctx, args[0]), args[1:]
        return self.name, self.listing, args[1:] if args[:1] == [_LIST] else args

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(RUNS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        module = import_module(RUNS[cmd_name].place) if cmd_name in RUNS else None
        command: object = getattr(module, f"{cmd_name}_command", None)
        return with_help(command) if isinstance(command, click.Command) else None


POLL_SECONDS = 0.3
STARTING_POLLS = 30
"""Number of polls that may see a run pending before `--follow` reports that no process drives it."""
_GOING = (Status.PENDING, Status.RUNNING)


@click.command("runs", cls=Listing)
@click.argument("run", metavar="[RUN|last]", required=False, shell_complete=complete_run, callback=require_text)
@click.option(
    "--status",
    type=click.Choice([str(status) for status in Status]),
    metavar="STATUS",
    help="Only completed, failed, paused, awaiting_input, … runs.",
)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Show the newest N runs (default 50).")
@click.option("--page", type=click.IntRange(min=1), metavar="N", help="Page number.")
@click.option(
    "--sort",
    type=click.Choice(["started", "took", "cost", "subject"]),
    help="The newest (default), longest or most expensive first, or by subject.",
)
@click.option("--by", type=click.Choice(["document", "error"]), help="Groups of runs that share it.")
@click.option("--pulse", is_flag=True, help="Runs and cost of each of the last 14 days.")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
@click.option("--output", is_flag=True, help="Only the final output.")
@click.option("--journal", is_flag=True, help="The recorded effects.")
@click.option("--state", is_flag=True, help="The state of a playbook's execution, as JSON.")
@click.option("--prompt", metavar="STEP", help="The prompt of a step.")
@click.option(
    "--transcript",
    type=click.Choice(["md", "json"]),
    is_flag=False,
    flag_value="md",
    help="All messages and tool calls of a directive.",
)
@click.option("--tree", is_flag=True, help="All steps and calls as a tree, with times and costs.")
@click.option("--step", metavar="STEP", help="With --text: a step, by its label or path.")
@click.option("--text", is_flag=True, help="The whole text of a reply or result: --step STEP --text.")
@click.option("--follow", is_flag=True, help="Print events until the run ends or waits.")
def listing(
    run: str | None,
    status: str | None,
    limit: int | None,
    page: int | None,
    sort: str | None,
    by: str | None,
    pulse: bool,
    as_json: bool,
    output: bool,
    journal: bool,
    state: bool,
    prompt: str | None,
    transcript: str | None,
    tree: bool,
    step: str | None,
    text: bool,
    follow: bool,
) -> None:
    """List runs, or show one.

    RUN is an id, the beginning of one, or `last`.
    """
    sides = {"--output": output, "--journal": journal, "--state": state, "--prompt": prompt, "--follow": follow}
    sides |= {"--transcript": transcript, "--tree": tree, "--text": text}
    chosen = [name for name, value in sides.items() if value]
    if run is None:
        if chosen:
            raise click.UsageError(f"{chosen[0]} needs a RUN (an id, or last)")
        if pulse or by:
            if (pulse and (by or status)) or sort or limit or page:
                raise click.UsageError("--by takes only --status and --json, and --pulse only --json")
            _add_up(by, status, as_json)
            return
        look_at_runs(lambda runs: _list(runs, status, limit or 50, page or 1, sort or "started", as_json))
        return
    if status or limit or page or sort or by or pulse:
        raise click.UsageError("--status, --limit, --page, --sort, --by and --pulse are for the list, without a RUN")
    if len(chosen) > 1:
        raise click.UsageError(f"{' and '.join(chosen)} exclude each other")
    if text != bool(step):
        raise click.UsageError("the text of a step: --step STEP --text")
    named = prompt or step or ""
    with_runtime(lambda runtime: _one(runtime, run, "".join(chosen), named, as_json or transcript == "json"))


command = RunsGroup("runs", listing)


async def _list(runs: StoredRuns, status: str | None, limit: int, page: int, sort: str, as_json: bool) -> None:
    from quire.display.run_json import row_data
    from quire.display.run_page import run_table
    from quire.stores.run_pages import RunFilters

    filters = RunFilters((Status(status),) if status else ())
    first = await runs.store.page(filters, limit=limit * page, sort=sort)  # type: ignore[arg-type]  # one of the choices
    rows = first.rows[limit * (page - 1) :]
    if as_json:
        write_json([row_data(row) for row in rows])
    elif rows:
        waiting = [row.id for row in rows if row.status in (*WAITING, Status.RUNNING)]
        asking = {run for run in waiting if await runs.store.questions(run)}
        write_lines(run_table(rows, time.time(), asking, columns()))
        if len(rows) == limit or page > 1:
            _count(await runs.store.count(filters), limit, page, len(rows))
    elif page > 1:
        tell(f"page {page} does not exist: the list is shorter")
    else:
        which = f"no run is {Status(status).words}" if status else "no runs yet: `quire run DOCUMENT` makes one"
        tell(which)


def _add_up(by: str | None, status: str | None, as_json: bool) -> None:
    """Print runs in groups, or the runs of each of the last days."""
    from quire.cli.inbox import open_questions
    from quire.display.text import money, short, table
    from quire.operations.run_list import group_runs, pulse

    data = perform(group_runs, {"by": by, "status": [status] if status else []}) if by else perform(pulse, {})
    rows, names = (data["groups"], _GROUP) if by else (data["days"], _DAY)
    if as_json:
        write_json(data)
    elif rows:
        cells = [[short(str(row.get(name, "")), 48) for name in names] + [money(row["cost"])] for row in rows]
        write_lines(table(cells, [*map(str.upper, names), "COST"]))
    if not as_json and (not rows or not by):
        tell("no runs" if by else f"{open_questions(data['waiting'])}")


_GROUP, _DAY = ("count", "title", "document", "kind", "message"), ("day", "runs", "completed", "failed")


def _count(total: int, limit: int, page: int, shown: int) -> None:
    """Print how many runs there are if the list does not show all of them."""
    from quire.stores.run_pages import MOST_COUNTED

    if total <= shown:
        return
    of = f"more than {MOST_COUNTED:,}" if total > MOST_COUNTED else f"{total:,}"
    first = limit * (page - 1)
    which = f"{first + 1:,} to {first + shown:,}" if first else f"{shown:,}"
    further = f": --page {page + 1} has the next" if first + shown < total else ""
    tell(f"{which} of {of} runs{further}")


async def _one(runtime: Runtime, name: str, side: str, step: str, as_json: bool) -> None:
    run = await _found(runtime, name)
    match side:
        case "--journal":
            await _print_journal(runtime, run, as_json)
        case "--follow":
            await _print_events(runtime, run, as_json)
        case "--transcript":
            await _print_transcript(runtime, run, as_json)
        case "--prompt":
            from quire.cli.show import print_prompt
            from quire.runs.prompts import prompt_of_run

            print_prompt(prompt_of_run(await runtime.view(run), step, runtime.settings), as_json)
        case "--tree":
            await _print_tree(runtime, run, as_json)
        case "--text":
            await _print_text(runtime, run, step, as_json)
        case "--state":
            view = await runtime.view(run)
            if view.row.format != "playbook":
                raise RunState(f"run {run} is of a {view.row.format}: --state is for playbooks (see --json)")
            write_json(view.state())
        case "--output":
            view = await runtime.view(run)
            if not view.replay.finished:
                raise RunState(f"run {run} has no final output: it is {view.row.status.words}")
            data = {"output": view.value, "artifact": view.artifact, "artifact_type": view.artifact_type or None}
            write_json(data) if as_json else write_text(view.artifact)
        case _:
            await _print_page(runtime, run, as_json)


async def _found(runtime: Runtime, name: str) -> str:
    try:
        return await runtime.find(name)
    except NoSuchRun as error:
        close = nearest(name, RUNS)
        if close is None:
            raise
        raise NoSuchRun(f"{error}" + did_you_mean(close, lead="; ", form="quire runs {}")) from None


async def _print_page(runtime: Runtime, run: str, as_json: bool) -> None:
    from quire.display.run_json import row_data, view_data
    from quire.display.run_page import run_header, run_page

    now = runtime.clock.now()
    try:
        view = await runtime.view(run)
    except JournalMismatch as error:
        # The row can still be shown; the error that follows says why the rest cannot.
        row = await runtime.row(run)
        if as_json:
            write_json(row_data(row))
            error.is_printed = True
        else:
            write_lines(run_header(row, now, str(row.pins.get("model", ""))))
        raise
    from quire.display.text import one_line

    broken = await runtime.broken_seal(run)
    if as_json:
        write_json({**view_data(view), "sealed": broken is None})
        return
    write_lines(run_page(view, now))
    if broken is not None and not view.pins.imported:
        tell(one_line(str(broken)))
        return
    if view.row.status is Status.FAILED and not view.pins.imported:
        await _say_after_failure(runtime, view)
        return
    _say_next(view.row, bool(view.questions), several=len(view.questions) > 1)


async def _print_journal(runtime: Runtime, run: str, as_json: bool) -> None:
    from quire.display.run_json import effects_data
    from quire.display.run_page import journal_table

    effects = await runtime.store.effects(run)
    if as_json:
        write_json(effects_data(effects))
    elif effects:
        write_lines(journal_table(effects))
    else:
        tell(f"run {run} has recorded nothing yet")


async def _print_transcript(runtime: Runtime, run: str, as_json: bool) -> None:
    from quire.display.transcript import transcript_data, transcript_markdown
    from quire.runs.transcript import transcripts

    view = await runtime.view(run)
    threads = transcripts(view)
    if not threads:
        raise RunState(f"run {run} has no thread: a transcript is of directives (see --journal)")
    write_json(transcript_data(view, threads)) if as_json else write_text(transcript_markdown(view, threads))


async def _print_tree(runtime: Runtime, run: str, as_json: bool) -> None:
    from quire.display.run_page import tree_table
    from quire.operations.host import Caller, Host
    from quire.operations.run_parts import ShowTree, show_tree

    host = Host(runtime, Caller())
    await host.views.tree(run, whole=True)
    data = await show_tree.run(host, ShowTree(run=run))
    if as_json:
        write_json(data)
        return
    write_lines(tree_table(data["rows"], columns()))
    if data["next"]:
        tell(f"{len(data['rows']['path']):,} rows are shown, with {data['next']} of {data['total']:,} at the top")


async def _print_text(runtime: Runtime, run: str, step: str, as_json: bool) -> None:
    from quire.operations.host import Caller, Host
    from quire.operations.run_parts import ReadText, read_text
    from quire.runs.why import why

    path = why(await runtime.view(run), step).path
    host, after, parts = Host(runtime, Caller()), 0, list[str]()
    while after is not None:
        data = await read_text.run(host, ReadText(run=run, path=path, after=after))
        parts.append(data["text"])
        after = data["next"]
    write_json({"path": path, "text": "".join(parts), "kind": data["kind"]}) if as_json else write_text("".join(parts))


async def _print_events(runtime: Runtime, run: str, as_json: bool) -> None:
    import asyncio

    from quire.display.run_page import event_line
    from quire.display.visible import escaped
    from quire.values import encode

    def show(event: Event) -> None:
        write_text(escaped(encode(event.as_json()))) if as_json else click.echo(event_line(event))

    row = await follow_run(runtime, run, show, asyncio.sleep)
    if row.status is Status.FAILED and not row.pins.get("imported"):
        await _say_after_failure(runtime, await runtime.view(run))
    else:
        _say_next(row, row.status is Status.AWAITING_INPUT)


async def follow_run(
    runtime: Runtime, run: str, show: Callable[[Event], None], pause: Callable[[float], Awaitable[None]]
) -> RunRow:
    """Show the stored events of a run and then new ones, until it rests: ended, waiting, or without an owner."""
    last = orphaned = pending = 0
    while True:
        # Read the row first: the events behind its state are stored by then.
        row = await runtime.row(run)
        for event in await runtime.events(row, last):
            show(event)
            last = event.seq
        # One look is not enough for `interrupted`: the owner may have ended the run between row and lock.
        orphaned = orphaned + 1 if row.status is Status.INTERRUPTED else 0
        if row.status not in _GOING and orphaned != 1:
            return row
        # A process that was started for the run takes a while to begin.
        pending = pending + 1 if row.status is Status.PENDING else 0
        if pending == STARTING_POLLS:
            tell(f"run {run} has not begun: `quire resume {run}` drives it")
        await pause(POLL_SECONDS)


async def _say_after_failure(runtime: Runtime, view: RunView) -> None:
    """Print the same advice as when the run failed, and that its document was edited since."""
    from quire.cli.fork import tell_edited
    from quire.display.advice import after_failure

    await tell_edited(runtime, view.row.id)
    for line in after_failure(view.row, view.replay.progress):
        tell(line)


def _say_next(row: RunRow, waits: bool, *, several: bool = False) -> None:
    """Print the commands that continue a run at rest."""
    words = "STEP|PATH VALUE" if several and row.format == "pipeline" else "STEP VALUE" if several else "VALUE"
    if row.pins.get("imported"):
        tell(f"imported: quire runs fork {row.id} --from STEP continues in a new run")
        return
    match row.status:
        case Status.EXPIRED:
            tell(f"expired: quire runs fork {row.id} --from STEP continues in a new run")
        case Status.AWAITING_INPUT if not waits:
            tell(f"answered: quire resume {row.id} continues it")
        case Status.AWAITING_INPUT:
            tell(f"waiting for a person: quire answer {row.id} {words}")
        case Status.RUNNING if waits:
            tell(f"it continues, but asks: quire answer {row.id} {words}")
        case Status.PAUSED | Status.INTERRUPTED | Status.CANCELLED | Status.PENDING:
            tell(f"{row.status}: quire resume {row.id} continues it")
