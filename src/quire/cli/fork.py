"""New runs from stored ones: `quire runs fork` starts one from the middle of another, `quire runs replay` tries stored
runs with an edited document or another model. `resume --document` makes its new run like `fork`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from quire.cli.drive import DriveOptions, SessionOptions, drive, say_warnings, spawn_detached, with_workspace
from quire.cli.inputs import given_limits, parse_pairs
from quire.cli.options import (
    NO_BUDGET,
    Budget,
    Unattended,
    budget_of,
    check_exclusive,
    driving_options,
    force_option,
    require_known,
    require_text,
    unattended_option,
)
from quire.cli.output import target
from quire.cli.shell_completion import complete_run
from quire.cli.stdio import tell, wants_colour, with_runtime, write_json, write_lines
from quire.display.text import one_line, place
from quire.errors import RunState
from quire.formats import FORMATS
from quire.plan.vocabulary import CALLS
from quire.runs.scripts import pinned_spec
from quire.values import Value, value_of
from quire.wording import pluralize

if TYPE_CHECKING:
    from quire.cli.output import Target
    from quire.engine.ports import Model
    from quire.engine.records import RunRow
    from quire.runs.fork import Changes
    from quire.runs.repair import Repaired
    from quire.runs.runtime import Runtime
    from quire.testing.live.recorded_prompts import AskedCall, FollowedRun, RecordedRun
    from quire.testing.live.schedule import Purse


Verb = TypeVar("Verb", bound=Callable[..., object])
SAME = ""
"""Value of `--document` without a file: use the file that the run was started from."""


_EDITED = "Continue with the edited document, in a new run."


def document_option(help: str = _EDITED) -> Callable[[Verb], Verb]:
    return click.option("--document", metavar="[FILE]", is_flag=False, flag_value=SAME, default=None, help=help)


class ForkOptions(DriveOptions, frozen=True, kw_only=True):
    """The arguments and options of `fork` and `resume`, as they were given."""

    run: str | None
    sets: tuple[str, ...]
    document: str | None
    step: str | None
    dry_run: bool = False

    def changes(
        self,
        row: RunRow,
        values: Mapping[str, str],
        answers: Mapping[str, str],
        granted: tuple[str, ...],
        to: Target | None,
    ) -> Changes:
        """Return the changes against the run that the new one is made from. Raises `RunState`."""
        from quire.runs.fork import Changes

        require_limits_fit(row, self.limits)
        return Changes(
            values_for(row, values),
            self.spec,
            granted,
            budget_of(self.budget),
            given_limits(self.limits),
            to.kept if to else "",
            unlimited=self.budget == NO_BUDGET,
            answers=answers,
            unattended=self.unattended,
            force=self.force,
            says_yes=self.says_yes,
        )


def require_limits_fit(row: RunRow, limits: Collection[str]) -> None:
    """Raise `RunState` for limits that only a run of a directive has. Limits are names or NAME=VALUE."""
    if row.format != "directive" and {limit.partition("=")[0].strip() for limit in limits} - {CALLS}:
        raise RunState(f"--limit is for directives, except calls=N, and run {row.id} is of a {row.format}")


def values_for(row: RunRow, texts: Mapping[str, str]) -> Mapping[str, Value]:
    """Convert the texts of `--set` as `-i` does: for a pipeline, a text that is JSON becomes that value."""
    return {name: value_of(text) for name, text in texts.items()} if FORMATS[row.format].json_inputs else texts


async def repair_and_drive(
    runtime: Runtime,
    run: str,
    file: str,
    changes: Changes,
    manner: SessionOptions,
    *,
    step: str = "",
    instead: bool = False,
    detach: bool = False,
) -> int:
    """Start the repaired run and drive it. Before anything is paid for, print how much is kept and which step is the
    first to be done again."""
    from quire.runs.repair import repair

    if not manner.quiet:
        runtime.notice = lambda line: tell(one_line(line))
    made = await repair(runtime, run, file, changes, step, instead=instead)
    if not manner.quiet:
        for line in _lines(made, run):
            tell(line)
    if detach:
        if not manner.quiet:
            await say_warnings(runtime, made.run)
        return spawn_detached(made.run)
    return await drive(runtime, made.run, manner, why=made.reason)


def _lines(made: Repaired, run: str) -> list[str]:
    effects = f"{made.kept} of {made.recorded} recorded {pluralize('effect', made.recorded)}"
    lines = [f"run {made.run}: the edited document, with {effects} of {run}"]
    label, path = made.misfit
    if path:
        lines.append(
            f"  {one_line(place(label))} asks for something else now ({path}): it is done again, with all after it"
        )
    elif made.next[1]:
        lines.append(f"  continues at {one_line(place(made.next[0]))}")
    return lines


async def tell_edited(runtime: Runtime, run: str) -> None:
    """Say how to continue with the document as it is now, if it was edited since the run began."""
    from quire.display.shell_commands import resume_command
    from quire.runs.repair import edited_file

    if edited := await edited_file(runtime, run):
        again = resume_command(run, document=True)
        tell(f"{one_line(str(edited))} was edited since; to continue with the edited text: {again}")


@click.command("fork", cls=Unattended)
@click.argument("run", metavar="RUN|last", shell_complete=complete_run, callback=require_text)
@click.option("--from", "step", metavar="STEP", callback=require_text, help="The first step to do again.")
@document_option()
@click.option("--set", "sets", metavar="NAME=VALUE", multiple=True, help="A value from that step on.")
@click.option("--model", metavar="SPEC", callback=require_text, help="Another model from that step on.")
@click.option("--allow", metavar="TOOL", multiple=True, callback=require_text, help="Grant a tool to the new run.")
@click.option("--answer", "answers", metavar="STEP=VALUE", multiple=True, help="Answer a step's question beforehand.")
@unattended_option("Never ask; use defaults, as in `quire run`.")
@force_option
@click.option("--dry-run", is_flag=True, help="Only show what is kept and done again. FREE.")
@click.option("--detach", is_flag=True, help="Run in the background; print the run's id.")
@driving_options
@click.pass_context
def fork_command(context: click.Context, /, **given: object) -> None:
    """Make a new run from the middle of another one, and drive it.

    RUN is an id, the beginning of one, or `last`. STEP is a step of a playbook, a step at the top of a pipeline, or a
    turn of a directive: --from "turn 3". Records before it are kept and not paid again. With --document, each
    recorded effect is kept that the edited document still asks for; the first one that differs is named.
    """
    options = ForkOptions(**context.params)
    if options.step is None and options.document is None:
        raise click.UsageError("say what is new: --from STEP, or --document for an edited document")
    if options.dry_run and options.document is not None:
        raise click.UsageError("--dry-run is for --from STEP: an edited document is compared when the fork is made")
    check_exclusive(context)
    values, answers = parse_pairs(options.sets, "--set"), parse_pairs(options.answers, "--answer")
    manner = SessionOptions(options.as_json, options.quiet, options.unattended)
    step, detach = options.step or "", options.detach

    async def fork(runtime: Runtime, granted: tuple[str, ...]) -> int:
        require_known(options.allow, runtime.settings)
        row = await runtime.row(await runtime.find(options.run or ""))
        to = target(options.out, row.document) if options.out else None
        changes, own = options.changes(row, values, answers, granted, to), manner.writing_to(to)
        if options.dry_run:
            return await _say_receipt(runtime, row.id, step, changes, options.as_json)
        if options.document is not None:
            return await repair_and_drive(runtime, row.id, options.document, changes, own, step=step, detach=detach)
        return await _fork(runtime, row.id, step, changes, own, detach)

    context.exit(with_workspace(fork, ask=manner.interactive and not detach, allow=options.allow))


async def _say_receipt(runtime: Runtime, run: str, step: str, changes: Changes, as_json: bool) -> int:
    from quire.cli.stdio import write_text
    from quire.display.copies_json import receipt_data, receipt_line
    from quire.runs.fork import receipt

    foreseen = await receipt(runtime, run, step, changes)
    write_json(receipt_data(foreseen, changes)) if as_json else write_text(receipt_line(foreseen))
    return 0


async def _fork(runtime: Runtime, run: str, step: str, changes: Changes, manner: SessionOptions, detach: bool) -> int:
    from quire.runs.fork import fork

    made = await fork(runtime, run, step, changes)
    if detach:
        return spawn_detached(made.run)
    if not manner.quiet and not manner.json:
        effects = f"{len(made.kept)} recorded {pluralize('effect', len(made.kept))}"
        tell(f"run {made.run}: from {one_line(place(made.place.label))} of {run}, with {effects} of it")
    return await drive(runtime, made.run, manner, why=made.reason)


DIFFERENT = 1
BUDGET_REACHED = 5


@click.command("replay")
@click.argument("runs", metavar="[RUN|last]...", nargs=-1, shell_complete=complete_run, callback=require_text)
@document_option("The edited document (default: that of the RUN). FREE.")
@click.option("--last", type=click.IntRange(min=1), metavar="N", help="The newest N runs of the document.")
@click.option("--model", metavar="SPEC", callback=require_text, help="Ask the prompts of another model. PAID.")
@click.option("--script", metavar="FILE", callback=require_text, help="Replies from a file, instead of a model.")
@click.option("--follow", is_flag=True, help="Continue with the new replies, not the old ones.")
@click.option("--budget", type=Budget(min=0), metavar="USD|none", help="Never spend more than this.")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
@click.pass_context
def replay_command(
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
    """Try old runs again with an edited document, or with another model.

    RUN is an id, the beginning of one, or `last`; with --document the default is the newest 200 completed runs of the
    document. Exit 0: the same, 1: different (other words of a reply alone do not count), 5: the budget is reached.
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
    from quire.cli.terminal import somebody_is_here

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
    from quire.runs.edited_document import EditedDocument
    from quire.runs.repair import source_file
    from quire.runs.shadow import MOST_RUNS, replay_run, runs_of

    runtime.notice = lambda line: tell(one_line(line))
    runs = await _found(runtime, names)
    edited = EditedDocument(runtime, Path(file) if file else await source_file(runtime, runs[0]))
    count = len(runs)
    if not names:
        runs, count = await runs_of(runtime, edited, last or MOST_RUNS)
    replayed = [await replay_run(runtime, run, edited) for run in runs]
    if as_json:
        write_json(replay_data(edited.name, replayed, count))
    else:
        write_lines(replay_page(replayed, colour=wants_colour(sys.stdout)))
        if count > len(runs):
            tell(f"the newest {len(runs)} of {count:,} stored runs were replayed: --last {count}")
    return 0 if all(run.verdict == "same" for run in replayed) else DIFFERENT


async def _with_model(
    runtime: Runtime,
    names: tuple[str, ...],
    spec: str,
    budget: float | None,
    here: bool,
    follow: bool,
    as_json: bool,
) -> int:
    from quire.display.replay_page import announcement
    from quire.errors import CannotStart
    from quire.runs.static_failures import check_prices
    from quire.testing.live.recorded_prompts import most_cost, recorded_run
    from quire.testing.live.schedule import Purse

    choice = runtime.choose_model(pinned_spec(spec))
    model = runtime.models.open(choice.spec, choice.settings)
    runs = [await recorded_run(runtime, run) for run in await _found(runtime, names)]
    if not any(run.calls for run in runs):
        raise CannotStart("no model answered in these runs, so no prompt can be asked again")
    check_prices(runtime.models, [choice.spec], budget_of(budget))
    most = most_cost(runs, model, runtime.clock)
    free = most == 0 or choice.spec.startswith("script:")
    tell(announcement(runs, choice.spec, 0.0 if free else most, follow=follow))
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
    from quire.display.replay_page import asked_data, asked_page, followed_data, followed_page
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
    same = all(call.kind in ("same", "words") for call in calls)
    return 0 if same and all(run.replayed.verdict == "same" for run in followed) else DIFFERENT
