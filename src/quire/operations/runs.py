"""Operations on runs: list, count, start, look at, resume, pause, cancel, delete and prune."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, TypeAlias

from msgspec import UNSET, Meta, UnsetType, field
from msgspec.structs import replace

from quire.display.advice import MOST_RESUMED, resume_receipt
from quire.display.copies_json import pruned_data
from quire.display.run_head_json import head_data, unreadable_head
from quire.display.shell_commands import cancel_command, export_command, prune_command, resume_command
from quire.engine.records import RunRow, Status
from quire.errors import JournalMismatch, LimitReached, QuireError, RunState
from quire.operations.field_types import (
    Budget,
    Input,
    Name,
    Names,
    Object,
    OfRun,
    RunOptions,
    Unattended,
    operation,
    shape,
    words,
)
from quire.operations.problems import Problem
from quire.operations.results import Removed, Run
from quire.operations.shelf import pinned_file
from quire.runs.again import earlier_start
from quire.runs.drives import Given, checked_overrides
from quire.runs.live_views import last_event
from quire.runs.pins import starts_now
from quire.stores import contract
from quire.stores.contract import CANCELLABLE, ENDED, RESUMABLE
from quire.values import Value, sha256

if TYPE_CHECKING:
    from quire.operations.host import Host
    from quire.stores.contract import Pruned

Ids: TypeAlias = Annotated[tuple[Name, ...], Meta(max_length=500)]


class ListActions(Input, frozen=True, kw_only=True):
    runs: Ids


@operation(
    "The actions that several runs allow now, and the commands for them.",
    ListActions,
    shape(runs=Names, cancel=Object, resume=Object, prune=Object),
)
async def list_actions(host: Host, given: ListActions) -> Value:
    """Tell what can be done with the named runs now, to how many of them, and by which commands."""
    rows = [row for run in dict.fromkeys(given.runs) if (row := await host.runtime.store.get(run)) is not None]
    own = [row for row in rows if not row.pins.get("imported")]
    cancel = [row.id for row in own if row.status in (*CANCELLABLE, Status.INTERRUPTED)]
    resume = [row.id for row in own if row.status in RESUMABLE and not host.drives(row.id)]
    ids, ended = [row.id for row in rows], dict.fromkeys(str(row.status) for row in rows if row.status in ENDED)
    removed = await host.runtime.store.remove(ids, dry_run=True)
    return {
        "runs": [*ids],
        "cancel": {"runs": cancel, "command": "\n".join(map(cancel_command, cancel))},
        "resume": {"runs": resume, "command": "\n".join(map(resume_command, resume))},
        # The command line removes runs by age and status.
        "prune": {**pruned_data(removed, dry_run=True), "command": prune_command("30d", ended)},
        "export": {"runs": [*ids], "command": "\n".join(map(export_command, ids))},
    }


@operation("Remove a run that has ended.", OfRun, Removed)
async def delete_run(host: Host, given: OfRun) -> Value:
    run = await host.runtime.find(given.run)
    row = await host.runtime.row(run)
    if row.status not in ENDED:
        raise RunState(f"run {run} is {row.status.words}: only a run that has ended is removed; cancel it first")
    removed = await host.runtime.store.remove([run], dry_run=False)
    if run not in removed.runs:
        raise contract.busy(run)
    _forget(host, removed)
    return pruned_data(removed, dry_run=False)


class PruneRuns(Input, frozen=True, kw_only=True):
    older_than: Annotated[float, Meta(ge=0, le=10**10)] | UnsetType = UNSET
    statuses: Annotated[tuple[Annotated[str, words(*map(str, ENDED))], ...], Meta(max_length=4)] = ()
    runs: Ids | UnsetType = UNSET
    dry_run: bool = False


@operation("Remove runs that have ended: all older than an age, or the named ones.", PruneRuns, Removed)
async def prune_runs(host: Host, given: PruneRuns) -> Value:
    store, runs, age = host.runtime.store, given.runs, given.older_than
    if not isinstance(runs, UnsetType) and age is UNSET:
        removed = await store.remove(list(dict.fromkeys(runs)), dry_run=given.dry_run)
    elif not isinstance(age, UnsetType) and runs is UNSET:
        statuses = tuple(Status(text) for text in given.statuses) or ENDED
        removed = await store.prune(host.runtime.clock.now() - age, statuses, dry_run=given.dry_run, vacuum=False)
    else:
        raise Problem.of("unfit-body", "say which runs: either `older_than` in seconds, or `runs` by their ids")
    if not given.dry_run:
        _forget(host, removed)
    return pruned_data(removed, dry_run=given.dry_run)


def _forget(host: Host, removed: Pruned) -> None:
    for run in removed.runs:
        host.views.forget(run)
        host.touch(run)


@operation("One run with its steps.", OfRun, Run)
async def show_run(host: Host, given: OfRun) -> Value:
    run = await host.runtime.find(given.run)
    driven = host.drives(run)
    try:
        view = await host.views.head(run)
    except (JournalMismatch, LimitReached, RunState) as error:
        # Its row can be shown, and the journal can be read.
        row = await host.runtime.row(run)
        seq = await last_event(host.runtime.store, run)
        return {**unreadable_head(row, str(error)), "seq": seq, **_document(host, row)}
    questions = ",".join(f"{question.path}:{question.hash}" for question in view.view.questions)
    about = _document(host, view.view.row)
    broken = None if driven else await host.runtime.broken_seal(run)
    names = (view.view.row.label, view.view.row.note)
    state = sha256(f"{driven} {questions} {about} {broken} {names}".encode())[:12]
    if host.has(f'"{view.version.tag}.{state}"'):
        return None
    head = head_data(view.view, driven_here=driven, broken_seal=str(broken or ""))
    return {**head, "seq": view.version.seq, **about}


def _document(host: Host, row: RunRow) -> dict[str, Value]:
    """Return the id of the document of a run, and whether its file has changed since."""
    file = pinned_file(host.folder, row)
    return {"document_id": file.id if file else None, "document_changed": file.changed() if file else False}


class StartRun(RunOptions, frozen=True, kw_only=True):
    document: Name = ""
    like: Annotated[Name, Meta(description="A run whose document, inputs and options are taken.")] = ""
    goes_on: bool = False


@operation("Start a run; this server drives it.", StartRun, Run)
async def start_run(host: Host, given: StartRun) -> Value:
    """Start a document, or do an earlier run again with the parts that the request replaces."""
    if not given.document and not given.like:
        raise Problem.of("unfit-body", "say what to run: `document`, or `like` with the id of a run")
    if given.like:
        row = await host.runtime.row(await host.runtime.find(given.like))
        file = pinned_file(host.folder, row)
        if file is None:
            raise Problem.of("no-such-document", f"the document of run {row.id} is not one of this workspace")
        if given.document not in ("", file.id):
            raise Problem.of("unfit-body", f"run {row.id} is of {file.id}, which is not {given.document}")
        await asyncio.to_thread(host.shelf.meant, file.id)
        earlier = await earlier_start(host.runtime, row.id, file.path)
        unnamed = earlier.unnamed(given, budget=given.budget is UNSET)
        document, given = earlier.document, replace(given, inputs=earlier.completed(given.inputs), **unnamed)
    else:
        document = await asyncio.to_thread(host.shelf.meant, given.document)
    key = host.caller.key
    run = await host.runtime.start(document, given.inputs, replace(host.caller.options(given), key=key))
    if key and (host.drives(run) or not starts_now(await host.runtime.row(run))):
        return await host.shown(run)
    return await host.begin(run, detach=given.detach, goes_on=given.goes_on)


class ResumeRun(OfRun, frozen=True, kw_only=True):
    set: Object = field(default_factory=dict)
    model: Name = ""
    budget: Budget = UNSET
    limits: Object = field(default_factory=dict)
    answers: dict[str, str] = field(default_factory=dict)
    breakpoints: Names = ()
    unattended: Unattended = False


@operation("Continue a run; this server drives it.", ResumeRun, Run)
async def resume_run(host: Host, given: ResumeRun) -> Value:
    run, overrides = await host.runtime.find(given.run), given.set
    row = await host.runtime.row(run)
    if row.status is Status.COMPLETED:
        raise RunState(f"run {run} is completed: nothing is left to resume")
    if overrides:
        overrides = checked_overrides((await host.runtime.view(run)).document, overrides, way=row.position)
    changes = Given(
        limits=given.limits,
        budget=None if given.budget is UNSET else given.budget,
        unlimited=given.budget is None,
        model=given.model,
        answers=given.answers,
        unattended=bool(given.unattended),
        says_yes=given.unattended == "yes",
        breakpoints=given.breakpoints,
    )
    await host.go_on(run, given=changes, overrides=overrides)
    return await host.shown(run)


class ResumeRuns(Input, frozen=True, kw_only=True):
    runs: Annotated[tuple[Name, ...], Meta(min_length=1, max_length=MOST_RESUMED)]
    budget: Annotated[float, Meta(ge=0, description="Never spend more on all of them together.")] | UnsetType = UNSET
    dry_run: bool = False


@operation(
    "Continue several runs within one budget, or tell what that would do.",
    ResumeRuns,
    shape(runs=list[Object], summary=str, command=str | None),
)
async def resume_runs(host: Host, given: ResumeRuns) -> Value:
    """Continue those of the named runs that a resume helps; each has an equal part of the budget."""
    names = dict.fromkeys([await host.runtime.find(name) for name in given.runs])
    views = [(await host.views.head(name)).view for name in names]
    budget = None if isinstance(given.budget, UnsetType) else given.budget
    receipt = resume_receipt(views, budget, host.runtime.settings)
    for run in [] if given.dry_run else [run for run in receipt["runs"] if not run["problem"]]:
        try:
            await host.go_on(run["run"], given=Given(budget=run["budget"]))
        except QuireError as error:
            run["problem"] = str(error)
    return receipt


@operation("Pause a run after its current step.", OfRun, Run)
async def pause_run(host: Host, given: OfRun) -> Value:
    run = await host.runtime.find(given.run)
    if not host.pause(run):
        row = await host.runtime.row(run)
        raise RunState(f"run {run} is {row.status.words} and is not driven by this server: it cannot be paused here")
    return await host.shown(run)


@operation("Cancel a run.", OfRun, Run)
async def cancel_run(host: Host, given: OfRun) -> Value:
    run = await host.runtime.find(given.run)
    await host.runtime.store.request_cancel(run)
    host.touch(run)
    return await host.shown(run)
