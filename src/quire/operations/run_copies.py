"""Operations on copies of runs: fork with its receipt, compare, share, export, import and verify."""

from __future__ import annotations

import asyncio
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import UNSET, Meta, field

from quire.display.copies_json import fork_form_data, imported_data, receipt_data, share_data, verdict_data
from quire.display.run_json import row_data
from quire.display.shell_commands import compare_command, import_command
from quire.display.why import diff_data
from quire.errors import RunState
from quire.operations.field_types import (
    File,
    Input,
    Limit,
    Name,
    Names,
    Object,
    OfRun,
    RunChanges,
    Seq,
    needs,
    operation,
    shape,
    words,
)
from quire.operations.problems import Problem
from quire.operations.results import Run
from quire.runs import imports
from quire.runs.again import given_options
from quire.runs.diff import diff
from quire.runs.export import export_lines
from quire.runs.fork import Changes, fork, fork_steps, receipt
from quire.runs.shares import MOST_DAYS, Shares
from quire.values import Value, encode

if TYPE_CHECKING:
    from quire.operations.host import Host

SHARE = needs("id", "run", "by", "created_at", "expires_at")
JSON_LINES = "application/jsonl"
MOST_CHARACTERS = 40_000
"""Characters of both values of a difference in a brief comparison."""


@operation("The steps at which a run can be forked, and the values that can be set.", OfRun, Run)
async def show_fork(host: Host, given: OfRun) -> Value:
    view = (await host.views.of(await host.runtime.find(given.run))).view
    is_own = not view.pins.imported and await host.runtime.is_sealed(view.row.id)
    return fork_form_data(view, fork_steps(view), given_options(view.pins) if is_own else {})


class PreviewFork(RunChanges, frozen=True, kw_only=True):
    run: str
    start: Name = field(name="from")
    set: Object = field(default_factory=dict)
    allow: Names = ()

    def changes(self, host: Host) -> Changes:
        return Changes(
            sets=self.set,
            model=self.model,
            allow=host.caller.granted(self.allow),
            budget=None if self.budget is UNSET else self.budget,
            unlimited=self.budget is None,
            limits=self.limits,
            answers=self.answers,
            unattended=bool(self.unattended),
            says_yes=self.unattended == "yes",
            force=self.force,
            door=host.caller.door,
            source=host.caller.source,
        )


@operation(
    "The receipt of a fork: the steps it keeps, the steps it repeats, and the most it costs.",
    PreviewFork,
    needs("summary", "kept", "again", "bounds", "command"),
)
async def preview_fork(host: Host, given: PreviewFork) -> Value:
    run, changes = await host.runtime.find(given.run), given.changes(host)
    return receipt_data(await receipt(host.runtime, run, given.start, changes), changes)


class ForkRun(PreviewFork, frozen=True, kw_only=True):
    goes_on: bool = False
    detach: bool = False


@operation("Start a new run in the middle of this one; this server drives it.", ForkRun, Run)
async def fork_run(host: Host, given: ForkRun) -> Value:
    run = await host.runtime.find(given.run)
    made = await fork(host.runtime, run, given.start, given.changes(host))
    return await host.begin(made.run, detach=given.detach, goes_on=given.goes_on)


class DiffRuns(Input, frozen=True, kw_only=True):
    a: str
    b: str
    brief: Annotated[bool, Meta(description="Leave the values out; count the changes of each step.")] = False
    step: Annotated[Name, Meta(description="Only the step at this path.")] = ""
    after: Annotated[Seq, Meta(description="Changes of each step to skip.")] = 0
    limit: Limit = 100


@operation("Two runs, step by step.", DiffRuns, shape(same=bool, a=Any, b=Any, about=list[Any], steps=list[Any]))
async def diff_runs(host: Host, given: DiffRuns) -> Value:
    """Compare two runs. `brief` leaves the values of steps out, and large inputs, and counts the changes of each step;
    `step` selects one step, of whose changes `after` are skipped."""
    names = [await host.runtime.find(name) for name in (given.a, given.b)]
    a, b = [(await host.views.of(name)).view for name in names]
    data: dict[str, Any] = diff_data(a, b, await asyncio.to_thread(diff, a, b))
    steps, after = data["steps"], given.after
    if given.step:
        data["about"] = []
        steps = [step for step in steps if step["path"] == given.step]
        if not steps:
            raise Problem.of("no-such-step", f"neither run has a step at {given.step}")
    for step in steps:
        changes = step["changes"]
        step["changes_total"] = len(changes)
        step["kinds"] = list(dict.fromkeys(str(change["what"]) for change in changes))
        step["changes"] = [] if given.brief else changes[after : after + given.limit]
    if given.brief:
        data["about"] = [_without_bulk(change) for change in data["about"]]
    rows: dict[str, Value] = {"a": row_data(a.row), "b": row_data(b.row)}
    return {**data, "steps": steps, "rows": rows, "command": compare_command(a.row.id, b.row.id)}


def _without_bulk(change: dict[str, Value]) -> Value:
    """Return a difference; in place of values that are too long to look at, their sizes."""
    a, b = (len(encode(change[side])) for side in ("a", "b"))
    return change if a + b < MOST_CHARACTERS else {**change, "a": None, "b": None, "sizes": [a, b]}


class ExportRun(OfRun, frozen=True, kw_only=True):
    form: Annotated[str, words("jsonl", "html"), Meta(description="The file: to import, or to look at.")] = field(
        name="as", default="jsonl"
    )
    full: Annotated[bool, Meta(description="With `as=html`: cut no text, and leave out no row.")] = False


@operation("A run as a file: JSON Lines, each with the hash of the line before, or HTML to look at.", ExportRun, None)
async def export_run(host: Host, given: ExportRun) -> File:
    run = await host.runtime.find(given.run)
    name = re.sub(r"[^\w.-]", "_", run, flags=re.ASCII)
    headers = {"Content-Disposition": f'attachment; filename="{name}.{given.form}"'}
    if given.form == "html":
        from quire.display.run_html import run_html

        view, seen = (await host.views.of(run)).view, await host.views.tree(run, whole=True)
        made = partial(run_html, view, seen, host.runtime.clock.now(), full=given.full)
        # The tree of a run that is driven here changes meanwhile.
        text = made() if seen.driven else await asyncio.to_thread(made)
        return File(text.encode("utf-8", "replace"), "text/html; charset=utf-8", headers)
    lines = await export_lines(host.runtime, run)
    return File("".join(f"{line}\n" for line in lines).encode(), JSON_LINES, headers)


class OfShare(Input, frozen=True, kw_only=True):
    share: Name


class ShareRun(OfRun, frozen=True, kw_only=True):
    days: Annotated[int, Meta(ge=1, le=MOST_DAYS, description="The days until the link expires.")] = 7


@operation("Make a link with which another person reads this run, and nothing else.", ShareRun, SHARE)
async def share_run(host: Host, given: ShareRun) -> Value:
    run = await host.runtime.find(given.run)
    share, token = Shares(host.runtime.settings).make(run, given.days, host.caller.by or "terminal")
    # Behind "#" the token is sent to no server, so no log has it.
    return {**share_data(share), "token": token, "path": f"s/{run}#{token}"}


@operation("The shares of a run that have not expired.", OfRun, shape(items=list[Object]))
async def list_shares(host: Host, given: OfRun) -> Value:
    shares = Shares(host.runtime.settings).all(await host.runtime.find(given.run))
    return {"items": [share_data(share) for share in shares]}


@operation("Revoke a share: its link shows nothing from now on.", OfShare, shape(revoked=Name))
async def revoke_share(host: Host, given: OfShare) -> Value:
    if not Shares(host.runtime.settings).revoke(given.share):
        raise Problem.of("no-such-share", f"share {given.share} does not exist")
    return {"revoked": given.share}


VERDICT = shape(ok=bool)


@operation("Verify the seals of a stored run.", OfRun, VERDICT)
async def verify_run(host: Host, given: OfRun) -> Value:
    return verdict_data(await imports.verify_run(host.runtime, await host.runtime.find(given.run)))


class Export(Input, frozen=True, kw_only=True):
    """An exported run. The name of its file is for messages."""

    text: Annotated[str, Meta(max_length=10_000_000)]
    name: Name = "the file"

    @property
    def data(self) -> bytes:
        return self.text.encode(errors="replace")


@operation("Verify an exported run. Nothing is stored.", Export, VERDICT)
async def verify_export(host: Host, given: Export) -> Value:
    """Verify an exported run without keeping it, and tell whether the store has a run of this id already."""
    verdict = await imports.verify_export(
        lambda: imports.parse_export(given.data, Path(given.name)), given.name, host.runtime.settings
    )
    exported = verdict.exported
    more: dict[str, Value] = {"command": import_command(given.name)}
    if exported is not None:
        is_stored = await host.runtime.store.get(verdict.run) is not None
        more |= {"row": row_data(exported.row), "effects": len(exported.effects), "known": is_stored}
    return {**verdict_data(verdict, given.name), **more}


@operation(
    "Take in an exported run, to look at and to fork. It is verified first.",
    Export,
    shape(run=Name, head=Name, effects=int),
)
async def import_run(host: Host, given: Export) -> Value:
    exported = imports.parse_export(given.data, Path(given.name))
    if await host.runtime.store.get(exported.row.id) is not None:
        raise RunState(f"run {exported.row.id} is in this store already")
    host.created(await imports.import_run(host.runtime, exported))
    return imported_data(exported)
