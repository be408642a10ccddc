"""`quire replay`: use stored runs as tests of an edited document, or ask their prompts of another model."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from quire.cli.completion import complete_run
from quire.cli.options import Budget, budget_of, require_text
from quire.cli.repair import SAME
from quire.cli.stdio import wants_colour, with_runtime, write_json, write_lines

if TYPE_CHECKING:
    from quire.engine.ports import Model
    from quire.runs.runtime import Runtime
    from quire.testing.live.recorded_prompts import AskedCall, FollowedRun, RecordedRun
    from quire.testing.live.schedule import Purse

DIFFERENT = 1
BUDGET_REACHED = 5


@click.command("replay")
@click.argument("runs", metavar="[RUN|last]...", nargs=-1, shell_complete=complete_run, callback=require_text)
@click.option(
    "--document",
    metavar="[FILE]",
    is_flag=False,
    flag_value=SAME,
    default=None,
    help="The edited document; without FILE, that of the RUN. FREE.",
)
@click.option("--last", type=click.IntRange(min=1), metavar="N", help="The newest N runs of the document, without RUN.")
@click.option("--model", metavar="SPEC", callback=require_text, help="Ask the prompts of another model. PAID.")
@click.option("--script", metavar="FILE", callback=require_text, help="Replies from a file, instead of a model.")
@click.option("--follow", is_flag=True, help="Go on with the new replies, not with the old ones.")
@click.option("--budget", type=Budget(min=0), metavar="USD|none", help="Never spend more than this.")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
@click.pass_context
def command(
    context: click.Context,
    runs: tuple[str, ...],
    document: str | None,
    last: int | None,
    model: str | None,
    script: str | None,
    follow: bool,
    budget: float | None,
    as_json: bool,
) -> None:
    """Try stored runs again, with an edited document or with another model. Nothing of it is stored as a run, no tool
    is called and no person is asked. RUN is an id, the beginning of one, or `last`.

    With --document (FREE), the new text is walked with the records of the runs, and each run comes to the same end, to
    a different one, or to the first thing that the new text asks anew. A recorded effect answers the request that is
    the same, wherever its step stands now; a person's answer also another wording of the question of the same step.
    Prompt files, and documents that the edited one calls, are read as they are now. Without RUN, the newest 200
    completed runs of the document are taken.

    With --model (PAID), every recorded prompt is asked again. The old reply goes on being used for what follows, so the
    calls are compared one by one: replies, captures, branches, cost and time. With --follow the new replies are used;
    tools and people answer what they answered before, and a run ends where it needs an answer that is not recorded.
    The most that it may cost is said first. --budget is needed where no person can be asked.

    Ends with 0 if nothing changed, 1 if something did (other words of a reply alone do not count), 5 if the budget was
    used up.
    """
    spec = f"script:{script}" if script else model
    if (document is None) == (spec is None) or (model and script):
        raise click.UsageError("say what is new: --document FILE, --model SPEC or --script FILE, one of them")
    if spec is None and (follow or budget is not None):
        raise click.UsageError("--follow and --budget are for --model")
    if document == SAME and not runs:
        raise click.UsageError("--document without a FILE needs a RUN")
    if last is not None and (runs or spec):
        raise click.UsageError("--last is for --document without RUN")
    if spec is not None and not runs:
        raise click.UsageError("name the runs to ask again: they are paid for")
    if spec is None:
        context.exit(with_runtime(lambda runtime: _with_document(runtime, runs, document or "", last, as_json)))
    from quire.cli.session import with_workspace
    from quire.cli.trust_prompt import somebody_is_here

    here = somebody_is_here() and not as_json
    context.exit(
        with_workspace(
            lambda runtime, granted: _with_model(runtime, runs, spec, budget, here, follow, as_json), ask=here
        )
    )


async def _found(runtime: Runtime, names: tuple[str, ...]) -> list[str]:
    return list(dict.fromkeys([await runtime.find(name) for name in names]))


async def _with_document(runtime: Runtime, names: tuple[str, ...], file: str, last: int | None, as_json: bool) -> int:
    from quire.display.replay_page import replay_data, replay_page
    from quire.display.text import one_line
    from quire.runs.edited_document import EditedDocument
    from quire.runs.repair import source_file
    from quire.runs.shadow import MOST_RUNS, replay_run, runs_of

    runtime.notice = lambda line: click.echo(one_line(line), err=True)
    found = await _found(runtime, names)
    edited = EditedDocument(runtime, Path(file) if file else await source_file(runtime, found[0]))
    if names:
        count = len(found)
    else:
        found, count = await runs_of(runtime, edited, last or MOST_RUNS)
    replayed = [await replay_run(runtime, run, edited) for run in found]
    if as_json:
        write_json(replay_data(edited.name, replayed, count))
    else:
        write_lines(replay_page(replayed, colour=wants_colour(sys.stdout)))
        if count > len(found):
            click.echo(f"the newest {len(found)} of {count:,} stored runs were replayed: --last {count}", err=True)
    return 0 if all(one.verdict == "same" for one in replayed) else DIFFERENT


async def _with_model(
    runtime: Runtime,
    names: tuple[str, ...],
    asked: str,
    budget: float | None,
    here: bool,
    follow: bool,
    as_json: bool,
) -> int:
    from quire.display.replay_models import announcement
    from quire.errors import CannotStart
    from quire.runs.scripts import pinned_spec
    from quire.runs.static_failures import check_prices
    from quire.testing.live.recorded_prompts import most_cost, recorded_run
    from quire.testing.live.schedule import Purse

    choice = runtime.choose_model(pinned_spec(asked))
    model = runtime.models.open(choice.spec, choice.settings)
    runs = [await recorded_run(runtime, run) for run in await _found(runtime, names)]
    if not any(run.calls for run in runs):
        raise CannotStart("no model answered in these runs, so there is nothing to ask again")
    check_prices(runtime.models, [choice.spec], budget_of(budget))
    most = most_cost(runs, model, runtime.clock)
    free = most == 0 or choice.spec.startswith("script:")
    click.echo(announcement(runs, choice.spec, 0.0 if free else most, follow=follow), err=True)
    if budget is None and not free:
        if not here:
            raise CannotStart("say the most that may be spent: --budget USD, or --budget none")
        if not click.confirm("ask?", err=True):
            return 0
    return await _asked(runtime, runs, model, choice.spec, most, Purse(budget_of(budget)), follow, as_json)


async def _asked(
    runtime: Runtime,
    runs: list[RecordedRun],
    model: Model,
    spec: str,
    most: float | None,
    purse: Purse,
    follow: bool,
    as_json: bool,
) -> int:
    from quire.display.replay_models import asked_data, asked_page, followed_data, followed_page
    from quire.testing.live.recorded_prompts import ask_again, follow_run

    colour = wants_colour(sys.stdout)
    calls: list[AskedCall] = []
    followed: list[FollowedRun] = []
    try:
        if follow:
            for run in runs:
                work = runtime.settings.runs.pure_work
                followed.append(await follow_run(run, model, purse, runtime.clock, pure_work=work))
        else:
            await ask_again(runs, model, purse, runtime.clock, calls)
    finally:
        # Also of work that the user interrupts: its replies are paid for.
        if as_json:
            write_json(followed_data(spec, most, followed) if follow else asked_data(spec, most, calls))
        else:
            write_lines(followed_page(followed, colour=colour) if follow else asked_page(calls, colour=colour))
    if purse.exhausted:
        return BUDGET_REACHED
    same = all(one.kind in ("same", "words") for one in calls)
    return 0 if same and all(one.replayed.verdict == "same" for one in followed) else DIFFERENT
